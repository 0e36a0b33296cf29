// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-pipeline="to-ktir=false" | FileCheck %s

// Gradients of causal attention, 32 heads of queries over 8 of keys. Nothing
// between the operations goes through device memory, and scores that are turned
// for the sums over rows fill their sticks.
// CHECK-LABEL: func.func @main
// CHECK-SAME: spyre_graph.pool_size = 0
// CHECK-NOT: placement<pool
// CHECK: return
#l = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
#s = #spyre_graph.layout<order = [0, 1, 2], IEEE_FP32>
func.func @main(%o: tensor<1x32x256x64xf16, #l>, %g: tensor<1x32x256x64xf16, #l>, %q: tensor<1x32x256x64xf16, #l>,
                %k: tensor<1x8x256x64xf16, #l>, %v: tensor<1x8x256x64xf16, #l>, %sums: tensor<1x32x256xf32, #s>)
    -> (tensor<1x32x256x64xf16>, tensor<1x8x256x64xf16>, tensor<1x8x256x64xf16>) {
  %0:3 = spyre_graph.attention_backward %g, %q, %k, %v, %o, %sums {causal, scale = 0.125 : f64}
    : tensor<1x32x256x64xf16, #l>, tensor<1x32x256x64xf16, #l>, tensor<1x8x256x64xf16, #l>, tensor<1x8x256x64xf16, #l>, tensor<1x32x256x64xf16, #l>, tensor<1x32x256xf32, #s>
    -> tensor<1x32x256x64xf16>, tensor<1x8x256x64xf16>, tensor<1x8x256x64xf16>
  return %0#0, %0#1, %0#2 : tensor<1x32x256x64xf16>, tensor<1x8x256x64xf16>, tensor<1x8x256x64xf16>
}

// -----

// At batch 4 the weights have room for their move to the slices of the first
// product that reads them, because nothing else is live yet.
// CHECK-LABEL: func.func @batch
// CHECK-SAME: spyre_graph.pool_size = 0
// CHECK-NOT: placement<pool
// CHECK: return
#l = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
#s = #spyre_graph.layout<order = [0, 1, 2], IEEE_FP32>
func.func @batch(%o: tensor<4x32x256x64xf16, #l>, %g: tensor<4x32x256x64xf16, #l>, %q: tensor<4x32x256x64xf16, #l>,
                 %k: tensor<4x8x256x64xf16, #l>, %v: tensor<4x8x256x64xf16, #l>, %sums: tensor<4x32x256xf32, #s>)
    -> (tensor<4x32x256x64xf16>, tensor<4x8x256x64xf16>, tensor<4x8x256x64xf16>) {
  %0:3 = spyre_graph.attention_backward %g, %q, %k, %v, %o, %sums {causal, scale = 0.125 : f64}
    : tensor<4x32x256x64xf16, #l>, tensor<4x32x256x64xf16, #l>, tensor<4x8x256x64xf16, #l>, tensor<4x8x256x64xf16, #l>, tensor<4x32x256x64xf16, #l>, tensor<4x32x256xf32, #s>
    -> tensor<4x32x256x64xf16>, tensor<4x8x256x64xf16>, tensor<4x8x256x64xf16>
  return %0#0, %0#1, %0#2 : tensor<4x32x256x64xf16>, tensor<4x8x256x64xf16>, tensor<4x8x256x64xf16>
}

// -----

// LX has no room for the scores in two slicings, so that they could not move:
// the product takes the slices of the softmax, which leaves rows whole.
// CHECK-LABEL: func.func @crowded
// CHECK-SAME: spyre_graph.pool_size = 0
// CHECK-NOT: placement<pool
// CHECK: return
#l = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
func.func @crowded(%q: tensor<1x16x1024x64xf16, #l>, %k: tensor<1x16x1024x64xf16, #l>, %v: tensor<1x16x1024x64xf16, #l>)
    -> tensor<1x16x1024x64xf16> {
  %0, %1 = spyre_graph.attention %q, %k, %v {scale = 0.125 : f64}
    : tensor<1x16x1024x64xf16, #l>, tensor<1x16x1024x64xf16, #l>, tensor<1x16x1024x64xf16, #l>
    -> tensor<1x16x1024x64xf16>, tensor<1x16x1024xf32>
  return %0 : tensor<1x16x1024x64xf16>
}
