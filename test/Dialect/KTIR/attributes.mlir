// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt --verify-roundtrip %s | FileCheck %s
// RUN: spyre-opt --mlir-print-op-generic %s | spyre-opt | FileCheck %s
// RUN: spyre-opt --emit-bytecode %s | spyre-opt | FileCheck %s

// Attributes, types and argument attributes: what is read, and what prints.

// CHECK-LABEL: func.func @memory_spaces
// CHECK-SAME: %{{[^ ]+}}: memref<4xf16, #ktdp.memory_space<global>>
// CHECK-SAME: %{{[^ ]+}}: memref<4xf16, #ktdp.memory_space<ct_local>>
// CHECK-SAME: %{{[^ ]+}}: memref<4xf16, #ktdp.memory_space<ct_local, ct_id = 3>>
// CHECK-SAME: %{{[^ ]+}}: memref<4xf16, #ktdp.memory_space<global>>
// CHECK-SAME: %{{[^ ]+}}: memref<4xf16, #ktdp.memory_space<ct_local>>
// CHECK-SAME: %{{[^ ]+}}: memref<4xf16, #ktdp.memory_space<ct_local, ct_id = 7>>
// CHECK-SAME: %{{[^ ]+}}: memref<4xf16, #ktdp.spyre_memory_space<L0>>
// CHECK-SAME: %{{[^ ]+}}: memref<4xf16, #ktdp.spyre_memory_space<L0, core = 0>>
// CHECK-SAME: %{{[^ ]+}}: memref<4xf16, #ktdp.spyre_memory_space<unspecified>>
func.func @memory_spaces(
    %a: memref<4xf16, #ktdp.memory_space<global>>,
    %b: memref<4xf16, #ktdp.memory_space<ct_local>>,
    %c: memref<4xf16, #ktdp.memory_space<ct_local, ct_id = 3>>,
    %d: memref<4xf16, #ktdp.spyre_memory_space<HBM>>,
    %e: memref<4xf16, #ktdp.spyre_memory_space<LX>>,
    %f: memref<4xf16, #ktdp.spyre_memory_space<LX, core = 7>>,
    %g: memref<4xf16, #ktdp.spyre_memory_space<L0>>,
    %h: memref<4xf16, #ktdp.spyre_memory_space<L0, core = 0>>,
    %i: memref<4xf16, #ktdp.spyre_memory_space<unspecified>>) {
  return
}

// CHECK-LABEL: func.func @access_tiles
// CHECK-SAME: !ktdp.access_tile<index>, %{{[^ ]+}}: !ktdp.access_tile<0xindex>
// CHECK-SAME: !ktdp.access_tile<?x16x?xindex>
func.func @access_tiles(%a: !ktdp.access_tile<index>, %b: !ktdp.access_tile<0xindex>,
                        %c: !ktdp.access_tile<?x16x?xindex>) {
  return
}

// CHECK-LABEL: func.func @runtime_args
// CHECK-SAME: !ktdp.runtime_arg<index>
// CHECK-SAME: !ktdp.runtime_arg<i32, granularity=64, upperbound=4096>
// CHECK-SAME: !ktdp.runtime_arg<i32, granularity=64, upperbound=4096>
// CHECK-SAME: !ktdp.runtime_arg<f16, upperbound=8>
func.func @runtime_args(%a: !ktdp.runtime_arg<index>,
                        %b: !ktdp.runtime_arg<i32, granularity=64, upperbound=4096>,
                        %c: !ktdp.runtime_arg<i32, upperbound = 4096, granularity = 64>,
                        %d: !ktdp.runtime_arg<f16, upperbound = 8>) {
  return
}

// CHECK-LABEL: func.func @futures
// CHECK-SAME: !ktdp.tile_future<(tensor<4xf16>), groups = #[[SET:.+]]>, %{{[^ ]+}}: !ktdp.tile_future<(tensor<4xf16>), groups = #[[SET]]>
#groups = affine_set<(g) : (g >= 0, -g + 3 >= 0)>
func.func @futures(%a: !ktdp.tile_future<tensor<4xf16>, groups = #groups>,
                   %b: !ktdp.tile_future<(tensor<4xf16>), groups = #groups>) {
  return
}

// CHECK-LABEL: func.func @arguments
// CHECK-SAME: ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>
// CHECK-SAME: ktdp.name = "x"
// CHECK-SAME: #ktdp.layout<device_size = [1, 32], stride_map = [-1, -1], format = IEEE_INT32, host_dtype = int64, shape = [], strides = []>
// CHECK-SAME: ktdp.pool_size = 65536 : i64
// CHECK-SAME: strides = [1], arrangement = DL16_TO_FP32>
func.func @arguments(
    %x: index {ktdp.name = "x", ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>},
    %y: index {ktdp.layout = #ktdp.layout<shape = [], strides = [], host_dtype = int64, format = IEEE_INT32, device_size = [1, 32], stride_map = [-1, -1]>},
    %pool: index {ktdp.pool_size = 65536 : i64},
    %z: index {ktdp.layout = #ktdp.layout<device_size = [2, 32], stride_map = [32, 1], format = IEEE_FP32, host_dtype = float32, shape = [64], strides = [1], arrangement = DL16_TO_FP32>},
    %n: i32 {ktdp.name = "n"}) {
  return
}
