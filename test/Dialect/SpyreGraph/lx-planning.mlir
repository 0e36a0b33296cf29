// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="reshard=false" | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="capacity=5120 in-place=false" | FileCheck %s --check-prefix=SMALL
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="solver=greedy" | FileCheck %s --check-prefix=GREEDY
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="solver=firstfit" | FileCheck %s --check-prefix=FIT
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="solver=bestfit" | FileCheck %s --check-prefix=FIT
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="mode=reference solver=greedy" | FileCheck %s --check-prefix=REFERENCE
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning --spyre-memory-planning --spyre-verify-plan -o /dev/null
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="capacity=5120 reshard=false" --remark-policy=all --remarks-filter=spyre-lx-planning -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="capacity=5120 in-place=false" --remark-policy=all --remarks-filter=spyre-lx-planning -o /dev/null 2>&1 | FileCheck %s --check-prefix=BOUND
// RUN: not spyre-opt %s --split-input-file --spyre-lx-planning="mode=magic" 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not spyre-opt %s --split-input-file --spyre-lx-planning="solver=magic" 2>&1 | FileCheck %s --check-prefix=SOLVER
// RUN: not spyre-opt %s --split-input-file --spyre-lx-planning="lx-fraction=1.5" 2>&1 | FileCheck %s --check-prefix=FRACTION
// RUN: not spyre-opt %s --split-input-file --spyre-lx-planning="max-span=-64" 2>&1 | FileCheck %s --check-prefix=SPAN
// RUN: not spyre-opt %s --split-input-file --spyre-verify-plan="capacity=-5" 2>&1 | FileCheck %s --check-prefix=CAPACITY
// RUN: not spyre-opt %s --split-input-file --spyre-verify-plan="cores=0" 2>&1 | FileCheck %s --check-prefix=CORES
// RUN: not spyre-opt %s --split-input-file --convert-spyre-graph-to-ktir="lx-bytes=-7" 2>&1 | FileCheck %s --check-prefix=BYTES

// SPAN: error: expected a max-span of at least 1 byte, found -64
// CAPACITY: error: expected a capacity of at least 0 and a fraction from 0 to 1, found -5 and
// CORES: error: expected 1 to 32 cores, found 0
// BYTES: error: expected at least 0 bytes of LX, found -7
// SOLVER: error: unknown solver 'magic', expected 'greedy', 'firstfit', 'bestfit' or 'optimal'
// MODE: error: unknown mode 'magic', expected 'default' or 'reference'
// FRACTION: error: expected a capacity of at least 0 and a fraction from 0 to 1, found 2097152 and 1.5

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#by_row = #spyre_graph.division<splits = [32, 1], chunks = [2, 64]>

// Three buffers of 256 bytes per core. exp may write over its operand, which
// nothing else reads; the second neg may not, because add reads its operand too.
// CHECK-LABEL: func.func @reuse
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [2, 64]>}
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [2, 64]>}
// CHECK: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 256, local = [2, 64]>}
// REMARK: remark: [Passed] placed | Category:spyre-lx-planning | Function=reuse | Remark="in LX at byte 0: 256 bytes per core, saves 16384 bytes of traffic"
// REMARK: remark: [Passed] placed | {{.*}}Remark="in LX in place of an operand at byte 0: 256 bytes per core, saves 24576 bytes of traffic"
// Greedy gives the third the end of the highest live one.
// GREEDY-LABEL: func.func @reuse
// GREEDY: offset = 0, local
// GREEDY: offset = 0, local
// GREEDY: offset = 256, local
// The second is the first's child and placed at its offset.
// FIT-LABEL: func.func @reuse
// FIT: offset = [[FIRST:[0-9]+]], local
// FIT: offset = [[FIRST]], local
// FIT: offset = {{[0-9]+}}, local
// The reference keeps the result of exp, but not that of neg.
// REFERENCE-LABEL: func.func @reuse
// REFERENCE: memref.alloc() : memref
// REFERENCE: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0
// REFERENCE: memref.alloc() : memref
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
// REMARK: Function=full | Remark="in LX in place of an operand at byte 0: 4096 bytes per core
// BOUND: Function=full | Remark="1 of 2 buffers in LX save 8192 bytes of traffic; proven optimal for this order of the operations"
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
// REMARK: [Missed] ineligible | {{.*}}Function=ineligible | Remark="left in device memory: users access it in different slices"
// REMARK: [Missed] ineligible | {{.*}}Remark="left in device memory: a user accesses a part of a divided dimension"
// REMARK: [Missed] not-fitting | {{.*}}Remark="left in device memory: no room for its 8192 bytes per core among 4096"
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

// -----

#l = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#id = affine_map<(i, j, k) -> (i, j, k)>
#tr = affine_map<(i, j, k) -> (j, i, k)>
#one = #spyre_graph.division<splits = [1, 1, 1], chunks = [8, 8, 64]>

// An element may not be written before another iteration reads it: the sum of a
// tensor and its transpose is not in place.
// CHECK-LABEL: func.func @transposed_sum
// CHECK: offset = 0, local
// CHECK: offset = 8192, local
func.func @transposed_sum(%x: memref<8x8x64xf16, #l>, %y: memref<8x8x64xf16, #l>) {
  %a = memref.alloc() : memref<8x8x64xf16, #l>
  %b = memref.alloc() : memref<8x8x64xf16, #l>
  spyre_graph.neg ins(%x : memref<8x8x64xf16, #l>) outs(%a : memref<8x8x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 8, 8, 64>, division = #one}
  spyre_graph.add ins(%a, %a : memref<8x8x64xf16, #l>, memref<8x8x64xf16, #l>) outs(%b : memref<8x8x64xf16, #l>) {maps = [#id, #tr, #id], extents = array<i64: 8, 8, 64>, division = #one}
  spyre_graph.neg ins(%b : memref<8x8x64xf16, #l>) outs(%y : memref<8x8x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 8, 8, 64>, division = #one}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#s = #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>
#swap = affine_map<(j, i) -> (i, j)>
#d = #spyre_graph.division<splits = [4, 2], chunks = [16, 64]>
#by_row = #spyre_graph.division<splits = [4, 1], chunks = [16, 128]>

// %x and %z are read twice in the same slices: copied. Of %z, two cores hold the
// same slice: a loop that the maps do not use tells them apart. The copies' loops
// are in the order of the cores. %y is written twice: not copied.
// CHECK-LABEL: func.func @clones
// CHECK-SAME: %[[X:arg0]]: {{.*}}, %[[Z:arg1]]: {{.*}}, %[[Y:arg2]]:
// CHECK: spyre_graph.identity ins(%[[X]] {{.*}}) outs(%[[CLONE:.*]] : {{.*}}) {division = #spyre_graph.division<splits = [4, 2], chunks = [16, 64]>
// CHECK: spyre_graph.identity ins(%[[Z]] {{.*}}) outs(%[[CLONE2:.*]] : {{.*}}) {division = #spyre_graph.division<splits = [4, 2, 1], chunks = [16, 1, 1]>, extents = array<i64: 64, 2, 1>
// CHECK: spyre_graph.add ins(%[[CLONE]], %[[CLONE2]]
// CHECK: spyre_graph.sub ins(%[[CLONE]], %[[CLONE2]]
// CHECK-NOT: identity
// REFERENCE-LABEL: func.func @clones
// REFERENCE-NOT: identity
// REFERENCE: return
func.func @clones(%x: memref<64x128xf16, #l>, %z: memref<64x1xf16, #s>, %y: memref<64x128xf16, #l>) {
  %a = memref.alloc() : memref<64x128xf16, #l>
  spyre_graph.add ins(%x, %z : memref<64x128xf16, #l>, memref<64x1xf16, #s>) outs(%a : memref<64x128xf16, #l>) {maps = [#id, #row, #id], extents = array<i64: 64, 128>, division = #d}
  spyre_graph.sub ins(%x, %z : memref<64x128xf16, #l>, memref<64x1xf16, #s>) outs(%y : memref<64x128xf16, #l>) {maps = [#id, #row, #id], extents = array<i64: 64, 128>, division = #d}
  spyre_graph.mul ins(%y, %a : memref<64x128xf16, #l>, memref<64x128xf16, #l>) outs(%y : memref<64x128xf16, #l>) {maps = [#id, #id, #id], extents = array<i64: 64, 128>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(j, i) -> (i, j)>
#columns_first = #spyre_graph.division<splits = [2, 4], chunks = [64, 16]>

// CHECK-LABEL: func.func @clone_of_columns
// CHECK: spyre_graph.identity {{.*}}{division = #spyre_graph.division<splits = [2, 4], chunks = [64, 16]>, extents = array<i64: 128, 64>
func.func @clone_of_columns(%x: memref<64x128xf16, #l>, %y: memref<64x128xf16, #l>, %z: memref<64x128xf16, #l>) {
  spyre_graph.exp ins(%x : memref<64x128xf16, #l>) outs(%y : memref<64x128xf16, #l>) {maps = [#swap, #swap], extents = array<i64: 128, 64>, division = #columns_first}
  spyre_graph.neg ins(%x : memref<64x128xf16, #l>) outs(%z : memref<64x128xf16, #l>) {maps = [#swap, #swap], extents = array<i64: 128, 64>, division = #columns_first}
  return
}
