// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-verify-plan

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [2, 1], chunks = [2, 64]>

func.func @good(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) attributes {spyre_graph.pool_size = 512 : i64} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<4x64xf16, #l>
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [2, 64]>} : memref<4x64xf16, #l>
  %c = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<4x64xf16, #l>
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%a : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d}
  spyre_graph.neg ins(%a : memref<4x64xf16, #l>) outs(%b : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d}
  spyre_graph.neg ins(%b : memref<4x64xf16, #l>) outs(%c : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d}
  spyre_graph.neg ins(%c : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d}
  return
}

// -----

// SG-PLAN-C1
// expected-error @+1 {{expected a layout as memory space, found 'memref<4x64xf16>'}}
func.func @no_layout(%x: memref<4x64xf16>) {
  return
}

// -----

// SG-PLAN-C1
// expected-error @+1 {{layout order [0] is not a permutation of the 2 dimensions}}
func.func @wrong_layout(%x: memref<4x64xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>) {
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-PLAN-C2
func.func @no_maps(%x: memref<4x64xf16, #l>) {
  // expected-error @+1 {{has no explicit maps and extents}}
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%x : memref<4x64xf16, #l>)
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>

// SG-PLAN-C2
func.func @no_division(%x: memref<4x64xf16, #l>) {
  // expected-error @+1 {{has no work division}}
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%x : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>

// SG-PLAN-C2
func.func @too_many_cores(%x: memref<64x64xf16, #l>) {
  // expected-error @+1 {{loop dimension 0 has 64 slices of 1 iterations}}
  spyre_graph.neg ins(%x : memref<64x64xf16, #l>) outs(%x : memref<64x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [64, 1], chunks = [1, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [16, 4], chunks = [1, 64]>

// SG-PLAN-C2
func.func @more_cores(%x: memref<16x256xf16, #l>) {
  // expected-error @+1 {{division needs more than 32 cores}}
  spyre_graph.neg ins(%x : memref<16x256xf16, #l>) outs(%x : memref<16x256xf16, #l>) {maps = [#id, #id], extents = array<i64: 16, 256>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j, k) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1, 2], chunks = [4, 64, 1]>

// SG-PLAN-C3
func.func @same_elements(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) {
  // expected-error @+1 {{loop dimension 2 is split, but all its slices write the same elements}}
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64, 2>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>

// SG-PLAN-C3
func.func @half_sticks(%x: memref<4x64xf16, #l>) {
  // expected-error @+1 {{slices of 32 iterations of loop dimension 1 write parts of the same stick of 64 elements}}
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%x : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 32]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#off = affine_map<(i, j) -> (i, j + 32)>

// SG-PLAN-C3: whole sticks of the source, but not of the destination.
func.func @shifted_sticks(%x: memref<4x128xf16, #l>, %y: memref<4x192xf16, #l>) {
  // expected-error @+1 {{slices of 64 iterations of loop dimension 1 write parts of the same stick}}
  spyre_graph.identity ins(%x : memref<4x128xf16, #l>) outs(%y : memref<4x192xf16, #l>) {maps = [#id, #off], extents = array<i64: 4, 128>, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 64]>}
  return
}

// -----

#l1 = #spyre_graph.layout<order = [0], IEEE_INT32>
#l4 = #spyre_graph.layout<order = [0, 1, 2, 3], IEEE_INT32>
#id = affine_map<(i, j, k, l) -> (i, j, k, l)>
#flat = affine_map<(i, j, k, l) -> (i * 608 + j * 32 + k * 16 + l + 64)>

// Whole sticks within a row, rows that are whole sticks apart: no fault.
func.func @rows_of_sticks(%x: memref<7x16x2x16xi32, #l4>, %y: memref<4256xi32, #l1>) {
  spyre_graph.identity ins(%x : memref<7x16x2x16xi32, #l4>) outs(%y : memref<4256xi32, #l1>) {maps = [#id, #flat], extents = array<i64: 7, 16, 2, 16>, division = #spyre_graph.division<splits = [7, 4, 1, 1], chunks = [1, 4, 2, 16]>}
  return
}

// -----

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>
#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#l3 = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#id = affine_map<(i) -> (i)>
#rows = affine_map<(i) -> (i floordiv 128 + 1, i mod 128)>
#boxes = affine_map<(i) -> (i floordiv 384 + 1, (i floordiv 128) mod 3, i mod 128)>

// Rows as one loop, cut within a row and after some: no fault.
func.func @rows_in_one_loop(%x: memref<640xf16, #l1>, %y: memref<6x128xf16, #l2>, %z: memref<768xf16, #l1>, %w: memref<3x3x128xf16, #l3>) {
  spyre_graph.identity ins(%x : memref<640xf16, #l1>) outs(%y : memref<6x128xf16, #l2>) {maps = [#id, #rows], extents = array<i64: 640>, division = #spyre_graph.division<splits = [4], chunks = [192]>}
  spyre_graph.identity ins(%z : memref<768xf16, #l1>) outs(%w : memref<3x3x128xf16, #l3>) {maps = [#id, #boxes], extents = array<i64: 768>, division = #spyre_graph.division<splits = [12], chunks = [64]>}
  return
}

// -----

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>
#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i) -> (i)>
#rows = affine_map<(i) -> (i floordiv 128 + 1, i mod 128)>

// SG-PLAN-C3
func.func @cut_within_a_stick_of_rows(%x: memref<640xf16, #l1>, %y: memref<6x128xf16, #l2>) {
  // expected-error @+1 {{slices of 160 iterations of loop dimension 0 write parts of the same stick of 64 elements}}
  spyre_graph.identity ins(%x : memref<640xf16, #l1>) outs(%y : memref<6x128xf16, #l2>) {maps = [#id, #rows], extents = array<i64: 640>, division = #spyre_graph.division<splits = [4], chunks = [160]>}
  return
}

// -----

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>
#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i) -> (i)>
#rows = affine_map<(i) -> (i floordiv 96, i mod 96)>

// SG-PLAN-C3: a row ends within a stick, so sticks of it are cut elsewhere.
func.func @cut_rows_that_end_in_sticks(%x: memref<384xf16, #l1>, %y: memref<4x96xf16, #l2>) {
  // expected-error @+1 {{slices of 128 iterations of loop dimension 0 write parts of the same stick of 64 elements}}
  spyre_graph.identity ins(%x : memref<384xf16, #l1>) outs(%y : memref<4x96xf16, #l2>) {maps = [#id, #rows], extents = array<i64: 384>, division = #spyre_graph.division<splits = [3], chunks = [128]>}
  return
}

// -----

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>
#l3 = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#id = affine_map<(i) -> (i)>
#boxes = affine_map<(i) -> (0, (i floordiv 128) mod 3, i mod 128)>

// SG-PLAN-C3: after three rows the first is written again.
func.func @rows_that_come_again(%z: memref<768xf16, #l1>, %w: memref<1x3x128xf16, #l3>) {
  // expected-error @+1 {{slices of 384 iterations of loop dimension 0 write parts of the same stick of 64 elements}}
  spyre_graph.identity ins(%z : memref<768xf16, #l1>) outs(%w : memref<1x3x128xf16, #l3>) {maps = [#id, #boxes], extents = array<i64: 768>, division = #spyre_graph.division<splits = [2], chunks = [384]>}
  return
}

// -----

#l1 = #spyre_graph.layout<order = [0], IEEE_INT32>
#l2 = #spyre_graph.layout<order = [0, 1], IEEE_INT32>
#id = affine_map<(i, j) -> (i, j)>
#flat = affine_map<(i, j) -> (i * 96 + j + 16)>

// SG-PLAN-C3: the cut lies between sticks, but a row begins in the stick in
// which the one before ends.
func.func @rows_that_meet_in_a_stick(%x: memref<2x96xi32, #l2>, %y: memref<224xi32, #l1>) {
  // expected-error @+1 {{slices of 48 iterations of loop dimension 1 write parts of the same stick of 32 elements}}
  spyre_graph.identity ins(%x : memref<2x96xi32, #l2>) outs(%y : memref<224xi32, #l1>) {maps = [#id, #flat], extents = array<i64: 2, 96>, division = #spyre_graph.division<splits = [1, 2], chunks = [2, 48]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0], IEEE_INT32>
#id = affine_map<(i) -> (i)>
#zero = affine_map<(i) -> (0)>

// In place where the loop runs once: both maps say element 0.
func.func @in_place_of_one_element(%x: memref<1xi32, #l>) {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [1]>} : memref<1xi32, #l>
  spyre_graph.identity ins(%x : memref<1xi32, #l>) outs(%a : memref<1xi32, #l>) {maps = [#id, #id], extents = array<i64: 1>, division = #spyre_graph.division<splits = [1], chunks = [1]>}
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [1]>} : memref<1xi32, #l>
  spyre_graph.neg ins(%a : memref<1xi32, #l>) outs(%b : memref<1xi32, #l>) {maps = [#zero, #id], extents = array<i64: 1>, division = #spyre_graph.division<splits = [1], chunks = [1]>}
  spyre_graph.identity ins(%b : memref<1xi32, #l>) outs(%x : memref<1xi32, #l>) {maps = [#id, #id], extents = array<i64: 1>, division = #spyre_graph.division<splits = [1], chunks = [1]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>

// SG-PLAN-C5
func.func @unplaced(%x: memref<4x64xf16, #l>) {
  // expected-error @+1 {{has no placement}}
  %a = memref.alloc() : memref<4x64xf16, #l>
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%a : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>

// SG-PLAN-C5
func.func @outside_pool(%x: memref<4x64xf16, #l>) attributes {spyre_graph.pool_size = 512 : i64} {
  // expected-error @+1 {{bytes 128 to 640 are outside the pool of 512 bytes}}
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 128>} : memref<4x64xf16, #l>
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%a : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>

// SG-PLAN-C5
func.func @outside_scratchpad(%x: memref<4x64xf16, #l>) {
  // expected-error @+1 {{bytes 1677696 to 1678208 are outside the scratchpad of 1677721 bytes}}
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 1677696, local = [4, 64]>} : memref<4x64xf16, #l>
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%a : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>

// SG-PLAN-C6: an op must not write where it reads.
func.func @overlap(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) attributes {spyre_graph.pool_size = 1024 : i64} {
  // expected-note @+1 {{the other buffer is allocated here}}
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<4x64xf16, #l>
  // expected-error @+1 {{bytes 384 to 896 overlap those of another live buffer, 0 to 512}}
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 384>} : memref<4x64xf16, #l>
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%a : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d}
  spyre_graph.neg ins(%a : memref<4x64xf16, #l>) outs(%b : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d}
  spyre_graph.neg ins(%b : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>

func.func @other_slice(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) {
  // expected-note @+1 {{the buffer is allocated here}}
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [2, 64]>} : memref<4x64xf16, #l>
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%a : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #spyre_graph.division<splits = [2, 1], chunks = [2, 64]>}
  // SG-PLAN-C7
  // expected-error @+1 {{core 0 accesses a slice of operand 0 that it does not hold in LX}}
  spyre_graph.neg ins(%a : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #spyre_graph.division<splits = [4, 1], chunks = [1, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>

// SG-PLAN-C7
func.func @too_small_locally(%x: memref<4x64xf16, #l>) {
  // expected-error @+1 {{core 0 needs 4 coordinates of dimension 0, but the placement has 2}}
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [2, 64]>} : memref<4x64xf16, #l>
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%a : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#off = affine_map<(i, j) -> (i + 2, j)>
#d4 = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>
#d1 = #spyre_graph.division<splits = [1, 1], chunks = [1, 64]>

func.func @unwritten(%x: memref<4x64xf16, #l>, %z: memref<2x64xf16, #l>, %y: memref<4x64xf16, #l>) attributes {spyre_graph.pool_size = 512 : i64} {
  // expected-note @+1 {{the buffer is allocated here}}
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<4x64xf16, #l>
  spyre_graph.identity ins(%z : memref<2x64xf16, #l>) outs(%a : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 2, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [2, 64]>}
  spyre_graph.identity ins(%z : memref<2x64xf16, #l>) outs(%a : memref<4x64xf16, #l>) {maps = [#id, #off], extents = array<i64: 1, 64>, division = #d1}
  // SG-PLAN-C8: row 3 is never written.
  // expected-error @+1 {{reads parts of operand 0 that have not been written}}
  spyre_graph.neg ins(%a : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d4}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

func.func @foreign(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) {
  // SG-PLAN-C15
  // expected-error @+1 {{is not a device operation but uses a buffer}}
  memref.copy %x, %y : memref<4x64xf16, #l> to memref<4x64xf16, #l>
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>

func.func @on_tensors() {
  %x = ub.poison : tensor<4x64xf16, #l>
  // SG-PLAN-C15
  // expected-error @+1 {{is on tensors; plans are on buffers}}
  %y = spyre_graph.neg ins(%x : tensor<4x64xf16, #l>) outs(%x : tensor<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d} -> tensor<4x64xf16, #l>
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#off = affine_map<(i, j) -> (i + 1, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>

// SG-PLAN-C4, which the operation's own verifier finds as well.
func.func @outside_buffer(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) {
  // SG-OP-C9
  // expected-error @+1 {{operand 0 is accessed at coordinates 1 to 4 of dimension 0, whose extent is 4}}
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#off, #id], extents = array<i64: 4, 64>, division = #d}
  return
}

// -----

#w = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#id = affine_map<(i, j, k) -> (i, j, k)>

// SG-PLAN-C10: the device sizes are [4194304, 1, 2, 64].
func.func @wide(%x: memref<2x4194304x64xf16, #w>, %y: memref<2x4194304x64xf16, #w>) {
  // expected-error @+1 {{operand 0 has a span of 1073741824 bytes of device memory per core, of which 268435456 can be addressed; divide an outer dimension}}
  spyre_graph.neg ins(%x : memref<2x4194304x64xf16, #w>) outs(%y : memref<2x4194304x64xf16, #w>) {maps = [#id, #id], extents = array<i64: 2, 4194304, 64>, division = #spyre_graph.division<splits = [2, 1, 1], chunks = [1, 4194304, 64]>}
  return
}

// Four slices of the outermost dimension are narrow enough.
func.func @narrow(%x: memref<2x4194304x64xf16, #w>, %y: memref<2x4194304x64xf16, #w>) {
  spyre_graph.neg ins(%x : memref<2x4194304x64xf16, #w>) outs(%y : memref<2x4194304x64xf16, #w>) {maps = [#id, #id], extents = array<i64: 2, 4194304, 64>, division = #spyre_graph.division<splits = [1, 4, 1], chunks = [2, 1048576, 64]>}
  return
}

// -----

#flat = #spyre_graph.layout<order = [0], SEN169_FP16>
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i) -> (i)>
#split = affine_map<(i) -> (i floordiv 50331648, i mod 50331648)>

// SG-PLAN-C10: core 0 has three quarters of the first row, 226492416 bytes
// apart; core 1 has its end and the start of the next row. The device sizes are
// [786432, 3, 64].
func.func @wide_on_a_later_core(%x: memref<3x50331648xf16, #rows>, %y: memref<150994944xf16, #flat>) {
  // expected-error @+1 {{operand 0 has a span of 301989888 bytes of device memory per core, of which 268435456 can be addressed; divide an outer dimension}}
  spyre_graph.neg ins(%x : memref<3x50331648xf16, #rows>) outs(%y : memref<150994944xf16, #flat>) {maps = [#split, #id], extents = array<i64: 150994944>, division = #spyre_graph.division<splits = [4], chunks = [37748736]>}
  return
}

// Whole rows, or parts of one, are narrow enough.
func.func @narrow_on_all_cores(%x: memref<3x50331648xf16, #rows>, %y: memref<150994944xf16, #flat>) {
  spyre_graph.neg ins(%x : memref<3x50331648xf16, #rows>) outs(%y : memref<150994944xf16, #flat>) {maps = [#split, #id], extents = array<i64: 150994944>, division = #spyre_graph.division<splits = [6], chunks = [25165824]>}
  return
}

// -----

#flat = #spyre_graph.layout<order = [0], SEN169_FP16>
#rows = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#id = affine_map<(i) -> (i)>
#split = affine_map<(i) -> (0, i floordiv 67108864, i mod 67108864)>

// Core 0 has the first two of three rows, and core 1, whose slice is shorter,
// the last two: 268435456 bytes each. The device sizes are [3, 1048576, 1, 64].
func.func @shorter_last_slice(%x: memref<1x3x67108864xf16, #rows>, %y: memref<201326592xf16, #flat>) {
  spyre_graph.neg ins(%x : memref<1x3x67108864xf16, #rows>) outs(%y : memref<201326592xf16, #flat>) {maps = [#split, #id], extents = array<i64: 201326592>, division = #spyre_graph.division<splits = [2], chunks = [109051904]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#c = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>

// SG-PLAN-C11
func.func @two_sticks(%x: memref<64x64xf16, #l>, %z: memref<64x64xf16, #c>, %y: memref<64x64xf16, #l>) {
  // expected-error @+1 {{operand 1 has its sticks along loop dimension 0, but operand 0 along 1}}
  spyre_graph.add ins(%x, %z : memref<64x64xf16, #l>, memref<64x64xf16, #c>) outs(%y : memref<64x64xf16, #l>) {maps = [#id, #id, #id], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = #spyre_graph.division<splits = [4, 1], chunks = [16, 128]>
#blocks = #spyre_graph.division<splits = [2, 2], chunks = [32, 64]>

// SG-PLAN-C12
func.func @moves_to_memory(%x: memref<64x128xf16, #l>, %y: memref<64x128xf16, #l>) {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [16, 128]>} : memref<64x128xf16, #l>
  spyre_graph.neg ins(%x : memref<64x128xf16, #l>) outs(%a : memref<64x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 128>, division = #rows}
  // expected-error @+1 {{moves operand 1 between cores, but it is not in LX}}
  spyre_graph.reshard ins(%a : memref<64x128xf16, #l>) outs(%y : memref<64x128xf16, #l>) {source_division = #rows, maps = [#id, #id], extents = array<i64: 64, 128>, division = #blocks}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j, p) -> (i, j)>

// Partners are neighbours, but parts are taken as if those that hold the same
// were four cores apart.
func.func @moves_from_others(%x: memref<64x256xf16, #l>, %w: memref<256x64xf16, #l>, %y: memref<64x64xf16, #l>) {
  // expected-note @+1 {{the buffer is allocated here}}
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [16, 64]>} : memref<64x64xf16, #l>
  spyre_graph.matmul ins(%x, %w : memref<64x256xf16, #l>, memref<256x64xf16, #l>) outs(%a : memref<64x64xf16, #l>) {maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], extents = array<i64: 64, 64, 256>, division = #spyre_graph.division<splits = [4, 1, 4], chunks = [16, 64, 64], order = [2, 0, 1]>}
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 4096, local = [4, 64]>} : memref<64x64xf16, #l>
  // SG-PLAN-C7
  // expected-error @+1 {{core 1 accesses a slice of operand 0 that it does not hold in LX}}
  spyre_graph.reshard ins(%a : memref<64x64xf16, #l>) outs(%b : memref<64x64xf16, #l>) {source_division = #spyre_graph.division<splits = [4, 1, 4], chunks = [16, 64, 1]>, maps = [#id, #id], extents = array<i64: 64, 64, 4>, division = #spyre_graph.division<splits = [16, 1, 1], chunks = [4, 64, 4]>}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [2, 1], chunks = [2, 64]>

func.func @updates(%x: memref<4x64xf16, #l>, %long: memref<8x64xf16, #l>) {
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%x : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #d}
  spyre_graph.neg ins(%long : memref<8x64xf16, #l>) outs(%long : memref<8x64xf16, #l>) {maps = [#id, affine_map<(i, j) -> (i + 4, j)>], extents = array<i64: 4, 64>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [2, 1], chunks = [2, 64]>

// SG-PLAN-C14
func.func @next_row(%x: memref<5x64xf16, #l>) {
  // expected-error @+1 {{reads elements of operand 0 that it may have overwritten}}
  spyre_graph.neg ins(%x : memref<5x64xf16, #l>) outs(%x : memref<5x64xf16, #l>) {maps = [affine_map<(i, j) -> (i + 1, j)>, #id], extents = array<i64: 4, 64>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [2, 1], chunks = [64, 64]>

func.func @other_tile(%x: memref<128x64xf16, #l>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  scf.for %i = %c0 to %c128 step %c64 {
    %first = memref.subview %x[0, 0] [64, 64] [1, 1] : memref<128x64xf16, #l> to memref<64x64xf16, strided<[64, 1]>, #l>
    %tile = memref.subview %x[%i, 0] [64, 64] [1, 1] : memref<128x64xf16, #l> to memref<64x64xf16, strided<[64, 1], offset: ?>, #l>
    // SG-PLAN-C14
    // expected-error @+1 {{reads elements of operand 1 that it may have overwritten}}
    spyre_graph.add ins(%tile, %first : memref<64x64xf16, strided<[64, 1], offset: ?>, #l>, memref<64x64xf16, strided<[64, 1]>, #l>) outs(%tile : memref<64x64xf16, strided<[64, 1], offset: ?>, #l>) {maps = [#id, #id, #id], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [2, 1], chunks = [32, 64]>}
  }
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(m, n, k) -> (m, n)>

// SG-PLAN-C14
func.func @product(%x: memref<64x64xf16, #l>) {
  // expected-error @+1 {{reads elements of operand 0 that it may have overwritten}}
  spyre_graph.matmul ins(%x, %x : memref<64x64xf16, #l>, memref<64x64xf16, #l>) outs(%x : memref<64x64xf16, #l>) {maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, #id], extents = array<i64: 64, 64, 64>, division = #spyre_graph.division<splits = [2, 1, 1], chunks = [32, 64, 64]>}
  return
}
