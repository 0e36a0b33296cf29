// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-set-target=target=ktir --spyre-propagate-layouts

// SG-TARGET-C1
// expected-error@+1 {{'builtin.module' op spyre_graph.target must be a target, as in #spyre_graph.target<ktir>, on a module, but is "ktir"}}
module attributes {spyre_graph.target = "ktir"} {
}

// -----

// SG-TARGET-C1
module {
  // expected-error@+1 {{'func.func' op spyre_graph.target must be a target, as in #spyre_graph.target<ktir>, on a module, but is #spyre_graph.target<ktir>}}
  func.func @f() attributes {spyre_graph.target = #spyre_graph.target<ktir>} {
    return
  }
}

// -----

// SG-TARGET-C3
// expected-error@+1 {{is planned for target 'superdsc' already, and cannot be for 'ktir' too}}
module attributes {spyre_graph.target = #spyre_graph.target<superdsc>} {
}
