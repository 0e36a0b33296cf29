// SPDX-License-Identifier: Apache-2.0
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
func.func @main(%x: memref<4x64xf16, #rows>, %out: memref<4x64xf16, #rows>) {
  spyre_graph.abs ins(%x : memref<4x64xf16, #rows>) outs(%out : memref<4x64xf16, #rows>)
      {maps = [#same, #same], extents = array<i64: 4, 64>,
       division = #spyre_graph.division<splits = [2, 1], chunks = [2, 64]>}
  return
}
