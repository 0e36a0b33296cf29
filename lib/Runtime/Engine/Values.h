// SPDX-License-Identifier: Apache-2.0
//===- Values.h - What plan slots hold at run time --------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_VALUES_H
#define SPYRE_LIB_RUNTIME_ENGINE_VALUES_H

#include "../Program/Elements.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#ifdef __has_feature
#define SPYRE_HAS_FEATURE(X) __has_feature(X)
#else
#define SPYRE_HAS_FEATURE(X) 0
#endif

namespace spyre::runtime {

/// A reference-counted block of host memory for one data tile.
struct Buffer {
  uint32_t references;
  uint32_t sizeClass;
  /// A number that no other values have, if they will be read more than once.
  /// Products keep what they prepare of such a factor. Otherwise 0.
  uint64_t version;
  uint8_t *data() { return reinterpret_cast<uint8_t *>(this) + 64; }
};

/// A version that no values have.
uint64_t makeVersion();
/// Gives the values of a buffer a version, if they have none.
inline void numberValues(Buffer &buffer) {
  if (buffer.version == 0)
    buffer.version = makeVersion();
}
/// Whether nobody else reads the buffer, so that an instruction may write its
/// result there. Then its values have no version any more.
inline bool mayOverwrite(Buffer &buffer) {
  if (buffer.references != 1)
    return false;
  buffer.version = 0;
  return true;
}

/// Per-worker free lists of tile buffers; the buffer released last is handed
/// out first because it is still in the cache.
class BufferPool {
public:
  BufferPool() = default;
  BufferPool(const BufferPool &) = delete;
  BufferPool &operator=(const BufferPool &) = delete;
  ~BufferPool();

  /// A buffer of at least `sizeInBytes` bytes. Under AddressSanitizer it is
  /// newly allocated with exactly this size, so that accesses outside are
  /// found.
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

  /// To be called at the end of a run, with the time in seconds. Once a second,
  /// gives the large buffers back to the system that no run has needed since
  /// the last time: a prompt needs some that the tokens after it do not.
  void endRun(double now);
  /// Bytes of the large buffers that nobody uses.
  size_t getLargeFreeBytes() const;

private:
#if defined(__SANITIZE_ADDRESS__) || SPYRE_HAS_FEATURE(address_sanitizer)
  static constexpr bool kExactSizes = true;
#else
  static constexpr bool kExactSizes = false;
#endif
  static constexpr int kNumClasses = 64;
  std::vector<Buffer *> freeLists[kNumClasses];
  /// How many buffers of each list have not been handed out since `lastTrim`:
  /// its first ones.
  size_t numUnused[kNumClasses] = {};
  double lastTrim = 0;
};

/// A dense data tile. It is row-major, or has the order of dimensions that a
/// load found in memory. `data` is null for tensor.empty.
struct TensorVal {
  Buffer *buffer = nullptr;
  void *data = nullptr;
  int rank = 0;
  int64_t sizes[kMaxRank];
  int64_t numElements = 0;
  bool isPermuted = false;
  int64_t strides[kMaxRank]; ///< in elements, if permuted
  /// Timing engine: the step that computes the tile (-1: none), whether all its
  /// elements have the same value, and whether it is itself a buffer in LX.
  int step = -1;
  bool isUniform = false, isBuffer = false;
  /// Slot of the access tile, if its data has not been read yet; otherwise -1.
  /// Only the structured loop that uses the tensor finds it in this state.
  int deferredTile = -1;
  /// The codes of a factor that is not read yet, if the product takes them
  /// where they are.
  std::optional<HalfFactor> halves;

  float *f() const { return static_cast<float *>(data); }
  int32_t *i32() const { return static_cast<int32_t *>(data); }
  int64_t *i64() const { return static_cast<int64_t *>(data); }
  void setSizes(const std::vector<int64_t> &shape) {
    rank = static_cast<int>(shape.size());
    numElements = 1;
    for (int d = 0; d < rank; ++d)
      numElements *= sizes[d] = shape[d];
  }
  void setShape(const TensorVal &other) {
    rank = other.rank;
    numElements = other.numElements;
    isPermuted = false;
    deferredTile = -1;
    halves.reset();
    std::memcpy(sizes, other.sizes, sizeof(sizes));
  }
};

/// Loads a box of elements of device memory, in a format for `elem`, to a host
/// tile. Strides are in elements; of rank 0 it is one element.
inline void loadBox(Elem elem, ElementFormat format, void *tile,
                    const ptrdiff_t *tileStrides, const void *memory,
                    const ptrdiff_t *memoryStrides, const size_t *shape,
                    unsigned rank) {
  const KernelTable &k = kernels();
  if (isFloat(elem))
    k.loadFloat(format, static_cast<float *>(tile), tileStrides, memory,
                memoryStrides, shape, rank);
  else if (isWide(elem))
    k.loadInt64(format, static_cast<int64_t *>(tile), tileStrides, memory,
                memoryStrides, shape, rank);
  else
    k.loadInt32(format, static_cast<int32_t *>(tile), tileStrides, memory,
                memoryStrides, shape, rank);
}
/// Stores such a box.
inline void storeBox(Elem elem, ElementFormat format, void *memory,
                     const ptrdiff_t *memoryStrides, const void *tile,
                     const ptrdiff_t *tileStrides, const size_t *shape,
                     unsigned rank) {
  const KernelTable &k = kernels();
  if (isFloat(elem))
    k.storeFloat(format, memory, memoryStrides,
                 static_cast<const float *>(tile), tileStrides, shape, rank);
  else if (isWide(elem))
    k.storeInt64(format, memory, memoryStrides,
                 static_cast<const int64_t *>(tile), tileStrides, shape, rank);
  else
    k.storeInt32(format, memory, memoryStrides,
                 static_cast<const int32_t *>(tile), tileStrides, shape, rank);
}
/// Copies a box of elements between host tiles.
void copyBox(Elem elem, void *dst, const ptrdiff_t *dstStrides, const void *src,
             const ptrdiff_t *srcStrides, const size_t *shape, unsigned rank);

/// Loads `n` dense elements of device memory to a host tile.
inline void loadRun(Elem elem, bool ieee, const uint8_t *src, void *dst,
                    size_t n) {
  ElementFormat format = elementFormat(elem, ieee);
  if (isFloat(elem))
    return kernels().loadFloatRun(format, src, static_cast<float *>(dst), n);
  const ptrdiff_t step = 1;
  loadBox(elem, format, dst, &step, src, &step, &n, 1);
}
/// Stores `n` dense elements; `from` is 0 if all have the first one's value.
inline void storeRun(Elem elem, bool ieee, const void *src, ptrdiff_t from,
                     uint8_t *dst, size_t n) {
  ElementFormat format = elementFormat(elem, ieee);
  if (isFloat(elem) && from == 1)
    return kernels().storeFloatRun(format, static_cast<const float *>(src), dst,
                                   n);
  const ptrdiff_t step = 1;
  storeBox(elem, format, dst, &step, src, &from, &n, 1);
}

struct PointSet;

/// A memory view: where coordinate 0 lies and which coordinates are legal.
struct ViewVal {
  uint8_t *base = nullptr; ///< host address of coordinate 0
  int64_t byteAddress = 0; ///< device or LX byte address of coordinate 0
  Elem elem = Elem::F16;
  int location = 0; ///< of the creating operation: index into Plan::locations
  bool isLX = false;
  int lxCore = -1; ///< the core that owns the LX; -1: the executing one
  /// Whether the whole box is known to lie inside one allocation, or inside the
  /// LX.
  bool checked = false;
  /// Whether the view covers more device memory than the span that a core can
  /// address.
  bool isWide = false;
  int rank = 0;
  int64_t lo[kMaxRank], hi[kMaxRank]; ///< legal coordinates, inclusive
  int64_t strides[kMaxRank];          ///< in elements
  int64_t limitLo = 0, limitHi = 0;   ///< allocation, in bytes from `base`
  /// The legal coordinates are those in the box of `lo` and `hi` that this set
  /// contains, with `symbols` as its symbols. Null: the whole box.
  const PointSet *set = nullptr;
  int64_t symbols[kMaxRank];
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_VALUES_H
