// SPDX-License-Identifier: Apache-2.0
// A plan that --spyre-verify-plan accepts; test_plan_verifier.py breaks it.
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

// Parts that move between cores.
#b = #spyre_graph.division<splits = [2, 2], chunks = [32, 64]>
func.func @moved(%x: memref<64x128xf16, #l>, %y: memref<64x128xf16, #l>) {
  %held = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [16, 128]>} : memref<64x128xf16, #l>
  %blk = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 4096, local = [32, 64]>} : memref<64x128xf16, #l>
  spyre_graph.tanh ins(%x : memref<64x128xf16, #l>) outs(%held : memref<64x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 128>, division = #d}
  spyre_graph.reshard ins(%held : memref<64x128xf16, #l>) outs(%blk : memref<64x128xf16, #l>) {source_division = #d, maps = [#id, #id], extents = array<i64: 64, 128>, division = #b}
  spyre_graph.abs ins(%blk : memref<64x128xf16, #l>) outs(%y : memref<64x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 64, 128>, division = #b}
  return
}

// A reduction that accumulates from tile to tile.
#r = affine_map<(i) -> (i)>
#e = #spyre_graph.layout<order = [0], sparse, SEN169_FP16>
#d1 = #spyre_graph.division<splits = [4], chunks = [16]>
#d2 = #spyre_graph.division<splits = [4, 1], chunks = [16, 64]>
func.func @parts(%x: memref<64x128xf16, #l>, %y: memref<64xf16, #e>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %least = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [16]>} : memref<64xf16, #e>
  spyre_graph.fill outs(%least : memref<64xf16, #e>) {immediates = [1.0e+04 : f32], maps = [#r], extents = array<i64: 64>, division = #d1}
  scf.for %k = %c0 to %c128 step %c64 {
    %tile = memref.subview %x[0, %k] [64, 64] [1, 1] : memref<64x128xf16, #l> to memref<64x64xf16, strided<[128, 1], offset: ?>, #l>
    %part = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 2048, local = [16]>} : memref<64xf16, #e>
    spyre_graph.min ins(%tile : memref<64x64xf16, strided<[128, 1], offset: ?>, #l>) outs(%part : memref<64xf16, #e>) {dims = array<i64: 1>, maps = [#id, affine_map<(i, j) -> (i)>], extents = array<i64: 64, 64>, division = #d2}
    spyre_graph.minimum ins(%least, %part : memref<64xf16, #e>, memref<64xf16, #e>) outs(%least : memref<64xf16, #e>) {maps = [#r, #r, #r], extents = array<i64: 64>, division = #d1}
  }
  spyre_graph.sqrt ins(%least : memref<64xf16, #e>) outs(%y : memref<64xf16, #e>) {maps = [#r, #r], extents = array<i64: 64>, division = #d1}
  return
}
