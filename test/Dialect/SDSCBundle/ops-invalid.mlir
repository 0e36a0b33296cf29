// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -split-input-file -verify-diagnostics

// SDSCBUNDLE-EXTRACT-C1
func.func @f(%a: !sdscbundle.input_arg<i64>) {
  // expected-error @below {{result type 'index' must be the type inside the argument's, 'i64'}}
  %0 = sdscbundle.input_arg_extract value from %a : !sdscbundle.input_arg<i64> -> index
  return
}

// -----

// SDSCBUNDLE-EXECUTE-C1
func.func @f() {
  %c = arith.constant 128 : index
  // expected-error @below {{has 2 symbol ids for 1 operands}}
  sdscbundle.sdsc_execute (%c) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2]}
  return
}

// -----

// SDSCBUNDLE-EXECUTE-C2
func.func @f() {
  %c = arith.constant 128 : index
  // expected-error @below {{symbol ids must be negative and distinct, but found 1}}
  sdscbundle.sdsc_execute (%c) {sdsc_filename="sdsc_0.json", "symbol_ids"=[1]}
  return
}

// -----

// SDSCBUNDLE-EXECUTE-C2
func.func @f() {
  %c = arith.constant 128 : index
  // expected-error @below {{symbol ids must be negative and distinct, but found -1 twice}}
  sdscbundle.sdsc_execute (%c, %c) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -1]}
  return
}

// -----

// SDSCBUNDLE-EXECUTE-C3
func.func @f() {
  // expected-error @below {{sdsc_filename must not be empty}}
  sdscbundle.sdsc_execute () {sdsc_filename=""}
  return
}
