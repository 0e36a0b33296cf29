// SPDX-License-Identifier: Apache-2.0
// Errors of the loader (before anything runs) and of accesses.
// RUN: rm -rf %t && mkdir -p %t
// RUN: %python -c "import numpy as np; np.save(r'%t/x.npy', np.ones(256, np.float32))"
// RUN: not spyre-run %s --entry unknown_op --arg %t/x.npy --out-dir %t/out 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not spyre-run %s --entry outside_view --arg %t/x.npy --arg 250 --out-dir %t/out 2>&1 | FileCheck %s --check-prefix=VIEW
// RUN: not spyre-run %s --entry outside_view --arg %t/x.npy --arg -1 --out-dir %t/out 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: core 0: access: coordinate -1 of view dimension 0 is outside its range 0 to 255
// RUN: spyre-run %s --entry outside_view --arg %t/x.npy --arg 247 --threads 2
// RUN: not spyre-run %s --entry outside_view --arg %t/x.npy --arg 248 --threads 2 2>&1 | FileCheck %s --check-prefix=CORE
// CORE: error: core 1: access: coordinate 256
// RUN: not spyre-run %s --entry outside_allocation --arg %t/x.npy --out-dir %t/out 2>&1 | FileCheck %s --check-prefix=ALLOCATION
// ALLOCATION: error: access to device memory bytes {{[0-9]+}} to {{[0-9]+}} leaves the allocation at its view's base
// RUN: not spyre-run %s --entry outside_lx --arg %t/x.npy --out-dir %t/out 2>&1 | FileCheck %s --check-prefix=LX
// LX: error: core 0: access to LX bytes 2097088 to 2098111 leaves the LX scratchpad
// RUN: not spyre-run %s --entry wrong_size --arg %t/x.npy --arg 3 --out-dir %t/out 2>&1 | FileCheck %s --check-prefix=DIVISION
// DIVISION: error: integer division by zero
// RUN: not spyre-run %s --entry nothing --out-dir %t/out 2>&1 | FileCheck %s --check-prefix=ENTRY
// ENTRY: errors.mlir:[[#]]:1: error: the module has no function @nothing; it has @
// RUN: not spyre-run %s --arg 1 2>&1 | FileCheck %s --check-prefix=AMBIGUOUS
// AMBIGUOUS: error: found 2 sequence functions
// RUN: not spyre-run %s --entry cast_size --arg 3 2>&1 | FileCheck %s --check-prefix=CAST
// CAST: error: core 0: dimension 0 has size 3, the result type says 8
// RUN: not spyre-run %s --entry loop_size --arg 3 2>&1 | FileCheck %s --check-prefix=LOOP
// LOOP: error: core 0: linalg.add: dimension 0 of operand 1 has size 8, but its loop goes over 3
// RUN: not spyre-run %s --entry far_stride --arg %t/x.npy --arg 1152921504606846976 2>&1 | FileCheck %s --check-prefix=FAR
// FAR: error: core 0: memory view at element {{[0-9]+}} overflows 63-bit addresses
// RUN: not spyre-run %s --entry many_groups --arg 1 2>&1 | FileCheck %s --check-prefix=GROUPS
// GROUPS: errors.mlir:[[#]]:[[#]]: error: more groups than cores
// RUN: spyre-run %s --entry last_groups --arg 1
// RUN: not spyre-run %s --entry huge --arg 99999999999999 2>&1 | FileCheck %s --check-prefix=HUGE
// HUGE: error: core 0: tensor with more than 2^40 elements
// RUN: not spyre-run %s --entry extract --arg 3 2>&1 | FileCheck %s --check-prefix=EXTRACT
// EXTRACT: errors.mlir:[[#]]:[[#]]: error: core 0: index 8 is outside dimension 0 of size 8
// RUN: not spyre-run %s --entry outside_points --arg %t/x.npy --out-dir %t/out 2>&1 | FileCheck %s --check-prefix=POINTS
// RUN: %python -c "import numpy as np; np.save(r'%t/good.npy', np.int32([3, 15, 0, 15, 7, 1]))"
// RUN: %python -c "import numpy as np; np.save(r'%t/bad.npy', np.int32([3, 15, 0, 15, 16, 1]))"
// RUN: spyre-run %s --entry gather --arg %t/x.npy --arg %t/good.npy --arg %t/x.npy --out-dir %t/good && ls %t/good
// RUN: not spyre-run %s --entry gather --arg %t/x.npy --arg %t/bad.npy --arg %t/x.npy --out-dir %t/out 2>&1 | FileCheck %s --check-prefix=GATHER
// RUN: not spyre-run %s --entry scatter --arg %t/x.npy --arg %t/bad.npy --out-dir %t/out 2>&1 | FileCheck %s --check-prefix=SCATTER
// No run that fails writes an output.
// RUN: not ls %t/out

func.func @unknown_op(%x: index) attributes {grid = [1]} {
  %e = tensor.empty() : tensor<4xf32>
  // UNKNOWN: errors.mlir:[[@LINE+1]]:8: error: operation 'tensor.rank' is not supported by the runtime
  %r = tensor.rank %e : tensor<4xf32>
  return
}

#set = affine_set<(i) : (i >= 0, -i + 255 >= 0)>
#four = affine_set<(i) : (i >= 0, -i + 7 >= 0)>
#order = affine_map<(i) -> (i)>

func.func @outside_view(%x: index, %at: index) attributes {grid = [2]} {
  %core = ktdp.get_compute_tile_id : index
  %first = arith.addi %at, %core : index
  %v = ktdp.construct_memory_view %x, sizes: [256], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<256xf32>
  %t = ktdp.construct_access_tile %v[%first] {access_tile_set = #four, access_tile_order = #order} : memref<256xf32> -> !ktdp.access_tile<8xindex>
  // VIEW: errors.mlir:[[@LINE+1]]:8: error: core 0: access: coordinate 257 of view dimension 0 is outside its range 0 to 255
  %d = ktdp.load %t : !ktdp.access_tile<8xindex> -> tensor<8xf32>
  return
}

#big = affine_set<(i) : (i >= 0, -i + 511 >= 0)>
func.func @outside_allocation(%x: index) {
  %c300 = arith.constant 300 : index
  %v = ktdp.construct_memory_view %x, sizes: [512], strides: [1] {coordinate_set = #big, memory_space = #ktdp.memory_space<global>} : memref<512xf32>
  %t = ktdp.construct_access_tile %v[%c300] {access_tile_set = #four, access_tile_order = #order} : memref<512xf32> -> !ktdp.access_tile<8xindex>
  %d = ktdp.load %t : !ktdp.access_tile<8xindex> -> tensor<8xf32>
  return
}

func.func @outside_lx(%x: index) attributes {grid = [2]} {
  %c0 = arith.constant 0 : index
  %start = arith.constant 524272 : index
  %v = ktdp.construct_memory_view %start, sizes: [256], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<ct_local>} : memref<256xf32>
  %t = ktdp.construct_access_tile %v[%c0] {access_tile_set = #set, access_tile_order = #order} : memref<256xf32> -> !ktdp.access_tile<256xindex>
  %d = ktdp.load %t : !ktdp.access_tile<256xindex> -> tensor<256xf32>
  return
}

func.func @wrong_size(%x: index, %n: index) {
  %c3 = arith.constant 3 : index
  %zero = arith.subi %n, %c3 : index
  %q = arith.divui %n, %zero : index
  return
}

func.func @cast_size(%n: index) attributes {grid = [1]} {
  %a = tensor.empty(%n) : tensor<?xf32>
  %c = tensor.cast %a : tensor<?xf32> to tensor<8xf32>
  return
}

func.func @loop_size(%n: index) attributes {grid = [1]} {
  %a = tensor.empty(%n) : tensor<?xf32>
  %m = arith.constant 8 : index
  %b = tensor.empty(%m) : tensor<?xf32>
  %r = linalg.add ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return
}

func.func @far_stride(%x: index, %n: index) attributes {grid = [1]} {
  %v = ktdp.construct_memory_view %x, sizes: [256], strides: [%n] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<256xf32>
  return
}

func.func @huge(%n: index) attributes {grid = [1]} {
  %c = arith.constant 1.0 : f32
  %e = tensor.splat %c[%n] : tensor<?xf32>
  return
}

func.func @extract(%n: index) attributes {grid = [1]} {
  %x = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %r = tensor.generate {
  ^bb0(%i: index):
    %j = arith.addi %i, %n : index
    %a = tensor.extract %x[%j] : tensor<8xf32>
    tensor.yield %a : f32
  } : tensor<6xf32>
  return
}

#rows = affine_set<(a, b) : (a >= 0, -a + 15 >= 0, b >= 0, -b + 15 >= 0)>
#diagonal = affine_set<(a, b) : (a >= 0, -a + 30 >= 0, b >= 0, -a + b >= 0, a - b >= 0)>
#pairs = affine_map<(a, b) -> (a, b)>

func.func @outside_points(%x: index) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %x, sizes: [16, 16], strides: [16, 1] {coordinate_set = #rows, memory_space = #ktdp.memory_space<global>} : memref<16x16xf32>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {access_tile_set = #diagonal, access_tile_order = #pairs} : memref<16x16xf32> -> !ktdp.access_tile<31x1xindex>
  // POINTS: errors.mlir:[[@LINE+1]]:8: error: core 0: access: coordinate 16 of view dimension 0 is outside its range 0 to 15
  %d = ktdp.load %t : !ktdp.access_tile<31x1xindex> -> tensor<31x1xf32>
  return
}

// Each of the two cores takes three rows, and moves them to rows of its own.
#six = affine_set<(i) : (i >= 0, -i + 5 >= 0)>
#three = affine_set<(a, b) : (a >= 0, -a + 2 >= 0, b >= 0, -b + 15 >= 0)>

func.func private @taken(%x: index, %i: index) -> !ktdp.access_tile<3x16xindex> {
  %c3 = arith.constant 3 : index
  %core = ktdp.get_compute_tile_id : index
  %first = arith.muli %core, %c3 : index
  %v = ktdp.construct_memory_view %x, sizes: [16, 16], strides: [16, 1] {coordinate_set = #rows, memory_space = #ktdp.memory_space<global>} : memref<16x16xf32>
  %w = ktdp.construct_memory_view %i, sizes: [6], strides: [1] {coordinate_set = #six, memory_space = #ktdp.memory_space<global>} : memref<6xi32>
  %t = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[ind(%w[%first + %a]), (%b)] {
    variables_space_set = #three, variables_space_order = #pairs} : memref<16x16xf32>, memref<6xi32> -> !ktdp.access_tile<3x16xindex>
  return %t : !ktdp.access_tile<3x16xindex>
}

func.func @gather(%x: index, %i: index, %y: index) attributes {grid = [2]} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %core = ktdp.get_compute_tile_id : index
  %first = arith.muli %core, %c3 : index
  %t = func.call @taken(%x, %i) : (index, index) -> !ktdp.access_tile<3x16xindex>
  // GATHER: errors.mlir:[[@LINE+1]]:8: error: core 1: index value 16 for view dimension 0 is outside its range 0 to 15
  %d = ktdp.load %t : !ktdp.access_tile<3x16xindex> -> tensor<3x16xf32>
  %v = ktdp.construct_memory_view %y, sizes: [16, 16], strides: [16, 1] {coordinate_set = #rows, memory_space = #ktdp.memory_space<global>} : memref<16x16xf32>
  %s = ktdp.construct_access_tile %v[%first, %c0] {access_tile_set = #three, access_tile_order = #pairs} : memref<16x16xf32> -> !ktdp.access_tile<3x16xindex>
  ktdp.store %d, %s : tensor<3x16xf32>, !ktdp.access_tile<3x16xindex>
  return
}

func.func @scatter(%x: index, %i: index) attributes {grid = [2]} {
  %one = arith.constant dense<1.0> : tensor<3x16xf32>
  %t = func.call @taken(%x, %i) : (index, index) -> !ktdp.access_tile<3x16xindex>
  // SCATTER: errors.mlir:[[@LINE+1]]:3: error: core 1: index value 16 for view dimension 0 is outside its range 0 to 15
  ktdp.store %one, %t : tensor<3x16xf32>, !ktdp.access_tile<3x16xindex>
  return
}

func.func @many_groups(%n: index) attributes {grid = [4]} {
  %future = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i - g == 0)> : tensor<4xf32>
      -> !ktdp.tile_future<tensor<4xf32>, groups = affine_set<(g) : (g >= 0, -g + 4095 >= 0)>> {
  ^bb0(%group: index):
    %d = arith.constant dense<1.0> : tensor<4xf32>
    ktdp.yield_partial %d : tensor<4xf32>
  }
  return
}

// Their ids end where 64 bits end.
func.func @last_groups(%n: index) attributes {grid = [4]} {
  %future = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i - g == 0)> : tensor<4xf32>
      -> !ktdp.tile_future<tensor<4xf32>, groups = affine_set<(g) : (g - 9223372036854775804 >= 0, -g + 9223372036854775807 >= 0)>> {
  ^bb0(%group: index):
    %d = arith.constant dense<1.0> : tensor<4xf32>
    ktdp.yield_partial %d : tensor<4xf32>
  }
  return
}
