// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt -split-input-file -verify-diagnostics %s

// Access tiles that break a rule.

// KTDP-CONSTRUCT_ACCESS_TILE-C1
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{Access tile set and Base input dimensions should match, but got 2 and 1}}
  %0 = ktdp.construct_access_tile %v[%i] {access_tile_set = #set, access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_ACCESS_TILE-C2
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{expected as many indices as base_map has inputs (2), but got 1}}
  %0 = "ktdp.construct_access_tile"(%v, %i) <{base_map = #id, access_tile_set = #set, access_tile_order = #id,
      operandSegmentSizes = array<i32: 1, 1, 0>}> : (memref<8x8xf16>, index) -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_ACCESS_TILE-C3
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{expected as many symbol operands as access_tile_set has symbols (0), but got 1}}
  %0 = ktdp.construct_access_tile %v[%i, %i] symbols(%i) {access_tile_set = #set, access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_ACCESS_TILE-C4
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{access_tile_order must map the set's 2 dimensions, without symbols, to as many results, but got affine_map<(d0) -> (d0)>}}
  %0 = ktdp.construct_access_tile %v[%i, %i] {access_tile_set = #set, access_tile_order = affine_map<(a) -> (a)>} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_ACCESS_TILE-C5
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{expected a tile of rank 2, the set's number of dimensions, but got}}
  %0 = ktdp.construct_access_tile %v[%i, %i] {access_tile_set = #set, access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<64xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{Access tile set is missing in the operation}}
  %0 = ktdp.construct_access_tile %v[%i, %i] {access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{Access tile order is missing in the operation}}
  %0 = ktdp.construct_access_tile %v[%i, %i] {access_tile_set = #set} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{'access_tile_set' failed to satisfy constraint: integer set attribute}}
  %0 = ktdp.construct_access_tile %v[%i, %i] {access_tile_set = #id, access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{'access_tile_order' failed to satisfy constraint: AffineMap attribute}}
  %0 = ktdp.construct_access_tile %v[%i, %i] {access_tile_set = #set, access_tile_order = #set} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{'base_map' is derived from the assembly and must not be given}}
  %0 = ktdp.construct_access_tile %v[%i, %i] {base_map = #id, access_tile_set = #set, access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{non-affine expression: one operand of '*' must be a constant}}
  %0 = ktdp.construct_access_tile %v[%i * %i, %i] {access_tile_set = #set, access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{non-affine expression: the divisor must be a constant}}
  %0 = ktdp.construct_access_tile %v[%i mod %i, %i] {access_tile_set = #set, access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{the divisor must be positive, but got 0}}
  %0 = ktdp.construct_access_tile %v[%i floordiv 0, %i] {access_tile_set = #set, access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{the divisor must be positive, but got -2}}
  %0 = ktdp.construct_access_tile %v[%i ceildiv -2, %i] {access_tile_set = #set, access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %i: index) {
  // expected-error@+1 {{expected an SSA value, an integer or '(' in an affine subscript}}
  %0 = ktdp.construct_access_tile %v[%i + , %i] {access_tile_set = #set, access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
// expected-note@+1 {{prior use here}}
func.func @f(%v: memref<8x8xf16>, %i: i32) {
  // expected-error@+1 {{use of value '%i' expects different type than prior uses: 'index' vs 'i32'}}
  %0 = ktdp.construct_access_tile %v[%i, 0] {access_tile_set = #set, access_tile_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C1
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{expected only index arguments in its region}}
  %0 = "ktdp.construct_indirect_access_tile"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>,
      per_dim_subscript_kinds = array<i1: false, false>, per_dim_subscript_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (b)>],
      variables_space_set = #set, variables_space_order = #id}> ({
    ^bb0(%a: index, %b: i32):
      "ktdp.region_terminator"() : () -> ()
  }) : (memref<8x8xf16>) -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C1
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{expected its region to hold only 'ktdp.region_terminator'}}
  %0 = "ktdp.construct_indirect_access_tile"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>,
      per_dim_subscript_kinds = array<i1: false, false>, per_dim_subscript_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (b)>],
      variables_space_set = #set, variables_space_order = #id}> ({
    ^bb0(%a: index, %b: index):
      %c = arith.addi %a, %b : index
      "ktdp.region_terminator"() : () -> ()
  }) : (memref<8x8xf16>) -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C1
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{expected its region to hold only 'ktdp.region_terminator'}}
  %0 = "ktdp.construct_indirect_access_tile"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>,
      per_dim_subscript_kinds = array<i1: false, false>, per_dim_subscript_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (b)>],
      variables_space_set = #set, variables_space_order = #id}> ({
    ^bb0(%a: index, %b: index):
      "ub.unreachable"() : () -> ()
  }) : (memref<8x8xf16>) -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{failed to verify constraint: region with 1 blocks}}
  %0 = "ktdp.construct_indirect_access_tile"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>,
      per_dim_subscript_kinds = array<i1: false, false>, per_dim_subscript_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (b)>],
      variables_space_set = #set, variables_space_order = #id}> ({
    
  }) : (memref<8x8xf16>) -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C2
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{expected one dimension of variables_space_set per intermediate variable (1), but got 2}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a) %v[(%a), (0)] {variables_space_set = #set, variables_space_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C3
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{variables_space_order must map the 2 intermediate variables, without symbols, to as many results, but got affine_map<(d0, d1) -> (d0)>}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[(%a), (%b)] {variables_space_set = #set, variables_space_order = affine_map<(a, b) -> (a)>} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C4
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{expected a tile of rank 2, the number of intermediate variables, but got}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[(%a), (%b)] {variables_space_set = #set, variables_space_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C5
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{expected as many symbol operands as variables_space_set has symbols (0), but got 1}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[(%a), (%b)] symbols(%i) {variables_space_set = #set, variables_space_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C6
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{expected one subscript per base dimension (2), but got 3 kinds and 3 maps}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[(%a), (%b), (0)] {variables_space_set = #set, variables_space_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C6
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{expected one subscript per base dimension (2), but got 2 kinds and 1 maps}}
  %0 = "ktdp.construct_indirect_access_tile"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>,
      per_dim_subscript_kinds = array<i1: false, false>, per_dim_subscript_maps = [affine_map<(a, b) -> (a)>],
      variables_space_set = #set, variables_space_order = #id}> ({
    ^bb0(%a: index, %b: index):
      "ktdp.region_terminator"() : () -> ()
  }) : (memref<8x8xf16>) -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C7
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{expected one index memref per indirect subscript (1), but got 0}}
  %0 = "ktdp.construct_indirect_access_tile"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>,
      per_dim_subscript_kinds = array<i1: true, false>, per_dim_subscript_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (b)>],
      variables_space_set = #set, variables_space_order = #id}> ({
    ^bb0(%a: index, %b: index):
      "ktdp.region_terminator"() : () -> ()
  }) : (memref<8x8xf16>) -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C8
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{subscript 1: expected a map of 2 dimensions (0 captured values, 2 variables) and no symbols, but got affine_map<(d0) -> (d0)>}}
  %0 = "ktdp.construct_indirect_access_tile"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>,
      per_dim_subscript_kinds = array<i1: false, false>, per_dim_subscript_maps = [affine_map<(a, b) -> (a)>, affine_map<(a) -> (a)>],
      variables_space_set = #set, variables_space_order = #id}> ({
    ^bb0(%a: index, %b: index):
      "ktdp.region_terminator"() : () -> ()
  }) : (memref<8x8xf16>) -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C8
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{subscript 0: expected a map of 3 dimensions (1 captured values, 2 variables) and no symbols}}
  %0 = "ktdp.construct_indirect_access_tile"(%v, %i) <{operandSegmentSizes = array<i32: 1, 0, 1, 0>,
      per_dim_subscript_kinds = array<i1: false, false>, per_dim_subscript_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (b)>],
      variables_space_set = #set, variables_space_order = #id}> ({
    ^bb0(%a: index, %b: index):
      "ktdp.region_terminator"() : () -> ()
  }) : (memref<8x8xf16>, index) -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C9
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{subscript 0: expected one expression per dimension of 'memref<8xi32>', but got 2}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[ind(%x[%a, %b]), (%b)] {variables_space_set = #set, variables_space_order = #id} : memref<8x8xf16>, memref<8xi32> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

// KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C10
#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{subscript 0: expected a direct subscript to be one expression, but got 2}}
  %0 = "ktdp.construct_indirect_access_tile"(%v) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>,
      per_dim_subscript_kinds = array<i1: false, false>, per_dim_subscript_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (b)>],
      variables_space_set = #set, variables_space_order = #id}> ({
    ^bb0(%a: index, %b: index):
      "ktdp.region_terminator"() : () -> ()
  }) : (memref<8x8xf16>) -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{expected 2 types (base + 1 indirect memrefs), but got 1}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[ind(%x[%a]), (%b)] {variables_space_set = #set, variables_space_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{intermediate variable '%a' is named twice}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %a) %v[(%a), (%a)] {variables_space_set = #set, variables_space_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{symbols are not allowed in this subscript}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[(%a + symbol(%i)), (%b)] {variables_space_set = #set, variables_space_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{Variables space set is missing in the operation}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[(%a), (%b)] {variables_space_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{'variables_space_set' failed to satisfy constraint: integer set attribute}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[(%a), (%b)] {variables_space_set = 4 : i32, variables_space_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{'per_dim_subscript_maps' is derived from the assembly and must not be given}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[(%a), (%b)] {per_dim_subscript_maps = [], variables_space_set = #set, variables_space_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}

// -----

#set = affine_set<(a, b) : (a >= 0, -a + 7 >= 0, b >= 0, -b + 7 >= 0)>
#id = affine_map<(a, b) -> (a, b)>
func.func @f(%v: memref<8x8xf16>, %x: memref<8xi32>, %i: index) {
  // expected-error@+1 {{use of undeclared SSA value name}}
  %0 = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[(%a), (%nobody)] {variables_space_set = #set, variables_space_order = #id} : memref<8x8xf16> -> !ktdp.access_tile<8x8xindex>
  return
}
