// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts | FileCheck %s

// What indices select of a view is selected of what the view shows, if its layout
// selects rows: nothing is copied.

#slots = #spyre_graph.explicit_layout<device_size = [320, 2, 2, 64], stride_map = [256, 128, 64, 1], host_strides = [256, 128, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], IEEE_INT32>

// Pages of 64 slots: index i becomes the indices i x 64 + s, and any index that is
// none of a page one that is none of a slot.
// CHECK-DAG: #[[$OF_INDEX:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[$OF_SLOT:.+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[$ROWS:.+]] = affine_map<(d0, d1, d2, d3) -> (0, d2, d3)>
// CHECK-DAG: #[[$OF_BOTH:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK-LABEL: func.func @pages
// CHECK-NOT: spyre_graph.identity
// CHECK: %[[IN_RANGE:.+]] = spyre_graph.clamp ins(%arg1
// CHECK-SAME: immediates = [unit, -1, 5]
// CHECK: %[[SLOT:.+]] = spyre_graph.iota
// CHECK-SAME: extents = array<i64: 64>
// CHECK-SAME: start = 0 : i64, step = 1 : i64
// CHECK: %[[INDEX:.+]] = spyre_graph.fma ins(%[[IN_RANGE]], %[[SLOT]]
// CHECK-SAME: immediates = [unit, 64, unit], maps = [#[[$OF_INDEX]], #[[$OF_SLOT]]
// CHECK: spyre_graph.gather ins(%arg0, %[[INDEX]]
// CHECK-SAME: axis = 0
// CHECK-SAME: maps = [#[[$ROWS]], #[[$OF_BOTH]]
// CHECK-NOT: spyre_graph.identity
func.func @pages(%slots: tensor<320x2x128xf16, #slots>, %index: tensor<3xi32, #line>) -> tensor<3x64x2x128xf16> {
  %pages = spyre_graph.view %slots, affine_map<(p, s, h, d) -> (p * 64 + s, h, d)> : tensor<320x2x128xf16, #slots> -> tensor<5x64x2x128xf16>
  %e = tensor.empty() : tensor<3x64x2x128xf16>
  %0 = spyre_graph.gather ins(%pages, %index : tensor<5x64x2x128xf16>, tensor<3xi32, #line>) outs(%e : tensor<3x64x2x128xf16>) {axis = 0 : i64} -> tensor<3x64x2x128xf16>
  return %0 : tensor<3x64x2x128xf16>
}

// -----

#slots = #spyre_graph.explicit_layout<device_size = [320, 2, 2, 64], stride_map = [256, 128, 64, 1], host_strides = [256, 128, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], IEEE_INT32>

// The pages of keys and those of values have the same indices.
// CHECK-LABEL: func.func @keys_and_values
// CHECK: %[[INDEX:.+]] = spyre_graph.fma
// CHECK-NOT: spyre_graph.fma
// CHECK: spyre_graph.gather ins(%arg0, %[[INDEX]]
// CHECK-NOT: spyre_graph.fma
// CHECK: spyre_graph.gather ins(%arg1, %[[INDEX]]
func.func @keys_and_values(%keys: tensor<320x2x128xf16, #slots>, %values: tensor<320x2x128xf16, #slots>, %index: tensor<1xi32, #line>) -> (tensor<1x64x2x128xf16>, tensor<1x64x2x128xf16>) {
  %k = spyre_graph.view %keys, affine_map<(p, s, h, d) -> (p * 64 + s, h, d)> : tensor<320x2x128xf16, #slots> -> tensor<5x64x2x128xf16>
  %e0 = tensor.empty() : tensor<1x64x2x128xf16>
  %0 = spyre_graph.gather ins(%k, %index : tensor<5x64x2x128xf16>, tensor<1xi32, #line>) outs(%e0 : tensor<1x64x2x128xf16>) {axis = 0 : i64} -> tensor<1x64x2x128xf16>
  %v = spyre_graph.view %values, affine_map<(p, s, h, d) -> (p * 64 + s, h, d)> : tensor<320x2x128xf16, #slots> -> tensor<5x64x2x128xf16>
  %e1 = tensor.empty() : tensor<1x64x2x128xf16>
  %1 = spyre_graph.gather ins(%v, %index : tensor<5x64x2x128xf16>, tensor<1xi32, #line>) outs(%e1 : tensor<1x64x2x128xf16>) {axis = 0 : i64} -> tensor<1x64x2x128xf16>
  return %0, %1 : tensor<1x64x2x128xf16>, tensor<1x64x2x128xf16>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], IEEE_INT32>

// Every second of pairs of rows: the offset goes into the indices.
// CHECK-LABEL: func.func @second_rows
// CHECK: spyre_graph.clamp
// CHECK: %[[INDEX:.+]] = spyre_graph.fma
// CHECK-SAME: immediates = [unit, 2, 1]
// CHECK: spyre_graph.gather ins(%arg0, %[[INDEX]]
// CHECK-NOT: spyre_graph.identity
func.func @second_rows(%rows: tensor<10x128xf16, #rows>, %index: tensor<3xi64, #line>) -> tensor<3x128xf16> {
  %view = spyre_graph.view %rows, affine_map<(i, j) -> (i * 2 + 1, j)> : tensor<10x128xf16, #rows> -> tensor<5x128xf16>
  %e = tensor.empty() : tensor<3x128xf16>
  %0 = spyre_graph.gather ins(%view, %index : tensor<5x128xf16>, tensor<3xi64, #line>) outs(%e : tensor<3x128xf16>) {axis = 0 : i64} -> tensor<3x128xf16>
  return %0 : tensor<3x128xf16>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], IEEE_INT32>

// An index beyond a view that ends before its source would select a row: the view is
// copied.
// CHECK-LABEL: func.func @first_pages
// CHECK: spyre_graph.identity ins(%arg0
// CHECK: spyre_graph.gather
func.func @first_pages(%rows: tensor<10x128xf16, #rows>, %index: tensor<3xi64, #line>) -> tensor<3x2x128xf16> {
  %view = spyre_graph.view %rows, affine_map<(i, k, j) -> (i * 2 + k, j)> : tensor<10x128xf16, #rows> -> tensor<4x2x128xf16>
  %e = tensor.empty() : tensor<3x2x128xf16>
  %0 = spyre_graph.gather ins(%view, %index : tensor<4x2x128xf16>, tensor<3xi64, #line>) outs(%e : tensor<3x2x128xf16>) {axis = 0 : i64} -> tensor<3x2x128xf16>
  return %0 : tensor<3x2x128xf16>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], IEEE_INT32>

// Indices cannot select in a stick.
// CHECK-LABEL: func.func @columns
// CHECK: spyre_graph.identity ins(%arg0
// CHECK: spyre_graph.gather
func.func @columns(%rows: tensor<10x128xf16, #rows>, %index: tensor<3xi64, #line>) -> tensor<10x3x32xf16> {
  %view = spyre_graph.view %rows, affine_map<(i, k, j) -> (i, k * 32 + j)> : tensor<10x128xf16, #rows> -> tensor<10x4x32xf16>
  %e = tensor.empty() : tensor<10x3x32xf16>
  %0 = spyre_graph.gather ins(%view, %index : tensor<10x4x32xf16>, tensor<3xi64, #line>) outs(%e : tensor<10x3x32xf16>) {axis = 1 : i64} -> tensor<10x3x32xf16>
  return %0 : tensor<10x3x32xf16>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], IEEE_INT32>

// More indices than the view has elements.
// CHECK-LABEL: func.func @many
// CHECK-NOT: spyre_graph.fma
// CHECK: spyre_graph.gather
func.func @many(%rows: tensor<10x1xf16, #rows>, %index: tensor<9xi64, #line>) -> tensor<9x2x1xf16> {
  %view = spyre_graph.view %rows, affine_map<(i, k, j) -> (i * 2 + k, j)> : tensor<10x1xf16, #rows> -> tensor<5x2x1xf16>
  %e = tensor.empty() : tensor<9x2x1xf16>
  %0 = spyre_graph.gather ins(%view, %index : tensor<5x2x1xf16>, tensor<9xi64, #line>) outs(%e : tensor<9x2x1xf16>) {axis = 0 : i64} -> tensor<9x2x1xf16>
  return %0 : tensor<9x2x1xf16>
}
