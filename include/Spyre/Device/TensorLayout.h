// SPDX-License-Identifier: Apache-2.0
//===- TensorLayout.h - Tiled device layouts --------------------*- C++ -*-===//
//
// SpyreTensorLayout of spec/layouts.md. Sizes and strides count elements.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DEVICE_TENSORLAYOUT_H
#define SPYRE_DEVICE_TENSORLAYOUT_H

#include "Spyre/Device/DataFormat.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spyre {

/// Order of elements within a stick.
enum class ElementArrangement {
  STANDARD = 0,
  DL16_TO_FP32 = 1,
  QFP8CH = 2,
  EXX2 = 3
};

/// How a host tensor lies in device memory: row-major over `deviceSize`, whose
/// last entry is the stick; `strideMap[d]` is the host step of device dimension
/// d, -1 for a synthetic or size-1 dimension, 0 for an expanded one.
struct TensorLayout {
  std::vector<int64_t> deviceSize, strideMap;
  DataFormat format = DataFormat::INVALID;
  ElementArrangement arrangement = ElementArrangement::STANDARD;

  TensorLayout() = default;
  /// Row-major host tensor, identity order.
  TensorLayout(const std::vector<int64_t> &hostSize, HostDtype dtype);
  /// The generic-stick constructor: `dimOrder` is a permutation of the
  /// dimensions, the stick last, or one followed by -1 (sparse: one element
  /// per stick); at most 6 entries. Throws Error.
  TensorLayout(const std::vector<int64_t> &hostSize,
               const std::vector<int64_t> &hostStrides, HostDtype dtype,
               const std::vector<int64_t> &dimOrder,
               ElementArrangement arrangement = ElementArrangement::STANDARD);
  /// Explicit. Throws Error if the lists differ in length, are empty, the
  /// last size is not the stick's, or the size in bytes overflows.
  TensorLayout(std::vector<int64_t> deviceSize, std::vector<int64_t> strideMap,
               DataFormat format,
               ElementArrangement arrangement = ElementArrangement::STANDARD);

  /// 128 x product of all but the last device size. Throws Error on overflow.
  int64_t sizeInBytes() const;
  size_t hash() const;
  std::string str() const;

  bool operator==(const TensorLayout &other) const {
    return deviceSize == other.deviceSize && strideMap == other.strideMap &&
           format == other.format && arrangement == other.arrangement;
  }
  bool operator!=(const TensorLayout &other) const { return !(*this == other); }
};

/// Device coordinate of host index i:
/// (i[hostDim] floordiv step) mod (next larger step of that hostDim / step).
struct DeviceDim {
  int hostDim;    ///< -1: synthetic, coordinate 0
  int64_t step;   ///< host indices per coordinate
  int64_t extent; ///< device size
};

/// Reads each device dimension of `layout` as a division and modulus of one
/// dimension of the home (sizes and strides of the host tensor). Throws Error
/// where it cannot be read that way or does not hold every element.
std::vector<DeviceDim>
resolveDeviceDims(const TensorLayout &layout,
                  const std::vector<int64_t> &homeSizes,
                  const std::vector<int64_t> &homeStrides);

} // namespace spyre

#endif // SPYRE_DEVICE_TENSORLAYOUT_H
