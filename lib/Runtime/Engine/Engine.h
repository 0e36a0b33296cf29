// SPDX-License-Identifier: Apache-2.0
//===- Engine.h - State of one run ------------------------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_ENGINE_H
#define SPYRE_LIB_RUNTIME_ENGINE_ENGINE_H

#include "Core.h"
#include "Moves.h"
#include "Stacks.h"

#include <chrono>
#include <memory>
#include <vector>

namespace spyre::runtime {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The state of one run of a program: buffers and slots of its workers. It is
/// kept for later runs.
struct RunState {
  RunState(const Plan &plan, bool ieee);
  ~RunState();

  void start(DeviceMemory &memory, const RunOptions &options);
  /// Gives the buffers back. Afterwards start() may be called again.
  void finish();
  /// Runs `callee` over its grid. If cores fail, throws the error of the one
  /// with the lowest number.
  void call(const Function &callee, const Scalar *args);

  const Plan &plan;
  const bool ieee;
  std::unique_ptr<MemoryCheck> shadow; ///< CheckLevel::Full, during a run
  HostWork hostWork;                   ///< of the last run, after finish()

private:
  struct Worker {
    std::unique_ptr<BufferPool> pool; ///< null between runs
    std::vector<Core *> used;         ///< cores of this run
    /// Per function: a core for each member of a gang.
    std::vector<std::vector<std::unique_ptr<Core>>> cores;
  };
  Core &core(int worker, const Function &function, int member = 0);
  void addWorkers(int count);
  /// The number of threads to use for `numTasks` tasks of a kernel, according
  /// to the time that its earlier calls took.
  int threadsFor(const Function &callee, int64_t numTasks) const;
  /// Records that a call of a kernel took `seconds`, summed over its threads.
  void noteWork(const Function &callee, double seconds);
  /// That for these arguments; null if none is possible.
  Shortcut *shortcutOf(const Function &callee, const Scalar *args);
  /// Calls a kernel whose cores wait for each other.
  void callCommunicating(const Function &callee, const Scalar *args);
  /// Runs `count` cores from number `first` on, of at most
  /// Function::kLargeGang, on one thread.
  void runGang(const Function &callee, const Scalar *args, int worker,
               int64_t first, int64_t count);

  DeviceMemory *memory = nullptr;
  bool zeroOutside = false;
  CheckLevel check = CheckLevel::Bounds;
  int threads = 1;
  uint64_t epoch = 0;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<double>
      work; ///< per function: thread seconds of a call, -1: unknown
  struct KnownKernel {
    bool isKnown = false;
    std::unique_ptr<TileBlock> tiles;
    /// One for each kind of arguments, most of which are addresses in LX.
    std::vector<std::unique_ptr<Shortcut>> shortcuts;
    size_t next = 0; ///< the one that is the oldest
  };
  std::vector<KnownKernel> knownKernels; ///< per function
  Shortcut::Kind kind;                   ///< of the arguments at hand
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_ENGINE_H
