// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --spyre-propagate-layouts | FileCheck %s
// RUN: spyre-opt %s --spyre-propagate-layouts=max-span=1000000 | FileCheck %s --check-prefix=SPAN

// A scan along sticks reads and writes each stick once per element. Where a core
// cannot address the tensor, the scan is done in parts, and nothing is copied.

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// CHECK-LABEL: func @along_sticks
// CHECK: %[[TURNED:.*]] = spyre_graph.restickify ins(%arg0
// CHECK: spyre_graph.cumsum ins(%[[TURNED]]
// CHECK-SAME: -> tensor<1024x1024xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
// SPAN-NOT: restickify
// SPAN: spyre_graph.cumsum ins(%arg0
func.func @along_sticks(%x: tensor<1024x1024xf16, #rows>) -> tensor<1024x1024xf16> {
  %0 = tensor.empty() : tensor<1024x1024xf16>
  %1 = spyre_graph.cumsum ins(%x : tensor<1024x1024xf16, #rows>) outs(%0 : tensor<1024x1024xf16>) {dim = 1 : i64} -> tensor<1024x1024xf16>
  return %1 : tensor<1024x1024xf16>
}

// One row would have one element per stick.
// CHECK-LABEL: func @one_row
// CHECK-NOT: restickify
// CHECK: spyre_graph.cumsum ins(%arg0
func.func @one_row(%x: tensor<1x4096xf16, #rows>) -> tensor<1x4096xf16> {
  %0 = tensor.empty() : tensor<1x4096xf16>
  %1 = spyre_graph.cumsum ins(%x : tensor<1x4096xf16, #rows>) outs(%0 : tensor<1x4096xf16>) {dim = 1 : i64} -> tensor<1x4096xf16>
  return %1 : tensor<1x4096xf16>
}

// CHECK-LABEL: func @across_sticks
// CHECK-NOT: restickify
// CHECK: spyre_graph.cumsum ins(%arg0
func.func @across_sticks(%x: tensor<1024x1024xf16, #rows>) -> tensor<1024x1024xf16> {
  %0 = tensor.empty() : tensor<1024x1024xf16>
  %1 = spyre_graph.cumsum ins(%x : tensor<1024x1024xf16, #rows>) outs(%0 : tensor<1024x1024xf16>) {dim = 0 : i64} -> tensor<1024x1024xf16>
  return %1 : tensor<1024x1024xf16>
}
