// SPDX-License-Identifier: Apache-2.0
// Helper functions with results, called by a kernel and by a sequence, more than
// once and in loops. What is expected was computed by numpy, rounded after each
// operation.
// RUN: spyre-run --cases %s --threads 1
// RUN: spyre-run --cases %s --threads 3
// RUN: spyre-run --cases %s --check=none --threads 2
// RUN: spyre-run --cases %s --check=full

#box = affine_set<(i, j) : (i >= 0, -i + 4 >= 0, j >= 0, -j + 6 >= 0)>
#order = affine_map<(i, j) -> (i, j)>
#space = #ktdp.memory_space<global>
!t = tensor<5x7xf16>

func.func private @twice(%n: index) -> (index, index) {
  %c2 = arith.constant 2 : index
  %m = arith.muli %n, %c2 : index
  return %m, %n : index, index
}

func.func private @square(%x: !t) -> !t {
  %r = arith.mulf %x, %x : !t
  return %r : !t
}

func.func private @soft(%x: !t, %bias: f16) -> !t {
  %b = tensor.splat %bias : !t
  %a = arith.addf %x, %b : !t
  %r = func.call @square(%a) : (!t) -> !t
  return %r : !t
}

func.func private @nothing(%n: index) {
  return
}

func.func private @view(%at: index) -> memref<5x7xf16> {
  %v = ktdp.construct_memory_view %at, sizes: [5, 7], strides: [7, 1] {coordinate_set = #box, memory_space = #space} : memref<5x7xf16>
  return %v : memref<5x7xf16>
}

func.func private @tile(%at: index) -> !ktdp.access_tile<5x7xindex> {
  %c0 = arith.constant 0 : index
  %v = func.call @view(%at) : (index) -> memref<5x7xf16>
  %t = ktdp.construct_access_tile %v[%c0, %c0] {access_tile_set = #box, access_tile_order = #order} : memref<5x7xf16> -> !ktdp.access_tile<5x7xindex>
  return %t : !ktdp.access_tile<5x7xindex>
}

func.func private @kernel(%x: index, %z: index, %n: index) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f16
  %half = arith.constant 0.5 : f16
  %from = func.call @tile(%x) : (index) -> !ktdp.access_tile<5x7xindex>
  %d = ktdp.load %from : !ktdp.access_tile<5x7xindex> -> !t
  %s = func.call @soft(%d, %one) : (!t, f16) -> !t
  %t = func.call @soft(%d, %half) : (!t, f16) -> !t
  %u = scf.for %i = %c0 to %n step %c1 iter_args(%v = %s) -> (!t) {
    %w = func.call @soft(%v, %half) : (!t, f16) -> !t
    %y = arith.subf %w, %v : !t
    scf.yield %y : !t
  }
  func.call @nothing(%n) : (index) -> ()
  %r = arith.addf %u, %t : !t
  %to = func.call @tile(%z) : (index) -> !ktdp.access_tile<5x7xindex>
  ktdp.store %r, %to : !t, !ktdp.access_tile<5x7xindex>
  return
}

// The kernel's loop takes 2 (2 n) - 2 n steps.
func.func @main(%x: index, %z: index, %n: index) {
  %m:2 = call @twice(%n) : (index) -> (index, index)
  %k:2 = call @twice(%m#0) : (index) -> (index, index)
  %i = arith.subi %k#0, %k#1 : index
  call @kernel(%x, %z, %i) : (index, index, index) -> ()
  return
}

check.case "helpers of a sequence and of its kernel" {
  %x = arith.constant dense<[[-0.60595703125, -0.10101318359375, 0.404052734375, -0.404052734375, 0.10101318359375, 0.60595703125, -0.2020263671875],
      [0.10101318359375, 0.60595703125, -0.2020263671875, 0.302978515625, -0.5048828125, 0.0, 0.5048828125],
      [-0.5048828125, 0.0, 0.5048828125, -0.302978515625, 0.2020263671875, -0.60595703125, -0.10101318359375],
      [0.2020263671875, -0.60595703125, -0.10101318359375, 0.404052734375, -0.404052734375, 0.10101318359375, 0.60595703125],
      [-0.404052734375, 0.10101318359375, 0.60595703125, -0.2020263671875, 0.302978515625, -0.5048828125, 0.0]]> : !t
  %z = arith.constant dense<0.0> : !t
  %n = arith.constant 1 : index
  %x_dl16, %z_dl16 = check.run @main(%x, %z, %n) numerics(dl16) : (!t, !t, index) -> (!t, !t)
  check.expect_eq %z_dl16, dense<[[0.33642578125, 1.228515625, 18.25, 0.40234375, 3.58203125, 49.375, 0.7705078125],
      [3.58203125, 49.375, 0.7705078125, 10.75, 0.3466796875, 2.0625, 30.46875],
      [0.3466796875, 2.0625, 30.46875, 0.525390625, 6.2578125, 0.33642578125, 1.228515625],
      [6.2578125, 0.33642578125, 1.228515625, 18.25, 0.40234375, 3.58203125, 49.375],
      [0.40234375, 3.58203125, 49.375, 0.7705078125, 10.75, 0.3466796875, 2.0625]]> : !t
  %x_ieee, %z_ieee = check.run @main(%x, %z, %n) numerics(ieee) : (!t, !t, index) -> (!t, !t)
  check.expect_eq %z_ieee, dense<[[0.336669921875, 1.2255859375, 18.203125, 0.40087890625, 3.55859375, 49.0625, 0.7685546875],
      [3.55859375, 49.0625, 0.7685546875, 10.6875, 0.34619140625, 2.0625, 30.234375],
      [0.34619140625, 2.0625, 30.234375, 0.52490234375, 6.21484375, 0.336669921875, 1.2255859375],
      [6.21484375, 0.336669921875, 1.2255859375, 18.203125, 0.40087890625, 3.55859375, 49.0625],
      [0.40087890625, 3.55859375, 49.0625, 0.7685546875, 10.6875, 0.34619140625, 2.0625]]> : !t
}
