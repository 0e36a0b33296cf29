//===- LayoutGraph.cpp - Layouts of a whole function ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "LayoutGraph.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// The price of a tensor that is written and read inside the function. Most
/// such tensors stay in LX, so their bytes count a quarter (a guess) of bytes
/// that must move from or to device memory.
static int64_t getBytesInside(int64_t bytes) { return bytes / 4; }

/// Bytes of the sticks that an access touches, each counted once.
static int64_t getAccessedBytes(const OpInfo &info, unsigned operand,
                                LayoutAttrInterface layout) {
  return ::spyre::kStickBytes *
         getNumTouchedSticks(info.maps[operand], layout,
                             getShape(info.op->getOperand(operand)),
                             info.extents);
}

int64_t LayoutGraph::getBytes(double seconds) const {
  return static_cast<int64_t>(seconds * spec.effectiveMemoryBytesPerSecond);
}

const LayoutChoice &LayoutGraph::getChoice(SpyreOpInterface op) const {
  unsigned node = nodeOf.lookup(op->getResult(0));
  return nodes[node].choices[assignment.choices[node]];
}

LogicalResult LayoutGraph::solve() {
  WalkResult added =
      func.walk<WalkOrder::PreOrder>([&](SpyreOpInterface op) -> WalkResult {
        return op->getNumResults() == 1 ? addOp(op) : success();
      });
  if (added.wasInterrupted())
    return failure();
  assignment = ::spyre::planning::assignLayouts(problem);
  return success();
}

/// The node of a value. A value that no operation here computes has one choice,
/// its own layout.
unsigned LayoutGraph::getNode(Value value) {
  auto [known, isNew] = nodeOf.try_emplace(value, nodes.size());
  if (isNew) {
    LayoutChoice given;
    given.layout = getLayout(value.getType());
    Node &node = nodes.emplace_back();
    node.choices.push_back(given);
    node.isInside = value.getDefiningOp<tensor::EmptyOp>() != nullptr;
    problem.values.push_back({{0}, {}, {}});
  }
  return known->second;
}

SmallVector<LayoutAttrInterface, 4> LayoutGraph::getLayouts(Value value) {
  SmallVector<LayoutAttrInterface, 4> layouts;
  for (const LayoutChoice &choice : nodes[getNode(value)].choices)
    if (!llvm::is_contained(layouts, choice.layout))
      layouts.push_back(choice.layout);
  return layouts;
}

LogicalResult LayoutGraph::addOp(SpyreOpInterface op) {
  OpInfo info(op);
  for (Value input : op.getSpyreInputs())
    getNode(input);
  Value init = op.getSpyreInit();
  bool updates = getLayout(init.getType()) || nodeOf.contains(init);
  SmallVector<LayoutChoice, 4> choices;
  if (!updates)
    choices = getChoices(info);
  else if (init.getDefiningOp<tensor::EmptyOp>())
    addChoicesOfUpdate(info, getLayout(init.getType()), -1, choices);
  else
    for (auto [number, choice] : llvm::enumerate(nodes[getNode(init)].choices))
      addChoicesOfUpdate(info, choice.layout, number, choices);
  if (failed(obeyHint(info, choices)))
    return failure();

  bool inside = !updates || nodes[getNode(init)].isInside;
  unsigned number = nodes.size();
  nodeOf[op->getResult(0)] = number;
  problem.values.emplace_back();
  for (const LayoutChoice &choice : choices)
    problem.values.back().prices.push_back(getOwnPrice(info, choice));
  nodes.push_back({std::move(choices), {}, inside});
  for (unsigned operand = 0; operand < info.getInitNumber(); ++operand)
    addUse(info, operand, number);
  if (updates && !init.getDefiningOp<tensor::EmptyOp>())
    addUse(info, info.getInitNumber(), number);
  return success();
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

bool LayoutGraph::canExchange(const OpInfo &info) const {
  return target.allowsExchangedFactors() &&
         !llvm::is_contained(info.extents, 0);
}

/// Loop dimensions that can run along the sticks of an input: the one that runs
/// along them now, or, if the access is across sticks, those that could in a
/// copy.
static SmallVector<unsigned, 2> getStickDims(const OpInfo &info,
                                             const LaneAccess &access) {
  if (access.kind == LaneAccess::Variable)
    return {access.dim};
  if (access.kind == LaneAccess::Zero)
    return {};
  llvm::SmallBitVector used = getUsedDims(access.lane, info.extents);
  return SmallVector<unsigned, 2>(used.set_bits());
}

/// The loop dimension along which an operation sorts, or -1.
static int64_t getSortedDim(const OpInfo &info) {
  if (!isSort(SpyreOpInterface(info.op).getCombiner()))
    return -1;
  return llvm::find(info.kinds, utils::IteratorType::reduction) -
         info.kinds.begin();
}

SmallVector<LayoutChoice, 4> LayoutGraph::getChoices(const OpInfo &info) {
  SmallVector<LayoutChoice, 4> choices;
  auto add = [&](StickChoice stick, bool isExchanged = false) {
    LayoutChoice choice;
    choice.stick = stick;
    choice.layout = getResultLayout(info, stick);
    choice.isExchanged = isExchanged;
    choice.bindsInputs = !isCopy(info.op);
    // Without inputs to bind, choices differ by their layouts alone.
    bool isBound = choice.bindsInputs && info.getInitNumber() > 0;
    if (isBound || llvm::none_of(choices, [&](const LayoutChoice &other) {
          return other.layout == choice.layout;
        }))
      choices.push_back(choice);
  };
  if (SpyreOpInterface(info.op).getLayoutRule() == LayoutRule::Matmul) {
    add(MatmulSticks(info).n);
    if (!canExchange(info))
      return choices;
    StickChoice stick = MatmulSticks(exchangeFactors(info)).n;
    auto usual = LayoutAttr::getDefault(
        cast<ShapedType>(info.op->getResult(0).getType()));
    bool fitsUsual = isCompatible(info.getAccess(info.getInitNumber(), usual),
                                  info.maps.back(), info.extents, stick);
    // Callers expect the usual layout of results that leave the function.
    if (fitsUsual ||
        llvm::all_of(info.op->getUsers(), llvm::IsaPred<SpyreOpInterface>))
      add(stick, /*isExchanged=*/true);
    if (fitsUsual)
      choices.back().layout = usual;
    return choices;
  }
  // A core that sorts across sticks has as many runs in LX as a stick has
  // lanes.
  int64_t sorted = getSortedDim(info);
  bool fitsAcrossSticks =
      sorted < 0 || getStickElements(getResultLayout(info, std::nullopt)) *
                            getSortBytes(info.extents[sorted]) <=
                        spec.reservedLXBytes();
  SmallVector<StickChoice> sticks;
  auto addStick = [&](StickChoice stick) {
    if (!llvm::is_contained(sticks, stick))
      sticks.push_back(stick);
  };
  // Dimensions along the sticks of inputs come first, because among equal
  // prices the first choice is taken.
  for (unsigned operand = 0; operand < info.getInitNumber(); ++operand)
    for (LayoutAttrInterface layout : getLayouts(info.op->getOperand(operand)))
      if (!info.isExempt(operand, layout))
        for (unsigned dim : getStickDims(info, info.getAccess(operand, layout)))
          if (info.getInitDim(dim) >= 0 ||
              !info.maps.back().isFunctionOfDim(dim))
            addStick(dim);
  for (unsigned number = info.maps.back().getNumResults(); number-- > 0;)
    for (unsigned dim = 0; dim < info.extents.size(); ++dim)
      if (info.extents[dim] > 1 &&
          info.getInitDim(dim) == static_cast<int64_t>(number))
        addStick(dim);
  // Sticks that no input suggests: with copies of the inputs, which other
  // operations may share, they too can be the cheapest.
  for (unsigned dim = 0; dim < info.extents.size(); ++dim)
    if (info.extents[dim] > 1 && !info.maps.back().isFunctionOfDim(dim))
      addStick(dim);
  addStick(std::nullopt);
  for (StickChoice stick : sticks)
    if (!stick || *stick == sorted || fitsAcrossSticks)
      add(stick);
  return choices;
}

void LayoutGraph::addChoicesOfUpdate(const OpInfo &info,
                                     LayoutAttrInterface layout, int initChoice,
                                     SmallVectorImpl<LayoutChoice> &choices) {
  LayoutChoice choice;
  choice.layout = layout;
  choice.initChoice = initChoice;
  choice.bindsInputs = !isCopy(info.op);
  // An op that updates rows by indices needs a layout in which rows are whole
  // sticks.
  LayoutAttrInterface updated = layout;
  if (info.indirect && info.indirect->operand == info.getInitNumber())
    if (auto part = getIndirectPart(info, layout, /*isWhole=*/true))
      updated = part->layout;
  LaneAccess access = info.getAccess(info.getInitNumber(), updated);
  if (SpyreOpInterface(info.op).getLayoutRule() == LayoutRule::Matmul) {
    auto fits = [&](StickChoice stick) {
      return isCompatible(access, info.maps.back(), info.extents, stick);
    };
    MatmulSticks sticks(info), exchanged(exchangeFactors(info));
    bool fitsExchanged = canExchange(info) && fits(exchanged.n);
    // A tensor that fits neither is written across its sticks.
    if (fits(sticks.n) || !fitsExchanged) {
      choice.stick = sticks.n;
      choices.push_back(choice);
    }
    if (fitsExchanged) {
      choice.isExchanged = true;
      choice.stick = exchanged.n;
      choices.push_back(choice);
    }
    return;
  }
  if (access.kind == LaneAccess::Irregular) {
    choice.bindsInputs = false;
    choices.push_back(choice);
    return;
  }
  if (access.kind == LaneAccess::Variable) {
    choice.stick = access.dim;
    choices.push_back(choice);
    return;
  }
  // If the updated tensor has one element per stick, the sticks of a reduction
  // may still be those of an input.
  SmallVector<StickChoice> sticks;
  auto addStick = [&](unsigned dim) {
    if (!info.maps.back().isFunctionOfDim(dim) &&
        !llvm::is_contained(sticks, StickChoice(dim)))
      sticks.push_back(dim);
  };
  for (unsigned operand = 0; operand < info.getInitNumber(); ++operand)
    for (LayoutAttrInterface input : getLayouts(info.op->getOperand(operand)))
      for (unsigned dim : getStickDims(info, info.getAccess(operand, input)))
        addStick(dim);
  for (unsigned dim = 0; dim < info.extents.size(); ++dim)
    if (info.extents[dim] > 1)
      addStick(dim);
  sticks.push_back(std::nullopt);
  for (StickChoice stick : sticks) {
    choice.stick = stick;
    choices.push_back(choice);
  }
}

/// The choices that give the result `layout`.
static SmallVector<LayoutChoice, 4> getFitting(const OpInfo &info,
                                               ArrayRef<LayoutChoice> choices,
                                               LayoutAttr layout) {
  // Dimensions outside of the stick may be in any order.
  LaneAccess access = info.getAccess(info.getInitNumber(), layout);
  SmallVector<LayoutChoice, 4> fitting;
  for (LayoutChoice choice : choices) {
    LaneAccess own = info.getAccess(info.getInitNumber(), choice.layout);
    auto relative = dyn_cast<LayoutAttr>(choice.layout);
    if (choice.layout != LayoutAttrInterface(layout) &&
        (!relative || relative.getSparse() != layout.getSparse() ||
         own.kind == LaneAccess::Irregular || access.kind != own.kind ||
         access.dim != own.dim))
      continue;
    choice.layout = layout;
    fitting.push_back(choice);
  }
  return fitting;
}

LogicalResult LayoutGraph::obeyHint(const OpInfo &info,
                                    SmallVectorImpl<LayoutChoice> &choices) {
  auto hint = info.op->getAttrOfType<LayoutAttr>(kLayoutHintAttrName);
  if (!hint)
    return success();
  auto type = cast<ShapedType>(info.op->getResult(0).getType());
  // SG-PROPAGATE-C3
  if (failed(hint.verifyEncoding(type.getShape(), type.getElementType(), [&] {
        return info.op->emitOpError() << "has an impossible layout hint: ";
      })))
    return failure();
  SmallVector<LayoutChoice, 4> fitting = getFitting(info, choices, hint);
  if (fitting.empty()) {
    llvm::SetVector<Attribute> layouts;
    for (const LayoutChoice &choice : choices)
      layouts.insert(choice.layout);
    InFlightDiagnostic diagnostic = info.op->emitOpError()
                                    << "cannot have the layout " << hint
                                    << " that its hint asks for; possible: ";
    llvm::interleaveComma(layouts, diagnostic);
    return diagnostic << ", or another order before the same last dimension";
  }
  choices = std::move(fitting);
  return success();
}

std::optional<StickChoice> LayoutGraph::getRequired(const OpInfo &info,
                                                    const LayoutChoice &choice,
                                                    unsigned operand) {
  if (SpyreOpInterface(info.op).getLayoutRule() == LayoutRule::Matmul) {
    if (!choice.isExchanged)
      return MatmulSticks(info).getFor(operand);
    unsigned exchanged = operand < 2 ? 1 - operand : operand;
    return MatmulSticks(exchangeFactors(info)).getFor(exchanged);
  }
  if (!choice.bindsInputs)
    return std::nullopt;
  return choice.stick;
}

//===----------------------------------------------------------------------===//
// Prices
//===----------------------------------------------------------------------===//

int64_t LayoutGraph::getOwnPrice(const OpInfo &info,
                                 const LayoutChoice &choice) const {
  Value result = info.op->getResult(0);
  int64_t size = getSizeInBytes(choice.layout, getShape(result));
  int64_t price = getBytesInside(size);
  // Callers expect results in the usual layout. A result in another layout
  // counts as if every second caller had to copy it (a guess).
  for (OpOperand &use : result.getUses()) {
    if (isa<SpyreOpInterface>(use.getOwner()))
      continue;
    auto update =
        dyn_cast<bufferization::MaterializeInDestinationOp>(use.getOwner());
    LayoutAttrInterface expected =
        update ? getLayout(update.getDest().getType())
               : LayoutAttrInterface(LayoutAttr::getDefault(
                     cast<ShapedType>(result.getType())));
    price = size + (choice.layout != expected ? size : 0);
  }
  if (SpyreOpInterface(info.op).getLayoutRule() != LayoutRule::Matmul ||
      llvm::is_contained(info.extents, 0))
    return price;
  // The matrix unit computes whole sticks along k and n, while data moves: only
  // the time by which it is slower counts.
  OpInfo asChosen = choice.isExchanged ? exchangeFactors(info) : info;
  MatmulSticks sticks(asChosen);
  auto getLanes = [&](unsigned operand) {
    Type element = getElementTypeOrSelf(info.op->getOperand(operand).getType());
    return ::spyre::elemsPerStick(*getDeviceFormat(element));
  };
  int64_t depthLanes = getLanes(choice.isExchanged ? 1 : 0), moved = price,
          columnLanes = std::max(getStickElements(choice.layout),
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
  for (unsigned operand = 0; operand < info.getInitNumber(); ++operand)
    moved += getSizeInBytes(LayoutAttr::getDefault(cast<ShapedType>(
                                info.op->getOperand(operand).getType())),
                            getShape(info.op->getOperand(operand)));
  int64_t computed =
      getBytes(::spyre::ptSeconds(macs / static_cast<double>(spec.numCores),
                                  rows, spec, getMacFormat(info.op)));
  return price + std::max<int64_t>(computed - moved, 0);
}

LayoutGraph::Problem::Way LayoutGraph::getWay(const OpInfo &info,
                                              unsigned operand, unsigned used,
                                              unsigned usedChoice,
                                              const LayoutChoice &choice) {
  Problem::Way way;
  LayoutAttrInterface layout = nodes[used].choices[usedChoice].layout;
  Value value = info.op->getOperand(operand);
  auto type = cast<ShapedType>(value.getType());
  int64_t setup = getBytes(2 * spec.transferSetupSeconds);
  bool isInit = operand == info.getInitNumber();
  if (isInit && choice.initChoice >= 0 &&
      choice.initChoice != static_cast<int>(usedChoice)) {
    way.price = Problem::kImpossible;
    return way;
  }
  // Indices cannot select lanes: this op alone needs a copy, and a copy back if
  // it updates the operand.
  if (info.indirect && info.indirect->operand == operand) {
    std::optional<IndirectPart> part =
        getIndirectPart(info, layout, isInit || !target.allowsCopyOfPart());
    if (part) {
      int64_t read = ::spyre::kStickBytes *
                     getNumTouchedSticks(part->sourceMap, layout,
                                         type.getShape(), part->shape);
      way.price = (isInit ? 2 : 1) *
                  (read + getSizeInBytes(part->layout, part->shape) + setup);
    }
    // Without gathers across sticks, the sticks of the gather's result run
    // along those of the table; a copy then changes them to the chosen
    // dimension.
    LaneAccess access = info.getAccess(
        operand, part ? LayoutAttrInterface(part->layout) : layout);
    if (!target.allowsGatherAcrossSticks() && !isInit &&
        access.kind == LaneAccess::Variable &&
        choice.stick != StickChoice(access.dim))
      way.price +=
          2 * getSizeInBytes(choice.layout, getShape(info.op->getResult(0))) +
          setup;
    return way;
  }
  if (isInit)
    return way;
  LaneAccess access = info.getAccess(operand, layout);
  bool inside = nodes[used].isInside;
  int64_t read = getAccessedBytes(info, operand, layout);
  way.price = inside ? getBytesInside(read) : read;
  std::optional<StickChoice> required = getRequired(info, choice, operand);
  if (!required || info.isExempt(operand, layout) ||
      llvm::is_contained(info.extents, 0) ||
      isCompatible(access, info.maps[operand], info.extents, *required))
    return way;

  CopyPlan plan = planCopy(info, operand, *required);
  if (plan.hasSourceShape)
    read = getSizeInBytes(layout, type.getShape());
  way.price = getBytesInside(plan.sizeInBytes);
  Node &node = nodes[used];
  for (auto [number, copy] : llvm::enumerate(node.copies))
    if (copy.block == info.op->getBlock() && copy.choice == usedChoice &&
        copy.plan == plan) {
      way.copy = number;
      return way;
    }
  way.copy = node.copies.size();
  problem.values[used].copyPrices.push_back(
      (inside ? getBytesInside(read) : read) +
      getBytesInside(plan.sizeInBytes) + setup);
  node.copies.push_back({info.op->getBlock(), std::move(plan), usedChoice});
  return way;
}

void LayoutGraph::addUse(const OpInfo &info, unsigned operand, unsigned user) {
  unsigned used = nodeOf.lookup(info.op->getOperand(operand));
  Problem::Use use;
  use.value = used;
  for (unsigned usedChoice = 0; usedChoice < nodes[used].choices.size();
       ++usedChoice)
    for (const LayoutChoice &choice : nodes[user].choices)
      use.ways.push_back(getWay(info, operand, used, usedChoice, choice));
  problem.values[user].uses.push_back(std::move(use));
}
