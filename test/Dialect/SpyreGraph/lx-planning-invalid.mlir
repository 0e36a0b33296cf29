// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --verify-diagnostics --spyre-lx-planning

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

func.func @planned(%x: memref<4x64xf16, #l>, %y: memref<4x64xf16, #l>) {
  // SG-LX-C2
  // expected-error @+1 {{'memref.alloc' op has a place in LX already; --spyre-lx-planning plans a function once, before any buffer has one}}
  %t = memref.alloc() {spyre_graph.placement =
      #spyre_graph.placement<lx, offset = 0, local = [4, 64]>} : memref<4x64xf16, #l>
  spyre_graph.exp ins(%x : memref<4x64xf16, #l>) outs(%t : memref<4x64xf16, #l>)
      {division = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>}
  spyre_graph.abs ins(%t : memref<4x64xf16, #l>) outs(%y : memref<4x64xf16, #l>)
      {division = #spyre_graph.division<splits = [1, 1], chunks = [4, 64]>}
  return
}
