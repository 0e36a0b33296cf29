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

namespace spyre {

struct TransferStats {
  /// Finite bf16 values that became zero or a non-number.
  int64_t bf16OutOfRange = 0;
};

/// Writes all sizeInBytes() of `device`, padding as zeros. Throws Error naming
/// the first int64 value that 32 bits do not hold, and its index.
void hostToDevice(const void *hostImage, HostDtype dtype,
                  const std::vector<int64_t> &homeSizes,
                  const std::vector<int64_t> &homeStrides,
                  const TensorLayout &layout, uint8_t *device,
                  TransferStats *stats = nullptr);

/// Writes the elements of the home into the host image.
void deviceToHost(const uint8_t *device, const TensorLayout &layout,
                  const std::vector<int64_t> &homeSizes,
                  const std::vector<int64_t> &homeStrides, HostDtype dtype,
                  void *hostImage);

} // namespace spyre

#endif // SPYRE_DEVICE_HOSTTRANSFER_H
