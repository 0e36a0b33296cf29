// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Normalization.cpp.

// CHECK-LABEL: @softmax
// CHECK: spyre_graph.softmax %arg0 {dim = 1 : i64}
// CHECK: spyre_graph.softmax %arg0 {dim = 0 : i64, log}
func.func @softmax(%x: tensor<3x65xf16>) -> (tensor<3x65xf16>, tensor<3x65xf16>) {
  %0 = "aten._softmax.default"(%x) {dim = -1, half_to_float = false} : (tensor<3x65xf16>) -> tensor<3x65xf16>
  %1 = "aten.log_softmax.int"(%x) {dim = 0} : (tensor<3x65xf16>) -> tensor<3x65xf16>
  return %0, %1 : tensor<3x65xf16>, tensor<3x65xf16>
}

// -----

// One element has all of the probability, if it is finite.
// CHECK-LABEL: @softmax_of_scalar
// CHECK: %[[LESS:.*]] = spyre_graph.sub ins(%arg0, %arg0 :
// CHECK: spyre_graph.exp ins(%[[LESS]] :
func.func @softmax_of_scalar(%x: tensor<f16>) -> tensor<f16> {
  %0 = "aten.softmax.int"(%x) {dim = 0} : (tensor<f16>) -> tensor<f16>
  return %0 : tensor<f16>
}

// -----

func.func @softmax_of_integers(%x: tensor<65xi64>) -> tensor<65xi64> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten._softmax.default: softmax of integers}}
  %0 = "aten._softmax.default"(%x) {dim = 0} : (tensor<65xi64>) -> tensor<65xi64>
  return %0 : tensor<65xi64>
}

// -----

// Statistics are f32; a bias may be without a weight.
// CHECK-LABEL: @layer_norm
// CHECK: spyre_graph.layer_norm %arg0{{.*}}%arg1{{.*}}tensor<3x1x1xf32>
func.func @layer_norm(%x: tensor<3x5x65xf16>, %b: tensor<5x65xf16>) -> tensor<3x5x65xf16> {
  %0:3 = "aten.native_layer_norm.default"(%x, %b) {operands = ["input", "bias"], normalized_shape = [5, 65], eps = 1.0e-5}
      : (tensor<3x5x65xf16>, tensor<5x65xf16>) -> (tensor<3x5x65xf16>, none, none)
  return %0#0 : tensor<3x5x65xf16>
}

// -----

// The default is the machine epsilon of f32.
// CHECK-LABEL: @rms_norm
// CHECK: spyre_graph.rms_norm %arg0{{.*}}1.1920928955078125E-7
func.func @rms_norm(%x: tensor<3x65xf16>) -> tensor<3x65xf16> {
  %0 = "aten.rms_norm.default"(%x) {normalized_shape = [65]} : (tensor<3x65xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

func.func @other_shape(%x: tensor<3x65xf16>) -> tensor<3x65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.rms_norm.default: 'normalized_shape' is not the shape of the last dimensions}}
  %0 = "aten.rms_norm.default"(%x) {normalized_shape = [3]} : (tensor<3x65xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}
