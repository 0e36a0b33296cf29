// SPDX-License-Identifier: Apache-2.0
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#sizes = affine_map<()[s] -> (s, 16384)>
func.func @rows(%x: tensor<5000x16384xf16, #l> {spyre_graph.size_map = #sizes})
    -> (tensor<5000x16384xf16, #l> {spyre_graph.size_map = #sizes})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 4097 to 5000>]} {
  %0 = tensor.empty() : tensor<5000x16384xf16, #l>
  %e = spyre_graph.exp ins(%x : tensor<5000x16384xf16, #l>) outs(%0 : tensor<5000x16384xf16, #l>)
      {maps = [#id, #id], extents = array<i64: 5000, 16384>, extent_map = #sizes} -> tensor<5000x16384xf16, #l>
  %1 = tensor.empty() : tensor<5000x16384xf16, #l>
  %a = spyre_graph.add ins(%e, %e : tensor<5000x16384xf16, #l>, tensor<5000x16384xf16, #l>) outs(%1 : tensor<5000x16384xf16, #l>)
      {maps = [#id, #id, #id], extents = array<i64: 5000, 16384>, extent_map = #sizes} -> tensor<5000x16384xf16, #l>
  return %a : tensor<5000x16384xf16, #l>
}
