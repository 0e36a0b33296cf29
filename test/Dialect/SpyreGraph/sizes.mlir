// SPDX-License-Identifier: Apache-2.0
// Sizes that vary: read and printed, inferred, and divided by formulas.
// RUN: spyre-opt %s --verify-roundtrip -o /dev/null
// RUN: spyre-opt %s --split-input-file --spyre-decompose --spyre-propagate-layouts | FileCheck %s --check-prefix=MAPS
// RUN: spyre-opt %s --split-input-file --spyre-decompose --spyre-propagate-layouts --spyre-work-division=cores=8 | FileCheck %s --check-prefix=CHUNKS
// RUN: spyre-opt %s --split-input-file --spyre-pipeline="cores=8 to-ktir=false" | FileCheck %s --check-prefix=PLAN

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Rows, and what is as long as they are.
// MAPS-DAG: #[[ROWS:.*]] = affine_map<()[s0] -> (s0, 256)>
// MAPS-LABEL: func.func @rows
// MAPS: spyre_graph.exp
// MAPS-SAME: extent_map = #[[ROWS]]
// MAPS: spyre_graph.sum
// MAPS-SAME: extent_map = #[[ROWS]]
// CHUNKS: #[[CHUNK:.*]] = affine_map<()[s0] -> (s0 ceildiv 8, 256)>
// CHUNKS-LABEL: func.func @rows
// CHUNKS: spyre_graph.exp
// CHUNKS-SAME: chunks = [64, 256], chunk_map = #[[CHUNK]]>
// The value between them is in LX, in slices of one formula.
// PLAN-LABEL: func.func @rows
// PLAN: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [64, 256]>}
func.func @rows(%x: tensor<512x256xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 256)>})
    -> (tensor<512xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 512>]} {
  %0 = tensor.empty() : tensor<512x256xf16>
  %e = spyre_graph.exp ins(%x : tensor<512x256xf16, #rows>)
      outs(%0 : tensor<512x256xf16>) -> tensor<512x256xf16>
  %1 = tensor.empty() : tensor<512xf16>
  %s = spyre_graph.sum ins(%e : tensor<512x256xf16>) outs(%1 : tensor<512xf16>)
      {dims = array<i64: 1>} -> tensor<512xf16>
  return %s : tensor<512xf16>
}

// -----

#line = #spyre_graph.layout<order = [0], SEN169_FP16>

// Chunks along sticks are whole sticks; of several symbols each has its own.
// CHUNKS: #[[CHUNK:.*]] = affine_map<()[s0, s1] -> ((s1 ceildiv 192) * 64)>
// CHUNKS-LABEL: func.func @sticks
// CHUNKS: spyre_graph.exp
// CHUNKS-SAME: chunks = [1408], chunk_map = #[[CHUNK]]>
func.func @sticks(%x: tensor<4096xf16, #line> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s, t] -> (t)>})
    -> (tensor<4096xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s, t] -> (t)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 512>,
                                       #spyre_graph.symbol<"t", 64 to 4096 by 64>]} {
  %0 = tensor.empty() : tensor<4096xf16>
  %e = spyre_graph.exp ins(%x : tensor<4096xf16, #line>)
      outs(%0 : tensor<4096xf16>) -> tensor<4096xf16>
  return %e : tensor<4096xf16>
}

// -----

#grown = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#whole = affine_map<(i, j) -> (i, j)>
#later = affine_map<(i, j) -> (i + 1, j)>

// A part of what varies is as long as it is, and inside at all sizes.
// MAPS: #[[OLD:.*]] = affine_map<()[s0] -> (s0, 256)>
// MAPS-LABEL: func.func @parts
// MAPS: spyre_graph.identity
// MAPS-SAME: extent_map = #[[OLD]]
// CHUNKS-LABEL: func.func @parts
// PLAN-LABEL: func.func @parts
func.func @parts(%x: tensor<512x256xf16, #grown> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 256)>},
    %y: tensor<513x256xf16, #grown> {spyre_graph.name = "y",
      spyre_graph.size_map = affine_map<()[s] -> (s + 1, 256)>})
    -> (tensor<513x256xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s + 1, 256)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 512>]} {
  %0 = tensor.empty() : tensor<513x256xf16>
  %e = spyre_graph.exp ins(%y : tensor<513x256xf16, #grown>)
      outs(%0 : tensor<513x256xf16>) -> tensor<513x256xf16>
  %i = spyre_graph.identity ins(%x : tensor<512x256xf16, #grown>)
      outs(%e : tensor<513x256xf16>) {maps = [#whole, #later], extents = array<i64: 512, 256>} -> tensor<513x256xf16>
  return %i : tensor<513x256xf16>
}

// -----

#summed = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Neighbours share a sum over what varies; the last of them may have none.
// CHUNKS: #[[CHUNK:.*]] = affine_map<()[s0] -> (s0 ceildiv 8, 256)>
// CHUNKS-LABEL: func.func @summed
// CHUNKS: spyre_graph.sum
// CHUNKS-SAME: splits = [8, 1], chunks = [64, 256], chunk_map = #[[CHUNK]]>
// PLAN-LABEL: func.func @summed
func.func @summed(%x: tensor<512x256xf16, #summed> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 256)>})
    -> (tensor<256xf16> {spyre_graph.name = "out0"})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 512>]} {
  %0 = tensor.empty() : tensor<256xf16>
  %s = spyre_graph.sum ins(%x : tensor<512x256xf16, #summed>) outs(%0 : tensor<256xf16>)
      {dims = array<i64: 0>} -> tensor<256xf16>
  return %s : tensor<256xf16>
}
