// SPDX-License-Identifier: Apache-2.0
// Layer norm in the parts that the device has, statistics in LX and in the pool;
// top-k of the result, values and indices.
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], SEN169_FP16>
#places = #spyre_graph.layout<order = [0, 1], IEEE_INT32>
#same = affine_map<(i, j) -> (i, j)>
#parts = #spyre_graph.division<splits = [2, 1, 1], chunks = [3, 128, 2]>
#rowparts = #spyre_graph.division<splits = [2, 1], chunks = [3, 128]>
#lanes = #spyre_graph.division<splits = [2, 1], chunks = [3, 2]>
#columns = #spyre_graph.division<splits = [1, 2, 1], chunks = [2, 64, 6]>
func.func @main(%x: memref<6x128xf16, #rows> {spyre_graph.name = "x"},
                %w: memref<128xf16, #line> {spyre_graph.name = "w"},
                %y: memref<6x128xf16, #rows> {spyre_graph.name = "y"},
                %values: memref<2x128xf16, #rows> {spyre_graph.name = "values"},
                %indices: memref<2x128xi32, #places> {spyre_graph.name = "indices"})
    attributes {spyre_graph.pool_size = 1024 : i64} {
  %s = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<lx, offset = 256, local = [3, 2]>} : memref<6x2xf16, #rows>
  %t = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<pool, offset = 128>} : memref<6x2xf16, #rows>
  spyre_graph.exx2 ins(%x : memref<6x128xf16, #rows>) outs(%s : memref<6x2xf16, #rows>)
      {scale = 0.0078125, maps = [affine_map<(i, j, l) -> (i, j)>, affine_map<(i, j, l) -> (i, l)>],
       extents = array<i64: 6, 128, 2>, division = #parts}
  spyre_graph.layernormscale ins(%s, %s : memref<6x2xf16, #rows>, memref<6x2xf16, #rows>)
      outs(%t : memref<6x2xf16, #rows>)
      {eps = 1.0e-5, maps = [affine_map<(i, l) -> (i, 0)>, affine_map<(i, l) -> (i, 1)>,
                             affine_map<(i, l) -> (i, l)>],
       extents = array<i64: 6, 2>, division = #lanes}
  spyre_graph.scale_shift ins(%x, %t, %t, %w : memref<6x128xf16, #rows>, memref<6x2xf16, #rows>, memref<6x2xf16, #rows>, memref<128xf16, #line>)
      outs(%y : memref<6x128xf16, #rows>)
      {maps = [#same, affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, 1)>,
               affine_map<(i, j) -> (j)>, #same],
       extents = array<i64: 6, 128>, division = #rowparts}
  spyre_graph.topk ins(%y : memref<6x128xf16, #rows>) outs(%values : memref<2x128xf16, #rows>)
      {maps = [affine_map<(k, j, i) -> (i, j)>, affine_map<(k, j, i) -> (k, j)>],
       extents = array<i64: 2, 128, 6>, division = #columns}
  spyre_graph.topk ins(%y : memref<6x128xf16, #rows>) outs(%indices : memref<2x128xi32, #places>)
      {indices, maps = [affine_map<(k, j, i) -> (i, j)>, affine_map<(k, j, i) -> (k, j)>],
       extents = array<i64: 2, 128, 6>, division = #columns}
  return
}
