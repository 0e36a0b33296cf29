// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Pointwise.cpp.

// CHECK-LABEL: @add
// CHECK: %[[INIT:.*]] = tensor.empty() : tensor<4x65xf16>
// CHECK: spyre_graph.add ins(%arg0, %arg1 : tensor<4x65xf16>, tensor<65xf16>) outs(%[[INIT]] : tensor<4x65xf16>) -> tensor<4x65xf16>
func.func @add(%x: tensor<4x65xf16>, %y: tensor<65xf16>) -> tensor<4x65xf16> {
  %0 = "aten.add.Tensor"(%x, %y) : (tensor<4x65xf16>, tensor<65xf16>) -> tensor<4x65xf16>
  return %0 : tensor<4x65xf16>
}

// -----

// The factor is part of one operation, which rounds once: y x alpha + x.
// CHECK-LABEL: @add_alpha
// CHECK-NOT: spyre_graph.mul
// CHECK: spyre_graph.fma ins(%arg1, %arg0 : {{.*}}) outs({{.*}}) {immediates = [unit, 2.500000e+00 : f32, unit]}
func.func @add_alpha(%x: tensor<63xf16>, %y: tensor<63xf16>) -> tensor<63xf16> {
  %0 = "aten.add.Tensor"(%x, %y) {alpha = 2.5} : (tensor<63xf16>, tensor<63xf16>) -> tensor<63xf16>
  return %0 : tensor<63xf16>
}

// -----

// other - alpha x self; the roles are swapped.
// CHECK-LABEL: @rsub
// CHECK: spyre_graph.fma ins(%arg0, %arg1 : {{.*}}) outs({{.*}}) {immediates = [unit, -3, unit]}
func.func @rsub(%x: tensor<1xi64>, %y: tensor<1xi64>) -> tensor<1xi64> {
  %0 = "aten.rsub.Tensor"(%x, %y) {alpha = 3} : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  return %0 : tensor<1xi64>
}

// -----

// Two numbers become one: 3 x 2.
// CHECK-LABEL: @add_scalar_alpha
// CHECK: spyre_graph.add ins(%arg0 : {{.*}}) outs({{.*}}) {immediates = [unit, 6]}
func.func @add_scalar_alpha(%x: tensor<0xi64>) -> tensor<0xi64> {
  %0 = "aten.add.Scalar"(%x) {other = 3, alpha = 2} : (tensor<0xi64>) -> tensor<0xi64>
  return %0 : tensor<0xi64>
}

// -----

// CHECK-LABEL: @div_modes
// CHECK: spyre_graph.div ins(%arg0, %arg1
// CHECK: spyre_graph.floordiv ins(%arg0, %arg1
// CHECK: spyre_graph.truncdiv ins(%arg0, %arg1
func.func @div_modes(%x: tensor<f16>, %y: tensor<f16>) -> (tensor<f16>, tensor<f16>, tensor<f16>) {
  %0 = "aten.div.Tensor"(%x, %y) : (tensor<f16>, tensor<f16>) -> tensor<f16>
  %1 = "aten.div.Tensor_mode"(%x, %y) {rounding_mode = "floor"} : (tensor<f16>, tensor<f16>) -> tensor<f16>
  %2 = "aten.div.Tensor_mode"(%x, %y) {rounding_mode = "trunc"} : (tensor<f16>, tensor<f16>) -> tensor<f16>
  return %0, %1, %2 : tensor<f16>, tensor<f16>, tensor<f16>
}

// -----

func.func @div_mode(%x: tensor<5xf16>) -> tensor<5xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.div.Tensor_mode: unknown rounding mode 'up'}}
  %0 = "aten.div.Tensor_mode"(%x, %x) {rounding_mode = "up"} : (tensor<5xf16>, tensor<5xf16>) -> tensor<5xf16>
  return %0 : tensor<5xf16>
}

// -----

// Powers that have operations of their own; 0 gives ones whatever the base is.
// CHECK-LABEL: @pow
// CHECK: spyre_graph.fill {{.*}} {immediates = [1.000000e+00 : f32]}
// CHECK: spyre_graph.square ins(%arg0
// CHECK: spyre_graph.rsqrt ins(%arg0
// CHECK: spyre_graph.pow ins(%arg0 : {{.*}} {immediates = [unit, 3]}
func.func @pow(%x: tensor<7xf16>) -> (tensor<7xf16>, tensor<7xf16>, tensor<7xf16>, tensor<7xf16>) {
  %0 = "aten.pow.Tensor_Scalar"(%x) {exponent = 0} : (tensor<7xf16>) -> tensor<7xf16>
  %1 = "aten.pow.Tensor_Scalar"(%x) {exponent = 2.0} : (tensor<7xf16>) -> tensor<7xf16>
  %2 = "aten.pow.Tensor_Scalar"(%x) {exponent = -0.5} : (tensor<7xf16>) -> tensor<7xf16>
  %3 = "aten.pow.Tensor_Scalar"(%x) {exponent = 3} : (tensor<7xf16>) -> tensor<7xf16>
  return %0, %1, %2, %3 : tensor<7xf16>, tensor<7xf16>, tensor<7xf16>, tensor<7xf16>
}

// -----

// A uint8 lives in 32 bits on the device: the sum wraps explicitly.
// CHECK-LABEL: @uint8
// CHECK: %[[WIDE:.*]] = spyre_graph.add ins(%arg0, %arg1 : {{.*}}) outs({{.*}}) -> tensor<65xi32>
// CHECK: spyre_graph.bitwise_and ins(%[[WIDE]] : tensor<65xi32>) outs({{.*}}) {immediates = [unit, 255]} -> tensor<65xui8>
func.func @uint8(%x: tensor<65xui8>, %y: tensor<65xui8>) -> tensor<65xui8> {
  %0 = "aten.add.Tensor"(%x, %y) : (tensor<65xui8>, tensor<65xui8>) -> tensor<65xui8>
  return %0 : tensor<65xui8>
}

// -----

// A missing bound is no bound.
// CHECK-LABEL: @clamp
// CHECK: spyre_graph.clamp ins(%arg0 : {{.*}} {immediates = [unit, -1.000000e+00 : f32, 1.000000e+00 : f32]}
// CHECK: spyre_graph.maximum ins(%arg0 : {{.*}} {immediates = [unit, 0.000000e+00 : f32]}
// CHECK: spyre_graph.minimum ins(%arg0, %arg1
func.func @clamp(%x: tensor<3x64xf16>, %high: tensor<64xf16>) -> (tensor<3x64xf16>, tensor<3x64xf16>, tensor<3x64xf16>) {
  %0 = "aten.clamp.default"(%x) {min = -1.0, max = 1.0} : (tensor<3x64xf16>) -> tensor<3x64xf16>
  %1 = "aten.clamp.default"(%x) {min = 0.0, max = unit} : (tensor<3x64xf16>) -> tensor<3x64xf16>
  %2 = "aten.clamp.Tensor"(%x, %high) {operands = ["self", "max"]} : (tensor<3x64xf16>, tensor<64xf16>) -> tensor<3x64xf16>
  return %0, %1, %2 : tensor<3x64xf16>, tensor<3x64xf16>, tensor<3x64xf16>
}

// -----

func.func @no_bound(%x: tensor<5xf16>) -> tensor<5xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.clamp.default: expects a lower or an upper bound}}
  %0 = "aten.clamp.default"(%x) : (tensor<5xf16>) -> tensor<5xf16>
  return %0 : tensor<5xf16>
}

// -----

func.func @gelu(%x: tensor<5xf16>) -> tensor<5xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.gelu.default: unknown approximation 'cubic'}}
  %0 = "aten.gelu.default"(%x) {approximate = "cubic"} : (tensor<5xf16>) -> tensor<5xf16>
  return %0 : tensor<5xf16>
}

// -----

// A boolean cannot hold 2, so the comparison is with a floating-point number.
// CHECK-LABEL: @compare_bool
// CHECK: spyre_graph.eq ins(%arg0 : tensor<65xi1>) outs({{.*}}) {immediates = [unit, 2.000000e+00 : f32]} -> tensor<65xi1>
func.func @compare_bool(%x: tensor<65xi1>) -> tensor<65xi1> {
  %0 = "aten.eq.Scalar"(%x) {other = 2} : (tensor<65xi1>) -> tensor<65xi1>
  return %0 : tensor<65xi1>
}

// -----

// Booleans and integers have operations of their own.
// CHECK-LABEL: @bitwise
// CHECK: spyre_graph.logical_or ins(%arg0, %arg0
// CHECK: spyre_graph.bitwise_or ins(%arg1, %arg1
// CHECK: spyre_graph.logical_not ins(%arg0
// CHECK: spyre_graph.bitwise_xor ins(%arg1 : {{.*}} {immediates = [unit, -1]}
func.func @bitwise(%b: tensor<63xi1>, %i: tensor<63xi32>) -> (tensor<63xi1>, tensor<63xi32>, tensor<63xi1>, tensor<63xi32>) {
  %0 = "aten.bitwise_or.Tensor"(%b, %b) : (tensor<63xi1>, tensor<63xi1>) -> tensor<63xi1>
  %1 = "aten.bitwise_or.Tensor"(%i, %i) : (tensor<63xi32>, tensor<63xi32>) -> tensor<63xi32>
  %2 = "aten.bitwise_not.default"(%b) : (tensor<63xi1>) -> tensor<63xi1>
  %3 = "aten.bitwise_not.default"(%i) : (tensor<63xi32>) -> tensor<63xi32>
  return %0, %1, %2, %3 : tensor<63xi1>, tensor<63xi32>, tensor<63xi1>, tensor<63xi32>
}

// -----

// No integer is infinite.
// CHECK-LABEL: @isinf
// CHECK: %[[SIZE:.*]] = spyre_graph.abs ins(%arg0
// CHECK: spyre_graph.eq ins(%[[SIZE]] : {{.*}} {immediates = [unit, 0x7F800000 : f32]}
// CHECK: spyre_graph.fill {{.*}} {immediates = [false]}
func.func @isinf(%x: tensor<65xf16>, %i: tensor<65xi64>) -> (tensor<65xi1>, tensor<65xi1>) {
  %0 = "aten.isinf.default"(%x) : (tensor<65xf16>) -> tensor<65xi1>
  %1 = "aten.isinf.default"(%i) : (tensor<65xi64>) -> tensor<65xi1>
  return %0, %1 : tensor<65xi1>, tensor<65xi1>
}

// -----

// The value takes self's type: 2.9 is 2, and comes before self.
// CHECK-LABEL: @masked_fill
// CHECK: spyre_graph.where ins(%arg1, %arg0 : {{.*}} {immediates = [unit, 2, unit]}
func.func @masked_fill(%x: tensor<65xi32>, %mask: tensor<65xi1>) -> tensor<65xi32> {
  %0 = "aten.masked_fill.Scalar"(%x, %mask) {value = 2.9} : (tensor<65xi32>, tensor<65xi1>) -> tensor<65xi32>
  return %0 : tensor<65xi32>
}

// -----

// What an operation made is its own copy; an argument is not.
// CHECK-LABEL: @clone
// CHECK: spyre_graph.identity ins(%arg0
// CHECK: %[[NEG:.*]] = spyre_graph.neg
// CHECK-NOT: spyre_graph.identity
// CHECK: return %{{.*}}, %[[NEG]]
func.func @clone(%x: tensor<65xf16>) -> (tensor<65xf16>, tensor<65xf16>) {
  %0 = "aten.clone.default"(%x) : (tensor<65xf16>) -> tensor<65xf16>
  %1 = "aten.neg.default"(%x) : (tensor<65xf16>) -> tensor<65xf16>
  %2 = "aten.clone.default"(%1) : (tensor<65xf16>) -> tensor<65xf16>
  return %0, %2 : tensor<65xf16>, tensor<65xf16>
}

// -----

// CHECK-LABEL: @convert
// CHECK: spyre_graph.identity ins(%arg0 : tensor<65xi64>) outs({{.*}}) -> tensor<65xf16>
func.func @convert(%x: tensor<65xi64>) -> tensor<65xf16> {
  %0 = "prims.convert_element_type.default"(%x) {dtype = f16} : (tensor<65xi64>) -> tensor<65xf16>
  return %0 : tensor<65xf16>
}

// -----

// Numbers wrap to the type in which PyTorch computes: 300 is 44, -1 is 255.
// CHECK-LABEL: @numbers_wrap
// CHECK: spyre_graph.remainder ins(%arg0 : {{.*}}) outs({{.*}}) {immediates = [unit, 44]}
// CHECK: spyre_graph.gt ins(%arg0 : {{.*}}) outs({{.*}}) {immediates = [unit, 255]}
// CHECK: spyre_graph.maximum ins(%arg1 : {{.*}}) outs({{.*}}) {immediates = [unit, -128]}
func.func @numbers_wrap(%x: tensor<65xui8>, %y: tensor<65xi8>) -> (tensor<65xui8>, tensor<65xi1>, tensor<65xi8>) {
  %0 = "aten.remainder.Scalar"(%x) {other = 300} : (tensor<65xui8>) -> tensor<65xui8>
  %1 = "aten.gt.Scalar"(%x) {other = -1} : (tensor<65xui8>) -> tensor<65xi1>
  %2 = "aten.maximum.default"(%y) {other = 128} : (tensor<65xi8>) -> tensor<65xi8>
  return %0, %1, %2 : tensor<65xui8>, tensor<65xi1>, tensor<65xi8>
}

// -----

// Where the result is floating, numbers are so, too.
// CHECK-LABEL: @numbers_of_a_quotient
// CHECK: spyre_graph.div ins(%arg0 : {{.*}}) outs({{.*}}) {immediates = [unit, 3.000000e+02 : f32]}
func.func @numbers_of_a_quotient(%x: tensor<65xui8>) -> tensor<65xf32> {
  %0 = "aten.div.Scalar"(%x) {other = 300} : (tensor<65xui8>) -> tensor<65xf32>
  return %0 : tensor<65xf32>
}

// -----

// A tensor without dimensions wraps beside one that has some.
// CHECK-LABEL: @tensor_without_dimensions
// CHECK: %[[NARROW:.*]] = spyre_graph.identity ins(%arg1 : tensor<i64>) outs({{.*}} : tensor<i8>)
// CHECK: spyre_graph.lt ins(%arg0, %[[NARROW]]
// CHECK: spyre_graph.lt ins(%arg2, %arg1
func.func @tensor_without_dimensions(%x: tensor<65xi8>, %y: tensor<i64>, %z: tensor<i8>) -> (tensor<65xi1>, tensor<i1>) {
  %0 = "aten.lt.Tensor"(%x, %y) : (tensor<65xi8>, tensor<i64>) -> tensor<65xi1>
  %1 = "aten.lt.Tensor"(%z, %y) : (tensor<i8>, tensor<i64>) -> tensor<i1>
  return %0, %1 : tensor<65xi1>, tensor<i1>
}

// -----

func.func @elements(%x: tensor<65xui8>, %y: tensor<65xi16>, %mask: tensor<65xi1>) {
  // expected-error @+1 {{aten.clamp_min.default: value cannot be converted to type uint8_t without overflow: 300}}
  %0 = "aten.clamp_min.default"(%x) {min = 300} : (tensor<65xui8>) -> tensor<65xui8>
  // expected-error @+1 {{aten.masked_fill.Scalar: value cannot be converted to type int16_t without overflow: -40000}}
  %1 = "aten.masked_fill.Scalar"(%y, %mask) {value = -40000} : (tensor<65xi16>, tensor<65xi1>) -> tensor<65xi16>
  // expected-error @+1 {{aten.full_like.default: value cannot be converted to type uint8_t without overflow: -0.500000}}
  %2 = "aten.full_like.default"(%x) {fill_value = -0.5} : (tensor<65xui8>) -> tensor<65xui8>
  // expected-error @+1 {{aten.pow.Tensor_Scalar: integers to negative integer powers are not allowed}}
  %3 = "aten.pow.Tensor_Scalar"(%x) {exponent = -2} : (tensor<65xui8>) -> tensor<65xui8>
  // expected-error @+1 {{aten.sub.Tensor: subtraction with booleans is not supported}}
  %4 = "aten.sub.Tensor"(%y, %mask) : (tensor<65xi16>, tensor<65xi1>) -> tensor<65xi16>
  return
}
