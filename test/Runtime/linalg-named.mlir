// SPDX-License-Identifier: Apache-2.0
// Named operations of linalg, generated tensors, and math on special values.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none

!t = tensor<5x7xf32>

func.func @elementwise(%x: !t, %y: !t) -> (!t, !t, !t, !t, !t, !t) {
  %e = tensor.empty() : !t
  %add = linalg.add ins(%x, %y : !t, !t) outs(%e : !t) -> !t
  %sub = linalg.sub ins(%x, %y : !t, !t) outs(%e : !t) -> !t
  %mul = linalg.mul ins(%x, %y : !t, !t) outs(%e : !t) -> !t
  %div = linalg.div ins(%x, %y : !t, !t) outs(%e : !t) -> !t
  %max = linalg.max ins(%x, %y : !t, !t) outs(%e : !t) -> !t
  %map = linalg.map { arith.mulf } ins(%x, %y : !t, !t) outs(%e : !t)
  return %add, %sub, %mul, %div, %max, %map : !t, !t, !t, !t, !t, !t
}

check.case "elementwise operations" {
  %x = check.generate affine_map<(i, j) -> ((i * 5 + j * 3) mod 8 + 1)> : !t
  %y = check.generate affine_map<(i, j) -> ((i * 2 + j * 7) mod 8 + 1)> : !t
  %add, %sub, %mul, %div, %max, %map = check.run @elementwise(%x, %y) : (!t, !t) -> (!t, !t, !t, !t, !t, !t)
  check.expect_eq %add, dense<[[2.0, 12.0, 14.0, 8.0, 10.0, 12.0, 6.0],
      [9.0, 3.0, 5.0, 15.0, 9.0, 11.0, 13.0],
      [8.0, 10.0, 4.0, 6.0, 8.0, 10.0, 12.0],
      [15.0, 9.0, 11.0, 5.0, 7.0, 9.0, 3.0],
      [6.0, 16.0, 10.0, 12.0, 6.0, 8.0, 10.0]]> : !t
  check.expect_eq %sub, dense<[[0.0, -4.0, 0.0, -4.0, 0.0, 4.0, 0.0],
      [3.0, -1.0, 3.0, -1.0, -5.0, -1.0, 3.0],
      [-2.0, 2.0, -2.0, 2.0, 6.0, -6.0, -2.0],
      [1.0, -3.0, 1.0, -3.0, 1.0, 5.0, 1.0],
      [4.0, 0.0, -4.0, 0.0, -4.0, 0.0, 4.0]]> : !t
  check.expect_eq %mul, dense<[[1.0, 32.0, 49.0, 12.0, 25.0, 32.0, 9.0],
      [18.0, 2.0, 4.0, 56.0, 14.0, 30.0, 40.0],
      [15.0, 24.0, 3.0, 8.0, 7.0, 16.0, 35.0],
      [56.0, 18.0, 30.0, 4.0, 12.0, 14.0, 2.0],
      [5.0, 64.0, 21.0, 36.0, 5.0, 16.0, 21.0]]> : !t
  check.expect_eq %div, dense<[[1.0, 0.5, 1.0, 0.33333334, 1.0, 2.0, 1.0],
      [2.0, 0.5, 4.0, 0.875, 0.2857143, 0.8333333, 1.6],
      [0.6, 1.5, 0.33333334, 2.0, 7.0, 0.25, 0.71428573],
      [1.1428572, 0.5, 1.2, 0.25, 1.3333334, 3.5, 2.0],
      [5.0, 1.0, 0.42857143, 1.0, 0.2, 1.0, 2.3333333]]> : !t
  check.expect_eq %max, dense<[[1.0, 8.0, 7.0, 6.0, 5.0, 8.0, 3.0],
      [6.0, 2.0, 4.0, 8.0, 7.0, 6.0, 8.0],
      [5.0, 6.0, 3.0, 4.0, 7.0, 8.0, 7.0],
      [8.0, 6.0, 6.0, 4.0, 4.0, 7.0, 2.0],
      [5.0, 8.0, 7.0, 6.0, 5.0, 4.0, 7.0]]> : !t
  check.expect_eq %map, %mul : !t
}

func.func @movement(%x: !t) -> (tensor<7x5xf32>, tensor<5x3x7xf32>, !t) {
  %e = tensor.empty() : tensor<7x5xf32>
  %transpose = linalg.transpose ins(%x : !t) outs(%e : tensor<7x5xf32>) permutation = [1, 0]
  %f = tensor.empty() : tensor<5x3x7xf32>
  %broadcast = linalg.broadcast ins(%x : !t) outs(%f : tensor<5x3x7xf32>) dimensions = [1]
  %g = tensor.empty() : !t
  %copy = linalg.copy ins(%x : !t) outs(%g : !t) -> !t
  return %transpose, %broadcast, %copy : tensor<7x5xf32>, tensor<5x3x7xf32>, !t
}

check.case "transpose, broadcast, copy" {
  %x = check.generate affine_map<(i, j) -> (i * 10 + j)> : !t
  %transpose, %broadcast, %copy = check.run @movement(%x) : (!t) -> (tensor<7x5xf32>, tensor<5x3x7xf32>, !t)
  %t = check.generate affine_map<(j, i) -> (i * 10 + j)> : tensor<7x5xf32>
  check.expect_eq %transpose, %t : tensor<7x5xf32>
  %b = check.generate affine_map<(i, k, j) -> (i * 10 + j)> : tensor<5x3x7xf32>
  check.expect_eq %broadcast, %b : tensor<5x3x7xf32>
  check.expect_eq %copy, %x : !t
}

func.func @reduce(%x: !t) -> tensor<5xf32> {
  %init = arith.constant dense<1.0> : tensor<5xf32>
  %r = linalg.reduce { arith.addf } ins(%x : !t) outs(%init : tensor<5xf32>) dimensions = [1]
  return %r : tensor<5xf32>
}

check.case "linalg.reduce begins with its init" {
  %x = check.generate affine_map<(i, j) -> (i * 10 + j)> : !t
  %r = check.run @reduce(%x) : (!t) -> tensor<5xf32>
  check.expect_eq %r, dense<[22.0, 92.0, 162.0, 232.0, 302.0]> : tensor<5xf32>
}

func.func @batch_matmul(%x: !t, %y: !t) -> tensor<5x5xf32> {
  %e = tensor.empty() : tensor<7x5xf32>
  %yt = linalg.transpose ins(%y : !t) outs(%e : tensor<7x5xf32>) permutation = [1, 0]
  %a = tensor.expand_shape %x [[0, 1], [2]] output_shape [1, 5, 7] : !t into tensor<1x5x7xf32>
  %b = tensor.expand_shape %yt [[0, 1], [2]] output_shape [1, 7, 5] : tensor<7x5xf32> into tensor<1x7x5xf32>
  %init = arith.constant dense<2.0> : tensor<1x5x5xf32>
  %m = linalg.batch_matmul ins(%a, %b : tensor<1x5x7xf32>, tensor<1x7x5xf32>) outs(%init : tensor<1x5x5xf32>) -> tensor<1x5x5xf32>
  %r = tensor.collapse_shape %m [[0, 1], [2]] : tensor<1x5x5xf32> into tensor<5x5xf32>
  return %r : tensor<5x5xf32>
}

// Neither sees the other's result.
func.func @two_products(%x: !t, %y: !t) -> (tensor<5x5xf32>, tensor<5x5xf32>) {
  %init = arith.constant dense<2.0> : tensor<5x5xf32>
  %one = arith.constant 1.0 : f32
  %f = linalg.fill ins(%one : f32) outs(%init : tensor<5x5xf32>) -> tensor<5x5xf32>
  %e = tensor.empty() : tensor<7x5xf32>
  %yt = linalg.transpose ins(%y : !t) outs(%e : tensor<7x5xf32>) permutation = [1, 0]
  %a = linalg.matmul ins(%x, %yt : !t, tensor<7x5xf32>) outs(%f : tensor<5x5xf32>) -> tensor<5x5xf32>
  %b = linalg.matmul ins(%x, %yt : !t, tensor<7x5xf32>) outs(%f : tensor<5x5xf32>) -> tensor<5x5xf32>
  return %a, %b : tensor<5x5xf32>, tensor<5x5xf32>
}

check.case "products begin with their init, and do not change it" {
  %x = check.generate affine_map<(i, j) -> ((i * 5 + j * 3) mod 8 + 1)> : tensor<5x7xf32>
  %y = check.generate affine_map<(i, j) -> ((i * 2 + j * 7) mod 8 + 1)> : tensor<5x7xf32>
  %r = check.run @batch_matmul(%x, %y) : (!t, !t) -> tensor<5x5xf32>
  check.expect_eq %r, dense<[[162.0, 134.0, 138.0, 110.0, 162.0],
      [140.0, 166.0, 160.0, 122.0, 140.0],
      [142.0, 142.0, 110.0, 110.0, 142.0],
      [136.0, 126.0, 148.0, 138.0, 136.0],
      [170.0, 150.0, 162.0, 142.0, 170.0]]> : tensor<5x5xf32>
  %a, %b = check.run @two_products(%x, %y) : (!t, !t) -> (tensor<5x5xf32>, tensor<5x5xf32>)
  check.expect_eq %a, dense<[[161.0, 133.0, 137.0, 109.0, 161.0],
      [139.0, 165.0, 159.0, 121.0, 139.0],
      [141.0, 141.0, 109.0, 109.0, 141.0],
      [135.0, 125.0, 147.0, 137.0, 135.0],
      [169.0, 149.0, 161.0, 141.0, 169.0]]> : tensor<5x5xf32>
  check.expect_eq %b, %a : tensor<5x5xf32>
}

func.func @generate(%n: index) -> tensor<3x2000xi32> {
  %g = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %c10 = arith.constant 10 : index
    %m = arith.muli %i, %c10 : index
    %s = arith.addi %m, %j : index
    %v = arith.index_cast %s : index to i32
    tensor.yield %v : i32
  } : tensor<?x2000xi32>
  %r = tensor.cast %g : tensor<?x2000xi32> to tensor<3x2000xi32>
  return %r : tensor<3x2000xi32>
}

check.case "tensor.generate" {
  %n = arith.constant 3 : index
  %r = check.run @generate(%n) : (index) -> tensor<3x2000xi32>
  %e = check.generate affine_map<(i, j) -> (i * 10 + j)> : tensor<3x2000xi32>
  check.expect_eq %r, %e : tensor<3x2000xi32>
}

func.func @truncate(%x: tensor<3xi32>) -> tensor<3xi32> {
  %w = arith.extsi %x : tensor<3xi32> to tensor<3xi64>
  %c = arith.constant dense<1500000000> : tensor<3xi64>
  %m = arith.muli %w, %c : tensor<3xi64>
  %r = arith.trunci %m overflow<nsw> : tensor<3xi64> to tensor<3xi32>
  return %r : tensor<3xi32>
}

check.case "a trunci that may not lose bits says what it met" {
  %x = arith.constant dense<[1, 2, 3]> : tensor<3xi32>
  check.expect_error "integer overflow: 3000000000 does not fit i32" {
    check.run @truncate(%x) : (tensor<3xi32>) -> tensor<3xi32>
  }
}

func.func @power(%x: tensor<3x8xi32>, %y: tensor<3x8xi32>) -> tensor<3x8xi32> {
  %r = math.ipowi %x, %y : tensor<3x8xi32>
  return %r : tensor<3x8xi32>
}

check.case "integer powers, of negative exponents too" {
  %x = arith.constant dense<[[0, 1, -1, 2, -3, 7, 10, -2], [0, 1, -1, 2, -3, 7, 10, -2],
                             [0, 1, -1, 2, -3, 7, 10, -2]]> : tensor<3x8xi32>
  %y = arith.constant dense<[[0, 5, -3, 10, 3, 2, 9, -1], [0, 5, -3, 10, 3, 2, 9, -1],
                             [0, 5, -3, 10, 3, 2, 9, -1]]> : tensor<3x8xi32>
  %r = check.run @power(%x, %y) : (tensor<3x8xi32>, tensor<3x8xi32>) -> tensor<3x8xi32>
  check.expect_eq %r, dense<[[1, 1, -1, 1024, -27, 49, 1000000000, 0], [1, 1, -1, 1024, -27, 49, 1000000000, 0],
                             [1, 1, -1, 1024, -27, 49, 1000000000, 0]]> : tensor<3x8xi32>
}

func.func @classify(%x: tensor<1x7xf32>) -> (tensor<1x7xi1>, tensor<1x7xi1>, tensor<1x7xi1>) {
  %nan = math.isnan %x : tensor<1x7xf32>
  %inf = math.isinf %x : tensor<1x7xf32>
  %finite = math.isfinite %x : tensor<1x7xf32>
  return %nan, %inf, %finite : tensor<1x7xi1>, tensor<1x7xi1>, tensor<1x7xi1>
}

check.case "NaN, infinities and others" {
  %x = arith.constant dense<[[0x7FC00000, 0x7F800000, 0xFF800000, 0.0, -5.0, 1.0e30, 3.0]]> : tensor<1x7xf32>
  %nan, %inf, %finite = check.run @classify(%x) : (tensor<1x7xf32>) -> (tensor<1x7xi1>, tensor<1x7xi1>, tensor<1x7xi1>)
  check.expect_eq %nan, dense<[[1, 0, 0, 0, 0, 0, 0]]> : tensor<1x7xi1>
  check.expect_eq %inf, dense<[[0, 1, 1, 0, 0, 0, 0]]> : tensor<1x7xi1>
  check.expect_eq %finite, dense<[[0, 0, 0, 1, 1, 1, 1]]> : tensor<1x7xi1>
}

func.func @clamp(%x: tensor<1x7xf32>) -> tensor<1x7xf32> {
  %low = arith.constant dense<-2.0> : tensor<1x7xf32>
  %high = arith.constant dense<2.5> : tensor<1x7xf32>
  %r = math.clampf %x to [%low, %high] : tensor<1x7xf32>
  return %r : tensor<1x7xf32>
}

check.case "math.clampf" {
  %x = arith.constant dense<[[0x7F800000, 0xFF800000, 0.0, -5.0, 1.0e30, 3.0, -1.5]]> : tensor<1x7xf32>
  %r = check.run @clamp(%x) : (tensor<1x7xf32>) -> tensor<1x7xf32>
  check.expect_eq %r, dense<[[2.5, -2.0, 0.0, -2.0, 2.5, 2.5, -1.5]]> : tensor<1x7xf32>
}
