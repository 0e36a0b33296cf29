// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Creation.cpp.

// The number takes the type of the result.
// CHECK-LABEL: @full
// CHECK: spyre_graph.fill {{.*}} {immediates = [2.500000e+00 : f32]} -> tensor<65xf16>
// CHECK: spyre_graph.fill {{.*}} {immediates = [2]} -> tensor<65xi64>
// CHECK: spyre_graph.fill {{.*}} {immediates = [true]} -> tensor<65xi1>
func.func @full() -> (tensor<65xf16>, tensor<65xi64>, tensor<65xi1>) {
  %0 = "aten.full.default"() {size = [65], fill_value = 2.5} : () -> tensor<65xf16>
  %1 = "aten.full.default"() {size = [65], fill_value = 2.5, dtype = i64} : () -> tensor<65xi64>
  %2 = "aten.full.default"() {size = [65], fill_value = 2.5, dtype = i1} : () -> tensor<65xi1>
  return %0, %1, %2 : tensor<65xf16>, tensor<65xi64>, tensor<65xi1>
}

// -----

// What an uninitialised tensor holds is zeros; a tensor may be empty or a scalar.
// CHECK-LABEL: @empty
// CHECK: spyre_graph.fill {{.*}} {immediates = [0.000000e+00 : f32]} -> tensor<0x64xf16>
// CHECK: spyre_graph.fill {{.*}} {immediates = [1]} -> tensor<i64>
func.func @empty(%x: tensor<0x64xf16>) -> (tensor<0x64xf16>, tensor<i64>) {
  %0 = "aten.empty_like.default"(%x) : (tensor<0x64xf16>) -> tensor<0x64xf16>
  %1 = "aten.ones.default"() {size = [], dtype = i64} : () -> tensor<i64>
  return %0, %1 : tensor<0x64xf16>, tensor<i64>
}

// -----

// CHECK-LABEL: @arange
// CHECK: spyre_graph.iota outs({{.*}}) {dim = 0 : i64, start = 0 : i64, step = 1 : i64} -> tensor<65xi64>
// CHECK: spyre_graph.iota outs({{.*}}) {dim = 0 : i64, start = 1.000000e+00 : f32, step = 5.000000e-01 : f32} -> tensor<4xf16>
func.func @arange() -> (tensor<65xi64>, tensor<4xf16>) {
  %0 = "aten.arange.default"() {end = 65} : () -> tensor<65xi64>
  %1 = "aten.arange.start_step"() {start = 1, end = 3, step = 0.5} : () -> tensor<4xf16>
  return %0, %1 : tensor<65xi64>, tensor<4xf16>
}

// -----

// CHECK-LABEL: @triangles
// CHECK: spyre_graph.tri ins(%arg0 : {{.*}}) outs({{.*}}) {diagonal = -1 : i64}
// CHECK: spyre_graph.tri ins(%arg0 : {{.*}}) outs({{.*}}) {diagonal = 0 : i64, upper}
func.func @triangles(%x: tensor<63x65xf16>) -> (tensor<63x65xf16>, tensor<63x65xf16>) {
  %0 = "aten.tril.default"(%x) {diagonal = -1} : (tensor<63x65xf16>) -> tensor<63x65xf16>
  %1 = "aten.triu.default"(%x) : (tensor<63x65xf16>) -> tensor<63x65xf16>
  return %0, %1 : tensor<63x65xf16>, tensor<63x65xf16>
}

// -----

func.func @no_number() -> tensor<65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.full.default: argument 'fill_value' is missing}}
  %0 = "aten.full.default"() {size = [65]} : () -> tensor<65xf16>
  return %0 : tensor<65xf16>
}
