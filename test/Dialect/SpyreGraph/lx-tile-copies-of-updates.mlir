// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning --spyre-memory-planning --spyre-verify-plan | FileCheck %s

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#by_row = #spyre_graph.division<splits = [32, 1], chunks = [64, 2048]>

// Tiles that are read twice are copied.
// CHECK-LABEL: func.func @read(
// CHECK: %[[TILE:.+]] = memref.subview %arg0
// CHECK: spyre_graph.identity ins(%[[TILE]]
// CHECK-NOT: subview %arg0
// CHECK: return
func.func @read(%x: memref<8192x2048xf16, #l>, %y: memref<8192x2048xf16, #l>, %z: memref<8192x2048xf16, #l>) {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %c8192 = arith.constant 8192 : index
  scf.for %i = %c0 to %c8192 step %c2048 {
    %a = memref.subview %x[%i, 0] [2048, 2048] [1, 1] : memref<8192x2048xf16, #l> to memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>
    %b = memref.subview %x[%i, 0] [2048, 2048] [1, 1] : memref<8192x2048xf16, #l> to memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>
    %v = memref.subview %y[%i, 0] [2048, 2048] [1, 1] : memref<8192x2048xf16, #l> to memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>
    %w = memref.subview %z[%i, 0] [2048, 2048] [1, 1] : memref<8192x2048xf16, #l> to memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>
    spyre_graph.neg ins(%a : memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>) outs(%v : memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 2048, 2048>, division = #by_row}
    spyre_graph.abs ins(%b : memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>) outs(%w : memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 2048, 2048>, division = #by_row}
  }
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#by_row = #spyre_graph.division<splits = [32, 1], chunks = [64, 2048]>

// The second operation reads what the first one has written to the same place.
// CHECK-LABEL: func.func @update(
// CHECK-NOT: identity
// CHECK: return
func.func @update(%x: memref<8192x2048xf16, #l>, %y: memref<8192x2048xf16, #l>, %z: memref<8192x2048xf16, #l>) {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %c8192 = arith.constant 8192 : index
  scf.for %i = %c0 to %c8192 step %c2048 {
    %a = memref.subview %x[%i, 0] [2048, 2048] [1, 1] : memref<8192x2048xf16, #l> to memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>
    %b = memref.subview %x[%i, 0] [2048, 2048] [1, 1] : memref<8192x2048xf16, #l> to memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>
    %c = memref.subview %x[%i, 0] [2048, 2048] [1, 1] : memref<8192x2048xf16, #l> to memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>
    %v = memref.subview %y[%i, 0] [2048, 2048] [1, 1] : memref<8192x2048xf16, #l> to memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>
    %w = memref.subview %z[%i, 0] [2048, 2048] [1, 1] : memref<8192x2048xf16, #l> to memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>
    %part = memref.subview %x[%i, 0] [2048, 2048] [1, 1] : memref<8192x2048xf16, #l> to memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>
    spyre_graph.neg ins(%a : memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>) outs(%v : memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 2048, 2048>, division = #by_row}
    spyre_graph.exp ins(%b : memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>) outs(%part : memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 2048, 2048>, division = #by_row}
    spyre_graph.abs ins(%c : memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>) outs(%w : memref<2048x2048xf16, strided<[2048, 1], offset: ?>, #l>) {maps = [#id, #id], extents = array<i64: 2048, 2048>, division = #by_row}
  }
  return
}
