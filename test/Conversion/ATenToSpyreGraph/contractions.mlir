// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Contractions.cpp.

// CHECK-LABEL: @mm
// CHECK: spyre_graph.matmul ins(%arg0, %arg1 : {{.*}}) outs({{.*}}) -> tensor<1x65xf16>
func.func @mm(%x: tensor<1x63xf16>, %y: tensor<63x65xf16>) -> tensor<1x65xf16> {
  %0 = "aten.mm.default"(%x, %y) : (tensor<1x63xf16>, tensor<63x65xf16>) -> tensor<1x65xf16>
  return %0 : tensor<1x65xf16>
}

// -----

// Where beta is 0, what self holds does not matter, not even a NaN.
// CHECK-LABEL: @addmm
// CHECK: spyre_graph.matmul ins(%arg1, %arg2, %arg0 : {{.*}} {alpha = 2.000000e+00 : f64, beta = 5.000000e-01 : f64, has_bias}
// CHECK: spyre_graph.matmul ins(%arg1, %arg2 : {{.*}})
// CHECK-NOT: has_bias
func.func @addmm(%b: tensor<65xf16>, %x: tensor<3x63xf16>, %y: tensor<63x65xf16>) -> (tensor<3x65xf16>, tensor<3x65xf16>) {
  %0 = "aten.addmm.default"(%b, %x, %y) {beta = 0.5, alpha = 2} : (tensor<65xf16>, tensor<3x63xf16>, tensor<63x65xf16>) -> tensor<3x65xf16>
  %1 = "aten.addmm.default"(%b, %x, %y) {beta = 0} : (tensor<65xf16>, tensor<3x63xf16>, tensor<63x65xf16>) -> tensor<3x65xf16>
  return %0, %1 : tensor<3x65xf16>, tensor<3x65xf16>
}

// -----

// The weight is read transposed, as a view.
// CHECK-DAG: #[[SWAP:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-LABEL: @linear
// CHECK: %[[W:.*]] = spyre_graph.view %arg1, #[[SWAP]] : tensor<65x63xf16> -> tensor<63x65xf16>
// CHECK: spyre_graph.matmul ins(%arg0, %[[W]], %arg2 : {{.*}}has_bias
func.func @linear(%x: tensor<2x3x63xf16>, %w: tensor<65x63xf16>, %b: tensor<65xf16>) -> tensor<2x3x65xf16> {
  %0 = "aten.linear.default"(%x, %w, %b) : (tensor<2x3x63xf16>, tensor<65x63xf16>, tensor<65xf16>) -> tensor<2x3x65xf16>
  return %0 : tensor<2x3x65xf16>
}

// -----

// A vector has no second dimension for the systolic array.
// CHECK-LABEL: @vectors
// CHECK: spyre_graph.sum_products ins(%arg0, %arg1 : {{.*}} {dims = array<i64: 1>
// CHECK: spyre_graph.sum_products ins(%arg1, %arg1 : {{.*}} {dims = array<i64: 0>
func.func @vectors(%m: tensor<3x65xf16>, %v: tensor<65xf16>) -> (tensor<3xf16>, tensor<f16>) {
  %0 = "aten.mv.default"(%m, %v) : (tensor<3x65xf16>, tensor<65xf16>) -> tensor<3xf16>
  %1 = "aten.dot.default"(%v, %v) : (tensor<65xf16>, tensor<65xf16>) -> tensor<f16>
  return %0, %1 : tensor<3xf16>, tensor<f16>
}

// -----

// Rounded once: the product is f32. Where beta is 0, it is the result.
// CHECK-LABEL: @addmv
// CHECK: %[[PRODUCT:.*]] = spyre_graph.sum_products ins(%arg1, %arg2 : {{.*}} -> tensor<3xf32>
// CHECK: spyre_graph.fma ins(%arg0, %[[PRODUCT]] : {{.*}} {immediates = [unit, 5.000000e-01 : f32, unit]} -> tensor<3xf16>
// CHECK: spyre_graph.sum_products ins(%arg1, %arg2 : {{.*}} -> tensor<3xf16>
// CHECK-NOT: spyre_graph.fma
func.func @addmv(%b: tensor<3xf16>, %m: tensor<3x65xf16>, %v: tensor<65xf16>) -> (tensor<3xf16>, tensor<3xf16>) {
  %0 = "aten.addmv.default"(%b, %m, %v) {beta = 0.5} : (tensor<3xf16>, tensor<3x65xf16>, tensor<65xf16>) -> tensor<3xf16>
  %1 = "aten.addmv.default"(%b, %m, %v) {beta = 0} : (tensor<3xf16>, tensor<3x65xf16>, tensor<65xf16>) -> tensor<3xf16>
  return %0, %1 : tensor<3xf16>, tensor<3xf16>
}

// -----

func.func @sizes(%x: tensor<3x63xf16>, %y: tensor<64x65xf16>) -> tensor<3x65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.mm.default: the operands must be matrices of matching sizes}}
  %0 = "aten.mm.default"(%x, %y) : (tensor<3x63xf16>, tensor<64x65xf16>) -> tensor<3x65xf16>
  return %0 : tensor<3x65xf16>
}

// -----

func.func @result(%x: tensor<3x63xf16>, %y: tensor<63x65xf16>) -> tensor<3x64xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.mm.default: }}
  %0 = "aten.mm.default"(%x, %y) : (tensor<3x63xf16>, tensor<63x65xf16>) -> tensor<3x64xf16>
  return %0 : tensor<3x64xf16>
}

// -----

func.func @vector_times_batch(%x: tensor<63xf16>, %y: tensor<2x63x65xf16>) -> tensor<2x65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.matmul.default: the product of a vector and a batch of matrices is not supported}}
  %0 = "aten.matmul.default"(%x, %y) : (tensor<63xf16>, tensor<2x63x65xf16>) -> tensor<2x65xf16>
  return %0 : tensor<2x65xf16>
}
