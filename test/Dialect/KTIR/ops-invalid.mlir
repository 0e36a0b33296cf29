// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt -split-input-file -verify-diagnostics %s

// Views, data tiles and run-time arguments that break a rule.

// KTDP-GET_COMPUTE_TILE_ID-C1
func.func @f() {
  // expected-error@+1 {{must return at least one index (num tile-grid dims >= 1)}}
  "ktdp.get_compute_tile_id"() : () -> ()
  return
}

// -----

// KTDP-GET_COMPUTE_TILE_ID-C2
func.func @f() {
  // expected-error@+1 {{result #1 must be variadic of index, but got 'i32'}}
  %0:2 = ktdp.get_compute_tile_id : index, i32
  return
}

// -----

// KTDP-RUNTIME_ARG_EXTRACT-C1
func.func @f(%a: !ktdp.runtime_arg<i32, granularity=64>) {
  // expected-error@+1 {{extracting value gives 'i32', but the result is 'index'}}
  %0 = ktdp.runtime_arg_extract value from %a : !ktdp.runtime_arg<i32, granularity=64> -> index
  return
}

// -----

// KTDP-RUNTIME_ARG_EXTRACT-C2
func.func @f(%a: !ktdp.runtime_arg<i32, upperbound=64>) {
  // expected-error@+1 {{cannot extract granularity from runtime_arg that doesn't have one}}
  %0 = ktdp.runtime_arg_extract granularity from %a : !ktdp.runtime_arg<i32, upperbound=64> -> index
  return
}

// -----

// KTDP-RUNTIME_ARG_EXTRACT-C2
func.func @f(%a: !ktdp.runtime_arg<i32, granularity=64>) {
  // expected-error@+1 {{cannot extract upperbound from runtime_arg that doesn't have one}}
  %0 = ktdp.runtime_arg_extract upperbound from %a : !ktdp.runtime_arg<i32, granularity=64> -> index
  return
}

// -----

// KTDP-RUNTIME_ARG_EXTRACT-C3
func.func @f(%a: !ktdp.runtime_arg<i32, granularity=64>) {
  // expected-error@+1 {{extracting granularity gives 'index', but the result is 'i32'}}
  %0 = ktdp.runtime_arg_extract granularity from %a : !ktdp.runtime_arg<i32, granularity=64> -> i32
  return
}

// -----

// KTDP-CONSTRUCT_MEMORY_VIEW-C1
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%p: index) {
  // expected-error@+1 {{expected sizes and strides of equal length, but got 2 and 1}}
  %0 = ktdp.construct_memory_view %p, sizes: [8, 8], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<8x8xf16>
  return
}

// -----

// KTDP-CONSTRUCT_MEMORY_VIEW-C2
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%p: index) {
  // expected-error@+1 {{expected 1 dynamic sizes, but got 0}}
  %0 = "ktdp.construct_memory_view"(%p) <{coordinate_set = #set, memory_space = #ktdp.memory_space<global>,
      operandSegmentSizes = array<i32: 1, 0, 0>, static_sizes = array<i64: -9223372036854775808, 8>,
      static_strides = array<i64: 8, 1>}> : (index) -> memref<?x8xf16>
  return
}

// -----

// KTDP-CONSTRUCT_MEMORY_VIEW-C2
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%p: index) {
  // expected-error@+1 {{expected 0 dynamic strides, but got 1}}
  %0 = "ktdp.construct_memory_view"(%p, %p) <{coordinate_set = #set, memory_space = #ktdp.memory_space<global>,
      operandSegmentSizes = array<i32: 1, 0, 1>, static_sizes = array<i64: 8, 8>,
      static_strides = array<i64: 8, 1>}> : (index, index) -> memref<8x8xf16>
  return
}

// -----

// KTDP-CONSTRUCT_MEMORY_VIEW-C3
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%p: index) {
  // expected-error@+1 {{result memref rank does not match sizes/strides length: 'memref<64xf16>' has rank 1, expected 2}}
  %0 = ktdp.construct_memory_view %p, sizes: [8, 8], strides: [8, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<64xf16>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%p: index) {
  // expected-error@+1 {{'memory_space' failed to satisfy constraint: KtdpMemorySpaceAttr instance}}
  %0 = ktdp.construct_memory_view %p, sizes: [8, 8], strides: [8, 1] {coordinate_set = #set, memory_space = 1 : i64} : memref<8x8xf16>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%p: index) {
  // expected-error@+1 {{'coordinate_set' failed to satisfy constraint: integer set attribute}}
  %0 = ktdp.construct_memory_view %p, sizes: [8, 8], strides: [8, 1] {coordinate_set = #id, memory_space = #ktdp.memory_space<global>} : memref<8x8xf16>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%p: index) {
  // expected-error@+1 {{requires attribute 'memory_space'}}
  %0 = ktdp.construct_memory_view %p, sizes: [8, 8], strides: [8, 1] {coordinate_set = #set} : memref<8x8xf16>
  return
}

// -----

// KTDP-CONSTRUCT_DISTRIBUTED_MEMORY_VIEW-C1
func.func @f(%a: memref<8xf16>, %b: memref<8xf32>) {
  // expected-error@+1 {{partition 1 has element type 'f32', expected 'f16'}}
  %0 = ktdp.construct_distributed_memory_view (%a, %b : memref<8xf16>, memref<8xf32>) : memref<16xf16>
  return
}

// -----

// KTDP-CONSTRUCT_DISTRIBUTED_MEMORY_VIEW-C2
func.func @f(%a: memref<8xf16>, %b: memref<1x8xf16>) {
  // expected-error@+1 {{partition 1 has rank 2, expected 1}}
  %0 = ktdp.construct_distributed_memory_view (%a, %b : memref<8xf16>, memref<1x8xf16>) : memref<16xf16>
  return
}

// -----

// KTDP-LOAD-C1
func.func @f(%t: !ktdp.access_tile<4x8xindex>) {
  // expected-error@+1 {{access tile shape must match result tensor shape, but got '!ktdp.access_tile<4x8xindex>' and 'tensor<8x4xf16>'}}
  %0 = ktdp.load %t : !ktdp.access_tile<4x8xindex> -> tensor<8x4xf16>
  return
}

// -----

// KTDP-LOAD-C1
func.func @f(%t: !ktdp.access_tile<?x8xindex>) {
  // expected-error@+1 {{access tile shape must match result tensor shape}}
  %0 = ktdp.load %t : !ktdp.access_tile<?x8xindex> -> tensor<4x8xf16>
  return
}

// -----

// KTDP-STORE-C1
func.func @f(%t: !ktdp.access_tile<4x8xindex>, %d: tensor<4xf16>) {
  // expected-error@+1 {{data tile shape must match access tile shape, but got 'tensor<4xf16>' and '!ktdp.access_tile<4x8xindex>'}}
  ktdp.store %d, %t : tensor<4xf16>, !ktdp.access_tile<4x8xindex>
  return
}

// -----

func.func @f(%t: tensor<4xf16>, %d: tensor<4xf16>) {
  // expected-error@+1 {{expected '<'}}
  ktdp.store %d, %t : tensor<4xf16>, tensor<4xf16>
  return
}
