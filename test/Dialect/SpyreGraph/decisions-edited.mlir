// SPDX-License-Identifier: Apache-2.0
// Decisions are edited and read again: what was edited is honoured, what
// depends on it planned anew.
// DEFINE: %{edit} = %python %S/Inputs/edit_decisions.py %t/out.json
// DEFINE: %{plan} = spyre-opt %s --spyre-pipeline="cores=4 to-ktir=false
// RUN: rm -rf %t && mkdir -p %t
// RUN: %{plan} decisions-out=%t/out.json" -o %t/plan.mlir

// Written again by another program, they are the same decisions.
// RUN: %{edit} %t/same.json
// RUN: %{plan} decisions-in=%t/same.json decisions-out=%t/again.json" | diff %t/plan.mlir -
// RUN: diff %t/out.json %t/again.json

// Another stick: the users read copies, or have it too.
// RUN: %{edit} %t/stick.json ops.exp.layout.order=[1,0]
// RUN: %{plan} decisions-in=%t/stick.json decisions-out=%t/stick-again.json" -o %t/stick.mlir
// RUN: FileCheck %s --check-prefix=STICK < %t/stick.mlir
// STICK: spyre_graph.exp {{.*}}outs(%{{.*}} : memref<130x192xf16, #spyre_graph.layout<order = [1, 0], SEN169_FP16>>)
// STICK: spyre_graph.restickify
// STICK: spyre_graph.neg {{.*}}outs(%arg2 : memref<130x192xf16, #spyre_graph.layout<order = [0, 1], SEN169_FP16>>)
// RUN: %{plan} decisions-in=%t/stick-again.json" | diff %t/stick.mlir -

// One element per stick.
// RUN: %{edit} %t/sparse.json ops.exp.layout.sparse=true
// RUN: %{plan} decisions-in=%t/sparse.json" -o %t/sparse.mlir
// RUN: FileCheck %s --check-prefix=SPARSE < %t/sparse.mlir
// SPARSE: spyre_graph.exp {{.*}}outs(%{{.*}} : memref<130x192xf16, #spyre_graph.layout<order = [0, 1], sparse, SEN169_FP16>>)

// Two operations in one loop, the matmul outside of it.
// RUN: %{edit} %t/tiles.json 'ops.exp.tiling=[{"scope":0,"dim":0,"tiles":2}]' 'ops.neg.tiling=[{"scope":0,"dim":0,"tiles":2}]'
// RUN: %{plan} decisions-in=%t/tiles.json decisions-out=%t/tiles-again.json" -o %t/tiles.mlir
// RUN: FileCheck %s --check-prefix=TILES < %t/tiles.mlir
// TILES: scf.for %{{.*}} = %c0 to %c130 step %c65
// TILES: spyre_graph.exp {{.*}}extents = array<i64: 65, 192>{{.*}}spyre_graph.tiling = [array<i64: 0, 0, 2>]
// TILES: spyre_graph.neg {{.*}}extents = array<i64: 65, 192>
// TILES: }
// TILES: spyre_graph.max
// RUN: %{plan} decisions-in=%t/tiles-again.json" | diff %t/tiles.mlir -
// The loop is taken out again.
// RUN: %python %S/Inputs/edit_decisions.py %t/tiles-again.json %t/untiled.json ops.exp.tiling=[] ops.neg.tiling=[]
// RUN: %{plan} decisions-in=%t/untiled.json" | diff %t/plan.mlir -

// A division: the others stay, the buffer is placed in the new slices.
// RUN: %{edit} %t/divided.json 'ops.exp.division={"splits":[2,1],"chunks":[65,192]}'
// RUN: %{plan} decisions-in=%t/divided.json" | FileCheck %s --check-prefix=DIVIDED
// DIVIDED: local = [65, 192]
// DIVIDED: spyre_graph.exp {{.*}}splits = [2, 1], chunks = [65, 192]
// DIVIDED: spyre_graph.neg {{.*}}splits = [4, 1], chunks = [33, 192]

// All plans give the same bits.
// RUN: %python %S/Inputs/run_plans.py %t/run %t/plan.mlir %t/stick.mlir %t/sparse.mlir %t/tiles.mlir | FileCheck %s --check-prefix=BITS
// BITS: 4 plans give the same bits

// SG-DECISIONS-C3
// RUN: %{edit} %t/order.json ops.exp.layout.order=[1,1]
// RUN: not %{plan} decisions-in=%t/order.json" 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: decisions-edited.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'spyre_graph.exp' op the decisions in '{{.*}}order.json' need for its layout an order of its 2 dimensions and whether it is sparse
// RUN: %{edit} %t/level.json 'ops.exp.tiling=["8"]'
// RUN: not %{plan} decisions-in=%t/level.json" 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: error: 'spyre_graph.exp' op the decisions in '{{.*}}level.json' need for each level of its tiling a scope, a dim (-1: none of its loops) and at least one of tiles
// RUN: %{edit} %t/levels.json 'ops.exp.tiling=8'
// RUN: not %{plan} decisions-in=%t/levels.json" 2>&1 | FileCheck %s --check-prefix=LEVELS
// LEVELS: error: 'spyre_graph.exp' op the decisions in '{{.*}}levels.json' need for its tiling a list of levels
// RUN: %{edit} %t/slices.json ops.exp.division=4
// RUN: not %{plan} decisions-in=%t/slices.json" 2>&1 | FileCheck %s --check-prefix=SLICES
// SLICES: error: 'spyre_graph.exp' op its division in '{{.*}}slices.json' needs splits and chunks, 2 numbers each
// RUN: %{edit} %t/place.json buffers.0.placement=4096
// RUN: not %{plan} decisions-in=%t/place.json" 2>&1 | FileCheck %s --check-prefix=PLACE
// PLACE: error: 'memref.alloc' op its placement in '{{.*}}place.json' needs a space, pool or lx, an offset, and in lx 2 local extents
// RUN: %{edit} %t/none.json 'ops.exp.division={"splits":[0,1],"chunks":[130,192]}'
// RUN: not %{plan} decisions-in=%t/none.json" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: 'spyre_graph.exp' op its division in '{{.*}}none.json': splits must be positive and chunks not negative, but are [0, 1] and [130, 192]
// RUN: %{edit} %t/low.json buffers.0.placement.offset=-128
// RUN: not %{plan} decisions-in=%t/low.json" 2>&1 | FileCheck %s --check-prefix=LOW
// LOW: error: 'memref.alloc' op its placement in '{{.*}}low.json': offset -128 is not a multiple of 128 bytes from 0 on
// RUN: %{edit} %t/size.json pool_size=true
// RUN: not %{plan} decisions-in=%t/size.json" 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: error: decisions file '{{.*}}size.json': pool_size of function 'main' is not a number of bytes

// What cannot be says what can.
// RUN: %{edit} %t/matmul.json ops.matmul.layout.order=[1,0]
// RUN: not %{plan} decisions-in=%t/matmul.json" 2>&1 | FileCheck %s --check-prefix=MATMUL
// MATMUL: error: 'spyre_graph.matmul' op cannot have the layout #spyre_graph.layout<order = [1, 0], SEN169_FP16> that its hint asks for; possible: #spyre_graph.layout<order = [0, 1], SEN169_FP16>, or another order before the same last dimension
// RUN: %{edit} %t/count.json 'ops.exp.tiling=[{"scope":0,"dim":1,"tiles":7}]'
// RUN: not %{plan} decisions-in=%t/count.json" 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: error: 'spyre_graph.exp' op loop dimension 1 of extent 192 cannot be cut into 7

// SG-DECISIONS-C4: a placement that belongs to the former plan only, and what
// comes too late.
// RUN: %{edit} %t/both.json ops.exp.layout.order=[1,0] buffers.0.placement.offset=128
// RUN: not %{plan} decisions-in=%t/both.json" 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: the decisions in '{{.*}}both.json' place a buffer at {{.*}}decisions-edited.mlir:{{[0-9]+}} of another plan than the edited layouts, tilings and divisions make; write its decisions to a file and edit that
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in=%t/stick.json 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: 'spyre_graph.exp' op the decisions in '{{.*}}stick.json' give it another layout than it has in the plan; they must be read before --spyre-propagate-layouts
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in=%t/tiles.json 2>&1 | FileCheck %s --check-prefix=LATE-TILES
// LATE-TILES: error: 'spyre_graph.exp' op the decisions in '{{.*}}tiles.json' tile it otherwise than the plan; they must be read before --spyre-coarse-tiling

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<130x192xf16, #l> {spyre_graph.name = "x"}, %w: tensor<192x65xf16, #l> {spyre_graph.name = "w"})
    -> (tensor<130x192xf16> {spyre_graph.name = "out0"}, tensor<130x1xf16> {spyre_graph.name = "out1"}, tensor<130x65xf16> {spyre_graph.name = "out2"}) {
  %e = tensor.empty() : tensor<130x192xf16>
  %f = tensor.empty() : tensor<130x192xf16>
  %g = tensor.empty() : tensor<130x1xf16>
  %h = tensor.empty() : tensor<130x65xf16>
  %0 = spyre_graph.exp ins(%x : tensor<130x192xf16, #l>) outs(%e : tensor<130x192xf16>) -> tensor<130x192xf16>
  %1 = spyre_graph.neg ins(%0 : tensor<130x192xf16>) outs(%f : tensor<130x192xf16>) -> tensor<130x192xf16>
  %2 = spyre_graph.max ins(%0 : tensor<130x192xf16>) outs(%g : tensor<130x1xf16>) {dims = array<i64: 1>} -> tensor<130x1xf16>
  %3 = spyre_graph.matmul ins(%1, %w : tensor<130x192xf16>, tensor<192x65xf16, #l>) outs(%h : tensor<130x65xf16>) -> tensor<130x65xf16>
  return %1, %2, %3 : tensor<130x192xf16>, tensor<130x1xf16>, tensor<130x65xf16>
}
