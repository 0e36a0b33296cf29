// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt -split-input-file -verify-diagnostics %s

// Communication between cores that breaks a rule.

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_PRODUCE-C1
  // expected-error@+1 {{producer_tiles_per_group must have one dimension (core) and one symbol (group), but got 1 and 0}}
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = #nosym : !tile -> !future {
    ^bb0(%group: index):
      ktdp.yield_partial %z : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_PRODUCE-C2
  // expected-error@+1 {{expected a region with one argument of type 'index' (the group), but got ()}}
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = #pair : !tile -> !future {
      ktdp.yield_partial %z : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_PRODUCE-C3
  // expected-error@+1 {{expected its region to end in 'ktdp.yield_partial'}}
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = #pair : !tile -> !future {
    ^bb0(%group: index):
      ktdp.region_terminator
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_PRODUCE-C4
  // expected-error@+1 {{partial type 'tensor<1x64xf16>' differs from the future's tile type 'tensor<1x128xf16>'}}
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<1x64xf16> -> !future {
    ^bb0(%group: index):
      ktdp.yield_partial %z : !tile
  }
  return
}

// -----

// KTDP-INTER_TILE_PRODUCE-C4
#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @f(%z: tensor<1xf16>) {
  // expected-error@+1 {{partial type 'tensor<1xf32>' differs from the future's tile type 'tensor<1xf16>'}}
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<1xf32> -> <(tensor<1xf16>), groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %z : tensor<1xf16>
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @f(%z: tensor<1xf16>) {
  // expected-error@+1 {{expected '->'}}
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = #pair <(tensor<1xf16>), groups = #groups> {
    ^bb0(%group: index):
      ktdp.yield_partial %z : tensor<1xf16>
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
func.func @f(%z: tensor<1xf32>) {
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = #pair -> <(tensor<1xf16>), groups = #groups> {
    ^bb0(%group: index):
      // KTDP-YIELD_PARTIAL-C2
      // expected-error@+1 {{expected a value of the future's tile type 'tensor<1xf16>', but got 'tensor<1xf32>'}}
      ktdp.yield_partial %z : tensor<1xf32>
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // expected-error@+1 {{invalid kind of type specified}}
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = #pair : !tile -> !tile {
    ^bb0(%group: index):
      ktdp.yield_partial %z : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // expected-error@+1 {{invalid kind of attribute specified}}
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = affine_map<(i) -> (i)> : !tile -> !future {
    ^bb0(%group: index):
      ktdp.yield_partial %z : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // expected-error@+1 {{expected ','}}
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = #pair : !tile -> !ktdp.tile_future<tensor<1x128xf16> groups = affine_set<(g) : (g >= 0)>> {
    ^bb0(%group: index):
      ktdp.yield_partial %z : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-YIELD_PARTIAL-C1
  // expected-error@+1 {{expects parent op 'ktdp.inter_tile_produce'}}
  ktdp.yield_partial %z : !tile
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%h: tensor<1x64xf16>) {
  %0 = ktdp.inter_tile_produce producer_tiles_per_group = #pair : !tile -> !future {
    ^bb0(%group: index):
      // KTDP-YIELD_PARTIAL-C2
      // expected-error@+1 {{expected a value of the future's tile type 'tensor<1x128xf16>', but got 'tensor<1x64xf16>'}}
      ktdp.yield_partial %h : tensor<1x64xf16>
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_REDUCE-C1
  // expected-error@+1 {{consumer_tiles_per_group must have one dimension (core) and one symbol (group), but got 1 and 0}}
  %0 = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #nosym, identity(%z : !tile) : !future -> !tile {
    ^bb0(%lhs: !tile, %rhs: !tile):
      ktdp.yield_reduced %lhs : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE-C11
  // KTDP-INTER_TILE_REDUCE-C3
  // expected-error@+1 {{identity must have the future's tile type 'tensor<1x128xf16>', but got 'tensor<1x64xf16>'}}
  %0 = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #pair, identity(%h : tensor<1x64xf16>) : !future -> !tile {
    ^bb0(%lhs: !tile, %rhs: !tile):
      ktdp.yield_reduced %lhs : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_REDUCE-C5
  // expected-error@+1 {{expected a region with two arguments of type 'tensor<1x128xf16>', but got ('tensor<1x128xf16>')}}
  %0 = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #pair, identity(%z : !tile) : !future -> !tile {
    ^bb0(%lhs: !tile):
      ktdp.yield_reduced %lhs : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_REDUCE-C6
  // expected-error@+1 {{expected its region to end in 'ktdp.yield_reduced'}}
  %0 = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #pair, identity(%z : !tile) : !future -> !tile {
    ^bb0(%lhs: !tile, %rhs: !tile):
      ktdp.region_terminator
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_REDUCE-C2
  // expected-error@+1 {{producer_dependency_per_consumer must have one dimension (producer) and one or two symbols ((group and) consumer), but got 1 and 0}}
  %0 = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #pair, producer_dependency_per_consumer = #nosym, identity(%z : !tile) : !future -> !tile {
    ^bb0(%lhs: !tile, %rhs: !tile):
      ktdp.yield_reduced %lhs : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_REDUCE-C4
  // expected-error@+1 {{expected a result with the elements of 'tensor<1x128xf16>', but got 'tensor<1x64xf16>'}}
  %0 = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #pair, identity(%z : !tile) : !future -> tensor<1x64xf16> {
    ^bb0(%lhs: !tile, %rhs: !tile):
      ktdp.yield_reduced %lhs : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_REDUCE_SCATTER-C1
  // expected-error@+1 {{consumer_tiles_per_group must have one dimension (core) and one symbol (group), but got 1 and 0}}
  %0 = ktdp.inter_tile_reduce_scatter(%f) consumer_tiles_per_group = #nosym, scatter_dimension = 1, identity(%z : !tile) : !future -> tensor<1x64xf16> {
    ^bb0(%lhs: !tile, %rhs: !tile):
      ktdp.yield_reduced %lhs : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_REDUCE_SCATTER-C3
  // expected-error@+1 {{identity must have the future's tile type 'tensor<1x128xf16>', but got 'tensor<1x64xf16>'}}
  %0 = ktdp.inter_tile_reduce_scatter(%f) consumer_tiles_per_group = #pair, scatter_dimension = 1, identity(%h : tensor<1x64xf16>) : !future -> tensor<1x64xf16> {
    ^bb0(%lhs: !tile, %rhs: !tile):
      ktdp.yield_reduced %lhs : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_REDUCE_SCATTER-C5
  // expected-error@+1 {{expected a region with two arguments of type 'tensor<1x128xf16>', but got ('tensor<1x128xf16>')}}
  %0 = ktdp.inter_tile_reduce_scatter(%f) consumer_tiles_per_group = #pair, scatter_dimension = 1, identity(%z : !tile) : !future -> tensor<1x64xf16> {
    ^bb0(%lhs: !tile):
      ktdp.yield_reduced %lhs : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_REDUCE_SCATTER-C6
  // expected-error@+1 {{expected its region to end in 'ktdp.yield_reduced'}}
  %0 = ktdp.inter_tile_reduce_scatter(%f) consumer_tiles_per_group = #pair, scatter_dimension = 1, identity(%z : !tile) : !future -> tensor<1x64xf16> {
    ^bb0(%lhs: !tile, %rhs: !tile):
      ktdp.region_terminator
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_REDUCE_SCATTER-C2
  // expected-error@+1 {{scatter_dimension must be a dimension of 'tensor<1x128xf16>', but got 2}}
  %0 = ktdp.inter_tile_reduce_scatter(%f) consumer_tiles_per_group = #pair, scatter_dimension = 2, identity(%z : !tile) : !future -> tensor<1x64xf16> {
    ^bb0(%lhs: !tile, %rhs: !tile):
      ktdp.yield_reduced %lhs : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_REDUCE_SCATTER-C4
  // expected-error@+1 {{expected the result to be an equal part of 'tensor<1x128xf16>' along dimension 1, but got 'tensor<1x60xf16>'}}
  %0 = ktdp.inter_tile_reduce_scatter(%f) consumer_tiles_per_group = #pair, scatter_dimension = 1, identity(%z : !tile) : !future -> tensor<1x60xf16> {
    ^bb0(%lhs: !tile, %rhs: !tile):
      ktdp.yield_reduced %lhs : !tile
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-YIELD_REDUCED-C1
  // expected-error@+1 {{expects parent op to be one of 'ktdp.inter_tile_reduce, ktdp.inter_tile_reduce_scatter'}}
  ktdp.yield_reduced %z : !tile
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  %0 = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = #pair, identity(%z : !tile) : !future -> !tile {
    ^bb0(%lhs: !tile, %rhs: !tile):
      // KTDP-YIELD_REDUCED-C2
      // expected-error@+1 {{expected a value of the future's tile type 'tensor<1x128xf16>', but got 'tensor<1x64xf16>'}}
      ktdp.yield_reduced %h : tensor<1x64xf16>
  }
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_CONSUME-C1
  // expected-error@+1 {{consumer_tiles_per_group must have one dimension (core) and one symbol (group), but got 1 and 0}}
  %0 = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #nosym : !future -> !tile
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_CONSUME-C2
  // expected-error@+1 {{producer_dependency_per_consumer must have one dimension (producer) and one or two symbols ((group and) consumer), but got 1 and 0}}
  %0 = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #pair, producer_dependency_per_consumer = #nosym : !future -> !tile
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_CONSUME-C3
  // expected-error@+1 {{expected a result of the future's tile type 'tensor<1x128xf16>', but got 'tensor<1x64xf16>'}}
  %0 = ktdp.inter_tile_consume(%f) consumer_tiles_per_group = #pair : !future -> tensor<1x64xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_GATHER-C1
  // expected-error@+1 {{consumer_tiles_per_group must have one dimension (core) and one symbol (group), but got 1 and 0}}
  %0 = ktdp.inter_tile_gather(%f) consumer_tiles_per_group = #nosym, gather_dimension = 0 : !future -> tensor<2x128xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_GATHER-C2
  // expected-error@+1 {{gather_dimension must be a dimension of 'tensor<1x128xf16>', but got -1}}
  %0 = ktdp.inter_tile_gather(%f) consumer_tiles_per_group = #pair, gather_dimension = -1 : !future -> tensor<2x128xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_GATHER-C3
  // expected-error@+1 {{expected the result to be a multiple of 'tensor<1x128xf16>' along dimension 1, but got 'tensor<1x192xf16>'}}
  %0 = ktdp.inter_tile_gather(%f) consumer_tiles_per_group = #pair, gather_dimension = 1 : !future -> tensor<1x192xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_SCATTER-C1
  // expected-error@+1 {{consumer_tiles_per_group must have one dimension (core) and one symbol (group), but got 1 and 0}}
  %0 = ktdp.inter_tile_scatter(%f) consumer_tiles_per_group = #nosym, scatter_dimension = 1 : !future -> tensor<1x64xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_SCATTER-C2
  // expected-error@+1 {{scatter_dimension must be a dimension of 'tensor<1x128xf16>', but got 2}}
  %0 = ktdp.inter_tile_scatter(%f) consumer_tiles_per_group = #pair, scatter_dimension = 2 : !future -> tensor<1x64xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_SCATTER-C3
  // expected-error@+1 {{expected the result to be an equal part of 'tensor<1x128xf16>' along dimension 1, but got 'tensor<1x64xf32>'}}
  %0 = ktdp.inter_tile_scatter(%f) consumer_tiles_per_group = #pair, scatter_dimension = 1 : !future -> tensor<1x64xf32>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_ALL_TO_ALL-C1
  // expected-error@+1 {{consumer_tiles_per_group must have one dimension (core) and one symbol (group), but got 1 and 0}}
  %0 = ktdp.inter_tile_all_to_all(%f) consumer_tiles_per_group = #nosym, split_dimension = 1, concat_dimension = 0 : !future -> tensor<2x64xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_ALL_TO_ALL-C2
  // expected-error@+1 {{concat_dimension must be a dimension of 'tensor<1x128xf16>', but got 7}}
  %0 = ktdp.inter_tile_all_to_all(%f) consumer_tiles_per_group = #pair, split_dimension = 1, concat_dimension = 7 : !future -> tensor<2x64xf16>
  return
}

// -----

#pair   = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#nosym  = affine_set<(i) : (i >= 0, -i + 1 >= 0)>
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
!tile   = tensor<1x128xf16>
!future = !ktdp.tile_future<tensor<1x128xf16>, groups = #groups>
func.func @f(%f: !future, %z: !tile, %h: tensor<1x64xf16>) {
  // KTDP-INTER_TILE_ALL_TO_ALL-C3
  // expected-error@+1 {{expected the result to be 'tensor<1x128xf16>' with dimension 1 divided, and then dimension 0 multiplied, by the number of cores of a group, but got 'tensor<4x64xf16>'}}
  %0 = ktdp.inter_tile_all_to_all(%f) consumer_tiles_per_group = #pair, split_dimension = 1, concat_dimension = 0 : !future -> tensor<4x64xf16>
  return
}
