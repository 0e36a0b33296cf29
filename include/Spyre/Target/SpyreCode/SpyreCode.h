// SPDX-License-Identifier: Apache-2.0
//===- SpyreCode.h - Folders with spyrecode.json ----------------*- C++ -*-===//
//
// The input of the runtime: preparation and execution plan in spyrecode.json,
// program images beside it (spec/runtime.md, "Kernel launch and SpyreCode").
// docs/internals/spyrecode.md says what the project reads and writes.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_TARGET_SPYRECODE_SPYRECODE_H
#define SPYRE_TARGET_SPYRECODE_SPYRECODE_H

#include "Spyre/Runtime/Launch/JobPlan.h"
#include "Spyre/Target/SuperDSC/Model/Report.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spyre::spyrecode {

inline constexpr const char *kCodeFile = "spyrecode.json";

/// Segment 7, the one that is SpyreCode's.
inline constexpr uint64_t kSegmentStart = 0x1C00000000;
inline constexpr uint64_t kSegmentBytes = uint64_t(16) << 30;

/// Names of properties and form of numbers.
enum class Flavor {
  AsBuilt, ///< init_bin_file, size, dirn "false"/"true"; decimal strings
  Spec     ///< file_path, oshape, direction 0/1; integers
};

/// The content of a file, or nothing and a message.
using FileReader = std::function<std::optional<std::string>(
    const std::string &name, size_t limit, std::string &message)>;

/// Checks spyrecode.json and the images that it names, by every rule. The job
/// is there exactly if `report` stays empty.
std::optional<runtime::Job> readSpyreCode(const std::string &json,
                                          const FileReader &readFile,
                                          superdsc::Report &report);

/// Loads the job in a folder.
std::optional<runtime::Job> loadSpyreCode(const std::string &folder,
                                          superdsc::Report &report);

/// Whether the folder has a spyrecode.json.
bool isSpyreCode(const std::string &folder);

struct WriteOptions {
  Flavor flavor = Flavor::AsBuilt;
  /// Addresses and numbers reach the program in a correction tensor that the
  /// host computes at each launch, not by the runtime's binding them.
  bool symbolicArguments = false;
};

/// File names and contents for a program in KTIR bytecode. Throws Error as
/// encodeImage() does.
std::vector<std::pair<std::string, std::string>>
writeSpyreCode(const std::string &ktirBytecode,
               const runtime::TileGroups &tileGroups,
               const WriteOptions &options);

} // namespace spyre::spyrecode

#endif // SPYRE_TARGET_SPYRECODE_SPYRECODE_H
