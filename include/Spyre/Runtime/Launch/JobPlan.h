// SPDX-License-Identifier: Apache-2.0
//===- JobPlan.h - Programs in device memory, ready to launch ---*- C++ -*-===//
//
// A job that SpyreCode describes: one allocation that holds programs,
// correction tensors and spilled tensors, and the steps of a launch
// (spec/runtime.md, "Kernel launch and SpyreCode").
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_RUNTIME_LAUNCH_JOBPLAN_H
#define SPYRE_RUNTIME_LAUNCH_JOBPLAN_H

#include "Spyre/Runtime/Launch/LaunchGrid.h"

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace spyre::runtime {

/// One row of what a host computation makes: a 64-bit integer.
struct CorrectionRow {
  enum Source {
    Input,   ///< input `index` divided by `divisor`
    Job,     ///< address of byte `value` of the job's allocation
    Constant ///< `value`
  };
  Source source = Constant;
  int64_t index = 0, divisor = 1, value = 0;
};

struct JobStep {
  enum Kind { H2D, D2H, Compute, HostCompute };
  Kind kind = Compute;
  /// H2D and D2H: bytes from the start of the allocation, and how many.
  uint64_t offset = 0, sizeInBytes = 0;
  /// Host buffer that is read (H2D) or written (D2H, HostCompute).
  size_t buffer = 0;
  /// HostCompute: how many 64-bit integers it takes, from the launch's
  /// arguments or from a buffer.
  int64_t numInputs = 0;
  std::optional<size_t> inputBuffer;
  std::vector<CorrectionRow> rows;
  /// Compute: which image.
  size_t image = 0;
};

/// The spec's name of a step.
const char *toString(JobStep::Kind kind);

/// A job, known to be right; loadSpyreCode() makes it.
struct Job {
  struct Transfer {
    uint64_t offset;
    std::string bytes;
  };
  struct PlacedImage {
    uint64_t offset;
    ProgramImage image;
  };
  uint64_t sizeInBytes = 0;
  std::vector<Transfer> transfers;
  /// All take the same arguments.
  std::vector<PlacedImage> images;
  std::vector<uint64_t> bufferBytes;
  std::vector<JobStep> steps;
};

/// A launch that was found to be right.
struct Launch {
  std::vector<LaunchArgument> arguments;
  LaunchGrid grid;
};

/// A job in the memory of a card. Thread-safe: launches exclude each other,
/// because they share the correction tensors.
class JobPlan {
public:
  /// Allocates and transfers. Throws OutOfMemory.
  JobPlan(Job job, DeviceMemory &memory);
  ~JobPlan();
  JobPlan(const JobPlan &) = delete;

  size_t numSteps() const { return job.steps.size(); }
  /// Throws Error for a step that does not exist.
  JobStep::Kind stepKind(size_t step) const;
  uint64_t allocationBytes() const { return job.sizeInBytes; }
  /// The arguments of a launch, without the pool.
  std::vector<ArgumentInfo> arguments() const;

  /// Checks arguments. Throws BrokenRule; nothing has been done then.
  Launch prepare(std::vector<LaunchArgument> arguments,
                 bool allowTiledLaunch = true) const;
  /// Walks the steps, once per tile. Predicted seconds of all tiles together,
  /// and where asked for the report of each run of a program.
  double run(const Launch &launch, const RunOptions &options = {},
             std::vector<RunReport> *reports = nullptr);
  /// Predicts the time of all programs of all tiles, one after the other,
  /// without running them; `launch` is as for run().
  TimingReport simulate(const Launch &launch, const RunOptions &options,
                        const TimingOptions &timing);

private:
  /// A report, if the step runs a program.
  std::optional<RunReport> runStep(const JobStep &step,
                                   const std::vector<int64_t> &inputs,
                                   const RunOptions &options);
  void computeOnHost(const JobStep &step, const std::vector<int64_t> &inputs);
  std::vector<int64_t> getInputs(const Launch &launch, int64_t tile) const;
  /// The values of a program's arguments.
  std::vector<int64_t> getValues(const Job::PlacedImage &placed,
                                 const std::vector<int64_t> &inputs) const;

  const Job job;
  DeviceMemory &memory;
  uint64_t base;
  std::mutex mutex;
  std::vector<std::string> buffers;
};

/// SPYRE_ALLOW_TILED_LAUNCH: 1 (default) or 0. Throws Error for others.
bool allowsTiledLaunch();

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_LAUNCH_JOBPLAN_H
