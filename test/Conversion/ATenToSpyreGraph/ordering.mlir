// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Ordering.cpp.

// CHECK-LABEL: @cumsum
// CHECK: spyre_graph.cumsum ins(%arg0 : {{.*}}) outs({{.*}}) {dim = 1 : i64}
func.func @cumsum(%x: tensor<3x65xf16>) -> tensor<3x65xf16> {
  %0 = "aten.cumsum.default"(%x) {dim = -1} : (tensor<3x65xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

// CHECK-LABEL: @cummax
// CHECK: %[[VALUES:.*]] = spyre_graph.cummax ins(%arg0 : {{.*}}) outs({{.*}}) {dim = 0 : i64} -> tensor<3x65xf16>
// CHECK: %[[PLACES:.*]] = spyre_graph.cummax ins(%arg0 : {{.*}}) outs({{.*}}) {dim = 0 : i64, indices} -> tensor<3x65xi64>
// CHECK: return %[[VALUES]], %[[PLACES]]
func.func @cummax(%x: tensor<3x65xf16>) -> (tensor<3x65xf16>, tensor<3x65xi64>) {
  %0:2 = "aten.cummax.default"(%x) {dim = 0} : (tensor<3x65xf16>) -> (tensor<3x65xf16>, tensor<3x65xi64>)
  return %0#0, %0#1 : tensor<3x65xf16>, tensor<3x65xi64>
}

// -----

// A scalar is its own minimum, at index 0.
// CHECK-LABEL: @cummin_of_scalar
// CHECK: spyre_graph.identity ins(%arg0
// CHECK: spyre_graph.fill {{.*}} {immediates = [0]} -> tensor<i64>
func.func @cummin_of_scalar(%x: tensor<f32>) -> (tensor<f32>, tensor<i64>) {
  %0:2 = "aten.cummin.default"(%x) {dim = -1} : (tensor<f32>) -> (tensor<f32>, tensor<i64>)
  return %0#0, %0#1 : tensor<f32>, tensor<i64>
}

// -----

// CHECK-LABEL: @sort
// CHECK: spyre_graph.sort ins(%arg0 : {{.*}}) outs({{.*}}) {descending, dim = 1 : i64} -> tensor<3x65xf16>
// CHECK: spyre_graph.sort ins(%arg0 : {{.*}}) outs({{.*}}) {descending, dim = 1 : i64, indices} -> tensor<3x65xi64>
func.func @sort(%x: tensor<3x65xf16>) -> (tensor<3x65xf16>, tensor<3x65xi64>) {
  %0:2 = "aten.sort.stable"(%x) {stable = true, dim = -1, descending = true} : (tensor<3x65xf16>) -> (tensor<3x65xf16>, tensor<3x65xi64>)
  return %0#0, %0#1 : tensor<3x65xf16>, tensor<3x65xi64>
}

// -----

// CHECK-LABEL: @sort_pairs
// CHECK: spyre_graph.sort ins(%arg0, %arg1 : {{.*}}) outs({{.*}}) {descending, dim = 1 : i64, run = 4 : i64} -> tensor<3x64xf16>
// CHECK: spyre_graph.sort ins(%arg0, %arg1 : {{.*}}) outs({{.*}}) {descending, dim = 1 : i64, indices, run = 4 : i64} -> tensor<3x64xi64>
func.func @sort_pairs(%x: tensor<3x64xf16>, %p: tensor<3x64xi64>) -> (tensor<3x64xf16>, tensor<3x64xi64>) {
  %0:2 = "spyre.sort_pairs.default"(%x, %p) {descending = true, run = 4} : (tensor<3x64xf16>, tensor<3x64xi64>) -> (tensor<3x64xf16>, tensor<3x64xi64>)
  return %0#0, %0#1 : tensor<3x64xf16>, tensor<3x64xi64>
}

// -----

func.func @sort_pairs_of_other_shapes(%x: tensor<3x64xf16>, %p: tensor<64xi64>) -> tensor<3x64xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{keys and places must have the same shape, of one dimension or more}}
  %0:2 = "spyre.sort_pairs.default"(%x, %p) {descending = true, run = 1} : (tensor<3x64xf16>, tensor<64xi64>) -> (tensor<3x64xf16>, none)
  return %0#0 : tensor<3x64xf16>
}

// -----

func.func @sort_of_many(%x: tensor<16385xf16>) -> tensor<16385xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.sort.default: more than 16384 elements are sorted in parts}}
  %0:2 = "aten.sort.default"(%x) : (tensor<16385xf16>) -> (tensor<16385xf16>, none)
  return %0#0 : tensor<16385xf16>
}

// -----

// CHECK-DAG: #[[THIRD:.*]] = affine_map<(d0) -> (2, d0)>
// CHECK-LABEL: @kthvalue
// CHECK: %[[SORTED:.*]] = spyre_graph.sort ins(%arg0 : {{.*}}) outs({{.*}}) {dim = 0 : i64} -> tensor<5x65xf16>
// CHECK: spyre_graph.view %[[SORTED]], #[[THIRD]] : tensor<5x65xf16> -> tensor<65xf16>
func.func @kthvalue(%x: tensor<5x65xf16>) -> tensor<65xf16> {
  %0:2 = "aten.kthvalue.default"(%x) {k = 3, dim = 0} : (tensor<5x65xf16>) -> (tensor<65xf16>, none)
  return %0#0 : tensor<65xf16>
}

// -----

func.func @no_kthvalue(%x: tensor<5xf16>) -> tensor<f16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.kthvalue.default: k is not within the dimension}}
  %0:2 = "aten.kthvalue.default"(%x) {k = 6, dim = 0} : (tensor<5xf16>) -> (tensor<f16>, none)
  return %0#0 : tensor<f16>
}

// -----

// The smallest are the largest of the reversed numbers: -x, or -1 - x, which is
// exact for every integer.
// CHECK-LABEL: @topk
// CHECK: %[[KEYS:.*]] = spyre_graph.sub ins(%arg0 : {{.*}}) outs({{.*}}) {immediates = [-1, unit]}
// CHECK: %[[TOP:.*]] = spyre_graph.topk ins(%[[KEYS]] : {{.*}}extents = array<i64: 3, 65, 5>
// CHECK: spyre_graph.topk ins(%[[KEYS]] : {{.*}}extents = array<i64: 3, 65, 5>, indices
// CHECK: spyre_graph.sub ins(%[[TOP]] : {{.*}}) outs({{.*}}) {immediates = [-1, unit]}
func.func @topk(%x: tensor<3x65xi32>) -> (tensor<3x5xi32>, tensor<3x5xi64>) {
  %0:2 = "aten.topk.default"(%x) {k = 5, largest = false} : (tensor<3x65xi32>) -> (tensor<3x5xi32>, tensor<3x5xi64>)
  return %0#0, %0#1 : tensor<3x5xi32>, tensor<3x5xi64>
}

// -----

// Many results are the first ones of a sort.
// CHECK-LABEL: @topk_of_many
// CHECK: %[[SORTED:.*]] = spyre_graph.sort ins(%arg0 : {{.*}}) outs({{.*}}) {descending, dim = 0 : i64} -> tensor<128xf16>
// CHECK: spyre_graph.view %[[SORTED]], #{{.*}} : tensor<128xf16> -> tensor<65xf16>
func.func @topk_of_many(%x: tensor<128xf16>) -> tensor<65xf16> {
  %0:2 = "aten.topk.default"(%x) {k = 65} : (tensor<128xf16>) -> (tensor<65xf16>, none)
  return %0#0 : tensor<65xf16>
}

// -----

// The negative of a NaN would be the largest: the smallest of fp32 are sorted.
// CHECK-LABEL: @smallest
// CHECK: spyre_graph.sort ins(%arg0 : {{.*}}) outs({{.*}}) {dim = 0 : i64}
func.func @smallest(%x: tensor<128xf32>) -> tensor<3xf32> {
  %0:2 = "aten.topk.default"(%x) {k = 3, largest = false} : (tensor<128xf32>) -> (tensor<3xf32>, none)
  return %0#0 : tensor<3xf32>
}
