// SPDX-License-Identifier: Apache-2.0
// What --arg gives arrays and sizes.
// RUN: rm -rf %t && split-file %s %t

// A uint8 file of the size that the device stores holds stored bytes, of 8-bit
// floats, too; of the array's shape it holds their codes.
// RUN: %python -c "import numpy as np; np.save(r'%t/image.npy', (np.arange(512) % 128 % 100).astype(np.uint8)); np.save(r'%t/codes.npy', np.tile(np.arange(100, dtype=np.uint8), (4, 1)))"
// RUN: spyre-run %t/float8.mlir --arg %t/image.npy --out-dir %t/image
// RUN: spyre-run %t/float8.mlir --arg %t/codes.npy --out-dir %t/codes
// RUN: %python -c "import numpy as np; a, b = (np.load(rf'%t/{n}/x.npy').view(np.uint8) for n in ('image', 'codes')); assert a.shape == (4, 100) and (a == b).all(), (a, b)"
// RUN: %python -c "import numpy as np; np.save(r'%t/other.npy', np.zeros(500, np.uint8))"
// RUN: not spyre-run %t/float8.mlir --arg %t/other.npy 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: argument 'x' is float8_e4m3fn [4, 100], the file has float8_e4m3fn [500]

// Sizes are checked before anything is allocated.
// RUN: not spyre-run %t/tall.mlir --arg zeros 2>&1 | FileCheck %s --check-prefix=TALL
// TALL: error: argument 'x' has sizes [2147483648, 100] and strides [100, 1], which take 858993459200 bytes on the host; the device memory has {{[0-9]+}}
// RUN: spyre-run %t/apart.mlir --arg zeros --predict-only
// RUN: not spyre-run %t/apart.mlir --arg zeros 2>&1 | FileCheck %s --check-prefix=APART
// APART: error: argument 'x' has sizes [4, 100] and strides [1099511627776, 1], which take 13194139533712 bytes on the host
// RUN: not spyre-run %t/overflow.mlir --arg zeros 2>&1 | FileCheck %s --check-prefix=OVERFLOW
// OVERFLOW: error: argument 'x' has sizes [36028797018963968, 100] and strides [0, 1], which take more than 64 bits can count on the host
// RUN: not spyre-run %t/large.mlir --arg zeros --arg zeros 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: error: argument 'y': device out of memory. {{[0-9]+}} bytes requested
// RUN: not spyre-run %t/negative.mlir --arg zeros --arg 64 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: argument 'x' has sizes [-64, 100] and strides [{{.*}}], of which one is negative
// RUN: not spyre-run %t/negative.mlir --arg zeros --arg 0xffffffffffff 2>&1 | FileCheck %s --check-prefix=ABOVE
// ABOVE: error: size 'n' is 281474976710655, but the program is for

// Numbers are decimal, whatever they begin with, or hexadecimal.
// RUN: not spyre-run %t/number.mlir --arg " 4" 2>&1 | FileCheck %s --check-prefix=BLANK
// BLANK: error: argument 'n': expected a 64-bit integer, found ' 4'
// RUN: not spyre-run %t/number.mlir --arg +4 2>&1 | FileCheck %s --check-prefix=PLUS
// PLUS: found '+4'
// RUN: not spyre-run %t/number.mlir --arg 0x-4 2>&1 | FileCheck %s --check-prefix=SIGN
// SIGN: found '0x-4'
// RUN: not spyre-run %t/number.mlir --arg --4 2>&1 | FileCheck %s --check-prefix=SIGNS
// SIGNS: found '--4'
// RUN: not spyre-run %t/number.mlir --arg 9223372036854775808 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: found '9223372036854775808'
// RUN: not spyre-run %t/number.mlir --arg 010 2>&1 | FileCheck %s --check-prefix=TEN
// TEN: error: argument 'n': expected a multiple of 4 from 0 to 8, found 10
// RUN: not spyre-run %t/number.mlir --arg -0x4 2>&1 | FileCheck %s --check-prefix=BELOW
// BELOW: expected a multiple of 4 from 0 to 8, found -4
// RUN: not spyre-run %t/number.mlir --arg 12 2>&1 | FileCheck %s --check-prefix=BEYOND
// BEYOND: expected a multiple of 4 from 0 to 8, found 12
// RUN: spyre-run %t/number.mlir --arg 0x8
// RUN: spyre-run %t/number.mlir --arg 0004

//--- float8.mlir
func.func @nothing(%x: index {ktdp.name = "x", ktdp.layout = #ktdp.layout<
    device_size = [1, 4, 128], stride_map = [128, 100, 1], format = SEN143_FP8,
    host_dtype = float8_e4m3fn, shape = [4, 100], strides = [100, 1]>}) {
  return
}
//--- tall.mlir
func.func @nothing(%x: index {ktdp.name = "x", ktdp.layout = #ktdp.layout<
    device_size = [4, 2147483648, 32], stride_map = [32, 100, 1], format = IEEE_INT32,
    host_dtype = int32, shape = [2147483648, 100], strides = [100, 1]>}) {
  return
}
//--- apart.mlir
func.func @nothing(%x: index {ktdp.name = "x", ktdp.layout = #ktdp.layout<
    device_size = [4, 4, 32], stride_map = [32, 1099511627776, 1], format = IEEE_INT32,
    host_dtype = int32, shape = [4, 100], strides = [1099511627776, 1]>}) {
  return
}
//--- overflow.mlir
func.func @nothing(%x: index {ktdp.name = "x", ktdp.layout = #ktdp.layout<
    device_size = [4, 4, 32], stride_map = [32, 0, 1], format = IEEE_INT32,
    host_dtype = int32, shape = [36028797018963968, 100], strides = [0, 1]>}) {
  return
}
//--- large.mlir
func.func @nothing(%x: index {ktdp.name = "x", ktdp.layout = #ktdp.layout<
    device_size = [1, 64], stride_map = [-1, 1], format = SEN169_FP16,
    host_dtype = float16, shape = [64], strides = [1]>},
    %y: index {ktdp.name = "y", ktdp.layout = #ktdp.layout<
    device_size = [17179869184, 64], stride_map = [0, 1], format = SEN169_FP16,
    host_dtype = float16, shape = [64], strides = [1]>}) {
  return
}
//--- negative.mlir
func.func @nothing(%x: index {ktdp.name = "x", ktdp.size_map = affine_map<()[n] -> (n * -1, 100)>, ktdp.layout = #ktdp.layout<
    device_size = [4, 128, 32], stride_map = [32, 100, 1], format = IEEE_INT32,
    host_dtype = int32, shape = [128, 100], strides = [100, 1]>},
    %n: !ktdp.runtime_arg<index, granularity=64, upperbound=128> {ktdp.name = "n", ktdp.least = 64 : i64}) {
  return
}
//--- number.mlir
func.func @nothing(%n: !ktdp.runtime_arg<index, granularity=4, upperbound=8> {ktdp.name = "n"}) {
  return
}
