// SPDX-License-Identifier: Apache-2.0
//===- Copy.h - Copies in any direction, and fills --------------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_TRANSFER_COPY_H
#define SPYRE_LIB_TORCH_TRANSFER_COPY_H

#include "../Storage/Storage.h"

namespace spyre::pytorch {

/// Copies between spyre tensors of the same sizes. Equal device formats copy
/// bits; otherwise values convert without a detour over a narrower format.
void copyOnDevice(const at::Tensor &source, const at::Tensor &destination);

/// Copies any direction; sizes of `source` must expand to `destination`'s.
/// `nonBlocking` copies between the device and pinned host memory are queued on
/// the current stream where they move whole tensors of one dtype and strides.
void copyTensor(const at::Tensor &source, const at::Tensor &destination,
                bool nonBlocking = false);

/// The elements of an expanded tensor, each once: a view with one of each
/// dimension along which they repeat.
at::Tensor withoutRepeats(const at::Tensor &tensor);

/// Sets every element of a spyre tensor.
void fillTensor(const at::Tensor &tensor, const c10::Scalar &value);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_TRANSFER_COPY_H
