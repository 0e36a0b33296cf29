// SPDX-License-Identifier: Apache-2.0
// What the writers of plans say about other modules. A plan may compute nothing.

// RUN: rm -rf %t && split-file %s %t
// RUN: spyre-translate --to-superdsc %t/nothing.mlir -o %t/nothing-bundle
// RUN: spyre-translate --to-spyrecode %t/nothing.mlir -o %t/nothing-code
// RUN: spyre-run %t/nothing-bundle --arg zeros
// RUN: spyre-run %t/nothing-code --arg zeros

// RUN: not spyre-translate --to-superdsc %t/tensors.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=TENSORS-DSC
// TENSORS-DSC: tensors.mlir:2:1: error: is not planned: expected one block and no results; run --spyre-pipeline=to-ktir=false first
// RUN: not spyre-translate --to-spyrecode %t/tensors.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=TENSORS-CODE
// TENSORS-CODE: tensors.mlir:2:1: error: is not planned: expected buffers as arguments, found 'tensor<4x64xf16, {{.*}}>'; run --spyre-pipeline first

// RUN: not spyre-translate --to-superdsc %t/two.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=TWO-DSC
// TWO-DSC: two.mlir:4:1: error: expected one function with a body, found 2
// RUN: not spyre-translate --to-spyrecode %t/two.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=TWO-CODE --implicit-check-not=error:
// TWO-CODE: two.mlir:1:1: error: found 2 sequence functions

// RUN: not spyre-translate --to-superdsc %t/empty.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=EMPTY-DSC
// EMPTY-DSC: empty.mlir:1:1: error: expected one function with a body, found 0
// RUN: not spyre-translate --to-spyrecode %t/empty.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=EMPTY-CODE --implicit-check-not=error:
// EMPTY-CODE: empty.mlir:1:1: error: the module has no sequence function

// RUN: not spyre-translate --to-superdsc %t/ktir.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=KTIR-DSC
// KTIR-DSC: ktir.mlir:1:43: error: expected planned spyre_graph, found KTIR; plan the graph with spyre-opt --spyre-pipeline=to-ktir=false

// Brackets that would exhaust the parser's stack.
// RUN: %python -c "print('module attributes {a = ' + '[' * 200000)" > %t/deep.mlir
// RUN: not spyre-translate --to-superdsc %t/deep.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=DEEP
// RUN: not spyre-translate --to-spyrecode %t/deep.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=DEEP
// DEEP: deep.mlir:1:{{[0-9]+}}: error: more than 1000 brackets or signs nested in each other

// One action at a time.
// RUN: not spyre-translate --to-superdsc --ktir-to-text %t/nothing.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=BOTH-DSC
// BOTH-DSC: error: --to-superdsc and a translation cannot be used together
// RUN: not spyre-translate --to-spyrecode --print-dci --size 4 %t/nothing.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=BOTH-CODE
// BOTH-CODE: error: --to-spyrecode and --print-dci cannot be used together
// RUN: not ls %t/none

// What is printed goes to the file that is named.
// RUN: spyre-translate --print-superdsc-schema -o %t/schema.json > %t/said
// RUN: cmp %t/said /dev/null
// RUN: spyre-translate --print-superdsc-schema | diff - %t/schema.json
// RUN: spyre-translate --validate-superdsc %t/nothing-bundle -o %t/valid > %t/said
// RUN: cmp %t/said /dev/null
// RUN: grep ': valid' %t/valid

//--- nothing.mlir
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @nothing(%x: memref<4x64xf16, #rows>) {
  return
}
//--- tensors.mlir
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @tensors(%x: tensor<4x64xf16, #rows>) -> tensor<4x64xf16, #rows> {
  return %x : tensor<4x64xf16, #rows>
}
//--- two.mlir
func.func @first() {
  return
}
func.func @second() {
  return
}
//--- empty.mlir
module {}
//--- ktir.mlir
func.func @main(%x: index {ktdp.layout = #ktdp.layout<device_size = [1, 4, 64], stride_map = [64, 64, 1],
    format = SEN169_FP16, host_dtype = float16, shape = [4, 64], strides = [64, 1]>}) {
  return
}
