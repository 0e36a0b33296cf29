// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Attention.cpp.

// Two query heads per key head; the scale is one over the root of the head size.
// CHECK-LABEL: @attention
// CHECK: spyre_graph.attention {{.*}}%arg0, %arg1, %arg2{{.*}}1.250000e-01 : f64
func.func @attention(%q: tensor<1x4x63x64xf16>, %k: tensor<1x2x65x64xf16>, %v: tensor<1x2x65x64xf16>) -> tensor<1x4x63x64xf16> {
  %0 = "aten.scaled_dot_product_attention.default"(%q, %k, %v) {enable_gqa = true}
      : (tensor<1x4x63x64xf16>, tensor<1x2x65x64xf16>, tensor<1x2x65x64xf16>) -> tensor<1x4x63x64xf16>
  return %0 : tensor<1x4x63x64xf16>
}

// -----

func.func @heads(%q: tensor<1x3x63x64xf16>, %k: tensor<1x2x65x64xf16>) -> tensor<1x3x63x64xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{query heads are not a multiple of key and value heads}}
  %0 = "aten.scaled_dot_product_attention.default"(%q, %k, %k) : (tensor<1x3x63x64xf16>, tensor<1x2x65x64xf16>, tensor<1x2x65x64xf16>) -> tensor<1x3x63x64xf16>
  return %0 : tensor<1x3x63x64xf16>
}

// -----

func.func @dropout(%q: tensor<1x2x63x64xf16>) -> tensor<1x2x63x64xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.scaled_dot_product_attention.default: dropout is not supported}}
  %0 = "aten.scaled_dot_product_attention.default"(%q, %q, %q) {dropout_p = 0.5} : (tensor<1x2x63x64xf16>, tensor<1x2x63x64xf16>, tensor<1x2x63x64xf16>) -> tensor<1x2x63x64xf16>
  return %0 : tensor<1x2x63x64xf16>
}

// -----

func.func @mask(%q: tensor<1x2x63x64xf16>, %m: tensor<63x64xf16>) -> tensor<1x2x63x64xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{the mask does not broadcast to the scores}}
  %0 = "aten.scaled_dot_product_attention.default"(%q, %q, %q, %m) : (tensor<1x2x63x64xf16>, tensor<1x2x63x64xf16>, tensor<1x2x63x64xf16>, tensor<63x64xf16>) -> tensor<1x2x63x64xf16>
  return %0 : tensor<1x2x63x64xf16>
}

// -----

func.func @mask_rank(%q: tensor<1x2x64x64xf16>, %m: tensor<1x1x1x64x64xf16>) -> tensor<1x2x64x64xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{the mask does not broadcast to the scores}}
  %0 = "aten.scaled_dot_product_attention.default"(%q, %q, %q, %m) : (tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x1x1x64x64xf16>) -> tensor<1x2x64x64xf16>
  return %0 : tensor<1x2x64x64xf16>
}

// -----

func.func @mask_integers(%q: tensor<1x2x64x64xf16>, %m: tensor<64x64xi64>) -> tensor<1x2x64x64xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{the mask is neither boolean nor of floats of more than 8 bits}}
  %0 = "aten.scaled_dot_product_attention.default"(%q, %q, %q, %m) : (tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x64xf16>, tensor<64x64xi64>) -> tensor<1x2x64x64xf16>
  return %0 : tensor<1x2x64x64xf16>
}
