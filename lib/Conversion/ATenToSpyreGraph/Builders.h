// SPDX-License-Identifier: Apache-2.0
//===- Builders.h - Ops that several rows build -----------------*- C++ -*-===//

#ifndef SPYRE_LIB_CONVERSION_ATENTOSPYREGRAPH_BUILDERS_H
#define SPYRE_LIB_CONVERSION_ATENTOSPYREGRAPH_BUILDERS_H

#include "ATenCall.h"

namespace mlir::spyre_graph::aten {

/// alpha x (x . y) x scales + beta x bias; bias may be null. Scales, of which
/// there are at most two, and bias broadcast.
Value buildMatmul(const ATenCall &c, Value x, Value y, Value bias,
                  RankedTensorType type, double alpha = 1.0, double beta = 1.0,
                  ValueRange scales = {});

/// x [..., k] times weight [n, k] transposed, plus bias [n] (may be null).
Value buildLinear(const ATenCall &c, Value x, Value weight, Value bias,
                  RankedTensorType type);

/// scale x the sum over `dims` of x times y (y broadcasts to x).
Value buildSumProducts(const ATenCall &c, Value x, Value y,
                       ArrayRef<int64_t> dims, RankedTensorType type,
                       double scale = 1.0);

/// The sum of `value` over `dims`, of type `type`.
Value buildSum(const ATenCall &c, Value value, ArrayRef<int64_t> dims,
               RankedTensorType type);

struct LayerNormResults {
  Value result, mean, rstd;
};
/// weight and bias may be null.
LayerNormResults buildLayerNorm(const ATenCall &c, Value input, Value weight,
                                Value bias, int64_t numDims, double eps,
                                RankedTensorType type);

/// Attention of query, key, value [B, H, L, E] (spyre_graph.attention).
struct AttentionResults {
  Value result, logsumexp;
};
AttentionResults buildAttention(const ATenCall &c, Value query, Value key,
                                Value value, Value mask, bool causal,
                                std::optional<double> scale,
                                RankedTensorType type);

} // namespace mlir::spyre_graph::aten

#endif // SPYRE_LIB_CONVERSION_ATENTOSPYREGRAPH_BUILDERS_H
