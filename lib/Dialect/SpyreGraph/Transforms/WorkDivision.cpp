//===- WorkDivision.cpp - Loops over cores ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "ReferenceDivision.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include <map>

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREWORKDIVISION
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// Users of one value that a choice looks at, so that a value with very many
/// does not make the pass quadratic.
constexpr unsigned kMaxUsersInspected = 8;

/// Numbers slicings so that equal ones have the same number.
class SlicingNumbers {
public:
  static constexpr int kNone = -1;

  int get(const Slicing &slicing) {
    std::vector<int64_t> key{slicing.numCores};
    for (const SliceDim &dim : slicing.dims)
      key.insert(key.end(),
                 {dim.stride, dim.split, dim.chunk, dim.extent, dim.offset});
    return numbers.try_emplace(std::move(key), numbers.size()).first->second;
  }

private:
  std::map<std::vector<int64_t>, int> numbers;
};

/// One way to divide an op.
struct Candidate {
  SmallVector<int64_t, 4> splits, chunks;
  double computeSeconds;
  /// Iterations of the core with the most.
  double largestSlice;
};

/// How one operand fares under one candidate.
struct OperandCost {
  /// Time to move it from or to device memory.
  double seconds;
  /// The slices in which the cores access all of it, or kNone.
  int slicing;
};

/// All divisions of an op, priced alone; shared by ops that are alike.
struct Divisions {
  unsigned numOperands;
  std::vector<Candidate> candidates;
  /// numOperands entries per candidate.
  std::vector<OperandCost> operandCosts;
  /// Device bytes that each operand moves.
  SmallVector<double, 4> operandBytes;

  const OperandCost &get(unsigned candidate, unsigned operand) const {
    return operandCosts[candidate * numOperands + operand];
  }

  /// Of a candidate, with all operands in device memory.
  double getSecondsAlone(unsigned candidate) const {
    double memorySeconds = 0;
    for (unsigned operand = 0; operand < numOperands; ++operand)
      memorySeconds += get(candidate, operand).seconds;
    return std::max(candidates[candidate].computeSeconds, memorySeconds);
  }
};

/// Enumerates and prices the divisions of one op, with the terms of
/// spyre::estimateOp (memory per operand, because a plan may keep any operand
/// in LX).
class DivisionSearch {
public:
  DivisionSearch(SpyreOpInterface op, int64_t cores, bool onlyEven,
                 const ::spyre::DeviceSpec &spec, SlicingNumbers &numbers)
      : op(op), cores(cores), onlyEven(onlyEven), spec(spec), numbers(numbers),
        extents(op.getLoopExtents()), maps(op.getIndexingMaps()),
        kinds(op.getLoopKinds()), granularity(getSliceGranularity(op)),
        indirect(op.getIndirectAccess()) {
    for (OpOperand &operand : op->getOpOperands())
      describeOperand(operand);
    result.numOperands = op->getNumOperands();
  }

  Divisions run() {
    Candidate whole;
    whole.splits.assign(extents.size(), 1);
    whole.chunks.assign(extents.begin(), extents.end());
    if (llvm::is_contained(extents, 0))
      addCandidate(whole);
    else
      enumerate(0, 1, whole);
    keepSmallSpans();
    return std::move(result);
  }

  /// Prices just one division, the one the op has.
  Divisions price(WorkDivisionAttr division) {
    Candidate given;
    given.splits.assign(division.getSplits().begin(),
                        division.getSplits().end());
    given.chunks.assign(division.getChunks().begin(),
                        division.getChunks().end());
    addCandidate(given);
    return std::move(result);
  }

private:
  void describeOperand(OpOperand &operand) {
    auto type = cast<ShapedType>(operand.get().getType());
    SmallVector<unsigned, 6> dims;
    double iterations = 1;
    for (unsigned dim :
         getUsedDims(maps[operand.getOperandNumber()], extents).set_bits()) {
      dims.push_back(dim);
      iterations *= extents[dim];
    }
    double elements = std::max<int64_t>(type.getNumElements(), 1);
    LayoutAttrInterface layout = getLayout(type);
    double bytes = layout ? layout.getSizeInBytes(type.getShape())
                          : elements * spec.stickBytes;
    result.operandBytes.push_back(bytes * std::min(1.0, iterations / elements));
    operandDims.push_back(std::move(dims));
  }

  /// Drops candidates under which a core touches too wide a span of an operand
  /// in device memory, if others do not.
  void keepSmallSpans() {
    if (llvm::none_of(op->getOperands(), [&](Value operand) {
          auto type = cast<ShapedType>(operand.getType());
          LayoutAttrInterface layout = getLayout(type);
          return layout &&
                 layout.getSizeInBytes(type.getShape()) > spec.maxSpanBytes;
        }))
      return;
    std::vector<Candidate> kept;
    std::vector<OperandCost> keptCosts;
    for (unsigned number = 0; number < result.candidates.size(); ++number) {
      bool fits = true;
      for (unsigned operand = 0; operand < result.numOperands; ++operand)
        fits &= getSpanInBytes(op, operand, result.candidates[number].chunks) <=
                spec.maxSpanBytes;
      if (!fits)
        continue;
      kept.push_back(result.candidates[number]);
      for (unsigned operand = 0; operand < result.numOperands; ++operand)
        keptCosts.push_back(result.get(number, operand));
    }
    if (kept.empty())
      return;
    result.candidates = std::move(kept);
    result.operandCosts = std::move(keptCosts);
  }

  /// Tries every useful number of slices of loop dimension `dim` and those
  /// after it.
  void enumerate(unsigned dim, int64_t coresUsed, Candidate &candidate) {
    if (dim == extents.size())
      return addCandidate(candidate);
    enumerate(dim + 1, coresUsed, candidate);
    if (kinds[dim] != utils::IteratorType::parallel ||
        !maps.back().isFunctionOfDim(dim))
      return;
    int64_t units = llvm::divideCeil(extents[dim], granularity[dim]);
    int64_t previous = 1;
    for (int64_t wanted = 2; wanted <= std::min(units, cores / coresUsed);
         ++wanted) {
      // Equal slices but for the last: fewer may be enough to cover.
      int64_t unitsPerSlice = llvm::divideCeil(units, wanted);
      int64_t splits = llvm::divideCeil(units, unitsPerSlice);
      if (splits == previous || (onlyEven && splits * unitsPerSlice != units))
        continue;
      // SuperDSC does not divide a change of stick along padding.
      if (onlyEven && extents[dim] % granularity[dim] != 0 &&
          isa<IdentityOp, RestickifyOp>(*op))
        continue;
      previous = splits;
      candidate.splits[dim] = splits;
      candidate.chunks[dim] = unitsPerSlice * granularity[dim];
      enumerate(dim + 1, coresUsed * splits, candidate);
    }
    candidate.splits[dim] = 1;
    candidate.chunks[dim] = extents[dim];
  }

  void addCandidate(Candidate &candidate) {
    double coresUsed = 1;
    candidate.largestSlice = 1;
    for (unsigned dim = 0; dim < extents.size(); ++dim) {
      coresUsed *= candidate.splits[dim];
      candidate.largestSlice *= candidate.chunks[dim];
    }
    candidate.computeSeconds = getComputeSeconds(candidate);
    for (unsigned operand = 0; operand < result.numOperands; ++operand) {
      double sharingCores = coresUsed;
      for (unsigned dim : operandDims[operand])
        sharingCores /= candidate.splits[dim];
      double seconds = result.operandBytes[operand] *
                       std::max(1.0, sharingCores / spec.numBroadcastCores) /
                       spec.effectiveMemoryBytesPerSecond;
      result.operandCosts.push_back(
          {seconds, getSlicingNumber(operand, candidate)});
    }
    result.candidates.push_back(candidate);
  }

  double getComputeSeconds(const Candidate &candidate) {
    if (op.getUnit() == Unit::SFU)
      return candidate.largestSlice * op.getElementCost() /
             spec.sfuElementsPerSecondPerCore();
    // Rows that stream through the array: what does not select the second
    // input, which the array holds.
    double rows = 1;
    for (unsigned dim = 0; dim < extents.size(); ++dim)
      if (maps.back().isFunctionOfDim(dim) &&
          !llvm::is_contained(operandDims[1], dim))
        rows *= candidate.chunks[dim];
    return candidate.largestSlice /
           (spec.ptMacsPerSecondPerCore * ::spyre::ptEfficiency(rows, spec));
  }

  int getSlicingNumber(unsigned operand, const Candidate &candidate) {
    if (indirect && indirect->operand == operand)
      return SlicingNumbers::kNone;
    std::optional<Slicing> slicing =
        getSlicing(maps[operand], extents, candidate.splits, candidate.chunks);
    if (!slicing ||
        !slicing->covers(
            cast<ShapedType>(op->getOperand(operand).getType()).getShape()))
      return SlicingNumbers::kNone;
    return numbers.get(*slicing);
  }

  SpyreOpInterface op;
  int64_t cores;
  bool onlyEven;
  const ::spyre::DeviceSpec &spec;
  SlicingNumbers &numbers;
  SmallVector<int64_t> extents;
  SmallVector<AffineMap> maps;
  SmallVector<utils::IteratorType> kinds;
  SmallVector<int64_t> granularity;
  std::optional<IndirectAccess> indirect;
  /// Loop dimensions that select the data of each operand.
  SmallVector<SmallVector<unsigned, 6>, 4> operandDims;
  Divisions result;
};

/// One op of the graph, and the values that LX could carry to and from it.
struct Node {
  SpyreOpInterface op;
  const Divisions *divisions;
  int chosen = -1;
  struct Edge {
    unsigned node;
    /// The operand at the end of the edge.
    unsigned operand;
  };
  SmallVector<Edge, 4> producers;
  SmallVector<Edge, 4> users;
};

/// Divides all ops of a function.
class DivisionPlanner {
public:
  DivisionPlanner(int64_t cores, double tolerance, bool onlyEven)
      : cores(cores), tolerance(tolerance), onlyEven(onlyEven) {}

  void addOp(SpyreOpInterface op) {
    nodeOf[op] = nodes.size();
    Node &node = nodes.emplace_back();
    node.op = op;
    node.divisions = getDivisions(op);
    // A division that is there already, from a file or a user, stays.
    if (op.getWorkDivision())
      node.chosen = 0;
  }

  void run(unsigned sweeps) {
    for (Node &node : nodes)
      connect(node);
    for (unsigned sweep = 0; sweep < sweeps; ++sweep)
      for (unsigned number = 0; number < nodes.size(); ++number)
        choose(nodes[sweep % 2 == 0 ? number : nodes.size() - 1 - number]);
    for (Node &node : nodes) {
      const Candidate &candidate = node.divisions->candidates[node.chosen];
      node.op.setWorkDivision(WorkDivisionAttr::get(
          node.op->getContext(), candidate.splits, candidate.chunks));
      for (const Node::Edge &edge : node.producers)
        if (agrees(node, node.chosen, edge))
          ++numAgreeing;
    }
  }

  int64_t numAgreeing = 0;

private:
  const Divisions *getDivisions(SpyreOpInterface op) {
    std::vector<const void *> key{op->getName().getAsOpaquePointer(),
                                  op->getAttrDictionary().getAsOpaquePointer()};
    for (Type type : op->getOperandTypes())
      key.push_back(type.getAsOpaquePointer());
    std::unique_ptr<Divisions> &divisions = alike[std::move(key)];
    if (!divisions) {
      DivisionSearch search(op, cores, onlyEven, spec, numbers);
      divisions = std::make_unique<Divisions>(
          op.getWorkDivision() ? search.price(op.getWorkDivision())
                               : search.run());
    }
    return divisions.get();
  }

  /// Records the edges over which the op's result could stay in LX: all users
  /// must read it as a whole in slices.
  void connect(Node &node) {
    if (node.op->getNumResults() != 1 || !isAllWritten(node))
      return;
    SmallVector<Node::Edge, 4> users;
    for (OpOperand &use : node.op->getResult(0).getUses()) {
      auto found = nodeOf.find(use.getOwner());
      if (found == nodeOf.end() ||
          use.getOwner()->getBlock() != node.op->getBlock())
        return;
      Node &user = nodes[found->second];
      unsigned operand = use.getOperandNumber();
      if (user.op.isDpsInit(&use) ||
          user.divisions->get(0, operand).slicing == SlicingNumbers::kNone)
        return;
      users.push_back({found->second, operand});
    }
    unsigned number = nodeOf.lookup(node.op);
    for (const Node::Edge &user : users)
      nodes[user.node].producers.push_back({number, user.operand});
    // Uses are in no useful order; the first ones in the program count.
    llvm::sort(users, [](const Node::Edge &a, const Node::Edge &b) {
      return std::make_pair(a.node, a.operand) <
             std::make_pair(b.node, b.operand);
    });
    users.truncate(std::min<size_t>(users.size(), kMaxUsersInspected));
    node.users = std::move(users);
  }

  bool isAllWritten(Node &node) {
    unsigned init = node.divisions->numOperands - 1;
    return node.op.getSpyreInit().getDefiningOp<tensor::EmptyOp>() &&
           node.divisions->get(0, init).slicing != SlicingNumbers::kNone &&
           node.divisions->operandBytes[init] / cores <= spec.usableLXBytes();
  }

  /// Whether a node under one of its candidates reads an operand in the slices
  /// in which its producer writes it.
  bool agrees(const Node &node, unsigned candidate,
              const Node::Edge &edge) const {
    const Node &producer = nodes[edge.node];
    return producer.chosen >= 0 &&
           producer.divisions
                   ->get(producer.chosen, producer.divisions->numOperands - 1)
                   .slicing ==
               node.divisions->get(candidate, edge.operand).slicing;
  }

  struct Price {
    double seconds, residentBytes;
  };

  /// The time of the op, and of its users as far as it depends on the op.
  Price getPrice(const Node &node, unsigned candidate) const {
    const Divisions &divisions = *node.divisions;
    unsigned init = divisions.numOperands - 1;
    double memorySeconds = 0, otherSeconds = 0, residentBytes = 0;
    for (unsigned operand = 0; operand < init; ++operand)
      memorySeconds += divisions.get(candidate, operand).seconds;
    for (const Node::Edge &edge : node.producers) {
      if (agrees(node, candidate, edge)) {
        memorySeconds -= divisions.get(candidate, edge.operand).seconds;
        residentBytes += divisions.operandBytes[edge.operand];
      } else {
        otherSeconds += spec.transferSetupSeconds;
      }
    }
    unsigned disagreeing = 0;
    for (const Node::Edge &edge : node.users) {
      const Node &user = nodes[edge.node];
      if (user.chosen < 0) {
        ++disagreeing;
        continue;
      }
      const OperandCost &cost = user.divisions->get(user.chosen, edge.operand);
      if (cost.slicing == divisions.get(candidate, init).slicing) {
        residentBytes += user.divisions->operandBytes[edge.operand];
      } else {
        ++disagreeing;
        otherSeconds += cost.seconds + spec.transferSetupSeconds;
      }
    }
    memorySeconds +=
        divisions.get(candidate, init).seconds *
        (node.users.empty() ? 1.0 : double(disagreeing) / node.users.size());
    return {std::max(divisions.candidates[candidate].computeSeconds,
                     memorySeconds) +
                otherSeconds,
            residentBytes};
  }

  void choose(Node &node) {
    if (node.op.getWorkDivision())
      return;
    prices.clear();
    double cheapest = std::numeric_limits<double>::max();
    for (unsigned number = 0; number < node.divisions->candidates.size();
         ++number) {
      prices.push_back(getPrice(node, number));
      cheapest = std::min(cheapest, prices.back().seconds);
    }
    int best = -1;
    for (unsigned number = 0; number < prices.size(); ++number)
      if (prices[number].seconds <= cheapest * (1 + tolerance) &&
          (best < 0 || isPreferred(node, number, best)))
        best = number;
    node.chosen = best;
  }

  /// Order among candidates of about equal price; total, so that the choice
  /// does not depend on the enumeration.
  bool isPreferred(const Node &node, unsigned a, unsigned b) const {
    if (prices[a].residentBytes != prices[b].residentBytes)
      return prices[a].residentBytes > prices[b].residentBytes;
    const Candidate &first = node.divisions->candidates[a];
    const Candidate &second = node.divisions->candidates[b];
    if (first.largestSlice != second.largestSlice)
      return first.largestSlice < second.largestSlice;
    return std::lexicographical_compare(
        second.splits.begin(), second.splits.end(), first.splits.begin(),
        first.splits.end());
  }

  int64_t cores;
  double tolerance;
  bool onlyEven;
  ::spyre::DeviceSpec spec;
  SlicingNumbers numbers;
  std::map<std::vector<const void *>, std::unique_ptr<Divisions>> alike;
  std::vector<Node> nodes;
  DenseMap<Operation *, unsigned> nodeOf;
  /// Of the candidates of the node being chosen for.
  std::vector<Price> prices;
};

class WorkDivisionPass
    : public spyre_graph::impl::SpyreWorkDivisionBase<WorkDivisionPass> {
public:
  using SpyreWorkDivisionBase::SpyreWorkDivisionBase;

  void runOnOperation() override {
    if (cores < 1 || cores > 32) {
      getOperation().emitError()
          << "expected 1 to 32 cores, found " << cores.getValue();
      return signalPassFailure();
    }
    if (sweeps < 1 || !(tolerance >= 0)) {
      getOperation().emitError()
          << "expected at least one sweep and a tolerance of at least 0, found "
          << sweeps.getValue() << " and " << tolerance.getValue();
      return signalPassFailure();
    }
    if (mode != "default" && mode != "reference") {
      getOperation().emitError() << "unknown mode '" << mode.getValue()
                                 << "', expected 'default' or 'reference'";
      return signalPassFailure();
    }
    SmallVector<SpyreOpInterface> ops;
    getOperation().walk([&](SpyreOpInterface op) { ops.push_back(op); });
    for (SpyreOpInterface op : ops)
      if (failed(applyHint(op)) ||
          (mode == "reference" && failed(applyReference(op))))
        return signalPassFailure();
    if (mode == "default") {
      DivisionPlanner planner(cores, tolerance, superdscCompatible);
      for (SpyreOpInterface op : ops)
        planner.addOp(op);
      planner.run(sweeps);
      numAgreeing += planner.numAgreeing;
    }
    for (SpyreOpInterface op : ops)
      ++(op.getWorkDivision().getNumCores() > 1 ? numDivided : numSingleCore);
    if (getContext().getRemarkEngine())
      for (SpyreOpInterface op : ops)
        emitRemark(op);
  }

private:
  /// Turns a user's hint into the division.
  LogicalResult applyHint(SpyreOpInterface op) {
    StringRef name = kWorkDivisionHintAttrName;
    Attribute attribute = op->getAttr(name);
    if (!attribute || op.getWorkDivision())
      return success();
    SmallVector<int64_t> extents = op.getLoopExtents();
    SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
    SmallVector<int64_t> granularity = getSliceGranularity(op);
    auto hint = dyn_cast<DenseI64ArrayAttr>(attribute);
    // SG-DIVISION-HINT-C1
    if (!hint || hint.size() != static_cast<int64_t>(extents.size()))
      return op->emitOpError()
             << name << " must be an array of " << extents.size()
             << " numbers of slices, one per loop "
                "dimension, but is "
             << attribute;
    SmallVector<int64_t> splits, chunks;
    int64_t coresUsed = 1;
    for (auto [dim, split] : llvm::enumerate(hint.asArrayRef())) {
      int64_t units =
          llvm::divideCeilSigned(std::max<int64_t>(extents[dim], 1),
                                 std::max<int64_t>(granularity[dim], 1));
      // SG-DIVISION-HINT-C2
      if (split < 1)
        return op->emitOpError() << "work division hint asks for " << split
                                 << " slices of loop dimension " << dim
                                 << "; it must be at least 1";
      // SG-DIVISION-HINT-C3
      coresUsed *= std::min<int64_t>(split, cores + 1);
      if (coresUsed > cores)
        return op->emitOpError() << "work division hint asks for more than "
                                 << cores.getValue() << " cores";
      // SG-DIVISION-HINT-C4
      if (split > 1 && kinds[dim] != utils::IteratorType::parallel)
        return op->emitOpError()
               << "work division hint splits loop dimension " << dim
               << ", a reduction, which stays on one core";
      int64_t unitsPerSlice = llvm::divideCeilSigned(units, split);
      int64_t filled = llvm::divideCeilSigned(units, unitsPerSlice);
      // SG-DIVISION-HINT-C5
      bool isUneven = mode == "reference" || superdscCompatible
                          ? units % split != 0
                          : filled != split;
      if (isUneven) {
        InFlightDiagnostic diagnostic =
            op->emitOpError()
            << "work division hint asks for " << split
            << " slices of loop dimension " << dim << ", but its " << units
            << (granularity[dim] > 1 ? " sticks" : " iterations");
        if (mode == "reference" || superdscCompatible)
          return diagnostic << " are no multiple of that";
        return diagnostic << " fill only " << filled << " slices of "
                          << unitsPerSlice;
      }
      splits.push_back(split);
      chunks.push_back(split == 1 ? extents[dim]
                                  : unitsPerSlice * granularity[dim]);
    }
    op.setWorkDivision(WorkDivisionAttr::get(&getContext(), splits, chunks));
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
      int64_t span = getSpanInBytes(op, operand, chunks);
      if (span > spec.maxSpanBytes)
        op->emitWarning() << "work division hint leaves operand " << operand
                          << " a span of " << span << " bytes per core, above "
                          << spec.maxSpanBytes;
    }
    ++numHints;
    return success();
  }

  LogicalResult applyReference(SpyreOpInterface op) {
    if (op.getWorkDivision())
      return success();
    ReferenceDivision division = divideAsReference(op, cores, spec);
    if (division.splitsTwoReductions)
      return op->emitOpError("the reference would split more than one "
                             "reduction dimension to keep spans small");
    if (division.spanTooLarge)
      op->emitWarning() << "no split brings the span of operand "
                        << division.spanTooLarge->first << " below "
                        << spec.maxSpanBytes << " bytes; the best has "
                        << division.spanTooLarge->second;
    SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
    SmallVector<int64_t> extents = op.getLoopExtents();
    for (unsigned dim = 0; dim < extents.size(); ++dim) {
      if (division.splits[dim] == 1 ||
          kinds[dim] == utils::IteratorType::parallel)
        continue;
      op->emitWarning() << "the reference splits the reduction over loop "
                           "dimension "
                        << dim << " over " << division.splits[dim]
                        << " cores; plans cannot, so it stays whole";
      division.splits[dim] = 1;
      division.chunks[dim] = extents[dim];
    }
    op.setWorkDivision(
        WorkDivisionAttr::get(&getContext(), division.splits, division.chunks));
    return success();
  }

  /// What was decided, its price alone and that of the cheapest division.
  void emitRemark(SpyreOpInterface op) {
    SlicingNumbers numbers;
    WorkDivisionAttr chosen = op.getWorkDivision();
    double seconds =
        DivisionSearch(op, cores, superdscCompatible, spec, numbers)
            .price(chosen)
            .getSecondsAlone(0);
    Divisions all =
        DivisionSearch(op, cores, superdscCompatible, spec, numbers).run();
    double cheapest = seconds;
    for (unsigned number = 0; number < all.candidates.size(); ++number)
      cheapest = std::min(cheapest, all.getSecondsAlone(number));
    std::string text;
    llvm::raw_string_ostream os(text);
    os << op->getName().stripDialect() << " on " << chosen.getNumCores()
       << " cores, splits [";
    llvm::interleaveComma(chosen.getSplits(), os);
    os << "]: " << llvm::format("%.6e", seconds) << " s alone, the cheapest of "
       << all.candidates.size() << " " << llvm::format("%.6e", cheapest)
       << " s";
    remark::analysis(op->getLoc(), remark::RemarkOpts::name("division")
                                       .category("spyre-work-division")
                                       .function(getOperation().getName()))
        << text;
  }

  ::spyre::DeviceSpec spec;
};

} // namespace

WorkDivisionAttr spyre_graph::chooseWorkDivision(SpyreOpInterface op,
                                                 int64_t cores, bool onlyEven) {
  DivisionPlanner planner(cores, /*tolerance=*/1e-6, onlyEven);
  planner.addOp(op);
  planner.run(/*sweeps=*/1);
  return op.getWorkDivision();
}
