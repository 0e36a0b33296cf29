// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="capacity=10240 in-place=false" --spyre-memory-planning --spyre-verify-plan | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="capacity=10240 in-place=false" --remark-policy=all --remarks-filter=spyre-lx-planning -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// 10240 x 0.8 are 8192 bytes: room for two of these buffers.

// A result that is read again is computed in LX and copied out.
// REMARK: remark: [Analysis] placement | {{.*}}Function=result | Remark="1 of 1 buffers in LX save 8192 bytes of traffic; proven optimal: all fit"
// CHECK-LABEL: func.func @result
// CHECK-SAME: %[[Y:arg1]]: memref
// CHECK: %[[COPY:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx
// CHECK: spyre_graph.neg {{.*}} outs(%[[COPY]]
// CHECK: spyre_graph.identity ins(%[[COPY]] : {{.*}}) outs(%[[Y]]
// CHECK: spyre_graph.exp ins(%[[COPY]]
// CHECK: spyre_graph.abs ins(%[[COPY]]
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [32, 64]>
func.func @result(%x: memref<32x64xf16, #l>, %y: memref<32x64xf16, #l>, %z: memref<32x64xf16, #l>, %w: memref<32x64xf16, #l>) {
  spyre_graph.neg ins(%x : memref<32x64xf16, #l>) outs(%y : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.exp ins(%y : memref<32x64xf16, #l>) outs(%z : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.abs ins(%y : memref<32x64xf16, #l>) outs(%w : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  return
}

// -----

// Made one after the other, four buffers live at once; used as soon as they are
// made, one at a time, beside the copy of %x.
// REMARK: remark: [Passed] order | {{.*}}Function=order | Remark="operations in another order: 24576 more bytes of traffic saved"
// REMARK: remark: [Analysis] placement | {{.*}}Function=order | Remark="5 of 5 buffers in LX
// CHECK-LABEL: func.func @order
// CHECK: spyre_graph.identity
// CHECK-NEXT: spyre_graph.neg
// CHECK-NEXT: spyre_graph.exp
// CHECK-NEXT: spyre_graph.neg
// CHECK-NEXT: spyre_graph.exp
// CHECK-NEXT: spyre_graph.neg
// CHECK-NEXT: spyre_graph.exp
// CHECK-NEXT: spyre_graph.neg
// CHECK-NEXT: spyre_graph.exp
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [32, 64]>
func.func @order(%x: memref<32x64xf16, #l>, %y: memref<32x64xf16, #l>, %z: memref<32x64xf16, #l>, %w: memref<32x64xf16, #l>, %v: memref<32x64xf16, #l>) {
  %a = memref.alloc() : memref<32x64xf16, #l>
  %b = memref.alloc() : memref<32x64xf16, #l>
  %c = memref.alloc() : memref<32x64xf16, #l>
  %e = memref.alloc() : memref<32x64xf16, #l>
  spyre_graph.neg ins(%x : memref<32x64xf16, #l>) outs(%a : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.neg ins(%x : memref<32x64xf16, #l>) outs(%b : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.neg ins(%x : memref<32x64xf16, #l>) outs(%c : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.neg ins(%x : memref<32x64xf16, #l>) outs(%e : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.exp ins(%a : memref<32x64xf16, #l>) outs(%y : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.exp ins(%b : memref<32x64xf16, #l>) outs(%z : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.exp ins(%c : memref<32x64xf16, #l>) outs(%w : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.exp ins(%e : memref<32x64xf16, #l>) outs(%v : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  return
}

// -----

// %a lives from one end to the other; between its reads two others need the
// room. It is written to memory, with one copy in LX for the first read and one
// for those at the end.
// REMARK: remark: [Passed] spilled | {{.*}}Function=spilled | Remark="in device memory, with a copy in LX for a part of its life"
// REMARK: remark: [Analysis] placement | {{.*}}Function=spilled | Remark="4 of 4 buffers in LX save 32768 bytes of traffic; all fit, as 1 are in device memory for a part of their life"
// CHECK-LABEL: func.func @spilled
// CHECK: %[[A:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool
// CHECK: spyre_graph.neg {{.*}} outs(%[[EARLY:.*]] :
// CHECK: spyre_graph.identity ins(%[[EARLY]] : {{.*}}) outs(%[[A]]
// CHECK: spyre_graph.exp ins(%[[EARLY]]
// CHECK: spyre_graph.identity ins(%[[A]] : {{.*}}) outs(%[[LATE:.*]] :
// CHECK: spyre_graph.add ins(%[[LATE]]
// CHECK: spyre_graph.mul ins(%[[LATE]]
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [32, 64]>
#first = affine_map<(i, j) -> (0, j)>
func.func @spilled(%x: memref<32x64xf16, #l>, %y: memref<32x64xf16, #l>, %z: memref<32x64xf16, #l>, %w: memref<32x64xf16, #l>, %v: memref<32x64xf16, #l>) {
  %a = memref.alloc() : memref<32x64xf16, #l>
  %b = memref.alloc() : memref<32x64xf16, #l>
  %c = memref.alloc() : memref<32x64xf16, #l>
  spyre_graph.neg ins(%x : memref<32x64xf16, #l>) outs(%a : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.exp ins(%a : memref<32x64xf16, #l>) outs(%b : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.neg ins(%b : memref<32x64xf16, #l>) outs(%c : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.mul ins(%b, %c : memref<32x64xf16, #l>, memref<32x64xf16, #l>) outs(%y : memref<32x64xf16, #l>) {maps = [#id, #id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.relu ins(%c : memref<32x64xf16, #l>) outs(%z : memref<32x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.add ins(%a, %z : memref<32x64xf16, #l>, memref<32x64xf16, #l>) outs(%w : memref<32x64xf16, #l>) {maps = [#id, #first, #id], extents = array<i64: 32, 64>, division = #d}
  spyre_graph.mul ins(%a, %z : memref<32x64xf16, #l>, memref<32x64xf16, #l>) outs(%v : memref<32x64xf16, #l>) {maps = [#id, #first, #id], extents = array<i64: 32, 64>, division = #d}
  return
}

// -----

// Three partners hold the sum of one row; the first writes it to device memory,
// and alone reads it there where one core is enough.
// CHECK-LABEL: func.func @partners
// CHECK-SAME: %[[M:arg1]]: memref
// CHECK: %[[HELD:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 128
// CHECK: spyre_graph.max {{.*}} outs(%[[HELD]] {{.*}}splits = [1, 3]
// CHECK-NEXT: spyre_graph.identity ins(%[[HELD]] : {{.*}}) outs(%[[M]] {{.*}}splits = [1, 1]{{.*}} extents = array<i64: 1, 1>
// CHECK-NEXT: spyre_graph.sub ins(%{{.*}}, %[[HELD]]
// CHECK-NEXT: spyre_graph.neg ins(%[[HELD]]
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>
#d = #spyre_graph.division<splits = [1, 3], chunks = [1, 64]>
#one = #spyre_graph.division<splits = [1, 1], chunks = [1, 1]>
func.func @partners(%x: memref<1x192xf16, #l>, %m: memref<1x1xf16, #l>, %y: memref<1x192xf16, #l>, %z: memref<1x1xf16, #l>) {
  spyre_graph.max ins(%x : memref<1x192xf16, #l>) outs(%m : memref<1x1xf16, #l>) {dims = array<i64: 1>, maps = [#id, #row], extents = array<i64: 1, 192>, division = #d}
  spyre_graph.sub ins(%x, %m : memref<1x192xf16, #l>, memref<1x1xf16, #l>) outs(%y : memref<1x192xf16, #l>) {maps = [#id, #row, #id], extents = array<i64: 1, 192>, division = #d}
  spyre_graph.neg ins(%m : memref<1x1xf16, #l>) outs(%z : memref<1x1xf16, #l>) {maps = [#id, #id], extents = array<i64: 1, 1>, division = #one}
  return
}

// -----

// Of two groups of partners no core holds both rows, and no division takes the
// first core of each: the result stays in device memory, where it is once.
// CHECK-LABEL: func.func @groups
// CHECK-SAME: %[[M:arg1]]: memref
// CHECK: spyre_graph.max {{.*}} outs(%[[M]]
// CHECK-NEXT: spyre_graph.sub ins(%{{.*}}, %[[M]]
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>
#d = #spyre_graph.division<splits = [2, 3], chunks = [1, 64], order = [1, 0]>
func.func @groups(%x: memref<2x192xf16, #l>, %m: memref<2x1xf16, #l>, %y: memref<2x192xf16, #l>) {
  spyre_graph.max ins(%x : memref<2x192xf16, #l>) outs(%m : memref<2x1xf16, #l>) {dims = array<i64: 1>, maps = [#id, #row], extents = array<i64: 2, 192>, division = #d}
  spyre_graph.sub ins(%x, %m : memref<2x192xf16, #l>, memref<2x1xf16, #l>) outs(%y : memref<2x192xf16, #l>) {maps = [#id, #row, #id], extents = array<i64: 2, 192>, division = #d}
  return
}

// -----

// A core that reads must have been written to: one core writes, three read
// what moves to them.
// CHECK-LABEL: func.func @readers
// CHECK: spyre_graph.neg {{.*}} outs(%[[WRITTEN:[^ ]*]]
// CHECK: spyre_graph.reshard ins(%[[WRITTEN]] {{.*}} outs(%[[MOVED:[^ ]*]]
// CHECK-NEXT: spyre_graph.sub ins(%{{.*}}, %[[MOVED]]
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>
#d = #spyre_graph.division<splits = [1, 3], chunks = [1, 64]>
#one = #spyre_graph.division<splits = [1, 1], chunks = [1, 1]>
func.func @readers(%x: memref<1x192xf16, #l>, %m: memref<1x1xf16, #l>, %y: memref<1x192xf16, #l>) {
  %a = memref.alloc() : memref<1x1xf16, #l>
  spyre_graph.neg ins(%m : memref<1x1xf16, #l>) outs(%a : memref<1x1xf16, #l>) {maps = [#id, #id], extents = array<i64: 1, 1>, division = #one}
  spyre_graph.sub ins(%x, %a : memref<1x192xf16, #l>, memref<1x1xf16, #l>) outs(%y : memref<1x192xf16, #l>) {maps = [#id, #row, #id], extents = array<i64: 1, 192>, division = #d}
  return
}
