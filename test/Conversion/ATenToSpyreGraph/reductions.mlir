// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Reductions.cpp.

// Dimensions count from either end; none means all.
// CHECK-LABEL: @sum
// CHECK: spyre_graph.sum ins(%arg0 : {{.*}} {dims = array<i64: 0, 2>} -> tensor<65xf16>
// CHECK: spyre_graph.sum ins(%arg0 : {{.*}} {dims = array<i64: 0, 1, 2>} -> tensor<f32>
// CHECK: spyre_graph.sum ins(%arg0 : {{.*}} {dims = array<i64: 1>} -> tensor<3x1x64xf16>
func.func @sum(%x: tensor<3x65x64xf16>) -> (tensor<65xf16>, tensor<f32>, tensor<3x1x64xf16>) {
  %0 = "aten.sum.dim_IntList"(%x) {dim = [-1, 0]} : (tensor<3x65x64xf16>) -> tensor<65xf16>
  %1 = "aten.sum.default"(%x) {dtype = f32} : (tensor<3x65x64xf16>) -> tensor<f32>
  %2 = "aten.sum.dim_IntList"(%x) {dim = [1], keepdim = true} : (tensor<3x65x64xf16>) -> tensor<3x1x64xf16>
  return %0, %1, %2 : tensor<65xf16>, tensor<f32>, tensor<3x1x64xf16>
}

// -----

// A tensor without dimensions is its own sum.
// CHECK-LABEL: @sum_of_scalar
// CHECK-NOT: spyre_graph.sum
// CHECK: spyre_graph.identity ins(%arg0 : tensor<f16>) outs({{.*}}) -> tensor<f32>
func.func @sum_of_scalar(%x: tensor<f16>) -> tensor<f32> {
  %0 = "aten.sum.default"(%x) {dtype = f32} : (tensor<f16>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Only results that are wanted are computed.
// CHECK-LABEL: @max_dim
// CHECK-NOT: spyre_graph.max
// CHECK: spyre_graph.argmax ins(%arg0 : {{.*}} {dims = array<i64: 1>} -> tensor<3xi64>
// CHECK-NOT: spyre_graph.max
func.func @max_dim(%x: tensor<3x65xf16>) -> tensor<3xi64> {
  %0:2 = "aten.max.dim"(%x) {dim = 1} : (tensor<3x65xf16>) -> (none, tensor<3xi64>)
  return %0#1 : tensor<3xi64>
}

// -----

// Booleans: the largest is any, and they compare as 32-bit integers.
// CHECK-LABEL: @max_bool
// CHECK: spyre_graph.any ins(%arg0
// CHECK: %[[WIDE:.*]] = spyre_graph.identity ins(%arg0 : tensor<65xi1>) outs({{.*}}) -> tensor<65xi32>
// CHECK: spyre_graph.argmax ins(%[[WIDE]]
func.func @max_bool(%x: tensor<65xi1>) -> (tensor<i1>, tensor<i64>) {
  %0:2 = "aten.max.dim"(%x) {dim = 0} : (tensor<65xi1>) -> (tensor<i1>, tensor<i64>)
  return %0#0, %0#1 : tensor<i1>, tensor<i64>
}

// -----

func.func @max_of_nothing(%x: tensor<3x0xf16>) -> tensor<3xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.amax.default: there is no maximum or minimum of no elements}}
  %0 = "aten.amax.default"(%x) {dim = [1]} : (tensor<3x0xf16>) -> tensor<3xf16>
  return %0 : tensor<3xf16>
}

// -----

// A variance is about an exact mean: both are f32; 65 - 1 degrees of freedom.
// CHECK-LABEL: @var
// CHECK: %[[MEAN:.*]] = spyre_graph.mean ins(%arg0 : {{.*}}) outs({{.*}}) {dims = array<i64: 1>} -> tensor<3x1xf32>
// CHECK: %[[VAR:.*]] = spyre_graph.sum_squares ins(%arg0, %[[MEAN]] : {{.*}} {dims = array<i64: 1>, scale = 1.562500e-02 : f64} -> tensor<3xf32>
// CHECK: spyre_graph.identity ins(%[[VAR]] : tensor<3xf32>) outs({{.*}}) -> tensor<3xf16>
func.func @var(%x: tensor<3x65xf16>) -> tensor<3xf16> {
  %0 = "aten.var.correction"(%x) {dim = [1]} : (tensor<3x65xf16>) -> tensor<3xf16>
  return %0 : tensor<3xf16>
}

// -----

func.func @var_of_integers(%x: tensor<65xi64>) -> tensor<i64> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.var.correction: variance of integers}}
  %0 = "aten.var.correction"(%x) : (tensor<65xi64>) -> tensor<i64>
  return %0 : tensor<i64>
}

// -----

// CHECK-LABEL: @norm
// CHECK: %[[SQUARES:.*]] = spyre_graph.sum_squares ins(%arg0 : {{.*}} {dims = array<i64: 0>, scale = 1.000000e+00 : f64} -> tensor<f32>
// CHECK: spyre_graph.sqrt ins(%[[SQUARES]] : tensor<f32>) outs({{.*}}) -> tensor<f16>
func.func @norm(%x: tensor<65xf16>) -> tensor<f16> {
  %0 = "aten.linalg_vector_norm.default"(%x) : (tensor<65xf16>) -> tensor<f16>
  return %0 : tensor<f16>
}

// -----

func.func @other_norm(%x: tensor<65xf16>) -> tensor<f16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.linalg_vector_norm.default: only the 2-norm is supported}}
  %0 = "aten.linalg_vector_norm.default"(%x) {ord = 1} : (tensor<65xf16>) -> tensor<f16>
  return %0 : tensor<f16>
}

// -----

// The mean over 2 x 65 squares in one operation.
// CHECK-LABEL: @mse_loss
// CHECK: spyre_graph.sum_squares ins(%arg0, %arg1 : {{.*}} {dims = array<i64: 0, 1>, scale = 0.00769{{[0-9]+}} : f64} -> tensor<f16>
func.func @mse_loss(%x: tensor<2x65xf16>, %y: tensor<2x65xf16>) -> tensor<f16> {
  %0 = "aten.mse_loss.default"(%x, %y) : (tensor<2x65xf16>, tensor<2x65xf16>) -> tensor<f16>
  return %0 : tensor<f16>
}
