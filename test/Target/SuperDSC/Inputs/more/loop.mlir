// SPDX-License-Identifier: Apache-2.0
// Tiles of arguments and of a buffer in the pool, in loops that start late or do
// nothing; a column, which the tiles of its matrix share; what is left after the
// loop reads all tiles. Seven arguments: the loop's bundle has symbols.
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#one = #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (i, 0)>
#parts = #spyre_graph.division<splits = [2, 1], chunks = [5, 64]>
#whole = #spyre_graph.division<splits = [1, 3], chunks = [10, 64]>
func.func @main(%a: memref<10x192xf16, #rows> {spyre_graph.name = "a"},
                %b: memref<10x192xf16, #rows> {spyre_graph.name = "b"},
                %c: memref<10x192xf16, #rows> {spyre_graph.name = "c"},
                %s: memref<10x1xf16, #one> {spyre_graph.name = "s"},
                %d: memref<10x192xf16, #rows> {spyre_graph.name = "d"},
                %e: memref<10x192xf16, #rows> {spyre_graph.name = "e"},
                %out: memref<10x192xf16, #rows> {spyre_graph.name = "out"})
    attributes {spyre_graph.pool_size = 4096 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c192 = arith.constant 192 : index
  %p = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<pool, offset = 128>} : memref<10x192xf16, #rows>
  spyre_graph.add ins(%a, %d : memref<10x192xf16, #rows>, memref<10x192xf16, #rows>)
      outs(%p : memref<10x192xf16, #rows>)
      {maps = [#same, #same, #same], extents = array<i64: 10, 192>, division = #whole}
  scf.for %i = %c0 to %c192 step %c64 {
    %l = memref.alloc() {spyre_graph.placement =
        #spyre_graph.placement<lx, offset = 256, local = [5, 64]>} : memref<10x64xf16, #rows>
    %at = memref.subview %a[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    %bt = memref.subview %b[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    %ct = memref.subview %c[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    %dt = memref.subview %d[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    %et = memref.subview %e[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    spyre_graph.fma ins(%at, %bt, %ct : memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>, memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>, memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>)
        outs(%l : memref<10x64xf16, #rows>)
        {maps = [#same, #same, #same, #same], extents = array<i64: 10, 64>, division = #parts}
    spyre_graph.fma ins(%l, %s, %dt : memref<10x64xf16, #rows>, memref<10x1xf16, #one>, memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>)
        outs(%et : memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>)
        {maps = [#same, #column, #same, #same], extents = array<i64: 10, 64>, division = #parts}
  }
  scf.for %i = %c64 to %c192 step %c64 {
    %pt = memref.subview %p[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    %ft = memref.subview %e[0, 0] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1]>, #rows>
    spyre_graph.sub ins(%pt, %ft : memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>, memref<10x64xf16, strided<[192, 1]>, #rows>)
        outs(%pt : memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>)
        {maps = [#same, #same, #same], extents = array<i64: 10, 64>, division = #parts}
  }
  scf.for %i = %c192 to %c0 step %c64 {
    %pt = memref.subview %p[0, %i] [10, 64] [1, 1]
        : memref<10x192xf16, #rows> to memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>
    spyre_graph.neg ins(%pt : memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>)
        outs(%pt : memref<10x64xf16, strided<[192, 1], offset: ?>, #rows>)
        {maps = [#same, #same], extents = array<i64: 10, 64>, division = #parts}
  }
  spyre_graph.mul ins(%p, %e : memref<10x192xf16, #rows>, memref<10x192xf16, #rows>)
      outs(%out : memref<10x192xf16, #rows>)
      {maps = [#same, #same, #same], extents = array<i64: 10, 192>, division = #whole}
  return
}
