// SPDX-License-Identifier: Apache-2.0
#include "Growth.h"
#include "../Profiling/Trace.h"
#include "../Storage/Sticks.h"

#include <atomic>

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

void dropRoom(SpyreStorageImpl &storage) {
  if (!storage.format || !storage.format->room)
    return;
  StorageFormat format = storage.format->withoutRoom();
  if (format.layout.deviceSize != storage.format->layout.deviceSize)
    storage.set_data_ptr_noswap(
        copySticks(format.layout, storage.format->layout, storage.deviceBytes(),
                   format.layout, storage.deviceIndex(),
                   blockSize(format, storage.nbytes())));
  storage.format = std::move(format);
}

} // namespace spyre::pytorch
