// SPDX-License-Identifier: Apache-2.0
func.func @nothing(%x: index {ktdp.name = "x", ktdp.layout = #ktdp.layout<
    device_size = [2, 64], stride_map = [64, 1], format = SEN169_FP16,
    host_dtype = float16, shape = [100], strides = [1]>}) {
  return
}
