// SPDX-License-Identifier: Apache-2.0
// Layouts for many sizes are priced at a few of them: few rows leave most of a stick
// along them empty.
// RUN: spyre-opt %s --split-input-file --spyre-decompose --spyre-propagate-layouts | FileCheck %s

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#transposed = affine_map<(i, j) -> (j, i)>

// CHECK-LABEL: func.func @transposed
// CHECK-SAME: -> (tensor<1024x512xf16, #spyre_graph.layout<order = [1, 0]
func.func @transposed(%x: tensor<512x1024xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 1024)>})
    -> (tensor<1024x512xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (1024, s)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %t = spyre_graph.view %x, #transposed {size_map = affine_map<()[s] -> (1024, s)>}
    : tensor<512x1024xf16, #rows> -> tensor<1024x512xf16>
  %0 = tensor.empty() : tensor<1024x512xf16>
  %y = spyre_graph.identity ins(%t : tensor<1024x512xf16>) outs(%0 : tensor<1024x512xf16>) -> tensor<1024x512xf16>
  return %y : tensor<1024x512xf16>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#transposed = affine_map<(i, j) -> (j, i)>

// Sizes at which sticks are full: the usual layout.
// CHECK-LABEL: func.func @full_sticks
// CHECK-SAME: -> (tensor<1024x512xf16, #spyre_graph.layout<order = [0, 1]
func.func @full_sticks(%x: tensor<512x1024xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 1024)>})
    -> (tensor<1024x512xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (1024, s)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 512 by 64>]} {
  %t = spyre_graph.view %x, #transposed {size_map = affine_map<()[s] -> (1024, s)>}
    : tensor<512x1024xf16, #rows> -> tensor<1024x512xf16>
  %0 = tensor.empty() : tensor<1024x512xf16>
  %y = spyre_graph.identity ins(%t : tensor<1024x512xf16>) outs(%0 : tensor<1024x512xf16>) -> tensor<1024x512xf16>
  return %y : tensor<1024x512xf16>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#transposed = affine_map<(i, j) -> (j, i)>

// The same for one size.
// CHECK-LABEL: func.func @one_size
// CHECK-SAME: -> (tensor<1024x512xf16, #spyre_graph.layout<order = [0, 1]
func.func @one_size(%x: tensor<512x1024xf16, #rows> {spyre_graph.name = "x"})
    -> (tensor<1024x512xf16> {spyre_graph.name = "out0"}) {
  %t = spyre_graph.view %x, #transposed : tensor<512x1024xf16, #rows> -> tensor<1024x512xf16>
  %0 = tensor.empty() : tensor<1024x512xf16>
  %y = spyre_graph.identity ins(%t : tensor<1024x512xf16>) outs(%0 : tensor<1024x512xf16>) -> tensor<1024x512xf16>
  return %y : tensor<1024x512xf16>
}
