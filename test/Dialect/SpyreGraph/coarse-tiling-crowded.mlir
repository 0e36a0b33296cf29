// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-decompose --spyre-propagate-layouts --spyre-coarse-tiling --remark-policy=all --remarks-filter=spyre-coarse-tiling -o /dev/null 2>&1 | FileCheck %s

// Each of the scores, 33554432 bytes, fits LX, but not two of them at once.
// CHECK: 9 operations from restickify to matmul in 4 tiles of 8: saves
#l = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
#s = #spyre_graph.layout<order = [0, 1, 2], IEEE_FP32>
func.func @gradients(%o: tensor<2x32x512x64xf16, #l>, %g: tensor<2x32x512x64xf16, #l>, %q: tensor<2x32x512x64xf16, #l>,
                     %k: tensor<2x8x512x64xf16, #l>, %v: tensor<2x8x512x64xf16, #l>, %sums: tensor<2x32x512xf32, #s>)
    -> (tensor<2x32x512x64xf16>, tensor<2x8x512x64xf16>, tensor<2x8x512x64xf16>) {
  %0:3 = spyre_graph.attention_backward %g, %q, %k, %v, %o, %sums {causal, scale = 0.125 : f64}
    : tensor<2x32x512x64xf16, #l>, tensor<2x32x512x64xf16, #l>, tensor<2x8x512x64xf16, #l>, tensor<2x8x512x64xf16, #l>, tensor<2x32x512x64xf16, #l>, tensor<2x32x512xf32, #s>
    -> tensor<2x32x512x64xf16>, tensor<2x8x512x64xf16>, tensor<2x8x512x64xf16>
  return %0#0, %0#1, %0#2 : tensor<2x32x512x64xf16>, tensor<2x8x512x64xf16>, tensor<2x8x512x64xf16>
}

// -----

// A result that replaces an operand needs no room of its own.
// CHECK-NOT: remark
#r = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @chain(%x: tensor<8192x2048xf16, #r>) -> tensor<8192x2048xf16> {
  %0 = tensor.empty() : tensor<8192x2048xf16>
  %a = spyre_graph.exp ins(%x : tensor<8192x2048xf16, #r>) outs(%0 : tensor<8192x2048xf16>) -> tensor<8192x2048xf16>
  %1 = tensor.empty() : tensor<8192x2048xf16>
  %b = spyre_graph.neg ins(%a : tensor<8192x2048xf16>) outs(%1 : tensor<8192x2048xf16>) -> tensor<8192x2048xf16>
  %2 = tensor.empty() : tensor<8192x2048xf16>
  %c = spyre_graph.abs ins(%b : tensor<8192x2048xf16>) outs(%2 : tensor<8192x2048xf16>) -> tensor<8192x2048xf16>
  return %c : tensor<8192x2048xf16>
}
