// SPDX-License-Identifier: Apache-2.0
// The indices of a gather are counted in the memory in which they lie: twice %j has
// 2 sticks in LX, and %i 2 in device memory. Which of the two is the index of the
// first dimension changes nothing. The gather waits for the sum that makes indices.
// RUN: rm -rf %t && mkdir -p %t
// RUN: %python -c "import numpy as np; np.save(r'%t/x.npy', np.ones((64, 64), np.float16)); np.save(r'%t/i.npy', np.zeros(64, np.int32)); np.save(r'%t/y.npy', np.zeros(64, np.float16))"
// RUN: spyre-run %s --entry rows_in_lx --arg %t/x.npy --arg %t/i.npy --arg %t/i.npy --arg %t/y.npy --predict-only --json %t/rows.json --trace %t/trace.json
// RUN: spyre-run %s --entry columns_in_lx --arg %t/x.npy --arg %t/i.npy --arg %t/i.npy --arg %t/y.npy --predict-only --json %t/columns.json
// RUN: %python -c "import json; a, b = (json.load(open(f))['kernels'][0]['bytes'] for f in (r'%t/rows.json', r'%t/columns.json')); assert a == b and a['lx'] == dict(read=256, written=256), (a, b)"
// RUN: %python -c "import json; e = [e for e in json.load(open(r'%t/trace.json'))['traceEvents'] if e['ph'] == 'X']; sum, = (e for e in e if e['name'] == 'arith.addi'); gather = [e for e in e if e['name'] == 'load'][-1]; assert gather['ts'] >= sum['ts'] + sum['dur'] * 0.99, e"

#space = #ktdp.memory_space<global>
#lx = #ktdp.memory_space<ct_local>
#all = affine_set<(a, b) : (a >= 0, -a + 63 >= 0, b >= 0, -b + 63 >= 0)>
#line = affine_set<(a) : (a >= 0, -a + 63 >= 0)>
#id = affine_map<(a) -> (a)>

func.func @rows_in_lx(%x: index, %i: index, %j: index, %y: index) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %x, sizes: [64, 64], strides: [64, 1] {coordinate_set = #all, memory_space = #space} : memref<64x64xf16>
  %wi = ktdp.construct_memory_view %i, sizes: [64], strides: [1] {coordinate_set = #line, memory_space = #space} : memref<64xi32>
  %wj = ktdp.construct_memory_view %j, sizes: [64], strides: [1] {coordinate_set = #line, memory_space = #space} : memref<64xi32>
  %lj = ktdp.construct_memory_view %c0, sizes: [64], strides: [1] {coordinate_set = #line, memory_space = #lx} : memref<64xi32>
  %a = ktdp.construct_access_tile %wj[%c0] {access_tile_set = #line, access_tile_order = #id} : memref<64xi32> -> !ktdp.access_tile<64xindex>
  %b = ktdp.construct_access_tile %lj[%c0] {access_tile_set = #line, access_tile_order = #id} : memref<64xi32> -> !ktdp.access_tile<64xindex>
  %d = ktdp.load %a : !ktdp.access_tile<64xindex> -> tensor<64xi32>
  %s = arith.addi %d, %d : tensor<64xi32>
  ktdp.store %s, %b : tensor<64xi32>, !ktdp.access_tile<64xindex>
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%r) %v[ind(%lj[%r]), ind(%wi[%r])] {
    variables_space_set = #line, variables_space_order = #id} : memref<64x64xf16>, memref<64xi32>, memref<64xi32> -> !ktdp.access_tile<64xindex>
  %g = ktdp.load %t : !ktdp.access_tile<64xindex> -> tensor<64xf16>
  %wy = ktdp.construct_memory_view %y, sizes: [64], strides: [1] {coordinate_set = #line, memory_space = #space} : memref<64xf16>
  %o = ktdp.construct_access_tile %wy[%c0] {access_tile_set = #line, access_tile_order = #id} : memref<64xf16> -> !ktdp.access_tile<64xindex>
  ktdp.store %g, %o : tensor<64xf16>, !ktdp.access_tile<64xindex>
  return
}

func.func @columns_in_lx(%x: index, %i: index, %j: index, %y: index) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %x, sizes: [64, 64], strides: [64, 1] {coordinate_set = #all, memory_space = #space} : memref<64x64xf16>
  %wi = ktdp.construct_memory_view %i, sizes: [64], strides: [1] {coordinate_set = #line, memory_space = #space} : memref<64xi32>
  %wj = ktdp.construct_memory_view %j, sizes: [64], strides: [1] {coordinate_set = #line, memory_space = #space} : memref<64xi32>
  %lj = ktdp.construct_memory_view %c0, sizes: [64], strides: [1] {coordinate_set = #line, memory_space = #lx} : memref<64xi32>
  %a = ktdp.construct_access_tile %wj[%c0] {access_tile_set = #line, access_tile_order = #id} : memref<64xi32> -> !ktdp.access_tile<64xindex>
  %b = ktdp.construct_access_tile %lj[%c0] {access_tile_set = #line, access_tile_order = #id} : memref<64xi32> -> !ktdp.access_tile<64xindex>
  %d = ktdp.load %a : !ktdp.access_tile<64xindex> -> tensor<64xi32>
  %s = arith.addi %d, %d : tensor<64xi32>
  ktdp.store %s, %b : tensor<64xi32>, !ktdp.access_tile<64xindex>
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%r) %v[ind(%wi[%r]), ind(%lj[%r])] {
    variables_space_set = #line, variables_space_order = #id} : memref<64x64xf16>, memref<64xi32>, memref<64xi32> -> !ktdp.access_tile<64xindex>
  %g = ktdp.load %t : !ktdp.access_tile<64xindex> -> tensor<64xf16>
  %wy = ktdp.construct_memory_view %y, sizes: [64], strides: [1] {coordinate_set = #line, memory_space = #space} : memref<64xf16>
  %o = ktdp.construct_access_tile %wy[%c0] {access_tile_set = #line, access_tile_order = #id} : memref<64xf16> -> !ktdp.access_tile<64xindex>
  ktdp.store %g, %o : tensor<64xf16>, !ktdp.access_tile<64xindex>
  return
}
