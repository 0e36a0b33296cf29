// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-set-target=target=superdsc --spyre-propagate-layouts | FileCheck %s --check-prefix=COMPATIBLE

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>
#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#t2 = #spyre_graph.layout<order = [1, 0], SEN169_FP16>

// The transposed weight needs no copy: its stick already lies along N.
// CHECK-DAG: #[[$NK:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$N:.+]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK-LABEL: func.func @linear
// CHECK-NOT: view
// CHECK-NOT: restickify
// CHECK: spyre_graph.matmul ins(%arg0, %arg1, %arg2
// CHECK-SAME: extents = array<i64: 128, 250, 512>
// CHECK-SAME: maps = [{{[^]]*}}, #[[$NK]], #[[$N]], {{[^]]*}}]
// CHECK-SAME: -> tensor<128x250xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
func.func @linear(%x: tensor<128x512xf16, #l2>, %w: tensor<250x512xf16, #t2>, %b: tensor<250xf16, #l1>) -> tensor<128x250xf16> {
  %wt = spyre_graph.view %w, affine_map<(d0, d1) -> (d1, d0)> : tensor<250x512xf16, #t2> -> tensor<512x250xf16>
  %e = tensor.empty() : tensor<128x250xf16>
  %r = spyre_graph.matmul ins(%x, %wt, %b : tensor<128x512xf16, #l2>, tensor<512x250xf16>, tensor<250xf16, #l1>) outs(%e : tensor<128x250xf16>) {has_bias} -> tensor<128x250xf16>
  return %r : tensor<128x250xf16>
}

// -----

#l3 = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>

// Heads of q and k are read in place; k alone changes its stick, in the shape
// in which the contraction reads it.
// CHECK-DAG: #[[$K:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1 * 64 + d3)>
// CHECK-DAG: #[[$Q:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1 * 64 + d4)>
// CHECK-LABEL: func.func @scores
// CHECK: %[[K:.+]] = spyre_graph.restickify ins(%arg1
// CHECK-SAME: maps = [#[[$K]], {{[^]]*}}]
// CHECK-SAME: -> tensor<2x8x100x64xf16, #spyre_graph.layout<order = [0, 1, 3, 2], SEN169_FP16>>
// CHECK: spyre_graph.matmul ins(%arg0, %[[K]]
// CHECK-SAME: maps = [#[[$Q]]
func.func @scores(%q: tensor<2x100x512xf16, #l3>, %k: tensor<2x100x512xf16, #l3>) -> tensor<2x8x100x100xf16> {
  %qv = spyre_graph.view %q, affine_map<(b, h, l, d) -> (b, l, h * 64 + d)> : tensor<2x100x512xf16, #l3> -> tensor<2x8x100x64xf16>
  %kh = spyre_graph.view %k, affine_map<(b, l, h, d) -> (b, l, h * 64 + d)> : tensor<2x100x512xf16, #l3> -> tensor<2x100x8x64xf16>
  %kv = spyre_graph.view %kh, affine_map<(b, h, d, l) -> (b, l, h, d)> : tensor<2x100x8x64xf16> -> tensor<2x8x64x100xf16>
  %e = tensor.empty() : tensor<2x8x100x100xf16>
  %r = spyre_graph.matmul ins(%qv, %kv : tensor<2x8x100x64xf16>, tensor<2x8x64x100xf16>) outs(%e : tensor<2x8x100x100xf16>) -> tensor<2x8x100x100xf16>
  return %r : tensor<2x8x100x100xf16>
}

// -----

#l4 = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Merging heads of one stick costs nothing: the lane is the column modulo 64.
// CHECK: #[[$M:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3 floordiv 64, d1, d3 mod 64)>
// CHECK-LABEL: func.func @merge_heads
// CHECK-NOT: identity
// CHECK: spyre_graph.matmul ins(%arg0, %arg1
// CHECK-SAME: maps = [#[[$M]]
func.func @merge_heads(%a: tensor<2x8x100x64xf16, #l4>, %w: tensor<512x512xf16, #l2>) -> tensor<2x100x512xf16> {
  %v = spyre_graph.view %a, affine_map<(b, l, e) -> (b, e floordiv 64, l, e mod 64)> : tensor<2x8x100x64xf16, #l4> -> tensor<2x100x512xf16>
  %e = tensor.empty() : tensor<2x100x512xf16>
  %r = spyre_graph.matmul ins(%v, %w : tensor<2x100x512xf16>, tensor<512x512xf16, #l2>) outs(%e : tensor<2x100x512xf16>) -> tensor<2x100x512xf16>
  return %r : tensor<2x100x512xf16>
}

// Heads of half a stick are first put together by a copy.
// CHECK-LABEL: func.func @merge_half_heads
// CHECK: %[[C:.+]] = spyre_graph.identity ins(%arg0
// CHECK-SAME: -> tensor<2x100x256xf16,
// CHECK: spyre_graph.matmul ins(%[[C]], %arg1
func.func @merge_half_heads(%a: tensor<2x8x100x32xf16, #l4>, %w: tensor<256x512xf16, #l2>) -> tensor<2x100x512xf16> {
  %v = spyre_graph.view %a, affine_map<(b, l, e) -> (b, e floordiv 32, l, e mod 32)> : tensor<2x8x100x32xf16, #l4> -> tensor<2x100x256xf16>
  %e = tensor.empty() : tensor<2x100x512xf16>
  %r = spyre_graph.matmul ins(%v, %w : tensor<2x100x256xf16>, tensor<256x512xf16, #l2>) outs(%e : tensor<2x100x512xf16>) -> tensor<2x100x512xf16>
  return %r : tensor<2x100x512xf16>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// A reduction along the stick leaves one element per stick, which broadcasts
// along the stick again without a copy.
// CHECK-LABEL: func.func @softmax
// CHECK: spyre_graph.max
// CHECK-SAME: -> tensor<33x1xf16, #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>>
// CHECK-NOT: restickify
// CHECK: spyre_graph.sub
// CHECK-SAME: -> tensor<33x65xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
func.func @softmax(%x: tensor<33x65xf16, #l2>) -> tensor<33x65xf16> {
  %e = tensor.empty() : tensor<33x1xf16>
  %m = spyre_graph.max ins(%x : tensor<33x65xf16, #l2>) outs(%e : tensor<33x1xf16>) {dims = array<i64: 1>} -> tensor<33x1xf16>
  %e1 = tensor.empty() : tensor<33x65xf16>
  %s = spyre_graph.sub ins(%x, %m : tensor<33x65xf16, #l2>, tensor<33x1xf16>) outs(%e1 : tensor<33x65xf16>) -> tensor<33x65xf16>
  return %s : tensor<33x65xf16>
}

// A reduction of another dimension keeps the stick.
// CHECK-LABEL: func.func @sum_rows
// CHECK: spyre_graph.sum
// CHECK-SAME: -> tensor<65xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
func.func @sum_rows(%x: tensor<33x65xf16, #l2>) -> tensor<65xf16> {
  %e = tensor.empty() : tensor<65xf16>
  %m = spyre_graph.sum ins(%x : tensor<33x65xf16, #l2>) outs(%e : tensor<65xf16>) {dims = array<i64: 0>} -> tensor<65xf16>
  return %m : tensor<65xf16>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Rotated halves: reading lanes 32 to 63 as lanes 0 to 31 takes a copy; writing
// into the other half is the concatenation's own work.
// CHECK-DAG: #[[$HI:.+]] = affine_map<(d0, d1) -> (d0, d1 + 32)>
// CHECK-DAG: #[[$ID:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @rotate_half
// CHECK: %[[HI:.+]] = spyre_graph.identity ins(%arg0
// CHECK-SAME: maps = [#[[$HI]], #[[$ID]]]
// CHECK: %[[NEG:.+]] = spyre_graph.neg ins(%[[HI]]
// CHECK: %[[LO:.+]] = spyre_graph.identity ins(%[[NEG]]
// CHECK-SAME: maps = [#[[$ID]], #[[$ID]]]
// CHECK: spyre_graph.identity ins(%arg0 {{.*}} outs(%[[LO]]
// CHECK-SAME: maps = [#[[$ID]], #[[$HI]]]
func.func @rotate_half(%x: tensor<4x64xf16, #l2>) -> tensor<4x64xf16> {
  %lo = spyre_graph.view %x, affine_map<(i, j) -> (i, j)> : tensor<4x64xf16, #l2> -> tensor<4x32xf16>
  %hi = spyre_graph.view %x, affine_map<(i, j) -> (i, j + 32)> : tensor<4x64xf16, #l2> -> tensor<4x32xf16>
  %e0 = tensor.empty() : tensor<4x32xf16>
  %n = spyre_graph.neg ins(%hi : tensor<4x32xf16>) outs(%e0 : tensor<4x32xf16>) -> tensor<4x32xf16>
  %e = tensor.empty() : tensor<4x64xf16>
  %c0 = spyre_graph.identity ins(%n : tensor<4x32xf16>) outs(%e : tensor<4x64xf16>) {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], extents = array<i64: 4, 32>} -> tensor<4x64xf16>
  %c1 = spyre_graph.identity ins(%lo : tensor<4x32xf16>) outs(%c0 : tensor<4x64xf16>) {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j + 32)>], extents = array<i64: 4, 32>} -> tensor<4x64xf16>
  return %c1 : tensor<4x64xf16>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Of two operands with different sticks the smaller one is copied, and equal
// copies are made once.
// CHECK-LABEL: func.func @different_sticks
// CHECK: %[[R:.+]] = spyre_graph.restickify ins(%arg1
// CHECK-NOT: restickify
// CHECK: spyre_graph.add ins(%arg0, %[[R]]
// CHECK: spyre_graph.mul ins(%{{.*}}, %[[R]]
func.func @different_sticks(%a: tensor<256x192xf16, #l2>, %b: tensor<192x1xf16, #l2>) -> tensor<256x192xf16> {
  %bt = spyre_graph.view %b, affine_map<(i, j) -> (j, 0)> : tensor<192x1xf16, #l2> -> tensor<256x192xf16>
  %e = tensor.empty() : tensor<256x192xf16>
  %x = spyre_graph.add ins(%a, %bt : tensor<256x192xf16, #l2>, tensor<256x192xf16>) outs(%e : tensor<256x192xf16>) -> tensor<256x192xf16>
  %y = spyre_graph.mul ins(%x, %bt : tensor<256x192xf16>, tensor<256x192xf16>) outs(%e : tensor<256x192xf16>) -> tensor<256x192xf16>
  return %y : tensor<256x192xf16>
}

// A rearranging copy is a view to its one user; here the user needs another
// stick, so it is the copy that changes it.
// CHECK-LABEL: func.func @contiguous
// CHECK-NOT: identity
// CHECK: %[[C:.+]] = spyre_graph.restickify ins(%arg1
// CHECK-NOT: identity
// CHECK: spyre_graph.matmul ins(%arg0, %[[C]]
func.func @contiguous(%x: tensor<128x64xf16, #l2>, %w: tensor<256x64xf16, #l2>) -> tensor<128x256xf16> {
  %wt = spyre_graph.view %w, affine_map<(i, j) -> (j, i)> : tensor<256x64xf16, #l2> -> tensor<64x256xf16>
  %e = tensor.empty() : tensor<64x256xf16>
  %c = spyre_graph.identity ins(%wt : tensor<64x256xf16>) outs(%e : tensor<64x256xf16>) -> tensor<64x256xf16>
  %o = tensor.empty() : tensor<128x256xf16>
  %r = spyre_graph.matmul ins(%x, %c : tensor<128x64xf16, #l2>, tensor<64x256xf16>) outs(%o : tensor<128x256xf16>) -> tensor<128x256xf16>
  return %r : tensor<128x256xf16>
}

// With two users it is made, with the stick where they want it.
// CHECK-LABEL: func.func @copy_for_users
// CHECK: %[[C:.+]] = spyre_graph.identity ins(%arg1
// CHECK-SAME: -> tensor<64x256xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
// CHECK-NOT: restickify
// CHECK: spyre_graph.matmul ins(%arg0, %[[C]]
func.func @copy_for_users(%x: tensor<128x64xf16, #l2>, %w: tensor<256x64xf16, #l2>) -> (tensor<128x256xf16>, tensor<64x256xf16>) {
  %wt = spyre_graph.view %w, affine_map<(i, j) -> (j, i)> : tensor<256x64xf16, #l2> -> tensor<64x256xf16>
  %e = tensor.empty() : tensor<64x256xf16>
  %c = spyre_graph.identity ins(%wt : tensor<64x256xf16>) outs(%e : tensor<64x256xf16>) -> tensor<64x256xf16>
  %o = tensor.empty() : tensor<128x256xf16>
  %r = spyre_graph.matmul ins(%x, %c : tensor<128x64xf16, #l2>, tensor<64x256xf16>) outs(%o : tensor<128x256xf16>) -> tensor<128x256xf16>
  return %r, %c : tensor<128x256xf16>, tensor<64x256xf16>
}

// The old rows of an updated argument are kept by a copy of those rows alone,
// and what nothing uses is not computed.
// CHECK-LABEL: func.func @keep_old
// CHECK-NOT: exp
// CHECK: spyre_graph.identity ins(%arg0 : tensor<256x64xf16, {{.*}} -> tensor<1x64xf16
// CHECK: spyre_graph.identity ins(%arg1 {{.*}} outs(%arg0
func.func @keep_old(%c: tensor<256x64xf16, #l2>, %new: tensor<1x64xf16, #l2>) -> tensor<1x64xf16> {
  %v = spyre_graph.view %c, affine_map<(i, j) -> (7, j)> : tensor<256x64xf16, #l2> -> tensor<1x64xf16>
  %e = tensor.empty() : tensor<1x64xf16>
  %old = spyre_graph.identity ins(%v : tensor<1x64xf16>) outs(%e : tensor<1x64xf16>) -> tensor<1x64xf16>
  %x = spyre_graph.exp ins(%v : tensor<1x64xf16>) outs(%e : tensor<1x64xf16>) -> tensor<1x64xf16>
  %r = spyre_graph.identity ins(%new : tensor<1x64xf16, #l2>) outs(%c : tensor<256x64xf16, #l2>) {maps = [affine_map<(l, d) -> (l, d)>, affine_map<(l, d) -> (l + 7, d)>], extents = array<i64: 1, 64>} -> tensor<256x64xf16, #l2>
  %m = bufferization.materialize_in_destination %r in %c : (tensor<256x64xf16, #l2>, tensor<256x64xf16, #l2>) -> tensor<256x64xf16, #l2>
  %n = spyre_graph.neg ins(%old : tensor<1x64xf16>) outs(%e : tensor<1x64xf16>) -> tensor<1x64xf16>
  return %n : tensor<1x64xf16>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#i1 = #spyre_graph.layout<order = [0], IEEE_INT32>

// A view that keeps the indexed dimension folds into the table, one that ends
// before the table is copied first (indexed-views.mlir has the others); the
// index's stick does not matter.
// CHECK-LABEL: func.func @embedding
// CHECK: %[[C:.+]] = spyre_graph.identity ins(%arg0
// CHECK: spyre_graph.gather ins(%[[C]], %arg1
// CHECK: spyre_graph.gather ins(%arg0, %arg1
// CHECK-SAME: -> tensor<7x32xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
func.func @embedding(%t: tensor<100x64xf16, #l2>, %i: tensor<7xi64, #i1>) -> (tensor<7x64xf16>, tensor<7x32xf16>) {
  %a = spyre_graph.view %t, affine_map<(i, j) -> (i * 2, j)> : tensor<100x64xf16, #l2> -> tensor<40x64xf16>
  %e = tensor.empty() : tensor<7x64xf16>
  %x = spyre_graph.gather ins(%a, %i : tensor<40x64xf16>, tensor<7xi64, #i1>) outs(%e : tensor<7x64xf16>) {axis = 0 : i64} -> tensor<7x64xf16>
  %b = spyre_graph.view %t, affine_map<(i, j) -> (i, j)> : tensor<100x64xf16, #l2> -> tensor<100x32xf16>
  %f = tensor.empty() : tensor<7x32xf16>
  %y = spyre_graph.gather ins(%b, %i : tensor<100x32xf16>, tensor<7xi64, #i1>) outs(%f : tensor<7x32xf16>) {axis = 0 : i64} -> tensor<7x32xf16>
  return %x, %y : tensor<7x64xf16>, tensor<7x32xf16>
}

// Returned views become tensors; an updated argument keeps its layout.
// CHECK-LABEL: func.func @returned
// CHECK: %[[V:.+]] = spyre_graph.identity ins(%arg0
// CHECK: %[[U:.+]] = spyre_graph.identity ins(%{{.*}}) outs(%arg0
// CHECK: bufferization.materialize_in_destination %[[U]] in %arg0
// CHECK: return %[[V]]
func.func @returned(%t: tensor<100x64xf16, #l2>) -> tensor<64x100xf16> {
  %v = spyre_graph.view %t, affine_map<(i, j) -> (j, i)> : tensor<100x64xf16, #l2> -> tensor<64x100xf16>
  %e = tensor.empty() : tensor<100x64xf16>
  %n = spyre_graph.neg ins(%t : tensor<100x64xf16, #l2>) outs(%e : tensor<100x64xf16>) -> tensor<100x64xf16>
  %u = spyre_graph.identity ins(%n : tensor<100x64xf16>) outs(%t : tensor<100x64xf16, #l2>) -> tensor<100x64xf16, #l2>
  %m = bufferization.materialize_in_destination %u in %t : (tensor<100x64xf16, #l2>, tensor<100x64xf16, #l2>) -> tensor<100x64xf16, #l2>
  return %v : tensor<64x100xf16>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Nothing is copied for loops without iterations.
// CHECK-LABEL: func.func @nothing
// CHECK-NOT: restickify
// CHECK: return
func.func @nothing(%a: tensor<0x3xf16, #l2>, %b: tensor<3x0xf16, #l2>) -> tensor<0x3xf16> {
  %bt = spyre_graph.view %b, affine_map<(i, j) -> (j, i)> : tensor<3x0xf16, #l2> -> tensor<0x3xf16>
  %e = tensor.empty() : tensor<0x3xf16>
  %x = spyre_graph.add ins(%a, %bt : tensor<0x3xf16, #l2>, tensor<0x3xf16>) outs(%e : tensor<0x3xf16>) -> tensor<0x3xf16>
  return %x : tensor<0x3xf16>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#i1 = #spyre_graph.layout<order = [0], IEEE_INT32>

// Indices select no lanes: along the stick the op works on a copy with another
// stick. An update is copied back.
// CHECK-LABEL: func.func @gather_columns
// CHECK: %[[T:.+]] = spyre_graph.restickify ins(%arg0
// CHECK-SAME: -> tensor<10x256xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
// CHECK: spyre_graph.gather ins(%[[T]], %arg1
func.func @gather_columns(%t: tensor<10x256xf16, #l2>, %i: tensor<7xi64, #i1>) -> tensor<10x7xf16> {
  %e = tensor.empty() : tensor<10x7xf16>
  %r = spyre_graph.gather ins(%t, %i : tensor<10x256xf16, #l2>, tensor<7xi64, #i1>) outs(%e : tensor<10x7xf16>) {axis = 1 : i64} -> tensor<10x7xf16>
  return %r : tensor<10x7xf16>
}

// Of a view only its part is copied (not for SuperDSC).
// CHECK-LABEL: func.func @gather_columns_of_rows
// CHECK: %[[T:.+]] = spyre_graph.restickify ins(%arg0
// CHECK-SAME: -> tensor<3x256xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
// CHECK: spyre_graph.gather ins(%[[T]], %arg1
// COMPATIBLE-LABEL: func.func @gather_columns_of_rows
// COMPATIBLE: spyre_graph.restickify ins(%arg0
// COMPATIBLE-SAME: -> tensor<65x256xf16
func.func @gather_columns_of_rows(%t: tensor<65x256xf16, #l2>, %i: tensor<7xi64, #i1>) -> tensor<3x7xf16> {
  %v = spyre_graph.view %t, affine_map<(d0, d1) -> (d0 + 31, d1)> : tensor<65x256xf16, #l2> -> tensor<3x256xf16>
  %e = tensor.empty() : tensor<3x7xf16>
  %r = spyre_graph.gather ins(%v, %i : tensor<3x256xf16>, tensor<7xi64, #i1>) outs(%e : tensor<3x7xf16>) {axis = 1 : i64} -> tensor<3x7xf16>
  return %r : tensor<3x7xf16>
}

// CHECK-LABEL: func.func @scatter_elements
// CHECK: %[[T:.+]] = spyre_graph.restickify ins(%arg2
// CHECK-SAME: -> tensor<256xf16, #spyre_graph.layout<order = [0], sparse, SEN169_FP16>>
// CHECK: %[[S:.+]] = spyre_graph.scatter {{.*}} outs(%[[T]]
// CHECK: %[[B:.+]] = spyre_graph.restickify ins(%[[S]] {{.*}} outs(%arg2
// CHECK: materialize_in_destination %[[B]] in %arg2
func.func @scatter_elements(%a: tensor<7xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>, %i: tensor<7xi64, #i1>, %t: tensor<256xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>) {
  %r = spyre_graph.scatter ins(%a, %i : tensor<7xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>, tensor<7xi64, #i1>) outs(%t : tensor<256xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>) {axis = 0 : i64} -> tensor<256xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
  %m = bufferization.materialize_in_destination %r in %t : (tensor<256xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>, tensor<256xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>) -> tensor<256xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
  return
}

// -----

#l4 = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>

// Four query heads share a key head: the keys are copied once, in their own
// shape, and read four times.
// CHECK: #[[$G:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (0, d1 floordiv 4, d3, d4)>
// CHECK-LABEL: func.func @grouped_queries
// CHECK: %[[K:.+]] = spyre_graph.restickify ins(%arg1
// CHECK-SAME: -> tensor<1x2x128x64xf16, #spyre_graph.layout<order = [0, 1, 3, 2], SEN169_FP16>>
// CHECK: spyre_graph.matmul ins(%arg0, %[[K]]
// CHECK-SAME: maps = [{{[^]]*}}, #[[$G]], {{[^]]*}}]
func.func @grouped_queries(%q: tensor<1x8x16x64xf16, #l4>, %k: tensor<1x2x128x64xf16, #l4>) -> tensor<1x8x16x128xf16> {
  %kt = spyre_graph.view %k, affine_map<(b, h, d, s) -> (b, h floordiv 4, s, d)> : tensor<1x2x128x64xf16, #l4> -> tensor<1x8x64x128xf16>
  %e = tensor.empty() : tensor<1x8x16x128xf16>
  %r = spyre_graph.matmul ins(%q, %kt : tensor<1x8x16x64xf16, #l4>, tensor<1x8x64x128xf16>) outs(%e : tensor<1x8x16x128xf16>) -> tensor<1x8x16x128xf16>
  return %r : tensor<1x8x16x128xf16>
}

// CHECK-LABEL: func.func private @declared
func.func private @declared(tensor<4xf16>) -> tensor<4xf16>

// -----

// The weight [out, in] would have to be turned for x . w^T; the tokens are fewer,
// so they are turned and the factors exchanged, even if they fill no stick. Where
// the caller gets the product, nothing is exchanged.
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
// COMPATIBLE-LABEL: func.func @exchanged
// COMPATIBLE-SAME: (%[[X:.*]]: tensor<128x512xf16, {{.*}}>, %[[W:.*]]: tensor<1536x512xf16
// COMPATIBLE: %[[T:.*]] = spyre_graph.restickify ins(%[[W]]
// COMPATIBLE: spyre_graph.matmul ins(%[[X]], %[[T]]
// CHECK-LABEL: func.func @exchanged
// CHECK-SAME: (%[[X:.*]]: tensor<128x512xf16, {{.*}}>, %[[W:.*]]: tensor<1536x512xf16
// CHECK: %[[T:.*]] = spyre_graph.restickify ins(%[[X]]
// CHECK: spyre_graph.matmul ins(%[[W]], %[[T]]
// CHECK-SAME: -> tensor<128x1536xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>
func.func @exchanged(%x: tensor<128x512xf16, #rows>, %w: tensor<1536x512xf16, #rows>) -> tensor<128x1536xf16> {
  %t = spyre_graph.view %w, affine_map<(i, j) -> (j, i)> : tensor<1536x512xf16, #rows> -> tensor<512x1536xf16>
  %e = tensor.empty() : tensor<128x1536xf16>
  %m = spyre_graph.matmul ins(%x, %t : tensor<128x512xf16, #rows>, tensor<512x1536xf16>) outs(%e : tensor<128x1536xf16>) -> tensor<128x1536xf16>
  %r = spyre_graph.relu ins(%m : tensor<128x1536xf16>) outs(%e : tensor<128x1536xf16>) -> tensor<128x1536xf16>
  return %r : tensor<128x1536xf16>
}

// CHECK-LABEL: func.func @few_rows
// CHECK-SAME: (%[[X:.*]]: tensor<32x512xf16, {{.*}}>, %[[W:.*]]: tensor<1536x512xf16
// CHECK: %[[T:.*]] = spyre_graph.restickify ins(%[[X]]
// CHECK: spyre_graph.matmul ins(%[[W]], %[[T]]
func.func @few_rows(%x: tensor<32x512xf16, #rows>, %w: tensor<1536x512xf16, #rows>) -> tensor<32x1536xf16> {
  %t = spyre_graph.view %w, affine_map<(i, j) -> (j, i)> : tensor<1536x512xf16, #rows> -> tensor<512x1536xf16>
  %e = tensor.empty() : tensor<32x1536xf16>
  %m = spyre_graph.matmul ins(%x, %t : tensor<32x512xf16, #rows>, tensor<512x1536xf16>) outs(%e : tensor<32x1536xf16>) -> tensor<32x1536xf16>
  %r = spyre_graph.relu ins(%m : tensor<32x1536xf16>) outs(%e : tensor<32x1536xf16>) -> tensor<32x1536xf16>
  return %r : tensor<32x1536xf16>
}

// CHECK-LABEL: func.func @returned
// CHECK-SAME: (%[[X:.*]]: tensor<128x512xf16, {{.*}}>, %[[W:.*]]: tensor<1536x512xf16
// CHECK: spyre_graph.restickify ins(%[[W]]
func.func @returned(%x: tensor<128x512xf16, #rows>, %w: tensor<1536x512xf16, #rows>) -> tensor<128x1536xf16> {
  %t = spyre_graph.view %w, affine_map<(i, j) -> (j, i)> : tensor<1536x512xf16, #rows> -> tensor<512x1536xf16>
  %e = tensor.empty() : tensor<128x1536xf16>
  %m = spyre_graph.matmul ins(%x, %t : tensor<128x512xf16, #rows>, tensor<512x1536xf16>) outs(%e : tensor<128x1536xf16>) -> tensor<128x1536xf16>
  return %m : tensor<128x1536xf16>
}

// -----

// Reshape, transpose, reshape: which rows a stick belongs to changes, the sticks
// do not, so nothing is copied.
// CHECK-LABEL: func.func @no_op_in_sticks
// CHECK-NOT: identity
// CHECK-NOT: restickify
// CHECK: spyre_graph.exp ins(%arg0
// CHECK-NOT: identity
// CHECK-NOT: restickify
// CHECK: return
#heads = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @no_op_in_sticks(%x: tensor<100x512xf16, #heads>) -> tensor<800x64xf16> {
  %a = spyre_graph.view %x, affine_map<(l, h, d) -> (l, h * 64 + d)> : tensor<100x512xf16, #heads> -> tensor<100x8x64xf16>
  %t = spyre_graph.view %a, affine_map<(h, l, d) -> (l, h, d)> : tensor<100x8x64xf16> -> tensor<8x100x64xf16>
  %c = tensor.empty() : tensor<8x100x64xf16>
  %k = spyre_graph.identity ins(%t : tensor<8x100x64xf16>) outs(%c : tensor<8x100x64xf16>) -> tensor<8x100x64xf16>
  %b = spyre_graph.view %k, affine_map<(i, d) -> (i floordiv 100, i mod 100, d)> : tensor<8x100x64xf16> -> tensor<800x64xf16>
  %e = tensor.empty() : tensor<800x64xf16>
  %r = spyre_graph.exp ins(%b : tensor<800x64xf16>) outs(%e : tensor<800x64xf16>) -> tensor<800x64xf16>
  return %r : tensor<800x64xf16>
}

// There and back again is where it was.
// CHECK-LABEL: func.func @back_again
// CHECK: spyre_graph.exp ins(%arg0
// CHECK-SAME: maps = [#[[$SAME:.+]], #[[$SAME]]]
func.func @back_again(%x: tensor<100x512xf16, #heads>) -> tensor<100x512xf16> {
  %a = spyre_graph.view %x, affine_map<(h, l, d) -> (l, h * 32 + d)> : tensor<100x512xf16, #heads> -> tensor<16x100x32xf16>
  %t = spyre_graph.view %a, affine_map<(l, h, d) -> (h, l, d)> : tensor<16x100x32xf16> -> tensor<100x16x32xf16>
  %b = spyre_graph.view %t, affine_map<(l, e) -> (l, e floordiv 32, e mod 32)> : tensor<100x16x32xf16> -> tensor<100x512xf16>
  %e = tensor.empty() : tensor<100x512xf16>
  %r = spyre_graph.exp ins(%b : tensor<100x512xf16>) outs(%e : tensor<100x512xf16>) -> tensor<100x512xf16>
  return %r : tensor<100x512xf16>
}

// -----

// What the layouts cost, and each copy.
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts --remark-policy=all --remarks-filter=spyre-propagate-layouts -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: layouts {{.*}}Function=remarks | Remark="layouts are priced at {{[0-9]+}} bytes ({{[0-9]+}} cycles), the least possible"
// REMARK: copy {{.*}}Function=remarks | Remark="add reads operand {{[01]}} along another stick: a copy of 8192 bytes (60 cycles to write)"
#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#columns = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
func.func @remarks(%x: tensor<64x64xf16, #rows>, %y: tensor<64x64xf16, #columns>) -> tensor<64x64xf16> {
  %e = tensor.empty() : tensor<64x64xf16>
  %a = spyre_graph.add ins(%x, %y : tensor<64x64xf16, #rows>, tensor<64x64xf16, #columns>) outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %a : tensor<64x64xf16>
}

// -----

// Keys that have grown do not lie along the tokens, whether their number varies
// or not: so they can grow in place.
// CHECK-LABEL: func.func @grown_keys
// CHECK: %[[OLD:.+]] = spyre_graph.identity ins(%arg1
// CHECK-SAME: -> tensor<4x513x64xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>
// CHECK: %[[KEYS:.+]] = spyre_graph.identity ins(%arg2{{.*}} outs(%[[OLD]]
// CHECK: return %{{.+}}, %[[KEYS]]
#keys = #spyre_graph.layout<order = [0, 2, 1], SEN169_FP16>
#heads = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
func.func @grown_keys(%q: tensor<4x8x64xf16, #heads>, %old: tensor<4x512x64xf16, #keys>, %new: tensor<4x1x64xf16, #heads>) -> (tensor<4x8x513xf16>, tensor<4x513x64xf16>) {
  %e = tensor.empty() : tensor<4x513x64xf16>
  %0 = spyre_graph.identity ins(%old : tensor<4x512x64xf16, #keys>) outs(%e : tensor<4x513x64xf16>) {extents = array<i64: 4, 512, 64>, maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]} -> tensor<4x513x64xf16>
  %k = spyre_graph.identity ins(%new : tensor<4x1x64xf16, #heads>) outs(%0 : tensor<4x513x64xf16>) {extents = array<i64: 4, 1, 64>, maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1 + 512, d2)>]} -> tensor<4x513x64xf16>
  %t = spyre_graph.view %k, affine_map<(d0, d1, d2) -> (d0, d2, d1)> : tensor<4x513x64xf16> -> tensor<4x64x513xf16>
  %f = tensor.empty() : tensor<4x8x513xf16>
  %s = spyre_graph.matmul ins(%q, %t : tensor<4x8x64xf16, #heads>, tensor<4x64x513xf16>) outs(%f : tensor<4x8x513xf16>) -> tensor<4x8x513xf16>
  return %s, %k : tensor<4x8x513xf16>, tensor<4x513x64xf16>
}

// CHECK-LABEL: func.func @growing_keys
// CHECK: %[[KEYS:.+]] = spyre_graph.identity ins(%arg1
// CHECK-SAME: -> tensor<4x513x64xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>
// CHECK: return %{{.+}}, %[[KEYS]]
func.func @growing_keys(%q: tensor<4x8x64xf16, #heads>,
    %old: tensor<4x512x64xf16, #keys> {spyre_graph.size_map = affine_map<()[s] -> (4, s, 64)>}, %new: tensor<4x1x64xf16, #heads>)
    -> (tensor<4x8x513xf16> {spyre_graph.size_map = affine_map<()[s] -> (4, 8, s + 1)>},
        tensor<4x513x64xf16> {spyre_graph.size_map = affine_map<()[s] -> (4, s + 1, 64)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %e = tensor.empty() : tensor<4x513x64xf16>
  %0 = spyre_graph.identity ins(%new : tensor<4x1x64xf16, #heads>) outs(%e : tensor<4x513x64xf16>) {extents = array<i64: 4, 513, 64>, extent_map = affine_map<()[s] -> (4, s + 1, 64)>, maps = [affine_map<(d0, d1, d2) -> (d0, 0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]} -> tensor<4x513x64xf16>
  %k = spyre_graph.identity ins(%old : tensor<4x512x64xf16, #keys>) outs(%0 : tensor<4x513x64xf16>) {extents = array<i64: 4, 512, 64>, maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]} -> tensor<4x513x64xf16>
  %t = spyre_graph.view %k, affine_map<(d0, d1, d2) -> (d0, d2, d1)> : tensor<4x513x64xf16> -> tensor<4x64x513xf16>
  %f = tensor.empty() : tensor<4x8x513xf16>
  %s = spyre_graph.matmul ins(%q, %t : tensor<4x8x64xf16, #heads>, tensor<4x64x513xf16>) outs(%f : tensor<4x8x513xf16>) -> tensor<4x8x513xf16>
  return %s, %k : tensor<4x8x513xf16>, tensor<4x513x64xf16>
}

// What is joined along the usual stick dimension, as a mask, stays as it is.
// CHECK-LABEL: func.func @joined_last
// CHECK: return %{{.+}} : tensor<4x64x512xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>
func.func @joined_last(%old: tensor<4x64x448xf16, #heads>, %new: tensor<4x64x64xf16, #heads>) -> tensor<4x64x512xf16> {
  %e = tensor.empty() : tensor<4x64x512xf16>
  %0 = spyre_graph.identity ins(%old : tensor<4x64x448xf16, #heads>) outs(%e : tensor<4x64x512xf16>) {extents = array<i64: 4, 64, 448>, maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]} -> tensor<4x64x512xf16>
  %k = spyre_graph.identity ins(%new : tensor<4x64x64xf16, #heads>) outs(%0 : tensor<4x64x512xf16>) {extents = array<i64: 4, 64, 64>, maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2 + 448)>]} -> tensor<4x64x512xf16>
  return %k : tensor<4x64x512xf16>
}

// -----

#columns = #spyre_graph.layout<order = [1, 0], SEN169_FP16>

// One core would sort all rows of a stick: so the sticks change before, not after.
// CHECK-LABEL: func @sorted
// CHECK: %[[ROWS:.*]] = spyre_graph.restickify ins(%arg0
// CHECK: spyre_graph.sort ins(%[[ROWS]] : tensor<64x512xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>)
// CHECK-NOT: restickify
func.func @sorted(%x: tensor<64x512xf16, #columns>) -> tensor<64x512xf16> {
  %e = tensor.empty() : tensor<64x512xf16>
  %r = spyre_graph.sort ins(%x : tensor<64x512xf16, #columns>)
                        outs(%e : tensor<64x512xf16>) {dim = 1 : i64}
                        -> tensor<64x512xf16>
  return %r : tensor<64x512xf16>
}

// -----

#columns = #spyre_graph.layout<order = [1, 0], SEN169_FP16>

// Likewise, one core would search all rows of a stick.
// CHECK-LABEL: func @largest
// CHECK: %[[ROWS:.*]] = spyre_graph.restickify ins(%arg0
// CHECK: spyre_graph.topk ins(%[[ROWS]] : tensor<64x512xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>)
func.func @largest(%x: tensor<64x512xf16, #columns>) -> tensor<64x8xf16> {
  %e = tensor.empty() : tensor<64x8xf16>
  %r = spyre_graph.topk ins(%x : tensor<64x512xf16, #columns>)
      outs(%e : tensor<64x8xf16>)
      {maps = [affine_map<(i, r, j) -> (i, j)>, affine_map<(i, r, j) -> (i, r)>],
       extents = array<i64: 64, 8, 512>} -> tensor<64x8xf16>
  return %r : tensor<64x8xf16>
}
