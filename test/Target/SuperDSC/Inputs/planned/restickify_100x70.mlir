// SPDX-License-Identifier: Apache-2.0
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#columns = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
func.func @main(%x: memref<100x70xf16, #rows>, %out: memref<100x70xf16, #columns>) {
  spyre_graph.restickify ins(%x : memref<100x70xf16, #rows>)
      outs(%out : memref<100x70xf16, #columns>)
      {maps = [#same, #same], extents = array<i64: 100, 70>,
       division = #spyre_graph.division<splits = [1, 1], chunks = [100, 70]>}
  return
}
