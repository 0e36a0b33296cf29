// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --spyre-pipeline | FileCheck %s

// Kernels of several functions, and a function that is not ours, have names of
// their own.

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// CHECK: func.func private @k0_exp()
func.func private @k0_exp()

// CHECK: func.func @seven
// CHECK: call @[[SEVEN:k0_exp_[0-9]+]](
func.func @seven(%x: tensor<7x64xf16, #layout>) -> tensor<7x64xf16> {
  %0 = tensor.empty() : tensor<7x64xf16>
  %1 = spyre_graph.exp ins(%x : tensor<7x64xf16, #layout>)
      outs(%0 : tensor<7x64xf16>) -> tensor<7x64xf16>
  return %1 : tensor<7x64xf16>
}

// CHECK: func.func @nine
// CHECK-NOT: call @[[SEVEN]](
// CHECK: call @[[NINE:k0_exp_[0-9]+]](
func.func @nine(%x: tensor<9x64xf16, #layout>) -> tensor<9x64xf16> {
  %0 = tensor.empty() : tensor<9x64xf16>
  %1 = spyre_graph.exp ins(%x : tensor<9x64xf16, #layout>)
      outs(%0 : tensor<9x64xf16>) -> tensor<9x64xf16>
  return %1 : tensor<9x64xf16>
}

// CHECK-DAG: func.func private @[[SEVEN]](
// CHECK-DAG: func.func private @[[NINE]](
