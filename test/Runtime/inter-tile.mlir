// SPDX-License-Identifier: Apache-2.0
// The inter-tile operations on four cores in two pairs. Core c has
// x[c, r, j] = 100 c + 10 r + j, so that each result says where it came from.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --threads 1 --check=full
// RUN: spyre-run --cases %s --threads 2 --check=none
// RUN: spyre-run --cases %s --threads 5

#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
#pair = affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>
#first = affine_set<(i)[g] : (i - 2*g == 0)>
#order = affine_map<(c, r, j) -> (c, r, j)>
!future = !ktdp.tile_future<tensor<2x6xf32>, groups = #groups>

// What core c loads: x[c]; and where it stores its result.
func.func private @own(%x: index) -> tensor<2x6xf32> {
  %c0 = arith.constant 0 : index
  %core = ktdp.get_compute_tile_id : index
  %v = ktdp.construct_memory_view %x, sizes: [4, 2, 6], strides: [12, 6, 1] {
    coordinate_set = affine_set<(c, r, j) : (c >= 0, -c + 3 >= 0, r >= 0, -r + 1 >= 0, j >= 0, -j + 5 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<4x2x6xf32>
  %t = ktdp.construct_access_tile %v[%core, %c0, %c0] {
    access_tile_set = affine_set<(c, r, j) : (c == 0, r >= 0, -r + 1 >= 0, j >= 0, -j + 5 >= 0)>, access_tile_order = #order}
    : memref<4x2x6xf32> -> !ktdp.access_tile<1x2x6xindex>
  %l = ktdp.load %t : !ktdp.access_tile<1x2x6xindex> -> tensor<1x2x6xf32>
  %d = tensor.collapse_shape %l [[0, 1], [2]] : tensor<1x2x6xf32> into tensor<2x6xf32>
  return %d : tensor<2x6xf32>
}

func.func private @put_2x6(%z: index, %r: tensor<2x6xf32>) {
  %c0 = arith.constant 0 : index
  %core = ktdp.get_compute_tile_id : index
  %v = ktdp.construct_memory_view %z, sizes: [4, 2, 6], strides: [12, 6, 1] {
    coordinate_set = affine_set<(c, r, j) : (c >= 0, -c + 3 >= 0, r >= 0, -r + 1 >= 0, j >= 0, -j + 5 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<4x2x6xf32>
  %t = ktdp.construct_access_tile %v[%core, %c0, %c0] {
    access_tile_set = affine_set<(c, r, j) : (c == 0, r >= 0, -r + 1 >= 0, j >= 0, -j + 5 >= 0)>, access_tile_order = #order}
    : memref<4x2x6xf32> -> !ktdp.access_tile<1x2x6xindex>
  %e = tensor.expand_shape %r [[0, 1], [2]] output_shape [1, 2, 6] : tensor<2x6xf32> into tensor<1x2x6xf32>
  ktdp.store %e, %t : tensor<1x2x6xf32>, !ktdp.access_tile<1x2x6xindex>
  return
}

func.func private @put_2x3(%z: index, %r: tensor<2x3xf32>) {
  %c0 = arith.constant 0 : index
  %core = ktdp.get_compute_tile_id : index
  %v = ktdp.construct_memory_view %z, sizes: [4, 2, 3], strides: [6, 3, 1] {
    coordinate_set = affine_set<(c, r, j) : (c >= 0, -c + 3 >= 0, r >= 0, -r + 1 >= 0, j >= 0, -j + 2 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<4x2x3xf32>
  %t = ktdp.construct_access_tile %v[%core, %c0, %c0] {
    access_tile_set = affine_set<(c, r, j) : (c == 0, r >= 0, -r + 1 >= 0, j >= 0, -j + 2 >= 0)>, access_tile_order = #order}
    : memref<4x2x3xf32> -> !ktdp.access_tile<1x2x3xindex>
  %e = tensor.expand_shape %r [[0, 1], [2]] output_shape [1, 2, 3] : tensor<2x3xf32> into tensor<1x2x3xf32>
  ktdp.store %e, %t : tensor<1x2x3xf32>, !ktdp.access_tile<1x2x3xindex>
  return
}

func.func private @put_4x6(%z: index, %r: tensor<4x6xf32>) {
  %c0 = arith.constant 0 : index
  %core = ktdp.get_compute_tile_id : index
  %v = ktdp.construct_memory_view %z, sizes: [4, 4, 6], strides: [24, 6, 1] {
    coordinate_set = affine_set<(c, r, j) : (c >= 0, -c + 3 >= 0, r >= 0, -r + 3 >= 0, j >= 0, -j + 5 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<4x4x6xf32>
  %t = ktdp.construct_access_tile %v[%core, %c0, %c0] {
    access_tile_set = affine_set<(c, r, j) : (c == 0, r >= 0, -r + 3 >= 0, j >= 0, -j + 5 >= 0)>, access_tile_order = #order}
    : memref<4x4x6xf32> -> !ktdp.access_tile<1x4x6xindex>
  %e = tensor.expand_shape %r [[0, 1], [2]] output_shape [1, 4, 6] : tensor<4x6xf32> into tensor<1x4x6xf32>
  ktdp.store %e, %t : tensor<1x4x6xf32>, !ktdp.access_tile<1x4x6xindex>
  return
}

func.func private @put_1x6(%z: index, %r: tensor<1x6xf32>) {
  %c0 = arith.constant 0 : index
  %core = ktdp.get_compute_tile_id : index
  %v = ktdp.construct_memory_view %z, sizes: [4, 1, 6], strides: [6, 6, 1] {
    coordinate_set = affine_set<(c, r, j) : (c >= 0, -c + 3 >= 0, r >= 0, -r + 0 >= 0, j >= 0, -j + 5 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<4x1x6xf32>
  %t = ktdp.construct_access_tile %v[%core, %c0, %c0] {
    access_tile_set = affine_set<(c, r, j) : (c == 0, r >= 0, -r + 0 >= 0, j >= 0, -j + 5 >= 0)>, access_tile_order = #order}
    : memref<4x1x6xf32> -> !ktdp.access_tile<1x1x6xindex>
  %e = tensor.expand_shape %r [[0, 1], [2]] output_shape [1, 1, 6] : tensor<1x6xf32> into tensor<1x1x6xf32>
  ktdp.store %e, %t : tensor<1x1x6xf32>, !ktdp.access_tile<1x1x6xindex>
  return
}

func.func private @put_4x3(%z: index, %r: tensor<4x3xf32>) {
  %c0 = arith.constant 0 : index
  %core = ktdp.get_compute_tile_id : index
  %v = ktdp.construct_memory_view %z, sizes: [4, 4, 3], strides: [12, 3, 1] {
    coordinate_set = affine_set<(c, r, j) : (c >= 0, -c + 3 >= 0, r >= 0, -r + 3 >= 0, j >= 0, -j + 2 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<4x4x3xf32>
  %t = ktdp.construct_access_tile %v[%core, %c0, %c0] {
    access_tile_set = affine_set<(c, r, j) : (c == 0, r >= 0, -r + 3 >= 0, j >= 0, -j + 2 >= 0)>, access_tile_order = #order}
    : memref<4x4x3xf32> -> !ktdp.access_tile<1x4x3xindex>
  %e = tensor.expand_shape %r [[0, 1], [2]] output_shape [1, 4, 3] : tensor<4x3xf32> into tensor<1x4x3xf32>
  ktdp.store %e, %t : tensor<1x4x3xf32>, !ktdp.access_tile<1x4x3xindex>
  return
}

func.func @reduce(%x: index, %z: index) attributes {grid = [4]} {
  %d = func.call @own(%x) : (index) -> tensor<2x6xf32>
  %future = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<2x6xf32> -> !future {
  ^bb0(%group: index):
    ktdp.yield_partial %d : tensor<2x6xf32>
  }
  %zero = arith.constant dense<0.0> : tensor<2x6xf32>
  %r = ktdp.inter_tile_reduce(%future) consumer_tiles_per_group = #pair, identity(%zero : tensor<2x6xf32>) : !future -> tensor<2x6xf32> {
  // Not commutative: it tells the order of the cores.
  ^bb0(%lhs: tensor<2x6xf32>, %rhs: tensor<2x6xf32>):
    %twice = arith.addf %lhs, %lhs : tensor<2x6xf32>
    %sum = arith.addf %twice, %rhs : tensor<2x6xf32>
    ktdp.yield_reduced %sum : tensor<2x6xf32>
  }
  func.call @put_2x6(%z, %r) : (index, tensor<2x6xf32>) -> ()
  return
}

check.case "inter_tile_reduce: 2 x[first] + x[second] on both" {
  %x = check.generate affine_map<(c, r, j) -> (c * 100 + r * 10 + j)> : tensor<4x2x6xf32>
  %z = arith.constant dense<-1.0> : tensor<4x2x6xf32>
  %same, %r = check.run @reduce(%x, %z) : (tensor<4x2x6xf32>, tensor<4x2x6xf32>) -> (tensor<4x2x6xf32>, tensor<4x2x6xf32>)
  check.expect_eq %same, %x : tensor<4x2x6xf32>
  %e = check.generate affine_map<(c, r, j) -> ((c floordiv 2) * 600 + r * 30 + j * 3 + 100)> : tensor<4x2x6xf32>
  check.expect_eq %r, %e : tensor<4x2x6xf32>
}

func.func @reduce_scatter(%x: index, %z: index) attributes {grid = [4]} {
  %d = func.call @own(%x) : (index) -> tensor<2x6xf32>
  %future = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<2x6xf32> -> !future {
  ^bb0(%group: index):
    ktdp.yield_partial %d : tensor<2x6xf32>
  }
  %zero = arith.constant dense<0.0> : tensor<2x6xf32>
  %r = ktdp.inter_tile_reduce_scatter(%future) consumer_tiles_per_group = #pair, scatter_dimension = 1,
      identity(%zero : tensor<2x6xf32>) : !future -> tensor<2x3xf32> {
  // Not commutative: it tells the order of the cores.
  ^bb0(%lhs: tensor<2x6xf32>, %rhs: tensor<2x6xf32>):
    %twice = arith.addf %lhs, %lhs : tensor<2x6xf32>
    %sum = arith.addf %twice, %rhs : tensor<2x6xf32>
    ktdp.yield_reduced %sum : tensor<2x6xf32>
  }
  func.call @put_2x3(%z, %r) : (index, tensor<2x3xf32>) -> ()
  return
}

check.case "inter_tile_reduce_scatter: each core gets half of the columns" {
  %x = check.generate affine_map<(c, r, j) -> (c * 100 + r * 10 + j)> : tensor<4x2x6xf32>
  %z = arith.constant dense<-1.0> : tensor<4x2x3xf32>
  %same, %r = check.run @reduce_scatter(%x, %z) : (tensor<4x2x6xf32>, tensor<4x2x3xf32>) -> (tensor<4x2x6xf32>, tensor<4x2x3xf32>)
  check.expect_eq %same, %x : tensor<4x2x6xf32>
  %e = check.generate affine_map<(c, r, j) -> ((c floordiv 2) * 600 + r * 30 + (c mod 2) * 9 + j * 3 + 100)> : tensor<4x2x3xf32>
  check.expect_eq %r, %e : tensor<4x2x3xf32>
}

func.func @broadcast(%x: index, %z: index) attributes {grid = [4]} {
  %d = func.call @own(%x) : (index) -> tensor<2x6xf32>
  %future = ktdp.inter_tile_produce producer_tiles_per_group = #first : tensor<2x6xf32> -> !future {
  ^bb0(%group: index):
    ktdp.yield_partial %d : tensor<2x6xf32>
  }
  %r = ktdp.inter_tile_consume(%future) consumer_tiles_per_group = #pair : !future -> tensor<2x6xf32>
  func.call @put_2x6(%z, %r) : (index, tensor<2x6xf32>) -> ()
  return
}

check.case "inter_tile_consume: the first core of the pair to both" {
  %x = check.generate affine_map<(c, r, j) -> (c * 100 + r * 10 + j)> : tensor<4x2x6xf32>
  %z = arith.constant dense<-1.0> : tensor<4x2x6xf32>
  %same, %r = check.run @broadcast(%x, %z) : (tensor<4x2x6xf32>, tensor<4x2x6xf32>) -> (tensor<4x2x6xf32>, tensor<4x2x6xf32>)
  check.expect_eq %same, %x : tensor<4x2x6xf32>
  %e = check.generate affine_map<(c, r, j) -> ((c floordiv 2) * 200 + r * 10 + j)> : tensor<4x2x6xf32>
  check.expect_eq %r, %e : tensor<4x2x6xf32>
}

func.func @exchange(%x: index, %z: index) attributes {grid = [4]} {
  %d = func.call @own(%x) : (index) -> tensor<2x6xf32>
  %future = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<2x6xf32> -> !future {
  ^bb0(%group: index):
    ktdp.yield_partial %d : tensor<2x6xf32>
  }
  %r = ktdp.inter_tile_consume(%future) consumer_tiles_per_group = #pair,
      producer_dependency_per_consumer = affine_set<(p)[g, c] : (p + c - 4*g - 1 == 0)> : !future -> tensor<2x6xf32>
  func.call @put_2x6(%z, %r) : (index, tensor<2x6xf32>) -> ()
  return
}

check.case "inter_tile_consume: each core from the other one" {
  %x = check.generate affine_map<(c, r, j) -> (c * 100 + r * 10 + j)> : tensor<4x2x6xf32>
  %z = arith.constant dense<-1.0> : tensor<4x2x6xf32>
  %same, %r = check.run @exchange(%x, %z) : (tensor<4x2x6xf32>, tensor<4x2x6xf32>) -> (tensor<4x2x6xf32>, tensor<4x2x6xf32>)
  check.expect_eq %same, %x : tensor<4x2x6xf32>
  %e = check.generate affine_map<(c, r, j) -> (c * 100 - (c mod 2) * 200 + 100 + r * 10 + j)> : tensor<4x2x6xf32>
  check.expect_eq %r, %e : tensor<4x2x6xf32>
}

func.func @gather(%x: index, %z: index) attributes {grid = [4]} {
  %d = func.call @own(%x) : (index) -> tensor<2x6xf32>
  %future = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<2x6xf32> -> !future {
  ^bb0(%group: index):
    ktdp.yield_partial %d : tensor<2x6xf32>
  }
  %r = ktdp.inter_tile_gather(%future) consumer_tiles_per_group = #pair, gather_dimension = 0 : !future -> tensor<4x6xf32>
  func.call @put_4x6(%z, %r) : (index, tensor<4x6xf32>) -> ()
  return
}

check.case "inter_tile_gather: the rows of both" {
  %x = check.generate affine_map<(c, r, j) -> (c * 100 + r * 10 + j)> : tensor<4x2x6xf32>
  %z = arith.constant dense<-1.0> : tensor<4x4x6xf32>
  %same, %r = check.run @gather(%x, %z) : (tensor<4x2x6xf32>, tensor<4x4x6xf32>) -> (tensor<4x2x6xf32>, tensor<4x4x6xf32>)
  check.expect_eq %same, %x : tensor<4x2x6xf32>
  %e = check.generate affine_map<(c, r, j) -> ((c floordiv 2) * 200 + (r floordiv 2) * 100 + (r mod 2) * 10 + j)> : tensor<4x4x6xf32>
  check.expect_eq %r, %e : tensor<4x4x6xf32>
}

func.func @scatter(%x: index, %z: index) attributes {grid = [4]} {
  %d = func.call @own(%x) : (index) -> tensor<2x6xf32>
  %future = ktdp.inter_tile_produce producer_tiles_per_group = #first : tensor<2x6xf32> -> !future {
  ^bb0(%group: index):
    ktdp.yield_partial %d : tensor<2x6xf32>
  }
  %r = ktdp.inter_tile_scatter(%future) consumer_tiles_per_group = #pair, scatter_dimension = 0 : !future -> tensor<1x6xf32>
  func.call @put_1x6(%z, %r) : (index, tensor<1x6xf32>) -> ()
  return
}

check.case "inter_tile_scatter: a row of the first core for each" {
  %x = check.generate affine_map<(c, r, j) -> (c * 100 + r * 10 + j)> : tensor<4x2x6xf32>
  %z = arith.constant dense<-1.0> : tensor<4x1x6xf32>
  %same, %r = check.run @scatter(%x, %z) : (tensor<4x2x6xf32>, tensor<4x1x6xf32>) -> (tensor<4x2x6xf32>, tensor<4x1x6xf32>)
  check.expect_eq %same, %x : tensor<4x2x6xf32>
  %e = check.generate affine_map<(c, r, j) -> ((c floordiv 2) * 200 + (c mod 2) * 10 + j)> : tensor<4x1x6xf32>
  check.expect_eq %r, %e : tensor<4x1x6xf32>
}

func.func @all_to_all(%x: index, %z: index) attributes {grid = [4]} {
  %d = func.call @own(%x) : (index) -> tensor<2x6xf32>
  %future = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<2x6xf32> -> !future {
  ^bb0(%group: index):
    ktdp.yield_partial %d : tensor<2x6xf32>
  }
  %r = ktdp.inter_tile_all_to_all(%future) consumer_tiles_per_group = #pair, split_dimension = 1,
      concat_dimension = 0 : !future -> tensor<4x3xf32>
  func.call @put_4x3(%z, %r) : (index, tensor<4x3xf32>) -> ()
  return
}

check.case "inter_tile_all_to_all: columns are divided, rows joined" {
  %x = check.generate affine_map<(c, r, j) -> (c * 100 + r * 10 + j)> : tensor<4x2x6xf32>
  %z = arith.constant dense<-1.0> : tensor<4x4x3xf32>
  %same, %r = check.run @all_to_all(%x, %z) : (tensor<4x2x6xf32>, tensor<4x4x3xf32>) -> (tensor<4x2x6xf32>, tensor<4x4x3xf32>)
  check.expect_eq %same, %x : tensor<4x2x6xf32>
  %e = check.generate affine_map<(c, r, j) -> ((c floordiv 2) * 200 + (r floordiv 2) * 100 + (r mod 2) * 10 + (c mod 2) * 3 + j)> : tensor<4x4x3xf32>
  check.expect_eq %r, %e : tensor<4x4x3xf32>
}

func.func @divide(%x: index, %z: index) attributes {grid = [4]} {
  %d = func.call @own(%x) : (index) -> tensor<2x6xf32>
  %future = ktdp.inter_tile_produce producer_tiles_per_group = #pair : tensor<2x6xf32> -> !future {
  ^bb0(%group: index):
    ktdp.yield_partial %d : tensor<2x6xf32>
  }
  %zero = arith.constant dense<0.0> : tensor<2x6xf32>
  %r = ktdp.inter_tile_reduce(%future) consumer_tiles_per_group = #pair, identity(%zero : tensor<2x6xf32>) : !future -> tensor<2x6xf32> {
  // Not commutative: it tells the order of the cores.
  ^bb0(%lhs: tensor<2x6xf32>, %rhs: tensor<2x6xf32>):
    %twice = arith.addf %lhs, %lhs : tensor<2x6xf32>
    %sum = arith.addf %twice, %rhs : tensor<2x6xf32>
    ktdp.yield_reduced %sum : tensor<2x6xf32>
  }
  %c0 = arith.constant 0 : index
  %bad = arith.divui %c0, %c0 : index
  func.call @put_2x6(%z, %r) : (index, tensor<2x6xf32>) -> ()
  return
}

check.case "a core that fails ends the others" {
  %x = check.generate affine_map<(c, r, j) -> (c * 100 + r * 10 + j)> : tensor<4x2x6xf32>
  %z = arith.constant dense<-1.0> : tensor<4x2x6xf32>
  check.expect_error "core 0: integer division by zero" {
    check.run @divide(%x, %z) : (tensor<4x2x6xf32>, tensor<4x2x6xf32>) -> (tensor<4x2x6xf32>, tensor<4x2x6xf32>)
  }
}

func.func @overlapping(%x: index, %z: index) attributes {grid = [4]} {
  %d = func.call @own(%x) : (index) -> tensor<2x6xf32>
  %future = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i - g >= 0, -i + g + 1 >= 0)> : tensor<2x6xf32> -> !future {
  ^bb0(%group: index):
    ktdp.yield_partial %d : tensor<2x6xf32>
  }
  %zero = arith.constant dense<0.0> : tensor<2x6xf32>
  %r = ktdp.inter_tile_reduce(%future) consumer_tiles_per_group = #pair, identity(%zero : tensor<2x6xf32>) : !future -> tensor<2x6xf32> {
  // Not commutative: it tells the order of the cores.
  ^bb0(%lhs: tensor<2x6xf32>, %rhs: tensor<2x6xf32>):
    %twice = arith.addf %lhs, %lhs : tensor<2x6xf32>
    %sum = arith.addf %twice, %rhs : tensor<2x6xf32>
    ktdp.yield_reduced %sum : tensor<2x6xf32>
  }
  func.call @put_2x6(%z, %r) : (index, tensor<2x6xf32>) -> ()
  return
}

check.case "a core in two groups is refused" {
  %x = check.generate affine_map<(c, r, j) -> (c * 100 + r * 10 + j)> : tensor<4x2x6xf32>
  %z = arith.constant dense<-1.0> : tensor<4x2x6xf32>
  check.expect_error "core 1 is a producer in groups 0 and 1" {
    check.run @overlapping(%x, %z) : (tensor<4x2x6xf32>, tensor<4x2x6xf32>) -> (tensor<4x2x6xf32>, tensor<4x2x6xf32>)
  }
}
