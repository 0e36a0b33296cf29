// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-pipeline="to-ktir=false verify-each" | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts --spyre-work-division --spyre-bufferize --spyre-lx-planning=capacity=900000 | FileCheck %s --check-prefix=SMALL

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#x = affine_map<(i, j, k) -> (i, k)>
#w = affine_map<(i, j, k) -> (j, k)>
#o = affine_map<(i, j, k) -> (i, j)>

// The weight goes to other sticks. Eight cores need each quarter of it: each makes
// its own, which they load together.
// CHECK-LABEL: func.func @weight
// CHECK-SAME: spyre_graph.pool_size = 0
// CHECK: %[[W:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, {{.*}}local = [64, 1024]>}
// CHECK: spyre_graph.restickify {{.*}} outs(%[[W]] {{.*}}splits = [8, 4, 1], chunks = [1, 64, 1024]
// CHECK-NOT: spyre_graph.reshard
// CHECK: spyre_graph.matmul {{.*}}splits = [8, 4, 1]
func.func @weight(%x: tensor<512x1024xf16, #l> {spyre_graph.name = "x"},
    %w: tensor<256x1024xf16, #l> {spyre_graph.name = "w"}) -> (tensor<512x256xf16> {spyre_graph.name = "out0"}) {
  %0 = tensor.empty() : tensor<512x256xf16>
  %y = spyre_graph.matmul ins(%x, %w : tensor<512x1024xf16, #l>, tensor<256x1024xf16, #l>)
    outs(%0 : tensor<512x256xf16>) {maps = [#x, #w, #o], extents = array<i64: 512, 256, 1024>} -> tensor<512x256xf16>
  return %y : tensor<512x256xf16>
}

// -----

#t = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#x = affine_map<(i, j, k) -> (i, k)>
#w = affine_map<(i, j, k) -> (j, k)>
#o = affine_map<(i, j, k) -> (i, j)>

// Where LX has room for one of two, the other is made once, as if nothing had been
// tried. The first one is read again after the other.
// SMALL-LABEL: func.func @two
// SMALL-DAG: spyre_graph.restickify {{.*}}extents = array<i64: 8, 1024, 1024>
// SMALL-DAG: spyre_graph.restickify {{.*}}extents = array<i64: 1024, 1024>
// SMALL: return
func.func @two(%x: tensor<512x1024xf16, #l> {spyre_graph.name = "x"},
    %v: tensor<1024x1024xf16, #l> {spyre_graph.name = "v"}, %w: tensor<1024x1024xf16, #l> {spyre_graph.name = "w"})
    -> (tensor<512x1024xf16> {spyre_graph.name = "out0"}) {
  %0 = tensor.empty() : tensor<1024x1024xf16, #t>
  %a = spyre_graph.restickify ins(%v : tensor<1024x1024xf16, #l>) outs(%0 : tensor<1024x1024xf16, #t>) -> tensor<1024x1024xf16, #t>
  %1 = tensor.empty() : tensor<1024x1024xf16, #t>
  %b = spyre_graph.restickify ins(%w : tensor<1024x1024xf16, #l>) outs(%1 : tensor<1024x1024xf16, #t>) -> tensor<1024x1024xf16, #t>
  %2 = tensor.empty() : tensor<512x1024xf16>
  %y = spyre_graph.matmul ins(%x, %a : tensor<512x1024xf16, #l>, tensor<1024x1024xf16, #t>)
    outs(%2 : tensor<512x1024xf16>) {maps = [#x, #w, #o], extents = array<i64: 512, 1024, 1024>} -> tensor<512x1024xf16>
  %3 = tensor.empty() : tensor<512x1024xf16>
  %u = spyre_graph.matmul ins(%y, %b : tensor<512x1024xf16>, tensor<1024x1024xf16, #t>)
    outs(%3 : tensor<512x1024xf16>) {maps = [#x, #w, #o], extents = array<i64: 512, 1024, 1024>} -> tensor<512x1024xf16>
  %4 = tensor.empty() : tensor<512x1024xf16>
  %z = spyre_graph.matmul ins(%u, %a : tensor<512x1024xf16>, tensor<1024x1024xf16, #t>)
    outs(%4 : tensor<512x1024xf16>) {maps = [#x, #w, #o], extents = array<i64: 512, 1024, 1024>} -> tensor<512x1024xf16>
  return %z : tensor<512x1024xf16>
}
