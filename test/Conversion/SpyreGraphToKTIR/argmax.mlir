// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir | FileCheck %s

// The index counts the reduced dimensions row by row; one of a single element
// adds nothing, so that plans with and without it take the same time.
// CHECK-LABEL: func.func private @k0_argmax
// CHECK: linalg.generic
// CHECK: arith.muli
// CHECK-NOT: arith.muli
// CHECK: linalg.yield
#x = #spyre_graph.layout<order = [0, 1, 2, 3], IEEE_FP32>
#y = #spyre_graph.layout<order = [0], IEEE_INT32>
func.func @main(%x: memref<1x4x3x5xf32, #x> {spyre_graph.name = "x"},
                %y: memref<4xi64, #y> {spyre_graph.name = "y"}) {
  spyre_graph.argmax ins(%x : memref<1x4x3x5xf32, #x>) outs(%y : memref<4xi64, #y>)
      {dims = array<i64: 0, 2, 3>, extents = array<i64: 1, 4, 3, 5>,
       maps = [affine_map<(a, i, j, k) -> (a, i, j, k)>, affine_map<(a, i, j, k) -> (i)>],
       division = #spyre_graph.division<splits = [1, 1, 1, 1], chunks = [1, 4, 3, 5]>}
  return
}
