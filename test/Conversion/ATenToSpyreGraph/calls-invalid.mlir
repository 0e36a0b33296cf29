// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -allow-unregistered-dialect -convert-aten-to-spyre-graph -split-input-file -verify-diagnostics

// Calls that no row takes, or that are no calls.

func.func @no_row(%x: tensor<65xf16>) -> tensor<65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.no_such_op.default: the compiler's table has no such operator}}
  %0 = "aten.no_such_op.default"(%x) : (tensor<65xf16>) -> tensor<65xf16>
  return %0 : tensor<65xf16>
}

// -----

// Every call is reported, not the first alone.
func.func @two(%x: tensor<65xf16>, %y: tensor<63xf16>) -> tensor<65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{'spyre_graph.add' op input 'tensor<63xf16>' cannot be broadcast to [65]}}
  %0 = "aten.add.Tensor"(%x, %y) : (tensor<65xf16>, tensor<63xf16>) -> tensor<65xf16>
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.abs.default: argument 'self' is missing}}
  %1 = "aten.abs.default"() : () -> tensor<65xf16>
  return %0 : tensor<65xf16>
}

// -----

func.func @too_many(%x: tensor<65xf16>) -> tensor<65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.abs.default: has 2 positional arguments, expected at most 1}}
  %0 = "aten.abs.default"(%x, %x) : (tensor<65xf16>, tensor<65xf16>) -> tensor<65xf16>
  return %0 : tensor<65xf16>
}

// -----

func.func @unknown(%x: tensor<65xf16>) -> tensor<65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.abs.default: argument 'alpha' is not known}}
  %0 = "aten.abs.default"(%x) {alpha = 2} : (tensor<65xf16>) -> tensor<65xf16>
  return %0 : tensor<65xf16>
}

// -----

func.func @kind(%x: tensor<65xf16>) -> tensor<65xf16> {
  // ATEN-TO-SG-C1
  // expected-error @+1 {{aten.mul.Scalar: argument 'other' is not a number}}
  %0 = "aten.mul.Scalar"(%x) {other = "two"} : (tensor<65xf16>) -> tensor<65xf16>
  return %0 : tensor<65xf16>
}

// -----

func.func @count(%x: tensor<65xf16>) -> tensor<65xf16> {
  // ATEN-TO-SG-C2
  // expected-error @+1 {{operands must name the parameters of the 1 operands, but is ["self", "other"]}}
  %0 = "aten.mul.Tensor"(%x) {operands = ["self", "other"]} : (tensor<65xf16>) -> tensor<65xf16>
  return %0 : tensor<65xf16>
}

// -----

func.func @twice(%x: tensor<65xf16>) -> tensor<65xf16> {
  // ATEN-TO-SG-C2
  // expected-error @+1 {{parameter 'self' is given twice}}
  %0 = "aten.mul.Tensor"(%x, %x) {operands = ["self", "self"]} : (tensor<65xf16>, tensor<65xf16>) -> tensor<65xf16>
  // ATEN-TO-SG-C2
  // expected-error @+1 {{parameter 'tensors[0]' is given twice}}
  %1 = "aten.cat.default"(%x, %x) {operands = ["tensors[0]", "tensors[0]"]} : (tensor<65xf16>, tensor<65xf16>) -> tensor<130xf16>
  return %0 : tensor<65xf16>
}

// -----

func.func @places(%x: tensor<65xf16>) {
  // ATEN-TO-SG-C2
  // expected-error @+1 {{the place of operand 0 must be a parameter, or an entry of one, parameter[i], but is 'tensors[x]'}}
  %0 = "aten.cat.default"(%x) {operands = ["tensors[x]"]} : (tensor<65xf16>) -> tensor<65xf16>
  // ATEN-TO-SG-C2
  // expected-error @+1 {{but is 'tensors[1000000000]'}}
  %1 = "aten.cat.default"(%x) {operands = ["tensors[1000000000]"]} : (tensor<65xf16>) -> tensor<65xf16>
  // ATEN-TO-SG-C2
  // expected-error @+1 {{but is ''}}
  %2 = "aten.cat.default"(%x) {operands = [""]} : (tensor<65xf16>) -> tensor<65xf16>
  return
}

// -----

func.func @attributes(%x: tensor<65xf16>) {
  // ATEN-TO-SG-C3
  // expected-error @+1 {{argument 'other' must be a number, a string, an element type, unit for None, or a list of those, but is affine_map<(d0) -> (d0)>}}
  %0 = "aten.mul.Scalar"(%x) {other = affine_map<(d0) -> (d0)>} : (tensor<65xf16>) -> tensor<65xf16>
  // ATEN-TO-SG-C3
  // expected-error @+1 {{argument 'dtype' must be}}
  %1 = "aten._to_copy.default"(%x) {dtype = i7} : (tensor<65xf16>) -> tensor<65xf16>
  return
}

// -----

func.func @results(%x: tensor<65xf16>) {
  // ATEN-TO-SG-C3
  // expected-error @+1 {{results must be tensors of static shape, or none for what is no tensor, but found 'tensor<?xf16>'}}
  %0 = "aten.abs.default"(%x) : (tensor<65xf16>) -> tensor<?xf16>
  // ATEN-TO-SG-C3
  // expected-error @+1 {{but found 'index'}}
  %1 = "aten.abs.default"(%x) : (tensor<65xf16>) -> index
  return
}
