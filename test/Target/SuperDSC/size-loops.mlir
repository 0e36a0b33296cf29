// SPDX-License-Identifier: Apache-2.0
// A program for many sizes as a bundle of files for one: the size is the end of a
// loop around them. python/tests/test_size_loops.py runs such.
// RUN: rm -rf %t && mkdir %t
// RUN: spyre-opt --spyre-pipeline="superdsc-compatible=true size-loops=true to-ktir=false" %s -o %t/planned.mlir

// What the operations hand on is one tile in LX.
// RUN: FileCheck %s --check-prefix=PLAN < %t/planned.mlir
// PLAN: #[[BOUND:.*]] = affine_map<()[s0] -> (s0)>
// PLAN: memref.subview %arg0[%{{.*}}, 0] [64, 256] [1, 1]
// PLAN: %[[LX:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [{{.*}}]>} : memref<64x384xf16
// PLAN: spyre_graph.matmul {{.*}} outs(%[[LX]] {{.*}} extents = array<i64: 64, 384, 256>
// PLAN-NOT: extent_map
// PLAN: spyre_graph.bound_map = #[[BOUND]]

// The counter is in rows, so a row has 128 bytes of each stick's column.
// RUN: spyre-translate --to-superdsc %t/planned.mlir -o %t/bundle
// RUN: spyre-translate --validate-superdsc %t/bundle
// RUN: FileCheck %s --check-prefix=PROGRAM < %t/bundle/bundle.mlir
// PROGRAM: #map_0 = affine_map<(d0)[s0] -> (s0 + 128*d0)>
// PROGRAM: func.func @sdsc_bundle({{.*}}: !sdscbundle.input_arg<index>, %dim_s_base: !sdscbundle.input_arg<index, granularity=64, max_value=512>) {
// PROGRAM: %dim_s = sdscbundle.input_arg_extract value from %dim_s_base
// PROGRAM: %step_0 = arith.constant 64 : index
// PROGRAM: scf.for %i_0 = %c0 to %dim_s step %step_0 {
// PROGRAM-NEXT: %addr_0 = affine.apply #map_0(%i_0)[%arg_0]
// PROGRAM: sdscbundle.sdsc_execute ({{.*}}) {sdsc_filename="sdsc_0.json"

// Files are of one size.
// RUN: FileCheck %s --check-prefix=FILE < %t/bundle/sdsc_0.json
// FILE-NOT: inputSymbolsAndTags_
// FILE: "mb_": 64,
// FILE-NOT: dimToSymbolMapping_

// Loops of other kinds are unrolled on demand; how often this one runs is known
// to a launch only.
// RUN: spyre-translate --to-superdsc --unroll-loops %t/planned.mlir -o %t/unrolled
// RUN: diff -r %t/bundle %t/unrolled

// Read and written again, and raised and written again, the same bytes.
// RUN: spyre-translate --rewrite-superdsc %t/bundle -o %t/copy
// RUN: diff -r %t/bundle %t/copy
// RUN: spyre-translate --from-superdsc %t/bundle -o %t/raised.mlir
// RUN: spyre-translate --to-superdsc %t/raised.mlir -o %t/again
// RUN: diff -r %t/bundle %t/again
// RUN: FileCheck %s --check-prefix=RAISED < %t/raised.mlir
// RAISED: func.func @main(%arg0: memref<512x256xf16, {{.*}}> {{{.*}}spyre_graph.name = "x", spyre_graph.used_map = affine_map<()[s0] -> (s0, 256)>}
// RAISED-SAME: spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 512 by 64>]
// RAISED: scf.for %{{.*}} = %c0 to %c512 step %c64
// RAISED: spyre_graph.bound_map

// One program for all sizes: a launch says how often the loop runs.
// RUN: spyre-opt --convert-spyre-graph-to-ktir %t/raised.mlir | FileCheck %s --check-prefix=KTIR
// KTIR: func.func @main({{.*}}%[[SIZE:arg[0-9]+]]: !ktdp.runtime_arg<index, granularity=64, upperbound=512> {ktdp.least = 64 : i64, ktdp.name = "s"}
// KTIR: %[[END:.*]] = ktdp.runtime_arg_extract value from %[[SIZE]]
// KTIR: scf.for %{{.*}} = %c0 to %[[END]] step %c64

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

func.func @main(%x: tensor<512x256xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 256)>},
    %w: tensor<256x384xf16, #rows> {spyre_graph.name = "w"})
    -> (tensor<512x384xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s, 384)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 512 by 64>]} {
  %0 = tensor.empty() : tensor<512x384xf16>
  %h = spyre_graph.matmul ins(%x, %w : tensor<512x256xf16, #rows>, tensor<256x384xf16, #rows>)
      outs(%0 : tensor<512x384xf16>) -> tensor<512x384xf16>
  %1 = tensor.empty() : tensor<512x384xf16>
  %r = spyre_graph.relu ins(%h : tensor<512x384xf16>) outs(%1 : tensor<512x384xf16>) -> tensor<512x384xf16>
  return %r : tensor<512x384xf16>
}
