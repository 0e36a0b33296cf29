// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --spyre-pipeline="to-ktir=false verify-each" --split-input-file | FileCheck %s

// Scores cross the ring once, from the columns in which the first product makes
// them to the rows that the softmax needs; all users of whole rows, the second
// product among them, take them where that move leaves them.
// Keys get other sticks on each core that needs them.
// CHECK-LABEL: func.func @main
// CHECK-SAME: spyre_graph.pool_size = 0
// CHECK: spyre_graph.restickify {{.*}}splits = [4, 8, 1, 1, 1]
// CHECK: spyre_graph.matmul {{.*}}splits = [1, 1, 4, 8, 1]
// CHECK: spyre_graph.reshard
// CHECK: spyre_graph.max {{.*}}splits = [1, 1, 32, 1]
// CHECK-NOT: spyre_graph.reshard
// CHECK: spyre_graph.exp_sub {{.*}}splits = [1, 1, 32, 1]
// CHECK-NOT: spyre_graph.reshard
// CHECK: spyre_graph.matmul {{.*}}splits = [1, 1, 32, 1, 1]
// CHECK-NOT: spyre_graph.reshard
// CHECK: return
#l4 = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
#same = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @main(%q: tensor<1x1x512x128xf16, #l4>, %k: tensor<1x1x512x128xf16, #l4>, %v: tensor<1x1x512x128xf16, #l4>) -> tensor<1x1x512x128xf16> {
  %q1 = spyre_graph.view %q, #same : tensor<1x1x512x128xf16, #l4> -> tensor<1x1x512x128xf16>
  %k1 = spyre_graph.view %k, #same : tensor<1x1x512x128xf16, #l4> -> tensor<1x1x512x128xf16>
  %v1 = spyre_graph.view %v, #same : tensor<1x1x512x128xf16, #l4> -> tensor<1x1x512x128xf16>
  %r, %lse = spyre_graph.attention %q1, %k1, %v1 {scale = 0.125 : f64} : tensor<1x1x512x128xf16>, tensor<1x1x512x128xf16>, tensor<1x1x512x128xf16> -> tensor<1x1x512x128xf16>, tensor<1x1x512xf32>
  return %r : tensor<1x1x512x128xf16>
}

// -----

// Of 4096 keys, four neighbours sum a quarter each: each value is then loaded
// for four times as many rows, which fill the matrix unit. Neighbours exchange
// parts of rows, which is quick, and the first of each four gives what all of
// them sum to the cores of the division.
// CHECK-LABEL: func.func @main
// CHECK: spyre_graph.exp_sub {{.*}}splits = [1, 1, 32, 1]
// CHECK: spyre_graph.reshard {{.*}}division = #spyre_graph.division<splits = [1, 1, 8, 4]
// CHECK: spyre_graph.matmul {{.*}}splits = [1, 1, 8, 1, 4]
// CHECK: spyre_graph.reshard {{.*}}source_division = #spyre_graph.division<splits = [1, 1, 8, 1, 4]
// CHECK: spyre_graph.div {{.*}}splits = [1, 1, 32, 1]
// CHECK-NOT: spyre_graph.reshard
// CHECK: return
#l4 = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
#same = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @main(%q: tensor<1x1x512x128xf16, #l4>, %k: tensor<1x1x4096x128xf16, #l4>, %v: tensor<1x1x4096x128xf16, #l4>) -> tensor<1x1x512x128xf16> {
  %q1 = spyre_graph.view %q, #same : tensor<1x1x512x128xf16, #l4> -> tensor<1x1x512x128xf16>
  %k1 = spyre_graph.view %k, #same : tensor<1x1x4096x128xf16, #l4> -> tensor<1x1x4096x128xf16>
  %v1 = spyre_graph.view %v, #same : tensor<1x1x4096x128xf16, #l4> -> tensor<1x1x4096x128xf16>
  %r, %lse = spyre_graph.attention %q1, %k1, %v1 {scale = 0.125 : f64} : tensor<1x1x512x128xf16>, tensor<1x1x4096x128xf16>, tensor<1x1x4096x128xf16> -> tensor<1x1x512x128xf16>, tensor<1x1x512xf32>
  return %r : tensor<1x1x512x128xf16>
}

// -----

// Half of a head's width for each of two neighbours would save some reading of
// keys, if scores went to device memory. But then no core has scores that could
// be moved to where the softmax needs them, so sums stay whole.
// CHECK-LABEL: func.func @main
// CHECK: spyre_graph.matmul {{.*}}splits = [1, {{[0-9]+}}, {{[0-9]+}}, {{[0-9]+}}, 1]
// CHECK: spyre_graph.reshard {{.*}}memref<1x2x512x4096xf16
// CHECK: spyre_graph.max {{.*}}splits = [1, 2, 16, 1]
// CHECK: return
#l4 = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
#same = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @main(%q: tensor<1x2x512x128xf16, #l4>, %k: tensor<1x2x4096x128xf16, #l4>, %v: tensor<1x2x4096x128xf16, #l4>) -> tensor<1x2x512x128xf16> {
  %q1 = spyre_graph.view %q, #same : tensor<1x2x512x128xf16, #l4> -> tensor<1x2x512x128xf16>
  %k1 = spyre_graph.view %k, #same : tensor<1x2x4096x128xf16, #l4> -> tensor<1x2x4096x128xf16>
  %v1 = spyre_graph.view %v, #same : tensor<1x2x4096x128xf16, #l4> -> tensor<1x2x4096x128xf16>
  %r, %lse = spyre_graph.attention %q1, %k1, %v1 {scale = 0.125 : f64} : tensor<1x2x512x128xf16>, tensor<1x2x4096x128xf16>, tensor<1x2x4096x128xf16> -> tensor<1x2x512x128xf16>, tensor<1x2x512xf32>
  return %r : tensor<1x2x512x128xf16>
}

// -----

// Keys in other sticks stay in LX on their way to the product: the cores that
// make them are so many that each has room for its share, which four have not.
// CHECK-LABEL: func.func @keys_of_a_batch
// CHECK-SAME: spyre_graph.pool_size = 0
// CHECK: spyre_graph.restickify {{.*}}splits = [1, 4, 8, 1]
// CHECK: spyre_graph.matmul {{.*}}splits = [1, 4, 1, 8, 1]
// CHECK: return
#l4 = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>
func.func @keys_of_a_batch(%q: tensor<4x16x1x128xf16, #l4>, %k: tensor<4x16x2048x128xf16, #l4>, %v: tensor<4x16x2048x128xf16, #l4>) -> tensor<4x16x1x128xf16> {
  %r, %lse = spyre_graph.attention %q, %k, %v {scale = 0.125 : f64} : tensor<4x16x1x128xf16, #l4>, tensor<4x16x2048x128xf16, #l4>, tensor<4x16x2048x128xf16, #l4> -> tensor<4x16x1x128xf16>, tensor<4x16x1xf32>
  return %r : tensor<4x16x1x128xf16>
}
