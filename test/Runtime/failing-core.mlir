// SPDX-License-Identifier: Apache-2.0
// The error is that of the first core that fails, whatever the number of
// threads: core 3 fails in its first load, core 2 in its second one.
// RUN: rm -rf %t && mkdir -p %t
// RUN: %python -c "import numpy as np; np.save(r'%t/x.npy', np.ones((8, 8), np.float32))"
// RUN: not spyre-run %s --entry main --arg %t/x.npy --arg %t/x.npy --arg %t/x.npy --threads 1 2>&1 | FileCheck %s
// RUN: not spyre-run %s --entry main --arg %t/x.npy --arg %t/x.npy --arg %t/x.npy --threads 2 2>&1 | FileCheck %s
// RUN: not spyre-run %s --entry main --arg %t/x.npy --arg %t/x.npy --arg %t/x.npy --threads 8 2>&1 | FileCheck %s
// RUN: not spyre-run %s --entry main --arg %t/x.npy --arg %t/x.npy --arg %t/x.npy --threads 1 --check=full 2>&1 | FileCheck %s
// CHECK: error: core 2: access: coordinate 103 of view dimension 0 is outside its range 0 to 3

func.func private @kernel(%x: index, %y: index, %z: index) attributes {grid = [8]} {
  %core = ktdp.get_compute_tile_id : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c100 = arith.constant 100 : index
  %is3 = arith.cmpi eq, %core, %c3 : index
  %is2 = arith.cmpi eq, %core, %c2 : index
  %r1 = arith.select %is3, %c100, %core : index
  %r2 = arith.select %is2, %c100, %c0 : index
  %xs = ktdp.construct_memory_view %x, sizes: [8, 8], strides: [8, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<8x8xf32>
  %xt = ktdp.construct_access_tile %xs[%r1, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a >= 0, b >= 0, -b + 7 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<8x8xf32> -> !ktdp.access_tile<1x8xindex>
  %left = ktdp.load %xt : !ktdp.access_tile<1x8xindex> -> tensor<1x8xf32>
  %ys = ktdp.construct_memory_view %y, sizes: [4, 8], strides: [8, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 3 >= 0, b >= 0, -b + 7 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<4x8xf32>
  %yt = ktdp.construct_access_tile %ys[%r2, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a + 3 >= 0, b >= 0, -b + 7 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<4x8xf32> -> !ktdp.access_tile<4x8xindex>
  %right = ktdp.load %yt : !ktdp.access_tile<4x8xindex> -> tensor<4x8xf32>
  %zero = arith.constant dense<0.0> : tensor<1x4xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%left, %right : tensor<1x8xf32>, tensor<4x8xf32>) outs(%zero : tensor<1x4xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x4xf32>
  %zs = ktdp.construct_memory_view %z, sizes: [8, 4], strides: [4, 1] {
    coordinate_set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 3 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<8x4xf32>
  %zt = ktdp.construct_access_tile %zs[%core, %c0] {
    access_tile_set = affine_set<(a, b) : (a >= 0, -a >= 0, b >= 0, -b + 3 >= 0)>,
    access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<8x4xf32> -> !ktdp.access_tile<1x4xindex>
  ktdp.store %sum, %zt : tensor<1x4xf32>, !ktdp.access_tile<1x4xindex>
  return
}
func.func @main(%x: index, %y: index, %z: index) {
  func.call @kernel(%x, %y, %z) : (index, index, index) -> ()
  return
}
