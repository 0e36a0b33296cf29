// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --ktdp-strict --split-input-file --verify-diagnostics

// Rules R1 to R14 of communication between cores. R11 (identity type = partial
// type) is a rule of the operations' verifiers: inter-tile-invalid.mlir.

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#first  = affine_set<(i)[g] : (i - 2*g == 0)>
#swap   = affine_set<(p)[g, c] : (p + c - 4*g - 1 == 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>

// Everything as it should be.
func.func @legal(%mine: tensor<2x64xf16>, %zero: tensor<2x64xf16>) attributes {grid = [4]} {
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<2x64xf16> -> !ktdp.tile_future<tensor<2x64xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<2x64xf16>
  }
  %0 = ktdp.inter_tile_reduce(%a) consumer_tiles_per_group = #pair, identity(%zero : tensor<2x64xf16>)
      : !ktdp.tile_future<tensor<2x64xf16>, groups = #groups> -> tensor<2x64xf16> {
    ^bb0(%lhs: tensor<2x64xf16>, %rhs: tensor<2x64xf16>):
      %sum = arith.addf %lhs, %rhs : tensor<2x64xf16>
      ktdp.yield_reduced %sum : tensor<2x64xf16>
  }
  %b = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<2x64xf16> -> !ktdp.tile_future<tensor<2x64xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %0 : tensor<2x64xf16>
  }
  %1 = ktdp.inter_tile_all_to_all(%b) consumer_tiles_per_group = #pair, split_dimension = 1, concat_dimension = 0
      : !ktdp.tile_future<tensor<2x64xf16>, groups = #groups> -> tensor<4x32xf16>
  %c = ktdp.inter_tile_produce producer_tiles_per_group = #first : tensor<4x32xf16> -> !ktdp.tile_future<tensor<4x32xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %1 : tensor<4x32xf16>
  }
  %2 = ktdp.inter_tile_scatter(%c) consumer_tiles_per_group = #pair, scatter_dimension = 0
      : !ktdp.tile_future<tensor<4x32xf16>, groups = #groups> -> tensor<2x32xf16>
  %d = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<2x32xf16> -> !ktdp.tile_future<tensor<2x32xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %2 : tensor<2x32xf16>
  }
  %3 = ktdp.inter_tile_gather(%d) consumer_tiles_per_group = #first, gather_dimension = 1
      : !ktdp.tile_future<tensor<2x32xf16>, groups = #groups> -> tensor<2x64xf16>
  %e = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<2x64xf16> -> !ktdp.tile_future<tensor<2x64xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %3 : tensor<2x64xf16>
  }
  %4 = ktdp.inter_tile_consume(%e) consumer_tiles_per_group = #pair, producer_dependency_per_consumer = #swap
      : !ktdp.tile_future<tensor<2x64xf16>, groups = #groups> -> tensor<2x64xf16>
  return
}

// -----

#near   = affine_set<(i)[g] : (i - g >= 0, -i + g + 1 >= 0)>
#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @r1(%mine: tensor<8xf16>, %zero: tensor<8xf16>) attributes {grid = [4]} {
  // KTDP-INTER_TILE-C1
  // expected-error @+1 {{producer_tiles_per_group for groups 0 and 1 are not disjoint: both hold core 1}}
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #near : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  // expected-error @+1 {{consumer_tiles_per_group for groups 0 and 1 are not disjoint}}
  %0 = ktdp.inter_tile_gather(%a) consumer_tiles_per_group = #near, gather_dimension = 0
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<16xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @r2(%mine: tensor<8xf16>) attributes {grid = [4]} {
  // KTDP-INTER_TILE-C2
  // expected-error @+1 {{future result must have exactly one use, but has 2}}
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  %0 = ktdp.inter_tile_gather(%a) consumer_tiles_per_group = #pair, gather_dimension = 0
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<16xf16>
  %1 = ktdp.inter_tile_gather(%a) consumer_tiles_per_group = #pair, gather_dimension = 0
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<16xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#next   = affine_set<(p)[c] : (p - c - 1 == 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @r3(%mine: tensor<8xf16>) attributes {grid = [4]} {
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  // KTDP-INTER_TILE-C3
  // expected-error @+1 {{consumer 1 depends on core 2, which does not produce for group 0}}
  %0 = ktdp.inter_tile_consume(%a) consumer_tiles_per_group = #pair, producer_dependency_per_consumer = #next
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<8xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#even   = affine_set<(p)[g, c] : (p - 2*g == 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @r4(%mine: tensor<8xf16>) attributes {grid = [4]} {
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  // KTDP-INTER_TILE-C4
  // expected-error @+1 {{no consumer of group 0 depends on its producer 1}}
  %0 = ktdp.inter_tile_consume(%a) consumer_tiles_per_group = #pair, producer_dependency_per_consumer = #even
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<8xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#both   = affine_set<(p)[g, c] : (p - 2*g >= 0, -p + 2*g + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @r5(%mine: tensor<8xf16>, %zero: tensor<8xf16>) attributes {grid = [4]} {
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  // KTDP-INTER_TILE-C5
  // expected-error @+1 {{consumers 0 and 1 of group 0 both depend on core 0}}
  %0 = ktdp.inter_tile_reduce(%a) consumer_tiles_per_group = #pair, producer_dependency_per_consumer = #both, identity(%zero : tensor<8xf16>)
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<8xf16> {
    ^bb0(%lhs: tensor<8xf16>, %rhs: tensor<8xf16>):
      ktdp.yield_reduced %lhs : tensor<8xf16>
  }
  return
}

// -----

#odd    = affine_set<(i)[g] : (i - 2*g >= 0, -i + 3*g >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @r6_r7(%mine: tensor<8xf16>) attributes {grid = [4]} {
  // KTDP-INTER_TILE-C6
  // expected-error @+1 {{producer_tiles_per_group has 1 cores for group 0, but 2 for group 1}}
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #odd : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  // KTDP-INTER_TILE-C7
  // expected-error @+1 {{consumer_tiles_per_group has 1 cores for group 0, but 2 for group 1}}
  %0 = ktdp.inter_tile_gather(%a) consumer_tiles_per_group = #odd, gather_dimension = 0
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<16xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @r8(%mine: tensor<8xf16>) attributes {grid = [4]} {
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  // KTDP-INTER_TILE-C8
  // expected-error @+1 {{consumer 0 of group 0 must depend on exactly one producer, but depends on 2}}
  %0 = ktdp.inter_tile_consume(%a) consumer_tiles_per_group = #pair
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<8xf16>
  %b = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  // expected-error @+1 {{consumer 0 of group 0 must depend on exactly one producer, but depends on 2}}
  %1 = ktdp.inter_tile_scatter(%b) consumer_tiles_per_group = #pair, scatter_dimension = 0
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<4xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#first  = affine_set<(i)[g] : (i - 2*g == 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @r9(%mine: tensor<8xf16>, %zero: tensor<8xf16>) attributes {grid = [4]} {
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #first : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  // KTDP-INTER_TILE-C9
  // expected-error @+1 {{dimension 0 of size 8 split among 2 consumers cannot give 'tensor<2xf16>'}}
  %0 = ktdp.inter_tile_scatter(%a) consumer_tiles_per_group = #pair, scatter_dimension = 0
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<2xf16>
  %b = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  // expected-error @+1 {{dimension 0 of size 8 split among 2 consumers cannot give 'tensor<8xf16>'}}
  %1 = ktdp.inter_tile_reduce_scatter(%b) consumer_tiles_per_group = #pair, scatter_dimension = 0, identity(%zero : tensor<8xf16>)
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<8xf16> {
    ^bb0(%lhs: tensor<8xf16>, %rhs: tensor<8xf16>):
      ktdp.yield_reduced %lhs : tensor<8xf16>
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
#set    = affine_set<(i) : (i >= 0, -i + 7 >= 0)>
#order  = affine_map<(i) -> (i)>
func.func @r10(%mine: tensor<8xf16>, %zero: tensor<8xf16>, %m: memref<8xf16>, %c0: index) attributes {grid = [4]} {
  %t = ktdp.construct_access_tile %m[%c0] {access_tile_set = #set, access_tile_order = #order} : memref<8xf16> -> !ktdp.access_tile<8xindex>
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  // KTDP-INTER_TILE-C10
  // expected-error @+1 {{combiner must be free of side effects, but holds 'ktdp.store'}}
  %0 = ktdp.inter_tile_reduce(%a) consumer_tiles_per_group = #pair, identity(%zero : tensor<8xf16>)
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<8xf16> {
    ^bb0(%lhs: tensor<8xf16>, %rhs: tensor<8xf16>):
      ktdp.store %lhs, %t : tensor<8xf16>, !ktdp.access_tile<8xindex>
      ktdp.yield_reduced %lhs : tensor<8xf16>
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @r12(%mine: tensor<8x4xf16>) attributes {grid = [4]} {
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<8x4xf16> -> !ktdp.tile_future<tensor<8x4xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8x4xf16>
  }
  // KTDP-INTER_TILE-C12
  // expected-error @+1 {{tiles of 2 producers concatenated along dimension 0 have size 16 there, but got 'tensor<24x4xf16>'}}
  %0 = ktdp.inter_tile_gather(%a) consumer_tiles_per_group = #pair, gather_dimension = 0
      : !ktdp.tile_future<tensor<8x4xf16>, groups = #groups> -> tensor<24x4xf16>
  %b = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<8x4xf16> -> !ktdp.tile_future<tensor<8x4xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8x4xf16>
  }
  // expected-error @+1 {{dimension 1 of size 4 split among 2 consumers cannot give 'tensor<32x1xf16>'}}
  %1 = ktdp.inter_tile_all_to_all(%b) consumer_tiles_per_group = #pair, split_dimension = 1, concat_dimension = 0
      : !ktdp.tile_future<tensor<8x4xf16>, groups = #groups> -> tensor<32x1xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#first  = affine_set<(i)[g] : (i - 2*g == 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @r13(%mine: tensor<8xf16>, %zero: tensor<8xf16>) attributes {grid = [4]} {
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #first : tensor<8xf16> -> !ktdp.tile_future<tensor<8xf16>, groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8xf16>
  }
  // KTDP-INTER_TILE-C13
  // expected-error @+1 {{consumer 1 of group 0 is not a producer of it}}
  %0 = ktdp.inter_tile_reduce(%a) consumer_tiles_per_group = #pair, identity(%zero : tensor<8xf16>)
      : !ktdp.tile_future<tensor<8xf16>, groups = #groups> -> tensor<8xf16> {
    ^bb0(%lhs: tensor<8xf16>, %rhs: tensor<8xf16>):
      ktdp.yield_reduced %lhs : tensor<8xf16>
  }
  return
}

// -----

#quad   = affine_set<(i)[g] : (i - 4*g >= 0, -i + 4*g + 3 >= 0)>
#pair   = affine_set<(i)[g] : (i - 4*g >= 0, -i + 4*g + 1 >= 0)>
#one    = affine_set<(g) : (g == 0)>
func.func @r14(%mine: tensor<8x4xf16>, %zero: tensor<8x4xf16>) attributes {grid = [4]} {
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #quad : tensor<8x4xf16> -> !ktdp.tile_future<tensor<8x4xf16>, groups = #one> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8x4xf16>
  }
  // KTDP-INTER_TILE-C14
  // expected-error @+1 {{consumers of group 0 must be its producers or exactly one core, but got 2}}
  %0 = ktdp.inter_tile_reduce(%a) consumer_tiles_per_group = #pair, identity(%zero : tensor<8x4xf16>)
      : !ktdp.tile_future<tensor<8x4xf16>, groups = #one> -> tensor<8x4xf16> {
    ^bb0(%lhs: tensor<8x4xf16>, %rhs: tensor<8x4xf16>):
      ktdp.yield_reduced %lhs : tensor<8x4xf16>
  }
  %b = ktdp.inter_tile_produce producer_tiles_per_group = #quad : tensor<8x4xf16> -> !ktdp.tile_future<tensor<8x4xf16>, groups = #one> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8x4xf16>
  }
  // expected-error @+1 {{consumers of group 0 must be its producers}}
  %1 = ktdp.inter_tile_all_to_all(%b) consumer_tiles_per_group = #pair, split_dimension = 0, concat_dimension = 1
      : !ktdp.tile_future<tensor<8x4xf16>, groups = #one> -> tensor<4x8xf16>
  return
}

// -----

// The ids of groups end where 64 bits end.
#same = affine_set<(i)[g] : (i - g == 0)>
#last = affine_set<(g) : (g - 9223372036854775804 >= 0, -g + 9223372036854775807 >= 0)>
func.func @last_groups(%mine: tensor<2x64xf16>, %zero: tensor<2x64xf16>) attributes {grid = [4]} {
  %a = ktdp.inter_tile_produce producer_tiles_per_group = #same : tensor<2x64xf16> -> !ktdp.tile_future<tensor<2x64xf16>, groups = #last> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<2x64xf16>
  }
  %0 = ktdp.inter_tile_reduce(%a) consumer_tiles_per_group = #same, identity(%zero : tensor<2x64xf16>)
      : !ktdp.tile_future<tensor<2x64xf16>, groups = #last> -> tensor<2x64xf16> {
    ^bb0(%lhs: tensor<2x64xf16>, %rhs: tensor<2x64xf16>):
      %sum = arith.addf %lhs, %rhs : tensor<2x64xf16>
      ktdp.yield_reduced %sum : tensor<2x64xf16>
  }
  return
}
