// SPDX-License-Identifier: Apache-2.0
// Parts of what is joined along a dimension that varies, each written once.
// RUN: spyre-opt %s --verify-roundtrip -o /dev/null
// RUN: spyre-opt %s --split-input-file --spyre-propagate-layouts | FileCheck %s --check-prefix=LAYOUTS
// RUN: spyre-opt %s --split-input-file --spyre-pipeline="to-ktir=false verify-each=true" | FileCheck %s --check-prefix=PLAN
// RUN: spyre-opt %s --split-input-file --spyre-pipeline | FileCheck %s --check-prefix=KTIR

#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>

// The last part says how large the result is, which needs no write of its own.
// LAYOUTS-LABEL: func.func @joined
// LAYOUTS: spyre_graph.insert
// PLAN-DAG: #[[OFFSET:.*]] = affine_map<()[s0] -> (s0)>
// PLAN-DAG: #[[AFTER:.*]] = affine_map<(d0, d1) -> (d0 + 512, d1)>
// PLAN-LABEL: func.func @joined
// PLAN-SAME: %[[OUT:[a-z0-9]*]]: memref<576x256xf16
// PLAN-NOT: memref.alloc
// PLAN: spyre_graph.identity {{.*}} outs(%[[OUT]] :
// PLAN-NEXT: spyre_graph.insert {{.*}} outs(%[[OUT]] :
// PLAN-SAME: axis = 0 : i64
// PLAN-SAME: maps = [#{{.*}}, #[[AFTER]]], offset_map = #[[OFFSET]]
// PLAN-NEXT: return
// The kernel adds the offset to the rows.
// KTIR-LABEL: func.func @joined
// KTIR: call @[[KERNEL:.*insert]](
// KTIR: func.func private @[[KERNEL]](%{{.*}}: index, %{{.*}}: index, %[[S:.*]]: index)
// KTIR: scf.for %[[ROW:.*]] =
// KTIR: construct_indirect_access_tile {{.*}}(%[[ROW]] + %i + %[[S]])
func.func @joined(%x: tensor<512x256xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 256)>},
    %y: tensor<64x256xf16, #rows> {spyre_graph.name = "y"})
    -> (tensor<576x256xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s + 64, 256)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %0 = tensor.empty() : tensor<576x256xf16>
  %1 = spyre_graph.identity ins(%x : tensor<512x256xf16, #rows>)
      outs(%0 : tensor<576x256xf16>) {maps = [#id, #id], extents = array<i64: 512, 256>} -> tensor<576x256xf16>
  %2 = spyre_graph.insert ins(%y : tensor<64x256xf16, #rows>)
      outs(%1 : tensor<576x256xf16>)
      {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>,
       maps = [#id, affine_map<(i, j) -> (i + 512, j)>], extents = array<i64: 64, 256>} -> tensor<576x256xf16>
  return %2 : tensor<576x256xf16>
}

// -----

#changed = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#list = #spyre_graph.layout<order = [0], IEEE_INT32>
#at_once = affine_map<(i, j) -> (i, j)>

// Rows that an index says change when all parts are there.
// PLAN-LABEL: func.func @changed
// PLAN: %[[ALL:.*]] = memref.alloc()
// PLAN: spyre_graph.identity {{.*}} outs(%[[ALL]] :
// PLAN: spyre_graph.insert {{.*}} outs(%[[ALL]] :
// PLAN: spyre_graph.scatter {{.*}} outs(%[[ALL]] :
// PLAN: spyre_graph.abs ins(%[[ALL]] :
func.func @changed(%x: tensor<512x256xf16, #changed> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 256)>},
    %y: tensor<64x256xf16, #changed> {spyre_graph.name = "y"},
    %z: tensor<3x256xf16, #changed> {spyre_graph.name = "z"},
    %i: tensor<3xi64, #list> {spyre_graph.name = "i"})
    -> (tensor<576x256xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s + 64, 256)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 512>]} {
  %0 = tensor.empty() : tensor<576x256xf16>
  %1 = spyre_graph.identity ins(%x : tensor<512x256xf16, #changed>)
      outs(%0 : tensor<576x256xf16>) {maps = [#at_once, #at_once], extents = array<i64: 512, 256>} -> tensor<576x256xf16>
  %2 = spyre_graph.insert ins(%y : tensor<64x256xf16, #changed>)
      outs(%1 : tensor<576x256xf16>)
      {axis = 0 : i64, offset_map = affine_map<()[s] -> (s)>,
       maps = [#at_once, affine_map<(i, j) -> (i + 512, j)>], extents = array<i64: 64, 256>} -> tensor<576x256xf16>
  %3 = spyre_graph.scatter ins(%z, %i : tensor<3x256xf16, #changed>, tensor<3xi64, #list>)
      outs(%2 : tensor<576x256xf16>) {axis = 0 : i64} -> tensor<576x256xf16>
  %4 = tensor.empty() : tensor<576x256xf16>
  %5 = spyre_graph.abs ins(%3 : tensor<576x256xf16>) outs(%4 : tensor<576x256xf16>) -> tensor<576x256xf16>
  return %5 : tensor<576x256xf16>
}

// -----

#columns = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>

// Sticks do not run along what is joined, even where those of the parts do; and
// what later operations read is not in LX.
// LAYOUTS-LABEL: func.func @turned
// LAYOUTS: tensor.empty() : tensor<300x256xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>
// LAYOUTS: spyre_graph.insert
// LAYOUTS-SAME: extent_map = #{{.*}}, extents = array<i64: 100, 256>
// LAYOUTS: spyre_graph.exp
// LAYOUTS-SAME: extents = array<i64: 300, 256>
// PLAN-LABEL: func.func @turned
// PLAN: memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<300x256xf16
// KTIR-LABEL: func.func @turned
func.func @turned(%x: tensor<200x256xf16, #columns> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s, t] -> (s, 256)>},
    %y: tensor<100x256xf16, #columns> {spyre_graph.name = "y",
      spyre_graph.size_map = affine_map<()[s, t] -> (t, 256)>})
    -> (tensor<300x256xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s, t] -> (s + t, 256)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 200>, #spyre_graph.symbol<"t", 2 to 100>]} {
  %0 = tensor.empty() : tensor<300x256xf16>
  %1 = spyre_graph.identity ins(%x : tensor<200x256xf16, #columns>)
      outs(%0 : tensor<300x256xf16>) {maps = [#same, #same], extents = array<i64: 200, 256>} -> tensor<300x256xf16>
  %2 = spyre_graph.insert ins(%y : tensor<100x256xf16, #columns>)
      outs(%1 : tensor<300x256xf16>)
      {axis = 0 : i64, offset_map = affine_map<()[s, t] -> (s)>,
       maps = [#same, affine_map<(i, j) -> (i + 200, j)>], extents = array<i64: 100, 256>} -> tensor<300x256xf16>
  %3 = tensor.empty() : tensor<300x256xf16>
  %4 = spyre_graph.exp ins(%2 : tensor<300x256xf16>) outs(%3 : tensor<300x256xf16>) {maps = [#same, #same], extents = array<i64: 300, 256>} -> tensor<300x256xf16>
  return %4 : tensor<300x256xf16>
}
