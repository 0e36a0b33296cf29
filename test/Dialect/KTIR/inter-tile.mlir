// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt --verify-roundtrip %s | FileCheck %s
// RUN: spyre-opt --mlir-print-op-generic %s | spyre-opt | FileCheck %s
// RUN: spyre-opt --emit-bytecode %s | spyre-opt | FileCheck %s
// RUN: spyre-opt --mlir-print-local-scope %s | spyre-opt | FileCheck %s

// Communication between cores, in all its forms.

// CHECK-DAG: #[[$PAIR:.+]] = affine_set<(d0)[s0] : (d0 - s0 * 2 >= 0, -d0 + s0 * 2 + 1 >= 0)>
// CHECK-DAG: #[[$GROUPS:.+]] = affine_set<(d0) : (d0 >= 0, -d0 + 1 >= 0)>
// CHECK-DAG: #[[$NEXT:.+]] = affine_set<(d0)[s0] : (d0 - s0 + 1 == 0)>

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
#next   = affine_set<(p)[c] : (p - c + 1 == 0)>

// CHECK-LABEL: func.func @communicate
// CHECK-SAME: %[[MINE:.+]]: tensor<1x128xf16>, %[[ZERO:.+]]: tensor<1x128xf16>
func.func @communicate(%mine: tensor<1x128xf16>, %zero: tensor<1x128xf16>) {
  // The older spelling with parentheses; the name of the type elided.
  // CHECK: %[[F:.+]] = ktdp.inter_tile_produce producer_tiles_per_group = #[[$PAIR]] -> <(tensor<1x128xf16>), groups = #[[$GROUPS]]> {
  %f = ktdp.inter_tile_produce producer_tiles_per_group = #pair
      : tensor<1x128xf16> -> <(tensor<1x128xf16>), groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<1x128xf16>
  }
  // CHECK: ktdp.inter_tile_reduce(%[[F]]) consumer_tiles_per_group = #[[$PAIR]], producer_dependency_per_consumer = #[[$NEXT]], identity(%[[ZERO]] : tensor<1x128xf16>) : <(tensor<1x128xf16>), groups = #[[$GROUPS]]> -> tensor<2x64xf16> {
  %0 = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #pair,
      producer_dependency_per_consumer = #next, identity(%zero : tensor<1x128xf16>)
      : !ktdp.tile_future<(tensor<1x128xf16>), groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>> -> tensor<2x64xf16> {
    ^bb0(%lhs: tensor<1x128xf16>, %rhs: tensor<1x128xf16>):
      %sum = arith.addf %lhs, %rhs : tensor<1x128xf16>
      ktdp.yield_reduced %sum : tensor<1x128xf16>
  }
  // CHECK: ktdp.inter_tile_reduce_scatter(%[[F]]) consumer_tiles_per_group = #[[$PAIR]], scatter_dimension = 1, identity(%[[ZERO]] : tensor<1x128xf16>) : <(tensor<1x128xf16>), groups = #[[$GROUPS]]> -> tensor<1x64xf16> {
  %1 = ktdp.inter_tile_reduce_scatter(%f) consumer_tiles_per_group = #pair,
      scatter_dimension = 1, identity(%zero : tensor<1x128xf16>)
      : !ktdp.tile_future<tensor<1x128xf16>, groups = #groups> -> tensor<1x64xf16> {
    ^bb0(%lhs: tensor<1x128xf16>, %rhs: tensor<1x128xf16>):
      %sum = arith.addf %lhs, %rhs : tensor<1x128xf16>
      ktdp.yield_reduced %sum : tensor<1x128xf16>
  }
  // CHECK: ktdp.inter_tile_consume(%[[F]]) consumer_tiles_per_group = #[[$PAIR]] : <(tensor<1x128xf16>), groups = #[[$GROUPS]]> -> tensor<1x128xf16>
  %2 = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #pair
      : !ktdp.tile_future<tensor<1x128xf16>, groups = #groups> -> tensor<1x128xf16>
  // CHECK: ktdp.inter_tile_consume(%[[F]]) consumer_tiles_per_group = #[[$PAIR]], producer_dependency_per_consumer = #[[$NEXT]] :
  %3 = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #pair, producer_dependency_per_consumer = #next
      : !ktdp.tile_future<tensor<1x128xf16>, groups = #groups> -> tensor<1x128xf16>
  // CHECK: ktdp.inter_tile_gather(%[[F]]) consumer_tiles_per_group = #[[$PAIR]], gather_dimension = 0 : {{.*}} -> tensor<2x128xf16>
  %4 = ktdp.inter_tile_gather(%f) consumer_tiles_per_group = #pair, gather_dimension = 0
      : !ktdp.tile_future<tensor<1x128xf16>, groups = #groups> -> tensor<2x128xf16>
  // CHECK: ktdp.inter_tile_scatter(%[[F]]) consumer_tiles_per_group = #[[$PAIR]], scatter_dimension = 1 : {{.*}} -> tensor<1x64xf16>
  %5 = ktdp.inter_tile_scatter(%f) consumer_tiles_per_group = #pair, scatter_dimension = 1
      : !ktdp.tile_future<tensor<1x128xf16>, groups = #groups> -> tensor<1x64xf16>
  // CHECK: ktdp.inter_tile_all_to_all(%[[F]]) consumer_tiles_per_group = #[[$PAIR]], split_dimension = 1, concat_dimension = 0 attributes {note = "kept"} : {{.*}} -> tensor<2x64xf16>
  %6 = ktdp.inter_tile_all_to_all(%f) consumer_tiles_per_group = #pair,
      split_dimension = 1, concat_dimension = 0 attributes {note = "kept"}
      : !ktdp.tile_future<tensor<1x128xf16>, groups = #groups> -> tensor<2x64xf16>
  return
}

// All spellings of produce and of its future, the one in use today first.
!future = !ktdp.tile_future<(tensor<1xf16>), groups = #groups>
// CHECK-LABEL: func.func @produce
func.func @produce(%mine: tensor<1xf16>) {
  // CHECK: ktdp.inter_tile_produce producer_tiles_per_group = #[[$PAIR]] -> <(tensor<1xf16>), groups = #[[$GROUPS]]> {
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = #pair -> <(tensor<1xf16>), groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<1xf16>
  }
  // CHECK: ktdp.inter_tile_produce producer_tiles_per_group = #[[$PAIR]] -> <(tensor<1xf16>), groups = #[[$GROUPS]]> {
  %1 = ktdp.inter_tile_produce producer_tiles_per_group = #pair
      -> !ktdp.tile_future<(tensor<1xf16>), groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<1xf16>
  }
  // CHECK: ktdp.inter_tile_produce producer_tiles_per_group = #[[$PAIR]] -> <(tensor<1xf16>), groups = #[[$GROUPS]]> {
  %2 = ktdp.inter_tile_produce producer_tiles_per_group = #pair -> !future {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<1xf16>
  }
  // CHECK: ktdp.inter_tile_produce producer_tiles_per_group = #[[$PAIR]] -> <(tensor<1xf16>), groups = #[[$GROUPS]]> {
  %3 = ktdp.inter_tile_produce producer_tiles_per_group = #pair
      : tensor<1xf16> -> !ktdp.tile_future<tensor<1xf16>, groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<1xf16>
  }
  // CHECK: ktdp.inter_tile_produce producer_tiles_per_group = #[[$PAIR]] {note = "kept"} -> <(tensor<1xf16>), groups = #[[$GROUPS]]> {
  %4 = ktdp.inter_tile_produce producer_tiles_per_group = #pair {note = "kept"}
      -> <(tensor<1xf16>), groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<1xf16>
  }
  // CHECK: ktdp.inter_tile_produce producer_tiles_per_group = #[[$PAIR]] {note = "kept"} -> <(tensor<1xf16>), groups = #[[$GROUPS]]> {
  %5 = ktdp.inter_tile_produce producer_tiles_per_group = #pair attributes {note = "kept"}
      : tensor<1xf16> -> !ktdp.tile_future<tensor<1xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<1xf16>
  }
  return
}
