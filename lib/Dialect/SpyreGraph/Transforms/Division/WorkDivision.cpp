//===- WorkDivision.cpp - Loops over cores ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "DivisionSearch.h"
#include "OperandSpans.h"
#include "ReferenceDivision.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
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

/// The most users of one value that a choice looks at. The bound keeps the pass
/// linear if a value has very many users.
constexpr unsigned kMaxUsersInspected = 8;

/// Prices that differ by less than this fraction are equal: sums in another
/// order round differently.
constexpr double kRounding = 1e-9;

/// The division in which the slices of a split reduction are on neighbouring
/// cores.
WorkDivisionAttr getDivision(SpyreOpInterface op, ArrayRef<int64_t> splits,
                             ArrayRef<int64_t> chunks) {
  return WorkDivisionAttr::getWithFirst(
             op->getContext(), splits, chunks,
             getSplitReduction(op.getLoopKinds(), splits))
      .withChunkMap(getChunkMap(op, splits, chunks));
}

/// One op of the graph, and its edges: the values that could stay in LX between
/// it and another op.
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
  DivisionPlanner(int64_t cores, double tolerance, const Target &target,
                  bool reshard, const ::spyre::DeviceSpec &spec)
      : cores(cores), tolerance(tolerance), target(target), reshard(reshard),
        spec(spec),
        moveSetupSeconds(::spyre::ringShuffleSeconds(0, cores, spec)),
        moveSecondsPerByte(
            (::spyre::ringShuffleSeconds(1e9, cores, spec) - moveSetupSeconds) /
            1e9) {}

  void addOp(SpyreOpInterface op) {
    nodeOf[op] = nodes.size();
    Node &node = nodes.emplace_back();
    node.op = op;
    node.divisions = getDivisions(op);
    // A division that a decisions file or a user has given is kept.
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
      const DivisionCandidate &candidate =
          node.divisions->candidates[node.chosen];
      if (!node.op.getWorkDivision())
        node.op.setWorkDivision(
            getDivision(node.op, candidate.splits, candidate.chunks));
      for (const Node::Edge &edge : node.producers)
        if (agrees(node, node.chosen, edge))
          ++numAgreeing;
    }
  }

  int64_t numAgreeing = 0;

private:
  const Divisions *getDivisions(SpyreOpInterface op) {
    // Discardable attributes, such as the number of the op, are not part of the
    // key: divisions do not depend on them.
    std::vector<const void *> key{
        op->getName().getAsOpaquePointer(),
        op->getPropertiesAsAttribute().getAsOpaquePointer(),
        DivisionSearch::isInLoop(op) ? this : nullptr};
    for (Value operand : op->getOperands()) {
      key.push_back(operand.getType().getAsOpaquePointer());
      key.push_back(getWholeType(operand).getAsOpaquePointer());
    }
    std::unique_ptr<Divisions> &divisions = alike[std::move(key)];
    if (!divisions) {
      DivisionSearch search(op, cores, target, spec, numbers);
      divisions = std::make_unique<Divisions>(
          op.getWorkDivision() ? search.price(op.getWorkDivision())
                               : search.run());
    }
    return divisions.get();
  }

  /// Records the edges over which the op's result could stay in LX. All users
  /// must read the whole result, in slices.
  void connect(Node &node) {
    if (node.op->getNumResults() != 1 || !isAllWritten(node))
      return;
    SmallVector<Node::Edge, 4> users;
    SmallVector<OpOperand *> uses;
    llvm::SmallPtrSet<Value, 4> seen;
    collectUses(node.op->getResult(0), seen, uses);
    for (OpOperand *use : uses) {
      auto found = nodeOf.find(use->getOwner());
      if (found == nodeOf.end())
        return;
      Node &user = nodes[found->second];
      unsigned operand = use->getOperandNumber();
      // A user may update the value in place only if a loop carries it.
      if ((user.op.isDpsInit(use) && seen.size() == 1) ||
          user.divisions->get(0, operand).slicing == SlicingNumbers::kNone)
        return;
      if (&user != &node)
        users.push_back({found->second, operand});
    }
    unsigned number = nodeOf.lookup(node.op);
    for (const Node::Edge &user : users)
      nodes[user.node].producers.push_back({number, user.operand});
    // The use list has no defined order; keep the first users in the program.
    llvm::sort(users, [](const Node::Edge &a, const Node::Edge &b) {
      return std::make_pair(a.node, a.operand) <
             std::make_pair(b.node, b.operand);
    });
    users.truncate(std::min<size_t>(users.size(), kMaxUsersInspected));
    node.users = std::move(users);
  }

  /// Collects the uses of a value, and those of the values that loops carry it
  /// in.
  static void collectUses(Value value, llvm::SmallPtrSetImpl<Value> &seen,
                          SmallVectorImpl<OpOperand *> &uses) {
    if (!seen.insert(value).second)
      return;
    for (OpOperand &use : value.getUses()) {
      Operation *owner = use.getOwner();
      if (auto loop = dyn_cast<scf::ForOp>(owner)) {
        collectUses(loop.getTiedLoopRegionIterArg(&use), seen, uses);
      } else if (auto loop = dyn_cast<scf::ForOp>(owner->getParentOp());
                 loop && isa<scf::YieldOp>(owner)) {
        unsigned number = use.getOperandNumber();
        collectUses(loop.getRegionIterArg(number), seen, uses);
        collectUses(loop.getResult(number), seen, uses);
      } else {
        uses.push_back(&use);
      }
    }
  }

  bool isAllWritten(Node &node) {
    unsigned init = node.divisions->numOperands - 1;
    Value written = node.op.getSpyreInit();
    auto carried = dyn_cast<BlockArgument>(written);
    bool isCarried =
        carried && isa<scf::ForOp>(carried.getOwner()->getParentOp());
    // An earlier operation in the same loop wrote it.
    if (auto step = written.getDefiningOp<SpyreOpInterface>())
      isCarried |= isa<scf::ForOp>(step->getParentOp());
    return (isCarried || written.getDefiningOp<tensor::EmptyOp>()) &&
           node.divisions->get(0, init).slicing != SlicingNumbers::kNone &&
           node.divisions->operandBytes[init] / cores <= spec.usableLXBytes();
  }

  /// Whether a node, with the given candidate, reads an operand in the slices
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
    /// The sum of all parts, as if nothing overlapped.
    double busySeconds;
  };

  /// Time to move a value over the ring from the slices that one operation
  /// writes to those that another reads; infinite if it cannot be moved.
  double getMoveSeconds(int written, int read, double bytes) const {
    if (!reshard || written == SlicingNumbers::kNone ||
        read == SlicingNumbers::kNone || numbers.getCopies(written) != 1)
      return std::numeric_limits<double>::infinity();
    return moveSetupSeconds + bytes *
                                  static_cast<double>(numbers.getCopies(read)) *
                                  moveSecondsPerByte;
  }

  /// The time of the op, and the part of its users' time that depends on it.
  Price getPrice(const Node &node, unsigned candidate) const {
    const Divisions &divisions = *node.divisions;
    unsigned init = divisions.numOperands - 1;
    double loadSeconds = 0, otherSeconds = 0, residentBytes = 0;
    for (unsigned operand = 0; operand < init; ++operand)
      loadSeconds += divisions.get(candidate, operand).seconds;
    for (const Node::Edge &edge : node.producers) {
      if (agrees(node, candidate, edge)) {
        if (edge.operand != init)
          loadSeconds -= divisions.get(candidate, edge.operand).seconds;
        residentBytes += divisions.operandBytes[edge.operand];
        continue;
      }
      double readSeconds = edge.operand == init
                               ? 0
                               : divisions.get(candidate, edge.operand).seconds;
      const Node &producer = nodes[edge.node];
      double moveSeconds = std::numeric_limits<double>::infinity();
      if (producer.chosen >= 0)
        moveSeconds = getMoveSeconds(
            producer.divisions
                ->get(producer.chosen, producer.divisions->numOperands - 1)
                .slicing,
            divisions.get(candidate, edge.operand).slicing,
            divisions.operandBytes[edge.operand]);
      if (moveSeconds < readSeconds + spec.transferSetupSeconds) {
        loadSeconds -= readSeconds;
        otherSeconds += moveSeconds;
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
        continue;
      }
      double readSeconds = cost.seconds + spec.transferSetupSeconds;
      double moveSeconds =
          getMoveSeconds(divisions.get(candidate, init).slicing, cost.slicing,
                         user.divisions->operandBytes[edge.operand]);
      otherSeconds += std::min(readSeconds, moveSeconds);
      disagreeing += moveSeconds >= readSeconds;
    }
    double storeSeconds =
        divisions.get(candidate, init).seconds *
        (node.users.empty() ? 1.0 : double(disagreeing) / node.users.size());
    // Subtractions may leave a small negative number.
    loadSeconds = std::max(loadSeconds, 0.0);
    return {divisions.getSeconds(candidate, loadSeconds, storeSeconds) +
                otherSeconds,
            residentBytes,
            loadSeconds + storeSeconds +
                divisions.candidates[candidate].computeSeconds};
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

  /// Whether candidate `a` comes before `b` among candidates of about the same
  /// price. The order is total, so that the choice does not depend on the order
  /// of enumeration.
  bool isPreferred(const Node &node, unsigned a, unsigned b) const {
    if (prices[a].residentBytes != prices[b].residentBytes)
      return prices[a].residentBytes > prices[b].residentBytes;
    double busyDifference = prices[a].busySeconds - prices[b].busySeconds;
    if (std::abs(busyDifference) > kRounding * prices[a].busySeconds)
      return busyDifference < 0;
    const DivisionCandidate &first = node.divisions->candidates[a];
    const DivisionCandidate &second = node.divisions->candidates[b];
    if (first.largestSlice != second.largestSlice)
      return first.largestSlice < second.largestSlice;
    // Of a batched product the more even one, and then the one that divides the
    // batch less: measured products of equal prices agree
    // (benchmarks/measured_plans.py).
    if (node.divisions->isBatchedProduct) {
      int64_t mostOfFirst = *llvm::max_element(first.splits);
      int64_t mostOfSecond = *llvm::max_element(second.splits);
      return mostOfFirst != mostOfSecond ? mostOfFirst < mostOfSecond
                                         : first.splits < second.splits;
    }
    return second.splits < first.splits;
  }

  int64_t cores;
  double tolerance;
  const Target &target;
  bool reshard;
  ::spyre::DeviceSpec spec;
  /// Time of a move over the ring: a constant, and a part per byte received.
  double moveSetupSeconds, moveSecondsPerByte;
  SlicingNumbers numbers;
  std::map<std::vector<const void *>, std::unique_ptr<Divisions>> alike;
  std::vector<Node> nodes;
  DenseMap<Operation *, unsigned> nodeOf;
  /// Per candidate of the node that choose() looks at.
  std::vector<Price> prices;
};

class WorkDivisionPass
    : public spyre_graph::impl::SpyreWorkDivisionBase<WorkDivisionPass> {
public:
  using SpyreWorkDivisionBase::SpyreWorkDivisionBase;

  void runOnOperation() override {
    spec = getDeviceSpec(getOperation());
    spec.maxSpanBytes = orOfDevice<int64_t>(maxSpan, spec.maxSpanBytes);
    numCores = orOfDevice<int64_t>(cores, spec.numCores);
    if (std::string wrong = ::spyre::checkNumCores(numCores); !wrong.empty()) {
      getOperation().emitError() << wrong;
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
    target = getTarget(getOperation());
    if (!target)
      return signalPassFailure();
    SmallVector<SpyreOpInterface> ops;
    getOperation().walk([&](SpyreOpInterface op) { ops.push_back(op); });
    for (SpyreOpInterface op : ops)
      if (failed(applyHint(op)) ||
          (mode == "reference" && failed(applyReference(op))))
        return signalPassFailure();
    if (mode == "default") {
      DivisionPlanner planner(numCores, tolerance, *target,
                              reshard && target->allowsReshard(), spec);
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
  /// Whether the target needs all slices to have the same size.
  bool onlyEqual() const {
    return mode == "reference" || !target->allowsUnequalSlices();
  }

  /// What makes slices equal, for messages.
  std::string getRestrictor() const {
    return mode == "reference" ? "the reference" : target->getTitle().str();
  }

  /// The number of non-empty slices if a dimension is cut into `wanted` slices;
  /// 0 if slices must be equal and are not.
  int64_t getNumSlices(int64_t units, int64_t wanted) const {
    if (onlyEqual())
      return units % wanted == 0 ? wanted : 0;
    return llvm::divideCeilSigned(units, llvm::divideCeilSigned(units, wanted));
  }

  /// Text that lists the numbers of slices that a dimension can have.
  std::string listSlices(int64_t units) const {
    std::string text;
    llvm::raw_string_ostream os(text);
    for (int64_t first = 1; first <= numCores; ++first) {
      if (getNumSlices(units, first) != first)
        continue;
      int64_t last = first;
      while (last < numCores && getNumSlices(units, last + 1) == last + 1)
        ++last;
      os << (first > 1 ? ", " : "") << first;
      if (last > first)
        os << (last > first + 1 ? " to " : ", ") << last;
      first = last;
    }
    return text;
  }

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
    int64_t splitReduction = -1;
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
      coresUsed *= std::min<int64_t>(split, numCores + 1);
      if (coresUsed > numCores)
        return op->emitOpError()
               << "work division hint asks for "
               << llvm::join(llvm::map_range(hint.asArrayRef(),
                                             [](int64_t slices) {
                                               return std::to_string(slices);
                                             }),
                             " x ")
               << " slices, which exceeds SENCORES (" << numCores << " cores)";
      // SG-DIVISION-HINT-C4
      if (split > 1 && kinds[dim] != utils::IteratorType::parallel) {
        if (!isCombinedAcrossCores(op.getCombiner()))
          return op->emitOpError()
                 << "work division hint splits loop dimension " << dim
                 << ", but parts of this operation's result cannot be "
                    "combined, so it stays on one core";
        if (splitReduction >= 0)
          return op->emitOpError()
                 << "work division hint splits the reduction dimensions "
                 << splitReduction << " and " << dim
                 << "; only one of them can be";
        splitReduction = dim;
      }
      // SG-DIVISION-HINT-C5
      if (getNumSlices(units, split) != split)
        return op->emitOpError()
               << "work division hint asks for " << split
               << " slices of loop dimension " << dim << ", but its " << units
               << (granularity[dim] > 1 ? " sticks" : " iterations")
               << " are not evenly divisible into that many"
               << (onlyEqual()
                       ? " equal ones, which " + getRestrictor() + " needs"
                       : ", nor with a smaller last one")
               << "; possible: " << listSlices(units);
      int64_t unitsPerSlice = llvm::divideCeilSigned(units, split);
      splits.push_back(split);
      chunks.push_back(split == 1 ? extents[dim]
                                  : unitsPerSlice * granularity[dim]);
    }
    op.setWorkDivision(getDivision(op, splits, chunks));
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
    ReferenceDivision division = divideAsReference(op, numCores, spec);
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
          kinds[dim] == utils::IteratorType::parallel ||
          isCombinedAcrossCores(op.getCombiner()))
        continue;
      op->emitWarning() << "the reference splits loop dimension " << dim
                        << " over " << division.splits[dim]
                        << " cores; parts of the result cannot be combined, "
                           "so it stays whole";
      division.splits[dim] = 1;
      division.chunks[dim] = extents[dim];
    }
    op.setWorkDivision(getDivision(op, division.splits, division.chunks));
    return success();
  }

  /// A remark on what was decided, with its price and that of the cheapest
  /// division of the op alone.
  void emitRemark(SpyreOpInterface op) {
    auto remark =
        remark::analysis(op->getLoc(), remark::RemarkOpts::name("division")
                                           .category("spyre-work-division")
                                           .function(getOperation().getName()));
    if (!remark)
      return;
    SlicingNumbers numbers;
    WorkDivisionAttr chosen = op.getWorkDivision();
    double seconds = DivisionSearch(op, numCores, *target, spec, numbers)
                         .price(chosen)
                         .getSecondsAlone(0);
    Divisions all =
        DivisionSearch(op, numCores, *target, spec, numbers).runExhaustively();
    double cheapest = std::min(seconds, all.getLeastSecondsAlone());
    std::string text;
    llvm::raw_string_ostream os(text);
    os << op->getName().stripDialect() << " on " << chosen.getNumCores()
       << " cores, splits [";
    llvm::interleaveComma(chosen.getSplits(), os);
    os << "]: " << llvm::format("%.6e", seconds) << " s alone, the cheapest of "
       << all.candidates.size() << " " << llvm::format("%.6e", cheapest)
       << " s";
    remark << text;
  }

  const Target *target = nullptr;
  ::spyre::DeviceSpec spec;
  int64_t numCores = 0;
};

} // namespace

WorkDivisionAttr
spyre_graph::chooseWorkDivision(SpyreOpInterface op, int64_t cores,
                                const Target &target,
                                const ::spyre::DeviceSpec &spec) {
  DivisionPlanner planner(cores, /*tolerance=*/1e-6, target,
                          /*reshard=*/false, spec);
  planner.addOp(op);
  planner.run(/*sweeps=*/1);
  return op.getWorkDivision();
}
