// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir --canonicalize | FileCheck %s

// A convolution sums over places in a window (4) and channels (256). Wherever it is
// cut, it adds all channels of one place before those of the next: channels are
// never cut while a sub-tile has several places.
#l = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#o = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#x = affine_map<(i, j, w, c) -> (w, i, c)>
#f = affine_map<(i, j, w, c) -> (w, c, j)>
#g = affine_map<(i, j, w, c) -> (c, w, j)>
#y = affine_map<(i, j, w, c) -> (i, j)>

// CHECK-LABEL: func.func private @k0_matmul
// CHECK: ktdp.load {{.*}} -> tensor<32x{{1x.*|[1-4]x256}}xf16>
// CHECK: ktdp.load {{.*}} -> tensor<64x{{1x.*|[1-4]x256}}xf16>
// CHECK: return

// Places are cut where that saves time.
// CHECK-LABEL: func.func private @k1_matmul
// CHECK: scf.for {{.*}} iter_args
// CHECK: ktdp.load {{.*}} -> tensor<32x2x256xf16>
// CHECK: ktdp.load {{.*}} -> tensor<64x2x256xf16>
// CHECK: scf.yield
// CHECK-NOT: scf.for
// CHECK: return
func.func @main(%x: memref<4x32x256xf16, #l>, %f: memref<4x256x2048xf16, #l>, %g: memref<256x4x2048xf16, #l>, %y: memref<32x2048xf16, #o>, %z: memref<32x2048xf16, #o>) {
  spyre_graph.matmul ins(%x, %f : memref<4x32x256xf16, #l>, memref<4x256x2048xf16, #l>) outs(%y : memref<32x2048xf16, #o>)
    {maps = [#x, #f, #y], extents = array<i64: 32, 2048, 4, 256>,
     division = #spyre_graph.division<splits = [1, 32, 1, 1], chunks = [32, 64, 4, 256]>}
  spyre_graph.matmul ins(%x, %g : memref<4x32x256xf16, #l>, memref<256x4x2048xf16, #l>) outs(%z : memref<32x2048xf16, #o>)
    {maps = [#x, #g, #y], extents = array<i64: 32, 2048, 4, 256>,
     division = #spyre_graph.division<splits = [1, 32, 1, 1], chunks = [32, 64, 4, 256]>}
  return
}
