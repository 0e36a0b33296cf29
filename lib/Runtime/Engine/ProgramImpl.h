// SPDX-License-Identifier: Apache-2.0
//===- ProgramImpl.h - A program and the state of its runs ------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_PROGRAMIMPL_H
#define SPYRE_LIB_RUNTIME_ENGINE_PROGRAMIMPL_H

#include "../Program/Plan.h"
#include "Engine.h"
#include "MemoryCheck.h"
#include "Spyre/Runtime/Program/Program.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace spyre::runtime {

struct Program::Impl {
  Plan plan;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<RunState>> idle;
  mutable bool hasReport = false;
  mutable TimingReport report;
  mutable DeviceSpec reportSpec;
  mutable std::vector<int64_t> reportKey;
  std::vector<Scalar>
  makeArguments(const std::vector<int64_t> &argValues) const;
  Impl();
  ~Impl();
  /// Throws Error if an array with a layout or a pool is not on a stick.
  void checkAlignment(const std::vector<int64_t> &argValues) const;
  /// The memory of the pools, which the host has not written.
  std::vector<UndefinedRange>
  getPools(const std::vector<int64_t> &argValues) const;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_PROGRAMIMPL_H
