// SPDX-License-Identifier: Apache-2.0
//===- Environment.h - The environment variables that are read --*- C++ -*-===//
//
// Environment.def is their table; nothing else calls getenv. A variable that is
// set to nothing counts as not set. Words are the same in either case.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_SUPPORT_ENVIRONMENT_H
#define SPYRE_SUPPORT_ENVIRONMENT_H

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace spyre::environment {

/// A row of the table.
struct Variable {
  enum Kind { Switch, Number, Numbers, Choice, Text, Foreign };
  Kind kind;
  const char *name;
  /// Heading in the documentation.
  const char *group;
  const char *help;
  /// For a switch "1" or "0", for a choice one of `choices`; "": no default.
  std::string byDefault;
  /// Only for numbers: the range, inclusive.
  int64_t lowest = 0, highest = 0;
  /// Only for a choice: the possible values.
  std::vector<std::string> choices;

  /// Describes the possible values, for messages.
  std::string expected() const;
};

/// The table, in order.
const std::vector<Variable> &variables();

/// Nothing is a number that is not set.
using Value = std::variant<std::monostate, bool, int64_t, std::string,
                           std::vector<int64_t>>;

/// Reads a variable of the environment now, or returns its default. Throws
/// Error, naming the variable, for a value that is not possible, and for a name
/// that is not in the table.
Value read(const std::string &name);

/// Throws the Error that says that a variable's value means nothing.
[[noreturn]] void fail(const std::string &name, const std::string &expected,
                       const std::string &found);

// One typed accessor per variable; each is read(), now.
#define SPYRE_SWITCH(accessor, name, byDefault, help) bool accessor();
#define SPYRE_NUMBER(accessor, name, lowest, highest, help)                    \
  std::optional<int64_t> accessor();
#define SPYRE_NUMBERS(accessor, name, lowest, highest, help)                   \
  std::vector<int64_t> accessor();
#define SPYRE_CHOICE(accessor, name, choices, byDefault, help)                 \
  std::string accessor();
#define SPYRE_TEXT(accessor, name, help) std::string accessor();
#include "Spyre/Support/Environment.def"

} // namespace spyre::environment

#endif // SPYRE_SUPPORT_ENVIRONMENT_H
