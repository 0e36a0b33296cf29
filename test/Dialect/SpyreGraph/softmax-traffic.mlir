// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --spyre-pipeline="cores=1 to-ktir=false" | FileCheck %s

// Softmax of [512, 1024] on one core moves its input once and its output once:
// one operation reads the input, one writes the output, and everything between
// is in LX, of which the copy of the input and the exponentials share 1 MiB.
// CHECK: #[[BIG:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @main(%arg0: {{.*}}, %arg1:
// CHECK-SAME: spyre_graph.pool_size = 0
// CHECK-NOT: placement<pool
// CHECK: placement<lx, offset = 0, local = [512, 1024]>
// CHECK: spyre_graph.identity ins(%arg0
// CHECK-NOT: ins(%arg0
// CHECK: placement<lx, offset = 0, local = [512, 1024]>
// CHECK-NOT: {{[(, ]}}%arg0
// CHECK: spyre_graph.div {{.*}}outs(%arg1
// CHECK-NEXT: return
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<512x1024xf16, #l> {spyre_graph.name = "x"}) -> (tensor<512x1024xf16> {spyre_graph.name = "out0"}) {
  %s = spyre_graph.softmax %x {dim = 1 : i64} : tensor<512x1024xf16, #l> -> tensor<512x1024xf16>
  return %s : tensor<512x1024xf16>
}
