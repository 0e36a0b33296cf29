// SPDX-License-Identifier: Apache-2.0
// Copies of some rows of a tensor that does not vary: how many there are is what the
// loops say, no operand does. What becomes of a copy keeps that.
// RUN: spyre-opt %s --spyre-legalize-superdsc | FileCheck %s

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#columns = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#s = affine_map<()[s] -> (s, 128)>

// CHECK-DAG: #[[S:map[0-9]*]] = affine_map<()[s0] -> (s0, 128)>
// CHECK-LABEL: func.func @turned
// CHECK: spyre_graph.identity ins(%arg0 {{.*}} {extent_map = #[[S]], extents = array<i64: 128, 128>
// CHECK: spyre_graph.restickify {{.*}} {extent_map = #[[S]], extents = array<i64: 128, 128>
func.func @turned(%w: tensor<256x128xf16, #rows> {spyre_graph.name = "w"},
    %x: tensor<128x128xf16, #rows> {spyre_graph.name = "x", spyre_graph.size_map = #s})
    -> (tensor<128x128xf16, #columns> {spyre_graph.name = "out0", spyre_graph.size_map = #s})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 128 by 64>]} {
  %0 = tensor.empty() : tensor<128x128xf16, #columns>
  %y = spyre_graph.restickify ins(%w : tensor<256x128xf16, #rows>) outs(%0 : tensor<128x128xf16, #columns>)
      {maps = [affine_map<(i, j) -> (i + 64, j)>, #id], extents = array<i64: 128, 128>, extent_map = #s} -> tensor<128x128xf16, #columns>
  return %y : tensor<128x128xf16, #columns>
}

// Windows of three rows: one copy for each place in a window.
// CHECK-LABEL: func.func @windows
// CHECK-COUNT-3: spyre_graph.identity {{.*}} {extent_map = #[[S]], extents = array<i64: 128, 128>
func.func @windows(%w: tensor<256x128xf16, #rows> {spyre_graph.name = "w"},
    %x: tensor<128x128xf16, #rows> {spyre_graph.name = "x", spyre_graph.size_map = #s})
    -> (tensor<3x128x128xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>> {spyre_graph.name = "out0",
        spyre_graph.size_map = affine_map<()[s] -> (3, s, 128)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 128 by 64>]} {
  %0 = tensor.empty() : tensor<3x128x128xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>
  %y = spyre_graph.identity ins(%w : tensor<256x128xf16, #rows>) outs(%0 : tensor<3x128x128xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>)
      {maps = [affine_map<(i, j, k) -> (i + j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
       extents = array<i64: 3, 128, 128>, extent_map = affine_map<()[s] -> (3, s, 128)>}
      -> tensor<3x128x128xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>
  return %y : tensor<3x128x128xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>
}
