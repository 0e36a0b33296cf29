// SPDX-License-Identifier: Apache-2.0
// Timing without a run, with and without overlap, and the trace of it.
// RUN: rm -rf %t && mkdir -p %t
// RUN: %python -c "import numpy as np; np.save(r'%t/x.npy', np.ones((8, 4096), np.float16))"
// RUN: spyre-run %s --arg %t/x.npy --arg %t/x.npy --predict-only --timing --json %t/r.json --trace %t/t.json | FileCheck %s
// CHECK: kernel {{ *}}cores
// CHECK-NEXT: exp {{ *}}8
// CHECK: device memory, x: 65536 bytes read, 0 written
// CHECK-NEXT: device memory, y: 0 bytes read, 65536 written
// CHECK-NEXT: busy: pt 0 %, sfu {{[0-9]+}} %
// CHECK-NEXT: predicted {{[0-9.]+}} us, in 8 of 10 cases {{[0-9.]+}} to {{[0-9.]+}} us (launch {{[0-9.]+}} us), bottleneck {{.*}} rests on guesses
// CHECK-NOT: host
// RUN: %python %S/Inputs/check_trace.py %t/t.json %t/r.json trace.mlir 8
// Steps one after another never let device memory turn around.
// RUN: echo '{"memoryTurnaroundSecondsPerByte": 0}' > %t/device.json
// RUN: spyre-run %s --arg %t/x.npy --arg %t/x.npy --predict-only --device %t/device.json --json %t/side.json
// RUN: spyre-run %s --arg %t/x.npy --arg %t/x.npy --predict-only --device %t/device.json --no-overlap --json %t/serial.json
// RUN: %python -c "import json; a, b = (json.load(open(f)) for f in (r'%t/side.json', r'%t/serial.json')); assert 'host_seconds' not in a; assert b['overlap'] is False; assert b['predicted_seconds'] > a['predicted_seconds'], (a, b)"
// RUN: not spyre-run %s --arg %t/x.npy --arg %t/x.npy --predict-only --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: error: --out-dir needs a run, --predict-only makes none

#all = affine_set<(r, c) : (r >= 0, -r + 7 >= 0, c >= 0, -c + 4095 >= 0)>
#part = affine_set<(r, c) : (r >= 0, -r >= 0, c >= 0, -c + 1023 >= 0)>
#order = affine_map<(r, c) -> (r, c)>
func.func @exp(%x: index, %y: index) attributes {grid = [8]} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %c4096 = arith.constant 4096 : index
  %row = ktdp.get_compute_tile_id : index
  %xv = ktdp.construct_memory_view %x, sizes: [8, 4096], strides: [4096, 1] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<8x4096xf16>
  %yv = ktdp.construct_memory_view %y, sizes: [8, 4096], strides: [4096, 1] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<8x4096xf16>
  scf.for %c = %c0 to %c4096 step %c1024 {
    %xt = ktdp.construct_access_tile %xv[%row, %c] {access_tile_set = #part, access_tile_order = #order} : memref<8x4096xf16> -> !ktdp.access_tile<1x1024xindex>
    %yt = ktdp.construct_access_tile %yv[%row, %c] {access_tile_set = #part, access_tile_order = #order} : memref<8x4096xf16> -> !ktdp.access_tile<1x1024xindex>
    %d = ktdp.load %xt : !ktdp.access_tile<1x1024xindex> -> tensor<1x1024xf16>
    %r = math.exp %d : tensor<1x1024xf16>
    ktdp.store %r, %yt : tensor<1x1024xf16>, !ktdp.access_tile<1x1024xindex>
  }
  return
}
