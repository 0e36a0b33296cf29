// SPDX-License-Identifier: Apache-2.0
// Cuts between cores fall between sticks at any size: no two cores write one.
// Plans that are wrong here are in verify-plan-sizes-invalid.mlir.
// RUN: spyre-opt %s --spyre-verify-plan | FileCheck %s

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#behind = affine_map<(i, j) -> (i, j + 128)>
#columns = affine_map<()[s] -> (4, s)>
#all = affine_map<()[s] -> (4, s + 128)>

// Columns that vary, behind two whole sticks: chunks of whole sticks from there on.
// CHECK-LABEL: func.func @behind
func.func @behind(%x: memref<4x256xf16, #l> {spyre_graph.size_map = #columns},
                  %y: memref<4x384xf16, #l> {spyre_graph.size_map = #all})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 256>]} {
  spyre_graph.neg ins(%x : memref<4x256xf16, #l>) outs(%y : memref<4x384xf16, #l>) {maps = [#id, #behind], extents = array<i64: 4, 256>, extent_map = #columns, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 128], chunk_map = affine_map<()[s] -> (4, (s ceildiv 128) * 64)>>}
  return
}

#line = #spyre_graph.layout<order = [0], SEN169_FP16>
#rows = affine_map<()[s] -> (s, 128)>

// Rows that vary, of two whole sticks each, in a line that begins with one more.
// CHECK-LABEL: func.func @in_a_line
func.func @in_a_line(%x: memref<512x128xf16, #l> {spyre_graph.size_map = #rows},
                     %y: memref<65664xf16, #line> {spyre_graph.size_map = affine_map<()[s] -> (s * 128 + 128)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  spyre_graph.neg ins(%x : memref<512x128xf16, #l>) outs(%y : memref<65664xf16, #line>) {maps = [#id, affine_map<(i, j) -> (i * 128 + j + 128)>], extents = array<i64: 512, 128>, extent_map = #rows, division = #spyre_graph.division<splits = [4, 1], chunks = [128, 128], chunk_map = affine_map<()[s] -> (s ceildiv 4, 128)>>}
  return
}
