// SPDX-License-Identifier: Apache-2.0
//
// Operations that come from SuperDSC bundles: no ATen operator becomes one.
//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHBUNDLEOPS_TD
#define SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHBUNDLEOPS_TD

include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphOpBase.td"

def SpyreGraph_MishOp : SpyreGraph_Unary<"mish", [Published<"mish">],
    "b.mul(x[0], b.tanh(b.softplus(x[0], 1.0, 20.0)))"> {
  let summary = "x tanh(log(1 + exp(x)))";
}
def SpyreGraph_FnmsOp : SpyreGraph_Pointwise<"fnms", [Published<"fnms",
                                                                basis="ours">], [{
    return b.sub(x[2], b.mul(x[0], x[1]));
  }]> { let minOperands = 3; let summary = "x2 - x0 x x1, rounded once"; }

def SpyreGraph_ScaledSumOp
    : SpyreGraph_Reduction<"scaled_sum", [], "Combiner::Add",
                           "return ins[0];", (ins F64Attr:$factor)> {
  let deviceOpName = [{"mean"}];
  let summary = "factor x the sum: a mean by another factor than the count's";
  let epilogue = [{
    (void)ins;
    return b.mul(accumulated, b.constantF32(getFactor().convertToDouble()));
  }];
}
/// To int8: the record has no formula for scaleact and shiftact.
def SpyreGraph_QuantizeOp : SpyreGraph_Pointwise<"quantize",
    [Published<"csqint8ch", [Float<"scaleact", "scale", true>,
                             Float<"shiftact", "shift", true>],
               "Quantization", basis="ours">,
     Published<"csqint8wt", [Float<"scaleact", "scale", true>,
                             Float<"shiftact", "shift", true>],
               "Quantization",
               meaning="as csqint8ch; sticks hold two steps of the reduction",
               basis="ours">], [{
    ::mlir::Value r = b.asFloat(x[0]);
    if (x.size() > 1)
      r = b.mul(r, x[1]);
    if (x.size() > 2)
      r = b.add(r, x[2]);
    if (getScale())
      r = b.mul(r, b.constantF32(getScale()->convertToDouble()));
    if (getShift())
      r = b.add(r, b.constantF32(getShift()->convertToDouble()));
    r = b.roundEven(r);
    return b.minimum(b.maximum(r, b.constantF32(-128.0)), b.constantF32(127.0));
  }], (ins OptionalAttr<F64Attr>:$scale, OptionalAttr<F64Attr>:$shift)> {
  let summary = "x times the second input and scale, plus the third and shift, "
                "rounded to the nearest int8, ties to even";
  let deviceOpName = "detail::getQuantizeName(*this)";
  let maxOperands = 3;
}

/// Bounded and scaled, the scale of a quantised token.
def SpyreGraph_AbsMaxOp
    : SpyreGraph_Reduction<"absmax",
        [Published<"absmax",
                   meaning="the largest magnitude">,
         Published<"quantscalepertoken",
                   [Float<"clipMin", "low", true>,
                    Float<"clipMax", "high", true>,
                    Float<"mulConst", "factor", true>], hasNonstick=false,
                   basis="ours">,
         Published<"quantscalepertokenfp8",
                   [Float<"clipMin", "low">, Float<"clipMax", "high">,
                    Float<"mulConst", "factor">], hasNonstick=false,
                   basis="inferred">],
        "Combiner::Max", [{
    return b.abs(ins[0]);
  }], (ins OptionalAttr<F64Attr>:$low, OptionalAttr<F64Attr>:$high,
           OptionalAttr<F64Attr>:$factor)> {
  let summary = "the largest magnitude, clamped to [low, high], times factor";
  let deviceOpName = [{
    getLow() && getHigh() && getFactor()   ? "quantscalepertokenfp8"
    : getLow() || getHigh() || getFactor() ? "quantscalepertoken"
                                           : "absmax"
  }];
  let maskValue = "0.0"; // Of the magnitudes.
  let epilogue = [{
    (void)ins;
    ::mlir::Value r = accumulated;
    if (getLow())
      r = b.maximum(r, b.constantF32(getLow()->convertToDouble()));
    if (getHigh())
      r = b.minimum(r, b.constantF32(getHigh()->convertToDouble()));
    if (getFactor())
      r = b.mul(r, b.constantF32(getFactor()->convertToDouble()));
    return r;
  }];
}

// Layer norm in parts. Statistics are two lanes, the last dimension of their
// tensor and the operation's last loop.
def SpyreGraph_Exx2Op : SpyreGraph_MappedOp<"exx2"> {
  let summary = "scale x the sums of x squared (lane 0) and of x (lane 1)";
  let description = [{
    With `zero_mean` lane 1 is 0. The reduced loops are those that the init's
    map leaves out.
  }];
  let opArguments = (ins F64Attr:$scale, UnitAttr:$zero_mean);
  defvar constants = [Float<"exx2scale", "scale">,
                      FloatFlag<"useZeroMean", "zero_mean">];
  let deviceNames =
      [Published<"exx2", constants, hasNonstick=false, basis="ours">,
       Published<"exx2_zeromean", constants, hasNonstick=false,
                 attributes="{zero_mean}",
                 meaning="exx2scale x the sum of x squared (lane 0); 0 (lane 1)",
                 basis="ours">];
  let deviceKind = "Reduction";
  let combiner = "Combiner::Add";
  let layoutRule = "LayoutRule::Reduction";
  let loopIndexUse = "return dim + 1 == getLoopExtents().size();";
  let body = [{
    ::mlir::Value sum = getZeroMean() ? b.zeroLike(ins[0]) : ins[0];
    ::mlir::Value lane = loopIndex(getLoopExtents().size() - 1);
    return b.select(isFirst(builder, loc, lane), b.mul(ins[0], ins[0]), sum);
  }];
  let epilogue = [{
    (void)ins;
    return b.mul(accumulated, b.constantF32(getScale().convertToDouble()));
  }];
}
def SpyreGraph_LayerNormScaleOp : SpyreGraph_MappedOp<"layernormscale"> {
  let summary = "scale 1 / sqrt(var + eps) (lane 0) and shift -mean x scale (lane 1)";
  let description = [{
    Inputs: lanes 0 and 1 of what `exx2` gives, as two operands on one tensor.
    The variance is lane 0 minus the square of lane 1, at least 0.
  }];
  let opArguments = (ins F64Attr:$eps);
  let deviceNames = [Published<"layernormscale", [Float<"eps">], minInputs=1,
                               basis="ours">];
  let minOperands = 2;
  let loopIndexUse = "return dim + 1 == getLoopExtents().size();";
  let body = [{
    ::mlir::Value variance = b.maximum(
        b.sub(ins[0], b.mul(ins[1], ins[1])), b.zeroLike(ins[0]));
    ::mlir::Value scale = b.rsqrt(
        b.add(variance, b.constantF32(getEps().convertToDouble())));
    ::mlir::Value lane = loopIndex(getLoopExtents().size() - 1);
    return b.select(isFirst(builder, loc, lane), scale,
                    b.neg(b.mul(ins[1], scale)));
  }];
}
def SpyreGraph_ScaleShiftOp : SpyreGraph_MappedOp<"scale_shift"> {
  let summary = "x scale + shift, times weight, plus bias, rounded once";
  let description = [{
    Inputs: x, lanes 0 and 1 of what `layernormscale` gives, as two operands on
    one tensor, and optionally weight and bias.
  }];
  let deviceNames =
      [Published<"layernormnorm", minInputs=2, maxInputs=5,
                 meaning="x times lane 0 plus lane 1, then times weight and plus "
                         "bias where there are such inputs, rounded once; of five "
                         "inputs the second, what the lanes were made of, is not "
                         "used",
                 basis="ours">];
  let minOperands = 3;
  let maxOperands = 5;
  let body = [{
    ::mlir::Value y = b.add(b.mul(ins[0], ins[1]), ins[2]);
    if (ins.size() > 3)
      y = b.mul(y, ins[3]);
    if (ins.size() > 4)
      y = b.add(y, ins[4]);
    return y;
  }];
}

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHBUNDLEOPS_TD
