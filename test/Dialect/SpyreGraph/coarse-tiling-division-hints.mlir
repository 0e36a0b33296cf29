// SPDX-License-Identifier: Apache-2.0
// Tiles that no hint asks for can be divided over the cores as hints ask.
// RUN: spyre-opt %s --split-input-file --spyre-coarse-tiling --spyre-work-division | FileCheck %s
// RUN: not spyre-opt %s --split-input-file --spyre-coarse-tiling --spyre-work-division=mode=reference 2>&1 | FileCheck %s --check-prefix=EQUAL
// RUN: not spyre-opt %s --split-input-file --spyre-set-target=target=superdsc --spyre-coarse-tiling --spyre-work-division 2>&1 | FileCheck %s --check-prefix=EQUAL
// RUN: spyre-opt %s --split-input-file --spyre-coarse-tiling --remark-policy=all --remarks-filter=spyre-coarse-tiling -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Without the hint in tiles of 175 rows, which are no 10 equal slices.
// CHECK-LABEL: func.func @equal
// CHECK: scf.for {{.*}} to %c700 step %c140
// CHECK: spyre_graph.exp {{.*}}division = #spyre_graph.division<splits = [10, 1], chunks = [14, 65536]>
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @equal(%x: tensor<700x65536xf16, #l>) -> tensor<700x65536xf16, #l> {
  %o = tensor.empty() : tensor<700x65536xf16, #l>
  %a = spyre_graph.exp ins(%x : tensor<700x65536xf16, #l>) outs(%o : tensor<700x65536xf16, #l>) {spyre_graph.work_division_hint = array<i64: 10, 1>} -> tensor<700x65536xf16, #l>
  %b = spyre_graph.add ins(%a, %a : tensor<700x65536xf16, #l>, tensor<700x65536xf16, #l>) outs(%o : tensor<700x65536xf16, #l>) -> tensor<700x65536xf16, #l>
  return %b : tensor<700x65536xf16, #l>
}

// -----

// 256 rows are no 23 slices, also where slices may be unequal: tiles of columns.
// CHECK-LABEL: func.func @unequal
// CHECK: scf.for {{.*}} to %c65536 step %c16384
// CHECK: spyre_graph.exp {{.*}}division = #spyre_graph.division<splits = [23, 1], chunks = [45, 16384]>

// Where not even the whole has these slices, it is what the error is about.
// EQUAL: work division hint asks for 23 slices of loop dimension 0, but its 1024 iterations are not evenly divisible
// EQUAL-LABEL: func.func @equal
// EQUAL: scf.for {{.*}} to %c700 step %c140
// EQUAL: spyre_graph.exp {{.*}}division = #spyre_graph.division<splits = [10, 1], chunks = [14, 65536]>
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @unequal(%x: tensor<1024x65536xf16, #l>) -> tensor<1024x65536xf16, #l> {
  %o = tensor.empty() : tensor<1024x65536xf16, #l>
  %a = spyre_graph.exp ins(%x : tensor<1024x65536xf16, #l>) outs(%o : tensor<1024x65536xf16, #l>) {spyre_graph.work_division_hint = array<i64: 23, 1>} -> tensor<1024x65536xf16, #l>
  %b = spyre_graph.add ins(%a, %a : tensor<1024x65536xf16, #l>, tensor<1024x65536xf16, #l>) outs(%o : tensor<1024x65536xf16, #l>) -> tensor<1024x65536xf16, #l>
  return %b : tensor<1024x65536xf16, #l>
}

// -----

// A scan is not cut along its rows. 1024 sticks are 31 slices, tiles of 256, 128
// or fewer are not.
// REMARK: remark: [Missed] whole | {{.*}}Function=both | {{.*}}: no tiles of whole sticks fit in LX, keep all cores busy and have as many slices as hints ask for"
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @both(%x: tensor<1021x65536xf16, #l>) -> tensor<1021x65536xf16, #l> {
  %o = tensor.empty() : tensor<1021x65536xf16, #l>
  %a = spyre_graph.exp ins(%x : tensor<1021x65536xf16, #l>) outs(%o : tensor<1021x65536xf16, #l>) {spyre_graph.work_division_hint = array<i64: 1, 31>} -> tensor<1021x65536xf16, #l>
  %b = spyre_graph.cumsum ins(%a : tensor<1021x65536xf16, #l>) outs(%o : tensor<1021x65536xf16, #l>) {dim = 0 : i64} -> tensor<1021x65536xf16, #l>
  return %b : tensor<1021x65536xf16, #l>
}

// -----

// Tiles of 16448 rows and 8256 columns, as without the hint, are no 31 slices.
// CHECK-LABEL: func.func @spans
// CHECK: scf.for {{.*}} step %c2112
// CHECK: spyre_graph.identity {{.*}}division = #spyre_graph.division<splits = [31, 1], chunks = [1088, 2112]>
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @spans(%x: tensor<65537x32771xf16, #l>) -> tensor<32771x65537xf16, #l> {
  %e = tensor.empty() : tensor<32771x65537xf16, #l>
  %r = spyre_graph.identity ins(%x : tensor<65537x32771xf16, #l>) outs(%e : tensor<32771x65537xf16, #l>) {maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], extents = array<i64: 32771, 65537>, spyre_graph.work_division_hint = array<i64: 31, 1>} -> tensor<32771x65537xf16, #l>
  return %r : tensor<32771x65537xf16, #l>
}
