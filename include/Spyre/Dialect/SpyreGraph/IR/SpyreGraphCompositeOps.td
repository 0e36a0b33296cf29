// SPDX-License-Identifier: Apache-2.0
//
// Composite operations: --spyre-decompose turns them into device operations.
//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHCOMPOSITEOPS_TD
#define SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHCOMPOSITEOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphDialect.td"

class SpyreGraph_Composite<string mnemonic, list<Trait> traits = [Pure]>
    : Op<SpyreGraph_Dialect, mnemonic, traits>;

/// What they compute with. Their parts are device operations, which take static
/// shapes only (SG-OP-C6) and no 8-bit floats (SG-OP-C5); of integers PyTorch
/// defines none of them.
def FloatTensor : StaticShapeTensorOf<[F16, BF16, F32]>;

/// Constraints:
/// - SG-SOFTMAX-C1: `dim` is a dimension of the input.
/// - SG-SOFTMAX-C2: the result has the input's shape.
def SpyreGraph_SoftmaxOp : SpyreGraph_Composite<"softmax"> {
  let summary = "softmax or log_softmax along `dim`";
  let arguments = (ins FloatTensor:$input, I64Attr:$dim, UnitAttr:$log);
  let results = (outs FloatTensor:$result);
  let assemblyFormat =
      "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}
/// Constraints, also of `rms_norm`:
/// - SG-NORM-C1: `num_dims` is 1 to the rank of the input.
/// - SG-NORM-C2: the result has the input's shape.
/// - SG-NORM-C3: weight and bias have the shape of the normalised dimensions.
/// - SG-NORM-C4: statistics are f32 of the input's shape, with the normalised
///   dimensions kept as 1.
def SpyreGraph_LayerNormOp
    : SpyreGraph_Composite<"layer_norm", [Pure, AttrSizedOperandSegments]> {
  let summary = "layer norm over the last `num_dims` dimensions";
  let description = [{
    Results: the normalised tensor and, as f32 with the normalised dimensions
    kept as 1, mean and reciprocal standard deviation.
  }];
  let arguments = (ins FloatTensor:$input,
                       Optional<FloatTensor>:$weight,
                       Optional<FloatTensor>:$bias,
                       I64Attr:$num_dims, F64Attr:$eps);
  let results = (outs FloatTensor:$result, FloatTensor:$mean,
                      FloatTensor:$rstd);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `:` type($weight) `)`)?
    (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict
    `:` type($input) `->` type($result) `,` type($mean) `,` type($rstd)
  }];
  let hasVerifier = 1;
}
def SpyreGraph_RmsNormOp : SpyreGraph_Composite<"rms_norm"> {
  let summary = "rms norm over the last `num_dims` dimensions; rstd as f32";
  let arguments = (ins FloatTensor:$input,
                       Optional<FloatTensor>:$weight,
                       I64Attr:$num_dims, F64Attr:$eps);
  let results = (outs FloatTensor:$result, FloatTensor:$rstd);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `:` type($weight) `)`)? attr-dict
    `:` type($input) `->` type($result) `,` type($rstd)
  }];
  let hasVerifier = 1;
}
/// Constraints beside those below, also of `attention_backward`:
/// - SG-ATTENTION-C3: query, key and value have the shapes that it describes.
/// - SG-ATTENTION-C4: the output and its gradient have the shape [B, H, L, Ev],
///   and the log-sum-exp is f32 [B, H, L].
/// - SG-ATTENTION-C5: the gradients of query, key and value have their shapes.
def SpyreGraph_AttentionOp : SpyreGraph_Composite<"attention"> {
  let summary = "scaled dot-product attention";
  let description = [{
    query [B, H, L, E], key [B, Hk, S, E], value [B, Hk, S, Ev], H a multiple of
    Hk (grouped queries); `mask`, boolean (true: keep) or additive, broadcasts
    to [B, H, L, S]; `causal` keeps s <= l. Results: output [B, H, L, Ev] and
    the log-sum-exp of the scaled scores, f32 [B, H, L].

    Constraints, also of `attention_backward`:
    - SG-ATTENTION-C1: the shape of `mask` broadcasts to [B, H, L, S].
    - SG-ATTENTION-C2: `mask` is of i1, or of floats of more than 8 bits.
  }];
  let arguments = (ins FloatTensor:$query, FloatTensor:$key,
                       FloatTensor:$value, Optional<AnyRankedTensor>:$mask,
                       UnitAttr:$causal, F64Attr:$scale);
  let results = (outs FloatTensor:$result, FloatTensor:$logsumexp);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $mask^ `:` type($mask) `)`)? attr-dict
    `:` type($query) `,` type($key) `,` type($value)
    `->` type($result) `,` type($logsumexp)
  }];
  let extraClassDeclaration = [{
    /// Whether a mask may have elements of `type` (SG-ATTENTION-C2).
    static bool isMaskElementType(::mlir::Type type);
    /// Whether a mask of scores [B, H, L, S] may have this shape
    /// (SG-ATTENTION-C1).
    static bool isMaskShape(::llvm::ArrayRef<int64_t> mask,
                            ::llvm::ArrayRef<int64_t> scores);
  }];
  let hasVerifier = 1;
}

def SpyreGraph_AttentionBackwardOp : SpyreGraph_Composite<"attention_backward"> {
  let summary = "gradients of attention";
  let description = [{
    Operands as in `attention`, its results `output` and `logsumexp`, and the
    gradient of the output. Results: gradients of query, key and value.
  }];
  let arguments = (ins FloatTensor:$grad_output, FloatTensor:$query,
                       FloatTensor:$key, FloatTensor:$value,
                       FloatTensor:$output, FloatTensor:$logsumexp,
                       Optional<AnyRankedTensor>:$mask,
                       UnitAttr:$causal, F64Attr:$scale);
  let results = (outs FloatTensor:$grad_query, FloatTensor:$grad_key,
                      FloatTensor:$grad_value);
  let assemblyFormat = [{
    $grad_output `,` $query `,` $key `,` $value `,` $output `,` $logsumexp
    (`mask` `(` $mask^ `:` type($mask) `)`)? attr-dict
    `:` type($grad_output) `,` type($query) `,` type($key) `,` type($value) `,`
    type($output) `,` type($logsumexp)
    `->` type($grad_query) `,` type($grad_key) `,` type($grad_value)
  }];
  let hasVerifier = 1;
}

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHCOMPOSITEOPS_TD
