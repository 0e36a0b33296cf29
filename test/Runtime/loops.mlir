// SPDX-License-Identifier: Apache-2.0
// Loops in parallel form, and padding. x[i, j] = 7 i + j - 20.
// RUN: spyre-run --cases %s
// RUN: spyre-run --cases %s --check=none
// RUN: spyre-run --cases %s --check=full

!t = tensor<5x7xf32>

// Three reductions: a sum and a maximum of elements, and a sum of rows.
func.func @parallel(%x: !t, %n: index) -> (f32, f32, tensor<7xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -1000.0 : f32
  %init = arith.constant dense<0.0> : tensor<7xf32>
  %sum, %max, %rows = scf.parallel (%i, %j) = (%c0, %c1) to (%n, %c7) step (%c1, %c2)
      init (%zero, %low, %init) -> (f32, f32, tensor<7xf32>) {
    %e = tensor.extract %x[%i, %j] : !t
    %r = tensor.extract_slice %x[%i, 0] [1, 7] [1, 1] : !t to tensor<7xf32>
    scf.reduce(%e, %e, %r : f32, f32, tensor<7xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }, {
    ^bb0(%a: f32, %b: f32):
      %m = arith.maximumf %a, %b : f32
      scf.reduce.return %m : f32
    }, {
    ^bb0(%a: tensor<7xf32>, %b: tensor<7xf32>):
      %s = arith.addf %a, %b : tensor<7xf32>
      scf.reduce.return %s : tensor<7xf32>
    }
  }
  return %sum, %max, %rows : f32, f32, tensor<7xf32>
}

func.func @reductions(%x: !t, %n: index) -> (tensor<2xf32>, tensor<7xf32>) {
  %sum, %max, %rows = func.call @parallel(%x, %n) : (!t, index) -> (f32, f32, tensor<7xf32>)
  %both = tensor.from_elements %sum, %max : tensor<2xf32>
  return %both, %rows : tensor<2xf32>, tensor<7xf32>
}

// Rows 0 to 3, columns 1, 3 and 5; each row is added once per column.
check.case "scf.parallel reduces" {
  %x = check.generate affine_map<(i, j) -> (i * 7 + j - 20)> : !t
  %n = arith.constant 4 : index
  %both, %rows = check.run @reductions(%x, %n) : (!t, index) -> (tensor<2xf32>, tensor<7xf32>)
  check.expect_eq %both, dense<[-78.0, 6.0]> : tensor<2xf32>
  check.expect_eq %rows, dense<[-114.0, -102.0, -90.0, -78.0, -66.0, -54.0, -42.0]> : tensor<7xf32>
}

func.func @forall(%x: !t) -> !t {
  %r = scf.forall (%i) = (0) to (4) step (1) shared_outs(%o = %x) -> (!t) {
    %next = affine.apply affine_map<(d) -> (d + 1)>(%i)
    %a = tensor.extract_slice %o[%i, 0] [1, 7] [1, 1] : !t to tensor<1x7xf32>
    %b = tensor.extract_slice %x[0, 0] [1, 7] [1, 1] : !t to tensor<1x7xf32>
    %s = arith.addf %a, %b : tensor<1x7xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%next, 0] [1, 7] [1, 1] : tensor<1x7xf32> into !t
    }
  }
  return %r : !t
}

check.case "each iteration of scf.forall reads what was there before the loop" {
  %x = check.generate affine_map<(i, j) -> (i * 7 + j - 20)> : !t
  %r = check.run @forall(%x) : (!t) -> !t
  // Row 0, and row i - 1 plus row 0.
  check.expect_eq %r, dense<[[-20.0, -19.0, -18.0, -17.0, -16.0, -15.0, -14.0],
      [-40.0, -38.0, -36.0, -34.0, -32.0, -30.0, -28.0],
      [-33.0, -31.0, -29.0, -27.0, -25.0, -23.0, -21.0],
      [-26.0, -24.0, -22.0, -20.0, -18.0, -16.0, -14.0],
      [-19.0, -17.0, -15.0, -13.0, -11.0, -9.0, -7.0]]> : !t
}

func.func @pad(%x: !t, %n: index) -> tensor<8x10xf32> {
  %p = tensor.pad %x low[1, %n] high[0, 1] {
  ^bb0(%i: index, %j: index):
    %c = arith.constant 2.5 : f32
    tensor.yield %c : f32
  } : !t to tensor<6x?xf32>
  %q = tensor.cast %p : tensor<6x?xf32> to tensor<6x10xf32>
  %r = tensor.pad %q low[0, 0] high[2, 0] {
  ^bb0(%i: index, %j: index):
    %s = arith.addi %i, %j : index
    %w = arith.index_cast %s : index to i32
    %v = arith.sitofp %w : i32 to f32
    tensor.yield %v : f32
  } : tensor<6x10xf32> to tensor<8x10xf32>
  return %r : tensor<8x10xf32>
}

check.case "padding with a constant, and below with the sum of the indices" {
  %x = check.generate affine_map<(i, j) -> (i * 7 + j - 20)> : !t
  %n = arith.constant 2 : index
  %r = check.run @pad(%x, %n) : (!t, index) -> tensor<8x10xf32>
  check.expect_eq %r, dense<[[2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5],
      [2.5, 2.5, -20.0, -19.0, -18.0, -17.0, -16.0, -15.0, -14.0, 2.5],
      [2.5, 2.5, -13.0, -12.0, -11.0, -10.0, -9.0, -8.0, -7.0, 2.5],
      [2.5, 2.5, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 2.5],
      [2.5, 2.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 2.5],
      [2.5, 2.5, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 2.5],
      [6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0],
      [7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]]> : tensor<8x10xf32>
}
