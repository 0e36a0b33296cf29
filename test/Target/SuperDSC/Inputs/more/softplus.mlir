// SPDX-License-Identifier: Apache-2.0
// The example of docs/internals/superdsc.md.
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
func.func @main(%x: memref<6x70xf16, #rows> {spyre_graph.name = "x"},
                %y: memref<6x70xf16, #rows> {spyre_graph.name = "y"}) {
  spyre_graph.softplus ins(%x : memref<6x70xf16, #rows>) outs(%y : memref<6x70xf16, #rows>)
      {beta = 1.0 : f64, threshold = 20.0 : f64, maps = [#same, #same],
       extents = array<i64: 6, 70>,
       division = #spyre_graph.division<splits = [2, 1], chunks = [3, 70]>}
  return
}
