// SPDX-License-Identifier: Apache-2.0
// Columns that vary are written behind two whole sticks: cuts between cores are
// chunks of whole sticks from there on, so that no two cores write one stick.
// Plans that are wrong here are in verify-plan-sizes-invalid.mlir.
// RUN: spyre-opt %s --spyre-verify-plan | FileCheck %s

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#behind = affine_map<(i, j) -> (i, j + 128)>
#columns = affine_map<()[s] -> (4, s)>
#all = affine_map<()[s] -> (4, s + 128)>

// CHECK-LABEL: func.func @behind
func.func @behind(%x: memref<4x256xf16, #l> {spyre_graph.size_map = #columns},
                  %y: memref<4x384xf16, #l> {spyre_graph.size_map = #all})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 256>]} {
  spyre_graph.neg ins(%x : memref<4x256xf16, #l>) outs(%y : memref<4x384xf16, #l>) {maps = [#id, #behind], extents = array<i64: 4, 256>, extent_map = #columns, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 128], chunk_map = affine_map<()[s] -> (4, (s ceildiv 128) * 64)>>}
  return
}
