// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -split-input-file -verify-diagnostics

// Attributes and operations that break a rule of the dialect.

// SG-LAYOUT-C1
// expected-error@+1 {{layout order [0, 0] is not a permutation of the 2 dimensions}}
func.func @f(%x: tensor<4x64xf16, #spyre_graph.layout<order = [0, 0], SEN169_FP16>>) {
  return
}

// -----

// SG-LAYOUT-C2
// expected-error@+1 {{layout format IEEE_FP32 does not store elements of type 'f16'}}
func.func @f(%x: tensor<4x64xf16, #spyre_graph.layout<order = [0, 1], IEEE_FP32>>) {
  return
}

// -----

// SG-EXPLICIT-LAYOUT-C1
// expected-error@+1 {{layout has 1 host strides for 2 dimensions}}
func.func @f(%x: tensor<4x64xf16, #spyre_graph.explicit_layout<device_size = [1, 4, 64], stride_map = [64, 64, 1], host_strides = [1], SEN169_FP16>>) {
  return
}

// -----

// SG-EXPLICIT-LAYOUT-C2
// expected-error@+1 {{layout format IEEE_FP32 does not store elements of type 'f16'}}
func.func @f(%x: tensor<4x64xf16, #spyre_graph.explicit_layout<device_size = [2, 4, 32], stride_map = [32, 64, 1], host_strides = [64, 1], IEEE_FP32>>) {
  return
}

// -----

// SG-DIVISION-C1
func.func @f(%x: memref<4x64xf16>) {
  // expected-error@+1 {{division has 1 splits and 1 chunks for 2 loop dimensions}}
  spyre_graph.neg ins(%x : memref<4x64xf16>) outs(%x : memref<4x64xf16>)
    {division = #spyre_graph.division<splits = [1], chunks = [4]>}
  return
}

// -----

// SG-DIVISION-C1
// expected-error@+1 {{splits must be positive and chunks not negative, but are [1, 0] and [4, 64]}}
#d = #spyre_graph.division<splits = [1, 0], chunks = [4, 64]>

// -----

// SG-DIVISION-C1
// expected-error@+1 {{splits must be positive and chunks not negative, but are [1, 1] and [-4, 64]}}
#d = #spyre_graph.division<splits = [1, 1], chunks = [-4, 64]>

// -----

// (2^32 + 1) x 2^32 is 2^32 in 64 bits, and so would cover the 64 rows.
// SG-DIVISION-C6
// expected-error@+1 {{division into [4294967297, 1] slices of [4294967296, 64] iterations has more cores or iterations than 63 bits can count}}
#d = #spyre_graph.division<splits = [4294967297, 1], chunks = [4294967296, 64]>

// -----

// 2^32 x 2^32 cores are 0 in 64 bits.
// SG-DIVISION-C6
// expected-error@+1 {{division into [4294967296, 4294967296] slices of [1, 1] iterations has more cores or iterations than 63 bits can count}}
#d = #spyre_graph.division<splits = [4294967296, 4294967296], chunks = [1, 1]>

// -----

// SG-DIVISION-C2
func.func @f(%x: memref<4x64xf16>) {
  // expected-error@+1 {{3 slices of 2 iterations do not cover loop dimension 0 of extent 4 without an empty slice}}
  spyre_graph.neg ins(%x : memref<4x64xf16>) outs(%x : memref<4x64xf16>)
    {division = #spyre_graph.division<splits = [3, 1], chunks = [2, 64]>}
  return
}

// -----

// SG-DIVISION-C2
func.func @f(%x: memref<4x64xf16>) {
  // expected-error@+1 {{1 slices of 3 iterations do not cover loop dimension 0 of extent 4}}
  spyre_graph.neg ins(%x : memref<4x64xf16>) outs(%x : memref<4x64xf16>)
    {division = #spyre_graph.division<splits = [1, 1], chunks = [3, 64]>}
  return
}

// -----

// SG-DIVISION-C3
func.func @f(%x: memref<4x64xf16>, %y: memref<4xi64>) {
  // expected-error@+1 {{loop dimension 1 is not parallel and cannot be split: parts of its result cannot be combined}}
  spyre_graph.argmax ins(%x : memref<4x64xf16>) outs(%y : memref<4xi64>)
    {dims = array<i64: 1>, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 32]>}
  return
}

// -----

// SG-DIVISION-C3
func.func @f(%x: memref<4x64xf16>, %y: memref<f16>) {
  // expected-error@+1 {{reduction dimensions 0 and 1 are both split; split only one of them}}
  spyre_graph.max ins(%x : memref<4x64xf16>) outs(%y : memref<f16>)
    {dims = array<i64: 0, 1>, division = #spyre_graph.division<splits = [2, 2], chunks = [2, 32]>}
  return
}

// -----

// SG-DIVISION-C4
func.func @f(%x: memref<4x64xf16>, %y: memref<4xf16>) {
  // expected-error@+1 {{reduction dimension 1 is split, so it must be the first split one in core order}}
  spyre_graph.max ins(%x : memref<4x64xf16>) outs(%y : memref<4xf16>)
    {dims = array<i64: 1>, division = #spyre_graph.division<splits = [2, 2], chunks = [2, 32]>}
  return
}

// -----

// SG-DIVISION-C4
func.func @f(%x: memref<4x64xf16>, %y: memref<4xf16>) {
  // expected-error@+1 {{order of the division, [1, 1], is not a permutation of the 2 loop dimensions}}
  spyre_graph.max ins(%x : memref<4x64xf16>) outs(%y : memref<4xf16>)
    {dims = array<i64: 1>, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 32], order = [1, 1]>}
  return
}

// -----

// SG-PLACEMENT-C1
// expected-error@+1 {{offset -128 is not a multiple of 128 bytes from 0 on}}
#p = #spyre_graph.placement<pool, offset = -128>

// -----

// SG-PLACEMENT-C1
// expected-error@+1 {{offset 64 is not a multiple of 128 bytes from 0 on}}
#p = #spyre_graph.placement<lx, offset = 64, local = [4, 64]>

// -----

// SG-PLACEMENT-C2
// expected-error@+1 {{local elements must not be negative, but are [4, -1]}}
#p = #spyre_graph.placement<lx, offset = 0, local = [4, -1]>

// -----

// SG-PLACEMENT-C2
// expected-error@+1 {{local elements [4, 64] are for lx only}}
#p = #spyre_graph.placement<pool, offset = 0, local = [4, 64]>

// -----

// SG-PLACEMENT-C3
func.func @f() {
  // expected-error@+1 {{placement in LX has 1 local extents for 2 dimensions}}
  %0 = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [4]>} : memref<4x64xf16>
  return
}

// -----

// SG-PLACEMENT-C3
func.func @f() {
  // expected-error@+1 {{spyre_graph.placement must be a #spyre_graph.placement on a memref.alloc, but is 0 : i64}}
  %0 = memref.alloc() {spyre_graph.placement = 0} : memref<4x64xf16>
  return
}

// -----

// SG-VIEW-C1
func.func @f(%x: tensor<4x64xf16>) -> tensor<64x4xf16> {
  // expected-error@+1 {{map must take 2 coordinates to 2, but is affine_map<(d0) -> (d0, 0)>}}
  %0 = spyre_graph.view %x, affine_map<(d0) -> (d0, 0)> : tensor<4x64xf16> -> tensor<64x4xf16>
  return %0 : tensor<64x4xf16>
}

// -----

// SG-VIEW-C2
func.func @f(%x: tensor<4x64xf16>) -> tensor<64x4xf32> {
  // expected-error@+1 {{element type of the result, 'f32', must be the source's, 'f16'}}
  %0 = spyre_graph.view %x, affine_map<(d0, d1) -> (d1, d0)> : tensor<4x64xf16> -> tensor<64x4xf32>
  return %0 : tensor<64x4xf32>
}

// -----

// SG-VIEW-C3
func.func @f(%x: tensor<4x64xf16>) -> tensor<64x4xf16> {
  // expected-error@+1 {{reads coordinates 0 to 63 of source dimension 0, whose extent is 4}}
  %0 = spyre_graph.view %x, affine_map<(d0, d1) -> (d0, d1)> : tensor<4x64xf16> -> tensor<64x4xf16>
  return %0 : tensor<64x4xf16>
}

// -----

// SG-VIEW-C3
func.func @f(%x: tensor<4x64xf16>) -> tensor<4x64xf16> {
  // expected-error@+1 {{reads coordinates -1 to 2 of source dimension 0, whose extent is 4}}
  %0 = spyre_graph.view %x, affine_map<(d0, d1) -> (d0 - 1, d1)> : tensor<4x64xf16> -> tensor<4x64xf16>
  return %0 : tensor<4x64xf16>
}

// -----

// SG-MATMUL-C1
func.func @f(%x: memref<4x8xf16>, %y: memref<8x2xf16>, %o: memref<4x2xf16>) {
  // expected-error@+1 {{expects 3 inputs, but has 2}}
  spyre_graph.matmul ins(%x, %y : memref<4x8xf16>, memref<8x2xf16>) outs(%o : memref<4x2xf16>) {has_bias}
  return
}

// -----

// SG-OP-C1
func.func @f(%x: memref<4x8xf16>, %o: memref<4x2xf16>) {
  // expected-error@+1 {{expects 2 to 5 inputs, but has 1}}
  spyre_graph.matmul ins(%x : memref<4x8xf16>) outs(%o : memref<4x2xf16>)
  return
}

// -----

// SG-MATMUL-C2
func.func @f(%x: memref<4x8xf16>, %y: memref<7x2xf16>, %o: memref<4x2xf16>) {
  // expected-error@+1 {{spyre_graph.matmul}}
  spyre_graph.matmul ins(%x, %y : memref<4x8xf16>, memref<7x2xf16>) outs(%o : memref<4x2xf16>)
  return
}

// -----

// SG-MATMUL-C2
func.func @f(%x: memref<8xf16>, %y: memref<8x2xf16>, %o: memref<4x2xf16>) {
  // expected-error@+1 {{operands must be matrices or batches of matrices}}
  spyre_graph.matmul ins(%x, %y : memref<8xf16>, memref<8x2xf16>) outs(%o : memref<4x2xf16>)
  return
}

// -----

// SG-GATHER-C1
func.func @f(%table: memref<10x64xf16>, %o: memref<4x64xf16>) {
  // expected-error@+1 {{expects 2 inputs, but has 1}}
  spyre_graph.gather ins(%table : memref<10x64xf16>) outs(%o : memref<4x64xf16>) {axis = 0 : i64}
  return
}

// -----

// SG-GATHER-C1
func.func @f(%table: memref<10x64xf16>, %index: memref<4xf32>, %o: memref<4x64xf16>) {
  // expected-error@+1 {{index elements must be integers, but are 'f32'}}
  spyre_graph.gather ins(%table, %index : memref<10x64xf16>, memref<4xf32>) outs(%o : memref<4x64xf16>) {axis = 0 : i64}
  return
}

// -----

// SG-GATHER-C2
func.func @f(%table: memref<10x64xf16>, %index: memref<4xi64>, %o: memref<4x64xf16>) {
  // expected-error@+1 {{axis 2 is not a dimension of}}
  spyre_graph.gather ins(%table, %index : memref<10x64xf16>, memref<4xi64>) outs(%o : memref<4x64xf16>) {axis = 2 : i64}
  return
}

// -----

// SG-GATHER-C2
func.func @f(%table: memref<10x64xf16>, %index: memref<4xi64>, %o: memref<4x64xf16>) {
  // expected-error@+1 {{map result for axis 0 must be the constant 0}}
  spyre_graph.gather ins(%table, %index : memref<10x64xf16>, memref<4xi64>) outs(%o : memref<4x64xf16>)
    {axis = 0 : i64, extents = array<i64: 4, 64>,
     maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>]}
  return
}

// -----

// SG-SCATTER-C1
func.func @f(%source: memref<4x64xf16>, %index: memref<4xf16>, %o: memref<10x64xf16>) {
  // expected-error@+1 {{index elements must be integers, but are 'f16'}}
  spyre_graph.scatter ins(%source, %index : memref<4x64xf16>, memref<4xf16>) outs(%o : memref<10x64xf16>) {axis = 0 : i64}
  return
}

// -----

// SG-SCATTER-C1
func.func @f(%source: memref<4x64xf16>, %index: memref<4xi1>, %o: memref<10x64xf16>) {
  // expected-error@+1 {{index elements must be integers, but are 'i1'}}
  spyre_graph.scatter_max ins(%source, %index : memref<4x64xf16>, memref<4xi1>) outs(%o : memref<10x64xf16>) {axis = 0 : i64}
  return
}

// -----

// SG-SCATTER-C2
func.func @f(%source: memref<4x64xf16>, %index: memref<4xi64>, %o: memref<10x64xf16>) {
  // expected-error@+1 {{axis -1 is not a dimension of}}
  spyre_graph.scatter ins(%source, %index : memref<4x64xf16>, memref<4xi64>) outs(%o : memref<10x64xf16>) {axis = -1 : i64}
  return
}

// -----

// SG-OP-C1
func.func @f(%x: memref<4x8xf16>) {
  // expected-error@+1 {{expects 2 inputs, but has 1}}
  spyre_graph.add ins(%x : memref<4x8xf16>) outs(%x : memref<4x8xf16>)
  return
}

// -----

// SG-OP-C1
func.func @f(%x: memref<4x8xf16>) {
  // expected-error@+1 {{expects 3 inputs, but has 4}}
  spyre_graph.clamp ins(%x, %x : memref<4x8xf16>, memref<4x8xf16>) outs(%x : memref<4x8xf16>) {immediates = [unit, 0.0, 1.0, unit]}
  return
}

// -----

// SG-OP-C1
func.func @f(%x: memref<4x8xf16>, %y: memref<4xf16>) {
  // expected-error@+1 {{expects 1 to 2 inputs, but has 3}}
  spyre_graph.sum_squares ins(%x, %x, %x : memref<4x8xf16>, memref<4x8xf16>, memref<4x8xf16>) outs(%y : memref<4xf16>) {dims = array<i64: 1>, scale = 1.0}
  return
}

// -----

// SG-OP-C2
func.func @f(%x: memref<4x8xf16>) {
  // expected-error@+1 {{has no loop dimension 7, only 2}}
  spyre_graph.cumsum ins(%x : memref<4x8xf16>) outs(%x : memref<4x8xf16>) {dim = 7 : i64}
  return
}

// -----

// SG-OP-C2
func.func @f(%x: memref<4x8xf16>) {
  // expected-error@+1 {{has no loop dimension -1, only 2}}
  spyre_graph.cumsum ins(%x : memref<4x8xf16>) outs(%x : memref<4x8xf16>) {dim = -1 : i64}
  return
}

// -----

// SG-OP-C2
func.func @f(%x: memref<4xi32>) {
  // expected-error@+1 {{has no loop dimension 1, only 1}}
  spyre_graph.iota outs(%x : memref<4xi32>) {dim = 1 : i64, start = 0 : i64, step = 1 : i64}
  return
}

// -----

// SG-OP-C2
func.func @f(%x: memref<4xf16>) {
  // expected-error@+1 {{has no loop dimension 1, only 1}}
  spyre_graph.tri ins(%x : memref<4xf16>) outs(%x : memref<4xf16>) {diagonal = 0 : i64}
  return
}

// -----

// SG-OP-C2
func.func @f(%x: memref<4x8xf16>, %y: memref<4xf16>) {
  // expected-error@+1 {{dims 2 must be distinct dimensions}}
  spyre_graph.sum ins(%x : memref<4x8xf16>) outs(%y : memref<4xf16>) {dims = array<i64: 2>}
  return
}

// -----

// SG-OP-C2
func.func @f(%x: memref<4x8xf16>, %y: memref<4xf16>) {
  // expected-error@+1 {{dims 1, 1 must be distinct dimensions}}
  spyre_graph.sum ins(%x : memref<4x8xf16>) outs(%y : memref<4xf16>) {dims = array<i64: 1, 1>}
  return
}

// -----

// SG-OP-C3
func.func @f(%x: memref<4x9xf16>, %y: memref<4x8xf16>) {
  // expected-error@+1 {{input 'memref<4x9xf16>' cannot be broadcast to [4, 8]}}
  spyre_graph.add ins(%y, %x : memref<4x8xf16>, memref<4x9xf16>) outs(%y : memref<4x8xf16>)
  return
}

// -----

// SG-OP-C3
func.func @f(%x: memref<4x4x8xf16>, %y: memref<4x8xf16>) {
  // expected-error@+1 {{input 'memref<4x4x8xf16>' cannot be broadcast to [4, 8]}}
  spyre_graph.neg ins(%x : memref<4x4x8xf16>) outs(%y : memref<4x8xf16>)
  return
}

// -----

// SG-OP-C3
func.func @f(%x: memref<4x8xf16>, %y: memref<8xf16>) {
  // expected-error@+1 {{reduces to [4, 1] or [4], but its init is}}
  spyre_graph.sum ins(%x : memref<4x8xf16>) outs(%y : memref<8xf16>) {dims = array<i64: 1>}
  return
}

// -----

// SG-OP-C3
func.func @f(%x: memref<4x8xf16>, %i: memref<3xi32>, %y: memref<4x8xf16>) {
  // expected-error@+1 {{shapes do not agree: expects [3, 8], but found}}
  spyre_graph.gather ins(%x, %i : memref<4x8xf16>, memref<3xi32>) outs(%y : memref<4x8xf16>) {axis = 0 : i64}
  return
}

// -----

// SG-OP-C3
func.func @f(%x: memref<4x8xf16>, %i: memref<3xi32>, %y: memref<9x8xf16>) {
  // expected-error@+1 {{shapes do not agree: expects [3, 8], but found}}
  spyre_graph.scatter ins(%x, %i : memref<4x8xf16>, memref<3xi32>) outs(%y : memref<9x8xf16>) {axis = 0 : i64}
  return
}

// -----

// SG-OP-C4
func.func @f(%x: memref<4x8xf16>, %y: memref<4x2xf16>) {
  // expected-error@+1 {{must have maps and extents, because this operation has no default ones}}
  spyre_graph.exx2 ins(%x : memref<4x8xf16>) outs(%y : memref<4x2xf16>) {scale = 0.125 : f64}
  return
}

// -----

// SG-OP-C5
func.func @f(%x: memref<4x8xf8E4M3FN>, %y: memref<4x8xf16>) {
  // expected-error@+1 {{computes with 'f8E4M3FN', which is moved, converted and multiplied by matrices only; convert it to f16}}
  spyre_graph.exp ins(%x : memref<4x8xf8E4M3FN>) outs(%y : memref<4x8xf16>)
  return
}

// -----

// SG-OP-C5
func.func @f(%x: memref<4x8xf8E5M2FNUZ>, %y: memref<8x2xf8E4M3FN>, %o: memref<4x2xf16>) {
  // expected-error@+1 {{computes with 'f8E5M2FNUZ'}}
  spyre_graph.matmul ins(%x, %y : memref<4x8xf8E5M2FNUZ>, memref<8x2xf8E4M3FN>) outs(%o : memref<4x2xf16>)
  return
}

// -----

// SG-OP-C5
func.func @f(%x: memref<4x8xf8E4M3FN>, %y: memref<8x2xf8E4M3FN>, %o: memref<4x2xf8E4M3FN>) {
  // expected-error@+1 {{computes with 'f8E4M3FN'}}
  spyre_graph.matmul ins(%x, %y : memref<4x8xf8E4M3FN>, memref<8x2xf8E4M3FN>) outs(%o : memref<4x2xf8E4M3FN>)
  return
}

// -----

// SG-MATMUL-C1
func.func @f(%x: memref<4x8xf16>, %y: memref<8x2xf16>, %s: memref<1xf32>, %o: memref<4x2xf16>) {
  // expected-error@+1 {{num_scales must be 0, 1 or 2, but is 3}}
  spyre_graph.matmul ins(%x, %y, %s, %s, %s : memref<4x8xf16>, memref<8x2xf16>, memref<1xf32>, memref<1xf32>, memref<1xf32>) outs(%o : memref<4x2xf16>) {num_scales = 3 : i64}
  return
}

// -----

// SG-MATMUL-C1
func.func @f(%x: memref<4x8xf16>, %y: memref<8x2xf16>, %s: memref<1xf32>, %o: memref<4x2xf16>) {
  // expected-error@+1 {{expects 4 inputs, but has 3}}
  spyre_graph.matmul ins(%x, %y, %s : memref<4x8xf16>, memref<8x2xf16>, memref<1xf32>) outs(%o : memref<4x2xf16>) {num_scales = 1 : i64, has_bias}
  return
}

// -----

// SG-LAYOUT-C3
// expected-error@+1 {{layout packs 3 steps of a dimension into sticks of 128 elements of 2 dimensions}}
func.func @f(%x: tensor<4x64xf8E4M3FN, #spyre_graph.layout<order = [0, 1], packed = 3, SEN143_FP8>>) {
  return
}

// -----

// SG-LAYOUT-C3
// expected-error@+1 {{layout packs 2 steps of a dimension into sticks of 128 elements of 1 dimensions}}
func.func @f(%x: tensor<64xf8E4M3FN, #spyre_graph.layout<order = [0], packed = 2, SEN143_FP8>>) {
  return
}

// -----

// SG-UNPACK-C1
func.func @f(%w: memref<4xi8>, %o: memref<16xf16>) {
  // expected-error@+1 {{words must be integers that have 4 bits for each of the 4 iterations of loop dimension 1}}
  spyre_graph.unpack_int4 ins(%w : memref<4xi8>) outs(%o : memref<16xf16>)
      {dim = 1 : i64, maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i * 4 + j)>], extents = array<i64: 4, 4>}
  return
}

// -----

// SG-UNPACK-C1
func.func @f(%w: memref<4xi32>, %o: memref<32xf16>) {
  // expected-error@+1 {{dim 2 is none of the 2 loop dimensions}}
  spyre_graph.unpack_int4 ins(%w : memref<4xi32>) outs(%o : memref<32xf16>)
      {dim = 2 : i64, maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i * 8 + j)>], extents = array<i64: 4, 8>}
  return
}

// -----

func.func @f(%i: index) {
  // SG-TILE-START-C1
  // expected-error@+1 {{must be given the induction variable of an scf.for}}
  %s = spyre_graph.tile_start %i
  return
}

// -----

func.func @f() {
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c4 to %c16 step %c4 {
    // SG-TILE-START-C1
    // expected-error@+1 {{must be in a loop from 0 to a number by a constant step}}
    %s = spyre_graph.tile_start %i
  }
  return
}

// -----

func.func @f() {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c3 step %c4 {
    // SG-TILE-START-C1
    // expected-error@+1 {{must be in a loop that has a whole tile of 4, but it ends at 3}}
    %s = spyre_graph.tile_start %i
  }
  return
}
