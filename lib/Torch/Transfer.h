// SPDX-License-Identifier: Apache-2.0
//===- Transfer.h - Moving values between host and device -------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_TRANSFER_H
#define SPYRE_LIB_TORCH_TRANSFER_H

#include "Storage.h"

#include <vector>

namespace spyre::device {

/// Where the elements of a formatted storage live on the device.
class ElementMap {
public:
  explicit ElementMap(const StorageFormat &format);

  uint64_t elementSizeInBytes() const { return elementSize; }
  /// Byte offset into the device block of a host element of the storage.
  uint64_t byteOffset(int64_t hostElement) const;

private:
  struct Term {
    int64_t step, modulus; ///< coordinate = (index / step) mod modulus
    uint64_t scale;        ///< bytes per step of the coordinate
  };
  struct Dim {
    int64_t stride;
    std::vector<Term> terms;
  };
  std::vector<Dim> dims; ///< decreasing stride
  uint64_t elementSize;
};

/// The host image of a storage: nbytes() bytes as the CPU would hold them.
std::vector<uint8_t> readHostImage(SpyreStorageImpl &storage);
/// Stores all of a host image.
void writeHostImage(SpyreStorageImpl &storage, const uint8_t *image);

/// The values of a spyre tensor in a CPU tensor of the same sizes and dtype.
at::Tensor toHost(const at::Tensor &source);

/// Stores the values of a CPU tensor (any dtype and strides, same sizes) in a
/// spyre tensor; other elements of its storage keep their exact bits.
void fromHost(const at::Tensor &source, const at::Tensor &destination);

/// Copies between spyre tensors of the same sizes. Equal device formats copy
/// bits; otherwise values convert without a detour over a narrower format.
void copyOnDevice(const at::Tensor &source, const at::Tensor &destination);

/// Copies any direction; sizes of `source` must expand to `destination`'s.
/// `nonBlocking` copies between the device and pinned host memory are queued on
/// the current stream where they move whole tensors of one dtype and strides.
void copyTensor(const at::Tensor &source, const at::Tensor &destination,
                bool nonBlocking = false);

/// Queues a copy between pinned host memory and the device; false if it is none
/// that can be.
bool copyAsynchronously(const at::Tensor &source,
                        const at::Tensor &destination);

/// Stores a host image as `format` says, with a warning about int64 and bf16
/// values that are out of range.
void convertToDevice(const void *image, const StorageFormat &format,
                     uint8_t *device);

/// The warnings that storing an image of int64 values gives, for transfers that
/// other threads do: warnings of these do not reach Python.
void warnAboutInt64Image(const void *image, const StorageFormat &format);

/// Stores a formatted storage in another layout from now on; its values stay.
/// Throws if the layout cannot hold them.
void changeLayout(SpyreStorageImpl &storage, const TensorLayout &layout);

/// Whether `layout`, as that of a tensor with these sizes and strides, says of
/// every element of a view where it is: at the place that the storage has it,
/// counted from the view's first element.
bool describes(const TensorLayout &layout, const at::Tensor &view);

/// Sets every element of a spyre tensor.
void fillTensor(const at::Tensor &tensor, const c10::Scalar &value);

/// Whether the first transfer of int64 values warns that the device holds 32
/// bits; initially TORCH_SPYRE_DOWNCAST_WARN.
bool downcastWarning();
void setDowncastWarning(bool enabled);

} // namespace spyre::device

#endif // SPYRE_LIB_TORCH_TRANSFER_H
