// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-set-target=target=superdsc --spyre-propagate-layouts | FileCheck %s --check-prefix=SUPERDSC

// The product reads fp16 and writes fp16; the sum, whose order of summation may
// depend on the type of its input, keeps the conversion before it.
// CHECK-LABEL: func.func @both
// CHECK-SAME: %[[X:.*]]: tensor<64x64xf16, #{{[^)]*}})
// CHECK: %[[WIDE:.*]] = spyre_graph.identity ins(%[[X]] {{.*}} -> tensor<64x64xf32
// CHECK: spyre_graph.mul ins(%[[X]], %[[X]] : tensor<64x64xf16{{.*}} -> tensor<64x64xf16
// CHECK: spyre_graph.sum ins(%[[WIDE]]
// CHECK-NOT: identity
// CHECK: return
// SUPERDSC-LABEL: func.func @both
// SUPERDSC-COUNT-2: spyre_graph.identity
// SUPERDSC: return
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @both(%x: tensor<64x64xf16, #l>) -> (tensor<64x64xf16>, tensor<64x1xf32>) {
  %e = tensor.empty() : tensor<64x64xf32>
  %o = tensor.empty() : tensor<64x64xf16>
  %r = tensor.empty() : tensor<64x1xf32>
  %w = spyre_graph.identity ins(%x : tensor<64x64xf16, #l>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = spyre_graph.mul ins(%w, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = spyre_graph.sum ins(%w : tensor<64x64xf32>) outs(%r : tensor<64x1xf32>) {dims = array<i64: 1>} -> tensor<64x1xf32>
  %n = spyre_graph.identity ins(%m : tensor<64x64xf32>) outs(%o : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %n, %s : tensor<64x64xf16>, tensor<64x1xf32>
}

// -----

// What else reads the wide result keeps it; through a view the maps compose.
// CHECK-LABEL: func.func @kept
// CHECK: spyre_graph.exp ins(%{{.*}} : tensor<64x128xf16{{.*}} -> tensor<128x64xf32
// CHECK: spyre_graph.identity {{.*}} -> tensor<128x64xf16
// CHECK: return
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @kept(%x: tensor<64x128xf16, #l>) -> (tensor<128x64xf16>, tensor<128x64xf32>) {
  %e = tensor.empty() : tensor<64x128xf32>
  %f = tensor.empty() : tensor<128x64xf32>
  %o = tensor.empty() : tensor<128x64xf16>
  %w = spyre_graph.identity ins(%x : tensor<64x128xf16, #l>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %t = spyre_graph.view %w, affine_map<(i, j) -> (j, i)> : tensor<64x128xf32> -> tensor<128x64xf32>
  %m = spyre_graph.exp ins(%t : tensor<128x64xf32>) outs(%f : tensor<128x64xf32>) -> tensor<128x64xf32>
  %n = spyre_graph.identity ins(%m : tensor<128x64xf32>) outs(%o : tensor<128x64xf16>) -> tensor<128x64xf16>
  return %n, %m : tensor<128x64xf16>, tensor<128x64xf32>
}
