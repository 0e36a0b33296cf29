// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHOPS_TD
#define SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHOPS_TD

include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphOpBase.td"

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

def SpyreGraph_ViewOp : Op<SpyreGraph_Dialect, "view", [Pure]> {
  let summary = "other coordinates for the same elements";
  let description = [{
    Element `i` of the result is element `map(i)` of the source. A view costs
    nothing: layout propagation folds it into the index maps of its users. Any
    strided PyTorch view is one (transposes, slices, expansions, reshapes of
    dense storage, overlapping windows).

    Constraints:
    - SG-VIEW-C1: the map has the result's rank as dimensions, no symbols and
      the source's rank as results.
    - SG-VIEW-C2: source and result have the same element type.
    - SG-VIEW-C3: no coordinate leaves the source.
  }];
  let arguments = (ins AnyRankedTensor:$source, AffineMapAttr:$map);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$source `,` $map attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

//===----------------------------------------------------------------------===//
// Device operations
//===----------------------------------------------------------------------===//

// Data movement and conversion.
def SpyreGraph_IdentityOp : SpyreGraph_Unary<"identity", "identity", 1, "x[0]"> {
  let summary = "copy, converting the element type where they differ";
}
def SpyreGraph_RestickifyOp
    : SpyreGraph_Unary<"restickify", "ReStickifyOpHBM", 1, "x[0]"> {
  let summary = "copy into a layout with another stick dimension";
  let layoutRule = "LayoutRule::Any";
}
def SpyreGraph_ReshardOp : SpyreGraph_DeviceOp<"reshard"> {
  let summary = "copy between the cores' LX into other slices";
  let description = [{
    Operations that divide one tensor differently can hand it on in LX all the
    same: `source_division` says which core holds which part of the input,
    `division` which core gets which part of the init. Parts travel over the
    ring; device memory is not touched. A loop that no map uses tells apart
    cores that get the same part.

    Constraints:
    - SG-RESHARD-C1: one input, whose type is the init's.
    - SG-RESHARD-C2: both operands have the same map, made of distinct loop
      dimensions, one per coordinate.
    - SG-RESHARD-C3: `source_division` is a division of the loops
      (SG-DIVISION-C1, C2, C4) that splits only those that the maps use: each
      part comes from one core.
  }];
  let opArguments = (ins SpyreGraph_WorkDivisionAttr:$source_division);
  let layoutRule = "LayoutRule::Any";
  let accessDivision =
      "return operand == 0 ? getSourceDivisionAttr() : getDivisionAttr();";
  let check = "return detail::verifyReshard(*this, getSourceDivision());";
}
def SpyreGraph_FillOp : SpyreGraph_Unary<"fill", "constant", 1, "x[0]"> {
  let summary = "fill with an immediate";
}
def SpyreGraph_IotaOp : SpyreGraph_Pointwise<"iota", "iota", 1, [{
    return b.add(b.mul(b.fromIndex(loopIndex(getDim()), getInit()),
                       b.constantLike(getInit(), getStep())),
                 b.constantLike(getInit(), getStart()));
  }], (ins I64Attr:$dim, TypedAttrInterface:$start, TypedAttrInterface:$step)> {
  let check = [{
    if (::mlir::failed(detail::verifyPointwise(*this)))
      return ::mlir::failure();
    return detail::verifyLoopDim(*this, getDim());
  }];
  let loopIndexUse = "return static_cast<int64_t>(dim) == getDim();";
  let minOperands = 0; let summary = "start + step x index along a loop dimension";
}
def SpyreGraph_TriOp : SpyreGraph_Pointwise<"tri", "tri", 1, [{
    unsigned rank = getLoopExtents().size();
    ::mlir::Value row = loopIndex(rank - 2), column = loopIndex(rank - 1);
    ::mlir::Value keep = b.triangle(row, column, getDiagonal(), getUpper());
    return b.select(keep, x[0], b.zeroLike(x[0]));
  }], (ins I64Attr:$diagonal, UnitAttr:$upper)> {
  let check = [{
    if (::mlir::failed(detail::verifyPointwise(*this)))
      return ::mlir::failure();
    // The last two loop dimensions are the triangle's rows and columns.
    return detail::verifyLoopDim(*this, 1);
  }];
  let loopIndexUse = "return dim + 2 >= getLoopExtents().size();";
  let summary = "keep one triangle of the last two loop dimensions";
}

// Unary.
def SpyreGraph_AbsOp : SpyreGraph_Unary<"abs", "abs", 1, "b.abs(x[0])">;
def SpyreGraph_NegOp : SpyreGraph_Unary<"neg", "neg", 1, "b.neg(x[0])">;
def SpyreGraph_ExpOp : SpyreGraph_Unary<"exp", "exp", 4, "b.exp(x[0])"> {
  let isLXEligibleInReference = true;
}
def SpyreGraph_Expm1Op : SpyreGraph_Unary<"expm1", "expm1", 4, "b.expm1(x[0])">;
def SpyreGraph_LogOp : SpyreGraph_Unary<"log", "log", 4, "b.log(x[0])">;
def SpyreGraph_Log2Op : SpyreGraph_Unary<"log2", "log2", 4, "b.log2(x[0])">;
def SpyreGraph_Log1pOp : SpyreGraph_Unary<"log1p", "log1p", 4, "b.log1p(x[0])">;
def SpyreGraph_SqrtOp : SpyreGraph_Unary<"sqrt", "sqrt", 4, "b.sqrt(x[0])">;
def SpyreGraph_RsqrtOp : SpyreGraph_Unary<"rsqrt", "rsqrt", 4, "b.rsqrt(x[0])"> {
  let isLXEligibleInReference = true;
}
def SpyreGraph_ReciprocalOp
    : SpyreGraph_Unary<"reciprocal", "reciprocal", 4, "b.reciprocal(x[0])">;
def SpyreGraph_SquareOp
    : SpyreGraph_Unary<"square", "mul", 1, "b.mul(x[0], x[0])">;
def SpyreGraph_SinOp : SpyreGraph_Unary<"sin", "sin", 4, "b.sin(x[0])">;
def SpyreGraph_CosOp : SpyreGraph_Unary<"cos", "cos", 4, "b.cos(x[0])">;
def SpyreGraph_TanOp : SpyreGraph_Unary<"tan", "tan", 4, "b.tan(x[0])">;
def SpyreGraph_TanhOp : SpyreGraph_Unary<"tanh", "tanh", 4, "b.tanh(x[0])">;
def SpyreGraph_ErfOp : SpyreGraph_Unary<"erf", "erf", 4, "b.erf(x[0])">;
def SpyreGraph_SigmoidOp
    : SpyreGraph_Unary<"sigmoid", "sigmoid", 4, "b.sigmoid(x[0])">;
def SpyreGraph_ReluOp : SpyreGraph_Unary<"relu", "relufwd", 1,
    "b.maximum(x[0], b.zeroLike(x[0]))">;
def SpyreGraph_SiluOp : SpyreGraph_Unary<"silu", "silu", 4,
    "b.mul(x[0], b.sigmoid(x[0]))">;
def SpyreGraph_GeluOp : SpyreGraph_Unary<"gelu", "gelufwd", 4,
    "b.geluErf(x[0])"> { let summary = "gelu by the error function"; }
def SpyreGraph_GeluTanhOp : SpyreGraph_Unary<"gelu_tanh", "gelutanhfwd", 4,
    "b.geluTanh(x[0])"> { let summary = "gelu by the tanh approximation"; }
def SpyreGraph_SoftplusOp : SpyreGraph_Pointwise<"softplus", "softplus", 4,
    "return b.softplus(x[0], getBeta().convertToDouble(), "
    "getThreshold().convertToDouble());",
    (ins F64Attr:$beta, F64Attr:$threshold)>;
def SpyreGraph_LeakyReluOp : SpyreGraph_Pointwise<"leaky_relu", "leakyrelufwd", 1, [{
    return b.select(b.lt(b.zeroLike(x[0]), x[0]), x[0],
                    b.scale(x[0], getSlope().convertToDouble()));
  }], (ins F64Attr:$slope)>;
def SpyreGraph_FloorOp : SpyreGraph_Unary<"floor", "floor", 1, "b.floor(x[0])">;
def SpyreGraph_CeilOp : SpyreGraph_Unary<"ceil", "ceil", 1, "b.ceil(x[0])">;
def SpyreGraph_RoundOp
    : SpyreGraph_Unary<"round", "round", 1, "b.roundEven(x[0])">;
def SpyreGraph_TruncOp : SpyreGraph_Unary<"trunc", "trunc", 1, "b.trunc(x[0])">;
def SpyreGraph_SignOp : SpyreGraph_Unary<"sign", "sign", 1, "b.sign(x[0])">;
def SpyreGraph_NotOp
    : SpyreGraph_Unary<"logical_not", "logical_not", 1, "b.logicalNot(x[0])">;
def SpyreGraph_IsNanOp : SpyreGraph_Unary<"isnan", "isnan", 1, "b.isNan(x[0])">;

// Binary. The result of a comparison is i1.
def SpyreGraph_AddOp : SpyreGraph_Binary<"add", "add", 1, "b.add(x[0], x[1])"> {
  let isLXEligibleInReference = true;
}
def SpyreGraph_SubOp : SpyreGraph_Binary<"sub", "sub", 1, "b.sub(x[0], x[1])"> {
  let isLXEligibleInReference = true;
}
def SpyreGraph_MulOp : SpyreGraph_Binary<"mul", "mul", 1, "b.mul(x[0], x[1])"> {
  let isLXEligibleInReference = true;
}
def SpyreGraph_DivOp
    : SpyreGraph_Binary<"div", "realdiv", 4, "b.div(x[0], x[1])"> {
  let summary = "true division of floating-point values";
}
def SpyreGraph_FloorDivOp
    : SpyreGraph_Binary<"floordiv", "floordiv", 4, "b.floorDiv(x[0], x[1])"> {
  let summary = "quotient rounded towards minus infinity";
}
def SpyreGraph_TruncDivOp
    : SpyreGraph_Binary<"truncdiv", "truncdiv", 4, "b.truncDiv(x[0], x[1])"> {
  let summary = "quotient rounded towards zero";
}
def SpyreGraph_RemainderOp : SpyreGraph_Binary<"remainder", "remainder", 4,
    "b.remainder(x[0], x[1])"> {
  let summary = "Python's modulus: the sign is the divisor's";
}
def SpyreGraph_PowOp : SpyreGraph_Binary<"pow", "pow", 8, "b.pow(x[0], x[1])">;
def SpyreGraph_MaximumOp
    : SpyreGraph_Binary<"maximum", "maximum", 1, "b.maximum(x[0], x[1])">;
def SpyreGraph_MinimumOp
    : SpyreGraph_Binary<"minimum", "minimum", 1, "b.minimum(x[0], x[1])">;
def SpyreGraph_EqOp : SpyreGraph_Binary<"eq", "equal", 1, "b.eq(x[0], x[1])">;
def SpyreGraph_NeOp
    : SpyreGraph_Binary<"ne", "notequal", 1, "b.ne(x[0], x[1])">;
def SpyreGraph_LtOp
    : SpyreGraph_Binary<"lt", "lesserthan", 1, "b.lt(x[0], x[1])">;
def SpyreGraph_LeOp
    : SpyreGraph_Binary<"le", "lesserequal", 1, "b.le(x[0], x[1])">;
def SpyreGraph_GtOp
    : SpyreGraph_Binary<"gt", "greaterthan", 1, "b.lt(x[1], x[0])">;
def SpyreGraph_GeOp
    : SpyreGraph_Binary<"ge", "greaterequal", 1, "b.le(x[1], x[0])">;
def SpyreGraph_AndOp : SpyreGraph_Binary<"logical_and", "mul", 1,
    "b.logicalAnd(x[0], x[1])">;
def SpyreGraph_OrOp : SpyreGraph_Binary<"logical_or", "logical_or", 1,
    "b.logicalOr(x[0], x[1])">;
def SpyreGraph_XorOp : SpyreGraph_Binary<"logical_xor", "logical_xor", 1,
    "b.logicalXor(x[0], x[1])">;
def SpyreGraph_BitwiseAndOp : SpyreGraph_Binary<"bitwise_and", "bitwise_and", 1,
    "b.bitAnd(x[0], x[1])">;
def SpyreGraph_BitwiseOrOp : SpyreGraph_Binary<"bitwise_or", "bitwise_or", 1,
    "b.bitOr(x[0], x[1])">;
def SpyreGraph_BitwiseXorOp : SpyreGraph_Binary<"bitwise_xor", "bitwise_xor", 1,
    "b.bitXor(x[0], x[1])">;

// More operands.
def SpyreGraph_WhereOp : SpyreGraph_Pointwise<"where", "where3", 1, [{
    b.promote(x[1], x[2]);
    return b.select(b.toBool(x[0]), x[1], x[2]);
  }]> { let minOperands = 3; let summary = "condition, value if true, value if false"; }
def SpyreGraph_ClampOp : SpyreGraph_Pointwise<"clamp", "clip", 1, [{
    // NaN stays NaN; max wins where min > max, as in PyTorch.
    b.promote(x[0], x[1]); b.promote(x[0], x[2]);
    return b.minimum(b.maximum(x[0], x[1]), x[2]);
  }]> { let minOperands = 3; let summary = "value, lower bound, upper bound"; }
def SpyreGraph_FmaOp : SpyreGraph_Pointwise<"fma", "fma", 1, [{
    b.promote(x[0], x[1]); b.promote(x[0], x[2]); b.promote(x[1], x[2]);
    return b.add(b.mul(x[0], x[1]), x[2]);
  }]> { let minOperands = 3; let summary = "x0 x x1 + x2, rounded once (add and sub with alpha, addcmul)"; }
def SpyreGraph_AddCDivOp : SpyreGraph_Pointwise<"addcdiv", "addcdiv", 4, [{
    return b.add(x[0], b.mul(x[3], b.div(x[1], x[2])));
  }]> { let minOperands = 4; let summary = "x0 + x3 x x1 / x2, rounded once"; }
def SpyreGraph_ExpSubOp : SpyreGraph_Pointwise<"exp_sub", "expsub", 4, [{
    return b.exp(b.sub(x[0], x[1]));
  }]> {
  let minOperands = 2;
  let isLXEligibleInReference = true; // As sub and exp.
  let shiftInput = "getImmediates() ? std::nullopt : std::optional(1u)";
  let summary = "exp(x0 - x1), rounded once (softmax)";
}
def SpyreGraph_WrapIndexOp : SpyreGraph_Pointwise<"wrap_index", "wrapindex", 1, [{
    return b.select(b.lt(x[0], b.zeroLike(x[0])),
                    b.add(x[0], b.constantLike(x[0], getSize())), x[0]);
  }], (ins I64Attr:$size)> {
  let summary = "an index whose negative values count from the end";
}

def SpyreGraph_LayerNormNormOp
    : SpyreGraph_Pointwise<"layernormnorm", "normalize", 4, [{
    ::mlir::Value y = b.mul(b.sub(x[0], x[1]), x[2]);
    return b.add(b.mul(y, x[3]), x[4]);
  }]> { let minOperands = 5; let summary = "(x - mean) x rstd x weight + bias, rounded once"; }

// Backward of one-element functions, rounded once. The gradient comes first.
def SpyreGraph_ThresholdBackwardOp
    : SpyreGraph_Pointwise<"threshold_backward", "threshold_backward", 1, [{
    ::mlir::Value zero = b.zeroLike(x[0]);
    ::mlir::Value bound =
        b.constantLike(x[1], getThreshold().convertToDouble());
    return b.select(b.le(x[1], bound), zero, x[0]);
  }], (ins F64Attr:$threshold)> {
  let minOperands = 2; let summary = "gradient where the input exceeds the threshold, else 0";
}
def SpyreGraph_SigmoidBackwardOp
    : SpyreGraph_Pointwise<"sigmoid_backward", "sigmoid_backward", 1, [{
    return b.mul(x[0], b.mul(b.sub(b.constantF32(1.0), x[1]), x[1]));
  }]> { let minOperands = 2; let summary = "gradient x (1 - y) x y"; }
def SpyreGraph_TanhBackwardOp
    : SpyreGraph_Pointwise<"tanh_backward", "tanh_backward", 1, [{
    return b.mul(x[0], b.sub(b.constantF32(1.0), b.mul(x[1], x[1])));
  }]> { let minOperands = 2; let summary = "gradient x (1 - y squared)"; }
def SpyreGraph_SiluBackwardOp
    : SpyreGraph_Pointwise<"silu_backward", "silu_backward", 4, [{
    ::mlir::Value s = b.sigmoid(x[1]);
    ::mlir::Value one = b.constantF32(1.0);
    ::mlir::Value inner = b.add(one, b.mul(x[1], b.sub(one, s)));
    return b.mul(x[0], b.mul(s, inner));
  }]> { let minOperands = 2; let summary = "gradient of silu at x1"; }
def SpyreGraph_GeluBackwardOp
    : SpyreGraph_Pointwise<"gelu_backward", "gelubwd", 8, [{
    // Phi(x) + x phi(x).
    ::mlir::Value half = b.constantF32(0.5);
    ::mlir::Value arg = b.mul(x[1], b.constantF32(0.70710678118654752440));
    ::mlir::Value cdf = b.mul(half, b.add(b.constantF32(1.0), b.erf(arg)));
    ::mlir::Value density = b.mul(b.exp(b.neg(b.mul(arg, arg))),
                                  b.constantF32(0.39894228040143267794));
    return b.mul(x[0], b.add(cdf, b.mul(x[1], density)));
  }]> { let minOperands = 2; let summary = "gradient of gelu at x1"; }
def SpyreGraph_GeluTanhBackwardOp
    : SpyreGraph_Pointwise<"gelu_tanh_backward", "gelutanhbwd", 8, [{
    // gelu is x s(w) with w = 2 k (x + c x^3), s the sigmoid.
    ::mlir::Value one = b.constantF32(1.0);
    ::mlir::Value square = b.mul(x[1], x[1]);
    ::mlir::Value k = b.constantF32(1.5957691216057307117);
    ::mlir::Value w = b.mul(k, b.mul(x[1],
        b.add(one, b.mul(square, b.constantF32(0.044715)))));
    ::mlir::Value slope = b.mul(k,
        b.add(one, b.mul(square, b.constantF32(0.134145))));
    ::mlir::Value s = b.sigmoid(w);
    ::mlir::Value inner = b.mul(b.mul(x[1], b.sub(one, s)), slope);
    return b.mul(x[0], b.mul(s, b.add(one, inner)));
  }]> { let minOperands = 2; let summary = "gradient of gelu by the tanh approximation at x1"; }
def SpyreGraph_SoftplusBackwardOp
    : SpyreGraph_Pointwise<"softplus_backward", "softplus_backward", 4, [{
    ::mlir::Value scaled = b.scale(x[1], getBeta().convertToDouble());
    ::mlir::Value soft = b.mul(x[0], b.sigmoid(scaled));
    return b.select(b.lt(b.constantF32(getThreshold().convertToDouble()), scaled),
                    x[0], soft);
  }], (ins F64Attr:$beta, F64Attr:$threshold)> {
  let minOperands = 2; let summary = "gradient of softplus at x1";
}
def SpyreGraph_LeakyReluBackwardOp
    : SpyreGraph_Pointwise<"leaky_relu_backward", "leaky_relu_backward", 1, [{
    return b.select(b.lt(b.zeroLike(x[1]), x[1]), x[0],
                    b.scale(x[0], getSlope().convertToDouble()));
  }], (ins F64Attr:$slope)> {
  let minOperands = 2; let summary = "gradient of leaky_relu at x1";
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

def SpyreGraph_SumOp : SpyreGraph_Reduction<"sum", "sum", "Combiner::Add"> {
  let emptyResult = "0.0";
  let isRescalable = true;
  let isLXEligibleInReference = true;
}
def SpyreGraph_MeanOp : SpyreGraph_Reduction<"mean", "mean", "Combiner::Add"> {
  let isLXEligibleInReference = true;
  let epilogue = [{
    (void)ins;
    return b.mul(accumulated, b.constantF32(detail::getMeanScale(*this)));
  }];
}
/// Sum of squared distances from a mean, times `scale`: var without rounding
/// the squares. Inputs: x, mean (broadcast).
def SpyreGraph_SumSquaresOp
    : SpyreGraph_Reduction<"sum_squares", "sumsquares", "Combiner::Add", [{
    ::mlir::Value d = ins.size() == 2 ? b.sub(ins[0], ins[1]) : ins[0];
    return b.mul(d, d);
  }], (ins F64Attr:$scale)> {
  let minOperands = 1; let maxOperands = 2; let summary = "scale x the sum of (x - mean) squared; mean is optional";
  let epilogue = [{
    (void)ins;
    return b.mul(accumulated, b.constantF32(getScale().convertToDouble()));
  }];
}
/// A contraction without a second output dimension, which the systolic array
/// has no use for.
def SpyreGraph_SumProductsOp
    : SpyreGraph_Reduction<"sum_products", "sumproducts", "Combiner::Add", [{
    return b.product(ins[0], ins[1]);
  }], (ins F64Attr:$scale)> {
  let minOperands = 2; let summary = "scale x the sum of x0 x x1";
  let emptyResult = "0.0";
  let isRescalable = true;
  let epilogue = [{
    (void)ins;
    return b.scale(accumulated, getScale().convertToDouble());
  }];
}
def SpyreGraph_ProdOp : SpyreGraph_Reduction<"prod", "prod", "Combiner::Mul"> {
  let emptyResult = "1.0";
}
def SpyreGraph_MaxOp : SpyreGraph_Reduction<"max", "max", "Combiner::Max"> {
  let isLXEligibleInReference = true;
}
def SpyreGraph_MinOp : SpyreGraph_Reduction<"min", "min", "Combiner::Min">;
def SpyreGraph_AnyOp
    : SpyreGraph_Reduction<"any", "any", "Combiner::Or", "return b.toBool(ins[0]);"> {
  let emptyResult = "0.0";
}
def SpyreGraph_AllOp
    : SpyreGraph_Reduction<"all", "all", "Combiner::And", "return b.toBool(ins[0]);"> {
  let emptyResult = "1.0";
}
def SpyreGraph_ArgMaxOp
    : SpyreGraph_Reduction<"argmax", "argmax", "Combiner::ArgMax"> {
  let summary = "row-major index over the reduced dimensions of the first maximum";
}
def SpyreGraph_ArgMinOp
    : SpyreGraph_Reduction<"argmin", "argmin", "Combiner::ArgMin"> {
  let summary = "row-major index over the reduced dimensions of the first minimum";
}

def SpyreGraph_TopKOp : SpyreGraph_MappedOp<"topk"> {
  let summary = "the k largest elements along a loop, or their indices";
  let description = [{
    The loops that the input's map has and the init's has not are searched; the
    one that only the init's has counts the results, the largest first. Of equal
    elements the first comes first, and NaN before all numbers.
  }];
  let opArguments = (ins UnitAttr:$indices);
  let deviceOpName = "topkvalue";
  let combiner = "Combiner::ArgMax";
  let layoutRule = "LayoutRule::Reduction";
  let kinds = [{
    ::llvm::SmallVector<::mlir::AffineMap> maps = getIndexingMaps();
    ::llvm::SmallVector<::mlir::utils::IteratorType> kinds;
    for (unsigned dim = 0; dim < maps.back().getNumDims(); ++dim)
      kinds.push_back(maps.back().isFunctionOfDim(dim) &&
                              maps.front().isFunctionOfDim(dim)
                          ? ::mlir::utils::IteratorType::parallel
                          : ::mlir::utils::IteratorType::reduction);
    return kinds;
  }];
}

class SpyreGraph_Scan<string mnemonic, string comb>
    : SpyreGraph_DeviceOp<mnemonic> {
  let opArguments = (ins I64Attr:$dim);
  let combiner = comb;
  let layoutRule = "LayoutRule::Scan";
  let check = [{
    if (::mlir::failed(detail::verifyPointwise(*this)))
      return ::mlir::failure();
    return detail::verifyLoopDim(*this, getDim());
  }];
  let kinds = [{
    ::llvm::SmallVector<::mlir::utils::IteratorType> kinds(
        getLoopExtents().size(), ::mlir::utils::IteratorType::parallel);
    kinds[getDim()] = ::mlir::utils::IteratorType::reduction;
    return kinds;
  }];
  let summary = "inclusive scan along the loop dimension `dim`";
}
def SpyreGraph_CumSumOp : SpyreGraph_Scan<"cumsum", "Combiner::ScanAdd">;

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

def SpyreGraph_MatmulOp : SpyreGraph_DeviceOp<"matmul"> {
  let summary = "alpha x (x . y) + beta x bias, rounded once";
  let description = [{
    Inputs x [batch..., m, k], y [batch..., k, n] and, where
    `has_bias`, bias broadcast to [batch..., m, n]. Loop dimensions in default
    form: batch..., m, n, k.

    Constraints:
    - SG-MATMUL-C1: two inputs, three with `has_bias`.
    - SG-MATMUL-C2: without `maps`, batch, m, n, k agree.
  }];
  let opArguments = (ins DefaultValuedAttr<F64Attr, "1.0">:$alpha,
                         DefaultValuedAttr<F64Attr, "1.0">:$beta,
                         UnitAttr:$has_bias);
  let deviceOpName = "batchmatmul";
  let emptyResult = "0.0";
  let isRescalable = true;
  let unit = "Unit::PT";
  let combiner = "Combiner::Add";
  let layoutRule = "LayoutRule::Matmul";
  let body = "return b.product(ins[0], ins[1]);";
  let numEpilogueInputs = "getHasBias() ? 1 : 0";
  let epilogue = [{
    ::mlir::Value r = b.scale(accumulated, getAlpha().convertToDouble());
    if (!ins.empty())
      r = b.add(r, b.scale(ins[0], getBeta().convertToDouble()));
    return r;
  }];
  let defaultLoops = "detail::getMatmulLoops(*this)";
  let minOperands = 2;
  let maxOperands = 3;
  let check = "return detail::verifyMatmul(*this, getHasBias());";
}

//===----------------------------------------------------------------------===//
// Indirect access
//===----------------------------------------------------------------------===//

def SpyreGraph_GatherOp : SpyreGraph_DeviceOp<"gather"> {
  let summary = "read one dimension of a table through indices";
  let description = [{
    Inputs table and index. The table's coordinate along `axis` is the index
    element (its map has the constant 0 there). In default form the init has
    the index's dimensions in place of `axis` (embedding, index_select).
    An index outside the table is an error when the program runs.

    Constraints:
    - SG-GATHER-C1: the index has an integer element type.
    - SG-GATHER-C2: `axis` is a dimension of the table and its map's result
      there is the constant 0.
  }];
  let opArguments = (ins I64Attr:$axis);
  let layoutRule = "LayoutRule::Gather";
  let defaultLoops = "detail::getGatherLoops(*this, getAxis())";
  let minOperands = 2;
  let check = "return detail::verifyGather(*this);";
  let indirect = "return IndirectAccess{0, 1, getAxis()};";
}

def SpyreGraph_ScatterOp : SpyreGraph_DeviceOp<"scatter"> {
  let summary = "write one dimension of the init through indices";
  let description = [{
    Inputs source and index. The init's coordinate along `axis` is the index
    element; the last of several writes to one element wins, in loop order. In
    default form the loops are the source's dimensions and the index has the
    one dimension `axis` (index_copy).

    Constraints:
    - SG-SCATTER-C1: the index has an integer element type.
    - SG-SCATTER-C2: `axis` is a dimension of the init and its map's result
      there is the constant 0.
  }];
  let opArguments = (ins I64Attr:$axis);
  let layoutRule = "LayoutRule::Scatter";
  let defaultLoops = "detail::getScatterLoops(*this, getAxis())";
  let minOperands = 2;
  let check = "return detail::verifyScatter(*this);";
  // The init is operand 2.
  let indirect = "return IndirectAccess{2, 1, getAxis()};";
}

//===----------------------------------------------------------------------===//
// Composite operations: --spyre-decompose turns them into device operations
//===----------------------------------------------------------------------===//

class SpyreGraph_Composite<string mnemonic, list<Trait> traits = [Pure]>
    : Op<SpyreGraph_Dialect, mnemonic, traits>;

def SpyreGraph_SoftmaxOp : SpyreGraph_Composite<"softmax"> {
  let summary = "softmax or log_softmax along `dim`";
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim, UnitAttr:$log);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}
def SpyreGraph_LayerNormOp
    : SpyreGraph_Composite<"layer_norm", [Pure, AttrSizedOperandSegments]> {
  let summary = "layer norm over the last `num_dims` dimensions";
  let description = [{
    Results: the normalised tensor and, as f32 with the normalised dimensions
    kept as 1, mean and reciprocal standard deviation.
  }];
  let arguments = (ins AnyRankedTensor:$input,
                       Optional<AnyRankedTensor>:$weight,
                       Optional<AnyRankedTensor>:$bias,
                       I64Attr:$num_dims, F64Attr:$eps);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$mean,
                      AnyRankedTensor:$rstd);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `:` type($weight) `)`)?
    (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict
    `:` type($input) `->` type($result) `,` type($mean) `,` type($rstd)
  }];
  let hasVerifier = 1;
}
def SpyreGraph_RmsNormOp : SpyreGraph_Composite<"rms_norm"> {
  let summary = "rms norm over the last `num_dims` dimensions; rstd as f32";
  let arguments = (ins AnyRankedTensor:$input,
                       Optional<AnyRankedTensor>:$weight,
                       I64Attr:$num_dims, F64Attr:$eps);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$rstd);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `:` type($weight) `)`)? attr-dict
    `:` type($input) `->` type($result) `,` type($rstd)
  }];
  let hasVerifier = 1;
}
def SpyreGraph_AttentionOp : SpyreGraph_Composite<"attention"> {
  let summary = "scaled dot-product attention";
  let description = [{
    query [B, H, L, E], key [B, Hk, S, E], value [B, Hk, S, Ev], H a multiple of
    Hk (grouped queries); `mask`, boolean (true: keep) or additive, broadcasts
    to [B, H, L, S]; `causal` keeps s <= l. Results: output [B, H, L, Ev] and
    the log-sum-exp of the scaled scores, f32 [B, H, L].
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key,
                       AnyRankedTensor:$value, Optional<AnyRankedTensor>:$mask,
                       UnitAttr:$causal, F64Attr:$scale);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$logsumexp);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $mask^ `:` type($mask) `)`)? attr-dict
    `:` type($query) `,` type($key) `,` type($value)
    `->` type($result) `,` type($logsumexp)
  }];
  let hasVerifier = 1;
}

def SpyreGraph_AttentionBackwardOp : SpyreGraph_Composite<"attention_backward"> {
  let summary = "gradients of attention";
  let description = [{
    Operands as in `attention`, its results `output` and `logsumexp`, and the
    gradient of the output. Results: gradients of query, key and value.
  }];
  let arguments = (ins AnyRankedTensor:$grad_output, AnyRankedTensor:$query,
                       AnyRankedTensor:$key, AnyRankedTensor:$value,
                       AnyRankedTensor:$output, AnyRankedTensor:$logsumexp,
                       Optional<AnyRankedTensor>:$mask,
                       UnitAttr:$causal, F64Attr:$scale);
  let results = (outs AnyRankedTensor:$grad_query, AnyRankedTensor:$grad_key,
                      AnyRankedTensor:$grad_value);
  let assemblyFormat = [{
    $grad_output `,` $query `,` $key `,` $value `,` $output `,` $logsumexp
    (`mask` `(` $mask^ `:` type($mask) `)`)? attr-dict
    `:` type($grad_output) `,` type($query) `,` type($key) `,` type($value) `,`
    type($output) `,` type($logsumexp)
    `->` type($grad_query) `,` type($grad_key) `,` type($grad_value)
  }];
  let hasVerifier = 1;
}

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHOPS_TD
