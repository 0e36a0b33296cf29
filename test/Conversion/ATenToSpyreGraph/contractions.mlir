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

// -----

// Scales multiply the fp32 sum before the bias is added. A result of float8 is
// converted after that, divided by its own scale.
// CHECK-LABEL: @scaled
// CHECK: spyre_graph.matmul ins(%arg0, %arg1, %arg2, %arg3, %arg4 : {{.*}} {{{.*}}has_bias, num_scales = 2 : i64} -> tensor<3x65xf16>
// CHECK: %[[WIDE:.*]] = spyre_graph.matmul {{.*}} -> tensor<3x65xf32>
// CHECK: %[[OWN:.*]] = spyre_graph.div ins(%[[WIDE]], %arg5 {{.*}} -> tensor<3x65xf32>
// CHECK: spyre_graph.identity ins(%[[OWN]] {{.*}} -> tensor<3x65xf8E4M3FN>
func.func @scaled(%x: tensor<3x63xf8E4M3FN>, %y: tensor<63x65xf8E4M3FN>, %a: tensor<3x1xf32>, %b: tensor<1x65xf16>, %c: tensor<65xf16>, %s: tensor<f32>) -> (tensor<3x65xf16>, tensor<3x65xf8E4M3FN>) {
  %0 = "aten._scaled_mm.default"(%x, %y, %a, %b, %c) : (tensor<3x63xf8E4M3FN>, tensor<63x65xf8E4M3FN>, tensor<3x1xf32>, tensor<1x65xf16>, tensor<65xf16>) -> tensor<3x65xf16>
  %1 = "aten._scaled_mm.default"(%x, %y, %a, %b, %c, %s) : (tensor<3x63xf8E4M3FN>, tensor<63x65xf8E4M3FN>, tensor<3x1xf32>, tensor<1x65xf16>, tensor<65xf16>, tensor<f32>) -> tensor<3x65xf8E4M3FN>
  return %0, %1 : tensor<3x65xf16>, tensor<3x65xf8E4M3FN>
}

// -----

func.func @scaled_of_f16(%x: tensor<3x63xf16>, %y: tensor<63x65xf8E4M3FN>, %a: tensor<f32>) {
  // expected-error@+1 {{aten._scaled_mm.default: both factors must be float8_e4m3fn}}
  %0 = "aten._scaled_mm.default"(%x, %y, %a, %a) : (tensor<3x63xf16>, tensor<63x65xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<3x65xf16>
  return
}

// -----

// CHECK-LABEL: @of_int8
// CHECK: spyre_graph.matmul ins(%arg0, %arg1 : tensor<3x63xi8>, tensor<63x65xi8>) {{.*}} -> tensor<3x65xi32>
// CHECK: %[[W:.*]] = spyre_graph.view %arg3
// CHECK: spyre_graph.matmul ins(%arg2, %[[W]], %arg4 : tensor<3x63xf16>, tensor<63x65xi8>, tensor<65xf16>) {{.*}}num_scales = 1 : i64} -> tensor<3x65xf16>
func.func @of_int8(%x: tensor<3x63xi8>, %y: tensor<63x65xi8>, %h: tensor<3x63xf16>, %w: tensor<65x63xi8>, %s: tensor<65xf16>) -> (tensor<3x65xi32>, tensor<3x65xf16>) {
  %0 = "aten._int_mm.default"(%x, %y) : (tensor<3x63xi8>, tensor<63x65xi8>) -> tensor<3x65xi32>
  %1 = "aten._weight_int8pack_mm.default"(%h, %w, %s) : (tensor<3x63xf16>, tensor<65x63xi8>, tensor<65xf16>) -> tensor<3x65xf16>
  return %0, %1 : tensor<3x65xi32>, tensor<3x65xf16>
}

// -----

// Words of eight numbers lie along the sticks as columns do, in tiles of the
// reduction; where there are fewer columns than lanes, rows of words share sticks.
// CHECK-DAG: #[[WORDS:.*]] = affine_map<(d0, d1) -> ((d1 floordiv 32) * 4 + (d0 floordiv 2) mod 4, d0 floordiv 8, d1 mod 32, d0 mod 2)>
// CHECK-DAG: #[[FEW:.*]] = affine_map<(d0, d1) -> (d1 floordiv 8, d0 floordiv 8, (d1 mod 8) * 4 + (d0 floordiv 2) mod 4, d0 mod 2)>
// CHECK-LABEL: @of_int4
// CHECK: %[[ROWS:.*]] = spyre_graph.view %arg1, #[[WORDS]] : tensor<12x2x32x2xi32> -> tensor<16x96xi32>
// CHECK: %[[W:.*]] = spyre_graph.unpack_int4 ins(%[[ROWS]], %arg2, %arg2 : {{.*}} {dim = 2 : i64, extents = array<i64: 4, 4, 8, 96>, {{.*}} -> tensor<128x96xf16>
// CHECK: spyre_graph.matmul ins(%arg0, %[[W]] :
// CHECK: spyre_graph.view %arg3, #[[FEW]] : tensor<5x2x32x2xi32> -> tensor<16x40xi32>
func.func @of_int4(%x: tensor<3x128xf16>, %w: tensor<12x2x32x2xi32>, %s: tensor<4x96x2xf16>, %v: tensor<5x2x32x2xi32>, %t: tensor<4x40x2xf16>) -> (tensor<3x96xf16>, tensor<3x40xf16>) {
  %0 = "aten._weight_int4pack_mm.default"(%x, %w, %s) {operands = ["self", "mat2", "qScaleAndZeros"], qGroupSize = 32} : (tensor<3x128xf16>, tensor<12x2x32x2xi32>, tensor<4x96x2xf16>) -> tensor<3x96xf16>
  %1 = "aten._weight_int4pack_mm.default"(%x, %v, %t) {operands = ["self", "mat2", "qScaleAndZeros"], qGroupSize = 32} : (tensor<3x128xf16>, tensor<5x2x32x2xi32>, tensor<4x40x2xf16>) -> tensor<3x40xf16>
  return %0, %1 : tensor<3x96xf16>, tensor<3x40xf16>
}

// -----

// A convolution with 4 filters of 3 elements in 2 groups: loops for groups, rows, columns
// and sums, as a matmul has them, and none for dimensions of extent 1.
// CHECK-DAG: #[[X:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (0, d0, 0, d1, d3, d4)>
// CHECK-DAG: #[[W:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (0, d0, d2, 0, d3, d4)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (0, d0, d2, d1)>
// CHECK-DAG: #[[BIAS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (0, d0, d2, 0)>
// CHECK-LABEL: @windows
// CHECK: spyre_graph.matmul ins(%arg0, %arg1, %arg2 : {{.*}} {extents = array<i64: 2, 63, 4, 3, 5>, has_bias,
// CHECK-SAME: maps = [#[[X]], #[[W]], #[[BIAS]], #[[OUT]]]} -> tensor<1x2x4x63xf16>
func.func @windows(%x: tensor<1x2x1x63x3x5xf16>, %w: tensor<1x2x4x1x3x5xf16>, %b: tensor<1x2x4x1xf16>) -> tensor<1x2x4x63xf16> {
  %0 = "spyre.sum_products.default"(%x, %w, %b) {operands = ["x", "y", "bias"], dims = [4, 5]}
      : (tensor<1x2x1x63x3x5xf16>, tensor<1x2x4x1x3x5xf16>, tensor<1x2x4x1xf16>) -> tensor<1x2x4x63xf16>
  return %0 : tensor<1x2x4x63xf16>
}

// -----

// One channel per group has no columns, and its bias is added before it is rounded.
// CHECK-LABEL: @depthwise
// CHECK: %[[SUM:.*]] = spyre_graph.sum_products ins(%arg0, %arg1 : {{.*}} {dims = array<i64: 2>, extents = array<i64: 65, 9, 3>, {{.*}} -> tensor<65x9xf32>
// CHECK: spyre_graph.add ins(%[[SUM]], %arg2 : {{.*}} -> tensor<65x9xf16>
func.func @depthwise(%x: tensor<65x9x3xf16>, %w: tensor<65x1x3xf16>, %b: tensor<65x1xf16>) -> tensor<65x9xf16> {
  %0 = "spyre.sum_products.default"(%x, %w, %b) {operands = ["x", "y", "bias"], dims = [2]}
      : (tensor<65x9x3xf16>, tensor<65x1x3xf16>, tensor<65x1xf16>) -> tensor<65x9xf16>
  return %0 : tensor<65x9xf16>
}

// -----

// A product of matrices that is to be elementwise; the sum of one product has a loop.
// CHECK-LABEL: @elementwise
// CHECK: spyre_graph.sum_products ins(%arg0, %arg1 : {{.*}} extents = array<i64: 5, 7, 1>
// CHECK-NOT: spyre_graph.matmul
func.func @elementwise(%x: tensor<5x1x1xf16>, %y: tensor<1x7x1xf16>) -> tensor<5x7xf16> {
  %0 = "spyre.sum_products.default"(%x, %y) {dims = [2], elementwise = true} : (tensor<5x1x1xf16>, tensor<1x7x1xf16>) -> tensor<5x7xf16>
  return %0 : tensor<5x7xf16>
}

// -----

func.func @no_broadcast(%x: tensor<5x3xf16>, %y: tensor<5x2xf16>) -> tensor<5xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{spyre.sum_products.default: the operands' shapes do not agree}}
  %0 = "spyre.sum_products.default"(%x, %y) {dims = [1]} : (tensor<5x3xf16>, tensor<5x2xf16>) -> tensor<5xf16>
  return %0 : tensor<5xf16>
}

// -----

func.func @twice(%x: tensor<5x3xf16>) -> tensor<5xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{spyre.sum_products.default: dims must be distinct dimensions, counted from 0}}
  %0 = "spyre.sum_products.default"(%x, %x) {dims = [1, 1]} : (tensor<5x3xf16>, tensor<5x3xf16>) -> tensor<5xf16>
  return %0 : tensor<5xf16>
}

// -----

func.func @bias(%x: tensor<5x3xf16>, %b: tensor<3xf16>) -> tensor<5xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{spyre.sum_products.default: the bias must have the rank of the result, and be broadcast to it}}
  %0 = "spyre.sum_products.default"(%x, %x, %b) {operands = ["x", "y", "bias"], dims = [1]} : (tensor<5x3xf16>, tensor<5x3xf16>, tensor<3xf16>) -> tensor<5xf16>
  return %0 : tensor<5xf16>
}
