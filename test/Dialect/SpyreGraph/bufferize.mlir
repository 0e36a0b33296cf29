// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-bufferize | FileCheck %s --implicit-check-not=memref.copy

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#t2 = #spyre_graph.layout<order = [1, 0], SEN169_FP16>

// Results become out-parameters with the results' attributes; the last op
// writes into them.
// CHECK-LABEL: func.func @results(
// CHECK-SAME: %arg0: memref<16x64xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>> {spyre_graph.name = "x"}
// CHECK-SAME: %arg1: memref<16x64xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>> {spyre_graph.host_strides = array<i64: 1, 16>, spyre_graph.name = "y"}
// CHECK-SAME: %arg2: memref<16x64xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>> {spyre_graph.name = "out1"}
// CHECK: %[[T:.+]] = memref.alloc() : memref<16x64xf16,
// CHECK: spyre_graph.exp ins(%arg0 {{.*}}) outs(%[[T]]
// CHECK: spyre_graph.restickify ins(%[[T]] {{.*}}) outs(%arg1
// CHECK: spyre_graph.neg ins(%[[T]] {{.*}}) outs(%arg2
// CHECK-NOT: identity
// CHECK: return{{$}}
func.func @results(%x: tensor<16x64xf16, #l2> {spyre_graph.name = "x"}) -> (tensor<16x64xf16, #t2> {spyre_graph.host_strides = array<i64: 1, 16>, spyre_graph.name = "y"}, tensor<16x64xf16, #l2>) {
  %e = tensor.empty() : tensor<16x64xf16, #l2>
  %a = spyre_graph.exp ins(%x : tensor<16x64xf16, #l2>) outs(%e : tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  %f = tensor.empty() : tensor<16x64xf16, #t2>
  %b = spyre_graph.restickify ins(%a : tensor<16x64xf16, #l2>) outs(%f : tensor<16x64xf16, #t2>) -> tensor<16x64xf16, #t2>
  %c = spyre_graph.neg ins(%a : tensor<16x64xf16, #l2>) outs(%e : tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  return %b, %c : tensor<16x64xf16, #t2>, tensor<16x64xf16, #l2>
}

// One value returned twice, and an argument returned, are copied by device
// operations with a work division.
// CHECK-LABEL: func.func @aliases(
// CHECK: spyre_graph.exp ins(%arg0 {{.*}}) outs(%arg1
// CHECK: spyre_graph.identity ins(%arg1 {{.*}}) outs(%arg2 {{.*}}division =
// CHECK: spyre_graph.identity ins(%arg0 {{.*}}) outs(%arg3 {{.*}}division =
func.func @aliases(%x: tensor<16x64xf16, #l2>) -> (tensor<16x64xf16, #l2>, tensor<16x64xf16, #l2>, tensor<16x64xf16, #l2>) {
  %e = tensor.empty() : tensor<16x64xf16, #l2>
  %a = spyre_graph.exp ins(%x : tensor<16x64xf16, #l2>) outs(%e : tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  return %a, %a, %x : tensor<16x64xf16, #l2>, tensor<16x64xf16, #l2>, tensor<16x64xf16, #l2>
}

// CHECK-LABEL: func.func @nothing() {
// CHECK-NEXT: return
func.func @nothing() {
  return
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// A cache update writes its row in place and nothing else.
// CHECK-LABEL: func.func @update(
// CHECK-NOT: memref.alloc
// CHECK: spyre_graph.identity ins(%arg1 {{.*}}) outs(%arg0
// CHECK: spyre_graph.exp ins(%arg0 {{.*}}) outs(%arg2
// CHECK-NEXT: return
func.func @update(%c: tensor<16x64xf16, #l2>, %new: tensor<1x64xf16, #l2>) -> tensor<16x64xf16, #l2> {
  %r = spyre_graph.identity ins(%new : tensor<1x64xf16, #l2>) outs(%c : tensor<16x64xf16, #l2>) {maps = [affine_map<(l, d) -> (l, d)>, affine_map<(l, d) -> (l + 7, d)>], extents = array<i64: 1, 64>} -> tensor<16x64xf16, #l2>
  %e = tensor.empty() : tensor<16x64xf16, #l2>
  %x = spyre_graph.exp ins(%r : tensor<16x64xf16, #l2>) outs(%e : tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  %m = bufferization.materialize_in_destination %r in %c : (tensor<16x64xf16, #l2>, tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  return %x : tensor<16x64xf16, #l2>
}

// Where the old value is read afterwards, the update works on a copy first.
// CHECK-LABEL: func.func @update_then_read_old(
// CHECK: %[[T:.+]] = memref.alloc()
// CHECK: spyre_graph.identity ins(%arg0 {{.*}}) outs(%[[T]]
// CHECK: spyre_graph.identity ins(%arg1 {{.*}}) outs(%[[T]]
// CHECK: spyre_graph.exp ins(%arg0 {{.*}}) outs(%arg2
// CHECK: spyre_graph.identity ins(%[[T]] {{.*}}) outs(%arg0
func.func @update_then_read_old(%c: tensor<16x64xf16, #l2>, %new: tensor<1x64xf16, #l2>) -> tensor<16x64xf16, #l2> {
  %r = spyre_graph.identity ins(%new : tensor<1x64xf16, #l2>) outs(%c : tensor<16x64xf16, #l2>) {maps = [affine_map<(l, d) -> (l, d)>, affine_map<(l, d) -> (l + 7, d)>], extents = array<i64: 1, 64>} -> tensor<16x64xf16, #l2>
  %m = bufferization.materialize_in_destination %r in %c : (tensor<16x64xf16, #l2>, tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  %e = tensor.empty() : tensor<16x64xf16, #l2>
  %x = spyre_graph.exp ins(%c : tensor<16x64xf16, #l2>) outs(%e : tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  return %x : tensor<16x64xf16, #l2>
}

// Two arguments swap their contents.
// CHECK-LABEL: func.func @swap(
// CHECK: spyre_graph.identity ins(%arg1 {{.*}}) outs(%[[B:.+]] : memref
// CHECK: spyre_graph.identity ins(%arg0 {{.*}}) outs(%[[A:.+]] : memref
// CHECK: spyre_graph.identity ins(%[[B]] {{.*}}) outs(%arg0
// CHECK: spyre_graph.identity ins(%[[A]] {{.*}}) outs(%arg1
func.func @swap(%a: tensor<16x64xf16, #l2>, %b: tensor<16x64xf16, #l2>) {
  %m = bufferization.materialize_in_destination %b in %a : (tensor<16x64xf16, #l2>, tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  %n = bufferization.materialize_in_destination %a in %b : (tensor<16x64xf16, #l2>, tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  return
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// The whole argument is overwritten: no copy of the old contents.
// CHECK-LABEL: func.func @overwrite(
// CHECK-NOT: memref.alloc
// CHECK: spyre_graph.exp ins(%arg0 {{.*}}) outs(%arg0
// CHECK-NEXT: return
func.func @overwrite(%c: tensor<16x64xf16, #l2>) {
  %x = spyre_graph.exp ins(%c : tensor<16x64xf16, #l2>) outs(%c : tensor<16x64xf16, #l2>) {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], extents = array<i64: 16, 64>} -> tensor<16x64xf16, #l2>
  %m = bufferization.materialize_in_destination %x in %c : (tensor<16x64xf16, #l2>, tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  return
}

// Shifting an argument along itself reads what it overwrites: not in place.
// CHECK-LABEL: func.func @shift(
// CHECK: %[[T:.+]] = memref.alloc()
// CHECK: spyre_graph.identity ins(%arg0 {{.*}}) outs(%[[T]]
// CHECK: spyre_graph.identity ins(%arg0 {{.*}}) outs(%[[T]]
// CHECK: spyre_graph.identity ins(%[[T]] {{.*}}) outs(%arg0
func.func @shift(%c: tensor<16x64xf16, #l2>) {
  %x = spyre_graph.identity ins(%c : tensor<16x64xf16, #l2>) outs(%c : tensor<16x64xf16, #l2>) {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i + 1, j)>], extents = array<i64: 15, 64>} -> tensor<16x64xf16, #l2>
  %m = bufferization.materialize_in_destination %x in %c : (tensor<16x64xf16, #l2>, tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  return
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// An argument that the program does not update keeps its contents: what is
// written into it goes to a copy.
// CHECK-LABEL: func.func @keeps_its_input(
// CHECK-SAME: %arg0: memref<16x64xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>> {spyre_graph.name = "x"}
// CHECK-NOT: outs(%arg0
// CHECK: spyre_graph.identity ins(%arg0
// CHECK-NOT: outs(%arg0
// CHECK: spyre_graph.exp
// CHECK-NOT: outs(%arg0
// CHECK: return
func.func @keeps_its_input(%x: tensor<16x64xf16, #l2> {spyre_graph.name = "x"}, %row: tensor<64xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>) -> tensor<16x64xf16, #l2> {
  %r = spyre_graph.exp ins(%row : tensor<64xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>) outs(%x : tensor<16x64xf16, #l2>) {maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (3, j)>], extents = array<i64: 64>} -> tensor<16x64xf16, #l2>
  return %r : tensor<16x64xf16, #l2>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#v = #spyre_graph.layout<order = [0], SEN169_FP16>
#row = affine_map<(j) -> (j)>
#row3 = affine_map<(j) -> (3, j)>
#row4 = affine_map<(j) -> (4, j)>
#row5 = affine_map<(j) -> (5, j)>

// Several pieces written one after the other into one value share its buffer.
// What is read in between, here after the first two, needs a copy with all of it.
// CHECK-LABEL: func.func @pieces(
// CHECK-NOT: outs(%arg0
// CHECK: %[[COPY:.+]] = memref.alloc()
// CHECK-NEXT: spyre_graph.identity ins(%arg0 {{.*}}) outs(%[[COPY]]
// CHECK: spyre_graph.exp ins(%arg1 {{.*}}) outs(%[[COPY]]
// CHECK: spyre_graph.tanh ins(%arg1 {{.*}}) outs(%[[COPY]]
// CHECK: spyre_graph.identity ins(%[[COPY]] {{.*}}) outs(%[[LAST:.+]] :
// CHECK: spyre_graph.neg ins(%arg1 {{.*}}) outs(%[[LAST]]
// CHECK: spyre_graph.add ins(%[[COPY]], %[[LAST]]
// CHECK-NEXT: return
func.func @pieces(%x: tensor<16x64xf16, #l2>, %row: tensor<64xf16, #v>) -> tensor<16x64xf16, #l2> {
  %a = spyre_graph.exp ins(%row : tensor<64xf16, #v>) outs(%x : tensor<16x64xf16, #l2>) {maps = [#row, #row3], extents = array<i64: 64>} -> tensor<16x64xf16, #l2>
  %b = spyre_graph.tanh ins(%row : tensor<64xf16, #v>) outs(%a : tensor<16x64xf16, #l2>) {maps = [#row, #row4], extents = array<i64: 64>} -> tensor<16x64xf16, #l2>
  %c = spyre_graph.neg ins(%row : tensor<64xf16, #v>) outs(%b : tensor<16x64xf16, #l2>) {maps = [#row, #row5], extents = array<i64: 64>} -> tensor<16x64xf16, #l2>
  %e = tensor.empty() : tensor<16x64xf16, #l2>
  %s = spyre_graph.add ins(%b, %c : tensor<16x64xf16, #l2>, tensor<16x64xf16, #l2>) outs(%e : tensor<16x64xf16, #l2>) -> tensor<16x64xf16, #l2>
  return %s : tensor<16x64xf16, #l2>
}

// -----

// Rows that are added to a row of themselves. The copy that keeps what is read has
// as many rows as there are.
// CHECK: #[[ROWS:.*]] = affine_map<()[s0] -> (s0, 64)>
// CHECK-LABEL: func.func @rows_onto_themselves
// CHECK: spyre_graph.add {{.*}} outs(%[[VALUES:.*]] : memref
// CHECK: spyre_graph.identity ins(%[[VALUES]] : {{.*}} outs(%[[OUT:.*]] : memref{{.*}}extent_map = #[[ROWS]]
// CHECK: spyre_graph.scatter_add ins(%[[VALUES]], {{.*}} outs(%[[OUT]] :
#layout = #spyre_graph.layout<order = [0, 1], IEEE_INT32>
#same = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>
func.func @rows_onto_themselves(
    %x: tensor<512x64xi64, #layout> {spyre_graph.size_map = #rows},
    %index: tensor<512x64xi64, #layout> {spyre_graph.size_map = #rows})
    -> (tensor<512x64xi64, #layout> {spyre_graph.size_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %e = tensor.empty() : tensor<512x64xi64, #layout>
  %v = spyre_graph.add ins(%x : tensor<512x64xi64, #layout>)
      outs(%e : tensor<512x64xi64, #layout>)
      {maps = [#same, #same], extents = array<i64: 512, 64>, extent_map = #rows,
       immediates = [unit, 1]} -> tensor<512x64xi64, #layout>
  %r = spyre_graph.scatter_add ins(%v, %index : tensor<512x64xi64, #layout>, tensor<512x64xi64, #layout>)
      outs(%v : tensor<512x64xi64, #layout>)
      {axis = 0 : i64, maps = [#same, #same, affine_map<(i, j) -> (0, j)>],
       extents = array<i64: 512, 64>, extent_map = #rows} -> tensor<512x64xi64, #layout>
  return %r : tensor<512x64xi64, #layout>
}
