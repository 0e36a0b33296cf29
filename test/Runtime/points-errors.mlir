// SPDX-License-Identifier: Apache-2.0
// Access tiles whose sets or orders make no sense are refused.
// RUN: spyre-run --cases %s

#whole = affine_set<(a, b) : (a >= 0, -a + 11 >= 0, b >= 0, -b + 16 >= 0)>
#space = #ktdp.memory_space<global>
#set0 = affine_set<(a, b) : (a >= 0, -a + 6 >= 0, b >= 0, a - b >= 0)>
#rows = affine_map<(a, b) -> (a, b)>

func.func @count(%x: index) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c0, %c0] {access_tile_set = #set0, access_tile_order = #rows} : memref<12x17xf32> -> !ktdp.access_tile<7x5xindex>
  %d = ktdp.load %s : !ktdp.access_tile<7x5xindex> -> tensor<7x5xf32>
  return
}

check.case "a tile has as many elements as its set points" {
  %x = arith.constant dense<0.0> : tensor<12x17xf32>
  check.expect_error "the set has 28 points" {
    check.run @count(%x) : (tensor<12x17xf32>) -> tensor<12x17xf32>
  }
}

func.func @places(%x: index) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c0, %c0] {access_tile_set = #set0, access_tile_order = affine_map<(a, b) -> (a, a)>} : memref<12x17xf32> -> !ktdp.access_tile<7x4xindex>
  %d = ktdp.load %s : !ktdp.access_tile<7x4xindex> -> tensor<7x4xf32>
  return
}

check.case "an order gives each point a place" {
  %x = arith.constant dense<0.0> : tensor<12x17xf32>
  check.expect_error "the same place" {
    check.run @places(%x) : (tensor<12x17xf32>) -> tensor<12x17xf32>
  }
}

func.func @unbounded(%x: index) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c0, %c0] {access_tile_set = affine_set<(a, b) : (a >= 0, b >= 0, -b + 3 >= 0)>, access_tile_order = #rows} : memref<12x17xf32> -> !ktdp.access_tile<7x4xindex>
  %d = ktdp.load %s : !ktdp.access_tile<7x4xindex> -> tensor<7x4xf32>
  return
}

check.case "a set has bounds" {
  %x = arith.constant dense<0.0> : tensor<12x17xf32>
  check.expect_error "no bound" {
    check.run @unbounded(%x) : (tensor<12x17xf32>) -> tensor<12x17xf32>
  }
}

func.func @outside(%x: index) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c0, %c0] {access_tile_set = affine_set<(a, b) : (a >= 0, -a + 30 >= 0, b >= 0, -a + b >= 0, a - b >= 0)>, access_tile_order = #rows} : memref<12x17xf32> -> !ktdp.access_tile<31x1xindex>
  %d = ktdp.load %s : !ktdp.access_tile<31x1xindex> -> tensor<31x1xf32>
  return
}

check.case "points stay inside the view" {
  %x = arith.constant dense<0.0> : tensor<12x17xf32>
  check.expect_error "is outside its range 0 to 11" {
    check.run @outside(%x) : (tensor<12x17xf32>) -> tensor<12x17xf32>
  }
}

func.func @no_dimensions(%x: index, %n: index) {
  %v = ktdp.construct_memory_view %x, sizes: [], strides: [] {coordinate_set = affine_set<() : (0 == 0)>, memory_space = #space} : memref<f32>
  %s = ktdp.construct_access_tile %v[] symbols(%n) {access_tile_set = affine_set<()[s] : (s >= 0)>, access_tile_order = affine_map<() -> ()>} : memref<f32> -> !ktdp.access_tile<index>
  %d = ktdp.load %s : !ktdp.access_tile<index> -> tensor<f32>
  return
}

check.case "whether the only point is one depends on a number" {
  %x = arith.constant dense<0.0> : tensor<f32>
  %n = arith.constant 1 : index
  check.expect_error "the set has no dimensions, and conditions" {
    check.run @no_dimensions(%x, %n) : (tensor<f32>, index) -> tensor<f32>
  }
}
