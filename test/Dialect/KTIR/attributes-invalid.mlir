// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt -split-input-file -verify-diagnostics %s

// Attributes, types and argument attributes that break a rule.

// KTDP-MEMORY_SPACE-C1
// expected-error@+1 {{core must be non-negative, but got -2}}
func.func private @f(memref<4xf16, #ktdp.memory_space<ct_local, ct_id = -2>>)

// -----

// KTDP-MEMORY_SPACE-C2
// expected-error@+1 {{core affinity is only valid for LX or L0 memory spaces, but got memory space 'HBM' with core = 2}}
func.func private @f(memref<4xf16, #ktdp.spyre_memory_space<HBM, core = 2>>)

// -----

// KTDP-MEMORY_SPACE-C2
// expected-error@+1 {{but got memory space 'HBM' with core = 0}}
func.func private @f(memref<4xf16, #ktdp.memory_space<global, ct_id = 0>>)

// -----

// The spellings do not mix.
// expected-error@+1 {{unknown memory space 'HBM', expected 'global' or 'ct_local'}}
func.func private @f(memref<4xf16, #ktdp.memory_space<HBM>>)

// -----

// expected-error@+1 {{unknown memory space 'global', expected 'HBM', 'LX', 'L0' or 'unspecified'}}
func.func private @f(memref<4xf16, #ktdp.spyre_memory_space<global>>)

// -----

// expected-error@+1 {{expected 'ct_id'}}
func.func private @f(memref<4xf16, #ktdp.memory_space<ct_local, core = 1>>)

// -----

// expected-error@+1 {{unknown attribute 'space' of dialect 'ktdp'}}
func.func private @f(memref<4xf16, #ktdp.space<global>>)

// -----

// KTDP-ACCESS_TILE-C1
// expected-error@+1 {{tile element type must be 'index', but got: 'f16'}}
func.func private @f(!ktdp.access_tile<4xf16>)

// -----

// KTDP-ACCESS_TILE-C2
// expected-error@+1 {{expected}}
func.func private @f(!ktdp.access_tile<-4xindex>)

// -----

// KTDP-RUNTIME_ARG-C1
// expected-error@+1 {{runtime_arg type must be index, integer or float, but got 'tensor<4xf16>'}}
func.func private @f(!ktdp.runtime_arg<tensor<4xf16>>)

// -----

// KTDP-RUNTIME_ARG-C2
// expected-error@+1 {{runtime_arg granularity must be positive, but got 0}}
func.func private @f(!ktdp.runtime_arg<index, granularity=0>)

// -----

// KTDP-RUNTIME_ARG-C3
// expected-error@+1 {{runtime_arg upperbound must be positive, but got -1}}
func.func private @f(!ktdp.runtime_arg<index, upperbound=-1>)

// -----

// expected-error@+1 {{duplicate runtime_arg keyword 'upperbound'}}
func.func private @f(!ktdp.runtime_arg<index, upperbound=1, upperbound=2>)

// -----

// expected-error@+1 {{unknown runtime_arg keyword 'step', expected 'granularity' or 'upperbound'}}
func.func private @f(!ktdp.runtime_arg<index, step=1>)

// -----

// KTDP-TILE_FUTURE-C1
#groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>
// expected-error@+1 {{tile_future tile must be a ranked tensor, but got 'f16'}}
func.func private @f(!ktdp.tile_future<f16, groups = #groups>)

// -----

// KTDP-TILE_FUTURE-C2
#groups = affine_set<(g)[n] : (g >= 0, -g + n >= 0)>
// expected-error@+1 {{tile_future groups must have one dimension and no symbol, but got 1 and 1}}
func.func private @f(!ktdp.tile_future<tensor<4xf16>, groups = #groups>)

// -----

// expected-error@+1 {{invalid kind of attribute specified}}
func.func private @f(!ktdp.tile_future<tensor<4xf16>, groups = 4 : i64>)

// -----

// KTDP-LAYOUT-C1
// expected-error@+1 {{device_size and stride_map must have equal, non-zero length, but got 3 and 2}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>})

// -----

// KTDP-LAYOUT-C1
// expected-error@+1 {{equal, non-zero length, but got 0 and 0}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [], stride_map = [], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>})

// -----

// KTDP-LAYOUT-C2
// expected-error@+1 {{shape and strides must have equal length, but got 2 and 1}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [1]>})

// -----

// KTDP-LAYOUT-C3
// expected-error@+1 {{device_size must not be negative and its product fit 63 bits}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, -1, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>})

// -----

// KTDP-LAYOUT-C3
// expected-error@+1 {{device_size must not be negative and its product fit 63 bits}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [4294967296, 4294967296, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>})

// -----

// KTDP-LAYOUT-C3
// expected-error@+1 {{shape must not be negative and its product fit 63 bits}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, -1], strides = [100, 1]>})

// -----

// KTDP-LAYOUT-C4
// expected-error@+1 {{unknown device format 'FP16'}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>})

// -----

// KTDP-LAYOUT-C4
// expected-error@+1 {{unknown host dtype 'float64'}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float64, shape = [100, 100], strides = [100, 1]>})

// -----

// KTDP-LAYOUT-C4
// expected-error@+1 {{unknown element arrangement 'ODD'}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1], arrangement = ODD>})

// -----

// KTDP-LAYOUT-C5
// expected-error@+1 {{stride_map entries must be at least -1}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, -2, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>})

// -----

// KTDP-LAYOUT-C6
// expected-error@+1 {{no device dimension counts single steps of dimension 1}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 2]>})

// -----

// KTDP-LAYOUT-C6
// expected-error@+1 {{steps 1 and 1 of dimension 0 do not nest}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 1, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [1, 1]>})

// -----

// KTDP-LAYOUT-C6
// expected-error@+1 {{sizes and strides must not be negative}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [-100, 1]>})

// -----

// KTDP-LAYOUT-C6
// expected-error@+1 {{a device dimension of 99 positions is too small for dimension 0, which needs 100}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 99, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>})

// -----

// KTDP-LAYOUT-C6
// expected-error@+1 {{the last device size must be a stick of 64 elements of SEN169_FP16, but is 60}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 60], stride_map = [60, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>})

// -----

// expected-error@+1 {{layout lacks 'format'}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], host_dtype = float16, shape = [100, 100], strides = [100, 1]>})

// -----

// expected-error@+1 {{'shape' is given twice}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1], shape = [1]>})

// -----

// expected-error@+1 {{unknown layout entry 'size'}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1], size = [1]>})

// -----

// KTDP-ARG-C1
// expected-error@+1 {{argument 0: 'ktdp.name' must be a non-empty string, but got 1 : i64}}
func.func private @f(index {ktdp.name = 1 : i64})

// -----

// KTDP-ARG-C1
// expected-error@+1 {{argument 1: 'ktdp.name' must be a non-empty string, but got ""}}
func.func private @f(index, index {ktdp.name = ""})

// -----

// KTDP-ARG-C2
// expected-error@+1 {{argument 0: 'ktdp.layout' must be a #ktdp.layout, but got "row-major"}}
func.func private @f(index {ktdp.layout = "row-major"})

// -----

// KTDP-ARG-C3
// expected-error@+1 {{argument 0: 'ktdp.pool_size' must be a non-negative i64, but got 4 : i32}}
func.func private @f(index {ktdp.pool_size = 4 : i32})

// -----

// KTDP-ARG-C3
// expected-error@+1 {{argument 0: 'ktdp.pool_size' must be a non-negative i64, but got -1 : i64}}
func.func private @f(index {ktdp.pool_size = -1 : i64})

// -----

// KTDP-ARG-C4
// expected-error@+1 {{argument 0: 'ktdp.layout' and 'ktdp.pool_size' cannot be used together}}
func.func private @f(index {ktdp.pool_size = 4 : i64, ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>})

// -----

// KTDP-ARG-C4
// expected-error@+1 {{argument 0: 'ktdp.pool_size' needs an argument of type 'index', but got 'i64'}}
func.func private @f(i64 {ktdp.pool_size = 4 : i64})

// -----

// KTDP-ARG-C5
// expected-error@+1 {{argument 0: unknown argument attribute 'ktdp.layuot', expected 'ktdp.name', 'ktdp.layout', 'ktdp.pool_size', 'ktdp.reach', 'ktdp.size_map', 'ktdp.used_map' or 'ktdp.least'}}
func.func private @f(index {ktdp.layuot = "row-major"})

// -----

// KTDP-ARG-C6
// expected-error@+1 {{argument 0: 'ktdp.reach' must be an array of i64 that the shape of 'ktdp.layout' bounds, but got 4 : i64}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>, ktdp.reach = 4 : i64})

// -----

// KTDP-ARG-C6
// expected-error@+1 {{argument 0: 'ktdp.reach' must be an array of i64 that the shape of 'ktdp.layout' bounds, but got array<i64: 100, 100>}}
func.func private @f(index {ktdp.reach = array<i64: 100, 100>})

// -----

// KTDP-ARG-C6
// expected-error@+1 {{argument 0: 'ktdp.reach' must be an array of i64 that the shape of 'ktdp.layout' bounds, but got array<i64: 100>}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>, ktdp.reach = array<i64: 100>})

// -----

// KTDP-ARG-C6
// expected-error@+1 {{argument 0: 'ktdp.reach' must be an array of i64 that the shape of 'ktdp.layout' bounds, but got array<i64: 100, 101>}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>, ktdp.reach = array<i64: 100, 101>})

// -----

// KTDP-ARG-C6
// expected-error@+1 {{argument 0: 'ktdp.reach' must be an array of i64 that the shape of 'ktdp.layout' bounds, but got array<i64: -1, 100>}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>, ktdp.reach = array<i64: -1, 100>})

// -----

// KTDP-ARG-C7
// expected-error@+1 {{argument 0: 'ktdp.size_map' must be an affine map from the function's run-time arguments to the sizes of 'ktdp.layout', but got affine_map<()[s0] -> (s0)>}}
func.func private @f(index {ktdp.size_map = affine_map<()[s] -> (s)>}, !ktdp.runtime_arg<index, granularity=1, upperbound=100>)

// -----

// KTDP-ARG-C7
// expected-error@+1 {{but got affine_map<()[s0] -> (s0)>}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>, ktdp.size_map = affine_map<()[s] -> (s)>}, !ktdp.runtime_arg<index, granularity=1, upperbound=100>)

// -----

// KTDP-ARG-C7
// expected-error@+1 {{but got affine_map<()[s0, s1] -> (s0, s1)>}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>, ktdp.size_map = affine_map<()[s, t] -> (s, t)>}, !ktdp.runtime_arg<index, granularity=1, upperbound=100>)

// -----

// KTDP-ARG-C7
// expected-error@+1 {{argument 0: 'ktdp.used_map' must be an affine map from the function's run-time arguments to the sizes of 'ktdp.layout', but got affine_map<()[s0] -> (s0)>}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>, ktdp.used_map = affine_map<()[s] -> (s)>}, !ktdp.runtime_arg<index, granularity=1, upperbound=100>)

// -----

// KTDP-ARG-C7
// expected-error@+1 {{argument 0: 'ktdp.used_map' must not stand beside 'ktdp.size_map'}}
func.func private @f(index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>, ktdp.size_map = affine_map<()[s] -> (s, 100)>, ktdp.used_map = affine_map<()[s] -> (s, 100)>}, !ktdp.runtime_arg<index, granularity=1, upperbound=100>)

// -----

// KTDP-ARG-C8
// expected-error@+1 {{argument 0: 'ktdp.least' must be an i64 on a run-time argument of an integer type, not above its upper bound, but got 2 : i64}}
func.func private @f(index {ktdp.least = 2 : i64})

// -----

// KTDP-ARG-C8
// expected-error@+1 {{but got 101 : i64}}
func.func private @f(!ktdp.runtime_arg<index, granularity=1, upperbound=100> {ktdp.least = 101 : i64})

// -----

// KTDP-ARG-C8
// expected-error@+1 {{but got 2 : i64}}
func.func private @f(!ktdp.runtime_arg<f16> {ktdp.least = 2 : i64})
