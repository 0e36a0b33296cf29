// SPDX-License-Identifier: Apache-2.0
// Passes that would find nothing to do, because they are run too early.
// RUN: not spyre-opt %s --spyre-update-in-place 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: not spyre-opt %s --spyre-legalize-superdsc 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: not spyre-opt %s --spyre-resolve-hints 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: not spyre-opt %s --spyre-coarse-tiling 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: not spyre-opt %s --spyre-work-division 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: not spyre-opt %s --spyre-propagate-layouts --spyre-lx-planning 2>&1 | FileCheck %s --check-prefix=BUFFER
// RUN: not spyre-opt %s --spyre-propagate-layouts --spyre-memory-planning 2>&1 | FileCheck %s --check-prefix=BUFFER
// RUN: spyre-opt %s --spyre-propagate-layouts --spyre-coarse-tiling --spyre-work-division --spyre-bufferize --spyre-lx-planning --spyre-memory-planning --spyre-verify-plan -o /dev/null

#l2 = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-UPDATE-C1, SDSC-LEGALIZE-C1, SG-HINT-C5, SG-TILING-C1, SG-WORK-DIVISION-C1
// LAYOUT: too-early.mlir:[[@LINE+5]]:{{[0-9]+}}: error: 'spyre_graph.exp' op has a tensor without a layout, 'tensor<64x64xf16>'; run --spyre-propagate-layouts first
// SG-LX-C1, SG-MEMORY-C1
// BUFFER: too-early.mlir:[[@LINE+3]]:{{[0-9]+}}: error: 'spyre_graph.exp' op is on tensors; run --spyre-bufferize first
func.func @main(%x: tensor<64x64xf16, #l2>) -> tensor<64x64xf16> {
  %e = tensor.empty() : tensor<64x64xf16>
  %y = spyre_graph.exp ins(%x : tensor<64x64xf16, #l2>) outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %y : tensor<64x64xf16>
}
