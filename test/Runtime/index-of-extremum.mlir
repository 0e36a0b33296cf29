// SPDX-License-Identifier: Apache-2.0
// Index of a maximum or minimum as the compiler writes it: NaN first, then the
// smaller index. The function puts %p at (%i0, %j0), and %q at (%i1, %j1).
// The extremum grows by one from stretch to stretch, so that it lies late.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none

func.func @maximum_3x3000(%given: tensor<3x3000xf32>, %i0: index, %j0: index, %p: f32, %i1: index, %j1: index, %q: f32)
    -> tensor<3xi64> {
  %one = tensor.insert %p into %given[%i0, %j0] : tensor<3x3000xf32>
  %x = tensor.insert %q into %one[%i1, %j1] : tensor<3x3000xf32>
  %v0 = arith.constant dense<0xFF800000> : tensor<3xf32>
  %k0 = arith.constant dense<9223372036854775807> : tensor<3xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x3000xf32>)
      outs(%v0, %k0 : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %k = linalg.index 1 : index
    %i = arith.index_cast %k : index to i64
    %better = arith.cmpf olt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %i, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %i, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %r#1 : tensor<3xi64>
}

check.case "index of the maximum of 3x3000 along 1" {
  %x = check.generate affine_map<(i, j) -> ((i * 17 + j * 29) mod 37 + (i * 3 + j) floordiv 100)> : tensor<3x3000xf32>
  %i0 = arith.constant 1 : index
  %j0 = arith.constant 2000 : index
  %i1 = arith.constant 2 : index
  %j1 = arith.constant 1000 : index
  %inf = arith.constant 0x7F800000 : f32
  %low = arith.constant 0xFF800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %a = arith.constant 21.0 : f32
  %b = arith.constant 36.0 : f32
  %of_ties = check.run @maximum_3x3000(%x, %i0, %j0, %a, %i1, %j1, %b) : (tensor<3x3000xf32>, index, index, f32, index, index, f32) -> tensor<3xi64>
  check.expect_eq %of_ties, dense<[2900, 2916, 2895]> : tensor<3xi64>
  %of_infinities = check.run @maximum_3x3000(%x, %i0, %j0, %inf, %i1, %j1, %low) : (tensor<3x3000xf32>, index, index, f32, index, index, f32) -> tensor<3xi64>
  check.expect_eq %of_infinities, dense<[2900, 2000, 2895]> : tensor<3xi64>
  %of_nan = check.run @maximum_3x3000(%x, %i0, %j0, %nan, %i1, %j1, %nan) : (tensor<3x3000xf32>, index, index, f32, index, index, f32) -> tensor<3xi64>
  check.expect_eq %of_nan, dense<[2900, 2000, 1000]> : tensor<3xi64>
}

func.func @minimum_3x3000(%given: tensor<3x3000xf32>, %i0: index, %j0: index, %p: f32, %i1: index, %j1: index, %q: f32)
    -> tensor<3xi64> {
  %one = tensor.insert %p into %given[%i0, %j0] : tensor<3x3000xf32>
  %x = tensor.insert %q into %one[%i1, %j1] : tensor<3x3000xf32>
  %v0 = arith.constant dense<0x7F800000> : tensor<3xf32>
  %k0 = arith.constant dense<9223372036854775807> : tensor<3xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x3000xf32>)
      outs(%v0, %k0 : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %k = linalg.index 1 : index
    %i = arith.index_cast %k : index to i64
    %better = arith.cmpf ogt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %i, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %i, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %r#1 : tensor<3xi64>
}

check.case "index of the minimum of 3x3000 along 1" {
  %x = check.generate affine_map<(i, j) -> ((i * 17 + j * 29) mod 37 - (i * 3 + j) floordiv 100)> : tensor<3x3000xf32>
  %i0 = arith.constant 1 : index
  %j0 = arith.constant 2000 : index
  %i1 = arith.constant 2 : index
  %j1 = arith.constant 1000 : index
  %inf = arith.constant 0x7F800000 : f32
  %low = arith.constant 0xFF800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %a = arith.constant -19.0 : f32
  %b = arith.constant 16.0 : f32
  %of_ties = check.run @minimum_3x3000(%x, %i0, %j0, %a, %i1, %j1, %b) : (tensor<3x3000xf32>, index, index, f32, index, index, f32) -> tensor<3xi64>
  check.expect_eq %of_ties, dense<[2923, 2902, 2918]> : tensor<3xi64>
  %of_infinities = check.run @minimum_3x3000(%x, %i0, %j0, %inf, %i1, %j1, %low) : (tensor<3x3000xf32>, index, index, f32, index, index, f32) -> tensor<3xi64>
  check.expect_eq %of_infinities, dense<[2923, 2902, 1000]> : tensor<3xi64>
  %of_nan = check.run @minimum_3x3000(%x, %i0, %j0, %nan, %i1, %j1, %nan) : (tensor<3x3000xf32>, index, index, f32, index, index, f32) -> tensor<3xi64>
  check.expect_eq %of_nan, dense<[2923, 2000, 1000]> : tensor<3xi64>
}

func.func @maximum_40x50(%given: tensor<40x50xf32>, %i0: index, %j0: index, %p: f32, %i1: index, %j1: index, %q: f32)
    -> tensor<50xi64> {
  %one = tensor.insert %p into %given[%i0, %j0] : tensor<40x50xf32>
  %x = tensor.insert %q into %one[%i1, %j1] : tensor<40x50xf32>
  %v0 = arith.constant dense<0xFF800000> : tensor<50xf32>
  %k0 = arith.constant dense<9223372036854775807> : tensor<50xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<40x50xf32>)
      outs(%v0, %k0 : tensor<50xf32>, tensor<50xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %k = linalg.index 0 : index
    %i = arith.index_cast %k : index to i64
    %better = arith.cmpf olt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %i, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %i, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<50xf32>, tensor<50xi64>)
  return %r#1 : tensor<50xi64>
}

check.case "index of the maximum of 40x50 along 0" {
  %x = check.generate affine_map<(i, j) -> ((i * 17 + j * 29) mod 37 + (i * 3 + j) floordiv 100)> : tensor<40x50xf32>
  %i0 = arith.constant 20 : index
  %j0 = arith.constant 33 : index
  %i1 = arith.constant 39 : index
  %j1 = arith.constant 16 : index
  %inf = arith.constant 0x7F800000 : f32
  %low = arith.constant 0xFF800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %a = arith.constant 2.0 : f32
  %b = arith.constant 18.0 : f32
  %of_ties = check.run @maximum_40x50(%x, %i0, %j0, %a, %i1, %j1, %b) : (tensor<40x50xf32>, index, index, f32, index, index, f32) -> tensor<50xi64>
  check.expect_eq %of_ties, dense<[13, 20, 27, 34, 4, 11, 18, 25, 32, 39, 9, 16, 23, 30, 37, 7, 14, 21, 28, 35, 5, 12, 19, 26, 33, 3,
      10, 17, 24, 31, 38, 8, 15, 22, 29, 36, 6, 13, 20, 27, 34, 4, 11, 18, 25, 32, 39, 9, 16, 23]> : tensor<50xi64>
  %of_infinities = check.run @maximum_40x50(%x, %i0, %j0, %inf, %i1, %j1, %low) : (tensor<40x50xf32>, index, index, f32, index, index, f32) -> tensor<50xi64>
  check.expect_eq %of_infinities, dense<[13, 20, 27, 34, 4, 11, 18, 25, 32, 39, 9, 16, 23, 30, 37, 7, 14, 21, 28, 35, 5, 12, 19, 26, 33, 3,
      10, 17, 24, 31, 38, 8, 15, 20, 29, 36, 6, 13, 20, 27, 34, 4, 11, 18, 25, 32, 39, 9, 16, 23]> : tensor<50xi64>
  %of_nan = check.run @maximum_40x50(%x, %i0, %j0, %nan, %i1, %j1, %nan) : (tensor<40x50xf32>, index, index, f32, index, index, f32) -> tensor<50xi64>
  check.expect_eq %of_nan, dense<[13, 20, 27, 34, 4, 11, 18, 25, 32, 39, 9, 16, 23, 30, 37, 7, 39, 21, 28, 35, 5, 12, 19, 26, 33, 3,
      10, 17, 24, 31, 38, 8, 15, 20, 29, 36, 6, 13, 20, 27, 34, 4, 11, 18, 25, 32, 39, 9, 16, 23]> : tensor<50xi64>
}

func.func @minimum_40x50(%given: tensor<40x50xf32>, %i0: index, %j0: index, %p: f32, %i1: index, %j1: index, %q: f32)
    -> tensor<50xi64> {
  %one = tensor.insert %p into %given[%i0, %j0] : tensor<40x50xf32>
  %x = tensor.insert %q into %one[%i1, %j1] : tensor<40x50xf32>
  %v0 = arith.constant dense<0x7F800000> : tensor<50xf32>
  %k0 = arith.constant dense<9223372036854775807> : tensor<50xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<40x50xf32>)
      outs(%v0, %k0 : tensor<50xf32>, tensor<50xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %k = linalg.index 0 : index
    %i = arith.index_cast %k : index to i64
    %better = arith.cmpf ogt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %i, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %i, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<50xf32>, tensor<50xi64>)
  return %r#1 : tensor<50xi64>
}

check.case "index of the minimum of 40x50 along 0" {
  %x = check.generate affine_map<(i, j) -> ((i * 17 + j * 29) mod 37 - (i * 3 + j) floordiv 100)> : tensor<40x50xf32>
  %i0 = arith.constant 20 : index
  %j0 = arith.constant 33 : index
  %i1 = arith.constant 39 : index
  %j1 = arith.constant 16 : index
  %inf = arith.constant 0x7F800000 : f32
  %low = arith.constant 0xFF800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %a = arith.constant 2.0 : f32
  %b = arith.constant 16.0 : f32
  %of_ties = check.run @minimum_40x50(%x, %i0, %j0, %a, %i1, %j1, %b) : (tensor<40x50xf32>, index, index, f32, index, index, f32) -> tensor<50xi64>
  check.expect_eq %of_ties, dense<[37, 7, 14, 21, 28, 35, 5, 12, 19, 26, 33, 3, 10, 17, 24, 31, 38, 8, 15, 22, 29, 36, 6, 13, 20, 27,
      34, 4, 11, 18, 25, 32, 39, 9, 16, 23, 30, 37, 7, 14, 21, 28, 35, 5, 12, 19, 26, 33, 3, 10]> : tensor<50xi64>
  %of_infinities = check.run @minimum_40x50(%x, %i0, %j0, %inf, %i1, %j1, %low) : (tensor<40x50xf32>, index, index, f32, index, index, f32) -> tensor<50xi64>
  check.expect_eq %of_infinities, dense<[37, 7, 14, 21, 28, 35, 5, 12, 19, 26, 33, 3, 10, 17, 24, 31, 39, 8, 15, 22, 29, 36, 6, 13, 20, 27,
      34, 4, 11, 18, 25, 32, 39, 9, 16, 23, 30, 37, 7, 14, 21, 28, 35, 5, 12, 19, 26, 33, 3, 10]> : tensor<50xi64>
  %of_nan = check.run @minimum_40x50(%x, %i0, %j0, %nan, %i1, %j1, %nan) : (tensor<40x50xf32>, index, index, f32, index, index, f32) -> tensor<50xi64>
  check.expect_eq %of_nan, dense<[37, 7, 14, 21, 28, 35, 5, 12, 19, 26, 33, 3, 10, 17, 24, 31, 39, 8, 15, 22, 29, 36, 6, 13, 20, 27,
      34, 4, 11, 18, 25, 32, 39, 20, 16, 23, 30, 37, 7, 14, 21, 28, 35, 5, 12, 19, 26, 33, 3, 10]> : tensor<50xi64>
}

func.func @maximum_1x1(%given: tensor<1x1xf32>, %i0: index, %j0: index, %p: f32, %i1: index, %j1: index, %q: f32)
    -> tensor<1xi64> {
  %one = tensor.insert %p into %given[%i0, %j0] : tensor<1x1xf32>
  %x = tensor.insert %q into %one[%i1, %j1] : tensor<1x1xf32>
  %v0 = arith.constant dense<0xFF800000> : tensor<1xf32>
  %k0 = arith.constant dense<9223372036854775807> : tensor<1xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<1x1xf32>)
      outs(%v0, %k0 : tensor<1xf32>, tensor<1xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %k = linalg.index 1 : index
    %i = arith.index_cast %k : index to i64
    %better = arith.cmpf olt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %i, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %i, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<1xf32>, tensor<1xi64>)
  return %r#1 : tensor<1xi64>
}

check.case "index of the maximum of 1x1 along 1" {
  %x = check.generate affine_map<(i, j) -> ((i * 17 + j * 29) mod 37 + (i * 3 + j) floordiv 100)> : tensor<1x1xf32>
  %i0 = arith.constant 0 : index
  %j0 = arith.constant 0 : index
  %i1 = arith.constant 0 : index
  %j1 = arith.constant 0 : index
  %inf = arith.constant 0x7F800000 : f32
  %low = arith.constant 0xFF800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %a = arith.constant 0.0 : f32
  %b = arith.constant 0.0 : f32
  %of_ties = check.run @maximum_1x1(%x, %i0, %j0, %a, %i1, %j1, %b) : (tensor<1x1xf32>, index, index, f32, index, index, f32) -> tensor<1xi64>
  check.expect_eq %of_ties, dense<[0]> : tensor<1xi64>
  %of_infinities = check.run @maximum_1x1(%x, %i0, %j0, %inf, %i1, %j1, %low) : (tensor<1x1xf32>, index, index, f32, index, index, f32) -> tensor<1xi64>
  check.expect_eq %of_infinities, dense<[0]> : tensor<1xi64>
  %of_nan = check.run @maximum_1x1(%x, %i0, %j0, %nan, %i1, %j1, %nan) : (tensor<1x1xf32>, index, index, f32, index, index, f32) -> tensor<1xi64>
  check.expect_eq %of_nan, dense<[0]> : tensor<1xi64>
}

func.func @minimum_1x1(%given: tensor<1x1xf32>, %i0: index, %j0: index, %p: f32, %i1: index, %j1: index, %q: f32)
    -> tensor<1xi64> {
  %one = tensor.insert %p into %given[%i0, %j0] : tensor<1x1xf32>
  %x = tensor.insert %q into %one[%i1, %j1] : tensor<1x1xf32>
  %v0 = arith.constant dense<0x7F800000> : tensor<1xf32>
  %k0 = arith.constant dense<9223372036854775807> : tensor<1xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<1x1xf32>)
      outs(%v0, %k0 : tensor<1xf32>, tensor<1xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %k = linalg.index 1 : index
    %i = arith.index_cast %k : index to i64
    %better = arith.cmpf ogt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %i, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %i, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<1xf32>, tensor<1xi64>)
  return %r#1 : tensor<1xi64>
}

check.case "index of the minimum of 1x1 along 1" {
  %x = check.generate affine_map<(i, j) -> ((i * 17 + j * 29) mod 37 - (i * 3 + j) floordiv 100)> : tensor<1x1xf32>
  %i0 = arith.constant 0 : index
  %j0 = arith.constant 0 : index
  %i1 = arith.constant 0 : index
  %j1 = arith.constant 0 : index
  %inf = arith.constant 0x7F800000 : f32
  %low = arith.constant 0xFF800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %a = arith.constant 0.0 : f32
  %b = arith.constant 0.0 : f32
  %of_ties = check.run @minimum_1x1(%x, %i0, %j0, %a, %i1, %j1, %b) : (tensor<1x1xf32>, index, index, f32, index, index, f32) -> tensor<1xi64>
  check.expect_eq %of_ties, dense<[0]> : tensor<1xi64>
  %of_infinities = check.run @minimum_1x1(%x, %i0, %j0, %inf, %i1, %j1, %low) : (tensor<1x1xf32>, index, index, f32, index, index, f32) -> tensor<1xi64>
  check.expect_eq %of_infinities, dense<[0]> : tensor<1xi64>
  %of_nan = check.run @minimum_1x1(%x, %i0, %j0, %nan, %i1, %j1, %nan) : (tensor<1x1xf32>, index, index, f32, index, index, f32) -> tensor<1xi64>
  check.expect_eq %of_nan, dense<[0]> : tensor<1xi64>
}

func.func @maximum_2x1024(%given: tensor<2x1024xf32>, %i0: index, %j0: index, %p: f32, %i1: index, %j1: index, %q: f32)
    -> tensor<2xi64> {
  %one = tensor.insert %p into %given[%i0, %j0] : tensor<2x1024xf32>
  %x = tensor.insert %q into %one[%i1, %j1] : tensor<2x1024xf32>
  %v0 = arith.constant dense<0xFF800000> : tensor<2xf32>
  %k0 = arith.constant dense<9223372036854775807> : tensor<2xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<2x1024xf32>)
      outs(%v0, %k0 : tensor<2xf32>, tensor<2xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %k = linalg.index 1 : index
    %i = arith.index_cast %k : index to i64
    %better = arith.cmpf olt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %i, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %i, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<2xf32>, tensor<2xi64>)
  return %r#1 : tensor<2xi64>
}

check.case "index of the maximum of 2x1024 along 1" {
  %x = check.generate affine_map<(i, j) -> ((i * 17 + j * 29) mod 37 + (i * 3 + j) floordiv 100)> : tensor<2x1024xf32>
  %i0 = arith.constant 1 : index
  %j0 = arith.constant 682 : index
  %i1 = arith.constant 1 : index
  %j1 = arith.constant 341 : index
  %inf = arith.constant 0x7F800000 : f32
  %low = arith.constant 0xFF800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %a = arith.constant 6.0 : f32
  %b = arith.constant 30.0 : f32
  %of_ties = check.run @maximum_2x1024(%x, %i0, %j0, %a, %i1, %j1, %b) : (tensor<2x1024xf32>, index, index, f32, index, index, f32) -> tensor<2xi64>
  check.expect_eq %of_ties, dense<[1013, 918]> : tensor<2xi64>
  %of_infinities = check.run @maximum_2x1024(%x, %i0, %j0, %inf, %i1, %j1, %low) : (tensor<2x1024xf32>, index, index, f32, index, index, f32) -> tensor<2xi64>
  check.expect_eq %of_infinities, dense<[1013, 682]> : tensor<2xi64>
  %of_nan = check.run @maximum_2x1024(%x, %i0, %j0, %nan, %i1, %j1, %nan) : (tensor<2x1024xf32>, index, index, f32, index, index, f32) -> tensor<2xi64>
  check.expect_eq %of_nan, dense<[1013, 341]> : tensor<2xi64>
}

func.func @minimum_2x1024(%given: tensor<2x1024xf32>, %i0: index, %j0: index, %p: f32, %i1: index, %j1: index, %q: f32)
    -> tensor<2xi64> {
  %one = tensor.insert %p into %given[%i0, %j0] : tensor<2x1024xf32>
  %x = tensor.insert %q into %one[%i1, %j1] : tensor<2x1024xf32>
  %v0 = arith.constant dense<0x7F800000> : tensor<2xf32>
  %k0 = arith.constant dense<9223372036854775807> : tensor<2xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<2x1024xf32>)
      outs(%v0, %k0 : tensor<2xf32>, tensor<2xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %k = linalg.index 1 : index
    %i = arith.index_cast %k : index to i64
    %better = arith.cmpf ogt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %i, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %i, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<2xf32>, tensor<2xi64>)
  return %r#1 : tensor<2xi64>
}

check.case "index of the minimum of 2x1024 along 1" {
  %x = check.generate affine_map<(i, j) -> ((i * 17 + j * 29) mod 37 - (i * 3 + j) floordiv 100)> : tensor<2x1024xf32>
  %i0 = arith.constant 1 : index
  %j0 = arith.constant 682 : index
  %i1 = arith.constant 1 : index
  %j1 = arith.constant 341 : index
  %inf = arith.constant 0x7F800000 : f32
  %low = arith.constant 0xFF800000 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %a = arith.constant -6.0 : f32
  %b = arith.constant 24.0 : f32
  %of_ties = check.run @minimum_2x1024(%x, %i0, %j0, %a, %i1, %j1, %b) : (tensor<2x1024xf32>, index, index, f32, index, index, f32) -> tensor<2xi64>
  check.expect_eq %of_ties, dense<[925, 1015]> : tensor<2xi64>
  %of_infinities = check.run @minimum_2x1024(%x, %i0, %j0, %inf, %i1, %j1, %low) : (tensor<2x1024xf32>, index, index, f32, index, index, f32) -> tensor<2xi64>
  check.expect_eq %of_infinities, dense<[925, 341]> : tensor<2xi64>
  %of_nan = check.run @minimum_2x1024(%x, %i0, %j0, %nan, %i1, %j1, %nan) : (tensor<2x1024xf32>, index, index, f32, index, index, f32) -> tensor<2xi64>
  check.expect_eq %of_nan, dense<[925, 341]> : tensor<2xi64>
}

// Rows of two blocks of 2048 columns, which are searched one by one, and a part of a
// third; %p is at column %at[i] of row i, the first or last element of a block, or
// beside it. Rows get worse to the right, unlike those above, so that all blocks but
// the first would be passed over if it were not for %p: a search that looks at one
// element too few before it passes over a block misses %p where it is that element.
// Index j counts as %first + %step j.
func.func @maximum_of_blocks(%given: tensor<8x4999xf32>, %at: tensor<8xi64>, %p: f32, %first: i64, %step: i64) -> tensor<8xi64> {
  %e = tensor.empty() : tensor<8x4999xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%given, %at : tensor<8x4999xf32>, tensor<8xi64>) outs(%e : tensor<8x4999xf32>) {
  ^bb0(%v: f32, %a: i64, %unused: f32):
    %k = linalg.index 1 : index
    %j = arith.index_cast %k : index to i64
    %here = arith.cmpi eq, %j, %a : i64
    %r = arith.select %here, %p, %v : f32
    linalg.yield %r : f32
  } -> tensor<8x4999xf32>
  %v0 = arith.constant dense<0xFF800000> : tensor<8xf32>
  %k0 = arith.constant dense<9223372036854775807> : tensor<8xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x4999xf32>)
      outs(%v0, %k0 : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %k = linalg.index 1 : index
    %j = arith.index_cast %k : index to i64
    %steps = arith.muli %j, %step : i64
    %i = arith.addi %first, %steps : i64
    %better = arith.cmpf olt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %i, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %i, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<8xf32>, tensor<8xi64>)
  return %r#1 : tensor<8xi64>
}

check.case "index of the maximum in rows of three blocks" {
  %x = check.generate affine_map<(i, j) -> ((i * 17 + j * 29) mod 37 - j floordiv 100)> : tensor<8x4999xf32>
  %at = arith.constant dense<[0, 1, 2046, 2047, 2048, 4095, 4096, 4998]> : tensor<8xi64>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %last = arith.constant 4998 : i64
  %back = arith.constant -1 : i64
  // Better than all else: a block may be passed over only if none of its elements is.
  %peak = arith.constant 37.0 : f32
  %of_peaks = check.run @maximum_of_blocks(%x, %at, %peak, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_peaks, dense<[0, 1, 2046, 2047, 2048, 4095, 4096, 4998]> : tensor<8xi64>
  %inf = arith.constant 0x7F800000 : f32
  %of_infinities = check.run @maximum_of_blocks(%x, %at, %inf, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_infinities, dense<[0, 1, 2046, 2047, 2048, 4095, 4096, 4998]> : tensor<8xi64>
  // No number is as good as NaN.
  %nan = arith.constant 0x7FC00000 : f32
  %of_nan = check.run @maximum_of_blocks(%x, %at, %nan, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_nan, dense<[0, 1, 2046, 2047, 2048, 4095, 4096, 4998]> : tensor<8xi64>
  // The smaller index of equal values, which is the later one if indices fall.
  %equal = arith.constant 36.0 : f32
  %of_ties = check.run @maximum_of_blocks(%x, %at, %equal, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_ties, dense<[0, 1, 9, 25, 4, 20, 36, 15]> : tensor<8xi64>
  %of_ties_back = check.run @maximum_of_blocks(%x, %at, %equal, %last, %back) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_ties_back, dense<[4910, 4931, 2952, 2951, 2950, 903, 902, 0]> : tensor<8xi64>
  // Equal to what the search starts from.
  %flat = arith.constant dense<0xFF800000> : tensor<8x4999xf32>
  %worst = arith.constant 0xFF800000 : f32
  %of_worst = check.run @maximum_of_blocks(%flat, %at, %worst, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_worst, dense<0> : tensor<8xi64>
  %of_worst_back = check.run @maximum_of_blocks(%flat, %at, %worst, %last, %back) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_worst_back, dense<0> : tensor<8xi64>
  %of_nan_alone = check.run @maximum_of_blocks(%flat, %at, %nan, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_nan_alone, dense<[0, 1, 2046, 2047, 2048, 4095, 4096, 4998]> : tensor<8xi64>
}

func.func @minimum_of_blocks(%given: tensor<8x4999xf32>, %at: tensor<8xi64>, %p: f32, %first: i64, %step: i64) -> tensor<8xi64> {
  %e = tensor.empty() : tensor<8x4999xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%given, %at : tensor<8x4999xf32>, tensor<8xi64>) outs(%e : tensor<8x4999xf32>) {
  ^bb0(%v: f32, %a: i64, %unused: f32):
    %k = linalg.index 1 : index
    %j = arith.index_cast %k : index to i64
    %here = arith.cmpi eq, %j, %a : i64
    %r = arith.select %here, %p, %v : f32
    linalg.yield %r : f32
  } -> tensor<8x4999xf32>
  %v0 = arith.constant dense<0x7F800000> : tensor<8xf32>
  %k0 = arith.constant dense<9223372036854775807> : tensor<8xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x4999xf32>)
      outs(%v0, %k0 : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %k = linalg.index 1 : index
    %j = arith.index_cast %k : index to i64
    %steps = arith.muli %j, %step : i64
    %i = arith.addi %first, %steps : i64
    %better = arith.cmpf ogt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %i, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %i, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<8xf32>, tensor<8xi64>)
  return %r#1 : tensor<8xi64>
}

check.case "index of the minimum in rows of three blocks" {
  %x = check.generate affine_map<(i, j) -> ((i * 17 + j * 29) mod 37 + j floordiv 100)> : tensor<8x4999xf32>
  %at = arith.constant dense<[0, 1, 2046, 2047, 2048, 4095, 4096, 4998]> : tensor<8xi64>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %last = arith.constant 4998 : i64
  %back = arith.constant -1 : i64
  // Better than all else: a block may be passed over only if none of its elements is.
  %peak = arith.constant -1.0 : f32
  %of_peaks = check.run @minimum_of_blocks(%x, %at, %peak, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_peaks, dense<[0, 1, 2046, 2047, 2048, 4095, 4096, 4998]> : tensor<8xi64>
  %inf = arith.constant 0xFF800000 : f32
  %of_infinities = check.run @minimum_of_blocks(%x, %at, %inf, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_infinities, dense<[0, 1, 2046, 2047, 2048, 4095, 4096, 4998]> : tensor<8xi64>
  // No number is as good as NaN.
  %nan = arith.constant 0x7FC00000 : f32
  %of_nan = check.run @minimum_of_blocks(%x, %at, %nan, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_nan, dense<[0, 1, 2046, 2047, 2048, 4095, 4096, 4998]> : tensor<8xi64>
  // The smaller index of equal values, which is the later one if indices fall.
  %equal = arith.constant 0.0 : f32
  %of_ties = check.run @minimum_of_blocks(%x, %at, %equal, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_ties, dense<[0, 1, 32, 11, 27, 6, 22, 1]> : tensor<8xi64>
  %of_ties_back = check.run @minimum_of_blocks(%x, %at, %equal, %last, %back) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_ties_back, dense<[4924, 4908, 2952, 2951, 2950, 903, 902, 0]> : tensor<8xi64>
  // Equal to what the search starts from.
  %flat = arith.constant dense<0x7F800000> : tensor<8x4999xf32>
  %worst = arith.constant 0x7F800000 : f32
  %of_worst = check.run @minimum_of_blocks(%flat, %at, %worst, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_worst, dense<0> : tensor<8xi64>
  %of_worst_back = check.run @minimum_of_blocks(%flat, %at, %worst, %last, %back) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_worst_back, dense<0> : tensor<8xi64>
  %of_nan_alone = check.run @minimum_of_blocks(%flat, %at, %nan, %zero, %one) : (tensor<8x4999xf32>, tensor<8xi64>, f32, i64, i64) -> tensor<8xi64>
  check.expect_eq %of_nan_alone, dense<[0, 1, 2046, 2047, 2048, 4095, 4096, 4998]> : tensor<8xi64>
}
