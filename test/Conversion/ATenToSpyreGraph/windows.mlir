// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics | FileCheck %s

// Rows of Windows.cpp.

// CHECK-DAG: #[[WINDOWS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 * 2 + d3, d2 + d4 * 3)>
// CHECK-LABEL: @windows
// CHECK: spyre_graph.view %arg0, #[[WINDOWS]] : tensor<5x9x63xf16> -> tensor<5x4x57x3x3xf16>
func.func @windows(%x: tensor<5x9x63xf16>) -> tensor<5x4x57x3x3xf16> {
  %0 = "spyre.windows.default"(%x) {kernel = [3, 3], stride = [2, 1], dilation = [1, 3], out = [4, 57]} : (tensor<5x9x63xf16>) -> tensor<5x4x57x3x3xf16>
  return %0 : tensor<5x4x57x3x3xf16>
}

// -----

// Channels of a group, none of the dimensions merged with them.

// CHECK-DAG: #[[VIEW:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 * 65 + d5, d3 * 2 + d4)>
// CHECK-LABEL: @apart
// CHECK-NOT: identity
// CHECK: spyre_graph.view %arg0, #[[VIEW]] : tensor<2x130x9xf16> -> tensor<2x2x1x4x3x65xf16>
func.func @apart(%x: tensor<2x130x9xf16>) -> tensor<2x2x1x4x3x65xf16> {
  %0 = "spyre.grouped_windows.default"(%x) {kernel = [3], stride = [2], dilation = [1], out = [4], groups = 2, merged = 0} : (tensor<2x130x9xf16>) -> tensor<2x2x1x4x3x65xf16>
  return %0 : tensor<2x2x1x4x3x65xf16>
}

// -----

// Few channels: a copy has the windows along a row behind each of them.

// CHECK-DAG: #[[ALONG:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4 floordiv 3, d2, d3 + (d4 mod 3) * 2)>
// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d3 * 2 + d5, d4, d6)>
// CHECK-LABEL: @merged
// CHECK: %[[COPY:.*]] = spyre_graph.identity ins(%arg0 : {{.*}} {extents = array<i64: 2, 1, 9, 7, 9>, maps = [#[[ALONG]], #{{.*}}]} -> tensor<2x1x9x7x9xf16>
// CHECK: spyre_graph.view %[[COPY]], #[[ROWS]] : tensor<2x1x9x7x9xf16> -> tensor<2x1x1x4x7x2x9xf16>
func.func @merged(%x: tensor<2x3x9x11xf16>) -> tensor<2x1x1x4x7x2x9xf16> {
  %0 = "spyre.grouped_windows.default"(%x) {kernel = [2, 3], stride = [2, 1], dilation = [1, 2], out = [4, 7], groups = 1, merged = 1} : (tensor<2x3x9x11xf16>) -> tensor<2x1x1x4x7x2x9xf16>
  return %0 : tensor<2x1x1x4x7x2x9xf16>
}

// -----

func.func @beyond(%x: tensor<5x9xf16>) -> tensor<5x8x3xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{spyre.windows.default: windows may end beyond the tensor}}
  %0 = "spyre.windows.default"(%x) {kernel = [3], stride = [1], dilation = [1], out = [8]} : (tensor<5x9xf16>) -> tensor<5x8x3xf16>
  return %0 : tensor<5x8x3xf16>
}

// -----

func.func @lengths(%x: tensor<5x9xf16>) -> tensor<5x7x3xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{spyre.windows.default: 'kernel', 'stride', 'dilation' and 'out' must be of one length}}
  %0 = "spyre.windows.default"(%x) {kernel = [3], stride = [1, 1], dilation = [1], out = [7]} : (tensor<5x9xf16>) -> tensor<5x7x3xf16>
  return %0 : tensor<5x7x3xf16>
}

// -----

func.func @no_stride(%x: tensor<5x9xf16>) -> tensor<5x7x3xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{spyre.windows.default: 'kernel', 'stride' and 'dilation' must be positive}}
  %0 = "spyre.windows.default"(%x) {kernel = [3], stride = [0], dilation = [1], out = [7]} : (tensor<5x9xf16>) -> tensor<5x7x3xf16>
  return %0 : tensor<5x7x3xf16>
}

// -----

func.func @rank(%x: tensor<3x9xf16>) -> tensor<1x3x1x7x3xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{spyre.grouped_windows.default: the tensor must be [N, C, *spatial]}}
  %0 = "spyre.grouped_windows.default"(%x) {kernel = [3], stride = [1], dilation = [1], out = [7], groups = 1, merged = 0} : (tensor<3x9xf16>) -> tensor<1x3x1x7x3xf16>
  return %0 : tensor<1x3x1x7x3xf16>
}

// -----

func.func @groups(%x: tensor<1x3x9xf16>) -> tensor<1x2x1x7x3x1xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{spyre.grouped_windows.default: the channels must be a multiple of the groups}}
  %0 = "spyre.grouped_windows.default"(%x) {kernel = [3], stride = [1], dilation = [1], out = [7], groups = 2, merged = 0} : (tensor<1x3x9xf16>) -> tensor<1x2x1x7x3x1xf16>
  return %0 : tensor<1x2x1x7x3x1xf16>
}

// -----

func.func @merge_too_many(%x: tensor<1x3x9xf16>) -> tensor<1x1x1x7x9xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{spyre.grouped_windows.default: merged must be 0 to 1, but is 2}}
  %0 = "spyre.grouped_windows.default"(%x) {kernel = [3], stride = [1], dilation = [1], out = [7], groups = 1, merged = 2} : (tensor<1x3x9xf16>) -> tensor<1x1x1x7x9xf16>
  return %0 : tensor<1x1x1x7x9xf16>
}
