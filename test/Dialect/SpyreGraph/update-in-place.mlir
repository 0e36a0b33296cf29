// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts --spyre-update-in-place | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-pipeline="verify-each to-ktir=false" | FileCheck %s --check-prefix=PLAN
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts --spyre-update-in-place --remark-policy=all --remarks-filter=spyre-update-in-place -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>

// x += y needs no room for another x.
// REMARK: Function=add_to | Remark="add writes its result into argument 0"
// CHECK-LABEL: func.func @add_to(
// CHECK: %[[R:.+]] = spyre_graph.add ins(%arg0, %arg1 {{.*}} outs(%arg0
// CHECK-NOT: identity
// CHECK: materialize_in_destination %[[R]] in %arg0
// PLAN-LABEL: func.func @add_to(
// PLAN-NOT: memref.alloc
// PLAN: spyre_graph.add ins(%arg0, %arg1 {{.*}} outs(%arg0
// PLAN-NEXT: return
func.func @add_to(%x: tensor<4096x4096xf16, #l>, %y: tensor<4096x4096xf16, #l>) {
  %e = tensor.empty() : tensor<4096x4096xf16>
  %s = spyre_graph.add ins(%x, %y : tensor<4096x4096xf16, #l>, tensor<4096x4096xf16, #l>) outs(%e : tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  %u = spyre_graph.identity ins(%s : tensor<4096x4096xf16>) outs(%x : tensor<4096x4096xf16, #l>) {maps = [#same, #same], extents = array<i64: 4096, 4096>} -> tensor<4096x4096xf16, #l>
  %m = bufferization.materialize_in_destination %u in %x : (tensor<4096x4096xf16, #l>, tensor<4096x4096xf16, #l>) -> tensor<4096x4096xf16, #l>
  return
}

// A part of an argument, through a view: in the loops of the copy.
// CHECK-LABEL: func.func @turned_part(
// CHECK: spyre_graph.exp ins(%arg0 {{.*}} outs(%arg0 {{.*}}extents = array<i64: 64, 128>, maps = [#[[M:.+]], #[[M]]]
// CHECK-NOT: identity
func.func @turned_part(%x: tensor<96x128xf16, #l>) {
  %v = spyre_graph.view %x, affine_map<(i, j) -> (j + 32, i)> : tensor<96x128xf16, #l> -> tensor<128x64xf16>
  %e = tensor.empty() : tensor<128x64xf16>
  %s = spyre_graph.exp ins(%v : tensor<128x64xf16>) outs(%e : tensor<128x64xf16>) -> tensor<128x64xf16>
  %u = spyre_graph.identity ins(%s : tensor<128x64xf16>) outs(%x : tensor<96x128xf16, #l>) {maps = [#turned, affine_map<(i, j) -> (i + 32, j)>], extents = array<i64: 64, 128>} -> tensor<96x128xf16, #l>
  %m = bufferization.materialize_in_destination %u in %x : (tensor<96x128xf16, #l>, tensor<96x128xf16, #l>) -> tensor<96x128xf16, #l>
  return
}

// What reads other places than it writes keeps the copy.
// CHECK-LABEL: func.func @add_reversed(
// CHECK: spyre_graph.add
// CHECK: spyre_graph.identity {{.*}} outs(%arg0
// PLAN-LABEL: func.func @add_reversed(
// PLAN: spyre_graph.add {{.*}} outs(%[[T:alloc.*]] :
// PLAN: spyre_graph.identity ins(%[[T]] {{.*}} outs(%arg0
func.func @add_reversed(%x: tensor<256x128xf16, #l>) {
  %v = spyre_graph.view %x, affine_map<(i, j) -> (255 - i, j)> : tensor<256x128xf16, #l> -> tensor<256x128xf16>
  %e = tensor.empty() : tensor<256x128xf16>
  %s = spyre_graph.add ins(%x, %v : tensor<256x128xf16, #l>, tensor<256x128xf16>) outs(%e : tensor<256x128xf16>) -> tensor<256x128xf16>
  %u = spyre_graph.identity ins(%s : tensor<256x128xf16>) outs(%x : tensor<256x128xf16, #l>) {maps = [#same, #same], extents = array<i64: 256, 128>} -> tensor<256x128xf16, #l>
  %m = bufferization.materialize_in_destination %u in %x : (tensor<256x128xf16, #l>, tensor<256x128xf16, #l>) -> tensor<256x128xf16, #l>
  return
}

// The old contents are read once more: the update moves behind that.
// CHECK-LABEL: func.func @read_before(
// CHECK: spyre_graph.neg ins(%arg0
// CHECK: spyre_graph.exp ins(%arg0 {{.*}} outs(%arg0
// CHECK-NOT: identity
func.func @read_before(%x: tensor<512x128xf16, #l>) -> tensor<512x128xf16> {
  %e = tensor.empty() : tensor<512x128xf16>
  %s = spyre_graph.exp ins(%x : tensor<512x128xf16, #l>) outs(%e : tensor<512x128xf16>) -> tensor<512x128xf16>
  %f = tensor.empty() : tensor<512x128xf16>
  %n = spyre_graph.neg ins(%x : tensor<512x128xf16, #l>) outs(%f : tensor<512x128xf16>) -> tensor<512x128xf16>
  %u = spyre_graph.identity ins(%s : tensor<512x128xf16>) outs(%x : tensor<512x128xf16, #l>) {maps = [#same, #same], extents = array<i64: 512, 128>} -> tensor<512x128xf16, #l>
  %m = bufferization.materialize_in_destination %u in %x : (tensor<512x128xf16, #l>, tensor<512x128xf16, #l>) -> tensor<512x128xf16, #l>
  return %n : tensor<512x128xf16>
}

// A small result that is read again stays in LX; a large one does not fit there.
// CHECK-LABEL: func.func @read_again(
// CHECK: %[[S:.+]] = spyre_graph.exp
// CHECK: spyre_graph.identity ins(%[[S]] {{.*}} outs(%arg0
// CHECK-LABEL: func.func @read_again_large(
// CHECK: spyre_graph.exp ins(%arg0 {{.*}} outs(%arg0
// CHECK-NOT: identity
func.func @read_again(%x: tensor<128x128xf16, #l>) -> tensor<128xf16> {
  %e = tensor.empty() : tensor<128x128xf16>
  %s = spyre_graph.exp ins(%x : tensor<128x128xf16, #l>) outs(%e : tensor<128x128xf16>) -> tensor<128x128xf16>
  %u = spyre_graph.identity ins(%s : tensor<128x128xf16>) outs(%x : tensor<128x128xf16, #l>) {maps = [#same, #same], extents = array<i64: 128, 128>} -> tensor<128x128xf16, #l>
  %m = bufferization.materialize_in_destination %u in %x : (tensor<128x128xf16, #l>, tensor<128x128xf16, #l>) -> tensor<128x128xf16, #l>
  %f = tensor.empty() : tensor<128xf16>
  %r = spyre_graph.max ins(%s : tensor<128x128xf16>) outs(%f : tensor<128xf16>) {dims = array<i64: 1>} -> tensor<128xf16>
  return %r : tensor<128xf16>
}
func.func @read_again_large(%x: tensor<8192x8192xf16, #l>) -> tensor<8192xf16> {
  %e = tensor.empty() : tensor<8192x8192xf16>
  %s = spyre_graph.exp ins(%x : tensor<8192x8192xf16, #l>) outs(%e : tensor<8192x8192xf16>) -> tensor<8192x8192xf16>
  %u = spyre_graph.identity ins(%s : tensor<8192x8192xf16>) outs(%x : tensor<8192x8192xf16, #l>) {maps = [#same, #same], extents = array<i64: 8192, 8192>} -> tensor<8192x8192xf16, #l>
  %m = bufferization.materialize_in_destination %u in %x : (tensor<8192x8192xf16, #l>, tensor<8192x8192xf16, #l>) -> tensor<8192x8192xf16, #l>
  %f = tensor.empty() : tensor<8192xf16>
  %r = spyre_graph.max ins(%s : tensor<8192x8192xf16>) outs(%f : tensor<8192xf16>) {dims = array<i64: 1>} -> tensor<8192xf16>
  return %r : tensor<8192xf16>
}

// A part of a large result is updated before it is stored: all of it in the
// argument.
// CHECK-LABEL: func.func @update_of_a_result(
// CHECK: %[[E:.+]] = spyre_graph.exp ins(%arg0 {{.*}} outs(%arg0
// CHECK: %[[N:.+]] = spyre_graph.neg ins(%[[E]] {{.*}} outs(%[[E]]
// CHECK-NOT: identity
// CHECK: materialize_in_destination %[[N]] in %arg0
// PLAN-LABEL: func.func @update_of_a_result(
// PLAN-NOT: memref.alloc
// PLAN: spyre_graph.exp ins(%arg0 {{.*}} outs(%arg0
// PLAN: spyre_graph.neg ins(%arg0 {{.*}} outs(%arg0
// PLAN-NEXT: return
#rest = affine_map<(i, j) -> (i + 1, j)>
func.func @update_of_a_result(%x: tensor<8192x8192xf16, #l>) {
  %e = tensor.empty() : tensor<8192x8192xf16>
  %s = spyre_graph.exp ins(%x : tensor<8192x8192xf16, #l>) outs(%e : tensor<8192x8192xf16>) -> tensor<8192x8192xf16>
  %v = spyre_graph.view %s, #rest : tensor<8192x8192xf16> -> tensor<8191x8192xf16>
  %f = tensor.empty() : tensor<8191x8192xf16>
  %n = spyre_graph.neg ins(%v : tensor<8191x8192xf16>) outs(%f : tensor<8191x8192xf16>) -> tensor<8191x8192xf16>
  %p = spyre_graph.identity ins(%n : tensor<8191x8192xf16>) outs(%s : tensor<8192x8192xf16>) {maps = [#same, #rest], extents = array<i64: 8191, 8192>} -> tensor<8192x8192xf16>
  %u = spyre_graph.identity ins(%p : tensor<8192x8192xf16>) outs(%x : tensor<8192x8192xf16, #l>) {maps = [#same, #same], extents = array<i64: 8192, 8192>} -> tensor<8192x8192xf16, #l>
  %m = bufferization.materialize_in_destination %u in %x : (tensor<8192x8192xf16, #l>, tensor<8192x8192xf16, #l>) -> tensor<8192x8192xf16, #l>
  return
}

// Any operation may write straight into the argument that it does not read.
// CHECK-LABEL: func.func @product(
// CHECK: spyre_graph.matmul ins(%arg1, %arg2 {{.*}} outs(%arg0
// CHECK-NOT: identity
// CHECK-LABEL: func.func @product_of_itself(
// CHECK: spyre_graph.identity {{.*}} outs(%arg0
func.func @product(%x: tensor<128x128xf16, #l>, %a: tensor<128x128xf16, #l>, %b: tensor<128x128xf16, #l>) {
  %e = tensor.empty() : tensor<128x128xf16>
  %s = spyre_graph.matmul ins(%a, %b : tensor<128x128xf16, #l>, tensor<128x128xf16, #l>) outs(%e : tensor<128x128xf16>) -> tensor<128x128xf16>
  %u = spyre_graph.identity ins(%s : tensor<128x128xf16>) outs(%x : tensor<128x128xf16, #l>) {maps = [#same, #same], extents = array<i64: 128, 128>} -> tensor<128x128xf16, #l>
  %m = bufferization.materialize_in_destination %u in %x : (tensor<128x128xf16, #l>, tensor<128x128xf16, #l>) -> tensor<128x128xf16, #l>
  return
}
func.func @product_of_itself(%x: tensor<128x128xf16, #l>, %b: tensor<128x128xf16, #l>) {
  %e = tensor.empty() : tensor<128x128xf16>
  %s = spyre_graph.matmul ins(%x, %b : tensor<128x128xf16, #l>, tensor<128x128xf16, #l>) outs(%e : tensor<128x128xf16>) -> tensor<128x128xf16>
  %u = spyre_graph.identity ins(%s : tensor<128x128xf16>) outs(%x : tensor<128x128xf16, #l>) {maps = [#same, #same], extents = array<i64: 128, 128>} -> tensor<128x128xf16, #l>
  %m = bufferization.materialize_in_destination %u in %x : (tensor<128x128xf16, #l>, tensor<128x128xf16, #l>) -> tensor<128x128xf16, #l>
  return
}

// -----

// Tile by tile, because a core cannot address its part of the whole. Each tile
// is read and written where it lies.
module attributes {spyre_graph.device = {maxSpanBytes = 65536, numCores = 2}} {
  // PLAN-LABEL: func.func @in_tiles(
  // PLAN-NOT: memref.alloc
  // PLAN: scf.for
  // PLAN: %[[Y:.+]] = memref.subview %arg1
  // PLAN: %[[X:.+]] = memref.subview %arg0
  // PLAN: spyre_graph.add ins(%[[X]], %[[Y]] {{.*}} outs(%[[X]]
  // PLAN-NOT: spyre_graph.identity
  // PLAN: return
  func.func @in_tiles(%x: tensor<512x512xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>, %y: tensor<512x512xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>) {
    %e = tensor.empty() : tensor<512x512xf16>
    %s = spyre_graph.add ins(%x, %y : tensor<512x512xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>, tensor<512x512xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>) outs(%e : tensor<512x512xf16>) -> tensor<512x512xf16>
    %u = spyre_graph.identity ins(%s : tensor<512x512xf16>) outs(%x : tensor<512x512xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>) {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], extents = array<i64: 512, 512>} -> tensor<512x512xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
    %m = bufferization.materialize_in_destination %u in %x : (tensor<512x512xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>, tensor<512x512xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>) -> tensor<512x512xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
    return
  }
}
