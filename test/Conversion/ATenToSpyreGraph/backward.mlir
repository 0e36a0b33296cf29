// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Backward.cpp.

// (self - target) x gradient x 2 / 130, rounded once.
// CHECK-LABEL: @mse_loss_backward
// CHECK: spyre_graph.layernormnorm ins(%arg1, %arg2, %arg0 : {{.*}} {immediates = [unit, unit, unit, 0.0153846154 : f32, 0.000000e+00 : f32]}
func.func @mse_loss_backward(%g: tensor<f16>, %x: tensor<2x65xf16>, %y: tensor<2x65xf16>) -> tensor<2x65xf16> {
  %0 = "aten.mse_loss_backward.default"(%g, %x, %y) {reduction = 1} : (tensor<f16>, tensor<2x65xf16>, tensor<2x65xf16>) -> tensor<2x65xf16>
  return %0 : tensor<2x65xf16>
}

// -----

func.func @no_weight(%g: tensor<3x65xf16>, %x: tensor<3x65xf16>, %r: tensor<3x1xf32>) -> tensor<65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{has no weight whose gradient is asked for}}
  %0:2 = "aten._fused_rms_norm_backward.default"(%g, %x, %r) {operands = ["grad_out", "input", "rstd"], normalized_shape = [65], output_mask = [false, true]}
      : (tensor<3x65xf16>, tensor<3x65xf16>, tensor<3x1xf32>) -> (none, tensor<65xf16>)
  return %0#1 : tensor<65xf16>
}
