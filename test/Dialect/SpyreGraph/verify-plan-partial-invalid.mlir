// SPDX-License-Identifier: Apache-2.0
// Between passes, what has been decided must hold; the rest need not be there.
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-verify-plan=partial

#id = affine_map<(i, j) -> (i, j)>
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

func.func @imported(%x: tensor<4x64xf16, #l>) -> tensor<4x64xf16> {
  %r = spyre_graph.softmax %x {dim = 1 : i64} : tensor<4x64xf16, #l> -> tensor<4x64xf16>
  return %r : tensor<4x64xf16>
}

func.func @without_placements(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) {
  %a = memref.alloc() : memref<4x64xf16, #l>
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%a : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>}
  spyre_graph.neg ins(%a : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>}
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#next = affine_map<(i, j) -> (i, j + 1)>

// SG-PLAN-C4
func.func @outside(%x: tensor<4x64xf16>) -> tensor<4x64xf16> {
  %e = tensor.empty() : tensor<4x64xf16>
  // expected-error @+1 {{operand 0 is accessed at coordinates 1 to 64 of dimension 1, whose extent is 64}}
  %r = spyre_graph.neg ins(%x : tensor<4x64xf16>) outs(%e : tensor<4x64xf16>) {maps = [#next, #id], extents = array<i64: 4, 64>} -> tensor<4x64xf16>
  return %r : tensor<4x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#t = #spyre_graph.layout<order = [1, 0], SEN169_FP16>

// SG-PLAN-C11
func.func @sticks(%x: tensor<64x64xf16, #l>, %y: tensor<64x64xf16, #t>) -> tensor<64x64xf16, #l> {
  %e = tensor.empty() : tensor<64x64xf16, #l>
  // expected-error @+1 {{operand 1 has its sticks along loop dimension 0, but operand 0 along 1}}
  %r = spyre_graph.add ins(%x, %y : tensor<64x64xf16, #l>, tensor<64x64xf16, #t>) outs(%e : tensor<64x64xf16, #l>) -> tensor<64x64xf16, #l>
  return %r : tensor<64x64xf16, #l>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-PLAN-C3
func.func @half_a_stick(%x: tensor<4x64xf16, #l>) -> tensor<4x64xf16, #l> {
  %e = tensor.empty() : tensor<4x64xf16, #l>
  // expected-error @+1 {{slices of 32 iterations of loop dimension 1 write parts of the same stick of 64 elements}}
  %r = spyre_graph.neg ins(%x : tensor<4x64xf16, #l>) outs(%e : tensor<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 32]>} -> tensor<4x64xf16, #l>
  return %r : tensor<4x64xf16, #l>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-PLAN-C8
func.func @unwritten(%y: memref<4x64xf16, #l>) {
  // expected-note @+1 {{the buffer is allocated here}}
  %a = memref.alloc() : memref<4x64xf16, #l>
  // expected-error @+1 {{reads parts of operand 0 that have not been written}}
  spyre_graph.neg ins(%a : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>}
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#rows = #spyre_graph.division<splits = [2, 1], chunks = [2, 64]>
#whole = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>

func.func @slices(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) {
  // expected-note @+1 {{the buffer is allocated here}}
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [2, 64]>} : memref<4x64xf16, #l>
  %b = memref.alloc() : memref<4x64xf16, #l>
  spyre_graph.neg ins(%x : memref<4x64xf16, #l>) outs(%a : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #rows}
  // SG-PLAN-C7, before there is a pool
  // expected-error @+1 {{core 0 accesses a slice of operand 0 that it does not hold in LX}}
  spyre_graph.neg ins(%a : memref<4x64xf16, #l>) outs(%b : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #whole}
  spyre_graph.neg ins(%b : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 64>, division = #rows}
  return
}
