// SPDX-License-Identifier: Apache-2.0
// Views and access tiles as arguments and results of helper functions.
// RUN: spyre-run --cases %s --threads 1
// RUN: spyre-run --cases %s --threads 3
// RUN: spyre-run --cases %s --check=none --threads 2
// RUN: spyre-run --cases %s --check=full

#box = affine_set<(i, j) : (i >= 0, -i + 4 >= 0, j >= 0, -j + 6 >= 0)>
#row = affine_set<(i, j) : (i == 0, j >= 0, -j + 6 >= 0)>
#order = affine_map<(i, j) -> (i, j)>
#space = #ktdp.memory_space<global>
!t = tensor<5x7xf16>

func.func private @view(%at: index) -> memref<5x7xf16> {
  %v = ktdp.construct_memory_view %at, sizes: [5, 7], strides: [7, 1] {coordinate_set = #box, memory_space = #space} : memref<5x7xf16>
  return %v : memref<5x7xf16>
}

func.func private @row(%v: memref<5x7xf16>, %i: index) -> !ktdp.access_tile<1x7xindex> {
  %c0 = arith.constant 0 : index
  %t = ktdp.construct_access_tile %v[%i, %c0] {access_tile_set = #row, access_tile_order = #order} : memref<5x7xf16> -> !ktdp.access_tile<1x7xindex>
  return %t : !ktdp.access_tile<1x7xindex>
}

func.func private @double(%from: !ktdp.access_tile<1x7xindex>, %to: !ktdp.access_tile<1x7xindex>) {
  %d = ktdp.load %from : !ktdp.access_tile<1x7xindex> -> tensor<1x7xf16>
  %s = arith.addf %d, %d : tensor<1x7xf16>
  ktdp.store %s, %to : tensor<1x7xf16>, !ktdp.access_tile<1x7xindex>
  return
}

func.func private @rows(%x: memref<5x7xf16>, %z: memref<5x7xf16>, %first: index, %n: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %first to %n step %c1 {
    %a = func.call @row(%x, %i) : (memref<5x7xf16>, index) -> !ktdp.access_tile<1x7xindex>
    %b = func.call @row(%z, %i) : (memref<5x7xf16>, index) -> !ktdp.access_tile<1x7xindex>
    func.call @double(%a, %b) : (!ktdp.access_tile<1x7xindex>, !ktdp.access_tile<1x7xindex>) -> ()
  }
  return
}

// Rows 0 to 2 on the first core, and what is left of %rows on the second.
func.func @kernel(%x: index, %z: index, %rows: index) attributes {grid = [2]} {
  %c3 = arith.constant 3 : index
  %core = ktdp.get_compute_tile_id : index
  %first = arith.muli %core, %c3 : index
  %past = arith.addi %first, %c3 : index
  %end = arith.minsi %past, %rows : index
  %xv = call @view(%x) : (index) -> memref<5x7xf16>
  %zv = call @view(%z) : (index) -> memref<5x7xf16>
  call @rows(%xv, %zv, %first, %end) : (memref<5x7xf16>, memref<5x7xf16>, index, index) -> ()
  return
}

func.func @main(%x: index, %z: index) {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %xv = call @view(%x) : (index) -> memref<5x7xf16>
  %zv = call @view(%z) : (index) -> memref<5x7xf16>
  call @rows(%xv, %zv, %c0, %c5) : (memref<5x7xf16>, memref<5x7xf16>, index, index) -> ()
  return
}

check.case "views from helpers, in a kernel on two cores and in a sequence" {
  %x = arith.constant dense<[[-0.60595703125, -0.10101318359375, 0.404052734375, -0.404052734375, 0.10101318359375, 0.60595703125, -0.2020263671875],
      [0.10101318359375, 0.60595703125, -0.2020263671875, 0.302978515625, -0.5048828125, 0.0, 0.5048828125],
      [-0.5048828125, 0.0, 0.5048828125, -0.302978515625, 0.2020263671875, -0.60595703125, -0.10101318359375],
      [0.2020263671875, -0.60595703125, -0.10101318359375, 0.404052734375, -0.404052734375, 0.10101318359375, 0.60595703125],
      [-0.404052734375, 0.10101318359375, 0.60595703125, -0.2020263671875, 0.302978515625, -0.5048828125, 0.0]]> : !t
  %z = arith.constant dense<0.0> : !t
  %c5 = arith.constant 5 : index
  %xk_dl16, %zk_dl16 = check.run @kernel(%x, %z, %c5) numerics(dl16) : (!t, !t, index) -> (!t, !t)
  check.expect_eq %zk_dl16, dense<[[-1.212890625, -0.2021484375, 0.80859375, -0.80859375, 0.2021484375, 1.212890625, -0.404296875],
      [0.2021484375, 1.212890625, -0.404296875, 0.6064453125, -1.009765625, 0.0, 1.009765625],
      [-1.009765625, 0.0, 1.009765625, -0.6064453125, 0.404296875, -1.212890625, -0.2021484375],
      [0.404296875, -1.212890625, -0.2021484375, 0.80859375, -0.80859375, 0.2021484375, 1.212890625],
      [-0.80859375, 0.2021484375, 1.212890625, -0.404296875, 0.6064453125, -1.009765625, 0.0]]> : !t
  %xs_dl16, %zs_dl16 = check.run @main(%x, %z) numerics(dl16) : (!t, !t) -> (!t, !t)
  check.expect_eq %zs_dl16, %zk_dl16 : !t
  %xk_ieee, %zk_ieee = check.run @kernel(%x, %z, %c5) numerics(ieee) : (!t, !t, index) -> (!t, !t)
  check.expect_eq %zk_ieee, dense<[[-1.2119140625, -0.2020263671875, 0.80810546875, -0.80810546875, 0.2020263671875, 1.2119140625, -0.404052734375],
      [0.2020263671875, 1.2119140625, -0.404052734375, 0.60595703125, -1.009765625, 0.0, 1.009765625],
      [-1.009765625, 0.0, 1.009765625, -0.60595703125, 0.404052734375, -1.2119140625, -0.2020263671875],
      [0.404052734375, -1.2119140625, -0.2020263671875, 0.80810546875, -0.80810546875, 0.2020263671875, 1.2119140625],
      [-0.80810546875, 0.2020263671875, 1.2119140625, -0.404052734375, 0.60595703125, -1.009765625, 0.0]]> : !t
  %xs_ieee, %zs_ieee = check.run @main(%x, %z) numerics(ieee) : (!t, !t) -> (!t, !t)
  check.expect_eq %zs_ieee, %zk_ieee : !t
}
