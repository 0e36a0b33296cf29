// SPDX-License-Identifier: Apache-2.0
//===- LoopReduce.cpp - Reductions ----------------------------------------===//

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
