// SPDX-License-Identifier: Apache-2.0
// torch.cat by itself: copies, unless a cache grows.
//
// What a cat has made, and the next one begins with, is stored so that the rows
// along the dimension of both follow each other in memory, in a block with room
// for more of them (Launch/Growth.h says who may have which rows of it). The
// next cat stores what is new behind them: as in a storage of just these rows,
// so that its program depends on how many they are and on nothing else. It may
// begin with the last rows only.
#include "../Eager/Eager.h"
#include "../Eager/EagerCall.h"
#include "../Launch/Growth.h"
#include "Fallback.h"

#include "Spyre/Device/DataFormat.h"

#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/IListRef.h>
#include <torch/library.h>

namespace spyre::pytorch {

namespace {

/// Whether a tensor is the contiguous home of its storage.
bool isContiguousHome(const at::Tensor &tensor) {
  return isNative(tensor) && storageOf(tensor).nbytes() != 0 &&
         tensor.is_contiguous() && tensor.storage_offset() == 0 &&
         tensor.sizes() == c10::IntArrayRef(storageOf(tensor).format->sizes);
}

/// Whether the tensors have rows of one kind, those behind the first one no
/// more of them than it has: prompts are fed whole, then tokens.
bool areRows(const std::vector<at::Tensor> &tensors, size_t dim) {
  int64_t added = 0;
  for (const at::Tensor &tensor : tensors) {
    const at::Tensor &first = tensors[0];
    if (!tensor.defined() || tensor.device() != first.device() ||
        tensor.scalar_type() != first.scalar_type() ||
        tensor.dim() != first.dim() || tensor.numel() == 0)
      return false;
    for (int64_t d = 0; d < tensor.dim(); ++d)
      if (d != static_cast<int64_t>(dim) && tensor.size(d) != first.size(d))
        return false;
    added += tensor.size(static_cast<int64_t>(dim));
  }
  return tensors.size() > 1 &&
         added <= 2 * tensors[0].size(static_cast<int64_t>(dim));
}

/// The result of a cat whose first tensor is what one has made, or the last
/// rows of that; nothing if this is none of a cache.
std::optional<at::Tensor> grow(const std::vector<at::Tensor> &tensors,
                               size_t dim) {
  const at::Tensor &first = tensors[0];
  if (!firstGrowingRow(first, dim) || !areRows(tensors, dim))
    return std::nullopt;
  auto count = [&](const at::Tensor &tensor) {
    return tensor.size(static_cast<int64_t>(dim));
  };
  HostDtype dtype = storageOf(first).format->dtype;
  std::optional<Rows> one = rowsOf(dtype, first.sizes(), dim);
  if (!one)
    return std::nullopt;
  int64_t numRows = 0;
  for (const at::Tensor &tensor : tensors)
    numRows += count(tensor);
  auto [result, isShared] = growRows(first, dim, numRows);
  int64_t row = isShared ? count(first) : 0;
  for (size_t i = isShared ? 1 : 0; i < tensors.size(); ++i) {
    GrownPart part{result.storage(), first.storage(), row * one->elements};
    if (!copyInto(tensors[i], rowsOf(dtype, tensors[i].sizes(), dim)->format,
                  part))
      return std::nullopt;
    row += count(tensors[i]);
  }
  return result;
}

at::Tensor cat(const at::ITensorListRef &list, int64_t dim) {
  std::vector<at::Tensor> tensors;
  for (const at::Tensor &tensor : list)
    tensors.push_back(tensor);
  bool mayGrow = !tensors.empty() && tensors[0].defined() &&
                 tensors[0].device().type() == kSpyre && tensors[0].dim() > 1 &&
                 dim >= -tensors[0].dim() && dim < tensors[0].dim();
  size_t axis = mayGrow ? c10::maybe_wrap_dim(dim, tensors[0].dim()) : 0;
  if (mayGrow)
    if (std::optional<at::Tensor> result = grow(tensors, axis))
      return *result;
  static const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::cat", "");
  torch::jit::Stack stack{c10::List<at::Tensor>(tensors), dim};
  runBoxed(op, &stack);
  at::Tensor result = stack.back().toTensor();
  if (mayGrow && areRows(tensors, axis) && isContiguousHome(result) &&
      rowsOf(storageOf(result).format->dtype, result.sizes(), axis))
    letGrow(storageOf(result), axis);
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("cat", cat); }

} // namespace

} // namespace spyre::pytorch
