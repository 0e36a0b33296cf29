// SPDX-License-Identifier: Apache-2.0
// The passes plan for the device of the module: its cores, its LX and its rates.
// RUN: split-file %s %t
// RUN: spyre-opt %t/softmax.mlir --spyre-pipeline="cores=2 to-ktir=false" | FileCheck %s --check-prefix=DEFAULT
// RUN: spyre-opt %t/softmax.mlir --spyre-pipeline="cores=2 to-ktir=false device=%t/empty.json" | FileCheck %s --check-prefix=DEFAULT

// What the defaults give: the rows in LX as a whole.
// DEFAULT-NOT: scf.for
// DEFAULT: #spyre_graph.placement<lx, offset = 0, local = [256, 1024]>

// A fifth of LX is less than the 524288 bytes that this takes per core.
// RUN: spyre-opt %t/softmax.mlir --spyre-pipeline="cores=2 to-ktir=false verify-each device=%t/lx.json" | FileCheck %s --check-prefix=LX
// LX: module attributes {spyre_graph.device = {lxReservedFraction = 8.000000e-01 : f64}}
// LX: scf.for
// LX: #spyre_graph.placement<lx, offset = 0, local = [64, 1024]>

// The number of cores limits divisions; an option that is given replaces it.
// RUN: spyre-opt %t/softmax.mlir --spyre-pipeline="to-ktir=false verify-each device=%t/cores.json" | FileCheck %s --check-prefix=CORES
// RUN: spyre-opt %t/softmax.mlir --spyre-pipeline="to-ktir=false verify-each device=%t/cores.json cores=2" | FileCheck %s --check-prefix=GIVEN
// CORES-COUNT-5: splits = [4, 1], chunks = [128, 1024]
// CORES-NOT: splits
// GIVEN-COUNT-5: splits = [2, 1], chunks = [256, 1024]
// GIVEN-NOT: splits

// With memory this fast, products are divided otherwise.
// RUN: spyre-opt %t/products.mlir --spyre-pipeline="to-ktir=false" | FileCheck %s --check-prefix=SLOW
// RUN: spyre-opt %t/products.mlir --spyre-pipeline="to-ktir=false device=%t/fast.json" | FileCheck %s --check-prefix=FAST
// SLOW: spyre_graph.matmul {{.*}}splits = [4, 8, 1]
// FAST: spyre_graph.matmul {{.*}}splits = [8, 4, 1]

// The program keeps the attribute and runs. A module that has it needs no option.
// RUN: spyre-opt %t/softmax.mlir --spyre-pipeline="device=%t/cores.json" -o %t/program.mlir
// RUN: FileCheck %s --check-prefix=PROGRAM --input-file=%t/program.mlir
// RUN: spyre-opt %t/given.mlir --spyre-pipeline | FileCheck %s --check-prefix=PROGRAM
// RUN: spyre-opt %t/given.mlir --spyre-pipeline="device=%t/cores.json" | FileCheck %s --check-prefix=PROGRAM
// RUN: spyre-run %t/program.mlir --arg=zeros --arg=zeros
// PROGRAM: module attributes {spyre_graph.device = {numCores = 4 : i64}}
// PROGRAM: grid = [4]

// SG-DEVICE-C3 is in device-invalid.mlir; here are files that are none.
// RUN: not spyre-opt %t/softmax.mlir --spyre-pipeline="device=%t/none.json" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not spyre-opt %t/softmax.mlir --spyre-pipeline="device=%t/unknown.json" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// NONE: softmax.mlir:{{.*}}: error: cannot read device spec '{{.*}}none.json': No such file or directory
// UNKNOWN: softmax.mlir:{{.*}}: error: {{.*}}unknown.json: there is no parameter "cores"
// RUN: not spyre-opt %t/softmax.mlir --spyre-pipeline="device=%t" 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not spyre-opt %t/softmax.mlir --spyre-set-device 2>&1 | FileCheck %s --check-prefix=UNNAMED
// FOLDER: softmax.mlir:{{.*}}: error: cannot read device spec '{{.*}}': Is a directory
// UNNAMED: softmax.mlir:{{.*}}: error: has no device to be planned for; give --spyre-set-device=file=FILE

//--- empty.json
{}
//--- lx.json
{"lxReservedFraction": 0.8}
//--- cores.json
{"numCores": {"value": 4}, "stickBytes": 128}
//--- fast.json
{"effectiveMemoryBytesPerSecond": 1e13}
//--- unknown.json
{"cores": 4}
//--- softmax.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @f(%x: tensor<512x1024xf16, #l> {spyre_graph.name = "x"}) -> (tensor<512x1024xf16> {spyre_graph.name = "y"}) {
  %e = tensor.empty() : tensor<512x1024xf16>
  %0 = spyre_graph.exp ins(%x : tensor<512x1024xf16, #l>) outs(%e : tensor<512x1024xf16>) -> tensor<512x1024xf16>
  %1 = spyre_graph.softmax %0 {dim = 1 : i64} : tensor<512x1024xf16> -> tensor<512x1024xf16>
  return %1 : tensor<512x1024xf16>
}
//--- given.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
module attributes {spyre_graph.device = {numCores = 4}} {
  func.func @f(%x: tensor<512x128xf16, #l> {spyre_graph.name = "x"}) -> (tensor<512x128xf16> {spyre_graph.name = "y"}) {
    %e = tensor.empty() : tensor<512x128xf16>
    %0 = spyre_graph.exp ins(%x : tensor<512x128xf16, #l>) outs(%e : tensor<512x128xf16>) -> tensor<512x128xf16>
    return %0 : tensor<512x128xf16>
  }
}
//--- products.mlir
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<512x1024xf16, #l>, %w: tensor<1024x2048xf16, #l>, %u: tensor<2048x1024xf16, #l>) -> tensor<512x1024xf16> {
  %e = tensor.empty() : tensor<512x2048xf16>
  %a = spyre_graph.matmul ins(%x, %w : tensor<512x1024xf16, #l>, tensor<1024x2048xf16, #l>) outs(%e : tensor<512x2048xf16>) -> tensor<512x2048xf16>
  %s = spyre_graph.softmax %a {dim = 1 : i64} : tensor<512x2048xf16> -> tensor<512x2048xf16>
  %o = tensor.empty() : tensor<512x1024xf16>
  %c = spyre_graph.matmul ins(%s, %u : tensor<512x2048xf16>, tensor<2048x1024xf16, #l>) outs(%o : tensor<512x1024xf16>) -> tensor<512x1024xf16>
  return %c : tensor<512x1024xf16>
}
