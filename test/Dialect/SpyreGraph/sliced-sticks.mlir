// SPDX-License-Identifier: Apache-2.0
// Device memory is fast enough here, from the first byte on, that nothing is
// turned to make results denser or to read it once.
// RUN: echo '{"effectiveMemoryBytesPerSecond": 1e12, "transferSetupSeconds": 0}' > %t.json
// RUN: spyre-opt %s --split-input-file --spyre-set-device=file=%t.json --spyre-propagate-layouts | FileCheck %s --implicit-check-not=restickify --implicit-check-not=spyre_graph.identity

// Slices of the dimension along the sticks: those that begin at a stick are read
// in place, whatever reads them and wherever they end; each other one is copied
// once, and everyone reads the copy.

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>
#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// CHECK: #[[$AT64:.+]] = affine_map<(d0, d1) -> (d0, d1 + 64)>
// CHECK-LABEL: func.func @whole_sticks
// CHECK: spyre_graph.exp ins(%arg0
// CHECK-SAME: maps = [#[[$AT64]]
// CHECK: spyre_graph.sum ins(%arg0
// CHECK: spyre_graph.argmax ins(%arg0
// CHECK: spyre_graph.topk ins(%arg0
// CHECK: spyre_graph.matmul ins(%arg0, %arg1
// CHECK: spyre_graph.matmul ins(%arg2, %arg0
func.func @whole_sticks(%x: tensor<128x320xf16, #l2>, %w: tensor<100x64xf16, #l2>, %y: tensor<4x128xf16, #l2>) -> (tensor<128x100xf16>, tensor<128xf16>, tensor<128xi64>, tensor<128x3xf16>, tensor<128x64xf16>, tensor<4x100xf16>) {
  %s = spyre_graph.view %x, affine_map<(i, j) -> (i, j + 64)> : tensor<128x320xf16, #l2> -> tensor<128x100xf16>
  %e0 = tensor.empty() : tensor<128x100xf16>
  %0 = spyre_graph.exp ins(%s : tensor<128x100xf16>) outs(%e0 : tensor<128x100xf16>) -> tensor<128x100xf16>
  %e1 = tensor.empty() : tensor<128xf16>
  %1 = spyre_graph.sum ins(%s : tensor<128x100xf16>) outs(%e1 : tensor<128xf16>) {dims = array<i64: 1>} -> tensor<128xf16>
  %e2 = tensor.empty() : tensor<128xi64>
  %2 = spyre_graph.argmax ins(%s : tensor<128x100xf16>) outs(%e2 : tensor<128xi64>) {dims = array<i64: 1>} -> tensor<128xi64>
  %e3 = tensor.empty() : tensor<128x3xf16>
  %3 = spyre_graph.topk ins(%s : tensor<128x100xf16>) outs(%e3 : tensor<128x3xf16>) {maps = [affine_map<(i, r, j) -> (i, j)>, affine_map<(i, r, j) -> (i, r)>], extents = array<i64: 128, 3, 100>} -> tensor<128x3xf16>
  %e4 = tensor.empty() : tensor<128x64xf16>
  %4 = spyre_graph.matmul ins(%s, %w : tensor<128x100xf16>, tensor<100x64xf16, #l2>) outs(%e4 : tensor<128x64xf16>) -> tensor<128x64xf16>
  %e5 = tensor.empty() : tensor<4x100xf16>
  %5 = spyre_graph.matmul ins(%y, %s : tensor<4x128xf16, #l2>, tensor<128x100xf16>) outs(%e5 : tensor<4x100xf16>) -> tensor<4x100xf16>
  return %0, %1, %2, %3, %4, %5 : tensor<128x100xf16>, tensor<128xf16>, tensor<128xi64>, tensor<128x3xf16>, tensor<128x64xf16>, tensor<4x100xf16>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// A product, a sum and an elementwise operation read one copy.
// CHECK: #[[$AT3:.+]] = affine_map<(d0, d1) -> (d0, d1 + 3)>
// CHECK-LABEL: func.func @across_sticks
// CHECK: %[[C:.+]] = spyre_graph.identity ins(%arg0
// CHECK-SAME: maps = [#[[$AT3]], {{[^]]*}}]
// CHECK-SAME: -> tensor<128x64xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
// CHECK: spyre_graph.matmul ins(%[[C]], %arg1
// CHECK: spyre_graph.sum ins(%[[C]]
// CHECK: spyre_graph.exp ins(%[[C]]
func.func @across_sticks(%x: tensor<128x320xf16, #l2>, %w: tensor<64x64xf16, #l2>) -> (tensor<128x64xf16>, tensor<128xf16>, tensor<128x64xf16>) {
  %s = spyre_graph.view %x, affine_map<(i, j) -> (i, j + 3)> : tensor<128x320xf16, #l2> -> tensor<128x64xf16>
  %e = tensor.empty() : tensor<128x64xf16>
  %0 = spyre_graph.matmul ins(%s, %w : tensor<128x64xf16>, tensor<64x64xf16, #l2>) outs(%e : tensor<128x64xf16>) -> tensor<128x64xf16>
  %f = tensor.empty() : tensor<128xf16>
  %1 = spyre_graph.sum ins(%s : tensor<128x64xf16>) outs(%f : tensor<128xf16>) {dims = array<i64: 1>} -> tensor<128xf16>
  %2 = spyre_graph.exp ins(%s : tensor<128x64xf16>) outs(%e : tensor<128x64xf16>) -> tensor<128x64xf16>
  return %0, %1, %2 : tensor<128x64xf16>, tensor<128xf16>, tensor<128x64xf16>
}

// The second factor's sticks lie along its columns, here the slice's rows: the
// copy that changes the stick is the copy of the slice.
// CHECK-LABEL: func.func @across_sticks_and_turned
// CHECK: %[[C:.+]] = spyre_graph.identity ins(%arg0
// CHECK-SAME: -> tensor<{{.*}}xf16
// CHECK: spyre_graph.matmul ins(%arg1, %[[C]]
func.func @across_sticks_and_turned(%x: tensor<128x320xf16, #l2>, %y: tensor<32x64xf16, #l2>) -> tensor<32x128xf16> {
  %s = spyre_graph.view %x, affine_map<(i, j) -> (j, i + 3)> : tensor<128x320xf16, #l2> -> tensor<64x128xf16>
  %e = tensor.empty() : tensor<32x128xf16>
  %0 = spyre_graph.matmul ins(%y, %s : tensor<32x64xf16, #l2>, tensor<64x128xf16>) outs(%e : tensor<32x128xf16>) -> tensor<32x128xf16>
  return %0 : tensor<32x128xf16>
}

// Every second element is a copy; across other dimensions, steps and offsets
// are only other sticks.
// CHECK-LABEL: func.func @steps
// CHECK: %[[C:.+]] = spyre_graph.identity ins(%arg0
// CHECK: spyre_graph.exp ins(%[[C]]
// CHECK: spyre_graph.exp ins(%arg0
func.func @steps(%x: tensor<128x320xf16, #l2>) -> (tensor<128x160xf16>, tensor<50x320xf16>) {
  %s = spyre_graph.view %x, affine_map<(i, j) -> (i, j * 2)> : tensor<128x320xf16, #l2> -> tensor<128x160xf16>
  %e = tensor.empty() : tensor<128x160xf16>
  %0 = spyre_graph.exp ins(%s : tensor<128x160xf16>) outs(%e : tensor<128x160xf16>) -> tensor<128x160xf16>
  %t = spyre_graph.view %x, affine_map<(i, j) -> (i * 2 + 3, j)> : tensor<128x320xf16, #l2> -> tensor<50x320xf16>
  %f = tensor.empty() : tensor<50x320xf16>
  %1 = spyre_graph.exp ins(%t : tensor<50x320xf16>) outs(%f : tensor<50x320xf16>) -> tensor<50x320xf16>
  return %0, %1 : tensor<128x160xf16>, tensor<50x320xf16>
}

// Slices side by side in a new tensor: one copy each, which moves the lanes too.
// CHECK-LABEL: func.func @concatenated
// CHECK: %[[A:.+]] = spyre_graph.identity ins(%arg0
// CHECK: spyre_graph.identity ins(%arg0 {{.*}} outs(%[[A]]
// CHECK: return
func.func @concatenated(%x: tensor<128x320xf16, #l2>) -> tensor<128x94xf16> {
  %a = spyre_graph.view %x, affine_map<(i, j) -> (i, j + 3)> : tensor<128x320xf16, #l2> -> tensor<128x64xf16>
  %b = spyre_graph.view %x, affine_map<(i, j) -> (i, j + 70)> : tensor<128x320xf16, #l2> -> tensor<128x30xf16>
  %e = tensor.empty() : tensor<128x94xf16>
  %0 = spyre_graph.identity ins(%a : tensor<128x64xf16>) outs(%e : tensor<128x94xf16>) {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], extents = array<i64: 128, 64>} -> tensor<128x94xf16>
  %1 = spyre_graph.identity ins(%b : tensor<128x30xf16>) outs(%0 : tensor<128x94xf16>) {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j + 64)>], extents = array<i64: 128, 30>} -> tensor<128x94xf16>
  return %1 : tensor<128x94xf16>
}

// A slice of a slice is one slice: here, of whole sticks again.
// CHECK-LABEL: func.func @slice_of_a_slice
// CHECK: spyre_graph.exp ins(%arg0
func.func @slice_of_a_slice(%x: tensor<128x320xf16, #l2>) -> tensor<128x64xf16> {
  %a = spyre_graph.view %x, affine_map<(i, j) -> (i, j + 3)> : tensor<128x320xf16, #l2> -> tensor<128x300xf16>
  %b = spyre_graph.view %a, affine_map<(i, j) -> (i, j + 61)> : tensor<128x300xf16> -> tensor<128x64xf16>
  %e = tensor.empty() : tensor<128x64xf16>
  %0 = spyre_graph.exp ins(%b : tensor<128x64xf16>) outs(%e : tensor<128x64xf16>) -> tensor<128x64xf16>
  return %0 : tensor<128x64xf16>
}
