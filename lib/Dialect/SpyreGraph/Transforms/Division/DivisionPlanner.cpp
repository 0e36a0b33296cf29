//===- DivisionPlanner.cpp - Divisions of neighbours ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "DivisionPlanner.h"
#include "OperandSpans.h"
#include "Reshard.h"
#include "Spyre/Device/CostModel.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// The most users of one value that a choice looks at. The bound keeps the pass
/// linear if a value has very many users.
constexpr unsigned kMaxUsersInspected = 8;

/// Prices that differ by less than this fraction are equal: sums in another
/// order round differently.
constexpr double kRounding = 1e-9;

WorkDivisionAttr spyre_graph::getDivision(SpyreOpInterface op,
                                          ArrayRef<int64_t> splits,
                                          ArrayRef<int64_t> chunks) {
  return WorkDivisionAttr::getWithFirst(
             op->getContext(), splits, chunks,
             getSplitReduction(op.getLoopKinds(), splits))
      .withChunkMap(getChunkMap(op, splits, chunks));
}

DivisionPlanner::DivisionPlanner(int64_t cores, double tolerance,
                                 const Target &target, bool reshard,
                                 const ::spyre::DeviceSpec &spec)
    : cores(cores), tolerance(tolerance), target(target), reshard(reshard),
      spec(spec) {}

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

void DivisionPlanner::addOp(SpyreOpInterface op) {
  nodeOf[op] = nodes.size();
  Node &node = nodes.emplace_back();
  node.op = op;
  node.divisions = getDivisions(op);
  // A division that a decisions file or a user has given is kept.
  if (op.getWorkDivision())
    node.chosen = 0;
}

void DivisionPlanner::run(unsigned sweeps) {
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

const Divisions *DivisionPlanner::getDivisions(SpyreOpInterface op) {
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
void DivisionPlanner::connect(Node &node) {
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

bool DivisionPlanner::isAllWritten(Node &node) {
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
bool DivisionPlanner::agrees(const Node &node, unsigned candidate,
                             const Node::Edge &edge) const {
  const Node &producer = nodes[edge.node];
  return producer.chosen >= 0 &&
         getWrittenSlicing(producer) ==
             node.divisions->get(candidate, edge.operand).slicing;
}

/// The slicing in which a node, as it is divided now, accesses an operand.
int DivisionPlanner::getSlicing(const Node &node, unsigned operand) const {
  return node.chosen < 0 ? SlicingNumbers::kNone
                         : node.divisions->get(node.chosen, operand).slicing;
}

int DivisionPlanner::getWrittenSlicing(const Node &node) const {
  return getSlicing(node, node.divisions->numOperands - 1);
}

static double getElementBytes(const Slicing &slicing, double bytes) {
  double elements = 1;
  for (const SliceDim &dim : slicing.dims)
    elements *= static_cast<double>(dim.extent);
  return bytes / std::max(elements, 1.0);
}

/// Whether LX has room for what a core holds of a value in slices on which the
/// operations agree.
bool DivisionPlanner::fitsInSlices(int slicing, double bytes) {
  if (slicing == SlicingNumbers::kNone)
    return true;
  const Slicing &held = numbers[slicing];
  return fitsLX(held, held, getElementBytes(held, bytes), spec);
}

/// Time to move a value over the ring from the slices that one operation
/// writes to those that another reads; infinite if it cannot be moved.
double DivisionPlanner::getMoveSeconds(int written, int read, double bytes) {
  if (!reshard || written == SlicingNumbers::kNone ||
      read == SlicingNumbers::kNone || numbers.getCopies(written) != 1)
    return std::numeric_limits<double>::infinity();
  auto [entry, isNew] =
      moveSeconds.try_emplace(std::make_tuple(written, read, bytes),
                              std::numeric_limits<double>::infinity());
  if (isNew) {
    const Slicing &from = numbers[written], &to = numbers[read];
    double elementBytes = getElementBytes(from, bytes);
    if (fitsLX(from, to, elementBytes, spec))
      entry->second = getRingSeconds(from, to, elementBytes, spec);
  }
  return entry->second;
}

/// The time of the op, and the part of its users' time that depends on it.
DivisionPlanner::Price DivisionPlanner::getPrice(const Node &node,
                                                 unsigned candidate) {
  const Divisions &divisions = *node.divisions;
  unsigned init = divisions.numOperands - 1;
  double loadSeconds = 0, otherSeconds = 0, residentBytes = 0;
  for (unsigned operand = 0; operand < init; ++operand)
    loadSeconds += divisions.get(candidate, operand).seconds;
  for (const Node::Edge &edge : node.producers) {
    if (agrees(node, candidate, edge) &&
        fitsInSlices(divisions.get(candidate, edge.operand).slicing,
                     divisions.operandBytes[edge.operand])) {
      if (edge.operand != init)
        loadSeconds -= divisions.get(candidate, edge.operand).seconds;
      residentBytes += divisions.operandBytes[edge.operand];
      continue;
    }
    double readSeconds = edge.operand == init
                             ? 0
                             : divisions.get(candidate, edge.operand).seconds;
    const Node &producer = nodes[edge.node];
    int slicing = divisions.get(candidate, edge.operand).slicing;
    double moveSeconds = getMoveSeconds(getWrittenSlicing(producer), slicing,
                                        divisions.operandBytes[edge.operand]);
    // What moves for another user serves this one, too.
    if (std::isfinite(moveSeconds) &&
        llvm::any_of(producer.users, [&](const Node::Edge &other) {
          return &nodes[other.node] != &node &&
                 getSlicing(nodes[other.node], other.operand) == slicing;
        }))
      moveSeconds = 0;
    if (moveSeconds < readSeconds + spec.transferSetupSeconds) {
      loadSeconds -= readSeconds;
      otherSeconds += moveSeconds;
    } else {
      otherSeconds += spec.transferSetupSeconds;
    }
  }
  unsigned disagreeing = 0;
  SmallVector<int, 4> moved;
  for (const Node::Edge &edge : node.users) {
    const Node &user = nodes[edge.node];
    // In the first sweep, users that are not known yet are taken to agree.
    if (user.chosen < 0)
      continue;
    const OperandCost &cost = user.divisions->get(user.chosen, edge.operand);
    if (cost.slicing == divisions.get(candidate, init).slicing &&
        fitsInSlices(cost.slicing,
                     user.divisions->operandBytes[edge.operand])) {
      residentBytes += user.divisions->operandBytes[edge.operand];
      continue;
    }
    double readSeconds = cost.seconds + spec.transferSetupSeconds;
    double moveSeconds =
        llvm::is_contained(moved, cost.slicing)
            ? 0
            : getMoveSeconds(divisions.get(candidate, init).slicing,
                             cost.slicing,
                             user.divisions->operandBytes[edge.operand]);
    otherSeconds += std::min(readSeconds, moveSeconds);
    if (moveSeconds < readSeconds)
      moved.push_back(cost.slicing);
    else
      ++disagreeing;
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

void DivisionPlanner::choose(Node &node) {
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
bool DivisionPlanner::isPreferred(const Node &node, unsigned a,
                                  unsigned b) const {
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

WorkDivisionAttr
spyre_graph::chooseWorkDivision(SpyreOpInterface op, int64_t cores,
                                const Target &target,
                                const ::spyre::DeviceSpec &spec) {
  DivisionPlanner planner(cores, /*tolerance=*/1e-2, target,
                          /*reshard=*/false, spec);
  planner.addOp(op);
  planner.run(/*sweeps=*/1);
  return op.getWorkDivision();
}
