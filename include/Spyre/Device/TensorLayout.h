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
#include <optional>
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

/// Throws Error for a number that is none of them.
const char *toString(ElementArrangement arrangement);
/// Nothing if there is no such name.
std::optional<ElementArrangement>
parseElementArrangement(const std::string &name);

/// Whether the elements of a stick lie in the order that the host has them in.
/// What QFP8CH rearranges is not published; the host reads quantized values
/// back as they were (spec/drop-in.md, "Test tolerances"), so it is a mark of
/// where they come from here.
constexpr bool keepsElementOrder(ElementArrangement arrangement) {
  return arrangement == ElementArrangement::STANDARD ||
         arrangement == ElementArrangement::QFP8CH;
}

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

  /// Throws Error unless transfers can store elements of `dtype` in this
  /// format and arrangement.
  void checkHolds(HostDtype dtype) const;
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

/// Sizes and strides (in elements) of a host tensor.
struct HomeShape {
  std::vector<int64_t> sizes, strides;
};

/// A host tensor as `layout` counts it. A dimension whose single steps no
/// device dimension counts becomes one with the dimension inside it, whose rows
/// it goes on: a device dimension may count the rows of all blocks of a paged
/// cache (spec/drop-in.md, "spyre-inference"). The elements stay where they
/// are.
HomeShape mergeUncountedDims(const TensorLayout &layout,
                             const std::vector<int64_t> &homeSizes,
                             const std::vector<int64_t> &homeStrides);

/// `layout` with elements of another format, in sticks of as many as it has:
/// the device dimension that counts the sticks of a row counts fewer or more of
/// them, the others stay (spec/drop-in.md, "Layout of qfp8ch's result", but
/// with the last stick of an odd number kept). Nothing if no device dimension
/// counts the sticks, or a larger step of theirs is no whole number of the new
/// ones.
std::optional<TensorLayout> changeStick(const TensorLayout &layout,
                                        const std::vector<int64_t> &homeSizes,
                                        const std::vector<int64_t> &homeStrides,
                                        DataFormat format);

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
