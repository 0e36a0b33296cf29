// SPDX-License-Identifier: Apache-2.0
// A slice with gaps along both dimensions, in a row of a larger tensor, and a
// row sum in fp32 that is subtracted again.
#cube = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#sums = #spyre_graph.layout<order = [0, 1], sparse, IEEE_FP32>
#halves = #spyre_graph.division<splits = [2, 1], chunks = [3, 64]>
func.func @main(%x: memref<4x9x200xf16, #cube> {spyre_graph.name = "x"},
                %y: memref<6x64xf16, #rows> {spyre_graph.name = "y"}) {
  %0 = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<lx, offset = 0, local = [3, 1]>} : memref<6x1xf32, #sums>
  spyre_graph.sum ins(%x : memref<4x9x200xf16, #cube>) outs(%0 : memref<6x1xf32, #sums>)
      {dims = array<i64: 1>,
       maps = [affine_map<(i, j) -> (3, i + 2, j + 64)>, affine_map<(i, j) -> (i, 0)>],
       extents = array<i64: 6, 64>, division = #halves}
  spyre_graph.sub ins(%x, %0 : memref<4x9x200xf16, #cube>, memref<6x1xf32, #sums>)
      outs(%y : memref<6x64xf16, #rows>)
      {maps = [affine_map<(i, j) -> (3, i + 2, j + 64)>, affine_map<(i, j) -> (i, 0)>,
               affine_map<(i, j) -> (i, j)>],
       extents = array<i64: 6, 64>, division = #halves}
  return
}
