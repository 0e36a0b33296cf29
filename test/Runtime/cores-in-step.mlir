// SPDX-License-Identifier: Apache-2.0
// Cores of one kernel that share tiles, where some have nothing to do and the
// loops of others are shorter.
//
// Core c sums products of row c of x with 1 + c mod 3 blocks of four rows of y.
// Every fourth core leaves its row of z as it is.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none
// RUN: spyre-run --cases %s --check=full

!x = tensor<11x8xf32>
!y = tensor<12x8xf32>
!z = tensor<11x4xf32>

func.func private @kernel(%x: index, %y: index, %z: index) attributes {grid = [11]} {
  %core = ktdp.get_compute_tile_id : index
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %turn = arith.remui %core, %c4 : index
  %works = arith.cmpi ne, %turn, %c3 : index
  scf.if %works {
    %xs = ktdp.construct_memory_view %x, sizes: [11, 8], strides: [8, 1] {
      coordinate_set = affine_set<(a, b) : (a >= 0, -a + 10 >= 0, b >= 0, -b + 7 >= 0)>,
      memory_space = #ktdp.memory_space<global>} : memref<11x8xf32>
    %xt = ktdp.construct_access_tile %xs[%core, %c0] {
      access_tile_set = affine_set<(a, b) : (a >= 0, -a >= 0, b >= 0, -b + 7 >= 0)>,
      access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<11x8xf32> -> !ktdp.access_tile<1x8xindex>
    %left = ktdp.load %xt : !ktdp.access_tile<1x8xindex> -> tensor<1x8xf32>
    %zero = arith.constant dense<0.0> : tensor<1x4xf32>
    %end = affine.apply affine_map<()[c] -> ((c mod 3) * 4 + 4)>()[%core]
    %sum = scf.for %row = %c0 to %end step %c4 iter_args(%acc = %zero) -> (tensor<1x4xf32>) {
      %ys = ktdp.construct_memory_view %y, sizes: [12, 8], strides: [8, 1] {
        coordinate_set = affine_set<(a, b) : (a >= 0, -a + 11 >= 0, b >= 0, -b + 7 >= 0)>,
        memory_space = #ktdp.memory_space<global>} : memref<12x8xf32>
      %yt = ktdp.construct_access_tile %ys[%row, %c0] {
        access_tile_set = affine_set<(a, b) : (a >= 0, -a + 3 >= 0, b >= 0, -b + 7 >= 0)>,
        access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<12x8xf32> -> !ktdp.access_tile<4x8xindex>
      %right = ktdp.load %yt : !ktdp.access_tile<4x8xindex> -> tensor<4x8xf32>
      %next = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
          affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
          iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%left, %right : tensor<1x8xf32>, tensor<4x8xf32>) outs(%acc : tensor<1x4xf32>) {
      ^bb0(%l: f32, %r: f32, %o: f32):
        %p = arith.mulf %l, %r : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      } -> tensor<1x4xf32>
      scf.yield %next : tensor<1x4xf32>
    }
    %zs = ktdp.construct_memory_view %z, sizes: [11, 4], strides: [4, 1] {
      coordinate_set = affine_set<(a, b) : (a >= 0, -a + 10 >= 0, b >= 0, -b + 3 >= 0)>,
      memory_space = #ktdp.memory_space<global>} : memref<11x4xf32>
    %zt = ktdp.construct_access_tile %zs[%core, %c0] {
      access_tile_set = affine_set<(a, b) : (a >= 0, -a >= 0, b >= 0, -b + 3 >= 0)>,
      access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<11x4xf32> -> !ktdp.access_tile<1x4xindex>
    ktdp.store %sum, %zt : tensor<1x4xf32>, !ktdp.access_tile<1x4xindex>
  }
  return
}

func.func @main(%x: index, %y: index, %z: index) {
  func.call @kernel(%x, %y, %z) : (index, index, index) -> ()
  return
}

check.case "some cores leave early, others at once" {
  %x = check.generate affine_map<(c, k) -> (c * 3 + k mod 2 + 1)> : !x
  %y = check.generate affine_map<(r, k) -> (r * 2 + k - 7)> : !y
  %z = arith.constant dense<-1.0> : !z
  %r:3 = check.run @main(%x, %y, %z) : (!x, !y, !z) -> (!x, !y, !z)
  check.expect_eq %r#2, dense<[[-40.0, -16.0, 8.0, 32.0],
      [40.0, 184.0, 328.0, 472.0],
      [816.0, 1176.0, 1536.0, 1896.0],
      [-1.0, -1.0, -1.0, -1.0],
      [112.0, 544.0, 976.0, 1408.0],
      [1788.0, 2580.0, 3372.0, 4164.0],
      [-544.0, -232.0, 80.0, 392.0],
      [-1.0, -1.0, -1.0, -1.0],
      [2760.0, 3984.0, 5208.0, 6432.0],
      [-796.0, -340.0, 116.0, 572.0],
      [256.0, 1264.0, 2272.0, 3280.0]]> : !z
}
