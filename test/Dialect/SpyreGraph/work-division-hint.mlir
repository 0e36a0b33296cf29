// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --spyre-work-division | FileCheck %s
// RUN: not spyre-opt %s --spyre-work-division="mode=reference" 2>&1 | FileCheck %s --check-prefix=EVEN
// RUN: not spyre-opt %s --spyre-set-target=target=superdsc --spyre-work-division 2>&1 | FileCheck %s --check-prefix=EVEN
// RUN: not spyre-opt %s --spyre-work-division="mode=magic" 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: spyre-opt %s --spyre-work-division --remark-policy=all --remarks-filter=spyre-work-division -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// EVEN: error: 'spyre_graph.neg' op work division hint asks for 4 slices of loop dimension 0, but its 7 iterations are not evenly divisible into that many equal ones, which {{.*}} needs; possible: 1, 7
// MODE: error: unknown mode 'magic', expected 'default' or 'reference'
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// Seven rows on four cores: 2, 2, 2 and 1.
// CHECK-LABEL: func.func @uneven
// CHECK: division = #spyre_graph.division<splits = [4, 1], chunks = [2, 128]>
// REMARK: [Analysis] division | Category:spyre-work-division | Function=uneven | Remark="neg on 4 cores, splits [4, 1]: {{.*}} s alone, the cheapest of {{[0-9]+}} {{.*}} s"
func.func @uneven(%x: tensor<7x128xf16, #l>) -> tensor<7x128xf16, #l> {
  %e = tensor.empty() : tensor<7x128xf16, #l>
  %r = spyre_graph.neg ins(%x : tensor<7x128xf16, #l>) outs(%e : tensor<7x128xf16, #l>) {spyre_graph.work_division_hint = array<i64: 4, 1>} -> tensor<7x128xf16, #l>
  return %r : tensor<7x128xf16, #l>
}
