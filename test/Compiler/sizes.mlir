// SPDX-License-Identifier: Apache-2.0
// One program for many sizes: planned, proven and lowered once. Python's tests run
// such programs at many sizes (python/tests/test_sized_runs.py).
// RUN: spyre-opt %s --spyre-pipeline -o %t.mlir
// RUN: FileCheck %s < %t.mlir

// A size outside of the range.
// RUN: not spyre-run %t.mlir --arg zeros --arg zeros --arg zeros --arg zeros --arg 513 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: size 'rows' is 513, but the program is for sizes from 1 to 512
// RUN: not spyre-run %t.mlir --arg zeros --arg zeros --arg zeros --arg zeros --arg 0 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: size 'rows' is 0, but the program is for sizes from 1 to 512

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#out = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
// CHECK-LABEL: func.func @main
// CHECK-SAME: ktdp.size_map = affine_map<()[s0] -> (s0, 256)>
// CHECK-SAME: %{{.*}}: !ktdp.runtime_arg<index, granularity=1, upperbound=512> {ktdp.least = 1 : i64, ktdp.name = "rows"}
// CHECK: ktdp.runtime_arg_extract value
// The hidden values move between the cores' LX.
// CHECK: call @k2_reshard
func.func @main(%x: tensor<512x256xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 256)>},
    %w: tensor<256x384xf16, #rows> {spyre_graph.name = "w"},
    %v: tensor<384x128xf16, #rows> {spyre_graph.name = "v"})
    -> (tensor<512x128xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s, 128)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"rows", 1 to 512>]} {
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
