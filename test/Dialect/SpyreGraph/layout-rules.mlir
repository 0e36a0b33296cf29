// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts | FileCheck %s --implicit-check-not=restickify --implicit-check-not=spyre_graph.identity

// The table of spec/layouts.md, "Propagation rules", where no other test has it.

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#columns = #spyre_graph.layout<order = [1, 0], SEN169_FP16>

// Pointwise, one input: its layout, whatever that is.
// CHECK-LABEL: func.func @keeps
// CHECK: spyre_graph.exp {{.*}} -> tensor<100x130xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
func.func @keeps(%x: tensor<100x130xf16, #columns>) -> tensor<100x130xf16> {
  %e = tensor.empty() : tensor<100x130xf16>
  %r = spyre_graph.exp ins(%x : tensor<100x130xf16, #columns>) outs(%e : tensor<100x130xf16>) -> tensor<100x130xf16>
  return %r : tensor<100x130xf16>
}

// Constants: along any stick, so that no one who reads them copies them.
// CHECK-LABEL: func.func @constant
// CHECK: %[[F:.+]] = spyre_graph.fill {{.*}} -> tensor<100x130xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
// CHECK: spyre_graph.add ins(%arg0, %[[F]]
func.func @constant(%x: tensor<100x130xf16, #columns>) -> tensor<100x130xf16> {
  %e = tensor.empty() : tensor<100x130xf16>
  %f = spyre_graph.fill outs(%e : tensor<100x130xf16>) {immediates = [2.0 : f32]} -> tensor<100x130xf16>
  %r = spyre_graph.add ins(%x, %f : tensor<100x130xf16, #columns>, tensor<100x130xf16>) outs(%e : tensor<100x130xf16>) -> tensor<100x130xf16>
  return %r : tensor<100x130xf16>
}

// A sum along the sticks has one element per stick, the vector beside it 64: the
// smaller way to bring them together is one copy.
// CHECK-LABEL: func.func @sparse_and_dense
// CHECK: spyre_graph.sum
// CHECK: spyre_graph.restickify
// CHECK: spyre_graph.add
func.func @sparse_and_dense(%x: tensor<256x640xf16, #rows>, %v: tensor<256xf16, #l1>) -> tensor<256xf16> {
  %e = tensor.empty() : tensor<256xf16>
  %s = spyre_graph.sum ins(%x : tensor<256x640xf16, #rows>) outs(%e : tensor<256xf16>) {dims = array<i64: 1>} -> tensor<256xf16>
  %r = spyre_graph.add ins(%s, %v : tensor<256xf16>, tensor<256xf16, #l1>) outs(%e : tensor<256xf16>) -> tensor<256xf16>
  return %r : tensor<256xf16>
}

// Sums of columns are as dense as the vector.
// CHECK-LABEL: func.func @dense_and_dense
// CHECK: spyre_graph.sum {{.*}} -> tensor<192xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
// CHECK: spyre_graph.add
func.func @dense_and_dense(%x: tensor<256x192xf16, #rows>, %v: tensor<192xf16, #l1>) -> tensor<192xf16> {
  %e = tensor.empty() : tensor<192xf16>
  %s = spyre_graph.sum ins(%x : tensor<256x192xf16, #rows>) outs(%e : tensor<192xf16>) {dims = array<i64: 0>} -> tensor<192xf16>
  %r = spyre_graph.add ins(%s, %v : tensor<192xf16>, tensor<192xf16, #l1>) outs(%e : tensor<192xf16>) -> tensor<192xf16>
  return %r : tensor<192xf16>
}

// Two sparse vectors are added as they are.
// CHECK-LABEL: func.func @sparse_and_sparse
// CHECK: spyre_graph.add {{.*}} -> tensor<256x1xf16, #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>>
// CHECK: spyre_graph.mul
func.func @sparse_and_sparse(%x: tensor<256x192xf16, #rows>, %y: tensor<256x192xf16, #rows>) -> tensor<256x192xf16> {
  %e = tensor.empty() : tensor<256x1xf16>
  %s = spyre_graph.sum ins(%x : tensor<256x192xf16, #rows>) outs(%e : tensor<256x1xf16>) {dims = array<i64: 1>} -> tensor<256x1xf16>
  %t = spyre_graph.max ins(%y : tensor<256x192xf16, #rows>) outs(%e : tensor<256x1xf16>) {dims = array<i64: 1>} -> tensor<256x1xf16>
  %a = spyre_graph.add ins(%s, %t : tensor<256x1xf16>, tensor<256x1xf16>) outs(%e : tensor<256x1xf16>) -> tensor<256x1xf16>
  %f = tensor.empty() : tensor<256x192xf16>
  %r = spyre_graph.mul ins(%x, %a : tensor<256x192xf16, #rows>, tensor<256x1xf16>) outs(%f : tensor<256x192xf16>) -> tensor<256x192xf16>
  return %r : tensor<256x192xf16>
}

// Another number of elements per stick: the stick stays along its dimension.
// CHECK-LABEL: func.func @other_format
// CHECK: -> tensor<32x65xf32, #spyre_graph.layout<order = [1, 0], IEEE_FP32>>
func.func @other_format(%x: tensor<32x65xf16, #columns>) -> tensor<32x65xf32> {
  %e = tensor.empty() : tensor<32x65xf32>
  %r = spyre_graph.exp ins(%x : tensor<32x65xf16, #columns>) outs(%e : tensor<32x65xf32>) -> tensor<32x65xf32>
  return %r : tensor<32x65xf32>
}
