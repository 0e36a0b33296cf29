// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --spyre-set-target=target=superdsc --spyre-coarse-tiling --verify-diagnostics

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#columns = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>

// SG-TILE-HINT-C2
func.func @turned(%x: tensor<128x128xf16, #rows>) -> tensor<128x128xf16, #columns> {
  %0 = tensor.empty() : tensor<128x128xf16, #columns>
  // expected-error @+1 {{changes the stick of a part of a tensor, which SuperDSC cannot express}}
  %1 = spyre_graph.restickify ins(%x : tensor<128x128xf16, #rows>) outs(%0 : tensor<128x128xf16, #columns>)
      {maps = [#same, #same], extents = array<i64: 128, 128>,
       spyre_graph.tile_hints = [array<i64: 0, 0, 2>]} -> tensor<128x128xf16, #columns>
  return %1 : tensor<128x128xf16, #columns>
}
