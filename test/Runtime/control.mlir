// SPDX-License-Identifier: Apache-2.0
// Loops and branches whose values are tensors; slices in between.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none --threads 2
// RUN: spyre-run --cases %s --check=full

// A swap: each iteration argument is the other one's next value, and both
// tensors stay in use after the loop.
func.func @fibonacci(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %n: index) -> tensor<4x6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p, %q, %k = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %c = %c0) -> (tensor<4x6xf32>, tensor<4x6xf32>, index) {
    %s = arith.addf %a, %b : tensor<4x6xf32>
    %m = arith.addi %c, %i : index
    scf.yield %b, %s, %m : tensor<4x6xf32>, tensor<4x6xf32>, index
  }
  %ki = arith.index_cast %k : index to i32
  %kf = arith.sitofp %ki : i32 to f32
  %kt = tensor.splat %kf : tensor<4x6xf32>
  %r0 = arith.addf %p, %kt : tensor<4x6xf32>
  %r1 = arith.subf %r0, %x : tensor<4x6xf32>
  %r = arith.subf %r1, %y : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// After n steps %p is F(n - 1) x + F(n) y, and %k the sum of 0 to n - 1.
check.case "scf.for hands values on" {
  %x = check.generate affine_map<(i, j) -> (i * 6 + j - 9)> : tensor<4x6xf32>
  %y = check.generate affine_map<(i, j) -> (j * 3 - i * 2)> : tensor<4x6xf32>
  %c0 = arith.constant 0 : index
  %r0 = check.run @fibonacci(%x, %y, %c0) : (tensor<4x6xf32>, tensor<4x6xf32>, index) -> tensor<4x6xf32>
  %e0 = check.generate affine_map<(i, j) -> (i * 2 - j * 3)> : tensor<4x6xf32>
  check.expect_eq %r0, %e0 : tensor<4x6xf32>
  %c1 = arith.constant 1 : index
  %r1 = check.run @fibonacci(%x, %y, %c1) : (tensor<4x6xf32>, tensor<4x6xf32>, index) -> tensor<4x6xf32>
  %e1 = check.generate affine_map<(i, j) -> (9 - i * 6 - j)> : tensor<4x6xf32>
  check.expect_eq %r1, %e1 : tensor<4x6xf32>
  %c2 = arith.constant 2 : index
  %r2 = check.run @fibonacci(%x, %y, %c2) : (tensor<4x6xf32>, tensor<4x6xf32>, index) -> tensor<4x6xf32>
  check.expect_eq %r2, dense<1.0> : tensor<4x6xf32>
  %c5 = arith.constant 5 : index
  %r5 = check.run @fibonacci(%x, %y, %c5) : (tensor<4x6xf32>, tensor<4x6xf32>, index) -> tensor<4x6xf32>
  %e5 = check.generate affine_map<(i, j) -> (i * 4 + j * 14 - 8)> : tensor<4x6xf32>
  check.expect_eq %r5, %e5 : tensor<4x6xf32>
}

func.func @branch(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %n: index) -> tensor<4x6xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %less = arith.cmpi slt, %n, %c4 : index
  %r, %u = scf.if %less -> (tensor<4x6xf32>, index) {
    %s = arith.addf %x, %y : tensor<4x6xf32>
    scf.yield %s, %c0 : tensor<4x6xf32>, index
  } else {
    scf.yield %x, %n : tensor<4x6xf32>, index
  }
  return %r : tensor<4x6xf32>
}

check.case "scf.if takes one of its branches" {
  %x = check.generate affine_map<(i, j) -> (i * 6 + j - 9)> : tensor<4x6xf32>
  %y = check.generate affine_map<(i, j) -> (j * 3 - i * 2)> : tensor<4x6xf32>
  %c3 = arith.constant 3 : index
  %then = check.run @branch(%x, %y, %c3) : (tensor<4x6xf32>, tensor<4x6xf32>, index) -> tensor<4x6xf32>
  %sum = check.generate affine_map<(i, j) -> (i * 4 + j * 4 - 9)> : tensor<4x6xf32>
  check.expect_eq %then, %sum : tensor<4x6xf32>
  %c4 = arith.constant 4 : index
  %else = check.run @branch(%x, %y, %c4) : (tensor<4x6xf32>, tensor<4x6xf32>, index) -> tensor<4x6xf32>
  check.expect_eq %else, %x : tensor<4x6xf32>
}

func.func @while(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %n: index) -> tensor<4x6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w:2 = scf.while (%a = %x, %i = %n) : (tensor<4x6xf32>, index) -> (tensor<4x6xf32>, index) {
    %more = arith.cmpi sgt, %i, %c0 : index
    scf.condition(%more) %a, %i : tensor<4x6xf32>, index
  } do {
  ^bb0(%a: tensor<4x6xf32>, %i: index):
    %s = arith.addf %a, %y : tensor<4x6xf32>
    %j = arith.subi %i, %c1 : index
    scf.yield %s, %j : tensor<4x6xf32>, index
  }
  %r = arith.addf %w#0, %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

check.case "scf.while adds y three times" {
  %x = check.generate affine_map<(i, j) -> (i * 6 + j - 9)> : tensor<4x6xf32>
  %y = check.generate affine_map<(i, j) -> (j * 3 - i * 2)> : tensor<4x6xf32>
  %n = arith.constant 3 : index
  %r = check.run @while(%x, %y, %n) : (tensor<4x6xf32>, tensor<4x6xf32>, index) -> tensor<4x6xf32>
  // 2 x + 3 y
  %e = check.generate affine_map<(i, j) -> (i * 6 + j * 11 - 18)> : tensor<4x6xf32>
  check.expect_eq %r, %e : tensor<4x6xf32>
}

func.func @slices(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %s = tensor.extract_slice %y[0, 1] [2, %c3] [1, 1] : tensor<4x6xf32> to tensor<2x?xf32>
  %o = tensor.insert_slice %s into %x[1, 0] [2, %c3] [1, 2] : tensor<2x?xf32> into tensor<4x6xf32>
  %e = tensor.extract %y[%c2, %c2] : tensor<4x6xf32>
  %i = tensor.insert %e into %o[%c3, %c5] : tensor<4x6xf32>
  %f = tensor.collapse_shape %i [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %r = tensor.expand_shape %f [[0, 1]] output_shape [4, 6] : tensor<24xf32> into tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

check.case "slices and elements go where they are put" {
  %x = check.generate affine_map<(i, j) -> (i * 6 + j)> : tensor<4x6xf32>
  %y = check.generate affine_map<(i, j) -> (i * 10 + j + 100)> : tensor<4x6xf32>
  %r = check.run @slices(%x, %y) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  check.expect_eq %r, dense<[[  0.0,  1.0,   2.0,  3.0,   4.0,   5.0],
                             [101.0,  7.0, 102.0,  9.0, 103.0,  11.0],
                             [111.0, 13.0, 112.0, 15.0, 113.0,  17.0],
                             [ 18.0, 19.0,  20.0, 21.0,  22.0, 122.0]]> : tensor<4x6xf32>
}

func.func @slice_at(%y: tensor<4x6xf32>, %n: index) -> tensor<2x6xf32> {
  %s = tensor.extract_slice %y[%n, 0] [2, 6] [1, 1] : tensor<4x6xf32> to tensor<2x6xf32>
  return %s : tensor<2x6xf32>
}

check.case "a slice stays inside" {
  %y = check.generate affine_map<(i, j) -> (i * 6 + j)> : tensor<4x6xf32>
  %c2 = arith.constant 2 : index
  %r = check.run @slice_at(%y, %c2) : (tensor<4x6xf32>, index) -> tensor<2x6xf32>
  %e = check.generate affine_map<(i, j) -> (i * 6 + j + 12)> : tensor<2x6xf32>
  check.expect_eq %r, %e : tensor<2x6xf32>
  %c3 = arith.constant 3 : index
  check.expect_error "slice of dimension 0 at offset 3 with 2 elements and stride 1 leaves its size 4" {
    check.run @slice_at(%y, %c3) : (tensor<4x6xf32>, index) -> tensor<2x6xf32>
  }
}
