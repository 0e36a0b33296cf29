// SPDX-License-Identifier: Apache-2.0
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-work-division
// RUN: spyre-opt %s --split-input-file --verify-diagnostics --spyre-pipeline

// The attribute may name what this tool does not have; planning for it is an
// error.
// SG-TARGET-C2
// expected-error@+1 {{unknown target 'other'; registered are: ktir, superdsc}}
module attributes {spyre_graph.target = #spyre_graph.target<other>} {
  func.func @f() {
    return
  }
}
