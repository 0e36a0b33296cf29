// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --ktdp-strict --split-input-file --verify-diagnostics

#set = affine_set<(i) : (i >= 0, -i + 7 >= 0)>
#short = affine_set<(i) : (i >= 0, -i + 6 >= 0)>
#order = affine_map<(i) -> (i)>

func.func @size(%x: index) {
  // KTDP-STRICT-C1
  // expected-error @+1 {{size 8 of dimension 0 differs from 'memref<9xf16>'}}
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<9xf16>
  return
}

// -----

#set = affine_set<(i, j) : (i >= 0, -i + 7 >= 0, j >= 0, -j >= 0)>
func.func @coordinates(%x: index) {
  // KTDP-STRICT-C2
  // expected-error @+1 {{coordinate_set has 2 dimensions and 0 symbols, expected 1 dimensions and at most 0 symbols}}
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<8xf16>
  return
}

// -----

#set = affine_set<(i)[s] : (i >= 0, -i + s >= 0)>
func.func @symbols(%x: index) {
  // KTDP-STRICT-C2
  // expected-error @+1 {{coordinate_set has 1 dimensions and 1 symbols}}
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<8xf16>
  return
}

// -----

#set = affine_set<(i) : (i >= 0, -i + 7 >= 0)>
func.func @space(%x: index) {
  // KTDP-STRICT-C3
  // expected-error @+1 {{memory space of 'memref<8xf16, #ktdp.memory_space<ct_local>>' differs from the view's #ktdp.memory_space<global>}}
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<8xf16, #ktdp.memory_space<ct_local>>
  %w = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<8xf16, #ktdp.memory_space<global>>
  return
}

// -----

#set = affine_set<(i, j) : (i >= 0, -i + 7 >= 0, j >= 0, -j + 3 >= 0)>
func.func @strides(%x: index, %n: index) {
  // KTDP-STRICT-C4
  // expected-error @+1 {{stride 8 of dimension 1 differs from 1, that of 'memref<8x4xf16>'}}
  %v = ktdp.construct_memory_view %x, sizes: [8, 4], strides: [4, 8] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<8x4xf16>
  %w = ktdp.construct_memory_view %x, sizes: [8, 4], strides: [1, 8] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<8x4xf16, strided<[1, 8]>>
  %u = ktdp.construct_memory_view %x, sizes: [8, 4], strides: [%n, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<8x4xf16>
  return
}

// -----

#set = affine_set<(i, j) : (i >= 0, -i + 7 >= 0, j >= 0, -j + 3 >= 0)>
#whole = affine_set<(i) : (i >= 0, -i + 7 >= 0)>
#order = affine_map<(i, j) -> (i, j)>
func.func @subscripts(%x: index) {
  %v = ktdp.construct_memory_view %x, sizes: [8], strides: [1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<8xf16>
  // KTDP-STRICT-C5
  // expected-error @+1 {{expected one subscript per dimension of 'memref<8xf16>', but got 2}}
  %t = ktdp.construct_access_tile %v[%x, %x] {access_tile_set = #set, access_tile_order = #order} : memref<8xf16> -> !ktdp.access_tile<8x4xindex>
  return
}

// -----

#set = affine_set<(i, j) : (i >= 0, -i + 7 >= 0, j >= 0, -j + 3 >= 0)>
#order = affine_map<(i, j) -> (i, j)>
#transpose = affine_map<(i, j) -> (j, i)>
func.func @extents(%x: index, %m: memref<8x4xf16>) {
  // KTDP-STRICT-C6
  // expected-error @+1 {{dimension 1 of '!ktdp.access_tile<8x5xindex>' has 5 points, its set 4}}
  %t = ktdp.construct_access_tile %m[%x, %x] {access_tile_set = #set, access_tile_order = #order} : memref<8x4xf16> -> !ktdp.access_tile<8x5xindex>
  // The tile's dimensions are the order's results.
  %u = ktdp.construct_access_tile %m[%x, %x] {access_tile_set = #set, access_tile_order = #transpose} : memref<8x4xf16> -> !ktdp.access_tile<4x8xindex>
  // expected-error @+2 {{dimension 0 of '!ktdp.access_tile<8x4xindex>' has 8 points, its set 4}}
  // expected-error @+1 {{dimension 1 of '!ktdp.access_tile<8x4xindex>' has 4 points, its set 8}}
  %w = ktdp.construct_indirect_access_tile intermediate_variables(%i, %j) %m[(%i), (%j)] {variables_space_set = #set, variables_space_order = #transpose} : memref<8x4xf16> -> !ktdp.access_tile<8x4xindex>
  %d = ktdp.construct_access_tile %m[%x, %x] {access_tile_set = #set, access_tile_order = #order} : memref<8x4xf16> -> !ktdp.access_tile<?x4xindex>
  return
}

// -----

#set = affine_set<(i, j) : (i >= 0, -i + 7 >= 0, j >= 0, -j + 3 >= 0)>
#order = affine_map<(i, j) -> (i + j, j)>
func.func @order(%x: index, %m: memref<8x4xf16>) {
  // KTDP-STRICT-C7
  // expected-error @+1 {{order must permute its dimensions, but got affine_map<(d0, d1) -> (d0 + d1, d1)>}}
  %t = ktdp.construct_access_tile %m[%x, %x] {access_tile_set = #set, access_tile_order = #order} : memref<8x4xf16> -> !ktdp.access_tile<8x4xindex>
  return
}

// -----

#set = affine_set<(i) : (i >= 0, -i + 7 >= 0)>
#order = affine_map<(i) -> (i)>
func.func @element(%x: index, %m: memref<8xf16>, %d: tensor<8xbf16>, %own: tensor<8xf16>) {
  %t = ktdp.construct_access_tile %m[%x] {access_tile_set = #set, access_tile_order = #order} : memref<8xf16> -> !ktdp.access_tile<8xindex>
  // KTDP-STRICT-C8
  // expected-error @+1 {{data tile has element type 'f32', its view 'f16'}}
  %a = ktdp.load %t : !ktdp.access_tile<8xindex> -> tensor<8xf32>
  // expected-error @+1 {{data tile has element type 'bf16', its view 'f16'}}
  ktdp.store %d, %t : tensor<8xbf16>, !ktdp.access_tile<8xindex>
  ktdp.store %own, %t : tensor<8xf16>, !ktdp.access_tile<8xindex>
  return
}

// -----

#set = affine_set<(i) : (i >= 0, -i + 7 >= 0)>
#order = affine_map<(i) -> (i)>
func.func @indices(%m: memref<8xf16>, %flags: memref<8xi1>, %halves: memref<8xf16>, %own: memref<8xi8>) {
  // KTDP-STRICT-C9
  // expected-error @+1 {{index memref must hold integers, but got 'memref<8xi1>'}}
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%i) %m[ind(%flags[%i])] {variables_space_set = #set, variables_space_order = #order} : memref<8xf16>, memref<8xi1> -> !ktdp.access_tile<8xindex>
  // expected-error @+1 {{index memref must hold integers, but got 'memref<8xf16>'}}
  %u = ktdp.construct_indirect_access_tile intermediate_variables(%i) %m[ind(%halves[%i])] {variables_space_set = #set, variables_space_order = #order} : memref<8xf16>, memref<8xf16> -> !ktdp.access_tile<8xindex>
  %w = ktdp.construct_indirect_access_tile intermediate_variables(%i) %m[ind(%own[%i])] {variables_space_set = #set, variables_space_order = #order} : memref<8xf16>, memref<8xi8> -> !ktdp.access_tile<8xindex>
  return
}

// -----

#low = affine_set<(i) : (i >= 0, -i + 3 >= 0)>
#high = affine_set<(i) : (i - 4 >= 0, -i + 7 >= 0)>
#last = affine_set<(i) : (i - 6 >= 0, -i + 7 >= 0)>
func.func @distributed(%x: index) {
  // KTDP-STRICT-C10
  // expected-error @+1 {{expected at least one partition}}
  %n = ktdp.construct_distributed_memory_view : memref<8xf16>
  %a = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {coordinate_set = #low, memory_space = #ktdp.memory_space<global>} : memref<4xf16>
  %b = ktdp.construct_memory_view %x, sizes: [4], strides: [1] {coordinate_set = #high, memory_space = #ktdp.memory_space<global>} : memref<4xf16>
  %c = ktdp.construct_memory_view %x, sizes: [2], strides: [1] {coordinate_set = #last, memory_space = #ktdp.memory_space<global>} : memref<2xf16>
  %good = ktdp.construct_distributed_memory_view (%a, %b : memref<4xf16>, memref<4xf16>) : memref<8xf16>
  // KTDP-STRICT-C11
  // expected-error @+1 {{declared size 9 of dimension 0 does not match the partitions' extent 8}}
  %p = ktdp.construct_distributed_memory_view (%a, %b : memref<4xf16>, memref<4xf16>) : memref<9xf16>
  // KTDP-STRICT-C12
  // expected-error @+1 {{partitions 1 and 2 overlap}}
  %q = ktdp.construct_distributed_memory_view (%a, %b, %c : memref<4xf16>, memref<4xf16>, memref<2xf16>) : memref<8xf16>
  // KTDP-STRICT-C13
  // expected-error @+1 {{partitions hold 6 of the 8 elements of 'memref<8xf16>'}}
  %r = ktdp.construct_distributed_memory_view (%a, %c : memref<4xf16>, memref<2xf16>) : memref<8xf16>
  return
}
