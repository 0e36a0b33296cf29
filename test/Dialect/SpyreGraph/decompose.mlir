// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --spyre-decompose --split-input-file | FileCheck %s

// Softmax: the exponential of the unrounded difference, an f32 sum.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[MAX:.*]] = spyre_graph.max ins(%[[X:.*]] : tensor<4x100xf16>) outs({{.*}} : tensor<4x1xf16>) {dims = array<i64: 1>}
// CHECK: %[[EXP:.*]] = spyre_graph.exp_sub ins(%[[X]], %[[MAX]]
// CHECK: %[[SUM:.*]] = spyre_graph.sum ins(%[[EXP]] {{.*}} -> tensor<4x1xf32>
// CHECK: %[[R:.*]] = spyre_graph.div ins(%[[EXP]], %[[SUM]]
// CHECK: return %[[R]]
func.func @softmax(%x: tensor<4x100xf16>) -> tensor<4x100xf16> {
  %0 = spyre_graph.softmax %x {dim = 1 : i64} : tensor<4x100xf16> -> tensor<4x100xf16>
  return %0 : tensor<4x100xf16>
}

// -----

// CHECK-LABEL: func.func @log_softmax
// CHECK: spyre_graph.log
// CHECK: spyre_graph.layernormnorm
// CHECK-NOT: spyre_graph.softmax
func.func @log_softmax(%x: tensor<4x100xf16>) -> tensor<4x100xf16> {
  %0 = spyre_graph.softmax %x {dim = 0 : i64, log} : tensor<4x100xf16> -> tensor<4x100xf16>
  return %0 : tensor<4x100xf16>
}

// -----

// CHECK-LABEL: func.func @layer_norm
// CHECK: %[[MEAN:.*]] = spyre_graph.mean ins(%[[X:.*]] : tensor<4x100xf16>) {{.*}} -> tensor<4x1xf32>
// CHECK: %[[VAR:.*]] = spyre_graph.sum_squares ins(%[[X]], %[[MEAN]] {{.*}}scale = 1.000000e-02
// CHECK: %[[RSTD:.*]] = spyre_graph.rsqrt
// CHECK: spyre_graph.layernormnorm ins(%[[X]], %[[MEAN]], %[[RSTD]], %[[W:.*]] : {{.*}} {immediates = [unit, unit, unit, unit, 0.000000e+00 : f32]}
func.func @layer_norm(%x: tensor<4x100xf16>, %w: tensor<100xf16>) -> tensor<4x100xf16> {
  %0, %1, %2 = spyre_graph.layer_norm %x weight(%w : tensor<100xf16>)
    {num_dims = 1 : i64, eps = 1.0e-5 : f64} : tensor<4x100xf16> -> tensor<4x100xf16>, tensor<4x1xf32>, tensor<4x1xf32>
  return %0 : tensor<4x100xf16>
}

// -----

// CHECK-LABEL: func.func @rms_norm
// CHECK: spyre_graph.sum_squares ins(%{{.*}} : tensor<4x100xf16>) {{.*}} -> tensor<4x1xf32>
// CHECK: spyre_graph.rsqrt
// CHECK: spyre_graph.layernormnorm {{.*}}immediates = [unit, 0.000000e+00 : f32, unit, 1.000000e+00 : f32, -0.000000e+00 : f32]
func.func @rms_norm(%x: tensor<4x100xf16>) -> tensor<4x100xf16> {
  %0, %1 = spyre_graph.rms_norm %x {num_dims = 1 : i64, eps = 1.0e-5 : f64}
    : tensor<4x100xf16> -> tensor<4x100xf16>, tensor<4x1xf32>
  return %0 : tensor<4x100xf16>
}

// -----

// Where the sizes vary the kernel counts.
// CHECK-LABEL: func.func @rms_norm_of_any_size
// CHECK: spyre_graph.sum_squares ins(%{{.*}} : tensor<4x100xf16>) {{.*}}correction = 0.000000e+00 : f64, dims = array<i64: 1>, extent_map = #{{.*}}, scale = 1.000000e+00 : f64
func.func @rms_norm_of_any_size(%x: tensor<4x100xf16> {spyre_graph.size_map = affine_map<()[s] -> (4, s)>})
    -> (tensor<4x100xf16> {spyre_graph.size_map = affine_map<()[s] -> (4, s)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 100>]} {
  %0, %1 = spyre_graph.rms_norm %x {num_dims = 1 : i64, eps = 1.0e-5 : f64}
    : tensor<4x100xf16> -> tensor<4x100xf16>, tensor<4x1xf32>
  return %0 : tensor<4x100xf16>
}

// -----

// Grouped queries read key and value heads through the maps; the causal bias
// is made once and added where the product is rounded.
// CHECK: #[[$KEY:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 floordiv 4, d3, d4)>
// CHECK: #[[$BIAS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d2, d3)>
// CHECK-LABEL: func.func @attention
// CHECK: %[[CAUSAL:.*]] = spyre_graph.tri outs({{.*}} : tensor<16x16xf16>) {diagonal = 1 : i64, immediates = [0xFF800000 : f32], upper}
// CHECK-NOT: spyre_graph.tri
// CHECK: spyre_graph.matmul ins(%{{.*}}, %{{.*}}, %[[CAUSAL]] {{.*}}alpha = 1.250000e-01 : f64, {{.*}}has_bias, maps = [{{.*}}, #[[$KEY]], #[[$BIAS]], {{.*}}]
// CHECK: spyre_graph.matmul ins({{.*}}, %[[CAUSAL]]
// CHECK-NOT: spyre_graph.log
func.func @attention(%q: tensor<2x8x16x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>)
    -> (tensor<2x8x16x64xf16>, tensor<2x8x16x64xf16>) {
  %0, %1 = spyre_graph.attention %q, %k, %v {causal, scale = 0.125 : f64}
    : tensor<2x8x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x8x16x64xf16>, tensor<2x8x16xf32>
  %2, %3 = spyre_graph.attention %0, %k, %v {causal, scale = 0.125 : f64}
    : tensor<2x8x16x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x8x16x64xf16>, tensor<2x8x16xf32>
  return %0, %2 : tensor<2x8x16x64xf16>, tensor<2x8x16x64xf16>
}

// -----

// One token: the query heads that share keys are rows of one product, which
// reads each head of the keys once.
// CHECK-DAG: #[[$ROWS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 * 4 + d2, 0, d3)>
// CHECK-DAG: #[[$HEADS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d1 mod 4, d3)>
// CHECK-DAG: #[[$SUMS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 floordiv 4, d1 mod 4, 0)>
// CHECK-DAG: #[[$ONCE:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
// CHECK-LABEL: func.func @one_token
// CHECK: %[[Q:.*]] = spyre_graph.view %{{.*}}, #[[$ROWS]] : tensor<2x8x1x64xf16> -> tensor<2x2x4x64xf16>
// CHECK: %[[M:.*]] = spyre_graph.view %{{.*}}, #[[$ROWS]] : tensor<1x8x1x16xf16> -> tensor<1x2x4x16xf16>
// CHECK: spyre_graph.matmul ins(%[[Q]], %{{.*}}, %[[M]] {{.*}}extents = array<i64: 2, 2, 4, 16, 64>, {{.*}}maps = [{{.*}}, #[[$ONCE]],
// CHECK: spyre_graph.matmul {{.*}}extents = array<i64: 2, 2, 4, 64, 16>
// CHECK: %[[OUT:.*]] = spyre_graph.view %{{.*}}, #[[$HEADS]] : tensor<2x2x4x64xf16> -> tensor<2x8x1x64xf16>
// CHECK: %[[LSE:.*]] = spyre_graph.view %{{.*}}, #[[$SUMS]] : tensor<2x2x4x1xf32> -> tensor<2x8x1xf32>
// CHECK: return %[[OUT]], %[[LSE]]
func.func @one_token(%q: tensor<2x8x1x64xf16>, %k: tensor<2x2x16x64xf16>, %v: tensor<2x2x16x64xf16>,
                     %m: tensor<1x8x1x16xf16>) -> (tensor<2x8x1x64xf16>, tensor<2x8x1xf32>) {
  %0, %1 = spyre_graph.attention %q, %k, %v mask(%m : tensor<1x8x1x16xf16>) {scale = 0.125 : f64}
    : tensor<2x8x1x64xf16>, tensor<2x2x16x64xf16>, tensor<2x2x16x64xf16> -> tensor<2x8x1x64xf16>, tensor<2x8x1xf32>
  return %0, %1 : tensor<2x8x1x64xf16>, tensor<2x8x1xf32>
}

// -----

// The same where a model has repeated the heads, and the mask is for all.
// CHECK-LABEL: func.func @repeated_keys
// CHECK-SAME: %{{.*}}: tensor<1x8x1x64xf16>, %[[K:.*]]: tensor<1x2x16x64xf16>, %[[M:.*]]: tensor<1x1x1x16xf16>)
// CHECK-NOT: spyre_graph.identity
// CHECK: %[[KEYS:.*]] = spyre_graph.view %[[K]], {{.*}} -> tensor<1x2x16x64xf16>
// CHECK: %[[VALUES:.*]] = spyre_graph.view %[[K]], {{.*}} -> tensor<1x2x16x64xf16>
// CHECK: spyre_graph.matmul ins(%{{.*}}, %[[KEYS]], %[[M]] {{.*}}extents = array<i64: 1, 2, 4, 16, 64>
// CHECK: spyre_graph.matmul ins(%{{.*}}, %[[VALUES]] {{.*}}extents = array<i64: 1, 2, 4, 64, 16>
#repeat = affine_map<(b, h, r, s, e) -> (b, h, s, e)>
#heads = affine_map<(b, h, s, e) -> (b, h floordiv 4, h mod 4, s, e)>
func.func @repeated_keys(%q: tensor<1x8x1x64xf16>, %k: tensor<1x2x16x64xf16>, %m: tensor<1x1x1x16xf16>) -> tensor<1x8x1x64xf16> {
  %0 = spyre_graph.view %k, #repeat : tensor<1x2x16x64xf16> -> tensor<1x2x4x16x64xf16>
  %1 = tensor.empty() : tensor<1x2x4x16x64xf16>
  %2 = spyre_graph.identity ins(%0 : tensor<1x2x4x16x64xf16>) outs(%1 : tensor<1x2x4x16x64xf16>) -> tensor<1x2x4x16x64xf16>
  %3 = spyre_graph.view %2, #heads : tensor<1x2x4x16x64xf16> -> tensor<1x8x16x64xf16>
  %4, %5 = spyre_graph.attention %q, %3, %3 mask(%m : tensor<1x1x1x16xf16>) {scale = 0.125 : f64}
    : tensor<1x8x1x64xf16>, tensor<1x8x16x64xf16>, tensor<1x8x16x64xf16> -> tensor<1x8x1x64xf16>, tensor<1x8x1xf32>
  return %4 : tensor<1x8x1x64xf16>
}

// -----

// Where only the keys repeat, heads stay; a causal row sees column 0 only.
// CHECK-LABEL: func.func @heads_stay
// CHECK: spyre_graph.matmul {{.*}}extents = array<i64: 1, 8, 1, 16, 64>
// CHECK: spyre_graph.matmul {{.*}}extents = array<i64: 1, 8, 1, 64, 16>
// CHECK: spyre_graph.matmul {{.*}}extents = array<i64: 1, 8, 1, 16, 64>
#repeat = affine_map<(b, h, s, e) -> (b, h floordiv 4, s, e)>
func.func @heads_stay(%q: tensor<1x8x1x64xf16>, %k: tensor<1x2x16x64xf16>, %v: tensor<1x8x16x64xf16>)
    -> (tensor<1x8x1x64xf16>, tensor<1x8x1x64xf16>) {
  %0 = spyre_graph.view %k, #repeat : tensor<1x2x16x64xf16> -> tensor<1x8x16x64xf16>
  %1, %2 = spyre_graph.attention %q, %0, %v {scale = 0.125 : f64}
    : tensor<1x8x1x64xf16>, tensor<1x8x16x64xf16>, tensor<1x8x16x64xf16> -> tensor<1x8x1x64xf16>, tensor<1x8x1xf32>
  %3, %4 = spyre_graph.attention %q, %k, %k {causal, scale = 0.125 : f64}
    : tensor<1x8x1x64xf16>, tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16> -> tensor<1x8x1x64xf16>, tensor<1x8x1xf32>
  return %1, %3 : tensor<1x8x1x64xf16>, tensor<1x8x1x64xf16>
}

// -----

// A mask can hide whole rows: those give zeros, so maximum and sum are bounded.
// CHECK-LABEL: func.func @masked_attention
// CHECK: %[[BIAS:.*]] = spyre_graph.where ins(%{{.*}} : tensor<16x16xi1>) {{.*}}immediates = [unit, 0.000000e+00 : f32, 0xFF800000 : f32]
// CHECK: spyre_graph.matmul ins(%{{.*}}, %{{.*}}, %[[BIAS]]
// CHECK: spyre_graph.maximum
// CHECK: spyre_graph.exp_sub
// CHECK: spyre_graph.maximum
func.func @masked_attention(%q: tensor<1x2x16x64xf16>, %m: tensor<16x16xi1>) -> (tensor<1x2x16x64xf16>, tensor<1x2x16xf32>) {
  %0, %1 = spyre_graph.attention %q, %q, %q mask(%m : tensor<16x16xi1>) {scale = 0.125 : f64}
    : tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16> -> tensor<1x2x16x64xf16>, tensor<1x2x16xf32>
  return %0, %1 : tensor<1x2x16x64xf16>, tensor<1x2x16xf32>
}

// -----

// The gradient of the weights loses its mean before it is rounded.
// CHECK-LABEL: func.func @attention_backward
// CHECK: %[[W:.*]] = spyre_graph.exp_sub
// CHECK: spyre_graph.matmul ins(%[[W]],
// CHECK: %[[G:.*]] = spyre_graph.matmul {{.*}} -> tensor<1x2x16x16xf32>
// CHECK: spyre_graph.layernormnorm ins(%[[G]], {{.*}} -> tensor<1x2x16x16xf16>
// CHECK-COUNT-2: spyre_graph.matmul
// CHECK-NOT: spyre_graph.attention
func.func @attention_backward(%g: tensor<1x2x16x64xf16>, %l: tensor<1x2x16xf32>)
    -> (tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>) {
  %0:3 = spyre_graph.attention_backward %g, %g, %g, %g, %g, %l {scale = 0.125 : f64}
    : tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>, tensor<1x2x16xf32>
    -> tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>
  return %0#0, %0#1, %0#2 : tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>
}

// -----

// Gradients of keys and values that two heads share are sums over heads and rows.
// Sticks lie along the last reduction, so that is the rows.
// CHECK: #[[HEADS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 * 2 + d4, d5, d2)>
// CHECK-LABEL: func.func @grouped_backward
// CHECK-COUNT-2: spyre_graph.matmul {{.*}}extents = array<i64: 1, 4, 24, 64, 2, 16>, maps = [#[[HEADS]],
func.func @grouped_backward(%g: tensor<1x8x16x64xf16>, %k: tensor<1x4x24x64xf16>, %l: tensor<1x8x16xf32>)
    -> (tensor<1x8x16x64xf16>, tensor<1x4x24x64xf16>, tensor<1x4x24x64xf16>) {
  %0:3 = spyre_graph.attention_backward %g, %g, %k, %k, %g, %l {scale = 0.125 : f64}
    : tensor<1x8x16x64xf16>, tensor<1x8x16x64xf16>, tensor<1x4x24x64xf16>, tensor<1x4x24x64xf16>, tensor<1x8x16x64xf16>, tensor<1x8x16xf32>
    -> tensor<1x8x16x64xf16>, tensor<1x4x24x64xf16>, tensor<1x4x24x64xf16>
  return %0#0, %0#1, %0#2 : tensor<1x8x16x64xf16>, tensor<1x4x24x64xf16>, tensor<1x4x24x64xf16>
}

// -----

// Scores are fp32 where they take at most a quarter of LX, and masks that bound
// maxima go down to what fp32 holds.
// CHECK-LABEL: func.func @small_scores
// CHECK: spyre_graph.matmul {{.*}} -> tensor<1x32x256x256xf32>
// CHECK: spyre_graph.max {{.*}} -> tensor<1x32x256x1xf32>
// CHECK: spyre_graph.maximum {{.*}}immediates = [unit, -3.40282347E+38 : f32]
// CHECK: spyre_graph.exp_sub ins({{.*}} : tensor<1x32x256x256xf32>, tensor<1x32x256x1xf32>) {{.*}} -> tensor<1x32x256x256xf16>
func.func @small_scores(%q: tensor<1x32x256x64xf16>, %m: tensor<256x256xi1>) -> tensor<1x32x256x64xf16> {
  %0, %1 = spyre_graph.attention %q, %q, %q mask(%m : tensor<256x256xi1>) {scale = 0.125 : f64}
    : tensor<1x32x256x64xf16>, tensor<1x32x256x64xf16>, tensor<1x32x256x64xf16> -> tensor<1x32x256x64xf16>, tensor<1x32x256xf32>
  return %0 : tensor<1x32x256x64xf16>
}

// CHECK-LABEL: func.func @large_scores
// CHECK: spyre_graph.matmul {{.*}} -> tensor<1x32x512x512xf16>
// CHECK: spyre_graph.exp_sub ins({{.*}} : tensor<1x32x512x512xf16>, tensor<1x32x512x1xf16>) {{.*}} -> tensor<1x32x512x512xf16>
func.func @large_scores(%q: tensor<1x32x512x64xf16>) -> tensor<1x32x512x64xf16> {
  %0, %1 = spyre_graph.attention %q, %q, %q {scale = 0.125 : f64}
    : tensor<1x32x512x64xf16>, tensor<1x32x512x64xf16>, tensor<1x32x512x64xf16> -> tensor<1x32x512x64xf16>, tensor<1x32x512xf32>
  return %0 : tensor<1x32x512x64xf16>
}

// -----

// What nobody uses goes.
// CHECK-LABEL: func.func @dead
// CHECK-NEXT: return
func.func @dead(%x: tensor<4x100xf16>) {
  %0 = spyre_graph.softmax %x {dim = 1 : i64} : tensor<4x100xf16> -> tensor<4x100xf16>
  return
}
