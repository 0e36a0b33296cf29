// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --canonicalize --split-input-file | FileCheck %s
// RUN: spyre-opt %s --canonicalize --verify-roundtrip --split-input-file | FileCheck %s

// Constants go into maps and sets; what nobody uses goes away.

// CHECK-DAG: #[[$BOX:.+]] = affine_set<(d0, d1)[s0] : (d0 >= 0, -d0 + 7 >= 0, d1 >= 0, -d1 + s0 - 1 >= 0)>
// CHECK-DAG: #[[$TILE:.+]] = affine_set<(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 7 >= 0)>

#view = affine_set<(r, c)[s, t] : (r >= 0, -r + s - 1 >= 0, c >= 0, -c + t - 1 >= 0)>
#tile = affine_set<(r, c)[s] : (r >= 0, -r + s - 1 >= 0, c >= 0, -c + 7 >= 0)>
#order = affine_map<(r, c) -> (r, c)>

// CHECK-LABEL: func.func @constants(
// CHECK-SAME: %[[X:.+]]: index, %[[N:.+]]: index, %[[AT:.+]]: index
func.func @constants(%x: index, %n: index, %at: index) -> (tensor<?x8xf16>, tensor<?x8xf16>) {
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  // CHECK: %[[V:.+]] = ktdp.construct_memory_view %[[X]], sizes: [8, %[[N]]], strides: [8, 1] {coordinate_set = #[[$BOX]]
  %v = ktdp.construct_memory_view %x, sizes: [%c8, %n], strides: [%c8, 1] {coordinate_set = #view, memory_space = #ktdp.memory_space<global>} : memref<?x?xf16>
  // CHECK: %[[T:.+]] = ktdp.construct_access_tile %[[V]][%[[AT]] + 3, 4] {access_tile_order = {{.*}}, access_tile_set = #[[$TILE]]} : memref<?x?xf16> -> !ktdp.access_tile<?x8xindex>
  %t = ktdp.construct_access_tile %v[%at + %c3, %c4] symbols(%c4) {access_tile_set = #tile, access_tile_order = #order} : memref<?x?xf16> -> !ktdp.access_tile<?x8xindex>
  %a = ktdp.load %t : !ktdp.access_tile<?x8xindex> -> tensor<?x8xf16>
  // CHECK: ktdp.construct_indirect_access_tile intermediate_variables(%[[I:.+]], %[[J:.+]]) %[[V]][(%[[AT]] + %[[I]] + 3), (%[[J]] * 8)] {variables_space_order = {{.*}}, variables_space_set = #[[$TILE]]}
  %u = ktdp.construct_indirect_access_tile intermediate_variables(%i, %j) %v[(%i + %at + %c3), (%j * 8)] symbols(%c4) {variables_space_set = #tile, variables_space_order = #order} : memref<?x?xf16> -> !ktdp.access_tile<?x8xindex>
  %b = ktdp.load %u : !ktdp.access_tile<?x8xindex> -> tensor<?x8xf16>
  return %a, %b : tensor<?x8xf16>, tensor<?x8xf16>
}

// -----

#set = affine_set<(i) : (i >= 0, -i + 7 >= 0)>
#order = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @dead(
// CHECK-NEXT: return
func.func @dead(%x: index) {
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<8xi32>
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%i) %v[ind(%v[%i])] {variables_space_set = #set, variables_space_order = #order} : memref<8xi32>, memref<8xi32> -> !ktdp.access_tile<8xindex>
  %a = ktdp.load %t : !ktdp.access_tile<8xindex> -> tensor<8xi32>
  %f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i - g == 0)> : tensor<8xi32> -> !ktdp.tile_future<tensor<8xi32>, groups = affine_set<(g) : (g == 0)>> {
    ^bb0(%group: index):
      ktdp.yield_partial %a : tensor<8xi32>
  }
  return
}

// -----

// A grid's unit dimensions, and those it does not have.
// CHECK-LABEL: func.func @grid(
func.func @grid() -> (index, index, index) attributes {grid = [4, 1]} {
  // CHECK: %[[ZERO:.+]] = arith.constant 0 : index
  // CHECK: %[[ID:.+]]:3 = ktdp.get_compute_tile_id
  %x, %y, %z = ktdp.get_compute_tile_id : index, index, index
  // CHECK: return %[[ID]]#0, %[[ZERO]], %[[ZERO]]
  return %x, %y, %z : index, index, index
}

// -----

// Without a grid the position is whatever the caller's is.
// CHECK-LABEL: func.func @no_grid(
func.func @no_grid() -> index {
  // CHECK-NEXT: %[[ID:.+]] = ktdp.get_compute_tile_id
  // CHECK-NEXT: return %[[ID]]
  %x = ktdp.get_compute_tile_id : index
  return %x : index
}

// -----

// CHECK-LABEL: func.func @properties(
// CHECK-SAME: %[[ARG:.+]]: !ktdp.runtime_arg
func.func @properties(%arg: !ktdp.runtime_arg<i32, granularity=64, upperbound=4096>) -> (i32, index, index) {
  // CHECK-DAG: %[[G:.+]] = arith.constant 64 : index
  // CHECK-DAG: %[[U:.+]] = arith.constant 4096 : index
  // CHECK: %[[V:.+]] = ktdp.runtime_arg_extract value from %[[ARG]]
  %v = ktdp.runtime_arg_extract value from %arg : !ktdp.runtime_arg<i32, granularity=64, upperbound=4096> -> i32
  %g = ktdp.runtime_arg_extract granularity from %arg : !ktdp.runtime_arg<i32, granularity=64, upperbound=4096> -> index
  %u = ktdp.runtime_arg_extract upperbound from %arg : !ktdp.runtime_arg<i32, granularity=64, upperbound=4096> -> index
  // CHECK: return %[[V]], %[[G]], %[[U]]
  return %v, %g, %u : i32, index, index
}
