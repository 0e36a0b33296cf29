// SPDX-License-Identifier: Apache-2.0
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#sparse = #spyre_graph.layout<order = [0], sparse, SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: memref<128x100xf16, #rows>, %out: memref<128xf16, #sparse>) {
  spyre_graph.max ins(%x : memref<128x100xf16, #rows>) outs(%out : memref<128xf16, #sparse>)
      {dims = array<i64: 1>, maps = [#same, #row], extents = array<i64: 128, 100>,
       division = #spyre_graph.division<splits = [32, 1], chunks = [4, 100]>}
  return
}
