// SPDX-License-Identifier: Apache-2.0
//===- Timing.h - A program in time, without data ---------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_TIMING_TIMING_H
#define SPYRE_LIB_RUNTIME_TIMING_TIMING_H

#include "../Engine/Core.h"
#include "CoreSteps.h"
#include "Simulator.h"

#include "Spyre/Runtime/Report/TimingReport.h"

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace spyre::runtime {

/// One walk over a program.
class TimingRun {
public:
  TimingRun(const Plan &plan, DeviceMemory &memory,
            const std::vector<int64_t> &argValues, const RunOptions &options,
            const TimingOptions &timing);
  ~TimingRun();

  TimingReport run(const Scalar *args);

  /// A call of a sequence: kernels follow one another.
  void call(const Function &callee, const Scalar *args, int location,
            const Instr *site = nullptr);
  /// A number for the `instance`-th tile of produce op `op`.
  int messageNumber(int op, int64_t instance);

private:
  Core &core(const Function &function);
  void runKernel(const Function &callee, const Scalar *args, int location,
                 const Instr *site);
  void addReport(const Function &callee, int location,
                 std::vector<CoreSteps> &coreSteps, const KernelTimes &times);
  /// Bytes that moved, per kernel and argument.
  void addTraffic(const std::vector<CoreSteps> &coreSteps,
                  const KernelTimes &times, KernelReport &kernel);
  /// How busy each unit was, of the kernel and of the run.
  void addUtilisation(const std::vector<CoreSteps> &coreSteps,
                      const KernelTimes &times, KernelReport &kernel);
  void addEvents(const Function &callee, int location,
                 const std::vector<CoreSteps> &coreSteps,
                 const KernelTimes &times);
  double startupSeconds(const Instr *site);
  void findCriticalPath(const std::vector<CoreSteps> &coreSteps,
                        const KernelTimes &times, KernelReport &kernel) const;
  void finishReport();
  int nameNumber(const std::string &name);
  void begin(CoreSteps &steps);

  const Plan &plan;
  DeviceMemory &memory;
  const RunOptions &options;
  const TimingOptions &timing;
  TimingReport report;
  double now = 0;
  BufferPool pool;
  std::vector<std::unique_ptr<Core>> cores; ///< per function
  std::unordered_set<const Instr *> sites;  ///< calls that ran
  std::vector<std::pair<int64_t, int>> arguments;
  std::unordered_map<uint64_t, CoreSteps::Sticks> knownSticks;
  std::map<std::pair<int, int64_t>, int> messages;
  std::map<std::string, int> names;
  std::vector<TensorTraffic> traffic; ///< per argument, then others
  double busySeconds[kNumTimedUnits] = {};
  std::map<std::string, double> bottlenecks;
  double guessedSeconds = 0;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_TIMING_TIMING_H
