// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir -split-input-file -verify-diagnostics

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-TO-KTIR-C1
// expected-error@+1 {{argument 0 must be a memref whose memory space is a layout, but is 'tensor<4x8xf16>'}}
func.func @tensors(%x: tensor<4x8xf16>) {
  return
}

// -----

// SG-LAYOUT-C1
// expected-error@+1 {{argument 0: layout order [9, 1] is not a permutation of the 2 dimensions}}
func.func @unused_order(%x: memref<4x64xf16, #spyre_graph.layout<order = [9, 1], SEN169_FP16>>) {
  return
}

// -----

// expected-error@+1 {{argument 0 must have a static shape, but is 'memref<?x64xf16,}}
func.func @unused_dynamic(%x: memref<?x64xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>) {
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-TO-KTIR-C1
// expected-error@+1 {{argument 0 has element type 'f64', which no spyre tensor has}}
func.func @no_host_type(%x: memref<4x8xf64, #layout>) {
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @no_division(%x: memref<4x8xf16, #layout>) {
  // SG-TO-KTIR-C1
  // expected-error@+1 {{has no work division}}
  spyre_graph.exp ins(%x : memref<4x8xf16, #layout>) outs(%x : memref<4x8xf16, #layout>)
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @no_placement(%x: memref<4x8xf16, #layout>) {
  %a = memref.alloc() : memref<4x8xf16, #layout>
  // SG-TO-KTIR-C1
  // expected-error@+1 {{must be a function argument or an allocation with a layout and a placement}}
  spyre_graph.exp ins(%x : memref<4x8xf16, #layout>) outs(%a : memref<4x8xf16, #layout>) {division = #spyre_graph.division<splits = [1, 1], chunks = [4, 8]>}
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
// expected-error@+1 {{must have one block and no results}}
func.func @results(%x: memref<4x8xf16, #layout>) -> memref<4x8xf16, #layout> {
  return %x : memref<4x8xf16, #layout>
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @foreign(%x: memref<4x8xf16, #layout>) {
  %c = arith.constant 1 : index
  // expected-error@+1 {{is not part of a planned graph}}
  %d = arith.addi %c, %c : index
  return
}

// -----

// The table's gathered dimension is its stick.
#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#index = #spyre_graph.layout<order = [0], IEEE_INT32>
func.func @gather_stick(%x: memref<4x8xf16, #layout>, %i: memref<5xi64, #index>, %o: memref<4x5xf16, #layout>) {
  // SG-TO-KTIR-C2
  // expected-error@+1 {{must be one whole device dimension outside the stick}}
  spyre_graph.gather ins(%x, %i : memref<4x8xf16, #layout>, memref<5xi64, #index>) outs(%o : memref<4x5xf16, #layout>)
    {axis = 1 : i64, division = #spyre_graph.division<splits = [1, 1], chunks = [4, 5]>}
  return
}

// -----

// The second core's slice begins in the middle of a row.
#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#flat = #spyre_graph.layout<order = [0], SEN169_FP16>
func.func @lx_map(%o: memref<32xf16, #flat>) {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [4, 8]>} : memref<4x8xf16, #layout>
  // SG-TO-KTIR-C3
  // expected-error@+1 {{lies in LX, where a core must access a box of it}}
  spyre_graph.exp ins(%a : memref<4x8xf16, #layout>) outs(%o : memref<32xf16, #flat>)
    {maps = [affine_map<(d0) -> (d0 floordiv 8, d0 mod 8)>, affine_map<(d0) -> (d0)>], extents = array<i64: 32>,
     division = #spyre_graph.division<splits = [2], chunks = [20]>}
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @inside_a_stick(%x: memref<4x128xf16, #layout>) {
  // SG-TO-KTIR-C4
  // expected-error@+1 {{must start at whole sticks of dimension 1}}
  %t = memref.subview %x[0, 32] [4, 64] [1, 1] : memref<4x128xf16, #layout> to memref<4x64xf16, strided<[128, 1], offset: 32>, #layout>
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @step_inside_a_stick(%x: memref<4x128xf16, #layout>) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c128 step %c32 {
    // SG-TO-KTIR-C4
    // expected-error@+1 {{must start at whole sticks of dimension 1}}
    %t = memref.subview %x[0, %i] [4, 32] [1, 1] : memref<4x128xf16, #layout> to memref<4x32xf16, strided<[128, 1], offset: ?>, #layout>
  }
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @every_other_row(%x: memref<4x128xf16, #layout>) {
  // SG-TO-KTIR-C4
  // expected-error@+1 {{must be a dense tile of a whole buffer in device memory}}
  %t = memref.subview %x[0, 0] [2, 128] [2, 1] : memref<4x128xf16, #layout> to memref<2x128xf16, strided<[256, 1]>, #layout>
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @tile_of_lx(%x: memref<4x128xf16, #layout>) {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [4, 128]>} : memref<4x128xf16, #layout>
  // SG-TO-KTIR-C4
  // expected-error@+1 {{must be a dense tile of a whole buffer in device memory}}
  %t = memref.subview %a[0, 0] [2, 128] [1, 1] : memref<4x128xf16, #layout> to memref<2x128xf16, strided<[128, 1]>, #layout>
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @carries(%x: memref<4x128xf16, #layout>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  // SG-TO-KTIR-C4
  // expected-error@+1 {{must have constant bounds and carry nothing}}
  %r = scf.for %i = %c0 to %c4 step %c4 iter_args(%n = %c0) -> index {
    scf.yield %i : index
  }
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = #spyre_graph.division<splits = [4, 1], chunks = [1, 128]>
#columns = #spyre_graph.division<splits = [1, 2], chunks = [4, 64]>
func.func @moves_to_memory(%x: memref<4x128xf16, #layout>) {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [1, 128]>} : memref<4x128xf16, #layout>
  // SG-TO-KTIR-C5
  // expected-error@+1 {{moves parts between the LX of cores, but an operand does not lie there}}
  spyre_graph.reshard ins(%a : memref<4x128xf16, #layout>) outs(%x : memref<4x128xf16, #layout>) {source_division = #rows, maps = [#id, #id], extents = array<i64: 4, 128>, division = #columns}
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @last_tile_inside_a_stick(%x: memref<4x128xf16, #layout>) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c128 step %c64 {
    %start = spyre_graph.tile_start %i
    // SG-TO-KTIR-C4
    // expected-error@+1 {{must start at whole sticks of dimension 1}}
    %t = memref.subview %x[0, %start] [4, 64] [1, 1] : memref<4x128xf16, #layout> to memref<4x64xf16, strided<[128, 1], offset: ?>, #layout>
  }
  return
}

// -----

#layout = #spyre_graph.layout<order = [0, 1], packed = 2, SEN143_FP8>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 128)>
func.func @moves_packed_rows() attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 8>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [2, 128]>} : memref<8x128xf8E4M3FN, #layout>
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 512, local = [8, 64]>} : memref<8x128xf8E4M3FN, #layout>
  // SG-TO-KTIR-C6
  // expected-error@+1 {{must have the same extent in each run along the packed dimension, 0}}
  spyre_graph.reshard ins(%a : memref<8x128xf8E4M3FN, #layout>) outs(%b : memref<8x128xf8E4M3FN, #layout>) {source_division = #spyre_graph.division<splits = [4, 1], chunks = [2, 128], chunk_map = affine_map<()[s] -> ((s ceildiv 8) * 2, 128)>>, maps = [#id, #id], extents = array<i64: 8, 128>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 2], chunks = [8, 64], chunk_map = affine_map<()[s] -> (s, 64)>>}
  return
}

// -----

// SG-TO-KTIR-C1
// expected-error@+1 {{has a grid: it is a kernel of KTIR, to which the module has been lowered already}}
func.func @lowered(%x: index) attributes {grid = [2]} {
  return
}
