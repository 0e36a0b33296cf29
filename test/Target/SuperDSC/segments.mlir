// SPDX-License-Identifier: Apache-2.0
// What does not fit in a segment of 16 GiB has no address.
// RUN: rm -rf %t && mkdir -p %t && split-file %s %t
// RUN: not spyre-translate --to-superdsc %t/argument.mlir -o %t/out 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// ARGUMENT: argument.mlir:2:1: error: argument 0 has 17179869312 bytes; SuperDSC has a segment of 16 GiB for each argument
// RUN: not spyre-translate --to-superdsc %t/pool.mlir -o %t/out 2>&1 | FileCheck %s --check-prefix=POOL
// POOL: pool.mlir:2:1: error: SuperDSC cannot express a pool of more than 16 GiB
// RUN: spyre-translate --to-superdsc %t/fits.mlir -o %t/out

//--- argument.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: memref<134217729x64xf16, #l>, %y: memref<64x64xf16, #l>) {
  %t = memref.subview %x[128, 0] [64, 64] [1, 1] : memref<134217729x64xf16, #l> to memref<64x64xf16, strided<[64, 1], offset: 8192>, #l>
  spyre_graph.exp ins(%t : memref<64x64xf16, strided<[64, 1], offset: 8192>, #l>) outs(%y : memref<64x64xf16, #l>) {division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  return
}

//--- pool.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: memref<64x64xf16, #l>, %y: memref<64x64xf16, #l>) attributes {spyre_graph.pool_size = 17179869312 : i64} {
  spyre_graph.exp ins(%x : memref<64x64xf16, #l>) outs(%y : memref<64x64xf16, #l>) {division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  return
}

//--- fits.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: memref<134217728x64xf16, #l>, %y: memref<64x64xf16, #l>) attributes {spyre_graph.pool_size = 17179869184 : i64} {
  %t = memref.subview %x[128, 0] [64, 64] [1, 1] : memref<134217728x64xf16, #l> to memref<64x64xf16, strided<[64, 1], offset: 8192>, #l>
  spyre_graph.exp ins(%t : memref<64x64xf16, strided<[64, 1], offset: 8192>, #l>) outs(%y : memref<64x64xf16, #l>) {division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  return
}
