// SPDX-License-Identifier: Apache-2.0
// Indices select what lies along the sticks of the result. A table with one
// element per stick has these elements apart, but its dimension is the stick in
// all tensors: of the dimension outside of it the strides would be wrong.
// RUN: not spyre-translate --to-superdsc %s -o %t 2>&1 | FileCheck %s

#table = #spyre_graph.layout<order = [0, 1, 2], sparse, SEN169_FP16>
#indices = #spyre_graph.layout<order = [0], IEEE_INT32>
#out = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
func.func @main(%table: memref<31x7x33xf16, #table> {spyre_graph.name = "table"},
                %index: memref<128xi64, #indices> {spyre_graph.name = "index"},
                %out: memref<31x7x128xf16, #out> {spyre_graph.name = "out"})
    attributes {spyre_graph.pool_size = 0 : i64} {
  // CHECK: [[@LINE+1]]:3: error: 'spyre_graph.gather' op SuperDSC cannot express an indirect access along the sticks of others, to a table with one element per stick
  spyre_graph.gather ins(%table, %index : memref<31x7x33xf16, #table>, memref<128xi64, #indices>)
      outs(%out : memref<31x7x128xf16, #out>)
      {axis = 2 : i64, division = #spyre_graph.division<splits = [1, 7, 2], chunks = [31, 1, 64]>,
       extents = array<i64: 31, 7, 128>,
       maps = [affine_map<(i, j, k) -> (i, j, 0)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j, k)>]}
  return
}
