// SPDX-License-Identifier: Apache-2.0
// A view over three partitions, one of them column-major, with a hole: whole[r, c]
// is 10 r + c, rows 0 to 6 in a (columns 0 to 5) and b (6 to 9), rows 7 to 10 in c.
// Behind row 10 there is nothing: it reads as zeros.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=full

#space = #ktdp.memory_space<global>
!a = tensor<7x6xf32>
!b = tensor<7x4xf32>
!c = tensor<10x4xf32>

func.func private @whole(%a: index, %b: index, %c: index) -> memref<11x10xf32> {
  %va = ktdp.construct_memory_view %a, sizes: [7, 6], strides: [6, 1] {
    coordinate_set = affine_set<(r, c) : (r >= 0, -r + 6 >= 0, c >= 0, -c + 5 >= 0)>, memory_space = #space} : memref<7x6xf32>
  %vb = ktdp.construct_memory_view %b, sizes: [7, 4], strides: [4, 1] {
    coordinate_set = affine_set<(r, c) : (r >= 0, -r + 6 >= 0, c - 6 >= 0, -c + 9 >= 0)>, memory_space = #space} : memref<7x4xf32>
  %vc = ktdp.construct_memory_view %c, sizes: [4, 10], strides: [1, 4] {
    coordinate_set = affine_set<(r, c) : (r - 7 >= 0, -r + 10 >= 0, c >= 0, -c + 9 >= 0)>, memory_space = #space} : memref<4x10xf32>
  %v = ktdp.construct_distributed_memory_view (%va, %vb, %vc : memref<7x6xf32>, memref<7x4xf32>, memref<4x10xf32>) : memref<11x10xf32>
  return %v : memref<11x10xf32>
}

func.func private @put_11x10(%z: index, %r: tensor<11x10xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [11, 10], strides: [10, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 10 >= 0, b >= 0, -b + 9 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<11x10xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 10 >= 0, b >= 0, -b + 9 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<11x10xf32> -> !ktdp.access_tile<11x10xindex>
  ktdp.store %r, %t : tensor<11x10xf32>, !ktdp.access_tile<11x10xindex>
  return
}

func.func private @put_10x11(%z: index, %r: tensor<10x11xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [10, 11], strides: [11, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 9 >= 0, b >= 0, -b + 10 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<10x11xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 9 >= 0, b >= 0, -b + 10 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<10x11xf32> -> !ktdp.access_tile<10x11xindex>
  ktdp.store %r, %t : tensor<10x11xf32>, !ktdp.access_tile<10x11xindex>
  return
}

func.func private @put_5x5(%z: index, %r: tensor<5x5xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [5, 5], strides: [5, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 4 >= 0, b >= 0, -b + 4 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<5x5xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 4 >= 0, b >= 0, -b + 4 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<5x5xf32> -> !ktdp.access_tile<5x5xindex>
  ktdp.store %r, %t : tensor<5x5xf32>, !ktdp.access_tile<5x5xindex>
  return
}

func.func private @put_2x2(%z: index, %r: tensor<2x2xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [2, 2], strides: [2, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 1 >= 0, b >= 0, -b + 1 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<2x2xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 1 >= 0, b >= 0, -b + 1 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<2x2xf32> -> !ktdp.access_tile<2x2xindex>
  ktdp.store %r, %t : tensor<2x2xf32>, !ktdp.access_tile<2x2xindex>
  return
}

func.func private @put_4x10(%z: index, %r: tensor<4x10xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [4, 10], strides: [10, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 3 >= 0, b >= 0, -b + 9 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<4x10xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 3 >= 0, b >= 0, -b + 9 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<4x10xf32> -> !ktdp.access_tile<4x10xindex>
  ktdp.store %r, %t : tensor<4x10xf32>, !ktdp.access_tile<4x10xindex>
  return
}

func.func private @put_10x4(%z: index, %r: tensor<10x4xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [10, 4], strides: [4, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 9 >= 0, b >= 0, -b + 3 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<10x4xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 9 >= 0, b >= 0, -b + 3 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<10x4xf32> -> !ktdp.access_tile<10x4xindex>
  ktdp.store %r, %t : tensor<10x4xf32>, !ktdp.access_tile<10x4xindex>
  return
}

func.func @rows_11x10(%a: index, %b: index, %c: index, %z: index, %row: index, %column: index) {
  %v = func.call @whole(%a, %b, %c) : (index, index, index) -> memref<11x10xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(r, c) : (r >= 0, -r + 10 >= 0, c >= 0, -c + 9 >= 0)>,
    access_tile_order = affine_map<(r, c) -> (r, c)>} : memref<11x10xf32> -> !ktdp.access_tile<11x10xindex>
  %d = ktdp.load %t : !ktdp.access_tile<11x10xindex> -> tensor<11x10xf32>
  func.call @put_11x10(%z, %d) : (index, tensor<11x10xf32>) -> ()
  return
}

func.func @columns_11x10(%a: index, %b: index, %c: index, %z: index, %row: index, %column: index) {
  %v = func.call @whole(%a, %b, %c) : (index, index, index) -> memref<11x10xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(r, c) : (r >= 0, -r + 10 >= 0, c >= 0, -c + 9 >= 0)>,
    access_tile_order = affine_map<(r, c) -> (c, r)>} : memref<11x10xf32> -> !ktdp.access_tile<10x11xindex>
  %d = ktdp.load %t : !ktdp.access_tile<10x11xindex> -> tensor<10x11xf32>
  func.call @put_10x11(%z, %d) : (index, tensor<10x11xf32>) -> ()
  return
}

check.case "11x10 from (0, 0)" {
  %a = check.generate affine_map<(r, c) -> (r * 10 + c)> : !a
  %b = check.generate affine_map<(r, c) -> (r * 10 + c + 6)> : !b
  %c = check.generate affine_map<(c, r) -> (r * 10 + c + 70)> : !c
  %row = arith.constant 0 : index
  %column = arith.constant 0 : index
  %z_rows = arith.constant dense<-1.0> : tensor<11x10xf32>
  %rows:4 = check.run @rows_11x10(%a, %b, %c, %z_rows, %row, %column) : (!a, !b, !c, tensor<11x10xf32>, index, index) -> (!a, !b, !c, tensor<11x10xf32>)
  %e_rows = check.generate affine_map<(r, c) -> (r * 10 + c + 0)> : tensor<11x10xf32>
  check.expect_eq %rows#3, %e_rows : tensor<11x10xf32>
  %z_columns = arith.constant dense<-1.0> : tensor<10x11xf32>
  %columns:4 = check.run @columns_11x10(%a, %b, %c, %z_columns, %row, %column) : (!a, !b, !c, tensor<10x11xf32>, index, index) -> (!a, !b, !c, tensor<10x11xf32>)
  %e_columns = check.generate affine_map<(c, r) -> (r * 10 + c + 0)> : tensor<10x11xf32>
  check.expect_eq %columns#3, %e_columns : tensor<10x11xf32>
}

func.func @rows_5x5(%a: index, %b: index, %c: index, %z: index, %row: index, %column: index) {
  %v = func.call @whole(%a, %b, %c) : (index, index, index) -> memref<11x10xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(r, c) : (r >= 0, -r + 4 >= 0, c >= 0, -c + 4 >= 0)>,
    access_tile_order = affine_map<(r, c) -> (r, c)>} : memref<11x10xf32> -> !ktdp.access_tile<5x5xindex>
  %d = ktdp.load %t : !ktdp.access_tile<5x5xindex> -> tensor<5x5xf32>
  func.call @put_5x5(%z, %d) : (index, tensor<5x5xf32>) -> ()
  return
}

func.func @columns_5x5(%a: index, %b: index, %c: index, %z: index, %row: index, %column: index) {
  %v = func.call @whole(%a, %b, %c) : (index, index, index) -> memref<11x10xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(r, c) : (r >= 0, -r + 4 >= 0, c >= 0, -c + 4 >= 0)>,
    access_tile_order = affine_map<(r, c) -> (c, r)>} : memref<11x10xf32> -> !ktdp.access_tile<5x5xindex>
  %d = ktdp.load %t : !ktdp.access_tile<5x5xindex> -> tensor<5x5xf32>
  func.call @put_5x5(%z, %d) : (index, tensor<5x5xf32>) -> ()
  return
}

check.case "5x5 from (4, 3)" {
  %a = check.generate affine_map<(r, c) -> (r * 10 + c)> : !a
  %b = check.generate affine_map<(r, c) -> (r * 10 + c + 6)> : !b
  %c = check.generate affine_map<(c, r) -> (r * 10 + c + 70)> : !c
  %row = arith.constant 4 : index
  %column = arith.constant 3 : index
  %z_rows = arith.constant dense<-1.0> : tensor<5x5xf32>
  %rows:4 = check.run @rows_5x5(%a, %b, %c, %z_rows, %row, %column) : (!a, !b, !c, tensor<5x5xf32>, index, index) -> (!a, !b, !c, tensor<5x5xf32>)
  %e_rows = check.generate affine_map<(r, c) -> (r * 10 + c + 43)> : tensor<5x5xf32>
  check.expect_eq %rows#3, %e_rows : tensor<5x5xf32>
  %z_columns = arith.constant dense<-1.0> : tensor<5x5xf32>
  %columns:4 = check.run @columns_5x5(%a, %b, %c, %z_columns, %row, %column) : (!a, !b, !c, tensor<5x5xf32>, index, index) -> (!a, !b, !c, tensor<5x5xf32>)
  %e_columns = check.generate affine_map<(c, r) -> (r * 10 + c + 43)> : tensor<5x5xf32>
  check.expect_eq %columns#3, %e_columns : tensor<5x5xf32>
}

func.func @rows_2x2(%a: index, %b: index, %c: index, %z: index, %row: index, %column: index) {
  %v = func.call @whole(%a, %b, %c) : (index, index, index) -> memref<11x10xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(r, c) : (r >= 0, -r + 1 >= 0, c >= 0, -c + 1 >= 0)>,
    access_tile_order = affine_map<(r, c) -> (r, c)>} : memref<11x10xf32> -> !ktdp.access_tile<2x2xindex>
  %d = ktdp.load %t : !ktdp.access_tile<2x2xindex> -> tensor<2x2xf32>
  func.call @put_2x2(%z, %d) : (index, tensor<2x2xf32>) -> ()
  return
}

func.func @columns_2x2(%a: index, %b: index, %c: index, %z: index, %row: index, %column: index) {
  %v = func.call @whole(%a, %b, %c) : (index, index, index) -> memref<11x10xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(r, c) : (r >= 0, -r + 1 >= 0, c >= 0, -c + 1 >= 0)>,
    access_tile_order = affine_map<(r, c) -> (c, r)>} : memref<11x10xf32> -> !ktdp.access_tile<2x2xindex>
  %d = ktdp.load %t : !ktdp.access_tile<2x2xindex> -> tensor<2x2xf32>
  func.call @put_2x2(%z, %d) : (index, tensor<2x2xf32>) -> ()
  return
}

check.case "2x2 from (8, 1)" {
  %a = check.generate affine_map<(r, c) -> (r * 10 + c)> : !a
  %b = check.generate affine_map<(r, c) -> (r * 10 + c + 6)> : !b
  %c = check.generate affine_map<(c, r) -> (r * 10 + c + 70)> : !c
  %row = arith.constant 8 : index
  %column = arith.constant 1 : index
  %z_rows = arith.constant dense<-1.0> : tensor<2x2xf32>
  %rows:4 = check.run @rows_2x2(%a, %b, %c, %z_rows, %row, %column) : (!a, !b, !c, tensor<2x2xf32>, index, index) -> (!a, !b, !c, tensor<2x2xf32>)
  %e_rows = check.generate affine_map<(r, c) -> (r * 10 + c + 81)> : tensor<2x2xf32>
  check.expect_eq %rows#3, %e_rows : tensor<2x2xf32>
  %z_columns = arith.constant dense<-1.0> : tensor<2x2xf32>
  %columns:4 = check.run @columns_2x2(%a, %b, %c, %z_columns, %row, %column) : (!a, !b, !c, tensor<2x2xf32>, index, index) -> (!a, !b, !c, tensor<2x2xf32>)
  %e_columns = check.generate affine_map<(c, r) -> (r * 10 + c + 81)> : tensor<2x2xf32>
  check.expect_eq %columns#3, %e_columns : tensor<2x2xf32>
}

func.func @rows_4x10(%a: index, %b: index, %c: index, %z: index, %row: index, %column: index) {
  %v = func.call @whole(%a, %b, %c) : (index, index, index) -> memref<11x10xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(r, c) : (r >= 0, -r + 3 >= 0, c >= 0, -c + 9 >= 0)>,
    access_tile_order = affine_map<(r, c) -> (r, c)>} : memref<11x10xf32> -> !ktdp.access_tile<4x10xindex>
  %d = ktdp.load %t : !ktdp.access_tile<4x10xindex> -> tensor<4x10xf32>
  func.call @put_4x10(%z, %d) : (index, tensor<4x10xf32>) -> ()
  return
}

func.func @columns_4x10(%a: index, %b: index, %c: index, %z: index, %row: index, %column: index) {
  %v = func.call @whole(%a, %b, %c) : (index, index, index) -> memref<11x10xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(r, c) : (r >= 0, -r + 3 >= 0, c >= 0, -c + 9 >= 0)>,
    access_tile_order = affine_map<(r, c) -> (c, r)>} : memref<11x10xf32> -> !ktdp.access_tile<10x4xindex>
  %d = ktdp.load %t : !ktdp.access_tile<10x4xindex> -> tensor<10x4xf32>
  func.call @put_10x4(%z, %d) : (index, tensor<10x4xf32>) -> ()
  return
}

check.case "4x10 from (8, 0)" {
  %a = check.generate affine_map<(r, c) -> (r * 10 + c)> : !a
  %b = check.generate affine_map<(r, c) -> (r * 10 + c + 6)> : !b
  %c = check.generate affine_map<(c, r) -> (r * 10 + c + 70)> : !c
  %row = arith.constant 8 : index
  %column = arith.constant 0 : index
  %z_rows = arith.constant dense<-1.0> : tensor<4x10xf32>
  %rows:4 = check.run @rows_4x10(%a, %b, %c, %z_rows, %row, %column) : (!a, !b, !c, tensor<4x10xf32>, index, index) -> (!a, !b, !c, tensor<4x10xf32>)
  check.expect_eq %rows#3, dense<[[80.0, 81.0, 82.0, 83.0, 84.0, 85.0, 86.0, 87.0, 88.0, 89.0],
      [90.0, 91.0, 92.0, 93.0, 94.0, 95.0, 96.0, 97.0, 98.0, 99.0],
      [100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0, 107.0, 108.0, 109.0],
      [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<4x10xf32>
  %z_columns = arith.constant dense<-1.0> : tensor<10x4xf32>
  %columns:4 = check.run @columns_4x10(%a, %b, %c, %z_columns, %row, %column) : (!a, !b, !c, tensor<10x4xf32>, index, index) -> (!a, !b, !c, tensor<10x4xf32>)
  check.expect_eq %columns#3, dense<[[80.0, 90.0, 100.0, 0.0],
      [81.0, 91.0, 101.0, 0.0],
      [82.0, 92.0, 102.0, 0.0],
      [83.0, 93.0, 103.0, 0.0],
      [84.0, 94.0, 104.0, 0.0],
      [85.0, 95.0, 105.0, 0.0],
      [86.0, 96.0, 106.0, 0.0],
      [87.0, 97.0, 107.0, 0.0],
      [88.0, 98.0, 108.0, 0.0],
      [89.0, 99.0, 109.0, 0.0]]> : tensor<10x4xf32>
}

func.func private @put_1x1(%z: index, %r: tensor<1x1xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [1, 1], strides: [1, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 0 >= 0, b >= 0, -b + 0 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<1x1xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 0 >= 0, b >= 0, -b + 0 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<1x1xf32> -> !ktdp.access_tile<1x1xindex>
  ktdp.store %r, %t : tensor<1x1xf32>, !ktdp.access_tile<1x1xindex>
  return
}

func.func @one(%a: index, %b: index, %c: index, %z: index, %row: index, %column: index) {
  %v = func.call @whole(%a, %b, %c) : (index, index, index) -> memref<11x10xf32>
  %t = ktdp.construct_access_tile %v[%row, %column] {
    access_tile_set = affine_set<(r, c) : (r >= 0, -r + 0 >= 0, c >= 0, -c + 0 >= 0)>,
    access_tile_order = affine_map<(r, c) -> (r, c)>} : memref<11x10xf32> -> !ktdp.access_tile<1x1xindex>
  %d = ktdp.load %t : !ktdp.access_tile<1x1xindex> -> tensor<1x1xf32>
  func.call @put_1x1(%z, %d) : (index, tensor<1x1xf32>) -> ()
  return
}

check.case "no partition at all" {
  %a = check.generate affine_map<(r, c) -> (r * 10 + c)> : !a
  %b = check.generate affine_map<(r, c) -> (r * 10 + c + 6)> : !b
  %c = check.generate affine_map<(c, r) -> (r * 10 + c + 70)> : !c
  %row = arith.constant 11 : index
  %column = arith.constant 0 : index
  %z = arith.constant dense<1.0> : tensor<1x1xf32>
  check.expect_error "no partition covers the access region" {
    check.run @one(%a, %b, %c, %z, %row, %column) : (!a, !b, !c, tensor<1x1xf32>, index, index) -> (!a, !b, !c, tensor<1x1xf32>)
  }
}
