// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-pipeline="to-ktir=false" | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-pipeline="to-ktir=false lx-clone-inputs=false" | FileCheck %s --check-prefix=APART

// The maximum and the exponentials read the same tile: it is copied into LX, and
// the exponentials take its place there.
// CHECK-LABEL: func.func @softmax(
// CHECK: scf.for
// CHECK: %[[TILE:.+]] = memref.subview %arg0
// CHECK: %[[COPY:.+]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [64, 2048]>}
// CHECK: spyre_graph.identity ins(%[[TILE]] {{.*}} outs(%[[COPY]] :
// CHECK: spyre_graph.max ins(%[[COPY]] :
// CHECK: %[[E:.+]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [64, 2048]>}
// CHECK: spyre_graph.exp_sub ins(%[[COPY]], {{.*}} outs(%[[E]] :
// CHECK-NOT: subview %arg0
// CHECK: return
// APART-LABEL: func.func @softmax(
// APART-NOT: identity
// APART: return
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @softmax(%x: tensor<16384x2048xf16, #l>) -> tensor<16384x2048xf16> {
  %s = spyre_graph.softmax %x {dim = 1 : i64} : tensor<16384x2048xf16, #l> -> tensor<16384x2048xf16>
  return %s : tensor<16384x2048xf16>
}
