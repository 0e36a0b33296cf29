// SPDX-License-Identifier: Apache-2.0
// A module says for which device it is planned: spyre-run takes that device,
// and warns if --device has other numbers.
// RUN: rm -rf %t && mkdir %t
// RUN: echo '{"lxReservedFraction": 0.5, "clockHertz": 2e8}' > %t/plan.json
// RUN: echo '{"clockHertz": 4e8}' > %t/other.json
// RUN: spyre-opt %s --spyre-pipeline="cores=4 device={%t/plan.json}" -o %t/ktir.mlir

// The device of the plan need not be given again.
// RUN: spyre-run %t/ktir.mlir --predict-only --json=%t/own.json 2>&1 | FileCheck %s --check-prefix=SILENT --allow-empty
// RUN: spyre-run %t/ktir.mlir --arg=zeros --arg=zeros --predict-only --device %t/plan.json --json=%t/same.json 2>&1 | FileCheck %s --check-prefix=SILENT --allow-empty
// RUN: grep -v simulation_seconds %t/own.json > %t/own && grep -v simulation_seconds %t/same.json | diff - %t/own
// SILENT-NOT: {{.}}

// RUN: spyre-run %t/ktir.mlir --arg=zeros --arg=zeros --predict-only --device %t/other.json --json=%t/other-report.json 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not diff -q %t/own.json %t/other-report.json
// OTHER: ktir.mlir:{{[0-9]+}}:1: warning: the program is planned for a device with clockHertz = 2e+08, lxReservedFraction = 0.5, but --device has clockHertz = 4e+08, lxReservedFraction = 0.2: leave --device out for the device of the plan
// OTHER-NOT: warning

// A module that does not say may be for any.
// RUN: spyre-opt %s --spyre-pipeline=cores=4 -o %t/silent.mlir
// RUN: spyre-run %t/silent.mlir --arg=zeros --arg=zeros --predict-only --device %t/other.json --json=%t/r.json 2>&1 | FileCheck %s --check-prefix=SILENT --allow-empty

// What the attribute says has to make sense.
// RUN: echo 'module attributes {spyre_graph.device = {clockHertz = "quick"}} { func.func @f() attributes {grid = [1]} { return } }' > %t/text.mlir
// RUN: not spyre-run %t/text.mlir 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: text.mlir:1:1: error: {{.*}}clockHertz
// RUN: echo 'module attributes {spyre_graph.device = 4} { func.func @f() attributes {grid = [1]} { return } }' > %t/number.mlir
// RUN: not spyre-run %t/number.mlir 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: number.mlir:1:1: error: {{.*}}spyre_graph.device must be a dictionary
// RUN: echo 'module attributes {spyre_graph.device = {nonNumber = "nan"}} { func.func @f() attributes {grid = [1]} { return } }' > %t/nan.mlir
// RUN: not spyre-run %t/nan.mlir 2>&1 | FileCheck %s --check-prefix=NAN
// NAN: nan.mlir:1:1: error: spyre_graph.device: the device model reads non-numbers as infinities only

// It runs there, too: that device has less memory than the arrays, 2 MiB each.
// RUN: sed 's/spyre_graph.device = {/spyre_graph.device = {deviceMemoryBytes = 1048576 : i64, segmentBytes = 131072 : i64, /' %t/ktir.mlir > %t/small.mlir
// RUN: not spyre-run %t/small.mlir --arg=zeros --arg=zeros 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL: error: {{.*}}memory

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<1024x1024xf16, #l>) -> tensor<1024x1024xf16> {
  %e = tensor.empty() : tensor<1024x1024xf16>
  %r = spyre_graph.exp ins(%x : tensor<1024x1024xf16, #l>) outs(%e : tensor<1024x1024xf16>) -> tensor<1024x1024xf16>
  return %r : tensor<1024x1024xf16>
}
