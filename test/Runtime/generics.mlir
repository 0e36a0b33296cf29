// SPDX-License-Identifier: Apache-2.0
// linalg.generic in every way that the engine runs it: permuted and broadcast
// operands, sums over each dimension, scans, indices.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none
// RUN: spyre-run --cases %s --check=full

#id = affine_map<(i, j, k) -> (i, j, k)>
#matrix = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

func.func @broadcast(%a: tensor<5x33x70xf32>, %b: tensor<70xf32>, %c: tensor<5x33xf32>) -> tensor<70x5x33xf32> {
  %e = tensor.empty() : tensor<70x5x33xf32>
  %r = linalg.generic {indexing_maps = [#id, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j)>,
      affine_map<(i, j, k) -> (k, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %b, %c : tensor<5x33x70xf32>, tensor<70xf32>, tensor<5x33xf32>) outs(%e : tensor<70x5x33xf32>) {
  ^bb0(%x: f32, %y: f32, %w: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %two = arith.addf %s, %s : f32
    %d = arith.subf %two, %w : f32
    linalg.yield %d : f32
  } -> tensor<70x5x33xf32>
  return %r : tensor<70x5x33xf32>
}

check.case "operands are broadcast, the result permuted: 2 (a + b) - c" {
  %a = check.generate affine_map<(i, j, k) -> (i * 1000 + j * 30 + k)> : tensor<5x33x70xf32>
  %b = check.generate affine_map<(k) -> (k * 7)> : tensor<70xf32>
  %c = check.generate affine_map<(i, j) -> (j * 11 - i)> : tensor<5x33xf32>
  %r = check.run @broadcast(%a, %b, %c) : (tensor<5x33x70xf32>, tensor<70xf32>, tensor<5x33xf32>) -> tensor<70x5x33xf32>
  %e = check.generate affine_map<(k, i, j) -> (i * 2001 + j * 49 + k * 16)> : tensor<70x5x33xf32>
  check.expect_eq %r, %e : tensor<70x5x33xf32>
}

func.func @product(%a: tensor<2x3x19xf32>, %b: tensor<19xf32>, %c: tensor<2x3xf32>) -> tensor<19x2x3xf32> {
  %e = tensor.empty() : tensor<19x2x3xf32>
  %r = linalg.generic {indexing_maps = [#id, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j)>,
      affine_map<(i, j, k) -> (k, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %b, %c : tensor<2x3x19xf32>, tensor<19xf32>, tensor<2x3xf32>) outs(%e : tensor<19x2x3xf32>) {
  ^bb0(%x: f32, %y: f32, %w: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %m = arith.mulf %s, %w : f32
    linalg.yield %m : f32
  } -> tensor<19x2x3xf32>
  return %r : tensor<19x2x3xf32>
}

// The factor is 2, 3, 4, 5, 6, 7.
check.case "(a + b) c" {
  %a = check.generate affine_map<(i, j, k) -> (i * 100 + j * 30 + k)> : tensor<2x3x19xf32>
  %b = check.generate affine_map<(k) -> (k * 2)> : tensor<19xf32>
  %c = check.generate affine_map<(i, j) -> (i * 3 + j + 2)> : tensor<2x3xf32>
  %r = check.run @product(%a, %b, %c) : (tensor<2x3x19xf32>, tensor<19xf32>, tensor<2x3xf32>) -> tensor<19x2x3xf32>
  check.expect_eq %r, dense<[[[0.0, 90.0, 240.0], [500.0, 780.0, 1120.0]],
      [[6.0, 99.0, 252.0], [515.0, 798.0, 1141.0]],
      [[12.0, 108.0, 264.0], [530.0, 816.0, 1162.0]],
      [[18.0, 117.0, 276.0], [545.0, 834.0, 1183.0]],
      [[24.0, 126.0, 288.0], [560.0, 852.0, 1204.0]],
      [[30.0, 135.0, 300.0], [575.0, 870.0, 1225.0]],
      [[36.0, 144.0, 312.0], [590.0, 888.0, 1246.0]],
      [[42.0, 153.0, 324.0], [605.0, 906.0, 1267.0]],
      [[48.0, 162.0, 336.0], [620.0, 924.0, 1288.0]],
      [[54.0, 171.0, 348.0], [635.0, 942.0, 1309.0]],
      [[60.0, 180.0, 360.0], [650.0, 960.0, 1330.0]],
      [[66.0, 189.0, 372.0], [665.0, 978.0, 1351.0]],
      [[72.0, 198.0, 384.0], [680.0, 996.0, 1372.0]],
      [[78.0, 207.0, 396.0], [695.0, 1014.0, 1393.0]],
      [[84.0, 216.0, 408.0], [710.0, 1032.0, 1414.0]],
      [[90.0, 225.0, 420.0], [725.0, 1050.0, 1435.0]],
      [[96.0, 234.0, 432.0], [740.0, 1068.0, 1456.0]],
      [[102.0, 243.0, 444.0], [755.0, 1086.0, 1477.0]],
      [[108.0, 252.0, 456.0], [770.0, 1104.0, 1498.0]]]> : tensor<19x2x3xf32>
}

func.func @sum_k(%a: tensor<5x33x70xf32>, %init: tensor<5x33xf32>) -> tensor<5x33xf32> {
  %r = linalg.generic {indexing_maps = [#id, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%a : tensor<5x33x70xf32>) outs(%init : tensor<5x33xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %o, %x : f32
    linalg.yield %s : f32
  } -> tensor<5x33xf32>
  return %r : tensor<5x33xf32>
}

check.case "1 + the sum over k" {
  %a = check.generate affine_map<(i, j, k) -> (i * 3 + j * 2 + k - 90)> : tensor<5x33x70xf32>
  %one = arith.constant dense<1.0> : tensor<5x33xf32>
  %r = check.run @sum_k(%a, %one) : (tensor<5x33x70xf32>, tensor<5x33xf32>) -> tensor<5x33xf32>
  %e = check.generate affine_map<(i, j) -> (i * 210 + j * 140 - 3884)> : tensor<5x33xf32>
  check.expect_eq %r, %e : tensor<5x33xf32>
}

func.func @sum_j(%a: tensor<5x33x70xf32>, %init: tensor<5x70xf32>) -> tensor<5x70xf32> {
  %r = linalg.generic {indexing_maps = [#id, affine_map<(i, j, k) -> (i, k)>],
      iterator_types = ["parallel", "reduction", "parallel"]} ins(%a : tensor<5x33x70xf32>) outs(%init : tensor<5x70xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %o, %x : f32
    linalg.yield %s : f32
  } -> tensor<5x70xf32>
  return %r : tensor<5x70xf32>
}

check.case "1 + the sum over j" {
  %a = check.generate affine_map<(i, j, k) -> (i * 3 + j * 2 + k - 90)> : tensor<5x33x70xf32>
  %one = arith.constant dense<1.0> : tensor<5x70xf32>
  %r = check.run @sum_j(%a, %one) : (tensor<5x33x70xf32>, tensor<5x70xf32>) -> tensor<5x70xf32>
  %e = check.generate affine_map<(i, k) -> (i * 99 + k * 33 - 1913)> : tensor<5x70xf32>
  check.expect_eq %r, %e : tensor<5x70xf32>
}

func.func @sum_i(%a: tensor<5x33x70xf32>, %init: tensor<33x70xf32>) -> tensor<33x70xf32> {
  %r = linalg.generic {indexing_maps = [#id, affine_map<(i, j, k) -> (j, k)>],
      iterator_types = ["reduction", "parallel", "parallel"]} ins(%a : tensor<5x33x70xf32>) outs(%init : tensor<33x70xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %o, %x : f32
    linalg.yield %s : f32
  } -> tensor<33x70xf32>
  return %r : tensor<33x70xf32>
}

check.case "1 + the sum over i" {
  %a = check.generate affine_map<(i, j, k) -> (i * 3 + j * 2 + k - 90)> : tensor<5x33x70xf32>
  %one = arith.constant dense<1.0> : tensor<33x70xf32>
  %r = check.run @sum_i(%a, %one) : (tensor<5x33x70xf32>, tensor<33x70xf32>) -> tensor<33x70xf32>
  %e = check.generate affine_map<(j, k) -> (j * 10 + k * 5 - 419)> : tensor<33x70xf32>
  check.expect_eq %r, %e : tensor<33x70xf32>
}

func.func @sum_ik(%a: tensor<5x33x70xf32>, %init: tensor<33xf32>) -> tensor<33xf32> {
  %r = linalg.generic {indexing_maps = [#id, affine_map<(i, j, k) -> (j)>],
      iterator_types = ["reduction", "parallel", "reduction"]} ins(%a : tensor<5x33x70xf32>) outs(%init : tensor<33xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %o, %x : f32
    linalg.yield %s : f32
  } -> tensor<33xf32>
  return %r : tensor<33xf32>
}

check.case "1 + the sum over i and k" {
  %a = check.generate affine_map<(i, j, k) -> (i * 3 + j * 2 + k - 90)> : tensor<5x33x70xf32>
  %one = arith.constant dense<1.0> : tensor<33xf32>
  %r = check.run @sum_ik(%a, %one) : (tensor<5x33x70xf32>, tensor<33xf32>) -> tensor<33xf32>
  %e = check.generate affine_map<(j) -> (j * 700 - 17324)> : tensor<33xf32>
  check.expect_eq %r, %e : tensor<33xf32>
}

func.func @squares(%a: tensor<3x5x35xf32>) -> (tensor<3x5xf32>, tensor<3x35xf32>, tensor<5x35xf32>, tensor<5xf32>) {
  %over_k_one = arith.constant dense<1.0> : tensor<3x5xf32>
  %over_k = linalg.generic {indexing_maps = [#id, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a : tensor<3x5x35xf32>) outs(%over_k_one : tensor<3x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %m = arith.mulf %x, %x : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  %over_j_one = arith.constant dense<1.0> : tensor<3x35xf32>
  %over_j = linalg.generic {indexing_maps = [#id, affine_map<(i, j, k) -> (i, k)>], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%a : tensor<3x5x35xf32>) outs(%over_j_one : tensor<3x35xf32>) {
  ^bb0(%x: f32, %o: f32):
    %m = arith.mulf %x, %x : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x35xf32>
  %over_i_one = arith.constant dense<1.0> : tensor<5x35xf32>
  %over_i = linalg.generic {indexing_maps = [#id, affine_map<(i, j, k) -> (j, k)>], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%a : tensor<3x5x35xf32>) outs(%over_i_one : tensor<5x35xf32>) {
  ^bb0(%x: f32, %o: f32):
    %m = arith.mulf %x, %x : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x35xf32>
  %over_ik_one = arith.constant dense<1.0> : tensor<5xf32>
  %over_ik = linalg.generic {indexing_maps = [#id, affine_map<(i, j, k) -> (j)>], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%a : tensor<3x5x35xf32>) outs(%over_ik_one : tensor<5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %m = arith.mulf %x, %x : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  return %over_k, %over_j, %over_i, %over_ik : tensor<3x5xf32>, tensor<3x35xf32>, tensor<5x35xf32>, tensor<5xf32>
}

check.case "1 + the sum of squares" {
  %a = check.generate affine_map<(i, j, k) -> ((i * 7 + j * 3 + k * 5) mod 11 - 5)> : tensor<3x5x35xf32>
  %over_k, %over_j, %over_i, %over_ik = check.run @squares(%a) : (tensor<3x5x35xf32>) -> (tensor<3x5xf32>, tensor<3x35xf32>, tensor<5x35xf32>, tensor<5xf32>)
  check.expect_eq %over_k, dense<[[356.0, 344.0, 357.0, 351.0, 348.0],
      [351.0, 357.0, 344.0, 356.0, 349.0],
      [344.0, 357.0, 351.0, 348.0, 348.0]]> : tensor<3x5xf32>
  check.expect_eq %over_j, dense<[[63.0, 40.0, 69.0, 40.0, 63.0, 39.0, 56.0, 48.0, 48.0, 56.0, 39.0, 63.0, 40.0, 69.0, 40.0, 63.0, 39.0, 56.0, 48.0, 48.0, 56.0, 39.0, 63.0, 40.0, 69.0, 40.0, 63.0, 39.0, 56.0, 48.0, 48.0, 56.0, 39.0, 63.0, 40.0],
      [48.0, 56.0, 39.0, 63.0, 40.0, 69.0, 40.0, 63.0, 39.0, 56.0, 48.0, 48.0, 56.0, 39.0, 63.0, 40.0, 69.0, 40.0, 63.0, 39.0, 56.0, 48.0, 48.0, 56.0, 39.0, 63.0, 40.0, 69.0, 40.0, 63.0, 39.0, 56.0, 48.0, 48.0, 56.0],
      [39.0, 56.0, 48.0, 48.0, 56.0, 39.0, 63.0, 40.0, 69.0, 40.0, 63.0, 39.0, 56.0, 48.0, 48.0, 56.0, 39.0, 63.0, 40.0, 69.0, 40.0, 63.0, 39.0, 56.0, 48.0, 48.0, 56.0, 39.0, 63.0, 40.0, 69.0, 40.0, 63.0, 39.0, 56.0]]> : tensor<3x35xf32>
  check.expect_eq %over_i, dense<[[34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0],
      [31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0],
      [27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0],
      [33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0],
      [27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0, 34.0, 26.0, 36.0, 31.0, 33.0, 31.0, 36.0, 26.0, 34.0, 27.0, 27.0]]> : tensor<5x35xf32>
  check.expect_eq %over_ik, dense<[1049.0, 1056.0, 1050.0, 1053.0, 1043.0]> : tensor<5xf32>
}

func.func @sum_of_integers(%a: tensor<9x40xi32>) -> tensor<9xi32> {
  %zero = arith.constant dense<0> : tensor<9xi32>
  %r = linalg.generic {indexing_maps = [#matrix, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<9x40xi32>) outs(%zero : tensor<9xi32>) {
  ^bb0(%x: i32, %o: i32):
    %s = arith.addi %o, %x : i32
    linalg.yield %s : i32
  } -> tensor<9xi32>
  return %r : tensor<9xi32>
}

func.func @index_of_maximum(%a: tensor<9x40xi32>) -> tensor<9xi64> {
  %low = arith.constant dense<-2147483648> : tensor<9xi32>
  %none = arith.constant dense<-1> : tensor<9xi64>
  %r:2 = linalg.generic {indexing_maps = [#matrix, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<9x40xi32>) outs(%low, %none : tensor<9xi32>, tensor<9xi64>) {
  ^bb0(%x: i32, %m: i32, %at: i64):
    %j = linalg.index 1 : index
    %j64 = arith.index_cast %j : index to i64
    %g = arith.cmpi sgt, %x, %m : i32
    %v = arith.select %g, %x, %m : i32
    %w = arith.select %g, %j64, %at : i64
    linalg.yield %v, %w : i32, i64
  } -> (tensor<9xi32>, tensor<9xi64>)
  return %r#1 : tensor<9xi64>
}

check.case "sums of integers, and where the first of the largest is" {
  %a = check.generate affine_map<(i, j) -> ((i * 17 + j * 29) mod 37 - 18)> : tensor<9x40xi32>
  %sum = check.run @sum_of_integers(%a) : (tensor<9x40xi32>) -> tensor<9xi32>
  check.expect_eq %sum, dense<[-4, -27, 24, 1, 15, -8, 6, -17, -3]> : tensor<9xi32>
  %at = check.run @index_of_maximum(%a) : (tensor<9x40xi32>) -> tensor<9xi64>
  check.expect_eq %at, dense<[14, 30, 9, 25, 4, 20, 36, 15, 31]> : tensor<9xi64>
}

func.func @scan(%a: tensor<6x20xf32>) -> tensor<6x20xf32> {
  %zero = arith.constant dense<0.0> : tensor<6xf32>
  %e = tensor.empty() : tensor<6x20xf32>
  %r:2 = linalg.generic {indexing_maps = [#matrix, #matrix, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<6x20xf32>) outs(%e, %zero : tensor<6x20xf32>, tensor<6xf32>) {
  ^bb0(%x: f32, %o: f32, %c: f32):
    %s = arith.addf %x, %c : f32
    linalg.yield %s, %s : f32, f32
  } -> (tensor<6x20xf32>, tensor<6xf32>)
  return %r#0 : tensor<6x20xf32>
}

check.case "a scan: the result is indexed by the reduction too" {
  %a = check.generate affine_map<(i, j) -> ((i * 5 + j * 7) mod 11 - 5)> : tensor<6x20xf32>
  %r = check.run @scan(%a) : (tensor<6x20xf32>) -> tensor<6x20xf32>
  check.expect_eq %r, dense<[[-5.0, -3.0, -5.0, 0.0, 1.0, -2.0, 2.0, 2.0, -2.0, 1.0, 0.0, -5.0, -3.0, -5.0, 0.0, 1.0, -2.0, 2.0, 2.0, -2.0],
      [0.0, -4.0, -1.0, -2.0, -7.0, -5.0, -7.0, -2.0, -1.0, -4.0, 0.0, 0.0, -4.0, -1.0, -2.0, -7.0, -5.0, -7.0, -2.0, -1.0],
      [5.0, 6.0, 3.0, 7.0, 7.0, 3.0, 6.0, 5.0, 0.0, 2.0, 0.0, 5.0, 6.0, 3.0, 7.0, 7.0, 3.0, 6.0, 5.0, 0.0],
      [-1.0, -6.0, -4.0, -6.0, -1.0, 0.0, -3.0, 1.0, 1.0, -3.0, 0.0, -1.0, -6.0, -4.0, -6.0, -1.0, 0.0, -3.0, 1.0, 1.0],
      [4.0, 4.0, 0.0, 3.0, 2.0, -3.0, -1.0, -3.0, 2.0, 3.0, 0.0, 4.0, 4.0, 0.0, 3.0, 2.0, -3.0, -1.0, -3.0, 2.0],
      [-2.0, 3.0, 4.0, 1.0, 5.0, 5.0, 1.0, 4.0, 3.0, -2.0, 0.0, -2.0, 3.0, 4.0, 1.0, 5.0, 5.0, 1.0, 4.0, 3.0]]> : tensor<6x20xf32>
}

func.func @indices() -> tensor<7x1500xi64> {
  %e = tensor.empty() : tensor<7x1500xi64>
  %r = linalg.generic {indexing_maps = [#matrix], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<7x1500xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %h = arith.constant 1000 : index
    %m = arith.muli %i, %h : index
    %s = arith.addi %m, %j : index
    %c = arith.index_cast %s : index to i64
    linalg.yield %c : i64
  } -> tensor<7x1500xi64>
  return %r : tensor<7x1500xi64>
}

check.case "linalg.index in a parallel loop" {
  %r = check.run @indices() : () -> tensor<7x1500xi64>
  %e = check.generate affine_map<(i, j) -> (i * 1000 + j)> : tensor<7x1500xi64>
  check.expect_eq %r, %e : tensor<7x1500xi64>
}
