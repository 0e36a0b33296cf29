// SPDX-License-Identifier: Apache-2.0
//===- CompileOptions.h - The options of torch.compile ----------*- C++ -*-===//
#ifndef SPYRE_COMPILER_COMPILEOPTIONS_H
#define SPYRE_COMPILER_COMPILEOPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace spyre {

/// The options that, together with the graph, decide what is compiled. It has
/// only members of the table, because the cache key is made from the table.
struct CompileOptions {
#define SPYRE_OPTION_FLAG(member, name, byDefault, help)                       \
  bool member = byDefault;
#define SPYRE_OPTION_NUMBER(member, name, byDefault, lowest, highest, help)    \
  int64_t member = byDefault;
#define SPYRE_OPTION_TEXT(member, name, expected, help) std::string member;
#include "Spyre/Compiler/CompileOptions.def"
};

/// A row of the table.
struct CompileOption {
  enum Kind { Flag, Number, Text };
  const char *name;
  Kind kind;
  /// For a flag, `lowest` and `highest` are 0 and 1; for a text all are 0, and
  /// it is empty by default.
  int64_t byDefault, lowest, highest;
  const char *help;
  const char *expectedText; ///< of a text

  /// Describes the possible values, for messages.
  std::string expected() const;
};

/// The table, in order.
const std::vector<CompileOption> &compileOptions();

/// Sets an option by its name. Throws Error for a name that is not in the table
/// (it says which are) and for a value out of range.
void setCompileOption(CompileOptions &options, const std::string &name,
                      int64_t value);
/// The same for a text.
void setCompileOption(CompileOptions &options, const std::string &name,
                      const std::string &value);

/// The row of a name. Throws Error if there is none.
const CompileOption &findCompileOption(const std::string &name);

/// Throws Error for a value out of range, and for numbers that no device has.
void checkCompileOptions(const CompileOptions &options);

/// Every option's name and value, a line each; part of the cache key.
std::string printCompileOptions(const CompileOptions &options);

} // namespace spyre

#endif // SPYRE_COMPILER_COMPILEOPTIONS_H
