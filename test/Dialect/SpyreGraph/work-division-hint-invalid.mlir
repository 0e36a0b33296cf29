// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-work-division -o /dev/null

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-DIVISION-HINT-C1
func.func @rank(%x: tensor<64x128xf16, #l>) -> tensor<64x128xf16, #l> {
  %e = tensor.empty() : tensor<64x128xf16, #l>
  // expected-error @+1 {{spyre_graph.work_division_hint must be an array of 2 numbers of slices, one per loop dimension, but is array<i64: 2>}}
  %r = spyre_graph.neg ins(%x : tensor<64x128xf16, #l>) outs(%e : tensor<64x128xf16, #l>) {spyre_graph.work_division_hint = array<i64: 2>} -> tensor<64x128xf16, #l>
  return %r : tensor<64x128xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-DIVISION-HINT-C1
func.func @kind(%x: tensor<64x128xf16, #l>) -> tensor<64x128xf16, #l> {
  %e = tensor.empty() : tensor<64x128xf16, #l>
  // expected-error @+1 {{must be an array of 2 numbers of slices}}
  %r = spyre_graph.neg ins(%x : tensor<64x128xf16, #l>) outs(%e : tensor<64x128xf16, #l>) {spyre_graph.work_division_hint = true} -> tensor<64x128xf16, #l>
  return %r : tensor<64x128xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-DIVISION-HINT-C2
func.func @zero(%x: tensor<64x128xf16, #l>) -> tensor<64x128xf16, #l> {
  %e = tensor.empty() : tensor<64x128xf16, #l>
  // expected-error @+1 {{asks for 0 slices of loop dimension 0; it must be at least 1}}
  %r = spyre_graph.neg ins(%x : tensor<64x128xf16, #l>) outs(%e : tensor<64x128xf16, #l>) {spyre_graph.work_division_hint = array<i64: 0, 1>} -> tensor<64x128xf16, #l>
  return %r : tensor<64x128xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-DIVISION-HINT-C3
func.func @cores(%x: tensor<64x128xf16, #l>) -> tensor<64x128xf16, #l> {
  %e = tensor.empty() : tensor<64x128xf16, #l>
  // expected-error @+1 {{asks for 32 x 2 slices, which exceeds SENCORES (32 cores)}}
  %r = spyre_graph.neg ins(%x : tensor<64x128xf16, #l>) outs(%e : tensor<64x128xf16, #l>) {spyre_graph.work_division_hint = array<i64: 32, 2>} -> tensor<64x128xf16, #l>
  return %r : tensor<64x128xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-DIVISION-HINT-C3
func.func @overflow(%x: tensor<64x128xf16, #l>) -> tensor<64x128xf16, #l> {
  %e = tensor.empty() : tensor<64x128xf16, #l>
  // expected-error @+1 {{asks for 9223372036854775807 x 9223372036854775807 slices, which exceeds SENCORES (32 cores)}}
  %r = spyre_graph.neg ins(%x : tensor<64x128xf16, #l>) outs(%e : tensor<64x128xf16, #l>) {spyre_graph.work_division_hint = array<i64: 9223372036854775807, 9223372036854775807>} -> tensor<64x128xf16, #l>
  return %r : tensor<64x128xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-DIVISION-HINT-C5: 9 rows in 8 slices would be 5 slices of 2.
func.func @uneven(%x: tensor<9x128xf16, #l>) -> tensor<9x128xf16, #l> {
  %e = tensor.empty() : tensor<9x128xf16, #l>
  // expected-error @+1 {{asks for 8 slices of loop dimension 0, but its 9 iterations are not evenly divisible into that many, nor with a smaller last one; possible: 1 to 3, 5, 9}}
  %r = spyre_graph.neg ins(%x : tensor<9x128xf16, #l>) outs(%e : tensor<9x128xf16, #l>) {spyre_graph.work_division_hint = array<i64: 8, 1>} -> tensor<9x128xf16, #l>
  return %r : tensor<9x128xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-DIVISION-HINT-C5
func.func @sticks(%x: tensor<9x128xf16, #l>) -> tensor<9x128xf16, #l> {
  %e = tensor.empty() : tensor<9x128xf16, #l>
  // expected-error @+1 {{asks for 3 slices of loop dimension 1, but its 2 sticks are not evenly divisible into that many, nor with a smaller last one; possible: 1, 2}}
  %r = spyre_graph.neg ins(%x : tensor<9x128xf16, #l>) outs(%e : tensor<9x128xf16, #l>) {spyre_graph.work_division_hint = array<i64: 1, 3>} -> tensor<9x128xf16, #l>
  return %r : tensor<9x128xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

#index = #spyre_graph.layout<order = [0], sparse, IEEE_INT32>

// SG-DIVISION-HINT-C4
func.func @argmax(%x: tensor<8x1024xf16, #l>) -> tensor<8xi64, #index> {
  %e = tensor.empty() : tensor<8xi64, #index>
  // expected-error @+1 {{work division hint splits loop dimension 1, but parts of this operation's result cannot be combined, so it stays on one core}}
  %r = spyre_graph.argmax ins(%x : tensor<8x1024xf16, #l>) outs(%e : tensor<8xi64, #index>) {dims = array<i64: 1>, spyre_graph.work_division_hint = array<i64: 1, 2>} -> tensor<8xi64, #index>
  return %r : tensor<8xi64, #index>
}

// -----

#l3 = #spyre_graph.layout<order = [0, 1, 2], SEN169_FP16>
#one = #spyre_graph.layout<order = [0], sparse, SEN169_FP16>

// SG-DIVISION-HINT-C4
func.func @two(%x: tensor<8x16x128xf16, #l3>) -> tensor<8xf16, #one> {
  %e = tensor.empty() : tensor<8xf16, #one>
  // expected-error @+1 {{work division hint splits the reduction dimensions 1 and 2; only one of them can be}}
  %r = spyre_graph.sum ins(%x : tensor<8x16x128xf16, #l3>) outs(%e : tensor<8xf16, #one>) {dims = array<i64: 1, 2>, spyre_graph.work_division_hint = array<i64: 1, 2, 2>} -> tensor<8xf16, #one>
  return %r : tensor<8xf16, #one>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// SG-DIVISION-HINT-C2
func.func @negative(%x: tensor<64x128xf16, #l>) -> tensor<64x128xf16, #l> {
  %e = tensor.empty() : tensor<64x128xf16, #l>
  // expected-error @+1 {{asks for -4 slices of loop dimension 0; it must be at least 1}}
  %r = spyre_graph.neg ins(%x : tensor<64x128xf16, #l>) outs(%e : tensor<64x128xf16, #l>) {spyre_graph.work_division_hint = array<i64: -4, 1>} -> tensor<64x128xf16, #l>
  return %r : tensor<64x128xf16, #l>
}

// -----

#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>

// A user may leave a core more than it can address: 512 MiB of each tensor.
func.func @span(%x: tensor<8192x32768xf16, #l>) -> tensor<8192x32768xf16, #l> {
  %e = tensor.empty() : tensor<8192x32768xf16, #l>
  // expected-warning @+2 {{work division hint leaves operand 0 a span of 536870912 bytes per core, above 268435456}}
  // expected-warning @+1 {{work division hint leaves operand 1 a span of 536870912 bytes per core, above 268435456}}
  %r = spyre_graph.neg ins(%x : tensor<8192x32768xf16, #l>) outs(%e : tensor<8192x32768xf16, #l>) {spyre_graph.work_division_hint = array<i64: 1, 1>} -> tensor<8192x32768xf16, #l>
  return %r : tensor<8192x32768xf16, #l>
}

// -----

// Bytes are those on the device: a boolean has two, an int64 four.
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#i = #spyre_graph.layout<order = [0, 1], IEEE_INT32>
func.func @spans_of_other_types(%x: tensor<16384x16384xi1, #l>, %y: tensor<8192x16384xi64, #i>, %z: tensor<4096x16384xi64, #i>) -> (tensor<16384x16384xi1, #l>, tensor<8192x16384xi64, #i>, tensor<4096x16384xi64, #i>) {
  %0 = tensor.empty() : tensor<16384x16384xi1, #l>
  // expected-warning @+2 {{work division hint leaves operand 0 a span of 536870912 bytes per core, above 268435456}}
  // expected-warning @+1 {{work division hint leaves operand 1 a span of 536870912 bytes per core, above 268435456}}
  %a = spyre_graph.identity ins(%x : tensor<16384x16384xi1, #l>) outs(%0 : tensor<16384x16384xi1, #l>) {spyre_graph.work_division_hint = array<i64: 1, 1>} -> tensor<16384x16384xi1, #l>
  %1 = tensor.empty() : tensor<8192x16384xi64, #i>
  // expected-warning @+2 {{work division hint leaves operand 0 a span of 536870912 bytes per core, above 268435456}}
  // expected-warning @+1 {{work division hint leaves operand 1 a span of 536870912 bytes per core, above 268435456}}
  %b = spyre_graph.identity ins(%y : tensor<8192x16384xi64, #i>) outs(%1 : tensor<8192x16384xi64, #i>) {spyre_graph.work_division_hint = array<i64: 1, 1>} -> tensor<8192x16384xi64, #i>
  %2 = tensor.empty() : tensor<4096x16384xi64, #i>
  %c = spyre_graph.identity ins(%z : tensor<4096x16384xi64, #i>) outs(%2 : tensor<4096x16384xi64, #i>) {spyre_graph.work_division_hint = array<i64: 1, 1>} -> tensor<4096x16384xi64, #i>
  return %a, %b, %c : tensor<16384x16384xi1, #l>, tensor<8192x16384xi64, #i>, tensor<4096x16384xi64, #i>
}
