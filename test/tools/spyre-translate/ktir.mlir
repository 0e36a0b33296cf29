// SPDX-License-Identifier: Apache-2.0
// KTIR as bytecode and back.
// RUN: rm -rf %t && mkdir -p %t
// RUN: spyre-translate --ktir-to-bytecode %s -o %t/program.mlirbc
// RUN: %python -c "assert open(r'%t/program.mlirbc', 'rb').read(4) == b'ML\xefR'"
// RUN: spyre-translate --ktir-to-text %t/program.mlirbc -o %t/back.mlir
// RUN: spyre-opt %s -o %t/expected.mlir
// RUN: diff %t/expected.mlir %t/back.mlir

// Text from text, bytecode from bytecode (the same bytes), and pipes.
// RUN: spyre-translate --ktir-to-text < %t/back.mlir | diff %t/expected.mlir -
// RUN: spyre-translate --ktir-to-bytecode - -o - < %s | spyre-translate --ktir-to-text - | FileCheck %s
// RUN: spyre-translate --ktir-to-bytecode %t/program.mlirbc -o %t/again.mlirbc
// RUN: cmp %t/program.mlirbc %t/again.mlirbc

// CHECK: func.func @scale(%[[X:.+]]: index {ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>, ktdp.name = "x"}) attributes {grid = [4]}
// CHECK: ktdp.get_compute_tile_id
// CHECK: ktdp.construct_memory_view %[[X]], sizes: [2, 100, 64], strides: [6400, 64, 1]

// Errors: located, status 1, nothing written.
// RUN: echo 'func.func @f(%%x: index {ktdp.nme = "x"}) { return }' > %t/attribute.mlir
// RUN: not spyre-translate --ktir-to-bytecode %t/attribute.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=ATTRIBUTE
// ATTRIBUTE: attribute.mlir:1:1: error: {{.*}}ktdp.nme
// RUN: echo 'func.func @f( { return }' > %t/syntax.mlir
// RUN: not spyre-translate --ktir-to-text %t/syntax.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=SYNTAX
// SYNTAX: syntax.mlir:1:14: error: expected
// RUN: echo '#l = #spyre_graph.layout<order = [0], SEN169_FP16>' > %t/graph.mlir
// RUN: not spyre-translate --ktir-to-text %t/graph.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=GRAPH
// RUN: not spyre-run %t/graph.mlir 2>&1 | FileCheck %s --check-prefix=GRAPH
// GRAPH: graph.mlir:1:7: error: expected KTIR, found spyre_graph; lower it with spyre-opt --spyre-pipeline first
// GRAPH-NOT: error:
// RUN: echo 'func.func @f() { other.op } ' > %t/unknown.mlir
// RUN: not spyre-translate --ktir-to-text %t/unknown.mlir 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: unknown.mlir:1:18: error: {{.*}}'other.op'
// RUN: %python -c "d = open(r'%t/program.mlirbc', 'rb').read(); open(r'%t/cut.mlirbc', 'wb').write(d[:len(d) // 2])"
// RUN: not spyre-translate --ktir-to-text %t/cut.mlirbc -o %t/none 2>&1 | FileCheck %s --check-prefix=CUT
// CUT: cut.mlirbc:0:0: error:
// RUN: not spyre-translate --ktir-to-text %t/absent.mlir -o %t/none 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: spyre-translate: error: cannot open input file '{{.*}}absent.mlir': No such file or directory
// RUN: not ls %t/none

func.func @scale(%x: index {ktdp.name = "x", ktdp.layout = #ktdp.layout<device_size = [2, 100, 64], stride_map = [64, 100, 1], format = SEN169_FP16, host_dtype = float16, shape = [100, 100], strides = [100, 1]>}) attributes {grid = [4]} {
  %c25 = arith.constant 25 : index
  %core = ktdp.get_compute_tile_id : index
  %row = arith.muli %core, %c25 : index
  %view = ktdp.construct_memory_view %x, sizes: [2, 100, 64], strides: [6400, 64, 1] {
    coordinate_set = affine_set<(a, b, c) : (a >= 0, -a + 1 >= 0, b >= 0, -b + 99 >= 0, c >= 0, -c + 63 >= 0)>,
    memory_space = #ktdp.memory_space<global>} : memref<2x100x64xf16>
  %tile = ktdp.construct_indirect_access_tile intermediate_variables(%i, %j)
      %view[(%j floordiv 64), (%row + %i), (%j mod 64)] {
    variables_space_set = affine_set<(i, j) : (i >= 0, -i + 24 >= 0, j >= 0, -j + 99 >= 0)>,
    variables_space_order = affine_map<(i, j) -> (i, j)>} : memref<2x100x64xf16> -> !ktdp.access_tile<25x100xindex>
  %a = ktdp.load %tile : !ktdp.access_tile<25x100xindex> -> tensor<25x100xf16>
  %b = arith.addf %a, %a : tensor<25x100xf16>
  ktdp.store %b, %tile : tensor<25x100xf16>, !ktdp.access_tile<25x100xindex>
  return
}
