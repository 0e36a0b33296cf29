// SPDX-License-Identifier: Apache-2.0
// Views that are not boxes, views over partitions, and memref.subview.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=full

#space = #ktdp.memory_space<global>
#rows = affine_map<(a, b) -> (a, b)>

func.func private @put_4x5(%z: index, %r: tensor<4x5xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [4, 5], strides: [5, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 3 >= 0, b >= 0, -b + 4 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<4x5xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 3 >= 0, b >= 0, -b + 4 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<4x5xf32> -> !ktdp.access_tile<4x5xindex>
  ktdp.store %r, %t : tensor<4x5xf32>, !ktdp.access_tile<4x5xindex>
  return
}

func.func private @put_8x1(%z: index, %r: tensor<8x1xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [8, 1], strides: [1, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 0 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<8x1xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 0 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<8x1xf32> -> !ktdp.access_tile<8x1xindex>
  ktdp.store %r, %t : tensor<8x1xf32>, !ktdp.access_tile<8x1xindex>
  return
}

func.func private @put_1x5(%z: index, %r: tensor<1x5xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [1, 5], strides: [5, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 0 >= 0, b >= 0, -b + 4 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<1x5xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 0 >= 0, b >= 0, -b + 4 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<1x5xf32> -> !ktdp.access_tile<1x5xindex>
  ktdp.store %r, %t : tensor<1x5xf32>, !ktdp.access_tile<1x5xindex>
  return
}

func.func private @put_2x5(%z: index, %r: tensor<2x5xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [2, 5], strides: [5, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 1 >= 0, b >= 0, -b + 4 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<2x5xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 1 >= 0, b >= 0, -b + 4 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<2x5xf32> -> !ktdp.access_tile<2x5xindex>
  ktdp.store %r, %t : tensor<2x5xf32>, !ktdp.access_tile<2x5xindex>
  return
}

func.func private @triangle(%x: index) -> memref<8x8xf32> {
  %v = ktdp.construct_memory_view %x, sizes: [8, 8], strides: [8, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, a - b >= 0)>,
    memory_space = #space} : memref<8x8xf32>
  return %v : memref<8x8xf32>
}

func.func @triangle_4x5(%x: index, %z: index, %row: index, %column: index) {
  %v = func.call @triangle(%x) : (index) -> memref<8x8xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 3 >= 0, b >= 0, -b + 4 >= 0)>,
    access_tile_order = #rows} : memref<8x8xf32> -> !ktdp.access_tile<4x5xindex>
  %d = ktdp.load %t : !ktdp.access_tile<4x5xindex> -> tensor<4x5xf32>
  func.call @put_4x5(%z, %d) : (index, tensor<4x5xf32>) -> ()
  return
}

func.func @triangle_8x1(%x: index, %z: index, %row: index, %column: index) {
  %v = func.call @triangle(%x) : (index) -> memref<8x8xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 0 >= 0)>,
    access_tile_order = #rows} : memref<8x8xf32> -> !ktdp.access_tile<8x1xindex>
  %d = ktdp.load %t : !ktdp.access_tile<8x1xindex> -> tensor<8x1xf32>
  func.call @put_8x1(%z, %d) : (index, tensor<8x1xf32>) -> ()
  return
}

func.func @triangle_1x5(%x: index, %z: index, %row: index, %column: index) {
  %v = func.call @triangle(%x) : (index) -> memref<8x8xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 0 >= 0, b >= 0, -b + 4 >= 0)>,
    access_tile_order = #rows} : memref<8x8xf32> -> !ktdp.access_tile<1x5xindex>
  %d = ktdp.load %t : !ktdp.access_tile<1x5xindex> -> tensor<1x5xf32>
  func.call @put_1x5(%z, %d) : (index, tensor<1x5xf32>) -> ()
  return
}

func.func @triangle_2x5(%x: index, %z: index, %row: index, %column: index) {
  %v = func.call @triangle(%x) : (index) -> memref<8x8xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 1 >= 0, b >= 0, -b + 4 >= 0)>,
    access_tile_order = #rows} : memref<8x8xf32> -> !ktdp.access_tile<2x5xindex>
  %d = ktdp.load %t : !ktdp.access_tile<2x5xindex> -> tensor<2x5xf32>
  func.call @put_2x5(%z, %d) : (index, tensor<2x5xf32>) -> ()
  return
}

check.case "tiles inside a triangular view: x[a, b] = 8 a + b, b <= a" {
  %x = check.generate affine_map<(a, b) -> (a * 8 + b)> : tensor<8x8xf32>
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %z4x5 = arith.constant dense<-1.0> : tensor<4x5xf32>
  %x4x5, %r4x5 = check.run @triangle_4x5(%x, %z4x5, %c4, %c0) : (tensor<8x8xf32>, tensor<4x5xf32>, index, index) -> (tensor<8x8xf32>, tensor<4x5xf32>)
  %e4x5 = check.generate affine_map<(a, b) -> (a * 8 + b + 32)> : tensor<4x5xf32>
  check.expect_eq %r4x5, %e4x5 : tensor<4x5xf32>
  %z8x1 = arith.constant dense<-1.0> : tensor<8x1xf32>
  %x8x1, %r8x1 = check.run @triangle_8x1(%x, %z8x1, %c0, %c0) : (tensor<8x8xf32>, tensor<8x1xf32>, index, index) -> (tensor<8x8xf32>, tensor<8x1xf32>)
  %e8x1 = check.generate affine_map<(a, b) -> (a * 8 + b + 0)> : tensor<8x1xf32>
  check.expect_eq %r8x1, %e8x1 : tensor<8x1xf32>
  %z1x5 = arith.constant dense<-1.0> : tensor<1x5xf32>
  %x1x5, %r1x5 = check.run @triangle_1x5(%x, %z1x5, %c7, %c3) : (tensor<8x8xf32>, tensor<1x5xf32>, index, index) -> (tensor<8x8xf32>, tensor<1x5xf32>)
  %e1x5 = check.generate affine_map<(a, b) -> (a * 8 + b + 59)> : tensor<1x5xf32>
  check.expect_eq %r1x5, %e1x5 : tensor<1x5xf32>
}

check.case "a tile that leaves a triangular view" {
  %x = arith.constant dense<0.0> : tensor<8x8xf32>
  %z = arith.constant dense<0.0> : tensor<2x5xf32>
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  check.expect_error "coordinate (3, 4) is not in its view's coordinate set" {
    check.run @triangle_2x5(%x, %z, %c3, %c0) : (tensor<8x8xf32>, tensor<2x5xf32>, index, index) -> (tensor<8x8xf32>, tensor<2x5xf32>)
  }
}

func.func private @put_9x5(%z: index, %r: tensor<9x5xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [9, 5], strides: [5, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 8 >= 0, b >= 0, -b + 4 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<9x5xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 8 >= 0, b >= 0, -b + 4 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<9x5xf32> -> !ktdp.access_tile<9x5xindex>
  ktdp.store %r, %t : tensor<9x5xf32>, !ktdp.access_tile<9x5xindex>
  return
}

// Rows 0 to 6 in a, rows 7 to 11 in b, which is column-major.
func.func private @parts(%a: index, %b: index, %i: index) -> !ktdp.access_tile<9x5xindex> {
  %va = ktdp.construct_memory_view %a, sizes: [7, 5], strides: [5, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 6 >= 0, b >= 0, -b + 4 >= 0)>, memory_space = #space} : memref<7x5xf32>
  %vb = ktdp.construct_memory_view %b, sizes: [5, 5], strides: [1, 5] {
    coordinate_set = affine_set<(a, b) : (a - 7 >= 0, -a + 11 >= 0, b >= 0, -b + 4 >= 0)>, memory_space = #space} : memref<5x5xf32>
  %v = ktdp.construct_distributed_memory_view (%va, %vb : memref<7x5xf32>, memref<5x5xf32>) : memref<12x5xf32>
  %vi = ktdp.construct_memory_view %i, sizes: [9], strides: [1] {
    coordinate_set = affine_set<(r) : (r >= 0, -r + 8 >= 0)>, memory_space = #space} : memref<9xi32>
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%r, %c) %v[ind(%vi[%r]), (%c)] {
    variables_space_set = affine_set<(r, c) : (r >= 0, -r + 8 >= 0, c >= 0, -c + 4 >= 0)>,
    variables_space_order = #rows} : memref<12x5xf32>, memref<9xi32> -> !ktdp.access_tile<9x5xindex>
  return %t : !ktdp.access_tile<9x5xindex>
}

func.func @gather(%a: index, %b: index, %i: index, %z: index) {
  %t = func.call @parts(%a, %b, %i) : (index, index, index) -> !ktdp.access_tile<9x5xindex>
  %d = ktdp.load %t : !ktdp.access_tile<9x5xindex> -> tensor<9x5xf32>
  func.call @put_9x5(%z, %d) : (index, tensor<9x5xf32>) -> ()
  return
}

func.func @scatter(%a: index, %b: index, %i: index, %by: f32) {
  %t = func.call @parts(%a, %b, %i) : (index, index, index) -> !ktdp.access_tile<9x5xindex>
  %d = ktdp.load %t : !ktdp.access_tile<9x5xindex> -> tensor<9x5xf32>
  %s = tensor.splat %by : tensor<9x5xf32>
  %r = arith.addf %d, %s : tensor<9x5xf32>
  ktdp.store %r, %t : tensor<9x5xf32>, !ktdp.access_tile<9x5xindex>
  return
}

// The row r of both parts together is [5 r, ..., 5 r + 4].
check.case "a gather from two partitions, and a scatter to them" {
  %a = check.generate affine_map<(r, c) -> (r * 5 + c)> : tensor<7x5xf32>
  %b = check.generate affine_map<(c, r) -> (r * 5 + c + 35)> : tensor<5x5xf32>
  %i = arith.constant dense<[3, 11, 0, 7, 7, 6, 2, 9, 10]> : tensor<9xi32>
  %z = arith.constant dense<-1.0> : tensor<9x5xf32>
  %r:4 = check.run @gather(%a, %b, %i, %z) : (tensor<7x5xf32>, tensor<5x5xf32>, tensor<9xi32>, tensor<9x5xf32>) -> (tensor<7x5xf32>, tensor<5x5xf32>, tensor<9xi32>, tensor<9x5xf32>)
  check.expect_eq %r#3, dense<[[15.0, 16.0, 17.0, 18.0, 19.0],
      [55.0, 56.0, 57.0, 58.0, 59.0],
      [0.0, 1.0, 2.0, 3.0, 4.0],
      [35.0, 36.0, 37.0, 38.0, 39.0],
      [35.0, 36.0, 37.0, 38.0, 39.0],
      [30.0, 31.0, 32.0, 33.0, 34.0],
      [10.0, 11.0, 12.0, 13.0, 14.0],
      [45.0, 46.0, 47.0, 48.0, 49.0],
      [50.0, 51.0, 52.0, 53.0, 54.0]]> : tensor<9x5xf32>
  %rows = arith.constant dense<[4, 11, 0, 7, 2, 9, 6, 1, 10]> : tensor<9xi32>
  %by = arith.constant 100.0 : f32
  %s:3 = check.run @scatter(%a, %b, %rows, %by) : (tensor<7x5xf32>, tensor<5x5xf32>, tensor<9xi32>, f32) -> (tensor<7x5xf32>, tensor<5x5xf32>, tensor<9xi32>)
  check.expect_eq %s#0, dense<[[100.0, 101.0, 102.0, 103.0, 104.0],
      [105.0, 106.0, 107.0, 108.0, 109.0],
      [110.0, 111.0, 112.0, 113.0, 114.0],
      [15.0, 16.0, 17.0, 18.0, 19.0],
      [120.0, 121.0, 122.0, 123.0, 124.0],
      [25.0, 26.0, 27.0, 28.0, 29.0],
      [130.0, 131.0, 132.0, 133.0, 134.0]]> : tensor<7x5xf32>
  check.expect_eq %s#1, dense<[[135.0, 40.0, 145.0, 150.0, 155.0],
      [136.0, 41.0, 146.0, 151.0, 156.0],
      [137.0, 42.0, 147.0, 152.0, 157.0],
      [138.0, 43.0, 148.0, 153.0, 158.0],
      [139.0, 44.0, 149.0, 154.0, 159.0]]> : tensor<5x5xf32>
}

check.case "indices stay inside the view" {
  %a = arith.constant dense<0.0> : tensor<7x5xf32>
  %b = arith.constant dense<0.0> : tensor<5x5xf32>
  %z = arith.constant dense<-1.0> : tensor<9x5xf32>
  %low = arith.constant dense<[3, 11, 0, 7, -1, 6, 2, 9, 10]> : tensor<9xi32>
  check.expect_error "index value -1 for view dimension 0 is outside its range 0 to 11" {
    check.run @gather(%a, %b, %low, %z) : (tensor<7x5xf32>, tensor<5x5xf32>, tensor<9xi32>, tensor<9x5xf32>) -> (tensor<7x5xf32>, tensor<5x5xf32>, tensor<9xi32>, tensor<9x5xf32>)
  }
  %high = arith.constant dense<[3, 11, 0, 7, 12, 6, 2, 9, 10]> : tensor<9xi32>
  check.expect_error "index value 12 for view dimension 0 is outside its range 0 to 11" {
    check.run @gather(%a, %b, %high, %z) : (tensor<7x5xf32>, tensor<5x5xf32>, tensor<9xi32>, tensor<9x5xf32>) -> (tensor<7x5xf32>, tensor<5x5xf32>, tensor<9xi32>, tensor<9x5xf32>)
  }
}

func.func private @put_3x3(%z: index, %r: tensor<3x3xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [3, 3], strides: [3, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 2 >= 0, b >= 0, -b + 2 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<3x3xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 2 >= 0, b >= 0, -b + 2 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<3x3xf32> -> !ktdp.access_tile<3x3xindex>
  ktdp.store %r, %t : tensor<3x3xf32>, !ktdp.access_tile<3x3xindex>
  return
}

func.func @subview(%x: index, %z: index, %at: index) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %x, sizes: [6, 9, 10], strides: [90, 10, 1] {
    coordinate_set = affine_set<(a, b, c) : (a >= 0, -a + 5 >= 0, b >= 0, -b + 8 >= 0, c >= 0, -c + 9 >= 0)>,
    memory_space = #space} : memref<6x9x10xf32>
  %s = memref.subview %v[%at, 1, 2] [1, 4, 3] [1, 2, 3]
    : memref<6x9x10xf32> to memref<4x3xf32, strided<[20, 3], offset: ?>>
  %u = memref.subview %s[1, 0] [3, 3] [1, 1]
    : memref<4x3xf32, strided<[20, 3], offset: ?>> to memref<3x3xf32, strided<[20, 3], offset: ?>>
  %t = ktdp.construct_access_tile %u[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 2 >= 0, b >= 0, -b + 2 >= 0)>,
    access_tile_order = #rows} : memref<3x3xf32, strided<[20, 3], offset: ?>> -> !ktdp.access_tile<3x3xindex>
  %d = ktdp.load %t : !ktdp.access_tile<3x3xindex> -> tensor<3x3xf32>
  func.call @put_3x3(%z, %d) : (index, tensor<3x3xf32>) -> ()
  return
}

check.case "subviews of subviews: z[i, j] = x[4, 3 + 2 i, 2 + 3 j]" {
  %x = check.generate affine_map<(a, b, c) -> (a * 100 + b * 10 + c)> : tensor<6x9x10xf32>
  %z = arith.constant dense<-1.0> : tensor<3x3xf32>
  %c4 = arith.constant 4 : index
  %x1, %r = check.run @subview(%x, %z, %c4) : (tensor<6x9x10xf32>, tensor<3x3xf32>, index) -> (tensor<6x9x10xf32>, tensor<3x3xf32>)
  check.expect_eq %r, dense<[[432.0, 435.0, 438.0], [452.0, 455.0, 458.0], [472.0, 475.0, 478.0]]> : tensor<3x3xf32>
  %c6 = arith.constant 6 : index
  check.expect_error "dimension 0 at offset 6 with 1 elements and stride 1 leaves the source's range 0 to 5" {
    check.run @subview(%x, %z, %c6) : (tensor<6x9x10xf32>, tensor<3x3xf32>, index) -> (tensor<6x9x10xf32>, tensor<3x3xf32>)
  }
}
