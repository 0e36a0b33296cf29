// SPDX-License-Identifier: Apache-2.0
// y = exp(x) may run tile by tile; the sum that is added up in place may not.
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
#parts = #spyre_graph.division<splits = [1, 1], chunks = [32, 64]>
func.func @main(%x: memref<32x64xf16, #rows> {spyre_graph.name = "x"},
                %y: memref<32x64xf16, #rows> {spyre_graph.name = "y"},
                %step: memref<32x64xf16, #rows> {spyre_graph.name = "step"},
                %sum: memref<32x64xf16, #rows> {spyre_graph.name = "sum"}) {
  spyre_graph.exp ins(%x : memref<32x64xf16, #rows>) outs(%y : memref<32x64xf16, #rows>)
      {maps = [#same, #same], extents = array<i64: 32, 64>, division = #parts}
  spyre_graph.add ins(%sum, %step : memref<32x64xf16, #rows>, memref<32x64xf16, #rows>)
      outs(%sum : memref<32x64xf16, #rows>)
      {maps = [#same, #same, #same], extents = array<i64: 32, 64>, division = #parts}
  return
}
