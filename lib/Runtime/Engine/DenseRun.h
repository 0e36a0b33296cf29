// SPDX-License-Identifier: Apache-2.0
//===- DenseRun.h - Elementwise loops on dense memory -----------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_DENSERUN_H
#define SPYRE_LIB_RUNTIME_ENGINE_DENSERUN_H

#include "StructuredLoop.h"

#include <cstdint>
#include <vector>

namespace spyre::runtime {

/// Runs an elementwise loop on `count` elements that lie one behind the other
/// in the host's memory of the device, as they are stored there. `places` are
/// of the first of each operand, inputs first; of those for which `isOne` is
/// true there is but one.
void runOnDense(Core &core, const StructuredLoop &loop,
                const std::vector<bool> &isOne, uint8_t *const *places,
                int64_t count);

/// What a chain of DL16 reads.
struct ChainInput {
  /// Codes, the first ones of which come again behind the first `period`.
  const uint8_t *codes = nullptr;
  int64_t period = INT64_MAX;
  float value = 0; ///< without codes: of all points
};

/// Runs a loop whose body is one chain of DL16 (StructuredLoop::
/// isChainOfHalves) on `count` codes that lie one behind the other, and writes
/// codes. An input has codes.
void runChain(Core &core, const StructuredLoop &loop,
              const std::vector<ChainInput> &inputs, uint8_t *results,
              int64_t count);

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_DENSERUN_H
