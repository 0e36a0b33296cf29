// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --spyre-work-division="cores=4" | FileCheck %s --check-prefixes=ALL,KTIR
// RUN: spyre-opt %s --spyre-set-target=target=superdsc --spyre-work-division="cores=4" | FileCheck %s --check-prefixes=ALL,SUPERDSC
// RUN: spyre-opt %s --spyre-set-target --emit-bytecode | spyre-opt | FileCheck %s --check-prefix=NAME
// RUN: not spyre-opt %s --spyre-set-target=target=nosuch 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: unknown target 'nosuch'; registered are: ktir, superdsc
// NAME: module attributes {spyre_graph.target = #spyre_graph.target<ktir>}

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#same = affine_map<(i, j) -> (i, j)>

// Seven rows: three cores can take three each, the last one; equal slices leave
// them whole.
// ALL-LABEL: @rows
// KTIR: splits = [3, 1], chunks = [3, 64]
// SUPERDSC: splits = [1, 1], chunks = [7, 64]
func.func @rows(%x: tensor<7x64xf16, #layout>) -> tensor<7x64xf16, #layout> {
  %0 = tensor.empty() : tensor<7x64xf16, #layout>
  %1 = spyre_graph.exp ins(%x : tensor<7x64xf16, #layout>)
      outs(%0 : tensor<7x64xf16, #layout>)
      {maps = [#same, #same], extents = array<i64: 7, 64>}
      -> tensor<7x64xf16, #layout>
  return %1 : tensor<7x64xf16, #layout>
}
