// SPDX-License-Identifier: Apache-2.0
// Loops up to a size that write tiles: where these lie, and what is read of them behind.
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-verify-plan

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>

// The last tile ends with the loop only where it starts at a tile_start: at multiples of
// 16, others end there, too.
func.func @last_tile(%x: memref<256x64xf16, #l> {spyre_graph.size_map = #rows},
                     %y: memref<256x64xf16, #l>)
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 256>]} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 16 : index
  %end = arith.constant 256 : index
  scf.for %i = %c0 to %end step %step {
    %s = spyre_graph.tile_start %i
    %a = memref.subview %x[%s, 0] [16, 64] [1, 1] : memref<256x64xf16, #l> to memref<16x64xf16, strided<[64, 1], offset: ?>, #l>
    %b = memref.subview %y[%s, 0] [16, 64] [1, 1] : memref<256x64xf16, #l> to memref<16x64xf16, strided<[64, 1], offset: ?>, #l>
    spyre_graph.neg ins(%a : memref<16x64xf16, strided<[64, 1], offset: ?>, #l>) outs(%b : memref<16x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 16, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [16, 64]>}
    // SG-PLAN-C13
    // expected-error @+1 {{takes coordinates of dimension 0 beyond its}}
    %c = memref.subview %x[%i, 0] [16, 64] [1, 1] : memref<256x64xf16, #l> to memref<16x64xf16, strided<[64, 1], offset: ?>, #l>
    spyre_graph.neg ins(%c : memref<16x64xf16, strided<[64, 1], offset: ?>, #l>) outs(%b : memref<16x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 16, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [16, 64]>}
  } {spyre_graph.bound_map = affine_map<()[s] -> (s)>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>

// A row that such a loop does not write at all sizes is read behind it.
func.func @beyond(%x: memref<256x64xf16, #l> {spyre_graph.size_map = #rows}, %y: memref<256x64xf16, #l>)
    attributes {spyre_graph.pool_size = 32768 : i64, spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 256>]} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 16 : index
  %end = arith.constant 256 : index
  %p = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<256x64xf16, #l>
  scf.for %i = %c0 to %end step %step {
    %s = spyre_graph.tile_start %i
    %a = memref.subview %x[%s, 0] [16, 64] [1, 1] : memref<256x64xf16, #l> to memref<16x64xf16, strided<[64, 1], offset: ?>, #l>
    %b = memref.subview %p[%s, 0] [16, 64] [1, 1] : memref<256x64xf16, #l> to memref<16x64xf16, strided<[64, 1], offset: ?>, #l>
    spyre_graph.neg ins(%a : memref<16x64xf16, strided<[64, 1], offset: ?>, #l>) outs(%b : memref<16x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 16, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [16, 64]>}
  } {spyre_graph.bound_map = affine_map<()[s] -> (s)>}
  spyre_graph.neg ins(%p : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 64>, extent_map = #rows, division = #spyre_graph.division<splits = [1, 1], chunks = [256, 64], chunk_map = #rows>}
  // SG-PLAN-C13
  // expected-error @+1 {{where s is 64, accesses coordinates of dimension 0 of operand 0 beyond its 64 elements}}
  spyre_graph.neg ins(%p : memref<256x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 65, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [65, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>

// Tiles that are larger than the loop's step write more, but only up to the size.
func.func @larger_tiles(%x: memref<264x64xf16, #l>, %y: memref<264x64xf16, #l>)
    attributes {spyre_graph.pool_size = 33792 : i64, spyre_graph.symbols = [#spyre_graph.symbol<"s", 4 to 256 by 4>]} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 4 : index
  %end = arith.constant 256 : index
  %p = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<264x64xf16, #l>
  scf.for %i = %c0 to %end step %step {
    %a = memref.subview %x[%i, 0] [12, 64] [1, 1] : memref<264x64xf16, #l> to memref<12x64xf16, strided<[64, 1], offset: ?>, #l>
    // SG-PLAN-C13
    // expected-error @+1 {{where s is 4, takes coordinates of dimension 0 beyond its 4 elements}}
    %b = memref.subview %p[%i, 0] [12, 64] [1, 1] : memref<264x64xf16, #l> to memref<12x64xf16, strided<[64, 1], offset: ?>, #l>
    spyre_graph.neg ins(%a : memref<12x64xf16, strided<[64, 1], offset: ?>, #l>) outs(%b : memref<12x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 12, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [12, 64]>}
  } {spyre_graph.bound_map = affine_map<()[s] -> (s)>}
  return
}
