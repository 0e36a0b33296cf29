// SPDX-License-Identifier: Apache-2.0
// Calls that are refused.
// RUN: spyre-run --cases %s

!t = tensor<4xf32>

func.func private @itself(%x: !t) -> !t {
  %r = func.call @itself(%x) : (!t) -> !t
  return %r : !t
}

func.func private @there(%x: !t) -> !t {
  %r = func.call @back(%x) : (!t) -> !t
  return %r : !t
}

func.func private @back(%x: !t) -> !t {
  %r = func.call @there(%x) : (!t) -> !t
  return %r : !t
}

func.func private @sequence(%x: index) {
  call @its_kernel(%x) : (index) -> ()
  return
}

func.func private @its_kernel(%x: index) attributes {grid = [1]} {
  func.call @sequence(%x) : (index) -> ()
  return
}

// An access tile does not end a recursion either.
func.func private @moves(%from: !ktdp.access_tile<4xindex>) {
  func.call @moves(%from) : (!ktdp.access_tile<4xindex>) -> ()
  return
}

func.func private @moves_tile(%x: index) {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {
    coordinate_set = affine_set<(i) : (i >= 0, -i + 3 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<4xf32>
  %t = ktdp.construct_access_tile %v[%c0] {
    access_tile_set = affine_set<(i) : (i >= 0, -i + 3 >= 0)>, access_tile_order = affine_map<(i) -> (i)>}
    : memref<4xf32> -> !ktdp.access_tile<4xindex>
  func.call @moves(%t) : (!ktdp.access_tile<4xindex>) -> ()
  return
}

check.case "recursion" {
  %x = arith.constant dense<1.0> : !t
  check.expect_error "recursive calls are not supported" {
    check.run @itself(%x) : (!t) -> !t
  }
  check.expect_error "recursive calls are not supported" {
    check.run @there(%x) : (!t) -> !t
  }
  check.expect_error "recursive calls are not supported" {
    check.run @sequence(%x) : (!t) -> !t
  }
  check.expect_error "recursive calls are not supported" {
    check.run @moves_tile(%x) : (!t) -> !t
  }
}

func.func private @with_result(%n: index) -> index attributes {grid = [1]} {
  return %n : index
}

func.func private @calls_with_result(%x: index) attributes {grid = [1]} {
  %n = func.call @with_result(%x) : (index) -> index
  return
}

func.func private @other_kernel(%n: index) attributes {grid = [2]} {
  return
}

func.func private @calls_other_kernel(%x: index) attributes {grid = [1]} {
  func.call @other_kernel(%x) : (index) -> ()
  return
}

func.func private @takes_view(%v: memref<4xf32>) attributes {grid = [1]} {
  return
}

func.func private @gives_view(%x: index) {
  %v = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {
    coordinate_set = affine_set<(i) : (i >= 0, -i + 3 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<4xf32>
  func.call @takes_view(%v) : (memref<4xf32>) -> ()
  return
}

check.case "kernels are not helpers" {
  %x = arith.constant dense<1.0> : !t
  check.expect_error "error: a kernel (function with a grid) has no results" {
    check.run @calls_with_result(%x) : (!t) -> !t
  }
  check.expect_error "error: a kernel (function with a grid) cannot call another" {
    check.run @calls_other_kernel(%x) : (!t) -> !t
  }
  check.expect_error "error: argument type is not supported: 'memref<4xf32>'" {
    check.run @gives_view(%x) : (!t) -> !t
  }
}

// Each calls the next one twice.
func.func private @g0(%n: index) {
  func.call @g1(%n) : (index) -> ()
  func.call @g1(%n) : (index) -> ()
  return
}
func.func private @g1(%n: index) {
  func.call @g2(%n) : (index) -> ()
  func.call @g2(%n) : (index) -> ()
  return
}
func.func private @g2(%n: index) {
  func.call @g3(%n) : (index) -> ()
  func.call @g3(%n) : (index) -> ()
  return
}
func.func private @g3(%n: index) {
  func.call @g4(%n) : (index) -> ()
  func.call @g4(%n) : (index) -> ()
  return
}
func.func private @g4(%n: index) {
  func.call @g5(%n) : (index) -> ()
  func.call @g5(%n) : (index) -> ()
  return
}
func.func private @g5(%n: index) {
  func.call @g6(%n) : (index) -> ()
  func.call @g6(%n) : (index) -> ()
  return
}
func.func private @g6(%n: index) {
  func.call @g7(%n) : (index) -> ()
  func.call @g7(%n) : (index) -> ()
  return
}
func.func private @g7(%n: index) {
  func.call @g8(%n) : (index) -> ()
  func.call @g8(%n) : (index) -> ()
  return
}
func.func private @g8(%n: index) {
  func.call @g9(%n) : (index) -> ()
  func.call @g9(%n) : (index) -> ()
  return
}
func.func private @g9(%n: index) {
  func.call @g10(%n) : (index) -> ()
  func.call @g10(%n) : (index) -> ()
  return
}
func.func private @g10(%n: index) {
  func.call @g11(%n) : (index) -> ()
  func.call @g11(%n) : (index) -> ()
  return
}
func.func private @g11(%n: index) {
  func.call @g12(%n) : (index) -> ()
  func.call @g12(%n) : (index) -> ()
  return
}
func.func private @g12(%n: index) {
  func.call @g13(%n) : (index) -> ()
  func.call @g13(%n) : (index) -> ()
  return
}
func.func private @g13(%n: index) {
  func.call @g14(%n) : (index) -> ()
  func.call @g14(%n) : (index) -> ()
  return
}
func.func private @g14(%n: index) {
  func.call @g15(%n) : (index) -> ()
  func.call @g15(%n) : (index) -> ()
  return
}
func.func private @g15(%n: index) {
  func.call @g16(%n) : (index) -> ()
  func.call @g16(%n) : (index) -> ()
  return
}
func.func private @g16(%n: index) {
  func.call @g17(%n) : (index) -> ()
  func.call @g17(%n) : (index) -> ()
  return
}
func.func private @g17(%n: index) {
  func.call @g18(%n) : (index) -> ()
  func.call @g18(%n) : (index) -> ()
  return
}
func.func private @g18(%n: index) {
  func.call @g19(%n) : (index) -> ()
  func.call @g19(%n) : (index) -> ()
  return
}
func.func private @g19(%n: index) {
  func.call @g20(%n) : (index) -> ()
  func.call @g20(%n) : (index) -> ()
  return
}
func.func private @g20(%n: index) {
  func.call @g21(%n) : (index) -> ()
  func.call @g21(%n) : (index) -> ()
  return
}
func.func private @g21(%n: index) {
  return
}

func.func @too_much(%x: index) attributes {grid = [1]} {
  func.call @g0(%x) : (index) -> ()
  return
}

check.case "helpers that make too much" {
  %x = arith.constant dense<1.0> : !t
  check.expect_error "error: helper functions in place of their calls make more than 1048576 operations" {
    check.run @too_much(%x) : (!t) -> !t
  }
}

func.func private @view(%x: index) -> memref<4xf32> {
  %v = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {
    coordinate_set = affine_set<(i) : (i >= 0, -i + 3 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<4xf32>
  return %v : memref<4xf32>
}

func.func @outside(%x: index) attributes {grid = [1]} {
  %c1 = arith.constant 1 : index
  %v = func.call @view(%x) : (index) -> memref<4xf32>
  %t = ktdp.construct_access_tile %v[%c1] {
    access_tile_set = affine_set<(i) : (i >= 0, -i + 3 >= 0)>, access_tile_order = affine_map<(i) -> (i)>}
    : memref<4xf32> -> !ktdp.access_tile<4xindex>
  %d = ktdp.load %t : !ktdp.access_tile<4xindex> -> tensor<4xf32>
  return
}

check.case "accesses to the views of helpers are checked" {
  %x = arith.constant dense<1.0> : !t
  check.expect_error "access: coordinate 4 of view dimension 0 is outside its range 0 to 3" {
    check.run @outside(%x) : (!t) -> !t
  }
}
