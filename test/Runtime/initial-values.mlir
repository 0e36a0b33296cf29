// SPDX-License-Identifier: Apache-2.0
// Initial values that an operation before reads, in loops that run as one.
// RUN: spyre-run %s --cases
// RUN: spyre-run %s --cases --check=none
// RUN: spyre-run %s --cases --check=full

// The tile that the first operation reads is the destination of the second.
#space_product = #ktdp.memory_space<global>
#all_product = affine_set<(a, b) : (a >= 0, -a + 3 >= 0, b >= 0, -b + 63 >= 0)>
#id_product = affine_map<(a, b) -> (a, b)>
!t_product = tensor<4x64xf32>
func.func private @product_kernel(%x: index, %y: index, %z: index) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %vx = ktdp.construct_memory_view %x, sizes: [4, 64], strides: [64, 1] {coordinate_set = #all_product, memory_space = #space_product} : memref<4x64xf32>
  %vy = ktdp.construct_memory_view %y, sizes: [4, 64], strides: [64, 1] {coordinate_set = #all_product, memory_space = #space_product} : memref<4x64xf32>
  %vz = ktdp.construct_memory_view %z, sizes: [4, 64], strides: [64, 1] {coordinate_set = #all_product, memory_space = #space_product} : memref<4x64xf32>
  %tx = ktdp.construct_access_tile %vx[%c0, %c0] {access_tile_set = #all_product, access_tile_order = #id_product} : memref<4x64xf32> -> !ktdp.access_tile<4x64xindex>
  %ty = ktdp.construct_access_tile %vy[%c0, %c0] {access_tile_set = #all_product, access_tile_order = #id_product} : memref<4x64xf32> -> !ktdp.access_tile<4x64xindex>
  %tz = ktdp.construct_access_tile %vz[%c0, %c0] {access_tile_set = #all_product, access_tile_order = #id_product} : memref<4x64xf32> -> !ktdp.access_tile<4x64xindex>
  %dx = ktdp.load %tx : !ktdp.access_tile<4x64xindex> -> !t_product
  %dy = ktdp.load %ty : !ktdp.access_tile<4x64xindex> -> !t_product
  %e = tensor.empty() : !t_product
  %a = linalg.mul ins(%dx, %dx : !t_product, !t_product) outs(%e : !t_product) -> !t_product
  %b = linalg.add ins(%a, %dy : !t_product, !t_product) outs(%dx : !t_product) -> !t_product
  ktdp.store %b, %tz : !t_product, !ktdp.access_tile<4x64xindex>
  return
}
func.func @product(%x: index, %y: index, %z: index) {
  func.call @product_kernel(%x, %y, %z) : (index, index, index) -> ()
  return
}
check.case "x * x + y" {
  %x = arith.constant dense<3.0> : !t_product
  %y = arith.constant dense<1.0> : !t_product
  %z = arith.constant dense<0.0> : !t_product
  %r:3 = check.run @product(%x, %y, %z) : (!t_product, !t_product, !t_product) -> (!t_product, !t_product, !t_product)
  check.expect_eq %r#2, dense<10.0> : !t_product
}

// What the product reads is what its sums begin with.
#space_sums = #ktdp.memory_space<global>
#all_sums = affine_set<(a, b) : (a >= 0, -a + 3 >= 0, b >= 0, -b + 63 >= 0)>
#vec_sums = affine_set<(a) : (a >= 0, -a + 3 >= 0)>
#id_sums = affine_map<(a, b) -> (a, b)>
#id1_sums = affine_map<(a) -> (a)>
#row_sums = affine_map<(a, b) -> (a)>
!t_sums = tensor<4x64xf32>
!v_sums = tensor<4xf32>
func.func private @sums_kernel(%x: index, %y: index, %z: index) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %vx = ktdp.construct_memory_view %x, sizes: [4, 64], strides: [64, 1] {coordinate_set = #all_sums, memory_space = #space_sums} : memref<4x64xf32>
  %vy = ktdp.construct_memory_view %y, sizes: [4], strides: [1] {coordinate_set = #vec_sums, memory_space = #space_sums} : memref<4xf32>
  %vz = ktdp.construct_memory_view %z, sizes: [4], strides: [1] {coordinate_set = #vec_sums, memory_space = #space_sums} : memref<4xf32>
  %tx = ktdp.construct_access_tile %vx[%c0, %c0] {access_tile_set = #all_sums, access_tile_order = #id_sums} : memref<4x64xf32> -> !ktdp.access_tile<4x64xindex>
  %ty = ktdp.construct_access_tile %vy[%c0] {access_tile_set = #vec_sums, access_tile_order = #id1_sums} : memref<4xf32> -> !ktdp.access_tile<4xindex>
  %tz = ktdp.construct_access_tile %vz[%c0] {access_tile_set = #vec_sums, access_tile_order = #id1_sums} : memref<4xf32> -> !ktdp.access_tile<4xindex>
  %dx = ktdp.load %tx : !ktdp.access_tile<4x64xindex> -> !t_sums
  %acc = ktdp.load %ty : !ktdp.access_tile<4xindex> -> !v_sums
  %e = tensor.empty() : !t_sums
  %p = linalg.generic {indexing_maps = [#id_sums, #row_sums, #id_sums], iterator_types = ["parallel", "parallel"]}
      ins(%dx, %acc : !t_sums, !v_sums) outs(%e : !t_sums) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> !t_sums
  %s = linalg.generic {indexing_maps = [#id_sums, #row_sums], iterator_types = ["parallel", "reduction"]}
      ins(%p : !t_sums) outs(%acc : !v_sums) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.addf %o, %a : f32
    linalg.yield %m : f32
  } -> !v_sums
  ktdp.store %s, %tz : !v_sums, !ktdp.access_tile<4xindex>
  return
}
func.func @sums(%x: index, %y: index, %z: index) {
  func.call @sums_kernel(%x, %y, %z) : (index, index, index) -> ()
  return
}
check.case "acc + sum(x * acc) = 2 + 64 * 3 * 2" {
  %x = arith.constant dense<3.0> : !t_sums
  %y = arith.constant dense<2.0> : !v_sums
  %z = arith.constant dense<0.0> : !v_sums
  %r:3 = check.run @sums(%x, %y, %z) : (!t_sums, !v_sums, !v_sums) -> (!t_sums, !v_sums, !v_sums)
  check.expect_eq %r#2, dense<386.0> : !v_sums
}

// The same of rows that are long enough to run one by one.
#space_rows = #ktdp.memory_space<global>
#all_rows = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 2047 >= 0)>
#vec_rows = affine_set<(a) : (a >= 0, -a + 7 >= 0)>
#id_rows = affine_map<(a, b) -> (a, b)>
#id1_rows = affine_map<(a) -> (a)>
#row_rows = affine_map<(a, b) -> (a)>
!t_rows = tensor<8x2048xf16>
!v_rows = tensor<8xf16>
func.func private @rows_kernel(%x: index, %y: index, %z: index) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %vx = ktdp.construct_memory_view %x, sizes: [8, 2048], strides: [2048, 1] {coordinate_set = #all_rows, memory_space = #space_rows} : memref<8x2048xf16>
  %vy = ktdp.construct_memory_view %y, sizes: [8], strides: [1] {coordinate_set = #vec_rows, memory_space = #space_rows} : memref<8xf16>
  %vz = ktdp.construct_memory_view %z, sizes: [8, 2048], strides: [2048, 1] {coordinate_set = #all_rows, memory_space = #space_rows} : memref<8x2048xf16>
  %tx = ktdp.construct_access_tile %vx[%c0, %c0] {access_tile_set = #all_rows, access_tile_order = #id_rows} : memref<8x2048xf16> -> !ktdp.access_tile<8x2048xindex>
  %ty = ktdp.construct_access_tile %vy[%c0] {access_tile_set = #vec_rows, access_tile_order = #id1_rows} : memref<8xf16> -> !ktdp.access_tile<8xindex>
  %tz = ktdp.construct_access_tile %vz[%c0, %c0] {access_tile_set = #all_rows, access_tile_order = #id_rows} : memref<8x2048xf16> -> !ktdp.access_tile<8x2048xindex>
  %acc = ktdp.load %ty : !ktdp.access_tile<8xindex> -> !v_rows
  %dx = ktdp.load %tx : !ktdp.access_tile<8x2048xindex> -> !t_rows
  %e = tensor.empty() : !t_rows
  %p = linalg.generic {indexing_maps = [#id_rows, #row_rows, #id_rows], iterator_types = ["parallel", "parallel"]}
      ins(%dx, %acc : !t_rows, !v_rows) outs(%e : !t_rows) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %m = arith.mulf %a, %b : f16
    linalg.yield %m : f16
  } -> !t_rows
  %s = linalg.generic {indexing_maps = [#id_rows, #row_rows], iterator_types = ["parallel", "reduction"]}
      ins(%p : !t_rows) outs(%acc : !v_rows) {
  ^bb0(%a: f16, %o: f16):
    %m = arith.maximumf %o, %a : f16
    linalg.yield %m : f16
  } -> !v_rows
  %f = tensor.empty() : !t_rows
  %q = linalg.generic {indexing_maps = [#id_rows, #row_rows, #id_rows, #id_rows], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s, %dx : !t_rows, !v_rows, !t_rows) outs(%f : !t_rows) {
  ^bb0(%a: f16, %b: f16, %c: f16, %o: f16):
    %n = arith.addf %a, %b : f16
    %m = arith.addf %n, %c : f16
    linalg.yield %m : f16
  } -> !t_rows
  ktdp.store %q, %tz : !t_rows, !ktdp.access_tile<8x2048xindex>
  return
}
func.func @rows(%x: index, %y: index, %z: index) {
  func.call @rows_kernel(%x, %y, %z) : (index, index, index) -> ()
  return
}
check.case "6 + max(2, 6) + 3" {
  %x = arith.constant dense<3.0> : !t_rows
  %y = arith.constant dense<2.0> : !v_rows
  %z = arith.constant dense<0.0> : !t_rows
  %r:3 = check.run @rows(%x, %y, %z) : (!t_rows, !v_rows, !t_rows) -> (!t_rows, !v_rows, !t_rows)
  check.expect_eq %r#2, dense<15.0> : !t_rows
}
