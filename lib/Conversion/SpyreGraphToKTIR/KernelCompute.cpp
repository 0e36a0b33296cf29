// SPDX-License-Identifier: Apache-2.0
//===- KernelCompute.cpp - Tile computations -*- C++ -*-===//

#include "KernelBuilder.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::spyre_graph;

Value KernelBuilder::buildEmpty(ArrayRef<unsigned> dims, Type elementType) {
  SmallVector<OpFoldResult> sizes;
  for (unsigned dim : dims)
    sizes.push_back(loops[dim].size);
  return tensor::EmptyOp::create(builder, loc, sizes, elementType);
}

Value KernelBuilder::buildFilled(ArrayRef<unsigned> dims, TypedAttr value) {
  Value scalar = arith::ConstantOp::create(builder, loc, value);
  return linalg::FillOp::create(builder, loc, scalar,
                                buildEmpty(dims, value.getType()))
      .getResult(0);
}

SmallVector<Value> KernelBuilder::buildGeneric(
    ArrayRef<std::pair<Value, SmallVector<unsigned>>> ins,
    ArrayRef<std::pair<Value, SmallVector<unsigned>>> outs,
    function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> body) {
  // Only dimensions that some tile has are iterated.
  SmallVector<int64_t> position(loops.size(), -1);
  for (auto operands : {ins, outs})
    for (const auto &[value, dims] : operands)
      for (unsigned dim : dims)
        position[dim] = 0;
  int64_t numDims = 0;
  SmallVector<utils::IteratorType> iterators;
  for (unsigned dim = 0; dim < loops.size(); ++dim) {
    if (position[dim] < 0)
      continue;
    position[dim] = numDims++;
    bool isInOut = llvm::is_contained(outs.front().second, dim);
    iterators.push_back(isInOut ? utils::IteratorType::parallel
                                : utils::IteratorType::reduction);
  }
  SmallVector<AffineMap> indexingMaps;
  SmallVector<Value> inputs, inits;
  SmallVector<Type> types;
  auto addOperand = [&](ArrayRef<unsigned> dims) {
    SmallVector<AffineExpr> exprs;
    for (unsigned dim : dims)
      exprs.push_back(builder.getAffineDimExpr(position[dim]));
    indexingMaps.push_back(
        AffineMap::get(numDims, 0, exprs, builder.getContext()));
  };
  for (const auto &[value, dims] : ins) {
    inputs.push_back(value);
    addOperand(dims);
  }
  for (const auto &[value, dims] : outs) {
    inits.push_back(value);
    types.push_back(value.getType());
    addOperand(dims);
  }
  auto generic = linalg::GenericOp::create(
      builder, loc, types, inputs, inits, indexingMaps, iterators,
      [&](OpBuilder &b, Location, ValueRange arguments) {
        linalg::YieldOp::create(b, loc, body(b, arguments));
      });
  return llvm::to_vector_of<Value>(generic.getResults());
}

SmallVector<unsigned>
KernelBuilder::getIteratedDims(ArrayRef<SmallVector<unsigned>> tileDims) const {
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    if (llvm::any_of(tileDims, [&](ArrayRef<unsigned> own) {
          return llvm::is_contained(own, dim);
        }))
      dims.push_back(dim);
  return dims;
}

LogicalResult KernelBuilder::buildPointwise() {
  SmallVector<std::pair<unsigned, scf::ForOp>> nest;
  SmallVector<Value> none;
  for (auto [place, dim] : llvm::enumerate(order)) {
    if (loops[dim].tile < loops[dim].chunk &&
        failed(loadUnchanged(ArrayRef(order).drop_front(place))))
      return failure();
    nest.emplace_back(dim, enterTiles(dim, none));
  }

  SmallVector<std::pair<Value, SmallVector<unsigned>>> ins;
  SmallVector<unsigned> inputOperands;
  SmallVector<SmallVector<unsigned>> tileDims;
  for (unsigned operand = 0; operand < getInit(); ++operand) {
    // Indices are read by the access itself.
    if (isIndex(operand))
      continue;
    FailureOr<Value> tile = load(operand);
    if (failed(tile))
      return failure();
    ins.emplace_back(*tile, getTileDims(operand));
    inputOperands.push_back(operand);
    tileDims.push_back(getTileDims(operand));
  }
  if (op.readsInit()) {
    FailureOr<Value> tile = load(getInit());
    if (failed(tile))
      return failure();
    ins.emplace_back(*tile, getTileDims(getInit()));
    inputOperands.push_back(getInit());
  }
  Type resultType = getElementType(getInit());
  SmallVector<unsigned> outDims = getTileDims(getInit());
  tileDims.push_back(outDims);
  SmallVector<unsigned> iterated = getIteratedDims(tileDims);
  // Starts are values outside the generic.
  SmallVector<Value> starts(loops.size());
  auto loopIndexBody = [&](OpBuilder &b, unsigned dim) -> Value {
    auto *position = llvm::find(iterated, dim);
    if (position == iterated.end())
      return starts[dim];
    Value index = linalg::IndexOp::create(b, loc, position - iterated.begin());
    return arith::AddIOp::create(b, loc, index, starts[dim]);
  };
  for (unsigned dim = 0; dim < loops.size(); ++dim)
    starts[dim] = getLoopIndex(builder, dim);
  Value init = buildEmpty(outDims, getDeviceElementType(resultType));
  SmallVector<Value> results = buildGeneric(
      ins, {{init, outDims}},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        SmallVector<Value> values;
        for (auto [operand, argument] : llvm::zip(inputOperands, arguments))
          values.push_back(
              toComputeType(b, loc, argument, getElementType(operand)));
        Value result =
            op.buildElement(b, loc, values, [&](unsigned dim) -> Value {
              return loopIndexBody(b, dim);
            });
        return {toDeviceType(b, loc, result, resultType)};
      });
  if (failed(store(results.front(), getInit())))
    return failure();
  leaveTiles(nest, none);
  return success();
}
