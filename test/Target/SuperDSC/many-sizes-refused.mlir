// SPDX-License-Identifier: Apache-2.0
// What SuperDSC does not have of programs for many sizes is refused where it
// is, with the size, its range and the argument; many-sizes.mlir has the rest.
// RUN: rm -rf %t && mkdir -p %t && split-file %s %t

// Its sizes are all multiples of one number.
// RUN: spyre-opt --spyre-pipeline="superdsc-compatible=true to-ktir=false" %t/rows.mlir -o %t/planned.mlir
// RUN: not spyre-translate --to-superdsc %t/planned.mlir -o %t/rows 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: planned.mlir:{{[0-9:]*}} error: SuperDSC cannot express 's0' from 2 to 512 in dimension 0 of argument 0 ('x'): its sizes are the multiples of a step up to the largest; begin at the step, or plan a program of each size
// RUN: not ls %t/rows
// Where only the largest is one, too.
// RUN: sed 's/2 to 512/128 to 512 by 64/' %t/planned.mlir > %t/least.mlir
// RUN: not spyre-translate --to-superdsc %t/least.mlir -o %t/least 2>&1 | FileCheck %s --check-prefix=LEAST
// LEAST: error: SuperDSC cannot express 's0' from 128 to 512 by 64 in dimension 0 of argument 0 ('x'): its sizes are the multiples

// A stick has one length.
// RUN: spyre-opt --spyre-pipeline="superdsc-compatible=true to-ktir=false" %t/sticks.mlir -o %t/sticks-planned.mlir
// RUN: not spyre-translate --to-superdsc %t/sticks-planned.mlir -o %t/sticks 2>&1 | FileCheck %s --check-prefix=STICKS
// STICKS: error: 'spyre_graph.restickify' op SuperDSC cannot express 'n' from 64 to 256 in loop 1: a size along sticks, as in operand of type 'memref<64x256xf16, {{.*}}>', is a number

// A dimension is one symbol, and a launch takes it from an argument.
// RUN: not spyre-translate --to-superdsc %t/twice.mlir -o %t/twice 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: twice.mlir:2:1: error: SuperDSC cannot express s0 * 2, the size of dimension 0 of argument 0 ('x'): a dimension is one symbol; symbols are 'n' from 64 to 256 (s0)
// RUN: not spyre-translate --to-superdsc %t/unbound.mlir -o %t/unbound 2>&1 | FileCheck %s --check-prefix=UNBOUND
// UNBOUND: unbound.mlir:2:1: error: SuperDSC cannot express 'n' from 64 to 256, which is the size of no argument

// Slices divide the step, so that all have one size.
// RUN: not spyre-translate --to-superdsc %t/uneven.mlir -o %t/uneven 2>&1 | FileCheck %s --check-prefix=UNEVEN
// UNEVEN: uneven.mlir:4:3: error: 'spyre_graph.exp' op SuperDSC cannot express 'n' from 16 to 192 in loop 0: 3 slices must divide its step, 16

// Parameters of bundle.mlir that are sizes.
// RUN: mkdir %t/named && sed 's/dim_rows_base/rows/' %t/parameter.mlir > %t/named/bundle.mlir
// RUN: not spyre-translate --validate-superdsc %t/named | FileCheck %s --check-prefix=NAMED
// NAMED: bundle.mlir:1:1: parameter 0, a size, must be named %dim_<symbol>_base, differently from others, and be at most 2^40 [SDSC-BUNDLE-C1]
// RUN: mkdir %t/range && sed 's/max_value=512/max_value=100/' %t/parameter.mlir > %t/range/bundle.mlir
// RUN: not spyre-translate --validate-superdsc %t/range | FileCheck %s --check-prefix=RANGE
// RANGE: bundle.mlir:1:{{[0-9]+}}: a size is a multiple of granularity up to max_value, which is one, too, found granularity 64 and max_value 100 [SDSC-BUNDLE-C1]

// A result lies where the file says.
// RUN: not spyre-translate --to-superdsc %t/offset.mlir -o %t/offset 2>&1 | FileCheck %s --check-prefix=OFFSET
// OFFSET: error: {{.*}}SuperDSC cannot express a result that begins at an offset that varies, in dimension 0

//--- rows.mlir
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<512x256xf16, #rows> {spyre_graph.name = "x", spyre_graph.size_map = affine_map<()[s] -> (s, 256)>})
    -> (tensor<512x256xf16> {spyre_graph.size_map = affine_map<()[s] -> (s, 256)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s0", 2 to 512>]} {
  %0 = tensor.empty() : tensor<512x256xf16>
  %e = spyre_graph.exp ins(%x : tensor<512x256xf16, #rows>) outs(%0 : tensor<512x256xf16>) -> tensor<512x256xf16>
  return %e : tensor<512x256xf16>
}

//--- sticks.mlir
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<64x256xf16, #rows> {spyre_graph.name = "x", spyre_graph.size_map = affine_map<()[n] -> (64, n)>})
    -> (tensor<64x256xf16> {spyre_graph.size_map = affine_map<()[n] -> (64, n)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"n", 64 to 256 by 64>]} {
  %0 = tensor.empty() : tensor<64x256xf16>
  %e = spyre_graph.exp ins(%x : tensor<64x256xf16, #rows>) outs(%0 : tensor<64x256xf16>) -> tensor<64x256xf16>
  return %e : tensor<64x256xf16>
}

//--- twice.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: memref<512x64xf16, #l> {spyre_graph.name = "x", spyre_graph.size_map = affine_map<()[n] -> (n * 2, 64)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"n", 64 to 256 by 64>]} {
  return
}

//--- unbound.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: memref<512x64xf16, #l> {spyre_graph.name = "x"})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"n", 64 to 256 by 64>]} {
  return
}

//--- uneven.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: memref<192x64xf16, #l> {spyre_graph.name = "x", spyre_graph.size_map = affine_map<()[n] -> (n, 64)>}, %y: memref<192x64xf16, #l> {spyre_graph.name = "y", spyre_graph.size_map = affine_map<()[n] -> (n, 64)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"n", 16 to 192 by 16>]} {
  spyre_graph.exp ins(%x : memref<192x64xf16, #l>) outs(%y : memref<192x64xf16, #l>) {extents = array<i64: 192, 64>, extent_map = affine_map<()[n] -> (n, 64)>, maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], division = #spyre_graph.division<splits = [3, 1], chunks = [64, 64], chunk_map = affine_map<()[n] -> (n ceildiv 3, 64)>>}
  return
}

//--- offset.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
func.func @main(%n: memref<192x64xf16, #l> {spyre_graph.name = "n", spyre_graph.size_map = affine_map<()[n] -> (n, 64)>}, %x: memref<64x64xf16, #l> {spyre_graph.name = "x"}, %y: memref<256x64xf16, #l> {spyre_graph.name = "y"})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"n", 64 to 192 by 64>]} {
  spyre_graph.insert ins(%x : memref<64x64xf16, #l>) outs(%y : memref<256x64xf16, #l>) {axis = 0 : i64, offset_map = affine_map<()[n] -> (n)>, maps = [#same, affine_map<(i, j) -> (i + 192, j)>], extents = array<i64: 64, 64>, division = #spyre_graph.division<splits = [1, 1], chunks = [64, 64]>}
  return
}

//--- parameter.mlir
func.func @sdsc_bundle(%dim_rows_base: !sdscbundle.input_arg<index, granularity=64, max_value=512>) {
  return
}
