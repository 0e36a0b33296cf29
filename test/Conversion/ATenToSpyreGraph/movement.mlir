// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Movement.cpp.

// Each part is copied to its place; a part without elements is not.
// CHECK-DAG: #[[SECOND:.*]] = affine_map<(d0, d1) -> (d0, d1 + 63)>
// CHECK-LABEL: @cat
// CHECK: %[[INIT:.*]] = tensor.empty() : tensor<2x64xf16>
// CHECK: %[[FIRST:.*]] = spyre_graph.identity ins(%arg0 : {{.*}}) outs(%[[INIT]]
// CHECK: %[[BOTH:.*]] = spyre_graph.identity ins(%arg2 : {{.*}}) outs(%[[FIRST]] : {{.*}}) {extents = array<i64: 2, 1>, maps = [#{{.*}}, #[[SECOND]]]}
// CHECK: return %[[BOTH]]
func.func @cat(%x: tensor<2x63xf16>, %none: tensor<0xf16>, %y: tensor<2x1xf16>) -> tensor<2x64xf16> {
  %0 = "aten.cat.default"(%x, %none, %y) {operands = ["tensors[0]", "tensors[1]", "tensors[2]"], dim = -1}
      : (tensor<2x63xf16>, tensor<0xf16>, tensor<2x1xf16>) -> tensor<2x64xf16>
  return %0 : tensor<2x64xf16>
}

// -----

// CHECK-DAG: #[[AT1:.*]] = affine_map<(d0) -> (1, d0)>
// CHECK-LABEL: @stack
// CHECK: spyre_graph.identity ins(%arg1 : {{.*}} maps = [#{{.*}}, #[[AT1]]]}
func.func @stack(%x: tensor<65xf16>, %y: tensor<65xf16>) -> tensor<2x65xf16> {
  %0 = "aten.stack.default"(%x, %y) {operands = ["tensors[0]", "tensors[1]"]} : (tensor<65xf16>, tensor<65xf16>) -> tensor<2x65xf16>
  return %0 : tensor<2x65xf16>
}

// -----

// One element before, two cut off behind: 1 + 65 - 2.
// CHECK-DAG: #[[BEHIND:.*]] = affine_map<(d0, d1) -> (d0, d1 + 1)>
// CHECK-LABEL: @pad
// CHECK: %[[FULL:.*]] = spyre_graph.fill {{.*}} {immediates = [7.000000e+00 : f32]} -> tensor<3x64xf16>
// CHECK: spyre_graph.identity ins(%arg0 : {{.*}}) outs(%[[FULL]] : {{.*}}) {extents = array<i64: 3, 63>, maps = [#{{.*}}, #[[BEHIND]]]}
func.func @pad(%x: tensor<3x65xf16>) -> tensor<3x64xf16> {
  %0 = "aten.constant_pad_nd.default"(%x) {pad = [1, -2], value = 7} : (tensor<3x65xf16>) -> tensor<3x64xf16>
  return %0 : tensor<3x64xf16>
}

// -----

// CHECK-DAG: #[[EVERY3:.*]] = affine_map<(d0, d1) -> (d0 * 3 + 2, d1)>
// CHECK-LABEL: @slice_scatter
// CHECK: spyre_graph.identity ins(%arg1 : {{.*}}) outs(%arg0 : {{.*}}) {{.*}}#[[EVERY3]]]}
func.func @slice_scatter(%x: tensor<11x5xf16>, %y: tensor<3x5xf16>) -> tensor<11x5xf16> {
  %0 = "aten.slice_scatter.default"(%x, %y) {start = -9, end = 11, step = 3} : (tensor<11x5xf16>, tensor<3x5xf16>) -> tensor<11x5xf16>
  return %0 : tensor<11x5xf16>
}

// -----

// CHECK-DAG: #[[AGAIN:.*]] = affine_map<(d0, d1) -> (d1 mod 65)>
// CHECK-LABEL: @repeat
// CHECK: spyre_graph.identity ins(%arg0 : {{.*}} {extents = array<i64: 2, 195>, maps = [#[[AGAIN]], #{{.*}}]}
func.func @repeat(%x: tensor<65xf16>) -> tensor<2x195xf16> {
  %0 = "aten.repeat.default"(%x) {repeats = [2, 3]} : (tensor<65xf16>) -> tensor<2x195xf16>
  return %0 : tensor<2x195xf16>
}

// -----

func.func @ranks(%x: tensor<2x63xf16>, %y: tensor<63xf16>) -> tensor<3x63xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.cat.default: tensors must have one rank}}
  %0 = "aten.cat.default"(%x, %y) {operands = ["tensors[0]", "tensors[1]"]} : (tensor<2x63xf16>, tensor<63xf16>) -> tensor<3x63xf16>
  return %0 : tensor<3x63xf16>
}

// -----

func.func @backwards(%x: tensor<65xf16>, %y: tensor<3xf16>) -> tensor<65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.slice_scatter.default: step must be positive}}
  %0 = "aten.slice_scatter.default"(%x, %y) {step = 0} : (tensor<65xf16>, tensor<3xf16>) -> tensor<65xf16>
  return %0 : tensor<65xf16>
}

// -----

func.func @dim(%x: tensor<65xf16>) -> tensor<65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.cat.default: dimension 1 is out of range for rank 1}}
  %0 = "aten.cat.default"(%x) {operands = ["tensors[0]"], dim = 1} : (tensor<65xf16>) -> tensor<65xf16>
  return %0 : tensor<65xf16>
}

// -----

// CHECK-DAG: #[[APART:.*]] = affine_map<(d0, d1) -> (d0, d1 floordiv 5, d1 mod 5)>
// CHECK-LABEL: @merge_last
// CHECK: spyre_graph.identity ins(%arg0 : {{.*}} {extents = array<i64: 63, 15>, maps = [#[[APART]], #{{.*}}]} -> tensor<63x15xf16>
func.func @merge_last(%x: tensor<63x3x5xf16>) -> tensor<63x15xf16> {
  %0 = "spyre.merge_last.default"(%x) {count = 2} : (tensor<63x3x5xf16>) -> tensor<63x15xf16>
  return %0 : tensor<63x15xf16>
}

// -----

func.func @merge_too_many(%x: tensor<63x3xf16>) -> tensor<189xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{spyre.merge_last.default: count must be 1 to 2, the tensor's rank, but is 3}}
  %0 = "spyre.merge_last.default"(%x) {count = 3} : (tensor<63x3xf16>) -> tensor<189xf16>
  return %0 : tensor<189xf16>
}
