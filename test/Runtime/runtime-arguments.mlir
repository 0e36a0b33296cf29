// SPDX-License-Identifier: Apache-2.0
// Values and declared properties of run-time arguments.
// RUN: spyre-run --cases %s

func.func @properties(%z: index, %n: !ktdp.runtime_arg<i32, granularity=4, upperbound=64>, %f: !ktdp.runtime_arg<f32>) {
  %c0 = arith.constant 0 : index
  %v = ktdp.runtime_arg_extract value from %n : !ktdp.runtime_arg<i32, granularity=4, upperbound=64> -> i32
  %g = ktdp.runtime_arg_extract granularity from %n : !ktdp.runtime_arg<i32, granularity=4, upperbound=64> -> index
  %u = ktdp.runtime_arg_extract upperbound from %n : !ktdp.runtime_arg<i32, granularity=4, upperbound=64> -> index
  %x = ktdp.runtime_arg_extract value from %f : !ktdp.runtime_arg<f32> -> f32
  %a = arith.sitofp %v : i32 to f32
  %gi = arith.index_cast %g : index to i32
  %b = arith.sitofp %gi : i32 to f32
  %ui = arith.index_cast %u : index to i32
  %c = arith.sitofp %ui : i32 to f32
  %r = tensor.from_elements %a, %b, %c, %x : tensor<4xf32>
  %w = ktdp.construct_memory_view %z, sizes: [4], strides: [1] {
    coordinate_set = affine_set<(i) : (i >= 0, -i + 3 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<4xf32>
  %t = ktdp.construct_access_tile %w[%c0] {
    access_tile_set = affine_set<(i) : (i >= 0, -i + 3 >= 0)>, access_tile_order = affine_map<(i) -> (i)>}
    : memref<4xf32> -> !ktdp.access_tile<4xindex>
  ktdp.store %r, %t : tensor<4xf32>, !ktdp.access_tile<4xindex>
  return
}

check.case "value, granularity, upper bound, and a float" {
  %z = arith.constant dense<0.0> : tensor<4xf32>
  %n = arith.constant 48 : i32
  %f = arith.constant 2.5 : f32
  %r = check.run @properties(%z, %n, %f) : (tensor<4xf32>, i32, f32) -> tensor<4xf32>
  check.expect_eq %r, dense<[48.0, 4.0, 64.0, 2.5]> : tensor<4xf32>
}

check.case "values outside of what was declared" {
  %z = arith.constant dense<0.0> : tensor<4xf32>
  %f = arith.constant 1.0 : f32
  %six = arith.constant 6 : i32
  check.expect_error "run-time argument 1 of @properties is 6, which is not a multiple of its granularity 4" {
    check.run @properties(%z, %six, %f) : (tensor<4xf32>, i32, f32) -> tensor<4xf32>
  }
  %large = arith.constant 68 : i32
  check.expect_error "run-time argument 1 of @properties is 68, which is above its upper bound 64" {
    check.run @properties(%z, %large, %f) : (tensor<4xf32>, i32, f32) -> tensor<4xf32>
  }
}
