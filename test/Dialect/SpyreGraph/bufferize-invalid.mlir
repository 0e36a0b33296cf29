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
