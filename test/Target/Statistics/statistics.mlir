// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-statistics-opt %s --spyre-pipeline="target=statistics to-ktir=false" --print-plan-statistics -o /dev/null | FileCheck %s --check-prefix=STATISTICS
// RUN: spyre-statistics-opt %s --spyre-pipeline="target=ktir to-ktir=false" --print-plan-statistics -o /dev/null | FileCheck %s --check-prefix=KTIR
// RUN: spyre-statistics-opt %s --spyre-pipeline="target=ktir" | FileCheck %s --check-prefix=LOWERED
// RUN: not spyre-statistics-opt %s --spyre-pipeline="target=superdsc" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// A target that no library of the project has, in a tool without
// lib/Target/SuperDSC. It adds a pass of its own after the layouts are chosen,
// which prints first.
// STATISTICS: statistics of @main: 0 cores
// STATISTICS: statistics of @main: 16 cores
// STATISTICS-NOT: {{[1-9][0-9]*}} unequal divisions
// KTIR: statistics of @main: 32 cores
// KTIR-SAME: 1 unequal divisions
// LOWERED-NOT: spyre_graph.target
// LOWERED: call @
// UNKNOWN: error: unknown target 'superdsc'; registered are: ktir, statistics

#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// 1021 rows and 16 sticks: equal slices are sticks, and 16 cores have nothing to
// do; with a smaller last slice of rows all have.
func.func @main(%x: tensor<1021x1024xf16, #layout> {spyre_graph.name = "x"})
    -> (tensor<1021x1024xf16> {spyre_graph.name = "out0"}) {
  %0 = tensor.empty() : tensor<1021x1024xf16>
  %1 = spyre_graph.exp ins(%x : tensor<1021x1024xf16, #layout>)
      outs(%0 : tensor<1021x1024xf16>) -> tensor<1021x1024xf16>
  return %1 : tensor<1021x1024xf16>
}
