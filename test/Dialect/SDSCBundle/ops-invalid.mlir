// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -split-input-file -verify-diagnostics

// SDSCBUNDLE-EXTRACT-C1
func.func @f(%a: !sdscbundle.input_arg<i64>) {
  // expected-error @below {{result type 'index' must be the type inside the argument's, 'i64'}}
  %0 = sdscbundle.input_arg_extract value from %a : !sdscbundle.input_arg<i64> -> index
  return
}

// -----

// SDSCBUNDLE-EXTRACT-C2
func.func @f(%a: !sdscbundle.input_arg<index>) {
  // expected-error @below {{only a size has a max_value, but the argument is '!sdscbundle.input_arg<index>'}}
  %0 = sdscbundle.input_arg_extract max_value from %a : !sdscbundle.input_arg<index> -> index
  return
}

// -----

// SDSCBUNDLE-EXTRACT-C2
func.func @f(%a: !sdscbundle.input_arg<index>) {
  // expected-error @below {{only a size has a granularity, but the argument is '!sdscbundle.input_arg<index>'}}
  %0 = sdscbundle.input_arg_extract granularity from %a : !sdscbundle.input_arg<index> -> index
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

// -----

// SDSCBUNDLE-ARG-C1
// expected-error @+1 {{a size is a multiple of granularity up to max_value, which is one, too, found granularity 64 and max_value 100}}
func.func private @f(!sdscbundle.input_arg<index, granularity = 64, max_value = 100>)

// -----

// SDSCBUNDLE-ARG-C1
// expected-error @+1 {{found granularity 0 and max_value 64}}
func.func private @f(!sdscbundle.input_arg<index, granularity = 0, max_value = 64>)
