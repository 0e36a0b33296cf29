// SPDX-License-Identifier: Apache-2.0
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
#halves = #spyre_graph.division<splits = [2, 1], chunks = [256, 1024]>
func.func @main(%x: memref<1024x4096xf16, #rows>, %y: memref<1024x4096xf16, #rows>,
                %out: memref<1024x4096xf16, #rows>) {
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  %c1024 = arith.constant 1024 : index
  %c4096 = arith.constant 4096 : index
  scf.for %i = %c0 to %c1024 step %c512 {
    scf.for %j = %c0 to %c4096 step %c1024 {
      %a = memref.alloc() {spyre_graph.placement =
          #spyre_graph.placement<lx, offset = 0, local = [256, 1024]>} : memref<512x1024xf16, #rows>
      %xt = memref.subview %x[%i, %j] [512, 1024] [1, 1]
          : memref<1024x4096xf16, #rows> to memref<512x1024xf16, strided<[4096, 1], offset: ?>, #rows>
      %yt = memref.subview %y[%i, %j] [512, 1024] [1, 1]
          : memref<1024x4096xf16, #rows> to memref<512x1024xf16, strided<[4096, 1], offset: ?>, #rows>
      %t = memref.subview %out[%i, %j] [512, 1024] [1, 1]
          : memref<1024x4096xf16, #rows> to memref<512x1024xf16, strided<[4096, 1], offset: ?>, #rows>
      spyre_graph.add ins(%xt, %yt : memref<512x1024xf16, strided<[4096, 1], offset: ?>, #rows>, memref<512x1024xf16, strided<[4096, 1], offset: ?>, #rows>)
          outs(%a : memref<512x1024xf16, #rows>)
          {maps = [#same, #same, #same], extents = array<i64: 512, 1024>, division = #halves}
      spyre_graph.mul ins(%a, %yt : memref<512x1024xf16, #rows>, memref<512x1024xf16, strided<[4096, 1], offset: ?>, #rows>)
          outs(%t : memref<512x1024xf16, strided<[4096, 1], offset: ?>, #rows>)
          {maps = [#same, #same, #same], extents = array<i64: 512, 1024>, division = #halves}
    }
  }
  return
}
