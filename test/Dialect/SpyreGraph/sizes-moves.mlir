// SPDX-License-Identifier: Apache-2.0
// Values move over the ring only where slices are whole sticks at all sizes.
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning --spyre-memory-planning --spyre-verify-plan | FileCheck %s

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#wide = #spyre_graph.layout<order = [0, 2, 1], IEEE_FP32>
#id = affine_map<(i, j) -> (i, j)>
#flat = affine_map<(i, j, k) -> (i, j * 3 + k)>
#whole = affine_map<(i, j, k) -> (i, j, k)>
#size = affine_map<()[s] -> (3, s * 3)>
#sizes = affine_map<()[s] -> (3, s, 3)>
#by_row = #spyre_graph.division<splits = [3, 1], chunks = [1, 1536], chunk_map = affine_map<()[s] -> (1, s * 3)>>
// 32 rows of 3 elements are one and a half sticks.
#by_half = #spyre_graph.division<splits = [1, 3, 1], chunks = [3, 192, 3], chunk_map = affine_map<()[s] -> (3, (s ceildiv 96) * 32, 3)>>

// CHECK-LABEL: func.func @half_sticks
// CHECK-NOT: spyre_graph.reshard
// CHECK: return
func.func @half_sticks(%x: memref<3x1536xf16, #l> {spyre_graph.size_map = #size},
                       %y: memref<3x512x3xf32, #wide> {spyre_graph.size_map = #sizes})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %a = memref.alloc() : memref<3x1536xf16, #l>
  spyre_graph.neg ins(%x : memref<3x1536xf16, #l>) outs(%a : memref<3x1536xf16, #l>) {maps = [#id, #id], extents = array<i64: 3, 1536>, extent_map = #size, division = #by_row}
  spyre_graph.identity ins(%a : memref<3x1536xf16, #l>) outs(%y : memref<3x512x3xf32, #wide>) {maps = [#flat, #whole], extents = array<i64: 3, 512, 3>, extent_map = #sizes, division = #by_half}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#wide = #spyre_graph.layout<order = [0, 2, 1], IEEE_FP32>
#id = affine_map<(i, j) -> (i, j)>
#flat = affine_map<(i, j, k) -> (i, j * 3 + k)>
#whole = affine_map<(i, j, k) -> (i, j, k)>
#size = affine_map<()[s] -> (3, s * 3)>
#sizes = affine_map<()[s] -> (3, s, 3)>
#by_row = #spyre_graph.division<splits = [3, 1], chunks = [1, 1536], chunk_map = affine_map<()[s] -> (1, s * 3)>>
#by_stick = #spyre_graph.division<splits = [1, 3, 1], chunks = [3, 192, 3], chunk_map = affine_map<()[s] -> (3, (s ceildiv 192) * 64, 3)>>

// CHECK-LABEL: func.func @sticks
// CHECK: spyre_graph.reshard
func.func @sticks(%x: memref<3x1536xf16, #l> {spyre_graph.size_map = #size},
                  %y: memref<3x512x3xf32, #wide> {spyre_graph.size_map = #sizes})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %a = memref.alloc() : memref<3x1536xf16, #l>
  spyre_graph.neg ins(%x : memref<3x1536xf16, #l>) outs(%a : memref<3x1536xf16, #l>) {maps = [#id, #id], extents = array<i64: 3, 1536>, extent_map = #size, division = #by_row}
  spyre_graph.identity ins(%a : memref<3x1536xf16, #l>) outs(%y : memref<3x512x3xf32, #wide>) {maps = [#flat, #whole], extents = array<i64: 3, 512, 3>, extent_map = #sizes, division = #by_stick}
  return
}
