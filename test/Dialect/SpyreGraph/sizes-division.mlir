// SPDX-License-Identifier: Apache-2.0
// A division for many sizes is chosen where it is worst, not for the largest
// size alone.
// RUN: spyre-opt %s --split-input-file --spyre-decompose --spyre-propagate-layouts --spyre-work-division | FileCheck %s

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// With 16 slices of rows, which are best for 512, the second weight is read
// twice: one transfer serves 8 cores. At fewer rows that is most of what moves.
// CHECK-LABEL: func.func @weights
// CHECK: spyre_graph.matmul
// CHECK: spyre_graph.matmul
// CHECK-SAME: splits = [8, 2, 1], chunks = [64, 64, 384]
func.func @weights(%x: tensor<512x256xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 256)>},
    %w: tensor<256x384xf16, #rows> {spyre_graph.name = "w"},
    %v: tensor<384x128xf16, #rows> {spyre_graph.name = "v"})
    -> (tensor<512x128xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s, 128)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %0 = tensor.empty() : tensor<512x384xf16>
  %p = spyre_graph.matmul ins(%x, %w : tensor<512x256xf16, #rows>, tensor<256x384xf16, #rows>)
      outs(%0 : tensor<512x384xf16>) -> tensor<512x384xf16>
  %1 = tensor.empty() : tensor<512x384xf16>
  %r = spyre_graph.relu ins(%p : tensor<512x384xf16>)
      outs(%1 : tensor<512x384xf16>) -> tensor<512x384xf16>
  %2 = tensor.empty() : tensor<512x128xf16>
  %q = spyre_graph.matmul ins(%r, %v : tensor<512x384xf16>, tensor<384x128xf16, #rows>)
      outs(%2 : tensor<512x128xf16>) -> tensor<512x128xf16>
  return %q : tensor<512x128xf16>
}

// -----

#packed = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#q = affine_map<(b, h, i, j) -> (i, h * 128 + j)>
#k = affine_map<(b, h, i, j) -> (i, h * 128 + j + 256)>
#v = affine_map<(b, h, i, j) -> (i, h * 128 + j + 512)>
#size = affine_map<()[s] -> (1, 2, s, 128)>

// Partners in the sum of the scores would all hold them, so that they could not
// move to where the softmax needs them: rows and columns are split. With 16
// slices of rows the second product would read the values twice: one transfer
// serves 8 cores. Of few rows that is a quarter of what moves. At many it is
// nothing, so that two plans would be better.
// CHECK-LABEL: func.func @scores
// CHECK: spyre_graph.sizes_apart = array<i64: 0, 256>
// CHECK: spyre_graph.matmul
// CHECK-SAME: splits = [1, 2, 2, 8, 1]
// CHECK: spyre_graph.matmul
// CHECK-SAME: splits = [1, 2, 8, 2, 1]
func.func @scores(%x: tensor<512x768xf16, #packed> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 768)>})
    -> (tensor<1x2x512x128xf16> {spyre_graph.name = "out0", spyre_graph.size_map = #size})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %q = spyre_graph.view %x, #q {size_map = #size} : tensor<512x768xf16, #packed> -> tensor<1x2x512x128xf16>
  %k = spyre_graph.view %x, #k {size_map = #size} : tensor<512x768xf16, #packed> -> tensor<1x2x512x128xf16>
  %v = spyre_graph.view %x, #v {size_map = #size} : tensor<512x768xf16, #packed> -> tensor<1x2x512x128xf16>
  %0, %1 = spyre_graph.attention %q, %k, %v {scale = 0.088388347648318433 : f64}
    : tensor<1x2x512x128xf16>, tensor<1x2x512x128xf16>, tensor<1x2x512x128xf16> -> tensor<1x2x512x128xf16>, tensor<1x2x512xf32>
  return %0 : tensor<1x2x512x128xf16>
}

// -----

#packed = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#q = affine_map<(b, h, i, j) -> (i, h * 32 + j)>
#k = affine_map<(b, h, i, j) -> (i, h * 32 + j + 128)>
#v = affine_map<(b, h, i, j) -> (i, h * 32 + j + 256)>
#size = affine_map<()[s] -> (1, 4, s, 32)>

// Scores stay where they are from the first product to the second one. What it
// takes to move them is not less at fewer rows by as much as they are smaller.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT: sizes_apart
// CHECK: spyre_graph.matmul
// CHECK-SAME: splits = [1, 4, 8, 1, 1]
// CHECK: spyre_graph.max
// CHECK-SAME: splits = [1, 4, 8, 1]
// CHECK: spyre_graph.exp_sub
// CHECK-SAME: splits = [1, 4, 8, 1]
// CHECK: spyre_graph.sum
// CHECK-SAME: splits = [1, 4, 8, 1]
// CHECK: spyre_graph.matmul
// CHECK-SAME: splits = [1, 4, 8, 1, 1]
func.func @narrow(%x: tensor<512x384xf16, #packed> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 384)>})
    -> (tensor<1x4x512x32xf16> {spyre_graph.name = "out0", spyre_graph.size_map = #size})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %q = spyre_graph.view %x, #q {size_map = #size} : tensor<512x384xf16, #packed> -> tensor<1x4x512x32xf16>
  %k = spyre_graph.view %x, #k {size_map = #size} : tensor<512x384xf16, #packed> -> tensor<1x4x512x32xf16>
  %v = spyre_graph.view %x, #v {size_map = #size} : tensor<512x384xf16, #packed> -> tensor<1x4x512x32xf16>
  %0, %1 = spyre_graph.attention %q, %k, %v {scale = 0.17677669529663687 : f64, causal}
    : tensor<1x4x512x32xf16>, tensor<1x4x512x32xf16>, tensor<1x4x512x32xf16> -> tensor<1x4x512x32xf16>, tensor<1x4x512xf32>
  return %0 : tensor<1x4x512x32xf16>
}

// -----

#narrow = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Of divisions that differ by little, the one for the largest size is kept.
// CHECK-LABEL: func.func @rows
// CHECK: spyre_graph.sigmoid
// CHECK-SAME: splits = [25, 1]
func.func @rows(%x: tensor<512x64xf16, #narrow> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 64)>})
    -> (tensor<512x64xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s, 64)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %0 = tensor.empty() : tensor<512x64xf16>
  %y = spyre_graph.sigmoid ins(%x : tensor<512x64xf16, #narrow>)
      outs(%0 : tensor<512x64xf16>) -> tensor<512x64xf16>
  %1 = tensor.empty() : tensor<512x64xf16>
  %z = spyre_graph.mul ins(%y, %x : tensor<512x64xf16>, tensor<512x64xf16, #narrow>)
      outs(%1 : tensor<512x64xf16>) -> tensor<512x64xf16>
  return %z : tensor<512x64xf16>
}

// -----

#turned = #spyre_graph.layout<order = [0, 2, 1], SEN169_FP16>
#sums = #spyre_graph.layout<order = [0, 2, 1], IEEE_FP32>
#all = affine_map<(h, i, j) -> (h, i, j)>
#row = affine_map<(h, i, j) -> (h, i, 0)>
#sizes = affine_map<()[s] -> (4, s, s)>

// Sticks run along the rows. The fewer there are, the fewer cores have whole sums, but at
// 512 rows these are faster than sums in parts.
// CHECK-LABEL: func.func @sums
// CHECK: spyre_graph.sum
// CHECK-SAME: splits = [2, 8, 1], chunks = [2, 64, 512]
func.func @sums(%x: tensor<4x512x512xf16, #turned> {spyre_graph.name = "x",
      spyre_graph.size_map = #sizes})
    -> (tensor<4x512x1xf32, #sums> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (4, s, 1)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %0 = tensor.empty() : tensor<4x512x1xf32, #sums>
  %y = spyre_graph.sum ins(%x : tensor<4x512x512xf16, #turned>) outs(%0 : tensor<4x512x1xf32, #sums>)
      {dims = array<i64: 2>, maps = [#all, #row], extents = array<i64: 4, 512, 512>} -> tensor<4x512x1xf32, #sums>
  return %y : tensor<4x512x1xf32, #sums>
}
