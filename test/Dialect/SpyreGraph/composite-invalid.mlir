// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --verify-diagnostics

func.func @softmax_dim(%x: tensor<4x8xf16>) {
  // SG-SOFTMAX-C1
  // expected-error @+1 {{dim 2 is not a dimension of 'tensor<4x8xf16>'}}
  %0 = spyre_graph.softmax %x {dim = 2 : i64} : tensor<4x8xf16> -> tensor<4x8xf16>
  return
}

// -----

func.func @softmax_shape(%x: tensor<4x8xf16>) {
  // SG-SOFTMAX-C2
  // expected-error @+1 {{result shape must be the input's, but found 'tensor<4x1xf16>'}}
  %0 = spyre_graph.softmax %x {dim = 1 : i64} : tensor<4x8xf16> -> tensor<4x1xf16>
  return
}

// -----

func.func @layer_norm_weight(%x: tensor<4x8xf16>, %w: tensor<4xf16>) {
  // SG-NORM-C3
  // expected-error @+1 {{weight and bias must have the normalised shape, but found 'tensor<4xf16>'}}
  %0, %1, %2 = spyre_graph.layer_norm %x weight(%w : tensor<4xf16>) {num_dims = 1 : i64, eps = 1.0e-5 : f64}
    : tensor<4x8xf16> -> tensor<4x8xf16>, tensor<4x1xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @layer_norm_statistics(%x: tensor<4x8xf16>) {
  // SG-NORM-C4
  // expected-error @+1 {{statistics must be f32 with the normalised dimensions kept as 1, but found 'tensor<4x1xf16>'}}
  %0, %1, %2 = spyre_graph.layer_norm %x {num_dims = 1 : i64, eps = 1.0e-5 : f64}
    : tensor<4x8xf16> -> tensor<4x8xf16>, tensor<4x1xf16>, tensor<4x1xf32>
  return
}

// -----

func.func @rms_norm_dims(%x: tensor<4x8xf16>) {
  // SG-NORM-C1
  // expected-error @+1 {{cannot normalize 3 dimensions}}
  %0, %1 = spyre_graph.rms_norm %x {num_dims = 3 : i64, eps = 1.0e-5 : f64} : tensor<4x8xf16> -> tensor<4x8xf16>, tensor<4x1xf32>
  return
}

// -----

func.func @rms_norm_shape(%x: tensor<4x8xf16>) {
  // SG-NORM-C2
  // expected-error @+1 {{result shape must be the input's}}
  %0, %1 = spyre_graph.rms_norm %x {num_dims = 1 : i64, eps = 1.0e-5 : f64} : tensor<4x8xf16> -> tensor<8x4xf16>, tensor<4x1xf32>
  return
}

// -----

func.func @attention_heads(%q: tensor<1x3x4x8xf16>, %k: tensor<1x2x4x8xf16>) {
  // SG-ATTENTION-C3
  // expected-error @+1 {{3 query heads are not a multiple of 2 key and 2 value heads}}
  %0, %1 = spyre_graph.attention %q, %k, %k {scale = 1.0 : f64}
    : tensor<1x3x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x3x4x8xf16>, tensor<1x3x4xf32>
  return
}

// -----

func.func @attention_logsumexp(%q: tensor<1x2x4x8xf16>) {
  // SG-ATTENTION-C4
  // expected-error @+1 {{logsumexp must be f32 of the first three result dimensions, but is 'tensor<1x2x4xf16>'}}
  %0, %1 = spyre_graph.attention %q, %q, %q {scale = 1.0 : f64}
    : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>, tensor<1x2x4xf16>
  return
}

// -----

func.func @attention_backward_gradient(%q: tensor<1x2x4x8xf16>, %g: tensor<1x2x4x9xf16>, %l: tensor<1x2x4xf32>) {
  // SG-ATTENTION-C4
  // expected-error @+1 {{output and its gradient must have shape [1, 2, 4, 8], but found 'tensor<1x2x4x9xf16>'}}
  %0:3 = spyre_graph.attention_backward %g, %q, %q, %q, %q, %l {scale = 1.0 : f64}
    : tensor<1x2x4x9xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4xf32>
    -> tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
  return
}

// -----

func.func @attention_backward_logsumexp(%q: tensor<1x2x4x8xf16>, %l: tensor<1x2x4xf16>) {
  // SG-ATTENTION-C4
  // expected-error @+1 {{logsumexp must be f32 of the first three output dimensions, but is 'tensor<1x2x4xf16>'}}
  %0:3 = spyre_graph.attention_backward %q, %q, %q, %q, %q, %l {scale = 1.0 : f64}
    : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4xf16>
    -> tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
  return
}

// -----

func.func @attention_mask_rank(%q: tensor<1x4x4x8xf16>, %m: tensor<1x1x1x4x4xf16>) {
  // SG-ATTENTION-C1
  // expected-error @+1 {{mask must broadcast to the scores [1, 4, 4, 4], but is 'tensor<1x1x1x4x4xf16>'}}
  %0, %1 = spyre_graph.attention %q, %q, %q mask(%m : tensor<1x1x1x4x4xf16>) {scale = 1.0 : f64}
    : tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16> -> tensor<1x4x4x8xf16>, tensor<1x4x4xf32>
  return
}

// -----

func.func @attention_mask_larger(%q: tensor<1x4x4x8xf16>, %m: tensor<7x9xf16>) {
  // SG-ATTENTION-C1
  // expected-error @+1 {{mask must broadcast to the scores [1, 4, 4, 4], but is 'tensor<7x9xf16>'}}
  %0, %1 = spyre_graph.attention %q, %q, %q mask(%m : tensor<7x9xf16>) {scale = 1.0 : f64}
    : tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16> -> tensor<1x4x4x8xf16>, tensor<1x4x4xf32>
  return
}

// -----

func.func @attention_mask_heads(%q: tensor<1x4x4x8xf16>, %m: tensor<3x4x4xf16>) {
  // SG-ATTENTION-C1
  // expected-error @+1 {{mask must broadcast to the scores [1, 4, 4, 4], but is 'tensor<3x4x4xf16>'}}
  %0, %1 = spyre_graph.attention %q, %q, %q mask(%m : tensor<3x4x4xf16>) {scale = 1.0 : f64}
    : tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16> -> tensor<1x4x4x8xf16>, tensor<1x4x4xf32>
  return
}

// -----

func.func @attention_mask_dynamic(%q: tensor<1x4x4x8xf16>, %m: tensor<?x4xf16>) {
  // SG-ATTENTION-C1
  // expected-error @+1 {{mask must broadcast to the scores [1, 4, 4, 4], but is 'tensor<?x4xf16>'}}
  %0, %1 = spyre_graph.attention %q, %q, %q mask(%m : tensor<?x4xf16>) {scale = 1.0 : f64}
    : tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16> -> tensor<1x4x4x8xf16>, tensor<1x4x4xf32>
  return
}

// -----

func.func @attention_mask_integers(%q: tensor<1x4x4x8xf16>, %m: tensor<4x4xi64>) {
  // SG-ATTENTION-C2
  // expected-error @+1 {{mask must be of i1, or of floats of more than 8 bits, but is 'tensor<4x4xi64>'}}
  %0, %1 = spyre_graph.attention %q, %q, %q mask(%m : tensor<4x4xi64>) {scale = 1.0 : f64}
    : tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16> -> tensor<1x4x4x8xf16>, tensor<1x4x4xf32>
  return
}

// -----

func.func @attention_mask_float8(%q: tensor<1x4x4x8xf16>, %m: tensor<4x4xf8E4M3FN>) {
  // SG-ATTENTION-C2
  // expected-error @+1 {{mask must be of i1, or of floats of more than 8 bits, but is 'tensor<4x4xf8E4M3FN>'}}
  %0, %1 = spyre_graph.attention %q, %q, %q mask(%m : tensor<4x4xf8E4M3FN>) {scale = 1.0 : f64}
    : tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16> -> tensor<1x4x4x8xf16>, tensor<1x4x4xf32>
  return
}

// -----

func.func @attention_backward_mask_rank(%q: tensor<1x4x4x8xf16>, %l: tensor<1x4x4xf32>, %m: tensor<2x1x1x4x4xi1>) {
  // SG-ATTENTION-C1
  // expected-error @+1 {{mask must broadcast to the scores [1, 4, 4, 4], but is 'tensor<2x1x1x4x4xi1>'}}
  %0:3 = spyre_graph.attention_backward %q, %q, %q, %q, %q, %l mask(%m : tensor<2x1x1x4x4xi1>) {scale = 1.0 : f64}
    : tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4xf32>
    -> tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>
  return
}

// -----

func.func @attention_backward_mask_integers(%q: tensor<1x4x4x8xf16>, %l: tensor<1x4x4xf32>, %m: tensor<4x4xi8>) {
  // SG-ATTENTION-C2
  // expected-error @+1 {{mask must be of i1, or of floats of more than 8 bits, but is 'tensor<4x4xi8>'}}
  %0:3 = spyre_graph.attention_backward %q, %q, %q, %q, %q, %l mask(%m : tensor<4x4xi8>) {scale = 1.0 : f64}
    : tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4xf32>
    -> tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>
  return
}

// -----

func.func @layer_norm_shape(%x: tensor<4x8xf16>) {
  // SG-NORM-C2
  // expected-error @+1 {{result shape must be the input's, but found 'tensor<8xf16>'}}
  %0, %1, %2 = spyre_graph.layer_norm %x {num_dims = 1 : i64, eps = 1.0e-5 : f64}
    : tensor<4x8xf16> -> tensor<8xf16>, tensor<4x1xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @attention_rank(%q: tensor<4x4x8xf16>) {
  // SG-ATTENTION-C3
  // expected-error @+1 {{query, key and value must have rank 4, but are 'tensor<4x4x8xf16>'}}
  %0, %1 = spyre_graph.attention %q, %q, %q {scale = 1.0 : f64}
    : tensor<4x4x8xf16>, tensor<4x4x8xf16>, tensor<4x4x8xf16> -> tensor<4x4x8xf16>, tensor<4x4xf32>
  return
}

// -----

func.func @attention_batch(%q: tensor<2x4x4x8xf16>, %k: tensor<1x4x4x8xf16>) {
  // SG-ATTENTION-C3
  // expected-error @+1 {{query, key and value must have one batch size}}
  %0, %1 = spyre_graph.attention %q, %k, %k {scale = 1.0 : f64}
    : tensor<2x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16> -> tensor<2x4x4x8xf16>, tensor<2x4x4xf32>
  return
}

// -----

func.func @attention_keys(%q: tensor<1x4x4x8xf16>, %k: tensor<1x4x4x8xf16>, %v: tensor<1x4x5x8xf16>) {
  // SG-ATTENTION-C3
  // expected-error @+1 {{shapes 'tensor<1x4x4x8xf16>', 'tensor<1x4x4x8xf16>', 'tensor<1x4x5x8xf16>' do not agree}}
  %0, %1 = spyre_graph.attention %q, %k, %v {scale = 1.0 : f64}
    : tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x5x8xf16> -> tensor<1x4x4x8xf16>, tensor<1x4x4xf32>
  return
}

// -----

func.func @attention_result(%q: tensor<1x4x4x8xf16>, %v: tensor<1x4x4x9xf16>) {
  // SG-ATTENTION-C4
  // expected-error @+1 {{result must have shape [1, 4, 4, 9], but is 'tensor<1x4x4x8xf16>'}}
  %0, %1 = spyre_graph.attention %q, %q, %v {scale = 1.0 : f64}
    : tensor<1x4x4x8xf16>, tensor<1x4x4x8xf16>, tensor<1x4x4x9xf16> -> tensor<1x4x4x8xf16>, tensor<1x4x4xf32>
  return
}

// -----

func.func @attention_backward_results(%q: tensor<1x2x4x8xf16>, %l: tensor<1x2x4xf32>) {
  // SG-ATTENTION-C5
  // expected-error @+1 {{gradients must have the shapes of query, key and value}}
  %0:3 = spyre_graph.attention_backward %q, %q, %q, %q, %q, %l {scale = 1.0 : f64}
    : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4xf32>
    -> tensor<1x2x4x8xf16>, tensor<1x2x8x4xf16>, tensor<1x2x4x8xf16>
  return
}

// -----

func.func @softmax_of_scalar(%x: tensor<f16>) {
  // SG-SOFTMAX-C1
  // expected-error @+1 {{dim 0 is not a dimension of 'tensor<f16>'}}
  %0 = spyre_graph.softmax %x {dim = 0 : i64} : tensor<f16> -> tensor<f16>
  return
}

// -----

func.func @softmax_dynamic(%x: tensor<?x8xf16>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<?x8xf16>'}}
  %0 = spyre_graph.softmax %x {dim = 1 : i64} : tensor<?x8xf16> -> tensor<?x8xf16>
  return
}

// -----

func.func @softmax_integers(%x: tensor<4x8xi64>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<4x8xi64>'}}
  %0 = spyre_graph.softmax %x {dim = 1 : i64} : tensor<4x8xi64> -> tensor<4x8xf32>
  return
}

// -----

func.func @layer_norm_dims(%x: tensor<4x8xf16>) {
  // SG-NORM-C1
  // expected-error @+1 {{cannot normalize 0 dimensions of 'tensor<4x8xf16>'}}
  %0, %1, %2 = spyre_graph.layer_norm %x {num_dims = 0 : i64, eps = 1.0e-5 : f64}
    : tensor<4x8xf16> -> tensor<4x8xf16>, tensor<4x1xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @layer_norm_bias(%x: tensor<4x8xf16>, %b: tensor<4x8xf16>) {
  // SG-NORM-C3
  // expected-error @+1 {{weight and bias must have the normalised shape, but found 'tensor<4x8xf16>'}}
  %0, %1, %2 = spyre_graph.layer_norm %x bias(%b : tensor<4x8xf16>) {num_dims = 1 : i64, eps = 1.0e-5 : f64}
    : tensor<4x8xf16> -> tensor<4x8xf16>, tensor<4x1xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @layer_norm_rstd(%x: tensor<4x8xf16>) {
  // SG-NORM-C4
  // expected-error @+1 {{statistics must be f32 with the normalised dimensions kept as 1, but found 'tensor<4xf32>'}}
  %0, %1, %2 = spyre_graph.layer_norm %x {num_dims = 1 : i64, eps = 1.0e-5 : f64}
    : tensor<4x8xf16> -> tensor<4x8xf16>, tensor<4x1xf32>, tensor<4xf32>
  return
}

// -----

func.func @layer_norm_weight_integers(%x: tensor<4x8xf16>, %w: tensor<8xi32>) {
  // expected-error @+1 {{operand #1 must be statically shaped tensor of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<8xi32>'}}
  %0, %1, %2 = spyre_graph.layer_norm %x weight(%w : tensor<8xi32>) {num_dims = 1 : i64, eps = 1.0e-5 : f64}
    : tensor<4x8xf16> -> tensor<4x8xf16>, tensor<4x1xf32>, tensor<4x1xf32>
  return
}

// -----

func.func @rms_norm_weight(%x: tensor<4x8xf16>, %w: tensor<4xf16>) {
  // SG-NORM-C3
  // expected-error @+1 {{weight and bias must have the normalised shape, but found 'tensor<4xf16>'}}
  %0, %1 = spyre_graph.rms_norm %x weight(%w : tensor<4xf16>) {num_dims = 1 : i64, eps = 1.0e-5 : f64}
    : tensor<4x8xf16> -> tensor<4x8xf16>, tensor<4x1xf32>
  return
}

// -----

func.func @rms_norm_rstd(%x: tensor<4x8xf16>) {
  // SG-NORM-C4
  // expected-error @+1 {{statistics must be f32 with the normalised dimensions kept as 1, but found 'tensor<4x8xf32>'}}
  %0, %1 = spyre_graph.rms_norm %x {num_dims = 1 : i64, eps = 1.0e-5 : f64} : tensor<4x8xf16> -> tensor<4x8xf16>, tensor<4x8xf32>
  return
}

// -----

func.func @attention_float8(%q: tensor<1x2x4x8xf16>, %v: tensor<1x2x4x8xf8E4M3FN>) {
  // expected-error @+1 {{operand #2 must be statically shaped tensor of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<1x2x4x8xf8E4M3FN>'}}
  %0, %1 = spyre_graph.attention %q, %q, %v {scale = 1.0 : f64}
    : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf8E4M3FN> -> tensor<1x2x4x8xf16>, tensor<1x2x4xf32>
  return
}

// -----

func.func @attention_backward_heads(%q: tensor<1x3x4x8xf16>, %k: tensor<1x2x4x8xf16>, %l: tensor<1x3x4xf32>) {
  // SG-ATTENTION-C3
  // expected-error @+1 {{3 query heads are not a multiple of 2 key and 2 value heads}}
  %0:3 = spyre_graph.attention_backward %q, %q, %k, %k, %q, %l {scale = 1.0 : f64}
    : tensor<1x3x4x8xf16>, tensor<1x3x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x3x4x8xf16>, tensor<1x3x4xf32>
    -> tensor<1x3x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
  return
}
