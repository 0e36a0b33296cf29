// SPDX-License-Identifier: Apache-2.0
// Arguments say how far the program reaches into them, if not everywhere.
// RUN: spyre-opt %s --split-input-file --convert-spyre-graph-to-ktir | FileCheck %s

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#shifted = affine_map<(d0, d1) -> (d0 + 1, d1 + 64)>
#wrapped = affine_map<(d0, d1) -> (d0, (d1 + 60) mod 65)>
#same = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @main(
// CHECK-SAME: shape = [70, 200], {{[^>]*}}>, ktdp.name = "view", ktdp.reach = array<i64: 6, 127>}
// CHECK-SAME: shape = [70, 200], {{[^>]*}}>, ktdp.name = "two", ktdp.reach = array<i64: 6, 127>}
// CHECK-SAME: shape = [70, 65], {{[^>]*}}>, ktdp.name = "wrapped", ktdp.reach = array<i64: 5, 65>}
// CHECK-SAME: shape = [5, 63], {{[^>]*}}>, ktdp.name = "out"}
// CHECK-SAME: ktdp.name = "unused", ktdp.reach = array<i64: 0, 0>}
func.func @main(%view: memref<70x200xf16, #l> {spyre_graph.name = "view"},
                %two: memref<70x200xf16, #l> {spyre_graph.name = "two"},
                %wrapped: memref<70x65xf16, #l> {spyre_graph.name = "wrapped"},
                %out: memref<5x63xf16, #l> {spyre_graph.name = "out"},
                %unused: memref<5x63xf16, #l> {spyre_graph.name = "unused"}) {
  spyre_graph.add ins(%view, %wrapped : memref<70x200xf16, #l>, memref<70x65xf16, #l>) outs(%out : memref<5x63xf16, #l>)
    {maps = [#shifted, #wrapped, #same], extents = array<i64: 5, 63>, division = #spyre_graph.division<splits = [1, 1], chunks = [5, 63]>}
  // Several operations: what they reach together.
  spyre_graph.exp ins(%two : memref<70x200xf16, #l>) outs(%out : memref<5x63xf16, #l>)
    {maps = [#shifted, #same], extents = array<i64: 2, 63>, division = #spyre_graph.division<splits = [1, 1], chunks = [2, 63]>}
  spyre_graph.exp ins(%two : memref<70x200xf16, #l>) outs(%out : memref<5x63xf16, #l>)
    {maps = [affine_map<(d0, d1) -> (-d0 + 5, d1)>, #same], extents = array<i64: 5, 1>, division = #spyre_graph.division<splits = [1, 1], chunks = [5, 1]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#i = #spyre_graph.layout<order = [0], IEEE_INT32>

// Indices may be anywhere in their dimension.
// CHECK-LABEL: func.func @gather(
// CHECK-SAME: shape = [70, 200], {{[^>]*}}>, ktdp.name = "table", ktdp.reach = array<i64: 70, 3>}
// CHECK-SAME: shape = [7], {{[^>]*}}>, ktdp.name = "index", ktdp.reach = array<i64: 5>}
func.func @gather(%table: memref<70x200xf16, #l> {spyre_graph.name = "table"},
                  %index: memref<7xi64, #i> {spyre_graph.name = "index"},
                  %out: memref<5x3xf16, #l> {spyre_graph.name = "out"}) {
  spyre_graph.gather ins(%table, %index : memref<70x200xf16, #l>, memref<7xi64, #i>) outs(%out : memref<5x3xf16, #l>)
    {axis = 0 : i64, maps = [affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
     extents = array<i64: 5, 3>, division = #spyre_graph.division<splits = [1, 1], chunks = [5, 3]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// The last tile decides.
// CHECK-LABEL: func.func @tiles(
// CHECK-SAME: ktdp.name = "x", ktdp.reach = array<i64: 8, 63>}
// CHECK-SAME: ktdp.name = "out", ktdp.reach = array<i64: 8, 63>}
func.func @tiles(%x: memref<65x127xf16, #l> {spyre_graph.name = "x"},
                 %out: memref<65x127xf16, #l> {spyre_graph.name = "out"}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c2 {
    %s = memref.subview %x[%i, 0] [2, 63] [1, 1] : memref<65x127xf16, #l> to memref<2x63xf16, strided<[127, 1], offset: ?>, #l>
    %t = memref.subview %out[%i, 0] [2, 63] [1, 1] : memref<65x127xf16, #l> to memref<2x63xf16, strided<[127, 1], offset: ?>, #l>
    spyre_graph.exp ins(%s : memref<2x63xf16, strided<[127, 1], offset: ?>, #l>) outs(%t : memref<2x63xf16, strided<[127, 1], offset: ?>, #l>)
      {division = #spyre_graph.division<splits = [1, 1], chunks = [2, 63]>}
  }
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#o = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// A diagonal: 917 elements are one step of two dimensions.
// CHECK-LABEL: func.func @diagonal(
// CHECK-SAME: ktdp.name = "x", ktdp.reach = array<i64: 3, 3, 7>}
func.func @diagonal(%x: memref<7x130x7xf16, #l> {spyre_graph.name = "x"},
                    %out: memref<3x7xf16, #o> {spyre_graph.name = "out"}) {
  spyre_graph.exp ins(%x : memref<7x130x7xf16, #l>) outs(%out : memref<3x7xf16, #o>)
    {maps = [affine_map<(d0, d1) -> ((d0 * 917 + d1) floordiv 910, ((d0 * 917 + d1) mod 910) floordiv 7, (d0 * 917 + d1) mod 7)>,
             affine_map<(d0, d1) -> (d0, d1)>],
     extents = array<i64: 3, 7>, division = #spyre_graph.division<splits = [1, 1], chunks = [3, 7]>}
  return
}
