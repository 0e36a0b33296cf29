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
// RUN: %python -c "[print('#m' + str(k) + ' = affine_map<(i) -> (' + '(' * 900 + 'i' + ')' * 900 + ')>') for k in range(3)]" > %t/flat.mlir
// RUN: spyre-opt %t/flat.mlir
// RUN: %python -c "print('#m = affine_map<(i) -> (' + '(' * 99999 + 'i')" > %t/deep.mlir
// RUN: not spyre-opt %t/deep.mlir 2>&1 | FileCheck %s --check-prefix=DEEP
// RUN: not spyre-run %t/deep.mlir 2>&1 | FileCheck %s --check-prefix=DEEP
// DEEP: deep.mlir:1:[[#]]: error: more than 1000 brackets or signs nested in each other
// RUN: %python -c "print('#m = affine_map<(i) -> (' + '-' * 99999 + 'i')" > %t/signs.mlir
// RUN: not spyre-opt %t/signs.mlir 2>&1 | FileCheck %s --check-prefix=SIGNS
// SIGNS: error: more than 1000 brackets or signs
// RUN: not spyre-opt %t/index.mlir 2>&1 | FileCheck %s --check-prefix=INDEX
// RUN: not spyre-run %t/index.mlir 2>&1 | FileCheck %s --check-prefix=INDEX
// RUN: not spyre-translate --to-superdsc %t/index.mlir -o %t/bundle 2>&1 | FileCheck %s --check-prefix=INDEX
// RUN: not spyre-translate --to-spyrecode %t/index.mlir -o %t/code 2>&1 | FileCheck %s --check-prefix=INDEX
// RUN: not spyre-translate --ktir-to-bytecode %t/index.mlir 2>&1 | FileCheck %s --check-prefix=INDEX
// INDEX: index.mlir:2:3: error: expected an integer or float type of whole bytes as the type of an array's elements, such as i64, found 'index'
// RUN: not spyre-opt %t/alias.mlir 2>&1 | FileCheck %s --check-prefix=ALIAS
// ALIAS: alias.mlir:2:41: error: {{.*}}, found an alias
// Upstream's parser takes minutes for these.
// RUN: %python -c "[print('#m%%d = affine_map<(i, j) -> (%%s)>' %% (k, ' + '.join(['(i mod 3) * 5'] * 2730))) for k in range(3)]" > %t/sums.mlir
// RUN: spyre-opt %t/sums.mlir
// RUN: %python -c "print('#m = affine_map<(i, j) -> (' + ' + '.join(['i * 5 + j * 7'] * 50000) + ')>')" > %t/terms.mlir
// RUN: not spyre-opt %t/terms.mlir 2>&1 | FileCheck %s --check-prefix=TERMS
// RUN: not spyre-run %t/terms.mlir 2>&1 | FileCheck %s --check-prefix=TERMS
// TERMS: terms.mlir:1:[[#]]: error: more than 8192 operators in one expression
// RUN: %python -c "print('func.func @f(%%x: i1) {\n' + 'scf.if %%x {\n' * 300 + '}\n' * 300 + 'return }')" > %t/regions.mlir
// RUN: not spyre-run %t/regions.mlir --arg 1 2>&1 | FileCheck %s --check-prefix=REGIONS
// REGIONS: error: regions more than 256 deep are not supported

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
//--- index.mlir
module attributes {ktdp.numbers = array < // of
  index: 1>} {}
//--- alias.mlir
!number = index
module attributes {ktdp.numbers = array<!number: 1>} {}
