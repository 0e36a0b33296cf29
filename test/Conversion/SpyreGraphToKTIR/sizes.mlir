// SPDX-License-Identifier: Apache-2.0
// Kernels compute extents, chunks and views from the values of symbols.
// RUN: spyre-opt %s --split-input-file --convert-spyre-graph-to-ktir | FileCheck %s

// CHECK: #[[CHUNK:.*]] = affine_map<()[s0] -> (s0 ceildiv 8)>
// CHECK: #[[LEFT:.*]] = affine_map<()[s0, s1] -> (s0 - s1)>
// CHECK: #[[FOURTHS:.*]] = affine_map<()[s0] -> ((s0 ceildiv 8) ceildiv 4)>
// CHECK-LABEL: func.func @main
// CHECK-SAME: ktdp.size_map = affine_map<()[s0, s1] -> (s1, 128)>
// CHECK-SAME: %[[S:.*]]: !ktdp.runtime_arg<index, granularity=1, upperbound=8> {ktdp.least = 1 : i64, ktdp.name = "s"}
// CHECK-SAME: %[[T:.*]]: !ktdp.runtime_arg<index, granularity=4, upperbound=256> {ktdp.least = 4 : i64, ktdp.name = "t"}
// CHECK: %[[VALUE:.*]] = ktdp.runtime_arg_extract value from %[[T]]
// Kernels get the symbols that they use.
// CHECK: call @k0_exp(%{{.*}}, %{{.*}}, %[[VALUE]])

// CHECK-LABEL: func.func private @k0_exp
// CHECK-SAME: %[[X:.*]]: index, %[[A:.*]]: index, %[[SIZE:.*]]: index) attributes {grid = [8]}
// CHECK: %[[PART:.*]] = affine.apply #[[CHUNK]]()[%[[SIZE]]]
// CHECK: %[[STRIDE:.*]] = arith.muli %{{.*}}, %[[SIZE]]
// CHECK: %[[CORE:.*]] = ktdp.get_compute_tile_id
// CHECK: %[[START:.*]] = arith.muli %[[CORE]], %[[PART]]
// CHECK: %[[REST:.*]] = affine.apply #[[LEFT]]()[%[[SIZE]], %[[START]]]
// CHECK: %[[LEAST:.*]] = arith.minsi %[[PART]], %[[REST]]
// CHECK: %[[OWN:.*]] = arith.maxsi %[[LEAST]]
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[OWN]]
// CHECK: scf.if %[[ANY]]
// As many sub-tiles as of the largest size, four: each is a fourth of the part, and at
// least one row.
// CHECK: %[[FOURTH:.*]] = affine.apply #[[FOURTHS]]()[%[[SIZE]]]
// CHECK: %[[SOME:.*]] = arith.maxsi %[[FOURTH]]
// CHECK: %[[TILE:.*]] = arith.minsi %{{.*}}, %[[SOME]]
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to %[[OWN]] step %[[TILE]]
// CHECK: %[[AFTER:.*]] = affine.apply #{{.*}}(%[[ROW]])[%[[OWN]]]
// CHECK: arith.minsi %[[TILE]], %[[AFTER]]
// The argument has strides that follow its size, the buffer in LX has not.
// CHECK: ktdp.construct_memory_view %[[X]], sizes: [2, %[[SIZE]], 64], strides: [%[[STRIDE]], 64, 1]
// CHECK: ktdp.construct_memory_view %[[A]], sizes: [2, 32, 64], strides: [2048, 64, 1]

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s, t] -> (t, 128)>
#d = #spyre_graph.division<splits = [8, 1], chunks = [32, 128], chunk_map = affine_map<()[s, t] -> (t ceildiv 8, 128)>>
func.func @main(%x: memref<256x128xf16, #l> {spyre_graph.name = "x", spyre_graph.size_map = #rows},
                %y: memref<256x128xf16, #l> {spyre_graph.name = "y", spyre_graph.size_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 8>, #spyre_graph.symbol<"t", 4 to 256 by 4>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [32, 128]>} : memref<256x128xf16, #l>
  spyre_graph.exp ins(%x : memref<256x128xf16, #l>) outs(%a : memref<256x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 128>, extent_map = #rows, division = #d}
  spyre_graph.neg ins(%a : memref<256x128xf16, #l>) outs(%y : memref<256x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 128>, extent_map = #rows, division = #d}
  return
}

// -----

// Parts of the rows of a value that moves between cores begin where the run's chunks
// do: core 1 of 4 has those from one chunk to the next.
// CHECK-DAG: #[[QUARTER:.*]] = affine_map<()[s0] -> (s0 ceildiv 4)>
// CHECK-DAG: #[[SECOND:.*]] = affine_set<(d0, d1, d2)[s0] : (d0 >= 0, -d0 + 1 >= 0, d1 - s0 >= 0, -d1 + s0 * 2 - 1 >= 0, d2 >= 0, -d2 + 63 >= 0)>
// CHECK-LABEL: func.func private @k1_reshard
// CHECK-SAME: %[[A:.*]]: index, %{{.*}}: index, %[[ROWS:.*]]: index) attributes {grid = [2]}
// CHECK: %[[CHUNK:.*]] = affine.apply #[[QUARTER]]()[%[[ROWS]]]
// CHECK: ktdp.construct_memory_view %[[A]], sizes: [2, %[[CHUNK]], 64], strides: [4096, 64, 1] {coordinate_set = #[[SECOND]], memory_space = #ktdp.memory_space<ct_local, ct_id = 1>}
// CHECK: ktdp.construct_distributed_memory_view
// CHECK-SAME: : memref<2x?x64xf16>

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 128)>
#by_row = #spyre_graph.division<splits = [4, 1], chunks = [64, 128], chunk_map = affine_map<()[s] -> (s ceildiv 4, 128)>>
#by_column = #spyre_graph.division<splits = [1, 2], chunks = [256, 64], chunk_map = affine_map<()[s] -> (s, 64)>>
func.func @main(%x: memref<256x128xf16, #l> {spyre_graph.name = "x", spyre_graph.size_map = #rows},
                %y: memref<256x128xf16, #l> {spyre_graph.name = "y", spyre_graph.size_map = #rows})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 256>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [64, 128]>} : memref<256x128xf16, #l>
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 16384, local = [256, 64]>} : memref<256x128xf16, #l>
  spyre_graph.exp ins(%x : memref<256x128xf16, #l>) outs(%a : memref<256x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 128>, extent_map = #rows, division = #by_row}
  spyre_graph.reshard ins(%a : memref<256x128xf16, #l>) outs(%b : memref<256x128xf16, #l>) {source_division = #by_row, maps = [#id, #id], extents = array<i64: 256, 128>, extent_map = #rows, division = #by_column}
  spyre_graph.neg ins(%b : memref<256x128xf16, #l>) outs(%y : memref<256x128xf16, #l>) {maps = [#id, #id], extents = array<i64: 256, 128>, extent_map = #rows, division = #by_column}
  return
}

// -----

// A mean divides by what is reduced in this run, and a variance by one less.
// CHECK-LABEL: func.func private @k0_mean
// CHECK-SAME: %[[ROWS:[^:]*]]: index) attributes
// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK: %[[ALL:.*]] = arith.muli %[[ROWS]], %{{.*}} : index
// CHECK: %[[WIDE:.*]] = arith.index_cast %[[ALL]] : index to i64
// CHECK: %[[COUNT:.*]] = arith.sitofp %[[WIDE]] : i64 to f32
// CHECK: %[[SCALE:.*]] = arith.divf %{{.*}}, %[[COUNT]]
// CHECK: arith.mulf %{{.*}}, %[[SCALE]]
// CHECK-LABEL: func.func private @k1_sum_squares
// CHECK-SAME: %[[ROWS:[^:]*]]: index) attributes
// CHECK: %[[COUNT:.*]] = arith.sitofp
// CHECK: %[[LESS:.*]] = arith.subf %[[COUNT]]
// CHECK: %[[DEGREES:.*]] = arith.maximumf %[[LESS]]
// CHECK: arith.divf %{{.*}}, %[[DEGREES]]

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#none = #spyre_graph.layout<order = [0], IEEE_FP32>
#id = affine_map<(i, j) -> (i, j)>
#all = affine_map<(i, j) -> (0)>
#rows = affine_map<()[s] -> (s, 128)>
#d = #spyre_graph.division<splits = [1, 1], chunks = [256, 128], chunk_map = #rows>
func.func @main(%x: memref<256x128xf16, #l> {spyre_graph.name = "x", spyre_graph.size_map = #rows},
                %y: memref<1xf32, #none> {spyre_graph.name = "y"}, %z: memref<1xf32, #none> {spyre_graph.name = "z"})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 256>]} {
  spyre_graph.mean ins(%x : memref<256x128xf16, #l>) outs(%y : memref<1xf32, #none>) {dims = array<i64: 0, 1>, maps = [#id, #all], extents = array<i64: 256, 128>, extent_map = #rows, division = #d}
  spyre_graph.sum_squares ins(%x : memref<256x128xf16, #l>) outs(%z : memref<1xf32, #none>) {dims = array<i64: 0, 1>, scale = 1.0, correction = 1.0, maps = [#id, #all], extents = array<i64: 256, 128>, extent_map = #rows, division = #d}
  return
}

// -----

// What varies along the stick moves in whole sticks, of which a part has as many as its
// chunk, and then the elements of the last one, where the core has that.
// CHECK-DAG: #[[STICKS:.*]] = affine_map<()[s0] -> (s0 ceildiv 128)>
// CHECK-DAG: #[[FULL:.*]] = affine_map<()[s0] -> (s0 floordiv 64)>
// CHECK-DAG: #[[REST:.*]] = affine_map<()[s0] -> (s0 mod 64)>
// CHECK-LABEL: func.func private @k1_reshard
// CHECK-SAME: %[[A:.*]]: index, %{{.*}}: index, %[[COLUMNS:.*]]: index) attributes {grid = [4]}
// CHECK: %[[PART:.*]] = affine.apply #[[STICKS]]()[%[[COLUMNS]]]
// CHECK: ktdp.construct_memory_view %[[A]], sizes: [%[[PART]], 4, 64], strides: [256, 64, 1] {{.*}}ct_id = 1>}
// CHECK: %[[WHOLE:.*]] = affine.apply #[[FULL]]()[%[[COLUMNS]]]
// CHECK: ktdp.construct_access_tile {{.*}} !ktdp.access_tile<?x1x64xindex>
// CHECK: %[[LEFT:.*]] = affine.apply #[[REST]]()[%[[COLUMNS]]]
// CHECK: arith.cmpi ne, %[[LEFT]]
// CHECK: scf.if
// CHECK: !ktdp.access_tile<1x1x?xindex>

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#columns = affine_map<()[s] -> (4, s)>
#by_stick = #spyre_graph.division<splits = [1, 2], chunks = [4, 128], chunk_map = affine_map<()[s] -> (4, (s ceildiv 128) * 64)>>
#by_row = #spyre_graph.division<splits = [4, 1], chunks = [1, 256], chunk_map = affine_map<()[s] -> (1, s)>>
func.func @main(%x: memref<4x256xf16, #l> {spyre_graph.name = "x", spyre_graph.size_map = #columns},
                %y: memref<4x256xf16, #l> {spyre_graph.name = "y", spyre_graph.size_map = #columns})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 256>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [4, 128]>} : memref<4x256xf16, #l>
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 1024, local = [1, 256]>} : memref<4x256xf16, #l>
  spyre_graph.exp ins(%x : memref<4x256xf16, #l>) outs(%a : memref<4x256xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 256>, extent_map = #columns, division = #by_stick}
  spyre_graph.reshard ins(%a : memref<4x256xf16, #l>) outs(%b : memref<4x256xf16, #l>) {source_division = #by_stick, maps = [#id, #id], extents = array<i64: 4, 256>, extent_map = #columns, division = #by_row}
  spyre_graph.neg ins(%b : memref<4x256xf16, #l>) outs(%y : memref<4x256xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 256>, extent_map = #columns, division = #by_row}
  return
}

// -----

// Partners whose rows are none leave the kernel together, before they load anything.
// CHECK-LABEL: func.func private @k0_matmul
// CHECK-SAME: attributes {grid = [32]}
// CHECK: %[[ROWS:.*]] = arith.maxsi
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[ROWS]]
// CHECK: scf.if %[[ANY]]
// CHECK: ktdp.load
// CHECK: ktdp.inter_tile_reduce
// Those that have rows but nothing to sum stay: others wait for them.
// CHECK-LABEL: func.func private @k1_sum
// CHECK-SAME: attributes {grid = [8]}
// CHECK-NOT: arith.cmpi sgt
// CHECK: ktdp.inter_tile_reduce

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#v = #spyre_graph.layout<order = [0], SEN169_FP16>
#rows = affine_map<()[s] -> (s, 128)>
#parts = #spyre_graph.division<splits = [8, 2, 2], chunks = [32, 64, 128], order = [2, 0, 1], chunk_map = affine_map<()[s] -> (s ceildiv 8, 64, 128)>>
#sums = #spyre_graph.division<splits = [8, 1], chunks = [32, 128], chunk_map = affine_map<()[s] -> (s ceildiv 8, 128)>>
func.func @main(%x: memref<256x256xf16, #l> {spyre_graph.name = "x", spyre_graph.size_map = affine_map<()[s] -> (s, 256)>},
                %w: memref<256x128xf16, #l> {spyre_graph.name = "w"},
                %y: memref<256x128xf16, #l> {spyre_graph.name = "y", spyre_graph.size_map = #rows},
                %z: memref<128xf16, #v> {spyre_graph.name = "z"})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 256>]} {
  spyre_graph.matmul ins(%x, %w : memref<256x256xf16, #l>, memref<256x128xf16, #l>) outs(%y : memref<256x128xf16, #l>) {maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], extents = array<i64: 256, 128, 256>, extent_map = affine_map<()[s] -> (s, 128, 256)>, division = #parts}
  spyre_graph.sum ins(%y : memref<256x128xf16, #l>) outs(%z : memref<128xf16, #v>) {dims = array<i64: 0>, maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], extents = array<i64: 256, 128>, extent_map = #rows, division = #sums}
  return
}

// -----

#line = #spyre_graph.layout<order = [0], IEEE_FP32>
#rows = #spyre_graph.layout<order = [0], sparse, IEEE_FP32>
#index = #spyre_graph.layout<order = [0], IEEE_INT32>
#id = affine_map<(i) -> (i)>
#all = affine_map<()[s] -> (s)>

// An index selects from as many rows as there are in the run, not from all for which
// there is room.
// CHECK-LABEL: func.func private @k1_gather
// CHECK-SAME: (%[[TABLE:[a-z0-9]*]]: index, %{{[a-z0-9]*}}: index, %{{[a-z0-9]*}}: index, %[[S:[a-z0-9]*]]: index)
// CHECK: ktdp.construct_memory_view %[[TABLE]], sizes: [1, %[[S]], 32], strides: [16384, 32, 1]
func.func @select(%x: memref<512xf32, #line> {spyre_graph.size_map = #all},
                  %i: memref<1xi64, #index>, %y: memref<1xf32, #line>)
    attributes {spyre_graph.pool_size = 65536 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<512xf32, #rows>
  spyre_graph.restickify ins(%x : memref<512xf32, #line>) outs(%a : memref<512xf32, #rows>) {maps = [#id, #id], extents = array<i64: 512>, extent_map = #all, division = #spyre_graph.division<splits = [1], chunks = [512], chunk_map = #all>}
  spyre_graph.gather ins(%a, %i : memref<512xf32, #rows>, memref<1xi64, #index>) outs(%y : memref<1xf32, #line>) {axis = 0 : i64, maps = [affine_map<(i) -> (0)>, #id, #id], extents = array<i64: 1>, division = #spyre_graph.division<splits = [1], chunks = [1]>}
  return
}
