// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt --verify-roundtrip %s | FileCheck %s
// RUN: spyre-opt --mlir-print-op-generic %s | spyre-opt | FileCheck %s
// RUN: spyre-opt --emit-bytecode %s | spyre-opt | FileCheck %s
// RUN: spyre-opt --mlir-print-local-scope %s | spyre-opt | FileCheck %s

// The three published kernels (spec/ktir.md, "Three kernels that show the
// syntax"), unchanged.

// CHECK-DAG: #[[$ROWS:.+]] = affine_set<(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 255 >= 0)>
// CHECK-DAG: #[[$ORDER:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$PAIR:.+]] = affine_set<(d0)[s0] : (d0 - s0 * 2 >= 0, -d0 + s0 * 2 + 1 >= 0)>
// CHECK-DAG: #[[$GROUPS:.+]] = affine_set<(d0) : (d0 >= 0, -d0 + 1 >= 0)>

// CHECK-LABEL: func.func @square
// CHECK-SAME: attributes {grid = [16]}
// CHECK: %[[CORE:.+]] = ktdp.get_compute_tile_id : index
// CHECK: %[[FIRST:.+]] = arith.muli %[[CORE]]
// CHECK: %[[X:.+]] = ktdp.construct_memory_view %{{.*}}, sizes: [64, 256], strides: [256, 1]
// CHECK-SAME: memory_space = #ktdp.memory_space<global>} : memref<64x256xf16>
// CHECK: %[[XT:.+]] = ktdp.construct_access_tile %[[X]][%[[FIRST]], %{{.*}}] {access_tile_order = #[[$ORDER]], access_tile_set = #[[$ROWS]]} : memref<64x256xf16> -> !ktdp.access_tile<4x256xindex>
// CHECK: ktdp.load %[[XT]] : !ktdp.access_tile<4x256xindex> -> tensor<4x256xf16>
// CHECK: ktdp.store %{{.*}}, %{{.*}} : tensor<4x256xf16>, !ktdp.access_tile<4x256xindex>
// y[r, c] = x[r, c] * x[r, c] over a 64 x 256 f16 matrix, four rows on each of 16 cores.
#matrix_0 = affine_set<(r, c) : (r >= 0, -r + 63 >= 0, c >= 0, -c + 255 >= 0)>
#rows_0   = affine_set<(r, c) : (r >= 0, -r + 3 >= 0, c >= 0, -c + 255 >= 0)>
#order_0  = affine_map<(r, c) -> (r, c)>
func.func @square(%x: index, %y: index) attributes {grid = [16]} {
  %zero = arith.constant 0 : index
  %rows_per_core = arith.constant 4 : index
  %core = ktdp.get_compute_tile_id : index
  %first = arith.muli %core, %rows_per_core : index
  %xv = ktdp.construct_memory_view %x, sizes: [64, 256], strides: [256, 1] {
    coordinate_set = #matrix_0, memory_space = #ktdp.memory_space<global>} : memref<64x256xf16>
  %yv = ktdp.construct_memory_view %y, sizes: [64, 256], strides: [256, 1] {
    coordinate_set = #matrix_0, memory_space = #ktdp.memory_space<global>} : memref<64x256xf16>
  %xt = ktdp.construct_access_tile %xv[%first, %zero] {
    access_tile_set = #rows_0, access_tile_order = #order_0} : memref<64x256xf16> -> !ktdp.access_tile<4x256xindex>
  %yt = ktdp.construct_access_tile %yv[%first, %zero] {
    access_tile_set = #rows_0, access_tile_order = #order_0} : memref<64x256xf16> -> !ktdp.access_tile<4x256xindex>
  %a = ktdp.load %xt : !ktdp.access_tile<4x256xindex> -> tensor<4x256xf16>
  %s = arith.mulf %a, %a : tensor<4x256xf16>
  ktdp.store %s, %yt : tensor<4x256xf16>, !ktdp.access_tile<4x256xindex>
  return
}

// CHECK-LABEL: func.func @gather_rows
// CHECK: ktdp.construct_indirect_access_tile intermediate_variables(%[[I:.+]], %[[J:.+]]) %{{.*}}[ind(%{{.*}}[%[[I]]]), (%[[J]])] {
// CHECK-SAME: : memref<64x128xf16>, memref<8xi32> -> !ktdp.access_tile<8x128xindex>
// y[i, c] = x[idx[i], c]: gather 8 of 64 rows.
#table_1 = affine_set<(r, c) : (r >= 0, -r + 63 >= 0, c >= 0, -c + 127 >= 0)>
#index_1 = affine_set<(i) : (i >= 0, -i + 7 >= 0)>
#block_1 = affine_set<(i, c) : (i >= 0, -i + 7 >= 0, c >= 0, -c + 127 >= 0)>
#order_1 = affine_map<(i, c) -> (i, c)>
func.func @gather_rows(%x: index, %idx: index, %y: index) {
  %zero = arith.constant 0 : index
  %xv = ktdp.construct_memory_view %x, sizes: [64, 128], strides: [128, 1] {
    coordinate_set = #table_1, memory_space = #ktdp.memory_space<global>} : memref<64x128xf16>
  %iv = ktdp.construct_memory_view %idx, sizes: [8], strides: [1] {
    coordinate_set = #index_1, memory_space = #ktdp.memory_space<global>} : memref<8xi32>
  %yv = ktdp.construct_memory_view %y, sizes: [8, 128], strides: [128, 1] {
    coordinate_set = #block_1, memory_space = #ktdp.memory_space<global>} : memref<8x128xf16>
  %xt = ktdp.construct_indirect_access_tile intermediate_variables(%i, %c) %xv[ind(%iv[%i]), (%c)] {
    variables_space_set = #block_1, variables_space_order = #order_1} : memref<64x128xf16>, memref<8xi32> -> !ktdp.access_tile<8x128xindex>
  %yt = ktdp.construct_access_tile %yv[%zero, %zero] {
    access_tile_set = #block_1, access_tile_order = #order_1} : memref<8x128xf16> -> !ktdp.access_tile<8x128xindex>
  %a = ktdp.load %xt : !ktdp.access_tile<8x128xindex> -> tensor<8x128xf16>
  ktdp.store %a, %yt : tensor<8x128xf16>, !ktdp.access_tile<8x128xindex>
  return
}

// CHECK-LABEL: func.func @pair_sum
// CHECK: %[[FUTURE:.+]] = ktdp.inter_tile_produce producer_tiles_per_group = #[[$PAIR]] -> <(tensor<1x128xf16>), groups = #[[$GROUPS]]> {
// CHECK-NEXT: ^bb0(%{{.*}}: index):
// CHECK-NEXT: ktdp.yield_partial %{{.*}} : tensor<1x128xf16>
// CHECK: ktdp.inter_tile_reduce(%[[FUTURE]]) consumer_tiles_per_group = #[[$PAIR]], identity(%{{.*}} : tensor<1x128xf16>) : <(tensor<1x128xf16>), groups = #[[$GROUPS]]> -> tensor<1x128xf16> {
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<1x128xf16>, %{{.*}}: tensor<1x128xf16>):
// CHECK: ktdp.yield_reduced %{{.*}} : tensor<1x128xf16>
// Sum over pairs of cores: every core of a pair stores the sum of both rows of x.
#row_2   = affine_set<(r, c) : (r >= 0, -r >= 0, c >= 0, -c + 127 >= 0)>
#order_2 = affine_map<(r, c) -> (r, c)>
#pair_2  = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
func.func @pair_sum(%x: index, %y: index) attributes {grid = [4]} {
  %zero = arith.constant 0 : index
  %width = arith.constant 128 : index
  %core = ktdp.get_compute_tile_id : index
  %offset = arith.muli %core, %width : index
  %xp = arith.addi %x, %offset : index
  %yp = arith.addi %y, %offset : index
  %xv = ktdp.construct_memory_view %xp, sizes: [1, 128], strides: [128, 1] {
    coordinate_set = #row_2, memory_space = #ktdp.memory_space<global>} : memref<1x128xf16>
  %yv = ktdp.construct_memory_view %yp, sizes: [1, 128], strides: [128, 1] {
    coordinate_set = #row_2, memory_space = #ktdp.memory_space<global>} : memref<1x128xf16>
  %xt = ktdp.construct_access_tile %xv[%zero, %zero] {
    access_tile_set = #row_2, access_tile_order = #order_2} : memref<1x128xf16> -> !ktdp.access_tile<1x128xindex>
  %yt = ktdp.construct_access_tile %yv[%zero, %zero] {
    access_tile_set = #row_2, access_tile_order = #order_2} : memref<1x128xf16> -> !ktdp.access_tile<1x128xindex>
  %mine = ktdp.load %xt : !ktdp.access_tile<1x128xindex> -> tensor<1x128xf16>
  %future = ktdp.inter_tile_produce producer_tiles_per_group = #pair_2
      : tensor<1x128xf16> -> !ktdp.tile_future<tensor<1x128xf16>, groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<1x128xf16>
  }
  %c0f = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<1x128xf16>
  %identity = linalg.fill ins(%c0f : f16) outs(%empty : tensor<1x128xf16>) -> tensor<1x128xf16>
  %sum = ktdp.inter_tile_reduce(%future) consumer_tiles_per_group = #pair_2, identity(%identity : tensor<1x128xf16>)
      : !ktdp.tile_future<tensor<1x128xf16>, groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>> -> tensor<1x128xf16> {
    ^bb0(%lhs: tensor<1x128xf16>, %rhs: tensor<1x128xf16>):
      %init = tensor.empty() : tensor<1x128xf16>
      %added = linalg.add ins(%lhs, %rhs : tensor<1x128xf16>, tensor<1x128xf16>) outs(%init : tensor<1x128xf16>) -> tensor<1x128xf16>
      ktdp.yield_reduced %added : tensor<1x128xf16>
  }
  ktdp.store %sum, %yt : tensor<1x128xf16>, !ktdp.access_tile<1x128xindex>
  return
}
