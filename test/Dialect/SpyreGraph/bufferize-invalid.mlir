// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-bufferize

// SG-BUFFERIZE-C1
// expected-error @+1 {{has a tensor without a layout, 'tensor<4xf16>'; run --spyre-propagate-layouts first}}
func.func @argument(%a: tensor<4xf16>) {
  return
}

// -----

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>

// SG-BUFFERIZE-C1
func.func @result(%a: tensor<4xf16, #l1>) -> tensor<4xf16, #l1> {
  // expected-error @+1 {{has a tensor without a layout, 'tensor<4xf16>'}}
  %e = tensor.empty() : tensor<4xf16>
  return %a : tensor<4xf16, #l1>
}

// -----

// SG-BUFFERIZE-C2. Nothing has checked the layout of this buffer.
#none = #spyre_graph.layout<order = [0, 7], SEN169_FP16>
// expected-error @+1 {{returns a buffer, 'memref<4x8xf16, #spyre_graph.layout<order = [0, 7], SEN169_FP16>>'; expected tensors, which get buffers here}}
func.func @buffer(%a: memref<4x8xf16, #none>) -> memref<4x8xf16, #none> {
  return %a : memref<4x8xf16, #none>
}
