// SPDX-License-Identifier: Apache-2.0
// Loops that run along two dimensions of what they read: the main diagonal of
// squares of rows, and one beside it, of each of three.
#square = #spyre_graph.layout<order = [2, 0, 1, 3], SEN169_FP16>
#batch = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
#cube = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
func.func @main(%x: memref<6x67x6x64xf16, #square> {spyre_graph.name = "x"},
                %b: memref<3x6x5x64xf16, #batch> {spyre_graph.name = "b"},
                %y: memref<6x6x64xf16, #cube> {spyre_graph.name = "y"},
                %z: memref<3x4x64xf16, #cube> {spyre_graph.name = "z"}) {
  spyre_graph.exp ins(%x : memref<6x67x6x64xf16, #square>) outs(%y : memref<6x6x64xf16, #cube>)
      {maps = [affine_map<(i, k, j) -> (i, i, k, j)>, affine_map<(i, k, j) -> (i, k, j)>],
       extents = array<i64: 6, 6, 64>,
       division = #spyre_graph.division<splits = [2, 1, 1], chunks = [3, 6, 64]>}
  spyre_graph.exp ins(%b : memref<3x6x5x64xf16, #batch>) outs(%z : memref<3x4x64xf16, #cube>)
      {maps = [affine_map<(n, i, j) -> (n, i + 2, i + 1, j)>, affine_map<(n, i, j) -> (n, i, j)>],
       extents = array<i64: 3, 4, 64>,
       division = #spyre_graph.division<splits = [3, 1, 1], chunks = [1, 4, 64]>}
  return
}
