// SPDX-License-Identifier: Apache-2.0
//===- Commands.h - The form of spyrecode.json ------------------*- C++ -*-===//

#ifndef SPYRE_LIB_TARGET_SPYRECODE_COMMANDS_H
#define SPYRE_LIB_TARGET_SPYRECODE_COMMANDS_H

#include "Spyre/Target/SpyreCode/SpyreCode.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spyre::spyrecode {

/// A row of the output of a ComputeOnHost, with the place that says it.
struct CommandRow {
  std::string path;
  uint64_t row = 0;
  runtime::CorrectionRow rule;
};

/// A command with what its properties say, whatever the flavour.
struct Command {
  enum Kind {
    Allocate,
    InitTransfer,
    ComputeOnHost,
    DataTransfer,
    ComputeOnDevice
  };
  Kind kind = Allocate;
  /// Its JSON pointer, and those of its properties by one name for both
  /// flavours.
  std::string path;
  std::map<std::string, std::string> paths;

  /// Bytes, and a device address.
  uint64_t size = 0, address = 0;
  std::string file, inputHandle, outputHandle, hostHandle;
  std::vector<uint64_t> inputShape;
  bool toDevice = true;
  std::vector<CommandRow> rows;

  const std::string &at(const std::string &property) const {
    auto found = paths.find(property);
    return found == paths.end() ? path : found->second;
  }
};

struct Commands {
  std::vector<Command> preparation, execution;
};

/// Checks the form (SPYRECODE-FORM-*). Nothing after a violation.
std::optional<Commands> readCommands(const Json &json,
                                     superdsc::Report &report);

} // namespace spyre::spyrecode

#endif // SPYRE_LIB_TARGET_SPYRECODE_COMMANDS_H
