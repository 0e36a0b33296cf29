// SPDX-License-Identifier: Apache-2.0
//===- Executable.cpp - What spyre-run runs -------------------------------===//

#include "Executable.h"

#include "Spyre/Support/Shape.h"
#include "Spyre/Target/SpyreCode/SpyreCode.h"

#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>

using namespace spyre;
using namespace spyre::runtime;

/// Checks a run-time argument: the program may never look at it.
static void checkRange(const ArgumentInfo &info, int64_t value) {
  bool isBounded = info.upperBound >= 0;
  if (!info.isRuntimeArgument || info.isFloat ||
      (value % info.granularity == 0 &&
       (!isBounded || (value >= 0 && value <= info.upperBound))))
    return;
  throw Error(
      "argument '" + info.name + "': expected " +
      (info.granularity > 1
           ? "a multiple of " + std::to_string(info.granularity)
           : std::string("an integer")) +
      (isBounded ? " from 0 to " + std::to_string(info.upperBound) : "") +
      ", found " + std::to_string(value));
}

namespace {

class ProgramExecutable : public Executable {
public:
  explicit ProgramExecutable(std::shared_ptr<Program> program)
      : program(std::move(program)) {}

  void checkCount(size_t found) const override {
    std::vector<ArgumentInfo> infos = arguments();
    if (found != infos.size())
      throw Error("@" + program->name() + " takes " +
                  std::to_string(infos.size()) + " arguments (" +
                  listArguments(infos) + "), found " + std::to_string(found) +
                  "; give --arg for each, in this order: a .npy file, a "
                  "number, or 'zeros', for results for example");
  }

  std::optional<PlannedDevice> plannedDevice() const override {
    return program->plannedDevice();
  }

  std::vector<ArgumentInfo> arguments() const override {
    std::vector<ArgumentInfo> result;
    for (const ArgumentInfo &info : program->arguments())
      if (info.kind != ArgumentInfo::Pool)
        result.push_back(info);
    return result;
  }

  std::optional<ArgumentInfo>
  enlarge(const ArgumentInfo &, const std::vector<int64_t> &) const override {
    return std::nullopt;
  }

  void bind(DeviceMemory &own, std::vector<BoundArgument> given) override {
    memory = &own;
    for (const BoundArgument &argument : given)
      checkRange(argument.info, argument.value);
    size_t next = 0;
    for (const ArgumentInfo &info : program->arguments())
      values.push_back(
          info.kind == ArgumentInfo::Pool
              ? static_cast<int64_t>(memory->allocate(info.poolBytes))
              : given[next++].value);
  }

  double run(const RunOptions &options) override {
    return program->run(*memory, values, options).host.wallSeconds;
  }

  TimingReport simulate(const RunOptions &options,
                        const TimingOptions &timing) override {
    return program->simulate(*memory, values, options, timing);
  }

private:
  std::shared_ptr<Program> program;
  DeviceMemory *memory = nullptr;
  std::vector<int64_t> values;
};

class JobExecutable : public Executable {
public:
  explicit JobExecutable(Job given) : job(std::move(given)) {
    const Program &program = *job->images.front().image.program;
    infos = program.arguments();
    infos.erase(std::remove_if(infos.begin(), infos.end(),
                               [](const ArgumentInfo &info) {
                                 return info.kind == ArgumentInfo::Pool;
                               }),
                infos.end());
  }

  void checkCount(size_t found) const override {
    checkArgumentCount(infos, found);
  }
  std::vector<ArgumentInfo> arguments() const override { return infos; }

  /// The layout that the constructor makes which made the argument's.
  std::optional<ArgumentInfo>
  enlarge(const ArgumentInfo &info,
          const std::vector<int64_t> &sizes) const override {
    size_t rank = info.shape.size();
    if (!info.layout || sizes.size() != rank || rank > kMaxOrder ||
        info.strides != rowMajorStrides(info.shape))
      return std::nullopt;
    // With a last entry of -1 each element has a stick of its own.
    for (bool isSparse : {false, true}) {
      std::vector<int64_t> order(rank);
      std::iota(order.begin(), order.end(), 0);
      if (isSparse)
        order.push_back(-1);
      if (order.size() > kMaxOrder)
        continue;
      do {
        if (TensorLayout(info.shape, info.strides, info.dtype, order) !=
            *info.layout)
          continue;
        ArgumentInfo result = info;
        result.shape = sizes;
        result.strides = rowMajorStrides(sizes);
        result.layout = TensorLayout(sizes, result.strides, info.dtype, order);
        return result;
      } while (
          std::next_permutation(order.begin(), order.begin() + long(rank)));
    }
    return std::nullopt;
  }

  void bind(DeviceMemory &memory, std::vector<BoundArgument> given) override {
    std::vector<LaunchArgument> arguments;
    for (const BoundArgument &argument : given) {
      LaunchArgument own;
      own.value = argument.value;
      if (argument.isArray)
        own.tensor = StoredTensor{argument.info.dtype, argument.info.shape,
                                  argument.info.strides, *argument.info.layout,
                                  argument.address};
      arguments.push_back(std::move(own));
    }
    plan = std::make_unique<JobPlan>(std::move(*job), memory);
    job.reset();
    launch = plan->prepare(std::move(arguments), allowsTiledLaunch());
  }

  double run(const RunOptions &options) override {
    auto start = std::chrono::steady_clock::now();
    plan->run(launch, options);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }

  TimingReport simulate(const RunOptions &options,
                        const TimingOptions &timing) override {
    return plan->simulate(launch, options, timing);
  }

private:
  /// The longest order that the constructor of layouts takes.
  static constexpr size_t kMaxOrder = 6;

  /// Until it is bound.
  std::optional<Job> job;
  std::vector<ArgumentInfo> infos;
  std::unique_ptr<JobPlan> plan;
  Launch launch;
};

} // namespace

std::unique_ptr<Executable>
Executable::load(const std::string &path, const LoadOptions &options,
                 const BundleOptions &bundleOptions) {
  auto refuseBundleOptions = [&](const char *what) {
    if (bundleOptions.lenient || bundleOptions.hasPool)
      throw Error(std::string(bundleOptions.lenient ? "--lenient" : "--pool") +
                  " is for folders with SuperDSC bundles, '" + path + "' is " +
                  what);
  };
  if (path == "-" || !std::filesystem::is_directory(path))
    refuseBundleOptions("a program");
  else if (spyrecode::isSpyreCode(path))
    refuseBundleOptions("SpyreCode");
  if (path == "-") {
    auto input = llvm::MemoryBuffer::getSTDIN();
    if (!input)
      throw Error("standard input: error: " + input.getError().message());
    return std::make_unique<ProgramExecutable>(
        loadProgramBytes((*input)->getBuffer().str(), options, "<stdin>"));
  }
  if (!std::filesystem::is_directory(path))
    return std::make_unique<ProgramExecutable>(loadProgramFile(path, options));
  if (!spyrecode::isSpyreCode(path))
    return std::make_unique<ProgramExecutable>(
        loadProgramBytes(lowerBundles(path, bundleOptions), options, path));
  if (!options.entry.empty())
    throw Error("--entry is for programs, '" + path + "' is SpyreCode");
  superdsc::Report report;
  std::optional<Job> job = spyrecode::loadSpyreCode(path, report);
  if (!job)
    throw Error("'" + path + "' is not valid SpyreCode:\n" + report.toText());
  return std::make_unique<JobExecutable>(std::move(*job));
}
