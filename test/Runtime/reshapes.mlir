// SPDX-License-Identifier: Apache-2.0
// tensor.reshape whose shape is made of values, a constant, or read from memory.
// RUN: spyre-run --cases %s --threads 1
// RUN: spyre-run --cases %s --threads 3
// RUN: spyre-run --cases %s --check=none --threads 2
// RUN: spyre-run --cases %s --check=full

!x = tensor<12xf32>
!z = tensor<4x3xf32>

// The reshaped tensor, transposed: an operation has to know its shape.
func.func private @transpose(%x: tensor<?x?xf32>) -> !z {
  %c = tensor.cast %x : tensor<?x?xf32> to tensor<3x4xf32>
  %e = tensor.empty() : !z
  %t = linalg.transpose ins(%c : tensor<3x4xf32>) outs(%e : !z) permutation = [1, 0]
  return %t : !z
}

func.func @elements_both(%x: !x, %n: index, %m: index) -> !z {
  %h = tensor.from_elements %n, %m : tensor<2xindex>
  %d = tensor.reshape %x(%h) : (!x, tensor<2xindex>) -> tensor<?x?xf32>
  %r = func.call @transpose(%d) : (tensor<?x?xf32>) -> !z
  return %r : !z
}

func.func @elements_columns(%x: !x, %n: index, %m: index) -> !z {
  %h = tensor.from_elements %n, %m : tensor<2xindex>
  %d = tensor.reshape %x(%h) : (!x, tensor<2xindex>) -> tensor<3x?xf32>
  %u = tensor.cast %d : tensor<3x?xf32> to tensor<?x?xf32>
  %r = func.call @transpose(%u) : (tensor<?x?xf32>) -> !z
  return %r : !z
}

func.func @elements_rows(%x: !x, %n: index, %m: index) -> !z {
  %h = tensor.from_elements %n, %m : tensor<2xindex>
  %d = tensor.reshape %x(%h) : (!x, tensor<2xindex>) -> tensor<?x4xf32>
  %u = tensor.cast %d : tensor<?x4xf32> to tensor<?x?xf32>
  %r = func.call @transpose(%u) : (tensor<?x?xf32>) -> !z
  return %r : !z
}

func.func @constant_both(%x: !x) -> !z {
  %h = arith.constant dense<[3, 4]> : tensor<2xi32>
  %d = tensor.reshape %x(%h) : (!x, tensor<2xi32>) -> tensor<?x?xf32>
  %r = func.call @transpose(%d) : (tensor<?x?xf32>) -> !z
  return %r : !z
}

func.func @constant_columns(%x: !x) -> !z {
  %h = arith.constant dense<[3, 4]> : tensor<2xi32>
  %d = tensor.reshape %x(%h) : (!x, tensor<2xi32>) -> tensor<3x?xf32>
  %u = tensor.cast %d : tensor<3x?xf32> to tensor<?x?xf32>
  %r = func.call @transpose(%u) : (tensor<?x?xf32>) -> !z
  return %r : !z
}

func.func @constant_rows(%x: !x) -> !z {
  %h = arith.constant dense<[3, 4]> : tensor<2xi32>
  %d = tensor.reshape %x(%h) : (!x, tensor<2xi32>) -> tensor<?x4xf32>
  %u = tensor.cast %d : tensor<?x4xf32> to tensor<?x?xf32>
  %r = func.call @transpose(%u) : (tensor<?x?xf32>) -> !z
  return %r : !z
}

func.func @memory_both(%x: !x, %h: tensor<2xi32>) -> !z {
  %d = tensor.reshape %x(%h) : (!x, tensor<2xi32>) -> tensor<?x?xf32>
  %r = func.call @transpose(%d) : (tensor<?x?xf32>) -> !z
  return %r : !z
}

func.func @memory_columns(%x: !x, %h: tensor<2xi32>) -> !z {
  %d = tensor.reshape %x(%h) : (!x, tensor<2xi32>) -> tensor<3x?xf32>
  %u = tensor.cast %d : tensor<3x?xf32> to tensor<?x?xf32>
  %r = func.call @transpose(%u) : (tensor<?x?xf32>) -> !z
  return %r : !z
}

func.func @memory_rows(%x: !x, %h: tensor<2xi32>) -> !z {
  %d = tensor.reshape %x(%h) : (!x, tensor<2xi32>) -> tensor<?x4xf32>
  %u = tensor.cast %d : tensor<?x4xf32> to tensor<?x?xf32>
  %r = func.call @transpose(%u) : (tensor<?x?xf32>) -> !z
  return %r : !z
}

check.case "12 elements as 3 x 4" {
  %x = check.generate affine_map<(i) -> (i)> : !x
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %h = arith.constant dense<[3, 4]> : tensor<2xi32>
  %e = check.generate affine_map<(j, i) -> (i * 4 + j)> : !z
  %elements_both = check.run @elements_both(%x, %c3, %c4) : (!x, index, index) -> !z
  check.expect_eq %elements_both, %e : !z
  %elements_columns = check.run @elements_columns(%x, %c3, %c4) : (!x, index, index) -> !z
  check.expect_eq %elements_columns, %e : !z
  %elements_rows = check.run @elements_rows(%x, %c3, %c4) : (!x, index, index) -> !z
  check.expect_eq %elements_rows, %e : !z
  %constant_both = check.run @constant_both(%x) : (!x) -> !z
  check.expect_eq %constant_both, %e : !z
  %constant_columns = check.run @constant_columns(%x) : (!x) -> !z
  check.expect_eq %constant_columns, %e : !z
  %constant_rows = check.run @constant_rows(%x) : (!x) -> !z
  check.expect_eq %constant_rows, %e : !z
  %memory_both = check.run @memory_both(%x, %h) : (!x, tensor<2xi32>) -> !z
  check.expect_eq %memory_both, %e : !z
  %memory_columns = check.run @memory_columns(%x, %h) : (!x, tensor<2xi32>) -> !z
  check.expect_eq %memory_columns, %e : !z
  %memory_rows = check.run @memory_rows(%x, %h) : (!x, tensor<2xi32>) -> !z
  check.expect_eq %memory_rows, %e : !z
}

check.case "shapes that do not fit" {
  %x = arith.constant dense<0.0> : !x
  %n5_4 = arith.constant 5 : index
  %m5_4 = arith.constant 4 : index
  check.expect_error "reshapes.mlir:21:8: error: core 0: reshape of 12 elements to a shape of 20" {
    check.run @elements_both(%x, %n5_4, %m5_4) : (!x, index, index) -> !z
  }
  %n3_4 = arith.constant -3 : index
  %m3_4 = arith.constant -4 : index
  check.expect_error "reshapes.mlir:21:8: error: core 0: dimension 0 of size -3" {
    check.run @elements_both(%x, %n3_4, %m3_4) : (!x, index, index) -> !z
  }
  %n4_3 = arith.constant 4 : index
  %m4_3 = arith.constant 3 : index
  check.expect_error "reshapes.mlir:36:8: error: core 0: dimension 1 has size 3, the result type says 4" {
    check.run @elements_rows(%x, %n4_3, %m4_3) : (!x, index, index) -> !z
  }
  %n4611686018427387904_4 = arith.constant 4611686018427387904 : index
  %m4611686018427387904_4 = arith.constant 4 : index
  check.expect_error "reshapes.mlir:21:8: error: core 0: reshape of 12 elements to a shape of -1" {
    check.run @elements_both(%x, %n4611686018427387904_4, %m4611686018427387904_4) : (!x, index, index) -> !z
  }
}
