// SPDX-License-Identifier: Apache-2.0
//===- Program.cpp - What callers do with a program -----------------------===//

#include "Spyre/Runtime/Program/Program.h"
#include "Engine.h"
#include "MemoryCheck.h"
#include "ProgramImpl.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

Program::Impl::Impl() = default;
Program::Impl::~Impl() = default;
Program::Program(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Program::~Program() = default;
const std::string &Program::name() const { return impl->plan.name; }
const std::vector<ArgumentInfo> &Program::arguments() const {
  return impl->plan.arguments;
}
const std::optional<PlannedDevice> &Program::plannedDevice() const {
  return impl->plan.device;
}
double Program::predictedSeconds() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->hasReport ? impl->report.predictedSeconds : 0;
}

void Program::checkArgumentCount(const std::vector<int64_t> &argValues) const {
  const Plan &plan = impl->plan;
  if (argValues.size() != plan.arguments.size())
    throw Error(plan.name + ": expected " +
                std::to_string(plan.arguments.size()) + " argument values (" +
                listArguments(plan.arguments) + "), found " +
                std::to_string(argValues.size()));
}

void Program::checkSizes(const std::vector<int64_t> &argValues) const {
  for (size_t i = 0; i < argValues.size(); ++i) {
    std::string wrong = checkSize(impl->plan.arguments, i, argValues[i]);
    if (!wrong.empty())
      throw Error(impl->plan.locations[impl->plan.argumentLocations[i]] +
                  ": error: " + wrong);
  }
}

std::vector<Scalar>
Program::Impl::makeArguments(const std::vector<int64_t> &argValues) const {
  std::vector<Scalar> args(argValues.size());
  for (size_t i = 0; i < argValues.size(); ++i) {
    args[i].i = argValues[i];
    if (plan.arguments[i].isFloat) {
      uint32_t bits = static_cast<uint32_t>(argValues[i]);
      args[i].i = 0;
      std::memcpy(&args[i].f, &bits, sizeof(bits));
    }
  }
  return args;
}

void Program::Impl::checkAlignment(
    const std::vector<int64_t> &argValues) const {
  constexpr int64_t stick = DeviceMemory::kBlockInBytes;
  for (size_t i = 0; i < argValues.size(); ++i) {
    const ArgumentInfo &info = plan.arguments[i];
    if (info.kind != ArgumentInfo::Pool && !info.layout)
      continue;
    int64_t size =
        info.kind == ArgumentInfo::Pool ? 1 : info.elementSizeInBytes;
    int64_t address;
    if (__builtin_mul_overflow(argValues[i], size, &address) ||
        address % stick != 0)
      throw Error(plan.locations[plan.entry->location] + ": error: argument '" +
                  info.name + "' starts at element " +
                  std::to_string(argValues[i]) + " of " + std::to_string(size) +
                  " bytes, which is not on a stick of " +
                  std::to_string(stick) + " bytes");
  }
}

std::vector<UndefinedRange>
Program::Impl::getPools(const std::vector<int64_t> &argValues) const {
  std::vector<UndefinedRange> pools;
  for (size_t i = 0; i < argValues.size(); ++i) {
    const ArgumentInfo &info = plan.arguments[i];
    if (info.kind == ArgumentInfo::Pool)
      pools.push_back({argValues[i], argValues[i] + int64_t(info.poolBytes),
                       plan.locations[plan.argumentLocations[i]] +
                           ": note: it is part of pool '" + info.name +
                           "' of " + std::to_string(info.poolBytes) +
                           " bytes, allocated here"});
  }
  return pools;
}

RunReport Program::run(DeviceMemory &memory,
                       const std::vector<int64_t> &argValues,
                       const RunOptions &options) const {
  const Plan &plan = impl->plan;
  checkArgumentCount(argValues);
  checkSizes(argValues);
  Clock::time_point start = Clock::now();
  bool ieee = options.numerics == Numerics::IEEE;

  std::unique_ptr<RunState> state;
  {
    std::lock_guard<std::mutex> lock(impl->mutex);
    auto it = std::find_if(impl->idle.begin(), impl->idle.end(),
                           [&](auto &s) { return s->ieee == ieee; });
    if (it != impl->idle.end()) {
      state = std::move(*it);
      impl->idle.erase(it);
    }
  }
  if (!state)
    state = std::make_unique<RunState>(plan, ieee);
  if (options.check != CheckLevel::None)
    impl->checkAlignment(argValues);
  state->start(memory, options);
  if (options.check == CheckLevel::Full)
    state->shadow =
        std::make_unique<MemoryCheck>(plan, impl->getPools(argValues));
  std::vector<Scalar> args = impl->makeArguments(argValues);
  // A failed run throws its state away: slots may hold half a kernel.
  state->call(*plan.entry, args.data());

  state->finish();
  RunReport report;
  report.host = state->hostWork;
  report.host.wallSeconds = secondsSince(start);
  {
    std::lock_guard<std::mutex> lock(impl->mutex);
    impl->idle.push_back(std::move(state));
  }
  if (options.report)
    static_cast<TimingReport &>(report) = timingOf(memory, argValues, options);
  return report;
}

TimingReport Program::timingOf(DeviceMemory &memory,
                               const std::vector<int64_t> &argValues,
                               const RunOptions &options) const {
  // What a report depends on: scalars may be sizes; addresses only shift.
  std::vector<int64_t> key;
  for (size_t i = 0; i < argValues.size(); ++i)
    if (impl->plan.arguments[i].kind == ArgumentInfo::Scalar)
      key.push_back(argValues[i]);
  TimingOptions timing;
  if (options.device)
    timing.spec = *options.device;
  else if (impl->plan.device)
    timing.spec = impl->plan.device->spec;
  {
    std::lock_guard<std::mutex> lock(impl->mutex);
    if (impl->hasReport && impl->reportKey == key &&
        impl->reportSpec == timing.spec)
      return impl->report;
  }
  TimingReport report = simulate(memory, argValues, options, timing);
  std::lock_guard<std::mutex> lock(impl->mutex);
  impl->report = report;
  impl->reportKey = std::move(key);
  impl->reportSpec = timing.spec;
  impl->hasReport = true;
  return report;
}
