// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-decompose --spyre-propagate-layouts --spyre-resolve-hints | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-decompose --spyre-propagate-layouts --spyre-resolve-hints --spyre-coarse-tiling | FileCheck %s --check-prefix=TILED

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Names pass from operands to loops to results; a dimension that an operation
// lacks is -1. Small as the tensors are, they are tiled, since a user asks.
// CHECK-LABEL: func.func @mlp
// CHECK-NOT: dim_names
// CHECK: spyre_graph.matmul {{.*}}spyre_graph.tile_hints = [array<i64: 0, 0, 4>, array<i64: 0, -1, 2>]
// CHECK: spyre_graph.silu {{.*}}spyre_graph.tile_hints = [array<i64: 0, 0, 4>, array<i64: 0, -1, 2>]
// CHECK: spyre_graph.matmul {{.*}}spyre_graph.tile_hints = [array<i64: 0, 0, 4>, array<i64: 0, 1, 2>]
// CHECK: spyre_graph.neg {{.*}}spyre_graph.work_division_hint = array<i64: 2, 1>
// TILED-LABEL: func.func @mlp
// TILED: scf.for {{.*}} = %c0 to %c256 step %c64
// TILED: scf.for {{.*}} = %c0 to %c128{{.*}} step %c64
// TILED-NOT: tile_hints
// TILED: spyre_graph.matmul {{.*}} -> tensor<64x128xf16
// TILED: spyre_graph.silu {{.*}} -> tensor<64x128xf16
// TILED: spyre_graph.matmul {{.*}} -> tensor<64x64xf16
func.func @mlp(%x: tensor<256x64xf16, #l> {spyre_graph.dim_names = [[{name = "M", size = 256}], [{name = "K", size = 64}]]},
               %u: tensor<64x128xf16, #l> {spyre_graph.dim_names = [[], [{name = "H", size = 128}]]},
               %d: tensor<128x128xf16, #l> {spyre_graph.dim_names = [[], [{name = "N", size = 128}]]}) -> tensor<256x128xf16> {
  %e = tensor.empty() : tensor<256x128xf16>
  %h = spyre_graph.matmul ins(%x, %u : tensor<256x64xf16, #l>, tensor<64x128xf16, #l>) outs(%e : tensor<256x128xf16>) {spyre_graph.hints = [{dim = "M", scope = 0, tiles = 4}, {dim = "N", scope = 0, tiles = 2}]} -> tensor<256x128xf16>
  %s = spyre_graph.silu ins(%h : tensor<256x128xf16>) outs(%e : tensor<256x128xf16>) {spyre_graph.hints = [{dim = "M", scope = 0, tiles = 4}, {dim = "N", scope = 0, tiles = 2}]} -> tensor<256x128xf16>
  %y = spyre_graph.matmul ins(%s, %d : tensor<256x128xf16>, tensor<128x128xf16, #l>) outs(%e : tensor<256x128xf16>) {spyre_graph.hints = [{dim = "M", scope = 0, tiles = 4}, {dim = "N", scope = 0, tiles = 2}]} -> tensor<256x128xf16>
  %z = spyre_graph.neg ins(%y : tensor<256x128xf16>) outs(%e : tensor<256x128xf16>) {spyre_graph.hints = [{dim = "M", work_div = 2}]} -> tensor<256x128xf16>
  return %z : tensor<256x128xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// H is a component of the flattened columns, which the view takes apart.
// CHECK-LABEL: func.func @component
// CHECK: spyre_graph.exp {{.*}}extents = array<i64: 6, 4, 64>{{.*}}spyre_graph.work_division_hint = array<i64: 1, 2, 1>
func.func @component(%x: tensor<6x256xf16, #l> {spyre_graph.dim_names = [[], [{name = "H", size = 4}, {name = "D", size = 64}]]}) -> tensor<6x4x64xf16> {
  %v = spyre_graph.view %x, affine_map<(a, h, d) -> (a, h * 64 + d)> : tensor<6x256xf16, #l> -> tensor<6x4x64xf16>
  %e = tensor.empty() : tensor<6x4x64xf16>
  %y = spyre_graph.exp ins(%v : tensor<6x4x64xf16>) outs(%e : tensor<6x4x64xf16>) {spyre_graph.hints = [{dim = "H", work_div = 2}]} -> tensor<6x4x64xf16>
  return %y : tensor<6x4x64xf16>
}

// -----

// No input has names: the hint itself gives them.
// CHECK-LABEL: func.func @named_dims
// CHECK: spyre_graph.fill {{.*}}spyre_graph.tile_hints = [array<i64: 0, 0, 2>]
func.func @named_dims() -> tensor<8x64xf16> {
  %e = tensor.empty() : tensor<8x64xf16>
  %y = spyre_graph.fill outs(%e : tensor<8x64xf16>) {immediates = [1.0], spyre_graph.hints = [{named_dims = ["M", "N"]}, {dim = "M", scope = 0, tiles = 2}]} -> tensor<8x64xf16>
  return %y : tensor<8x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// The parts of a composite operation have its hints.
// CHECK-LABEL: func.func @softmax
// CHECK-COUNT-4: tile_hints = [array<i64: 0, 0, 2>]
// TILED-LABEL: func.func @softmax
// TILED: scf.for
// TILED: spyre_graph.max
// TILED: scf.yield
func.func @softmax(%x: tensor<8x64xf16, #l> {spyre_graph.dim_names = [[{name = "M", size = 8}], []]}) -> tensor<8x64xf16> {
  %v = spyre_graph.view %x, affine_map<(i, j) -> (i, j)> : tensor<8x64xf16, #l> -> tensor<8x64xf16>
  %y = spyre_graph.softmax %v {dim = 1 : i64, spyre_graph.hints = [{dim = "M", scope = 0, tiles = 2}]} : tensor<8x64xf16> -> tensor<8x64xf16>
  return %y : tensor<8x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// What reduces the dimension accumulates.
// TILED-LABEL: func.func @reduces
// TILED: scf.for
// TILED: spyre_graph.exp {{.*}} -> tensor<4x64xf16
// TILED: spyre_graph.sum {{.*}}tensor<4x64xf16
// TILED: scf.yield
func.func @reduces(%x: tensor<8x64xf16, #l> {spyre_graph.dim_names = [[{name = "M", size = 8}], []]}) -> tensor<64xf16> {
  %e = tensor.empty() : tensor<8x64xf16>
  %o = tensor.empty() : tensor<64xf16>
  %y = spyre_graph.exp ins(%x : tensor<8x64xf16, #l>) outs(%e : tensor<8x64xf16>) {spyre_graph.hints = [{dim = "M", scope = 0, tiles = 2}]} -> tensor<8x64xf16>
  %s = spyre_graph.sum ins(%y : tensor<8x64xf16>) outs(%o : tensor<64xf16>) {dims = array<i64: 0>, spyre_graph.hints = [{dim = "M", scope = 0, tiles = 2}]} -> tensor<64xf16>
  return %s : tensor<64xf16>
}

// -----

// A tensor of which rows are updated keeps its names, and a dimension of no
// elements is not cut.
// CHECK-LABEL: func.func @updated
// CHECK: spyre_graph.exp {{.*}}tile_hints = [array<i64: 0, 0, 4>, array<i64: 1, -1, 2>]
// TILED-LABEL: func.func @updated
// TILED: scf.for
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @updated(%x: tensor<256x128xf16, #l> {spyre_graph.dim_names = [[{name = "M", size = 256}], []]}, %z: tensor<0x128xf16, #l> {spyre_graph.dim_names = [[{name = "Z", size = 0}], []]}) -> tensor<256x128xf16> {
  %e = tensor.empty() : tensor<256x128xf16>
  %0 = spyre_graph.mul ins(%x : tensor<256x128xf16, #l>) outs(%x : tensor<256x128xf16, #l>) {maps = [affine_map<(i, j) -> (i + 3, j)>, affine_map<(i, j) -> (i + 3, j)>], extents = array<i64: 6, 128>, immediates = [unit, 2.0 : f32]} -> tensor<256x128xf16, #l>
  %1 = spyre_graph.exp ins(%0 : tensor<256x128xf16, #l>) outs(%e : tensor<256x128xf16>) {spyre_graph.hints = [{dim = "M", scope = 0, tiles = 4}, {dim = "Z", scope = 1, tiles = 2}]} -> tensor<256x128xf16>
  return %1 : tensor<256x128xf16>
}
