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

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_DENSERUN_H
