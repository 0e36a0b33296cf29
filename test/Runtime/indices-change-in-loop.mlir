// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=full

// A loop gathers rows for a product, and then writes other indices. The tile that
// the load reads is made before the loop; the load reads the indices, each time.

#id = affine_map<(r, c) -> (r, c)>
#line = affine_map<(i) -> (i)>
#table = affine_set<(r, c) : (r >= 0, -r + 7 >= 0, c >= 0, -c + 3 >= 0)>
#rows = affine_set<(r, c) : (r >= 0, -r + 3 >= 0, c >= 0, -c + 3 >= 0)>
#four = affine_set<(i) : (i >= 0, -i + 3 >= 0)>
#memory = #ktdp.memory_space<global>

func.func @gather(%table: index, %rows: index, %later: index, %unit: index, %result: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %tv = ktdp.construct_memory_view %table, sizes: [8, 4], strides: [4, 1] {coordinate_set = #table, memory_space = #memory} : memref<8x4xf32>
  %rv = ktdp.construct_memory_view %rows, sizes: [4], strides: [1] {coordinate_set = #four, memory_space = #memory} : memref<4xi32>
  %lv = ktdp.construct_memory_view %later, sizes: [4], strides: [1] {coordinate_set = #four, memory_space = #memory} : memref<4xi32>
  %uv = ktdp.construct_memory_view %unit, sizes: [4, 4], strides: [4, 1] {coordinate_set = #rows, memory_space = #memory} : memref<4x4xf32>
  %ov = ktdp.construct_memory_view %result, sizes: [8, 4], strides: [4, 1] {coordinate_set = #table, memory_space = #memory} : memref<8x4xf32>
  %gathered = ktdp.construct_indirect_access_tile intermediate_variables(%i, %c) %tv[ind(%rv[%i]), (%c)] {variables_space_set = #rows, variables_space_order = #id} : memref<8x4xf32>, memref<4xi32> -> !ktdp.access_tile<4x4xindex>
  scf.for %n = %c0 to %c8 step %c4 {
    %left = ktdp.load %gathered : !ktdp.access_tile<4x4xindex> -> tensor<4x4xf32>
    %ut = ktdp.construct_access_tile %uv[%c0, %c0] {access_tile_set = #rows, access_tile_order = #id} : memref<4x4xf32> -> !ktdp.access_tile<4x4xindex>
    %right = ktdp.load %ut : !ktdp.access_tile<4x4xindex> -> tensor<4x4xf32>
    %empty = tensor.empty() : tensor<4x4xf32>
    %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
    %product = linalg.matmul ins(%left, %right : tensor<4x4xf32>, tensor<4x4xf32>) outs(%none : tensor<4x4xf32>) -> tensor<4x4xf32>
    %ot = ktdp.construct_access_tile %ov[%n, %c0] {access_tile_set = #rows, access_tile_order = #id} : memref<8x4xf32> -> !ktdp.access_tile<4x4xindex>
    ktdp.store %product, %ot : tensor<4x4xf32>, !ktdp.access_tile<4x4xindex>
    %lt = ktdp.construct_access_tile %lv[%c0] {access_tile_set = #four, access_tile_order = #line} : memref<4xi32> -> !ktdp.access_tile<4xindex>
    %next = ktdp.load %lt : !ktdp.access_tile<4xindex> -> tensor<4xi32>
    %rt = ktdp.construct_access_tile %rv[%c0] {access_tile_set = #four, access_tile_order = #line} : memref<4xi32> -> !ktdp.access_tile<4xindex>
    ktdp.store %next, %rt : tensor<4xi32>, !ktdp.access_tile<4xindex>
  }
  return
}

check.case "rows 3 to 0, then 4 to 7" {
  %table = check.generate affine_map<(r, c) -> (r * 10 + c)> : tensor<8x4xf32>
  %rows = arith.constant dense<[3, 2, 1, 0]> : tensor<4xi32>
  %later = arith.constant dense<[4, 5, 6, 7]> : tensor<4xi32>
  %unit = arith.constant dense<[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]> : tensor<4x4xf32>
  %result = arith.constant dense<-1.0> : tensor<8x4xf32>
  %expected = arith.constant dense<[[30.0, 31.0, 32.0, 33.0], [20.0, 21.0, 22.0, 23.0], [10.0, 11.0, 12.0, 13.0], [0.0, 1.0, 2.0, 3.0],
                                    [40.0, 41.0, 42.0, 43.0], [50.0, 51.0, 52.0, 53.0], [60.0, 61.0, 62.0, 63.0], [70.0, 71.0, 72.0, 73.0]]> : tensor<8x4xf32>
  %out:5 = check.run @gather(%table, %rows, %later, %unit, %result) : (tensor<8x4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4x4xf32>, tensor<8x4xf32>)
  check.expect_eq %out#4, %expected : tensor<8x4xf32>
}
