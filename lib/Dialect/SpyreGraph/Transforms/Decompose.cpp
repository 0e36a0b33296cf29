// SPDX-License-Identifier: Apache-2.0
//===- Decompose.cpp - Composite operations into device ops -----*- C++ -*-===//

#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>
#include <numeric>

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREDECOMPOSE
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}
Type elementOf(Value value) { return typeOf(value).getElementType(); }

/// A tensor or an fp32 immediate.
struct Operand {
  Operand(Value tensor) : tensor(tensor) {}
  Operand(double number) : number(number) {}
  Value tensor;
  double number = 0;
};

/// Builds device operations in place of one composite operation.
class Decomposer {
public:
  explicit Decomposer(func::FuncOp function)
      : function(function), b(function.getContext()), loc(function.getLoc()) {}

  void start(Operation *op) {
    b.setInsertionPoint(op);
    loc = op->getLoc();
  }

  void softmax(SoftmaxOp op);
  void layerNorm(LayerNormOp op);
  void rmsNorm(RmsNormOp op);
  void attention(AttentionOp op);
  void attentionBackward(AttentionBackwardOp op);

private:
  Type f32() { return b.getF32Type(); }
  RankedTensorType tensor(ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  }

  /// An operation to which the caller gives the attributes that it needs.
  template <typename OpTy>
  OpTy create(ValueRange ins, RankedTensorType type) {
    Value init =
        tensor::EmptyOp::create(b, loc, type.getShape(), type.getElementType());
    return OpTy::create(b, loc, ins, init);
  }

  template <typename OpTy>
  Value pointwise(RankedTensorType type, ArrayRef<Operand> operands) {
    SmallVector<Value> ins;
    SmallVector<Attribute> immediates;
    for (const Operand &operand : operands) {
      if (operand.tensor)
        ins.push_back(operand.tensor);
      immediates.push_back(operand.tensor ? Attribute(b.getUnitAttr())
                                          : b.getF32FloatAttr(operand.number));
    }
    auto op = create<OpTy>(ins, type);
    if (ins.size() != operands.size())
      op.setImmediatesAttr(b.getArrayAttr(immediates));
    return op.getResult();
  }

  /// A reduction that keeps the reduced dimensions as 1.
  template <typename OpTy>
  OpTy reduce(ValueRange ins, ArrayRef<int64_t> dims, Type element) {
    SmallVector<int64_t> shape(shapeOf(ins[0]));
    for (int64_t dim : dims)
      shape[dim] = 1;
    auto op = create<OpTy>(ins, tensor(shape, element));
    op.setDims(dims);
    return op;
  }

  /// alpha x (x . y) + bias with one map per operand, over loops `extents`.
  Value contract(Value x, Value y, Value bias, RankedTensorType type,
                 ArrayRef<AffineMap> maps, ArrayRef<int64_t> extents,
                 double alpha) {
    SmallVector<Value> ins{x, y};
    if (bias)
      ins.push_back(bias);
    auto op = create<MatmulOp>(ins, type);
    op.setAlpha(APFloat(alpha));
    op.setHasBias(!!bias);
    op.setLoopStructure(maps, extents);
    return op.getResult();
  }

  AffineMap map(unsigned numLoops, ArrayRef<AffineExpr> results) {
    return AffineMap::get(numLoops, 0, results, b.getContext());
  }
  AffineExpr d(unsigned dim) { return b.getAffineDimExpr(dim); }
  AffineExpr zero() { return b.getAffineConstantExpr(0); }

  Value meanOfSquares(ValueRange ins, ArrayRef<int64_t> dims);
  Value causalBias(Value query, Value key, Type element);
  Value additiveMask(Value mask, Type element);
  Type scoresElement(ArrayRef<int64_t> shape, Type element);
  /// Scores [B, H, L, S] with scale and masks.
  Value scores(Value query, Value key, Value mask, bool causal, double scale);
  /// Keys or values without the heads that repeat others.
  Value withoutRepeats(Value value, int64_t repeats);
  /// [B, Hk x group, 1, N] as [B, Hk, group, N]: heads that share keys as rows.
  Value headsAsRows(Value value, int64_t group);
  /// The reverse: `type` is that of all heads.
  Value rowsAsHeads(Value value, RankedTensorType type);

  func::FuncOp function;
  OpBuilder b;
  Location loc;
  DenseMap<std::tuple<AffineExpr, AffineExpr, Type>, Value> causalBiases;
};

} // namespace

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

// Every step but the last rounds at most once: the exponential is computed
// from the unrounded difference, sums are f32.

void Decomposer::softmax(SoftmaxOp op) {
  Value input = op.getInput();
  RankedTensorType type = typeOf(op.getResult());
  SmallVector<int64_t> dims{static_cast<int64_t>(op.getDim())};
  Value largest = reduce<MaxOp>(input, dims, elementOf(input)).getResult();
  auto exponentials = tensor(type.getShape(), type.getElementType());
  Value result;
  if (op.getLog()) {
    // Only the sum of these is used.
    Value exponential = pointwise<ExpSubOp>(exponentials, {input, largest});
    Value sum = reduce<SumOp>(exponential, dims, f32()).getResult();
    RankedTensorType statistics = typeOf(sum);
    Value logSum = pointwise<LogOp>(statistics, {sum});
    // (input - largest) x 1 x 1 - log(sum), rounded once.
    Value negated = pointwise<NegOp>(statistics, {logSum});
    result = pointwise<LayerNormNormOp>(exponentials,
                                        {input, largest, 1.0, 1.0, negated});
  } else {
    Value exponential = pointwise<ExpSubOp>(exponentials, {input, largest});
    Value sum = reduce<SumOp>(exponential, dims, f32()).getResult();
    result = pointwise<DivOp>(exponentials, {exponential, sum});
  }
  op.getResult().replaceAllUsesWith(result);
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> lastDims(Value value, int64_t count) {
  int64_t rank = shapeOf(value).size();
  return llvm::to_vector(llvm::seq<int64_t>(rank - count, rank));
}

/// The mean of the squares of the first of `ins`, less the second where there
/// are two.
Value Decomposer::meanOfSquares(ValueRange ins, ArrayRef<int64_t> dims) {
  auto op = reduce<SumSquaresOp>(ins, dims, f32());
  double count = 1;
  SmallVector<AffineExpr> sizes = getSizes(ins[0]);
  for (int64_t dim : dims) {
    if (!isa<AffineConstantExpr>(sizes[dim])) {
      // The kernel counts, in each run.
      op.setScale(APFloat(1.0));
      op.setCorrection(APFloat(0.0));
      return op.getResult();
    }
    count *= shapeOf(ins[0])[dim];
  }
  op.setScale(APFloat(1.0 / count));
  return op.getResult();
}

void Decomposer::layerNorm(LayerNormOp op) {
  Value input = op.getInput();
  SmallVector<int64_t> dims = lastDims(input, op.getNumDims());
  Value mean = reduce<MeanOp>(input, dims, f32()).getResult();
  Value variance = meanOfSquares({input, mean}, dims);
  RankedTensorType statistics = typeOf(mean);
  Value shifted =
      pointwise<AddOp>(statistics, {variance, op.getEps().convertToDouble()});
  Value rstd = pointwise<RsqrtOp>(statistics, {shifted});
  op.getMean().replaceAllUsesWith(mean);
  op.getRstd().replaceAllUsesWith(rstd);
  if (op.getResult().use_empty())
    return;
  Operand weight = op.getWeight() ? Operand(op.getWeight()) : Operand(1.0);
  Operand bias = op.getBias() ? Operand(op.getBias()) : Operand(0.0);
  op.getResult().replaceAllUsesWith(pointwise<LayerNormNormOp>(
      typeOf(op.getResult()), {input, mean, rstd, weight, bias}));
}

void Decomposer::rmsNorm(RmsNormOp op) {
  Value input = op.getInput();
  SmallVector<int64_t> dims = lastDims(input, op.getNumDims());
  Value meanSquare = meanOfSquares(input, dims);
  Value shifted = pointwise<AddOp>(typeOf(meanSquare),
                                   {meanSquare, op.getEps().convertToDouble()});
  Value rstd = pointwise<RsqrtOp>(typeOf(shifted), {shifted});
  op.getRstd().replaceAllUsesWith(rstd);
  if (op.getResult().use_empty())
    return;
  Operand weight = op.getWeight() ? Operand(op.getWeight()) : Operand(1.0);
  // With nothing added, a zero keeps its sign.
  op.getResult().replaceAllUsesWith(pointwise<LayerNormNormOp>(
      typeOf(op.getResult()), {input, 0.0, rstd, weight, -0.0}));
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// 0 where a row may see a column, minus infinity elsewhere. Made once per
/// function, before the first use.
Value Decomposer::causalBias(Value query, Value key, Type element) {
  AffineExpr rows = getSizes(query)[2], columns = getSizes(key)[2];
  Value &bias = causalBiases[{rows, columns, element}];
  if (bias)
    return bias;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  auto triangle =
      create<TriOp>({}, tensor({shapeOf(query)[2], shapeOf(key)[2]}, element));
  triangle.setImmediatesAttr(
      b.getF32ArrayAttr(-std::numeric_limits<float>::infinity()));
  triangle.setDiagonal(1);
  triangle.setUpper(true);
  triangle.setLoopExtentMap(makeSizeMap(
      {rows, columns}, getSizeSymbols(function).size(), b.getContext()));
  return bias = triangle.getResult();
}

/// A boolean mask (true: keep) as a number to add to scores.
Value Decomposer::additiveMask(Value mask, Type element) {
  if (!elementOf(mask).isInteger(1))
    return mask;
  return pointwise<WhereOp>(
      tensor(shapeOf(mask), element),
      {mask, 0.0, -std::numeric_limits<double>::infinity()});
}

/// The largest share of the LX of all cores that scores take in fp32. Another
/// quarter is for a copy in other slices, and the rest for what is multiplied.
static constexpr double kScoresShareOfLX = 0.25;

/// What scores are rounded to, of which exponentials are taken: a score of 100
/// in DL16 is off by up to 0.06, and its exponential by 6 %. Larger scores than
/// LX has room for in fp32 have the element type of the query.
Type Decomposer::scoresElement(ArrayRef<int64_t> shape, Type element) {
  constexpr double kBytes = 4;
  ::spyre::DeviceSpec spec = getDeviceSpec(function);
  double bytes = kBytes;
  for (int64_t extent : shape)
    bytes *= static_cast<double>(extent);
  double room = static_cast<double>(spec.numCores * spec.usableLXBytes());
  return bytes <= kScoresShareOfLX * room ? f32() : element;
}

Value Decomposer::scores(Value query, Value key, Value mask, bool causal,
                         double scale) {
  ArrayRef<int64_t> q = shapeOf(query), k = shapeOf(key);
  Type element = elementOf(query);
  SmallVector<int64_t> shape{q[0], q[1], q[2], k[2]};
  Value bias;
  if (mask)
    bias = additiveMask(mask, element);
  if (causal) {
    Value triangle = causalBias(query, key, element);
    if (bias) {
      SmallVector<int64_t> sum(shapeOf(bias));
      while (sum.size() < 2)
        sum.insert(sum.begin(), 1);
      sum[sum.size() - 2] = q[2];
      sum[sum.size() - 1] = k[2];
      bias = pointwise<AddOp>(tensor(sum, element), {bias, triangle});
    } else {
      bias = triangle;
    }
  }
  // Loops: batch, head, row, column, width. Grouped queries share key heads.
  int64_t group = std::max<int64_t>(q[1] / std::max<int64_t>(k[1], 1), 1);
  AffineExpr keyHead = k[1] == 1 ? zero() : d(1).floorDiv(group);
  SmallVector<AffineMap> maps{map(5, {d(0), d(1), d(2), d(4)}),
                              map(5, {d(0), keyHead, d(3), d(4)})};
  if (bias) {
    SmallVector<AffineExpr> exprs;
    unsigned missing = 4 - shapeOf(bias).size();
    for (auto [dim, extent] : llvm::enumerate(shapeOf(bias)))
      exprs.push_back(extent == 1 ? zero() : d(missing + dim));
    maps.push_back(map(5, exprs));
  }
  maps.push_back(map(5, {d(0), d(1), d(2), d(3)}));
  SmallVector<int64_t> extents(shape);
  extents.push_back(q[3]);
  return contract(query, key, bias,
                  tensor(shape, scoresElement(shape, element)), maps, extents,
                  scale);
}

Value Decomposer::headsAsRows(Value value, int64_t group) {
  if (shapeOf(value).size() < 3 || shapeOf(value).drop_back(2).back() == 1)
    return value;
  SmallVector<int64_t> shape(shapeOf(value));
  SmallVector<AffineExpr> exprs;
  unsigned head = shape.size() - 3, row = head + 1;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    exprs.push_back(dim == head  ? d(head) * group + d(row)
                    : dim == row ? zero()
                                 : d(dim));
  shape[head] /= group;
  shape[row] = group;
  return ViewOp::create(b, loc, tensor(shape, elementOf(value)), value,
                        AffineMapAttr::get(map(shape.size(), exprs)));
}

Value Decomposer::rowsAsHeads(Value value, RankedTensorType type) {
  int64_t group = shapeOf(value)[2];
  SmallVector<AffineExpr> exprs{d(0), d(1).floorDiv(group), d(1) % group,
                                type.getRank() > 3 ? d(3) : zero()};
  return ViewOp::create(b, loc, type, value,
                        AffineMapAttr::get(map(type.getRank(), exprs)));
}

/// What a tensor is a view of, through whole copies too, and the map to it.
static std::pair<Value, AffineMap> getViewed(Value value) {
  AffineMap map = AffineMap::getMultiDimIdentityMap(shapeOf(value).size(),
                                                    value.getContext());
  while (true) {
    if (auto view = value.getDefiningOp<ViewOp>()) {
      map = view.getMap().compose(map);
      value = view.getSource();
      continue;
    }
    auto copy = value.getDefiningOp<IdentityOp>();
    if (!copy || !copy.getInit().getDefiningOp<tensor::EmptyOp>() ||
        copy->getOperand(0).getType() != copy.getResult().getType() ||
        !llvm::all_of(copy.getIndexingMaps(),
                      [](AffineMap map) { return map.isIdentity(); }))
      return {value, map};
    value = copy->getOperand(0);
  }
}

/// How many neighbouring heads of keys or values [B, H, S, N] are always one
/// head of what they are a view of: models repeat heads for groups of queries.
static int64_t countRepeats(Value value) {
  AffineMap map = getViewed(value).second;
  ArrayRef<int64_t> shape = shapeOf(value);
  MLIRContext *context = value.getContext();
  auto d = [&](unsigned dim) { return getAffineDimExpr(dim, context); };
  for (int64_t repeats = shape[1]; repeats > 1; --repeats) {
    if (shape[1] % repeats != 0)
      continue;
    AffineMap first = AffineMap::get(
        5, 0, {d(0), d(1) * repeats + d(4), d(2), d(3)}, context);
    AffineMap split =
        simplifyWithRanges(map.compose(first), {shape[0], shape[1] / repeats,
                                                shape[2], shape[3], repeats});
    if (!split.isFunctionOfDim(4))
      return repeats;
  }
  return 1;
}

Value Decomposer::withoutRepeats(Value value, int64_t repeats) {
  if (repeats == 1)
    return value;
  auto [source, toSource] = getViewed(value);
  SmallVector<int64_t> shape(shapeOf(value));
  shape[1] /= repeats;
  AffineMap first = map(4, {d(0), d(1) * repeats, d(2), d(3)});
  return ViewOp::create(
      b, loc, tensor(shape, elementOf(value)), source,
      AffineMapAttr::get(simplifyWithRanges(toSource.compose(first), shape)));
}

/// Whether queries that share a head of keys may be rows of one product, which
/// reads that head once. Rows of several tokens would have to be copied beside
/// each other, and hints name the loops that there are without this.
static bool mayBeRows(AttentionOp op) {
  return shapeOf(op.getQuery())[2] == 1 && shapeOf(op.getKey())[1] > 0 &&
         !op.getCausal() && !op->hasAttr(kHintsAttrName);
}

void Decomposer::attention(AttentionOp op) {
  Value query = op.getQuery(), key = op.getKey(), value = op.getValue(),
        mask = op.getMask();
  RankedTensorType type = typeOf(op.getResult());
  int64_t group = 1;
  if (mayBeRows(op)) {
    int64_t repeats = std::gcd(countRepeats(key), countRepeats(value));
    key = withoutRepeats(key, repeats);
    value = withoutRepeats(value, repeats);
    group = shapeOf(query)[1] / shapeOf(key)[1];
  }
  if (group > 1) {
    query = headsAsRows(query, group);
    mask = mask ? headsAsRows(mask, group) : mask;
    type = tensor(
        {shapeOf(query)[0], shapeOf(query)[1], group, type.getDimSize(3)},
        type.getElementType());
  }
  Value masked =
      scores(query, key, mask, op.getCausal(), op.getScale().convertToDouble());
  ArrayRef<int64_t> q = shapeOf(query), v = shapeOf(value);
  Type element = elementOf(query);
  RankedTensorType scoresType = tensor(shapeOf(masked), element);
  Value largest = reduce<MaxOp>(masked, 3, elementOf(masked)).getResult();
  // Only a mask can hide a whole row (causal rows see column 0), by minus
  // infinity, not by the lowest finite number. PyTorch's
  // fused attention gives zeros there: exp(-inf - finite) over at least a tiny
  // sum. Other rows have a sum of at least 1.
  if (op.getMask())
    largest = pointwise<MaximumOp>(
        typeOf(largest), {largest, getLowestNumber(elementOf(masked))});
  Value exponential = pointwise<ExpSubOp>(scoresType, {masked, largest});
  Value sum = reduce<SumOp>(exponential, 3, f32()).getResult();
  if (op.getMask())
    sum = pointwise<MaximumOp>(typeOf(sum), {sum, 1e-30});
  // The division is linear: do it on the smaller side.
  bool divideLate = v[3] < v[2];
  Value weights = divideLate ? exponential
                             : pointwise<DivOp>(scoresType, {exponential, sum});
  int64_t sharing = std::max<int64_t>(q[1] / std::max<int64_t>(v[1], 1), 1);
  AffineExpr valueHead = v[1] == 1 ? zero() : d(1).floorDiv(sharing);
  SmallVector<int64_t> extents(type.getShape());
  extents.push_back(v[2]);
  // Loops: batch, head, row, value width, column.
  Value result = contract(weights, value, nullptr, type,
                          {map(5, {d(0), d(1), d(2), d(4)}),
                           map(5, {d(0), valueHead, d(4), d(3)}),
                           map(5, {d(0), d(1), d(2), d(3)})},
                          extents, 1.0);
  if (divideLate)
    result = pointwise<DivOp>(type, {result, sum});
  if (group > 1)
    result = rowsAsHeads(result, typeOf(op.getResult()));
  op.getResult().replaceAllUsesWith(result);
  if (op.getLogsumexp().use_empty())
    return;
  RankedTensorType statistics = typeOf(sum);
  Value logSum = pointwise<LogOp>(statistics, {sum});
  Value kept = pointwise<AddOp>(statistics, {logSum, largest});
  AffineMapAttr flatten =
      AffineMapAttr::get(map(3, {d(0), d(1), d(2), zero()}));
  RankedTensorType flatType = typeOf(op.getLogsumexp());
  Value flat = group > 1 ? rowsAsHeads(kept, flatType)
                         : ViewOp::create(b, loc, flatType, kept, flatten);
  op.getLogsumexp().replaceAllUsesWith(flat);
}

void Decomposer::attentionBackward(AttentionBackwardOp op) {
  Value gradient = op.getGradOutput(), query = op.getQuery(), key = op.getKey(),
        value = op.getValue();
  double scale = op.getScale().convertToDouble();
  Value masked = scores(query, key, op.getMask(), op.getCausal(), scale);
  RankedTensorType scoresType = tensor(shapeOf(masked), elementOf(query));
  ArrayRef<int64_t> q = shapeOf(query), k = shapeOf(key), v = shapeOf(value);
  SmallVector<int64_t> rowShape{q[0], q[1], q[2], 1};
  Value rows =
      ViewOp::create(b, loc, tensor(rowShape, f32()), op.getLogsumexp(),
                     AffineMapAttr::get(map(4, {d(0), d(1), d(2)})));
  Value weights = pointwise<ExpSubOp>(scoresType, {masked, rows});

  int64_t group = std::max<int64_t>(q[1] / std::max<int64_t>(k[1], 1), 1);
  auto sharedHead = [&](AffineExpr head) {
    return k[1] == 1 ? zero() : head.floorDiv(group);
  };
  // Loops: batch, key head, column, width (head within the group), row. Sticks
  // lie along the last: a few heads would leave most of each stick empty.
  auto sumOverRows = [&](Value x, Value y, RankedTensorType type,
                         double factor) {
    SmallVector<int64_t> extents(type.getShape());
    if (group > 1)
      extents.push_back(group);
    extents.push_back(q[2]);
    unsigned numLoops = extents.size();
    AffineExpr head = group > 1 ? d(1) * group + d(4) : d(1);
    AffineExpr row = d(numLoops - 1);
    return contract(x, y, nullptr, type,
                    {map(numLoops, {d(0), head, row, d(2)}),
                     map(numLoops, {d(0), head, row, d(3)}),
                     map(numLoops, {d(0), d(1), d(2), d(3)})},
                    extents, factor);
  };
  // The first use of the weights, which take much of LX in other slices.
  if (!op.getGradValue().use_empty())
    op.getGradValue().replaceAllUsesWith(
        sumOverRows(weights, gradient, typeOf(op.getGradValue()), 1.0));
  // Gradient of the weights: gradient . value transposed. Its weighted mean
  // comes off it, which is most of it where one weight is near 1: it is rounded
  // after that.
  Value gradWeights = contract(gradient, value, nullptr, typeOf(masked),
                               {map(5, {d(0), d(1), d(2), d(4)}),
                                map(5, {d(0), sharedHead(d(1)), d(3), d(4)}),
                                map(5, {d(0), d(1), d(2), d(3)})},
                               {q[0], q[1], q[2], k[2], v[3]}, 1.0);
  auto dot = reduce<SumProductsOp>({gradient, op.getOutput()}, 3, f32());
  dot.setScale(APFloat(1.0));
  // (gradWeights - dot) x weights.
  Value gradScores = pointwise<LayerNormNormOp>(
      scoresType, {gradWeights, dot.getResult(), weights, 1.0, 0.0});

  if (!op.getGradQuery().use_empty())
    op.getGradQuery().replaceAllUsesWith(
        contract(gradScores, key, nullptr, typeOf(op.getGradQuery()),
                 {map(5, {d(0), d(1), d(2), d(4)}),
                  map(5, {d(0), sharedHead(d(1)), d(4), d(3)}),
                  map(5, {d(0), d(1), d(2), d(3)})},
                 {q[0], q[1], q[2], q[3], k[2]}, scale));
  if (!op.getGradKey().use_empty())
    op.getGradKey().replaceAllUsesWith(
        sumOverRows(gradScores, query, typeOf(op.getGradKey()), scale));
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct SpyreDecompose : spyre_graph::impl::SpyreDecomposeBase<SpyreDecompose> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (failed(inferSizes(function)))
      return signalPassFailure();
    Decomposer decomposer(function);
    SmallVector<Operation *> composites;
    function.walk([&](Operation *op) {
      if (isa<SoftmaxOp, LayerNormOp, RmsNormOp, AttentionOp,
              AttentionBackwardOp>(op))
        composites.push_back(op);
    });
    for (Operation *op : composites) {
      if (op->use_empty()) {
        op->erase();
        continue;
      }
      decomposer.start(op);
      Operation *before = op->getPrevNode();
      TypeSwitch<Operation *>(op)
          .Case([&](SoftmaxOp op) { decomposer.softmax(op); })
          .Case([&](LayerNormOp op) { decomposer.layerNorm(op); })
          .Case([&](RmsNormOp op) { decomposer.rmsNorm(op); })
          .Case([&](AttentionOp op) { decomposer.attention(op); })
          .Case([&](AttentionBackwardOp op) {
            decomposer.attentionBackward(op);
          });
      // What a user says about the whole holds for its parts.
      if (Attribute hints = op->getAttr(kHintsAttrName))
        for (Operation *part = op->getPrevNode(); part != before;
             part = part->getPrevNode())
          if (isa<SpyreOpInterface>(part))
            part->setAttr(kHintsAttrName, hints);
      op->erase();
    }
    eraseDeadOps(function);
    if (failed(inferSizes(function)))
      return signalPassFailure();
  }

  /// Ops on tensors have no effects: what nobody uses goes, users first.
  static void eraseDeadOps(func::FuncOp function) {
    for (Block &block : function.getBody())
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
        if (op.use_empty() &&
            (isa<ViewOp, tensor::EmptyOp>(op) ||
             (isa<SpyreOpInterface>(op) && op.getNumResults() == 1)))
          op.erase();
  }
};
} // namespace
