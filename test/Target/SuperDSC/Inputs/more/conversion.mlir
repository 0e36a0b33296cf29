// SPDX-License-Identifier: Apache-2.0
// A line has a dimension beside the stick when it is converted.
#half = #spyre_graph.layout<order = [0], SEN169_FP16>
#single = #spyre_graph.layout<order = [0], IEEE_FP32>
#same = affine_map<(i) -> (i)>
func.func @main(%x: memref<128xf16, #half> {spyre_graph.name = "x"},
                %y: memref<128xf32, #single> {spyre_graph.name = "y"},
                %z: memref<128xf16, #half> {spyre_graph.name = "z"}) {
  spyre_graph.identity ins(%x : memref<128xf16, #half>) outs(%y : memref<128xf32, #single>)
      {maps = [#same, #same], extents = array<i64: 128>,
       division = #spyre_graph.division<splits = [2], chunks = [64]>}
  spyre_graph.identity ins(%y : memref<128xf32, #single>) outs(%z : memref<128xf16, #half>)
      {maps = [#same, #same], extents = array<i64: 128>,
       division = #spyre_graph.division<splits = [2], chunks = [64]>}
  return
}
