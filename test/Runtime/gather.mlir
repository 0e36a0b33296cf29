// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters of rows. x[r, c] = 128 r + c, so that an element says
// where it lay.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=full

#space = #ktdp.memory_space<global>
#rows = affine_map<(a, b) -> (a, b)>
#all = affine_set<(a, b) : (a >= 0, -a + 63 >= 0, b >= 0, -b + 127 >= 0)>
#some = affine_set<(a, b) : (a >= 0, -a + 19 >= 0, b >= 0, -b + 127 >= 0)>
!x = tensor<64x128xf32>
!y = tensor<20x128xf32>
!i = tensor<20xi32>

func.func private @put(%z: index, %r: tensor<20x128xf32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %z, sizes: [20, 128], strides: [128, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 19 >= 0, b >= 0, -b + 127 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<20x128xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 19 >= 0, b >= 0, -b + 127 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<20x128xf32> -> !ktdp.access_tile<20x128xindex>
  ktdp.store %r, %t : tensor<20x128xf32>, !ktdp.access_tile<20x128xindex>
  return
}

// Rows %i of %x.
func.func private @taken(%x: index, %i: index) -> !ktdp.access_tile<20x128xindex> {
  %v = ktdp.construct_memory_view %x, sizes: [64, 128], strides: [128, 1] {coordinate_set = #all, memory_space = #space} : memref<64x128xf32>
  %w = ktdp.construct_memory_view %i, sizes: [20], strides: [1] {
    coordinate_set = affine_set<(r) : (r >= 0, -r + 19 >= 0)>, memory_space = #space} : memref<20xi32>
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[ind(%w[%a]), (%b)] {
    variables_space_set = #some, variables_space_order = #rows} : memref<64x128xf32>, memref<20xi32> -> !ktdp.access_tile<20x128xindex>
  return %t : !ktdp.access_tile<20x128xindex>
}

func.func @gather(%x: index, %i: index, %y: index) {
  %t = func.call @taken(%x, %i) : (index, index) -> !ktdp.access_tile<20x128xindex>
  %d = ktdp.load %t : !ktdp.access_tile<20x128xindex> -> !y
  func.call @put(%y, %d) : (index, !y) -> ()
  return
}

check.case "a gather, with indices of 32 and of 64 bits on the host" {
  %x = check.generate affine_map<(r, c) -> (r * 128 + c)> : !x
  %y = arith.constant dense<-1.0> : !y
  %e = check.generate affine_map<(r, c) -> (((r * 7 + 3) mod 64) * 128 + c)> : !y
  %i = check.generate affine_map<(r) -> ((r * 7 + 3) mod 64)> : !i
  %r:3 = check.run @gather(%x, %i, %y) : (!x, !i, !y) -> (!x, !i, !y)
  check.expect_eq %r#2, %e : !y
  %j = check.generate affine_map<(r) -> ((r * 7 + 3) mod 64)> : tensor<20xi64>
  %s:3 = check.run @gather(%x, %j, %y) : (!x, tensor<20xi64>, !y) -> (!x, tensor<20xi64>, !y)
  check.expect_eq %s#2, %e : !y
}

check.case "indices stay inside the view" {
  %x = arith.constant dense<0.0> : !x
  %y = arith.constant dense<0.0> : !y
  %negative = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, -1, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]> : !i
  check.expect_error "index value -1 for view dimension 0 is outside its range 0 to 63" {
    check.run @gather(%x, %negative, %y) : (!x, !i, !y) -> (!x, !i, !y)
  }
  %past = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 64, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]> : !i
  check.expect_error "index value 64 for view dimension 0 is outside its range 0 to 63" {
    check.run @gather(%x, %past, %y) : (!x, !i, !y) -> (!x, !i, !y)
  }
  %largest = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 2147483647, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]> : !i
  check.expect_error "index value 2147483647 for view dimension 0 is outside its range 0 to 63" {
    check.run @gather(%x, %largest, %y) : (!x, !i, !y) -> (!x, !i, !y)
  }
}

func.func @scatter(%y: index, %i: index, %x: index) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %y, sizes: [20, 128], strides: [128, 1] {coordinate_set = #some, memory_space = #space} : memref<20x128xf32>
  %s = ktdp.construct_access_tile %v[%c0, %c0] {access_tile_set = #some, access_tile_order = #rows} : memref<20x128xf32> -> !ktdp.access_tile<20x128xindex>
  %d = ktdp.load %s : !ktdp.access_tile<20x128xindex> -> !y
  %t = func.call @taken(%x, %i) : (index, index) -> !ktdp.access_tile<20x128xindex>
  ktdp.store %d, %t : !y, !ktdp.access_tile<20x128xindex>
  return
}

func.func @parts(%x: !x) -> (!y, !y, tensor<24x128xf32>) {
  %a = tensor.extract_slice %x[0, 0] [20, 128] [1, 1] : !x to !y
  %b = tensor.extract_slice %x[20, 0] [20, 128] [1, 1] : !x to !y
  %c = tensor.extract_slice %x[40, 0] [24, 128] [1, 1] : !x to tensor<24x128xf32>
  return %a, %b, %c : !y, !y, tensor<24x128xf32>
}

// To the rows 20 to 39 in another order: row a goes to 20 + (7 a + 3) mod 20, so
// that row r comes from 3 (r - 20) - 9 mod 20.
check.case "a scatter changes the rows that it names" {
  %x = check.generate affine_map<(r, c) -> (r * 128 + c)> : !x
  %y = check.generate affine_map<(r, c) -> (-r * 128 - c)> : !y
  %i = check.generate affine_map<(r) -> ((r * 7 + 3) mod 20 + 20)> : !i
  %r:3 = check.run @scatter(%y, %i, %x) : (!y, !i, !x) -> (!y, !i, !x)
  %a, %b, %c = check.run @parts(%r#2) : (!x) -> (!y, !y, tensor<24x128xf32>)
  %before = check.generate affine_map<(r, c) -> (r * 128 + c)> : !y
  check.expect_eq %a, %before : !y
  %new = check.generate affine_map<(r, c) -> (-((r * 3 - 9) mod 20) * 128 - c)> : !y
  check.expect_eq %b, %new : !y
  %behind = check.generate affine_map<(r, c) -> (r * 128 + c + 5120)> : tensor<24x128xf32>
  check.expect_eq %c, %behind : tensor<24x128xf32>
}

#space_of_two = #ktdp.memory_space<global>
#lx_of_two = #ktdp.memory_space<ct_local>
#s1_of_two = affine_set<(r) : (r >= 0, -r + 7 >= 0)>
#id_of_two = affine_map<(r) -> (r)>
#all_of_two = affine_set<(a, b) : (a >= 0, -a + 15 >= 0, b >= 0, -b + 15 >= 0)>

func.func @two_memories(%x: index, %i: index, %j: index, %y: index) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %x, sizes: [16, 16], strides: [16, 1] {coordinate_set = #all_of_two, memory_space = #space_of_two} : memref<16x16xf32>
  %wi = ktdp.construct_memory_view %i, sizes: [8], strides: [1] {coordinate_set = #s1_of_two, memory_space = #space_of_two} : memref<8xi32>
  %wj = ktdp.construct_memory_view %j, sizes: [8], strides: [1] {coordinate_set = #s1_of_two, memory_space = #space_of_two} : memref<8xi32>
  %lj = ktdp.construct_memory_view %c0, sizes: [8], strides: [1] {coordinate_set = #s1_of_two, memory_space = #lx_of_two} : memref<8xi32>
  %a = ktdp.construct_access_tile %wj[%c0] {access_tile_set = #s1_of_two, access_tile_order = #id_of_two} : memref<8xi32> -> !ktdp.access_tile<8xindex>
  %b = ktdp.construct_access_tile %lj[%c0] {access_tile_set = #s1_of_two, access_tile_order = #id_of_two} : memref<8xi32> -> !ktdp.access_tile<8xindex>
  %dj = ktdp.load %a : !ktdp.access_tile<8xindex> -> tensor<8xi32>
  ktdp.store %dj, %b : tensor<8xi32>, !ktdp.access_tile<8xindex>
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%r) %v[ind(%lj[%r]), ind(%wi[%r])] {
    variables_space_set = #s1_of_two, variables_space_order = #id_of_two} : memref<16x16xf32>, memref<8xi32>, memref<8xi32> -> !ktdp.access_tile<8xindex>
  %d = ktdp.load %t : !ktdp.access_tile<8xindex> -> tensor<8xf32>
  %wy = ktdp.construct_memory_view %y, sizes: [8], strides: [1] {coordinate_set = #s1_of_two, memory_space = #space_of_two} : memref<8xf32>
  %o = ktdp.construct_access_tile %wy[%c0] {access_tile_set = #s1_of_two, access_tile_order = #id_of_two} : memref<8xf32> -> !ktdp.access_tile<8xindex>
  ktdp.store %d, %o : tensor<8xf32>, !ktdp.access_tile<8xindex>
  return
}
check.case "one index is in LX, and one in device memory" {
  %x = check.generate affine_map<(r, c) -> (r * 16 + c)> : tensor<16x16xf32>
  %i = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi32>
  %j = arith.constant dense<[7, 6, 5, 4, 3, 2, 1, 0]> : tensor<8xi32>
  %y = arith.constant dense<0.0> : tensor<8xf32>
  %r:4 = check.run @two_memories(%x, %i, %j, %y) : (tensor<16x16xf32>, tensor<8xi32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<16x16xf32>, tensor<8xi32>, tensor<8xi32>, tensor<8xf32>)
  check.expect_eq %r#3, dense<[112.0, 97.0, 82.0, 67.0, 52.0, 37.0, 22.0, 7.0]> : tensor<8xf32>
}
