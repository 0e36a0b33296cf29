// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-coarse-tiling=max-span=128 --verify-diagnostics

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @hinted(%x: memref<64x128xf16, #l>, %y: memref<64x128xf16, #l>) {
  // SG-TILING-C1
  // expected-error @+1 {{is on buffers; run --spyre-coarse-tiling before --spyre-bufferize}}
  spyre_graph.exp ins(%x : memref<64x128xf16, #l>) outs(%y : memref<64x128xf16, #l>) {spyre_graph.tile_hints = [array<i64: 0, 0, 4>]}
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @spans(%x: memref<64x128xf16, #l>, %y: memref<64x128xf16, #l>) {
  // SG-TILING-C1
  // expected-error @+1 {{is on buffers; run --spyre-coarse-tiling before --spyre-bufferize}}
  spyre_graph.exp ins(%x : memref<64x128xf16, #l>) outs(%y : memref<64x128xf16, #l>)
  return
}
