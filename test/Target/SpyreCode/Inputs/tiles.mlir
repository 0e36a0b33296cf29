// SPDX-License-Identifier: Apache-2.0
// y = exp(x) + row, tile by tile along both dimensions.
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#row = #spyre_graph.layout<order = [0], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
#along = affine_map<(i, j) -> (j)>
#parts = #spyre_graph.division<splits = [2, 1], chunks = [16, 64]>
func.func @main(%x: memref<32x64xf16, #rows> {spyre_graph.name = "x"},
                %row: memref<64xf16, #row> {spyre_graph.name = "row"},
                %y: memref<32x64xf16, #rows> {spyre_graph.name = "y"}) {
  %e = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<lx, offset = 0, local = [16, 64]>} : memref<32x64xf16, #rows>
  spyre_graph.exp ins(%x : memref<32x64xf16, #rows>) outs(%e : memref<32x64xf16, #rows>)
      {maps = [#same, #same], extents = array<i64: 32, 64>, division = #parts}
  spyre_graph.add ins(%e, %row : memref<32x64xf16, #rows>, memref<64xf16, #row>)
      outs(%y : memref<32x64xf16, #rows>)
      {maps = [#same, #along, #same], extents = array<i64: 32, 64>, division = #parts}
  return
}
