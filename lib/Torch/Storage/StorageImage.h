// SPDX-License-Identifier: Apache-2.0
//===- StorageImage.h - The host image of a storage -------------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_STORAGE_STORAGEIMAGE_H
#define SPYRE_LIB_TORCH_STORAGE_STORAGEIMAGE_H

#include "Storage.h"

#include <vector>

namespace spyre::pytorch {

/// Maps the elements of a formatted storage to device addresses.
class ElementMap {
public:
  explicit ElementMap(const StorageFormat &format);

  uint64_t elementSizeInBytes() const { return elementSize; }
  /// Byte offset into the device block of a host element of the storage.
  uint64_t byteOffset(int64_t hostElement) const {
    return find(hostElement).byteOffset;
  }

  struct Place {
    uint64_t byteOffset;
    /// Host elements from this one on, it included, that follow each other on
    /// the device.
    int64_t numElements;
  };
  Place find(int64_t hostElement) const;

  /// Whether elements that follow each other on the host are in one stick.
  bool hasRuns() const { return isDense; }

private:
  struct Term {
    int64_t step, modulus; ///< coordinate = (index / step) mod modulus
    uint64_t scale;        ///< bytes per step of the coordinate
  };
  struct Dim {
    int64_t stride, extent;
    std::vector<Term> terms;
  };
  std::vector<Dim> dims; ///< decreasing stride
  uint64_t elementSize;
  bool isDense = false; ///< the last one has sticks along it
  int64_t stickElements = 1;
};

/// The host image of a storage: nbytes() bytes as the CPU would hold them.
std::vector<uint8_t> readHostImage(SpyreStorageImpl &storage);
/// Stores all of a host image.
void writeHostImage(SpyreStorageImpl &storage, const uint8_t *image);

/// Device elements of a whole home in the order of the host image, and back.
std::vector<uint8_t> readCodes(const SpyreStorageImpl &storage);
void writeCodes(const void *codes, SpyreStorageImpl &storage);

/// Stores a host image as `format` says, with a warning about int64 and bf16
/// values that are out of range.
void convertToDevice(const void *image, const StorageFormat &format,
                     uint8_t *device);

/// hostToDevice plus the warnings about values that are out of range: of int64,
/// and of bf16 (spec/numerics.md, "Host formats").
void convertToDevice(const void *image, HostDtype dtype,
                     const std::vector<int64_t> &sizes,
                     const std::vector<int64_t> &strides,
                     const TensorLayout &layout, uint8_t *device);

/// The warnings that storing an image of int64 values gives, for transfers that
/// other threads do: warnings of these do not reach Python.
void warnAboutInt64Image(const void *image, const StorageFormat &format);

/// Says once that the device holds int64 values in 32 bits.
void warnAboutInt64();

/// Whether the first transfer of int64 values warns that the device holds 32
/// bits; initially TORCH_SPYRE_DOWNCAST_WARN.
bool downcastWarning();
void setDowncastWarning(bool enabled);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_STORAGE_STORAGEIMAGE_H
