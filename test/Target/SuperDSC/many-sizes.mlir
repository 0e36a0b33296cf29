// SPDX-License-Identifier: Apache-2.0
// A program for many sizes as a bundle: sizes are symbols of dimensions, and
// parameters of bundle.mlir. python/tests/test_sized_bundles.py runs such.
// RUN: rm -rf %t && mkdir %t
// RUN: spyre-opt --spyre-pipeline="superdsc-compatible=true to-ktir=false" %s -o %t/planned.mlir
// RUN: spyre-translate --to-superdsc %t/planned.mlir -o %t/bundle
// RUN: spyre-translate --validate-superdsc %t/bundle

// The size comes last. A symbol of a dimension is the size itself, and where a
// core begins depends on it: 3 rows of 4 are 3/4 of the size.
// RUN: FileCheck %s --check-prefix=PROGRAM < %t/bundle/bundle.mlir
// PROGRAM: #map_0 = affine_map<()[s0, s1] -> (s0 + 32*s1)>
// PROGRAM: func.func @sdsc_bundle(%pool_base_addr: !sdscbundle.input_arg<index>, {{.*}} %dim_s_base: !sdscbundle.input_arg<index, granularity=64, max_value=512>) {
// PROGRAM: %dim_s = sdscbundle.input_arg_extract value from %dim_s_base : !sdscbundle.input_arg<index, granularity=64, max_value=512> -> index
// PROGRAM: %addr_0 = affine.apply #map_0()[%arg_0, %dim_s]
// PROGRAM: sdscbundle.sdsc_execute (%dim_s, %arg_0, %addr_0, {{.*}}) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2, -3,

// Files state the largest size, and each core's share of it and of the step.
// RUN: FileCheck %s --check-prefix=FILE < %t/bundle/sdsc_0.json
// FILE: "inputSymbolsAndTags_": {
// FILE-NEXT: "-1": "s"
// FILE: "N_": {
// FILE: "mb_": 512,
// FILE: "dimToSymbolMapping_": {
// FILE-NEXT: "mb": [
// FILE-NEXT: -1
// FILE: "dataStageParam_": {
// FILE: "symbolicDimInfo_": {
// FILE-NEXT: "mb": {
// FILE-NEXT: "maxSize_": 128,
// FILE-NEXT: "granularity_": 16
// FILE: "isStartAddrSymbolic_": 1
// FILE: "[1, 0, 0]": "-3"
// FILE: "datadscs_": []
// The symbols of another file are others.
// RUN: FileCheck %s --check-prefix=SECOND < %t/bundle/sdsc_1.json
// SECOND: "inputSymbolsAndTags_": {
// SECOND-NOT: "-1":

// Read and written again, and raised and written again, the same bytes.
// RUN: spyre-translate --rewrite-superdsc %t/bundle -o %t/copy
// RUN: diff -r %t/bundle %t/copy
// RUN: spyre-translate --from-superdsc %t/bundle -o %t/raised.mlir
// RUN: spyre-translate --to-superdsc %t/raised.mlir -o %t/again
// RUN: diff -r %t/bundle %t/again
// RUN: FileCheck %s --check-prefix=RAISED < %t/raised.mlir
// RAISED-DAG: #[[CHUNK:.*]] = affine_map<()[s0] -> (s0 ceildiv 4, 64, 256)>
// RAISED-DAG: #[[EXTENT:.*]] = affine_map<()[s0] -> (s0, 384, 256)>
// RAISED: func.func @main(%arg0: memref<512x256xf16, {{.*}}> {{{.*}}spyre_graph.name = "x", spyre_graph.used_map = affine_map<()[s0] -> (s0, 256)>}
// RAISED-SAME: spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 512 by 64>]
// RAISED: spyre_graph.matmul {{.*}} chunk_map = #[[CHUNK]]>, extent_map = #[[EXTENT]]

// Arguments have the room and strides of the largest size, whatever a launch
// uses of them.
// RUN: spyre-opt --convert-spyre-graph-to-ktir %t/raised.mlir | FileCheck %s --check-prefix=KTIR
// KTIR: func.func @main({{.*}}!ktdp.runtime_arg<index, granularity=64, upperbound=512> {ktdp.least = 64 : i64, ktdp.name = "s"}
// KTIR: ktdp.construct_memory_view %arg0, sizes: [4, 512, 64], strides: [32768, 64, 1]

// Without a manifest, sizes are those of the dimensions at the start of each
// argument.
// RUN: cp -r %t/bundle %t/bare && rm %t/bare/manifest.json
// RUN: spyre-translate --validate-superdsc %t/bare
// RUN: spyre-translate --from-superdsc --pool %t/bare | FileCheck %s --check-prefix=BARE
// BARE: func.func @main(%arg0: memref<512x256xf16, {{.*}}> {{{.*}}spyre_graph.name = "arg0", spyre_graph.used_map = affine_map<()[s0] -> (s0, 256)>}
// BARE-SAME: %arg3: memref<512x128xf16, {{.*}}> {{{.*}}spyre_graph.used_map = affine_map<()[s0] -> (s0, 128)>}

// The form of the written specification.
// RUN: spyre-translate --to-superdsc --superdsc-flavor=spec %t/planned.mlir -o %t/spec
// RUN: spyre-translate --validate-superdsc %t/spec
// RUN: spyre-translate --rewrite-superdsc %t/spec -o %t/speccopy
// RUN: diff -r %t/spec %t/speccopy

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

func.func @main(%x: tensor<512x256xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 256)>},
    %w: tensor<256x384xf16, #rows> {spyre_graph.name = "w"},
    %v: tensor<384x128xf16, #rows> {spyre_graph.name = "v"})
    -> (tensor<512x128xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s, 128)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 512 by 64>]} {
  %0 = tensor.empty() : tensor<512x384xf16>
  %h = spyre_graph.matmul ins(%x, %w : tensor<512x256xf16, #rows>, tensor<256x384xf16, #rows>)
      outs(%0 : tensor<512x384xf16>) -> tensor<512x384xf16>
  %1 = tensor.empty() : tensor<512x384xf16>
  %r = spyre_graph.relu ins(%h : tensor<512x384xf16>) outs(%1 : tensor<512x384xf16>) -> tensor<512x384xf16>
  %2 = tensor.empty() : tensor<512x128xf16>
  %y = spyre_graph.matmul ins(%r, %v : tensor<512x384xf16>, tensor<384x128xf16, #rows>)
      outs(%2 : tensor<512x128xf16>) -> tensor<512x128xf16>
  return %y : tensor<512x128xf16>
}
