// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-memory-planning | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-memory-planning --spyre-memory-planning | FileCheck %s

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#one = #spyre_graph.layout<order = [0], SEN169_FP16>

// 33 rows of 65 columns are 66 sticks. The third buffer takes the first one's
// place; what is in LX takes none; an unused allocation goes away.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: attributes {spyre_graph.pool_size = 16896 : i64}
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>}
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 256, local = [33, 65]>}
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 8448>}
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>}
// CHECK-NOT: memref.alloc
func.func @chain(%x: memref<33x65xf16, #l>, %y: memref<33x65xf16, #l>) {
  %a = memref.alloc() : memref<33x65xf16, #l>
  %p = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 256, local = [33, 65]>} : memref<33x65xf16, #l>
  %b = memref.alloc() : memref<33x65xf16, #l>
  %c = memref.alloc() : memref<33x65xf16, #l>
  %unused = memref.alloc() : memref<33x65xf16, #l>
  spyre_graph.neg ins(%x : memref<33x65xf16, #l>) outs(%a : memref<33x65xf16, #l>)
  spyre_graph.neg ins(%a : memref<33x65xf16, #l>) outs(%p : memref<33x65xf16, #l>)
  spyre_graph.add ins(%a, %p : memref<33x65xf16, #l>, memref<33x65xf16, #l>) outs(%b : memref<33x65xf16, #l>)
  spyre_graph.neg ins(%b : memref<33x65xf16, #l>) outs(%c : memref<33x65xf16, #l>)
  spyre_graph.neg ins(%c : memref<33x65xf16, #l>) outs(%y : memref<33x65xf16, #l>)
  return
}

// CHECK-LABEL: func.func @nothing
// CHECK-SAME: spyre_graph.pool_size = 0 : i64
func.func @nothing() {
  return
}

// Only %b has no place yet: it comes after the pool that there is.
// CHECK-LABEL: func.func @behind
// CHECK-SAME: spyre_graph.pool_size = 16896 : i64
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>}
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 8448>}
func.func @behind(%x: memref<33x65xf16, #l>, %y: memref<33x65xf16, #l>) attributes {spyre_graph.pool_size = 8448 : i64} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<33x65xf16, #l>
  %b = memref.alloc() : memref<33x65xf16, #l>
  spyre_graph.neg ins(%x : memref<33x65xf16, #l>) outs(%a : memref<33x65xf16, #l>)
  spyre_graph.neg ins(%a : memref<33x65xf16, #l>) outs(%b : memref<33x65xf16, #l>)
  spyre_graph.neg ins(%b : memref<33x65xf16, #l>) outs(%y : memref<33x65xf16, #l>)
  return
}
