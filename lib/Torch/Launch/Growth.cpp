// SPDX-License-Identifier: Apache-2.0
#include "Growth.h"
#include "../Profiling/Trace.h"
#include "../Storage/Sticks.h"

#include <atomic>

namespace spyre::pytorch {

static std::atomic<int64_t> numShared{0}, numCopied{0}, bytesCopied{0};

GrowthCounts growthCounts() { return {numShared, numCopied, bytesCopied}; }

at::Tensor grow(const at::Tensor &tensor, const StorageFormat &format) {
  SpyreStorageImpl &old = storageOf(tensor);
  size_t dim = format.room->dim;
  int64_t rows = old.format->sizes[dim], newRows = format.sizes[dim];
  c10::DataPtr block;
  if (old.format->layout.deviceSize == format.layout.deviceSize)
    block = extend(old.data_ptr(), rows, newRows);
  if (block) {
    ++numShared;
  } else {
    const TensorLayout &tight = old.format->tightLayout();
    int64_t bytes = tight.sizeInBytes();
    TransferScope scope(TransferKind::DeviceToDevice, old.deviceIndex(), bytes);
    const uint8_t *source = old.deviceBytes();
    // The host's elements may be larger than the device's.
    uint64_t hostBytes = format.numElements() / newRows * format.room->numRows *
                         spyre::hostBytes(format.dtype);
    block = allocate(old.deviceIndex(), blockSize(format, hostBytes));
    const Allocation *allocation = allocationOf(block);
    copySticks(tight, old.format->layout, source, format.layout,
               allocation->card->memory.at(allocation->address));
    ++numCopied;
    bytesCopied += bytes;
  }
  return makeTensor(format, std::move(block));
}

void dropRoom(SpyreStorageImpl &storage) {
  if (!storage.format || !storage.format->room)
    return;
  StorageFormat format = *storage.format;
  format.layout = format.room->tight;
  format.room.reset();
  if (format.layout.deviceSize != storage.format->layout.deviceSize) {
    const uint8_t *bytes = storage.deviceBytes();
    c10::DataPtr block =
        allocate(storage.deviceIndex(), blockSize(format, storage.nbytes()));
    const Allocation *allocation = allocationOf(block);
    copySticks(format.layout, storage.format->layout, bytes, format.layout,
               allocation->card->memory.at(allocation->address));
    storage.set_data_ptr_noswap(std::move(block));
  }
  storage.format = std::move(format);
}

} // namespace spyre::pytorch
