// SPDX-License-Identifier: Apache-2.0
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#indices = #spyre_graph.layout<order = [0], IEEE_INT32>
func.func @main(%table: memref<7x70xf16, #rows> {spyre_graph.name = "table"},
                %index: memref<40xi64, #indices> {spyre_graph.name = "index"},
                %out: memref<40x70xf16, #rows> {spyre_graph.name = "out"}) {
  spyre_graph.gather ins(%table, %index : memref<7x70xf16, #rows>, memref<40xi64, #indices>)
      outs(%out : memref<40x70xf16, #rows>)
      {axis = 0 : i64,
       maps = [affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i)>,
               affine_map<(i, j) -> (i, j)>],
       extents = array<i64: 40, 70>,
       division = #spyre_graph.division<splits = [2, 1], chunks = [32, 70]>}
  return
}
