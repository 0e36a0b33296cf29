//===- LayoutPrices.cpp - What layouts cost ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "LayoutGraph.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Bytes of the sticks that an access touches, each counted once.
static int64_t getAccessedBytes(const OpInfo &info, unsigned operand,
                                LayoutAttrInterface layout) {
  return ::spyre::kStickBytes * getNumTouchedSticks(info.maps[operand], layout,
                                                    info.getShape(operand),
                                                    info.extents);
}

int64_t LayoutGraph::getBytes(double seconds) const {
  return static_cast<int64_t>(seconds * spec.effectiveMemoryBytesPerSecond);
}

/// The bytes of device memory that take as long as so many bytes of LX, which
/// all cores read or write side by side.
int64_t LayoutGraph::getPriceOfBytes(int64_t bytes, bool isInLX) const {
  if (!isInLX)
    return bytes;
  return getBytes(::spyre::lxSeconds(static_cast<double>(bytes), spec) /
                  static_cast<double>(spec.numCores));
}

int64_t LayoutGraph::getPriceOfMove(int64_t bytes) const {
  return getBytes(::spyre::ringShuffleSeconds(static_cast<double>(bytes),
                                              spec.numCores, spec));
}

/// Bytes that are in LX while an operation works, in the usual layouts. Of a
/// tensor that is larger than LX, tiles are there.
int64_t LayoutGraph::getWorkingSet(Operation *op) {
  auto [known, isNew] = workingSets.try_emplace(op, 0);
  if (!isNew)
    return known->second;
  llvm::SmallSetVector<Value, 4> values(op->operand_begin(), op->operand_end());
  for (Value value : values)
    if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
      int64_t size =
          getSizeInBytes(LayoutAttr::getDefault(type), type.getShape());
      known->second += size <= getCapacity() ? size : 0;
    }
  return known->second;
}

/// Whether LX can hold a value, and has room for it wherever it is written and
/// read.
bool LayoutGraph::fitsLX(Value value) {
  auto hasRoom = [&](Operation *op) {
    return getWorkingSet(op) <= getCapacity();
  };
  auto isInSlices = [&](OpOperand &use) {
    auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
    std::optional<IndirectAccess> indirect =
        op ? op.getIndirectAccess() : std::nullopt;
    if (op && op.getInitOffset() && op.isDpsInit(&use))
      return false;
    return !indirect || (use.getOperandNumber() != indirect->operand &&
                         (use.getOperandNumber() != indirect->index ||
                          target.allowsIndicesInLX()));
  };
  Operation *writer = value.getDefiningOp<SpyreOpInterface>();
  return (!writer || hasRoom(writer)) &&
         llvm::all_of(value.getUsers(), hasRoom) &&
         llvm::all_of(value.getUses(), isInSlices);
}

/// Whether an operation replaces a part of its init, which begins at an index
/// or a size.
static bool updatesPart(SpyreOpInterface op) {
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  return op.getInitOffset() ||
         (indirect && indirect->operand + 1 == op->getNumOperands());
}

/// The dimension along which a copy of an argument is one of several parts of a
/// value, as in a cache that has grown; nothing if there is none.
static std::optional<int64_t> getGrownDim(Value value) {
  ArrayRef<int64_t> shape = shapeOf(value);
  while (auto op = value.getDefiningOp<SpyreOpInterface>()) {
    bool isPart = isa<IdentityOp>(op);
    if (!isPart && !updatesPart(op))
      break;
    if (isPart && isa<BlockArgument>(op->getOperand(0))) {
      OpInfo info(op);
      for (auto [loop, extent] : llvm::enumerate(info.extents))
        if (int64_t dim = info.getInitDim(loop);
            dim >= 0 && extent < shape[dim] &&
            info.maps.front().isFunctionOfDim(loop))
          return dim;
    }
    value = op.getSpyreInit();
  }
  return std::nullopt;
}

/// Whether the next call copies a result that has grown along a dimension. It
/// grows in place unless its sticks run along that (docs/internals/symbolic.md,
/// "What grows"). Results whose sticks usually do are left as they are: masks,
/// for instance, that operators join one by one.
static bool isCopiedToGrow(Value result, LayoutAttrInterface layout,
                           LayoutAttrInterface usual, int64_t dim) {
  ArrayRef<int64_t> shape = shapeOf(result);
  return layout.getStickDim(shape) == dim && usual.getStickDim(shape) != dim;
}

/// How often an operation touches each stick of its operands: a scan along
/// sticks goes from element to element. What one core cannot address is scanned
/// in parts, which a copy would not be.
int64_t LayoutGraph::getNumTouches(const OpInfo &info,
                                   const LayoutChoice &choice) const {
  SpyreOpInterface op(info.op);
  if (!isScan(op.getCombiner()) ||
      getSizeInBytes(choice.layout, info.getShape(info.getInitNumber())) >
          spec.maxSpanBytes)
    return 1;
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  auto scanned = llvm::find(kinds, utils::IteratorType::reduction);
  unsigned dim = scanned - kinds.begin();
  return choice.stick == StickChoice(dim)
             ? std::min(info.extents[dim], getStickElements(choice.layout))
             : 1;
}

/// What the result costs that an operation writes.
int64_t LayoutGraph::getStoredPrice(const OpInfo &info,
                                    const LayoutChoice &choice,
                                    bool fits) const {
  Value result = info.op->getResult(0);
  int64_t size =
      getSizeInBytes(choice.layout, info.getShape(info.getInitNumber()));
  int64_t numTouches = getNumTouches(info, choice);
  int64_t price = getPriceOfBytes(numTouches * size, fits);
  for (OpOperand &use : result.getUses()) {
    if (isa<SpyreOpInterface>(use.getOwner()))
      continue;
    auto update =
        dyn_cast<bufferization::MaterializeInDestinationOp>(use.getOwner());
    LayoutAttrInterface expected =
        update ? getLayout(update.getDest().getType())
               : LayoutAttrInterface(LayoutAttr::getDefault(
                     cast<ShapedType>(result.getType())));
    price = numTouches * size;
    if (std::optional<int64_t> grown =
            update ? std::nullopt : getGrownDim(result)) {
      // The next call takes it as it lies. What does not grow in place, it
      // reads, and writes in other sticks.
      if (isCopiedToGrow(result, choice.layout, expected, *grown))
        price += 2 * (size + getBytes(spec.transferSetupSeconds));
    } else if (choice.layout != expected) {
      // Callers expect results in the usual layout: they read others once more,
      // for a copy.
      price += size;
    }
  }
  return price;
}

/// How many cores can compute an operation: a core sorts whole runs, or finds
/// all of the largest in them, and across sticks for as many runs at once as a
/// stick has lanes.
static int64_t getNumCores(const OpInfo &info, const LayoutChoice &choice,
                           int64_t numCores) {
  int64_t parts = 1;
  if (info.getSortedDim() < 0 && !info.countsResults())
    return numCores;
  for (auto [dim, extent] : llvm::enumerate(info.extents))
    if (info.kinds[dim] == utils::IteratorType::parallel)
      parts *= choice.stick == StickChoice(dim)
                   ? llvm::divideCeil(extent, getStickElements(choice.layout))
                   : extent;
  return std::min(parts, numCores);
}

/// What computing costs, if all operands are in LX.
int64_t LayoutGraph::getComputed(const OpInfo &info,
                                 const LayoutChoice &choice) const {
  if (llvm::is_contained(info.extents, 0))
    return 0;
  auto cores = static_cast<double>(getNumCores(info, choice, spec.numCores));
  double iterations = 1;
  for (int64_t extent : info.extents)
    iterations *= static_cast<double>(extent);
  if (SpyreOpInterface(info.op).getLayoutRule() != LayoutRule::Matmul)
    return getBytes(::spyre::sfuSeconds(
        iterations * getElementCost(info.op, spec) / cores, spec));
  // The matrix unit computes whole sticks along k and n.
  OpInfo asChosen = choice.isExchanged ? exchangeFactors(info) : info;
  MatmulSticks sticks(asChosen);
  auto getLanes = [&](unsigned operand) {
    Type element = getElementTypeOrSelf(info.op->getOperand(operand).getType());
    return ::spyre::elemsPerStick(*getDeviceFormat(element));
  };
  int64_t depthLanes = getLanes(choice.isExchanged ? 1 : 0);
  int64_t columnLanes = std::max(getStickElements(choice.layout),
                                 getLanes(choice.isExchanged ? 0 : 1));
  double macs = 1, rows = 1;
  for (unsigned dim = 0; dim < info.extents.size(); ++dim) {
    int64_t lanes = sticks.k == StickChoice(dim)   ? depthLanes
                    : sticks.n == StickChoice(dim) ? columnLanes
                                                   : 1;
    macs *= llvm::alignTo(info.extents[dim], lanes);
    if (info.getInitDim(dim) >= 0 && !asChosen.maps[1].isFunctionOfDim(dim))
      rows *= info.extents[dim];
  }
  if (!sticks.n || info.extents[*sticks.n] == 1)
    macs *= columnLanes;
  return getBytes(
      ::spyre::ptSeconds(macs / cores, rows, spec, getMacFormat(info.op)));
}

/// What of the time in which an operand comes from device memory the
/// computation hides: operands share it by their sizes.
double LayoutGraph::getHiddenShare(const OpInfo &info, unsigned operand) const {
  double all = 0, own = 0;
  for (unsigned other = 0; other < info.getInitNumber(); ++other) {
    Value value = info.op->getOperand(other);
    const Node &node = nodes[nodeOf.lookup(value)];
    if (node.isInside && node.fitsLX)
      continue;
    auto type = cast<ShapedType>(value.getType());
    double size =
        getSizeInBytes(LayoutAttr::getDefault(type), info.getShape(other));
    all += size;
    own += other == operand ? size : 0;
  }
  return all > 0 ? own / all : 0;
}

bool LayoutGraph::isInLX(unsigned node, LayoutAttrInterface layout,
                         Value value) const {
  return nodes[node].isInside && nodes[node].fitsLX &&
         getSizeInBytes(layout, shapeOf(value)) <= getCapacity();
}

LayoutGraph::Access LayoutGraph::getAccess(const OpInfo &info, unsigned operand,
                                           LayoutAttrInterface layout,
                                           const LayoutChoice &choice) const {
  bool isInit = operand == info.getInitNumber();
  if (isInit && choice.updated != layout)
    return Access::Impossible;
  if (info.indirect && info.indirect->operand == operand)
    return Access::Selected;
  if (isInit)
    return Access::Updated;
  std::optional<StickChoice> required = getRequired(info, choice, operand);
  if (required && !info.isExempt(operand, layout) &&
      !llvm::is_contained(info.extents, 0) &&
      !isCompatible(info.getAccess(operand, layout), info.maps[operand],
                    info.extents, *required))
    return Access::Copied;
  Value value = info.op->getOperand(operand);
  unsigned used = nodeOf.lookup(value);
  if (isInLX(used, layout, value))
    return Access::InLX;
  int64_t whole = getSizeInBytes(layout, shapeOf(value));
  return nodes[used].isShared && whole <= getCapacity() &&
                 getAccessedBytes(info, operand, layout) == whole
             ? Access::Shared
             : Access::InDeviceMemory;
}

/// Indices cannot select lanes: an op that does needs a copy for itself, and a
/// copy back if it updates the operand.
int64_t LayoutGraph::getSelectedPrice(const OpInfo &info, unsigned operand,
                                      LayoutAttrInterface layout,
                                      const LayoutChoice &choice) const {
  int64_t setup = getBytes(spec.transferSetupSeconds), price = 0;
  bool isInit = operand == info.getInitNumber();
  std::optional<IndirectPart> part =
      getIndirectPart(info, layout, isInit || !target.allowsCopyOfPart());
  if (part) {
    int64_t read = ::spyre::kStickBytes *
                   getNumTouchedSticks(part->sourceMap, layout,
                                       info.getShape(operand), part->shape);
    price = (isInit ? 2 : 1) *
            (read + getSizeInBytes(part->layout, part->shape) + 2 * setup);
  }
  // Without gathers across sticks, the sticks of the gather's result run along
  // those of the table; a copy then changes them to the chosen dimension.
  LaneAccess access = info.getAccess(
      operand, part ? LayoutAttrInterface(part->layout) : layout);
  if (!target.allowsGatherAcrossSticks() && !isInit &&
      access.kind == LaneAccess::Variable &&
      choice.stick != StickChoice(access.dim))
    price += 2 * (getSizeInBytes(choice.layout,
                                 info.getShape(info.getInitNumber())) +
                  setup);
  return price;
}

LayoutGraph::Cost LayoutGraph::getCost(Access access, const OpInfo &info,
                                       unsigned operand,
                                       LayoutAttrInterface layout,
                                       const LayoutChoice &choice,
                                       const CopyPlan *plan, int64_t hidden) {
  if (access == Access::Impossible)
    return {Problem::kImpossible};
  if (access == Access::Updated)
    return {};
  if (access == Access::Selected)
    return {getSelectedPrice(info, operand, layout, choice)};
  int64_t setup = getBytes(spec.transferSetupSeconds);
  int64_t read = plan && plan->hasSourceShape
                     ? getSizeInBytes(layout, info.getShape(operand))
                     : getAccessedBytes(info, operand, layout);
  int64_t numTouches = getNumTouches(info, choice);
  int64_t touched = numTouches * read;
  if (access == Access::InDeviceMemory)
    return {std::max<int64_t>(touched - hidden, 0) + setup};
  if (access == Access::InLX)
    return {getPriceOfBytes(touched, /*isInLX=*/true)};
  if (access == Access::Shared)
    return {getPriceOfBytes(touched, /*isInLX=*/true), read + setup};
  Value value = info.op->getOperand(operand);
  bool fits = getWorkingSet(info.op) + plan->sizeInBytes <= getCapacity();
  int64_t written = plan->getSizeInBytesAt(info.sizes);
  return {getPriceOfBytes(numTouches * written, fits),
          getCopyPrice(isInLX(nodeOf.lookup(value), layout, value), read,
                       written, fits)};
}

/// The price of a copy with other sticks. Other cores hold most of what a core
/// needs: parts go around the ring before the copy, if the source is in LX, and
/// after it.
int64_t LayoutGraph::getCopyPrice(bool isInLX, int64_t read, int64_t written,
                                  bool fits) const {
  int64_t setup = getBytes(spec.transferSetupSeconds);
  bool moves = target.allowsReshard();
  int64_t price = isInLX && moves
                      ? getPriceOfMove(read) + getPriceOfBytes(read, true)
                      : read + setup;
  price += fits && moves
               ? getPriceOfMove(written) + getPriceOfBytes(written, true)
               : written + setup;
  return price;
}

/// The number of a copy of a value, and whether no way has needed it so far.
std::pair<int, bool> LayoutGraph::addCopy(unsigned used, Node::Copy copy) {
  SmallVectorImpl<Node::Copy> &copies = nodes[used].copies;
  auto *known = llvm::find_if(copies, [&](const Node::Copy &other) {
    return other.block == copy.block && other.choice == copy.choice &&
           other.plan == copy.plan;
  });
  int number = known - copies.begin();
  bool isNew = known == copies.end();
  if (isNew)
    copies.push_back(std::move(copy));
  return {number, isNew};
}

void LayoutGraph::addUse(ArrayRef<OpInfo> infos, unsigned operand,
                         unsigned user) {
  const OpInfo &info = infos.front();
  unsigned used = nodeOf.lookup(info.op->getOperand(operand));
  std::vector<Problem::Use> uses(infos.size());
  SmallVector<double> shares;
  for (const OpInfo &infoAtSize : infos)
    shares.push_back(getHiddenShare(infoAtSize, operand));
  auto addWay = [&](unsigned usedChoice, unsigned number) {
    LayoutAttrInterface layout = nodes[used].choices[usedChoice].layout;
    const LayoutChoice &choice = nodes[user].choices[number];
    Access access = getAccess(info, operand, layout, choice);
    int copy = Problem::kNoCopy;
    bool isNew = false;
    if (access == Access::Shared || access == Access::Copied) {
      std::optional<CopyPlan> plan;
      if (access == Access::Copied)
        plan = planCopy(info, operand, *getRequired(info, choice, operand));
      std::tie(copy, isNew) =
          addCopy(used, {info.op->getBlock(), std::move(plan), usedChoice});
    }
    const CopyPlan *plan =
        access == Access::Copied ? &*nodes[used].copies[copy].plan : nullptr;
    for (unsigned size = 0; size < infos.size(); ++size) {
      auto hidden = static_cast<int64_t>(
          shares[size] *
          static_cast<double>(nodes[user].computed[size][number]));
      Cost cost =
          getCost(access, infos[size], operand, layout, choice, plan, hidden);
      uses[size].ways.push_back({cost.price, copy});
      if (isNew)
        problems[size].values[used].copyPrices.push_back(cost.copyPrice);
    }
  };
  for (unsigned usedChoice = 0; usedChoice < nodes[used].choices.size();
       ++usedChoice)
    for (unsigned number = 0; number < nodes[user].choices.size(); ++number)
      addWay(usedChoice, number);
  for (auto [problem, use] : llvm::zip_equal(problems, uses)) {
    use.value = used;
    problem.values[user].uses.push_back(std::move(use));
  }
}
