//===- LXPlanning.cpp - Buffers in the cores' scratchpads -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "InPlace.h"
#include "Liveness.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "Spyre/Planning/BufferAllocation.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYRELXPLANNING
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;
namespace planning = ::spyre::planning;

namespace {

constexpr int64_t kStickInBytes = 128;
/// Of the search, per function: a placement that it finds at all, it mostly
/// finds in fewer.
constexpr int64_t kMaxSearchNodes = 20000;

constexpr llvm::StringLiteral kCategory = "spyre-lx-planning";

/// A buffer that could live in LX.
struct Candidate {
  memref::AllocOp alloc;
  SmallVector<int64_t> local;
  /// Device-memory traffic that a place in LX saves.
  double savedBytes;
};

/// A copy of an argument that stays only if it gets a place.
struct Clone {
  Value argument;
  SpyreOpInterface copy;
  memref::AllocOp alloc;
};

/// Why a buffer cannot live in LX; empty if it can.
struct Eligibility {
  std::optional<Slicing> slicing;
  StringRef obstacle;
};

/// The slices in which every user accesses a buffer, if they agree and all of
/// it is accessed.
Eligibility getCommonSlicing(Value buffer, ArrayRef<Operation *> users,
                             Block *block, bool superdscCompatible) {
  auto type = cast<MemRefType>(buffer.getType());
  // Slices of a layout that is relative to the shape have that layout too.
  auto layout = dyn_cast_or_null<LayoutAttr>(type.getMemorySpace());
  if (!layout)
    return {std::nullopt, "its layout is not relative to its shape"};
  std::optional<Slicing> common;
  for (Operation *user : users) {
    auto op = dyn_cast<SpyreOpInterface>(user);
    WorkDivisionAttr division = op ? op.getWorkDivision() : nullptr;
    if (!division)
      return {std::nullopt, "it is used by an operation without a division"};
    // A core's LX outlives its loops, but slices of tiles differ by tile.
    if (user->getBlock() != block)
      return {std::nullopt, "it is used in an inner loop"};
    SmallVector<int64_t> extents = op.getLoopExtents();
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    for (OpOperand &operand : user->getOpOperands()) {
      if (operand.get() != buffer)
        continue;
      unsigned number = operand.getOperandNumber();
      if (indirect && indirect->operand == number)
        return {std::nullopt, "it is accessed through indices"};
      if (superdscCompatible && indirect && indirect->index == number)
        return {std::nullopt, "it holds indices, which SuperDSC keeps in "
                              "device memory"};
      std::optional<Slicing> slicing =
          getSlicing(maps[number], extents, division);
      if (!slicing)
        return {std::nullopt, "a map is not made of loop dimensions"};
      if (!slicing->covers(type.getShape()))
        return {std::nullopt, "a user accesses a part of it"};
      if (common && !(*common == *slicing))
        return {std::nullopt, "users access it in different slices"};
      common = std::move(slicing);
    }
  }
  // A slice must be whole sticks, else it has another lane in LX.
  int64_t stickDim = layout.getStickDim(type.getShape());
  if (common && stickDim >= 0 && common->dims[stickDim].split > 1 &&
      common->dims[stickDim].chunk % getStickElements(getLayout(type)) != 0)
    return {std::nullopt, "its slices cut sticks"};
  return {common, ""};
}

int64_t getSizeInBytes(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  return getLayout(type).getSizeInBytes(type.getShape());
}

class LXPlanningPass
    : public spyre_graph::impl::SpyreLXPlanningBase<LXPlanningPass> {
public:
  using SpyreLXPlanningBase::SpyreLXPlanningBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (failed(checkOptions()))
      return signalPassFailure();
    if (func.isExternal())
      return;
    candidates.clear();
    firstUser.clear();
    lastUser.clear();
    numberOf.clear();
    clones.clear();
    cloneAllocs.clear();
    problem = {};
    problem.capacity = static_cast<int64_t>(static_cast<double>(capacity) *
                                            (1.0 - lxFraction));
    problem.alignment = kStickInBytes;
    if (cloneInputs && mode == "default")
      makeClones(func);
    std::vector<BufferLifetime> lifetimes = getBufferLifetimes(func);
    for (BufferLifetime &lifetime : lifetimes)
      addCandidate(lifetime);
    linkInPlace();
    std::vector<int64_t> offsets = place();
    for (auto [number, offset] : llvm::enumerate(offsets))
      setPlacement(number, offset, offsets);
    removeUnplacedClones();
  }

private:
  LogicalResult checkOptions() {
    func::FuncOp func = getOperation();
    if (!llvm::is_contained({"greedy", "firstfit", "bestfit", "optimal"},
                            StringRef(solver)))
      return func.emitError()
             << "unknown solver '" << solver.getValue()
             << "', expected 'greedy', 'firstfit', 'bestfit' or 'optimal'";
    if (mode != "default" && mode != "reference")
      return func.emitError() << "unknown mode '" << mode.getValue()
                              << "', expected 'default' or 'reference'";
    if (capacity < 0 || !(lxFraction >= 0 && lxFraction <= 1))
      return func.emitError()
             << "expected a capacity of at least 0 and a "
                "fraction from 0 to 1, found "
             << capacity.getValue() << " and " << lxFraction.getValue();
    return success();
  }

  remark::RemarkOpts named(StringRef name) {
    return remark::RemarkOpts::name(name).category(kCategory).function(
        getOperation().getName());
  }

  //===--------------------------------------------------------------------===//
  // Clones of arguments
  //===--------------------------------------------------------------------===//

  /// Copies each argument that several operations read in the same slices, so
  /// that it is read from device memory once.
  void makeClones(func::FuncOp func) {
    Block &block = func.getBody().front();
    for (BlockArgument argument : func.getArguments()) {
      auto type = dyn_cast<MemRefType>(argument.getType());
      if (!type || argument.use_empty() || !type.hasStaticShape())
        continue;
      llvm::SmallSetVector<Operation *, 4> users;
      bool isWritten = false;
      for (OpOperand &use : argument.getUses()) {
        auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
        isWritten |= !op || op.isDpsInit(&use);
        users.insert(use.getOwner());
      }
      if (isWritten || users.size() < 2)
        continue;
      Eligibility eligibility = getCommonSlicing(argument, users.getArrayRef(),
                                                 &block, superdscCompatible);
      if (!eligibility.slicing)
        continue;
      SmallVector<Operation *> ordered = users.takeVector();
      Operation *first = ordered.front();
      for (Operation *user : ordered)
        if (user->isBeforeInBlock(first))
          first = user;
      makeClone(argument, *eligibility.slicing, first);
    }
  }

  /// A copy whose loops divide the buffer into the given slices.
  void makeClone(BlockArgument argument, const Slicing &slicing,
                 Operation *first) {
    auto type = cast<MemRefType>(argument.getType());
    MLIRContext *context = &getContext();
    // The order of the loops is that of the cores.
    SmallVector<unsigned> order =
        llvm::to_vector(llvm::seq<unsigned>(0, slicing.dims.size()));
    llvm::sort(order, [&](unsigned a, unsigned b) {
      auto rank = [&](unsigned dim) {
        const SliceDim &slice = slicing.dims[dim];
        return std::make_pair(slice.split == 1
                                  ? std::numeric_limits<int64_t>::max()
                                  : slice.stride,
                              dim);
      };
      return rank(a) < rank(b);
    });
    SmallVector<int64_t> extents, splits, chunks;
    SmallVector<AffineExpr> results(order.size());
    int64_t coresUsed = 1;
    for (auto [loop, dim] : llvm::enumerate(order)) {
      const SliceDim &slice = slicing.dims[dim];
      // Cores that hold the same slice have no loop that tells them apart.
      if (slice.split > 1 && slice.stride != coresUsed)
        return;
      coresUsed *= slice.split;
      extents.push_back(type.getDimSize(dim));
      splits.push_back(slice.split);
      chunks.push_back(slice.split == 1 ? type.getDimSize(dim) : slice.chunk);
      results[dim] = getAffineDimExpr(loop, context);
    }
    if (coresUsed != slicing.numCores)
      return;
    OpBuilder builder(first);
    auto alloc = memref::AllocOp::create(builder, first->getLoc(), type);
    OperationState state(first->getLoc(), IdentityOp::getOperationName());
    state.addOperands({argument, alloc});
    auto copy = cast<SpyreOpInterface>(builder.create(state));
    AffineMap map = AffineMap::get(extents.size(), 0, results, context);
    copy.setLoopStructure({map, map}, extents);
    copy.setWorkDivision(WorkDivisionAttr::get(context, splits, chunks));
    argument.replaceAllUsesExcept(alloc, copy);
    clones.push_back({argument, copy, alloc});
    cloneAllocs.insert(alloc);
  }

  void removeUnplacedClones() {
    for (Clone &clone : clones) {
      if (clone.alloc->hasAttr(SpyreGraphDialect::getPlacementAttrName())) {
        ++numClones;
        continue;
      }
      clone.copy->erase();
      clone.alloc.getResult().replaceAllUsesWith(clone.argument);
      clone.alloc->erase();
    }
  }

  bool isClone(memref::AllocOp alloc) { return cloneAllocs.contains(alloc); }

  //===--------------------------------------------------------------------===//
  // The problem
  //===--------------------------------------------------------------------===//

  void addCandidate(BufferLifetime &lifetime) {
    if (lifetime.alloc->hasAttr(SpyreGraphDialect::getPlacementAttrName()))
      return;
    Eligibility eligibility =
        getCommonSlicing(lifetime.alloc, lifetime.users,
                         lifetime.alloc->getBlock(), superdscCompatible);
    if (eligibility.slicing && mode == "reference") {
      auto producer = dyn_cast<SpyreOpInterface>(lifetime.users.front());
      if (!producer || !producer.isLXEligibleInReference() ||
          producer.getSpyreInit() != lifetime.alloc.getResult())
        eligibility = {std::nullopt, "the reference keeps no result of the "
                                     "operation that writes it"};
      else if (lifetime.users.size() < 2)
        eligibility = {std::nullopt, "it has fewer than two uses"};
    }
    if (!eligibility.slicing) {
      ++numIneligible;
      remark::missed(lifetime.alloc.getLoc(), named("ineligible"))
          << ("left in device memory: " + eligibility.obstacle).str();
      return;
    }
    Candidate candidate{lifetime.alloc, eligibility.slicing->getLocalShape(),
                        0};
    // A clone saves nothing for the read that makes it.
    auto numAccesses = static_cast<double>(lifetime.users.size());
    if (isClone(lifetime.alloc))
      numAccesses -= 2;
    candidate.savedBytes =
        numAccesses * static_cast<double>(getSizeInBytes(lifetime.alloc));
    planning::Buffer buffer;
    buffer.lower = lifetime.first;
    buffer.upper = lifetime.last + 1;
    buffer.size =
        getLayout(lifetime.alloc.getType()).getSizeInBytes(candidate.local);
    buffer.numUses = lifetime.users.size();
    numberOf[lifetime.alloc] = candidates.size();
    firstUser.push_back(lifetime.users.front());
    lastUser.push_back(lifetime.users.back());
    candidates.push_back(std::move(candidate));
    problem.buffers.push_back(buffer);
  }

  /// Finds for each buffer one that the operation that writes it reads last.
  void linkInPlace() {
    if (!inPlace)
      return;
    llvm::SmallBitVector isTaken(candidates.size());
    for (auto [number, buffer] : llvm::enumerate(problem.buffers)) {
      auto writer = dyn_cast<SpyreOpInterface>(firstUser[number]);
      if (!writer ||
          writer.getSpyreInit() != candidates[number].alloc.getResult() ||
          (mode == "reference" && !writer.isInPlaceInReference()))
        continue;
      for (unsigned operand = 0; operand + 1 < writer->getNumOperands();
           ++operand) {
        auto found = numberOf.find(writer->getOperand(operand).getDefiningOp());
        if (found == numberOf.end())
          continue;
        unsigned parent = found->second;
        const planning::Buffer &other = problem.buffers[parent];
        if (isTaken.test(parent) || lastUser[parent] != writer ||
            other.upper != buffer.lower + 1 || other.lower >= buffer.lower ||
            other.size != buffer.size || !canWriteInPlace(writer, operand))
          continue;
        buffer.inPlaceParent = parent;
        isTaken.set(parent);
        break;
      }
    }
  }

  std::vector<int64_t> place() {
    if (solver == "greedy")
      return planning::allocateGreedy(problem);
    if (solver == "firstfit")
      return planning::allocateByFit(problem, planning::GapChoice::First);
    if (solver == "bestfit")
      return planning::allocateByFit(problem, planning::GapChoice::Best);
    std::vector<double> values;
    for (const Candidate &candidate : candidates)
      values.push_back(candidate.savedBytes);
    return planning::placeMostValuable(problem, values, kMaxSearchNodes);
  }

  void setPlacement(unsigned number, int64_t offset,
                    ArrayRef<int64_t> offsets) {
    Candidate &candidate = candidates[number];
    const planning::Buffer &buffer = problem.buffers[number];
    Location loc = candidate.alloc.getLoc();
    if (offset == planning::kUnplaced) {
      if (isClone(candidate.alloc))
        return;
      ++numNotFitting;
      remark::missed(loc, named("not-fitting"))
          << ("left in device memory: no room for its " + Twine(buffer.size) +
              " bytes per core among " + Twine(problem.capacity))
                 .str();
      return;
    }
    bool isInPlace =
        buffer.inPlaceParent >= 0 && offsets[buffer.inPlaceParent] == offset;
    candidate.alloc->setAttr(SpyreGraphDialect::getPlacementAttrName(),
                             PlacementAttr::get(&getContext(), MemorySpace::lx,
                                                offset, candidate.local));
    ++numPlaced;
    numInPlace += isInPlace;
    savedBytes += static_cast<int64_t>(candidate.savedBytes);
    remark::passed(loc, named("placed"))
        << ((isInPlace ? "in LX in place of an operand at byte "
                       : "in LX at byte ") +
            Twine(offset) + ": " + Twine(buffer.size) +
            " bytes per core, saves " +
            Twine(static_cast<int64_t>(candidate.savedBytes)) +
            " bytes of traffic")
               .str();
  }

  std::vector<Candidate> candidates;
  std::vector<Operation *> firstUser, lastUser;
  DenseMap<Operation *, unsigned> numberOf;
  std::vector<Clone> clones;
  llvm::SmallPtrSet<Operation *, 4> cloneAllocs;
  planning::AllocationProblem problem;
};

} // namespace
