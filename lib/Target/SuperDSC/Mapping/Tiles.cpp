// SPDX-License-Identifier: Apache-2.0
//===- Tiles.cpp - Parts of buffers that loops walk -------------*- C++ -*-===//

#include "Tiles.h"

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/TileOffset.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre::superdsc;

int64_t TileStart::getStep(scf::ForOp loop) const {
  int64_t sum = 0;
  for (auto [known, step] : steps)
    if (known == loop)
      sum += step;
  return sum;
}

std::optional<int64_t> spyre::superdsc::getTripCount(scf::ForOp loop) {
  std::optional<int64_t> low = getConstantIntValue(loop.getLowerBound()),
                         high = getConstantIntValue(loop.getUpperBound()),
                         step = getConstantIntValue(loop.getStep());
  if (!low || !high || !step || *step < 1)
    return std::nullopt;
  return *high <= *low ? 0 : llvm::divideCeilSigned(*high - *low, *step);
}

FailureOr<TileStart> spyre::superdsc::getTileStart(Value operand,
                                                   Operation *user) {
  TileStart start;
  start.whole = operand;
  auto tile = operand.getDefiningOp<memref::SubViewOp>();
  if (!tile)
    return start;
  start.whole = tile.getSource();
  auto refuse = [&](const Twine &what) {
    user->emitOpError() << "SuperDSC cannot express a tile " << what;
    return failure();
  };
  auto layout = dyn_cast_or_null<LayoutAttr>(getLayout(tile.getType()));
  if (!layout || tile.getSource().getDefiningOp<memref::SubViewOp>())
    return refuse(
        "of a value that is not a buffer with a layout relative to its shape");
  if (llvm::any_of(tile.getMixedStrides(),
                   [](OpFoldResult stride) {
                     return getConstantIntValue(stride) != 1;
                   }) ||
      tile.getDroppedDims().any())
    return refuse("that is not dense or drops dimensions");
  ArrayRef<int64_t> shape = tile.getSourceType().getShape();
  SmallVector<::spyre::DeviceDim> device = layout.getDeviceDims(shape);
  auto sticksOf = [&](int64_t dim, int64_t coordinate) {
    int64_t sticks = 0, stride = 1;
    for (const ::spyre::DeviceDim &own :
         llvm::reverse(ArrayRef(device).drop_back())) {
      if (own.hostDim == dim)
        sticks += coordinate / own.step * stride;
      stride *= std::max<int64_t>(own.extent, 1);
    }
    return sticks;
  };
  for (auto [dim, offset] : llvm::enumerate(tile.getMixedOffsets())) {
    std::optional<TileOffset> known = getTileOffset(offset);
    std::optional<TileOffset::Range> range =
        known ? known->getRange() : std::nullopt;
    if (!range)
      return refuse("whose start is neither a constant nor an induction "
                    "variable of a loop with constant bounds");
    if (known->endsWithLoop)
      return refuse("that starts earlier than the loop's index says");
    int64_t first = range->first, step = range->step;
    int64_t steps = getStepsPerStick(layout, shape, dim);
    if (first < 0 || first % steps != 0 || step % steps != 0)
      return refuse("that starts inside a stick");
    start.first.push_back(first);
    start.sticks += sticksOf(dim, first);
    if (known->loop)
      start.steps.emplace_back(known->loop, sticksOf(dim, step));
  }
  return start;
}

std::optional<TileStep> spyre::superdsc::getTileStep(MemRefType buffer,
                                                     int64_t sticks) {
  auto layout = dyn_cast_or_null<LayoutAttr>(buffer.getMemorySpace());
  if (!layout || sticks <= 0)
    return std::nullopt;
  std::optional<TileStep> result;
  SmallVector<::spyre::DeviceDim> device =
      layout.getDeviceDims(buffer.getShape());
  for (unsigned position = device.size() - 1; position-- > 0;) {
    const ::spyre::DeviceDim &own = device[position];
    int64_t extent = std::max<int64_t>(own.extent, 1);
    int64_t steps = position == 0 ? sticks : sticks % extent;
    sticks /= extent;
    if (steps == 0)
      continue;
    if (result || own.hostDim < 0)
      return std::nullopt;
    result = {own.hostDim, steps * own.step};
  }
  return result;
}
