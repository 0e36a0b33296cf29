// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --spyre-work-division | FileCheck %s
// RUN: spyre-opt %s --split-input-file --spyre-work-division="cores=1" | FileCheck %s --check-prefix=ONE
// RUN: not spyre-opt %s --split-input-file --spyre-work-division="cores=33" 2>&1 | FileCheck %s --check-prefix=RANGE
// Sweeps end when they change nothing any more.
// RUN: spyre-opt %s --split-input-file --spyre-work-division="sweeps=4294967295" | FileCheck %s
// RUN: not spyre-opt %s --split-input-file --spyre-work-division="sweeps=0" 2>&1 | FileCheck %s --check-prefix=SWEEPS
// RUN: not spyre-opt %s --split-input-file --spyre-work-division="max-span=0" 2>&1 | FileCheck %s --check-prefix=SPAN

// SPAN: error: expected a max-span of at least 1 byte, found 0
// RANGE: error: expected 1 to 32 cores, found 33
// SWEEPS: error: expected at least one sweep and a tolerance of at least 0, found 0

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Rows go to the cores, the reduced dimension is not split. What 29 cores read
// lies in longer runs than with 32.
// CHECK-LABEL: func.func @reduce
// CHECK: division = #spyre_graph.division<splits = [29, 1], chunks = [18, 1024]>
// ONE-LABEL: func.func @reduce
// ONE: division = #spyre_graph.division<splits = [1, 1], chunks = [512, 1024]>
func.func @reduce(%a: tensor<512x1024xf16, #l2>) -> tensor<512xf16, #spyre_graph.layout<order = [0], sparse, SEN169_FP16>> {
  %e = tensor.empty() : tensor<512xf16, #spyre_graph.layout<order = [0], sparse, SEN169_FP16>>
  %r = spyre_graph.sum ins(%a : tensor<512x1024xf16, #l2>) outs(%e : tensor<512xf16, #spyre_graph.layout<order = [0], sparse, SEN169_FP16>>) {dims = array<i64: 1>} -> tensor<512xf16, #spyre_graph.layout<order = [0], sparse, SEN169_FP16>>
  return %r : tensor<512xf16, #spyre_graph.layout<order = [0], sparse, SEN169_FP16>>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// A prime number of rows leaves the last slice shorter.
// CHECK-LABEL: func.func @ragged
// CHECK: division = #spyre_graph.division<splits = [7, 2], chunks = [36, 64]>
func.func @ragged(%a: tensor<251x65xf16, #l2>) -> tensor<251x65xf16, #l2> {
  %e = tensor.empty() : tensor<251x65xf16, #l2>
  %r = spyre_graph.neg ins(%a : tensor<251x65xf16, #l2>) outs(%e : tensor<251x65xf16, #l2>) -> tensor<251x65xf16, #l2>
  return %r : tensor<251x65xf16, #l2>
}

// Along the stick cuts fall between sticks: 1000 columns are 16 sticks.
// CHECK-LABEL: func.func @columns
// CHECK: division = #spyre_graph.division<splits = [1, 4], chunks = [2, 256]>
func.func @columns(%a: tensor<2x1000xf16, #l2>) -> tensor<2x1000xf16, #l2> {
  %e = tensor.empty() : tensor<2x1000xf16, #l2>
  %r = spyre_graph.neg ins(%a : tensor<2x1000xf16, #l2>) outs(%e : tensor<2x1000xf16, #l2>) -> tensor<2x1000xf16, #l2>
  return %r : tensor<2x1000xf16, #l2>
}

// An fp32 result next to fp16 has 32 elements per stick; cuts suit both.
// CHECK-LABEL: func.func @two_stick_sizes
// CHECK: division = #spyre_graph.division<splits = [1, 4], chunks = [1, 64]>
func.func @two_stick_sizes(%a: tensor<1x256xf16, #l2>) -> tensor<1x256xf32, #spyre_graph.layout<order = [0, 1], IEEE_FP32>> {
  %e = tensor.empty() : tensor<1x256xf32, #spyre_graph.layout<order = [0, 1], IEEE_FP32>>
  %r = spyre_graph.identity ins(%a : tensor<1x256xf16, #l2>) outs(%e : tensor<1x256xf32, #spyre_graph.layout<order = [0, 1], IEEE_FP32>>) -> tensor<1x256xf32, #spyre_graph.layout<order = [0, 1], IEEE_FP32>>
  return %r : tensor<1x256xf32, #spyre_graph.layout<order = [0, 1], IEEE_FP32>>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Writing at lane 32 shifts every stick: that dimension stays on one core.
// CHECK-LABEL: func.func @shifted
// CHECK: division = #spyre_graph.division<splits = [4, 1], chunks = [1, 128]>
func.func @shifted(%a: tensor<4x128xf16, #l2>, %b: tensor<4x192xf16, #l2>) -> tensor<4x192xf16, #l2> {
  %r = spyre_graph.identity ins(%a : tensor<4x128xf16, #l2>) outs(%b : tensor<4x192xf16, #l2>) {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j + 32)>], extents = array<i64: 4, 128>} -> tensor<4x192xf16, #l2>
  return %r : tensor<4x192xf16, #l2>
}

// Empty and one-element loops.
// CHECK-LABEL: func.func @small
// CHECK: division = #spyre_graph.division<splits = [1, 1], chunks = [0, 5]>
// CHECK: division = #spyre_graph.division<splits = [], chunks = []>
func.func @small(%a: tensor<0x5xf16, #l2>, %b: tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>) -> (tensor<0x5xf16, #l2>, tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>) {
  %e = tensor.empty() : tensor<0x5xf16, #l2>
  %r = spyre_graph.neg ins(%a : tensor<0x5xf16, #l2>) outs(%e : tensor<0x5xf16, #l2>) -> tensor<0x5xf16, #l2>
  %f = tensor.empty() : tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>
  %s = spyre_graph.neg ins(%b : tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>) outs(%f : tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>) -> tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>
  return %r, %s : tensor<0x5xf16, #l2>, tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#s2 = #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>

// The row maximum needs whole rows, so the product before it is divided by
// rows only, although it alone would be divided by columns, too.
// CHECK-LABEL: func.func @in_view_of_users
// CHECK: spyre_graph.matmul
// CHECK-SAME: division = #spyre_graph.division<splits = [32, 1, 1], chunks = [32, 128, 64]>
// CHECK: spyre_graph.max
// CHECK-SAME: division = #spyre_graph.division<splits = [32, 1], chunks = [32, 128]>
// CHECK: spyre_graph.sub
// CHECK-SAME: division = #spyre_graph.division<splits = [32, 1], chunks = [32, 128]>
// CHECK-LABEL: func.func @in_no_view_of_users
// CHECK: spyre_graph.matmul
// CHECK-SAME: division = #spyre_graph.division<splits = [15, 2, 1], chunks = [69, 64, 64]>
func.func @in_view_of_users(%q: tensor<1024x64xf16, #l2>, %k: tensor<64x128xf16, #l2>) -> tensor<1024x128xf16, #l2> {
  %e = tensor.empty() : tensor<1024x128xf16, #l2>
  %s = spyre_graph.matmul ins(%q, %k : tensor<1024x64xf16, #l2>, tensor<64x128xf16, #l2>) outs(%e : tensor<1024x128xf16, #l2>) -> tensor<1024x128xf16, #l2>
  %f = tensor.empty() : tensor<1024x1xf16, #s2>
  %m = spyre_graph.max ins(%s : tensor<1024x128xf16, #l2>) outs(%f : tensor<1024x1xf16, #s2>) {dims = array<i64: 1>} -> tensor<1024x1xf16, #s2>
  %d = spyre_graph.sub ins(%s, %m : tensor<1024x128xf16, #l2>, tensor<1024x1xf16, #s2>) outs(%e : tensor<1024x128xf16, #l2>) -> tensor<1024x128xf16, #l2>
  return %d : tensor<1024x128xf16, #l2>
}

func.func @in_no_view_of_users(%q: tensor<1024x64xf16, #l2>, %k: tensor<64x128xf16, #l2>) -> tensor<1024x128xf16, #l2> {
  %e = tensor.empty() : tensor<1024x128xf16, #l2>
  %s = spyre_graph.matmul ins(%q, %k : tensor<1024x64xf16, #l2>, tensor<64x128xf16, #l2>) outs(%e : tensor<1024x128xf16, #l2>) -> tensor<1024x128xf16, #l2>
  return %s : tensor<1024x128xf16, #l2>
}

// -----

#l3 = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>

// Four heads share the values and read them one after another: fewer heads on a
// core read them fewer times.
// CHECK-LABEL: func.func @heads
// CHECK: spyre_graph.matmul
// CHECK-SAME: division = #spyre_graph.division<splits = [8, 1, 1, 2], chunks = [1, 1, 64, 512], order = [3, 0, 1, 2]>
func.func @heads(%p: tensor<8x1x1024xf16, #l3>, %v: tensor<2x1024x64xf16, #l3>) -> tensor<8x1x64xf16, #l3> {
  %e = tensor.empty() : tensor<8x1x64xf16, #l3>
  %r = spyre_graph.matmul ins(%p, %v : tensor<8x1x1024xf16, #l3>, tensor<2x1024x64xf16, #l3>) outs(%e : tensor<8x1x64xf16, #l3>) {maps = [affine_map<(h, i, j, k) -> (h, i, k)>, affine_map<(h, i, j, k) -> (h floordiv 4, k, j)>, affine_map<(h, i, j, k) -> (h, i, j)>], extents = array<i64: 8, 1, 64, 1024>} -> tensor<8x1x64xf16, #l3>
  return %r : tensor<8x1x64xf16, #l3>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// A division that is there stays, and its neighbour follows it.
// CHECK-LABEL: func.func @given
// CHECK: spyre_graph.neg {{.*}}splits = [8, 1], chunks = [8, 64]
// CHECK: spyre_graph.exp {{.*}}splits = [8, 1], chunks = [8, 64]
func.func @given(%a: tensor<64x64xf16, #l2>) -> tensor<64x64xf16, #l2> {
  %e = tensor.empty() : tensor<64x64xf16, #l2>
  %r = spyre_graph.neg ins(%a : tensor<64x64xf16, #l2>) outs(%e : tensor<64x64xf16, #l2>) {division = #spyre_graph.division<splits = [8, 1], chunks = [8, 64]>} -> tensor<64x64xf16, #l2>
  %f = tensor.empty() : tensor<64x64xf16, #l2>
  %s = spyre_graph.exp ins(%r : tensor<64x64xf16, #l2>) outs(%f : tensor<64x64xf16, #l2>) -> tensor<64x64xf16, #l2>
  return %s : tensor<64x64xf16, #l2>
}

// -----

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>
#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#i1 = #spyre_graph.layout<order = [0], IEEE_INT32>

// Rows that indices choose may be the same row: one core writes them in order.
// CHECK-LABEL: func.func @scatter
// CHECK: division = #spyre_graph.division<splits = [1, 4], chunks = [10, 64]>
func.func @scatter(%a: tensor<10x256xf16, #l2>, %i: tensor<10xi64, #i1>, %t: tensor<100x256xf16, #l2>) -> tensor<100x256xf16, #l2> {
  %r = spyre_graph.scatter ins(%a, %i : tensor<10x256xf16, #l2>, tensor<10xi64, #i1>) outs(%t : tensor<100x256xf16, #l2>) {axis = 0 : i64} -> tensor<100x256xf16, #l2>
  return %r : tensor<100x256xf16, #l2>
}

// Neither is a scan's dimension ever split.
// CHECK-LABEL: func.func @scan
// CHECK: division = #spyre_graph.division<splits = [1, 4], chunks = [100, 64]>
func.func @scan(%a: tensor<100x256xf16, #l2>) -> tensor<100x256xf16, #l2> {
  %e = tensor.empty() : tensor<100x256xf16, #l2>
  %r = spyre_graph.cumsum ins(%a : tensor<100x256xf16, #l2>) outs(%e : tensor<100x256xf16, #l2>) {dim = 0 : i64} -> tensor<100x256xf16, #l2>
  return %r : tensor<100x256xf16, #l2>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Searching the largest elements of rows is divided over the rows.
// CHECK-LABEL: func.func @topk
// CHECK: division = #spyre_graph.division<splits = [32, 1, 1], chunks = [16, 8, 1024]>
func.func @topk(%x: tensor<512x1024xf16, #l2>) -> tensor<512x8xf16, #l2> {
  %e = tensor.empty() : tensor<512x8xf16, #l2>
  %r = spyre_graph.topk ins(%x : tensor<512x1024xf16, #l2>) outs(%e : tensor<512x8xf16, #l2>) {maps = [affine_map<(i, r, j) -> (i, j)>, affine_map<(i, r, j) -> (i, r)>], extents = array<i64: 512, 8, 1024>} -> tensor<512x8xf16, #l2>
  return %r : tensor<512x8xf16, #l2>
}

// Cores that cut the columns of a slice across sticks all load the same sticks, so
// that few of them are faster than 32.
// CHECK-LABEL: func.func @across_sticks
// CHECK: division = #spyre_graph.division<splits = [2, 2], chunks = [64, 32]>
#t2 = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
func.func @across_sticks(%x: tensor<128x320xf16, #l2>) -> tensor<128x64xf16, #t2> {
  %e = tensor.empty() : tensor<128x64xf16, #t2>
  %r = spyre_graph.identity ins(%x : tensor<128x320xf16, #l2>) outs(%e : tensor<128x64xf16, #t2>) {maps = [affine_map<(i, j) -> (i, j + 3)>, affine_map<(i, j) -> (i, j)>], extents = array<i64: 128, 64>} -> tensor<128x64xf16, #t2>
  return %r : tensor<128x64xf16, #t2>
}

// A core must not touch more than 256 MiB of a tensor: of x, 640 MiB, only slices
// of the columns are small enough unless rows are split, and the other splits are
// chosen by cost, too (the reference leaves such contractions to its default rule).
// CHECK-LABEL: func.func @span_committed
// CHECK: division = #spyre_graph.division<splits = [1, 1, 27], chunks = [64, 64, 194240], order = [2, 0, 1]>
func.func @span_committed(%x: tensor<64x5242880xf16, #l2>, %w: tensor<5242880x64xf16, #l2>) -> tensor<64x64xf16, #l2> {
  %e = tensor.empty() : tensor<64x64xf16, #l2>
  %r = spyre_graph.matmul ins(%x, %w : tensor<64x5242880xf16, #l2>, tensor<5242880x64xf16, #l2>) outs(%e : tensor<64x64xf16, #l2>) -> tensor<64x64xf16, #l2>
  return %r : tensor<64x64xf16, #l2>
}

// -----

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// A core loads its rows of x for every 256 columns of the result, and its columns of
// w for every 128 rows. 256 rows each read no more than 128 of twice the columns, in
// longer runs of sticks.
// CHECK-LABEL: func.func @compute_bound
// CHECK: division = #spyre_graph.division<splits = [8, 4, 1], chunks = [256, 3200, 4096]>
func.func @compute_bound(%x: tensor<2048x4096xf16, #l2>, %w: tensor<4096x12800xf16, #l2>) -> tensor<2048x12800xf16, #l2> {
  %e = tensor.empty() : tensor<2048x12800xf16, #l2>
  %r = spyre_graph.matmul ins(%x, %w : tensor<2048x4096xf16, #l2>, tensor<4096x12800xf16, #l2>) outs(%e : tensor<2048x12800xf16, #l2>) -> tensor<2048x12800xf16, #l2>
  return %r : tensor<2048x12800xf16, #l2>
}

#one = #spyre_graph.layout<order = [0], sparse, SEN169_FP16>

// One weight for all batches: a core takes its 8 of the 63 rows (the last 7) of
// each, and reads its part of the weight once.
// CHECK-LABEL: func.func @shared_weight
// CHECK: division = #spyre_graph.division<splits = [1, 8, 4, 1], chunks = [3, 8, 256, 513]>
func.func @shared_weight(%x: tensor<3x63x513xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>, %w: tensor<513x1000xf16, #l2>) -> tensor<3x63x1000xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>> {
  %e = tensor.empty() : tensor<3x63x1000xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>
  %r = spyre_graph.matmul ins(%x, %w : tensor<3x63x513xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>, tensor<513x1000xf16, #l2>) outs(%e : tensor<3x63x1000xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>) {maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], extents = array<i64: 3, 63, 1000, 513>} -> tensor<3x63x1000xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>
  return %r : tensor<3x63x1000xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>
}

// A core alone would sum more slowly than memory delivers.
// CHECK-LABEL: func.func @sum_of_columns
// CHECK: division = #spyre_graph.division<splits = [8, 4], chunks = [64, 256]>
func.func @sum_of_columns(%a: tensor<512x1000xf16, #l2>) -> tensor<1000xf16, #spyre_graph.layout<order = [0], SEN169_FP16>> {
  %e = tensor.empty() : tensor<1000xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
  %r = spyre_graph.sum ins(%a : tensor<512x1000xf16, #l2>) outs(%e : tensor<1000xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>) {dims = array<i64: 0>} -> tensor<1000xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
  return %r : tensor<1000xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
}

// However large, a sum with few results is shared by all cores. One with many
// results, which may stand in a loop over tiles, is not split.
// CHECK-LABEL: func.func @large_sums
// CHECK: spyre_graph.sum {{.*}}division = #spyre_graph.division<splits = [1, 32], chunks = [8192, 64]
// CHECK: spyre_graph.sum {{.*}}division = #spyre_graph.division<splits = [1, {{[0-9]+}}]
func.func @large_sums(%a: tensor<8192x2048xf16, #l2>) -> (tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>, tensor<2048xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>) {
  %e = tensor.empty() : tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>
  %r = spyre_graph.sum ins(%a : tensor<8192x2048xf16, #l2>) outs(%e : tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>) {dims = array<i64: 0, 1>} -> tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>
  %f = tensor.empty() : tensor<2048xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
  %s = spyre_graph.sum ins(%a : tensor<8192x2048xf16, #l2>) outs(%f : tensor<2048xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>) {dims = array<i64: 0>} -> tensor<2048xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
  return %r, %s : tensor<f16, #spyre_graph.layout<order = [], SEN169_FP16>>, tensor<2048xf16, #spyre_graph.layout<order = [0], SEN169_FP16>>
}

#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>

// All cores sum a part of the rows each; a tile is summed in the order of the whole.
// CHECK-LABEL: func.func @reductions_of_tiles
// CHECK: spyre_graph.sum {{.*}}division = #spyre_graph.division<splits = [32, 1], chunks = [82, 64]>
// CHECK: scf.for
// CHECK: spyre_graph.sum {{.*}}division = #spyre_graph.division<splits = [1, 1], chunks = [2624, 64]>
func.func @reductions_of_tiles(%x: tensor<2624x64xf16, #l2>, %e: tensor<64xf16, #l1>) -> (tensor<64xf16, #l1>, tensor<64xf16, #l1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %s = spyre_graph.sum ins(%x : tensor<2624x64xf16, #l2>) outs(%e : tensor<64xf16, #l1>) {dims = array<i64: 0>} -> tensor<64xf16, #l1>
  %t = scf.for %i = %c0 to %c2 step %c1 iter_args(%r = %e) -> (tensor<64xf16, #l1>) {
    %n = spyre_graph.sum ins(%x : tensor<2624x64xf16, #l2>) outs(%r : tensor<64xf16, #l1>) {dims = array<i64: 0>} -> tensor<64xf16, #l1>
    scf.yield %n : tensor<64xf16, #l1>
  }
  return %s, %t : tensor<64xf16, #l1>, tensor<64xf16, #l1>
}

#identity = affine_map<(i, j) -> (i, j)>

// Rows of one stick that start in the middle of one share it with their
// neighbours, though all start in the same lane: no core may have a row alone.
// CHECK-LABEL: func.func @rows_across_sticks
// CHECK: division = #spyre_graph.division<splits = [1, 1], chunks = [512, 64]>
func.func @rows_across_sticks(%x: tensor<512x64xf16, #l2>, %y: tensor<32769xf16, #l1>) -> tensor<32769xf16, #l1> {
  %r = spyre_graph.identity ins(%x : tensor<512x64xf16, #l2>) outs(%y : tensor<32769xf16, #l1>) {extents = array<i64: 512, 64>, maps = [#identity, affine_map<(i, j) -> (i * 64 + j + 1)>]} -> tensor<32769xf16, #l1>
  return %r : tensor<32769xf16, #l1>
}

// The same backwards: from element 32768 down to 1.
// CHECK-LABEL: func.func @rows_across_sticks_backwards
// CHECK: division = #spyre_graph.division<splits = [1, 1], chunks = [512, 64]>
func.func @rows_across_sticks_backwards(%x: tensor<512x64xf16, #l2>, %y: tensor<32769xf16, #l1>) -> tensor<32769xf16, #l1> {
  %r = spyre_graph.identity ins(%x : tensor<512x64xf16, #l2>) outs(%y : tensor<32769xf16, #l1>) {extents = array<i64: 512, 64>, maps = [#identity, affine_map<(i, j) -> (i * -64 - j + 32768)>]} -> tensor<32769xf16, #l1>
  return %r : tensor<32769xf16, #l1>
}

// Rows of 63 elements stay in their sticks.
// CHECK-LABEL: func.func @rows_within_sticks
// CHECK: division = #spyre_graph.division<splits = [4, 1], chunks = [128, 63]>
func.func @rows_within_sticks(%x: tensor<512x63xf16, #l2>, %y: tensor<32769xf16, #l1>) -> tensor<32769xf16, #l1> {
  %r = spyre_graph.identity ins(%x : tensor<512x63xf16, #l2>) outs(%y : tensor<32769xf16, #l1>) {extents = array<i64: 512, 63>, maps = [#identity, affine_map<(i, j) -> (i * 64 + j + 1)>]} -> tensor<32769xf16, #l1>
  return %r : tensor<32769xf16, #l1>
}

// The lane is i, and steps of j are whole sticks; but row 0 ends in the stick in
// which row 1 begins, at elements 64 x 62 and 3969, as diagonals of matrices do.
// CHECK-LABEL: func.func @rows_meeting_in_sticks
// CHECK: division = #spyre_graph.division<splits = [1, 1], chunks = [4, 63]>
func.func @rows_meeting_in_sticks(%x: tensor<4x63x1xf32, #spyre_graph.layout<order = [0, 1, 2], sparse, IEEE_FP32>>, %y: tensor<15876xf32, #spyre_graph.layout<order = [0], IEEE_FP32>>) -> tensor<15876xf32, #spyre_graph.layout<order = [0], IEEE_FP32>> {
  %r = spyre_graph.identity ins(%x : tensor<4x63x1xf32, #spyre_graph.layout<order = [0, 1, 2], sparse, IEEE_FP32>>) outs(%y : tensor<15876xf32, #spyre_graph.layout<order = [0], IEEE_FP32>>) {extents = array<i64: 4, 63>, maps = [affine_map<(i, j) -> (i, j, 0)>, affine_map<(i, j) -> (i * 3969 + j * 64)>]} -> tensor<15876xf32, #spyre_graph.layout<order = [0], IEEE_FP32>>
  return %r : tensor<15876xf32, #spyre_graph.layout<order = [0], IEEE_FP32>>
}

// Two rows share a stick, blocks of two sticks do not: the blocks are divided.
// CHECK-LABEL: func.func @blocks_of_rows
// CHECK: division = #spyre_graph.division<splits = [4, 1, 1], chunks = [64, 2, 64]>
func.func @blocks_of_rows(%x: tensor<256x2x64xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>, %y: tensor<65536xf16, #l1>) -> tensor<65536xf16, #l1> {
  %r = spyre_graph.identity ins(%x : tensor<256x2x64xf16, #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>>) outs(%y : tensor<65536xf16, #l1>) {extents = array<i64: 256, 2, 64>, maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b * 256 + i * 64 + j + 1)>]} -> tensor<65536xf16, #l1>
  return %r : tensor<65536xf16, #l1>
}

// -----

#l4 = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>

// Of y, 1 GiB, a core may touch a quarter: its outermost device dimensions are
// the second batch and K, so no division fits that leaves K whole.
// CHECK-LABEL: func.func @only_a_split_reduction_fits
// CHECK: division = #spyre_graph.division<splits = [1, 2, 4, 2, 2], chunks = [2, 1, 512, 32768, 1024], order = [4, 0, 1, 2, 3]>
func.func @only_a_split_reduction_fits(%x: tensor<2x2x2048x2048xf16, #l4>, %y: tensor<2x2x2048x65536xf16, #l4>) -> tensor<2x2x2048x65536xf16, #l4> {
  %e = tensor.empty() : tensor<2x2x2048x65536xf16, #l4>
  %r = spyre_graph.matmul ins(%x, %y : tensor<2x2x2048x2048xf16, #l4>, tensor<2x2x2048x65536xf16, #l4>) outs(%e : tensor<2x2x2048x65536xf16, #l4>) -> tensor<2x2x2048x65536xf16, #l4>
  return %r : tensor<2x2x2048x65536xf16, #l4>
}

// -----

#l3 = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>

// Batches lie between each other, so that a product's sticks are runs of their own.
// Many divisions cost the same; the more even ones were fast on a card (m00570, of
// m00552 to m00583 in benchmarks/card).
// CHECK-LABEL: func.func @batched
// CHECK: division = #spyre_graph.division<splits = [2, 8, 2, 1], chunks = [16, 64, 64, 512]>
func.func @batched(%x: tensor<32x512x512xf16, #l3>, %w: tensor<32x512x128xf16, #l3>) -> tensor<32x512x128xf16, #l3> {
  %e = tensor.empty() : tensor<32x512x128xf16, #l3>
  %r = spyre_graph.matmul ins(%x, %w : tensor<32x512x512xf16, #l3>, tensor<32x512x128xf16, #l3>) outs(%e : tensor<32x512x128xf16, #l3>) -> tensor<32x512x128xf16, #l3>
  return %r : tensor<32x512x128xf16, #l3>
}

// -----

#l4 = #spyre_graph.layout<order = [0, 1, 2, 3], SEN169_FP16>

// Alone, two slices of K cost 3 % less than four: either waits for the first
// operand. What a neighbour left in LX is multiplied faster in four: a core has
// 64 rows of it then, with all columns, which need not be moved to two cores.
// CHECK-LABEL: func.func @few_columns
// CHECK: spyre_graph.matmul
// CHECK-SAME: division = #spyre_graph.division<splits = [1, 1, 8, 1, 4], chunks = [1, 1, 64, 128, 1024], order = [4, 0, 1, 2, 3]>
func.func @few_columns(%p: tensor<1x1x512x4096xf16, #l4>, %v: tensor<1x1x4096x128xf16, #l4>) -> tensor<1x1x512x128xf16, #l4> {
  %e = tensor.empty() : tensor<1x1x512x128xf16, #l4>
  %r = spyre_graph.matmul ins(%p, %v : tensor<1x1x512x4096xf16, #l4>, tensor<1x1x4096x128xf16, #l4>) outs(%e : tensor<1x1x512x128xf16, #l4>) -> tensor<1x1x512x128xf16, #l4>
  return %r : tensor<1x1x512x128xf16, #l4>
}

// -----

#l3 = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>

// Alone, two slices of K cost less: all wait for device memory. But keys of a
// prompt are computed like its queries, and from LX half the rate of the matrix
// unit shows. Of more columns than rows the second factor is a cache: it is loaded,
// as the first one was where a card measured this (m00632 in benchmarks/card).
// CHECK-LABEL: func.func @prompt
// CHECK: division = #spyre_graph.division<splits = [{{[0-9, ]+}}, 1], chunks = [{{[0-9, ]+}}, 128]>
func.func @prompt(%q: tensor<16x400x128xf16, #l3>, %k: tensor<16x128x400xf16, #l3>) -> tensor<16x400x400xf16, #l3> {
  %e = tensor.empty() : tensor<16x400x400xf16, #l3>
  %r = spyre_graph.matmul ins(%q, %k : tensor<16x400x128xf16, #l3>, tensor<16x128x400xf16, #l3>) outs(%e : tensor<16x400x400xf16, #l3>) -> tensor<16x400x400xf16, #l3>
  return %r : tensor<16x400x400xf16, #l3>
}

// CHECK-LABEL: func.func @cached
// CHECK: division = #spyre_graph.division<splits = [2, 8, 1, 2], chunks = [32, 4, 576, 64], order = [3, 0, 1, 2]>
func.func @cached(%q: tensor<64x32x128xf16, #l3>, %k: tensor<64x128x576xf16, #l3>) -> tensor<64x32x576xf16, #l3> {
  %e = tensor.empty() : tensor<64x32x576xf16, #l3>
  %r = spyre_graph.matmul ins(%q, %k : tensor<64x32x128xf16, #l3>, tensor<64x128x576xf16, #l3>) outs(%e : tensor<64x32x576xf16, #l3>) -> tensor<64x32x576xf16, #l3>
  return %r : tensor<64x32x576xf16, #l3>
}

// -----

#l1 = #spyre_graph.layout<order = [0], sparse, SEN169_FP16>
#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#across = #spyre_graph.layout<order = [0, 2, 1], SEN169_FP16>

// Sums of attention's scores are not split to save 6 %: LX has no room to move 29 MB
// from the slices of the products around them. Of few rows a split saves more than a
// fifth, and is made.
// CHECK-LABEL: func.func @scores
// CHECK: spyre_graph.sum {{.*}}division = #spyre_graph.division<splits = [{{[148]}}, {{[0-9]+}}, 1], chunks = [{{[0-9]+, [0-9]+}}, 1920]>
func.func @scores(%x: tensor<4x1920x1920xf16, #across>) -> tensor<4x1920xf16, #l2> {
  %e = tensor.empty() : tensor<4x1920xf16, #l2>
  %r = spyre_graph.sum ins(%x : tensor<4x1920x1920xf16, #across>) outs(%e : tensor<4x1920xf16, #l2>) {dims = array<i64: 2>} -> tensor<4x1920xf16, #l2>
  return %r : tensor<4x1920xf16, #l2>
}

// CHECK-LABEL: func.func @few_rows
// CHECK: spyre_graph.sum {{.*}}division = #spyre_graph.division<splits = [2, 16], chunks = [10, 46080], order = [1, 0]>
func.func @few_rows(%x: tensor<20x737280xf16, #l2>) -> tensor<20xf16, #l1> {
  %e = tensor.empty() : tensor<20xf16, #l1>
  %r = spyre_graph.sum ins(%x : tensor<20x737280xf16, #l2>) outs(%e : tensor<20xf16, #l1>) {dims = array<i64: 1>} -> tensor<20xf16, #l1>
  return %r : tensor<20xf16, #l1>
}
