// SPDX-License-Identifier: Apache-2.0
//===- Transfer.h - Moving values between host and device -------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_TRANSFER_TRANSFER_H
#define SPYRE_LIB_TORCH_TRANSFER_TRANSFER_H

#include "../Profiling/Trace.h"
#include "../Storage/Storage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace spyre::pytorch {

/// Fails unless the storage holds all that the tensor addresses.
void checkBacked(const at::Tensor &tensor, const SpyreStorageImpl &storage);

/// The device elements of a tensor, packed, and back.
std::vector<uint8_t> gather(const at::Tensor &tensor,
                            const SpyreStorageImpl &storage);
void scatter(const std::vector<uint8_t> &packed, const at::Tensor &tensor,
             SpyreStorageImpl &storage);

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

/// Copies the values of a spyre tensor to a CPU tensor of the same sizes and
/// any dtype, without an image of a large storage where its layout allows that.
void copyToHost(const at::Tensor &source, const at::Tensor &destination);

/// Elements from which on a tensor is moved piece by piece, and those of a
/// piece: PyTorch computes with so few on one thread. Threads that wait for
/// each other at every piece take longer than the work.
inline constexpr int64_t kLargeElements = int64_t(1) << 22;
inline constexpr int64_t kPieceElements = int64_t(1) << 15;

/// Calls function(part of a, the same part of b, number of its first element)
/// for parts of two tensors of one size, in row-major order.
template <typename Function>
void forEachPiece(const at::Tensor &a, const at::Tensor &b, Function function,
                  int64_t first = 0) {
  if (a.numel() <= kPieceElements) {
    function(a, b, first);
    return;
  }
  int64_t rows = a.size(0), row = a.numel() / rows;
  if (row > kPieceElements) {
    for (int64_t i = 0; i < rows; ++i)
      forEachPiece(a.select(0, i), b.select(0, i), function, first + i * row);
    return;
  }
  int64_t most = kPieceElements / row;
  for (int64_t i = 0; i < rows; i += most) {
    int64_t count = std::min(most, rows - i);
    function(a.narrow(0, i, count), b.narrow(0, i, count), first + i * row);
  }
}

/// Stores what `make` makes: CPU tensors of the sizes given, for the elements
/// from number `first` on in row-major order. Of a large tensor it is asked for
/// one piece after the other.
void storeMade(const at::Tensor &destination,
               const std::function<at::Tensor(c10::IntArrayRef sizes,
                                              int64_t first)> &make);

/// Stores the storage under a tensor in another layout from now on; its values
/// stay. Throws if the layout cannot hold them.
void changeLayout(const at::Tensor &tensor, const TensorLayout &layout);

/// Whether `layout`, as that of a tensor with these sizes and strides, says of
/// every element of a view where it is: at the place that the storage has it,
/// counted from the view's first element.
bool describes(const TensorLayout &layout, const at::Tensor &view);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_TRANSFER_TRANSFER_H
