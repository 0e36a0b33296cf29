// SPDX-License-Identifier: Apache-2.0
//===- HostTransfer.h - Host images to and from device bytes ----*- C++ -*-===//
//
// A home is the (sizes, strides) of the host tensor that a storage was created
// for, dense and non-overlapping; the host image is its span of elements.
// Rules: spec/numerics.md, "Host formats"; spec/layouts.md.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DEVICE_HOSTTRANSFER_H
#define SPYRE_DEVICE_HOSTTRANSFER_H

#include "Spyre/Device/TensorLayout.h"

#include <string>

namespace spyre {

struct TransferStats {
  /// Finite bf16 values that became zero or a non-number.
  int64_t bf16OutOfRange = 0;
  /// int64 values that 32 bits do not hold and that became the nearest that
  /// they do, and which is the first in row-major order of the home: "int64
  /// value 2147483648 at index [2, 7]".
  int64_t int64OutOfRange = 0;
  std::string firstInt64OutOfRange;
};

/// Writes all sizeInBytes() of `device`, padding as zeros. Without `stats` an
/// int64 value that 32 bits do not hold throws Error with the value and its
/// index, and nothing is written.
void hostToDevice(const void *hostImage, HostDtype dtype,
                  const std::vector<int64_t> &homeSizes,
                  const std::vector<int64_t> &homeStrides,
                  const TensorLayout &layout, uint8_t *device,
                  TransferStats *stats = nullptr);

/// Counts in `stats` the int64 values of a home that 32 bits do not hold.
void checkInt64Image(const void *hostImage,
                     const std::vector<int64_t> &homeSizes,
                     const std::vector<int64_t> &homeStrides,
                     TransferStats &stats);

/// Writes the elements of the home into the host image.
void deviceToHost(const uint8_t *device, const TensorLayout &layout,
                  const std::vector<int64_t> &homeSizes,
                  const std::vector<int64_t> &homeStrides, HostDtype dtype,
                  void *hostImage);

} // namespace spyre

#endif // SPYRE_DEVICE_HOSTTRANSFER_H
