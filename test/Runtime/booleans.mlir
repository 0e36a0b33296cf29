// SPDX-License-Identifier: Apache-2.0
// Operations of arith on i1, on every combination of three bits; as a signed
// number 1 is -1.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none

!t = tensor<8xi1>

func.func @bits(%x: !t, %y: !t) -> (!t, !t, !t, !t, !t, !t, !t) {
  %and = arith.andi %x, %y : !t
  %or = arith.ori %x, %y : !t
  %xor = arith.xori %x, %y : !t
  %add = arith.addi %x, %y : !t
  %mul = arith.muli %x, %y : !t
  %maxu = arith.maxui %x, %y : !t
  %maxs = arith.maxsi %x, %y : !t
  return %and, %or, %xor, %add, %mul, %maxu, %maxs : !t, !t, !t, !t, !t, !t, !t
}

check.case "bits and arithmetic" {
  %x = arith.constant dense<[0, 0, 0, 0, 1, 1, 1, 1]> : !t
  %y = arith.constant dense<[0, 0, 1, 1, 0, 0, 1, 1]> : !t
  %and, %or, %xor, %add, %mul, %maxu, %maxs = check.run @bits(%x, %y) : (!t, !t) -> (!t, !t, !t, !t, !t, !t, !t)
  check.expect_eq %and, dense<[0, 0, 0, 0, 0, 0, 1, 1]> : !t
  check.expect_eq %or, dense<[0, 0, 1, 1, 1, 1, 1, 1]> : !t
  check.expect_eq %xor, dense<[0, 0, 1, 1, 1, 1, 0, 0]> : !t
  check.expect_eq %add, dense<[0, 0, 1, 1, 1, 1, 0, 0]> : !t
  check.expect_eq %mul, dense<[0, 0, 0, 0, 0, 0, 1, 1]> : !t
  check.expect_eq %maxu, dense<[0, 0, 1, 1, 1, 1, 1, 1]> : !t
  check.expect_eq %maxs, dense<[0, 0, 0, 0, 0, 0, 1, 1]> : !t
}

func.func @comparisons(%x: !t, %y: !t, %w: !t) -> (!t, !t, !t, !t) {
  %eq = arith.cmpi eq, %x, %y : !t
  %ult = arith.cmpi ult, %x, %y : !t
  %slt = arith.cmpi slt, %x, %y : !t
  %select = arith.select %x, %y, %w : !t, !t
  return %eq, %ult, %slt, %select : !t, !t, !t, !t
}

check.case "comparisons and choice" {
  %x = arith.constant dense<[0, 0, 0, 0, 1, 1, 1, 1]> : !t
  %y = arith.constant dense<[0, 0, 1, 1, 0, 0, 1, 1]> : !t
  %w = arith.constant dense<[0, 1, 0, 1, 0, 1, 0, 1]> : !t
  %eq, %ult, %slt, %select = check.run @comparisons(%x, %y, %w) : (!t, !t, !t) -> (!t, !t, !t, !t)
  check.expect_eq %eq, dense<[1, 1, 0, 0, 0, 0, 1, 1]> : !t
  check.expect_eq %ult, dense<[0, 0, 1, 1, 0, 0, 0, 0]> : !t
  check.expect_eq %slt, dense<[0, 0, 0, 0, 1, 1, 0, 0]> : !t
  check.expect_eq %select, dense<[0, 1, 0, 1, 0, 0, 1, 1]> : !t
}

// The second bit of a wider number is a copy of the sign, or zero.
func.func @extensions(%x: !t) -> (!t, !t) {
  %one = arith.constant dense<1> : tensor<8xi32>
  %u = arith.extui %x : !t to tensor<8xi32>
  %us = arith.shrui %u, %one : tensor<8xi32>
  %ut = arith.trunci %us : tensor<8xi32> to !t
  %s = arith.extsi %x : !t to tensor<8xi32>
  %ss = arith.shrui %s, %one : tensor<8xi32>
  %st = arith.trunci %ss : tensor<8xi32> to !t
  return %ut, %st : !t, !t
}

check.case "extensions" {
  %x = arith.constant dense<[0, 1, 1, 0, 1, 0, 0, 1]> : !t
  %unsigned, %signed = check.run @extensions(%x) : (!t) -> (!t, !t)
  check.expect_eq %unsigned, dense<0> : !t
  check.expect_eq %signed, %x : !t
}
