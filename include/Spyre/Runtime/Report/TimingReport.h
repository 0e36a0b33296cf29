// SPDX-License-Identifier: Apache-2.0
//===- TimingReport.h - What the timing engine found out --------*- C++ -*-===//
//
// Times are seconds of the modelled device from the start of the program,
// sizes bytes.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_RUNTIME_REPORT_TIMINGREPORT_H
#define SPYRE_RUNTIME_REPORT_TIMINGREPORT_H

#include "Spyre/Device/DeviceSpec.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace spyre::runtime {

/// Units of the device in the order of UnitShares.
enum class TimedUnit { PT, SFU, Load, Store, Ring, DeviceMemory };
constexpr int kNumTimedUnits = 6;
/// "pt", "sfu", "load", "store", "ring", "device memory".
const char *toString(TimedUnit unit);

/// Traffic of one argument of the program with device memory.
struct TensorTraffic {
  std::string name; ///< of the argument; "other" for anything else
  uint64_t bytesRead = 0, bytesWritten = 0;
};

/// One call of one kernel.
struct KernelReport {
  std::string name;
  std::string location; ///< "file:line:col" of the kernel or its call
  int64_t numCores = 1;
  double startSeconds = 0;
  double predictedSeconds = 0;
  /// Between these lie 8 of 10 measured times of such kernels
  /// (DeviceSpec::getTimeFactors).
  double lowSeconds = 0, highSeconds = 0;
  /// Closed-form estimate for the same work, for comparison.
  double costModelSeconds = 0;
  /// Traffic with device memory, in whole sticks: what several cores read at
  /// once is one broadcast, counted once.
  uint64_t deviceBytesRead = 0, deviceBytesWritten = 0;
  uint64_t deviceBytesDemanded = 0; ///< read, counted for every core
  /// With buffers of the plan in LX, over all cores.
  uint64_t lxBytesRead = 0, lxBytesWritten = 0;
  uint64_t ringBytes = 0;     ///< received from other cores
  uint64_t sfuElementOps = 0; ///< over all cores
  uint64_t ptMacs = 0;        ///< over all cores
  double ptFP16Macs = 0;      ///< of fp16, in the time of the ptMacs
  uint64_t flops() const { return sfuElementOps + 2 * ptMacs; }

  /// The unit that takes most of the time of the slowest chain of steps: "pt",
  /// "sfu", "lx", "device memory", "ring" or "latency".
  std::string bottleneck;
  /// Share of predictedSeconds that rests on guessed numbers of the device.
  double guessedShare = 0;
  /// Busy share of predictedSeconds, mean over the kernel's cores; the ring's
  /// is that of its busiest link.
  double utilisation[kNumTimedUnits] = {};

  /// Roofline: flops per byte of device memory (infinite without traffic), what
  /// the unit and the memory could do at best with it, and what is done.
  double arithmeticIntensity = 0;
  double attainableFlopsPerSecond = 0;
  double flopsPerSecond = 0;
  bool isMemoryBound = false;
};

/// One slice or counter value of the trace.
struct TraceEvent {
  enum Kind : uint8_t { Slice, Counter } kind = Slice;
  int process = 0; ///< 0: program, 1: device memory, 2: ring, 3 + core
  int lane = 0;
  int name = 0;     ///< into TimingReport::names
  int location = 0; ///< into TimingReport::names
  double start = 0, seconds = 0;
  uint64_t bytes = 0; ///< of a slice, or the counter's value
  double lowSeconds = 0, highSeconds = 0; ///< of a kernel
};

struct TimingReport {
  std::vector<KernelReport> kernels; ///< in order of execution
  double launchSeconds = 0;          ///< at the start
  double predictedSeconds = 0;       ///< kernels plus one launch
  /// Sums of the kernels' bounds, plus the launch: what is wrong with the model
  /// is wrong for all kernels of a kind, so errors do not cancel.
  double lowSeconds = 0, highSeconds = 0;
  uint64_t deviceBytesRead = 0, deviceBytesWritten = 0;
  uint64_t deviceBytesDemanded = 0, lxBytesRead = 0, lxBytesWritten = 0;
  uint64_t ringBytes = 0, sfuElementOps = 0, ptMacs = 0;
  /// The unit that takes most of the time, or "launch".
  std::string bottleneck;
  double guessedShare = 0;
  double utilisation[kNumTimedUnits] = {}; ///< weighted by kernels' times
  std::vector<TensorTraffic> tensors;      ///< arguments with traffic
  /// Places whose values depend on data; the engine took them as zero.
  std::vector<std::string> dataDependent;
  bool overlap = true;

  /// Filled on request.
  std::vector<TraceEvent> events;
  std::vector<std::string> names;
  std::map<std::pair<int, int>, std::string> lanes; ///< (process, lane)

  /// A table for people.
  std::string toText() const;
  /// A JSON object.
  std::string toJson() const;
  /// Chrome's trace event format, which Perfetto reads.
  std::string toChromeTrace() const;
};

/// Adds what a part, a kernel or a run, moves and computes.
template <class Part>
void addWork(TimingReport &all, const Part &part) {
  all.deviceBytesRead += part.deviceBytesRead;
  all.deviceBytesWritten += part.deviceBytesWritten;
  all.deviceBytesDemanded += part.deviceBytesDemanded;
  all.lxBytesRead += part.lxBytesRead;
  all.lxBytesWritten += part.lxBytesWritten;
  all.ringBytes += part.ringBytes;
  all.sfuElementOps += part.sfuElementOps;
  all.ptMacs += part.ptMacs;
}

/// The report of runs that follow one another.
TimingReport joinReports(std::vector<TimingReport> runs);

struct TimingOptions {
  DeviceSpec spec;
  bool overlap = true; ///< false: each core does one step after another
  bool events = false; ///< fill TimingReport::events
};

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_REPORT_TIMINGREPORT_H
