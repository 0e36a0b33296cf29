// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-verify-plan --verify-diagnostics

// Loops over tiles: what --spyre-verify-plan accepts and what not.

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [2, 64]>
#whole = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>

// Written tile by tile, read as a whole afterwards.
func.func @good(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) attributes {spyre_graph.pool_size = 512 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<4x64xf16, #l>
  scf.for %i = %c0 to %c4 step %c2 {
    %s = memref.subview %x[%i, 0] [2, 64] [1, 1] : memref<4x64xf16, #l> to memref<2x64xf16, strided<[64, 1], offset: ?>, #l>
    %t = memref.subview %a[%i, 0] [2, 64] [1, 1] : memref<4x64xf16, #l> to memref<2x64xf16, strided<[64, 1], offset: ?>, #l>
    spyre_graph.neg ins(%s : memref<2x64xf16, strided<[64, 1], offset: ?>, #l>) outs(%t : memref<2x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 2, 64>, division = #d}
  }
  spyre_graph.neg ins(%a : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #whole}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [1, 64]>
#whole = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>

func.func @gaps(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) attributes {spyre_graph.pool_size = 512 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  // expected-note @+1 {{the buffer is allocated here}}
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<4x64xf16, #l>
  scf.for %i = %c0 to %c4 step %c2 {
    %s = memref.subview %x[%i, 0] [1, 64] [1, 1] : memref<4x64xf16, #l> to memref<1x64xf16, strided<[64, 1], offset: ?>, #l>
    %t = memref.subview %a[%i, 0] [1, 64] [1, 1] : memref<4x64xf16, #l> to memref<1x64xf16, strided<[64, 1], offset: ?>, #l>
    spyre_graph.neg ins(%s : memref<1x64xf16, strided<[64, 1], offset: ?>, #l>) outs(%t : memref<1x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 1, 64>, division = #d}
  }
  // SG-PLAN-C8: tiles of one row in steps of two leave gaps.
  // expected-error @+1 {{reads parts of operand 0 that have not been written}}
  spyre_graph.neg ins(%a : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #whole}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [2, 64]>
#whole = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>

func.func @too_early(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) attributes {spyre_graph.pool_size = 512 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<4x64xf16, #l>
  scf.for %i = %c0 to %c4 step %c2 {
    %s = memref.subview %x[%i, 0] [2, 64] [1, 1] : memref<4x64xf16, #l> to memref<2x64xf16, strided<[64, 1], offset: ?>, #l>
    %t = memref.subview %a[%i, 0] [2, 64] [1, 1] : memref<4x64xf16, #l> to memref<2x64xf16, strided<[64, 1], offset: ?>, #l>
    spyre_graph.neg ins(%s : memref<2x64xf16, strided<[64, 1], offset: ?>, #l>) outs(%t : memref<2x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 2, 64>, division = #d}
    // SG-PLAN-C8: read as a whole inside the loop that writes it.
    // expected-error @+1 {{reads tiles of operand 0 that the loop around it may not have written}}
    spyre_graph.neg ins(%a : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #whole}
  }
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

func.func @outside(%x: memref<4x64xf16, #l>) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c3 {
    // SG-PLAN-C9
    // expected-error @+1 {{takes coordinates 0 to 5 of dimension 0, whose extent is 4}}
    %t = memref.subview %x[%i, 0] [3, 64] [1, 1] : memref<4x64xf16, #l> to memref<3x64xf16, strided<[64, 1], offset: ?>, #l>
  }
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-PLAN-C9
func.func @inside_a_stick(%x: memref<4x128xf16, #l>) {
  // expected-error @+1 {{starts inside a stick of dimension 1}}
  %t = memref.subview %x[0, 32] [4, 64] [1, 1] : memref<4x128xf16, #l> to memref<4x64xf16, strided<[128, 1], offset: 32>, #l>
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-PLAN-C9
func.func @unknown_offset(%x: memref<4x128xf16, #l>, %i: index) {
  // expected-error @+1 {{must be dense in dimension 0 and start at a constant or an induction variable}}
  %t = memref.subview %x[%i, 0] [1, 128] [1, 1] : memref<4x128xf16, #l> to memref<1x128xf16, strided<[128, 1], offset: ?>, #l>
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-PLAN-C9
func.func @in_lx(%x: memref<4x64xf16, #l>) {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [4, 64]>} : memref<4x64xf16, #l>
  // expected-error @+1 {{must be a tile of a buffer in device memory, not in LX}}
  %t = memref.subview %a[0, 0] [1, 64] [1, 1] : memref<4x64xf16, #l> to memref<1x64xf16, strided<[64, 1]>, #l>
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [2, 64]>

func.func @lifetimes(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) attributes {spyre_graph.pool_size = 512 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  // expected-note @+1 {{the other buffer is allocated here}}
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<4x64xf16, #l>
  scf.for %i = %c0 to %c4 step %c2 {
    %s = memref.subview %x[%i, 0] [2, 64] [1, 1] : memref<4x64xf16, #l> to memref<2x64xf16, strided<[64, 1], offset: ?>, #l>
    // SG-PLAN-C6: the second buffer is used during the whole loop, the first one in
    // each of its iterations.
    // expected-error @+1 {{overlap those of another live buffer}}
    %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<2x64xf16, #l>
    spyre_graph.neg ins(%s : memref<2x64xf16, strided<[64, 1], offset: ?>, #l>) outs(%b : memref<2x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 2, 64>, division = #d}
    %t = memref.subview %a[%i, 0] [2, 64] [1, 1] : memref<4x64xf16, #l> to memref<2x64xf16, strided<[64, 1], offset: ?>, #l>
    spyre_graph.neg ins(%b : memref<2x64xf16, #l>) outs(%t : memref<2x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 2, 64>, division = #d}
  }
  return
}
