// SPDX-License-Identifier: Apache-2.0
//===- Sticks.h - Sticks in memory ------------------------------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_STORAGE_STICKS_H
#define SPYRE_LIB_TORCH_STORAGE_STICKS_H

#include "Spyre/Device/TensorLayout.h"

#include <cstdint>

namespace spyre::pytorch {

/// Copies the sticks that `tight` has. The layouts differ from it in how many
/// positions one device dimension has, at most.
void copySticks(const TensorLayout &tight, const TensorLayout &from,
                const uint8_t *source, const TensorLayout &to,
                uint8_t *destination);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_STORAGE_STICKS_H
