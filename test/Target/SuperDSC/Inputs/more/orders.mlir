// SPDX-License-Identifier: Apache-2.0
// Intermediates whose tiles of sticks are the innermost dimension that has more
// than one position, or lie outside of several: without a manifest there is no
// layout for them but by other dimensions.
#x = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
#turned = #spyre_graph.layout<order = [0, 1, 3, 2], SEN169_FP16>
#z = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#same = affine_map<(a, b, i, j) -> (a, b, i, j)>
#joined = affine_map<(a, b, i, j) -> (a * 2 + b, i, j)>
#parts = #spyre_graph.division<splits = [1, 2, 1, 1], chunks = [1, 1, 128, 64]>
#split = #spyre_graph.division<splits = [1, 1, 3, 1], chunks = [4, 2, 3, 128]>
func.func @main(%x: memref<1x2x128x64xf16, #x> {spyre_graph.name = "x"},
                %y: memref<1x2x128x64xf16, #x> {spyre_graph.name = "y"},
                %z: memref<4x2x9x128xf16, #x> {spyre_graph.name = "z"},
                %w: memref<4x2x9x128xf16, #x> {spyre_graph.name = "w"})
    attributes {spyre_graph.pool_size = 65536 : i64} {
  %p = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<pool, offset = 0>} : memref<1x2x128x64xf16, #turned>
  spyre_graph.restickify ins(%x : memref<1x2x128x64xf16, #x>)
      outs(%p : memref<1x2x128x64xf16, #turned>)
      {maps = [#same, #same], extents = array<i64: 1, 2, 128, 64>, division = #parts}
  spyre_graph.restickify ins(%p : memref<1x2x128x64xf16, #turned>)
      outs(%y : memref<1x2x128x64xf16, #x>)
      {maps = [#same, #same], extents = array<i64: 1, 2, 128, 64>, division = #parts}
  %q = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<pool, offset = 32768>} : memref<8x9x128xf16, #z>
  spyre_graph.identity ins(%z : memref<4x2x9x128xf16, #x>)
      outs(%q : memref<8x9x128xf16, #z>)
      {maps = [#same, #joined], extents = array<i64: 4, 2, 9, 128>, division = #split}
  spyre_graph.identity ins(%q : memref<8x9x128xf16, #z>)
      outs(%w : memref<4x2x9x128xf16, #x>)
      {maps = [#joined, #same], extents = array<i64: 4, 2, 9, 128>, division = #split}
  return
}
