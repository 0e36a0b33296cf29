// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt --spyre-pipeline="superdsc-compatible=true size-loops=true to-ktir=false" %s | FileCheck %s

// What needs a row of another tile comes in a later loop. Loops of two sizes need each
// other's results: neg comes after the loop that reads what add has in its row 31, or in
// the same one as add. There are 64 combinations of sizes, for all of which the pipeline
// proves at once that the rows are there.
// CHECK: #[[S:.*]] = affine_map<()[s0, s1] -> (s0)>
// CHECK: #[[T:.*]] = affine_map<()[s0, s1] -> (s1)>
// CHECK: %[[E:.*]] = memref.alloc() {{.*}} : memref<512x128xf16
// CHECK: scf.for
// CHECK:   spyre_graph.exp
// CHECK: {spyre_graph.bound_map = #[[S]]}
// CHECK: scf.for
// CHECK:   spyre_graph.add ins(%{{.*}}, %[[E]] :
// CHECK:   spyre_graph.neg
// CHECK: {spyre_graph.bound_map = #[[T]]}
// CHECK: scf.for
// CHECK:   spyre_graph.sub
// CHECK: {spyre_graph.bound_map = #[[S]]}
// CHECK-NOT: scf.for

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#rows = affine_map<()[s, t] -> (s, 128)>
#others = affine_map<()[s, t] -> (t, 128)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<512x128xf16, #l> {spyre_graph.size_map = #rows},
                %y: tensor<256x128xf16, #l> {spyre_graph.size_map = #others})
    -> (tensor<512x128xf16> {spyre_graph.size_map = #rows},
        tensor<256x128xf16> {spyre_graph.size_map = #others},
        tensor<256x128xf16> {spyre_graph.size_map = #others})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 64 to 512 by 64>, #spyre_graph.symbol<"t", 32 to 256 by 32>]} {
  %0 = tensor.empty() : tensor<512x128xf16>
  %e = spyre_graph.exp ins(%x : tensor<512x128xf16, #l>) outs(%0 : tensor<512x128xf16>) -> tensor<512x128xf16>
  %v = spyre_graph.view %e, affine_map<(i) -> (63, i)> : tensor<512x128xf16> -> tensor<128xf16>
  %1 = tensor.empty() : tensor<256x128xf16>
  %a = spyre_graph.add ins(%y, %v : tensor<256x128xf16, #l>, tensor<128xf16>) outs(%1 : tensor<256x128xf16>) {maps = [#id, #row, #id], extents = array<i64: 256, 128>} -> tensor<256x128xf16>
  %w = spyre_graph.view %a, affine_map<(i) -> (31, i)> : tensor<256x128xf16> -> tensor<128xf16>
  %2 = tensor.empty() : tensor<512x128xf16>
  %z = spyre_graph.sub ins(%e, %w : tensor<512x128xf16>, tensor<128xf16>) outs(%2 : tensor<512x128xf16>) {maps = [#id, #row, #id], extents = array<i64: 512, 128>} -> tensor<512x128xf16>
  %3 = tensor.empty() : tensor<256x128xf16>
  %n = spyre_graph.neg ins(%a : tensor<256x128xf16>) outs(%3 : tensor<256x128xf16>) -> tensor<256x128xf16>
  return %z, %a, %n : tensor<512x128xf16>, tensor<256x128xf16>, tensor<256x128xf16>
}
