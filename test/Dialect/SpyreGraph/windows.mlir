// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts | FileCheck %s

// Windows are read in place where they do not run along the sticks, and where they need
// other sticks, a copy holds each of their elements once.

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#filters = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>

// A convolution of 2 groups of 48 channels: sums run over 9 elements of each window and
// along the channels, which need sticks of their own. The copy has 108 = 100 + 9 - 1 places.
// CHECK-DAG: #[[SOURCE:.*]] = affine_map<(d0, d1, d2) -> (d0 * 48 + d2, d1)>
// CHECK-DAG: #[[WINDOWS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 + d3, d4)>
// CHECK-LABEL: @grouped
// CHECK: %[[COPY:.*]] = spyre_graph.identity ins(%arg0 : {{.*}}maps = [#[[SOURCE]], #{{.*}}]} -> tensor<2x108x48xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>
// CHECK: spyre_graph.matmul {{.*}}%[[COPY]]
// CHECK-SAME: #[[WINDOWS]]
func.func @grouped(%x: tensor<96x108xf16, #rows>, %w: tensor<2x9x48x48xf16, #filters>) -> tensor<2x100x48xf16> {
  %0 = tensor.empty() : tensor<2x100x48xf16>
  %1 = spyre_graph.matmul ins(%x, %w : tensor<96x108xf16, #rows>, tensor<2x9x48x48xf16, #filters>)
      outs(%0 : tensor<2x100x48xf16>)
      {extents = array<i64: 2, 100, 48, 9, 48>,
       maps = [affine_map<(g, i, o, k, c) -> (g * 48 + c, i + k)>,
               affine_map<(g, i, o, k, c) -> (g, k, c, o)>,
               affine_map<(g, i, o, k, c) -> (g, i, o)>]} -> tensor<2x100x48xf16>
  return %1 : tensor<2x100x48xf16>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Windows that only touch every other element: the copy holds these alone, 1 + 199 + 2 x 2.
// CHECK-DAG: #[[SOURCE:.*]] = affine_map<(d0, d1) -> (d1, d0 * 2 + 1)>
// CHECK-DAG: #[[WINDOWS:.*]] = affine_map<(d0, d1, d2) -> (d0 + d2 * 2, d1)>
// CHECK-LABEL: @every_other
// CHECK: %[[COPY:.*]] = spyre_graph.identity ins(%arg0 : {{.*}}maps = [#[[SOURCE]], #{{.*}}]} -> tensor<204x64xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
// CHECK: spyre_graph.sum ins(%[[COPY]] :
// CHECK-SAME: maps = [#[[WINDOWS]],
func.func @every_other(%x: tensor<64x420xf16, #rows>) -> tensor<200x64xf32> {
  %v = spyre_graph.view %x, affine_map<(i, c, k) -> (c, i * 2 + k * 4 + 1)>
      : tensor<64x420xf16, #rows> -> tensor<200x64x3xf16>
  %0 = tensor.empty() : tensor<200x64xf32>
  %1 = spyre_graph.sum ins(%v : tensor<200x64x3xf16>) outs(%0 : tensor<200x64xf32>)
      {dims = array<i64: 2>} -> tensor<200x64xf32>
  return %1 : tensor<200x64xf32>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Windows that do not overlap are dimensions of their own, as any loops.
// CHECK-LABEL: @apart
// CHECK: spyre_graph.identity ins(%arg0 : {{.*}} -> tensor<70x64x3xf16, #spyre_graph.layout<order = [0, 2, 1], SEN169_FP16>>
func.func @apart(%x: tensor<64x420xf16, #rows>) -> tensor<70x64xf32> {
  %v = spyre_graph.view %x, affine_map<(i, c, k) -> (c, i * 6 + k * 2)>
      : tensor<64x420xf16, #rows> -> tensor<70x64x3xf16>
  %0 = tensor.empty() : tensor<70x64xf32>
  %1 = spyre_graph.sum ins(%v : tensor<70x64x3xf16>) outs(%0 : tensor<70x64xf32>)
      {dims = array<i64: 2>} -> tensor<70x64xf32>
  return %1 : tensor<70x64xf32>
}
