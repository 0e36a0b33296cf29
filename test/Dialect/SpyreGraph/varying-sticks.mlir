// SPDX-License-Identifier: Apache-2.0
// Sticks along a dimension that varies, where the target has them: the largest
// of each line is found with one pass over whole sticks. For SuperDSC, whose
// sticks have one length, the operation reads its argument as it lies.
// RUN: spyre-opt %s --spyre-propagate-layouts | FileCheck %s --check-prefix=ANY
// RUN: spyre-opt %s --spyre-set-target=target=superdsc --spyre-propagate-layouts | FileCheck %s --check-prefix=SDSC

#rows = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>

// ANY-LABEL: func.func @largest
// ANY: spyre_graph.restickify ins(%{{.*}}) outs({{.*}}order = [0, 2, 1]
// ANY: spyre_graph.max
// SDSC-LABEL: func.func @largest
// SDSC-NOT: spyre_graph.restickify
// SDSC: spyre_graph.max ins(%arg0 : {{.*}}order = [0, 1, 2]
func.func @largest(%x: tensor<3x256x70xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (3, s, 70)>})
    -> (tensor<3x256xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (3, s)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 256 by 64>]} {
  %0 = tensor.empty() : tensor<3x256xf16>
  %y = spyre_graph.max ins(%x : tensor<3x256x70xf16, #rows>) outs(%0 : tensor<3x256xf16>)
      {dims = array<i64: 2>} -> tensor<3x256xf16>
  return %y : tensor<3x256xf16>
}
