// SPDX-License-Identifier: Apache-2.0
// torch.cat by itself: copies, unless a cache grows.
//
// What a cat has made, and the next one begins with, is stored so that the rows
// along the dimension of both follow each other in memory, in a block with room
// for more of them (Launch/Growth.h says who may have which rows of it). The
// next cat stores what is new behind them: as in a storage of just these rows,
// so that its program depends on how many they are and on nothing else.
#include "../Eager/Eager.h"
#include "../Eager/EagerCall.h"
#include "../Launch/Growth.h"
#include "Fallback.h"

#include "Spyre/Device/DataFormat.h"

#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/IListRef.h>
#include <torch/library.h>

#include <functional>
#include <numeric>

namespace spyre::pytorch {

namespace {

/// A contiguous home whose rows along a dimension follow each other in memory.
struct Rows {
  StorageFormat format;
  int64_t elements; ///< of the device, in each
};

std::optional<Rows> rowsOf(HostDtype dtype, c10::IntArrayRef sizes,
                           size_t dim) {
  constexpr size_t kMaxRank = 6;
  if (sizes.size() < 2 || sizes.size() > kMaxRank || dim + 1 >= sizes.size())
    return std::nullopt;
  // The second dimension of an order is the outermost one on the device.
  std::vector<int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (sizes.size() > 2) {
    order.erase(order.begin() + static_cast<ptrdiff_t>(dim));
    order.insert(order.begin() + 1, static_cast<int64_t>(dim));
  }
  std::vector<int64_t> strides = c10::TensorType::contiguousStridesOf(sizes);
  TensorLayout layout(sizes.vec(), strides, dtype, order);
  // Of two dimensions, the sticks of a row are further out.
  size_t place = sizes.size() > 2 ? 0 : 1;
  if (place == 1 && layout.deviceSize[0] != 1)
    return std::nullopt;
  int64_t elements = std::accumulate(
      layout.deviceSize.begin() + static_cast<ptrdiff_t>(place) + 1,
      layout.deviceSize.end(), int64_t(1), std::multiplies<>());
  return Rows{{dtype, sizes.vec(), std::move(strides), std::move(layout),
               /*room=*/{}},
              elements};
}

uint64_t blockSize(const StorageFormat &format) {
  return blockSize(format, format.numElements() * hostBytes(format.dtype));
}

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

/// The result of a cat whose first tensor has been made by one; nothing if this
/// is none of a cache.
std::optional<at::Tensor> grow(const std::vector<at::Tensor> &tensors,
                               size_t dim) {
  const at::Tensor &first = tensors[0];
  SpyreStorageImpl &old = storageOf(first);
  if (!old.format || !old.format->room || old.format->room->dim != dim ||
      !isContiguousHome(first) || !areRows(tensors, dim))
    return std::nullopt;
  auto withRows = [&](int64_t count) {
    std::vector<int64_t> sizes = first.sizes().vec();
    sizes[dim] = count;
    return rowsOf(old.format->dtype, sizes, dim);
  };
  int64_t oldRows = old.format->sizes[dim], newRows = 0;
  for (const at::Tensor &tensor : tensors)
    newRows += tensor.size(static_cast<int64_t>(dim));
  std::optional<Rows> before = withRows(oldRows), after = withRows(newRows);
  if (!before || !after)
    return std::nullopt;
  c10::DataPtr block;
  if (before->format.layout == old.format->layout &&
      blockSize(after->format) <= old.deviceSizeInBytes())
    block = extend(old.data_ptr(), oldRows, newRows);
  bool isShared = static_cast<bool>(block);
  if (!isShared)
    block =
        allocate(old.deviceIndex(), blockSize(withRows(2 * newRows)->format));
  at::Tensor result = makeTensor(after->format, std::move(block));
  int64_t row = isShared ? oldRows : 0;
  for (size_t i = isShared ? 1 : 0; i < tensors.size(); ++i) {
    int64_t count = tensors[i].size(static_cast<int64_t>(dim));
    GrownPart part{result.storage(), first.storage(), row * after->elements};
    if (!copyInto(tensors[i], withRows(count)->format, part))
      return std::nullopt;
    row += count;
  }
  letGrow(storageOf(result), dim);
  countGrowth(isShared ? 0 : before->format.layout.sizeInBytes());
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
