// SPDX-License-Identifier: Apache-2.0
// A plan that --spyre-verify-plan accepts; verify_faults.py breaks it.
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#c = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#o = #spyre_graph.layout<order = [0], SEN169_FP16>
#f = #spyre_graph.layout<order = [0, 1], IEEE_FP32>
#w = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#s = #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>
#i = #spyre_graph.layout<order = [0], IEEE_INT32>
#id = affine_map<(i, j) -> (i, j)>
#id3 = affine_map<(i, j, k) -> (i, j, k)>
#row = affine_map<(i, j) -> (i, 0)>
#d = #spyre_graph.division<splits = [4, 1], chunks = [16, 128]>
func.func @main(%x: memref<64x128xf16, #l>, %w: memref<128x192xf16, #l>, %n: memref<64xi64, #i>, %y: memref<64x192xf16, #l>) attributes {spyre_graph.pool_size = 57344 : i64} {
  %max = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 4096, local = [16, 1]>} : memref<64x1xf16, #s>
  %sub = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [16, 128]>} : memref<64x128xf16, #l>
  %exp = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [16, 128]>} : memref<64x128xf16, #l>
  %gat = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<64x128xf16, #l>
  %sum = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 16384>} : memref<64x128xf16, #l>
  %mm = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 32768>} : memref<64x192xf16, #l>
  spyre_graph.max ins(%x : memref<64x128xf16, #l>) outs(%max : memref<64x1xf16, #s>) {dims = array<i64: 1>, maps = [#id, #row], extents = array<i64: 64, 128>, division = #d}
  spyre_graph.sub ins(%x, %max : memref<64x128xf16, #l>, memref<64x1xf16, #s>) outs(%sub : memref<64x128xf16, #l>) {maps = [#id, #row, #id], extents = array<i64: 64, 128>, division = #d}
  spyre_graph.exp ins(%sub : memref<64x128xf16, #l>) outs(%exp : memref<64x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 128>, division = #d}
  spyre_graph.gather ins(%x, %n : memref<64x128xf16, #l>, memref<64xi64, #i>) outs(%gat : memref<64x128xf16, #l>) {axis = 0 : i64, maps = [affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i)>, #id], extents = array<i64: 64, 128>, division = #d}
  spyre_graph.add ins(%exp, %gat : memref<64x128xf16, #l>, memref<64x128xf16, #l>) outs(%sum : memref<64x128xf16, #l>) {maps = [#id, #id, #id], extents = array<i64: 64, 128>, division = #d}
  spyre_graph.matmul ins(%sum, %w : memref<64x128xf16, #l>, memref<128x192xf16, #l>) outs(%mm : memref<64x192xf16, #l>) {maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], extents = array<i64: 64, 192, 128>, division = #spyre_graph.division<splits = [2, 3, 1], chunks = [32, 64, 128]>}
  spyre_graph.relu ins(%mm : memref<64x192xf16, #l>) outs(%y : memref<64x192xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 192>, division = #spyre_graph.division<splits = [4, 1], chunks = [16, 192]>}
  return
}
