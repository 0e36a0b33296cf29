// SPDX-License-Identifier: Apache-2.0
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
#parts = #spyre_graph.division<splits = [4, 2], chunks = [16, 64]>
func.func @main(%x: memref<64x128xf16, #rows>, %y: memref<64x128xf16, #rows>,
                %out: memref<64x128xf16, #rows>) {
  %e = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<lx, offset = 0, local = [16, 64]>} : memref<64x128xf16, #rows>
  spyre_graph.exp ins(%x : memref<64x128xf16, #rows>) outs(%e : memref<64x128xf16, #rows>)
      {maps = [#same, #same], extents = array<i64: 64, 128>, division = #parts}
  spyre_graph.mul ins(%e, %y : memref<64x128xf16, #rows>, memref<64x128xf16, #rows>)
      outs(%out : memref<64x128xf16, #rows>)
      {maps = [#same, #same, #same], extents = array<i64: 64, 128>, division = #parts}
  return
}
