// SPDX-License-Identifier: Apache-2.0
//===- Parts.cpp - Results that are parts of tensors -- -*- C++ -*-===//

#include "Legalizer.h"

#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"

using namespace mlir;
using namespace mlir::spyre_graph;

bool SuperDSCLegalizer::writesPartOfStick() {
  unsigned init = op->getNumOperands() - 1;
  auto own = access(init);
  if (!own || own->laneDim < 0 ||
      extents[own->laneDim] % own->stickElements == 0)
    return false;
  RankedTensorType type = typeOf(init);
  int64_t dim = getLayout(type).getStickDim(type.getShape());
  return dim >= 0 && getRange(maps[init].getResult(dim), extents).second + 1 <
                         type.getDimSize(dim);
}

int64_t SuperDSCLegalizer::getLaneOfTable() const {
  auto indirect = SpyreOpInterface(op).getIndirectAccess();
  if (!indirect || indirect->operand + 1 == op->getNumOperands())
    return -1;
  auto table = access(indirect->operand);
  return table ? table->laneDim : -1;
}

bool SuperDSCLegalizer::gathersAcrossSticks() const {
  int64_t lane = getLaneOfTable();
  auto result = access(op->getNumOperands() - 1);
  return lane >= 0 && result && result->laneDim != lane;
}

bool SuperDSCLegalizer::addsToParts() {
  Value target = operation->getOperand(op->getNumOperands() - 1);
  return !op.getIndirectAccess() && !writesAll(op) &&
         isa_and_nonnull<RestickifyOp>(target.getDefiningOp()) &&
         isMadeOfParts(target);
}

void SuperDSCLegalizer::replaceInit() {
  unsigned init = op->getNumOperands() - 1;
  builder.setInsertionPoint(operation);
  RankedTensorType type = typeOf(init);
  Value target = operation->getOperand(init);
  Used used = getUsed(maps[init]);
  // Sticks along the inputs' lane, where there is one.
  int64_t wanted = getLaneOfTable();
  if (isa<MatmulOp>(operation))
    wanted = extents.size() - 1 - countReductions();
  for (unsigned number = 0; number < init && wanted < 0; ++number)
    if (auto own = access(number); own && !isIndirect(number))
      wanted = own->laneDim;
  int64_t lane = positionOf(used.loops, wanted);
  RankedTensorType partType =
      withStick(used.extents, type.getElementType(), lane);
  // Parts of one tensor are collected in one form: turning it in between
  // would read what is not written yet.
  bool isPart = !target.getDefiningOp<tensor::EmptyOp>() || feedsInit();
  int64_t stick = isPart ? -1 : findStick(type, used.map, used.extents);
  if (!writesWholeSticksOnly(type, used, stick))
    stick = -1;
  RankedTensorType turnedType =
      withStick(type.getShape(), type.getElementType(), stick);
  AffineMap identity = AffineMap::getMultiDimIdentityMap(used.extents.size(),
                                                         builder.getContext());
  AffineMap elements =
      AffineMap::getMultiDimIdentityMap(type.getRank(), builder.getContext());
  // Quotients of an index over all elements: into a line of elements.
  AffineMap toLine, intoLine;
  if (!getStickAccess(used.map, getLayout(turnedType), type.getShape(),
                      used.extents)) {
    std::tie(toLine, intoLine) =
        getLine(type, used.map, used.extents, type.getShape());
    if (!getLinearForm(intoLine.getResult(0), used.extents.size()))
      toLine = AffineMap();
  }
  Value turned, destination = target;
  if (toLine) {
    turned = empty(withStick(type.getNumElements(), type.getElementType(), -1));
    if (!target.getDefiningOp<tensor::EmptyOp>())
      turned = copy(target, elements, turned, toLine, type.getShape());
  } else {
    std::tie(turned, destination) = getTurned(init, turnedType);
  }
  operation->setOperand(init, empty(partType));
  operation->getResult(0).setType(partType);
  SmallVector<AffineMap> changed = op.getIndexingMaps();
  changed[init] = used.projection;
  op.setLoopStructure(changed, extents);
  load();
  builder.setInsertionPointAfter(operation);
  Value result = operation->getResult(0);
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : result.getUses())
    uses.push_back(&use);
  Value part = result;
  int64_t turnedLane = -1;
  if (stick >= 0)
    turnedLane = getStickAccess(used.map, getLayout(turnedType),
                                turnedType.getShape(), used.extents)
                     ->laneDim;
  if (turnedLane != lane)
    part = copyWhole(
        part, withStick(used.extents, type.getElementType(), turnedLane));
  Value whole =
      copy(part, identity, turned, toLine ? intoLine : used.map, used.extents);
  Value back = toLine
                   ? copy(whole, toLine, destination, elements, type.getShape())
                   : copyWhole(whole, type, destination);
  for (OpOperand *use : uses)
    use->set(back);
}

bool SuperDSCLegalizer::feedsInit() {
  return llvm::any_of(operation->getResult(0).getUses(), [](OpOperand &use) {
    auto user = dyn_cast<SpyreOpInterface>(use.getOwner());
    return user && user.isDpsInit(&use);
  });
}

bool SuperDSCLegalizer::writesAll(SpyreOpInterface op) {
  return op.getIndexingMaps().back().isIdentity() &&
         ArrayRef(op.getLoopExtents()) ==
             cast<ShapedType>(op->getResult(0).getType()).getShape();
}

bool SuperDSCLegalizer::isMadeOfParts(Value tensor) {
  while (auto writer = tensor.getDefiningOp<SpyreOpInterface>()) {
    if (!writesAll(writer))
      tensor = writer.getSpyreInit();
    else if (isa<RestickifyOp>(*writer))
      tensor = writer->getOperand(0);
    else
      return false;
  }
  return tensor && tensor.getDefiningOp<tensor::EmptyOp>();
}

std::pair<Value, Value>
SuperDSCLegalizer::getTurned(unsigned init, RankedTensorType turnedType) {
  Value target = operation->getOperand(init);
  if (target.getDefiningOp<tensor::EmptyOp>())
    return {empty(turnedType), target};
  // Another part, written before: in the same form, made so if need be.
  auto writer = target.getDefiningOp<SpyreOpInterface>();
  if (writer && target.hasOneUse()) {
    bool isBack = isa<RestickifyOp>(*writer) &&
                  writer->getOperand(0).getType() == turnedType;
    if (!isBack && !writesAll(writer) && isMadeOfParts(target) &&
        !writer.getIndirectAccess()) {
      SuperDSCLegalizer(writer, made).replaceInit();
      target = operation->getOperand(init);
      writer = target.getDefiningOp<SpyreOpInterface>();
      isBack = writer && isa<RestickifyOp>(*writer) &&
               writer->getOperand(0).getType() == turnedType;
      builder.setInsertionPoint(operation);
    }
    if (isBack)
      return {writer->getOperand(0), writer.getSpyreInit()};
  }
  return {copyWhole(target, turnedType), target};
}

bool SuperDSCLegalizer::writesWholeSticksOnly(RankedTensorType type,
                                              const Used &used, int64_t stick) {
  if (stick < 0)
    return true;
  int64_t elements = ::spyre::elemsPerStick(getLayout(type).getDataFormat());
  auto [low, high] = getRange(used.map.getResult(stick), used.extents);
  return (high - low + 1) % elements == 0 || high + 1 == type.getDimSize(stick);
}
