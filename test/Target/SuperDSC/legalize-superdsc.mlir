// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -split-input-file --spyre-legalize-superdsc | FileCheck %s

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>

// A slice at an odd lane goes through a copy whose stick lies along the rows.
// CHECK-LABEL: func.func @odd_lane
// CHECK: %[[TURNED:.*]] = spyre_graph.restickify ins(%{{.*}} : tensor<9x50xf16, {{.*}}[0, 1]{{.*}}>) {{.*}} -> tensor<9x50xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
// CHECK: %[[PART:.*]] = spyre_graph.identity ins(%[[TURNED]] {{.*}} -> tensor<9x37xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
// CHECK: %[[BACK:.*]] = spyre_graph.restickify ins(%[[PART]] {{.*}} -> tensor<9x37xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
// CHECK: spyre_graph.exp ins(%[[BACK]]
func.func @odd_lane(%x: tensor<9x50xf16, #rows>) -> tensor<9x37xf16, #rows> {
  %0 = tensor.empty() : tensor<9x37xf16, #rows>
  %1 = spyre_graph.exp ins(%x : tensor<9x50xf16, #rows>) outs(%0 : tensor<9x37xf16, #rows>)
      {maps = [affine_map<(i, j) -> (i, j + 3)>, #same], extents = array<i64: 9, 37>}
      -> tensor<9x37xf16, #rows>
  return %1 : tensor<9x37xf16, #rows>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], SEN169_FP16>

// Without another dimension each element gets a stick of its own.
// CHECK-LABEL: func.func @one_dimension
// CHECK: spyre_graph.restickify {{.*}} -> tensor<50xf16, #spyre_graph.layout<order = [0], sparse, SEN169_FP16>>
// CHECK: spyre_graph.identity {{.*}} -> tensor<37xf16, #spyre_graph.layout<order = [0], sparse, SEN169_FP16>>
// CHECK: spyre_graph.restickify {{.*}} -> tensor<37xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
func.func @one_dimension(%x: tensor<50xf16, #line>) -> tensor<37xf16, #line> {
  %0 = tensor.empty() : tensor<37xf16, #line>
  %1 = spyre_graph.exp ins(%x : tensor<50xf16, #line>) outs(%0 : tensor<37xf16, #line>)
      {maps = [affine_map<(j) -> (j + 3)>, affine_map<(j) -> (j)>],
       extents = array<i64: 37>} -> tensor<37xf16, #line>
  return %1 : tensor<37xf16, #line>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#cube = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>

// Rows that are read by quotient and remainder are two loops.
// CHECK: #[[SOURCE:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: #[[TARGET:.*]] = affine_map<(d0, d1, d2) -> (d0 * 5 + d1, d2)>
// CHECK-LABEL: func.func @merged_rows
// CHECK: spyre_graph.exp {{.*}} {extents = array<i64: 3, 5, 70>, maps = [#[[SOURCE]], #[[TARGET]]]}
func.func @merged_rows(%x: tensor<3x5x70xf16, #cube>) -> tensor<15x70xf16, #rows> {
  %0 = tensor.empty() : tensor<15x70xf16, #rows>
  %1 = spyre_graph.exp ins(%x : tensor<3x5x70xf16, #cube>) outs(%0 : tensor<15x70xf16, #rows>)
      {maps = [affine_map<(i, j) -> (i floordiv 5, i mod 5, j)>, affine_map<(i, j) -> (i, j)>],
       extents = array<i64: 15, 70>} -> tensor<15x70xf16, #rows>
  return %1 : tensor<15x70xf16, #rows>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#columns = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>

// A change of stick of a part is a copy of the part, then of a whole.
// CHECK-LABEL: func.func @part
// CHECK: %[[PART:.*]] = spyre_graph.identity {{.*}} -> tensor<4x64xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
// CHECK: spyre_graph.restickify ins(%[[PART]]
func.func @part(%x: tensor<9x200xf16, #rows>) -> tensor<4x64xf16, #columns> {
  %0 = tensor.empty() : tensor<4x64xf16, #columns>
  %1 = spyre_graph.restickify ins(%x : tensor<9x200xf16, #rows>)
      outs(%0 : tensor<4x64xf16, #columns>)
      {maps = [affine_map<(i, j) -> (i + 1, j + 64)>, #same],
       extents = array<i64: 4, 64>} -> tensor<4x64xf16, #columns>
  return %1 : tensor<4x64xf16, #columns>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>

// Two parts of one tensor are collected with a stick per element, and turned
// back once.
// CHECK-LABEL: func.func @cat
// CHECK: %[[BOTH:.*]] = tensor.empty() : tensor<5x71xf16, {{.*}}sparse
// CHECK: %[[FIRST:.*]] = spyre_graph.identity {{.*}} outs(%[[BOTH]]
// CHECK: %[[SECOND:.*]] = spyre_graph.identity {{.*}} outs(%[[FIRST]]
// CHECK: %[[RESULT:.*]] = spyre_graph.restickify ins(%[[SECOND]]
// CHECK: return %[[RESULT]]
func.func @cat(%x: tensor<5x30xf16, #rows>, %y: tensor<5x41xf16, #rows>)
    -> tensor<5x71xf16, #rows> {
  %0 = tensor.empty() : tensor<5x71xf16, #rows>
  %1 = spyre_graph.identity ins(%x : tensor<5x30xf16, #rows>) outs(%0 : tensor<5x71xf16, #rows>)
      {maps = [#same, #same], extents = array<i64: 5, 30>} -> tensor<5x71xf16, #rows>
  %2 = spyre_graph.identity ins(%y : tensor<5x41xf16, #rows>) outs(%1 : tensor<5x71xf16, #rows>)
      {maps = [#same, affine_map<(i, j) -> (i, j + 30)>], extents = array<i64: 5, 41>}
      -> tensor<5x71xf16, #rows>
  return %2 : tensor<5x71xf16, #rows>
}

// -----

#line = #spyre_graph.layout<order = [0], SEN169_FP16>
#same = affine_map<(i) -> (i)>

// Whole sticks, too, where another part of the tensor is not: what the first and
// the last part leave out is never read.
// CHECK-LABEL: func.func @cat_of_whole_sticks
// CHECK: %[[ALL:.*]] = tensor.empty() : tensor<192xf16, {{.*}}sparse
// CHECK: %[[FIRST:.*]] = spyre_graph.identity {{.*}} outs(%[[ALL]]
// CHECK: %[[SECOND:.*]] = spyre_graph.identity {{.*}} outs(%[[FIRST]]
// CHECK: %[[THIRD:.*]] = spyre_graph.identity {{.*}} outs(%[[SECOND]]
// CHECK: %[[LAST:.*]] = spyre_graph.identity {{.*}} outs(%[[THIRD]]
// CHECK: %[[RESULT:.*]] = spyre_graph.restickify ins(%[[LAST]]
// CHECK: return %[[RESULT]]
func.func @cat_of_whole_sticks(%x: tensor<64xf16, #line>, %y: tensor<5xf16, #line>,
    %z: tensor<59xf16, #line>) -> tensor<192xf16, #line> {
  %0 = tensor.empty() : tensor<192xf16, #line>
  %1 = spyre_graph.identity ins(%x : tensor<64xf16, #line>) outs(%0 : tensor<192xf16, #line>)
      {maps = [#same, #same], extents = array<i64: 64>} -> tensor<192xf16, #line>
  %2 = spyre_graph.identity ins(%y : tensor<5xf16, #line>) outs(%1 : tensor<192xf16, #line>)
      {maps = [#same, affine_map<(i) -> (i + 64)>], extents = array<i64: 5>}
      -> tensor<192xf16, #line>
  %3 = spyre_graph.identity ins(%z : tensor<59xf16, #line>) outs(%2 : tensor<192xf16, #line>)
      {maps = [#same, affine_map<(i) -> (i + 69)>], extents = array<i64: 59>}
      -> tensor<192xf16, #line>
  %4 = spyre_graph.identity ins(%x : tensor<64xf16, #line>) outs(%3 : tensor<192xf16, #line>)
      {maps = [#same, affine_map<(i) -> (i + 128)>], extents = array<i64: 64>}
      -> tensor<192xf16, #line>
  return %4 : tensor<192xf16, #line>
}

// -----

#line = #spyre_graph.layout<order = [0], SEN169_FP16>

// One stick that is read for each stick of the result: a loop of its own.
// CHECK: #[[WALKED:.*]] = affine_map<(d0, d1) -> (d0 * 64 + d1)>
// CHECK: #[[READ:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @repeated_stick
// CHECK: spyre_graph.add {{.*}} {extents = array<i64: 2, 64>, maps = [#[[WALKED]], #[[READ]], #[[WALKED]]]}
func.func @repeated_stick(%x: tensor<128xf16, #line>, %y: tensor<64xf16, #line>)
    -> tensor<128xf16, #line> {
  %0 = tensor.empty() : tensor<128xf16, #line>
  %1 = spyre_graph.add ins(%x, %y : tensor<128xf16, #line>, tensor<64xf16, #line>)
      outs(%0 : tensor<128xf16, #line>)
      {maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i mod 64)>, affine_map<(i) -> (i)>],
       extents = array<i64: 128>} -> tensor<128xf16, #line>
  return %1 : tensor<128xf16, #line>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#table = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>

// One of four matrices whose rows lie apart: matmuls have no dimension for what
// is skipped.
// CHECK-LABEL: func.func @apart
// CHECK: %[[PART:.*]] = spyre_graph.identity ins(%arg1 {{.*}} -> tensor<128x64xf16, {{.*}}[1, 0]
// CHECK: spyre_graph.matmul ins(%arg0, %[[PART]]
func.func @apart(%x: tensor<8x64xf16, #rows>, %y: tensor<4x64x128xf16, #table>) -> tensor<8x128xf16, #rows> {
  %0 = tensor.empty() : tensor<8x128xf16, #rows>
  %1 = spyre_graph.matmul ins(%x, %y : tensor<8x64xf16, #rows>, tensor<4x64x128xf16, #table>)
      outs(%0 : tensor<8x128xf16, #rows>)
      {maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (2, k, n)>,
               affine_map<(m, n, k) -> (m, n)>], extents = array<i64: 8, 128, 64>}
      -> tensor<8x128xf16, #rows>
  return %1 : tensor<8x128xf16, #rows>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], SEN169_FP16>

// The sum of nothing is 0, the product 1.
// CHECK-LABEL: func.func @nothing
// CHECK: spyre_graph.fill outs({{.*}}) {{{.*}}immediates = [0.000000e+00 : f32]
// CHECK: spyre_graph.fill outs({{.*}}) {{{.*}}immediates = [1.000000e+00 : f32]
func.func @nothing(%x: tensor<0x70xf16, #rows>) -> (tensor<70xf16, #line>, tensor<70xf16, #line>) {
  %0 = tensor.empty() : tensor<70xf16, #line>
  %1 = spyre_graph.sum ins(%x : tensor<0x70xf16, #rows>) outs(%0 : tensor<70xf16, #line>)
      {dims = array<i64: 0>} -> tensor<70xf16, #line>
  %2 = tensor.empty() : tensor<70xf16, #line>
  %3 = spyre_graph.prod ins(%x : tensor<0x70xf16, #rows>) outs(%2 : tensor<70xf16, #line>)
      {dims = array<i64: 0>} -> tensor<70xf16, #line>
  return %1, %3 : tensor<70xf16, #line>, tensor<70xf16, #line>
}

// -----

#cube = #spyre_graph.layout<order = [0, 1, 2, 3, 4], SEN169_FP16>

// Matmuls have two dimensions that are in all tensors: three become one.
// CHECK: #[[COLLECT:.*]] = affine_map<(d0, d1, d2, d3, d4) -> ((d0 * 3 + d1) * 2 + d2, d3, d4)>
// CHECK-LABEL: func.func @three_batches
// CHECK: %[[X:.*]] = spyre_graph.identity ins(%arg0 {{.*}} {extents = array<i64: 4, 3, 2, 9, 64>, maps = [#{{.*}}, #[[COLLECT]]]} -> tensor<24x9x64xf16
// CHECK: %[[Y:.*]] = spyre_graph.identity ins(%arg1 {{.*}} -> tensor<24x128x64xf16
// CHECK: spyre_graph.matmul ins(%[[X]], %[[Y]] {{.*}}extents = array<i64: 24, 9, 128, 64>
// CHECK: spyre_graph.identity {{.*}} -> tensor<4x3x2x9x128xf16
func.func @three_batches(%x: tensor<4x3x2x9x64xf16, #cube>, %y: tensor<4x3x2x64x128xf16, #cube>)
    -> tensor<4x3x2x9x128xf16, #cube> {
  %0 = tensor.empty() : tensor<4x3x2x9x128xf16, #cube>
  %1 = spyre_graph.matmul ins(%x, %y : tensor<4x3x2x9x64xf16, #cube>, tensor<4x3x2x64x128xf16, #cube>)
      outs(%0 : tensor<4x3x2x9x128xf16, #cube>) -> tensor<4x3x2x9x128xf16, #cube>
  return %1 : tensor<4x3x2x9x128xf16, #cube>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#flat = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>

// The first factor varies along all batches: it is expanded.
// CHECK-LABEL: func.func @expanded
// CHECK: %[[X:.*]] = spyre_graph.identity ins(%arg0 {{.*}} -> tensor<3x9x64xf16
// CHECK: spyre_graph.matmul ins(%[[X]], %arg1
func.func @expanded(%x: tensor<9x64xf16, #rows>, %y: tensor<3x64x128xf16, #flat>) -> tensor<3x9x128xf16, #flat> {
  %0 = tensor.empty() : tensor<3x9x128xf16, #flat>
  %1 = spyre_graph.matmul ins(%x, %y : tensor<9x64xf16, #rows>, tensor<3x64x128xf16, #flat>)
      outs(%0 : tensor<3x9x128xf16, #flat>)
      {maps = [affine_map<(b, m, n, k) -> (m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>,
               affine_map<(b, m, n, k) -> (b, m, n)>], extents = array<i64: 3, 9, 128, 64>}
      -> tensor<3x9x128xf16, #flat>
  return %1 : tensor<3x9x128xf16, #flat>
}

// -----

#line = #spyre_graph.layout<order = [0], SEN169_FP16>
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Windows overlap: one copy per place in them.
// CHECK-LABEL: func.func @windows
// CHECK-COUNT-3: spyre_graph.identity {{.*}} -> tensor<48x3xf16
// CHECK-NOT: spyre_graph.identity
func.func @windows(%x: tensor<50xf16, #line>) -> tensor<48x3xf16, #rows> {
  %0 = tensor.empty() : tensor<48x3xf16, #rows>
  %1 = spyre_graph.exp ins(%x : tensor<50xf16, #line>) outs(%0 : tensor<48x3xf16, #rows>)
      {maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (i, j)>],
       extents = array<i64: 48, 3>} -> tensor<48x3xf16, #rows>
  return %1 : tensor<48x3xf16, #rows>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Quotients of an index over all elements: a line of the elements, here of the
// columns, is read at fixed distances.
// CHECK: #[[LINE:.*]] = affine_map<(d0, d1) -> (d1 * 13 + d0)>
// CHECK: #[[READ:.*]] = affine_map<(d0, d1) -> (d0 * 10 + d1)>
// CHECK-LABEL: func.func @reshaped_transpose
// CHECK: %[[ELEMENTS:.*]] = spyre_graph.identity {{.*}} maps = [#{{.*}}, #[[LINE]]]} -> tensor<130xf16, {{.*}}sparse
// CHECK: spyre_graph.identity ins(%[[ELEMENTS]] {{.*}} maps = [#[[READ]]
func.func @reshaped_transpose(%x: tensor<13x10xf16, #rows>) -> tensor<13x10xf16, #rows> {
  %0 = tensor.empty() : tensor<13x10xf16, #rows>
  %1 = spyre_graph.exp ins(%x : tensor<13x10xf16, #rows>) outs(%0 : tensor<13x10xf16, #rows>)
      {maps = [affine_map<(i, j) -> ((i * 10 + j) mod 13, (i * 10 + j) floordiv 13)>,
               affine_map<(i, j) -> (i, j)>], extents = array<i64: 13, 10>} -> tensor<13x10xf16, #rows>
  return %1 : tensor<13x10xf16, #rows>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#columns = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], IEEE_INT32>

// A gather moves sticks as they are; what it gives is turned after it.
// CHECK-LABEL: func.func @gather_across_sticks
// CHECK: %[[GATHERED:.*]] = spyre_graph.gather {{.*}} -> tensor<5x70xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
// CHECK: spyre_graph.restickify {{.*}} -> tensor<5x70xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
func.func @gather_across_sticks(%x: tensor<5x70xf16, #rows>, %i: tensor<5xi64, #line>)
    -> tensor<5x70xf16, #columns> {
  %0 = tensor.empty() : tensor<5x70xf16, #columns>
  %1 = spyre_graph.gather ins(%x, %i : tensor<5x70xf16, #rows>, tensor<5xi64, #line>)
      outs(%0 : tensor<5x70xf16, #columns>) {axis = 0 : i64,
       maps = [affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
       extents = array<i64: 5, 70>} -> tensor<5x70xf16, #columns>
  return %1 : tensor<5x70xf16, #columns>
}

// -----

#stacked = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#indices = #spyre_graph.layout<order = [0, 1], IEEE_INT32>
#same = affine_map<(i, j) -> (i, j)>

// One index per row lies in a stick of its own; a label has the rows' sticks.
// CHECK-LABEL: func.func @one_index_per_row
// CHECK: %[[INDEX:.*]] = spyre_graph.restickify ins(%{{.*}} : tensor<{{.*}}xi64, {{.*}} -> tensor<{{.*}}xi64, #spyre_graph.layout<order = [{{.*}}], IEEE_INT32>>
// CHECK: spyre_graph.gather ins(%{{.*}}, %[[INDEX]]
func.func @one_index_per_row(%x: tensor<5x63xf16, #stacked>, %i: tensor<5x1xi64, #indices>)
    -> tensor<5x1xf16, #stacked> {
  %0 = tensor.empty() : tensor<5x1xf16, #stacked>
  %1 = spyre_graph.gather ins(%x, %i : tensor<5x63xf16, #stacked>, tensor<5x1xi64, #indices>)
      outs(%0 : tensor<5x1xf16, #stacked>) {axis = 1 : i64,
       maps = [affine_map<(i, j) -> (i, 0)>, #same, #same],
       extents = array<i64: 5, 1>} -> tensor<5x1xf16, #stacked>
  return %1 : tensor<5x1xf16, #stacked>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#stacked = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#indices = #spyre_graph.layout<order = [0, 1], IEEE_INT32>
#same = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i, 0)>

// Of one element the index says nothing.
// CHECK-LABEL: func.func @one_element
// CHECK-NOT: gather
// CHECK: spyre_graph.restickify ins(%{{.*}} : tensor<130x1xf16, {{.*}} -> tensor<130x1xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
// CHECK-NOT: gather
func.func @one_element(%x: tensor<130x1xf16, #rows>, %i: tensor<130x1xi64, #indices>)
    -> tensor<130x1xf16, #stacked> {
  %0 = tensor.empty() : tensor<130x1xf16, #stacked>
  %1 = spyre_graph.gather ins(%x, %i : tensor<130x1xf16, #rows>, tensor<130x1xi64, #indices>)
      outs(%0 : tensor<130x1xf16, #stacked>) {axis = 1 : i64,
       maps = [#first, #same, #same], extents = array<i64: 130, 1>}
      -> tensor<130x1xf16, #stacked>
  return %1 : tensor<130x1xf16, #stacked>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>

// What begins again at the end is read from a line that holds it twice.
// CHECK-LABEL: func.func @read_again
// CHECK: %[[LINE:.*]] = spyre_graph.identity {{.*}}extents = array<i64: 7, 2>{{.*}} -> tensor<14xf16, #spyre_graph.layout<order = [0], sparse, SEN169_FP16>>
// CHECK: spyre_graph.identity ins(%[[LINE]] {{.*}} -> tensor<7x2xf16
// CHECK: spyre_graph.exp
func.func @read_again(%x: tensor<7xf16, #line>) -> tensor<7x2xf16, #rows> {
  %0 = tensor.empty() : tensor<7x2xf16, #rows>
  %1 = spyre_graph.exp ins(%x : tensor<7xf16, #line>) outs(%0 : tensor<7x2xf16, #rows>)
      {maps = [affine_map<(i, j) -> ((i * 2 + j) mod 7)>, #same], extents = array<i64: 7, 2>}
      -> tensor<7x2xf16, #rows>
  return %1 : tensor<7x2xf16, #rows>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], SEN169_FP16>

// A write through quotients goes into a line, which is turned back.
// CHECK-LABEL: func.func @write_over_ends
// CHECK: spyre_graph.identity {{.*}} -> tensor<12xf16, #spyre_graph.layout<order = [0], sparse, SEN169_FP16>>
// CHECK: spyre_graph.identity {{.*}} -> tensor<12xf16, #spyre_graph.layout<order = [0], sparse, SEN169_FP16>>
// CHECK: spyre_graph.restickify {{.*}} -> tensor<3x4xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
func.func @write_over_ends(%x: tensor<3xf16, #line>, %y: tensor<3x4xf16, #rows>)
    -> tensor<3x4xf16, #rows> {
  %1 = spyre_graph.identity ins(%x : tensor<3xf16, #line>) outs(%y : tensor<3x4xf16, #rows>)
      {maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ((i * 3) floordiv 4, (i * 3) mod 4)>],
       extents = array<i64: 3>} -> tensor<3x4xf16, #rows>
  return %1 : tensor<3x4xf16, #rows>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#line = #spyre_graph.layout<order = [0], SEN169_FP16>

// A diagonal is at fixed distances where each element has a stick.
// CHECK: #[[DIAGONAL:.*]] = affine_map<(d0) -> (d0, d0)>
// CHECK-LABEL: func.func @write_diagonal
// CHECK: spyre_graph.identity {{.*}}maps = [{{.*}}, #[[DIAGONAL]]]{{.*}} -> tensor<3x4xf16, #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>>
// CHECK: spyre_graph.restickify {{.*}} -> tensor<3x4xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
func.func @write_diagonal(%x: tensor<3xf16, #line>, %y: tensor<3x4xf16, #rows>)
    -> tensor<3x4xf16, #rows> {
  %1 = spyre_graph.identity ins(%x : tensor<3xf16, #line>) outs(%y : tensor<3x4xf16, #rows>)
      {maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ((i * 5) floordiv 4, (i * 5) mod 4)>],
       extents = array<i64: 3>} -> tensor<3x4xf16, #rows>
  return %1 : tensor<3x4xf16, #rows>
}

// -----

#x = #spyre_graph.layout<order = [0, 1], SENINT8>
#out = #spyre_graph.layout<order = [0, 1], IEEE_INT32>

// The right factor of a product of 8 bits is packed. The operation that packs
// converts from fp16.
// CHECK-LABEL: func.func @packed_factor
// CHECK: %[[WIDE:.*]] = spyre_graph.identity ins(%arg1 {{.*}} -> tensor<70x130xf16, #spyre_graph.layout<order = [1, 0],
// CHECK: %[[PACKED:.*]] = spyre_graph.quantize ins(%[[WIDE]] {{.*}} -> tensor<70x130xi8, #spyre_graph.layout<order = [1, 0], packed = 2, SENINT8>>
// CHECK: spyre_graph.matmul ins(%arg0, %[[PACKED]] :
func.func @packed_factor(%x: tensor<3x130xi8, #x>, %y: tensor<130x70xi8, #x>) -> tensor<3x70xi32, #out> {
  %0 = tensor.empty() : tensor<3x70xi32, #out>
  %1 = spyre_graph.matmul ins(%x, %y : tensor<3x130xi8, #x>, tensor<130x70xi8, #x>)
      outs(%0 : tensor<3x70xi32, #out>) -> tensor<3x70xi32, #out>
  return %1 : tensor<3x70xi32, #out>
}

// -----

#x = #spyre_graph.layout<order = [0, 1], SENINT8>
#out = #spyre_graph.layout<order = [0, 1], IEEE_INT32>

// A vector has no second dimension to pack: both factors become fp16.
// CHECK-LABEL: func.func @vector_of_int8
// CHECK-DAG: %[[X:.*]] = spyre_graph.identity ins(%arg0 {{.*}} -> tensor<3x130xf16,
// CHECK-DAG: %[[Y:.*]] = spyre_graph.identity ins(%arg1 {{.*}} -> tensor<130x1xf16,
// CHECK: spyre_graph.matmul ins(%[[X]], %[[Y]] : {{.*}} -> tensor<3x1xi32
func.func @vector_of_int8(%x: tensor<3x130xi8, #x>, %y: tensor<130x1xi8, #x>) -> tensor<3x1xi32, #out> {
  %0 = tensor.empty() : tensor<3x1xi32, #out>
  %1 = spyre_graph.matmul ins(%x, %y : tensor<3x130xi8, #x>, tensor<130x1xi8, #x>)
      outs(%0 : tensor<3x1xi32, #out>) -> tensor<3x1xi32, #out>
  return %1 : tensor<3x1xi32, #out>
}

// -----

#words = #spyre_graph.layout<order = [1, 0, 2], IEEE_INT32>
#rows = #spyre_graph.layout<order = [0, 1], IEEE_FP32>

// An operation that knows its loops by number keeps them: the words are copied.
// CHECK-LABEL: func.func @numbered_loop
// CHECK: spyre_graph.unpack_int4 {{.*}}{dim = 1 : i64, extents = array<i64: 8, 8, 32>
func.func @numbered_loop(%w: tensor<4x2x32xi32, #words>) -> tensor<64x32xf32, #rows> {
  %0 = tensor.empty() : tensor<64x32xf32, #rows>
  %1 = spyre_graph.unpack_int4 ins(%w : tensor<4x2x32xi32, #words>) outs(%0 : tensor<64x32xf32, #rows>)
      {dim = 1 : i64, extents = array<i64: 8, 8, 32>,
       maps = [affine_map<(i, j, n) -> (i floordiv 2, i mod 2, n)>, affine_map<(i, j, n) -> (i * 8 + j, n)>]}
      -> tensor<64x32xf32, #rows>
  return %1 : tensor<64x32xf32, #rows>
}

// -----

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// What a topk searches and counts is in no stick: both go through copies whose sticks lie
// along the rows.
// CHECK-LABEL: func.func @topk
// CHECK: %[[TURNED:.*]] = spyre_graph.restickify ins(%{{.*}} : tensor<34x4xf16, {{.*}}[0, 1]{{.*}}>) {{.*}} -> tensor<34x4xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
// CHECK: %[[LARGEST:.*]] = spyre_graph.topk ins(%[[TURNED]] {{.*}} -> tensor<34x2xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
// CHECK: spyre_graph.restickify ins(%[[LARGEST]] {{.*}} -> tensor<34x2xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
func.func @topk(%x: tensor<34x4xf16, #rows>) -> tensor<34x2xf16, #rows> {
  %0 = tensor.empty() : tensor<34x2xf16, #rows>
  %1 = spyre_graph.topk ins(%x : tensor<34x4xf16, #rows>) outs(%0 : tensor<34x2xf16, #rows>)
      {maps = [affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (i, k)>],
       extents = array<i64: 34, 4, 2>} -> tensor<34x2xf16, #rows>
  return %1 : tensor<34x2xf16, #rows>
}

// -----

#planes = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>

// Windows at every other place of rows of 229: in a line of rows of 229, steps of 2 would fall
// between those of the next row, so its rows have 230.
// CHECK-DAG: #[[LINE:.*]] = affine_map<(d0, d1, d2) -> (d0 * 52670 + d1 * 230 + d2)>
// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0, d1, d2) -> (d2 * 52670 + d0 * 230 + d1 * 2)>
// CHECK-LABEL: func.func @gaps
// CHECK: %[[ZEROS:.*]] = spyre_graph.fill {{.*}} -> tensor<158010xf16,
// CHECK: spyre_graph.identity {{.*}}outs(%[[ZEROS]] :{{.*}}maps = [#{{.*}}, #[[LINE]]]} -> tensor<158010xf16,
// CHECK: spyre_graph.identity {{.*}}maps = [#[[FIRST]], #{{.*}}]} -> tensor<229x112x21xf16,
func.func @gaps(%x: tensor<3x229x229xf16, #planes>) -> tensor<229x112x21xf16, #planes> {
  %0 = tensor.empty() : tensor<229x112x21xf16, #planes>
  %1 = spyre_graph.exp ins(%x : tensor<3x229x229xf16, #planes>) outs(%0 : tensor<229x112x21xf16, #planes>)
      {maps = [affine_map<(h, i, c) -> (c floordiv 7, h, i * 2 + c mod 7)>, affine_map<(h, i, c) -> (h, i, c)>],
       extents = array<i64: 229, 112, 21>} -> tensor<229x112x21xf16, #planes>
  return %1 : tensor<229x112x21xf16, #planes>
}

// -----

#six = #spyre_graph.layout<order = [0, 1, 2, 3, 4, 5], SEN169_FP16>
#five = #spyre_graph.layout<order = [0, 1, 2, 3, 4], SEN169_FP16>

// An operation has eight loops at most: reductions become one.
// CHECK-LABEL: func.func @nine_loops
// CHECK: spyre_graph.sum_products {{.*}}extents = array<i64: 2, 3, 2, 4, 3, 64, 12>
func.func @nine_loops(%x: tensor<2x3x2x6x4x64xf16, #six>, %w: tensor<2x2x3x2x64xf16, #five>) -> tensor<2x3x2x4x3x64xf16, #six> {
  %0 = tensor.empty() : tensor<2x3x2x4x3x64xf16, #six>
  %1 = spyre_graph.sum_products ins(%x, %w : tensor<2x3x2x6x4x64xf16, #six>, tensor<2x2x3x2x64xf16, #five>)
      outs(%0 : tensor<2x3x2x4x3x64xf16, #six>)
      {dims = array<i64: 6, 7, 8>, scale = 1.0 : f64,
       maps = [affine_map<(a, b, c, d, e, f, i, j, k) -> (a, b, i, d + j, e + k, f)>,
               affine_map<(a, b, c, d, e, f, i, j, k) -> (c, i, j, k, f)>,
               affine_map<(a, b, c, d, e, f, i, j, k) -> (a, b, c, d, e, f)>],
       extents = array<i64: 2, 3, 2, 4, 3, 64, 2, 3, 2>} -> tensor<2x3x2x4x3x64xf16, #six>
  return %1 : tensor<2x3x2x4x3x64xf16, #six>
}

// -----

#image = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
#rows = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>

// Windows next to each other are those of conv2d, which reads them in place.
// CHECK-LABEL: func.func @convolution
// CHECK-NOT: identity
// CHECK: spyre_graph.matmul ins(%arg0, %arg1 {{.*}}extents = array<i64: 2, 5, 7, 70, 3, 2, 65>
func.func @convolution(%x: tensor<2x7x8x65xf16, #image>, %w: tensor<3x2x65x70xf16, #rows>) -> tensor<2x5x7x70xf16, #image> {
  %0 = tensor.empty() : tensor<2x5x7x70xf16, #image>
  %1 = spyre_graph.matmul ins(%x, %w : tensor<2x7x8x65xf16, #image>, tensor<3x2x65x70xf16, #rows>)
      outs(%0 : tensor<2x5x7x70xf16, #image>)
      {maps = [affine_map<(n, i, j, m, p, q, k) -> (n, i + p, j + q, k)>,
               affine_map<(n, i, j, m, p, q, k) -> (p, q, k, m)>,
               affine_map<(n, i, j, m, p, q, k) -> (n, i, j, m)>],
       extents = array<i64: 2, 5, 7, 70, 3, 2, 65>} -> tensor<2x5x7x70xf16, #image>
  return %1 : tensor<2x5x7x70xf16, #image>
}

// -----

#image = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
#rows = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>

// Windows two apart are copied, and the places and channels are one reduction.
// CHECK-LABEL: func.func @strided_convolution
// CHECK: spyre_graph.matmul {{.*}}extents = array<i64: 8, 7, 70, 390>
func.func @strided_convolution(%x: tensor<2x9x8x65xf16, #image>, %w: tensor<3x2x65x70xf16, #rows>) -> tensor<2x4x7x70xf16, #image> {
  %0 = tensor.empty() : tensor<2x4x7x70xf16, #image>
  %1 = spyre_graph.matmul ins(%x, %w : tensor<2x9x8x65xf16, #image>, tensor<3x2x65x70xf16, #rows>)
      outs(%0 : tensor<2x4x7x70xf16, #image>)
      {maps = [affine_map<(n, i, j, m, p, q, k) -> (n, i * 2 + p, j + q, k)>,
               affine_map<(n, i, j, m, p, q, k) -> (p, q, k, m)>,
               affine_map<(n, i, j, m, p, q, k) -> (n, i, j, m)>],
       extents = array<i64: 2, 4, 7, 70, 3, 2, 65>} -> tensor<2x4x7x70xf16, #image>
  return %1 : tensor<2x4x7x70xf16, #image>
}
