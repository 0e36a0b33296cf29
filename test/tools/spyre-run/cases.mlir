// SPDX-License-Identifier: Apache-2.0
// What --cases says of expectations that do not hold.
// RUN: not spyre-run --cases %s 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: not spyre-run --cases %s --check=full --threads 2 2>&1 | FileCheck %s --implicit-check-not=error:

func.func @twice(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r = arith.addf %x, %x : tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

check.case "all hold, so nothing is said" {
  %x = arith.constant dense<1.5> : tensor<2x3xf32>
  %r = check.run @twice(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  check.expect_eq %r, dense<3.0> : tensor<2x3xf32>
}

check.case "two wrong elements" {
  %x = check.generate affine_map<(i, j) -> (i * 3 + j)> : tensor<2x3xf32>
  %r = check.run @twice(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: cases.mlir:[[@LINE+1]]:3: error: element [0, 2]: expected 5, found 4; 2 of 6 elements differ
  check.expect_eq %r, dense<[[0.0, 2.0, 5.0], [6.0, 8.0, 11.0]]> : tensor<2x3xf32>
  // CHECK: cases.mlir:[[@LINE+1]]:3: error: element [0, 1]: expected 1, found 2; 5 of 6 elements differ
  check.expect_eq %r, %x : tensor<2x3xf32>
  // CHECK: cases.mlir:[[@LINE-7]]:1: remark: in the case 'two wrong elements'
}

func.func @same(%x: tensor<6xf32>) -> tensor<6xf32> {
  return %x : tensor<6xf32>
}

// 0x7FC00001 is another NaN, 0x3F800002 two steps from 1.
check.case "bits, steps and distances" {
  %x = arith.constant dense<[0x7FC00001, -0.0, 0x3F800002, 0x7F800000, 100.0, 0x00000001]> : tensor<6xf32>
  %r = check.run @same(%x) : (tensor<6xf32>) -> tensor<6xf32>
  // A NaN is equal to any NaN; zeros differ in their signs.
  // CHECK: cases.mlir:[[@LINE+1]]:3: error: element [1]: expected 0, found -0; 1 of 6 elements differ
  check.expect_eq %r, dense<[0x7FC00000, 0.0, 0x3F800002, 0x7F800000, 100.0, 0x00000001]> : tensor<6xf32>
  // CHECK: cases.mlir:[[@LINE+1]]:3: error: element [0]: expected 1, found NaN; 1 of 6 elements differ
  check.expect_close %r, dense<[1.0, 0.0, 1.0, 0x7F800000, 100.0, -0.0]> : tensor<6xf32> {max_ulp = 2}
  // CHECK: cases.mlir:[[@LINE+1]]:3: error: element [0]: expected 1, found NaN; 2 of 6 elements differ
  check.expect_close %r, dense<[1.0, 0.0, 1.0, 0x7F800000, 100.0, -0.0]> : tensor<6xf32> {max_ulp = 1}
  // The largest finite value is one step below infinity, and not close to it.
  // CHECK: cases.mlir:[[@LINE+1]]:3: error: element [3]: expected 3.40282347E+38, found +Inf; 2 of 6 elements differ
  check.expect_close %r, dense<[0x7FC00000, 0.0, 1.0, 0x7F7FFFFF, 100.5, 0.0]> : tensor<6xf32> {max_ulp = 5, atol = 0.25}
  // CHECK: cases.mlir:[[@LINE+1]]:3: error: element [3]: expected 3.40282347E+38, found +Inf; 1 of 6 elements differ
  check.expect_close %r, dense<[0x7FC00000, 0.0, 1.0, 0x7F7FFFFF, 100.5, 0.0]> : tensor<6xf32> {max_ulp = 5, atol = 0.5}
  // CHECK: remark: in the case 'bits, steps and distances'
}

func.func @scalar(%x: tensor<i1>) -> (tensor<i1>, tensor<0xi32>) {
  %e = tensor.empty() : tensor<0xi32>
  return %x, %e : tensor<i1>, tensor<0xi32>
}

check.case "no dimensions, and no elements" {
  %x = arith.constant dense<true> : tensor<i1>
  %r, %e = check.run @scalar(%x) : (tensor<i1>) -> (tensor<i1>, tensor<0xi32>)
  // CHECK: cases.mlir:[[@LINE+1]]:3: error: element []: expected 0, found 1; 1 of 1 elements differ
  check.expect_eq %r, dense<false> : tensor<i1>
  check.expect_eq %e, dense<> : tensor<0xi32>
  // CHECK: remark: in the case 'no dimensions, and no elements'
}

// A program: it gets addresses, and what lies there afterwards is the result.
#all = affine_set<(i) : (i >= 0, -i + 4 >= 0)>
#order = affine_map<(i) -> (i)>
func.func @reverse(%x: index, %y: index, %n: !ktdp.runtime_arg<i32, upperbound=4>) {
  %four = ktdp.runtime_arg_extract value from %n : !ktdp.runtime_arg<i32, upperbound=4> -> i32
  %v = ktdp.construct_memory_view %x, sizes: [5], strides: [1] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<5xi32>
  %w = ktdp.construct_memory_view %y, sizes: [5], strides: [1] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<5xi32>
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%i) %v[(4 - %i)] {variables_space_set = #all, variables_space_order = #order} : memref<5xi32> -> !ktdp.access_tile<5xindex>
  %u = ktdp.construct_indirect_access_tile intermediate_variables(%i) %w[(%i)] {variables_space_set = #all, variables_space_order = #order} : memref<5xi32> -> !ktdp.access_tile<5xindex>
  %d = ktdp.load %t : !ktdp.access_tile<5xindex> -> tensor<5xi32>
  %s = tensor.splat %four : tensor<5xi32>
  %r = arith.addi %d, %s : tensor<5xi32>
  ktdp.store %r, %u : tensor<5xi32>, !ktdp.access_tile<5xindex>
  return
}

check.case "a program on two arrays" {
  %x = check.generate affine_map<(i) -> (i * 10)> : tensor<5xi32>
  %y = arith.constant dense<-1> : tensor<5xi32>
  %n = arith.constant 4 : i32
  %x1, %y1 = check.run @reverse(%x, %y, %n) : (tensor<5xi32>, tensor<5xi32>, i32) -> (tensor<5xi32>, tensor<5xi32>)
  check.expect_eq %x1, %x : tensor<5xi32>
  // CHECK: cases.mlir:[[@LINE+1]]:3: error: element [4]: expected 5, found 4; 1 of 5 elements differ
  check.expect_eq %y1, dense<[44, 34, 24, 14, 5]> : tensor<5xi32>
  // CHECK: remark: in the case 'a program on two arrays'
}

check.case "errors" {
  %x = arith.constant dense<1> : tensor<5xi32>
  %n = arith.constant 5 : i32
  %four = arith.constant 4 : i32
  check.expect_error "above its upper bound 4" {
    check.run @reverse(%x, %x, %n) : (tensor<5xi32>, tensor<5xi32>, i32) -> (tensor<5xi32>, tensor<5xi32>)
  }
  // CHECK: cases.mlir:[[@LINE+1]]:3: error: expected an error with the text 'above its upper bound 3', found: {{.*}} is above its upper bound 4
  check.expect_error "above its upper bound 3" {
    check.run @reverse(%x, %x, %n) : (tensor<5xi32>, tensor<5xi32>, i32) -> (tensor<5xi32>, tensor<5xi32>)
  }
  // CHECK: cases.mlir:[[@LINE+1]]:3: error: expected an error with the text 'upper', but @reverse ran
  check.expect_error "upper" {
    check.run @reverse(%x, %x, %four) : (tensor<5xi32>, tensor<5xi32>, i32) -> (tensor<5xi32>, tensor<5xi32>)
  }
  // CHECK: remark: in the case 'errors'
}

func.func @refused(%x: tensor<2xi32>) -> tensor<2xi32> {
  %r = tensor.rank %x : tensor<2xi32>
  return %x : tensor<2xi32>
}

check.case "a program that is refused" {
  %x = arith.constant dense<1> : tensor<2xi32>
  check.expect_error "operation 'tensor.rank' is not supported by the runtime" {
    check.run @refused(%x) : (tensor<2xi32>) -> tensor<2xi32>
  }
  // CHECK: cases.mlir:[[@LINE+1]]:8: error: {{.*}}cases.mlir:[[@LINE-9]]:8: error: operation 'tensor.rank' is not supported by the runtime
  %r = check.run @refused(%x) : (tensor<2xi32>) -> tensor<2xi32>
  // Without the run there is nothing to compare.
  check.expect_eq %r, dense<5> : tensor<2xi32>
  // CHECK: remark: in the case 'a program that is refused'
}

// RUN: echo 'check.case "empty" {}' > %t.mlir && not spyre-run --cases %t.mlir 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error:
// RUN: echo 'func.func @f() { return }' > %t.mlir && not spyre-run --cases %t.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: has no check.case
// RUN: not spyre-run --cases %t.absent 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: No such file
// RUN: not spyre-run --cases %s --entry twice 2>&1 | FileCheck %s --check-prefix=OPTIONS
// OPTIONS: error: --cases takes options of how programs run only (see --help)
