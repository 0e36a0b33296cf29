//===- SpanParts.cpp - Operations in parts that cores can address -*- C++ -*-=//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "SpanParts.h"
#include "../Layout/LayoutChoices.h"
#include "Spans.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// A way to run the iterations of an operation: its loops, perhaps taken apart.
struct Loops {
  SmallVector<AffineMap> maps;
  SmallVector<int64_t> extents;
};

/// Looks for ways to replace one operation; what it makes is in `made`.
class SpanSplitter {
public:
  SpanSplitter(SpyreOpInterface op, int64_t cores, const Target &target,
               const ::spyre::DeviceSpec &spec)
      : op(op), b(op), spec(spec), cores({cores, target, /*isInLoop=*/false}) {}

  bool run() {
    if (op->getNumResults() != 1 || op.getWorkDivision() ||
        op->hasAttr(kWorkDivisionHintAttrName) || !isSimple() || countTiles(op))
      return false;
    return peel() || goThroughRow() || cutPeriods() || cutIntoParts() ||
           goInAnotherOrder();
  }

private:
  /// Whether the operation writes each element once, independently of others.
  bool isSimple() {
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    return !op.getInitOffset() &&
           (!indirect || indirect->operand + 1 != op->getNumOperands()) &&
           llvm::all_of(op->getOperands(), [](Value operand) {
             return isa_and_nonnull<LayoutAttr>(getLayout(operand.getType()));
           });
  }

  int64_t countTiles(SpyreOpInterface part) const {
    return countTilesForSpans(part, cores.number, cores.target, spec);
  }

  //===--------------------------------------------------------------------===//
  // Parts of the iterations
  //===--------------------------------------------------------------------===//

  Loops getLoops() { return {op.getIndexingMaps(), op.getLoopExtents()}; }
  unsigned getInitNumber() { return op->getNumOperands() - 1; }

  /// The operation on `extents` iterations from `first` on, which updates
  /// `init`.
  SpyreOpInterface createPart(const Loops &loops, ArrayRef<int64_t> first,
                              ArrayRef<int64_t> extents, Value init) {
    SmallVector<AffineExpr> shifted;
    for (auto [dim, start] : llvm::enumerate(first))
      shifted.push_back(b.getAffineDimExpr(dim) + start);
    SmallVector<AffineMap> maps;
    for (AffineMap map : loops.maps)
      maps.push_back(simplifyWithRanges(
          map.replaceDimsAndSymbols(shifted, {}, extents.size(), 0), extents));
    auto part = cast<SpyreOpInterface>(b.clone(*op));
    // What it updates in place, it finds where the parts before have left it.
    for (unsigned operand = 0; operand < getInitNumber(); ++operand)
      if (op->getOperand(operand) == op.getSpyreInit() &&
          loops.maps[operand] == loops.maps.back())
        part->setOperand(operand, init);
    part->setOperand(getInitNumber(), init);
    part.setLoopStructure(maps, extents);
    return part;
  }

  /// Runs the parts that start at `starts[dim]` one after the other.
  void replaceByParts(const Loops &loops,
                      ArrayRef<SmallVector<int64_t>> starts) {
    SmallVector<size_t> number(starts.size(), 0);
    Value init = op.getSpyreInit();
    for (bool isDone = false; !isDone;) {
      SmallVector<int64_t> first, extents;
      for (auto [dim, own] : llvm::enumerate(starts)) {
        size_t next = number[dim] + 1;
        first.push_back(own[number[dim]]);
        extents.push_back((next < own.size() ? own[next] : loops.extents[dim]) -
                          first.back());
      }
      SpyreOpInterface part = createPart(loops, first, extents, init);
      made.push_back(part);
      init = part->getResult(0);
      isDone = true;
      for (size_t dim = starts.size(); isDone && dim-- > 0;) {
        isDone = ++number[dim] == starts[dim].size();
        if (isDone)
          number[dim] = 0;
      }
    }
    replace(init);
  }

  /// The operation in parts [0, at) and [at, extent) of a loop.
  void cutAt(unsigned dim, int64_t at) {
    Loops loops = getLoops();
    SmallVector<SmallVector<int64_t>> starts(loops.extents.size(), {0});
    starts[dim].push_back(at);
    replaceByParts(loops, starts);
  }

  /// The coefficients of the coordinate along the sticks of the result, if it
  /// is linear.
  std::optional<SmallVector<int64_t>> getWrittenForm(const Loops &loops) {
    auto type = cast<ShapedType>(op.getSpyreInit().getType());
    int64_t stickDim = getLayout(type).getStickDim(type.getShape());
    if (stickDim < 0)
      return std::nullopt;
    return getLinearForm(loops.maps.back().getResult(stickDim),
                         loops.extents.size());
  }
  int64_t getWrittenStickElements() {
    return getStickElements(getLayout(op.getSpyreInit().getType()));
  }

  /// A copy that starts inside a stick can be divided from the next one on.
  bool peel() {
    Loops loops = getLoops();
    std::optional<SmallVector<int64_t>> form = getWrittenForm(loops);
    if (!isCopy(op) || !form)
      return false;
    int64_t stick = getWrittenStickElements(), along = -1;
    for (unsigned dim = 0; dim < loops.extents.size(); ++dim) {
      if (loops.extents[dim] == 1 || (*form)[dim] % stick == 0)
        continue;
      if (along >= 0 || (*form)[dim] != 1)
        return false;
      along = dim;
    }
    int64_t offset = form->back() % stick;
    if (along < 0 || offset == 0 || loops.extents[along] <= stick - offset)
      return false;
    cutAt(along, stick - offset);
    return true;
  }

  /// Rows that are no whole sticks, one after the other: so many together that
  /// they begin and end at sticks can be divided. Takes off those that are left
  /// over.
  bool cutPeriods() {
    Loops loops = getLoops();
    std::optional<SmallVector<int64_t>> form = getWrittenForm(loops);
    if (!isCopy(op) || !form)
      return false;
    int64_t stick = getWrittenStickElements();
    for (unsigned dim = 0; dim < loops.extents.size(); ++dim) {
      int64_t rest = loops.extents[dim] % getPeriod((*form)[dim], stick);
      if ((*form)[dim] <= 1 || rest == 0 || rest == loops.extents[dim])
        continue;
      cutAt(dim, loops.extents[dim] - rest);
      return true;
    }
    return false;
  }

  static int64_t getPeriod(int64_t step, int64_t stick) {
    return step == 0 ? 1 : stick / std::gcd(step, stick);
  }

  /// The loops in which a coordinate is linear that was not, and those over
  /// periods of whole sticks.
  Loops refine() {
    Loops loops = getLoops();
    SmallVector<LayoutAttrInterface> layouts;
    SmallVector<SmallVector<int64_t>> shapes;
    for (Value operand : op->getOperands()) {
      auto type = cast<ShapedType>(operand.getType());
      layouts.push_back(getLayout(type));
      shapes.push_back(llvm::to_vector(type.getShape()));
    }
    if (isa<IdentityOp>(op) || op.getLayoutRule() == LayoutRule::Pointwise)
      if (std::optional<RefinedLoops> refined =
              refineLoops(loops.maps, loops.extents, layouts, shapes))
        loops = {refined->maps, refined->extents};
    std::optional<SmallVector<int64_t>> form = getWrittenForm(loops);
    if (!isCopy(op) || !form)
      return loops;
    Loops result;
    SmallVector<AffineExpr> replacements;
    for (unsigned dim = 0; dim < loops.extents.size(); ++dim) {
      int64_t extent = loops.extents[dim],
              period = getPeriod((*form)[dim], getWrittenStickElements());
      AffineExpr expr = b.getAffineDimExpr(result.extents.size());
      if ((*form)[dim] > 1 && period > 1 && extent > period &&
          extent % period == 0) {
        result.extents.push_back(extent / period);
        extent = period;
        expr = expr * period + b.getAffineDimExpr(result.extents.size());
      }
      result.extents.push_back(extent);
      replacements.push_back(expr);
    }
    for (AffineMap map : loops.maps)
      result.maps.push_back(simplifyWithRanges(
          map.replaceDimsAndSymbols(replacements, {}, result.extents.size(), 0),
          result.extents));
    return result;
  }

  /// The fewest parts along one loop or two that can be divided.
  bool cutIntoParts() {
    Loops loops = refine();
    // What one part needs is as far apart as of another.
    if (!llvm::all_of(loops.maps, isLinear))
      return false;
    SmallVector<int64_t> zeros(loops.extents.size(), 0);
    SpyreOpInterface whole =
        createPart(loops, zeros, loops.extents, op.getSpyreInit());
    SmallVector<unsigned> dims = getDimsToCut(whole);
    SmallVector<int64_t> granularity = getSliceGranularity(whole);
    for (auto [dim, least] : llvm::enumerate(granularity))
      if (least == loops.extents[dim]) // Parts may share sticks, cores not.
        least = getWrittenStickElements();
    OperandSpans spans(whole, spec);
    SmallVector<int64_t> chunks(loops.extents);
    auto setParts = [&](unsigned dim, int64_t count) {
      int64_t units =
          llvm::divideCeilSigned(loops.extents[dim], granularity[dim]);
      if (count > units)
        return false;
      chunks[dim] =
          std::min(llvm::divideCeilSigned(units, count) * granularity[dim],
                   loops.extents[dim]);
      return true;
    };
    auto find = [&] {
      if (loops.extents.size() != op.getLoopExtents().size() &&
          spans.canFit(chunks, cores))
        return true;
      for (int64_t parts = 2; parts <= kMaxSpanParts;
           parts += llvm::divideCeilSigned(parts, 4)) {
        for (unsigned dim : dims) {
          chunks = loops.extents;
          if (setParts(dim, parts) && spans.canFit(chunks, cores))
            return true;
        }
        for (unsigned first : dims)
          for (unsigned second : dims)
            for (int64_t outer = 2; first < second && outer * 2 <= parts;
                 outer *= 2) {
              chunks = loops.extents;
              if (setParts(first, outer) && setParts(second, parts / outer) &&
                  spans.canFit(chunks, cores))
                return true;
            }
      }
      return false;
    };
    bool isFound = find();
    whole->erase();
    if (!isFound)
      return false;
    SmallVector<SmallVector<int64_t>> starts(chunks.size());
    for (auto [dim, chunk] : llvm::enumerate(chunks))
      for (int64_t start = 0; start < loops.extents[dim]; start += chunk)
        starts[dim].push_back(start);
    replaceByParts(loops, starts);
    return true;
  }

  SmallVector<unsigned> getDimsToCut(SpyreOpInterface whole) {
    SmallVector<unsigned> dims;
    SmallVector<int64_t> extents = whole.getLoopExtents();
    AffineMap written = whole.getIndexingMaps().back();
    for (auto [dim, kind] : llvm::enumerate(whole.getLoopKinds()))
      if (extents[dim] > 1 && kind == utils::IteratorType::parallel &&
          written.isFunctionOfDim(dim) && !whole.usesLoopIndex(dim))
        dims.push_back(dim);
    return dims;
  }

  //===--------------------------------------------------------------------===//
  // Over copies
  //===--------------------------------------------------------------------===//

  /// The operation on other inputs.
  SpyreOpInterface createOn(unsigned operand, Value copy, AffineMap map) {
    auto other = cast<SpyreOpInterface>(b.clone(*op));
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    maps[operand] = map;
    other->setOperand(operand, copy);
    other.setLoopStructure(maps, op.getLoopExtents());
    return other;
  }

  /// A copy of an input whose dimensions lie in another order, the stick's as
  /// before, so that both the copy and the operation can be cut.
  bool goInAnotherOrder() {
    int64_t leastTiles = 0;
    unsigned bestOperand = 0;
    LayoutAttr best;
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    for (unsigned operand = 0; operand < getInitNumber(); ++operand) {
      auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
      auto layout = cast<LayoutAttr>(getLayout(type));
      if (getWholeType(op->getOperand(operand)) != type ||
          getSizeInBytes(layout, type.getShape()) <= spec.maxSpanBytes ||
          layout.getSparse() || layout.getPacked() > 1 ||
          (indirect && indirect->operand == operand))
        continue;
      SmallVector<int64_t> order(layout.getOrder());
      auto outer = MutableArrayRef(order).drop_back();
      llvm::sort(outer);
      do {
        auto other = LayoutAttr::get(op->getContext(), order,
                                     type.getElementType(), false);
        if (other == layout)
          continue;
        auto [copy, result] = createOverCopy(operand, other);
        int64_t numTiles = 0;
        if (int64_t ofCopy = countTiles(copy))
          if (int64_t ofResult = countTiles(result))
            numTiles = ofCopy + ofResult;
        erase(result);
        erase(copy);
        if (numTiles == 0 || (best && numTiles >= leastTiles))
          continue;
        best = other;
        bestOperand = operand;
        leastTiles = numTiles;
      } while (std::next_permutation(outer.begin(), outer.end()));
    }
    if (!best)
      return false;
    auto [copy, result] = createOverCopy(bestOperand, best);
    replace(result->getResult(0));
    return true;
  }

  /// A copy of an operand and the operation on it.
  std::pair<SpyreOpInterface, SpyreOpInterface>
  createOverCopy(unsigned operand, LayoutAttr layout) {
    Value source = op->getOperand(operand);
    ArrayRef<int64_t> shape = cast<ShapedType>(source.getType()).getShape();
    Value copy =
        createCopy(b, IdentityOp::getOperationName(), op.getLoc(), source,
                   b.getMultiDimIdentityMap(shape.size()), shape, layout);
    return {copy.getDefiningOp<SpyreOpInterface>(),
            createOn(operand, copy, op.getIndexingMaps()[operand])};
  }

  static bool isLinear(AffineMap map) {
    return llvm::all_of(map.getResults(), [&](AffineExpr expr) {
      return getLinearForm(expr, map.getNumDims());
    });
  }

  /// A copy that reads rows which go on in the next one, as in a reshape, goes
  /// through a tensor of one row: each half has rows of its own.
  bool goThroughRow() {
    if (!isa<IdentityOp>(op) || isLinear(refine().maps[0]))
      return false;
    Value source = op->getOperand(0);
    auto type = cast<RankedTensorType>(source.getType());
    Loops loops = getLoops();
    AffineMap index =
        getLinearIndex(loops.maps[0], type.getShape(), loops.extents);
    if (type.getRank() < 2 || getWholeType(source) != type || !isLinear(index))
      return false;
    SmallVector<int64_t> shape{type.getNumElements()};
    auto rowType = RankedTensorType::get(
        shape, type.getElementType(),
        getStickLayout(type.getElementType(), 1, /*stickDim=*/0));
    AffineMap same = b.getMultiDimIdentityMap(type.getRank());
    Value empty =
        tensor::EmptyOp::create(b, op.getLoc(), rowType, ValueRange());
    SpyreOpInterface copy = createCopyOp(
        b, op.getLoc(), IdentityOp::getOperationName(), source, empty, same,
        getLinearIndex(same, type.getShape(), type.getShape()),
        type.getShape());
    SpyreOpInterface result = createOn(0, copy->getResult(0), index);
    made.assign({copy, result});
    replace(result->getResult(0));
    return true;
  }

  static void erase(SpyreOpInterface made) {
    Operation *init = made.getSpyreInit().getDefiningOp();
    made->erase();
    if (init && init->use_empty() && isa<tensor::EmptyOp>(init))
      init->erase();
  }

  void replace(Value result) {
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }

public:
  /// What has been made of it, which may have to be split again.
  SmallVector<SpyreOpInterface> made;

private:
  SpyreOpInterface op;
  OpBuilder b;
  const ::spyre::DeviceSpec &spec;
  OperandSpans::Cores cores;
};
} // namespace

bool spyre_graph::splitForSpans(SpyreOpInterface op, int64_t cores,
                                const Target &target,
                                const ::spyre::DeviceSpec &spec) {
  SpanSplitter splitter(op, cores, target, spec);
  if (!splitter.run())
    return false;
  for (SpyreOpInterface part : splitter.made)
    splitForSpans(part, cores, target, spec);
  return true;
}
