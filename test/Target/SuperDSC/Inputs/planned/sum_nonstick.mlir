// SPDX-License-Identifier: Apache-2.0
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], SEN169_FP16>
#columns = affine_map<(j, i) -> (i, j)>
#column = affine_map<(j, i) -> (j)>
func.func @main(%x: memref<128x256xf16, #rows>, %out: memref<256xf16, #line>) {
  spyre_graph.sum ins(%x : memref<128x256xf16, #rows>) outs(%out : memref<256xf16, #line>)
      {dims = array<i64: 0>, maps = [#columns, #column], extents = array<i64: 256, 128>,
       division = #spyre_graph.division<splits = [4, 1], chunks = [64, 128]>}
  return
}
