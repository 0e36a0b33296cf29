// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-decompose --spyre-propagate-layouts --spyre-coarse-tiling | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-decompose --spyre-propagate-layouts --spyre-coarse-tiling --spyre-work-division --spyre-bufferize --spyre-lx-planning --spyre-memory-planning --spyre-verify-plan | FileCheck %s --check-prefix=PLAN
// RUN: spyre-opt %s --split-input-file --spyre-set-target=target=superdsc --spyre-decompose --spyre-propagate-layouts --spyre-coarse-tiling | FileCheck %s --check-prefix=SUPERDSC

// K in four tiles: an fp32 accumulator starts from zero, takes in four products
// and is rounded once, with scale and bias. In the plan it stays in LX.
// CHECK-LABEL: func.func @matmul
// CHECK: %[[ZERO:.*]] = spyre_graph.fill {{.*}}immediates = [0.000000e+00 : f32]{{.*}} -> tensor<64x128xf32
// CHECK: %[[SUM:.*]] = scf.for %[[K:.*]] = %c0 to %c1024 step %c256 iter_args(%[[ACC:.*]] = %[[ZERO]])
// CHECK: tensor.extract_slice %{{.*}}[0, %[[K]]] [64, 256]
// CHECK: tensor.extract_slice %{{.*}}[%[[K]], 0] [256, 128]
// CHECK: %[[PART:.*]] = spyre_graph.matmul {{.*}} -> tensor<64x128xf32
// CHECK: %[[NEXT:.*]] = spyre_graph.add ins(%[[ACC]], %[[PART]] {{.*}} outs(%[[ACC]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: %[[SCALED:.*]] = spyre_graph.mul ins(%[[SUM]] {{.*}}immediates = [unit, 5.000000e-01 : f32]{{.*}} -> tensor<64x128xf32
// CHECK: spyre_graph.add ins(%[[SCALED]], %{{.*}} -> tensor<64x128xf16
// PLAN-LABEL: func.func @matmul
// PLAN: %[[ACC:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx{{.*}} : memref<64x128xf32
// PLAN: spyre_graph.fill outs(%[[ACC]]
// PLAN: scf.for
// PLAN: %[[PART:.*]] = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx{{.*}} : memref<64x128xf32
// PLAN: spyre_graph.add ins(%[[ACC]], {{.*}} outs(%[[ACC]]
// PLAN-NOT: identity
// PLAN: return
// SUPERDSC-LABEL: func.func @matmul
// SUPERDSC-NOT: scf.for
// SUPERDSC: return
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#b = #spyre_graph.layout<order = [0], SEN169_FP16>
func.func @matmul(%x: tensor<64x1024xf16, #l>, %y: tensor<1024x128xf16, #l>, %z: tensor<128xf16, #b>) -> tensor<64x128xf16> {
  %e = tensor.empty() : tensor<64x128xf16>
  %r = spyre_graph.matmul ins(%x, %y, %z : tensor<64x1024xf16, #l>, tensor<1024x128xf16, #l>, tensor<128xf16, #b>) outs(%e : tensor<64x128xf16>) {alpha = 0.5 : f64, has_bias, spyre_graph.tile_hints = [array<i64: 0, 2, 4>]} -> tensor<64x128xf16>
  return %r : tensor<64x128xf16>
}

// -----

// One row of scores for 2048 queries and 131072 keys is 512 MiB: keys are cut, so
// that they are read once, and the softmax is rescaled from tile to tile.
// CHECK-LABEL: func.func @attention
// CHECK: %[[LEAST:.*]] = spyre_graph.fill {{.*}}immediates = [-8.57{{.*}} : f32]
// CHECK: %[[LOOP:.*]]:4 = scf.for {{.*}} = %c0 to %c131072 step %{{.*}} iter_args(%[[MAX:[^ ]*]] = %{{[0-9]+}}, %[[FINITE:[^ ]*]] = %[[LEAST]], %[[SUM:[^ ]*]] = %{{[0-9]+}}, %[[OUT:[^ ]*]] = %{{[0-9]+}})
// CHECK: %[[PART:.*]] = spyre_graph.max
// CHECK: %[[LARGEST:.*]] = spyre_graph.maximum ins(%[[MAX]], %[[PART]] {{.*}} outs(%[[MAX]]
// CHECK: %[[NEXT:.*]] = spyre_graph.maximum ins(%[[FINITE]], %[[PART]]
// CHECK: %[[FACTOR:.*]] = spyre_graph.exp_sub ins(%[[FINITE]], %[[NEXT]]
// CHECK: %[[KEPT:.*]] = spyre_graph.identity ins(%[[NEXT]] {{.*}} outs(%[[FINITE]]
// CHECK: spyre_graph.exp_sub ins(%{{.*}}, %[[NEXT]]
// CHECK: spyre_graph.mul ins(%[[SUM]], %[[FACTOR]] {{.*}} outs(%[[SUM]]
// CHECK: spyre_graph.mul ins(%[[OUT]], %[[FACTOR]] {{.*}} outs(%[[OUT]]
// CHECK: scf.yield %[[LARGEST]], %[[KEPT]]
// CHECK: %[[ONE:.*]] = spyre_graph.exp_sub ins(%[[LOOP]]#0, %[[LOOP]]#0
// CHECK: spyre_graph.mul ins(%[[LOOP]]#2, %[[ONE]]
// CHECK: spyre_graph.mul ins(%[[LOOP]]#3, %[[ONE]]
// CHECK: spyre_graph.div
// PLAN-LABEL: func.func @attention
// PLAN-NOT: memref.alloc() {{.*}}131072
// PLAN: return
// SUPERDSC-LABEL: func.func @attention
// SUPERDSC: scf.for
// SUPERDSC-NOT: spyre_graph.maximum
// SUPERDSC: return
#l4 = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
func.func @attention(%q: tensor<1x1x2048x64xf16, #l4>, %k: tensor<1x1x131072x64xf16, #l4>, %v: tensor<1x1x131072x64xf16, #l4>) -> tensor<1x1x2048x64xf16> {
  %q1 = spyre_graph.view %q, affine_map<(a,b,c,d)->(a,b,c,d)> : tensor<1x1x2048x64xf16, #l4> -> tensor<1x1x2048x64xf16>
  %k1 = spyre_graph.view %k, affine_map<(a,b,c,d)->(a,b,c,d)> : tensor<1x1x131072x64xf16, #l4> -> tensor<1x1x131072x64xf16>
  %v1 = spyre_graph.view %v, affine_map<(a,b,c,d)->(a,b,c,d)> : tensor<1x1x131072x64xf16, #l4> -> tensor<1x1x131072x64xf16>
  %r, %lse = spyre_graph.attention %q1, %k1, %v1 {scale = 0.125 : f64} : tensor<1x1x2048x64xf16>, tensor<1x1x131072x64xf16>, tensor<1x1x131072x64xf16> -> tensor<1x1x2048x64xf16>, tensor<1x1x2048xf32>
  return %r : tensor<1x1x2048x64xf16>
}
