// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --spyre-propagate-layouts -o /dev/null --remark-policy=all --remarks-filter=spyre-propagate-layouts 2>&1 | FileCheck %s

// An operation that updates a tensor has the ways to do so in each layout that
// the tensor may have, however many ways led to that layout: their number does
// not grow from update to update, and the solver still sees all of them.
// CHECK: layouts are priced at {{.*}}, the least possible
#s = #spyre_graph.layout<order = [0, 1, 2], IEEE_FP32>
#i = #spyre_graph.layout<order = [0, 1, 2], IEEE_INT32>
#same = affine_map<(a, b, c) -> (a, b, c)>
#rows = affine_map<(a, b, c) -> (a, b, 0)>
func.func @main(%s: tensor<2x3x12xf32, #s>, %i: tensor<2x3x12xi64, #i>) -> tensor<2x3x30xf32> {
  %e = tensor.empty() : tensor<2x3x30xf32>
  %0 = spyre_graph.fill outs(%e : tensor<2x3x30xf32>) {immediates = [0.0 : f32]} -> tensor<2x3x30xf32>
  %1 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%0 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  %2 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%1 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  %3 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%2 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  %4 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%3 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  %5 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%4 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  %6 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%5 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  %7 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%6 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  %8 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%7 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  %9 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%8 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  %10 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%9 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  %11 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%10 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  %12 = spyre_graph.scatter_add ins(%s, %i : tensor<2x3x12xf32, #s>, tensor<2x3x12xi64, #i>) outs(%11 : tensor<2x3x30xf32>)
    {axis = 2 : i64, extents = array<i64: 2, 3, 12>, maps = [#same, #same, #rows]} -> tensor<2x3x30xf32>
  return %12 : tensor<2x3x30xf32>
}
