// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-propagate-layouts

// SG-PROPAGATE-C1
// expected-error @+1 {{argument 0 has no layout: 'tensor<4xf16>'; give its type one, such as #spyre_graph.layout<order = [0, 1], SEN169_FP16>}}
func.func @argument(%a: tensor<4xf16>) -> tensor<4xf16> {
  return %a : tensor<4xf16>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-PROPAGATE-C2
func.func @composite(%a: tensor<4x4xf16, #l2>) -> tensor<4x4xf16> {
  // expected-error @+1 {{is not a device operation; run --spyre-decompose first}}
  %r = spyre_graph.softmax %a {dim = 1 : i64} : tensor<4x4xf16, #l2> -> tensor<4x4xf16>
  return %r : tensor<4x4xf16>
}

// -----

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>

// SG-PROPAGATE-C2
func.func @other(%a: tensor<4xf16, #l1>) -> tensor<4xf16> {
  // expected-error @+1 {{is not a device operation}}
  %c = arith.constant dense<1.0> : tensor<4xf16>
  %e = tensor.empty() : tensor<4xf16>
  %r = spyre_graph.add ins(%a, %c : tensor<4xf16, #l1>, tensor<4xf16>) outs(%e : tensor<4xf16>) -> tensor<4xf16>
  return %r : tensor<4xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-PROPAGATE-C3
func.func @rows_of_a_product(%x: tensor<4x64xf16, #l>, %y: tensor<64x65xf16, #l>) -> tensor<4x65xf16> {
  %e = tensor.empty() : tensor<4x65xf16>
  // expected-error @+1 {{cannot have the layout #spyre_graph.layout<order = [1, 0], SEN169_FP16> that its hint asks for; possible: #spyre_graph.layout<order = [0, 1], SEN169_FP16>, or another order before the same last dimension}}
  %r = spyre_graph.matmul ins(%x, %y : tensor<4x64xf16, #l>, tensor<64x65xf16, #l>) outs(%e : tensor<4x65xf16>) {spyre_graph.layout_hint = #spyre_graph.layout<order = [1, 0], SEN169_FP16>} -> tensor<4x65xf16>
  return %r : tensor<4x65xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-PROPAGATE-C3
func.func @impossible(%x: tensor<4x64xf16, #l>) -> tensor<4x64xf16> {
  %e = tensor.empty() : tensor<4x64xf16>
  // expected-error @+1 {{has an impossible layout hint: }}
  %r = spyre_graph.exp ins(%x : tensor<4x64xf16, #l>) outs(%e : tensor<4x64xf16>) {spyre_graph.layout_hint = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>} -> tensor<4x64xf16>
  return %r : tensor<4x64xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-PROPAGATE-C4
// expected-error @+1 {{argument 0 has so many elements that its bytes overflow 64 bits}}
func.func @large_argument(%x: tensor<4294967296x4294967296xf16, #l>) {
  return
}

// -----

// SG-PROPAGATE-C4
func.func @large_result() {
  // expected-error @+1 {{has so many elements that its bytes overflow 64 bits}}
  %e = tensor.empty() : tensor<4294967296x16777216xf16>
  return
}

// -----

// SG-PROPAGATE-C2
func.func @lowered() attributes {grid = [2]} {
  // expected-error @+1 {{is not a device operation; its function has a grid: it is a kernel of KTIR, which has been planned and lowered}}
  %c = arith.constant dense<1.0> : tensor<4xf16>
  return
}
