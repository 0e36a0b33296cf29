// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir | FileCheck %s

// What a scan holds goes from step to step: of an extremum the value, and beside
// it the index if that is wanted.
// CHECK-LABEL: func.func private @k0_cummax
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<3x1xf32>)
// CHECK: arith.cmpf ole
// CHECK: arith.cmpf uno

// CHECK-LABEL: func.func private @k1_cummin
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<3x1xi32>, tensor<3x1xi64>)
// CHECK: arith.cmpi sle
// CHECK-NOT: arith.cmpf
#f = #spyre_graph.layout<order = [0, 1], IEEE_FP32>
#i = #spyre_graph.layout<order = [0, 1], IEEE_INT32>
#id = affine_map<(i, j) -> (i, j)>
#div = #spyre_graph.division<splits = [1, 1], chunks = [3, 5]>
func.func @main(%x: memref<3x5xf32, #f> {spyre_graph.name = "x"},
                %n: memref<3x5xi32, #i> {spyre_graph.name = "n"},
                %y: memref<3x5xf32, #f> {spyre_graph.name = "y"},
                %z: memref<3x5xi64, #i> {spyre_graph.name = "z"}) {
  spyre_graph.cummax ins(%x : memref<3x5xf32, #f>) outs(%y : memref<3x5xf32, #f>)
      {dim = 1 : i64, extents = array<i64: 3, 5>, maps = [#id, #id], division = #div}
  spyre_graph.cummin ins(%n : memref<3x5xi32, #i>) outs(%z : memref<3x5xi64, #i>)
      {dim = 1 : i64, indices, extents = array<i64: 3, 5>, maps = [#id, #id], division = #div}
  return
}
