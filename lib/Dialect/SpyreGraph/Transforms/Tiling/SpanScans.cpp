//===- SpanScans.cpp - Scans in parts that cores can address ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "SpanScans.h"
#include "../Layout/LayoutChoices.h"
#include "Spans.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/PartialReduction.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// The loop whose iterations follow each other: the only one that is not
/// parallel.
unsigned getScannedLoop(SpyreOpInterface scan) {
  SmallVector<utils::IteratorType> kinds = scan.getLoopKinds();
  return llvm::find(kinds, utils::IteratorType::reduction) - kinds.begin();
}

/// Replaces a scan by scans of parts of its rows. A scan adds one element after
/// the other to a total, in fp32 where elements are floating-point numbers, and
/// rounds what it writes only. So parts write their totals as they are, to a
/// tensor of their own if the result is rounded; the last one is added to the
/// first element of the next part, as the whole scan would.
class ScanSplitter {
public:
  ScanSplitter(SpyreOpInterface scan, int64_t cores, const Target &target,
               const ::spyre::DeviceSpec &spec)
      : op(scan), b(scan), loc(scan.getLoc()), maps(op.getIndexingMaps()),
        extents(op.getLoopExtents()), dim(getScannedLoop(scan)), cores(cores),
        target(target), spec(spec) {
    Type element = getElementTypeOrSelf(op.getSpyreInit().getType());
    total = isa<FloatType>(element) ? b.getF32Type() : element;
    isRounded = total != element;
  }

  bool run() {
    if (!isSimple() || countTiles(op) != 0)
      return false;
    // The last total of a part would leave its lane for the first one.
    if (getStickLoop() == static_cast<int64_t>(dim) &&
        !target.allowsRestickifyOfParts())
      return false;
    for (int64_t parts = 2; parts <= kMaxSpanParts;
         parts += llvm::divideCeilSigned(parts, 4)) {
      int64_t units = llvm::divideCeilSigned(extents[dim], getUnit());
      int64_t part = llvm::divideCeilSigned(units, parts) * getUnit();
      SmallVector<int64_t> starts;
      for (int64_t first = 0; first < extents[dim]; first += part)
        starts.push_back(first);
      if (starts.size() < 2 || !fits(starts, part))
        continue;
      Value result = createParts(starts, part);
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
      return true;
    }
    return false;
  }

private:
  /// Whether all operands lie in plain layouts, and totals are converted only
  /// once: a floating-point number that becomes an integer is first rounded.
  bool isSimple() {
    Type from = getElementTypeOrSelf(op->getOperand(0).getType());
    return op->getNumResults() == 1 && !op.getWorkDivision() &&
           !op->hasAttr(kWorkDivisionHintAttrName) &&
           isa<FloatType>(from) == isa<FloatType>(total) &&
           llvm::all_of(op->getOperands(), [](Value operand) {
             return isa_and_nonnull<LayoutAttr>(getLayout(operand.getType()));
           });
  }

  int64_t countTiles(SpyreOpInterface part) const {
    return countTilesForSpans(part, cores, target, spec);
  }

  /// The loop along the sticks of the result, or -1.
  int64_t getStickLoop() {
    auto type = cast<ShapedType>(op.getSpyreInit().getType());
    LaneAccess access =
        getLaneAccess(maps.back(), getLayout(type), type.getShape(), extents);
    return access.kind == LaneAccess::Variable
               ? static_cast<int64_t>(access.dim)
               : -1;
  }

  /// Parts begin at sticks of all tensors.
  int64_t getUnit() {
    if (getStickLoop() != static_cast<int64_t>(dim))
      return 1;
    int64_t unit = getStickElements(getLayoutOfTotals());
    for (Value operand : op->getOperands())
      unit = std::max(unit, getStickElements(getLayout(operand.getType())));
    return unit;
  }

  /// Of totals: rows are farther apart than what is scanned, in the order of
  /// the result's, so that cores can take some each. Along sticks, that takes a
  /// dimension of extent one beside the lanes (spec/layouts.md, "Generic-stick
  /// constructor").
  LayoutAttr getLayoutOfTotals() {
    int64_t stick = getStickLoop(), scanned = dim;
    SmallVector<int64_t> order{stick == scanned ? getRank() : scanned};
    auto add = [&](int64_t loop) {
      if (loop != stick && loop != scanned && !llvm::is_contained(order, loop))
        order.push_back(loop);
    };
    auto result = cast<LayoutAttr>(getLayout(op.getSpyreInit().getType()));
    SmallVector<int64_t> outer(result.getOrder());
    std::rotate(outer.begin(), outer.begin() + !outer.empty(), outer.end());
    for (int64_t coordinate : outer)
      if (auto loop =
              dyn_cast<AffineDimExpr>(maps.back().getResult(coordinate)))
        add(loop.getPosition());
    for (int64_t loop = 0; loop < getRank(); ++loop)
      add(loop);
    if (stick >= 0)
      order.push_back(stick);
    return LayoutAttr::get(op->getContext(), order, total,
                           /*sparse=*/stick < 0);
  }

  int64_t getRank() const { return extents.size(); }

  SmallVector<int64_t> getExtents(int64_t count) const {
    SmallVector<int64_t> part(extents);
    part[dim] = count;
    return part;
  }

  /// A tensor over `count` steps of all loops.
  Value createEmpty(int64_t count) {
    SmallVector<int64_t> shape = getExtents(count);
    shape.resize(getTotalsMap().getNumResults(), 1);
    return tensor::EmptyOp::create(
        b, loc, RankedTensorType::get(shape, total, getLayoutOfTotals()),
        ValueRange());
  }

  AffineMap getTotalsMap() {
    AffineMap map = b.getMultiDimIdentityMap(getRank());
    if (getStickLoop() != static_cast<int64_t>(dim))
      return map;
    return map.insertResult(b.getAffineConstantExpr(0), getRank());
  }

  /// `map` for `count` steps from `first` on.
  AffineMap shift(AffineMap map, int64_t first, int64_t count) {
    SmallVector<AffineExpr> loops;
    for (unsigned loop = 0; loop < extents.size(); ++loop)
      loops.push_back(b.getAffineDimExpr(loop) + (loop == dim ? first : 0));
    return simplifyWithRanges(
        map.replaceDimsAndSymbols(loops, {}, extents.size(), 0),
        getExtents(count));
  }

  Value remember(Value value) {
    made.push_back(value.getDefiningOp<SpyreOpInterface>());
    return value;
  }

  Value copy(Value from, AffineMap fromMap, Value to, AffineMap toMap,
             int64_t count) {
    return remember(createCopyOp(b, loc, IdentityOp::getOperationName(), from,
                                 to, fromMap, toMap, getExtents(count))
                        ->getResult(0));
  }

  /// Scans `count` elements from `first` on, after those whose total is
  /// `before`, if any, and writes them to `result`. `after` is the last one
  /// unless nothing comes after it.
  Value createPart(int64_t first, int64_t count, Value before, Value result,
                   Value *after) {
    Value source = op->getOperand(0);
    AffineMap sourceMap = shift(maps.front(), first, count);
    if (before || getElementTypeOrSelf(source.getType()) != total) {
      source =
          copy(source, sourceMap, createEmpty(count), getTotalsMap(), count);
      sourceMap = getTotalsMap();
    }
    if (before) {
      // Not in place: what is read and written at once is copied as a whole.
      Operation *add =
          createDeviceOp(b, loc, getCombiningOperation(op.getCombiner()),
                         {before, source}, createEmpty(1));
      cast<SpyreOpInterface>(add).setLoopStructure(
          SmallVector<AffineMap>(3, getTotalsMap()), getExtents(1));
      source = copy(remember(add->getResult(0)), getTotalsMap(), source,
                    getTotalsMap(), 1);
    }
    Value totals = isRounded ? createEmpty(count) : result;
    AffineMap written = shift(maps.back(), first, count);
    AffineMap totalsMap = isRounded ? getTotalsMap() : written;
    auto scan = cast<SpyreOpInterface>(b.clone(*op));
    scan->setOperands({source, totals});
    scan->getResult(0).setType(cast<RankedTensorType>(totals.getType()));
    scan.setLoopStructure({sourceMap, totalsMap}, getExtents(count));
    totals = remember(scan->getResult(0));
    if (after)
      *after = copy(totals, shift(totalsMap, count - 1, 1), createEmpty(1),
                    getTotalsMap(), 1);
    return isRounded ? copy(totals, getTotalsMap(), result, written, count)
                     : totals;
  }

  /// Parts of `part` elements that start at `starts`, one after the other.
  Value createParts(ArrayRef<int64_t> starts, int64_t part) {
    Value result = op.getSpyreInit(), total;
    made.clear();
    for (int64_t first : starts)
      result = createPart(first, std::min(part, extents[dim] - first),
                          first == 0 ? Value() : total, result,
                          first == starts.back() ? nullptr : &total);
    return result;
  }

  /// Whether cores can address what the first parts and the last one need;
  /// those between are as the second.
  bool fits(ArrayRef<int64_t> starts, int64_t part) {
    SmallVector<int64_t> some(starts.take_front(2));
    if (starts.size() > 2)
      some.push_back(starts.back());
    createParts(some, part);
    bool isSmall = llvm::all_of(
        made, [&](SpyreOpInterface own) { return countTiles(own) != 0; });
    for (SpyreOpInterface own : llvm::reverse(made)) {
      Operation *init = own.getSpyreInit().getDefiningOp();
      own->erase();
      if (init && init->use_empty() && isa<tensor::EmptyOp>(init))
        init->erase();
    }
    return isSmall;
  }

  SpyreOpInterface op;
  OpBuilder b;
  Location loc;
  SmallVector<AffineMap> maps;
  SmallVector<int64_t> extents;
  /// The loop that is scanned.
  unsigned dim;
  int64_t cores;
  const Target &target;
  const ::spyre::DeviceSpec &spec;
  /// The type of totals, and whether that of the result has fewer bits.
  Type total;
  bool isRounded;
  SmallVector<SpyreOpInterface> made;
};
} // namespace

bool spyre_graph::splitScanForSpans(SpyreOpInterface op, int64_t cores,
                                    const Target &target,
                                    const ::spyre::DeviceSpec &spec) {
  return op.getCombiner() == Combiner::ScanAdd &&
         ScanSplitter(op, cores, target, spec).run();
}
