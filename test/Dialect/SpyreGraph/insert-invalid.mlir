// SPDX-License-Identifier: Apache-2.0
// Parts that are copied to where a size says; faults.
// RUN: spyre-opt %s --split-input-file --verify-diagnostics

#id = affine_map<(i, j) -> (i, j)>
#after = affine_map<(i, j) -> (i + 512, j)>

func.func @no_axis(%y: tensor<64x256xf16>, %z: tensor<576x256xf16>) -> tensor<576x256xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  // SG-INSERT-C1
  // expected-error @+1 {{axis 2 is not a dimension of 'tensor<576x256xf16>'}}
  %r = spyre_graph.insert ins(%y : tensor<64x256xf16>) outs(%z : tensor<576x256xf16>) {axis = 2 : i64, offset_map = affine_map<()[s] -> (s)>, maps = [#id, #after], extents = array<i64: 64, 256>} -> tensor<576x256xf16>
  return %r : tensor<576x256xf16>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#after = affine_map<(i, j) -> (i + 512, j)>

func.func @elements(%y: tensor<64x256xf32>, %z: tensor<576x256xf16>) -> tensor<576x256xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  // SG-INSERT-C1
  // expected-error @+1 {{copies 'f32' into elements of 'f16'}}
  %r = spyre_graph.insert ins(%y : tensor<64x256xf32>) outs(%z : tensor<576x256xf16>) {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>, maps = [#id, #after], extents = array<i64: 64, 256>} -> tensor<576x256xf16>
  return %r : tensor<576x256xf16>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#after = affine_map<(i, j) -> (i + 511, j)>

func.func @elsewhere(%y: tensor<64x256xf16>, %z: tensor<576x256xf16>) -> tensor<576x256xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  // SG-INSERT-C2
  // expected-error @+1 {{offset_map must have results from 1 to what they stand beside, but in affine_map<()[s0] -> (s0)> one is 2 to 512 beside 511}}
  %r = spyre_graph.insert ins(%y : tensor<64x256xf16>) outs(%z : tensor<576x256xf16>) {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>, maps = [#id, #after], extents = array<i64: 64, 256>} -> tensor<576x256xf16>
  return %r : tensor<576x256xf16>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

func.func @nowhere(%y: tensor<64x256xf16>, %z: tensor<576x256xf16>) -> tensor<576x256xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  // SG-INSERT-C2
  // expected-error @+1 {{maps the first iteration to no coordinate along axis 0}}
  %r = spyre_graph.insert ins(%y : tensor<64x256xf16>) outs(%z : tensor<576x256xf16>) {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>, maps = [#id, affine_map<(i, j) -> (i floordiv 0, j)>], extents = array<i64: 64, 256>} -> tensor<576x256xf16>
  return %r : tensor<576x256xf16>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#after = affine_map<(i, j) -> (i + 512, j)>

func.func @no_loops(%y: tensor<64x256xf16>, %z: tensor<576x256xf16>) -> tensor<576x256xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  // SG-OP-C4
  // expected-error @+1 {{must have maps and extents}}
  %r = spyre_graph.insert ins(%y : tensor<64x256xf16>) outs(%z : tensor<576x256xf16>) {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>} -> tensor<576x256xf16>
  return %r : tensor<576x256xf16>
}

// -----

#rows = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#after = affine_map<(i, j) -> (i + 512, j)>

func.func @along_sticks(%y: tensor<64x256xf16, #rows>, %z: tensor<576x256xf16, #rows>) -> tensor<576x256xf16, #rows>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  // SG-INSERT-C3
  // expected-error @+1 {{inserts along dimension 0, along which sticks run}}
  %r = spyre_graph.insert ins(%y : tensor<64x256xf16, #rows>) outs(%z : tensor<576x256xf16, #rows>) {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>, maps = [#id, #after], extents = array<i64: 64, 256>} -> tensor<576x256xf16, #rows>
  return %r : tensor<576x256xf16, #rows>
}
