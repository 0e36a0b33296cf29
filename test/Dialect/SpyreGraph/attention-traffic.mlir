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

// -----

// Heads side by side in rows, as projections make them, of a text that goes on.
// Neighbours share the sums of the scores, and all of them hold the result: the
// first ones give it to the cores that need whole rows for the softmax.
// CHECK-LABEL: func.func @two_heads_of_more_keys
// CHECK-SAME: spyre_graph.pool_size = 0
// CHECK: spyre_graph.matmul {{.*}} outs(%[[SCORES:[a-z0-9_]+]] : memref<1x2x384x512xf32
// CHECK: spyre_graph.reshard ins(%[[SCORES]] :
// CHECK-SAME: source_division
// CHECK: spyre_graph.max
// CHECK-NOT: spyre_graph.reshard
// CHECK-NOT: placement<pool
// CHECK: return
#packed = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#first = affine_map<(b, h, i, j) -> (i, h * 128 + j)>
#second = affine_map<(b, h, i, j) -> (i, h * 128 + j + 256)>
func.func @two_heads_of_more_keys(%x: tensor<384x256xf16, #packed>, %y: tensor<512x512xf16, #packed>) -> tensor<1x2x384x128xf16> {
  %q = spyre_graph.view %x, #first : tensor<384x256xf16, #packed> -> tensor<1x2x384x128xf16>
  %k = spyre_graph.view %y, #first : tensor<512x512xf16, #packed> -> tensor<1x2x512x128xf16>
  %v = spyre_graph.view %y, #second : tensor<512x512xf16, #packed> -> tensor<1x2x512x128xf16>
  %0, %1 = spyre_graph.attention %q, %k, %v {scale = 0.088388347648318433 : f64}
    : tensor<1x2x384x128xf16>, tensor<1x2x512x128xf16>, tensor<1x2x512x128xf16> -> tensor<1x2x384x128xf16>, tensor<1x2x384xf32>
  return %0 : tensor<1x2x384x128xf16>
}

// -----

// Keys of a prompt are computed like its queries: where both are in LX, half the
// rate of the matrix unit would show, so that sums are whole.
// CHECK-LABEL: func.func @two_heads
// CHECK-SAME: spyre_graph.pool_size = 0
// CHECK: spyre_graph.matmul {{.*}} outs({{.*}} : memref<1x2x512x512xf32
// CHECK-SAME: division = #spyre_graph.division<splits = [{{[0-9, ]+}}, 1], chunks = [{{[0-9, ]+}}, 128]>
// CHECK-NOT: placement<pool
// CHECK: return
#packed = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#q = affine_map<(b, h, i, j) -> (i, h * 128 + j)>
#k = affine_map<(b, h, i, j) -> (i, h * 128 + j + 256)>
#v = affine_map<(b, h, i, j) -> (i, h * 128 + j + 512)>
func.func @two_heads(%x: tensor<512x768xf16, #packed>) -> tensor<1x2x512x128xf16> {
  %q = spyre_graph.view %x, #q : tensor<512x768xf16, #packed> -> tensor<1x2x512x128xf16>
  %k = spyre_graph.view %x, #k : tensor<512x768xf16, #packed> -> tensor<1x2x512x128xf16>
  %v = spyre_graph.view %x, #v : tensor<512x768xf16, #packed> -> tensor<1x2x512x128xf16>
  %0, %1 = spyre_graph.attention %q, %k, %v {scale = 0.088388347648318433 : f64}
    : tensor<1x2x512x128xf16>, tensor<1x2x512x128xf16>, tensor<1x2x512x128xf16> -> tensor<1x2x512x128xf16>, tensor<1x2x512xf32>
  return %0 : tensor<1x2x512x128xf16>
}

// -----

// CHECK-LABEL: func.func @sixteen_heads
// CHECK-SAME: spyre_graph.pool_size = 0
// CHECK: spyre_graph.reshard
// CHECK-NOT: placement<pool
// CHECK: return
#packed = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#q = affine_map<(b, h, i, j) -> (i, h * 128 + j)>
#k = affine_map<(b, h, i, j) -> (i, h * 128 + j + 2048)>
#v = affine_map<(b, h, i, j) -> (i, h * 128 + j + 4096)>
func.func @sixteen_heads(%x: tensor<512x6144xf16, #packed>) -> tensor<1x16x512x128xf16> {
  %q = spyre_graph.view %x, #q : tensor<512x6144xf16, #packed> -> tensor<1x16x512x128xf16>
  %k = spyre_graph.view %x, #k : tensor<512x6144xf16, #packed> -> tensor<1x16x512x128xf16>
  %v = spyre_graph.view %x, #v : tensor<512x6144xf16, #packed> -> tensor<1x16x512x128xf16>
  %0, %1 = spyre_graph.attention %q, %k, %v {scale = 0.088388347648318433 : f64}
    : tensor<1x16x512x128xf16>, tensor<1x16x512x128xf16>, tensor<1x16x512x128xf16> -> tensor<1x16x512x128xf16>, tensor<1x16x512xf32>
  return %0 : tensor<1x16x512x128xf16>
}
