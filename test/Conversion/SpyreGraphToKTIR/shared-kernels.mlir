// SPDX-License-Identifier: Apache-2.0
// Operations that differ only in addresses, in their numbers, and in the symbols that
// their sizes follow, are calls of one kernel: the layers of a model are alike.
// RUN: spyre-opt %s --split-input-file --convert-spyre-graph-to-ktir | FileCheck %s

// CHECK-LABEL: func.func @numbers
// CHECK-SAME: %[[X:.*]]: index {{.*}}, %[[Y:.*]]: index {{.*}}
// CHECK: call @[[EXP:k0_exp]](%[[X]], %[[Y]])
// CHECK: call @[[EXP]](%[[Y]], %[[X]])
// An error in a kernel names a line of the user's: another line is another kernel.
// CHECK: call @k1_exp(%[[X]], %[[Y]])
// CHECK-COUNT-2: func.func private
// CHECK-NOT: func.func private

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#d = #spyre_graph.division<splits = [2, 2], chunks = [35, 64]>
func.func @numbers(%x: memref<70x100xf16, #l> {spyre_graph.name = "x"},
                   %y: memref<70x100xf16, #l> {spyre_graph.name = "y"}) {
  spyre_graph.exp ins(%x : memref<70x100xf16, #l>) outs(%y : memref<70x100xf16, #l>) {division = #d, spyre_graph.number = 0 : i64} loc("model.py":1:1)
  spyre_graph.exp ins(%y : memref<70x100xf16, #l>) outs(%x : memref<70x100xf16, #l>) {division = #d, spyre_graph.number = 1 : i64} loc("model.py":1:1)
  spyre_graph.exp ins(%x : memref<70x100xf16, #l>) outs(%y : memref<70x100xf16, #l>) {division = #d, spyre_graph.number = 2 : i64} loc("model.py":2:1)
  return
}

// -----

// Rows that follow one symbol or another, and columns that follow the other.
// CHECK-LABEL: func.func @symbols
// CHECK-DAG: %[[S:.*]] = ktdp.runtime_arg_extract value from %arg4
// CHECK-DAG: %[[T:.*]] = ktdp.runtime_arg_extract value from %arg5
// CHECK: call @k0_exp(%arg0, %arg1, %[[S]])
// CHECK: call @k0_exp(%arg2, %arg3, %[[T]])
// CHECK: call @k1_neg(%arg0, %arg2, %[[S]], %[[T]])
// CHECK: call @k2_neg(%arg2, %arg0, %[[S]], %[[T]])
// CHECK-COUNT-3: func.func private
// CHECK-NOT: func.func private

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#s = affine_map<()[s, t] -> (s, 128)>
#t = affine_map<()[s, t] -> (t, 128)>
#by_s = #spyre_graph.division<splits = [8, 1], chunks = [32, 128], chunk_map = affine_map<()[s, t] -> (s ceildiv 8, 128)>>
#by_t = #spyre_graph.division<splits = [8, 1], chunks = [32, 128], chunk_map = affine_map<()[s, t] -> (t ceildiv 8, 128)>>
func.func @symbols(%a: memref<256x128xf16, #l> {spyre_graph.name = "a", spyre_graph.size_map = #s},
                   %b: memref<256x128xf16, #l> {spyre_graph.name = "b", spyre_graph.size_map = #s},
                   %c: memref<256x128xf16, #l> {spyre_graph.name = "c", spyre_graph.size_map = #t},
                   %d: memref<256x128xf16, #l> {spyre_graph.name = "d", spyre_graph.size_map = #t})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 256>, #spyre_graph.symbol<"t", 1 to 256>]} {
  spyre_graph.exp ins(%a : memref<256x128xf16, #l>) outs(%b : memref<256x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 128>, extent_map = #s, division = #by_s} loc("layer")
  spyre_graph.exp ins(%c : memref<256x128xf16, #l>) outs(%d : memref<256x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 128>, extent_map = #t, division = #by_t} loc("layer")
  spyre_graph.neg ins(%a : memref<256x128xf16, #l>) outs(%c : memref<256x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 128>, extent_map = #s, division = #by_s} loc("layer")
  spyre_graph.neg ins(%c : memref<256x128xf16, #l>) outs(%a : memref<256x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 128>, extent_map = #t, division = #by_t} loc("layer")
  return
}
