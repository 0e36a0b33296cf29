// SPDX-License-Identifier: Apache-2.0
//===- LoadOptions.h - How a program is loaded ------------------*- C++ -*-===//

#ifndef SPYRE_RUNTIME_LOADER_LOADOPTIONS_H
#define SPYRE_RUNTIME_LOADER_LOADOPTIONS_H

#include <cstdint>
#include <optional>
#include <string>

namespace spyre::runtime {

struct LoadOptions {
  /// Entry function; empty: the only function without a caller.
  std::string entry;
  /// Device memory for the programs of all cores; none: that of the device that
  /// the program is planned for (DeviceSpec::segmentBytes).
  std::optional<int64_t> programBytes;
};

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_LOADER_LOADOPTIONS_H
