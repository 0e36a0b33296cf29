//===- LayoutGraph.cpp - Layouts of a whole function ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "LayoutGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Where layouts are priced, of the largest sizes. Whether a stick is full
/// matters, so that far smaller ones count, too.
static constexpr double kSmallerSizes[] = {0.2, 0.04, 0.008};

LayoutGraph::LayoutGraph(func::FuncOp func, const Target &target,
                         const ::spyre::DeviceSpec &spec)
    : func(func), target(target), spec(spec),
      smallerSizes(getSmallerSizes(func, kSmallerSizes)),
      problems(1 + smallerSizes.size()) {}

int64_t LayoutGraph::getPrice() const {
  return ::spyre::planning::getPrice(problems.front(), assignment.choices);
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
  assignment = smallerSizes.empty()
                   ? ::spyre::planning::assignLayouts(problems.front())
                   : ::spyre::planning::assignLayouts(
                         ::spyre::planning::addUp(problems));
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
    node.fitsLX = fitsLX(value);
    // LX planning reads an argument once for all users.
    node.isShared = !node.isInside && node.fitsLX && !value.hasOneUse() &&
                    llvm::none_of(value.getUses(), [](OpOperand &use) {
                      auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
                      return !op || op.isDpsInit(&use);
                    });
    for (Problem &problem : problems)
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
  std::vector<OpInfo> infos{OpInfo(op)};
  for (ArrayRef<int64_t> sizes : smallerSizes)
    infos.push_back(infos.front().at(sizes));
  const OpInfo &info = infos.front();
  for (Value input : op.getSpyreInputs())
    getNode(input);
  Value init = op.getSpyreInit();
  bool updates = getLayout(init.getType()) || nodeOf.contains(init);
  SmallVector<LayoutChoice, 4> choices;
  if (!updates)
    choices = getChoices(info);
  else if (init.getDefiningOp<tensor::EmptyOp>())
    addChoicesOfUpdate(info, getLayout(init.getType()), choices);
  else
    for (LayoutAttrInterface layout : getLayouts(init))
      addChoicesOfUpdate(info, layout, choices);
  // SG-INSERT-C3
  if (!updates)
    llvm::erase_if(choices, [&](const LayoutChoice &choice) {
      int64_t stick = choice.layout.getStickDim(shapeOf(op->getResult(0)));
      return stick >= 0 && isInsertedInto(op->getResult(0), stick);
    });
  if (failed(obeyHint(info, choices)))
    return failure();

  Node node;
  node.isInside = !updates || nodes[getNode(init)].isInside;
  node.fitsLX =
      fitsLX(op->getResult(0)) && (!updates || nodes[getNode(init)].fitsLX);
  unsigned number = nodes.size();
  nodeOf[op->getResult(0)] = number;
  for (auto [problem, infoAtSize] : llvm::zip_equal(problems, infos)) {
    std::vector<int64_t> &prices = problem.values.emplace_back().prices;
    SmallVector<int64_t, 4> &computed = node.computed.emplace_back();
    for (const LayoutChoice &choice : choices) {
      computed.push_back(getComputed(infoAtSize, choice));
      prices.push_back(computed.back() +
                       getStoredPrice(infoAtSize, choice, node.fitsLX));
    }
  }
  node.choices = std::move(choices);
  nodes.push_back(std::move(node));
  for (unsigned operand = 0; operand < info.getInitNumber(); ++operand)
    addUse(infos, operand, number);
  if (updates && !init.getDefiningOp<tensor::EmptyOp>())
    addUse(infos, info.getInitNumber(), number);
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
  int64_t sorted = info.getSortedDim();
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
  AffineMap extentMap = SpyreOpInterface(info.op).getLoopExtentMap();
  for (StickChoice stick : sticks)
    if ((!stick || *stick == sorted || fitsAcrossSticks) &&
        (!stick || target.allowsVaryingSticks() || !varies(extentMap, *stick)))
      add(stick);
  return choices;
}

void LayoutGraph::addChoicesOfUpdate(const OpInfo &info,
                                     LayoutAttrInterface layout,
                                     SmallVectorImpl<LayoutChoice> &choices) {
  LayoutChoice choice;
  choice.layout = layout;
  choice.updated = layout;
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
