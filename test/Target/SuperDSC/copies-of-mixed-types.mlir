// SPDX-License-Identifier: Apache-2.0
// An argument that a comparison reads in slices of whole sticks of its result,
// 64 elements, is not copied into LX in them: in sticks of its own, 32 elements
// of fp32, the last of three such slices of 130 columns is shorter than the
// others, which a bundle cannot say.
// RUN: rm -rf %t && mkdir -p %t
// RUN: spyre-opt --spyre-pipeline="superdsc-compatible=true to-ktir=false" %s -o %t/planned.mlir
// RUN: FileCheck %s --input-file=%t/planned.mlir
// RUN: spyre-translate --to-superdsc %t/planned.mlir -o %t/bundle
// RUN: spyre-translate --validate-superdsc %t/bundle

// CHECK-NOT: spyre_graph.identity
// CHECK: spyre_graph.gt
#rows = #spyre_graph.layout<order = [0, 1], IEEE_FP32>
func.func @main(%x: tensor<70x130xf32, #rows>) -> tensor<70x130xf32> {
  %0 = tensor.empty() : tensor<70x130xi1>
  %m = spyre_graph.gt ins(%x : tensor<70x130xf32, #rows>) outs(%0 : tensor<70x130xi1>) {immediates = [unit, 0.0 : f32]} -> tensor<70x130xi1>
  %1 = tensor.empty() : tensor<70x130xf32>
  %r = spyre_graph.where ins(%m, %x : tensor<70x130xi1>, tensor<70x130xf32, #rows>) outs(%1 : tensor<70x130xf32>) {immediates = [unit, unit, 1.0 : f32]} -> tensor<70x130xf32>
  return %r : tensor<70x130xf32>
}
