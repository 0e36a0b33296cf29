// SPDX-License-Identifier: Apache-2.0
//===- TransferDescriptors.h - Loop nests of a transfer ---------*- C++ -*-===//
//
// spec/layouts.md, "DCI". All numbers count elements, never bytes.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DEVICE_TRANSFERDESCRIPTORS_H
#define SPYRE_DEVICE_TRANSFERDESCRIPTORS_H

#include "Spyre/Device/TensorLayout.h"

#include <cstdint>
#include <vector>

namespace spyre {

enum class TransferDirection { HostToDevice, DeviceToHost };

/// One loop nest of a transfer. Entry d of each list belongs to device
/// dimension d, so the lists are outermost first, as `device_size` is (the
/// front end's stride infos hold the same numbers innermost first). A device
/// dimension that the nest does not step along has size 1.
struct TransferDescriptor {
  std::vector<int64_t> sizes, hostStrides, deviceStrides;
  int64_t hostOffset = 0, deviceOffset = 0;

  bool operator==(const TransferDescriptor &other) const {
    return sizes == other.sizes && hostStrides == other.hostStrides &&
           deviceStrides == other.deviceStrides &&
           hostOffset == other.hostOffset && deviceOffset == other.deviceOffset;
  }
};

/// Distinct elements of a home, 0 if it has none. Throws Error for negative
/// entries, and if the count or the largest offset, times the bytes of any
/// element, overflows.
int64_t countHomeElements(const std::vector<int64_t> &homeSizes,
                          const std::vector<int64_t> &homeStrides);

/// The loop nests that move every element of the home between the host image
/// and its place in `layout`, and nothing else: padding has no place in them.
/// To the device, expanded device dimensions (stride 0) get all their copies;
/// to the host the first one is read. None for an empty home.
///
/// The first nest is the one of full blocks. A host dimension whose last block
/// is ragged doubles the list, the last host dimension first: 2^k nests for k
/// such dimensions (one more per further level of tiling that is ragged too).
/// Throws Error if the layout cannot hold the home, or a number overflows.
std::vector<TransferDescriptor> makeTransferDescriptors(
    const TensorLayout &layout, const std::vector<int64_t> &homeSizes,
    const std::vector<int64_t> &homeStrides, TransferDirection direction);

} // namespace spyre

#endif // SPYRE_DEVICE_TRANSFERDESCRIPTORS_H
