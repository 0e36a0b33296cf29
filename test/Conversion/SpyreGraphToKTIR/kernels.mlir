// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir --canonicalize | FileCheck %s

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#sparse = #spyre_graph.layout<order = [0], sparse, SEN169_FP16>

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: index {ktdp.layout = #ktdp.layout<device_size = [2, 70, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [70, 100], strides = [100, 1]>, ktdp.name = "x"}
// CHECK-SAME: %[[POOL:[a-z0-9]+]]: index {ktdp.name = "pool", ktdp.pool_size = 32768 : i64}
func.func @main(%x: memref<70x100xf16, #layout> {spyre_graph.name = "x"},
                %out: memref<70x100xf16, #layout> {spyre_graph.name = "out0"})
    attributes {spyre_graph.pool_size = 32768 : i64} {
  // CHECK: %[[MAX:.*]] = arith.addi %{{.*}}, %{{.*}} : index
  // CHECK: call @k0_max(%[[X]], %{{.*}})
  %max = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 256>} : memref<70xf16, #sparse>
  spyre_graph.max ins(%x : memref<70x100xf16, #layout>) outs(%max : memref<70xf16, #sparse>)
    {dims = array<i64: 1>, division = #spyre_graph.division<splits = [24, 1], chunks = [3, 100]>}
  // CHECK: call @k1_sub
  spyre_graph.sub ins(%x, %max : memref<70x100xf16, #layout>, memref<70xf16, #sparse>) outs(%out : memref<70x100xf16, #layout>)
    {maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
     extents = array<i64: 70, 100>, division = #spyre_graph.division<splits = [24, 1], chunks = [3, 100]>}
  // The same kernel, called again.
  // CHECK: call @k2_exp(%{{.*}}) : (index) -> ()
  spyre_graph.exp ins(%out : memref<70x100xf16, #layout>) outs(%out : memref<70x100xf16, #layout>)
    {division = #spyre_graph.division<splits = [2, 2], chunks = [35, 64]>} loc("exp")
  // CHECK: call @k2_exp(%{{.*}}) : (index) -> ()
  spyre_graph.exp ins(%out : memref<70x100xf16, #layout>) outs(%out : memref<70x100xf16, #layout>)
    {division = #spyre_graph.division<splits = [2, 2], chunks = [35, 64]>} loc("exp")
  return
}
