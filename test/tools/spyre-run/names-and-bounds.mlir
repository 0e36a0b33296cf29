// SPDX-License-Identifier: Apache-2.0
// Names of results, accesses past an allocation, bytecode.
// RUN: rm -rf %t && mkdir -p %t
// RUN: %python %S/Inputs/arrays.py %t
// RUN: spyre-run %s --entry shift --arg %t/x.npy --arg %t/y.npy --out-dir %t/out --oob zero
// RUN: %python -c "import numpy as np; x = np.load(r'%t/x.npy'); y = np.load(r'%t/out/second.npy'); assert (y[:1000] == x[24:]).all() and (y[1000:] == 0).all()"
// RUN: ls %t/out | FileCheck %s --check-prefix=NAMES
// NAMES: arg0.npy
// NAMES-NEXT: second.npy
// RUN: not spyre-run %s --entry shift --arg %t/x.npy --arg %t/y.npy --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: [[@LINE+13]]:8: error: access: coordinate 1047 of view dimension 0 is outside its range 0 to 1023
// RUN: spyre-run %s --entry back --arg %t/x.npy --arg %t/y.npy --out-dir %t/back --oob zero
// RUN: %python -c "import numpy as np; x = np.load(r'%t/x.npy'); y = np.load(r'%t/back/y.npy'); assert (y[24:] == x[:1000]).all() and (y[:24] == 0).all()"

#set = affine_set<(i) : (i >= 0, -i + 1023 >= 0)>
#order = affine_map<(i) -> (i)>
func.func @shift(%0: index, %second: index) {
  %c24 = arith.constant 24 : index
  %c0 = arith.constant 0 : index
  %xv = ktdp.construct_memory_view %0, sizes: [1024], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<1024xf32>
  %yv = ktdp.construct_memory_view %second, sizes: [1024], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<1024xf32>
  %xt = ktdp.construct_access_tile %xv[%c24] {access_tile_set = #set, access_tile_order = #order} : memref<1024xf32> -> !ktdp.access_tile<1024xindex>
  %yt = ktdp.construct_access_tile %yv[%c0] {access_tile_set = #set, access_tile_order = #order} : memref<1024xf32> -> !ktdp.access_tile<1024xindex>
  %d = ktdp.load %xt : !ktdp.access_tile<1024xindex> -> tensor<1024xf32>
  ktdp.store %d, %yt : tensor<1024xf32>, !ktdp.access_tile<1024xindex>
  return
}
func.func @back(%x: index, %y: index) {
  %c24 = arith.constant 24 : index
  %c0 = arith.constant 0 : index
  %xv = ktdp.construct_memory_view %x, sizes: [1024], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<1024xf32>
  %yv = ktdp.construct_memory_view %y, sizes: [1024], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<1024xf32>
  %xt = ktdp.construct_access_tile %xv[%c0] {access_tile_set = #set, access_tile_order = #order} : memref<1024xf32> -> !ktdp.access_tile<1024xindex>
  %yt = ktdp.construct_access_tile %yv[%c24] {access_tile_set = #set, access_tile_order = #order} : memref<1024xf32> -> !ktdp.access_tile<1024xindex>
  %d = ktdp.load %xt : !ktdp.access_tile<1024xindex> -> tensor<1024xf32>
  ktdp.store %d, %yt : tensor<1024xf32>, !ktdp.access_tile<1024xindex>
  return
}
