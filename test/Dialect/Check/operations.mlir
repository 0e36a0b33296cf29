// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s | spyre-opt | FileCheck %s

func.func @scale(%x: tensor<3xf32>, %by: f32) -> tensor<3xf32> {
  %s = tensor.splat %by : tensor<3xf32>
  %r = arith.mulf %x, %s : tensor<3xf32>
  return %r : tensor<3xf32>
}

func.func @nothing(%x: index, %n: !ktdp.runtime_arg<i32>, %pool: index {ktdp.pool_size = 128 : i64}) {
  return
}

// CHECK-DAG: #[[MAP:.*]] = affine_map<(d0) -> (d0 - 1)>
// CHECK: check.case "a product with a scalar" {
check.case "a product with a scalar" {
  // CHECK: %[[X:.*]] = check.generate #[[MAP]] : tensor<3xf32>
  %x = check.generate affine_map<(i) -> (i - 1)> : tensor<3xf32>
  %by = arith.constant 3.0 : f32
  // CHECK: %[[R:.*]] = check.run @scale(%[[X]], %{{.*}}) : (tensor<3xf32>, f32) -> tensor<3xf32>
  %r = check.run @scale(%x, %by) : (tensor<3xf32>, f32) -> tensor<3xf32>
  // CHECK: %[[S:.*]] = check.run @scale(%[[X]], %{{.*}}) numerics(ieee) : (tensor<3xf32>, f32) -> tensor<3xf32>
  %s = check.run @scale(%x, %by) numerics(ieee) : (tensor<3xf32>, f32) -> tensor<3xf32>
  // CHECK: check.expect_eq %[[R]], dense<[-3.000000e+00, 0.000000e+00, 3.000000e+00]> : tensor<3xf32>
  check.expect_eq %r, dense<[-3.0, 0.0, 3.0]> : tensor<3xf32>
  // CHECK: check.expect_eq %[[R]], %[[S]] : tensor<3xf32>
  check.expect_eq %r, %s : tensor<3xf32>
  // CHECK: check.expect_close %[[R]], %[[S]] : tensor<3xf32> {atol = 1.000000e-01 : f64, max_ulp = 2 : i64}
  check.expect_close %r, %s : tensor<3xf32> {max_ulp = 2 : i64, atol = 0.1 : f64}
  %n = arith.constant 7 : i32
  // CHECK: check.expect_error "granularity" {
  // CHECK-NEXT: check.run @nothing(%[[X]], %{{.*}}) : (tensor<3xf32>, i32) -> tensor<3xf32>
  check.expect_error "granularity" {
    check.run @nothing(%x, %n) : (tensor<3xf32>, i32) -> tensor<3xf32>
  }
}
