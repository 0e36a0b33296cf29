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

// Two indices are one into both dimensions as one, 65 i + j, or -1 if either is
// outside of its own.
// CHECK-LABEL: @index_two
// CHECK: %[[I:.*]] = spyre_graph.flat_index ins(%arg1 : {{.*}}) outs({{.*}}) {immediates = [0, unit], size = 3 : i64}
// CHECK: %[[IJ:.*]] = spyre_graph.flat_index ins(%[[I]], %arg2 : {{.*}}) outs({{.*}}) {size = 65 : i64}
// CHECK: %[[MERGED:.*]] = spyre_graph.identity ins(%arg0 : {{.*}}) outs({{.*}}) {{.*}} -> tensor<195xf16>
// CHECK: spyre_graph.gather ins(%[[MERGED]], %[[IJ]] : {{.*}}) outs({{.*}}) {axis = 0 : i64} -> tensor<7xf16>
func.func @index_two(%x: tensor<3x65xf16>, %i: tensor<7xi64>, %j: tensor<7xi64>) -> tensor<7xf16> {
  %0 = "aten.index.Tensor"(%x, %i, %j) {operands = ["self", "indices[0]", "indices[1]"]} : (tensor<3x65xf16>, tensor<7xi64>, tensor<7xi64>) -> tensor<7xf16>
  return %0 : tensor<7xf16>
}

// -----

// Dimensions that do not follow each other come first.
// CHECK-DAG: #[[MOVED:.*]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// CHECK-LABEL: @apart
// CHECK: %[[VIEW:.*]] = spyre_graph.view %arg0, #[[MOVED]] : tensor<3x65x5xf16> -> tensor<3x5x65xf16>
// CHECK: %[[MERGED:.*]] = spyre_graph.identity ins(%[[VIEW]] : {{.*}} -> tensor<15x65xf16>
// CHECK: spyre_graph.gather ins(%[[MERGED]], {{.*}} {axis = 0 : i64} -> tensor<7x65xf16>
func.func @apart(%x: tensor<3x65x5xf16>, %i: tensor<7xi64>) -> tensor<7x65xf16> {
  %0 = "aten.index.Tensor"(%x, %i, %i) {operands = ["self", "indices[0]", "indices[2]"]} : (tensor<3x65x5xf16>, tensor<7xi64>, tensor<7xi64>) -> tensor<7x65xf16>
  return %0 : tensor<7x65xf16>
}

// -----

func.func @too_many(%x: tensor<65536x65536xf16>, %i: tensor<7xi64>) -> tensor<7xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{the indexed dimensions have 4294967296 elements together, which 32 bits do not count}}
  %0 = "aten.index.Tensor"(%x, %i, %i) {operands = ["self", "indices[0]", "indices[1]"]} : (tensor<65536x65536xf16>, tensor<7xi64>, tensor<7xi64>) -> tensor<7xf16>
  return %0 : tensor<7xf16>
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

// The index has no element, and another rank.
// CHECK-LABEL: @gather_nothing
// CHECK-NOT: spyre_graph.gather
// CHECK: return %{{.*}} : tensor<2x0xf16>
func.func @gather_nothing(%x: tensor<5xf16>, %i: tensor<2x0xi64>) -> tensor<2x0xf16> {
  %0 = "aten.gather.default"(%x, %i) {operands = ["self", "index"], dim = 0} : (tensor<5xf16>, tensor<2x0xi64>) -> tensor<2x0xf16>
  return %0 : tensor<2x0xf16>
}

// -----

func.func @take_nothing(%x: tensor<0xf16>, %i: tensor<5xi64>) -> tensor<5xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.take.default: cannot take elements of an empty tensor}}
  %0 = "aten.take.default"(%x, %i) : (tensor<0xf16>, tensor<5xi64>) -> tensor<5xf16>
  return %0 : tensor<5xf16>
}

// -----

func.func @more_than_dimensions(%x: tensor<3x65xf16>, %i: tensor<7xi64>, %v: tensor<7xf16>) {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.index.Tensor: there are more indices than dimensions}}
  %0 = "aten.index.Tensor"(%x, %i, %i) {operands = ["self", "indices[0]", "indices[2]"]} : (tensor<3x65xf16>, tensor<7xi64>, tensor<7xi64>) -> tensor<7x65xf16>
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.index_put.default: there are more indices than dimensions}}
  %1 = "aten.index_put.default"(%x, %i, %v) {operands = ["self", "indices[2]", "values"]} : (tensor<3x65xf16>, tensor<7xi64>, tensor<7xf16>) -> tensor<3x65xf16>
  return
}
