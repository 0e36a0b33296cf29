// SPDX-License-Identifier: Apache-2.0
//===- EagerProgram.h - Programs of eager calls -----------------*- C++ -*-===//
//
// A call runs the program of its key. Calls that differ only in sizes are of
// one form; a program for many sizes serves those of them in which all numbers
// of the form are what its symbols make of them.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_EAGER_EAGERPROGRAM_H
#define SPYRE_LIB_TORCH_EAGER_EAGERPROGRAM_H

#include "../Launch/BoundGraph.h"

#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace spyre::pytorch {

/// How one result of a call is made.
struct ResultSpec {
  enum Kind { Undefined, Value, Integer, List };
  Kind kind = Undefined;
  int64_t number = 0; ///< index of the value, or the integer
  SizeExpr size = 0;  ///< the integer, in a program for many sizes
  std::vector<ResultSpec> entries;
};

/// The program of one key.
struct Entry {
  std::shared_ptr<BoundGraph> graph; ///< null: there is none
  /// What the symbols of a program for many sizes are.
  std::vector<int64_t> sizes;
  /// Per argument: the index of a tensor of the call, or -1 minus that of a
  /// number.
  std::vector<int> arguments;
  std::vector<StorageFormat> outputs;
  std::vector<ResultView> values;
  std::vector<ResultSpec> results; ///< unused where arguments are written
};

/// A program, and how calls of it are made; as Python gives it.
struct EagerProgram {
  std::shared_ptr<BoundGraph> graph;
  std::vector<int> arguments; ///< as in Entry
  std::vector<OutputInfo> values;
  std::vector<ResultSpec> results;

  /// From (graph, arguments, values, results). Needs the GIL.
  static EagerProgram fromPython(const pybind11::tuple &answer);
  /// The entry of calls in which the symbols have these sizes.
  std::shared_ptr<const Entry> at(std::vector<int64_t> sizes) const;
};

/// A program for many sizes, and the calls of a form that it is for.
struct SizedEagerProgram {
  EagerProgram program;
  /// What each number of the form is.
  std::vector<SizeExpr> form;
  /// Per symbol, which number it is, or by how much that is larger than
  /// another.
  std::vector<std::pair<int, std::optional<int>>> places;
  /// What is at least 0 in these calls.
  std::vector<SizeExpr> conditions;
  /// What the floating-point numbers of the call are, unless the program takes
  /// them as arguments.
  std::vector<double> numbers;
  bool takesNumbers = false;
};

/// Whether two programs with these numbers are the same: 0.0 is not -0.0, and a
/// NaN is itself.
bool areSameNumbers(const std::vector<double> &a, const std::vector<double> &b);

/// What is known of the calls of one form.
struct EagerForm {
  struct Seen {
    std::vector<int64_t> sizes;
    std::vector<double> numbers;
  };
  /// The last calls that got a program of their own.
  std::vector<Seen> seen;
  std::vector<std::shared_ptr<const SizedEagerProgram>> programs;
  /// Times that calls had something in common, but no program for many sizes
  /// could be made.
  int numFailures = 0;
};

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_EAGER_EAGERPROGRAM_H
