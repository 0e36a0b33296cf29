// SPDX-License-Identifier: Apache-2.0
//===- LoopNest.h - A structured loop nest, ready to run --------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_LOOPNEST_H
#define SPYRE_LIB_RUNTIME_ENGINE_LOOPNEST_H

#include "StructuredLoop.h"

#include <algorithm>

namespace spyre::runtime {

/// What a nest is besides its loops.
struct StructuredLoop::NestOperands {
  int numLoops = 0;
  int numInputs = 0, numOperands = 0;
  uint8_t *base[kMaxOperands]; ///< address of the first point
  Elem elem[kMaxOperands];
  int codes = -1;          ///< the operand that is DL16 codes in device memory
  bool pastCaches = false; ///< whether these are written past the caches
  /// If not 0, rows of these are in parts (KernelTable::reduceCodeRows).
  int64_t partLength = 0, partStride = 0;
  /// Factors of a product that are codes where they are, in parts.
  std::optional<HalfFactor> halves[2];
  int64_t points = 1;
};

struct StructuredLoop::Nest : NestOperands {
  Loop loops[kMaxLoops];

  Nest() = default;
  Nest(const Nest &other) { *this = other; }
  /// Only the loops that there are, a few of many.
  Nest &operator=(const Nest &other) {
    NestOperands::operator=(other);
    std::copy(other.loops, other.loops + numLoops, loops);
    return *this;
  }

  uint8_t *at(int operand, int64_t offset) const {
    return base[operand] + offset * int64_t(operand == codes
                                                ? sizeof(uint16_t)
                                                : hostSize(elem[operand]));
  }
  void erase(int loop) {
    for (int i = loop; i + 1 < numLoops; ++i)
      loops[i] = loops[i + 1];
    --numLoops;
  }
  /// Moves parallel loops before reduction loops, and otherwise keeps the
  /// order.
  void reductionsLast() {
    Loop sorted[kMaxLoops];
    int n = 0;
    for (bool wanted : {false, true})
      for (int l = 0; l < numLoops; ++l)
        if (loops[l].isReduction == wanted)
          sorted[n++] = loops[l];
    std::copy(sorted, sorted + n, loops);
  }
  void moveToBack(int loop) {
    Loop moved = loops[loop];
    for (int i = loop; i + 1 < numLoops; ++i)
      loops[i] = loops[i + 1];
    loops[numLoops - 1] = moved;
  }
};

struct StructuredLoop::MatrixLoops {
  Loop m, n, k;
  int left, right; ///< numbers of the operands
};

/// Whether a view is of so much device memory that the caches will not hold all
/// of it when another kernel reads it: half of a usual last one.
bool exceedsCaches(const ViewVal &view);

/// A factor of a matrix product that is read as codes.
struct StructuredLoop::FactorOfCodes {
  int operand;
  int loopOf[kMaxRank]; ///< which loop each of its dimensions belongs to
  std::vector<TileVal::StridedPart> parts;
};

/// Iterates over the loops [0, count), the last one fastest, and keeps the
/// element offset of each operand.
template <typename LoopT>
class Odometer {
public:
  Odometer(const LoopT *loops, int count, int numOperands)
      : loops(loops), count(count), numOperands(numOperands) {
    std::fill(offset, offset + numOperands, 0);
    std::fill(index, index + count, 0);
  }
  bool next() {
    for (int i = count - 1; i >= 0; --i) {
      if (++index[i] < loops[i].extent) {
        for (int k = 0; k < numOperands; ++k)
          offset[k] += loops[i].stride[k];
        return true;
      }
      index[i] = 0;
      for (int k = 0; k < numOperands; ++k)
        offset[k] -= (loops[i].extent - 1) * loops[i].stride[k];
    }
    return false;
  }
  int64_t offset[StructuredLoop::kMaxOperands];
  int64_t index[StructuredLoop::kMaxLoops];

private:
  const LoopT *loops;
  int count, numOperands;
};

/// Removes loops of one iteration, and fuses neighbouring loops if all operands
/// can be accessed with one stride over both.
template <typename NestT>
void simplify(NestT &nest) {
  for (int l = nest.numLoops - 1; l >= 0; --l)
    if (nest.loops[l].extent == 1)
      nest.erase(l);
  for (int l = nest.numLoops - 2; l >= 0; --l) {
    auto &outer = nest.loops[l];
    auto &inner = nest.loops[l + 1];
    if (outer.isReduction != inner.isReduction)
      continue;
    bool fuse = true;
    for (int k = 0; fuse && k < nest.numOperands; ++k)
      fuse = outer.stride[k] == inner.stride[k] * inner.extent;
    if (!fuse)
      continue;
    int64_t extent = outer.extent;
    inner.extent *= extent;
    nest.erase(l);
  }
}

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_LOOPNEST_H
