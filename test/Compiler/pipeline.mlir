// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --spyre-pipeline | FileCheck %s
// RUN: spyre-opt %s --spyre-pipeline=verify-each | FileCheck %s
// RUN: spyre-opt %s --spyre-pipeline=verify-each --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=EACH

// A check after each pass; at the end, of everything.
// EACH-COUNT-7: partial=true
// EACH: spyre-memory-planning
// EACH: partial=true
// EACH: partial=false
// RUN: spyre-opt %s --spyre-pipeline="cores=2 to-ktir=false" | FileCheck %s --check-prefix=PLAN
// RUN: spyre-opt %s --spyre-pipeline="cores=2 to-ktir=false mode=reference lx-solver=greedy" | FileCheck %s --check-prefix=REFERENCE
// RUN: spyre-opt %s --spyre-pipeline="cores=2 to-ktir=false lx-clone-inputs=false" | FileCheck %s --check-prefix=NOCLONE
// RUN: not spyre-opt %s --spyre-pipeline="mode=other" 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not spyre-opt %s --spyre-pipeline="lx-solver=other" 2>&1 | FileCheck %s --check-prefix=SOLVER

// MODE: error: unknown mode 'other', expected 'default' or 'reference'
// SOLVER: error: unknown solver 'other', expected 'greedy'

// The reference copies no input into LX.
// REFERENCE-LABEL: func.func @main(
// REFERENCE-NOT: spyre_graph.identity
// REFERENCE: spyre_graph.max ins(%arg0
// REFERENCE: return

// Nor does the default mode if told so; the rest stays in LX.
// NOCLONE-LABEL: func.func @main(
// NOCLONE-NOT: spyre_graph.identity
// NOCLONE: placement<lx
// NOCLONE: spyre_graph.max ins(%arg0
// NOCLONE: return

// The way from an imported graph to KTIR: one call per kernel, results written
// by the kernel that computes them; the first copies the input, which two read,
// into LX.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: ktdp.name = "x"
// CHECK-SAME: ktdp.name = "out0"
// CHECK-COUNT-5: call @
// CHECK-NOT: call @
// CHECK: return
// CHECK: grid = [

// PLAN-LABEL: func.func @main(
// PLAN: spyre_graph.placement
// PLAN: spyre_graph.exp_sub {{.*}}division = #spyre_graph.division<splits = [2, 1]
// PLAN-NOT: call @
#layout = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<4x100xf16, #layout> {spyre_graph.name = "x"})
    -> (tensor<4x100xf16> {spyre_graph.name = "out0"}) {
  %0 = spyre_graph.softmax %x {dim = 1 : i64} : tensor<4x100xf16, #layout> -> tensor<4x100xf16>
  return %0 : tensor<4x100xf16>
}
