// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir | FileCheck %s

// int64 has 32 bits in memory. Conversions saturate at these, arithmetic wraps,
// and numbers that are stored or compared with stored ones are the nearest that
// fit.
#f = #spyre_graph.layout<order = [0], IEEE_FP32>
#i = #spyre_graph.layout<order = [0], IEEE_INT32>
#b = #spyre_graph.layout<order = [0], SEN169_FP16>
#div = #spyre_graph.division<splits = [1], chunks = [65]>
#id = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func private @k0_identity
// CHECK: %[[V:.*]] = arith.fptosi %{{.*}} : f32 to i32
// CHECK-NEXT: linalg.yield %[[V]] : i32

// CHECK-LABEL: func.func private @k1_add
// CHECK: %[[BIG:.*]] = arith.constant 1099511627776 : i64
// CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %[[BIG]] : i64
// CHECK-NEXT: %[[LOW:.*]] = arith.trunci %[[SUM]] : i64 to i32
// CHECK-NEXT: linalg.yield %[[LOW]] : i32

// CHECK-LABEL: func.func private @k2_fill
// CHECK: %[[LEAST:.*]] = arith.constant -2147483648 : i64
// CHECK: arith.trunci %[[LEAST]] : i64 to i32

// CHECK-LABEL: func.func private @k3_eq
// CHECK: %[[MOST:.*]] = arith.constant 2147483647 : i64
// CHECK: arith.cmpi eq, %{{.*}}, %[[MOST]] : i64
func.func @main(%x: memref<65xf32, #f> {spyre_graph.name = "x"},
                %y: memref<65xi64, #i> {spyre_graph.name = "y"},
                %z: memref<65xi1, #b> {spyre_graph.name = "z"}) {
  spyre_graph.identity ins(%x : memref<65xf32, #f>) outs(%y : memref<65xi64, #i>)
      {maps = [#id, #id], extents = array<i64: 65>, division = #div}
  spyre_graph.add ins(%y : memref<65xi64, #i>) outs(%y : memref<65xi64, #i>)
      {maps = [#id, #id], extents = array<i64: 65>, division = #div, immediates = [unit, 1099511627776 : i64]}
  spyre_graph.fill outs(%y : memref<65xi64, #i>)
      {maps = [#id], extents = array<i64: 65>, division = #div, immediates = [-9223372036854775808 : i64]}
  spyre_graph.eq ins(%y : memref<65xi64, #i>) outs(%z : memref<65xi1, #b>)
      {maps = [#id, #id], extents = array<i64: 65>, division = #div, immediates = [unit, 9223372036854775807 : i64]}
  return
}
