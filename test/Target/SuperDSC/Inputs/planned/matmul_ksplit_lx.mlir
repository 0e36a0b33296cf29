// SPDX-License-Identifier: Apache-2.0
// Each pair of neighbouring cores computes half of the products of an element;
// both hold the sum.
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: memref<128x256xf16, #rows>, %y: memref<256x192xf16, #rows>) {
  %out = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<lx, offset = 4096, local = [32, 64]>} : memref<128x192xf16, #rows>
  spyre_graph.matmul ins(%x, %y : memref<128x256xf16, #rows>, memref<256x192xf16, #rows>)
      outs(%out : memref<128x192xf16, #rows>)
      {maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
               affine_map<(m, n, k) -> (m, n)>], extents = array<i64: 128, 192, 256>,
       division = #spyre_graph.division<splits = [4, 3, 2], chunks = [32, 64, 128], order = [2, 0, 1]>}
  return
}
