// SPDX-License-Identifier: Apache-2.0
// --check full names the operation that first computes a NaN. All operations of
// a compiled kernel, views of its operands too, lie where the source's is.
// RUN: spyre-opt %s --spyre-pipeline=cores=1 --mlir-print-debuginfo -o %t.mlir
// RUN: not spyre-run %t.mlir --entry=difference --arg=zeros --arg=zeros --check=full 2>&1 | FileCheck %s --check-prefix=DIFFERENCE --implicit-check-not=error
// RUN: not spyre-run %t.mlir --entry=product --arg=zeros --arg=zeros --check=full 2>&1 | FileCheck %s --check-prefix=PRODUCT --implicit-check-not=error
// RUN: spyre-run %t.mlir --entry=difference --arg=zeros --arg=zeros

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @difference(%x: tensor<65x64xf16, #l>) -> tensor<65x64xf16> {
  %e = tensor.empty() : tensor<65x64xf16>
  %log = spyre_graph.log ins(%x : tensor<65x64xf16, #l>) outs(%e : tensor<65x64xf16>) -> tensor<65x64xf16>
  %f = tensor.empty() : tensor<65x64xf16>
  // DIFFERENCE: made-of-nan.mlir:[[@LINE+1]]:{{[0-9]+}}: error: core 0: arith.subf computes NaN from -inf and -inf
  %r = spyre_graph.sub ins(%log, %log : tensor<65x64xf16>, tensor<65x64xf16>) outs(%f : tensor<65x64xf16>) -> tensor<65x64xf16>
  return %r : tensor<65x64xf16>
}

// A sum of products; infinity times zero.
func.func @product(%x: tensor<64x64xf16, #l>) -> tensor<64x64xf16> {
  %e = tensor.empty() : tensor<64x64xf16>
  %log = spyre_graph.log ins(%x : tensor<64x64xf16, #l>) outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
  %f = tensor.empty() : tensor<64x64xf16>
  // PRODUCT: made-of-nan.mlir:[[@LINE+1]]:{{[0-9]+}}: error: core 0: linalg.{{[a-z]+}} computes NaN from numbers and infinities
  %r = spyre_graph.matmul ins(%log, %x : tensor<64x64xf16>, tensor<64x64xf16, #l>) outs(%f : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %r : tensor<64x64xf16>
}
