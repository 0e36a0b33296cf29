// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt --verify-roundtrip %s | FileCheck %s
// RUN: spyre-opt --mlir-print-op-generic %s | spyre-opt | FileCheck %s
// RUN: spyre-opt --emit-bytecode %s | spyre-opt | FileCheck %s
// RUN: spyre-opt --mlir-print-local-scope %s | spyre-opt | FileCheck %s

// Every operation but the inter-tile ones, in all its forms.

// CHECK-DAG: #[[$RAGGED:.+]] = affine_set<(d0, d1)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0, d1 >= 0, -d1 + 99 >= 0)>

#all    = affine_set<(a, b) : (a >= 0, -a + 99 >= 0, b >= 0, -b + 99 >= 0)>
#ragged = affine_set<(r, c)[n] : (r >= 0, -r + n - 1 >= 0, c >= 0, -c + 99 >= 0)>
#id     = affine_map<(a, b) -> (a, b)>
#swap   = affine_map<(a, b) -> (b, a)>
#point  = affine_set<() : (0 >= 0)>
#id0    = affine_map<() -> ()>

// CHECK-LABEL: func.func @grid
func.func @grid() {
  // CHECK: %[[ID:.+]]:3 = ktdp.get_compute_tile_id : index, index, index
  %x, %y, %z = ktdp.get_compute_tile_id : index, index, index
  return
}

// CHECK-LABEL: func.func @runtime_arg
// CHECK-SAME: (%[[ARG:.+]]: !ktdp.runtime_arg<i32, granularity=64, upperbound=4096>)
func.func @runtime_arg(%arg: !ktdp.runtime_arg<i32, granularity=64, upperbound=4096>) {
  // CHECK: ktdp.runtime_arg_extract value from %[[ARG]] : !ktdp.runtime_arg<i32, granularity=64, upperbound=4096> -> i32
  %v = ktdp.runtime_arg_extract value from %arg : !ktdp.runtime_arg<i32, granularity=64, upperbound=4096> -> i32
  // The front end's elided form.
  // CHECK: ktdp.runtime_arg_extract granularity from %[[ARG]] : !ktdp.runtime_arg<i32, granularity=64, upperbound=4096> -> index
  %g = ktdp.runtime_arg_extract granularity from %arg : <i32, granularity=64, upperbound=4096> -> index
  // CHECK: ktdp.runtime_arg_extract upperbound from %[[ARG]]
  %u = ktdp.runtime_arg_extract upperbound from %arg : <i32, granularity=64, upperbound=4096> -> index
  return
}

// CHECK-LABEL: func.func @views
// CHECK-SAME: (%[[P:.+]]: index, %[[N:.+]]: index, %[[S:.+]]: index)
func.func @views(%p: index, %n: index, %s: index) {
  // CHECK: %[[A:.+]] = ktdp.construct_memory_view %[[P]], sizes: [%[[N]], 100], strides: [%[[S]], 1] {coordinate_set = #[[$RAGGED]], memory_space = #ktdp.memory_space<ct_local>} : memref<?x100xf16>
  %a = ktdp.construct_memory_view %p, sizes: [%n, 100], strides: [%s, 1] {
    coordinate_set = #ragged, memory_space = #ktdp.memory_space<ct_local>} : memref<?x100xf16>
  // CHECK: ktdp.construct_memory_view %[[P]], sizes: [], strides: [] {{.*}}memory_space = #ktdp.spyre_memory_space<L0>} : memref<f32>
  %b = ktdp.construct_memory_view %p, sizes: [], strides: [] {
    coordinate_set = #point, memory_space = #ktdp.spyre_memory_space<L0>} : memref<f32>
  // What the front end does not check stays unchecked: the set's rank, sizes
  // against shape, the memref's own memory space.
  // CHECK: %[[C:.+]] = ktdp.construct_memory_view %[[P]], sizes: [7, 100], strides: [100, 1]
  // CHECK-SAME: memref<9x100xf16, 5>
  %c = ktdp.construct_memory_view %p, sizes: [7, 100], strides: [100, 1] {
    coordinate_set = #point, memory_space = #ktdp.spyre_memory_space<HBM>} : memref<9x100xf16, 5>
  // CHECK: ktdp.construct_distributed_memory_view(%[[A]], %[[C]] : memref<?x100xf16>, memref<9x100xf16, 5>) : memref<?x100xf16>
  %d = ktdp.construct_distributed_memory_view (%a, %c : memref<?x100xf16>, memref<9x100xf16, 5>) : memref<?x100xf16>
  // CHECK: ktdp.construct_distributed_memory_view : memref<4xf16>
  %e = ktdp.construct_distributed_memory_view : memref<4xf16>
  return
}

// CHECK-LABEL: func.func @access_tiles
// CHECK-SAME: (%[[V:.+]]: memref<100x100xf16>, %[[T:.+]]: tensor<100x100xf16>, %[[I:.+]]: index, %[[N:.+]]: index)
func.func @access_tiles(%v: memref<100x100xf16>, %t: tensor<100x100xf16>, %i: index, %n: index) {
  %x, %y = ktdp.get_compute_tile_id : index, index
  // Two results of one op in one expression, which upstream's subscripts lack.
  // CHECK: %[[ID:.+]]:2 = ktdp.get_compute_tile_id
  // CHECK: ktdp.construct_access_tile %[[V]][%[[ID]]#0 * 4 + %[[ID]]#1, %[[I]] floordiv 2] {
  %a = ktdp.construct_access_tile %v[%x * 4 + %y, %i floordiv 2] {
    access_tile_set = #all, access_tile_order = #swap} : memref<100x100xf16> -> !ktdp.access_tile<100x100xindex>
  // CHECK: ktdp.construct_access_tile %[[V]][(%[[I]] + 3) mod 5 - %[[N]], -%[[I]] + 7] symbols(%[[N]]) {{{.*}}access_tile_set = #[[$RAGGED]]} : memref<100x100xf16> -> !ktdp.access_tile<?x100xindex>
  %b = ktdp.construct_access_tile %v[(%i + 3) mod 5 - %n, 7 - %i] symbols(%n) {
    access_tile_set = #ragged, access_tile_order = #id} : memref<100x100xf16> -> !ktdp.access_tile<?x100xindex>
  // Constants, a symbol, a tensor base, the elided tile type.
  // CHECK: ktdp.construct_access_tile %[[T]][0, %[[I]] * symbol(%[[N]])] {{.*}} : tensor<100x100xf16> -> !ktdp.access_tile<100x100xindex>
  %c = ktdp.construct_access_tile %t[0, %i * symbol(%n)] {
    access_tile_set = #all, access_tile_order = #id} : tensor<100x100xf16> -> <100x100xindex>
  // Rank 0, and an attribute of somebody else.
  // CHECK: ktdp.construct_access_tile %[[V]][] {{{.*}}note = "kept"} : memref<100x100xf16> -> !ktdp.access_tile<index>
  %d = ktdp.construct_access_tile %v[] {
    access_tile_set = #point, access_tile_order = #id0, note = "kept"} : memref<100x100xf16> -> !ktdp.access_tile<index>
  return
}

// CHECK-LABEL: func.func @indirect_access_tiles
// CHECK-SAME: (%[[V:.+]]: memref<2x100x64xf16>, %[[X:.+]]: memref<8x8xi32>, %[[R0:.+]]: index, %[[C0:.+]]: index, %[[N:.+]]: index)
func.func @indirect_access_tiles(%v: memref<2x100x64xf16>, %idx: memref<8x8xi32>, %r0: index, %c0: index, %n: index) {
  // The form that the lowering prints: logical loops, device coordinates.
  // CHECK: ktdp.construct_indirect_access_tile intermediate_variables(%[[I:.+]], %[[J:.+]]) %[[V]][((%[[C0]] + %[[J]]) floordiv 64), (%[[R0]] + %[[I]]), ((%[[C0]] + %[[J]]) mod 64)] symbols(%[[N]]) {{{.*}}variables_space_set = #[[$RAGGED]]} : memref<2x100x64xf16> -> !ktdp.access_tile<?x100xindex>
  %a = ktdp.construct_indirect_access_tile intermediate_variables(%i, %j)
      %v[((%c0 + %j) floordiv 64), (%r0 + %i), ((%c0 + %j) mod 64)] symbols(%n) {
    variables_space_set = #ragged, variables_space_order = #id} : memref<2x100x64xf16> -> !ktdp.access_tile<?x100xindex>
  // Two indirect subscripts, constants, expressions inside ind().
  // CHECK: ktdp.construct_indirect_access_tile intermediate_variables(%[[I:.+]], %[[J:.+]]) %[[V]][ind(%[[X]][%[[R0]] + %[[I]], 0]), (%[[J]] * 2 + 1), ind(%[[X]][%[[J]], %[[I]] mod 8])] {{.*}} : memref<2x100x64xf16>, memref<8x8xi32>, memref<8x8xi32> -> !ktdp.access_tile<100x100xindex>
  %b = ktdp.construct_indirect_access_tile intermediate_variables(%i, %j)
      %v[ind(%idx[%r0 + %i, 0]), (2 * %j + 1), ind(%idx[%j, %i mod 8])] {
    variables_space_set = #all, variables_space_order = #id} : memref<2x100x64xf16>, memref<8x8xi32>, memref<8x8xi32> -> !ktdp.access_tile<100x100xindex>
  // No variable.
  // CHECK: ktdp.construct_indirect_access_tile intermediate_variables() %[[V]][(0), (%[[R0]]), (63)] {{.*}} -> !ktdp.access_tile<index>
  %c = ktdp.construct_indirect_access_tile intermediate_variables() %v[(0), (%r0), 63] {
    variables_space_set = #point, variables_space_order = #id0} : memref<2x100x64xf16> -> <index>
  return
}

// CHECK-LABEL: func.func @data_tiles
// CHECK-SAME: (%[[T:.+]]: !ktdp.access_tile<?x64xindex>)
func.func @data_tiles(%t: !ktdp.access_tile<?x64xindex>) {
  // CHECK: %[[D:.+]] = ktdp.load %[[T]] : !ktdp.access_tile<?x64xindex> -> tensor<?x64xf16>
  %a = ktdp.load %t : !ktdp.access_tile<?x64xindex> -> tensor<?x64xf16>
  // The front end's elided form.
  // CHECK: ktdp.load %[[T]] : !ktdp.access_tile<?x64xindex> -> tensor<?x64xi32>
  %b = ktdp.load %t : <?x64xindex> -> tensor<?x64xi32>
  // CHECK: ktdp.store %[[D]], %[[T]] : tensor<?x64xf16>, !ktdp.access_tile<?x64xindex>
  ktdp.store %a, %t : tensor<?x64xf16>, <?x64xindex>
  return
}
