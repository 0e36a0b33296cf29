// SPDX-License-Identifier: Apache-2.0
// y = x in the first %n rows, a multiple of 16 up to 64.
#whole = affine_set<(r, c) : (r >= 0, -r + 63 >= 0, c >= 0, -c + 63 >= 0)>
#part = affine_set<(r, c) : (r >= 0, -r + 15 >= 0, c >= 0, -c + 63 >= 0)>
#order = affine_map<(r, c) -> (r, c)>
#layout = #ktdp.layout<device_size = [1, 64, 64], stride_map = [-1, 64, 1], format = SEN169_FP16, host_dtype = float16, shape = [64, 64], strides = [64, 1]>
func.func @main(%x: index {ktdp.name = "x", ktdp.layout = #layout},
                %y: index {ktdp.name = "y", ktdp.layout = #layout},
                %n: !ktdp.runtime_arg<index, granularity=16, upperbound=64>)
    attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %rows = ktdp.runtime_arg_extract value from %n : !ktdp.runtime_arg<index, granularity=16, upperbound=64> -> index
  %v = ktdp.construct_memory_view %x, sizes: [64, 64], strides: [64, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<64x64xf16>
  %w = ktdp.construct_memory_view %y, sizes: [64, 64], strides: [64, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<64x64xf16>
  scf.for %r = %c0 to %rows step %c16 {
    %s = ktdp.construct_access_tile %v[%r, %c0] {access_tile_set = #part, access_tile_order = #order} : memref<64x64xf16> -> !ktdp.access_tile<16x64xindex>
    %t = ktdp.construct_access_tile %w[%r, %c0] {access_tile_set = #part, access_tile_order = #order} : memref<64x64xf16> -> !ktdp.access_tile<16x64xindex>
    %d = ktdp.load %s : !ktdp.access_tile<16x64xindex> -> tensor<16x64xf16>
    ktdp.store %d, %t : tensor<16x64xf16>, !ktdp.access_tile<16x64xindex>
  }
  return
}
