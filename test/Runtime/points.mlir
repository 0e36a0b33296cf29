// SPDX-License-Identifier: Apache-2.0
// Access tiles that are not boxes: the k-th point in the tile's order is the k-th
// element. x[a, b] = 17 a + b + 1, and each tile starts at (2, 3). The points are
// loaded into z, and stored to y at the same places.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none
// RUN: spyre-run --cases %s --check=full

#whole = affine_set<(a, b) : (a >= 0, -a + 11 >= 0, b >= 0, -b + 16 >= 0)>
#space = #ktdp.memory_space<global>
#set0 = affine_set<(a, b) : (a >= 0, -a + 6 >= 0, b >= 0, a - b >= 0)>
#set1 = affine_set<(a, b) : (a >= 0, -a + 9 >= 0, a mod 3 == 0, b - a >= 0, -b + a + 4 >= 0)>
#set2 = affine_set<(a, b) : (a - 1 >= 0, -a - b + 8 >= 0, b >= 0, 3 - b floordiv 2 >= 0)>
#set3 = affine_set<(a, b) : (a - 2 * b == 0, b >= 0, -b + 4 >= 0)>
#rows = affine_map<(a, b) -> (a, b)>
#columns = affine_map<(a, b) -> (b, a)>
#diagonals = affine_map<(a, b) -> (a + b, b)>
#upwards = affine_map<(a, b) -> (-a, b)>
#even_first = affine_map<(a, b) -> (a mod 2, a * 20 + b)>

func.func private @put_5x1(%z: index, %r: tensor<5x1xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [5, 1], strides: [1, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 4 >= 0, b >= 0, -b + 0 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<5x1xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 4 >= 0, b >= 0, -b + 0 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<5x1xf32> -> !ktdp.access_tile<5x1xindex>
  ktdp.store %r, %t : tensor<5x1xf32>, !ktdp.access_tile<5x1xindex>
  return
}

func.func private @put_10x2(%z: index, %r: tensor<10x2xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [10, 2], strides: [2, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 9 >= 0, b >= 0, -b + 1 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<10x2xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 9 >= 0, b >= 0, -b + 1 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<10x2xf32> -> !ktdp.access_tile<10x2xindex>
  ktdp.store %r, %t : tensor<10x2xf32>, !ktdp.access_tile<10x2xindex>
  return
}

func.func private @put_14x2(%z: index, %r: tensor<14x2xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [14, 2], strides: [2, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 13 >= 0, b >= 0, -b + 1 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<14x2xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 13 >= 0, b >= 0, -b + 1 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<14x2xf32> -> !ktdp.access_tile<14x2xindex>
  ktdp.store %r, %t : tensor<14x2xf32>, !ktdp.access_tile<14x2xindex>
  return
}

func.func private @put_18x2(%z: index, %r: tensor<18x2xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [18, 2], strides: [2, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 17 >= 0, b >= 0, -b + 1 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<18x2xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 17 >= 0, b >= 0, -b + 1 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<18x2xf32> -> !ktdp.access_tile<18x2xindex>
  ktdp.store %r, %t : tensor<18x2xf32>, !ktdp.access_tile<18x2xindex>
  return
}

func.func @set0_rows(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set0, access_tile_order = #rows} : memref<12x17xf32> -> !ktdp.access_tile<14x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set0, access_tile_order = #rows} : memref<12x17xf32> -> !ktdp.access_tile<14x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<14x2xindex> -> tensor<14x2xf32>
  ktdp.store %d, %t : tensor<14x2xf32>, !ktdp.access_tile<14x2xindex>
  func.call @put_14x2(%z, %d) : (index, tensor<14x2xf32>) -> ()
  return
}

func.func @set0_columns(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set0, access_tile_order = #columns} : memref<12x17xf32> -> !ktdp.access_tile<14x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set0, access_tile_order = #columns} : memref<12x17xf32> -> !ktdp.access_tile<14x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<14x2xindex> -> tensor<14x2xf32>
  ktdp.store %d, %t : tensor<14x2xf32>, !ktdp.access_tile<14x2xindex>
  func.call @put_14x2(%z, %d) : (index, tensor<14x2xf32>) -> ()
  return
}

func.func @set0_diagonals(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set0, access_tile_order = #diagonals} : memref<12x17xf32> -> !ktdp.access_tile<14x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set0, access_tile_order = #diagonals} : memref<12x17xf32> -> !ktdp.access_tile<14x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<14x2xindex> -> tensor<14x2xf32>
  ktdp.store %d, %t : tensor<14x2xf32>, !ktdp.access_tile<14x2xindex>
  func.call @put_14x2(%z, %d) : (index, tensor<14x2xf32>) -> ()
  return
}

func.func @set0_upwards(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set0, access_tile_order = #upwards} : memref<12x17xf32> -> !ktdp.access_tile<14x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set0, access_tile_order = #upwards} : memref<12x17xf32> -> !ktdp.access_tile<14x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<14x2xindex> -> tensor<14x2xf32>
  ktdp.store %d, %t : tensor<14x2xf32>, !ktdp.access_tile<14x2xindex>
  func.call @put_14x2(%z, %d) : (index, tensor<14x2xf32>) -> ()
  return
}

func.func @set0_even_first(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set0, access_tile_order = #even_first} : memref<12x17xf32> -> !ktdp.access_tile<14x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set0, access_tile_order = #even_first} : memref<12x17xf32> -> !ktdp.access_tile<14x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<14x2xindex> -> tensor<14x2xf32>
  ktdp.store %d, %t : tensor<14x2xf32>, !ktdp.access_tile<14x2xindex>
  func.call @put_14x2(%z, %d) : (index, tensor<14x2xf32>) -> ()
  return
}

check.case "points: a triangle" {
  %x = check.generate affine_map<(a, b) -> (a * 17 + b + 1)> : tensor<12x17xf32>
  %y = arith.constant dense<0.0> : tensor<12x17xf32>
  %z = arith.constant dense<-1.0> : tensor<14x2xf32>
  %written = arith.constant dense<[
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 38.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 55.0, 56.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 72.0, 73.0, 74.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 89.0, 90.0, 91.0, 92.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 106.0, 107.0, 108.0, 109.0, 110.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 123.0, 124.0, 125.0, 126.0, 127.0, 128.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 140.0, 141.0, 142.0, 143.0, 144.0, 145.0, 146.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<12x17xf32>
  %x_rows, %y_rows, %z_rows = check.run @set0_rows(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<14x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<14x2xf32>)
  check.expect_eq %z_rows, dense<[[38.0, 55.0], [56.0, 72.0], [73.0, 74.0], [89.0, 90.0], [91.0, 92.0], [106.0, 107.0], [108.0, 109.0],
      [110.0, 123.0], [124.0, 125.0], [126.0, 127.0], [128.0, 140.0], [141.0, 142.0], [143.0, 144.0], [145.0,
      146.0]]> : tensor<14x2xf32>
  check.expect_eq %y_rows, %written : tensor<12x17xf32>
  %x_columns, %y_columns, %z_columns = check.run @set0_columns(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<14x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<14x2xf32>)
  check.expect_eq %z_columns, dense<[[38.0, 55.0], [72.0, 89.0], [106.0, 123.0], [140.0, 56.0], [73.0, 90.0], [107.0, 124.0], [141.0, 74.0],
      [91.0, 108.0], [125.0, 142.0], [92.0, 109.0], [126.0, 143.0], [110.0, 127.0], [144.0, 128.0], [145.0,
      146.0]]> : tensor<14x2xf32>
  check.expect_eq %y_columns, %written : tensor<12x17xf32>
  %x_diagonals, %y_diagonals, %z_diagonals = check.run @set0_diagonals(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<14x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<14x2xf32>)
  check.expect_eq %z_diagonals, dense<[[38.0, 55.0], [72.0, 56.0], [89.0, 73.0], [106.0, 90.0], [74.0, 123.0], [107.0, 91.0], [140.0, 124.0],
      [108.0, 92.0], [141.0, 125.0], [109.0, 142.0], [126.0, 110.0], [143.0, 127.0], [144.0, 128.0], [145.0,
      146.0]]> : tensor<14x2xf32>
  check.expect_eq %y_diagonals, %written : tensor<12x17xf32>
  %x_upwards, %y_upwards, %z_upwards = check.run @set0_upwards(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<14x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<14x2xf32>)
  check.expect_eq %z_upwards, dense<[[140.0, 141.0], [142.0, 143.0], [144.0, 145.0], [146.0, 123.0], [124.0, 125.0], [126.0, 127.0], [128.0,
      106.0], [107.0, 108.0], [109.0, 110.0], [89.0, 90.0], [91.0, 92.0], [72.0, 73.0], [74.0, 55.0], [56.0,
      38.0]]> : tensor<14x2xf32>
  check.expect_eq %y_upwards, %written : tensor<12x17xf32>
  %x_even_first, %y_even_first, %z_even_first = check.run @set0_even_first(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<14x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<14x2xf32>)
  check.expect_eq %z_even_first, dense<[[38.0, 72.0], [73.0, 74.0], [106.0, 107.0], [108.0, 109.0], [110.0, 140.0], [141.0, 142.0], [143.0,
      144.0], [145.0, 146.0], [55.0, 56.0], [89.0, 90.0], [91.0, 92.0], [123.0, 124.0], [125.0, 126.0],
      [127.0, 128.0]]> : tensor<14x2xf32>
  check.expect_eq %y_even_first, %written : tensor<12x17xf32>
}

func.func @set1_rows(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set1, access_tile_order = #rows} : memref<12x17xf32> -> !ktdp.access_tile<10x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set1, access_tile_order = #rows} : memref<12x17xf32> -> !ktdp.access_tile<10x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<10x2xindex> -> tensor<10x2xf32>
  ktdp.store %d, %t : tensor<10x2xf32>, !ktdp.access_tile<10x2xindex>
  func.call @put_10x2(%z, %d) : (index, tensor<10x2xf32>) -> ()
  return
}

func.func @set1_columns(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set1, access_tile_order = #columns} : memref<12x17xf32> -> !ktdp.access_tile<10x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set1, access_tile_order = #columns} : memref<12x17xf32> -> !ktdp.access_tile<10x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<10x2xindex> -> tensor<10x2xf32>
  ktdp.store %d, %t : tensor<10x2xf32>, !ktdp.access_tile<10x2xindex>
  func.call @put_10x2(%z, %d) : (index, tensor<10x2xf32>) -> ()
  return
}

func.func @set1_diagonals(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set1, access_tile_order = #diagonals} : memref<12x17xf32> -> !ktdp.access_tile<10x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set1, access_tile_order = #diagonals} : memref<12x17xf32> -> !ktdp.access_tile<10x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<10x2xindex> -> tensor<10x2xf32>
  ktdp.store %d, %t : tensor<10x2xf32>, !ktdp.access_tile<10x2xindex>
  func.call @put_10x2(%z, %d) : (index, tensor<10x2xf32>) -> ()
  return
}

func.func @set1_upwards(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set1, access_tile_order = #upwards} : memref<12x17xf32> -> !ktdp.access_tile<10x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set1, access_tile_order = #upwards} : memref<12x17xf32> -> !ktdp.access_tile<10x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<10x2xindex> -> tensor<10x2xf32>
  ktdp.store %d, %t : tensor<10x2xf32>, !ktdp.access_tile<10x2xindex>
  func.call @put_10x2(%z, %d) : (index, tensor<10x2xf32>) -> ()
  return
}

func.func @set1_even_first(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set1, access_tile_order = #even_first} : memref<12x17xf32> -> !ktdp.access_tile<10x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set1, access_tile_order = #even_first} : memref<12x17xf32> -> !ktdp.access_tile<10x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<10x2xindex> -> tensor<10x2xf32>
  ktdp.store %d, %t : tensor<10x2xf32>, !ktdp.access_tile<10x2xindex>
  func.call @put_10x2(%z, %d) : (index, tensor<10x2xf32>) -> ()
  return
}

check.case "points: every third row of a band" {
  %x = check.generate affine_map<(a, b) -> (a * 17 + b + 1)> : tensor<12x17xf32>
  %y = arith.constant dense<0.0> : tensor<12x17xf32>
  %z = arith.constant dense<-1.0> : tensor<10x2xf32>
  %written = arith.constant dense<[
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 38.0, 39.0, 40.0, 41.0, 42.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 92.0, 93.0, 94.0, 95.0, 96.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 146.0, 147.0, 148.0, 149.0, 150.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 200.0, 201.0, 202.0, 203.0, 204.0]]> : tensor<12x17xf32>
  %x_rows, %y_rows, %z_rows = check.run @set1_rows(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<10x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<10x2xf32>)
  check.expect_eq %z_rows, dense<[[38.0, 39.0], [40.0, 41.0], [42.0, 92.0], [93.0, 94.0], [95.0, 96.0], [146.0, 147.0], [148.0, 149.0],
      [150.0, 200.0], [201.0, 202.0], [203.0, 204.0]]> : tensor<10x2xf32>
  check.expect_eq %y_rows, %written : tensor<12x17xf32>
  %x_columns, %y_columns, %z_columns = check.run @set1_columns(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<10x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<10x2xf32>)
  check.expect_eq %z_columns, dense<[[38.0, 39.0], [40.0, 41.0], [92.0, 42.0], [93.0, 94.0], [95.0, 146.0], [96.0, 147.0], [148.0, 149.0],
      [200.0, 150.0], [201.0, 202.0], [203.0, 204.0]]> : tensor<10x2xf32>
  check.expect_eq %y_columns, %written : tensor<12x17xf32>
  %x_diagonals, %y_diagonals, %z_diagonals = check.run @set1_diagonals(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<10x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<10x2xf32>)
  check.expect_eq %z_diagonals, dense<[[38.0, 39.0], [40.0, 41.0], [42.0, 92.0], [93.0, 94.0], [95.0, 96.0], [146.0, 147.0], [148.0, 149.0],
      [150.0, 200.0], [201.0, 202.0], [203.0, 204.0]]> : tensor<10x2xf32>
  check.expect_eq %y_diagonals, %written : tensor<12x17xf32>
  %x_upwards, %y_upwards, %z_upwards = check.run @set1_upwards(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<10x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<10x2xf32>)
  check.expect_eq %z_upwards, dense<[[200.0, 201.0], [202.0, 203.0], [204.0, 146.0], [147.0, 148.0], [149.0, 150.0], [92.0, 93.0], [94.0,
      95.0], [96.0, 38.0], [39.0, 40.0], [41.0, 42.0]]> : tensor<10x2xf32>
  check.expect_eq %y_upwards, %written : tensor<12x17xf32>
  %x_even_first, %y_even_first, %z_even_first = check.run @set1_even_first(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<10x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<10x2xf32>)
  check.expect_eq %z_even_first, dense<[[38.0, 39.0], [40.0, 41.0], [42.0, 146.0], [147.0, 148.0], [149.0, 150.0], [92.0, 93.0], [94.0, 95.0],
      [96.0, 200.0], [201.0, 202.0], [203.0, 204.0]]> : tensor<10x2xf32>
  check.expect_eq %y_even_first, %written : tensor<12x17xf32>
}

func.func @set2_rows(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set2, access_tile_order = #rows} : memref<12x17xf32> -> !ktdp.access_tile<18x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set2, access_tile_order = #rows} : memref<12x17xf32> -> !ktdp.access_tile<18x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<18x2xindex> -> tensor<18x2xf32>
  ktdp.store %d, %t : tensor<18x2xf32>, !ktdp.access_tile<18x2xindex>
  func.call @put_18x2(%z, %d) : (index, tensor<18x2xf32>) -> ()
  return
}

func.func @set2_columns(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set2, access_tile_order = #columns} : memref<12x17xf32> -> !ktdp.access_tile<18x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set2, access_tile_order = #columns} : memref<12x17xf32> -> !ktdp.access_tile<18x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<18x2xindex> -> tensor<18x2xf32>
  ktdp.store %d, %t : tensor<18x2xf32>, !ktdp.access_tile<18x2xindex>
  func.call @put_18x2(%z, %d) : (index, tensor<18x2xf32>) -> ()
  return
}

func.func @set2_diagonals(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set2, access_tile_order = #diagonals} : memref<12x17xf32> -> !ktdp.access_tile<18x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set2, access_tile_order = #diagonals} : memref<12x17xf32> -> !ktdp.access_tile<18x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<18x2xindex> -> tensor<18x2xf32>
  ktdp.store %d, %t : tensor<18x2xf32>, !ktdp.access_tile<18x2xindex>
  func.call @put_18x2(%z, %d) : (index, tensor<18x2xf32>) -> ()
  return
}

func.func @set2_upwards(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set2, access_tile_order = #upwards} : memref<12x17xf32> -> !ktdp.access_tile<18x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set2, access_tile_order = #upwards} : memref<12x17xf32> -> !ktdp.access_tile<18x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<18x2xindex> -> tensor<18x2xf32>
  ktdp.store %d, %t : tensor<18x2xf32>, !ktdp.access_tile<18x2xindex>
  func.call @put_18x2(%z, %d) : (index, tensor<18x2xf32>) -> ()
  return
}

func.func @set2_even_first(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set2, access_tile_order = #even_first} : memref<12x17xf32> -> !ktdp.access_tile<18x2xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set2, access_tile_order = #even_first} : memref<12x17xf32> -> !ktdp.access_tile<18x2xindex>
  %d = ktdp.load %s : !ktdp.access_tile<18x2xindex> -> tensor<18x2xf32>
  ktdp.store %d, %t : tensor<18x2xf32>, !ktdp.access_tile<18x2xindex>
  func.call @put_18x2(%z, %d) : (index, tensor<18x2xf32>) -> ()
  return
}

check.case "points: below a diagonal" {
  %x = check.generate affine_map<(a, b) -> (a * 17 + b + 1)> : tensor<12x17xf32>
  %y = arith.constant dense<0.0> : tensor<12x17xf32>
  %z = arith.constant dense<-1.0> : tensor<18x2xf32>
  %written = arith.constant dense<[
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 55.0, 56.0, 57.0, 58.0, 59.0, 60.0, 61.0, 62.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 72.0, 73.0, 74.0, 75.0, 76.0, 77.0, 78.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 89.0, 90.0, 91.0, 92.0, 93.0, 94.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 106.0, 107.0, 108.0, 109.0, 110.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 123.0, 124.0, 125.0, 126.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 140.0, 141.0, 142.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 157.0, 158.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 174.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<12x17xf32>
  %x_rows, %y_rows, %z_rows = check.run @set2_rows(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<18x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<18x2xf32>)
  check.expect_eq %z_rows, dense<[[55.0, 56.0], [57.0, 58.0], [59.0, 60.0], [61.0, 62.0], [72.0, 73.0], [74.0, 75.0], [76.0, 77.0],
      [78.0, 89.0], [90.0, 91.0], [92.0, 93.0], [94.0, 106.0], [107.0, 108.0], [109.0, 110.0], [123.0, 124.0],
      [125.0, 126.0], [140.0, 141.0], [142.0, 157.0], [158.0, 174.0]]> : tensor<18x2xf32>
  check.expect_eq %y_rows, %written : tensor<12x17xf32>
  %x_columns, %y_columns, %z_columns = check.run @set2_columns(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<18x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<18x2xf32>)
  check.expect_eq %z_columns, dense<[[55.0, 72.0], [89.0, 106.0], [123.0, 140.0], [157.0, 174.0], [56.0, 73.0], [90.0, 107.0], [124.0,
      141.0], [158.0, 57.0], [74.0, 91.0], [108.0, 125.0], [142.0, 58.0], [75.0, 92.0], [109.0, 126.0], [59.0,
      76.0], [93.0, 110.0], [60.0, 77.0], [94.0, 61.0], [78.0, 62.0]]> : tensor<18x2xf32>
  check.expect_eq %y_columns, %written : tensor<12x17xf32>
  %x_diagonals, %y_diagonals, %z_diagonals = check.run @set2_diagonals(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<18x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<18x2xf32>)
  check.expect_eq %z_diagonals, dense<[[55.0, 72.0], [56.0, 89.0], [73.0, 57.0], [106.0, 90.0], [74.0, 58.0], [123.0, 107.0], [91.0, 75.0],
      [59.0, 140.0], [124.0, 108.0], [92.0, 76.0], [60.0, 157.0], [141.0, 125.0], [109.0, 93.0], [77.0, 61.0],
      [174.0, 158.0], [142.0, 126.0], [110.0, 94.0], [78.0, 62.0]]> : tensor<18x2xf32>
  check.expect_eq %y_diagonals, %written : tensor<12x17xf32>
  %x_upwards, %y_upwards, %z_upwards = check.run @set2_upwards(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<18x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<18x2xf32>)
  check.expect_eq %z_upwards, dense<[[174.0, 157.0], [158.0, 140.0], [141.0, 142.0], [123.0, 124.0], [125.0, 126.0], [106.0, 107.0], [108.0,
      109.0], [110.0, 89.0], [90.0, 91.0], [92.0, 93.0], [94.0, 72.0], [73.0, 74.0], [75.0, 76.0], [77.0,
      78.0], [55.0, 56.0], [57.0, 58.0], [59.0, 60.0], [61.0, 62.0]]> : tensor<18x2xf32>
  check.expect_eq %y_upwards, %written : tensor<12x17xf32>
  %x_even_first, %y_even_first, %z_even_first = check.run @set2_even_first(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<18x2xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<18x2xf32>)
  check.expect_eq %z_even_first, dense<[[72.0, 73.0], [74.0, 75.0], [76.0, 77.0], [78.0, 106.0], [107.0, 108.0], [109.0, 110.0], [140.0,
      141.0], [142.0, 174.0], [55.0, 56.0], [57.0, 58.0], [59.0, 60.0], [61.0, 62.0], [89.0, 90.0], [91.0,
      92.0], [93.0, 94.0], [123.0, 124.0], [125.0, 126.0], [157.0, 158.0]]> : tensor<18x2xf32>
  check.expect_eq %y_even_first, %written : tensor<12x17xf32>
}

func.func @set3_rows(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set3, access_tile_order = #rows} : memref<12x17xf32> -> !ktdp.access_tile<5x1xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set3, access_tile_order = #rows} : memref<12x17xf32> -> !ktdp.access_tile<5x1xindex>
  %d = ktdp.load %s : !ktdp.access_tile<5x1xindex> -> tensor<5x1xf32>
  ktdp.store %d, %t : tensor<5x1xf32>, !ktdp.access_tile<5x1xindex>
  func.call @put_5x1(%z, %d) : (index, tensor<5x1xf32>) -> ()
  return
}

func.func @set3_columns(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set3, access_tile_order = #columns} : memref<12x17xf32> -> !ktdp.access_tile<5x1xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set3, access_tile_order = #columns} : memref<12x17xf32> -> !ktdp.access_tile<5x1xindex>
  %d = ktdp.load %s : !ktdp.access_tile<5x1xindex> -> tensor<5x1xf32>
  ktdp.store %d, %t : tensor<5x1xf32>, !ktdp.access_tile<5x1xindex>
  func.call @put_5x1(%z, %d) : (index, tensor<5x1xf32>) -> ()
  return
}

func.func @set3_diagonals(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set3, access_tile_order = #diagonals} : memref<12x17xf32> -> !ktdp.access_tile<5x1xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set3, access_tile_order = #diagonals} : memref<12x17xf32> -> !ktdp.access_tile<5x1xindex>
  %d = ktdp.load %s : !ktdp.access_tile<5x1xindex> -> tensor<5x1xf32>
  ktdp.store %d, %t : tensor<5x1xf32>, !ktdp.access_tile<5x1xindex>
  func.call @put_5x1(%z, %d) : (index, tensor<5x1xf32>) -> ()
  return
}

func.func @set3_upwards(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set3, access_tile_order = #upwards} : memref<12x17xf32> -> !ktdp.access_tile<5x1xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set3, access_tile_order = #upwards} : memref<12x17xf32> -> !ktdp.access_tile<5x1xindex>
  %d = ktdp.load %s : !ktdp.access_tile<5x1xindex> -> tensor<5x1xf32>
  ktdp.store %d, %t : tensor<5x1xf32>, !ktdp.access_tile<5x1xindex>
  func.call @put_5x1(%z, %d) : (index, tensor<5x1xf32>) -> ()
  return
}

func.func @set3_even_first(%x: index, %y: index, %z: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = ktdp.construct_memory_view %x, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %w = ktdp.construct_memory_view %y, sizes: [12, 17], strides: [17, 1] {coordinate_set = #whole, memory_space = #space} : memref<12x17xf32>
  %s = ktdp.construct_access_tile %v[%c2, %c3] {access_tile_set = #set3, access_tile_order = #even_first} : memref<12x17xf32> -> !ktdp.access_tile<5x1xindex>
  %t = ktdp.construct_access_tile %w[%c2, %c3] {access_tile_set = #set3, access_tile_order = #even_first} : memref<12x17xf32> -> !ktdp.access_tile<5x1xindex>
  %d = ktdp.load %s : !ktdp.access_tile<5x1xindex> -> tensor<5x1xf32>
  ktdp.store %d, %t : tensor<5x1xf32>, !ktdp.access_tile<5x1xindex>
  func.call @put_5x1(%z, %d) : (index, tensor<5x1xf32>) -> ()
  return
}

check.case "points: a line" {
  %x = check.generate affine_map<(a, b) -> (a * 17 + b + 1)> : tensor<12x17xf32>
  %y = arith.constant dense<0.0> : tensor<12x17xf32>
  %z = arith.constant dense<-1.0> : tensor<5x1xf32>
  %written = arith.constant dense<[
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 38.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 73.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 108.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 143.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 178.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<12x17xf32>
  %x_rows, %y_rows, %z_rows = check.run @set3_rows(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<5x1xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<5x1xf32>)
  check.expect_eq %z_rows, dense<[[38.0], [73.0], [108.0], [143.0], [178.0]]> : tensor<5x1xf32>
  check.expect_eq %y_rows, %written : tensor<12x17xf32>
  %x_columns, %y_columns, %z_columns = check.run @set3_columns(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<5x1xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<5x1xf32>)
  check.expect_eq %z_columns, dense<[[38.0], [73.0], [108.0], [143.0], [178.0]]> : tensor<5x1xf32>
  check.expect_eq %y_columns, %written : tensor<12x17xf32>
  %x_diagonals, %y_diagonals, %z_diagonals = check.run @set3_diagonals(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<5x1xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<5x1xf32>)
  check.expect_eq %z_diagonals, dense<[[38.0], [73.0], [108.0], [143.0], [178.0]]> : tensor<5x1xf32>
  check.expect_eq %y_diagonals, %written : tensor<12x17xf32>
  %x_upwards, %y_upwards, %z_upwards = check.run @set3_upwards(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<5x1xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<5x1xf32>)
  check.expect_eq %z_upwards, dense<[[178.0], [143.0], [108.0], [73.0], [38.0]]> : tensor<5x1xf32>
  check.expect_eq %y_upwards, %written : tensor<12x17xf32>
  %x_even_first, %y_even_first, %z_even_first = check.run @set3_even_first(%x, %y, %z) : (tensor<12x17xf32>, tensor<12x17xf32>, tensor<5x1xf32>) -> (tensor<12x17xf32>, tensor<12x17xf32>, tensor<5x1xf32>)
  check.expect_eq %z_even_first, dense<[[38.0], [73.0], [108.0], [143.0], [178.0]]> : tensor<5x1xf32>
  check.expect_eq %y_even_first, %written : tensor<12x17xf32>
}
