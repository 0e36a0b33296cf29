// SPDX-License-Identifier: Apache-2.0
// LX too small for the smallest tiles of an operation: the error says what fits,
// and it does.
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir="lx-bytes=255" --verify-diagnostics
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir="lx-bytes=256" | FileCheck %s
// CHECK: math.exp

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: memref<63x130xf16, #l>, %y: memref<63x130xf16, #l>) {
  // expected-error@+1 {{needs 256 bytes of LX for its smallest tiles, but planning left 255; plan with lx-planning=false, or pass lx-bytes=256}}
  spyre_graph.exp ins(%x : memref<63x130xf16, #l>) outs(%y : memref<63x130xf16, #l>) {division = #spyre_graph.division<splits = [1, 1], chunks = [63, 130]>}
  return
}
