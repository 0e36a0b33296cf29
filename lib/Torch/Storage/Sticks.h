// SPDX-License-Identifier: Apache-2.0
//===- Sticks.h - Sticks in memory ------------------------------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_STORAGE_STICKS_H
#define SPYRE_LIB_TORCH_STORAGE_STICKS_H

#include "../Card/Card.h"

#include "Spyre/Device/TensorLayout.h"

#include <cstdint>

namespace spyre::pytorch {

/// A new block of `sizeInBytes`, as allocate() makes it, with the sticks that
/// `tight` has. They lie at `source` as `from` says, and in the block as `to`
/// does, which differ from `tight` in how many positions one device dimension
/// has, at most.
c10::DataPtr copySticks(const TensorLayout &tight, const TensorLayout &from,
                        const uint8_t *source, const TensorLayout &to,
                        c10::DeviceIndex index, uint64_t sizeInBytes);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_STORAGE_STICKS_H
