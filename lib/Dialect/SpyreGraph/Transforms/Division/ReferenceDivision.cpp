//===- ReferenceDivision.cpp - The reference's work division ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "ReferenceDivision.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

class ReferenceDivider {
public:
  ReferenceDivider(SpyreOpInterface op, int64_t cores,
                   const ::spyre::DeviceSpec &spec)
      : op(op), cores(cores), spec(spec), extents(op.getLoopExtents()),
        maps(op.getIndexingMaps()), granularity(getSliceGranularity(op)) {
    for (auto [extent, step] : llvm::zip_equal(extents, granularity))
      sizes.push_back(llvm::divideCeilSigned(extent, step));
    result.splits.assign(extents.size(), 1);
    findOutputDims();
  }

  ReferenceDivision run() {
    if (!llvm::is_contained(extents, 0)) {
      reduceSpans();
      if (!divideMatmul())
        divideByDefault();
    }
    result.chunks = getChunks(result.splits);
    return std::move(result);
  }

private:
  /// Loop dimensions that occur in the output's device coordinates outside the
  /// stick.
  void findOutputDims() {
    isOutput.resize(extents.size());
    Value init = op.getSpyreInit();
    LayoutAttrInterface layout = getLayout(init.getType());
    ArrayRef<int64_t> shape = cast<ShapedType>(init.getType()).getShape();
    if (!layout || llvm::is_contained(shape, 0))
      return;
    AffineMap device = simplifyWithRanges(
        layout.getDeviceMap(shape, op->getContext()).compose(maps.back()),
        extents);
    SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
    for (AffineExpr expr : device.getResults().drop_back())
      isOutput |= getUsedDims(expr, extents);
    for (unsigned dim = 0; dim < extents.size(); ++dim)
      if (kinds[dim] != utils::IteratorType::parallel)
        isOutput.reset(dim);
  }

  SmallVector<int64_t> getChunks(ArrayRef<int64_t> splits) const {
    SmallVector<int64_t> chunks;
    for (unsigned dim = 0; dim < extents.size(); ++dim)
      chunks.push_back(splits[dim] == 1
                           ? extents[dim]
                           : llvm::divideCeilSigned(sizes[dim], splits[dim]) *
                                 granularity[dim]);
    return chunks;
  }

  static int64_t getProduct(ArrayRef<int64_t> splits) {
    int64_t product = 1;
    for (int64_t split : splits)
      product *= split;
    return product;
  }

  SmallVector<int64_t> getDivisors(unsigned dim, int64_t limit) const {
    SmallVector<int64_t> divisors;
    for (int64_t d = 1; d <= std::min(sizes[dim], limit); ++d)
      if (sizes[dim] % d == 0)
        divisors.push_back(d);
    return divisors;
  }

  //===--------------------------------------------------------------------===//
  // Pass 1: spans
  //===--------------------------------------------------------------------===//

  /// The reference counts elements as wide as they are on the host
  /// (spec/passes.md, "Work division"). A boolean is wider on the device, where
  /// the span has to be small.
  int64_t getSpan(unsigned operand, ArrayRef<int64_t> splits) const {
    int64_t span = getSpanInBytes(op, operand, getChunks(splits));
    auto type = cast<ShapedType>(op->getOperand(operand).getType());
    if (span == 0)
      return 0;
    int64_t lanes = getLayout(type).getDeviceSize(type.getShape()).back();
    int64_t hostBytes = (type.getElementTypeBitWidth() + 7) / 8;
    return span / ::spyre::kStickBytes *
           std::max(lanes * hostBytes, ::spyre::kStickBytes);
  }

  void reduceSpans() {
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
      // A core may need any row of a table that it accesses through indices.
      if (!indirect || indirect->operand != operand)
        reduceSpan(operand);
    unsigned numReductions = 0;
    for (unsigned dim = 0; dim < extents.size(); ++dim)
      numReductions += result.splits[dim] > 1 && !isOutput.test(dim);
    result.splitsTwoReductions = numReductions > 1;
    hasCommitted = getProduct(result.splits) > 1;
  }

  void reduceSpan(unsigned operand) {
    if (getSpan(operand, result.splits) <= spec.maxSpanBytes)
      return;
    auto type = cast<ShapedType>(op->getOperand(operand).getType());
    AffineMap device =
        simplifyWithRanges(getLayout(type)
                               .getDeviceMap(type.getShape(), op->getContext())
                               .compose(maps[operand]),
                           extents);
    for (AffineExpr expr : device.getResults().drop_back()) {
      SmallVector<unsigned> dims(getUsedDims(expr, extents).set_bits());
      if (dims.empty())
        continue;
      best.reset();
      SmallVector<int64_t> splits = result.splits;
      enumerate(operand, dims, splits);
      if (best)
        result.splits = best->second;
      if (getSpan(operand, result.splits) <= spec.maxSpanBytes)
        return;
      SmallVector<int64_t> chunks = getChunks(result.splits);
      auto [low, high] = getRange(expr, chunks);
      if (high > low)
        break;
    }
    result.spanTooLarge = {operand, getSpan(operand, result.splits)};
  }

  /// Keeps the largest span that fits; if none does, the smallest.
  void enumerate(unsigned operand, ArrayRef<unsigned> dims,
                 SmallVector<int64_t> &splits) {
    if (dims.empty()) {
      int64_t span = getSpan(operand, splits);
      bool fits = span <= spec.maxSpanBytes;
      bool bestFits = best && best->first <= spec.maxSpanBytes;
      if (!best || (fits && (!bestFits || span > best->first)) ||
          (!fits && !bestFits && span < best->first))
        best = {span, splits};
      return;
    }
    unsigned dim = dims.front();
    int64_t committed = splits[dim];
    int64_t others = getProduct(splits) / committed;
    for (int64_t divisor : getDivisors(dim, cores / others)) {
      if (divisor < committed)
        continue;
      splits[dim] = divisor;
      enumerate(operand, dims.drop_front(), splits);
    }
    splits[dim] = committed;
  }

  //===--------------------------------------------------------------------===//
  // Pass 2: matmul
  //===--------------------------------------------------------------------===//

  bool divideMatmul() {
    if (op.getUnit() != Unit::PT || hasCommitted)
      return false;
    SmallVector<unsigned> batch, rows, columns, reductions;
    for (unsigned dim = 0; dim < extents.size(); ++dim) {
      if (extents[dim] == 1)
        continue;
      bool inX = maps[0].isFunctionOfDim(dim);
      bool inY = maps[1].isFunctionOfDim(dim);
      bool inOutput = maps.back().isFunctionOfDim(dim);
      if (inX && inY && inOutput)
        batch.push_back(dim);
      else if (inX && inY)
        reductions.push_back(dim);
      else if (inY && inOutput)
        columns.push_back(dim);
      else if (inX && inOutput)
        rows.push_back(dim);
      else
        return false;
    }
    if (rows.size() != 1 || columns.size() != 1 || reductions.size() != 1 ||
        granularity[columns.front()] == 1)
      return false;
    ::spyre::MatmulShape shape;
    for (unsigned dim : batch)
      shape.batch.push_back(extents[dim]);
    shape.m = extents[rows.front()];
    shape.n = extents[columns.front()];
    shape.k = extents[reductions.front()];
    shape.elemsPerStick = granularity[columns.front()];
    std::optional<::spyre::MatmulSplit> split =
        ::spyre::decideReferenceMatmulSplit(shape, cores, spec);
    // The reference's cost model divides sticks or rows; it has no other
    // granularity.
    if (!split || granularity[rows.front()] != 1)
      return false;
    for (auto [dim, value] : llvm::zip_equal(batch, split->batch))
      result.splits[dim] = value;
    result.splits[rows.front()] = split->m;
    result.splits[columns.front()] = split->n;
    result.splits[reductions.front()] = split->k;
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Pass 3: default
  //===--------------------------------------------------------------------===//

  void divideByDefault() {
    int64_t coresLeft = cores / getProduct(result.splits);
    SmallVector<unsigned> outputs, reductions;
    bool hasReductionSplit = false;
    for (unsigned dim = 0; dim < extents.size(); ++dim) {
      if (result.splits[dim] > 1) {
        hasReductionSplit |= !isOutput.test(dim);
        continue;
      }
      if (isOutput.test(dim))
        outputs.push_back(dim);
      else if (extents[dim] > 1)
        reductions.push_back(dim);
    }
    llvm::sort(outputs, [&](unsigned a, unsigned b) {
      return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
    });
    for (unsigned dim : outputs) {
      result.splits[dim] = getDivisors(dim, coresLeft).back();
      coresLeft /= result.splits[dim];
    }
    if (reductions.size() == 1 && !hasReductionSplit)
      result.splits[reductions.front()] =
          getDivisors(reductions.front(), coresLeft).back();
  }

  SpyreOpInterface op;
  int64_t cores;
  const ::spyre::DeviceSpec &spec;
  SmallVector<int64_t> extents;
  SmallVector<AffineMap> maps;
  SmallVector<int64_t> granularity, sizes;
  llvm::SmallBitVector isOutput;
  bool hasCommitted = false;
  std::optional<std::pair<int64_t, SmallVector<int64_t>>> best;
  ReferenceDivision result;
};

} // namespace

int64_t spyre_graph::getSpanInBytes(SpyreOpInterface op, unsigned operand,
                                    ArrayRef<int64_t> chunks) {
  auto type = cast<ShapedType>(op->getOperand(operand).getType());
  LayoutAttrInterface layout = getLayout(type);
  if (!layout || type.getNumElements() == 0)
    return 0;
  AffineMap map = op.getIndexingMaps()[operand];
  SmallVector<int64_t> extents = op.getLoopExtents();
  AffineMap device = simplifyWithRanges(
      layout.getDeviceMap(type.getShape(), op->getContext()).compose(map),
      extents);
  SmallVector<int64_t> sizes = layout.getDeviceSize(type.getShape());
  // Elements may be wider or narrower on the device than on the host.
  int64_t inner = layout.getSizeInBytes(type.getShape());
  for (auto [expr, size] : llvm::zip_equal(device.getResults().drop_back(),
                                           ArrayRef(sizes).drop_back())) {
    inner /= size;
    auto [low, high] = getRange(expr, chunks);
    if (high > low)
      return (high - low + 1) * inner;
  }
  return inner;
}

ReferenceDivision
spyre_graph::divideAsReference(SpyreOpInterface op, int64_t cores,
                               const ::spyre::DeviceSpec &spec) {
  return ReferenceDivider(op, cores, spec).run();
}
