// SPDX-License-Identifier: Apache-2.0
// Contractions as linalg.generic, in every order of operands, with a batch.
//
// x is 1 + [k = m + b], so that each result is the sum of a column of y and one
// element more: with y = 7 b + 3 k + 5 n - 60 and 29 values of k that is
// 213 b + 3 m + 150 n - 582.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none
// RUN: spyre-run --cases %s --check=full

func.func @bmk_bkn(%x: tensor<3x17x29xf32>, %y: tensor<3x29x40xf32>) -> tensor<3x17x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x17x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x17x40xf32>) -> tensor<3x17x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, k, m, n) -> (b, m, k)>,
      affine_map<(b, k, m, n) -> (b, k, n)>,
      affine_map<(b, k, m, n) -> (b, m, n)>],
      iterator_types = ["parallel", "reduction", "parallel", "parallel"]} ins(%x, %y : tensor<3x17x29xf32>, tensor<3x29x40xf32>) outs(%f : tensor<3x17x40xf32>) {
  ^bb0(%l: f32, %h: f32, %o: f32):
    %m = arith.mulf %l, %h : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x17x40xf32>
  return %r : tensor<3x17x40xf32>
}

check.case "bmk, bkn -> bmn" {
  %x = check.generate affine_map<(b, m, k) -> ((k - m - b) floordiv 64 + (m + b - k) floordiv 64 + 2)> : tensor<3x17x29xf32>
  %y = check.generate affine_map<(b, k, n) -> (b * 7 + k * 3 + n * 5 - 60)> : tensor<3x29x40xf32>
  %r = check.run @bmk_bkn(%x, %y) : (tensor<3x17x29xf32>, tensor<3x29x40xf32>) -> tensor<3x17x40xf32>
  %e = check.generate affine_map<(b, m, n) -> (b * 213 + m * 3 + n * 150 - 582)> : tensor<3x17x40xf32>
  check.expect_eq %r, %e : tensor<3x17x40xf32>
}

func.func @bkm_bnk(%x: tensor<3x29x17xf32>, %y: tensor<3x40x29xf32>) -> tensor<3x40x17xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x40x17xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x40x17xf32>) -> tensor<3x40x17xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, k, m, n) -> (b, k, m)>,
      affine_map<(b, k, m, n) -> (b, n, k)>,
      affine_map<(b, k, m, n) -> (b, n, m)>],
      iterator_types = ["parallel", "reduction", "parallel", "parallel"]} ins(%x, %y : tensor<3x29x17xf32>, tensor<3x40x29xf32>) outs(%f : tensor<3x40x17xf32>) {
  ^bb0(%l: f32, %h: f32, %o: f32):
    %m = arith.mulf %l, %h : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x40x17xf32>
  return %r : tensor<3x40x17xf32>
}

check.case "bkm, bnk -> bnm" {
  %x = check.generate affine_map<(b, k, m) -> ((k - m - b) floordiv 64 + (m + b - k) floordiv 64 + 2)> : tensor<3x29x17xf32>
  %y = check.generate affine_map<(b, n, k) -> (b * 7 + k * 3 + n * 5 - 60)> : tensor<3x40x29xf32>
  %r = check.run @bkm_bnk(%x, %y) : (tensor<3x29x17xf32>, tensor<3x40x29xf32>) -> tensor<3x40x17xf32>
  %e = check.generate affine_map<(b, n, m) -> (b * 213 + m * 3 + n * 150 - 582)> : tensor<3x40x17xf32>
  check.expect_eq %r, %e : tensor<3x40x17xf32>
}

func.func @mbk_kbn(%x: tensor<17x3x29xf32>, %y: tensor<29x3x40xf32>) -> tensor<17x40x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<17x40x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<17x40x3xf32>) -> tensor<17x40x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, k, m, n) -> (m, b, k)>,
      affine_map<(b, k, m, n) -> (k, b, n)>,
      affine_map<(b, k, m, n) -> (m, n, b)>],
      iterator_types = ["parallel", "reduction", "parallel", "parallel"]} ins(%x, %y : tensor<17x3x29xf32>, tensor<29x3x40xf32>) outs(%f : tensor<17x40x3xf32>) {
  ^bb0(%l: f32, %h: f32, %o: f32):
    %m = arith.mulf %l, %h : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<17x40x3xf32>
  return %r : tensor<17x40x3xf32>
}

check.case "mbk, kbn -> mnb" {
  %x = check.generate affine_map<(m, b, k) -> ((k - m - b) floordiv 64 + (m + b - k) floordiv 64 + 2)> : tensor<17x3x29xf32>
  %y = check.generate affine_map<(k, b, n) -> (b * 7 + k * 3 + n * 5 - 60)> : tensor<29x3x40xf32>
  %r = check.run @mbk_kbn(%x, %y) : (tensor<17x3x29xf32>, tensor<29x3x40xf32>) -> tensor<17x40x3xf32>
  %e = check.generate affine_map<(m, n, b) -> (b * 213 + m * 3 + n * 150 - 582)> : tensor<17x40x3xf32>
  check.expect_eq %r, %e : tensor<17x40x3xf32>
}

func.func @bk_bkn(%x: tensor<3x29xf32>, %y: tensor<3x29x40xf32>) -> tensor<3x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x40xf32>) -> tensor<3x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, k, n) -> (b, k)>,
      affine_map<(b, k, n) -> (b, k, n)>,
      affine_map<(b, k, n) -> (b, n)>],
      iterator_types = ["parallel", "reduction", "parallel"]} ins(%x, %y : tensor<3x29xf32>, tensor<3x29x40xf32>) outs(%f : tensor<3x40xf32>) {
  ^bb0(%l: f32, %h: f32, %o: f32):
    %m = arith.mulf %l, %h : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x40xf32>
  return %r : tensor<3x40xf32>
}

check.case "bk, bkn -> bn" {
  %x = check.generate affine_map<(b, k) -> ((k - b) floordiv 64 + (b - k) floordiv 64 + 2)> : tensor<3x29xf32>
  %y = check.generate affine_map<(b, k, n) -> (b * 7 + k * 3 + n * 5 - 60)> : tensor<3x29x40xf32>
  %r = check.run @bk_bkn(%x, %y) : (tensor<3x29xf32>, tensor<3x29x40xf32>) -> tensor<3x40xf32>
  %e = check.generate affine_map<(b, n) -> (b * 213 + n * 150 - 582)> : tensor<3x40xf32>
  check.expect_eq %r, %e : tensor<3x40xf32>
}

func.func @km_kn(%x: tensor<29x17xf32>, %y: tensor<29x40xf32>) -> tensor<40x17xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x17xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x17xf32>) -> tensor<40x17xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(k, m, n) -> (k, m)>,
      affine_map<(k, m, n) -> (k, n)>,
      affine_map<(k, m, n) -> (n, m)>],
      iterator_types = ["reduction", "parallel", "parallel"]} ins(%x, %y : tensor<29x17xf32>, tensor<29x40xf32>) outs(%f : tensor<40x17xf32>) {
  ^bb0(%l: f32, %h: f32, %o: f32):
    %m = arith.mulf %l, %h : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<40x17xf32>
  return %r : tensor<40x17xf32>
}

check.case "km, kn -> nm" {
  %x = check.generate affine_map<(k, m) -> ((k - m) floordiv 64 + (m - k) floordiv 64 + 2)> : tensor<29x17xf32>
  %y = check.generate affine_map<(k, n) -> (k * 3 + n * 5 - 60)> : tensor<29x40xf32>
  %r = check.run @km_kn(%x, %y) : (tensor<29x17xf32>, tensor<29x40xf32>) -> tensor<40x17xf32>
  %e = check.generate affine_map<(n, m) -> (m * 3 + n * 150 - 582)> : tensor<40x17xf32>
  check.expect_eq %r, %e : tensor<40x17xf32>
}

func.func @bmk_kn(%x: tensor<3x17x29xf32>, %y: tensor<29x40xf32>) -> tensor<3x17x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x17x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x17x40xf32>) -> tensor<3x17x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, k, m, n) -> (b, m, k)>,
      affine_map<(b, k, m, n) -> (k, n)>,
      affine_map<(b, k, m, n) -> (b, m, n)>],
      iterator_types = ["parallel", "reduction", "parallel", "parallel"]} ins(%x, %y : tensor<3x17x29xf32>, tensor<29x40xf32>) outs(%f : tensor<3x17x40xf32>) {
  ^bb0(%l: f32, %h: f32, %o: f32):
    %m = arith.mulf %l, %h : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x17x40xf32>
  return %r : tensor<3x17x40xf32>
}

check.case "bmk, kn -> bmn" {
  %x = check.generate affine_map<(b, m, k) -> ((k - m - b) floordiv 64 + (m + b - k) floordiv 64 + 2)> : tensor<3x17x29xf32>
  %y = check.generate affine_map<(k, n) -> (k * 3 + n * 5 - 60)> : tensor<29x40xf32>
  %r = check.run @bmk_kn(%x, %y) : (tensor<3x17x29xf32>, tensor<29x40xf32>) -> tensor<3x17x40xf32>
  %e = check.generate affine_map<(b, m, n) -> (b * 3 + m * 3 + n * 150 - 582)> : tensor<3x17x40xf32>
  check.expect_eq %r, %e : tensor<3x17x40xf32>
}

// Sums of int8 products are exact beyond the 24 bits of fp32.
func.func @int8(%x: tensor<3x2500xi8>, %y: tensor<2500x40xi8>) -> tensor<3x40xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<3x40xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<3x40xi32>) -> tensor<3x40xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<3x2500xi8>, tensor<2500x40xi8>) outs(%f : tensor<3x40xi32>) {
  ^bb0(%l: i8, %h: i8, %o: i32):
    %a = arith.extsi %l : i8 to i32
    %b = arith.extsi %h : i8 to i32
    %m = arith.muli %a, %b : i32
    %s = arith.addi %o, %m : i32
    linalg.yield %s : i32
  } -> tensor<3x40xi32>
  return %r : tensor<3x40xi32>
}

check.case "int8, more than fp32 holds" {
  %x = check.generate affine_map<(m, k) -> (-128)> : tensor<3x2500xi8>
  %y = check.generate affine_map<(k, n) -> (n - 127)> : tensor<2500x40xi8>
  %r = check.run @int8(%x, %y) : (tensor<3x2500xi8>, tensor<2500x40xi8>) -> tensor<3x40xi32>
  %e = check.generate affine_map<(m, n) -> (40640000 - n * 320000)> : tensor<3x40xi32>
  check.expect_eq %r, %e : tensor<3x40xi32>
}

// A float and an integer of 8 bits.
func.func @mixed(%x: tensor<17x29xf32>, %y: tensor<29x40xi8>) -> tensor<17x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<17x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<17x40xf32>) -> tensor<17x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<17x29xf32>, tensor<29x40xi8>) outs(%f : tensor<17x40xf32>) {
  ^bb0(%l: f32, %h: i8, %o: f32):
    %a = arith.extsi %h : i8 to i32
    %b = arith.sitofp %a : i32 to f32
    %m = arith.mulf %l, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<17x40xf32>
  return %r : tensor<17x40xf32>
}

check.case "f32 and int8" {
  %x = check.generate affine_map<(m, k) -> (2)> : tensor<17x29xf32>
  %y = check.generate affine_map<(k, n) -> (n + k - 20)> : tensor<29x40xi8>
  %r = check.run @mixed(%x, %y) : (tensor<17x29xf32>, tensor<29x40xi8>) -> tensor<17x40xf32>
  %e = check.generate affine_map<(m, n) -> (n * 58 - 348)> : tensor<17x40xf32>
  check.expect_eq %r, %e : tensor<17x40xf32>
}
