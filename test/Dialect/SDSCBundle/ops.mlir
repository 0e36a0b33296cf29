// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s | spyre-opt | FileCheck %s

// CHECK: func.func @sdsc_bundle(%[[ARG:.*]]: !sdscbundle.input_arg<index>)
func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>) {
  // CHECK: %[[BASE:.*]] = sdscbundle.input_arg_extract value from %[[ARG]] : !sdscbundle.input_arg<index> -> index
  %arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
  // CHECK: sdscbundle.sdsc_execute(%[[BASE]]) {sdsc_filename = "sdsc_0.json", symbol_ids = [-1]}
  sdscbundle.sdsc_execute (%arg_0) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1]}
  // CHECK: sdscbundle.sdsc_execute() {sdsc_filename = "sdsc_1.json"}
  sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json"}
  return
}

// CHECK: func.func @sizes(%[[SIZE:.*]]: !sdscbundle.input_arg<index, granularity = 64, max_value = 512>)
func.func @sizes(%dim_s0_base: !sdscbundle.input_arg<index, granularity=64, max_value=512>) {
  // CHECK: sdscbundle.input_arg_extract value from %[[SIZE]]
  %0 = sdscbundle.input_arg_extract value from %dim_s0_base : !sdscbundle.input_arg<index, granularity=64, max_value=512> -> index
  // CHECK: sdscbundle.input_arg_extract granularity from %[[SIZE]]
  %1 = sdscbundle.input_arg_extract granularity from %dim_s0_base : !sdscbundle.input_arg<index, granularity=64, max_value=512> -> index
  // CHECK: sdscbundle.input_arg_extract max_value from %[[SIZE]]
  %2 = sdscbundle.input_arg_extract max_value from %dim_s0_base : !sdscbundle.input_arg<index, granularity=64, max_value=512> -> index
  return
}
