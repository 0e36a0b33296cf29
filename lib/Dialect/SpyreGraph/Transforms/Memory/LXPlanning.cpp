//===- LXPlanning.cpp - Buffers in the cores' scratchpads -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Longer than 600 lines: one pass, whose steps share the problem that they
// state and solve again.
//
//===----------------------------------------------------------------------===//

#include "InPlace.h"
#include "LXCopies.h"
#include "Liveness.h"
#include "MemorySchedule.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/DeviceOptions.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/Stage.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
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

/// Limit of the exact search, in nodes per function; most need fewer.
constexpr int64_t kMaxSearchNodes = 20000;

/// How many buffers are tried, per function, as one that is kept in device
/// memory for a part of its life.
constexpr unsigned kMaxSpillTrials = 8;

constexpr llvm::StringLiteral kCategory = "spyre-lx-planning";

/// A buffer that could live in LX.
struct Candidate {
  memref::AllocOp alloc;
  SmallVector<int64_t> local;
  /// Bytes of device-memory traffic that a place in LX saves.
  double savedBytes;
};

class LXPlanningPass
    : public spyre_graph::impl::SpyreLXPlanningBase<LXPlanningPass> {
public:
  using SpyreLXPlanningBase::SpyreLXPlanningBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    DeviceOptions options;
    options.capacity = capacity;
    options.lxFraction = lxFraction;
    options.maxSpan = maxSpan;
    FailureOr<::spyre::DeviceSpec> device = options.apply(func);
    if (failed(device) || failed(checkOptions()))
      return signalPassFailure();
    spec = *device;
    if (func.isExternal())
      return;
    target = getTarget(func);
    if (!target || failed(checkBufferized(func)) || // SG-LX-C1
        failed(checkNotPlanned()))
      return signalPassFailure();
    reads.emplace(*target, spec);
    copies.clear();
    copyAllocs.clear();
    repeated.clear();
    resharded.clear();
    inMemory.clear();
    bool isFree = mode == "default";
    numberOps(func);
    if (isFree && reshard && target->allowsReshard())
      repeated = repeatCopies(func, points, *target, spec, *reads);
    if (cloneInputs && isFree) {
      copyArguments(func);
      for (const LXCopy &copy :
           createTileCopies(func, points, *target, spec, *reads))
        addCopy(copy);
    }
    if (isFree)
      serveUsersApart(func);
    solve(func);
    if (isFree && solver == "optimal" && getSaved() < getSavedIfAllFit()) {
      tryOtherOrder(func);
      trySpilling(func);
    }
    explainBound(func);
    for (auto [number, offset] : llvm::enumerate(offsets))
      setPlacement(number, offset);
    for (auto [alloc, obstacle] : ineligible) {
      ++numIneligible;
      remark::missed(alloc.getLoc(), named("ineligible"))
          << "left in device memory: " + obstacle;
    }
    for (LXCopy &copy : copies) {
      if (isPlaced(copy.alloc))
        ++numClones;
      else
        undo(copy);
    }
    settle(repeated);
    for (const Resharded &entry : resharded)
      numReshards += entry.copies.size();
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
    return success();
  }

  /// What has a place would not be in the way of what gets one.
  LogicalResult checkNotPlanned() {
    WalkResult result = getOperation().walk([](memref::AllocOp alloc) {
      auto placement = alloc->getAttrOfType<PlacementAttr>(
          SpyreGraphDialect::getPlacementAttrName());
      if (!placement || placement.getSpace() != MemorySpace::lx)
        return WalkResult::advance();
      // SG-LX-C2
      alloc.emitOpError("has a place in LX already; --spyre-lx-planning plans "
                        "a function once, before any buffer has one");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  remark::RemarkOpts named(StringRef name) {
    return remark::RemarkOpts::name(name).category(kCategory).function(
        getOperation().getName());
  }

  static bool isPlaced(memref::AllocOp alloc) {
    return alloc->hasAttr(SpyreGraphDialect::getPlacementAttrName());
  }

  //===--------------------------------------------------------------------===//
  // Copies
  //===--------------------------------------------------------------------===//

  void addCopy(std::optional<LXCopy> copy) {
    if (!copy)
      return;
    copyAllocs.insert(copy->alloc);
    copies.push_back(*copy);
  }

  /// Creates a copy in LX of each argument that is read several times in the
  /// same slices, so that it is read from device memory once, and of each
  /// result that the function reads again.
  void copyArguments(func::FuncOp func) {
    Block &block = func.getBody().front();
    for (BlockArgument argument : func.getArguments()) {
      auto type = dyn_cast<MemRefType>(argument.getType());
      if (!type || argument.use_empty() || !type.hasStaticShape())
        continue;
      SmallVector<OpOperand *> uses = getOrderedUses(argument, points);
      Eligibility eligibility = getCommonSlicing(uses, *target);
      if (!eligibility.slicing || eligibility.share != 1 ||
          (!target->allowsLXAcrossLoops() && isUsedInLoop(uses)))
        continue;
      auto isWrite = [](OpOperand *use) {
        return cast<SpyreOpInterface>(use->getOwner()).isDpsInit(use);
      };
      int64_t numWrites = llvm::count_if(uses, isWrite);
      if (numWrites == 0 && getNumAccesses(uses, block, *target) > 1)
        addCopy(
            createReload(argument, uses, *eligibility.slicing, block, *target));
      if (target->allowsResultsInLX() && numWrites == 1 &&
          isWrite(uses.front()) && uses.size() > 1 &&
          uses.front()->getOwner()->getBlock() == &block)
        addCopy(createSpill(argument, *uses.front(),
                            ArrayRef(uses).drop_front(), *eligibility.slicing,
                            *target));
    }
  }

  /// Lets users of a buffer read it in different ways: in the slices in which
  /// it is written, in others after a move over the ring, or in device memory.
  void serveUsersApart(func::FuncOp func) {
    // Copies come between the points of other operations.
    numberOps(func, /*step=*/2);
    SmallVector<memref::AllocOp> allocs;
    func.walk([&](memref::AllocOp alloc) {
      if (!copyAllocs.contains(alloc) && !isPlaced(alloc) &&
          alloc.getType().getNumElements() > 0)
        allocs.push_back(alloc);
    });
    Resharder resharder(points, *target, spec, *reads,
                        reshard && target->allowsReshard());
    for (memref::AllocOp alloc : allocs) {
      Served served = resharder.serve(alloc);
      if (served.isSplit)
        inMemory.insert(alloc);
      for (const LXCopy &copy : served.copies)
        addCopy(copy);
      if (served.moves)
        resharded.push_back(std::move(*served.moves));
    }
  }

  //===--------------------------------------------------------------------===//
  // Placement
  //===--------------------------------------------------------------------===//

  /// Places as many buffers as fit. A buffer that moves between cores needs a
  /// place before and after the move: if it has none, the move is removed,
  /// which leaves more room for the others.
  void solve(func::FuncOp func) {
    do {
      stateProblem(func);
      offsets = place();
    } while (removeUnplacedReshards());
  }

  bool hasOffset(memref::AllocOp alloc) const {
    auto known = numberOf.find(alloc);
    return known != numberOf.end() &&
           offsets[known->second] != planning::kUnplaced;
  }

  /// Whether a buffer has a place before and after all of its moves, if any.
  bool isPlaced(Resharded &entry) const {
    return entry.copies.empty() || (hasOffset(entry.source) &&
                                    llvm::all_of(entry.copies, [&](auto &copy) {
                                      return hasOffset(copy.second);
                                    }));
  }

  /// Of the moves that have no place, removes the large ones: without these the
  /// others may have one.
  bool removeUnplacedReshards() {
    SmallVector<std::pair<int64_t, Resharded *>> unplaced;
    int64_t largest = 0;
    for (Resharded &entry : resharded)
      if (!isPlaced(entry)) {
        unplaced.emplace_back(getBufferBytes(entry.source), &entry);
        largest = std::max(largest, unplaced.back().first);
      }
    for (auto [bytes, entry] : unplaced)
      if (2 * bytes >= largest)
        undo(*entry);
    return largest > 0;
  }

  /// Bytes of traffic that the placement saves.
  double getSaved() const {
    double saved = 0;
    for (auto [candidate, offset] : llvm::zip_equal(candidates, offsets))
      if (offset != planning::kUnplaced)
        saved += candidate.savedBytes;
    return saved;
  }
  std::vector<double> getSavedBytes() const {
    std::vector<double> saved;
    for (const Candidate &candidate : candidates)
      saved.push_back(candidate.savedBytes);
    return saved;
  }
  double getSavedIfAllFit() const { return llvm::sum_of(getSavedBytes(), 0.0); }

  /// Tries an order of the operations in which fewer bytes are live, and keeps
  /// it if the placement then saves more.
  void tryOtherOrder(func::FuncOp func) {
    Block &block = func.getBody().front();
    double before = getSaved();
    SmallVector<Operation *> original;
    for (Operation &op : block.without_terminator())
      original.push_back(&op);
    SmallVector<Operation *> order =
        scheduleForMemory(block, [&](Value buffer) -> int64_t {
          auto known = numberOf.find(buffer.getDefiningOp());
          return known == numberOf.end() ? 0
                                         : problem.buffers[known->second].size;
        });
    if (order == original || order.size() != original.size())
      return;
    // Solving removes moves without a place; keep them in case the original
    // order is restored.
    std::vector<Resharded> kept = std::move(resharded);
    resharded.clear();
    reorder(block, order);
    solve(func);
    bool pays =
        getSaved() > before &&
        llvm::all_of(kept, [&](Resharded &entry) { return isPlaced(entry); });
    resharded = std::move(kept);
    if (pays) {
      remark::passed(func.getLoc(), named("order"))
          << ("operations in another order: " +
              Twine(static_cast<int64_t>(getSaved() - before)) +
              " more bytes of traffic saved")
                 .str();
      return;
    }
    reorder(block, original);
    solve(func);
  }

  /// Gives buffers that have no place for their whole life one for parts of it:
  /// from the write to the reads that follow soon, and for the later reads.
  void trySpilling(func::FuncOp func) {
    SmallVector<memref::AllocOp> unplaced;
    // Sorted by idle time, then in the order of the candidates.
    std::vector<std::tuple<int64_t, size_t, memref::AllocOp>> idle;
    // Moves over the ring are removed if they have no place, together with the
    // buffers that they move between; those must not be spilled. Neither must
    // what several cores make for themselves.
    llvm::SmallPtrSet<Operation *, 8> moved;
    for (Repeated &entry : repeated)
      moved.insert(entry.copy.alloc);
    for (Resharded &entry : resharded) {
      if (!entry.copies.empty())
        moved.insert(entry.source);
      for (auto &[move, target] : entry.copies)
        moved.insert(target);
    }
    LivesOutside outside = getLivesOutside();
    for (auto [number, candidate] : llvm::enumerate(candidates)) {
      if (copyAllocs.contains(candidate.alloc) ||
          moved.contains(candidate.alloc))
        continue;
      if (offsets[number] == planning::kUnplaced)
        unplaced.push_back(candidate.alloc);
      else if (int64_t time = getUsefulIdleTime(candidate.alloc, outside))
        idle.push_back({-time, number, candidate.alloc});
    }
    trySpilling(func, unplaced);
    // A buffer that is idle for long makes room for others meanwhile.
    llvm::sort(idle, [](const auto &a, const auto &b) {
      return std::make_pair(std::get<0>(a), std::get<1>(a)) <
             std::make_pair(std::get<0>(b), std::get<1>(b));
    });
    for (const auto &[time, number, alloc] :
         ArrayRef(idle).take_front(kMaxSpillTrials))
      if (getSaved() < getSavedIfAllFit())
        trySpilling(func, alloc);
  }

  /// The lives of buffers without a place: when each begins, in order, and when
  /// the last of those up to there ends.
  using LivesOutside = SmallVector<std::pair<int64_t, int64_t>>;
  LivesOutside getLivesOutside() const {
    LivesOutside lives;
    for (auto [buffer, offset] : llvm::zip_equal(problem.buffers, offsets))
      if (offset == planning::kUnplaced)
        lives.emplace_back(buffer.lower, buffer.upper);
    llvm::sort(lives);
    for (size_t i = 1; i < lives.size(); ++i)
      lives[i].second = std::max(lives[i].second, lives[i - 1].second);
    return lives;
  }

  /// The longest time between two uses of a buffer, in program points, if a
  /// buffer without a place is live during it; 0 otherwise.
  int64_t getUsefulIdleTime(memref::AllocOp alloc,
                            const LivesOutside &outside) {
    SmallVector<OpOperand *> uses = getOrderedUses(alloc, points);
    int64_t longest = 0;
    for (unsigned number = 2; number < uses.size(); ++number) {
      int64_t begin = points.lookup(uses[number - 1]->getOwner()),
              end = points.lookup(uses[number]->getOwner());
      auto later = llvm::partition_point(
          outside, [&](const auto &life) { return life.first < end; });
      bool isUseful =
          later != outside.begin() && std::prev(later)->second > begin + 1;
      if (isUseful)
        longest = std::max(longest, end - begin);
    }
    return longest;
  }

  void trySpilling(func::FuncOp func, ArrayRef<memref::AllocOp> allocs) {
    double before = getSaved();
    size_t numBefore = copies.size();
    for (memref::AllocOp alloc : allocs)
      spill(alloc);
    if (copies.size() == numBefore)
      return;
    solve(func);
    if (getSaved() > before) {
      for (LXCopy &copy : MutableArrayRef(copies).drop_front(numBefore))
        if (hasOffset(copy.alloc))
          remark::passed(copy.memory.getLoc(), named("spilled"))
              << "in device memory, with a copy in LX for a part of its life";
      return;
    }
    for (LXCopy &copy : MutableArrayRef(copies).drop_front(numBefore)) {
      copyAllocs.erase(copy.alloc);
      undo(copy);
    }
    copies.resize(numBefore);
    for (memref::AllocOp alloc : allocs)
      inMemory.erase(alloc);
    solve(func);
  }

  void spill(memref::AllocOp alloc) {
    Block &block = *alloc->getBlock();
    SmallVector<OpOperand *> uses = getOrderedUses(alloc, points);
    Eligibility eligibility = getCommonSlicing(uses, *target);
    if (!eligibility.slicing || eligibility.share != 1 || uses.size() < 3 ||
        llvm::any_of(uses, [&](OpOperand *use) {
          bool isWrite = cast<SpyreOpInterface>(use->getOwner()).isDpsInit(use);
          return use->getOwner()->getBlock() != &block ||
                 isWrite != (use == uses.front());
        }))
      return;
    // The buffer's life is cut at its longest time without a use.
    auto timeOf = [&](OpOperand *use) {
      return points.lookup(use->getOwner());
    };
    unsigned cut = 2;
    for (unsigned number = 2; number < uses.size(); ++number)
      if (timeOf(uses[number]) - timeOf(uses[number - 1]) >
          timeOf(uses[cut]) - timeOf(uses[cut - 1]))
        cut = number;
    ArrayRef<OpOperand *> early = ArrayRef(uses).slice(1, cut - 1),
                          late = ArrayRef(uses).drop_front(cut);
    inMemory.insert(alloc);
    if (getNumAccesses(late, block, *target) > 1)
      addCopy(createReload(alloc, late, *eligibility.slicing, block, *target));
    addCopy(createSpill(alloc, *uses.front(), early, *eligibility.slicing,
                        *target));
  }

  /// Adds a remark that says whether another placement could save more.
  void explainBound(func::FuncOp func) {
    if (!getContext().getRemarkEngine() || solver != "optimal")
      return;
    double saved = getSaved();
    auto bound =
        static_cast<int64_t>(planning::boundValue(problem, getSavedBytes()));
    std::string text =
        (Twine(llvm::count_if(
             offsets,
             [](int64_t offset) { return offset != planning::kUnplaced; })) +
         " of " + Twine(candidates.size()) + " buffers in LX save " +
         Twine(static_cast<int64_t>(saved)) + " bytes of traffic; ")
            .str();
    if (saved >= getSavedIfAllFit())
      text += inMemory.empty()
                  ? "proven optimal: all fit"
                  : "all fit, as " + std::to_string(inMemory.size()) +
                        " are in device memory for a part of their life";
    else if (saved < static_cast<double>(bound))
      text += "no placement of these, in this order of the operations, saves "
              "more than " +
              std::to_string(bound);
    else
      text += "proven optimal for this order of the operations";
    remark::analysis(func.getLoc(), named("placement")) << text;
  }

  //===--------------------------------------------------------------------===//
  // The problem
  //===--------------------------------------------------------------------===//

  void numberOps(func::FuncOp func, int64_t step = 1) {
    points.clear();
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      points[op] = step * static_cast<int64_t>(points.size());
    });
  }

  void stateProblem(func::FuncOp func) {
    candidates.clear();
    firstUser.clear();
    lastUser.clear();
    numberOf.clear();
    problem = {};
    problem.capacity = spec.usableLXBytes();
    problem.alignment = ::spyre::kStickBytes;
    ineligible.clear();
    numberOps(func);
    std::vector<BufferLifetime> lifetimes = getBufferLifetimes(func);
    for (BufferLifetime &lifetime : lifetimes)
      addCandidate(lifetime);
    linkInPlace();
  }

  void addCandidate(BufferLifetime &lifetime) {
    if (isPlaced(lifetime.alloc) || inMemory.contains(lifetime.alloc))
      return;
    Block &block = *lifetime.alloc->getBlock();
    SmallVector<OpOperand *> uses = getOrderedUses(lifetime.alloc, points);
    Eligibility eligibility = getCommonSlicing(uses, *target);
    if (eligibility.slicing &&
        (!target->allowsLXAcrossLoops() || mode == "reference") &&
        isUsedInLoop(uses))
      eligibility = {std::nullopt, "it is used in an inner loop"};
    if (eligibility.slicing && mode == "reference") {
      auto producer = dyn_cast<SpyreOpInterface>(lifetime.users.front());
      if (!producer || !producer.isLXEligibleInReference() ||
          producer.getSpyreInit() != lifetime.alloc.getResult())
        eligibility = {std::nullopt, "the reference keeps no result of the "
                                     "operation that writes it"};
      else if (lifetime.users.size() < 2)
        eligibility = {std::nullopt, "it has fewer than two uses"};
      else if (!eligibility.isPlain)
        eligibility = {std::nullopt, "the reference does not track its slices "
                                     "through reshapes, parts, or other cores"};
    }
    if (!eligibility.slicing) {
      ineligible.push_back({lifetime.alloc, eligibility.obstacle});
      return;
    }
    Candidate candidate{lifetime.alloc, eligibility.slicing->getLocalShape(),
                        0};
    double numAccesses = getNumAccesses(uses, block, *target);
    // The access that creates a copy saves nothing, nor does the one that it
    // replaces.
    if (copyAllocs.contains(lifetime.alloc))
      numAccesses -= 2;
    // Operations that move a buffer save nothing either.
    for (Operation *user : lifetime.users)
      if (isa<ReshardOp>(user))
        --numAccesses;
    candidate.savedBytes =
        static_cast<double>(
            getNumRuns(lifetime.alloc, getOperation().getBody().front())) *
        (numAccesses * static_cast<double>(getBufferBytes(lifetime.alloc)) +
         reads->getRereadBytes(uses, block));
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

  /// For each buffer, looks for an operand of its writer that is not read
  /// later, whose place it could take over.
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
    return planning::placeMostValuable(problem, getSavedBytes(),
                                       kMaxSearchNodes);
  }

  void setPlacement(unsigned number, int64_t offset) {
    Candidate &candidate = candidates[number];
    const planning::Buffer &buffer = problem.buffers[number];
    Location loc = candidate.alloc.getLoc();
    if (offset == planning::kUnplaced) {
      if (copyAllocs.contains(candidate.alloc))
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
  ProgramPoints points;
  std::optional<ReadPrices> reads;
  std::vector<LXCopy> copies;
  llvm::SmallPtrSet<Operation *, 4> copyAllocs;
  std::vector<Repeated> repeated;
  std::vector<Resharded> resharded;
  /// Spilled buffers: only their copies are in LX.
  llvm::SmallPtrSet<Operation *, 4> inMemory;
  std::vector<int64_t> offsets;
  std::vector<std::pair<memref::AllocOp, std::string>> ineligible;
  planning::AllocationProblem problem;
  const Target *target = nullptr;
  ::spyre::DeviceSpec spec;
};

} // namespace
