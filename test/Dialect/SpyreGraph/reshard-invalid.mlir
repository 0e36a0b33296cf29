// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --verify-diagnostics

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [4, 1], chunks = [16, 64]>

// SG-RESHARD-C1
func.func @types(%a: memref<64x64xf16, #l>, %b: memref<64x64xbf16, #l>) {
  // expected-error @below {{'spyre_graph.reshard' op moves 'memref<64x64xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>' into 'memref<64x64xbf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>'; both must have the same type}}
  spyre_graph.reshard ins(%a : memref<64x64xf16, #l>) outs(%b : memref<64x64xbf16, #l>) {source_division = #d, maps = [#id, #id], extents = array<i64: 64, 64>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#tr = affine_map<(i, j) -> (j, i)>
#d = #spyre_graph.division<splits = [4, 1], chunks = [16, 64]>

// SG-RESHARD-C2
func.func @maps(%a: memref<64x64xf16, #l>, %b: memref<64x64xf16, #l>) {
  // expected-error @below {{must access both operands through one map made of distinct loop dimensions, but the maps are affine_map<(d0, d1) -> (d1, d0)> and affine_map<(d0, d1) -> (d0, d1)>}}
  spyre_graph.reshard ins(%a : memref<64x64xf16, #l>) outs(%b : memref<64x64xf16, #l>) {source_division = #d, maps = [#tr, #id], extents = array<i64: 64, 64>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#d = #spyre_graph.division<splits = [4, 1], chunks = [16, 64]>

// SG-RESHARD-C3
func.func @uncovered(%a: memref<64x64xf16, #l>, %b: memref<64x64xf16, #l>) {
  // expected-error @below {{does not divide the loops [64, 64]}}
  spyre_graph.reshard ins(%a : memref<64x64xf16, #l>) outs(%b : memref<64x64xf16, #l>) {source_division = #spyre_graph.division<splits = [4, 1], chunks = [15, 64]>, maps = [#id, #id], extents = array<i64: 64, 64>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j, p) -> (i, j)>
#d = #spyre_graph.division<splits = [4, 1, 1], chunks = [16, 64, 2]>

// SG-RESHARD-C3: more slices of the partners than there are partners.
func.func @partners(%a: memref<64x64xf16, #l>, %b: memref<64x64xf16, #l>) {
  // expected-error @below {{does not divide the loops [64, 64, 2]}}
  spyre_graph.reshard ins(%a : memref<64x64xf16, #l>) outs(%b : memref<64x64xf16, #l>) {source_division = #spyre_graph.division<splits = [4, 1, 4], chunks = [16, 64, 1], order = [2, 0, 1]>, maps = [#id, #id], extents = array<i64: 64, 64, 2>, division = #d}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 64)>
#d = #spyre_graph.division<splits = [4, 1], chunks = [16, 64]>
#own = #spyre_graph.division<splits = [4, 1], chunks = [16, 64], chunk_map = affine_map<()[s] -> (s ceildiv 4, 64)>>

// SG-DIVISION-C5
func.func @varies(%a: memref<64x64xf16, #l>, %b: memref<64x64xf16, #l>)
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 64>]} {
  // expected-error @below {{must have a chunk_map where the operation has an extent_map}}
  spyre_graph.reshard ins(%a : memref<64x64xf16, #l>) outs(%b : memref<64x64xf16, #l>) {source_division = #d, maps = [#id, #id], extents = array<i64: 64, 64>, extent_map = #rows, division = #own}
  return
}
