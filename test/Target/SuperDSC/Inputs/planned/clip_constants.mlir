// SPDX-License-Identifier: Apache-2.0
#line = #spyre_graph.layout<order = [0], SEN169_FP16>
#same = affine_map<(i) -> (i)>
func.func @main(%x: memref<128xf16, #line>, %out: memref<128xf16, #line>) {
  spyre_graph.clamp ins(%x : memref<128xf16, #line>) outs(%out : memref<128xf16, #line>)
      {immediates = [unit, 0.0 : f32, 6.0 : f32], maps = [#same, #same],
       extents = array<i64: 128>,
       division = #spyre_graph.division<splits = [2], chunks = [64]>}
  return
}
