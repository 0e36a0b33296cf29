// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts --spyre-coarse-tiling | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-pipeline=verify-each -o /dev/null
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts --spyre-coarse-tiling --remark-policy=all --remarks-filter=spyre-coarse-tiling -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts --spyre-coarse-tiling --spyre-work-division | FileCheck %s --check-prefix=DIVISION

// A core addresses up to 256 MiB of a tensor. Where 32 cores cannot divide an
// operation so, it runs tile by tile.

// REMARK: remark: [Passed] tiled | {{.*}}Function=transpose | Remark="1 operation from identity to identity in 2 tiles of 16448 times 8 tiles of 8256: a core addresses up to 268435456 bytes of a tensor"
// REMARK: remark: [Passed] tiled | {{.*}}Function=largest | {{.*}}: a core addresses up to 268435456 bytes of a tensor"
// REMARK-NOT: Function=fits

// Rows of x are far apart in the result, and the other way round: both would have
// to be divided over more than 17 cores.
// CHECK-LABEL: func.func @transpose
// CHECK: scf.for
// CHECK: spyre_graph.identity {{.*}} -> tensor<16448x8256xf16
// CHECK: spyre_graph.identity {{.*}} -> tensor<16448x7745xf16
// CHECK: scf.for
// CHECK: spyre_graph.identity {{.*}} -> tensor<16323x8256xf16
// CHECK: spyre_graph.identity {{.*}} -> tensor<16323x7745xf16

// A tile's sticks are as far apart as those of the whole: spans decide between
// the divisions of a tile, too.
// DIVISION-LABEL: func.func @transpose
// DIVISION: spyre_graph.identity {{.*}}division = #spyre_graph.division<splits = [9, 3]
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @transpose(%x: tensor<65537x32771xf16, #l>) -> tensor<32771x65537xf16> {
  %v = spyre_graph.view %x, affine_map<(i, j) -> (j, i)> : tensor<65537x32771xf16, #l> -> tensor<32771x65537xf16>
  %e = tensor.empty() : tensor<32771x65537xf16>
  %r = spyre_graph.identity ins(%v : tensor<32771x65537xf16>) outs(%e : tensor<32771x65537xf16>) -> tensor<32771x65537xf16>
  return %r : tensor<32771x65537xf16>
}

// -----

// A search along the outermost device dimension stays on one core: only tiles
// make its part smaller.
// CHECK-LABEL: func.func @largest
// CHECK: scf.for
// CHECK: spyre_graph.argmax {{.*}} -> tensor<46349xi64
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @largest(%x: tensor<46349x46351xf16, #l>) -> tensor<46349xi64> {
  %e = tensor.empty() : tensor<46349xi64>
  %r = spyre_graph.argmax ins(%x : tensor<46349x46351xf16, #l>) outs(%e : tensor<46349xi64>) {dims = array<i64: 1>} -> tensor<46349xi64>
  return %r : tensor<46349xi64>
}

// -----

// As large, but slices of columns fit.
// CHECK-LABEL: func.func @fits
// CHECK-NOT: scf.for
// CHECK: return
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @fits(%x: tensor<46349x46351xf16, #l>) -> tensor<46349x46351xf16> {
  %e = tensor.empty() : tensor<46349x46351xf16>
  %r = spyre_graph.exp ins(%x : tensor<46349x46351xf16, #l>) outs(%e : tensor<46349x46351xf16>) -> tensor<46349x46351xf16>
  return %r : tensor<46349x46351xf16>
}

// -----

// An extent times that of a tile is 2^63 and more.
// CHECK-LABEL: func.func @long
// CHECK: spyre_graph.exp {{.*}} -> tensor<2147483712xf16
// CHECK: spyre_graph.exp {{.*}} -> tensor<2147483647xf16
#l = #spyre_graph.layout<order = [0], SEN169_FP16>
func.func @long(%x: tensor<4294967359xf16, #l>) -> tensor<4294967359xf16> {
  %e = tensor.empty() : tensor<4294967359xf16>
  %r = spyre_graph.exp ins(%x : tensor<4294967359xf16, #l>) outs(%e : tensor<4294967359xf16>) -> tensor<4294967359xf16>
  return %r : tensor<4294967359xf16>
}
