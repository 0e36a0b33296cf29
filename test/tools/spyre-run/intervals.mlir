// SPDX-License-Identifier: Apache-2.0
// The interval of a kernel's time is that of what the kernel does.
// RUN: rm -rf %t && mkdir -p %t
// RUN: spyre-opt --spyre-pipeline=to-ktir %s -o %t/ktir.mlir
// RUN: %python %S/Inputs/check_intervals.py %t
// RUN: spyre-run %t/ktir.mlir --arg=zeros --arg=zeros --arg=zeros --arg=zeros --arg=zeros --arg=zeros --arg=zeros --arg=zeros --predict-only --device %t/device.json --json %t/r.json --trace %t/t.json --timing | FileCheck %s
// CHECK: 10 to 90 % us
// CHECK: predicted {{[0-9.]+}} us, in 8 of 10 cases {{[0-9.]+}} to {{[0-9.]+}} us
// RUN: %python %S/Inputs/check_intervals.py %t %t/r.json %t/t.json
// RUN: echo '{"productTimeLow": 1.75, "productTimeHigh": 1.5}' > %t/turned.json
// RUN: not spyre-run %t/ktir.mlir --predict-only --device %t/turned.json 2>&1 | FileCheck --check-prefix=TURNED %s
// TURNED: turned.json: device spec: productTimeLow must be at most 1.5

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#l1 = #spyre_graph.layout<order = [0], SEN169_FP16>
#l3 = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#t = #spyre_graph.layout<order = [1, 0], SEN169_FP16>
func.func @main(%x: tensor<128x192xf16, #l>, %w: tensor<192x65xf16, #l>,
                %a: tensor<3x63x192xf16, #l3>, %b: tensor<3x192x65xf16, #l3>)
    -> (tensor<128x192xf16, #t>, tensor<128xf16, #l1>, tensor<128x65xf16, #l>, tensor<3x63x65xf16, #l3>) {
  %e0 = tensor.empty() : tensor<128x192xf16, #t>
  %e1 = tensor.empty() : tensor<128xf16, #l1>
  %e2 = tensor.empty() : tensor<128x65xf16, #l>
  %e3 = tensor.empty() : tensor<3x63x65xf16, #l3>
  %e4 = tensor.empty() : tensor<128x65xf16, #l>
  %r0 = spyre_graph.restickify ins(%x : tensor<128x192xf16, #l>) outs(%e0 : tensor<128x192xf16, #t>) -> tensor<128x192xf16, #t>
  %r1 = spyre_graph.max ins(%x : tensor<128x192xf16, #l>) outs(%e1 : tensor<128xf16, #l1>) {dims = array<i64: 1>} -> tensor<128xf16, #l1>
  %r2 = spyre_graph.matmul ins(%x, %w : tensor<128x192xf16, #l>, tensor<192x65xf16, #l>) outs(%e2 : tensor<128x65xf16, #l>) -> tensor<128x65xf16, #l>
  %r3 = spyre_graph.matmul ins(%a, %b : tensor<3x63x192xf16, #l3>, tensor<3x192x65xf16, #l3>) outs(%e3 : tensor<3x63x65xf16, #l3>) -> tensor<3x63x65xf16, #l3>
  %r4 = spyre_graph.relu ins(%r2 : tensor<128x65xf16, #l>) outs(%e4 : tensor<128x65xf16, #l>) -> tensor<128x65xf16, #l>
  return %r0, %r1, %r4, %r3 : tensor<128x192xf16, #t>, tensor<128xf16, #l1>, tensor<128x65xf16, #l>, tensor<3x63x65xf16, #l3>
}
