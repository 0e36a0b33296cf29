// SPDX-License-Identifier: Apache-2.0
// Command line, files and reports of spyre-run.
// RUN: rm -rf %t && mkdir -p %t
// RUN: %python %S/Inputs/arrays.py %t

// Positional names, results read back, a report.
// RUN: spyre-run %s --arg %t/x.npy --arg %t/y.npy --arg=2.5 --out-dir %t/out --json %t/report.json --timing --repeat 3 | FileCheck %s --check-prefix=TIMING
// TIMING: scale {{ *}}4
// TIMING: predicted {{.*}} us, in 8 of 10 cases {{.*}} us (launch 4.20 us), bottleneck launch
// TIMING-NEXT: host first run {{.*}} us, median of 3
// RUN: %python -c "import numpy as np; assert (np.load(r'%t/out/y.npy') == np.load(r'%t/x.npy') * np.float32(2.5)).all()"
// RUN: %python -c "import json; r = json.load(open(r'%t/report.json')); assert (r['bottleneck'], r['bytes']['device_memory'], r['bytes']['lx']) == ('launch', dict(read=4096, written=4096, demanded=4096), dict(read=0, written=0)), r; assert r['host_seconds'] > 0; k = r['kernels'][0]; assert (k['bytes'], k['sfu_element_ops'], k['cores']) == (r['bytes'], 1024, 4), k"

// - is standard input, and standard output.
// RUN: spyre-run - --arg %t/x.npy --arg %t/y.npy --arg=2.5 --predict-only --json - < %s | %python -c "import json, sys; assert json.load(sys.stdin)['bottleneck'] == 'launch'"
// Without --arg a prediction takes zeros, of arrays whose shapes are known.
// RUN: not spyre-run %s --predict-only 2>&1 | FileCheck %s --check-prefix=SHAPE
// SHAPE: error: argument 'x': 'zeros' needs a ktdp.layout that says the shape
// The last of several values counts, and a value may begin with a dash.
// RUN: spyre-run %s --arg %t/x.npy --arg %t/y.npy --arg -2.5 --repeat 9 --repeat 1 --timing | FileCheck %s --check-prefix=LAST
// LAST: host first run {{.*}} us, median of 1 {{.*}} us

// Help: every option, in groups.
// RUN: spyre-run --help | FileCheck %s --check-prefix=HELP --implicit-check-not=mlir-
// HELP: USAGE: spyre-run [options] program.mlir
// HELP: 1. What runs:
// HELP: --entry=<name>
// HELP: --lenient
// HELP: --pool
// HELP: 2. Arguments and results:
// HELP: --arg=<value>
// HELP: --out-dir=<folder>
// HELP: 3. How it runs:
// HELP: --check=<value>
// HELP: =full
// HELP: --numerics=<value>
// HELP: --oob=<value>
// HELP: --repeat=<number>
// HELP: --threads=<number>
// HELP: 4. Times:
// HELP: --json=<file>
// HELP: --no-overlap
// HELP: --predict-only
// HELP: --timing
// HELP: --trace=<file>
// HELP: 5. Numbers of the device:
// HELP: --device=<file>
// HELP: --print-device-spec

// Errors: located or named, status 1, nothing written.
// RUN: not spyre-run %s --arg %t/x.npy --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: error: @scale takes 3 arguments (x, y, factor), found 1; give --arg for each, in this order: a .npy file, a number, or 'zeros', for results for example
// RUN: not spyre-run %s --arg %t/half.npy --arg %t/y.npy --arg 1 --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=DTYPE
// DTYPE: error: argument 'x' has elements of type f32, its file float16
// RUN: not spyre-run %s --arg %t/cut.npy --arg %t/y.npy --arg 1 --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=CUT
// CUT: cut.npy: error: expected 4096 bytes of data, found 4086
// RUN: not spyre-run %s --arg %t/text.npy --arg %t/y.npy --arg 1 --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=MAGIC
// MAGIC: text.npy: error: not a .npy file
// RUN: not spyre-run %s --arg %t/maybe.npy --arg %t/y.npy --arg 1 --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=MAYBE
// MAYBE: maybe.npy: error: expected True or False as fortran_order, found 'Maybe'
// RUN: not spyre-run %s --arg %t/again.npy --arg %t/y.npy --arg 1 --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: again.npy: error: header key 'shape' is there twice
// RUN: not spyre-run %s --arg %t/double.npy --arg %t/y.npy --arg 1 --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: double.npy: error: type '<f8' is not supported
// RUN: not spyre-run %s --arg %t/absent.npy --arg %t/y.npy --arg 1 --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: absent.npy: error: No such file or directory
// RUN: not spyre-run %s --arg %t/short.npy --arg %t/y.npy --arg 1 --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=SHORT
// SHORT: options.mlir:{{[0-9]+}}:{{[0-9]+}}: error: core {{[0-9]}}: access to device memory
// RUN: not spyre-run %t/absent.mlir 2>&1 | FileCheck %s --check-prefix=NOFILE
// NOFILE: absent.mlir: error: No such file or directory
// RUN: not spyre-run %s --frobnicate 2>&1 | FileCheck %s --check-prefix=FLAG
// FLAG: spyre-run: Unknown command line argument '--frobnicate'.
// RUN: not spyre-run %s --timing=no 2>&1 | FileCheck %s --check-prefix=NO-VALUE
// NO-VALUE: spyre-run: for the --timing option: does not allow a value! 'no' specified.
// RUN: not spyre-run %s --json "" 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: spyre-run: for the --json option: expects a value
// RUN: not spyre-run %s --arg %t/x.npy --arg %t/y.npy --arg 1e40 --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: error: argument 'factor': expected a number, found '1e40'
// RUN: not spyre-run %s --arg %t/x.npy --arg %t/y.npy --arg " 1" --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=BLANK
// BLANK: error: argument 'factor': expected a number, found ' 1'
// RUN: env SPYRE_CPU_CAPABILITY=baseline spyre-run %s --arg %t/x.npy --arg %t/y.npy --arg=2.5 --out-dir %t/base
// RUN: cmp %t/base/y.npy %t/out/y.npy
// RUN: env SPYRE_CPU_CAPABILITY=mmx not spyre-run %s --arg %t/x.npy --arg %t/y.npy --arg=2.5 --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=CAPABILITY
// CAPABILITY: error: environment variable SPYRE_CPU_CAPABILITY: expected baseline, avx2, avx512 or amx, found 'mmx'
// RUN: sed 's/SEN169_FP16/IEEE_FP16/' %S/Inputs/format.mlir > %t/format.mlir
// RUN: not spyre-run %t/format.mlir --arg zeros --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=FORMAT
// FORMAT: error: argument 'x': arrays of float16 are stored as SEN169_FP16, its layout says IEEE_FP16
// RUN: spyre-run %S/Inputs/format.mlir --arg zeros --out-dir %t/format
// RUN: not spyre-run %s --check most 2>&1 | FileCheck %s --check-prefix=CHECK-MODE
// CHECK-MODE: spyre-run: for the --check option: expects none, bounds or full, found 'most'
// RUN: not spyre-run %s --pool 2>&1 | FileCheck %s --check-prefix=POOL
// POOL: error: --pool is for folders with SuperDSC bundles, '{{.*}}options.mlir' is a program
// RUN: not spyre-run - --lenient < %s 2>&1 | FileCheck %s --check-prefix=LENIENT
// LENIENT: error: --lenient is for folders with SuperDSC bundles, '-' is a program
// RUN: not spyre-run %s --cases --lenient 2>&1 | FileCheck %s --check-prefix=CASES
// CASES: error: --cases takes options of how programs run only
// RUN: not spyre-run %s --threads 0 2>&1 | FileCheck %s --check-prefix=THREADS
// THREADS: spyre-run: for the --threads option: expects a positive number, found '0'
// RUN: not spyre-run %s --repeat=1x 2>&1 | FileCheck %s --check-prefix=REPEAT
// REPEAT: spyre-run: for the --repeat option: expects a positive number, found '1x'
// RUN: not spyre-run %s --oob 2>&1 | FileCheck %s --check-prefix=REQUIRED
// REQUIRED: spyre-run: for the --oob option: requires a value!
// RUN: not spyre-run %s other.mlir 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: spyre-run: Too many positional arguments specified!
// RUN: not spyre-run 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: no program given (see --help)
// RUN: not spyre-run %s --predict-only --out-dir %t/none 2>&1 | FileCheck %s --check-prefix=PREDICTS
// PREDICTS: error: --out-dir needs a run, --predict-only makes none
// Options that libLLVM brings along are none of this tool's.
// RUN: not spyre-run %s --time-passes 2>&1 | FileCheck %s --check-prefix=FOREIGN
// FOREIGN: spyre-run: Unknown command line argument '--time-passes'.
// RUN: not ls %t/none

// Numbers of the device, in and out.
// RUN: spyre-run --print-device-spec > %t/device.json
// RUN: spyre-run --device %t/device.json --print-device-spec | diff - %t/device.json
// RUN: echo '{"launchSeconds": 1}' > %t/slow.json
// RUN: spyre-run --device %t/slow.json --print-device-spec | FileCheck %s --check-prefix=GIVEN
// GIVEN: "launchSeconds": {
// GIVEN-NEXT: "value": 1.0
// GIVEN: "basis": "given"
// RUN: spyre-run %s --arg %t/x.npy --arg %t/y.npy --arg 2.5 --device %t/slow.json --timing | FileCheck %s --check-prefix=SLOW
// SLOW: predicted 10000{{[0-9.]+}} us, in 8 of 10 cases 10000{{.*}} us (launch 1000000.00 us), bottleneck launch
// RUN: echo '{"launchSeconds": -1}' > %t/bad.json
// RUN: not spyre-run %s --arg %t/x.npy --arg %t/y.npy --arg 1 --out-dir %t/none --device %t/bad.json 2>&1 | FileCheck %s --check-prefix=BADSPEC
// BADSPEC: bad.json: device spec: launchSeconds must be finite and positive, but is -1
// RUN: echo '{"nonNumber": "nan"}' > %t/nan.json
// RUN: not spyre-run %s --device %t/nan.json 2>&1 | FileCheck %s --check-prefix=NAN
// NAN: error: --device: the device model reads non-numbers as infinities only

// A file that cannot be written leaves no other behind.
// RUN: not spyre-run %s --arg %t/x.npy --arg %t/y.npy --arg=1 --out-dir %t/none --json %t/absent/report.json 2>&1 | FileCheck %s --check-prefix=UNWRITABLE
// UNWRITABLE: absent/report.json: error: cannot write: No such file or directory
// RUN: not spyre-run %s --arg %t/x.npy --arg %t/y.npy --arg=1 --out-dir %t/none --json %t/none/y.npy 2>&1 | FileCheck %s --check-prefix=SAME
// SAME: none/y.npy: error: two outputs have this name
// RUN: not ls %t/none

#set = affine_set<(i) : (i >= 0, -i + 1023 >= 0)>
#part = affine_set<(i) : (i >= 0, -i + 255 >= 0)>
#order = affine_map<(i) -> (i)>
func.func @scale(%x: index {ktdp.name = "x"}, %y: index {ktdp.name = "y"}, %factor: f32 {ktdp.name = "factor"}) attributes {grid = [4]} {
  %c256 = arith.constant 256 : index
  %core = ktdp.get_compute_tile_id : index
  %at = arith.muli %core, %c256 : index
  %xv = ktdp.construct_memory_view %x, sizes: [1024], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<1024xf32>
  %yv = ktdp.construct_memory_view %y, sizes: [1024], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<1024xf32>
  %xt = ktdp.construct_access_tile %xv[%at] {access_tile_set = #part, access_tile_order = #order} : memref<1024xf32> -> !ktdp.access_tile<256xindex>
  %yt = ktdp.construct_access_tile %yv[%at] {access_tile_set = #part, access_tile_order = #order} : memref<1024xf32> -> !ktdp.access_tile<256xindex>
  %d = ktdp.load %xt : !ktdp.access_tile<256xindex> -> tensor<256xf32>
  %f = tensor.splat %factor : tensor<256xf32>
  %r = arith.mulf %d, %f : tensor<256xf32>
  ktdp.store %r, %yt : tensor<256xf32>, !ktdp.access_tile<256xindex>
  return
}
