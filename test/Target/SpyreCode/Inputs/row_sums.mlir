// SPDX-License-Identifier: Apache-2.0
// y = x.sum(-1), whose elements have a stick each.
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#sums = #spyre_graph.layout<order = [0], sparse, SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
#outer = affine_map<(i, j) -> (i)>
func.func @main(%x: memref<64x64xf16, #rows> {spyre_graph.name = "x"},
                %y: memref<64xf16, #sums> {spyre_graph.name = "y"}) {
  spyre_graph.sum ins(%x : memref<64x64xf16, #rows>) outs(%y : memref<64xf16, #sums>)
      {dims = array<i64: 1>, maps = [#same, #outer], extents = array<i64: 64, 64>,
       division = #spyre_graph.division<splits = [4, 1], chunks = [16, 64]>}
  return
}
