// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Scatter.cpp.

// One value goes to every indexed row.
// CHECK-DAG: #[[ONE:.*]] = affine_map<(d0, d1) -> (0)>
// CHECK-LABEL: @index_put
// CHECK: spyre_graph.scatter ins(%arg2, %{{.*}} : {{.*}}) outs(%arg0 : {{.*}}) {axis = 0 : i64, extents = array<i64: 7, 65>, maps = [#[[ONE]],
func.func @index_put(%x: tensor<3x65xf16>, %i: tensor<7xi64>, %v: tensor<1xf16>) -> tensor<3x65xf16> {
  %0 = "aten.index_put.default"(%x, %i, %v) {operands = ["self", "indices[0]", "values"]} : (tensor<3x65xf16>, tensor<7xi64>, tensor<1xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

// The two indexed dimensions are one of a copy, and two of the result again.
// CHECK-DAG: #[[SPLIT:.*]] = affine_map<(d0, d1) -> (d0 * 65 + d1)>
// CHECK-LABEL: @put_elements
// CHECK: %[[MERGED:.*]] = spyre_graph.identity ins(%arg0 : {{.*}} -> tensor<195xf16>
// CHECK: %[[PUT:.*]] = spyre_graph.scatter ins(%arg2, %{{.*}} : {{.*}}) outs(%[[MERGED]]
// CHECK: spyre_graph.view %[[PUT]], #[[SPLIT]] : tensor<195xf16> -> tensor<3x65xf16>
func.func @put_elements(%x: tensor<3x65xf16>, %i: tensor<7xi64>, %v: tensor<7xf16>) -> tensor<3x65xf16> {
  %0 = "aten.index_put.default"(%x, %i, %i, %v) {operands = ["self", "indices[0]", "indices[1]", "values"]} : (tensor<3x65xf16>, tensor<7xi64>, tensor<7xi64>, tensor<7xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

func.func @put_too_much(%x: tensor<3x65xf16>, %i: tensor<7xi64>, %v: tensor<6x65xf16>) -> tensor<3x65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.index_put.default: what is written does not have the shape of the indexed part}}
  %0 = "aten.index_put.default"(%x, %i, %v) {operands = ["self", "indices[0]", "values"]} : (tensor<3x65xf16>, tensor<7xi64>, tensor<6x65xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

// Sums are accumulated in fp32 and rounded once.
// CHECK-LABEL: @index_add
// CHECK: %[[SCALED:.*]] = spyre_graph.mul ins(%arg2 : {{.*}}) outs({{.*}}) {immediates = [unit, 2.000000e+00 : f32]} -> tensor<7x65xf32>
// CHECK: %[[WIDE:.*]] = spyre_graph.identity ins(%arg0 : {{.*}} -> tensor<3x65xf32>
// CHECK: %[[SUM:.*]] = spyre_graph.scatter_add ins(%[[SCALED]], %arg1 : {{.*}}) outs(%[[WIDE]]
// CHECK: spyre_graph.identity ins(%[[SUM]] : {{.*}} -> tensor<3x65xf16>
func.func @index_add(%x: tensor<3x65xf16>, %i: tensor<7xi64>, %v: tensor<7x65xf16>) -> tensor<3x65xf16> {
  %0 = "aten.index_add.default"(%x, %i, %v) {operands = ["self", "index", "source"], dim = 0, alpha = 2.0} : (tensor<3x65xf16>, tensor<7xi64>, tensor<7x65xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

// CHECK-LABEL: @add_integers
// CHECK-NEXT: spyre_graph.scatter_add ins(%arg2, %arg1 : {{.*}}) outs(%arg0 : tensor<3x65xi64>)
func.func @add_integers(%x: tensor<3x65xi64>, %i: tensor<7xi64>, %v: tensor<7x65xi64>) -> tensor<3x65xi64> {
  %0 = "aten.index_add.default"(%x, %i, %v) {operands = ["self", "index", "source"], dim = 0} : (tensor<3x65xi64>, tensor<7xi64>, tensor<7x65xi64>) -> tensor<3x65xi64>
  return %0 : tensor<3x65xi64>
}

// -----

// CHECK-LABEL: @scatter_value
// CHECK: %[[FULL:.*]] = spyre_graph.fill {{.*}} {immediates = [3.000000e+00 : f32]} -> tensor<3x5xf16>
// CHECK: spyre_graph.scatter ins(%[[FULL]], %arg1 : {{.*}}) outs(%arg0
func.func @scatter_value(%x: tensor<3x65xf16>, %i: tensor<3x5xi64>) -> tensor<3x65xf16> {
  %0 = "aten.scatter.value"(%x, %i) {operands = ["self", "index"], dim = 1, src = 3.0} : (tensor<3x65xf16>, tensor<3x5xi64>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

// Maxima need no wider type. Without the tensor's own elements, -inf takes the
// places that are written first.
// CHECK-LABEL: @scatter_amax
// CHECK: %[[LOWEST:.*]] = spyre_graph.fill {{.*}} {immediates = [0xFF800000 : f32]} -> tensor<3x5xf16>
// CHECK: %[[INIT:.*]] = spyre_graph.scatter ins(%[[LOWEST]], %arg1 : {{.*}}) outs(%arg0
// CHECK: spyre_graph.scatter_max ins(%arg2, %arg1 : {{.*}}) outs(%[[INIT]]
func.func @scatter_amax(%x: tensor<3x65xf16>, %i: tensor<3x5xi64>, %s: tensor<3x5xf16>) -> tensor<3x65xf16> {
  %0 = "aten.scatter_reduce.two"(%x, %i, %s) {operands = ["self", "index", "src"], dim = 1, reduce = "amax", include_self = false} : (tensor<3x65xf16>, tensor<3x5xi64>, tensor<3x5xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

// A mean is a sum over the number of its terms.
// CHECK-LABEL: @scatter_mean
// CHECK: %[[SUM:.*]] = spyre_graph.scatter_add ins(%arg2
// CHECK: %[[ONES:.*]] = spyre_graph.fill {{.*}} {immediates = [1]} -> tensor<3x65xf32>
// CHECK: %[[COUNT:.*]] = spyre_graph.scatter_add ins({{.*}}) outs(%[[ONES]]
// CHECK: spyre_graph.div ins(%[[SUM]], %[[COUNT]]
func.func @scatter_mean(%x: tensor<3x65xf16>, %i: tensor<3x5xi64>, %s: tensor<3x5xf16>) -> tensor<3x65xf16> {
  %0 = "aten.scatter_reduce.two"(%x, %i, %s) {operands = ["self", "index", "src"], dim = 1, reduce = "mean"} : (tensor<3x65xf16>, tensor<3x5xi64>, tensor<3x5xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

func.func @unknown_reduction(%x: tensor<3xf16>, %i: tensor<3xi64>, %s: tensor<3xf16>) -> tensor<3xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.scatter_reduce.two: unknown reduction 'norm'}}
  %0 = "aten.scatter_reduce.two"(%x, %i, %s) {operands = ["self", "index", "src"], dim = 0, reduce = "norm"} : (tensor<3xf16>, tensor<3xi64>, tensor<3xf16>) -> tensor<3xf16>
  return %0 : tensor<3xf16>
}

// -----

// Nothing is written where an index without elements says so; ranks may differ.
// CHECK-LABEL: @scatter_nothing
// CHECK: spyre_graph.scatter_add ins({{.*}} : tensor<0xf16>, tensor<0xi64>) outs({{.*}} : tensor<5xf32>)
func.func @scatter_nothing(%x: tensor<5xf16>, %i: tensor<2x0xi64>, %s: tensor<2x0xf16>) -> tensor<5xf16> {
  %0 = "aten.scatter_add.default"(%x, %i, %s) {operands = ["self", "index", "src"], dim = 0} : (tensor<5xf16>, tensor<2x0xi64>, tensor<2x0xf16>) -> tensor<5xf16>
  return %0 : tensor<5xf16>
}

// -----

// The row of the padding gets no gradient.
// CHECK-LABEL: @embedding_backward
// CHECK: %[[SUM:.*]] = spyre_graph.scatter_add ins(%arg0, %arg1 : {{.*}}) outs(%{{.*}} : tensor<9x65xf32>)
// CHECK: %[[ROUNDED:.*]] = spyre_graph.identity ins(%[[SUM]] : {{.*}} -> tensor<9x65xf16>
// CHECK: spyre_graph.identity ins({{.*}}) outs(%[[ROUNDED]]
func.func @embedding_backward(%g: tensor<7x65xf16>, %i: tensor<7xi64>) -> tensor<9x65xf16> {
  %0 = "aten.embedding_dense_backward.default"(%g, %i) {num_weights = 9, padding_idx = 2, scale_grad_by_freq = false} : (tensor<7x65xf16>, tensor<7xi64>) -> tensor<9x65xf16>
  return %0 : tensor<9x65xf16>
}
