// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --ktdp-inline-helpers --split-input-file --verify-diagnostics

func.func @kernel(%n: index) attributes {grid = [1]} {
  %r = call @again(%n) : (index) -> index
  return
}
// KTDP-INLINE-C1
// expected-error @+1 {{recursive calls are not supported}}
func.func private @again(%n: index) -> index {
  %r = call @indirectly(%n) : (index) -> index
  return %r : index
}
func.func private @indirectly(%n: index) -> index {
  %r = call @again(%n) : (index) -> index
  return %r : index
}

// -----

func.func @kernel(%n: index) attributes {grid = [1]} {
  // KTDP-INLINE-C2
  // expected-error @+1 {{called function @elsewhere has no body}}
  %r = call @elsewhere(%n) : (index) -> index
  return
}
func.func private @elsewhere(%n: index) -> index

// -----

func.func @kernel(%n: index) attributes {grid = [1]} {
  %r = call @branches(%n) : (index) -> index
  return
}
// KTDP-INLINE-C3
// expected-error @+1 {{functions of more than one block are not supported}}
func.func private @branches(%n: index) -> index {
  cf.br ^next
^next:
  return %n : index
}

// -----

// Every helper calls the next one eight times.
func.func @kernel(%n: index) attributes {grid = [1]} {
  call @g0(%n) : (index) -> ()
  return
}
func.func private @g0(%n: index) {
  call @g1(%n) : (index) -> () call @g1(%n) : (index) -> () call @g1(%n) : (index) -> () call @g1(%n) : (index) -> () call @g1(%n) : (index) -> () call @g1(%n) : (index) -> () call @g1(%n) : (index) -> () call @g1(%n) : (index) -> ()
  return
}
func.func private @g1(%n: index) {
  call @g2(%n) : (index) -> () call @g2(%n) : (index) -> () call @g2(%n) : (index) -> () call @g2(%n) : (index) -> () call @g2(%n) : (index) -> () call @g2(%n) : (index) -> () call @g2(%n) : (index) -> () call @g2(%n) : (index) -> ()
  return
}
func.func private @g2(%n: index) {
  call @g3(%n) : (index) -> () call @g3(%n) : (index) -> () call @g3(%n) : (index) -> () call @g3(%n) : (index) -> () call @g3(%n) : (index) -> () call @g3(%n) : (index) -> () call @g3(%n) : (index) -> () call @g3(%n) : (index) -> ()
  return
}
func.func private @g3(%n: index) {
  call @g4(%n) : (index) -> () call @g4(%n) : (index) -> () call @g4(%n) : (index) -> () call @g4(%n) : (index) -> () call @g4(%n) : (index) -> () call @g4(%n) : (index) -> () call @g4(%n) : (index) -> () call @g4(%n) : (index) -> ()
  return
}
func.func private @g4(%n: index) {
  call @g5(%n) : (index) -> () call @g5(%n) : (index) -> () call @g5(%n) : (index) -> () call @g5(%n) : (index) -> () call @g5(%n) : (index) -> () call @g5(%n) : (index) -> () call @g5(%n) : (index) -> () call @g5(%n) : (index) -> ()
  return
}
// KTDP-INLINE-C4
// expected-error @+2 {{helper functions in place of their calls make more than 1048576 operations}}
func.func private @g5(%n: index) {
  call @g6(%n) : (index) -> () call @g6(%n) : (index) -> () call @g6(%n) : (index) -> () call @g6(%n) : (index) -> () call @g6(%n) : (index) -> () call @g6(%n) : (index) -> () call @g6(%n) : (index) -> () call @g6(%n) : (index) -> ()
  return
}
func.func private @g6(%n: index) {
  call @g7(%n) : (index) -> () call @g7(%n) : (index) -> () call @g7(%n) : (index) -> () call @g7(%n) : (index) -> () call @g7(%n) : (index) -> () call @g7(%n) : (index) -> () call @g7(%n) : (index) -> () call @g7(%n) : (index) -> ()
  return
}
func.func private @g7(%n: index) {
  return
}
