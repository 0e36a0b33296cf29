// SPDX-License-Identifier: Apache-2.0
//===- LoopContract.cpp - Matrix products ---------------------------------===//

#include "LoopNest.h"

#include <algorithm>
#include <cassert>
#include <vector>

using namespace spyre::runtime;

StructuredLoop::MatrixLoops StructuredLoop::takeMatrixLoops(Nest &nest) const {
  simplify(nest);
  constexpr int a = 0, b = 1, c = 2;
  // Pick one loop each for m, n and k; the other loops enclose them. The loop
  // along which C is dense decides which input is the left one.
  int dense = -1;
  for (int l = nest.numLoops - 1; l >= 0 && dense < 0; --l)
    if (nest.loops[l].stride[c] == 1 && !nest.loops[l].isReduction &&
        (nest.loops[l].stride[a] == 0) != (nest.loops[l].stride[b] == 0))
      dense = l;
  int left = a, right = b;
  if (dense >= 0 && nest.loops[dense].stride[b] == 0)
    std::swap(left, right);
  Loop unit{};
  unit.extent = 1;
  Loop m = unit, n = unit, k = unit;
  if (dense >= 0) {
    n = nest.loops[dense];
    nest.erase(dense);
  }
  auto take = [&](auto &&predicate) {
    int best = -1;
    for (int l = 0; l < nest.numLoops; ++l)
      if (predicate(nest.loops[l]) &&
          (best < 0 || nest.loops[l].extent > nest.loops[best].extent))
        best = l;
    if (best < 0)
      return unit;
    Loop loop = nest.loops[best];
    nest.erase(best);
    return loop;
  };
  m = take([&](const Loop &l) {
    return !l.isReduction && l.stride[right] == 0 && l.stride[left] != 0;
  });
  // k is the innermost reduction loop, so that contracted points are added in
  // ascending order.
  for (int l = nest.numLoops - 1; l >= 0; --l)
    if (nest.loops[l].isReduction) {
      k = nest.loops[l];
      nest.erase(l);
      break;
    }
  return {m, n, k, left, right};
}

/// The version of an input that is read where it is, or 0.
uint64_t StructuredLoop::versionOf(const Core &core, int input) const {
  const Buffer *buffer = core.tensors[inputs[input].use.slot].buffer;
  return buffer ? buffer->version : 0;
}

//===----------------------------------------------------------------------===//
// Products of halves
//===----------------------------------------------------------------------===//

/// Whether gemmOfHalves() makes the product of so many rows.
bool StructuredLoop::usesHalves(const Nest &nest, const MatrixLoops &loops) {
  return kernels().gemmOfHalves && nest.elem[0] == Elem::F16 &&
         nest.elem[1] == Elem::F16 && isFloat(nest.elem[2]) &&
         loops.m.extent >= int64_t(kMinRowsOfHalves);
}

/// Prepares the factors of a product that gemmOfHalves() makes, if it is one:
/// codes where they are, if they serve as that; others are read now. Sums must
/// not depend on how factors are read, so that no other way comes into
/// question.
bool StructuredLoop::takeHalves(Core &core, Nest &nest) const {
  if (strategy != Contraction || !kernels().gemmOfHalves)
    return false;
  Nest rest = nest;
  MatrixLoops loops = takeMatrixLoops(rest);
  if (!usesHalves(nest, loops))
    return false;
  for (int k = 0; k < nest.numInputs; ++k) {
    const TensorVal &tensor = core.tensors[inputs[k].use.slot];
    if (rest.numLoops == 0 && tensor.deferredTile >= 0)
      nest.halves[k] = tensor.halves;
    if (!nest.halves[k])
      loadDeferred(core, inputs[k]);
  }
  return true;
}

/// Products to be made at once where they have the same right factor, at most
/// one of each core of a gang.
class StructuredLoop::HalfProducts {
public:
  void add(const HalfProduct &product, size_t n, size_t k,
           const HalfFactor &right) {
    entries[count++] = {product, n, k, right};
  }
  void run() {
    for (int i = 0; i < count; ++i) {
      if (entries[i].isDone)
        continue;
      const Entry &first = entries[i];
      HalfProduct same[Function::kLargeGang];
      int numSame = 0;
      for (int j = i; j < count; ++j) {
        Entry &other = entries[j];
        if (j != i && (other.isDone || !first.goesWith(other)))
          continue;
        same[numSame++] = other.product;
        other.isDone = true;
      }
      kernels().gemmOfHalves(same, numSame, first.n, first.k, first.right);
    }
    count = 0;
  }

private:
  struct Entry {
    HalfProduct product;
    size_t n, k;
    HalfFactor right;
    bool isDone = false;

    bool goesWith(const Entry &other) const {
      return product.a.areCodes == other.product.a.areCodes && n == other.n &&
             k == other.k && right.isSame(other.right);
    }
  };
  Entry entries[Function::kLargeGang];
  int count = 0;
};

/// Adds a product of halves. If others enclose it, all are made here, because
/// some may have the same sums.
void StructuredLoop::addHalves(const Core &core, const Nest &nest,
                               const MatrixLoops &loops,
                               HalfProducts &products) const {
  const auto &[m, n, k, left, right] = loops;
  constexpr int c = 2;
  HalfFactor halves[2];
  for (int i : {left, right}) {
    const Loop &rows = i == left ? m : k, &columns = i == left ? k : n;
    halves[i].rowStride = rows.stride[i];
    halves[i].columnStride = columns.stride[i];
    halves[i].version = versionOf(core, i);
    if (nest.halves[i])
      halves[i] = *nest.halves[i];
  }
  Odometer<Loop> odometer(nest.loops, nest.numLoops, nest.numOperands);
  do {
    for (int i : {left, right})
      if (!nest.halves[i])
        halves[i].values = nest.at(i, odometer.offset[i]);
    float *sums = reinterpret_cast<float *>(nest.at(c, odometer.offset[c]));
    products.add({halves[left], size_t(m.extent), sums, m.stride[c]}, n.extent,
                 k.extent, halves[right]);
    if (nest.numLoops > 0)
      products.run();
  } while (odometer.next());
}

void StructuredLoop::runGang(Core *const *cores, int numCores) const {
  if (strategy != Contraction || isFusedAway || isDelayed || fused)
    return Instr::runGang(cores, numCores);
  HalfProducts products;
  bool areHalves[Function::kLargeGang] = {};
  for (int i = 0; i < numCores; ++i) {
    Core &core = *cores[i];
    Nest nest;
    makeNest(core, nest);
    areHalves[i] = nest.points > 0 && takeHalves(core, nest);
    if (!areHalves[i]) {
      run(core, nest, /*hasHalves=*/false);
      continue;
    }
    prepareOutputs(core, nest);
    setAddresses(core, nest);
    const MatrixLoops loops = takeMatrixLoops(nest);
    addHalves(core, nest, loops, products);
  }
  products.run();
  for (int i = 0; i < numCores; ++i)
    if (areHalves[i])
      roundSums(*cores[i]);
}

//===----------------------------------------------------------------------===//
// All products
//===----------------------------------------------------------------------===//

namespace {
/// A factor of a product as floats: integers of at most 16 bits are converted.
class Factor {
public:
  template <typename NestT>
  Factor(const NestT &nest, int operand)
      : floats(reinterpret_cast<const float *>(nest.base[operand])) {
    if (isFloat(nest.elem[operand]))
      return;
    int64_t last = 0;
    for (int l = 0; l < nest.numLoops; ++l)
      last += (nest.loops[l].extent - 1) * nest.loops[l].stride[operand];
    auto *integers = reinterpret_cast<const int32_t *>(nest.base[operand]);
    converted.assign(integers, integers + last + 1);
    floats = converted.data();
  }
  const float *at(int64_t offset) const { return floats + offset; }

private:
  std::vector<float> converted;
  const float *floats;
};

/// Products of 8-bit integers that fp32 sums exactly: each is at most 2^14.
constexpr int64_t kExactProducts = 1024;
} // namespace

void StructuredLoop::runContraction(Core &core, Nest &nest) const {
  const Factor factors[] = {{nest, 0}, {nest, 1}};
  const MatrixLoops loops = takeMatrixLoops(nest);
  const auto &[m, n, k, left, right] = loops;
  constexpr int c = 2;
  const KernelTable &table = kernels();
  bool isFloatSum = isFloat(nest.elem[c]);
  if (usesHalves(nest, loops)) {
    HalfProducts products;
    addHalves(core, nest, loops, products);
    return products.run();
  }
  // Integers are summed in parts, exactly.
  std::vector<float> part(isFloatSum ? 0 : m.extent * n.extent);
  int64_t depth = isFloatSum ? k.extent : kExactProducts;
  Odometer<Loop> odometer(nest.loops, nest.numLoops, nest.numOperands);
  do {
    uint8_t *sums = nest.at(c, odometer.offset[c]);
    if (nest.codes >= 0) {
      assert(nest.codes == right);
      table.gemmOfCodes(
          m.extent, n.extent, k.extent, factors[left].at(odometer.offset[left]),
          m.stride[left], k.stride[left],
          nest.base[right] + odometer.offset[right] * int64_t(sizeof(uint16_t)),
          k.stride[right], reinterpret_cast<float *>(sums), m.stride[c]);
      continue;
    }
    for (int64_t start = 0; start < k.extent; start += depth) {
      int64_t count = std::min(depth, k.extent - start);
      std::fill(part.begin(), part.end(), 0.0f);
      table.gemm(
          m.extent, n.extent, count,
          factors[left].at(odometer.offset[left] + start * k.stride[left]),
          m.stride[left], k.stride[left],
          factors[right].at(odometer.offset[right] + start * k.stride[right]),
          k.stride[right], n.stride[right],
          isFloatSum ? reinterpret_cast<float *>(sums) : part.data(),
          isFloatSum ? m.stride[c] : n.extent);
      if (isFloatSum)
        continue;
      for (int64_t row = 0; row < m.extent; ++row)
        for (int64_t column = 0; column < n.extent; ++column) {
          auto &sum = reinterpret_cast<uint32_t *>(
              sums)[row * m.stride[c] + column * n.stride[c]];
          sum += uint32_t(int32_t(part[row * n.extent + column]));
        }
    }
  } while (odometer.next());
}
