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

/// A plan that begins with the first op is left only for one that begins with
/// the last one and is better by this fraction: prices of all ops together do
/// not see what else is in LX.
constexpr double kLeastSavingFromLast = 0.1;

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
  if (!nodes.empty())
    smallerSizes = getSmallerSizes(nodes.front().op);
  for (Node &node : nodes)
    connect(node);
  size_t numSmaller = 0;
  for (const Node &node : nodes)
    numSmaller = std::max(numSmaller, node.divisions->atSmallerSizes.size());
  std::vector<Node *> all;
  for (Node &node : nodes)
    all.push_back(&node);
  if (numSmaller > 0)
    weights.assign(1, 1);
  plan(all, sweeps);
  if (numSmaller > 0)
    chooseForSizes(1 + numSmaller, sweeps);
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

/// Plans anew, once from the first op on and once from the last one. An op that
/// most divisions suit decides before a neighbour that few suit, as a softmax
/// whose rows stay whole, only in one of the two.
void DivisionPlanner::plan(ArrayRef<Node *> some, unsigned sweeps) {
  auto planFrom = [&](bool last) {
    isFromLast = last;
    for (Node *node : some)
      node->chosen = node->op.getWorkDivision() ? 0 : -1;
    chooseAll(some, sweeps);
  };
  planFrom(/*last=*/false);
  if (llvm::all_of(some, [](Node *node) { return node->producers.empty(); }))
    return;
  double seconds = getSecondsOfAll(some);
  SmallVector<int> chosen =
      llvm::map_to_vector(some, [](Node *node) { return node->chosen; });
  planFrom(/*last=*/true);
  isFromLast = false;
  if (getSecondsOfAll(some) < seconds * (1 - kLeastSavingFromLast))
    return;
  for (auto [node, number] : llvm::zip_equal(some, chosen))
    node->chosen = number;
}

void DivisionPlanner::chooseAll(ArrayRef<Node *> some, unsigned sweeps) {
  choices.clear();
  // After a sweep that changes nothing, no other one would.
  bool changes = true;
  for (unsigned sweep = 0; sweep < sweeps && changes; ++sweep) {
    changes = false;
    for (unsigned number = 0; number < some.size(); ++number) {
      Node &node =
          *some[(sweep % 2 == 0) != isFromLast ? number
                                               : some.size() - 1 - number];
      int before = node.chosen;
      choose(node);
      changes |= node.chosen != before;
    }
  }
}

/// What the ops take, for many sizes as the weights say.
double DivisionPlanner::getSecondsOfAll(ArrayRef<Node *> some) {
  if (weights.empty())
    return getPriceOfAll(some, 0).seconds;
  double seconds = 0;
  for (unsigned size = 0; size < weights.size(); ++size)
    if (weights[size] > 0)
      seconds += getPriceOfAll(some, size).seconds * weights[size];
  return seconds;
}

/// What the ops take with the divisions that they have, at the largest sizes
/// (0) or the next smaller ones. What users read is theirs.
DivisionPlanner::Price DivisionPlanner::getPriceOfAll(ArrayRef<Node *> some,
                                                      unsigned size) {
  Price sum;
  // What several ops read in the same slices may be copied to LX once.
  llvm::SmallDenseSet<std::pair<Value, int>> known;
  for (const Node *node : some) {
    const Divisions &divisions = *node->divisions;
    llvm::SmallBitVector held(divisions.numOperands);
    for (unsigned operand = 0; operand + 1 < divisions.numOperands; ++operand) {
      Value value = node->op->getOperand(operand);
      int slicing = divisions.get(node->chosen, operand).slicing;
      held[operand] = !value.getDefiningOp<SpyreOpInterface>() &&
                      slicing != SlicingNumbers::kNone &&
                      fitsInSlices(slicing, divisions.operandBytes[operand]) &&
                      !known.insert({value, slicing}).second;
    }
    Price price = getPriceAt(size, *node, node->chosen, &held);
    sum.seconds += price.seconds;
    sum.movedBytes += price.movedBytes;
    // Nothing hides the setup of the first transfer.
    bool isAllHeld =
        node->producers.size() + 1 >= node->divisions->numOperands &&
        !node->users.empty();
    if (!isAllHeld)
      sum.seconds += spec.transferSetupSeconds;
  }
  return sum;
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
  if (reshard && uses.size() == 1 && !DivisionSearch::isInLoop(node.op) &&
      !node.op.getWorkDivision() && isRepeatable(node.op, target))
    findRepeatable(node);
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

/// The time of the op, and the part of its users' time that depends on it; for
/// many sizes, the weighted sum.
DivisionPlanner::Price DivisionPlanner::getPrice(const Node &node,
                                                 unsigned candidate) {
  if (weights.empty())
    return getPriceAt(0, node, candidate);
  Price sum;
  for (unsigned size = 0; size < weights.size(); ++size) {
    if (weights[size] == 0)
      continue;
    Price price = getPriceAt(size, node, candidate);
    sum.seconds += (price.seconds + price.movedBytes * extraSecondsPerByte) *
                   weights[size];
    sum.residentBytes += price.residentBytes * weights[size];
    sum.busySeconds += price.busySeconds * weights[size];
  }
  return sum;
}

/// Adds what it takes to get an operand from the op that makes it, in place of
/// loading it. With `held`, see getPriceAt().
void DivisionPlanner::addProducer(unsigned size, const Node &node,
                                  unsigned candidate, const Node::Edge &edge,
                                  const llvm::SmallBitVector *held,
                                  Traffic &traffic) {
  const Divisions &divisions = node.divisions->at(size);
  const OperandCost &cost = divisions.get(candidate, edge.operand);
  const Node &producer = nodes[edge.node];
  bool isInit = edge.operand == divisions.numOperands - 1;
  double readSeconds = isInit ? 0 : cost.seconds;
  double readBytes = isInit ? 0 : cost.bytes;
  int slicing = node.divisions->get(candidate, edge.operand).slicing;
  // In a first sweep from the last op on, producers that are not known yet are
  // taken to agree, but each of them makes a part of its result once.
  bool isKnown = producer.chosen >= 0;
  bool isHeld = isKnown ? agrees(node, candidate, edge)
                        : isFromLast && slicing != SlicingNumbers::kNone &&
                              numbers.getCopies(slicing) == 1;
  if (isHeld &&
      fitsInSlices(slicing, node.divisions->operandBytes[edge.operand])) {
    traffic.loadSeconds -= readSeconds;
    traffic.price.movedBytes -= readBytes;
    if (isKnown)
      traffic.price.residentBytes += divisions.operandBytes[edge.operand];
    return;
  }
  double moveSeconds = std::numeric_limits<double>::infinity();
  if (isKnown)
    moveSeconds = getMoveSeconds(size, producer, producer.chosen, slicing,
                                 *node.divisions, edge.operand);
  else if (isFromLast)
    moveSeconds =
        getShuffleSeconds(slicing, divisions.operandBytes[edge.operand]);
  // What moves for another user serves this one, too. In a sum over all, the
  // first one pays.
  if (std::isfinite(moveSeconds) &&
      llvm::any_of(producer.users, [&](const Node::Edge &other) {
        const Node &user = nodes[other.node];
        return &user != &node && (!held || &user < &node) &&
               getSlicing(user, other.operand) == slicing;
      }))
    moveSeconds = 0;
  if (moveSeconds < readSeconds + spec.transferSetupSeconds) {
    traffic.loadSeconds -= readSeconds;
    traffic.price.movedBytes -= readBytes;
    traffic.otherSeconds += moveSeconds;
  } else {
    traffic.otherSeconds += spec.transferSetupSeconds;
  }
}

/// Adds what users take to read or move the result. Returns how many of them
/// read it from device memory.
unsigned DivisionPlanner::addUsers(unsigned size, const Node &node,
                                   unsigned candidate,
                                   const llvm::SmallBitVector *held,
                                   Traffic &traffic) {
  unsigned disagreeing = 0;
  SmallVector<int, 4> moved;
  int written =
      node.divisions->get(candidate, node.divisions->numOperands - 1).slicing;
  for (const Node::Edge &edge : node.users) {
    const Node &user = nodes[edge.node];
    // In the first sweep, users that are not known yet are taken to agree.
    if (user.chosen < 0)
      continue;
    int slicing = getSlicing(user, edge.operand);
    const Divisions &reader = user.divisions->at(size);
    if (slicing == written &&
        fitsInSlices(slicing, user.divisions->operandBytes[edge.operand])) {
      traffic.price.residentBytes += reader.operandBytes[edge.operand];
      continue;
    }
    double readSeconds = reader.get(user.chosen, edge.operand).seconds +
                         spec.transferSetupSeconds;
    double moveSeconds = llvm::is_contained(moved, slicing)
                             ? 0
                             : getMoveSeconds(size, node, candidate, slicing,
                                              *user.divisions, edge.operand);
    if (!held)
      traffic.otherSeconds += std::min(readSeconds, moveSeconds);
    if (moveSeconds < readSeconds)
      moved.push_back(slicing);
    else
      ++disagreeing;
  }
  return disagreeing;
}

/// The same at the largest sizes (0) or at the next smaller ones. With `held`,
/// which operands are in LX, for a sum over all: without what users read.
DivisionPlanner::Price
DivisionPlanner::getPriceAt(unsigned size, const Node &node, unsigned candidate,
                            const llvm::SmallBitVector *held) {
  const Divisions &divisions = node.divisions->at(size);
  unsigned init = divisions.numOperands - 1;
  Traffic traffic;
  for (unsigned operand = 0; operand < init; ++operand) {
    if (held && held->test(operand))
      continue;
    traffic.loadSeconds += divisions.get(candidate, operand).seconds;
    traffic.price.movedBytes += divisions.get(candidate, operand).bytes;
  }
  for (const Node::Edge &edge : node.producers)
    addProducer(size, node, candidate, edge, held, traffic);
  unsigned disagreeing = addUsers(size, node, candidate, held, traffic);
  const OperandCost &stored = divisions.get(candidate, init);
  double storeSeconds =
      stored.seconds *
      (node.users.empty() ? 1.0 : double(disagreeing) / node.users.size());
  Price price = traffic.price;
  if (node.users.empty() || disagreeing > 0)
    price.movedBytes += stored.bytes;
  // Subtractions may leave a small negative number.
  double loadSeconds = std::max(traffic.loadSeconds, 0.0);
  price.seconds = divisions.getSeconds(candidate, loadSeconds, storeSeconds) +
                  traffic.otherSeconds;
  price.busySeconds = loadSeconds + storeSeconds +
                      divisions.candidates[candidate].computeSeconds;
  return price;
}

/// All that prices of a node's candidates depend on, besides the weights.
std::vector<int64_t> DivisionPlanner::getContext(const Node &node) const {
  std::vector<int64_t> context;
  auto addAccess = [&](const Node &other, unsigned operand) {
    context.insert(
        context.end(),
        {static_cast<int64_t>(reinterpret_cast<intptr_t>(other.divisions)),
         other.chosen, operand});
  };
  addAccess(node, 0);
  context.back() = node.producers.size();
  context[1] = node.users.size();
  context.push_back(!node.repeatable.empty());
  for (const Node::Edge &edge : node.producers) {
    const Node &producer = nodes[edge.node];
    addAccess(producer, edge.operand);
    context.push_back(producer.users.size());
    context.push_back(!producer.repeatable.empty());
    for (const Node::Edge &other : producer.users)
      if (&nodes[other.node] != &node)
        addAccess(nodes[other.node], other.operand);
      else
        context.push_back(-1);
  }
  for (const Node::Edge &edge : node.users)
    addAccess(nodes[edge.node], edge.operand);
  return context;
}

void DivisionPlanner::choose(Node &node) {
  if (node.op.getWorkDivision())
    return;
  auto [choice, isNew] = choices.try_emplace(getContext(node), -1);
  if (!isNew) {
    node.chosen = choice->second;
    return;
  }
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
  node.chosen = choice->second = best;
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
