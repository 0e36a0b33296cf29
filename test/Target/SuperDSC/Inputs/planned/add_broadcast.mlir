// SPDX-License-Identifier: Apache-2.0
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: memref<4x128xf16, #rows>, %y: memref<128xf16, #line>,
                %out: memref<4x128xf16, #rows>) {
  spyre_graph.add ins(%x, %y : memref<4x128xf16, #rows>, memref<128xf16, #line>)
      outs(%out : memref<4x128xf16, #rows>)
      {maps = [#same, #column, #same], extents = array<i64: 4, 128>,
       division = #spyre_graph.division<splits = [2, 2], chunks = [2, 64]>}
  return
}
