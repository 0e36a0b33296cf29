// SPDX-License-Identifier: Apache-2.0
// Nine arguments are three bundles: two of baked addresses, and one of a loop
// that accesses six, which has symbols. Pool and LX hold what goes from one to
// the next.
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
#parts = #spyre_graph.division<splits = [2, 1], chunks = [5, 192]>
#tile = #spyre_graph.division<splits = [2, 1], chunks = [5, 64]>
func.func @main(%a: memref<10x192xf16, #rows> {spyre_graph.name = "a"},
                %b: memref<10x192xf16, #rows> {spyre_graph.name = "b"},
                %c: memref<10x192xf16, #rows> {spyre_graph.name = "c"},
                %d: memref<10x192xf16, #rows> {spyre_graph.name = "d"},
                %e: memref<10x192xf16, #rows> {spyre_graph.name = "e"},
                %f: memref<10x192xf16, #rows> {spyre_graph.name = "f"},
                %g: memref<10x192xf16, #rows> {spyre_graph.name = "g"},
                %out: memref<10x192xf16, #rows> {spyre_graph.name = "out"},
                %tiles: memref<10x192xf16, #rows> {spyre_graph.name = "tiles"})
    attributes {spyre_graph.pool_size = 8192 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c192 = arith.constant 192 : index
  %p = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<pool, offset = 0>} : memref<10x192xf16, #rows>
  %q = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<pool, offset = 3840>} : memref<10x192xf16, #rows>
  %k = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<lx, offset = 0, local = [5, 192]>} : memref<10x192xf16, #rows>
  %m = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<lx, offset = 1920, local = [5, 192]>} : memref<10x192xf16, #rows>
  spyre_graph.add ins(%a, %b : memref<10x192xf16, #rows>, memref<10x192xf16, #rows>)
      outs(%p : memref<10x192xf16, #rows>)
      {maps = [#same, #same, #same], extents = array<i64: 10, 192>, division = #parts}
  spyre_graph.fma ins(%p, %c, %d : memref<10x192xf16, #rows>, memref<10x192xf16, #rows>, memref<10x192xf16, #rows>)
      outs(%k : memref<10x192xf16, #rows>)
      {maps = [#same, #same, #same, #same], extents = array<i64: 10, 192>, division = #parts}
  spyre_graph.mul ins(%k, %e : memref<10x192xf16, #rows>, memref<10x192xf16, #rows>)
      outs(%q : memref<10x192xf16, #rows>)
      {maps = [#same, #same, #same], extents = array<i64: 10, 192>, division = #parts}
  spyre_graph.sub ins(%q, %f : memref<10x192xf16, #rows>, memref<10x192xf16, #rows>)
      outs(%m : memref<10x192xf16, #rows>)
      {maps = [#same, #same, #same], extents = array<i64: 10, 192>, division = #parts}
  spyre_graph.fma ins(%m, %k, %g : memref<10x192xf16, #rows>, memref<10x192xf16, #rows>, memref<10x192xf16, #rows>)
      outs(%out : memref<10x192xf16, #rows>)
      {maps = [#same, #same, #same, #same], extents = array<i64: 10, 192>, division = #parts}
  scf.for %i = %c0 to %c192 step %c64 {
    %l = memref.alloc() {spyre_graph.placement =
        #spyre_graph.placement<lx, offset = 3840, local = [5, 64]>} : memref<10x64xf16, #rows>
    %at = memref.subview %a[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    %bt = memref.subview %b[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    %ct = memref.subview %c[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    %ft = memref.subview %f[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    %gt = memref.subview %g[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    %ot = memref.subview %tiles[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    spyre_graph.fma ins(%at, %bt, %ct : memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>, memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>, memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>)
        outs(%l : memref<10x64xf16, #rows>)
        {maps = [#same, #same, #same, #same], extents = array<i64: 10, 64>, division = #tile}
    spyre_graph.fma ins(%l, %ft, %gt : memref<10x64xf16, #rows>, memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>, memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>)
        outs(%ot : memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>)
        {maps = [#same, #same, #same, #same], extents = array<i64: 10, 64>, division = #tile}
  }
  return
}
