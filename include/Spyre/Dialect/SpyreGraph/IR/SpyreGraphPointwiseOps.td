// SPDX-License-Identifier: Apache-2.0
//
// Elementwise arithmetic, and its gradients.
//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHPOINTWISEOPS_TD
#define SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHPOINTWISEOPS_TD

include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphOpBase.td"

// Unary.
def SpyreGraph_AbsOp : SpyreGraph_Unary<"abs",
    [Published<"abs">], "b.abs(x[0])">;
def SpyreGraph_NegOp : SpyreGraph_Unary<"neg",
    [Published<"neg">], "b.neg(x[0])">;
def SpyreGraph_ExpOp : SpyreGraph_Unary<"exp",
    [Published<"exp">, Published<"fastexp",
                                 meaning="exp, no faster and no less exact",
                                 basis="inferred">],
    "b.exp(x[0])"> {
  let isLXEligibleInReference = true;
}
def SpyreGraph_Expm1Op : SpyreGraph_Unary<"expm1",
    [Extension<"expm1">], "b.expm1(x[0])">;
def SpyreGraph_LogOp : SpyreGraph_Unary<"log",
    [Published<"log">], "b.log(x[0])">;
def SpyreGraph_Log2Op : SpyreGraph_Unary<"log2",
    [Extension<"log2">], "b.log2(x[0])">;
def SpyreGraph_Log1pOp : SpyreGraph_Unary<"log1p",
    [Extension<"log1p">], "b.log1p(x[0])">;
def SpyreGraph_SqrtOp : SpyreGraph_Unary<"sqrt",
    [Published<"sqrt">], "b.sqrt(x[0])">;
def SpyreGraph_RsqrtOp : SpyreGraph_Unary<"rsqrt",
    [Published<"rsqrt">], "b.rsqrt(x[0])"> {
  let isLXEligibleInReference = true;
}
def SpyreGraph_ReciprocalOp
    : SpyreGraph_Unary<"reciprocal",
        [Published<"reciprocal">], "b.reciprocal(x[0])">;
def SpyreGraph_SquareOp
    : SpyreGraph_Unary<"square", [], "b.mul(x[0], x[0])"> {
  let deviceOpName = [{"mul"}];
}
def SpyreGraph_SinOp : SpyreGraph_Unary<"sin",
    [Extension<"sin">], "b.sin(x[0])">;
def SpyreGraph_CosOp : SpyreGraph_Unary<"cos",
    [Extension<"cos">], "b.cos(x[0])">;
def SpyreGraph_TanOp : SpyreGraph_Unary<"tan",
    [Extension<"tan">], "b.tan(x[0])">;
def SpyreGraph_TanhOp : SpyreGraph_Unary<"tanh",
    [Published<"tanh">], "b.tanh(x[0])">;
def SpyreGraph_ErfOp : SpyreGraph_Unary<"erf",
    [Extension<"erf">], "b.erf(x[0])">;
def SpyreGraph_SigmoidOp : SpyreGraph_Unary<"sigmoid",
    [Published<"sigmoid">, Published<"fastsigmoid",
                                     meaning="sigmoid, no faster and no less exact",
                                     basis="inferred">],
    "b.sigmoid(x[0])">;
def SpyreGraph_ReluOp : SpyreGraph_Unary<"relu",
    [Published<"relufwd", meaning="max(x, 0)">],
    "b.maximum(x[0], b.zeroLike(x[0]))">;
def SpyreGraph_SiluOp : SpyreGraph_Unary<"silu", [Published<"silu">],
    "b.mul(x[0], b.sigmoid(x[0]))">;
def SpyreGraph_GeluOp : SpyreGraph_Unary<"gelu",
    [Published<"gelufwd", basis="inferred">],
    "b.geluErf(x[0])"> { let summary = "gelu by the error function"; }
def SpyreGraph_GeluTanhOp : SpyreGraph_Unary<"gelu_tanh",
    [Extension<"gelutanhfwd">],
    "b.geluTanh(x[0])"> { let summary = "gelu by the tanh approximation"; }
def SpyreGraph_SoftplusOp : SpyreGraph_Pointwise<"softplus",
    [Published<"softplus", [Float<"softplusBeta", "beta">,
                            Float<"softplusThresh", "threshold">],
               meaning="log(1 + exp(beta x)) / beta, x above the threshold">],
    "return b.softplus(x[0], getBeta().convertToDouble(), "
    "getThreshold().convertToDouble());",
    (ins F64Attr:$beta, F64Attr:$threshold)>;
def SpyreGraph_LeakyReluOp : SpyreGraph_Pointwise<"leaky_relu",
    [Published<"leakyrelufwd", [Float<"slope">],
               meaning="x, or slope x for x <= 0; the constant's name is ours",
               basis="inferred">], [{
    return b.select(b.lt(b.zeroLike(x[0]), x[0]), x[0],
                    b.scale(x[0], getSlope().convertToDouble()));
  }], (ins F64Attr:$slope)>;
def SpyreGraph_FloorOp : SpyreGraph_Unary<"floor",
    [Extension<"floor", basis="inferred">], "b.floor(x[0])">;
def SpyreGraph_CeilOp : SpyreGraph_Unary<"ceil",
    [Extension<"ceil">], "b.ceil(x[0])">;
def SpyreGraph_RoundOp
    : SpyreGraph_Unary<"round", [Extension<"round">], "b.roundEven(x[0])">;
def SpyreGraph_TruncOp : SpyreGraph_Unary<"trunc",
    [Extension<"trunc">], "b.trunc(x[0])">;
def SpyreGraph_SignOp : SpyreGraph_Unary<"sign",
    [Extension<"sign">], "b.sign(x[0])">;
def SpyreGraph_MantissaOp : SpyreGraph_Unary<"mantissa",
    [Extension<"mantissa">], "b.mantissa(x[0])"> {
  let summary = "m of x = m 2^e with 0.5 <= |m| < 1; x if it is 0 or not finite";
}
def SpyreGraph_ExponentOp : SpyreGraph_Unary<"exponent",
    [Extension<"exponent">], "b.exponent(x[0])"> {
  let summary = "e of x = m 2^e with 0.5 <= |m| < 1; 0 if x is 0 or not finite";
}
def SpyreGraph_NotOp
    : SpyreGraph_Unary<"logical_not",
        [Extension<"logical_not">], "b.logicalNot(x[0])">;
def SpyreGraph_IsNanOp : SpyreGraph_Unary<"isnan",
    [Extension<"isnan">], "b.isNan(x[0])">;

// Binary. The result of a comparison is i1.
def SpyreGraph_AddOp : SpyreGraph_Binary<"add",
    [Published<"add">, Published<"biasadd">], "b.add(x[0], x[1])"> {
  // On booleans this combines bits, which fp16 arithmetic does not.
  let deviceOpName = [{detail::areBooleans(*this) ? "logical_or" : "add"}];
  let isLXEligibleInReference = true;
}
def SpyreGraph_SubOp : SpyreGraph_Binary<"sub",
    [Published<"sub">, Published<"revsub", swapsInputs=true,
                                 meaning="x1 - x0", basis="ours">],
    "b.sub(x[0], x[1])"> {
  let deviceOpName = [{detail::areBooleans(*this) ? "logical_xor" : "sub"}];
  let isLXEligibleInReference = true;
}
def SpyreGraph_MulOp : SpyreGraph_Binary<"mul",
    [Published<"mul">], "b.mul(x[0], x[1])"> {
  let isLXEligibleInReference = true;
}
def SpyreGraph_DivOp
    : SpyreGraph_Binary<"div", [Published<"realdiv">], "b.div(x[0], x[1])"> {
  let summary = "true division of floating-point values";
}
def SpyreGraph_FloorDivOp
    : SpyreGraph_Binary<"floordiv",
        [Extension<"floordiv">], "b.floorDiv(x[0], x[1])"> {
  let summary = "quotient rounded towards minus infinity";
}
def SpyreGraph_TruncDivOp
    : SpyreGraph_Binary<"truncdiv",
        [Extension<"truncdiv">], "b.truncDiv(x[0], x[1])"> {
  let summary = "quotient rounded towards zero";
}
def SpyreGraph_RemainderOp : SpyreGraph_Binary<"remainder",
    [Extension<"remainder">],
    "b.remainder(x[0], x[1])"> {
  let summary = "Python's modulus: the sign is the divisor's";
}
def SpyreGraph_PowOp : SpyreGraph_Binary<"pow",
    [Extension<"pow">], "b.pow(x[0], x[1])">;
def SpyreGraph_MaximumOp
    : SpyreGraph_Binary<"maximum",
        [Published<"maximum">], "b.maximum(x[0], x[1])">;
def SpyreGraph_MinimumOp
    : SpyreGraph_Binary<"minimum",
        [Published<"minimum">], "b.minimum(x[0], x[1])">;
def SpyreGraph_EqOp : SpyreGraph_Binary<"eq",
    [Published<"equal",
               meaning="1 or 0 in the operands' format">],
    "b.eq(x[0], x[1])">;
def SpyreGraph_NeOp
    : SpyreGraph_Binary<"ne", [Published<"notequal",
                                         meaning="1 or 0 in the operands' format">],
    "b.ne(x[0], x[1])">;
def SpyreGraph_LtOp
    : SpyreGraph_Binary<"lt", [Extension<"lesserthan",
                                         meaning="1 or 0 in the operands' format",
                                         basis="inferred">],
    "b.lt(x[0], x[1])">;
def SpyreGraph_LeOp
    : SpyreGraph_Binary<"le",
        [Published<"lesserequal",
                   meaning="1 or 0 in the operands' format">],
    "b.le(x[0], x[1])">;
def SpyreGraph_GtOp
    : SpyreGraph_Binary<"gt",
        [Extension<"greaterthan",
                   meaning="1 or 0 in the operands' format", basis="inferred">],
    "b.lt(x[1], x[0])">;
def SpyreGraph_GeOp
    : SpyreGraph_Binary<"ge",
        [Published<"greaterequal",
                   meaning="1 or 0 in the operands' format">],
    "b.le(x[1], x[0])">;
def SpyreGraph_AndOp : SpyreGraph_Binary<"logical_and",
    [Extension<"logical_and">], "b.logicalAnd(x[0], x[1])"> {
  let deviceOpName = [{detail::areBooleans(*this) ? "mul" : "logical_and"}];
}
def SpyreGraph_OrOp : SpyreGraph_Binary<"logical_or",
    [Extension<"logical_or">],
    "b.logicalOr(x[0], x[1])">;
def SpyreGraph_XorOp : SpyreGraph_Binary<"logical_xor",
    [Extension<"logical_xor">],
    "b.logicalXor(x[0], x[1])">;
def SpyreGraph_BitwiseAndOp : SpyreGraph_Binary<"bitwise_and",
    [Extension<"bitwise_and">],
    "b.bitAnd(x[0], x[1])">;
def SpyreGraph_BitwiseOrOp : SpyreGraph_Binary<"bitwise_or",
    [Extension<"bitwise_or">],
    "b.bitOr(x[0], x[1])">;
def SpyreGraph_BitwiseXorOp : SpyreGraph_Binary<"bitwise_xor",
    [Extension<"bitwise_xor">],
    "b.bitXor(x[0], x[1])">;
def SpyreGraph_NextAfterOp
    : SpyreGraph_Binary<"nextafter", [Extension<"nextafter">],
        "b.nextAfter(x[0], x[1], getInit().getType())"> {
  let summary = "the number next to x0, of those the init can hold, towards x1";
}

// More operands.
def SpyreGraph_WhereOp : SpyreGraph_Pointwise<"where",
    [Published<"where3">], [{
    b.promote(x[1], x[2]);
    return b.select(b.toBool(x[0]), x[1], x[2]);
  }]> { let minOperands = 3; let summary = "condition, value if true, value if false"; }
def SpyreGraph_ClampOp : SpyreGraph_Pointwise<"clamp",
    [Published<"clip", [Bound<"clipMin", 1>, Bound<"clipMax", 2>], minInputs=1,
               meaning="min(max(x, clipMin), clipMax)">,
     Published<"relu6fwd", minInputs=1,
               attributes="{immediates = [unit, 0.0 : f32, 6.0 : f32]}",
               meaning="min(max(x, 0), 6)">,
     Extension<"clip3",
               meaning="clip by tensors">],
    [{
    // NaN stays NaN; max wins where min > max, as in PyTorch.
    b.promote(x[0], x[1]); b.promote(x[0], x[2]);
    return b.minimum(b.maximum(x[0], x[1]), x[2]);
  }]> {
  let minOperands = 3;
  // Bounds that are not both numbers are operands.
  let deviceOpName = [{detail::hasNumbersAfterFirst(*this) ? "clip" : "clip3"}];
  let summary = "value, lower bound, upper bound";
}
def SpyreGraph_FmaOp : SpyreGraph_Pointwise<"fma",
    [Extension<"fma">, Published<"batchnormfwd", minInputs=3, maxInputs=5,
                                 meaning="x0 x x1 + x2, rounded once; with more inputs an error",
                                 basis="ours">],
    [{
    b.promote(x[0], x[1]); b.promote(x[0], x[2]); b.promote(x[1], x[2]);
    return b.add(b.mul(x[0], x[1]), x[2]);
  }]> { let minOperands = 3; let summary = "x0 x x1 + x2, rounded once (add and sub with alpha, addcmul)"; }
def SpyreGraph_AddCDivOp : SpyreGraph_Pointwise<"addcdiv",
    [Extension<"addcdiv">], [{
    return b.add(x[0], b.mul(x[3], b.div(x[1], x[2])));
  }]> { let minOperands = 4; let summary = "x0 + x3 x x1 / x2, rounded once"; }
def SpyreGraph_ExpSubOp : SpyreGraph_Pointwise<"exp_sub",
    [Extension<"expsub">], [{
    return b.exp(b.sub(x[0], x[1]));
  }]> {
  let minOperands = 2;
  let isLXEligibleInReference = true; // As sub and exp.
  let shiftInput = "getImmediates() ? std::nullopt : std::optional(1u)";
  let summary = "exp(x0 - x1), rounded once (softmax)";
}
def SpyreGraph_WrapIndexOp : SpyreGraph_Pointwise<"wrap_index",
    [Extension<"wrapindex", [Integer<"size", 0>]>], [{
    return b.select(b.lt(x[0], b.zeroLike(x[0])),
                    b.add(x[0], b.constantLike(x[0], getSize())), x[0]);
  }], (ins I64Attr:$size)> {
  let summary = "an index whose negative values count from the end";
}
def SpyreGraph_FlatIndexOp : SpyreGraph_Pointwise<"flat_index",
    [Extension<"flatindex", [Integer<"size", 0>]>], [{
    ::mlir::Value size = b.constantLike(x[1], getSize());
    ::mlir::Value zero = b.zeroLike(x[1]);
    ::mlir::Value own = b.select(b.lt(x[1], zero), b.add(x[1], size), x[1]);
    ::mlir::Value isOutside = b.logicalOr(
        b.lt(x[0], b.zeroLike(x[0])),
        b.logicalOr(b.lt(own, zero), b.le(size, own)));
    ::mlir::Value flat = b.add(b.mul(x[0], size), own);
    return b.select(isOutside, b.constantLike(flat, -1.0), flat);
  }], (ins I64Attr:$size)> {
  let minOperands = 2;
  let summary = "x0 x size + x1, negative x1 counted from the end; -1 if x0 is "
                "negative or x1 outside";
}

def SpyreGraph_LayerNormNormOp
    : SpyreGraph_Pointwise<"layernormnorm", [Extension<"normalize">], [{
    ::mlir::Value y = b.mul(b.sub(x[0], x[1]), x[2]);
    return b.add(b.mul(y, x[3]), x[4]);
  }]> { let minOperands = 5; let summary = "(x - mean) x rstd x weight + bias, rounded once"; }

// Backward of one-element functions, rounded once. The gradient comes first.
def SpyreGraph_ThresholdBackwardOp
    : SpyreGraph_Pointwise<"threshold_backward",
        [Extension<"threshold_backward", [Float<"threshold">]>], [{
    ::mlir::Value zero = b.zeroLike(x[0]);
    ::mlir::Value bound =
        b.constantLike(x[1], getThreshold().convertToDouble());
    return b.select(b.le(x[1], bound), zero, x[0]);
  }], (ins F64Attr:$threshold)> {
  let minOperands = 2; let summary = "gradient where the input exceeds the threshold, else 0";
}
def SpyreGraph_SigmoidBackwardOp
    : SpyreGraph_Pointwise<"sigmoid_backward",
        [Extension<"sigmoid_backward">], [{
    return b.mul(x[0], b.mul(b.sub(b.constantF32(1.0), x[1]), x[1]));
  }]> { let minOperands = 2; let summary = "gradient x (1 - y) x y"; }
def SpyreGraph_TanhBackwardOp
    : SpyreGraph_Pointwise<"tanh_backward", [Extension<"tanh_backward">], [{
    return b.mul(x[0], b.sub(b.constantF32(1.0), b.mul(x[1], x[1])));
  }]> { let minOperands = 2; let summary = "gradient x (1 - y squared)"; }
def SpyreGraph_SiluBackwardOp
    : SpyreGraph_Pointwise<"silu_backward", [Extension<"silu_backward">], [{
    ::mlir::Value s = b.sigmoid(x[1]);
    ::mlir::Value one = b.constantF32(1.0);
    ::mlir::Value inner = b.add(one, b.mul(x[1], b.sub(one, s)));
    return b.mul(x[0], b.mul(s, inner));
  }]> { let minOperands = 2; let summary = "gradient of silu at x1"; }
def SpyreGraph_GeluBackwardOp
    : SpyreGraph_Pointwise<"gelu_backward", [Extension<"gelubwd">], [{
    // Phi(x) + x phi(x).
    ::mlir::Value half = b.constantF32(0.5);
    ::mlir::Value arg = b.mul(x[1], b.constantF32(0.70710678118654752440));
    ::mlir::Value cdf = b.mul(half, b.add(b.constantF32(1.0), b.erf(arg)));
    ::mlir::Value density = b.mul(b.exp(b.neg(b.mul(arg, arg))),
                                  b.constantF32(0.39894228040143267794));
    return b.mul(x[0], b.add(cdf, b.mul(x[1], density)));
  }]> { let minOperands = 2; let summary = "gradient of gelu at x1"; }
def SpyreGraph_GeluTanhBackwardOp
    : SpyreGraph_Pointwise<"gelu_tanh_backward",
        [Extension<"gelutanhbwd">], [{
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
    : SpyreGraph_Pointwise<"softplus_backward",
        [Extension<"softplus_backward", [Float<"softplusBeta", "beta">,
                                         Float<"softplusThresh", "threshold">]>], [{
    ::mlir::Value scaled = b.scale(x[1], getBeta().convertToDouble());
    ::mlir::Value soft = b.mul(x[0], b.sigmoid(scaled));
    return b.select(b.lt(b.constantF32(getThreshold().convertToDouble()), scaled),
                    x[0], soft);
  }], (ins F64Attr:$beta, F64Attr:$threshold)> {
  let minOperands = 2; let summary = "gradient of softplus at x1";
}
def SpyreGraph_LeakyReluBackwardOp
    : SpyreGraph_Pointwise<"leaky_relu_backward",
        [Extension<"leaky_relu_backward", [Float<"slope">]>], [{
    return b.select(b.lt(b.zeroLike(x[1]), x[1]), x[0],
                    b.scale(x[0], getSlope().convertToDouble()));
  }], (ins F64Attr:$slope)> {
  let minOperands = 2; let summary = "gradient of leaky_relu at x1";
}

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHPOINTWISEOPS_TD
