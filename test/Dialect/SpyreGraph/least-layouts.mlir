// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts | FileCheck %s --implicit-check-not=restickify --implicit-check-not=spyre_graph.identity

// Layouts that no input suggests, but that need the fewest copies.

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#sparse = #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>

// One factor has one element per stick, the other must be copied anyway: both
// into full sticks along the columns, of which the result then has three.
// CHECK-LABEL: func @copied_anyway
// CHECK: %[[FULL:.*]] = spyre_graph.restickify ins(%arg0
// CHECK: %[[COPY:.*]] = spyre_graph.identity ins(%arg1
// CHECK: spyre_graph.mul ins(%[[FULL]], %[[COPY]] : tensor<64x3xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>, tensor<64x3xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>)
func.func @copied_anyway(%x: tensor<64x3xf16, #sparse>,
                         %y: tensor<64x64xf16, #rows>) -> tensor<64x3xf16> {
  %part = spyre_graph.view %y, affine_map<(i, j) -> (i, j + 7)>
      : tensor<64x64xf16, #rows> -> tensor<64x3xf16>
  %e = tensor.empty() : tensor<64x3xf16>
  %r = spyre_graph.mul
      ins(%x, %part : tensor<64x3xf16, #sparse>, tensor<64x3xf16>)
      outs(%e : tensor<64x3xf16>) -> tensor<64x3xf16>
  return %r : tensor<64x3xf16>
}

// -----

#sparse = #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>

// A constant has any layout: here that of what it is added to.
// CHECK-LABEL: func @filled
// CHECK: spyre_graph.fill {{.*}} -> tensor<1x3xf16, #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>>
// CHECK: spyre_graph.add {{.*}} -> tensor<1x3xf16, #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>>
func.func @filled(%x: tensor<1x3xf16, #sparse>) -> tensor<1x3xf16> {
  %e0 = tensor.empty() : tensor<1x3xf16>
  %ones = spyre_graph.fill outs(%e0 : tensor<1x3xf16>)
      {immediates = [1.0 : f32]} -> tensor<1x3xf16>
  %e1 = tensor.empty() : tensor<1x3xf16>
  %r = spyre_graph.add ins(%ones, %x : tensor<1x3xf16>, tensor<1x3xf16, #sparse>)
      outs(%e1 : tensor<1x3xf16>) -> tensor<1x3xf16>
  return %r : tensor<1x3xf16>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#sparse = #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>

// The addition needs a copy of x; the sum reads that copy, which is smaller than
// x. Along the columns its result has few sticks, which pays for turning y, too.
// CHECK-LABEL: func @shared_copy
// CHECK: %[[COPY:.*]] = spyre_graph.restickify ins(%arg0
// CHECK: %[[TURNED:.*]] = spyre_graph.restickify ins(%arg1
// CHECK: spyre_graph.add ins(%[[COPY]], %[[TURNED]]
// CHECK: spyre_graph.sum ins(%[[COPY]]
func.func @shared_copy(%x: tensor<1024x130xf16, #sparse>,
                       %y: tensor<1024x130xf16, #rows>)
    -> (tensor<1024x130xf16>, tensor<1024x1xf16>) {
  %e0 = tensor.empty() : tensor<1024x130xf16>
  %a = spyre_graph.add
      ins(%x, %y : tensor<1024x130xf16, #sparse>, tensor<1024x130xf16, #rows>)
      outs(%e0 : tensor<1024x130xf16>) -> tensor<1024x130xf16>
  %e1 = tensor.empty() : tensor<1024x1xf16>
  %s = spyre_graph.sum ins(%x : tensor<1024x130xf16, #sparse>)
      outs(%e1 : tensor<1024x1xf16>) {dims = array<i64: 1>}
      -> tensor<1024x1xf16>
  return %a, %s : tensor<1024x130xf16>, tensor<1024x1xf16>
}

// -----

#columns = #spyre_graph.layout<order = [1, 0], SEN169_FP16>

// The updated row has one element per stick, as the exchanged product has.
// CHECK-LABEL: func @row_across
// CHECK: spyre_graph.matmul ins(%arg1, %arg0 :
func.func @row_across(%x: tensor<1x64xf16, #columns>,
                      %y: tensor<64x130xf16, #columns>,
                      %z: tensor<1x130xf16, #columns>)
    -> tensor<1x130xf16, #columns> {
  %r = spyre_graph.matmul
      ins(%x, %y : tensor<1x64xf16, #columns>, tensor<64x130xf16, #columns>)
      outs(%z : tensor<1x130xf16, #columns>) -> tensor<1x130xf16, #columns>
  return %r : tensor<1x130xf16, #columns>
}
