// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts --spyre-resolve-hints --spyre-coarse-tiling --verify-diagnostics

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// What nothing iterates over is no error.
func.func @unknown_name(%x: tensor<8x64xf16, #l> {spyre_graph.dim_names = [[{name = "M", size = 8}], []]}) -> tensor<8x64xf16> {
  %e = tensor.empty() : tensor<8x64xf16>
  // expected-warning @+1 {{hint ignored: no operation under it has dimension 'Q'; it has M}}
  %y = spyre_graph.exp ins(%x : tensor<8x64xf16, #l>) outs(%e : tensor<8x64xf16>) {spyre_graph.hints = [{dim = "Q", scope = 0, tiles = 2}]} -> tensor<8x64xf16>
  return %y : tensor<8x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

func.func @no_names(%x: tensor<8x64xf16, #l>) -> tensor<8x64xf16> {
  %e = tensor.empty() : tensor<8x64xf16>
  // expected-warning @+1 {{hint ignored: no operation under it has dimension 'Q'; the dimensions of its tensors have no names}}
  %y = spyre_graph.exp ins(%x : tensor<8x64xf16, #l>) outs(%e : tensor<8x64xf16>) {spyre_graph.hints = [{dim = "Q", scope = 0, tiles = 2}]} -> tensor<8x64xf16>
  return %y : tensor<8x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-HINT-C2
// expected-error @+1 {{spyre_graph.dim_names of argument 0 must give for each dimension names whose sizes multiply to its extent}}
func.func @sizes(%x: tensor<8x64xf16, #l> {spyre_graph.dim_names = [[{name = "M", size = 4}], []]}) {
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-HINT-C3
func.func @zero_tiles(%x: tensor<8x64xf16, #l>) -> tensor<8x64xf16> {
  %e = tensor.empty() : tensor<8x64xf16>
  // expected-error @+1 {{has a hint that is neither {scope, dim, tiles} nor {dim, work_div} with a positive number}}
  %y = spyre_graph.exp ins(%x : tensor<8x64xf16, #l>) outs(%e : tensor<8x64xf16>) {spyre_graph.hints = [{dim = "M", scope = 0, tiles = 0}]} -> tensor<8x64xf16>
  return %y : tensor<8x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-TILE-HINT-C1
func.func @no_divisor(%x: tensor<100x64xf16, #l> {spyre_graph.dim_names = [[{name = "M", size = 100}], []]}) -> tensor<100x64xf16> {
  %e = tensor.empty() : tensor<100x64xf16>
  // expected-error @+1 {{loop dimension 0 of extent 100 cannot be cut into 60 tiles: tiles of 2 are only 50, smaller ones 100}}
  %y = spyre_graph.exp ins(%x : tensor<100x64xf16, #l>) outs(%e : tensor<100x64xf16>) {spyre_graph.hints = [{dim = "M", scope = 0, tiles = 60}]} -> tensor<100x64xf16>
  return %y : tensor<100x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-TILE-HINT-C1: 96 columns are one stick and a half.
func.func @no_stick(%x: tensor<8x96xf16, #l> {spyre_graph.dim_names = [[], [{name = "N", size = 96}]]}) -> tensor<8x96xf16> {
  %e = tensor.empty() : tensor<8x96xf16>
  // expected-error @+1 {{loop dimension 1 of extent 96 cannot be cut into 3 tiles of multiples of 64; possible are 1 to 2}}
  %y = spyre_graph.exp ins(%x : tensor<8x96xf16, #l>) outs(%e : tensor<8x96xf16>) {spyre_graph.hints = [{dim = "N", scope = 0, tiles = 3}]} -> tensor<8x96xf16>
  return %y : tensor<8x96xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-TILE-HINT-C2
func.func @index() -> tensor<8x64xi32> {
  %e = tensor.empty() : tensor<8x64xi32>
  // expected-error @+1 {{loop dimension 0 cannot be cut into 2 tiles: spyre_graph.iota computes with the index of the dimension}}
  %y = spyre_graph.iota outs(%e : tensor<8x64xi32>) {dim = 0 : i64, start = 0 : i64, step = 1 : i64, spyre_graph.hints = [{named_dims = ["M", "N"]}, {dim = "M", scope = 0, tiles = 2}]} -> tensor<8x64xi32>
  return %y : tensor<8x64xi32>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#s = #spyre_graph.layout<order = [0], SEN169_FP16>
func.func @outer_reduction(%x: tensor<256x128xf16, #l>) -> tensor<128xf16, #s> {
  %e = tensor.empty() : tensor<256x128xf16, #l>
  %o = tensor.empty() : tensor<128xf16, #s>
  // SG-TILE-HINT-C3: the sum, which the hints do not name, lies between the two.
  // expected-error @below {{loop dimension 0 is reduced by spyre_graph.sum, so its loop must be the innermost}}
  %a = spyre_graph.exp ins(%x : tensor<256x128xf16, #l>) outs(%e : tensor<256x128xf16, #l>) {spyre_graph.tile_hints = [array<i64: 0, 0, 4>, array<i64: 1, 1, 2>]} -> tensor<256x128xf16, #l>
  %b = spyre_graph.sum ins(%a : tensor<256x128xf16, #l>) outs(%o : tensor<128xf16, #s>) {dims = array<i64: 0>} -> tensor<128xf16, #s>
  %c = spyre_graph.neg ins(%b : tensor<128xf16, #s>) outs(%o : tensor<128xf16, #s>) {spyre_graph.tile_hints = [array<i64: 0, -1, 4>, array<i64: 1, 0, 2>]} -> tensor<128xf16, #s>
  return %c : tensor<128xf16, #s>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-HINT-C1: the width of every head is no box of the columns.
func.func @inner_part(%x: tensor<6x256xf16, #l> {spyre_graph.dim_names = [[], [{name = "H", size = 4}, {name = "D", size = 64}]]}) -> tensor<6x256xf16> {
  %e = tensor.empty() : tensor<6x256xf16>
  // expected-error @+1 {{a hint names dimension 'D', which the operations under it have only inside of larger steps of a flattened dimension: tiles and slices of it are not boxes; name the dimension of a view that splits it, or the outermost of its parts, instead}}
  %y = spyre_graph.exp ins(%x : tensor<6x256xf16, #l>) outs(%e : tensor<6x256xf16>) {spyre_graph.hints = [{dim = "D", scope = 0, tiles = 2}]} -> tensor<6x256xf16>
  return %y : tensor<6x256xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-TILE-HINT-C1: tiles hold whole heads.
func.func @no_heads(%x: tensor<60x64xf16, #l> {spyre_graph.dim_names = [[{name = "H", size = 6}, {name = "D", size = 10}], []]}) -> tensor<60x64xf16> {
  %e = tensor.empty() : tensor<60x64xf16>
  // expected-error @+1 {{loop dimension 0 of extent 60 cannot be cut into 4 tiles of multiples of 10: tiles of 20 are only 3, smaller ones 6}}
  %y = spyre_graph.exp ins(%x : tensor<60x64xf16, #l>) outs(%e : tensor<60x64xf16>) {spyre_graph.hints = [{dim = "H", scope = 0, tiles = 4}]} -> tensor<60x64xf16>
  return %y : tensor<60x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-HINT-C4
func.func @no_slices(%x: tensor<60x64xf16, #l> {spyre_graph.dim_names = [[{name = "H", size = 6}, {name = "D", size = 10}], []]}) -> tensor<60x64xf16> {
  %e = tensor.empty() : tensor<60x64xf16>
  // expected-error @+1 {{a hint asks for 4 slices of dimension 'H', a part of loop dimension 0; they must divide its 6 evenly}}
  %y = spyre_graph.exp ins(%x : tensor<60x64xf16, #l>) outs(%e : tensor<60x64xf16>) {spyre_graph.hints = [{dim = "H", work_div = 4}]} -> tensor<60x64xf16>
  return %y : tensor<60x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-TILE-HINT-C2
func.func @twice(%x: tensor<64x64xf16, #l>) -> tensor<64x64xf16> {
  %e = tensor.empty() : tensor<64x64xf16>
  // expected-error @+1 {{loop dimension 0 is cut by two hints; give one hint with the product of their numbers of tiles}}
  %y = spyre_graph.exp ins(%x : tensor<64x64xf16, #l>) outs(%e : tensor<64x64xf16>) {spyre_graph.tile_hints = [array<i64: 0, 0, 2>, array<i64: 1, 0, 4>]} -> tensor<64x64xf16>
  return %y : tensor<64x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-HINT-C1
func.func @one_element(%x: tensor<1x64xf16, #l> {spyre_graph.dim_names = [[{name = "B", size = 1}], []]}) -> tensor<1x64xf16> {
  %e = tensor.empty() : tensor<1x64xf16>
  // expected-error @+1 {{a hint cuts dimension 'B' into 4 parts, but it has one element}}
  %y = spyre_graph.exp ins(%x : tensor<1x64xf16, #l>) outs(%e : tensor<1x64xf16>) {spyre_graph.hints = [{dim = "B", scope = 0, tiles = 4}]} -> tensor<1x64xf16>
  return %y : tensor<1x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

func.func @nested(%x: tensor<64x256xf16, #l>) -> tensor<64x256xf16> {
  %e = tensor.empty() : tensor<64x256xf16>
  // expected-note @+1 {{the loop begins with this operation}}
  %a = spyre_graph.exp ins(%x : tensor<64x256xf16, #l>) outs(%e : tensor<64x256xf16>) {spyre_graph.tile_hints = [array<i64: 0, 0, 4>]} -> tensor<64x256xf16>
  // SG-TILE-HINT-C4: an inner hint in the middle of an outer one.
  // expected-error @+1 {{is under other tile hints, but lies between operations that a hint runs in one loop}}
  %b = spyre_graph.neg ins(%a : tensor<64x256xf16>) outs(%e : tensor<64x256xf16>) {spyre_graph.tile_hints = [array<i64: 0, 0, 4>, array<i64: 1, 1, 2>]} -> tensor<64x256xf16>
  %c = spyre_graph.sin ins(%b : tensor<64x256xf16>) outs(%e : tensor<64x256xf16>) {spyre_graph.tile_hints = [array<i64: 0, 0, 4>]} -> tensor<64x256xf16>
  return %c : tensor<64x256xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

func.func @whole_between(%x: tensor<64x256xf16, #l>) -> tensor<64x256xf16> {
  %e = tensor.empty() : tensor<64x256xf16>
  // expected-note @+1 {{the loop begins with this operation}}
  %a = spyre_graph.exp ins(%x : tensor<64x256xf16, #l>) outs(%e : tensor<64x256xf16>) {spyre_graph.tile_hints = [array<i64: 0, 0, 4>]} -> tensor<64x256xf16>
  // SG-TILE-HINT-C4
  // expected-error @+1 {{must stay out of all tile loops, but lies between operations that a hint runs in one loop}}
  %b = spyre_graph.neg ins(%a : tensor<64x256xf16>) outs(%e : tensor<64x256xf16>) {spyre_graph.tile_hints = []} -> tensor<64x256xf16>
  %c = spyre_graph.sin ins(%b : tensor<64x256xf16>) outs(%e : tensor<64x256xf16>) {spyre_graph.tile_hints = [array<i64: 0, 0, 4>]} -> tensor<64x256xf16>
  return %c : tensor<64x256xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

func.func @around_a_loop(%x: tensor<64x256xf16, #l>) -> tensor<64x256xf16> {
  %e = tensor.empty() : tensor<64x256xf16>
  %a = spyre_graph.exp ins(%x : tensor<64x256xf16, #l>) outs(%e : tensor<64x256xf16>) {spyre_graph.tile_hints = [array<i64: 0, 0, 4>]} -> tensor<64x256xf16>
  // SG-TILE-HINT-C2: the first loop needs %b and computes what %d needs.
  // expected-error @+1 {{loop dimension 0 cannot be cut into 2 tiles: the loop of another hint needs some of the operations and computes what others need}}
  %b = spyre_graph.neg ins(%x : tensor<64x256xf16, #l>) outs(%e : tensor<64x256xf16>) {spyre_graph.tile_hints = [array<i64: 1, 0, 2>]} -> tensor<64x256xf16>
  %c = spyre_graph.sin ins(%b : tensor<64x256xf16>) outs(%e : tensor<64x256xf16>) {spyre_graph.tile_hints = [array<i64: 0, 0, 4>]} -> tensor<64x256xf16>
  %d = spyre_graph.mul ins(%a, %c : tensor<64x256xf16>, tensor<64x256xf16>) outs(%e : tensor<64x256xf16>) {spyre_graph.tile_hints = [array<i64: 1, 0, 2>]} -> tensor<64x256xf16>
  return %d : tensor<64x256xf16>
}
