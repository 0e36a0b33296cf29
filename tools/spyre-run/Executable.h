// SPDX-License-Identifier: Apache-2.0
//===- Executable.h - What spyre-run runs -----------------------*- C++ -*-===//
#ifndef SPYRE_TOOLS_SPYRE_RUN_EXECUTABLE_H
#define SPYRE_TOOLS_SPYRE_RUN_EXECUTABLE_H

#include "Spyre/Compiler/Bundle.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include <memory>
#include <string>
#include <vector>

namespace spyre {

/// An argument with what it is given.
struct BoundArgument {
  /// Sizes, strides and layout of the array, if it is larger than that of the
  /// program.
  runtime::ArgumentInfo info;
  bool isArray = false;
  /// Device byte address of an array.
  uint64_t address = 0;
  /// The value of the program's parameter.
  int64_t value = 0;
};

/// A KTIR program, a folder of SuperDSC bundles, or a folder of SpyreCode.
class Executable {
public:
  /// Throws Error.
  static std::unique_ptr<Executable> load(const std::string &path,
                                          const runtime::LoadOptions &options,
                                          const BundleOptions &bundleOptions);
  virtual ~Executable() = default;

  /// The device that its plan is for, if it says so.
  virtual std::optional<runtime::PlannedDevice> plannedDevice() const {
    return std::nullopt;
  }
  /// In order, without pools.
  virtual std::vector<runtime::ArgumentInfo> arguments() const = 0;
  /// Throws Error unless a run takes so many arguments.
  virtual void checkCount(size_t found) const = 0;
  /// The argument as an array of these sizes makes it, where the executable
  /// takes arrays that are larger; else nothing.
  virtual std::optional<runtime::ArgumentInfo>
  enlarge(const runtime::ArgumentInfo &info,
          const std::vector<int64_t> &sizes) const = 0;

  /// Gets ready to run on these arguments. Throws Error before anything runs.
  virtual void bind(runtime::DeviceMemory &memory,
                    std::vector<BoundArgument> arguments) = 0;
  /// Wall seconds of a run.
  virtual double run(const runtime::RunOptions &options) = 0;
  virtual runtime::TimingReport
  simulate(const runtime::RunOptions &options,
           const runtime::TimingOptions &timing) = 0;
};

} // namespace spyre

#endif // SPYRE_TOOLS_SPYRE_RUN_EXECUTABLE_H
