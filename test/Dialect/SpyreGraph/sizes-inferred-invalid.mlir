// SPDX-License-Identifier: Apache-2.0
// What an operation accesses says how long its loops are; contradictions.
// RUN: spyre-opt %s -split-input-file -verify-diagnostics -spyre-decompose

func.func @disagree(%x: tensor<8xf16> {spyre_graph.size_map = affine_map<()[s] -> (s)>},
                    %y: tensor<8xf16>) -> tensor<8xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 8>]} {
  %0 = tensor.empty() : tensor<8xf16>
  // SG-SYMBOL-C5
  // expected-error@+1 {{loop dimension 0 has extent 8 by operand 1 and s0 by another one}}
  %z = spyre_graph.add ins(%x, %y : tensor<8xf16>, tensor<8xf16>) outs(%0 : tensor<8xf16>) -> tensor<8xf16>
  return %z : tensor<8xf16>
}

// -----

func.func @parts(%x: tensor<8x8xf16> {spyre_graph.size_map = affine_map<()[s] -> (8, s)>}) -> tensor<64xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 8>]} {
  // SG-SYMBOL-C6
  // expected-error@+1 {{accesses dimension 1 of its source, whose size varies, in parts}}
  %y = spyre_graph.view %x, affine_map<(i) -> (i floordiv 8, i mod 8)> : tensor<8x8xf16> -> tensor<64xf16>
  return %y : tensor<64xf16>
}

// -----

#id = affine_map<(i) -> (i)>

func.func @part_too_long(%x: tensor<3xf16>,
                         %y: tensor<8xf16> {spyre_graph.size_map = affine_map<()[s] -> (s)>}) -> tensor<8xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 8>]} {
  // SG-SYMBOL-C6
  // expected-error@+1 {{accesses dimension 0 of operand 1, whose size varies, in parts}}
  %z = spyre_graph.identity ins(%x : tensor<3xf16>) outs(%y : tensor<8xf16>) {maps = [#id, #id], extents = array<i64: 3>} -> tensor<8xf16>
  return %z : tensor<8xf16>
}

// -----

#id = affine_map<(i) -> (i)>
#after = affine_map<(i) -> (i + 1)>

func.func @part_too_far(%x: tensor<6xf16> {spyre_graph.size_map = affine_map<()[s] -> (s)>},
                        %y: tensor<7xf16> {spyre_graph.size_map = affine_map<()[s] -> ((s floordiv 2) * 2 + 1)>}) -> tensor<7xf16>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 6>]} {
  // SG-SYMBOL-C6
  // expected-error@+1 {{accesses dimension 0 of operand 1, whose size varies, in parts}}
  %z = spyre_graph.identity ins(%x : tensor<6xf16>) outs(%y : tensor<7xf16>) {maps = [#id, #after], extents = array<i64: 6>} -> tensor<7xf16>
  return %z : tensor<7xf16>
}
