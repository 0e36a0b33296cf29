// SPDX-License-Identifier: Apache-2.0
// RUN: echo '{"numCores": 4}' > %t.json
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-set-device=file=%t.json

// SG-DEVICE-C1
// expected-error@+1 {{'builtin.module' op spyre_graph.device must be a dictionary, as in {numCores = 4}, on a module, but is 4 : i64}}
module attributes {spyre_graph.device = 4} {
}

// -----

// SG-DEVICE-C1
module {
  // expected-error@+1 {{'func.func' op spyre_graph.device must be a dictionary, as in {numCores = 4}, on a module, but is {numCores = 4 : i64}}}
  func.func @f() attributes {spyre_graph.device = {numCores = 4}} {
    return
  }
}

// -----

// SG-DEVICE-C1
// expected-error@+1 {{'builtin.module' op spyre_graph.device: "numCores" must be an i64, a finite f64 or a string, but is true}}
module attributes {spyre_graph.device = {numCores = true}} {
}

// -----

// SG-DEVICE-C1
// expected-error@+1 {{'builtin.module' op spyre_graph.device: "clockHertz" must be an i64, a finite f64 or a string, but is 0x7FF0000000000000 : f64}}
module attributes {spyre_graph.device = {clockHertz = 0x7FF0000000000000 : f64}} {
}

// -----

// SG-DEVICE-C2
// expected-error@+1 {{'builtin.module' op spyre_graph.device: there is no parameter "cores"}}
module attributes {spyre_graph.device = {cores = 4}} {
}

// -----

// SG-DEVICE-C2
// expected-error@+1 {{'builtin.module' op spyre_graph.device: "numCores" must be a 64-bit integer, but is "four"}}
module attributes {spyre_graph.device = {numCores = "four"}} {
}

// -----

// SG-DEVICE-C2
// expected-error@+1 {{'builtin.module' op spyre_graph.device: "numCores" must be a 64-bit integer, but is 4.5}}
module attributes {spyre_graph.device = {numCores = 4.5}} {
}

// -----

// SG-DEVICE-C2
// expected-error@+1 {{'builtin.module' op spyre_graph.device: device spec: lxReservedFraction must be below 1, but is 1}}
module attributes {spyre_graph.device = {lxReservedFraction = 1.0}} {
}

// -----

// SG-DEVICE-C2
// expected-error@+1 {{'builtin.module' op spyre_graph.device: device spec: numCores must be at most 32, but is 33}}
module attributes {spyre_graph.device = {numCores = 33}} {
}

// -----

// SG-DEVICE-C3
// expected-error@+1 {{is planned for the device {numCores = 8 : i64} already, and cannot be for {numCores = 4 : i64} too}}
module attributes {spyre_graph.device = {numCores = 8}} {
}
