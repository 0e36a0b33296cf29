// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir --canonicalize | FileCheck %s
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir -o %t.mlir
// RUN: spyre-run %t.mlir --predict-only --arg zeros --arg zeros --arg zeros --json %t.json
// RUN: FileCheck %s --check-prefix=TRAFFIC < %t.json

// A core's part of the weight, 4096 x 256, is larger than its LX, so it is cut.
// Cutting the reduction loads nothing twice: one loop,
// and the bytes read are those of w (4096 x 4096) and, for 8 of 16 cores each, of
// x (128 x 4096).
// CHECK-LABEL: func.func private @k0_matmul
// CHECK: scf.for {{.*}} iter_args
// CHECK-NOT: scf.for
// CHECK: ktdp.load {{.*}} -> tensor<64x{{[0-9]+}}xf16>
// CHECK-NOT: scf.for
// CHECK: ktdp.load {{.*}} -> tensor<256x{{[0-9]+}}xf16>
// CHECK-NOT: scf.for
// CHECK: return
// TRAFFIC: "device_memory": {
// TRAFFIC: "read": 35651584
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: memref<128x4096xf16, #l>, %w: memref<4096x4096xf16, #l>, %o: memref<128x4096xf16, #l>) {
  spyre_graph.matmul ins(%x, %w : memref<128x4096xf16, #l>, memref<4096x4096xf16, #l>) outs(%o : memref<128x4096xf16, #l>)
    {division = #spyre_graph.division<splits = [2, 16, 1], chunks = [64, 256, 4096]>}
  return
}
