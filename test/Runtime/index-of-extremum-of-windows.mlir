// SPDX-License-Identifier: Apache-2.0
// Value and index of the largest of few elements, for many results: windows of
// pooling. In rows of results that fill several blocks, and in a short last
// block; where values are equal, the smallest index.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=full

func.func @windows_5x1030(%x: tensor<5x1030x2x2xf32>) -> (tensor<5x1030xf32>, tensor<5x1030xi64>) {
  %low = arith.constant dense<0xFF800000> : tensor<5x1030xf32>
  %last = arith.constant dense<9223372036854775807> : tensor<5x1030xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(r, c, i, j) -> (r, c, i, j)>, affine_map<(r, c, i, j) -> (r, c)>,
      affine_map<(r, c, i, j) -> (r, c)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<5x1030x2x2xf32>) outs(%low, %last : tensor<5x1030xf32>, tensor<5x1030xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %two = arith.constant 2 : index
    %row = arith.muli %i, %two : index
    %place = arith.addi %row, %j : index
    %k = arith.index_cast %place : index to i64
    %better = arith.cmpf olt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %k, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %k, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<5x1030xf32>, tensor<5x1030xi64>)
  return %r#0, %r#1 : tensor<5x1030xf32>, tensor<5x1030xi64>
}

check.case "index of the maximum of windows, 5x1030" {
  %x = check.generate affine_map<(r, c, i, j) -> ((i * 2 + j + r + c) mod 4)> : tensor<5x1030x2x2xf32>
  %v, %k = check.run @windows_5x1030(%x) : (tensor<5x1030x2x2xf32>) -> (tensor<5x1030xf32>, tensor<5x1030xi64>)
  %three = check.generate affine_map<(r, c) -> (3)> : tensor<5x1030xf32>
  %place = check.generate affine_map<(r, c) -> ((3 - r - c) mod 4)> : tensor<5x1030xi64>
  check.expect_eq %v, %three : tensor<5x1030xf32>
  check.expect_eq %k, %place : tensor<5x1030xi64>
}

check.case "index of one of several maxima of windows, 5x1030" {
  %x = check.generate affine_map<(r, c, i, j) -> (((i * 2 + j + r + c) mod 4) floordiv 2)> : tensor<5x1030x2x2xf32>
  %v, %k = check.run @windows_5x1030(%x) : (tensor<5x1030x2x2xf32>) -> (tensor<5x1030xf32>, tensor<5x1030xi64>)
  %one = check.generate affine_map<(r, c) -> (1)> : tensor<5x1030xf32>
  %first = check.generate affine_map<(r, c) -> (((3 - (r + c) mod 4) * 2) floordiv 3)> : tensor<5x1030xi64>
  check.expect_eq %v, %one : tensor<5x1030xf32>
  check.expect_eq %k, %first : tensor<5x1030xi64>
}

func.func @windows_3x70(%x: tensor<3x70x2x2xf32>) -> (tensor<3x70xf32>, tensor<3x70xi32>) {
  %low = arith.constant dense<0xFF800000> : tensor<3x70xf32>
  %last = arith.constant dense<2147483647> : tensor<3x70xi32>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(r, c, i, j) -> (r, c, i, j)>, affine_map<(r, c, i, j) -> (r, c)>,
      affine_map<(r, c, i, j) -> (r, c)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<3x70x2x2xf32>) outs(%low, %last : tensor<3x70xf32>, tensor<3x70xi32>) {
  ^bb0(%v: f32, %b: f32, %bi: i32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %two = arith.constant 2 : index
    %row = arith.muli %i, %two : index
    %place = arith.addi %row, %j : index
    %k = arith.index_cast %place : index to i32
    %better = arith.cmpf olt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %k, %bi : i32
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %k, %bi : i32
    linalg.yield %sv, %si : f32, i32
  } -> (tensor<3x70xf32>, tensor<3x70xi32>)
  return %r#0, %r#1 : tensor<3x70xf32>, tensor<3x70xi32>
}

check.case "index of the maximum of windows, 3x70" {
  %x = check.generate affine_map<(r, c, i, j) -> ((i * 2 + j + r + c) mod 4)> : tensor<3x70x2x2xf32>
  %v, %k = check.run @windows_3x70(%x) : (tensor<3x70x2x2xf32>) -> (tensor<3x70xf32>, tensor<3x70xi32>)
  %three = check.generate affine_map<(r, c) -> (3)> : tensor<3x70xf32>
  %place = check.generate affine_map<(r, c) -> ((3 - r - c) mod 4)> : tensor<3x70xi32>
  check.expect_eq %v, %three : tensor<3x70xf32>
  check.expect_eq %k, %place : tensor<3x70xi32>
}

check.case "index of one of several maxima of windows, 3x70" {
  %x = check.generate affine_map<(r, c, i, j) -> (((i * 2 + j + r + c) mod 4) floordiv 2)> : tensor<3x70x2x2xf32>
  %v, %k = check.run @windows_3x70(%x) : (tensor<3x70x2x2xf32>) -> (tensor<3x70xf32>, tensor<3x70xi32>)
  %one = check.generate affine_map<(r, c) -> (1)> : tensor<3x70xf32>
  %first = check.generate affine_map<(r, c) -> (((3 - (r + c) mod 4) * 2) floordiv 3)> : tensor<3x70xi32>
  check.expect_eq %v, %one : tensor<3x70xf32>
  check.expect_eq %k, %first : tensor<3x70xi32>
}

func.func @windows_1x1(%x: tensor<1x1x2x2xf32>) -> (tensor<1x1xf32>, tensor<1x1xi64>) {
  %low = arith.constant dense<0xFF800000> : tensor<1x1xf32>
  %last = arith.constant dense<9223372036854775807> : tensor<1x1xi64>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(r, c, i, j) -> (r, c, i, j)>, affine_map<(r, c, i, j) -> (r, c)>,
      affine_map<(r, c, i, j) -> (r, c)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<1x1x2x2xf32>) outs(%low, %last : tensor<1x1xf32>, tensor<1x1xi64>) {
  ^bb0(%v: f32, %b: f32, %bi: i64):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %two = arith.constant 2 : index
    %row = arith.muli %i, %two : index
    %place = arith.addi %row, %j : index
    %k = arith.index_cast %place : index to i64
    %better = arith.cmpf olt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %k, %bi : i64
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %k, %bi : i64
    linalg.yield %sv, %si : f32, i64
  } -> (tensor<1x1xf32>, tensor<1x1xi64>)
  return %r#0, %r#1 : tensor<1x1xf32>, tensor<1x1xi64>
}

check.case "index of the maximum of windows, 1x1" {
  %x = check.generate affine_map<(r, c, i, j) -> ((i * 2 + j + r + c) mod 4)> : tensor<1x1x2x2xf32>
  %v, %k = check.run @windows_1x1(%x) : (tensor<1x1x2x2xf32>) -> (tensor<1x1xf32>, tensor<1x1xi64>)
  %three = check.generate affine_map<(r, c) -> (3)> : tensor<1x1xf32>
  %place = check.generate affine_map<(r, c) -> ((3 - r - c) mod 4)> : tensor<1x1xi64>
  check.expect_eq %v, %three : tensor<1x1xf32>
  check.expect_eq %k, %place : tensor<1x1xi64>
}

check.case "index of one of several maxima of windows, 1x1" {
  %x = check.generate affine_map<(r, c, i, j) -> (((i * 2 + j + r + c) mod 4) floordiv 2)> : tensor<1x1x2x2xf32>
  %v, %k = check.run @windows_1x1(%x) : (tensor<1x1x2x2xf32>) -> (tensor<1x1xf32>, tensor<1x1xi64>)
  %one = check.generate affine_map<(r, c) -> (1)> : tensor<1x1xf32>
  %first = check.generate affine_map<(r, c) -> (((3 - (r + c) mod 4) * 2) floordiv 3)> : tensor<1x1xi64>
  check.expect_eq %v, %one : tensor<1x1xf32>
  check.expect_eq %k, %first : tensor<1x1xi64>
}

func.func @windows_67x63(%x: tensor<67x63x2x2xf32>) -> (tensor<67x63xf32>, tensor<67x63xi32>) {
  %low = arith.constant dense<0xFF800000> : tensor<67x63xf32>
  %last = arith.constant dense<2147483647> : tensor<67x63xi32>
  %true = arith.constant true
  %r:2 = linalg.generic {indexing_maps = [affine_map<(r, c, i, j) -> (r, c, i, j)>, affine_map<(r, c, i, j) -> (r, c)>,
      affine_map<(r, c, i, j) -> (r, c)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<67x63x2x2xf32>) outs(%low, %last : tensor<67x63xf32>, tensor<67x63xi32>) {
  ^bb0(%v: f32, %b: f32, %bi: i32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %two = arith.constant 2 : index
    %row = arith.muli %i, %two : index
    %place = arith.addi %row, %j : index
    %k = arith.index_cast %place : index to i32
    %better = arith.cmpf olt, %b, %v : f32
    %tie = arith.cmpf oeq, %v, %b : f32
    %vn = arith.cmpf uno, %v, %v : f32
    %bn = arith.cmpf uno, %b, %b : f32
    %bk = arith.xori %bn, %true : i1
    %n0 = arith.andi %vn, %bk : i1
    %t0 = arith.ori %better, %n0 : i1
    %n1 = arith.andi %vn, %bn : i1
    %t1 = arith.ori %tie, %n1 : i1
    %c = arith.cmpi slt, %k, %bi : i32
    %t2 = arith.andi %t1, %c : i1
    %take = arith.ori %t0, %t2 : i1
    %sv = arith.select %take, %v, %b : f32
    %si = arith.select %take, %k, %bi : i32
    linalg.yield %sv, %si : f32, i32
  } -> (tensor<67x63xf32>, tensor<67x63xi32>)
  return %r#0, %r#1 : tensor<67x63xf32>, tensor<67x63xi32>
}

check.case "index of the maximum of windows, 67x63" {
  %x = check.generate affine_map<(r, c, i, j) -> ((i * 2 + j + r + c) mod 4)> : tensor<67x63x2x2xf32>
  %v, %k = check.run @windows_67x63(%x) : (tensor<67x63x2x2xf32>) -> (tensor<67x63xf32>, tensor<67x63xi32>)
  %three = check.generate affine_map<(r, c) -> (3)> : tensor<67x63xf32>
  %place = check.generate affine_map<(r, c) -> ((3 - r - c) mod 4)> : tensor<67x63xi32>
  check.expect_eq %v, %three : tensor<67x63xf32>
  check.expect_eq %k, %place : tensor<67x63xi32>
}

check.case "index of one of several maxima of windows, 67x63" {
  %x = check.generate affine_map<(r, c, i, j) -> (((i * 2 + j + r + c) mod 4) floordiv 2)> : tensor<67x63x2x2xf32>
  %v, %k = check.run @windows_67x63(%x) : (tensor<67x63x2x2xf32>) -> (tensor<67x63xf32>, tensor<67x63xi32>)
  %one = check.generate affine_map<(r, c) -> (1)> : tensor<67x63xf32>
  %first = check.generate affine_map<(r, c) -> (((3 - (r + c) mod 4) * 2) floordiv 3)> : tensor<67x63xi32>
  check.expect_eq %v, %one : tensor<67x63xf32>
  check.expect_eq %k, %first : tensor<67x63xi32>
}
