// SPDX-License-Identifier: Apache-2.0
// Sums of squares of differences from an operand that depends on only one of
// the loops, in rows shorter and longer than a block.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=full

func.func @squares_5x511_by_row(%x: tensor<5x511xf32>, %m: tensor<5xf32>) -> tensor<5xf32> {
  %none = arith.constant dense<0.0> : tensor<5xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<5x511xf32>, tensor<5xf32>) outs(%none : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  return %sum : tensor<5xf32>
}

check.case "squares of 5x511 by row" {
  %x = check.generate affine_map<(i, j) -> (i mod 3 + j mod 2)> : tensor<5x511xf32>
  %m = check.generate affine_map<(i) -> (i mod 3)> : tensor<5xf32>
  %sum = check.run @squares_5x511_by_row(%x, %m) : (tensor<5x511xf32>, tensor<5xf32>) -> tensor<5xf32>
  %expected = check.generate affine_map<(i) -> (255)> : tensor<5xf32>
  check.expect_eq %sum, %expected : tensor<5xf32>
}

func.func @squares_5x511_by_column(%x: tensor<5x511xf32>, %m: tensor<511xf32>) -> tensor<5xf32> {
  %none = arith.constant dense<0.0> : tensor<5xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<5x511xf32>, tensor<511xf32>) outs(%none : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  return %sum : tensor<5xf32>
}

check.case "squares of 5x511 by column" {
  %x = check.generate affine_map<(i, j) -> (j mod 3 + i mod 2)> : tensor<5x511xf32>
  %m = check.generate affine_map<(i) -> (i mod 3)> : tensor<511xf32>
  %sum = check.run @squares_5x511_by_column(%x, %m) : (tensor<5x511xf32>, tensor<511xf32>) -> tensor<5xf32>
  %expected = check.generate affine_map<(i) -> ((i mod 2) * 511)> : tensor<5xf32>
  check.expect_eq %sum, %expected : tensor<5xf32>
}

func.func @squares_5x513_by_row(%x: tensor<5x513xf32>, %m: tensor<5xf32>) -> tensor<5xf32> {
  %none = arith.constant dense<0.0> : tensor<5xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<5x513xf32>, tensor<5xf32>) outs(%none : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  return %sum : tensor<5xf32>
}

check.case "squares of 5x513 by row" {
  %x = check.generate affine_map<(i, j) -> (i mod 3 + j mod 2)> : tensor<5x513xf32>
  %m = check.generate affine_map<(i) -> (i mod 3)> : tensor<5xf32>
  %sum = check.run @squares_5x513_by_row(%x, %m) : (tensor<5x513xf32>, tensor<5xf32>) -> tensor<5xf32>
  %expected = check.generate affine_map<(i) -> (256)> : tensor<5xf32>
  check.expect_eq %sum, %expected : tensor<5xf32>
}

func.func @squares_5x513_by_column(%x: tensor<5x513xf32>, %m: tensor<513xf32>) -> tensor<5xf32> {
  %none = arith.constant dense<0.0> : tensor<5xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<5x513xf32>, tensor<513xf32>) outs(%none : tensor<5xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  return %sum : tensor<5xf32>
}

check.case "squares of 5x513 by column" {
  %x = check.generate affine_map<(i, j) -> (j mod 3 + i mod 2)> : tensor<5x513xf32>
  %m = check.generate affine_map<(i) -> (i mod 3)> : tensor<513xf32>
  %sum = check.run @squares_5x513_by_column(%x, %m) : (tensor<5x513xf32>, tensor<513xf32>) -> tensor<5xf32>
  %expected = check.generate affine_map<(i) -> ((i mod 2) * 513)> : tensor<5xf32>
  check.expect_eq %sum, %expected : tensor<5xf32>
}

func.func @squares_3x1030_by_row(%x: tensor<3x1030xf32>, %m: tensor<3xf32>) -> tensor<3xf32> {
  %none = arith.constant dense<0.0> : tensor<3xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<3x1030xf32>, tensor<3xf32>) outs(%none : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  return %sum : tensor<3xf32>
}

check.case "squares of 3x1030 by row" {
  %x = check.generate affine_map<(i, j) -> (i mod 3 + j mod 2)> : tensor<3x1030xf32>
  %m = check.generate affine_map<(i) -> (i mod 3)> : tensor<3xf32>
  %sum = check.run @squares_3x1030_by_row(%x, %m) : (tensor<3x1030xf32>, tensor<3xf32>) -> tensor<3xf32>
  %expected = check.generate affine_map<(i) -> (515)> : tensor<3xf32>
  check.expect_eq %sum, %expected : tensor<3xf32>
}

func.func @squares_3x1030_by_column(%x: tensor<3x1030xf32>, %m: tensor<1030xf32>) -> tensor<3xf32> {
  %none = arith.constant dense<0.0> : tensor<3xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<3x1030xf32>, tensor<1030xf32>) outs(%none : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  return %sum : tensor<3xf32>
}

check.case "squares of 3x1030 by column" {
  %x = check.generate affine_map<(i, j) -> (j mod 3 + i mod 2)> : tensor<3x1030xf32>
  %m = check.generate affine_map<(i) -> (i mod 3)> : tensor<1030xf32>
  %sum = check.run @squares_3x1030_by_column(%x, %m) : (tensor<3x1030xf32>, tensor<1030xf32>) -> tensor<3xf32>
  %expected = check.generate affine_map<(i) -> ((i mod 2) * 1030)> : tensor<3xf32>
  check.expect_eq %sum, %expected : tensor<3xf32>
}

func.func @squares_2x2049_by_row(%x: tensor<2x2049xf32>, %m: tensor<2xf32>) -> tensor<2xf32> {
  %none = arith.constant dense<0.0> : tensor<2xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<2x2049xf32>, tensor<2xf32>) outs(%none : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<2xf32>
  return %sum : tensor<2xf32>
}

check.case "squares of 2x2049 by row" {
  %x = check.generate affine_map<(i, j) -> (i mod 3 + j mod 2)> : tensor<2x2049xf32>
  %m = check.generate affine_map<(i) -> (i mod 3)> : tensor<2xf32>
  %sum = check.run @squares_2x2049_by_row(%x, %m) : (tensor<2x2049xf32>, tensor<2xf32>) -> tensor<2xf32>
  %expected = check.generate affine_map<(i) -> (1024)> : tensor<2xf32>
  check.expect_eq %sum, %expected : tensor<2xf32>
}

func.func @squares_2x2049_by_column(%x: tensor<2x2049xf32>, %m: tensor<2049xf32>) -> tensor<2xf32> {
  %none = arith.constant dense<0.0> : tensor<2xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<2x2049xf32>, tensor<2049xf32>) outs(%none : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<2xf32>
  return %sum : tensor<2xf32>
}

check.case "squares of 2x2049 by column" {
  %x = check.generate affine_map<(i, j) -> (j mod 3 + i mod 2)> : tensor<2x2049xf32>
  %m = check.generate affine_map<(i) -> (i mod 3)> : tensor<2049xf32>
  %sum = check.run @squares_2x2049_by_column(%x, %m) : (tensor<2x2049xf32>, tensor<2049xf32>) -> tensor<2xf32>
  %expected = check.generate affine_map<(i) -> ((i mod 2) * 2049)> : tensor<2xf32>
  check.expect_eq %sum, %expected : tensor<2xf32>
}

func.func @squares_1x700_by_row(%x: tensor<1x700xf32>, %m: tensor<1xf32>) -> tensor<1xf32> {
  %none = arith.constant dense<0.0> : tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<1x700xf32>, tensor<1xf32>) outs(%none : tensor<1xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}

check.case "squares of 1x700 by row" {
  %x = check.generate affine_map<(i, j) -> (i mod 3 + j mod 2)> : tensor<1x700xf32>
  %m = check.generate affine_map<(i) -> (i mod 3)> : tensor<1xf32>
  %sum = check.run @squares_1x700_by_row(%x, %m) : (tensor<1x700xf32>, tensor<1xf32>) -> tensor<1xf32>
  %expected = check.generate affine_map<(i) -> (350)> : tensor<1xf32>
  check.expect_eq %sum, %expected : tensor<1xf32>
}

func.func @squares_1x700_by_column(%x: tensor<1x700xf32>, %m: tensor<700xf32>) -> tensor<1xf32> {
  %none = arith.constant dense<0.0> : tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %m : tensor<1x700xf32>, tensor<700xf32>) outs(%none : tensor<1xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %d = arith.subf %a, %b : f32
    %q = arith.mulf %d, %d : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<1xf32>
  return %sum : tensor<1xf32>
}

check.case "squares of 1x700 by column" {
  %x = check.generate affine_map<(i, j) -> (j mod 3 + i mod 2)> : tensor<1x700xf32>
  %m = check.generate affine_map<(i) -> (i mod 3)> : tensor<700xf32>
  %sum = check.run @squares_1x700_by_column(%x, %m) : (tensor<1x700xf32>, tensor<700xf32>) -> tensor<1xf32>
  %expected = check.generate affine_map<(i) -> ((i mod 2) * 700)> : tensor<1xf32>
  check.expect_eq %sum, %expected : tensor<1xf32>
}
