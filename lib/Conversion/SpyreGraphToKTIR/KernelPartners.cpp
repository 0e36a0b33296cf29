// SPDX-License-Identifier: Apache-2.0
//===- KernelPartners.cpp - Parts of a reduction over cores -----*- C++ -*-===//

#include "KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IntegerSet.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// The cores i of group g: numPartners neighbours, or only the first of them.
static IntegerSet getPartners(MLIRContext *context, int64_t numPartners,
                              bool onlyFirst) {
  AffineExpr core = getAffineDimExpr(0, context);
  AffineExpr first = getAffineSymbolExpr(0, context) * numPartners;
  if (onlyFirst)
    return IntegerSet::get(1, 1, {core - first}, {true});
  return IntegerSet::get(1, 1, {core - first, first + (numPartners - 1) - core},
                         {false, false});
}

Value KernelBuilder::combineParts(Value part) {
  MLIRContext *context = builder.getContext();
  int64_t numGroups = op.getWorkDivision().getNumCores() / numPartners;
  AffineExpr group = getAffineDimExpr(0, context);
  auto groups = IntegerSetAttr::get(
      IntegerSet::get(1, 0, {group, (numGroups - 1) - group}, {false, false}));
  auto type = cast<RankedTensorType>(part.getType());
  Type elementType = type.getElementType();
  SmallVector<unsigned> dims = getTileDims(getInit());
  Value identity = buildFilled(dims, getIdentity(elementType));

  auto produce = ktdp::InterTileProduceOp::create(
      builder, loc, ktdp::TileFutureType::get(type, groups),
      IntegerSetAttr::get(getPartners(context, numPartners, false)));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&produce.getBody(), {}, {builder.getIndexType()},
                        {loc});
    ktdp::YieldPartialOp::create(builder, loc, part);
  }
  // In LX every partner holds the result.
  bool onlyFirst = !storage[getInit()].isInLX;
  auto reduce = ktdp::InterTileReduceOp::create(
      builder, loc, type, produce.getFuture(),
      IntegerSetAttr::get(getPartners(context, numPartners, onlyFirst)),
      IntegerSetAttr(), identity);
  OpBuilder::InsertionGuard guard(builder);
  Block *body =
      builder.createBlock(&reduce.getCombiner(), {}, {type, type}, {loc, loc});
  // Into the accumulated tile itself: no other one is needed.
  SmallVector<Value> combined = buildGeneric(
      {{body->getArgument(1), dims}}, {{body->getArgument(0), dims}},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        return {combine(b, arguments[1], arguments[0])};
      });
  ktdp::YieldReducedOp::create(builder, loc, combined.front());
  return reduce.getResult();
}

scf::IfOp KernelBuilder::enterFirstPartner() {
  Value number = affine::AffineApplyOp::create(
      builder, loc, builder.getAffineDimExpr(0) % numPartners, core);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        number, zero);
  auto ifOp = scf::IfOp::create(builder, loc, isFirst);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  return ifOp;
}
