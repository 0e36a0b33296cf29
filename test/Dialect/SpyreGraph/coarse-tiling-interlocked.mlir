// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --spyre-coarse-tiling=capacity=65536 | FileCheck %s
// RUN: spyre-opt %s --spyre-coarse-tiling=capacity=65536 --remark-policy=all --remarks-filter=spyre-coarse-tiling -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Each product needs what is computed for the other one. Their loops cannot both
// come first.
// CHECK-LABEL: func.func @main
// CHECK: %[[B:.*]] = spyre_graph.exp ins(%arg1
// CHECK: %[[M:.*]] = spyre_graph.neg ins(%[[B]]
// CHECK: %[[LOOP:.*]]:2 = scf.for
// CHECK: spyre_graph.matmul ins(%{{.*}}, %[[M]]
// CHECK-NOT: scf.for
// CHECK: spyre_graph.matmul ins(%[[B]], %[[LOOP]]#0
// REMARK: remark: [Missed] whole | {{.*}}Remark="exp is not tiled: its loop and another one would need each other's results"
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<2048x512xf16, #l>, %y: tensor<512x2048xf16, #l>) -> (tensor<2048x2048xf16, #l>, tensor<512x512xf16, #l>) {
  %e = tensor.empty() : tensor<2048x512xf16, #l>
  %f = tensor.empty() : tensor<512x2048xf16, #l>
  %g = tensor.empty() : tensor<2048x2048xf16, #l>
  %h = tensor.empty() : tensor<512x512xf16, #l>
  %a = spyre_graph.exp ins(%x : tensor<2048x512xf16, #l>) outs(%e : tensor<2048x512xf16, #l>) -> tensor<2048x512xf16, #l>
  %n = spyre_graph.neg ins(%a : tensor<2048x512xf16, #l>) outs(%e : tensor<2048x512xf16, #l>) -> tensor<2048x512xf16, #l>
  %b = spyre_graph.exp ins(%y : tensor<512x2048xf16, #l>) outs(%f : tensor<512x2048xf16, #l>) -> tensor<512x2048xf16, #l>
  %m = spyre_graph.neg ins(%b : tensor<512x2048xf16, #l>) outs(%f : tensor<512x2048xf16, #l>) -> tensor<512x2048xf16, #l>
  %c = spyre_graph.matmul ins(%a, %m : tensor<2048x512xf16, #l>, tensor<512x2048xf16, #l>) outs(%g : tensor<2048x2048xf16, #l>) -> tensor<2048x2048xf16, #l>
  %d = spyre_graph.matmul ins(%b, %n : tensor<512x2048xf16, #l>, tensor<2048x512xf16, #l>) outs(%h : tensor<512x512xf16, #l>) -> tensor<512x512xf16, #l>
  return %c, %d : tensor<2048x2048xf16, #l>, tensor<512x512xf16, #l>
}
