// SPDX-License-Identifier: Apache-2.0
//===- ElementCost.cpp - What an iteration costs ----------------*- C++ -*-===//

#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"

#include "Spyre/Device/CostModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

Value spyre_graph::toComputeType(OpBuilder &b, Location loc, Value value,
                                 Type elementType) {
  Type type = getComputeType(elementType);
  if (value.getType() == type)
    return value;
  if (type.isInteger(1)) {
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, value,
                                 zero);
  }
  if (isa<FloatType>(type))
    return arith::ExtFOp::create(b, loc, type, value);
  return arith::ExtSIOp::create(b, loc, type, value);
}

Value spyre_graph::toDeviceType(OpBuilder &b, Location loc, Value value,
                                Type elementType) {
  Type type = getDeviceElementType(elementType);
  ScalarBuilder scalars(b, loc);
  // A float becomes the 32 bits that are stored without a detour.
  bool isFloatToInteger =
      isa<FloatType>(value.getType()) && elementType.isInteger(64);
  value = isFloatToInteger ? scalars.convert(value, type)
                           : scalars.saturate(scalars.convert(
                                 value, getComputeType(elementType)));
  if (elementType.isUnsignedInteger(8))
    return arith::AndIOp::create(
        b, loc, value,
        arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(255)));
  if (value.getType() == type)
    return value;
  if (isa<Float8E4M3FNType>(type)) {
    // A copy keeps all bits. What is too large becomes the largest number, as
    // in PyTorch.
    auto wide = value.getDefiningOp<arith::ExtFOp>();
    if (wide && wide.getIn().getType() == type)
      return wide.getIn();
    constexpr double kLargest = 448;
    value = scalars.minimum(
        scalars.maximum(scalars.asFloat(value), scalars.constantF32(-kLargest)),
        scalars.constantF32(kLargest));
  }
  if (value.getType().isInteger(1))
    return arith::UIToFPOp::create(b, loc, type, value);
  if (isa<FloatType>(type))
    return arith::TruncFOp::create(b, loc, type, value);
  // Integers wrap, int64 at 32 bits.
  return arith::TruncIOp::create(b, loc, type, value);
}

int64_t spyre_graph::getNumSortStages(int64_t count, int64_t run) {
  // Merging runs of n elements takes 1 + log2(n) stages.
  int64_t stages = 0;
  for (int64_t length = run; length < count; length *= 2)
    stages += 1 + llvm::Log2_64(length);
  return stages;
}

int64_t spyre_graph::getSortBytes(int64_t count) {
  return static_cast<int64_t>(2 * sizeof(int64_t) * llvm::PowerOf2Ceil(count));
}

/// Per element: each stage takes the smaller and the greater of two, and
/// selects one.
static double getSortCost(SpyreOpInterface op,
                          const ::spyre::DeviceSpec &spec) {
  constexpr double kOperationsPerStage = 3;
  for (auto [extent, kind] : llvm::zip(op.getLoopExtents(), op.getLoopKinds()))
    if (kind == utils::IteratorType::reduction)
      return kOperationsPerStage *
             static_cast<double>(getNumSortStages(extent, op.getSortedRun())) *
             spec.getWeight(::spyre::CostClass::Simple);
  return 0;
}

double spyre_graph::getElementCost(SpyreOpInterface op,
                                   const ::spyre::DeviceSpec &spec) {
  Location loc = op.getLoc();
  Block block;
  OpBuilder b(op->getContext());
  b.setInsertionPointToStart(&block);
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  SmallVector<Value> inputs = op.getSpyreInputs(), elements;
  for (auto [number, input] :
       llvm::enumerate(ArrayRef(inputs).drop_back(op.getNumEpilogueInputs()))) {
    // Indices are read by the access itself.
    if (indirect && indirect->index == number)
      continue;
    Type element = getElementTypeOrSelf(input.getType());
    Value stored = block.addArgument(getDeviceElementType(element), loc);
    elements.push_back(toComputeType(b, loc, stored, element));
  }
  if (op.readsInit()) {
    Type element = getElementTypeOrSelf(op.getSpyreInit().getType());
    Value stored = block.addArgument(getDeviceElementType(element), loc);
    elements.push_back(toComputeType(b, loc, stored, element));
  }
  Value start = block.addArgument(b.getIndexType(), loc);
  Value result = op.buildElement(b, loc, elements, [&](unsigned) -> Value {
    return arith::AddIOp::create(b, loc, start, start);
  });
  double cost = 0;
  if (op.getCombiner() == Combiner::None)
    toDeviceType(b, loc, result,
                 getElementTypeOrSelf(op.getSpyreInit().getType()));
  else if (isSort(op.getCombiner()))
    cost += getSortCost(op, spec);
  else
    cost += spec.getWeight(::spyre::CostClass::Accumulation);
  for (Operation &scalar : block)
    cost +=
        spec.getWeight(::spyre::getCostClass(scalar.getName().getStringRef()));
  return cost;
}

::spyre::MacFormat spyre_graph::getMacFormat(SpyreOpInterface op) {
  SmallVector<Value> inputs = op.getSpyreInputs();
  if (inputs.size() < 2)
    return ::spyre::MacFormat::FP16;
  Type x = getElementTypeOrSelf(inputs[0].getType());
  if (x != getElementTypeOrSelf(inputs[1].getType()))
    return ::spyre::MacFormat::FP16;
  return isa<Float8E4M3FNType>(x) ? ::spyre::MacFormat::FP8
         : x.isSignlessInteger(8) ? ::spyre::MacFormat::Int8
                                  : ::spyre::MacFormat::FP16;
}
