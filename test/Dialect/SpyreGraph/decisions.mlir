// SPDX-License-Identifier: Apache-2.0
// RUN: rm -rf %t && mkdir -p %t
// RUN: spyre-opt %s --spyre-pipeline="cores=4 to-ktir=false decisions-out=%t/out.json" -o %t/plan.mlir
// RUN: FileCheck %s --check-prefix=FILE < %t/out.json
// FILE:      "functions": [
// FILE:        "buffers": [
// FILE:          "layout": "#spyre_graph.layout<order = [0, 1], SEN169_FP16>",
// FILE:          "location": "{{.*}}decisions.mlir:[[@LINE+85]]",
// FILE:          "placement": {
// FILE:            "offset": 0,
// FILE-NEXT:       "space": "lx"
// FILE:        "ops": [
// FILE:          "division": {
// FILE-NEXT:       "chunks": [
// FILE-NEXT:         32,
// FILE:            "splits": [
// FILE-NEXT:         2,
// FILE:          "op": "spyre_graph.exp",
// FILE:          "tiling": []
// FILE:        "pool_size": 0
// FILE:      "version": 2

// Read back, they change nothing; as a pass of its own too.
// RUN: spyre-opt %s --spyre-pipeline="cores=4 to-ktir=false decisions-in=%t/out.json" | diff %t/plan.mlir -
// RUN: spyre-opt %t/plan.mlir --spyre-decisions-in=%t/out.json --spyre-decisions-out=%t/again.json | diff %t/plan.mlir -
// RUN: sed 's/plan.mlir:[0-9]*/x/' %t/again.json | FileCheck %s --check-prefix=FILE-AGAIN
// FILE-AGAIN: "op": "spyre_graph.exp"

// The buffer goes to another address, then to the pool.
// RUN: sed 's/"offset": 0/"offset": 4096/' %t/out.json > %t/moved.json
// RUN: spyre-opt %s --spyre-pipeline="cores=4 to-ktir=false decisions-in=%t/moved.json" | FileCheck %s --check-prefix=MOVED
// MOVED: placement<lx, offset = 4096, local = [32, 64]>
// RUN: sed 's/"space": "lx"/"space": "pool"/; s/"pool_size": 0/"pool_size": 16384/' %t/out.json > %t/pool.json
// RUN: spyre-opt %s --spyre-pipeline="cores=4 to-ktir=false decisions-in=%t/pool.json" | FileCheck %s --check-prefix=POOL
// POOL: spyre_graph.pool_size = 16384
// POOL: placement<pool, offset = 0>

// What is no plan, the verifier says.
// RUN: sed 's/"offset": 0/"offset": 16777216/' %t/out.json > %t/far.json
// RUN: not spyre-opt %s --spyre-pipeline="cores=4 to-ktir=false decisions-in=%t/far.json" 2>&1 | FileCheck %s --check-prefix=FAR
// FAR: decisions.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'memref.alloc' op bytes 16777216 to 16781312 are outside the scratchpad of 1677721 bytes

// SG-DECISIONS-C1
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in=%t/none.json 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: cannot read decisions file '{{.*}}none.json': No such file or directory
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in 2>&1 | FileCheck %s --check-prefix=UNNAMED
// UNNAMED: error: has no decisions to take; give --spyre-decisions-in=FILE
// RUN: echo '{"version": ' > %t/broken.json
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in=%t/broken.json 2>&1 | FileCheck %s --check-prefix=BROKEN
// BROKEN: error: decisions file '{{.*}}broken.json': line 2, column 1: malformed JSON near
// RUN: echo '{"version": 1e4096}' > %t/huge.json
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in=%t/huge.json 2>&1 | FileCheck %s --check-prefix=HUGE
// HUGE: error: decisions file '{{.*}}huge.json': line 1, column 18: malformed JSON near '1e4096'
// RUN: echo '{"version": 2, "functions": [{"name": "main", "name": "other"}]}' > %t/twice.json
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in=%t/twice.json 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: decisions file '{{.*}}twice.json': /functions/0/name: the key 'name' occurs twice in an object
// RUN: sed 's/"version": 2/"version": 7/' %t/out.json > %t/version.json
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in=%t/version.json 2>&1 | FileCheck %s --check-prefix=VERSION
// VERSION: error: decisions file '{{.*}}version.json': expected an object with version 2 and a list of functions

// SG-DECISIONS-C2
// RUN: sed 's/"name": "main"/"name": "other"/' %t/out.json > %t/name.json
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in=%t/name.json 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: decisions file '{{.*}}name.json': has no decisions for function 'main'; the file was written for another graph
// RUN: sed 's/spyre_graph.exp/spyre_graph.log/' %t/out.json > %t/op.json
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in=%t/op.json 2>&1 | FileCheck %s --check-prefix=OP
// OP: error: 'spyre_graph.exp' op the decisions in '{{.*}}op.json' were written for another operation, not for spyre_graph.log

// RUN: sed 's/"graph": "./"graph": "-/' %t/out.json > %t/graph.json
// RUN: not spyre-opt %s --spyre-pipeline="cores=4 to-ktir=false decisions-in=%t/graph.json" 2>&1 | FileCheck %s --check-prefix=GRAPH
// GRAPH: error: decisions file '{{.*}}graph.json': the operations of function 'main' are not those of the decisions, which were written for another graph
// RUN: sed 's/"layout": "#spyre_graph.layout<order = \[0, 1\]/"layout": "#spyre_graph.layout<order = [1, 0]/' %t/out.json > %t/buffer.json
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in=%t/buffer.json 2>&1 | FileCheck %s --check-prefix=BUFFER
// BUFFER: error: 'memref.alloc' op the decisions in '{{.*}}buffer.json' were written for another buffer
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in="file=%t/out.json stage=early" 2>&1 | FileCheck %s --check-prefix=STAGE
// STAGE: error: expected stage layouts, tilings, divisions or plan, found 'early'

// SG-DECISIONS-C5
// RUN: not spyre-opt %s --spyre-propagate-layouts --spyre-decisions-in=%t/out.json 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'spyre_graph.exp' op is on tensors; run --spyre-bufferize first
// RUN: not spyre-opt %s --spyre-decisions-in="file=%t/out.json stage=layouts" 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: error: 'spyre_graph.exp' op has no number by which decisions of stage layouts find it; run --spyre-number-operations first, after --spyre-decompose

// SG-DECISIONS-C3
// RUN: sed 's/"offset": 0/"offset": "low"/' %t/out.json > %t/offset.json
// RUN: not spyre-opt %t/plan.mlir --spyre-decisions-in=%t/offset.json 2>&1 | FileCheck %s --check-prefix=OFFSET
// OFFSET: error: 'memref.alloc' op its placement in '{{.*}}offset.json' needs a space, pool or lx, an offset, and in lx 2 local extents

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<64x128xf16, #l> {spyre_graph.name = "x"}) -> (tensor<64x128xf16> {spyre_graph.name = "out0"}) {
  %e = tensor.empty() : tensor<64x128xf16>
  %f = tensor.empty() : tensor<64x128xf16>
  %0 = spyre_graph.exp ins(%x : tensor<64x128xf16, #l>) outs(%e : tensor<64x128xf16>) -> tensor<64x128xf16>
  %1 = spyre_graph.neg ins(%0 : tensor<64x128xf16>) outs(%f : tensor<64x128xf16>) -> tensor<64x128xf16>
  return %1 : tensor<64x128xf16>
}
