// SPDX-License-Identifier: Apache-2.0
// A bundle is for one size. It must not be written for the largest one of a
// program for many, and one with symbols for sizes must not run as if it had
// none.
// RUN: rm -rf %t && mkdir -p %t && split-file %s %t
// RUN: spyre-opt --spyre-pipeline="superdsc-compatible=true to-ktir=false" %t/rows.mlir -o %t/planned.mlir
// RUN: not spyre-translate --to-superdsc %t/planned.mlir -o %t/rows 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: planned.mlir:{{[0-9:]*}} error: a SuperDSC bundle is for one size, but 's0' is from 2 to 512 in dimension 0 of argument 0 ('x'); plan a program of each size
// RUN: not ls %t/rows
// RUN: not spyre-translate --to-superdsc %t/second.mlir -o %t/second 2>&1 | FileCheck %s --check-prefix=SECOND
// SECOND: second.mlir:2:1: error: a SuperDSC bundle is for one size, but 'n' is from 64 to 128 in dimension 1 of argument 1; plan a program of each size
// RUN: mkdir %t/loop && cp %t/loop.mlir %t/loop/bundle.mlir
// RUN: not spyre-translate --validate-superdsc %t/loop | FileCheck %s --check-prefix=LOOP
// LOOP: bundle.mlir:5:3: a loop needs constant bounds, a positive step and no iter_args [SDSC-BUNDLE-C1]
// RUN: mkdir %t/range && cp %t/range.mlir %t/range/bundle.mlir
// RUN: not spyre-translate --validate-superdsc %t/range | FileCheck %s --check-prefix=RANGE
// RANGE: bundle.mlir:1:58: expected '>' [SDSC-BUNDLE-C1]

//--- rows.mlir
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<512x256xf16, #rows> {spyre_graph.name = "x", spyre_graph.size_map = affine_map<()[s] -> (s, 256)>})
    -> (tensor<512x256xf16> {spyre_graph.size_map = affine_map<()[s] -> (s, 256)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s0", 2 to 512>]} {
  %0 = tensor.empty() : tensor<512x256xf16>
  %e = spyre_graph.exp ins(%x : tensor<512x256xf16, #rows>) outs(%0 : tensor<512x256xf16>) -> tensor<512x256xf16>
  return %e : tensor<512x256xf16>
}

//--- second.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: memref<64x64xf16, #l>, %y: memref<64x128xf16, #l> {spyre_graph.size_map = affine_map<()[n] -> (64, n)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"n", 64 to 128 by 64>]} {
  return
}

//--- loop.mlir
func.func @sdsc_bundle(%rows: !sdscbundle.input_arg<index>) {
  %n = sdscbundle.input_arg_extract value from %rows : !sdscbundle.input_arg<index> -> index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %n step %c64 {
    sdscbundle.sdsc_execute () {sdsc_filename="sdsc_0.json"}
  }
  return
}

//--- range.mlir
func.func @sdsc_bundle(%rows: !sdscbundle.input_arg<index, granularity=64, max_value=512>) {
  return
}
