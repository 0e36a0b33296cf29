// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="capacity=5120" | FileCheck %s --check-prefix=SMALL
// RUN: not spyre-opt %s --split-input-file --spyre-lx-planning="solver=magic" 2>&1 | FileCheck %s --check-prefix=SOLVER
// RUN: not spyre-opt %s --split-input-file --spyre-lx-planning="lx-fraction=1.5" 2>&1 | FileCheck %s --check-prefix=FRACTION

// SOLVER: error: unknown solver 'magic', expected 'greedy'
// FRACTION: error: expected a capacity of at least 0 and a fraction from 0 to 1, found 2097152 and 1.5

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#by_row = #spyre_graph.division<splits = [32, 1], chunks = [2, 64]>

// Three buffers, of which the first is dead when the third is made. Each core
// holds 2 of 64 rows: 256 bytes. With 5120 bytes, 4096 of them usable, all fit.
// CHECK-LABEL: func.func @reuse
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [2, 64]>}
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 256, local = [2, 64]>}
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [2, 64]>}
func.func @reuse(%x: memref<64x64xf16, #l>, %y: memref<64x64xf16, #l>) {
  %a = memref.alloc() : memref<64x64xf16, #l>
  %b = memref.alloc() : memref<64x64xf16, #l>
  %c = memref.alloc() : memref<64x64xf16, #l>
  spyre_graph.neg ins(%x : memref<64x64xf16, #l>) outs(%a : memref<64x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 64>, division = #by_row}
  spyre_graph.exp ins(%a : memref<64x64xf16, #l>) outs(%b : memref<64x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 64>, division = #by_row}
  spyre_graph.neg ins(%b : memref<64x64xf16, #l>) outs(%c : memref<64x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 64>, division = #by_row}
  spyre_graph.add ins(%b, %c : memref<64x64xf16, #l>, memref<64x64xf16, #l>) outs(%y : memref<64x64xf16, #l>) {maps = [#id, #id, #id], extents = array<i64: 64, 64>, division = #by_row}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#one = #spyre_graph.division<splits = [1, 1], chunks = [32, 64]>

// 32 sticks are 4096 bytes, which is all of 5120 x 0.8; the second buffer, live
// at the same time, finds no room.
// SMALL-LABEL: func.func @full
// SMALL: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [32, 64]>}
// SMALL: memref.alloc() : memref
func.func @full(%x: memref<32x64xf16, #l>, %y: memref<32x64xf16, #l>) {
  %a = memref.alloc() : memref<32x64xf16, #l>
  %b = memref.alloc() : memref<32x64xf16, #l>
  spyre_graph.neg ins(%x : memref<32x64xf16, #l>) outs(%a : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #one}
  spyre_graph.neg ins(%a : memref<32x64xf16, #l>) outs(%b : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #one}
  spyre_graph.neg ins(%b : memref<32x64xf16, #l>) outs(%y : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #one}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#i1 = #spyre_graph.layout<order = [0], IEEE_INT32>
#id = affine_map<(i, j) -> (i, j)>
#tr = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i + 1, j)>
#by_row = #spyre_graph.division<splits = [32, 1], chunks = [2, 64]>
#by_two = #spyre_graph.division<splits = [16, 1], chunks = [4, 64]>
#one = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>

// Other slices, transposed slices, a shifted access, a gathered table: memory.
// CHECK-LABEL: func.func @ineligible
// CHECK-COUNT-4: memref.alloc() : memref
// CHECK: return
func.func @ineligible(%x: memref<64x64xf16, #l>, %i: memref<64xi64, #i1>, %y: memref<64x64xf16, #l>) {
  %a = memref.alloc() : memref<64x64xf16, #l>
  %b = memref.alloc() : memref<64x64xf16, #l>
  %c = memref.alloc() : memref<64x64xf16, #l>
  %d = memref.alloc() : memref<64x64xf16, #l>
  spyre_graph.neg ins(%x : memref<64x64xf16, #l>) outs(%a : memref<64x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 64>, division = #by_row}
  spyre_graph.neg ins(%a : memref<64x64xf16, #l>) outs(%b : memref<64x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 64>, division = #by_two}
  spyre_graph.neg ins(%b : memref<64x64xf16, #l>) outs(%c : memref<64x64xf16, #l>) {maps = [#tr, #id], extents = array<i64: 64, 64>, division = #by_two}
  spyre_graph.neg ins(%c : memref<64x64xf16, #l>) outs(%d : memref<64x64xf16, #l>) {maps = [#row, #id], extents = array<i64: 63, 64>, division = #spyre_graph.division<splits = [16, 1], chunks = [4, 64]>}
  spyre_graph.neg ins(%c : memref<64x64xf16, #l>) outs(%d : memref<64x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 64>, division = #one}
  spyre_graph.gather ins(%d, %i : memref<64x64xf16, #l>, memref<64xi64, #i1>) outs(%y : memref<64x64xf16, #l>) {axis = 0 : i64, maps = [affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i)>, #id], extents = array<i64: 64, 64>, division = #one}
  return
}
