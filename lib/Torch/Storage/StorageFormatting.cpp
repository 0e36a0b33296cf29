// SPDX-License-Identifier: Apache-2.0
#include "StorageFormatting.h"
#include "StorageImage.h"

#include "Spyre/Support/Error.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace spyre::pytorch {

/// Format of a storage of `sizeInBytes` under `tensor`.
static StorageFormat formatUnder(const at::Tensor &tensor,
                                 uint64_t sizeInBytes) {
  int64_t count = static_cast<int64_t>(sizeInBytes / tensor.itemsize());
  if (tensor.storage_offset() == 0 && tensor.numel() == count &&
      isDense(tensor.sizes(), tensor.strides()))
    return makeFormat(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  return makeFormat({count}, {1}, tensor.scalar_type());
}

void formatFor(const at::Tensor &tensor, bool force) {
  SpyreStorageImpl &storage = storageOf(tensor);
  if (storage.format || storage.nbytes() == 0 ||
      (tensor.scalar_type() == c10::kByte && !force))
    return;
  StorageFormat format = formatUnder(tensor, storage.nbytes());
  c10::DataPtr block =
      allocate(storage.deviceIndex(), blockSize(format, storage.nbytes()));
  storage.waitForUses();
  // Threads that read a storage may meet here. What waits for Python comes
  // before: another thread may hold Python and wait for this one.
  static std::mutex formatting;
  std::lock_guard<std::mutex> lock(formatting);
  if (storage.format)
    return;
  const Allocation *allocation = allocationOf(block);
  const uint8_t *bytes = storage.deviceBytes();
  runtime::FailureRef failure;
  try {
    convertToDevice(bytes, format,
                    allocation->card->memory.at(allocation->address));
  } catch (const Error &) {
    // Bytes that nobody may want: torch.load puts tensors of the format before
    // zip on storages that it fills afterwards. Reading them raises.
    failure = std::make_shared<runtime::Failure>(
        runtime::Failure{std::current_exception()});
  }
  storage.setFailure(std::move(failure));
  storage.set_data_ptr_noswap(std::move(block));
  storage.format = std::move(format);
}

SpyreStorageImpl &formattedStorage(const at::Tensor &tensor) {
  SpyreStorageImpl &storage = storageOf(tensor);
  formatFor(tensor, /*force=*/true);
  TORCH_CHECK(storage.format,
              "the tensor's storage is empty and has no layout");
  return storage;
}

void resizeStorage(SpyreStorageImpl &storage, uint64_t sizeInBytes,
                   const at::Tensor *tensor) {
  TORCH_CHECK(storage.resizable(),
              "trying to resize a storage that is not resizable");
  uint64_t oldSize = storage.nbytes();
  if (oldSize == sizeInBytes)
    return;
  storage.waitForUses();
  c10::DeviceIndex index = storage.deviceIndex();
  if (sizeInBytes == 0) {
    storage.set_data_ptr_noswap(allocate(index, 0));
    storage.set_nbytes(size_t(0));
    return;
  }

  std::optional<StorageFormat> format = storage.format;
  if (tensor &&
      (!format || scalarType(format->dtype) == tensor->scalar_type())) {
    if (format || tensor->scalar_type() != c10::kByte)
      format = formatUnder(*tensor, sizeInBytes);
  } else if (format) {
    uint64_t item = hostBytes(format->dtype);
    if (static_cast<uint64_t>(format->numElements()) * item != sizeInBytes) {
      if (sizeInBytes % item == 0)
        format = makeFormat({static_cast<int64_t>(sizeInBytes / item)}, {1},
                            scalarType(format->dtype));
      else
        format.reset();
    }
  }

  c10::DataPtr block =
      allocate(index, format ? blockSize(*format, sizeInBytes) : sizeInBytes);
  const Allocation *allocation = allocationOf(block);
  uint8_t *bytes = allocation->card->memory.at(allocation->address);
  uint64_t kept = std::min(oldSize, sizeInBytes);
  if (format && storage.format && format->dtype == storage.format->dtype) {
    // Element by element: a detour over host values would lose those that
    // the host dtype cannot represent.
    std::memset(bytes, 0, allocation->sizeInBytes);
    if (kept) {
      const uint8_t *old = storage.deviceBytes();
      ElementMap from(*storage.format), to(*format);
      uint64_t item = hostBytes(format->dtype);
      uint64_t size = to.elementSizeInBytes();
      for (uint64_t i = 0; i < kept / item; ++i)
        std::memcpy(bytes + to.byteOffset(i), old + from.byteOffset(i), size);
    }
  } else {
    std::vector<uint8_t> image(sizeInBytes, 0);
    if (kept) {
      std::vector<uint8_t> old = readHostImage(storage);
      std::copy_n(old.begin(), kept, image.begin());
    }
    if (format)
      convertToDevice(image.data(), *format, bytes);
    else
      std::copy(image.begin(), image.end(), bytes);
  }
  storage.set_data_ptr_noswap(std::move(block));
  storage.set_nbytes(size_t(sizeInBytes));
  storage.format = std::move(format);
}

} // namespace spyre::pytorch
