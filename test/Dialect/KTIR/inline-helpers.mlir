// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --ktdp-inline-helpers --split-input-file | FileCheck %s
// RUN: echo 'module {}' | spyre-opt --ktdp-inline-helpers | FileCheck %s --check-prefix=EMPTY

// EMPTY: module {

// In loops and in other helpers, too; a helper that nothing calls goes away.
// CHECK-LABEL: func.func @kernel
// CHECK-NOT: call
// CHECK: scf.for
// CHECK-COUNT-2: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK-NOT: call
// CHECK: return
// CHECK-NOT: func.func
func.func @kernel(%n: index) attributes {grid = [2]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero) -> f32 {
    %k = func.call @step(%i) : (index) -> index
    func.call @nothing(%k) : (index) -> ()
    %y = func.call @twice(%x) : (f32) -> f32
    scf.yield %y : f32
  }
  return
}
func.func private @step(%i: index) -> index {
  %r = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
  return %r : index
}
func.func private @nothing(%n: index) {
  return
}
func.func private @twice(%x: f32) -> f32 {
  %y = func.call @square(%x) : (f32) -> f32
  %z = func.call @square(%y) : (f32) -> f32
  return %z : f32
}
func.func private @square(%x: f32) -> f32 {
  %y = arith.mulf %x, %x : f32
  return %y : f32
}

// -----

// A sequence's calls stay unless they have results or hand over views.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: arith.addi
// CHECK-NEXT: call @kernel
// CHECK-NEXT: call @part
// CHECK-NEXT: return
// CHECK: func.func private @part
// CHECK-NEXT: call @kernel
// CHECK: func.func private @kernel
// CHECK-NOT: func.func private @sum
func.func @main(%n: index) {
  %s = call @sum(%n) : (index) -> index
  call @kernel(%s) : (index) -> ()
  call @part(%n) : (index) -> ()
  return
}
func.func private @part(%n: index) {
  call @kernel(%n) : (index) -> ()
  return
}
func.func private @kernel(%n: index) attributes {grid = [1]} {
  return
}
func.func private @sum(%n: index) -> index {
  %s = arith.addi %n, %n : index
  return %s : index
}
