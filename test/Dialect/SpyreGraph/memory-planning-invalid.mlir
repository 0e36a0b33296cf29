// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-memory-planning

// Operations of other dialects use these buffers, and verify no layouts.
func.func @no_layout() {
  // expected-error @+1 {{expected a layout as memory space, found 'memref<4x8xf16>'}}
  %a = memref.alloc() : memref<4x8xf16>
  memref.dealloc %a : memref<4x8xf16>
  return
}

// -----

func.func @wrong_layout() {
  // expected-error @+1 {{has a buffer whose layout order [0, 7] is not a permutation of the 2 dimensions}}
  %a = memref.alloc() : memref<4x8xf16, #spyre_graph.layout<order = [0, 7], SEN169_FP16>>
  memref.dealloc %a : memref<4x8xf16, #spyre_graph.layout<order = [0, 7], SEN169_FP16>>
  return
}

// -----

// expected-error @+1 {{spyre_graph.pool_size must not be negative and leave room for 0 bytes more, but is 9223372036854775807}}
func.func @no_room() attributes {spyre_graph.pool_size = 9223372036854775807 : i64} {
  return
}

// -----

// expected-error @+1 {{spyre_graph.pool_size must not be negative and leave room for 0 bytes more, but is -128}}
func.func @negative() attributes {spyre_graph.pool_size = -128 : i64} {
  return
}
