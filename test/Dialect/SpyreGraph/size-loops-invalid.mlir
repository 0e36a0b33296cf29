// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -split-input-file -verify-diagnostics --spyre-size-loops

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 128)>
func.func @reduces(%x: tensor<512x128xf16, #l> {spyre_graph.size_map = #rows}) -> tensor<128xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 512 by 64>]} {
  %0 = tensor.empty() : tensor<128xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
  // SG-SIZE-LOOP-C1
  // expected-error@+1 {{cannot run in a loop up to 's' from 64 to 512 by 64: it reduces the dimension}}
  %y = spyre_graph.sum ins(%x : tensor<512x128xf16, #l>) outs(%0 : tensor<128xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>) {dims = array<i64: 0>, extent_map = #rows} -> tensor<128xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
  return %y : tensor<128xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#both = affine_map<()[s] -> (s, s)>
func.func @twice(%x: tensor<128x128xf16, #l> {spyre_graph.size_map = #both}) -> (tensor<128x128xf16, #l> {spyre_graph.size_map = #both})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 128 by 64>]} {
  %0 = tensor.empty() : tensor<128x128xf16, #l>
  // SG-SIZE-LOOP-C1
  // expected-error@+1 {{has extents that vary in the loops 0 and 1; a loop up to a size cuts one}}
  %y = spyre_graph.exp ins(%x : tensor<128x128xf16, #l>) outs(%0 : tensor<128x128xf16, #l>) {extent_map = #both} -> tensor<128x128xf16, #l>
  return %y : tensor<128x128xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#rows = affine_map<()[s] -> (s, 128)>
func.func @least(%x: tensor<512x128xf16, #l> {spyre_graph.size_map = #rows}) -> (tensor<512x128xf16, #l> {spyre_graph.size_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %0 = tensor.empty() : tensor<512x128xf16, #l>
  // SG-SIZE-LOOP-C2
  // expected-error@+1 {{cannot run in a loop up to 's' from 2 to 512: sizes must be the multiples of a step}}
  %y = spyre_graph.exp ins(%x : tensor<512x128xf16, #l>) outs(%0 : tensor<512x128xf16, #l>) {extent_map = #rows} -> tensor<512x128xf16, #l>
  return %y : tensor<512x128xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#columns = affine_map<()[s] -> (128, s)>
func.func @sticks(%x: tensor<128x512xf16, #l> {spyre_graph.size_map = #columns}) -> (tensor<128x512xf16, #l> {spyre_graph.size_map = #columns})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 32 to 512 by 32>]} {
  %0 = tensor.empty() : tensor<128x512xf16, #l>
  // SG-SIZE-LOOP-C2
  // expected-error@+1 {{cannot run in a loop up to 's' from 32 to 512 by 32: tiles of 32 do not begin at whole sticks, which have 64 elements}}
  %y = spyre_graph.exp ins(%x : tensor<128x512xf16, #l>) outs(%0 : tensor<128x512xf16, #l>) {extent_map = #columns} -> tensor<128x512xf16, #l>
  return %y : tensor<128x512xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 128)>
#more = affine_map<()[s] -> (s + 64, 128)>
func.func @joined(%x: tensor<512x128xf16, #l> {spyre_graph.size_map = #rows}, %y: tensor<64x128xf16, #l>)
    -> (tensor<576x128xf16, #l> {spyre_graph.size_map = #more})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 512 by 64>]} {
  %0 = tensor.empty() : tensor<576x128xf16, #l>
  %1 = spyre_graph.identity ins(%x : tensor<512x128xf16, #l>) outs(%0 : tensor<576x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 512, 128>, extent_map = #rows} -> tensor<576x128xf16, #l>
  // SG-SIZE-LOOP-C1
  // expected-error@+1 {{writes from an offset on that varies, which no loop up to a size does}}
  %2 = spyre_graph.insert ins(%y : tensor<64x128xf16, #l>) outs(%1 : tensor<576x128xf16, #l>) {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>, maps = [#id, affine_map<(i, j) -> (i + 512, j)>], extents = array<i64: 64, 128>} -> tensor<576x128xf16, #l>
  return %2 : tensor<576x128xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#rows = affine_map<()[s] -> (s, 128)>
func.func @early(%x: tensor<512x128xf16, #l> {spyre_graph.size_map = #rows}) -> (tensor<512x128xf16> {spyre_graph.size_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 512 by 64>]} {
  %0 = tensor.empty() : tensor<512x128xf16>
  // SG-SIZE-LOOP-C3
  // expected-error@+1 {{has a tensor without a layout, 'tensor<512x128xf16>'; run --spyre-propagate-layouts first}}
  %y = spyre_graph.exp ins(%x : tensor<512x128xf16, #l>) outs(%0 : tensor<512x128xf16>) -> tensor<512x128xf16>
  return %y : tensor<512x128xf16>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 128)>
func.func @late(%x: memref<512x128xf16, #l> {spyre_graph.size_map = #rows}, %y: memref<512x128xf16, #l> {spyre_graph.size_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 512 by 64>]} {
  // SG-SIZE-LOOP-C3
  // expected-error@+1 {{is on buffers; run --spyre-size-loops before --spyre-bufferize}}
  spyre_graph.exp ins(%x : memref<512x128xf16, #l>) outs(%y : memref<512x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 512, 128>, extent_map = #rows}
  return
}
