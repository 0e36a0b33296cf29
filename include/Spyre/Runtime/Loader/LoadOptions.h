// SPDX-License-Identifier: Apache-2.0
//===- LoadOptions.h - How a program is loaded ------------------*- C++ -*-===//

#ifndef SPYRE_RUNTIME_LOADER_LOADOPTIONS_H
#define SPYRE_RUNTIME_LOADER_LOADOPTIONS_H

#include "Spyre/Device/DeviceSpec.h"

#include <cstdint>
#include <string>

namespace spyre::runtime {

struct LoadOptions {
  /// Entry function; empty: the only function without a caller.
  std::string entry;
  /// Device memory for the programs of all cores (DeviceSpec::segmentBytes).
  int64_t programBytes = DeviceSpec().segmentBytes;
};

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_LOADER_LOADOPTIONS_H
