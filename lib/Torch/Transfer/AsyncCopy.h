// SPDX-License-Identifier: Apache-2.0
//===- AsyncCopy.h - Copies that do not wait --------------------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_TRANSFER_ASYNCCOPY_H
#define SPYRE_LIB_TORCH_TRANSFER_ASYNCCOPY_H

#include "../Storage/Storage.h"

namespace spyre::pytorch {

/// Queues a copy between pinned host memory and the device; false if it is none
/// that can be.
bool copyAsynchronously(const at::Tensor &source,
                        const at::Tensor &destination);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_TRANSFER_ASYNCCOPY_H
