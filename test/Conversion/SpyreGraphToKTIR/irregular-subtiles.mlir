// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir --canonicalize | FileCheck %s
// RUN: spyre-opt %s --convert-spyre-graph-to-ktir -o %t.mlir
// RUN: %python -c "import numpy; numpy.save('%t.x.npy', (numpy.arange(253890) %% 509).astype('f2')); numpy.save('%t.o.npy', numpy.zeros((63, 2, 31, 65), 'f2'))"
// RUN: rm -rf %t.out
// RUN: spyre-run %t.mlir --arg %t.x.npy --arg %t.o.npy --out-dir %t.out
// RUN: %python -c "import numpy; x = numpy.load('%t.x.npy').reshape(63, 2, 31, 65); assert (numpy.load('%t.out/arg1.npy') == x).all()"

// One core's part is larger than its LX. Lanes of the source follow all four
// dimensions, so cuts need not fall between its sticks.
// CHECK-LABEL: func.func private @k0_identity
// CHECK: scf.for
#l = #spyre_graph.layout<order = [0], SEN169_FP16>
#o = #spyre_graph.layout<order = [0, 1, 3, 2], SEN169_FP16>
#flat = affine_map<(d0, d1, d2, d3) -> (d0 * 4030 + d1 * 2015 + d2 * 65 + d3)>
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @main(%x: memref<253890xf16, #l>, %o: memref<63x2x31x65xf16, #o>) {
  spyre_graph.identity ins(%x : memref<253890xf16, #l>) outs(%o : memref<63x2x31x65xf16, #o>)
    {maps = [#flat, #id], extents = array<i64: 63, 2, 31, 65>, division = #spyre_graph.division<splits = [1, 1, 1, 1], chunks = [63, 2, 31, 65]>}
  return
}
