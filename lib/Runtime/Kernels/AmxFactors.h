// SPDX-License-Identifier: Apache-2.0
//===- AmxFactors.h - Packed factors that are kept --------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_AMXFACTORS_H
#define SPYRE_LIB_RUNTIME_KERNELS_AMXFACTORS_H

#include "AmxPacking.h"

#include <new>

// Unnamed, so that no object file takes the code of these instructions from
// here: AmxKernels.cpp alone includes this.
namespace spyre::runtime::amx {
namespace {

/// A packed block and what is known of it.
struct Block {
  const uint8_t *packed;
  bool hasLow;
  size_t lines, steps;
};

/// A product has rows in at most so many places at a time.
constexpr size_t kMaxPlaces = 8;

/// Lines of a factor (rows of A, columns of B) that lie in one place. Their
/// values are known by that and their version.
struct Place {
  uint64_t version;
  const void *values;
  ptrdiff_t rowStride, otherStride;
  size_t lines;

  Place(const Floats &factor, uint64_t version, size_t lines)
      : version(version), values(factor.values), rowStride(factor.rowStride),
        otherStride(factor.columnStride), lines(lines) {}
  Place(const Codes &factor, uint64_t version, size_t lines)
      : version(version), values(factor.codes), rowStride(factor.rowStride),
        otherStride(factor.partStride), lines(lines) {}
  Place() = default;

  bool isSame(const Place &other) const {
    return version == other.version && values == other.values &&
           rowStride == other.rowStride && otherStride == other.otherStride &&
           lines == other.lines;
  }
};

/// So many lines and k of a factor, packed.
struct Part {
  Place places[kMaxPlaces];
  size_t numPlaces = 0, lines = 0, depth = 0;
  uint8_t *packed = nullptr;
  BlockTraits traits[kMaxBlocks];

  explicit Part(size_t depth) : depth(depth) {}
  Part() = default;

  void add(const Place &place) {
    places[numPlaces++] = place;
    lines += place.lines;
  }
  size_t numBlocks() const { return numBlocksOf(lines); }
  Block block(size_t i) const {
    return {packed + i * blockBytes(depth), traits[i].hasLow,
            atMost(kBlockLines, lines - i * kBlockLines), numSteps(depth)};
  }
  bool isSame(const Part &other) const {
    bool result = numPlaces == other.numPlaces && depth == other.depth;
    for (size_t i = 0; result && i < numPlaces; ++i)
      result = places[i].isSame(other.places[i]);
    return result;
  }
  bool hasVersion() const {
    bool result = true;
    for (size_t i = 0; i < numPlaces; ++i)
      result &= places[i].version != 0;
    return result;
  }
  bool hasNonFinite() const {
    uint32_t lines = 0;
    for (size_t i = 0; i < numBlocks(); ++i)
      lines |= traits[i].nonFinite;
    return lines != 0;
  }
  /// Whether a line has values that are not finite.
  bool isNonFinite(size_t line) const {
    return traits[line / kBlockLines].nonFinite >> line % kBlockLines & 1;
  }
  /// Calls `function` with the number of each line that is not finite.
  template <class F>
  void forNonFinite(F function) const {
    for (size_t i = 0; i < numBlocks(); ++i) {
      size_t line = i * kBlockLines;
      for (uint32_t rest = traits[i].nonFinite; rest != 0; rest >>= 1, ++line)
        if (rest & 1)
          function(line);
    }
  }
};

/// Parts of one factor that a thread has packed, as many as there is room for.
class PackedFactor {
public:
  /// With room for so many of the largest parts.
  explicit PackedFactor(size_t room) : capacity(room * kMaxPartBytes) {}
  PackedFactor(const PackedFactor &) = delete;
  PackedFactor &operator=(const PackedFactor &) = delete;
  ~PackedFactor() { ::operator delete(memory, kPage); }

  /// The part as it is packed, or packed by a call of `pack` with where it has
  /// to be and its traits. It stays until the next call.
  template <class F>
  const Part &find(const Part &wanted, F pack) {
    // Products often want parts in the order of the last time.
    for (size_t i = 0; i < numParts; ++i) {
      if (++last >= numParts)
        last = 0;
      if (parts[last].isSame(wanted))
        return parts[last];
    }
    size_t bytes = wanted.numBlocks() * blockBytes(wanted.depth);
    if (numParts == kMaxParts || used + bytes > capacity) {
      numParts = used = 0;
      firstUnversioned = SIZE_MAX;
    }
    if (!memory)
      memory = static_cast<uint8_t *>(::operator new(capacity, kPage));
    last = numParts++;
    Part &part = parts[last];
    part = wanted;
    part.packed = memory + used;
    used += bytes;
    if (!part.hasVersion())
      firstUnversioned = atMost(firstUnversioned, last);
    pack(part.packed, part.traits);
    return part;
  }

  /// To be called before the values of a part without a version change.
  void forgetUnversioned() {
    if (firstUnversioned >= numParts)
      return;
    numParts = firstUnversioned;
    used = size_t(parts[numParts].packed - memory);
    firstUnversioned = SIZE_MAX;
  }

private:
  static constexpr size_t kMaxParts = 128;
  static constexpr size_t kMaxPartBytes = kMaxBlocks * blockBytes(kMaxDepth);
  static constexpr std::align_val_t kPage{4096};
  const size_t capacity;
  uint8_t *memory = nullptr;
  size_t used = 0, numParts = 0, last = 0, firstUnversioned = SIZE_MAX;
  Part parts[kMaxParts];
};

/// Each core of a group often has rows of its own, for all iterations of a
/// loop, but columns are the same for all cores.
struct PackedFactors {
  PackedFactor a{32}, b{8};
  /// Room for sums of kMaxLines rows and columns.
  float *sums = nullptr;

  PackedFactors() = default;
  PackedFactors(const PackedFactors &) = delete;
  PackedFactors &operator=(const PackedFactors &) = delete;
  ~PackedFactors() { ::operator delete(sums, kAlignment); }

  float *roomForSums() {
    if (!sums)
      sums = static_cast<float *>(
          ::operator new(kMaxLines * kMaxLines * sizeof(float), kAlignment));
    return sums;
  }

private:
  static constexpr std::align_val_t kAlignment{kTileRowBytes};
};

} // namespace
} // namespace spyre::runtime::amx

#endif // SPYRE_LIB_RUNTIME_KERNELS_AMXFACTORS_H
