// SPDX-License-Identifier: Apache-2.0
// A store through indices reads these: 64 of 4 bytes, in 2 sticks of %i. They are no
// bytes of %y, of which 64 rows are written, a stick each, nor, of the load, of %x.
// What arguments move is what the kernel moves. Indices are taken to be distinct, also
// 64 of a dimension of 64.
// RUN: rm -rf %t && mkdir -p %t
// RUN: %python -c "import numpy as np; a = np.ones((64, 64), np.float16); np.save(r'%t/x.npy', a); np.save(r'%t/i.npy', np.arange(64, dtype=np.int32)); np.save(r'%t/y.npy', a)"
// RUN: spyre-run %s --arg %t/x.npy --arg %t/i.npy --arg %t/y.npy --predict-only --json %t/report.json
// RUN: %python -c "import json; r = json.load(open(r'%t/report.json')); t = {t['name']: (t['bytes_read'], t['bytes_written']) for t in r['tensors']}; assert t == dict(x=(64 * 128, 0), i=(2 * 256, 0), y=(0, 64 * 128)), t; b = r['bytes']['device_memory']; assert b['read'] == b['demanded'] == 64 * 128 + 512 and b['written'] == 64 * 128, b"

#space = #ktdp.memory_space<global>
#all = affine_set<(a, b) : (a >= 0, -a + 63 >= 0, b >= 0, -b + 63 >= 0)>
#line = affine_set<(a) : (a >= 0, -a + 63 >= 0)>
#order = affine_map<(a, b) -> (a, b)>

func.func @main(%x: index, %i: index, %y: index) attributes {grid = [1]} {
  %v = ktdp.construct_memory_view %x, sizes: [64, 64], strides: [64, 1] {coordinate_set = #all, memory_space = #space} : memref<64x64xf16>
  %w = ktdp.construct_memory_view %i, sizes: [64], strides: [1] {coordinate_set = #line, memory_space = #space} : memref<64xi32>
  %z = ktdp.construct_memory_view %y, sizes: [64, 64], strides: [64, 1] {coordinate_set = #all, memory_space = #space} : memref<64x64xf16>
  %from = ktdp.construct_indirect_access_tile intermediate_variables(%r, %c) %v[ind(%w[%r]), (%c)] {
    variables_space_set = #all, variables_space_order = #order} : memref<64x64xf16>, memref<64xi32> -> !ktdp.access_tile<64x64xindex>
  %to = ktdp.construct_indirect_access_tile intermediate_variables(%r, %c) %z[ind(%w[%r]), (%c)] {
    variables_space_set = #all, variables_space_order = #order} : memref<64x64xf16>, memref<64xi32> -> !ktdp.access_tile<64x64xindex>
  %d = ktdp.load %from : !ktdp.access_tile<64x64xindex> -> tensor<64x64xf16>
  ktdp.store %d, %to : tensor<64x64xf16>, !ktdp.access_tile<64x64xindex>
  return
}
