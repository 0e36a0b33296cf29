// SPDX-License-Identifier: Apache-2.0
//===- Geometry.h - Where a tensor's sticks are -----------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_MODEL_GEOMETRY_H
#define SPYRE_TARGET_SUPERDSC_MODEL_GEOMETRY_H

#include "Spyre/Target/SuperDSC/Model/Model.h"

#include <map>
#include <optional>
#include <string>

namespace spyre::superdsc {

/// Bytes of a segment of the virtual address space, and how many there are.
inline constexpr int64_t kSegmentBytes = int64_t(16) << 30;
inline constexpr int64_t kNumSegments = 7;
inline constexpr int64_t kLXBytes = int64_t(2) << 20;
inline constexpr int64_t kMaxSpanBytes = int64_t(256) << 20;

/// One dimension of a tensor in memory.
struct TensorDim {
  /// Index into Sdsc::dims.
  unsigned dim;
  Scale scale;
  /// Elements per stick if the tensor's stick lies along it, else 1.
  int64_t stick = 1;
  /// Elements in memory: of the whole tensor, or of a core's part in LX.
  int64_t extent = 1;
  /// Sticks from one to the next step (a step is `stick` elements).
  int64_t stride = 0;
  /// Elements of a core's slice.
  int64_t perCore = 1;
  /// Of conv2d's input, the dimension of the places of the windows along this
  /// one, and how many there are: an iteration reads at the sum of the two.
  std::optional<unsigned> place;
  int64_t numPlaces = 1;
  /// Indices select along it (page size 1): all cores start at the same place.
  bool isGathered = false;
};

/// A tensor's dimensions, inner to outer, and its size in sticks. Nothing if a
/// gap leaves no extent or a size overflows.
struct Geometry {
  std::vector<TensorDim> dims;
  int64_t sticks = 1;

  /// Sticks from the first to behind the last that a core touches.
  int64_t span() const;
  /// Sticks before the slice of core `core`; of dimensions with symbols, at
  /// their largest sizes.
  int64_t offsetOf(const Sdsc &sdsc, int64_t core) const;
  /// The bytes before the slice of core `core` at each size: a constant, and a
  /// term for each size, of which `numberOf` says the number by its name.
  /// Nothing if numbers overflow.
  std::optional<Address>
  addressOf(const Sdsc &sdsc, int64_t core,
            const std::map<std::string, size_t> &numberOf) const;
};
std::optional<Geometry> getGeometry(const Sdsc &sdsc, const Tensor &tensor);

/// The number of the dimension of a name, if there is one.
std::optional<unsigned> findDim(const Sdsc &sdsc, const std::string &name);

/// Scale of a tensor along a dimension; nothing if it does not have it.
std::optional<Scale> getScale(const Tensor &tensor, unsigned dim);

/// Whether the tensor varies along `dim`.
bool variesAlong(const Tensor &tensor, unsigned dim);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_MODEL_GEOMETRY_H
