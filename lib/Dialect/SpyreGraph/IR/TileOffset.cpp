//===- TileOffset.cpp - Where a tile starts ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/TileOffset.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

std::optional<TileOffset> spyre_graph::getTileOffset(OpFoldResult offset) {
  if (std::optional<int64_t> number = getConstantIntValue(offset))
    return TileOffset{*number, nullptr, 1, Value(), false};
  auto value = cast<Value>(offset);
  int64_t factor = 1;
  if (auto product = value.getDefiningOp<arith::MulIOp>()) {
    std::optional<int64_t> constant = getConstantIntValue(product.getRhs());
    if (!constant || *constant < 1)
      return std::nullopt;
    factor = *constant;
    value = product.getLhs();
  }
  Value index = value;
  auto start = value.getDefiningOp<TileStartOp>();
  if (start)
    value = start.getIndex();
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
  if (!loop || loop.getInductionVar() != argument)
    return std::nullopt;
  return TileOffset{0, loop, factor, index, !!start};
}

std::optional<TileOffset::Range> TileOffset::getRange() const {
  if (!loop)
    return Range{number, number, 0};
  auto low = getConstantIntValue(scf::ForOp(loop).getLowerBound()),
       high = getConstantIntValue(scf::ForOp(loop).getUpperBound()),
       step = getConstantIntValue(scf::ForOp(loop).getStep());
  Range range;
  if (!low || !high || !step || *step < 1 ||
      llvm::MulOverflow(*low, factor, range.first) ||
      llvm::MulOverflow(*step, factor, range.step))
    return std::nullopt;
  int64_t length, distance;
  if (llvm::SubOverflow(*high, *low, length))
    return std::nullopt;
  int64_t steps = length <= 0 ? -1 : llvm::divideCeilSigned(length, *step) - 1;
  if (llvm::MulOverflow(steps, range.step, distance) ||
      llvm::AddOverflow(range.first, distance, range.last))
    return std::nullopt;
  // All factors of it were multiplied above without leaving 64 bits.
  if (endsWithLoop)
    range.last = std::min(range.last, (*high - *step) * factor);
  return range;
}

bool TileOffset::isMultipleOf(int64_t divisor) const {
  std::optional<Range> range = getRange();
  if (!range || range->first % divisor != 0)
    return false;
  // The last tile may start anywhere.
  return (endsWithLoop ? factor : range->step) % divisor == 0;
}
