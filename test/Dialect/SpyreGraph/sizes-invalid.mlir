// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -split-input-file -verify-diagnostics

// SG-SYMBOL-C1
// expected-error@+1 {{symbol 's' has sizes from 0 to 4 by 1; expected a name, 1 <= least <= most, and a positive step that divides both}}
func.func private @none() attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 0 to 4>]}

// -----

// SG-SYMBOL-C1
// expected-error@+1 {{symbol 's' has sizes from 3 to 8 by 4}}
func.func private @step() attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 3 to 8 by 4>]}

// -----

// SG-SYMBOL-C1
// expected-error@+1 {{spyre_graph.symbols must be an array of #spyre_graph.symbol of different names, on a function}}
func.func private @twice() attributes {
    spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 4>, #spyre_graph.symbol<"s", 1 to 8>]}

// -----

// SG-SYMBOL-C2
// expected-error@+1 {{spyre_graph.size_map of argument 0 must take the function's 1 symbols to 2 sizes}}
func.func @count(%x: tensor<8x4xf16> {spyre_graph.size_map = affine_map<()[s, t] -> (s, t)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 8>]} {
  return
}

// -----

// SG-SYMBOL-C2
// expected-error@+1 {{must have results from 1 to what they stand beside, but in affine_map<()[s0] -> (s0 + 1, 4)> one is 2 to 9 beside 8}}
func.func @largest(%x: tensor<8x4xf16> {spyre_graph.size_map = affine_map<()[s] -> (s + 1, 4)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 8>]} {
  return
}

// -----

// SG-SYMBOL-C2
// expected-error@+1 {{one is 0 to 8 beside 8}}
func.func @least(%x: tensor<8xf16> {spyre_graph.size_map = affine_map<()[s] -> (s - 1)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 9>]} {
  return
}

// -----

func.func @extents(%x: tensor<8xf16>) -> tensor<8xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 8>]} {
  %0 = tensor.empty() : tensor<8xf16>
  // SG-SYMBOL-C2
  // expected-error@+1 {{extent_map must divide by positive constants}}
  %y = spyre_graph.exp ins(%x : tensor<8xf16>) outs(%0 : tensor<8xf16>)
      {extent_map = affine_map<()[s] -> (s floordiv 0)>} -> tensor<8xf16>
  return %y : tensor<8xf16>
}

// -----

func.func @view(%x: tensor<8x8xf16>) -> tensor<8xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 8>]} {
  // SG-SYMBOL-C2
  // expected-error@+1 {{size_map must take the function's 1 symbols to 1 sizes}}
  %y = spyre_graph.view %x, affine_map<(i) -> (i, i)> {size_map = affine_map<()[s] -> (s, s)>}
      : tensor<8x8xf16> -> tensor<8xf16>
  return %y : tensor<8xf16>
}

// -----

func.func @undivided(%x: tensor<8xf16>) -> tensor<8xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 8>]} {
  %0 = tensor.empty() : tensor<8xf16>
  // SG-DIVISION-C5
  // expected-error@+1 {{division has no chunk_map, but the operation an extent_map}}
  %y = spyre_graph.exp ins(%x : tensor<8xf16>) outs(%0 : tensor<8xf16>)
      {extent_map = affine_map<()[s] -> (s)>,
       division = #spyre_graph.division<splits = [2], chunks = [4]>} -> tensor<8xf16>
  return %y : tensor<8xf16>
}

// -----

func.func @divided(%x: tensor<8xf16>) -> tensor<8xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 8>]} {
  %0 = tensor.empty() : tensor<8xf16>
  // SG-DIVISION-C5
  // expected-error@+1 {{division has a chunk_map, but the operation no extent_map}}
  %y = spyre_graph.exp ins(%x : tensor<8xf16>) outs(%0 : tensor<8xf16>)
      {division = #spyre_graph.division<splits = [2], chunks = [4],
                                        chunk_map = affine_map<()[s] -> (s ceildiv 2)>>} -> tensor<8xf16>
  return %y : tensor<8xf16>
}

// -----

// SG-SYMBOL-C3
// expected-error@+1 {{spyre_graph.used_map of argument 0 cannot stand beside spyre_graph.size_map: the array is as large in every run}}
func.func @both(%x: tensor<8xf16> {spyre_graph.size_map = affine_map<()[s] -> (s)>,
                                   spyre_graph.used_map = affine_map<()[s] -> (s)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 8>]} {
  return
}

// -----

// SG-SYMBOL-C3
// expected-error@+1 {{spyre_graph.used_map of argument 0 must have results from 1 to what they stand beside}}
func.func @most(%x: tensor<8xf16> {spyre_graph.used_map = affine_map<()[s] -> (s)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 9>]} {
  return
}

// -----

func.func @remainder() attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 32 to 96 by 32>]} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  // SG-SYMBOL-C4
  // expected-error@+1 {{spyre_graph.bound_map is of 's' from 32 to 96 by 32, which iterations of 64 x 1 would leave a part of out}}
  scf.for %i = %c0 to %c96 step %c64 {
  } {spyre_graph.bound_map = affine_map<()[s] -> (s)>}
  return
}

// -----

func.func @quotient() attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 32 to 96 by 32>]} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c24 = arith.constant 24 : index
  // A quarter by 8 is 32, a quarter by 4 is 16.
  scf.for %i = %c0 to %c24 step %c4 {
  } {spyre_graph.bound_map = affine_map<()[s] -> (s floordiv 4)>}
  // SG-SYMBOL-C4
  // expected-error@+1 {{spyre_graph.bound_map must be one symbol, or one divided by a number, but is}}
  scf.for %i = %c0 to %c24 step %c4 {
  } {spyre_graph.bound_map = affine_map<()[s] -> (s ceildiv 4)>}
  return
}

// -----

func.func @begin() attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 32 to 96 by 32>]} {
  %c32 = arith.constant 32 : index
  %c96 = arith.constant 96 : index
  // SG-SYMBOL-C4
  // expected-error@+1 {{spyre_graph.bound_map must be of an scf.for from 0 to the largest size by a constant step}}
  scf.for %i = %c32 to %c96 step %c32 {
  } {spyre_graph.bound_map = affine_map<()[s] -> (s)>}
  return
}

// -----

func.func @largest() attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 32 to 96 by 32>]} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  // SG-SYMBOL-C4
  // expected-error@+1 {{spyre_graph.bound_map must have results from 1 to what they stand beside}}
  scf.for %i = %c0 to %c64 step %c32 {
  } {spyre_graph.bound_map = affine_map<()[s] -> (s)>}
  return
}

// -----

// SG-SYMBOL-C5
// expected-error@+1 {{spyre_graph.sizes_apart must be the number of one of the function's 1 symbols and a size, but is array<i64: 1, 48>}}
func.func @no_symbol() attributes {spyre_graph.sizes_apart = array<i64: 1, 48>,
    spyre_graph.symbols = [#spyre_graph.symbol<"s", 32 to 96>]} {
  return
}

// -----

// SG-SYMBOL-C5
// expected-error@+1 {{spyre_graph.sizes_apart must leave sizes on both sides, but 's' from 32 to 96 is to be cut behind 96}}
func.func @nothing_beyond() attributes {spyre_graph.sizes_apart = array<i64: 0, 96>,
    spyre_graph.symbols = [#spyre_graph.symbol<"s", 32 to 96>]} {
  return
}
