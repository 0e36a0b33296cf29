// SPDX-License-Identifier: Apache-2.0
//===- LoopReduce.cpp - Reductions and matrix products --------------------===//

#include "LoopBlocks.h"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <vector>

using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Reductions with one combiner
//===----------------------------------------------------------------------===//

namespace {
template <typename T>
T combineInt(IntBinaryOp op, T a, T b) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
  case IntBinaryOp::Add:
    return T(U(a) + U(b));
  case IntBinaryOp::Mul:
    return T(U(a) * U(b));
  case IntBinaryOp::MaxS:
    return std::max(a, b);
  case IntBinaryOp::MinS:
    return std::min(a, b);
  case IntBinaryOp::And:
    return a & b;
  case IntBinaryOp::Or:
    return a | b;
  default:
    return a ^ b;
  }
}

/// One loop per combiner, so that each vectorises.
template <typename Visit>
void withIntOp(IntBinaryOp op, Visit &&visit) {
  switch (op) {
  case IntBinaryOp::Add:
    return visit(std::integral_constant<IntBinaryOp, IntBinaryOp::Add>());
  case IntBinaryOp::Mul:
    return visit(std::integral_constant<IntBinaryOp, IntBinaryOp::Mul>());
  case IntBinaryOp::MaxS:
    return visit(std::integral_constant<IntBinaryOp, IntBinaryOp::MaxS>());
  case IntBinaryOp::MinS:
    return visit(std::integral_constant<IntBinaryOp, IntBinaryOp::MinS>());
  case IntBinaryOp::And:
    return visit(std::integral_constant<IntBinaryOp, IntBinaryOp::And>());
  case IntBinaryOp::Or:
    return visit(std::integral_constant<IntBinaryOp, IntBinaryOp::Or>());
  default:
    return visit(std::integral_constant<IntBinaryOp, IntBinaryOp::Xor>());
  }
}

template <typename T>
void reduceIntRows(IntBinaryOp op, const T *x, int64_t rows, int64_t columns,
                   T *acc) {
  withIntOp(op, [&](auto code) {
    for (int64_t r = 0; r < rows; ++r) {
      T value = acc[r];
      for (int64_t c = 0; c < columns; ++c)
        value = combineInt<T>(code, value, x[r * columns + c]);
      acc[r] = value;
    }
  });
}

template <typename T>
void accumulateIntRows(IntBinaryOp op, const T *x, int64_t rows,
                       int64_t columns, T *acc) {
  withIntOp(op, [&](auto code) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        acc[c] = combineInt<T>(code, acc[c], x[r * columns + c]);
  });
}
} // namespace

/// `op` on values of type `elem`: DL16 has no NaN to look for.
static ReduceOp combinerFor(ReduceOp op, Elem elem, bool ieee) {
  if (elem != Elem::F16 || ieee)
    return op;
  if (op == ReduceOp::Max || op == ReduceOp::MaxNum)
    return ReduceOp::MaxWithoutNaN;
  if (op == ReduceOp::Min || op == ReduceOp::MinNum)
    return ReduceOp::MinWithoutNaN;
  return op;
}

/// Reduces a dense block of values into the accumulators: each row into its
/// own, or each column.
static void foldBlock(const Core &core, const StructuredLoop &instr, Elem elem,
                      bool rowWise, const void *x, BlockShape shape,
                      void *acc) {
  const KernelTable &k = kernels();
  if (isFloat(elem)) {
    (rowWise ? k.reduceRows : k.accumulateRows)(
        combinerFor(instr.combiner, elem, core.ieee),
        static_cast<const float *>(x), shape.rows, shape.columns, shape.columns,
        static_cast<float *>(acc));
  } else if (isWide(elem)) {
    (rowWise ? reduceIntRows<int64_t>
             : accumulateIntRows<int64_t>)(instr.intCombiner,
                                           static_cast<const int64_t *>(x),
                                           shape.rows, shape.columns,
                                           static_cast<int64_t *>(acc));
  } else {
    (rowWise ? reduceIntRows<int32_t>
             : accumulateIntRows<int32_t>)(instr.intCombiner,
                                           static_cast<const int32_t *>(x),
                                           shape.rows, shape.columns,
                                           static_cast<int32_t *>(acc));
  }
}

/// Sums the rows of a block without storing the values, if the body is one
/// chain of operations. Returns false if it is not.
static bool sumChainRows(Core &core, const StructuredLoop &instr,
                         const ScalarFrame &frame, BlockShape shape,
                         float *acc) {
  const ScalarProgram &body = instr.body;
  if (!body.isChain())
    return false;
  const ScalarOp &op = body.ops[0];
  if (!frame.step[op.a] && !frame.step[op.b])
    return false;
  ChainSteps chain(&op, frame, core.ieee);
  const float *x = static_cast<const float *>(frame.ptr[op.a]);
  for (int64_t row = 0; row < shape.rows; ++row) {
    kernels().sumChain(x, frame.step[op.a], chain.steps, op.chain,
                       size_t(shape.columns), roundingOf(op.elem, core.ieee),
                       acc + row, &core.readAhead);
    x += frame.step[op.a] * shape.columns;
    for (unsigned s = 0; s < op.chain; ++s)
      chain.steps[s].x += int64_t(chain.steps[s].step) * shape.columns;
  }
  return true;
}

/// Parts of rows of codes are whole multiples of these, as sticks are.
static constexpr int64_t kEvenCodes = 64;

bool StructuredLoop::takeCodes(Core &core, Nest &nest) const {
  const LoopOperand &in = inputs[0];
  if (strategy != Reduction || inputs.size() != 1 || !body.yieldsInput() ||
      in.elem != Elem::F16 || core.ieee || core.numStacked > 1)
    return false;
  const TileVal &tile = core.tiles[core.tensors[in.use.slot].deferredTile];
  std::optional<TileVal::EvenParts> parts = tile.evenParts();
  if (!parts)
    return false;
  const TileVal::StridedPart &part = parts->first;
  bool hasParts = parts->distance != 0;
  if (hasParts && part.length % kEvenCodes != 0)
    return false;
  Nest host = nest, codes = nest;
  for (int l = 0; l < numLoops; ++l) {
    int dim = dimOf(in, l);
    if (dim < 0)
      return false;
    codes.loops[l].stride[0] = part.strides[dim];
  }
  // Values are added in the order of the host tile.
  simplify(host);
  simplify(codes);
  auto isSame = [](const Loop &a, const Loop &b) {
    return a.extent == b.extent && a.original == b.original &&
           (a.stride[0] == 1) == (b.stride[0] == 1);
  };
  if (!std::equal(host.loops, host.loops + host.numLoops, codes.loops,
                  codes.loops + codes.numLoops, isSame))
    return false;
  // Rows in memory are rows of the reduction.
  for (int l = codes.numLoops - 1; l >= 0; --l)
    if (codes.loops[l].stride[0] == 1) {
      if (!codes.loops[l].isReduction ||
          (hasParts && codes.loops[l].extent != tile.sizes[part.dim]))
        return false;
      codes.base[0] = const_cast<uint8_t *>(part.first);
      codes.codes = 0;
      if (hasParts) {
        codes.partLength = part.length;
        codes.partStride = parts->distance;
      }
      nest = codes;
      return true;
    }
  return false;
}

void StructuredLoop::reduceInput(const Core &core, const Nest &nest,
                                 int64_t offset, const Loop &rows,
                                 const Loop &columns, bool rowWise,
                                 float *acc) const {
  const KernelTable &k = kernels();
  const uint8_t *x = nest.at(0, offset);
  ReduceOp op = combinerFor(combiner, nest.elem[0], core.ieee);
  if (nest.codes == 0)
    return k.reduceCodeRows(op, x, rows.extent, columns.extent, rows.stride[0],
                            nest.partLength ? nest.partLength : columns.extent,
                            nest.partStride, acc);
  (rowWise ? k.reduceRows : k.accumulateRows)(
      op, reinterpret_cast<const float *>(x), rows.extent, columns.extent,
      rows.stride[0], acc);
}

StructuredLoop::ReductionRun::ReductionRun(const StructuredLoop &instr,
                                           Core &core, Nest &nest)
    : instr(instr), body(instr.body), core(core), nest(nest), uniform(body) {
  simplify(nest);
  int out = nest.numInputs;
  auto firstOf = [&](auto &&predicate) {
    for (int l = nest.numLoops - 1; l >= 0; --l)
      if (predicate(nest.loops[l]))
        return l;
    return -1;
  };
  // Sort the loops: parallel ones outside, reductions inside, each in their
  // order.
  nest.reductionsLast();
  // The inner loop is the one along which the first input is dense.
  int inner = firstOf([&](const Loop &l) { return l.stride[0] == 1; });
  if (inner < 0)
    inner = firstOf([](const Loop &l) { return l.isReduction; });
  rowWise = inner < 0 || nest.loops[inner].isReduction;
  if (!rowWise && nest.loops[inner].stride[out] != 1) {
    inner = firstOf([](const Loop &l) { return l.isReduction; });
    rowWise = true;
  }
  if (inner >= 0) {
    columns = nest.loops[inner];
    nest.erase(inner);
  }
  int rowLoop = firstOf([&](const Loop &l) {
    return rowWise ? !l.isReduction && l.stride[out] == 1 : l.isReduction;
  });
  if (rowLoop >= 0) {
    rows = nest.loops[rowLoop];
    nest.erase(rowLoop);
  }
  isPlain = body.yieldsInput() && isFloat(nest.elem[0]);
  isSumOfRows = rowWise && isFloat(nest.elem[out]) &&
                instr.combiner == ReduceOp::Sum && !core.shadow;
  enterProgram(core, body, frame);
}

void StructuredLoop::ReductionRun::run() {
  Odometer<Loop> odometer(nest.loops, nest.numLoops, nest.numOperands);
  do
    runAt(odometer.offset);
  while (odometer.next());
}

void StructuredLoop::ReductionRun::runAt(const int64_t *offset) {
  if (isPlain && columns.stride[0] == 1) {
    int out = nest.numInputs;
    return instr.reduceInput(
        core, nest, offset[0], rows, columns, rowWise,
        reinterpret_cast<float *>(nest.at(out, offset[out])));
  }
  int64_t blockColumns = std::min(columns.extent, kBlock);
  int64_t blockRows =
      std::min(rows.extent, std::max<int64_t>(kBlock / columns.extent, 1));
  // An operand that depends on only one of the two loops needs no copy in a
  // block of one row.
  for (int i = 0; i < nest.numInputs && columns.extent >= kBlock / 4; ++i)
    if ((rows.stride[i] == 0) != (columns.stride[i] == 0))
      blockRows = 1;
  // The loop over columns is outside, so that the accumulators of a block
  // stay in the cache. Each output adds its points in the same order either
  // way.
  for (int64_t column = 0; column < columns.extent; column += blockColumns)
    for (int64_t row = 0; row < rows.extent; row += blockRows)
      runBlock(offset, row, column,
               {std::min(blockRows, rows.extent - row),
                std::min(blockColumns, columns.extent - column)});
}

ReduceOp StructuredLoop::ReductionRun::combiner() const {
  return combinerFor(instr.combiner, nest.elem[0], core.ieee);
}

float *StructuredLoop::ReductionRun::resultOf(const void *row,
                                              const int64_t *offset) const {
  if (!isOneRow() || !isPlain || columns.stride[0] != 1 ||
      nest.at(0, offset[0]) != row)
    return nullptr;
  int out = nest.numInputs;
  return reinterpret_cast<float *>(nest.at(out, offset[out]));
}

bool StructuredLoop::ReductionRun::prepareSum(const float *row,
                                              const int64_t *offset,
                                              std::optional<ChainSteps> &chain,
                                              SumOfChain &sum) {
  if (!isOneRow() || !isSumOfRows)
    return false;
  int out = nest.numInputs;
  sum.acc = reinterpret_cast<float *>(nest.at(out, offset[out]));
  sum.row = row;
  sum.numSteps = 0;
  sum.isDone = false;
  if (resultOf(row, offset))
    return true;
  if (!body.isChain() || body.ops[0].elem != Elem::F16)
    return false;
  for (int i = 0; i < nest.numInputs; ++i) {
    if (columns.stride[i] != 0 && columns.stride[i] != 1)
      return false;
    bindInput(core, frame, body.inputs[i], nest.elem[i], nest.at(i, offset[i]),
              {1, columns.extent}, 0, columns.stride[i], body.numScratch + i);
  }
  const ScalarOp &op = body.ops[0];
  if (frame.ptr[op.a] != row || frame.step[op.a] != 1)
    return false;
  chain.emplace(&op, frame, core.ieee);
  sum.steps = chain->steps;
  sum.numSteps = op.chain;
  return true;
}

void StructuredLoop::ReductionRun::runBlock(const int64_t *offset, int64_t row,
                                            int64_t column, BlockShape shape) {
  for (int i = 0; i < nest.numInputs; ++i)
    bindInput(core, frame, body.inputs[i], nest.elem[i],
              nest.at(i, offset[i] + row * rows.stride[i] +
                             column * columns.stride[i]),
              shape, rows.stride[i], columns.stride[i], body.numScratch + i);
  int out = nest.numInputs;
  Elem elem = nest.elem[out];
  uint8_t *acc = nest.at(out, offset[out]);
  if (isSumOfRows && sumChainRows(core, instr, frame, shape,
                                  reinterpret_cast<float *>(acc) + row))
    return;
  runProgram(core, body, frame, size_t(shape.rows * shape.columns),
             uniform.areAsBefore(frame, nest.numInputs));
  int reg = body.yields[0];
  const void *x = frame.ptr[reg];
  if (frame.step[reg] == 0) {
    void *spread = scratchBuffer(core, body.numScratch + nest.numOperands);
    size_t count[1] = {size_t(shape.rows * shape.columns)};
    ptrdiff_t one[1] = {1}, zero[1] = {0};
    copyBox(elem, spread, one, x, zero, count, 1);
    x = spread;
  }
  foldBlock(core, instr, elem, rowWise, x, shape,
            acc + (rowWise ? row : column) * int64_t(hostSize(elem)));
}

void StructuredLoop::runReduction(Core &core, Nest &nest) const {
  ReductionRun(*this, core, nest).run();
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

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

/// The version of an input that is read where it is, or 0.
uint64_t StructuredLoop::versionOf(const Core &core, int input) const {
  const Buffer *buffer = core.tensors[inputs[input].use.slot].buffer;
  return buffer ? buffer->version : 0;
}

/// Whether gemmOfHalves() makes the product of so many rows.
bool StructuredLoop::usesHalves(const Nest &nest, const MatrixLoops &loops) {
  return kernels().gemmOfHalves && nest.elem[0] == Elem::F16 &&
         nest.elem[1] == Elem::F16 && isFloat(nest.elem[2]) &&
         loops.m.extent >= int64_t(kMinRowsOfHalves);
}

void StructuredLoop::runContraction(Core &core, Nest &nest) const {
  const Factor factors[] = {{nest, 0}, {nest, 1}};
  const MatrixLoops loops = takeMatrixLoops(nest);
  const auto &[m, n, k, left, right] = loops;
  constexpr int c = 2;
  const KernelTable &table = kernels();
  bool isFloatSum = isFloat(nest.elem[c]);
  const bool areHalves = usesHalves(nest, loops);
  HalfFactor halves[2];
  if (areHalves)
    for (int i : {left, right}) {
      const Loop &rows = i == left ? m : k, &columns = i == left ? k : n;
      halves[i].rowStride = rows.stride[i];
      halves[i].columnStride = columns.stride[i];
      halves[i].version = versionOf(core, i);
      if (nest.halves[i])
        halves[i] = *nest.halves[i];
    }
  // Integers are summed in parts, exactly.
  std::vector<float> part(isFloatSum ? 0 : m.extent * n.extent);
  int64_t depth = isFloatSum ? k.extent : kExactProducts;
  Odometer<Loop> odometer(nest.loops, nest.numLoops, nest.numOperands);
  do {
    uint8_t *sums = nest.at(c, odometer.offset[c]);
    if (areHalves) {
      for (int i : {left, right})
        if (!nest.halves[i])
          halves[i].values = factors[i].at(odometer.offset[i]);
      table.gemmOfHalves(m.extent, n.extent, k.extent, halves[left],
                         halves[right], reinterpret_cast<float *>(sums),
                         m.stride[c]);
      continue;
    }
    if (nest.codes >= 0) {
      assert(nest.codes == right && !areHalves);
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
