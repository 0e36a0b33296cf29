// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir | FileCheck %s

// The second factor of a product of 8 bits has two steps of the reduction in a
// stick: lane 2 x (n mod 64) + k mod 2 of stick (n floordiv 64, k floordiv 2).
#k = #spyre_graph.layout<order = [0, 1], SEN143_FP8>
#wide = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#packed = #spyre_graph.layout<order = [0, 1], packed = 2, SEN143_FP8>
#id = affine_map<(k, n) -> (k, n)>

// CHECK-LABEL: func.func private @k0_identity
// CHECK: ktdp.construct_memory_view %{{.*}}, sizes: [2, 65, 128], strides: [8320, 128, 1]
// CHECK-SAME: memref<2x65x128xf8E4M3FN>
// CHECK-NEXT: ktdp.construct_indirect_access_tile intermediate_variables(%[[K:.*]], %[[N:.*]]) %{{.*}}[((%[[FIRST:.*]] + %[[N]]) floordiv 64), ((%[[ROW:.*]] + %[[K]]) floordiv 2), (((%[[FIRST]] + %[[N]]) mod 64) * 2 + (%[[ROW]] + %[[K]]) mod 2)]
// CHECK-LABEL: func.func private @k1_matmul
// CHECK: arith.mulf
func.func @main(%x: memref<3x130xf8E4M3FN, #k> {spyre_graph.name = "x"},
                %y: memref<130x70xf16, #wide> {spyre_graph.name = "y"},
                %out: memref<3x70xf16, #wide> {spyre_graph.name = "out0"})
    attributes {spyre_graph.pool_size = 16640 : i64} {
  %p = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<130x70xf8E4M3FN, #packed>
  spyre_graph.identity ins(%y : memref<130x70xf16, #wide>) outs(%p : memref<130x70xf8E4M3FN, #packed>)
      {maps = [#id, #id], extents = array<i64: 130, 70>,
       division = #spyre_graph.division<splits = [1, 2], chunks = [130, 64]>}
  spyre_graph.matmul ins(%x, %p : memref<3x130xf8E4M3FN, #k>, memref<130x70xf8E4M3FN, #packed>)
      outs(%out : memref<3x70xf16, #wide>)
      {maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
       extents = array<i64: 3, 70, 130>,
       division = #spyre_graph.division<splits = [1, 2, 1], chunks = [3, 64, 130]>}
  return
}
