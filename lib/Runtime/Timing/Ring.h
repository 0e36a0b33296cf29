// SPDX-License-Identifier: Apache-2.0
//===- Ring.h - Ways around the ring of cores -------------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_TIMING_RING_H
#define SPYRE_LIB_RUNTIME_TIMING_RING_H

#include "Spyre/Device/DeviceSpec.h"

#include <algorithm>
#include <cstdint>

namespace spyre::runtime {

/// All cores of the card are on the ring, also those that have nothing to do.
inline int getRingSize(int64_t numCores, const DeviceSpec &spec) {
  return static_cast<int>(std::max(numCores, spec.numCores));
}

/// The shorter way from a core to another.
struct RingWay {
  RingWay(int from, int to, int ringSize) : from(from), ringSize(ringSize) {
    int up = (to - from + ringSize) % ringSize;
    direction = up * 2 <= ringSize ? 0 : 1;
    numHops = direction == 0 ? up : ringSize - up;
  }

  /// The core at which a hop begins, which names the link in its direction.
  int getLink(int hop) const {
    return direction == 0 ? (from + hop) % ringSize
                          : (from - hop + ringSize) % ringSize;
  }

  int from, ringSize;
  int direction; ///< 0: to the next core, 1: to the one before
  int numHops;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_TIMING_RING_H
