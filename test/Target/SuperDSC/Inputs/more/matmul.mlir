// SPDX-License-Identifier: Apache-2.0
// A linear layer whose widths are not whole sticks, and a scale in fp32.
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#weight = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], SEN169_FP16>
func.func @main(%x: memref<5x70xf16, #rows> {spyre_graph.name = "x"},
                %w: memref<33x70xf16, #weight> {spyre_graph.name = "w"},
                %b: memref<33xf16, #line> {spyre_graph.name = "b"},
                %y: memref<5x33xf16, #rows> {spyre_graph.name = "y"})
    attributes {spyre_graph.pool_size = 640 : i64} {
  %0 = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>}
      : memref<5x33xf16, #rows>
  spyre_graph.matmul
      ins(%x, %w, %b : memref<5x70xf16, #rows>, memref<33x70xf16, #weight>, memref<33xf16, #line>)
      outs(%0 : memref<5x33xf16, #rows>)
      {alpha = 0.1 : f64, has_bias,
       maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
               affine_map<(m, n, k) -> (n)>, affine_map<(m, n, k) -> (m, n)>],
       extents = array<i64: 5, 33, 70>,
       division = #spyre_graph.division<splits = [5, 1, 1], chunks = [1, 33, 70]>}
  spyre_graph.mul ins(%0 : memref<5x33xf16, #rows>) outs(%y : memref<5x33xf16, #rows>)
      {immediates = [unit, 0.3 : f32],
       maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
       extents = array<i64: 5, 33>,
       division = #spyre_graph.division<splits = [1, 1], chunks = [5, 33]>}
  return
}
