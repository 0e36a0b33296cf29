// SPDX-License-Identifier: Apache-2.0
#include "Growth.h"
#include "../Profiling/Trace.h"
#include "../Storage/Sticks.h"

#include <ATen/core/jit_type.h>
#include <atomic>
#include <numeric>

namespace spyre::pytorch {

static std::atomic<int64_t> numShared{0}, numCopied{0}, bytesCopied{0};

GrowthCounts growthCounts() { return {numShared, numCopied, bytesCopied}; }

void countGrowth(int64_t bytes) {
  ++(bytes ? numCopied : numShared);
  bytesCopied += bytes;
}

void letGrow(SpyreStorageImpl &storage, size_t dim) {
  StorageFormat &format = *storage.format;
  if (!format.room && format.layout.strideMap.back() != format.strides.at(dim))
    format.room = {dim, format.sizes[dim], format.layout};
}

at::Tensor grow(const at::Tensor &tensor, const StorageFormat &format) {
  SpyreStorageImpl &old = storageOf(tensor);
  size_t dim = format.room->dim;
  int64_t rows = old.format->sizes[dim], newRows = format.sizes[dim];
  c10::DataPtr block;
  if (old.format->layout.deviceSize == format.layout.deviceSize)
    block = extend(old.data_ptr(), rows, newRows);
  int64_t bytes = 0;
  if (!block) {
    const TensorLayout &tight = old.format->tightLayout();
    bytes = tight.sizeInBytes();
    TransferScope scope(TransferKind::DeviceToDevice, old.deviceIndex(), bytes);
    // The host's elements may be larger than the device's.
    uint64_t hostBytes = format.numElements() / newRows * format.room->numRows *
                         spyre::hostBytes(format.dtype);
    block =
        copySticks(tight, old.format->layout, old.deviceBytes(), format.layout,
                   old.deviceIndex(), blockSize(format, hostBytes));
  }
  countGrowth(bytes);
  return makeTensor(format, std::move(block));
}

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

std::optional<int64_t> firstGrowingRow(const at::Tensor &tensor, size_t dim) {
  const SpyreStorageImpl &storage = storageOf(tensor);
  if (!isNative(tensor) || storage.nbytes() == 0 || tensor.numel() == 0)
    return std::nullopt;
  const StorageFormat &format = *storage.format;
  c10::IntArrayRef sizes(format.sizes), strides(format.strides);
  if (!format.room || format.room->dim != dim ||
      tensor.sizes().size() != sizes.size() ||
      strides.vec() != c10::TensorType::contiguousStridesOf(sizes))
    return std::nullopt;
  for (size_t d = 0; d < sizes.size(); ++d)
    if ((d != dim && tensor.sizes()[d] != sizes[d]) ||
        (tensor.sizes()[d] > 1 && tensor.strides()[d] != strides[d]))
      return std::nullopt;
  int64_t first = sizes[dim] - tensor.sizes()[dim];
  if (tensor.storage_offset() != first * strides[dim])
    return std::nullopt;
  return first;
}

std::pair<at::Tensor, bool> growRows(const at::Tensor &tensor, size_t dim,
                                     int64_t numRows) {
  SpyreStorageImpl &old = storageOf(tensor);
  HostDtype dtype = old.format->dtype;
  auto withRows = [&](int64_t count) {
    std::vector<int64_t> sizes = tensor.sizes().vec();
    sizes[dim] = count;
    return *rowsOf(dtype, sizes, dim);
  };
  int64_t oldRows = old.format->sizes[dim];
  int64_t first = *firstGrowingRow(tensor, dim);
  Rows before = withRows(oldRows), after = withRows(numRows);
  auto sizeOf = [](const Rows &rows) {
    return blockSize(rows.format,
                     rows.format.numElements() * hostBytes(rows.format.dtype));
  };
  uint64_t bytesPerRow =
      after.elements * storageBytes(after.format.layout.format);
  uint64_t wanted = sizeOf(withRows(2 * numRows));
  const Allocation *own = allocationOf(old.data_ptr());
  c10::DataPtr block;
  // A block for far more rows would be kept for a few.
  if (before.format.layout == old.format->layout &&
      first * bytesPerRow + sizeOf(after) <= own->sizeInBytes &&
      2 * own->block->sizeInBytes <= 3 * wanted)
    block =
        extend(old.data_ptr(), oldRows, first + numRows, first, bytesPerRow);
  bool isShared = static_cast<bool>(block);
  if (!isShared)
    block = allocate(old.deviceIndex(), wanted);
  countGrowth(isShared ? 0
                       : withRows(oldRows - first).format.layout.sizeInBytes());
  at::Tensor result = makeTensor(after.format, std::move(block));
  letGrow(storageOf(result), dim);
  return {result, isShared};
}

at::Tensor growAndCopyRows(const at::Tensor &tensor, size_t dim,
                           int64_t numRows) {
  auto [result, isShared] = growRows(tensor, dim, numRows);
  auto axis = static_cast<int64_t>(dim);
  if (!isShared)
    result.narrow(axis, 0, tensor.size(axis)).copy_(tensor);
  return result;
}

/// The sticks of a storage with room, on a block without.
static c10::DataPtr copyWithoutRoom(const SpyreStorageImpl &storage,
                                    const StorageFormat &tight) {
  return copySticks(tight.layout, storage.format->layout, storage.deviceBytes(),
                    tight.layout, storage.deviceIndex(),
                    blockSize(tight, storage.nbytes()));
}

c10::Storage storageWithoutRoom(const at::Tensor &tensor, bool isWritten) {
  SpyreStorageImpl &storage = storageOf(tensor);
  if (!storage.format || !storage.format->room)
    return tensor.storage();
  StorageFormat tight = storage.format->withoutRoom();
  bool isMoved = tight.layout.deviceSize != storage.format->layout.deviceSize;
  if (!isWritten)
    return (isMoved ? makeTensor(tight, copyWithoutRoom(storage, tight))
                    : tensor)
        .storage();
  if (isMoved)
    storage.set_data_ptr_noswap(copyWithoutRoom(storage, tight));
  storage.format = std::move(tight);
  return tensor.storage();
}

} // namespace spyre::pytorch
