// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir -split-input-file -verify-diagnostics

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-TO-KTIR-C1
// expected-error@+1 {{argument 0 must be a memref whose memory space is a layout, but is 'tensor<4x8xf16>'}}
func.func @tensors(%x: tensor<4x8xf16>) {
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
  // expected-error@+1 {{is not part of a planned graph}}
  %c = arith.constant 1 : index
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

// A transposed core slice cannot be read as a reshaped one.
#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#flat = #spyre_graph.layout<order = [0], SEN169_FP16>
func.func @lx_map(%o: memref<32xf16, #flat>) {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [4, 8]>} : memref<4x8xf16, #layout>
  // SG-TO-KTIR-C3
  // expected-error@+1 {{lies in LX, where its coordinates must be loop dimensions}}
  spyre_graph.exp ins(%a : memref<4x8xf16, #layout>) outs(%o : memref<32xf16, #flat>)
    {maps = [affine_map<(d0) -> (d0 floordiv 8, d0 mod 8)>, affine_map<(d0) -> (d0)>], extents = array<i64: 32>,
     division = #spyre_graph.division<splits = [1], chunks = [32]>}
  return
}
