// SPDX-License-Identifier: Apache-2.0
// Operations of arith and math on f8E4M3FN: 19 elements, a vector and a rest.
// What is expected was computed by numpy in fp64, and rounded.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none

!t = tensor<19xf8E4M3FN>

func.func @arithmetic(%x: !t, %y: !t, %w: !t) -> (!t, !t, !t, !t, !t, !t, !t) {
  %add = arith.addf %x, %y : !t
  %sub = arith.subf %x, %y : !t
  %mul = arith.mulf %x, %y : !t
  %div = arith.divf %x, %y : !t
  %rem = arith.remf %x, %y : !t
  %fma = math.fma %x, %y, %w : !t
  %sqrt = math.sqrt %w : !t
  return %add, %sub, %mul, %div, %rem, %fma, %sqrt : !t, !t, !t, !t, !t, !t, !t
}

check.case "one rounding" {
  %x = arith.constant dense<[0.0, -0.5, 2.5, 1.125, -2.25, -3.75, 0.1875, -2.5, 0.75, -3.75, 2.5, -1.0,
      -1.5, 1.25, 3.25, -2.25, 0.34375, 3.5, -1.75]> : !t
  %y = arith.constant dense<[-0.875, 1.375, 1.0, 1.125, -2.25, -3.75, -1.875, -1.375, 2.5, 2.75, 1.75,
      1.625, 2.0, -1.75, 2.0, 0.875, -2.5, 2.0, 3.0]> : !t
  %w = arith.constant dense<[0.375, 5.0, 3.25, 6.0, 2.25, 4.0, 4.0, 0.5, 3.0, 5.0, 1.5, 3.75, 4.5, 0.25,
      3.5, 0.140625, 2.25, 1.0, 4.0]> : !t
  %add, %sub, %mul, %div, %rem, %fma, %sqrt = check.run @arithmetic(%x, %y, %w) : (!t, !t, !t) -> (!t, !t,
      !t, !t, !t, !t, !t)
  check.expect_eq %add, dense<[-0.875, 0.875, 3.5, 2.25, -4.5, -7.5, -1.75, -4.0, 3.25, -1.0, 4.0, 0.625,
      0.5, -0.5, 5.0, -1.375, -2.25, 5.5, 1.25]> : !t
  check.expect_eq %sub, dense<[0.875, -1.875, 1.5, 0.0, 0.0, 0.0, 2.0, -1.125, -1.75, -6.5, 0.75, -2.5,
      -3.5, 3.0, 1.25, -3.0, 2.75, 1.5, -5.0]> : !t
  check.expect_eq %mul, dense<[-0.0, -0.6875, 2.5, 1.25, 5.0, 14.0, -0.34375, 3.5, 1.875, -10.0, 4.5,
      -1.625, -3.0, -2.25, 6.5, -2.0, -0.875, 7.0, -5.0]> : !t
  check.expect_eq %div, dense<[-0.0, -0.375, 2.5, 1.0, 1.0, 1.0, -0.1015625, 1.875, 0.3125, -1.375, 1.375,
      -0.625, -0.75, -0.6875, 1.625, -2.5, -0.140625, 1.75, -0.5625]> : !t
  check.expect_eq %rem, dense<[0.0, -0.5, 0.5, 0.0, -0.0, -0.0, 0.1875, -1.125, 0.75, -1.0, 0.75, -1.0,
      -1.5, 1.25, 1.25, -0.5, 0.34375, 1.5, -1.75]> : !t
  check.expect_eq %fma, dense<[0.375, 4.5, 6.0, 7.5, 7.5, 18.0, 3.75, 4.0, 5.0, -5.5, 6.0, 2.0, 1.5, -2.0,
      10.0, -1.875, 1.375, 8.0, -1.25]> : !t
  check.expect_eq %sqrt, dense<[0.625, 2.25, 1.75, 2.5, 1.5, 2.0, 2.0, 0.6875, 1.75, 2.25, 1.25, 1.875, 2.0,
      0.5, 1.875, 0.375, 1.5, 1.0, 2.0]> : !t
}

func.func @choice(%x: !t, %y: !t) -> (!t, !t, !t, !t, !t, !t, !t, !t) {
  %neg = arith.negf %x : !t
  %maximum = arith.maximumf %x, %y : !t
  %minimum = arith.minimumf %x, %y : !t
  %maxnum = arith.maxnumf %x, %y : !t
  %minnum = arith.minnumf %x, %y : !t
  %abs = math.absf %x : !t
  %ceil = math.ceil %x : !t
  %floor = math.floor %x : !t
  return %neg, %maximum, %minimum, %maxnum, %minnum, %abs, %ceil, %floor : !t, !t, !t, !t, !t, !t, !t, !t
}

check.case "no rounding" {
  %x = arith.constant dense<[0.0, -0.5, 2.5, 1.125, -2.25, -3.75, 0.1875, -2.5, 0.75, -3.75, 2.5, -1.0,
      -1.5, 1.25, 3.25, -2.25, 0.34375, 3.5, -1.75]> : !t
  %y = arith.constant dense<[-0.875, 1.375, 1.0, 1.125, -2.25, -3.75, -1.875, -1.375, 2.5, 2.75, 1.75,
      1.625, 2.0, -1.75, 2.0, 0.875, -2.5, 2.0, 3.0]> : !t
  %neg, %maximum, %minimum, %maxnum, %minnum, %abs, %ceil, %floor = check.run @choice(%x, %y) : (!t, !t) ->
      (!t, !t, !t, !t, !t, !t, !t, !t)
  check.expect_eq %neg, dense<[-0.0, 0.5, -2.5, -1.125, 2.25, 3.75, -0.1875, 2.5, -0.75, 3.75, -2.5, 1.0,
      1.5, -1.25, -3.25, 2.25, -0.34375, -3.5, 1.75]> : !t
  check.expect_eq %maximum, dense<[0.0, 1.375, 2.5, 1.125, -2.25, -3.75, 0.1875, -1.375, 2.5, 2.75, 2.5,
      1.625, 2.0, 1.25, 3.25, 0.875, 0.34375, 3.5, 3.0]> : !t
  check.expect_eq %minimum, dense<[-0.875, -0.5, 1.0, 1.125, -2.25, -3.75, -1.875, -2.5, 0.75, -3.75, 1.75,
      -1.0, -1.5, -1.75, 2.0, -2.25, -2.5, 2.0, -1.75]> : !t
  check.expect_eq %maxnum, dense<[0.0, 1.375, 2.5, 1.125, -2.25, -3.75, 0.1875, -1.375, 2.5, 2.75, 2.5,
      1.625, 2.0, 1.25, 3.25, 0.875, 0.34375, 3.5, 3.0]> : !t
  check.expect_eq %minnum, dense<[-0.875, -0.5, 1.0, 1.125, -2.25, -3.75, -1.875, -2.5, 0.75, -3.75, 1.75,
      -1.0, -1.5, -1.75, 2.0, -2.25, -2.5, 2.0, -1.75]> : !t
  check.expect_eq %abs, dense<[0.0, 0.5, 2.5, 1.125, 2.25, 3.75, 0.1875, 2.5, 0.75, 3.75, 2.5, 1.0, 1.5,
      1.25, 3.25, 2.25, 0.34375, 3.5, 1.75]> : !t
  check.expect_eq %ceil, dense<[0.0, -0.0, 3.0, 2.0, -2.0, -3.0, 1.0, -2.0, 1.0, -3.0, 3.0, -1.0, -1.0, 2.0,
      4.0, -2.0, 1.0, 4.0, -1.0]> : !t
  check.expect_eq %floor, dense<[0.0, -1.0, 2.0, 1.0, -3.0, -4.0, 0.0, -3.0, 0.0, -4.0, 2.0, -1.0, -2.0,
      1.0, 3.0, -3.0, 0.0, 3.0, -2.0]> : !t
}

func.func @conversions(%x: !t, %w: !t) -> (!t, !t, !t, !t) {
  %i = arith.bitcast %x : !t to tensor<19xi8>
  %bits = arith.bitcast %i : tensor<19xi8> to !t
  %s = arith.fptosi %x : !t to tensor<19xi32>
  %signed = arith.sitofp %s : tensor<19xi32> to !t
  %u = arith.fptoui %w : !t to tensor<19xi8>
  %unsigned = arith.uitofp %u : tensor<19xi8> to !t
  %e = arith.extf %x : !t to tensor<19xf32>
  %c = arith.constant dense<0.75> : tensor<19xf32>
  %m = arith.mulf %e, %c : tensor<19xf32>
  %wide = arith.truncf %m : tensor<19xf32> to !t
  return %bits, %signed, %unsigned, %wide : !t, !t, !t, !t
}

check.case "to integers, to f32 and back" {
  %x = arith.constant dense<[0.0, -0.5, 2.5, 1.125, -2.25, -3.75, 0.1875, -2.5, 0.75, -3.75, 2.5, -1.0,
      -1.5, 1.25, 3.25, -2.25, 0.34375, 3.5, -1.75]> : !t
  %w = arith.constant dense<[0.375, 5.0, 3.25, 6.0, 2.25, 4.0, 4.0, 0.5, 3.0, 5.0, 1.5, 3.75, 4.5, 0.25,
      3.5, 0.140625, 2.25, 1.0, 4.0]> : !t
  %bits, %signed, %unsigned, %wide = check.run @conversions(%x, %w) : (!t, !t) -> (!t, !t, !t, !t)
  check.expect_eq %bits, dense<[0.0, -0.5, 2.5, 1.125, -2.25, -3.75, 0.1875, -2.5, 0.75, -3.75, 2.5, -1.0,
      -1.5, 1.25, 3.25, -2.25, 0.34375, 3.5, -1.75]> : !t
  check.expect_eq %signed, dense<[0.0, 0.0, 2.0, 1.0, -2.0, -3.0, 0.0, -2.0, 0.0, -3.0, 2.0, -1.0, -1.0,
      1.0, 3.0, -2.0, 0.0, 3.0, -1.0]> : !t
  check.expect_eq %unsigned, dense<[0.0, 5.0, 3.0, 6.0, 2.0, 4.0, 4.0, 0.0, 3.0, 5.0, 1.0, 3.0, 4.0, 0.0,
      3.0, 0.0, 2.0, 1.0, 4.0]> : !t
  check.expect_eq %wide, dense<[0.0, -0.375, 1.875, 0.875, -1.75, -2.75, 0.140625, -1.875, 0.5625, -2.75,
      1.875, -0.75, -1.125, 0.9375, 2.5, -1.75, 0.25, 2.5, -1.25]> : !t
}

func.func @comparisons(%x: !t, %y: !t, %w: !t) -> (!t, !t, !t, !t, !t, !t, !t, !t, !t) {
  %oeq_b = arith.cmpf oeq, %x, %y : !t
  %oeq = arith.select %oeq_b, %x, %w : tensor<19xi1>, !t
  %ogt_b = arith.cmpf ogt, %x, %y : !t
  %ogt = arith.select %ogt_b, %x, %w : tensor<19xi1>, !t
  %oge_b = arith.cmpf oge, %x, %y : !t
  %oge = arith.select %oge_b, %x, %w : tensor<19xi1>, !t
  %olt_b = arith.cmpf olt, %x, %y : !t
  %olt = arith.select %olt_b, %x, %w : tensor<19xi1>, !t
  %ole_b = arith.cmpf ole, %x, %y : !t
  %ole = arith.select %ole_b, %x, %w : tensor<19xi1>, !t
  %one_b = arith.cmpf one, %x, %y : !t
  %one = arith.select %one_b, %x, %w : tensor<19xi1>, !t
  %ult_b = arith.cmpf ult, %x, %y : !t
  %ult = arith.select %ult_b, %x, %w : tensor<19xi1>, !t
  %uno_b = arith.cmpf uno, %x, %y : !t
  %uno = arith.select %uno_b, %x, %w : tensor<19xi1>, !t
  %ord_b = arith.cmpf ord, %x, %y : !t
  %ord = arith.select %ord_b, %x, %w : tensor<19xi1>, !t
  return %oeq, %ogt, %oge, %olt, %ole, %one, %ult, %uno, %ord : !t, !t, !t, !t, !t, !t, !t, !t, !t
}

check.case "x where it compares, else w" {
  %x = arith.constant dense<[0.0, -0.5, 2.5, 1.125, -2.25, -3.75, 0.1875, -2.5, 0.75, -3.75, 2.5, -1.0,
      -1.5, 1.25, 3.25, -2.25, 0.34375, 3.5, -1.75]> : !t
  %y = arith.constant dense<[-0.875, 1.375, 1.0, 1.125, -2.25, -3.75, -1.875, -1.375, 2.5, 2.75, 1.75,
      1.625, 2.0, -1.75, 2.0, 0.875, -2.5, 2.0, 3.0]> : !t
  %w = arith.constant dense<[0.375, 5.0, 3.25, 6.0, 2.25, 4.0, 4.0, 0.5, 3.0, 5.0, 1.5, 3.75, 4.5, 0.25,
      3.5, 0.140625, 2.25, 1.0, 4.0]> : !t
  %oeq, %ogt, %oge, %olt, %ole, %one, %ult, %uno, %ord = check.run @comparisons(%x, %y, %w) : (!t, !t, !t)
      -> (!t, !t, !t, !t, !t, !t, !t, !t, !t)
  check.expect_eq %oeq, dense<[0.375, 5.0, 3.25, 1.125, -2.25, -3.75, 4.0, 0.5, 3.0, 5.0, 1.5, 3.75, 4.5,
      0.25, 3.5, 0.140625, 2.25, 1.0, 4.0]> : !t
  check.expect_eq %ogt, dense<[0.0, 5.0, 2.5, 6.0, 2.25, 4.0, 0.1875, 0.5, 3.0, 5.0, 2.5, 3.75, 4.5, 1.25,
      3.25, 0.140625, 0.34375, 3.5, 4.0]> : !t
  check.expect_eq %oge, dense<[0.0, 5.0, 2.5, 1.125, -2.25, -3.75, 0.1875, 0.5, 3.0, 5.0, 2.5, 3.75, 4.5,
      1.25, 3.25, 0.140625, 0.34375, 3.5, 4.0]> : !t
  check.expect_eq %olt, dense<[0.375, -0.5, 3.25, 6.0, 2.25, 4.0, 4.0, -2.5, 0.75, -3.75, 1.5, -1.0, -1.5,
      0.25, 3.5, -2.25, 2.25, 1.0, -1.75]> : !t
  check.expect_eq %ole, dense<[0.375, -0.5, 3.25, 1.125, -2.25, -3.75, 4.0, -2.5, 0.75, -3.75, 1.5, -1.0,
      -1.5, 0.25, 3.5, -2.25, 2.25, 1.0, -1.75]> : !t
  check.expect_eq %one, dense<[0.0, -0.5, 2.5, 6.0, 2.25, 4.0, 0.1875, -2.5, 0.75, -3.75, 2.5, -1.0, -1.5,
      1.25, 3.25, -2.25, 0.34375, 3.5, -1.75]> : !t
  check.expect_eq %ult, dense<[0.375, -0.5, 3.25, 6.0, 2.25, 4.0, 4.0, -2.5, 0.75, -3.75, 1.5, -1.0, -1.5,
      0.25, 3.5, -2.25, 2.25, 1.0, -1.75]> : !t
  check.expect_eq %uno, dense<[0.375, 5.0, 3.25, 6.0, 2.25, 4.0, 4.0, 0.5, 3.0, 5.0, 1.5, 3.75, 4.5, 0.25,
      3.5, 0.140625, 2.25, 1.0, 4.0]> : !t
  check.expect_eq %ord, dense<[0.0, -0.5, 2.5, 1.125, -2.25, -3.75, 0.1875, -2.5, 0.75, -3.75, 2.5, -1.0,
      -1.5, 1.25, 3.25, -2.25, 0.34375, 3.5, -1.75]> : !t
}

func.func @functions(%x: !t, %w: !t) -> (!t, !t, !t, !t, !t, !t, !t, !t, !t, !t) {
  %exp = math.exp %x : !t
  %rsqrt = math.rsqrt %w : !t
  %log = math.log %w : !t
  %log2 = math.log2 %w : !t
  %log1p = math.log1p %w : !t
  %tanh = math.tanh %x : !t
  %sin = math.sin %x : !t
  %cos = math.cos %x : !t
  %erf = math.erf %x : !t
  %pow = math.powf %w, %x : !t
  return %exp, %rsqrt, %log, %log2, %log1p, %tanh, %sin, %cos, %erf, %pow : !t, !t, !t, !t, !t, !t, !t, !t,
      !t, !t
}

check.case "functions near their values" {
  %x = arith.constant dense<[0.0, -0.5, 2.5, 1.125, -2.25, -3.75, 0.1875, -2.5, 0.75, -3.75, 2.5, -1.0,
      -1.5, 1.25, 3.25, -2.25, 0.34375, 3.5, -1.75]> : !t
  %w = arith.constant dense<[0.375, 5.0, 3.25, 6.0, 2.25, 4.0, 4.0, 0.5, 3.0, 5.0, 1.5, 3.75, 4.5, 0.25,
      3.5, 0.140625, 2.25, 1.0, 4.0]> : !t
  %exp, %rsqrt, %log, %log2, %log1p, %tanh, %sin, %cos, %erf, %pow = check.run @functions(%x, %w) : (!t, !t)
      -> (!t, !t, !t, !t, !t, !t, !t, !t, !t, !t)
  check.expect_close %exp, dense<[1.0, 0.625, 12.0, 3.0, 0.1015625, 0.0234375, 1.25, 0.0859375, 2.0,
      0.0234375, 12.0, 0.375, 0.21875, 3.5, 26.0, 0.1015625, 1.375, 32.0, 0.171875]> : !t {max_ulp = 1}
  check.expect_close %rsqrt, dense<[1.625, 0.4375, 0.5625, 0.40625, 0.6875, 0.5, 0.5, 1.375, 0.5625, 0.4375,
      0.8125, 0.5, 0.46875, 2.0, 0.5625, 2.75, 0.6875, 1.0, 0.5]> : !t {max_ulp = 1}
  check.expect_close %log, dense<[-1.0, 1.625, 1.125, 1.75, 0.8125, 1.375, 1.375, -0.6875, 1.125, 1.625,
      0.40625, 1.375, 1.5, -1.375, 1.25, -2.0, 0.8125, 0.0, 1.375]> : !t {max_ulp = 1}
  check.expect_close %log2, dense<[-1.375, 2.25, 1.75, 2.5, 1.125, 2.0, 2.0, -1.0, 1.625, 2.25, 0.5625,
      1.875, 2.25, -2.0, 1.75, -2.75, 1.125, 0.0, 2.0]> : !t {max_ulp = 1}
  check.expect_close %log1p, dense<[0.3125, 1.75, 1.5, 2.0, 1.125, 1.625, 1.625, 0.40625, 1.375, 1.75,
      0.9375, 1.5, 1.75, 0.21875, 1.5, 0.125, 1.125, 0.6875, 1.625]> : !t {max_ulp = 1}
  check.expect_close %tanh, dense<[0.0, -0.46875, 1.0, 0.8125, -1.0, -1.0, 0.1875, -1.0, 0.625, -1.0, 1.0,
      -0.75, -0.875, 0.875, 1.0, -1.0, 0.34375, 1.0, -0.9375]> : !t {max_ulp = 1}
  check.expect_close %sin, dense<[0.0, -0.46875, 0.625, 0.875, -0.75, 0.5625, 0.1875, -0.625, 0.6875,
      0.5625, 0.625, -0.8125, -1.0, 0.9375, -0.109375, -0.75, 0.34375, -0.34375, -1.0]> : !t {max_ulp = 1}
  check.expect_close %cos, dense<[1.0, 0.875, -0.8125, 0.4375, -0.625, -0.8125, 1.0, -0.8125, 0.75, -0.8125,
      -0.8125, 0.5625, 0.0703125, 0.3125, -1.0, -0.625, 0.9375, -0.9375, -0.171875]> : !t {max_ulp = 1}
  check.expect_close %erf, dense<[0.0, -0.5, 1.0, 0.875, -1.0, -1.0, 0.203125, -1.0, 0.6875, -1.0, 1.0,
      -0.8125, -0.9375, 0.9375, 1.0, -1.0, 0.375, 1.0, -1.0]> : !t {max_ulp = 1}
  check.expect_close %pow, dense<[1.0, 0.4375, 20.0, 7.5, 0.15625, 0.005859375, 1.25, 5.5, 2.25,
      0.001953125, 2.75, 0.28125, 0.1015625, 0.171875, 60.0, 80.0, 1.375, 1.0, 0.0859375]> : !t {max_ulp =
      1}
}
