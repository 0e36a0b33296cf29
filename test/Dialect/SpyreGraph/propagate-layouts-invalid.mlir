// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-propagate-layouts

// SG-PROPAGATE-C1
// expected-error @+1 {{argument 0 has no layout: 'tensor<4xf16>'}}
func.func @argument(%a: tensor<4xf16>) -> tensor<4xf16> {
  return %a : tensor<4xf16>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-PROPAGATE-C2
func.func @composite(%a: tensor<4x4xf16, #l2>) -> tensor<4x4xf16> {
  // expected-error @+1 {{is no device operation; run --spyre-decompose first}}
  %r = spyre_graph.softmax %a {dim = 1 : i64} : tensor<4x4xf16, #l2> -> tensor<4x4xf16>
  return %r : tensor<4x4xf16>
}

// -----

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>

// SG-PROPAGATE-C2
func.func @other(%a: tensor<4xf16, #l1>) -> tensor<4xf16> {
  // expected-error @+1 {{is no device operation}}
  %c = arith.constant dense<1.0> : tensor<4xf16>
  %e = tensor.empty() : tensor<4xf16>
  %r = spyre_graph.add ins(%a, %c : tensor<4xf16, #l1>, tensor<4xf16>) outs(%e : tensor<4xf16>) -> tensor<4xf16>
  return %r : tensor<4xf16>
}
