// SPDX-License-Identifier: Apache-2.0
//===- Values.h - What plan slots hold at run time --------------*- C++ -*-===//
//
// Host representation of KTIR values. Floating-point tiles are arrays of
// float whatever their element type (each value already rounded to it), so an
// extension is free and a truncation is a rounding; integers up to 32 bits
// are sign-extended int32_t, i1 is 0 or 1; i64 and index are int64_t.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_VALUES_H
#define SPYRE_LIB_RUNTIME_ENGINE_VALUES_H

#include "Spyre/Runtime/Kernels/TileKernels.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifdef __has_feature
#define SPYRE_HAS_FEATURE(X) __has_feature(X)
#else
#define SPYRE_HAS_FEATURE(X) 0
#endif

namespace spyre::runtime {

constexpr int kMaxRank = 8;

enum class Elem : uint8_t {
  F16,
  BF16,
  F32,
  F8E4M3FN,
  F8E5M2,
  I1,
  I8,
  I16,
  I32,
  I64,
  Index
};

inline bool isFloat(Elem e) { return e <= Elem::F8E5M2; }
inline bool isWide(Elem e) { return e == Elem::I64 || e == Elem::Index; }
/// Bytes of one element of a tile on the host.
inline size_t hostSize(Elem e) { return isWide(e) ? 8 : 4; }
inline int bitWidth(Elem e) {
  switch (e) {
  case Elem::I1:
    return 1;
  case Elem::F8E4M3FN:
  case Elem::F8E5M2:
  case Elem::I8:
    return 8;
  case Elem::I16:
  case Elem::F16:
  case Elem::BF16:
    return 16;
  case Elem::F32:
  case Elem::I32:
    return 32;
  case Elem::I64:
  case Elem::Index:
    return 64;
  }
  return 0;
}
/// Bytes of one element in device memory (spec/numerics.md, "In KTIR").
inline int64_t deviceSize(Elem e) { return (bitWidth(e) + 7) / 8; }
const char *elemName(Elem e);

inline StorageFormat storageFormat(Elem e, bool ieee) {
  switch (e) {
  case Elem::F16:
    return ieee ? StorageFormat::IEEEHalf : StorageFormat::DL16;
  case Elem::BF16:
    return StorageFormat::BF16;
  case Elem::F32:
    return StorageFormat::F32;
  case Elem::F8E4M3FN:
    return StorageFormat::F8E4M3FN;
  case Elem::F8E5M2:
    return StorageFormat::F8E5M2;
  case Elem::I1:
    return StorageFormat::I1;
  case Elem::I8:
    return StorageFormat::I8;
  case Elem::I16:
    return StorageFormat::I16;
  case Elem::I32:
    return StorageFormat::I32;
  case Elem::I64:
  case Elem::Index:
    return StorageFormat::I64;
  }
  return StorageFormat::F32;
}

/// What a float result of element type `e` is rounded to.
inline Rounding roundingOf(Elem e, bool ieee) {
  switch (e) {
  case Elem::F16:
    return ieee ? Rounding::IEEEHalf : Rounding::DL16;
  case Elem::BF16:
    return Rounding::BF16;
  case Elem::F8E4M3FN:
    return Rounding::F8E4M3FN;
  case Elem::F8E5M2:
    return Rounding::F8E5M2;
  default:
    return Rounding::None;
  }
}

union Scalar {
  int64_t i;
  float f;
};

/// A reference-counted block of host memory for one data tile.
struct Buffer {
  uint32_t references;
  uint32_t sizeClass;
  uint8_t *data() { return reinterpret_cast<uint8_t *>(this) + 64; }
};

/// Per-worker free lists of tile buffers; the buffer released last is handed
/// out first because it is still in the cache.
class BufferPool {
public:
  BufferPool() = default;
  BufferPool(const BufferPool &) = delete;
  BufferPool &operator=(const BufferPool &) = delete;
  ~BufferPool();

  /// At least `sizeInBytes` bytes; under AddressSanitizer no more, and fresh.
  Buffer *get(size_t sizeInBytes);
  void retain(Buffer *buffer) { ++buffer->references; }
  void release(Buffer *buffer) {
    if (--buffer->references != 0)
      return;
    if (kExactSizes)
      std::free(buffer);
    else
      freeLists[buffer->sizeClass].push_back(buffer);
  }

private:
#if defined(__SANITIZE_ADDRESS__) || SPYRE_HAS_FEATURE(address_sanitizer)
  static constexpr bool kExactSizes = true;
#else
  static constexpr bool kExactSizes = false;
#endif
  static constexpr int kNumClasses = 64;
  std::vector<Buffer *> freeLists[kNumClasses];
};

/// A data tile, dense: row-major, or with permuted dimensions as a load found
/// them in memory. `data` is null for tensor.empty.
struct TensorVal {
  Buffer *buffer = nullptr;
  void *data = nullptr;
  int rank = 0;
  int64_t sizes[kMaxRank];
  int64_t numElements = 0;
  bool isPermuted = false;
  int64_t strides[kMaxRank]; ///< in elements, if permuted
  /// Timing engine: the step that makes the tile (-1: none), whether all its
  /// elements are one value, and whether it is a buffer in LX itself.
  int step = -1;
  bool isUniform = false, isBuffer = false;
  /// Slot of the prepared access tile whose data has not been read yet, or
  /// -1. Only the structured loop that uses it meets such a tensor.
  int deferredTile = -1;

  float *f() const { return static_cast<float *>(data); }
  int32_t *i32() const { return static_cast<int32_t *>(data); }
  int64_t *i64() const { return static_cast<int64_t *>(data); }
  void setShape(const TensorVal &other) {
    rank = other.rank;
    numElements = other.numElements;
    isPermuted = false;
    deferredTile = -1;
    std::memcpy(sizes, other.sizes, sizeof(sizes));
  }
};

struct PointSet;

/// A memory view: where coordinate 0 lies and which coordinates are legal.
struct ViewVal {
  uint8_t *base = nullptr; ///< host address of coordinate 0
  int64_t byteAddress = 0; ///< device or LX byte address of coordinate 0
  Elem elem = Elem::F16;
  int location = 0; ///< of the operation that made it, into Plan::locations
  bool isLX = false;
  int lxCore = -1; ///< whose LX; -1: the executing core's own
  /// The whole box lies inside one allocation (or inside the LX).
  bool checked = false;
  /// Device memory of more than the span that a core can address.
  bool isWide = false;
  int rank = 0;
  int64_t lo[kMaxRank], hi[kMaxRank]; ///< legal coordinates, inclusive
  int64_t strides[kMaxRank];          ///< in elements
  int64_t limitLo = 0, limitHi = 0;   ///< allocation, bytes relative to base
  /// Legal coordinates are the points of this set, with the symbols below, in
  /// the box of lo and hi; null: the whole box.
  const PointSet *set = nullptr;
  int64_t symbols[kMaxRank];
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_VALUES_H
