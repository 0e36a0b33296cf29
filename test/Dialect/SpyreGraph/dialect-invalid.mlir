// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s -split-input-file -verify-diagnostics

// SG-LAYOUT-C1
// expected-error@+1 {{layout order [0, 0] is not a permutation of the 2 dimensions}}
func.func private @f(tensor<4x8xf16, #spyre_graph.layout<order = [0, 0], SEN169_FP16>>)

// -----

// SG-LAYOUT-C1
// expected-error@+1 {{layout order [0] is not a permutation of the 2 dimensions}}
func.func private @f(tensor<4x8xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>)

// -----

// SG-LAYOUT-C2
// expected-error@+1 {{layout format IEEE_FP32 does not store elements of type 'f16'}}
func.func private @f(tensor<4x8xf16, #spyre_graph.layout<order = [0, 1], IEEE_FP32>>)

// -----

// expected-error@+1 {{unknown device format 'FP99'}}
func.func private @f(tensor<4x8xf16, #spyre_graph.layout<order = [0, 1], FP99>>)

// -----

// SG-EXPLICIT-LAYOUT-C1
// expected-error@+1 {{layout has 1 host strides for 2 dimensions}}
func.func private @f(tensor<4x8xf16, #spyre_graph.explicit_layout<device_size = [1, 4, 64], stride_map = [64, 8, 1], host_strides = [8], SEN169_FP16>>)

// -----

// SG-EXPLICIT-LAYOUT-C1
// expected-error@+1 {{cannot hold a tensor}}
func.func private @f(tensor<4x8xf16, #spyre_graph.explicit_layout<device_size = [1, 2, 64], stride_map = [64, 8, 1], host_strides = [8, 1], SEN169_FP16>>)

// -----

// SG-EXPLICIT-LAYOUT-C2
// expected-error@+1 {{layout format IEEE_FP32 does not store elements of type 'f16'}}
func.func private @f(tensor<4x8xf16, #spyre_graph.explicit_layout<device_size = [1, 4, 32], stride_map = [32, 8, 1], host_strides = [8, 1], IEEE_FP32>>)

// -----

// SG-ARG-C1
// expected-error@+1 {{spyre_graph.host_strides of argument 0 has 1 entries}}
func.func private @f(tensor<4x8xf16> {spyre_graph.host_strides = array<i64: 1>})

// -----

// SG-ARG-C2
// expected-error@+1 {{spyre_graph.name must be a string}}
func.func private @f(tensor<4x8xf16> {spyre_graph.name = 1 : i64})

// -----

// SG-ARG-C3
// expected-error@+1 {{unknown argument attribute}}
func.func private @f(tensor<4x8xf16> {spyre_graph.nonsense})

// -----

func.func @view_map(%x: tensor<4x8xf16>) {
  // SG-VIEW-C1
  // expected-error@+1 {{map must take 2 coordinates to 2}}
  %v = spyre_graph.view %x, affine_map<(d0, d1) -> (d0)> : tensor<4x8xf16> -> tensor<4x8xf16>
  return
}

// -----

// Divisions that have no value, or whose ranges are not known.
func.func @view_divisors(%x: tensor<4xf16>) {
  // SG-OP-C9
  // expected-error@+1 {{maps divide by positive constants only, found affine_map<(d0) -> (d0 mod 0)>}}
  %0 = spyre_graph.view %x, affine_map<(d0) -> (d0 mod 0)> : tensor<4xf16> -> tensor<4xf16>
  return
}

// -----

func.func @view_negative_divisor(%x: tensor<4xf16>) {
  // SG-OP-C9
  // expected-error@+1 {{maps divide by positive constants only, found affine_map<(d0) -> (d0 floordiv -2)>}}
  %1 = spyre_graph.view %x, affine_map<(d0) -> (d0 floordiv -2)> : tensor<4xf16> -> tensor<4xf16>
  return
}

// -----

func.func @loop_divisors(%x: tensor<4xf16>) {
  // SG-OP-C9
  // expected-error@+1 {{maps divide by positive constants only, found affine_map<(d0) -> (d0 ceildiv 0)>}}
  %0 = spyre_graph.neg ins(%x : tensor<4xf16>) outs(%x : tensor<4xf16>)
    {maps = [affine_map<(d0) -> (d0 ceildiv 0)>, affine_map<(d0) -> (d0)>], extents = array<i64: 4>} -> tensor<4xf16>
  return
}

// -----

// 2^41 elements past 64 bits are not element 0.
func.func @view_overflow(%x: tensor<4xf16>) {
  // SG-VIEW-C3
  // expected-error@+1 {{reads coordinates -9223372036854775808 to 9223372036854775807 of source dimension 0, whose extent is 4}}
  %0 = spyre_graph.view %x, affine_map<(d0) -> ((d0 * 4611686018427387904) floordiv 1 + d0 * 4611686018427387904)> : tensor<4xf16> -> tensor<8xf16>
  return
}

// -----

func.func @view_type(%x: tensor<4x8xf16>) {
  // SG-VIEW-C2
  // expected-error@+1 {{element type of the result, 'f32', must be the source's, 'f16'}}
  %v = spyre_graph.view %x, affine_map<(d0, d1) -> (d0, d1)> : tensor<4x8xf16> -> tensor<4x8xf32>
  return
}

// -----

func.func @view_range(%x: tensor<4x8xf16>) {
  // SG-VIEW-C3
  // expected-error@+1 {{reads coordinates 1 to 8 of source dimension 1, whose extent is 8}}
  %v = spyre_graph.view %x, affine_map<(d0, d1) -> (d0, d1 + 1)> : tensor<4x8xf16> -> tensor<4x8xf16>
  return
}

// -----

func.func @result(%x: tensor<4x8xf16>) {
  // SG-OP-C6
  // expected-error@+1 {{must have a result on tensors, none on buffers}}
  spyre_graph.exp ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>)
  return
}

// -----

func.func @result_type(%x: tensor<4x8xf16>) {
  // SG-OP-C6
  // expected-error@+1 {{differs from the type of its init}}
  %r = spyre_graph.exp ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>) -> tensor<4x8xf32>
  return
}

// -----

func.func @dynamic(%x: tensor<?x8xf16>) {
  // SG-OP-C6
  // expected-error@+1 {{operands must have static shapes}}
  %r = spyre_graph.exp ins(%x : tensor<?x8xf16>) outs(%x : tensor<?x8xf16>) -> tensor<?x8xf16>
  return
}

// -----

#l = #spyre_graph.layout<order = [0, 2], SEN169_FP16>

func.func @order_of_buffer(%x: memref<4x8xf16, #l>) {
  // SG-LAYOUT-C1
  // expected-error@+1 {{has a buffer whose layout order [0, 2] is not a permutation of the 2 dimensions}}
  spyre_graph.exp ins(%x : memref<4x8xf16, #l>) outs(%x : memref<4x8xf16, #l>)
  return
}

// -----

func.func @immediates(%x: tensor<4x8xf16>) {
  // SG-OP-C7
  // expected-error@+1 {{immediates name 2 tensor operands, but 1 are given}}
  %r = spyre_graph.add ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>) {immediates = [unit, unit]} -> tensor<4x8xf16>
  return
}

// -----

func.func @immediate_kind(%x: tensor<4x8xf16>) {
  // SG-OP-C7
  // expected-error@+1 {{an immediate must be unit or a number, but found "two"}}
  %r = spyre_graph.add ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>) {immediates = [unit, "two"]} -> tensor<4x8xf16>
  return
}

// -----

func.func @maps_without_extents(%x: tensor<4x8xf16>) {
  // SG-OP-C8
  // expected-error@+1 {{maps and extents must be given together}}
  %r = spyre_graph.exp ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>) {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>]} -> tensor<4x8xf16>
  return
}

// -----

func.func @num_maps(%x: tensor<4x8xf16>) {
  // SG-OP-C8
  // expected-error@+1 {{has 1 maps for 2 operands}}
  %r = spyre_graph.exp ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>) {maps = [affine_map<(d0, d1) -> (d0, d1)>], extents = array<i64: 4, 8>} -> tensor<4x8xf16>
  return
}

// -----

func.func @map_rank(%x: tensor<4x8xf16>) {
  // SG-OP-C8
  // expected-error@+1 {{map of operand 1 must take 2 loop indices to 2 coordinates}}
  %r = spyre_graph.exp ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>) {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], extents = array<i64: 4, 8>} -> tensor<4x8xf16>
  return
}

// -----

func.func @map_range(%x: tensor<4x8xf16>) {
  // SG-OP-C9
  // expected-error@+1 {{operand 0 is accessed at coordinates 0 to 8 of dimension 1, whose extent is 8}}
  %r = spyre_graph.exp ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>) {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>], extents = array<i64: 4, 9>} -> tensor<4x8xf16>
  return
}

// -----

func.func @division_length(%x: tensor<4x8xf16>) {
  // SG-DIVISION-C1
  // expected-error@+1 {{division has 1 splits and 1 chunks for 2 loop dimensions}}
  %r = spyre_graph.exp ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>) {division = #spyre_graph.division<splits = [2], chunks = [2]>} -> tensor<4x8xf16>
  return
}

// -----

func.func @division_cover(%x: tensor<4x8xf16>) {
  // SG-DIVISION-C2
  // expected-error@+1 {{2 slices of 1 iterations do not cover loop dimension 0 of extent 4}}
  %r = spyre_graph.exp ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>) {division = #spyre_graph.division<splits = [2, 1], chunks = [1, 8]>} -> tensor<4x8xf16>
  return
}

// -----

func.func @division_empty(%x: tensor<4x8xf16>) {
  // SG-DIVISION-C2
  // expected-error@+1 {{3 slices of 2 iterations do not cover loop dimension 0 of extent 4 without an empty slice}}
  %r = spyre_graph.exp ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>) {division = #spyre_graph.division<splits = [3, 1], chunks = [2, 8]>} -> tensor<4x8xf16>
  return
}

// -----

func.func @division_scan(%x: tensor<4x8xf16>, %o: tensor<4x8xf16>) {
  // SG-DIVISION-C3
  // expected-error@+1 {{loop dimension 1 is not parallel and cannot be split}}
  %r = spyre_graph.cumsum ins(%x : tensor<4x8xf16>) outs(%o : tensor<4x8xf16>) {dim = 1 : i64, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 4]>} -> tensor<4x8xf16>
  return
}

// -----

func.func @division_sort(%x: tensor<4x8xf16>, %o: tensor<4x8xf16>) {
  // SG-DIVISION-C3
  // expected-error@+1 {{loop dimension 0 is not parallel and cannot be split}}
  %r = spyre_graph.sort ins(%x : tensor<4x8xf16>) outs(%o : tensor<4x8xf16>) {dim = 0 : i64, division = #spyre_graph.division<splits = [2, 1], chunks = [2, 8]>} -> tensor<4x8xf16>
  return
}

// -----

func.func @sort_run(%x: tensor<4x8xf16>, %o: tensor<4x8xf16>) {
  // SG-SORT-C1
  // expected-error@+1 {{runs must have a power of two elements, but have 6}}
  %r = spyre_graph.sort ins(%x : tensor<4x8xf16>) outs(%o : tensor<4x8xf16>) {dim = 1 : i64, run = 6 : i64} -> tensor<4x8xf16>
  return
}

// -----

func.func @sort_indices(%x: tensor<4x8xf16>, %o: tensor<4x8xf16>) {
  // SG-SORT-C2
  // expected-error@+1 {{indices must be integers of 32 or 64 bits, but are 'f16'}}
  %r = spyre_graph.sort ins(%x, %x : tensor<4x8xf16>, tensor<4x8xf16>) outs(%o : tensor<4x8xf16>) {dim = 1 : i64} -> tensor<4x8xf16>
  return
}

// -----

func.func @matmul_inputs(%x: tensor<4x8xf16>, %y: tensor<8x4xf16>, %o: tensor<4x4xf16>) {
  // SG-MATMUL-C1
  // expected-error@+1 {{expects 3 inputs, but has 2}}
  %r = spyre_graph.matmul ins(%x, %y : tensor<4x8xf16>, tensor<8x4xf16>) outs(%o : tensor<4x4xf16>) {has_bias} -> tensor<4x4xf16>
  return
}

// -----

func.func @gather_inputs(%x: tensor<4x8xf16>, %o: tensor<4x8xf16>) {
  // SG-GATHER-C1
  // expected-error@+1 {{index elements must be integers, but are 'f16'}}
  %r = spyre_graph.gather ins(%x, %x : tensor<4x8xf16>, tensor<4x8xf16>) outs(%o : tensor<4x8xf16>) {axis = 0 : i64, maps = [affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], extents = array<i64: 4, 8>} -> tensor<4x8xf16>
  return
}

// -----

func.func @gather_axis(%x: tensor<4x8xf16>, %i: tensor<4xi64>, %o: tensor<4x8xf16>) {
  // SG-GATHER-C2
  // expected-error@+1 {{map result for axis 0 must be the constant 0}}
  %r = spyre_graph.gather ins(%x, %i : tensor<4x8xf16>, tensor<4xi64>) outs(%o : tensor<4x8xf16>) {axis = 0 : i64, maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], extents = array<i64: 4, 8>} -> tensor<4x8xf16>
  return
}

// -----

func.func @scatter_inputs(%x: tensor<4x8xf16>, %i: tensor<4xi1>, %o: tensor<9x8xf16>) {
  // SG-SCATTER-C1
  // expected-error@+1 {{index elements must be integers, but are 'i1'}}
  %r = spyre_graph.scatter ins(%x, %i : tensor<4x8xf16>, tensor<4xi1>) outs(%o : tensor<9x8xf16>) {axis = 0 : i64} -> tensor<9x8xf16>
  return
}

// -----

func.func @scatter_axis(%x: tensor<4x8xf16>, %i: tensor<4xi64>, %o: tensor<9x8xf16>) {
  // SG-SCATTER-C2
  // expected-error@+1 {{map result for axis 0 must be the constant 0}}
  %r = spyre_graph.scatter ins(%x, %i : tensor<4x8xf16>, tensor<4xi64>) outs(%o : tensor<9x8xf16>) {axis = 0 : i64, maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], extents = array<i64: 4, 8>} -> tensor<9x8xf16>
  return
}

// -----

func.func @matmul_shapes(%x: tensor<4x8xf16>, %y: tensor<9x4xf16>, %o: tensor<4x4xf16>) {
  // SG-MATMUL-C2
  // expected-error@+1 {{do not agree}}
  %r = spyre_graph.matmul ins(%x, %y : tensor<4x8xf16>, tensor<9x4xf16>) outs(%o : tensor<4x4xf16>) -> tensor<4x4xf16>
  return
}

// -----

func.func @negative_extent(%x: tensor<4x8xf16>) {
  // SG-OP-C8
  // expected-error@+1 {{loop extents must not be negative}}
  %r = spyre_graph.exp ins(%x : tensor<4x8xf16>) outs(%x : tensor<4x8xf16>) {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], extents = array<i64: 4, -8>} -> tensor<4x8xf16>
  return
}

// -----

func.func @scatter_index_rank(%x: tensor<4x8xf16>, %i: tensor<4x1xi64>, %o: tensor<9x8xf16>) {
  // SG-OP-C3
  // expected-error@+1 {{expects an index of rank 1, but found 'tensor<4x1xi64>'}}
  %r = spyre_graph.scatter ins(%x, %i : tensor<4x8xf16>, tensor<4x1xi64>) outs(%o : tensor<9x8xf16>) {axis = 0 : i64} -> tensor<9x8xf16>
  return
}

// -----

func.func @view_dynamic(%x: tensor<?xf16>) {
  // SG-OP-C6
  // expected-error@+1 {{source and result must have static shapes}}
  %v = spyre_graph.view %x, affine_map<(d0) -> (d0)> : tensor<?xf16> -> tensor<4xf16>
  return
}

// -----

// SG-ARG-C1
// expected-error@+1 {{spyre_graph.host_strides must be an array of i64}}
func.func private @f(tensor<4x8xf16> {spyre_graph.host_strides = [8, 1]})

// -----

// SG-ARG-C4
// expected-error@+1 {{argument 0: layout with device size [2, 4, 64] and stride map [128, 3, 2] cannot hold a tensor of size [4, 100] and strides [3, 2]: stride 128 is not a multiple of host stride 3}}
func.func private @f(tensor<4x100xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>> {spyre_graph.host_strides = array<i64: 3, 2>})

// -----

// SG-ARG-C4
// expected-error@+1 {{argument 1: layout with device size [2, 4, 64] and stride map [64, -1, 1] cannot hold a tensor of size [4, 100] and strides [-1, 1]: sizes and strides must not be negative}}
func.func private @f(index, memref<4x100xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>> {spyre_graph.host_strides = array<i64: -1, 1>})

// -----

// SG-ARG-C4
// expected-error@+1 {{argument 0: a home of size [4, 100] and strides [9223372036854775807, 1] overflows 64 bits}}
func.func private @f(tensor<4x100xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>> {spyre_graph.host_strides = array<i64: 9223372036854775807, 1>})

// -----

// Strides of what has one element say nothing.
// SG-ARG-C4
// expected-error@+1 {{argument 0: layout is for host strides [100, 1], but they are [200, 1]}}
func.func private @f(tensor<4x100xf16, #spyre_graph.explicit_layout<device_size = [2, 4, 64], stride_map = [64, 100, 1], host_strides = [100, 1], SEN169_FP16>> {spyre_graph.host_strides = array<i64: 200, 1>})
func.func private @g(tensor<1x100xf16, #spyre_graph.explicit_layout<device_size = [2, 1, 64], stride_map = [64, 100, 1], host_strides = [100, 1], SEN169_FP16>> {spyre_graph.host_strides = array<i64: 200, 1>})
