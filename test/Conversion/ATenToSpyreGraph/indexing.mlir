// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Indexing.cpp.

// CHECK-LABEL: @embedding
// CHECK: spyre_graph.gather ins(%arg0, %arg1 : {{.*}}) outs({{.*}}) {axis = 0 : i64} -> tensor<5x65xf16>
func.func @embedding(%table: tensor<100x65xf16>, %i: tensor<5xi64>) -> tensor<5x65xf16> {
  %0 = "aten.embedding.default"(%table, %i) : (tensor<100x65xf16>, tensor<5xi64>) -> tensor<5x65xf16>
  return %0 : tensor<5x65xf16>
}

// -----

// Negative indices count from the end. The index's dimension takes the place of
// the dimension that None leaves to it.
// CHECK-LABEL: @index
// CHECK: %[[I:.*]] = spyre_graph.wrap_index ins(%arg1 : {{.*}}) outs({{.*}}) {size = 65 : i64}
// CHECK: spyre_graph.gather ins(%arg0, %[[I]] : {{.*}}) outs({{.*}}) {axis = 1 : i64} -> tensor<3x7xf16>
func.func @index(%x: tensor<3x65xf16>, %i: tensor<7xi64>) -> tensor<3x7xf16> {
  %0 = "aten.index.Tensor"(%x, %i) {operands = ["self", "indices[1]"]} : (tensor<3x65xf16>, tensor<7xi64>) -> tensor<3x7xf16>
  return %0 : tensor<3x7xf16>
}

// -----

// Two indices are one into both dimensions as one: 65 i + j.
// CHECK-LABEL: @index_two
// CHECK: %[[MERGED:.*]] = spyre_graph.identity ins(%arg0 : {{.*}}) outs({{.*}}) {{.*}} -> tensor<195xf16>
// CHECK: spyre_graph.gather ins(%[[MERGED]], %{{.*}} : {{.*}}) outs({{.*}}) {axis = 0 : i64} -> tensor<7xf16>
func.func @index_two(%x: tensor<3x65xf16>, %i: tensor<7xi64>, %j: tensor<7xi64>) -> tensor<7xf16> {
  %0 = "aten.index.Tensor"(%x, %i, %j) {operands = ["self", "indices[0]", "indices[1]"]} : (tensor<3x65xf16>, tensor<7xi64>, tensor<7xi64>) -> tensor<7xf16>
  return %0 : tensor<7xf16>
}

// -----

func.func @apart(%x: tensor<3x65x5xf16>, %i: tensor<7xi64>) -> tensor<7x65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.index.Tensor: index tensors must be in dimensions next to each other}}
  %0 = "aten.index.Tensor"(%x, %i, %i) {operands = ["self", "indices[0]", "indices[2]"]} : (tensor<3x65x5xf16>, tensor<7xi64>, tensor<7xi64>) -> tensor<7x65xf16>
  return %0 : tensor<7x65xf16>
}

// -----

func.func @mask(%x: tensor<65xf16>, %m: tensor<65xi1>) -> tensor<7xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{the result's size depends on the values of a boolean index}}
  %0 = "aten.index.Tensor"(%x, %m) {operands = ["self", "indices[0]"]} : (tensor<65xf16>, tensor<65xi1>) -> tensor<7xf16>
  return %0 : tensor<7xf16>
}

// -----

// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: @gather
// CHECK: spyre_graph.gather ins(%arg0, %arg1 : {{.*}}) outs({{.*}}) {axis = 1 : i64, extents = array<i64: 3, 5>, maps = [#[[ROW]], #{{.*}}, #{{.*}}]}
func.func @gather(%x: tensor<3x65xf16>, %i: tensor<3x5xi64>) -> tensor<3x5xf16> {
  %0 = "aten.gather.default"(%x, %i) {operands = ["self", "index"], dim = -1} : (tensor<3x65xf16>, tensor<3x5xi64>) -> tensor<3x5xf16>
  return %0 : tensor<3x5xf16>
}

// -----

// One value goes to every indexed row.
// CHECK-DAG: #[[ONE:.*]] = affine_map<(d0, d1) -> (0)>
// CHECK-LABEL: @index_put
// CHECK: spyre_graph.scatter ins(%arg2, %{{.*}} : {{.*}}) outs(%arg0 : {{.*}}) {axis = 0 : i64, extents = array<i64: 7, 65>, maps = [#[[ONE]],
func.func @index_put(%x: tensor<3x65xf16>, %i: tensor<7xi64>, %v: tensor<1xf16>) -> tensor<3x65xf16> {
  %0 = "aten.index_put.default"(%x, %i, %v) {operands = ["self", "indices[0]", "values"]} : (tensor<3x65xf16>, tensor<7xi64>, tensor<1xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

// What accumulates is a product with the one-hot matrix of the indices.
// CHECK-LABEL: @index_add
// CHECK: %[[HOT:.*]] = spyre_graph.eq ins({{.*}}) outs({{.*}}) {{.*}} -> tensor<3x7xf16>
// CHECK: spyre_graph.matmul ins(%[[HOT]], {{.*}}has_bias
func.func @index_add(%x: tensor<3x65xf16>, %i: tensor<7xi64>, %v: tensor<7x65xf16>) -> tensor<3x65xf16> {
  %0 = "aten.index_add.default"(%x, %i, %v) {operands = ["self", "index", "source"], dim = 0} : (tensor<3x65xf16>, tensor<7xi64>, tensor<7x65xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

func.func @add_integers(%x: tensor<3x65xi64>, %i: tensor<7xi64>, %v: tensor<7x65xi64>) -> tensor<3x65xi64> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.index_add.default: values to accumulate must be floats of self's type}}
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

func.func @take_nothing(%x: tensor<0xf16>, %i: tensor<5xi64>) -> tensor<5xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.take.default: cannot take elements of an empty tensor}}
  %0 = "aten.take.default"(%x, %i) : (tensor<0xf16>, tensor<5xi64>) -> tensor<5xf16>
  return %0 : tensor<5xf16>
}
