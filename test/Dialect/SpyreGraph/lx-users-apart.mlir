// SPDX-License-Identifier: Apache-2.0
// Users of one buffer that read it in different ways. All plans give the same bits.
// RUN: rm -rf %t && split-file %s %t

// The one that reads what its core wrote reads it in LX. The other one reads it in
// device memory, or after a move over the ring.
// RUN: spyre-opt %t/two.mlir --spyre-lx-planning="reshard=false" --spyre-memory-planning --spyre-verify-plan -o %t/two-stay.mlir
// RUN: FileCheck %s --check-prefix=STAY --input-file=%t/two-stay.mlir
// RUN: spyre-opt %t/two.mlir --spyre-lx-planning --spyre-memory-planning --spyre-verify-plan -o %t/two-move.mlir
// RUN: FileCheck %s --check-prefix=MOVE --input-file=%t/two-move.mlir
// RUN: spyre-opt %t/two.mlir --spyre-lx-planning="capacity=0" --spyre-memory-planning -o %t/two-memory.mlir
// RUN: %python %S/Inputs/run_plans.py %t/run %t/two-stay.mlir %t/two-move.mlir %t/two-memory.mlir | FileCheck %s --check-prefix=THREE
// STAY: %[[MEMORY:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool
// STAY: %[[LX:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx
// STAY: spyre_graph.exp {{.*}} outs(%[[LX]]
// STAY: spyre_graph.identity ins(%[[LX]] {{.*}} outs(%[[MEMORY]]
// STAY: spyre_graph.neg ins(%[[LX]]
// STAY: spyre_graph.abs ins(%[[MEMORY]]
// MOVE: %[[LX:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx
// MOVE: spyre_graph.exp {{.*}} outs(%[[LX]]
// MOVE: spyre_graph.neg ins(%[[LX]]
// MOVE: spyre_graph.reshard ins(%[[LX]] {{.*}} outs(%[[MOVED:[a-z_0-9]*]]
// MOVE: spyre_graph.abs ins(%[[MOVED]]
// THREE: 3 plans give the same bits

// What a loop reads moves once, before it.
// RUN: spyre-opt %t/loop.mlir --spyre-lx-planning --spyre-memory-planning --spyre-verify-plan -o %t/loop-move.mlir
// RUN: FileCheck %s --check-prefix=LOOP --input-file=%t/loop-move.mlir
// RUN: spyre-opt %t/loop.mlir --spyre-lx-planning="capacity=0" --spyre-memory-planning -o %t/loop-memory.mlir
// RUN: %python %S/Inputs/run_plans.py %t/run %t/loop-move.mlir %t/loop-memory.mlir | FileCheck %s --check-prefix=BITS
// LOOP: spyre_graph.reshard {{.*}} outs(%[[MOVED:[a-z_0-9]*]]
// LOOP: scf.for
// LOOP-NEXT: spyre_graph.abs ins(%[[MOVED]]
// BITS: 2 plans give the same bits

// Four heads share a part of %v. A core that has two of them would read it twice
// in device memory; it moves, or is copied, to both.
// RUN: spyre-opt %t/heads.mlir --spyre-lx-planning="reshard=false" --spyre-memory-planning --spyre-verify-plan -o %t/heads-copy.mlir
// RUN: FileCheck %s --check-prefix=COPY --input-file=%t/heads-copy.mlir
// RUN: spyre-opt %t/heads.mlir --spyre-lx-planning --spyre-memory-planning --spyre-verify-plan -o %t/heads-move.mlir
// RUN: FileCheck %s --check-prefix=HEADS --input-file=%t/heads-move.mlir
// RUN: spyre-opt %t/heads.mlir --spyre-lx-planning="capacity=0" --spyre-memory-planning -o %t/heads-memory.mlir
// RUN: %python %S/Inputs/run_plans.py %t/run %t/heads-copy.mlir %t/heads-move.mlir %t/heads-memory.mlir | FileCheck %s --check-prefix=THREE
// COPY: %[[MEMORY:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool
// COPY: spyre_graph.exp {{.*}} outs(%[[MEMORY]]
// COPY: spyre_graph.identity ins(%[[MEMORY]] {{.*}} outs(%[[LX:[a-z_0-9]*]]
// COPY: spyre_graph.matmul ins(%arg0, %[[LX]]
// HEADS: spyre_graph.reshard {{.*}} outs(%[[MOVED:[a-z_0-9]*]] {{.*}}splits = [2, 1, 1, 2], chunks = [1, 512, 64, 1], order = [3, 0, 1, 2]
// HEADS: spyre_graph.matmul ins(%arg0, %[[MOVED]]

//--- two.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = #spyre_graph.division<splits = [32, 1], chunks = [4, 1024]>
#columns = #spyre_graph.division<splits = [1, 16], chunks = [128, 64]>
func.func @main(%x: memref<128x1024xf16, #l> {spyre_graph.name = "x"},
                %y: memref<128x1024xf16, #l> {spyre_graph.name = "out0"}, %z: memref<128x1024xf16, #l> {spyre_graph.name = "out1"}) {
  %a = memref.alloc() : memref<128x1024xf16, #l>
  spyre_graph.exp ins(%x : memref<128x1024xf16, #l>) outs(%a : memref<128x1024xf16, #l>) {maps = [#id, #id], extents = array<i64: 128, 1024>, division = #rows}
  spyre_graph.neg ins(%a : memref<128x1024xf16, #l>) outs(%y : memref<128x1024xf16, #l>) {maps = [#id, #id], extents = array<i64: 128, 1024>, division = #rows}
  spyre_graph.abs ins(%a : memref<128x1024xf16, #l>) outs(%z : memref<128x1024xf16, #l>) {maps = [#id, #id], extents = array<i64: 128, 1024>, division = #columns}
  return
}
//--- loop.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = #spyre_graph.division<splits = [32, 1], chunks = [4, 1024]>
#columns = #spyre_graph.division<splits = [1, 16], chunks = [128, 64]>
func.func @main(%x: memref<128x1024xf16, #l> {spyre_graph.name = "x"}, %y: memref<128x1024xf16, #l> {spyre_graph.name = "out0"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<128x1024xf16, #l>
  spyre_graph.exp ins(%x : memref<128x1024xf16, #l>) outs(%a : memref<128x1024xf16, #l>) {maps = [#id, #id], extents = array<i64: 128, 1024>, division = #rows}
  scf.for %i = %c0 to %c4 step %c1 {
    spyre_graph.abs ins(%a : memref<128x1024xf16, #l>) outs(%y : memref<128x1024xf16, #l>) {maps = [#id, #id], extents = array<i64: 128, 1024>, division = #columns}
  }
  return
}
//--- heads.mlir
#l = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#id = affine_map<(h, k, j) -> (h, k, j)>
func.func @main(%p: memref<8x1x512xf16, #l> {spyre_graph.name = "p"}, %y: memref<2x512x64xf16, #l> {spyre_graph.name = "y"}, %o: memref<8x1x64xf16, #l> {spyre_graph.name = "out0"}) {
  %v = memref.alloc() : memref<2x512x64xf16, #l>
  spyre_graph.exp ins(%y : memref<2x512x64xf16, #l>) outs(%v : memref<2x512x64xf16, #l>) {maps = [#id, #id], extents = array<i64: 2, 512, 64>, division = #spyre_graph.division<splits = [2, 8, 1], chunks = [1, 64, 64]>}
  spyre_graph.matmul ins(%p, %v : memref<8x1x512xf16, #l>, memref<2x512x64xf16, #l>) outs(%o : memref<8x1x64xf16, #l>) {maps = [affine_map<(h, i, j, k) -> (h, i, k)>, affine_map<(h, i, j, k) -> (h floordiv 4, k, j)>, affine_map<(h, i, j, k) -> (h, i, j)>], extents = array<i64: 8, 1, 64, 512>, division = #spyre_graph.division<splits = [4, 1, 1, 1], chunks = [2, 1, 64, 512]>}
  return
}
