// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-work-division="mode=reference" | FileCheck %s

// The worked numbers of spec/passes.md, "Work division".
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// The cost model: (m, n, k) = (4, 8, 1).
// CHECK-LABEL: func.func @m8
// CHECK: spyre_graph.matmul {{.*}}division = #spyre_graph.division<splits = [4, 8, 1], chunks = [2, 128, 1024]>
func.func @m8(%x: tensor<8x1024xf16, #l>, %w: tensor<1024x1024xf16, #l>) -> tensor<8x1024xf16, #l> {
  %e = tensor.empty() : tensor<8x1024xf16, #l>
  %r = spyre_graph.matmul ins(%x, %w : tensor<8x1024xf16, #l>, tensor<1024x1024xf16, #l>) outs(%e : tensor<8x1024xf16, #l>) -> tensor<8x1024xf16, #l>
  return %r : tensor<8x1024xf16, #l>
}

// No row dimension: the default, 64 sticks of N over 32 cores.
// CHECK-LABEL: func.func @m1
// CHECK: spyre_graph.matmul {{.*}}division = #spyre_graph.division<splits = [1, 32, 1], chunks = [1, 128, 4096]>
func.func @m1(%x: tensor<1x4096xf16, #l>, %w: tensor<4096x4096xf16, #l>) -> tensor<1x4096xf16, #l> {
  %e = tensor.empty() : tensor<1x4096xf16, #l>
  %r = spyre_graph.matmul ins(%x, %w : tensor<1x4096xf16, #l>, tensor<4096x4096xf16, #l>) outs(%e : tensor<1x4096xf16, #l>) -> tensor<1x4096xf16, #l>
  return %r : tensor<1x4096xf16, #l>
}

// The model's minimum has 16 cores, fewer than the default: declined. M = 128
// is larger than N's 64 sticks.
// CHECK-LABEL: func.func @m128
// CHECK: spyre_graph.matmul {{.*}}division = #spyre_graph.division<splits = [32, 1, 1], chunks = [4, 4096, 4096]>
func.func @m128(%x: tensor<128x4096xf16, #l>, %w: tensor<4096x4096xf16, #l>) -> tensor<128x4096xf16, #l> {
  %e = tensor.empty() : tensor<128x4096xf16, #l>
  %r = spyre_graph.matmul ins(%x, %w : tensor<128x4096xf16, #l>, tensor<4096x4096xf16, #l>) outs(%e : tensor<128x4096xf16, #l>) -> tensor<128x4096xf16, #l>
  return %r : tensor<128x4096xf16, #l>
}

// (4, 8, 1).
// CHECK-LABEL: func.func @m512
// CHECK: spyre_graph.matmul {{.*}}division = #spyre_graph.division<splits = [4, 8, 1], chunks = [128, 512, 4096]>
func.func @m512(%x: tensor<512x4096xf16, #l>, %w: tensor<4096x4096xf16, #l>) -> tensor<512x4096xf16, #l> {
  %e = tensor.empty() : tensor<512x4096xf16, #l>
  %r = spyre_graph.matmul ins(%x, %w : tensor<512x4096xf16, #l>, tensor<4096x4096xf16, #l>) outs(%e : tensor<512x4096xf16, #l>) -> tensor<512x4096xf16, #l>
  return %r : tensor<512x4096xf16, #l>
}

// (4, 8, 1).
// CHECK-LABEL: func.func @m2048
// CHECK: spyre_graph.matmul {{.*}}division = #spyre_graph.division<splits = [4, 8, 1], chunks = [512, 512, 4096]>
func.func @m2048(%x: tensor<2048x4096xf16, #l>, %w: tensor<4096x4096xf16, #l>) -> tensor<2048x4096xf16, #l> {
  %e = tensor.empty() : tensor<2048x4096xf16, #l>
  %r = spyre_graph.matmul ins(%x, %w : tensor<2048x4096xf16, #l>, tensor<4096x4096xf16, #l>) outs(%e : tensor<2048x4096xf16, #l>) -> tensor<2048x4096xf16, #l>
  return %r : tensor<2048x4096xf16, #l>
}

// (4, 8, 1).
// CHECK-LABEL: func.func @m64
// CHECK: spyre_graph.matmul {{.*}}division = #spyre_graph.division<splits = [4, 8, 1], chunks = [16, 1600, 4096]>
func.func @m64(%x: tensor<64x4096xf16, #l>, %w: tensor<4096x12800xf16, #l>) -> tensor<64x12800xf16, #l> {
  %e = tensor.empty() : tensor<64x12800xf16, #l>
  %r = spyre_graph.matmul ins(%x, %w : tensor<64x4096xf16, #l>, tensor<4096x12800xf16, #l>) outs(%e : tensor<64x12800xf16, #l>) -> tensor<64x12800xf16, #l>
  return %r : tensor<64x12800xf16, #l>
}

// The span of x, [512 sticks of K, 8192, 64 x 2 bytes], is 512 MiB: K = 2; then
// M, larger than N's 64 sticks, takes the 16 cores left. The partners of each
// row slice are neighbours.
// CHECK-LABEL: func.func @span
// CHECK: division = #spyre_graph.division<splits = [16, 1, 2], chunks = [512, 4096, 16384], order = [2, 0, 1]>
func.func @span(%x: tensor<8192x32768xf16, #l>, %w: tensor<32768x4096xf16, #l>) -> tensor<8192x4096xf16, #l> {
  %e = tensor.empty() : tensor<8192x4096xf16, #l>
  %r = spyre_graph.matmul ins(%x, %w : tensor<8192x32768xf16, #l>, tensor<32768x4096xf16, #l>) outs(%e : tensor<8192x4096xf16, #l>) -> tensor<8192x4096xf16, #l>
  return %r : tensor<8192x4096xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#one = #spyre_graph.layout<order = [0], sparse, SEN169_FP16>

// Largest first: 15 sticks, whose largest divisor up to 32 is 15; of the 2
// cores left 7 rows take none.
// CHECK-LABEL: func.func @divisors
// CHECK: division = #spyre_graph.division<splits = [1, 15], chunks = [7, 64]>
func.func @divisors(%x: tensor<7x960xf16, #l>) -> tensor<7x960xf16, #l> {
  %e = tensor.empty() : tensor<7x960xf16, #l>
  %r = spyre_graph.neg ins(%x : tensor<7x960xf16, #l>) outs(%e : tensor<7x960xf16, #l>) -> tensor<7x960xf16, #l>
  return %r : tensor<7x960xf16, #l>
}

// A prime number of rows above 32 cannot be split, the last of two sticks may
// be partial.
// CHECK-LABEL: func.func @prime
// CHECK: division = #spyre_graph.division<splits = [1, 2], chunks = [251, 64]>
func.func @prime(%x: tensor<251x65xf16, #l>) -> tensor<251x65xf16, #l> {
  %e = tensor.empty() : tensor<251x65xf16, #l>
  %r = spyre_graph.neg ins(%x : tensor<251x65xf16, #l>) outs(%e : tensor<251x65xf16, #l>) -> tensor<251x65xf16, #l>
  return %r : tensor<251x65xf16, #l>
}

// 8 rows leave 4 cores for 16 sticks of the reduced dimension.
// CHECK-LABEL: func.func @reduction
// CHECK: division = #spyre_graph.division<splits = [8, 4], chunks = [1, 256], order = [1, 0]>
func.func @reduction(%x: tensor<8x1024xf16, #l>) -> tensor<8xf16, #one> {
  %e = tensor.empty() : tensor<8xf16, #one>
  %r = spyre_graph.sum ins(%x : tensor<8x1024xf16, #l>) outs(%e : tensor<8xf16, #one>) {dims = array<i64: 1>} -> tensor<8xf16, #one>
  return %r : tensor<8xf16, #one>
}

#index = #spyre_graph.layout<order = [0], sparse, IEEE_INT32>

// An index and its value cannot be combined like that.
// CHECK-LABEL: func.func @argmax
// CHECK: division = #spyre_graph.division<splits = [8, 1], chunks = [1, 1024]>
func.func @argmax(%x: tensor<8x1024xf16, #l>) -> tensor<8xi64, #index> {
  %e = tensor.empty() : tensor<8xi64, #index>
  // expected-warning @+1 {{the reference splits loop dimension 1 over 4 cores; parts of the result cannot be combined, so it stays whole}}
  %r = spyre_graph.argmax ins(%x : tensor<8x1024xf16, #l>) outs(%e : tensor<8xi64, #index>) {dims = array<i64: 1>} -> tensor<8xi64, #index>
  return %r : tensor<8xi64, #index>
}

// -----

#l3 = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// One stick of N is no output dimension: the model declines; by default M takes
// 16 cores and the batch the other 2. K and N would be two reductions.
// CHECK-LABEL: func.func @one_stick
// CHECK: division = #spyre_graph.division<splits = [2, 16, 1, 1], chunks = [4, 1, 64, 256]>
func.func @one_stick(%x: tensor<8x16x256xf16, #l3>, %w: tensor<8x256x64xf16, #l3>) -> tensor<8x16x64xf16, #l3> {
  %e = tensor.empty() : tensor<8x16x64xf16, #l3>
  %r = spyre_graph.matmul ins(%x, %w : tensor<8x16x256xf16, #l3>, tensor<8x256x64xf16, #l3>) outs(%e : tensor<8x16x64xf16, #l3>) -> tensor<8x16x64xf16, #l3>
  return %r : tensor<8x16x64xf16, #l3>
}

// -----

#l3 = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>

// Device sizes [3, 131072 sticks, 32, 64]: a span of 1.5 GiB. 3 slices of the
// outermost dimension leave 512 MiB, 2 of the sticks 256; the rows then take 4 of
// the 5 cores left.
// CHECK-LABEL: func.func @large
// CHECK: division = #spyre_graph.division<splits = [4, 3, 2], chunks = [8, 1, 4194304]>
func.func @large(%x: tensor<32x3x8388608xf16, #l3>) -> tensor<32x3x8388608xf16, #l3> {
  %e = tensor.empty() : tensor<32x3x8388608xf16, #l3>
  %r = spyre_graph.neg ins(%x : tensor<32x3x8388608xf16, #l3>) outs(%e : tensor<32x3x8388608xf16, #l3>) -> tensor<32x3x8388608xf16, #l3>
  return %r : tensor<32x3x8388608xf16, #l3>
}

// -----

// 2097152 x 128 booleans are 512 MiB on the device, where each has two bytes:
// halves of the columns, as of float16.
// CHECK-LABEL: func.func @booleans
// CHECK: division = #spyre_graph.division<splits = [16, 2], chunks = [131072, 64]>
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @booleans(%x: tensor<2097152x128xi1, #l>) -> tensor<2097152x128xi1, #l> {
  %e = tensor.empty() : tensor<2097152x128xi1, #l>
  %r = spyre_graph.identity ins(%x : tensor<2097152x128xi1, #l>) outs(%e : tensor<2097152x128xi1, #l>) -> tensor<2097152x128xi1, #l>
  return %r : tensor<2097152x128xi1, #l>
}
