// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir --split-input-file | FileCheck %s

// Five elements are eight keys: six stages, each one operation, whose second
// input is the first one with the sides of its blocks exchanged. Stages that
// begin a merge look at it from the other end, too.
// CHECK-DAG: #[[MIRRORED:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, -d2 + 1, -d3 + 3)>
// CHECK-DAG: #[[ACROSS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, -d2 + 1, d3)>
// CHECK-LABEL: func.func private @k0_sort
// CHECK: arith.bitcast %{{.*}} : f32 to i32
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 0] [3, 5] [1, 1] : tensor<3x5xi64> into tensor<3x8xi64>
// CHECK-COUNT-6: arith.minsi
// CHECK: tensor.extract_slice %{{.*}}[0, 0] [3, 5] [1, 1] : tensor<3x8xi64> to tensor<3x5xi64>
// CHECK: arith.shrsi
#x = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: memref<3x5xf16, #x> {spyre_graph.name = "x"},
                %y: memref<3x5xf16, #x> {spyre_graph.name = "y"}) {
  spyre_graph.sort ins(%x : memref<3x5xf16, #x>) outs(%y : memref<3x5xf16, #x>)
      {dim = 1 : i64, extents = array<i64: 3, 5>, maps = [#id, #id],
       division = #spyre_graph.division<splits = [1, 1], chunks = [3, 5]>}
  return
}

// -----

// Each core sorts its columns, whole; descending order is that of all bits
// inverted.
// CHECK-LABEL: func.func private @k0_sort
// CHECK-SAME: grid = [2]
// CHECK: arith.xori
// CHECK-COUNT-3: arith.minsi
// CHECK-NOT: arith.minsi
// CHECK: arith.trunci %{{.*}} : i64 to i32
#x = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#i = #spyre_graph.layout<order = [0, 1], IEEE_INT32>
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: memref<4x128xf16, #x> {spyre_graph.name = "x"},
                %y: memref<4x128xi64, #i> {spyre_graph.name = "y"}) {
  spyre_graph.sort ins(%x : memref<4x128xf16, #x>) outs(%y : memref<4x128xi64, #i>)
      {dim = 0 : i64, descending, indices, extents = array<i64: 4, 128>, maps = [#id, #id],
       division = #spyre_graph.division<splits = [1, 2], chunks = [4, 64]>}
  return
}

// -----

// Runs of four are merged to one of eight: three stages. What tells equal
// elements apart is read, and stored.
// CHECK-LABEL: func.func private @k0_sort
// CHECK-COUNT-2: ktdp.load
// CHECK: arith.extsi %{{.*}} : i32 to i64
// CHECK-COUNT-3: arith.minsi
// CHECK-NOT: arith.minsi
// CHECK: ktdp.store
#x = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#i = #spyre_graph.layout<order = [0, 1], IEEE_INT32>
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: memref<3x8xf16, #x> {spyre_graph.name = "x"},
                %p: memref<3x8xi64, #i> {spyre_graph.name = "p"},
                %y: memref<3x8xi64, #i> {spyre_graph.name = "y"}) {
  spyre_graph.sort ins(%x, %p : memref<3x8xf16, #x>, memref<3x8xi64, #i>) outs(%y : memref<3x8xi64, #i>)
      {dim = 1 : i64, indices, run = 4 : i64, extents = array<i64: 3, 8>, maps = [#id, #id, #id],
       division = #spyre_graph.division<splits = [1, 1], chunks = [3, 8]>}
  return
}
