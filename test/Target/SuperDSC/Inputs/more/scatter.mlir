// SPDX-License-Identifier: Apache-2.0
// Rows written through indices, two of them to the same place.
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#index = #spyre_graph.layout<order = [0], IEEE_INT32>
func.func @main(%x: memref<5x128xf16, #rows> {spyre_graph.name = "x"},
                %i: memref<5xi32, #index> {spyre_graph.name = "i"},
                %out: memref<4x128xf16, #rows> {spyre_graph.name = "out"}) {
  spyre_graph.scatter ins(%x, %i : memref<5x128xf16, #rows>, memref<5xi32, #index>)
      outs(%out : memref<4x128xf16, #rows>)
      {axis = 0 : i64,
       maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
               affine_map<(i, j) -> (0, j)>],
       extents = array<i64: 5, 128>,
       division = #spyre_graph.division<splits = [1, 2], chunks = [5, 64]>}
  return
}
