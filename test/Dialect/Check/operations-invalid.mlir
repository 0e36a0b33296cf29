// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -split-input-file -verify-diagnostics

// CHECK-CASE-C1
// expected-error @below {{expects nothing: it could not fail}}
check.case "nothing" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
}

// -----

check.case "another dialect" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-CASE-C2
  // expected-error @below {{must not stand in a check.case: make a function of it, and run that}}
  %y = arith.addf %x, %x : tensor<3xf32>
  check.expect_eq %y, %x : tensor<3xf32>
}

// -----

check.case "two indices" {
  // CHECK-GENERATE-C1
  // expected-error @below {{expects a map of 1 indices to one value, found affine_map<(d0, d1) -> (d0)>}}
  %x = check.generate affine_map<(i, j) -> (i)> : tensor<3xf32>
}

// -----

check.case "a symbol" {
  // CHECK-GENERATE-C1
  // expected-error @below {{expects a map of 1 indices to one value}}
  %x = check.generate affine_map<(i)[s] -> (i)> : tensor<3xf32>
}

// -----

check.case "two values" {
  // CHECK-GENERATE-C1
  // expected-error @below {{expects a map of 0 indices to one value}}
  %x = check.generate affine_map<() -> (1, 2)> : tensor<f32>
}

// -----

check.case "an unknown size" {
  // expected-error @below {{must be statically shaped tensor of}}
  %x = check.generate affine_map<(i) -> (i)> : tensor<?xf32>
}

// -----

func.func private @declared(%x: tensor<3xf32>) -> tensor<3xf32>

check.case "no body" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-RUN-C1
  // expected-error @below {{the module has no function @declared with a body}}
  %r = check.run @declared(%x) : (tensor<3xf32>) -> tensor<3xf32>
  check.expect_eq %r, %x : tensor<3xf32>
}

// -----

check.case "no function" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-RUN-C1
  // expected-error @below {{the module has no function @f with a body}}
  %r = check.run @f(%x) : (tensor<3xf32>) -> tensor<3xf32>
  check.expect_eq %r, %x : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<3xf32>, %n: index) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}

check.case "too few" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-RUN-C2
  // expected-error @below {{@f takes 2 operands, found 1}}
  %r = check.run @f(%x) : (tensor<3xf32>) -> tensor<3xf32>
  check.expect_eq %r, %x : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<3xf32>, %n: index) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}

check.case "an array where a computation takes an index" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-RUN-C2
  // expected-error @below {{parameter 1 of @f is 'index', found 'tensor<3xf32>'}}
  %r = check.run @f(%x, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  check.expect_eq %r, %x : tensor<3xf32>
}

// -----

func.func @f(%x: index, %n: !ktdp.runtime_arg<i32>) {
  return
}

check.case "another type than inside of the argument" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  %n = arith.constant 3 : index
  // CHECK-RUN-C2
  // expected-error @below {{parameter 1 of @f is '!ktdp.runtime_arg<i32>', found 'index'}}
  %r = check.run @f(%x, %n) : (tensor<3xf32>, index) -> tensor<3xf32>
  check.expect_eq %r, %x : tensor<3xf32>
}

// -----

func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}

check.case "another result" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-RUN-C3
  // expected-error @below {{results must be those of @f, ('tensor<3xf32>')}}
  %r = check.run @f(%x) : (tensor<3xf32>) -> tensor<4xf32>
  check.expect_eq %r, dense<1.0> : tensor<4xf32>
}

// -----

func.func @f(%x: index, %n: index) {
  return
}

check.case "an array too many" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  %n = arith.constant 3 : index
  // CHECK-RUN-C3
  // expected-error @below {{results must be the arrays that the program is given, ('tensor<3xf32>')}}
  %r:2 = check.run @f(%x, %n) : (tensor<3xf32>, index) -> (tensor<3xf32>, tensor<3xf32>)
  check.expect_eq %r#0, %x : tensor<3xf32>
}

// -----

check.case "another shape" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-EXPECT_EQ-C1
  // expected-error @below {{compares 'tensor<3xf32>' with 'tensor<4xf32>'}}
  "check.expect_eq"(%x) {constant = dense<1.0> : tensor<4xf32>} : (tensor<3xf32>) -> ()
}

// -----

check.case "no tensor" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // expected-error @below {{expected a value or a dense constant}}
  check.expect_eq %x, 3.0 : f32
}

// -----

check.case "nothing to compare with" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // expected-error @below {{expects a value or a constant}}
  "check.expect_eq"(%x) : (tensor<3xf32>) -> ()
}

// -----

check.case "another type" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-EXPECT_CLOSE-C1
  // expected-error @below {{compares 'tensor<3xf32>' with 'tensor<3xf16>'}}
  "check.expect_close"(%x) {constant = dense<1.0> : tensor<3xf16>, max_ulp = 1} : (tensor<3xf32>) -> ()
}

// -----

check.case "no bound" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-EXPECT_CLOSE-C2
  // expected-error @below {{needs max_ulp or atol}}
  check.expect_close %x, dense<1.0> : tensor<3xf32>
}

// -----

check.case "a negative bound" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-EXPECT_CLOSE-C2
  // expected-error @below {{max_ulp and atol must not be negative}}
  check.expect_close %x, dense<1.0> : tensor<3xf32> {max_ulp = -1}
}

// -----

check.case "a bound that is no number" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-EXPECT_CLOSE-C2
  // expected-error @below {{max_ulp and atol must not be negative}}
  check.expect_close %x, dense<1.0> : tensor<3xf32> {atol = 0x7FF8000000000000 : f64}
}

// -----

check.case "integers that are close" {
  %x = arith.constant dense<1> : tensor<3xi32>
  // expected-error @below {{must be statically shaped tensor of}}
  check.expect_close %x, dense<1> : tensor<3xi32> {max_ulp = 1}
}

// -----

func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}

check.case "no text" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-EXPECT_ERROR-C1
  // expected-error @below {{the text must not be empty}}
  check.expect_error "" {
    %r = check.run @f(%x) : (tensor<3xf32>) -> tensor<3xf32>
  }
}

// -----

check.case "no run" {
  // CHECK-EXPECT_ERROR-C2
  // expected-error @below {{expects one check.run and nothing else in its body}}
  check.expect_error "some" {
    %x = arith.constant dense<1.0> : tensor<3xf32>
  }
}

// -----

func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}

check.case "two runs" {
  %x = arith.constant dense<1.0> : tensor<3xf32>
  // CHECK-EXPECT_ERROR-C2
  // expected-error @below {{expects one check.run and nothing else in its body}}
  check.expect_error "some" {
    %r = check.run @f(%x) : (tensor<3xf32>) -> tensor<3xf32>
    %s = check.run @f(%x) : (tensor<3xf32>) -> tensor<3xf32>
  }
}
