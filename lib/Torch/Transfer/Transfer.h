// SPDX-License-Identifier: Apache-2.0
//===- Transfer.h - Moving values between host and device -------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_TRANSFER_TRANSFER_H
#define SPYRE_LIB_TORCH_TRANSFER_TRANSFER_H

#include "../Profiling/Trace.h"
#include "../Storage/Storage.h"

#include <vector>

namespace spyre::pytorch {

/// Fails unless the storage holds all that the tensor addresses.
void checkBacked(const at::Tensor &tensor, const SpyreStorageImpl &storage);

/// The device elements of a tensor, packed, and back.
std::vector<uint8_t> gather(const at::Tensor &tensor,
                            const SpyreStorageImpl &storage);
void scatter(const std::vector<uint8_t> &packed, const at::Tensor &tensor,
             const SpyreStorageImpl &storage);

/// Records a transfer of the elements of a tensor while it lives.
TransferScope traceTransfer(TransferKind kind, const at::Tensor &onDevice);

/// The values of a spyre tensor in a CPU tensor of the same sizes and dtype.
at::Tensor toHost(const at::Tensor &source);

/// Float values of a tensor without the limits of its host dtype: fp16 and
/// bf16 tensors come as fp32.
at::Tensor widen(const at::Tensor &source);

/// Stores the values of a CPU tensor (any dtype and strides, same sizes) in a
/// spyre tensor; other elements of its storage keep their exact bits.
void fromHost(const at::Tensor &source, const at::Tensor &destination);

/// Stores the storage under a tensor in another layout from now on; its values
/// stay. Throws if the layout cannot hold them.
void changeLayout(const at::Tensor &tensor, const TensorLayout &layout);

/// Whether `layout`, as that of a tensor with these sizes and strides, says of
/// every element of a view where it is: at the place that the storage has it,
/// counted from the view's first element.
bool describes(const TensorLayout &layout, const at::Tensor &view);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_TRANSFER_TRANSFER_H
