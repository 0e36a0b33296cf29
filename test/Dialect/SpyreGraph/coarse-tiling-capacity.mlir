// SPDX-License-Identifier: Apache-2.0
// How attention is tiled depends on the LX there is: not at all, head by head,
// by rows, of which the last are fewer, or only where that still pays.
// DEFINE: %{tile} = spyre-opt %s --spyre-decompose --spyre-propagate-layouts --remark-policy=all --remarks-filter=spyre-coarse-tiling
// RUN: %{tile} --spyre-coarse-tiling="capacity=16777216" 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE-NOT: remark
// LARGE-NOT: scf.for
// RUN: %{tile} --spyre-coarse-tiling 2>&1 | FileCheck %s --check-prefix=HEADS
// HEADS: 7 operations from restickify to div in 7 tiles of 1:
// RUN: %{tile} --spyre-coarse-tiling="capacity=262144" 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: 6 operations from matmul to div in 24 tiles of 85:
// ROWS: scf.for {{.*}} = %c0 to %c1955 step %c85
// ROWS: spyre_graph.matmul {{.*}} -> tensor<1x7x85x2039xf16
// ROWS: scf.yield
// ROWS: spyre_graph.matmul {{.*}} -> tensor<1x7x84x2039xf16
// RUN: %{tile} --spyre-coarse-tiling="capacity=1024" 2>&1 | FileCheck %s --check-prefix=TINY
// TINY: matmul is not tiled although its result of 58462208 bytes has no room in the LX of all cores: no tiles of whole sticks fit in LX and keep all cores busy
// TINY: 2 operations from max to exp_sub in 98 tiles of 21: saves {{.*}} bytes of traffic
// TINY-NOT: tiles of

// With rows the scores are never written, neither in LX nor in the pool as a whole.
// RUN: spyre-opt %s --spyre-decompose --spyre-propagate-layouts --spyre-coarse-tiling="capacity=262144" --spyre-work-division --spyre-bufferize --spyre-lx-planning="capacity=262144" --spyre-memory-planning --spyre-verify-plan="capacity=262144" | FileCheck %s --check-prefix=PLAN
// PLAN-NOT: memref.alloc() {{.*}}memref<1x7x2039x2039xf16
// PLAN: return

#l4 = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
func.func @attention(%q: tensor<1x7x2039x64xf16, #l4>, %k: tensor<1x7x2039x64xf16, #l4>, %v: tensor<1x7x2039x64xf16, #l4>) -> tensor<1x7x2039x64xf16> {
  %q1 = spyre_graph.view %q, affine_map<(a,b,c,d)->(a,b,c,d)> : tensor<1x7x2039x64xf16, #l4> -> tensor<1x7x2039x64xf16>
  %k1 = spyre_graph.view %k, affine_map<(a,b,c,d)->(a,b,c,d)> : tensor<1x7x2039x64xf16, #l4> -> tensor<1x7x2039x64xf16>
  %v1 = spyre_graph.view %v, affine_map<(a,b,c,d)->(a,b,c,d)> : tensor<1x7x2039x64xf16, #l4> -> tensor<1x7x2039x64xf16>
  %r, %lse = spyre_graph.attention %q1, %k1, %v1 {scale = 0.125 : f64} : tensor<1x7x2039x64xf16>, tensor<1x7x2039x64xf16>, tensor<1x7x2039x64xf16> -> tensor<1x7x2039x64xf16>, tensor<1x7x2039xf32>
  return %r : tensor<1x7x2039x64xf16>
}
