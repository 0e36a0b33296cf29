// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir --canonicalize | FileCheck %s
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir -o %t.mlir
// RUN: spyre-run %t.mlir --predict-only --arg zeros --arg zeros --arg zeros --json %t.json
// RUN: FileCheck %s --check-prefix=TRAFFIC < %t.json

// A head per core: its product does not fit beside the factors, so its rows are
// cut, into smaller ones than LX asks for, so that less is left to compute when
// all is loaded. The second factor stays in LX meanwhile: both are read once,
// 2 x 32 x 512 x 128 elements.
// CHECK-LABEL: func.func private @k0_matmul
// CHECK: ktdp.load {{.*}} -> tensor<1x512x128xf16>
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: ktdp.load {{.*}} -> tensor<1x32x128xf16>
// CHECK-NOT: ktdp.load
// CHECK: return
// TRAFFIC: "device_memory": {
// TRAFFIC: "read": 8388608,
// TRAFFIC: "demanded": 8388608
#l = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
func.func @main(%x: memref<32x512x128xf16, #l>, %y: memref<32x128x512xf16, #l>, %o: memref<32x512x512xf16, #l>) {
  spyre_graph.matmul ins(%x, %y : memref<32x512x128xf16, #l>, memref<32x128x512xf16, #l>) outs(%o : memref<32x512x512xf16, #l>)
    {division = #spyre_graph.division<splits = [32, 1, 1, 1], chunks = [1, 512, 512, 128]>}
  return
}
