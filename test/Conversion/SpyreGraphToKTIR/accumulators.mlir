// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir --canonicalize | FileCheck %s
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir -o %t.mlir
// RUN: spyre-run %t.mlir --entry main --predict-only --arg zeros --arg zeros --arg zeros --json %t.json
// RUN: FileCheck %s --check-prefix=SQUARE < %t.json
// RUN: spyre-run %t.mlir --entry flat --predict-only --arg zeros --arg zeros --arg zeros --json %t.json
// RUN: FileCheck %s --check-prefix=FLAT < %t.json
// RUN: spyre-run %t.mlir --entry batched --predict-only --arg zeros --arg zeros --arg zeros --json %t.json
// RUN: FileCheck %s --check-prefix=BATCHED < %t.json

// The matrix unit sums 128 x 128 results while it keeps as many others. Both
// operands are streamed for each such part of the result, so K is cut, too: of
// 2 x 512 x 512 elements each is loaded four times.
// CHECK-LABEL: func.func private @k0_matmul
// CHECK-COUNT-3: scf.for
// CHECK: ktdp.load {{.*}} -> tensor<128x{{64|128|256}}xf16>
// CHECK: ktdp.load {{.*}} -> tensor<128x{{64|128|256}}xf16>
// CHECK: return
// SQUARE: "device_memory": {
// SQUARE: "read": 4194304,

// 64 rows leave room for 256 columns: the first operand is loaded twice.
// FLAT: "device_memory": {
// FLAT: "read": 655360,

// Of four products one at a time, in parts of 32 x 64, because a fifth of LX
// holds no more: the first operand is loaded twice, the second four times.
// BATCHED: "device_memory": {
// BATCHED: "read": 786432,
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#b = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
func.func @main(%x: memref<512x512xf16, #l>, %y: memref<512x512xf16, #l>, %o: memref<512x512xf16, #l>) {
  spyre_graph.matmul ins(%x, %y : memref<512x512xf16, #l>, memref<512x512xf16, #l>) outs(%o : memref<512x512xf16, #l>)
    {division = #spyre_graph.division<splits = [1, 1, 1], chunks = [512, 512, 512]>}
  return
}

func.func @flat(%x: memref<64x512xf16, #l>, %y: memref<512x512xf16, #l>, %o: memref<64x512xf16, #l>) {
  spyre_graph.matmul ins(%x, %y : memref<64x512xf16, #l>, memref<512x512xf16, #l>) outs(%o : memref<64x512xf16, #l>)
    {division = #spyre_graph.division<splits = [1, 1, 1], chunks = [64, 512, 512]>}
  return
}

func.func @batched(%x: memref<4x128x128xf16, #b>, %y: memref<4x128x128xf16, #b>, %o: memref<4x128x128xf16, #b>) {
  spyre_graph.matmul ins(%x, %y : memref<4x128x128xf16, #b>, memref<4x128x128xf16, #b>) outs(%o : memref<4x128x128xf16, #b>)
    {division = #spyre_graph.division<splits = [1, 1, 1, 1], chunks = [4, 128, 128, 128]>}
  return
}
