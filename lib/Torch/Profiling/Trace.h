// SPDX-License-Identifier: Apache-2.0
//===- Trace.h - Records of what ran on the cards ---------------*- C++ -*-===//
//
// While a Trace is open, every run of a program leaves a record in it: where
// and when it was launched, and the interval that it occupies on its stream in
// the device's clock. So does every transfer outside of programs; it occupies
// the card's link to the host. Profiler.cpp gives them to PyTorch's profiler.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_PROFILING_TRACE_H
#define SPYRE_LIB_TORCH_PROFILING_TRACE_H

#include "../Card/Card.h"

#include "Spyre/Runtime/Program/Program.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace spyre::pytorch {

/// The host's side of a run; times in seconds of runtime::hostSeconds().
struct LaunchRecord {
  uint64_t id = 0; ///< distinguishes launches of the process
  double begin = 0, end = 0;
  int32_t thread = 0;       ///< the system's number of the launching thread
  uint64_t correlation = 0; ///< PyTorch's id of the operator; 0: none
  c10::DeviceIndex device = 0;
  c10::StreamId stream = 0;
};

struct RunRecord {
  LaunchRecord launch;
  double start = 0; ///< device clock
  std::shared_ptr<const runtime::RunReport> report;
};

enum class TransferKind {
  HostToDevice,
  DeviceToHost,
  DeviceToDevice, ///< on one card, where no program does it
  CardToCard,
  Fill ///< of memory, where no program does it
};

/// "host to device" and so on.
const char *toString(TransferKind kind);

struct TransferRecord {
  LaunchRecord launch; ///< of the call, or of what queued the transfer
  TransferKind kind;
  bool isQueued;   ///< work of a stream; else the call waited
  int64_t bytes;   ///< of the elements, as the device holds them
  double start;    ///< when it occupies the link, in the device's clock
  double seconds;  ///< for how long, predicted
  double hostTime; ///< seconds that the model took
};

/// Collects records from its construction to stop(). Thread-safe.
class Trace {
public:
  Trace();
  ~Trace();
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;

  /// Waits for the work that is queued and takes no more; the records of all
  /// streams, ordered by device, stream and start.
  std::vector<RunRecord> stop();
  /// The transfers, ordered by device and start; after stop().
  std::vector<TransferRecord> takeTransfers();

private:
  friend void recordRun(const RunRecord &record);
  friend void recordTransfer(LaunchRecord launch, TransferKind kind,
                             bool isQueued, int64_t bytes, double begin);

  std::mutex mutex;
  std::vector<RunRecord> records;
  std::vector<TransferRecord> transfers;
};

/// Whether any trace is open.
bool isTracing() noexcept;
/// Starts the record of a launch by the calling thread.
LaunchRecord beginLaunch(c10::DeviceIndex device, c10::StreamId stream);
/// Adds a run to all open traces.
void recordRun(const RunRecord &record);

/// Adds a transfer that has just ended to all open traces; it began at `begin`
/// in the host's clock. It occupies the link no longer than until now, unless
/// others do.
void recordTransfer(LaunchRecord launch, TransferKind kind, bool isQueued,
                    int64_t bytes, double begin);

/// Records a transfer that the calling thread makes in this scope, unless an
/// exception ends it. Cheap where no trace is open.
class TransferScope {
public:
  TransferScope(TransferKind kind, c10::DeviceIndex device, int64_t bytes);
  ~TransferScope();
  TransferScope(const TransferScope &) = delete;
  TransferScope &operator=(const TransferScope &) = delete;

private:
  TransferKind kind;
  int64_t bytes;
  int numExceptions;
  std::optional<LaunchRecord> launch;
};

/// PyTorch's ids of the operators that the calling thread is in.
void pushCorrelation(uint64_t id);
void popCorrelation();

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_PROFILING_TRACE_H
