// SPDX-License-Identifier: Apache-2.0
// Operations whose extents vary run in tiles of one extent: the last one ends where the
// size does. From there on they are planned as others are, and the plan is proved.
// RUN: spyre-opt %s --split-input-file --spyre-coarse-tiling | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-pipeline="verify-each" | FileCheck %s --check-prefix=KTIR

// Decisions of such a plan make the same one again: 5 tiles of 1000.
// RUN: mkdir -p %t
// RUN: spyre-opt %S/Inputs/tiled-rows.mlir --spyre-pipeline="decisions-out=%t/decisions.json" -o %t/first.mlir
// RUN: spyre-opt %S/Inputs/tiled-rows.mlir --spyre-pipeline="decisions-in=%t/decisions.json" -o %t/second.mlir
// RUN: grep "step %%c1000 {" %t/second.mlir
// RUN: diff %t/first.mlir %t/second.mlir

// The smallest size has four tiles of 2048 rows.
// CHECK: #[[S:.*]] = affine_map<()[s0] -> (s0)>
// CHECK-LABEL: func.func @rows
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %c16384 step %c2048
// CHECK: %[[START:.*]] = spyre_graph.tile_start %[[I]]
// CHECK: tensor.extract_slice %{{.*}}[%[[START]], 0] [2048, 4096] [1, 1]
// CHECK: spyre_graph.exp
// CHECK-NOT: extent_map
// CHECK: tensor.insert_slice %{{.*}}[%[[START]], 0] [2048, 4096] [1, 1]
// CHECK: {spyre_graph.bound_map = #[[S]]}

// KTIR-LABEL: func.func @rows
// KTIR-DAG: %[[SIZE:.*]] = ktdp.runtime_arg_extract value
// KTIR-DAG: %[[STEP:.*]] = arith.constant 2048 : index
// KTIR: %[[LAST:.*]] = arith.subi %[[SIZE]], %[[STEP]] : index
// KTIR: scf.for %[[I:.*]] = %{{.*}} to %[[SIZE]] step %[[STEP]]
// KTIR: %[[START:.*]] = arith.minsi %[[I]], %[[LAST]]
// KTIR: affine.apply #{{.*}}(%[[START]])
// In a kernel, the tile has the strides of the whole, which vary.
// KTIR-LABEL: func.func private @k0_exp
// KTIR: %[[PART:.*]] = arith.muli
// KTIR: ktdp.construct_memory_view %{{.*}}, sizes: [64, 2048, 64], strides: [%[[PART]], 64, 1]
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#sizes = affine_map<()[s] -> (s, 4096)>
func.func @rows(%x: tensor<16384x4096xf16, #l> {spyre_graph.size_map = #sizes})
    -> (tensor<16384x4096xf16, #l> {spyre_graph.size_map = #sizes})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 8193 to 16384>]} {
  %0 = tensor.empty() : tensor<16384x4096xf16, #l>
  %e = spyre_graph.exp ins(%x : tensor<16384x4096xf16, #l>) outs(%0 : tensor<16384x4096xf16, #l>)
      {maps = [#id, #id], extents = array<i64: 16384, 4096>, extent_map = #sizes} -> tensor<16384x4096xf16, #l>
  %1 = tensor.empty() : tensor<16384x4096xf16, #l>
  %a = spyre_graph.add ins(%e, %e : tensor<16384x4096xf16, #l>, tensor<16384x4096xf16, #l>) outs(%1 : tensor<16384x4096xf16, #l>)
      {maps = [#id, #id, #id], extents = array<i64: 16384, 4096>, extent_map = #sizes} -> tensor<16384x4096xf16, #l>
  return %a : tensor<16384x4096xf16, #l>
}

// -----

// A dimension that does not vary is cut as ever, and tiles are as large as the others.
// CHECK-LABEL: func.func @heads
// CHECK-NOT: spyre_graph.tile_start
// CHECK: scf.for
// CHECK: spyre_graph.exp {{.*}}extent_map = #{{.*}}, extents = array<i64: {{[0-9]+}}, 16384, 128>
// CHECK-NOT: bound_map
// Tiles of a dimension outside of what varies begin where sizes say.
// KTIR-LABEL: func.func @heads
// KTIR: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// KTIR: %[[BLOCK:.*]] = arith.muli
// KTIR: %[[STRIDE:.*]] = arith.muli %[[BLOCK]]
// KTIR: %[[TILE:.*]] = affine.apply #{{.*}}(%[[I]])
// KTIR: %[[DISTANCE:.*]] = arith.muli %[[TILE]], %[[STRIDE]]
// KTIR: arith.addi %{{.*}}, %[[DISTANCE]]
#l3 = #spyre_graph.layout<order = [1, 0, 2], SEN169_FP16>
#id3 = affine_map<(i, j, k) -> (i, j, k)>
#sizes3 = affine_map<()[s] -> (32, s, 128)>
func.func @heads(%x: tensor<32x16384x128xf16, #l3> {spyre_graph.size_map = #sizes3})
    -> (tensor<32x16384x128xf16, #l3> {spyre_graph.size_map = #sizes3})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 16384>]} {
  %0 = tensor.empty() : tensor<32x16384x128xf16, #l3>
  %e = spyre_graph.exp ins(%x : tensor<32x16384x128xf16, #l3>) outs(%0 : tensor<32x16384x128xf16, #l3>)
      {maps = [#id3, #id3], extents = array<i64: 32, 16384, 128>, extent_map = #sizes3} -> tensor<32x16384x128xf16, #l3>
  %1 = tensor.empty() : tensor<32x16384x128xf16, #l3>
  %a = spyre_graph.add ins(%e, %e : tensor<32x16384x128xf16, #l3>, tensor<32x16384x128xf16, #l3>) outs(%1 : tensor<32x16384x128xf16, #l3>)
      {maps = [#id3, #id3, #id3], extents = array<i64: 32, 16384, 128>, extent_map = #sizes3} -> tensor<32x16384x128xf16, #l3>
  return %a : tensor<32x16384x128xf16, #l3>
}

// -----

// Tiles of rows would compute some elements twice where they are changed, and tiles of
// which each size has eight do not exist if there is one of two rows: columns are cut.
// CHECK-LABEL: func.func @changed
// CHECK-NOT: spyre_graph.tile_start
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}] [16384, 1024] [1, 1]
// KTIR-LABEL: func.func @changed
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#sizes = affine_map<()[s] -> (s, 4096)>
func.func @changed(%x: tensor<16384x4096xf16, #l> {spyre_graph.size_map = #sizes})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 8193 to 16384>]} {
  %0 = tensor.empty() : tensor<16384x4096xf16, #l>
  %e = spyre_graph.exp ins(%x : tensor<16384x4096xf16, #l>) outs(%0 : tensor<16384x4096xf16, #l>)
      {maps = [#id, #id], extents = array<i64: 16384, 4096>, extent_map = #sizes} -> tensor<16384x4096xf16, #l>
  %a = spyre_graph.add ins(%e, %e : tensor<16384x4096xf16, #l>, tensor<16384x4096xf16, #l>) outs(%x : tensor<16384x4096xf16, #l>)
      {maps = [#id, #id, #id], extents = array<i64: 16384, 4096>, extent_map = #sizes} -> tensor<16384x4096xf16, #l>
  %u = bufferization.materialize_in_destination %a in %x : (tensor<16384x4096xf16, #l>, tensor<16384x4096xf16, #l>) -> tensor<16384x4096xf16, #l>
  return
}

// -----

// CHECK-LABEL: func.func @any_size
// CHECK-NOT: spyre_graph.tile_start
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}] [16384, 1024] [1, 1]
// KTIR-LABEL: func.func @any_size
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#sizes = affine_map<()[s] -> (s, 4096)>
func.func @any_size(%x: tensor<16384x4096xf16, #l> {spyre_graph.size_map = #sizes})
    -> (tensor<16384x4096xf16, #l> {spyre_graph.size_map = #sizes})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 16384>]} {
  %0 = tensor.empty() : tensor<16384x4096xf16, #l>
  %e = spyre_graph.exp ins(%x : tensor<16384x4096xf16, #l>) outs(%0 : tensor<16384x4096xf16, #l>)
      {maps = [#id, #id], extents = array<i64: 16384, 4096>, extent_map = #sizes} -> tensor<16384x4096xf16, #l>
  %1 = tensor.empty() : tensor<16384x4096xf16, #l>
  %a = spyre_graph.add ins(%e, %e : tensor<16384x4096xf16, #l>, tensor<16384x4096xf16, #l>) outs(%1 : tensor<16384x4096xf16, #l>)
      {maps = [#id, #id, #id], extents = array<i64: 16384, 4096>, extent_map = #sizes} -> tensor<16384x4096xf16, #l>
  return %a : tensor<16384x4096xf16, #l>
}
