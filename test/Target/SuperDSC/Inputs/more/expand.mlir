// SPDX-License-Identifier: Apache-2.0
// One element for all: a copy, not a change of stick.
#scalar = #spyre_graph.layout<order = [], sparse, SEN169_FP16>
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: memref<f16, #scalar> {spyre_graph.name = "x"},
                %y: memref<8x128xf16, #rows> {spyre_graph.name = "y"}) {
  spyre_graph.identity ins(%x : memref<f16, #scalar>) outs(%y : memref<8x128xf16, #rows>)
      {maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
       extents = array<i64: 8, 128>,
       division = #spyre_graph.division<splits = [8, 1], chunks = [1, 128]>}
  return
}
