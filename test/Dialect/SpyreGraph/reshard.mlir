// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning --spyre-memory-planning --spyre-verify-plan | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-set-target=target=superdsc --spyre-lx-planning | FileCheck %s --check-prefix=NONE
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="mode=reference" | FileCheck %s --check-prefix=NONE
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="reshard=false" | FileCheck %s --check-prefix=NONE
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning="capacity=10240" | FileCheck %s --check-prefix=NONE
// RUN: spyre-opt %s --split-input-file --spyre-lx-planning --spyre-memory-planning --convert-spyre-graph-to-ktir --ktdp-strict | FileCheck %s --check-prefix=KTIR

// Rows over 32 cores, then blocks of rows and columns: parts travel over the
// ring. 8 KiB per core before and after do not fit in 8 KiB: then nothing does.
// CHECK-LABEL: func.func @blocks
// CHECK: %[[A:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = {{[0-9]+}}, local = [8, 512]>}
// CHECK: spyre_graph.neg {{.*}} outs(%[[A]]
// CHECK: %[[B:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = {{[0-9]+}}, local = [32, 128]>}
// CHECK: spyre_graph.reshard ins(%[[A]] : {{.*}}) outs(%[[B]] : {{.*}} {division = #[[BLOCKS:.*]], extents = array<i64: 256, 512>, maps = [#{{.*}}, #{{.*}}], source_division = #[[ROWS:.*]]}
// CHECK: spyre_graph.exp ins(%[[B]]
// CHECK: spyre_graph.neg ins(%[[A]]
// NONE-LABEL: func.func @blocks
// NONE-NOT: reshard
// NONE: return
// KTIR-LABEL: func.func private @k{{[0-9]+}}_reshard
// KTIR-COUNT-32: memory_space = #ktdp.memory_space<ct_local, ct_id =
// KTIR: ktdp.construct_distributed_memory_view
// KTIR: ktdp.construct_access_tile
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = #spyre_graph.division<splits = [32, 1], chunks = [8, 512]>
#blocks = #spyre_graph.division<splits = [8, 4], chunks = [32, 128]>
func.func @blocks(%x: memref<256x512xf16, #l>, %y: memref<256x512xf16, #l>, %z: memref<256x512xf16, #l>) {
  %a = memref.alloc() : memref<256x512xf16, #l>
  spyre_graph.neg ins(%x : memref<256x512xf16, #l>) outs(%a : memref<256x512xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 512>, division = #rows}
  spyre_graph.exp ins(%a : memref<256x512xf16, #l>) outs(%y : memref<256x512xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 512>, division = #blocks}
  spyre_graph.neg ins(%a : memref<256x512xf16, #l>) outs(%z : memref<256x512xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 512>, division = #rows}
  return
}

// -----

// A matmul wants its rows on the eight cores that share them: a loop of eight
// tells the copies apart.
// CHECK-LABEL: func.func @copies
// CHECK: %[[B:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = {{[0-9]+}}, local = [64, 128]>}
// CHECK: spyre_graph.reshard {{.*}} outs(%[[B]] : {{.*}} {division = #[[COPIES:.*]], extents = array<i64: 256, 128, 8>, maps = [#{{.*}}, #{{.*}}], source_division = #{{.*}}}
// CHECK: spyre_graph.matmul ins(%[[B]]
// NONE-LABEL: func.func @copies
// NONE-NOT: reshard
// NONE: return
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = #spyre_graph.division<splits = [32, 1], chunks = [8, 128]>
func.func @copies(%x: memref<256x128xf16, #l>, %w: memref<128x512xf16, #l>, %y: memref<256x512xf16, #l>) {
  %a = memref.alloc() : memref<256x128xf16, #l>
  spyre_graph.neg ins(%x : memref<256x128xf16, #l>) outs(%a : memref<256x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 128>, division = #rows}
  spyre_graph.matmul ins(%a, %w : memref<256x128xf16, #l>, memref<128x512xf16, #l>) outs(%y : memref<256x512xf16, #l>) {maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], extents = array<i64: 256, 512, 128>, division = #spyre_graph.division<splits = [4, 8, 1], chunks = [64, 64, 128]>}
  return
}

// -----

// Four neighbours share a sum, and all hold the result: of each four the first
// one gives its part, so that 8 of 32 cores do.
// CHECK-LABEL: func.func @partners
// CHECK: %[[A:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = {{[0-9]+}}, local = [32, 128]>}
// CHECK: spyre_graph.matmul {{.*}} outs(%[[A]]
// CHECK: %[[B:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = {{[0-9]+}}, local = [8, 128]>}
// CHECK: spyre_graph.reshard ins(%[[A]] : {{.*}}) outs(%[[B]] : {{.*}} {division = #spyre_graph.division<splits = [32, 1, 1], chunks = [8, 128, 4]{{.*}}>, extents = array<i64: 256, 128, 4>, maps = [#{{.*}}, #{{.*}}], source_division = #spyre_graph.division<splits = [8, 1, 4], chunks = [32, 128, 1], order = [2, 0, 1]>}
// CHECK: spyre_graph.exp ins(%[[B]]
// NONE-LABEL: func.func @partners
// NONE-NOT: reshard
// NONE: return
// KTIR-LABEL: func.func private @k0_matmul
// KTIR: func.func private @k1_reshard
// KTIR: ct_id = 0>
// KTIR-NOT: ct_id =
// KTIR: ct_id = 4>
// KTIR-NOT: ct_id =
// KTIR: ct_id = 8>
// KTIR-NOT: ct_id =
// KTIR: ct_id = 12>
// KTIR-NOT: ct_id =
// KTIR: ct_id = 16>
// KTIR-NOT: ct_id =
// KTIR: ct_id = 20>
// KTIR-NOT: ct_id =
// KTIR: ct_id = 24>
// KTIR-NOT: ct_id =
// KTIR: ct_id = 28>
// KTIR-NOT: ct_id =
// KTIR: ktdp.construct_distributed_memory_view
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#shared = #spyre_graph.division<splits = [8, 1, 4], chunks = [32, 128, 64], order = [2, 0, 1]>
func.func @partners(%x: memref<256x256xf16, #l>, %w: memref<256x128xf16, #l>, %y: memref<256x128xf16, #l>) {
  %a = memref.alloc() : memref<256x128xf16, #l>
  spyre_graph.matmul ins(%x, %w : memref<256x256xf16, #l>, memref<256x128xf16, #l>) outs(%a : memref<256x128xf16, #l>) {maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], extents = array<i64: 256, 128, 256>, division = #shared}
  spyre_graph.exp ins(%a : memref<256x128xf16, #l>) outs(%y : memref<256x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 128>, division = #spyre_graph.division<splits = [32, 1], chunks = [8, 128]>}
  return
}
