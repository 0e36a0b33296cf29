// SPDX-License-Identifier: Apache-2.0
// Names of results, accesses past an allocation, repetitions.
// RUN: rm -rf %t && mkdir -p %t
// RUN: %python %S/Inputs/arrays.py %t
// RUN: spyre-run %s --entry shift --arg %t/x.npy --arg %t/y.npy --out-dir %t/out --oob zero
// RUN: %python -c "import numpy as np; x = np.load(r'%t/x.npy'); y = np.load(r'%t/out/second.npy'); assert (y[:1000] == x[24:]).all() and (y[1000:] == 0).all()"
// RUN: ls %t/out | FileCheck %s --check-prefix=NAMES
// NAMES: arg0.npy
// NAMES-NEXT: second.npy
// RUN: not spyre-run %s --entry shift --arg %t/x.npy --arg %t/y.npy --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: [[@LINE+23]]:8: error: access: coordinate 1047 of view dimension 0 is outside its range 0 to 1023
// RUN: spyre-run %s --entry back --arg %t/x.npy --arg %t/y.npy --out-dir %t/back --oob zero
// RUN: %python -c "import numpy as np; x = np.load(r'%t/x.npy'); y = np.load(r'%t/back/y.npy'); assert (y[24:] == x[:1000]).all() and (y[:24] == 0).all()"

// Each repetition starts from the original inputs, and so does the report's.
// RUN: spyre-run %s --entry twice --arg %t/x.npy --out-dir %t/twice --repeat 4 --json %t/twice.json
// RUN: %python -c "import numpy as np; assert (np.load(r'%t/twice/x.npy') == 2 * np.load(r'%t/x.npy')).all()"

// Arrays lie from byte 0x10000 on, at sticks, in argument order; a pointer is an
// element index: 1000 f32 take 32 sticks.
// RUN: %python -c "import numpy as np; np.save(r'%t/odd.npy', np.zeros(1000, np.float32)); np.save(r'%t/values.npy', np.zeros(3, np.int64))"
// RUN: spyre-run %s --entry addresses --arg %t/odd.npy --arg 7 --arg %t/x.npy --arg %t/values.npy --out-dir %t/addresses
// RUN: %python -c "import numpy as np; v = np.load(r'%t/addresses/values.npy'); assert v.tolist() == [0x10000 // 4, 7, (0x10000 + 32 * 128) // 4], v"

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
func.func @twice(%x: index) {
  %c0 = arith.constant 0 : index
  %xv = ktdp.construct_memory_view %x, sizes: [1024], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<1024xf32>
  %xt = ktdp.construct_access_tile %xv[%c0] {access_tile_set = #set, access_tile_order = #order} : memref<1024xf32> -> !ktdp.access_tile<1024xindex>
  %d = ktdp.load %xt : !ktdp.access_tile<1024xindex> -> tensor<1024xf32>
  %r = arith.addf %d, %d : tensor<1024xf32>
  ktdp.store %r, %xt : tensor<1024xf32>, !ktdp.access_tile<1024xindex>
  return
}
#three = affine_set<(i) : (i >= 0, -i + 2 >= 0)>
func.func @addresses(%odd: index, %n: index, %x: index, %values: index) {
  %c0 = arith.constant 0 : index
  %ov = ktdp.construct_memory_view %odd, sizes: [1000], strides: [1] {coordinate_set = #three, memory_space = #ktdp.memory_space<global>} : memref<1000xf32>
  %xv = ktdp.construct_memory_view %x, sizes: [1024], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<1024xf32>
  %vv = ktdp.construct_memory_view %values, sizes: [3], strides: [1] {coordinate_set = #three, memory_space = #ktdp.memory_space<global>} : memref<3xi64>
  %vt = ktdp.construct_access_tile %vv[%c0] {access_tile_set = #three, access_tile_order = #order} : memref<3xi64> -> !ktdp.access_tile<3xindex>
  %a = arith.index_cast %odd : index to i64
  %b = arith.index_cast %n : index to i64
  %c = arith.index_cast %x : index to i64
  %t = tensor.from_elements %a, %b, %c : tensor<3xi64>
  ktdp.store %t, %vt : tensor<3xi64>, !ktdp.access_tile<3xindex>
  return
}
