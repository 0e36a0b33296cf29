// SPDX-License-Identifier: Apache-2.0
// The division of the source of a move is a decision like the others;
// python/tests/test_random_divisions.py runs this graph with and without moves.
// RUN: spyre-opt %s --spyre-pipeline="to-ktir=false decisions-out=%t.json" -o %t.plan.mlir
// RUN: grep -q source_division %t.json
// RUN: spyre-opt %s --spyre-pipeline="to-ktir=false decisions-in=%t.json" | diff %t.plan.mlir -
// SuperDSC cannot express it.
// RUN: not spyre-translate --to-superdsc %t.plan.mlir -o %t.bundle 2>&1 | FileCheck %s
// CHECK: plan.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'spyre_graph.reshard' op SuperDSC has no operation 'reshard'

// A norm, two products and a softmax between them: rows over 32 cores for the
// one, blocks of rows and columns for the others.
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#b = #spyre_graph.layout<order = [0], SEN169_FP16>
func.func @main(%x: tensor<512x1024xf16, #l>, %w: tensor<1024x2048xf16, #l>, %u: tensor<2048x1024xf16, #l>) -> tensor<512x1024xf16> {
  %v = spyre_graph.view %x, affine_map<(i, j) -> (i, j)> : tensor<512x1024xf16, #l> -> tensor<512x1024xf16>
  %n, %r = spyre_graph.rms_norm %v {num_dims = 1 : i64, eps = 1.0e-5 : f64} : tensor<512x1024xf16> -> tensor<512x1024xf16>, tensor<512x1xf32>
  %e = tensor.empty() : tensor<512x2048xf16>
  %a = spyre_graph.matmul ins(%n, %w : tensor<512x1024xf16>, tensor<1024x2048xf16, #l>) outs(%e : tensor<512x2048xf16>) -> tensor<512x2048xf16>
  %s = spyre_graph.softmax %a {dim = 1 : i64} : tensor<512x2048xf16> -> tensor<512x2048xf16>
  %o = tensor.empty() : tensor<512x1024xf16>
  %c = spyre_graph.matmul ins(%s, %u : tensor<512x2048xf16>, tensor<2048x1024xf16, #l>) outs(%o : tensor<512x1024xf16>) -> tensor<512x1024xf16>
  %p = tensor.empty() : tensor<512x1024xf16>
  %d = spyre_graph.add ins(%c, %v : tensor<512x1024xf16>, tensor<512x1024xf16>) outs(%p : tensor<512x1024xf16>) -> tensor<512x1024xf16>
  return %d : tensor<512x1024xf16>
}
