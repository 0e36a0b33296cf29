// SPDX-License-Identifier: Apache-2.0
// Malformed arrays of dimensions, on which upstream's parser crashes, are errors
// in every tool that reads KTIR.
// RUN: rm -rf %t && split-file %s %t
// RUN: not spyre-opt %t/word.mlir 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not spyre-opt < %t/word.mlir 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not spyre-run %t/word.mlir 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not spyre-translate --ktir-to-text %t/word.mlir 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: :[[#]]:12: error: expected dimensions = [integers of 64 bits], found 'seven'
// RUN: not spyre-opt %t/open.mlir 2>&1 | FileCheck %s --check-prefix=OPEN
// OPEN: error: expected permutation = [integers of 64 bits], found '0x'
// RUN: not spyre-opt %t/wide.mlir 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: error: expected dimensions = [integers of 64 bits], found '99999999999999999999'
// RUN: spyre-opt %t/fine.mlir | FileCheck %s --check-prefix=FINE
// FINE-COUNT-2: linalg.transpose {{.*}} permutation = [1, 0]

//--- word.mlir
// dimensions = here is a comment
func.func @f(%x: tensor<5x7xf32>, %o: tensor<5xf32>) -> tensor<5xf32> {
  %s = linalg.reduce { arith.addf } ins(%x : tensor<5x7xf32>)
      outs(%o : tensor<5xf32>) // the last one
      dimensions
         = seven]
  return %s : tensor<5xf32>
}
//--- open.mlir
func.func @f(%x: tensor<5x7xf32>, %o: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %t = linalg.transpose ins(%x : tensor<5x7xf32>) outs(%o : tensor<7x5xf32>) permutation = [1, 0x
  return %t : tensor<7x5xf32>
}
//--- wide.mlir
func.func @f(%x: tensor<5xf32>, %o: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %s = linalg.broadcast ins(%x : tensor<5xf32>) outs(%o : tensor<5x7xf32>) dimensions = [99999999999999999999]
  return %s : tensor<5x7xf32>
}
//--- fine.mlir
func.func @f(%x: tensor<5x7xf32>, %o: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %t = linalg.transpose ins(%x : tensor<5x7xf32>) outs(%o : tensor<7x5xf32>) permutation = [0x1, 0] {dimensions = "seven"}
  %u = "linalg.transpose"(%x, %t) <{permutation = array<i64: 1, 0>}> ({
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }) : (tensor<5x7xf32>, tensor<7x5xf32>) -> tensor<7x5xf32>
  return %u : tensor<7x5xf32>
}
