// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir --canonicalize | FileCheck %s
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir -o %t.mlir
// RUN: spyre-run %t.mlir --predict-only --arg zeros --arg zeros --arg zeros --arg zeros --arg zeros --arg zeros --json %t.json
// RUN: FileCheck %s --check-prefix=TRAFFIC < %t.json

// All of these slices fit LX. They are cut so that cores compute while they
// load, and yet nothing is read twice: x (64 x 512) by 32 cores, of which 8 share
// a transfer, w (512 x 2048) and twice e (1024 x 1024).
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>

// Along the depth, which both factors have, in pieces that are not too short:
// each run of sticks that follow each other in memory costs.
// CHECK-LABEL: func.func private @k0_matmul
// CHECK: scf.for {{.*}} iter_args
// CHECK: ktdp.load {{.*}} -> tensor<64x128xf16>
// CHECK: ktdp.load {{.*}} -> tensor<64x128xf16>
// CHECK: scf.yield
// CHECK-NOT: scf.for
// CHECK: return

// Along the columns: 32 sticks below each other are one run, four of each of 16
// columns of sticks would be 16 runs.
// CHECK-LABEL: func.func private @k1_exp
// CHECK: scf.for
// CHECK: ktdp.load {{.*}} -> tensor<32x128xf16>
// CHECK: ktdp.store
// CHECK: return

// A sum stays whole: its order is the same wherever its input lies.
// CHECK-LABEL: func.func private @k2_sum
// CHECK-NOT: scf.for
// CHECK: return

// TRAFFIC: "device_memory": {
// TRAFFIC: "read": 6553600
func.func @main(%x: memref<64x512xf16, #l>, %w: memref<512x2048xf16, #l>, %o: memref<64x2048xf16, #l>, %e: memref<1024x1024xf16, #l>, %f: memref<1024x1024xf16, #l>, %s: memref<1x1024xf16, #l>) {
  spyre_graph.matmul ins(%x, %w : memref<64x512xf16, #l>, memref<512x2048xf16, #l>) outs(%o : memref<64x2048xf16, #l>)
    {division = #spyre_graph.division<splits = [1, 32, 1], chunks = [64, 64, 512]>}
  spyre_graph.exp ins(%e : memref<1024x1024xf16, #l>) outs(%f : memref<1024x1024xf16, #l>)
    {division = #spyre_graph.division<splits = [32, 1], chunks = [32, 1024]>}
  spyre_graph.sum ins(%e : memref<1024x1024xf16, #l>) outs(%s : memref<1x1024xf16, #l>)
    {dims = array<i64: 0>, division = #spyre_graph.division<splits = [1, 16], chunks = [1024, 64]>}
  return
}
