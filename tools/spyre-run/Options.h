// SPDX-License-Identifier: Apache-2.0
//===- Options.h - What spyre-run is asked for ------------------*- C++ -*-===//

#ifndef SPYRE_TOOLS_SPYRE_RUN_OPTIONS_H
#define SPYRE_TOOLS_SPYRE_RUN_OPTIONS_H

#include "Spyre/Compiler/Bundle.h"
#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Runtime/Program/Program.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spyre {

struct Options {
  std::string program, entry, outDir, json, trace;
  std::shared_ptr<const DeviceSpec> device;
  std::vector<std::string> args;
  runtime::Numerics numerics = runtime::Numerics::DL16;
  runtime::OutOfBounds oob = runtime::OutOfBounds::Error;
  runtime::CheckLevel check = runtime::CheckLevel::Bounds;
  int threads = 0, repeat = 1;
  bool timing = false, overlap = true, predictOnly = false, cases = false;
  BundleOptions bundle;
};

/// The device that a program runs on: that of --device, or else the one that it
/// is planned for. Throws Error if the device model cannot be that device.
DeviceSpec chooseDevice(const Options &options,
                        const std::optional<runtime::PlannedDevice> &planned);
/// Warns if a program is planned for another device than that of --device, with
/// the numbers that differ.
void warnOfOtherDevice(const Options &options,
                       const std::optional<runtime::PlannedDevice> &planned);

/// Ends the process for --help and the like, and after a wrong option. Throws
/// Error for what the options together do not allow.
Options parseOptions(int argc, char **argv);

} // namespace spyre

#endif // SPYRE_TOOLS_SPYRE_RUN_OPTIONS_H
