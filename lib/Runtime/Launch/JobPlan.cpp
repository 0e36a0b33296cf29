// SPDX-License-Identifier: Apache-2.0
//===- JobPlan.cpp - Programs in device memory, ready to launch -----------===//

#include "Spyre/Runtime/Launch/JobPlan.h"
#include "Spyre/Support/BrokenRule.h"
#include "Spyre/Support/Environment.h"

#include "llvm/Support/Endian.h"

#include <algorithm>
#include <cstring>

using namespace spyre;
using namespace spyre::runtime;
namespace endian = llvm::support::endian;

const char *spyre::runtime::toString(JobStep::Kind kind) {
  switch (kind) {
  case JobStep::H2D:
    return "H2D";
  case JobStep::D2H:
    return "D2H";
  case JobStep::Compute:
    return "Compute";
  case JobStep::HostCompute:
    return "HostCompute";
  }
  return "Unknown";
}

bool spyre::runtime::allowsTiledLaunch() {
  return environment::allowTiledLaunch();
}

JobPlan::JobPlan(Job given, DeviceMemory &memory)
    : job(std::move(given)), memory(memory),
      base(memory.allocate(job.sizeInBytes)) {
  for (const Job::Transfer &transfer : job.transfers)
    std::memcpy(memory.at(base + transfer.offset), transfer.bytes.data(),
                transfer.bytes.size());
  for (uint64_t bytes : job.bufferBytes)
    buffers.emplace_back(bytes, '\0');
}

JobPlan::~JobPlan() { memory.free(base); }

JobStep::Kind JobPlan::stepKind(size_t step) const {
  if (step >= job.steps.size())
    throw Error("the plan has " + std::to_string(job.steps.size()) +
                " steps, there is no step " + std::to_string(step));
  return job.steps[step].kind;
}

std::vector<ArgumentInfo> JobPlan::arguments() const {
  std::vector<ArgumentInfo> result;
  for (const ArgumentInfo &argument :
       job.images.front().image.program->arguments())
    if (argument.kind != ArgumentInfo::Pool)
      result.push_back(argument);
  return result;
}

Launch JobPlan::prepare(std::vector<LaunchArgument> arguments,
                        bool allowTiledLaunch) const {
  Launch launch;
  launch.arguments = std::move(arguments);
  for (const Job::PlacedImage &placed : job.images)
    launch.grid = planLaunch(placed.image, launch.arguments, allowTiledLaunch);
  // SPYRECODE-LAUNCH-C6
  // If several programs follow each other, each tensor must have a part for
  // each tile: a program would read parts of other tiles otherwise.
  for (const LaunchGrid::Axis &axis : launch.grid.axes)
    for (size_t i = 0; job.images.size() > 1 && i < axis.tileBytes.size(); ++i)
      if (launch.arguments[i].tensor && axis.tileBytes[i] == 0)
        throw BrokenRule("SPYRECODE-LAUNCH-C6",
                         "in a job with several programs, all tensors must be "
                         "tiled as the largest are; argument " +
                             std::to_string(i) + " is not");
  return launch;
}

std::vector<int64_t> JobPlan::getInputs(const Launch &launch,
                                        int64_t tile) const {
  std::vector<int64_t> inputs;
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const LaunchArgument &argument = launch.arguments[i];
    inputs.push_back(argument.tensor
                         ? static_cast<int64_t>(argument.tensor->address +
                                                launch.grid.offsetOf(tile, i))
                         : argument.value);
  }
  return inputs;
}

void JobPlan::computeOnHost(const JobStep &step,
                            const std::vector<int64_t> &inputs) {
  std::vector<int64_t> values;
  if (step.inputBuffer) {
    const std::string &source = buffers[*step.inputBuffer];
    for (int64_t i = 0; i < step.numInputs; ++i)
      values.push_back(
          static_cast<int64_t>(endian::read64le(source.data() + 8 * i)));
  } else if (step.numInputs != 0) {
    values = inputs;
  }
  std::string &out = buffers[step.buffer];
  std::fill(out.begin(), out.end(), '\0');
  for (size_t row = 0; row < step.rows.size(); ++row) {
    const CorrectionRow &rule = step.rows[row];
    int64_t value = rule.value;
    if (rule.source == CorrectionRow::Input)
      value = values[rule.index] / rule.divisor;
    else if (rule.source == CorrectionRow::Job)
      value = static_cast<int64_t>(base) + rule.value;
    endian::write64le(out.data() + row * kCorrectionRowBytes,
                      static_cast<uint64_t>(value));
  }
}

std::vector<int64_t>
JobPlan::getValues(const Job::PlacedImage &placed,
                   const std::vector<int64_t> &inputs) const {
  const ProgramImage &image = placed.image;
  const std::vector<ArgumentInfo> &arguments = image.program->arguments();
  std::vector<int64_t> values;
  if (image.numCorrectionRows != 0) {
    const uint8_t *rows =
        memory.at(base + placed.offset + image.correctionOffset);
    if (static_cast<int64_t>(endian::read64le(rows)) != image.correctionTag)
      throw Error("the program has no correction tensor");
    for (size_t i = 1; i <= arguments.size(); ++i)
      values.push_back(static_cast<int64_t>(
          endian::read64le(rows + i * kCorrectionRowBytes)));
    return values;
  }
  size_t next = 0;
  for (const ArgumentInfo &argument : arguments) {
    if (argument.kind == ArgumentInfo::Pool) {
      values.push_back(
          static_cast<int64_t>(base + placed.offset + image.poolOffset));
      continue;
    }
    int64_t value = inputs[next++];
    values.push_back(argument.kind == ArgumentInfo::Array
                         ? value / argument.elementSizeInBytes
                         : value);
  }
  return values;
}

std::optional<RunReport> JobPlan::runStep(const JobStep &step,
                                          const std::vector<int64_t> &inputs,
                                          const RunOptions &options) {
  switch (step.kind) {
  case JobStep::HostCompute:
    computeOnHost(step, inputs);
    return std::nullopt;
  case JobStep::H2D:
    std::memcpy(memory.at(base + step.offset), buffers[step.buffer].data(),
                step.sizeInBytes);
    return std::nullopt;
  case JobStep::D2H:
    std::memcpy(buffers[step.buffer].data(), memory.at(base + step.offset),
                step.sizeInBytes);
    return std::nullopt;
  case JobStep::Compute:
    break;
  }
  const Job::PlacedImage &placed = job.images[step.image];
  return placed.image.program->run(memory, getValues(placed, inputs), options);
}

double JobPlan::run(const Launch &launch, const RunOptions &options,
                    std::vector<RunReport> *reports) {
  std::lock_guard<std::mutex> lock(mutex);
  double seconds = 0;
  for (int64_t tile = 0; tile < launch.grid.numTiles(); ++tile) {
    std::vector<int64_t> inputs = getInputs(launch, tile);
    for (const JobStep &step : job.steps) {
      std::optional<RunReport> report = runStep(step, inputs, options);
      if (!report)
        continue;
      seconds += report->predictedSeconds;
      if (reports)
        reports->push_back(std::move(*report));
    }
  }
  return seconds;
}

TimingReport JobPlan::simulate(const Launch &launch, const RunOptions &options,
                               const TimingOptions &timing) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<TimingReport> reports;
  for (int64_t tile = 0; tile < launch.grid.numTiles(); ++tile) {
    std::vector<int64_t> inputs = getInputs(launch, tile);
    for (const JobStep &step : job.steps) {
      if (step.kind != JobStep::Compute) {
        runStep(step, inputs, options);
        continue;
      }
      const Job::PlacedImage &placed = job.images[step.image];
      reports.push_back(placed.image.program->simulate(
          memory, getValues(placed, inputs), options, timing));
    }
  }
  return joinReports(std::move(reports));
}
