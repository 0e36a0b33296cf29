// SPDX-License-Identifier: Apache-2.0
//===- Simulator.h - When the steps of a kernel happen ----------*- C++ -*-===//
//
// Units of a core take their steps in program order, each when the steps that
// it needs have ended. Transfers in flight share the bandwidth of device memory
// equally; loads of the same bytes that meet share one broadcast. Tiles for
// other cores go around the ring the shorter way and wait for busy links.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_TIMING_SIMULATOR_H
#define SPYRE_LIB_RUNTIME_TIMING_SIMULATOR_H

#include "CoreSteps.h"

#include "Spyre/Device/DeviceSpec.h"

#include <vector>

namespace spyre::runtime {

/// When a step happens, in seconds from the kernel's start.
struct StepTime {
  double start = 0, end = 0;
  /// Load, Store: when bytes begin to flow. Ring: when its links are free.
  double flow = 0;
  /// The step that it waited for last: core and number, or -1.
  int waitedCore = -1, waitedStep = -1;
};

/// A transfer with device memory or over a link.
struct TransferTime {
  double start, end;
  uint64_t bytes;
  int core, step; ///< the first that asked
  int numSharing; ///< cores served
};

/// A link of the ring: from core `link` upwards (direction 0) or down (1).
struct LinkTime {
  double start, end;
  uint64_t bytes;
  int link, direction;
};

struct KernelTimes {
  /// Before the first step; all other times count from its end.
  double startupSeconds = 0;
  double seconds = 0;
  std::vector<std::vector<StepTime>> steps; ///< per core
  std::vector<TransferTime> transfers;      ///< in order of their end
  std::vector<LinkTime> links;
};

/// `overlap` false: every core does one step after another.
KernelTimes simulateKernel(std::vector<CoreSteps> &cores,
                           const DeviceSpec &spec, bool overlap);

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_TIMING_SIMULATOR_H
