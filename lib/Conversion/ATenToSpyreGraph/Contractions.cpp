// SPDX-License-Identifier: Apache-2.0
//===- Contractions.cpp - Matrix products -----------------------*- C++ -*-===//

#include "ATenCall.h"
#include "Builders.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

Value aten::buildMatmul(const ATenCall &c, Value x, Value y, Value bias,
                        RankedTensorType type, double alpha, double beta,
                        ValueRange scales) {
  int64_t rank = type.getRank();
  c.require(rank >= 2 && rankOf(x) >= 2 && rankOf(y) >= 2 &&
                rankOf(x) <= rank && rankOf(y) <= rank &&
                shapeOf(x).back() == shapeOf(y)[rankOf(y) - 2],
            "the operands must be matrices of matching sizes");
  // What is rounded to 8 bits is an operation of its own.
  if (isa<Float8E4M3FNType>(type.getElementType()))
    return c.cast(buildMatmul(c, x, y, bias, type.clone(c.b.getF32Type()),
                              alpha, beta, scales),
                  type.getElementType());
  if (beta == 0.0)
    bias = nullptr;
  SmallVector<NamedAttribute> attrs{
      c.attr("alpha", c.b.getF64FloatAttr(alpha)),
      c.attr("beta", c.b.getF64FloatAttr(bias ? beta : 1.0))};
  Values ins{x, y};
  llvm::append_range(ins, scales);
  if (!scales.empty())
    attrs.push_back(c.attr("num_scales", c.b.getI64IntegerAttr(scales.size())));
  if (bias) {
    ins.push_back(bias);
    attrs.push_back(c.attr("has_bias", c.b.getUnitAttr()));
  }
  return c.device<MatmulOp>(ins, type, attrs);
}

Value aten::buildLinear(const ATenCall &c, Value x, Value weight, Value bias,
                        RankedTensorType type) {
  c.require(rankOf(x) >= 2, "the input has fewer than two dimensions");
  return buildMatmul(c, x, c.transpose(weight), bias, type);
}

Value aten::buildSumProducts(const ATenCall &c, Value x, Value y,
                             ArrayRef<int64_t> dims, RankedTensorType type,
                             double scale) {
  return c.device<SumProductsOp>(
      {x, y}, type,
      {c.attr("dims", c.b.getDenseI64ArrayAttr(dims)),
       c.attr("scale", c.b.getF64FloatAttr(scale))});
}

static Value lowerMatmul(ATenCall &c, StringRef x, StringRef y) {
  c.requireOneType({x, y});
  return buildMatmul(c, c.tensor(x), c.tensor(y), nullptr, c.type());
}

/// alpha or beta, which integer types must have.
static double getFactor(const ATenCall &c, StringRef name) {
  Type element = c.type().getElementType();
  if (!c.has(name) || !isa<IntegerType>(element))
    return c.number(name, 1.0);
  return cast<IntegerAttr>(c.elementNumber(name, element)).getInt();
}

/// beta x self + alpha x (x . y).
static Value lowerAddMatmul(ATenCall &c, StringRef x, StringRef y) {
  c.requireOneType({x, y, "self"});
  return buildMatmul(c, c.tensor(x), c.tensor(y), c.tensor("self"), c.type(),
                     getFactor(c, "alpha"), getFactor(c, "beta"));
}

/// The product of two matrices of float8_e4m3fn, each with one scale or one per
/// row (of the right one, per column): (x . y) x scale_a x scale_b + bias,
/// rounded once. A result of float8_e4m3fn is divided by its own scale.
static Value lowerScaledMatmul(ATenCall &c) {
  Value x = c.tensor("self"), y = c.tensor("mat2");
  c.require(isa<Float8E4M3FNType>(elementOf(x)) &&
                isa<Float8E4M3FNType>(elementOf(y)),
            "both factors must be float8_e4m3fn");
  Value resultScale = c.tensorOrNull("scale_result");
  RankedTensorType type = c.type(), wide = type;
  bool isScaled = resultScale && isa<Float8E4M3FNType>(type.getElementType());
  if (isScaled)
    wide = type.clone(c.b.getF32Type());
  Value product = buildMatmul(c, x, y, c.tensorOrNull("bias"), wide, 1.0, 1.0,
                              {c.tensor("scale_a"), c.tensor("scale_b")});
  if (!isScaled)
    return product;
  return c.cast(c.pointwise<DivOp>(wide, {product, resultScale}),
                type.getElementType());
}

/// The words of a packed weight of 4-bit integers as [k / 8, n]: word (k8, n)
/// holds elements 8 x k8 to 8 x k8 + 7 of row n
/// (docs/internals/quantization.md). `packed` is their shape [n / 8, tiles, 32,
/// words], of which a tile is 32 x words long in k.
static AffineMap getInt4Map(Builder &b, ArrayRef<int64_t> packed) {
  AffineExpr k = b.getAffineDimExpr(0), n = b.getAffineDimExpr(1);
  int64_t lanes = packed[2], words = packed[3], parts = lanes / 8;
  AffineExpr tile = k.floorDiv(parts * words), part = k.floorDiv(words) % parts,
             word = k % words;
  // The third dimension counts columns where there are enough of them: it is
  // that of sticks, as it is of the matrix.
  if (8 * packed[0] % lanes == 0)
    return AffineMap::get(
        2, 0, {n.floorDiv(lanes) * parts + part, tile, n % lanes, word},
        b.getContext());
  return AffineMap::get(2, 0, {n.floorDiv(8), tile, n % 8 * parts + part, word},
                        b.getContext());
}

/// x times the transpose of a weight of 4-bit integers: (number - 8) x scale +
/// zero in groups along the rows.
static Value lowerInt4Matmul(ATenCall &c) {
  Value x = c.tensor("self"), words = c.tensor("mat2"),
        scales = c.tensor("qScaleAndZeros");
  int64_t group = c.integer("qGroupSize");
  ArrayRef<int64_t> packed = shapeOf(words);
  c.require(packed.size() == 4 && packed[2] == 32 &&
                elementOf(words).isInteger(32),
            "the weight must be int32 words [n / 8, tiles, 32, words]");
  int64_t columns = 8 * packed[0], depth = 32 * packed[1] * packed[3];
  c.require(group > 0 && group % 8 == 0 && depth % group == 0 &&
                shapeOf(scales) ==
                    ArrayRef<int64_t>({depth / group, columns, 2}),
            "groups must be multiples of 8 that divide " + Twine(depth) +
                ", with scales and zeros of shape [groups, " + Twine(columns) +
                ", 2]");
  // Loops: groups, words of a group, numbers of a word, columns.
  SmallVector<int64_t> extents{depth / group, group / 8, 8, columns};
  AffineExpr first, word, number, column;
  bindDims(c.b.getContext(), first, word, number, column);
  AffineExpr row = first * (group / 8) + word;
  auto map = [&](ArrayRef<AffineExpr> results) {
    return AffineMap::get(4, 0, results, c.b.getContext());
  };
  AffineExpr zero = c.b.getAffineConstantExpr(0),
             one = c.b.getAffineConstantExpr(1);
  Value rows = c.view(words, getInt4Map(c.b, packed), {depth / 8, columns});
  Value weight = c.mapped<UnpackInt4Op>(
      {rows, scales, scales},
      c.empty(RankedTensorType::get({depth, columns}, elementOf(x))),
      {map({row, column}), map({first, column, zero}),
       map({first, column, one}), map({row * 8 + number, column})},
      extents, {c.attr("dim", c.b.getI64IntegerAttr(2))});
  return buildMatmul(c, x, weight, nullptr, c.type());
}

namespace {

/// The loops of a sum of products of two tensors that are broadcast to each
/// other. Dimensions of extent 1 have no loop, but for the last one that is
/// summed.
struct ProductLoops {
  ProductLoops(const ATenCall &c, Value x, Value y, ArrayRef<int64_t> dims);

  /// From the loops to the coordinates of a tensor whose dimensions are those
  /// of the operands that `numbers` lists.
  AffineMap getMap(Value tensor, ArrayRef<int64_t> numbers) const;

  /// Whether a matrix unit has a use for them: rows, columns and sums.
  bool isMatrixProduct() const {
    return numRows > 0 && numColumns > 0 && numSums > 0;
  }

  MLIRContext *context;
  /// The loop of each dimension of the operands, or -1.
  SmallVector<int64_t> loopOf;
  SmallVector<int64_t> extents;
  /// Dimensions of both operands in the order of the result: those of neither
  /// sum.
  SmallVector<int64_t> kept;
  /// Loops of x alone, of y alone, and of both that are summed.
  unsigned numRows = 0, numColumns = 0, numSums = 0;
};

} // namespace

ProductLoops::ProductLoops(const ATenCall &c, Value x, Value y,
                           ArrayRef<int64_t> dims)
    : context(c.b.getContext()), loopOf(rankOf(x), -1) {
  ArrayRef<int64_t> ofX = shapeOf(x), ofY = shapeOf(y);
  // Batches, rows, columns, and what is summed, as a matmul has them.
  enum Role { Batch, Row, Column, Sum };
  SmallVector<int64_t> ordered[Sum + 1];
  for (int64_t dim = 0; dim < rankOf(x); ++dim) {
    c.require(ofX[dim] == ofY[dim] || ofX[dim] == 1 || ofY[dim] == 1,
              "the operands' shapes do not agree");
    if (llvm::is_contained(dims, dim))
      continue;
    kept.push_back(dim);
    if (ofX[dim] == 1 && ofY[dim] == 1)
      continue;
    ordered[ofX[dim] == 1   ? Column
            : ofY[dim] == 1 ? Row
                            : Batch]
        .push_back(dim);
  }
  for (int64_t dim : dims) {
    bool isInBoth = ofX[dim] != 1 && ofY[dim] != 1;
    if (isInBoth)
      ++numSums;
    if (isInBoth || ofX[dim] != ofY[dim] || dim == dims.back())
      ordered[Sum].push_back(dim);
  }
  numRows = ordered[Row].size();
  numColumns = ordered[Column].size();
  for (ArrayRef<int64_t> group : ordered)
    for (int64_t dim : group) {
      loopOf[dim] = extents.size();
      extents.push_back(ofX[dim] == 1 ? ofY[dim] : ofX[dim]);
    }
}

AffineMap ProductLoops::getMap(Value tensor, ArrayRef<int64_t> numbers) const {
  SmallVector<AffineExpr> results;
  for (auto [dim, extent] : llvm::zip_equal(numbers, shapeOf(tensor)))
    results.push_back(extent == 1 || loopOf[dim] < 0
                          ? getAffineConstantExpr(0, context)
                          : getAffineDimExpr(loopOf[dim], context));
  return AffineMap::get(extents.size(), 0, results, context);
}

/// The sum over some dimensions of the products of two tensors, and a bias. As
/// a matrix product where it is one, unless it is to be `elementwise`.
static Value lowerSumProducts(ATenCall &c) {
  Value x = c.tensor("x"), y = c.tensor("y"), bias = c.tensorOrNull("bias");
  RankedTensorType type = c.type();
  SmallVector<int64_t> dims = c.integers("dims");
  c.require(rankOf(x) == rankOf(y) && elementOf(x) == elementOf(y),
            "the operands must have the same rank and element type");
  llvm::SmallBitVector isSummed(rankOf(x));
  for (int64_t dim : dims) {
    c.require(dim >= 0 && dim < rankOf(x) && !isSummed[dim],
              "dims must be distinct dimensions, counted from 0");
    isSummed.set(dim);
  }
  c.require(!dims.empty(), "there is nothing to sum");
  c.require(
      !bias || (rankOf(bias) == type.getRank() &&
                llvm::all_of(llvm::zip(shapeOf(bias), type.getShape()),
                             [](auto pair) {
                               auto [own, whole] = pair;
                               return own == 1 || own == whole;
                             })),
      "the bias must have the rank of the result, and be broadcast to it");
  ProductLoops loops(c, x, y, dims);
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
  Values ins{x, y};
  SmallVector<AffineMap> maps{loops.getMap(x, all), loops.getMap(y, all)};
  if (loops.isMatrixProduct() && !c.flag("elementwise")) {
    SmallVector<NamedAttribute> attrs;
    if (bias) {
      ins.push_back(bias);
      maps.push_back(loops.getMap(bias, loops.kept));
      attrs.push_back(c.attr("has_bias", c.b.getUnitAttr()));
    }
    Value init = c.empty(type);
    maps.push_back(loops.getMap(init, loops.kept));
    return c.mapped<MatmulOp>(ins, init, maps, loops.extents, attrs);
  }
  bool isExact = bias && isa<FloatType>(type.getElementType());
  Value init = c.empty(isExact ? type.clone(c.b.getF32Type()) : type);
  maps.push_back(loops.getMap(init, loops.kept));
  Value sum =
      c.mapped<SumProductsOp>(ins, init, maps, loops.extents,
                              {c.attr("dims", c.b.getDenseI64ArrayAttr(dims)),
                               c.attr("scale", c.b.getF64FloatAttr(1.0))});
  return bias ? c.pointwise<AddOp>(type, {sum, bias}) : sum;
}

/// torch.matmul of operands with at least two dimensions.
static Value lowerAnyMatmul(ATenCall &c) {
  c.requireOneType({"self", "other"});
  Value x = c.tensor("self"), y = c.tensor("other");
  if (rankOf(x) == 1 && rankOf(y) == 1)
    return buildSumProducts(c, x, y, 0, c.type());
  c.require(rankOf(x) >= 2 && rankOf(y) >= 2,
            "the product of a vector and a batch of matrices is not supported");
  return buildMatmul(c, x, y, nullptr, c.type());
}

void aten::addContractionRows(ATenTable &table) {
  ATenTable::ForAnySize rows(table);
  table.add({"aten.mm.default"}, "self mat2",
            [](ATenCall &c) { return lowerMatmul(c, "self", "mat2"); });
  table.add({"aten.bmm.default"}, "self mat2",
            [](ATenCall &c) { return lowerMatmul(c, "self", "mat2"); });
  table.add({"aten.matmul.default"}, "self other", lowerAnyMatmul);
  table.add({"spyre.sum_products.default"}, "x y dims bias elementwise",
            lowerSumProducts);
  // Of int8 and uint8, too.
  table.add({"aten._int_mm.default"}, "self mat2", [](ATenCall &c) {
    return buildMatmul(c, c.tensor("self"), c.tensor("mat2"), nullptr,
                       c.type());
  });
  table.add({"aten._weight_int8pack_mm.default"}, "self mat2 scales",
            [](ATenCall &c) {
              return buildMatmul(c, c.tensor("self"),
                                 c.transpose(c.tensor("mat2")), nullptr,
                                 c.type(), 1.0, 1.0, c.tensor("scales"));
            });
  table.add({"aten._weight_int4pack_mm.default"},
            "self mat2 qGroupSize qScaleAndZeros", lowerInt4Matmul);
  table.add({"aten._scaled_mm.default"},
            "self mat2 scale_a scale_b bias scale_result out_dtype "
            "use_fast_accum",
            lowerScaledMatmul);
  table.add({"aten.addmm.default"}, "self mat1 mat2 beta alpha",
            [](ATenCall &c) { return lowerAddMatmul(c, "mat1", "mat2"); });
  table.add({"aten.baddbmm.default"}, "self batch1 batch2 beta alpha",
            [](ATenCall &c) { return lowerAddMatmul(c, "batch1", "batch2"); });
  table.add({"aten.linear.default"}, "input weight bias", [](ATenCall &c) {
    c.requireOneType({"input", "weight", "bias"});
    return buildLinear(c, c.tensor("input"), c.tensor("weight"),
                       c.tensorOrNull("bias"), c.type());
  });
  // Matrix times vector has no second dimension for the systolic array.
  table.add({"aten.mv.default"}, "self vec", [](ATenCall &c) {
    c.requireOneType({"self", "vec"});
    return buildSumProducts(c, c.tensor("self"), c.tensor("vec"), 1, c.type());
  });
  table.add({"aten.dot.default", "aten.vdot.default"}, "self tensor",
            [](ATenCall &c) {
              c.requireOneType({"self", "tensor"});
              return buildSumProducts(c, c.tensor("self"), c.tensor("tensor"),
                                      0, c.type());
            });
  table.add({"aten.addmv.default"}, "self mat vec beta alpha", [](ATenCall &c) {
    c.requireOneType({"mat", "vec", "self"});
    double alpha = getFactor(c, "alpha"), beta = getFactor(c, "beta");
    auto product = [&](RankedTensorType type) {
      return buildSumProducts(c, c.tensor("mat"), c.tensor("vec"), 1, type,
                              alpha);
    };
    // With beta 0, self is not read, so that its NaN do not spread.
    if (beta == 0.0)
      return product(c.type());
    if (isa<IntegerType>(c.type().getElementType()))
      return c.pointwise<FmaOp>(
          c.type(), {c.tensor("self"), c.immInt(beta), product(c.type())});
    auto exact = RankedTensorType::get(c.type().getShape(), c.b.getF32Type());
    return c.pointwise<FmaOp>(c.type(),
                              {c.tensor("self"), c.imm(beta), product(exact)});
  });
}
