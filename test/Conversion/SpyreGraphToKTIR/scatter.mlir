// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir | FileCheck %s

// A scatter that combines takes one index after the other: it reads what is
// there, which the one before may have written, and writes it. One that replaces
// writes all at once, the last one last.
// CHECK-LABEL: func.func private @k0_scatter_add
// CHECK: scf.for
// CHECK: %[[PLACE:.*]] = ktdp.construct_indirect_access_tile {{.*}}ind(
// CHECK: %[[OLD:.*]] = ktdp.load %[[PLACE]]
// CHECK: %[[NEW:.*]] = linalg.generic
// CHECK: arith.addf
// CHECK: ktdp.store %[[NEW]]

// CHECK-LABEL: func.func private @k1_scatter
// CHECK-NOT: scf.for
// CHECK: ktdp.store
#t = #spyre_graph.layout<order = [0, 1], IEEE_FP32>
#s = #spyre_graph.layout<order = [0, 1], IEEE_FP32>
#i = #spyre_graph.layout<order = [0], IEEE_INT32>
func.func @main(%s: memref<7x32xf32, #s> {spyre_graph.name = "s"},
                %i: memref<7xi64, #i> {spyre_graph.name = "i"},
                %t: memref<9x32xf32, #t> {spyre_graph.name = "t"}) {
  spyre_graph.scatter_add ins(%s, %i : memref<7x32xf32, #s>, memref<7xi64, #i>) outs(%t : memref<9x32xf32, #t>)
      {axis = 0 : i64, extents = array<i64: 7, 32>,
       maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (0, j)>],
       division = #spyre_graph.division<splits = [1, 1], chunks = [7, 32]>}
  spyre_graph.scatter ins(%s, %i : memref<7x32xf32, #s>, memref<7xi64, #i>) outs(%t : memref<9x32xf32, #t>)
      {axis = 0 : i64, extents = array<i64: 7, 32>,
       maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (0, j)>],
       division = #spyre_graph.division<splits = [1, 1], chunks = [7, 32]>}
  return
}
