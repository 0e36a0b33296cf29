// SPDX-License-Identifier: Apache-2.0
//===- LoopOrdered.cpp - Index reductions, and loops in order -------------===//

#include "LoopBlocks.h"

using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Value and index of a maximum or minimum
//===----------------------------------------------------------------------===//

/// Whether a value replaces the best one so far. NaN replaces numbers, and of
/// equal values the one with the smaller index is better. As this is a total
/// order, points may come in any sequence.
static bool isBetter(bool isMax, float value, int64_t index, float best,
                     int64_t bestIndex) {
  bool valueIsNan = value != value, bestIsNan = best != best;
  if (valueIsNan != bestIsNan)
    return valueIsNan;
  if (!valueIsNan && value != best)
    return isMax ? value > best : value < best;
  return index < bestIndex;
}

/// A reduction to a value and its index, block by block of results: each point
/// of the reduction is compared for all of them at once. For few points per
/// result.
class StructuredLoop::ArgReductionOfBlocks {
public:
  ArgReductionOfBlocks(const StructuredLoop &instr, Core &core)
      : instr(instr), core(core) {
    for (Loop *unit : {&columns, &rows}) {
      *unit = Loop{};
      unit->extent = 1;
      unit->original = -1;
    }
  }

  /// Chooses the loops over the results of a block. Returns false if that
  /// leaves fewer of them than points per result.
  bool choose(const Nest &nest);
  void run();

private:
  void runBlock(const int64_t *offset, const int64_t *index, int64_t row,
                int64_t column);

  const StructuredLoop &instr;
  Core &core;
  Nest nest; ///< without the loops of a block, the reductions last
  Loop columns, rows;
  int numParallel = 0; ///< loops of the nest that are no reductions
  int64_t blockRows = 1, blockColumns = 1;
  ScalarFrame frame;
};

bool StructuredLoop::ArgReductionOfBlocks::choose(const Nest &whole) {
  nest = whole;
  nest.reductionsLast();
  int out = nest.numInputs;
  auto take = [&](int64_t stride, Loop &taken) {
    for (int l = 0; l < nest.numLoops; ++l)
      if (const Loop &loop = nest.loops[l];
          !loop.isReduction && loop.extent > 1 && loop.stride[out] == stride &&
          loop.stride[out + 1] == stride) {
        taken = loop;
        nest.erase(l);
        return;
      }
  };
  take(1, columns);
  take(columns.extent, rows);
  int64_t points = 1;
  for (int l = 0; l < nest.numLoops; ++l) {
    numParallel += !nest.loops[l].isReduction;
    if (nest.loops[l].isReduction)
      points *= nest.loops[l].extent;
  }
  blockColumns = std::min(columns.extent, kBlock);
  blockRows = std::min(rows.extent, kBlock / blockColumns);
  // Points of one result that lie beside each other come row by row from a
  // cache, those of different results do not.
  constexpr int64_t kFewPoints = 128;
  for (int i = 0; i < nest.numInputs; ++i)
    if (columns.stride[i] > 1 && points > kFewPoints)
      return false;
  return points < blockRows * blockColumns;
}

void StructuredLoop::ArgReductionOfBlocks::run() {
  enterProgram(core, instr.body, frame);
  Odometer<Loop> results(nest.loops, numParallel, nest.numOperands);
  do {
    for (int64_t row = 0; row < rows.extent; row += blockRows)
      for (int64_t column = 0; column < columns.extent; column += blockColumns)
        runBlock(results.offset, results.index, row, column);
  } while (results.next());
}

void StructuredLoop::ArgReductionOfBlocks::runBlock(const int64_t *offset,
                                                    const int64_t *index,
                                                    int64_t row,
                                                    int64_t column) {
  const KernelTable &k = kernels();
  const ScalarProgram &body = instr.body;
  BlockShape shape{std::min(blockRows, rows.extent - row),
                   std::min(blockColumns, columns.extent - column)};
  auto count = size_t(shape.rows * shape.columns);
  int out = nest.numInputs, valueReg = body.yields[0],
      indexReg = body.yields[1];
  auto address = [&](int operand, int64_t more) {
    return nest.at(operand, offset[operand] + more +
                                row * rows.stride[operand] +
                                column * columns.stride[operand]);
  };
  auto *best = reinterpret_cast<float *>(address(out, 0));
  uint8_t *bestIndex = address(out + 1, 0);
  int64_t at[kMaxLoops];
  std::copy_n(index, numParallel, at);
  Odometer<Loop> points(nest.loops + numParallel, nest.numLoops - numParallel,
                        nest.numOperands);
  do {
    for (int i = 0; i < out; ++i)
      bindInput(core, frame, body.inputs[i], nest.elem[i],
                address(i, points.offset[i]), shape, rows.stride[i],
                columns.stride[i], body.numScratch + i);
    std::copy_n(points.index, nest.numLoops - numParallel, at + numParallel);
    setIndices(frame, instr.numLoops, nest.loops, nest.numLoops, at, rows, row,
               columns, column, shape);
    runProgram(core, body, frame, count);
    auto *values = static_cast<const float *>(frame.ptr[valueReg]);
    const void *indices = frame.ptr[indexReg];
    size_t step = frame.step[valueReg], indexStep = frame.step[indexReg];
    if (isWide(nest.elem[out + 1]))
      k.keepBetterInt64(instr.isArgMax, values, step,
                        static_cast<const int64_t *>(indices), indexStep, best,
                        reinterpret_cast<int64_t *>(bestIndex), count);
    else
      k.keepBetterInt32(instr.isArgMax, values, step,
                        static_cast<const int32_t *>(indices), indexStep, best,
                        reinterpret_cast<int32_t *>(bestIndex), count);
  } while (points.next());
}

void StructuredLoop::runArgReduction(Core &core, Nest &nest) const {
  if (ArgReductionOfBlocks blocks(*this, core); blocks.choose(nest))
    return blocks.run();
  const KernelTable &k = kernels();
  int out = nest.numInputs;
  bool isWideIndex = isWide(nest.elem[out + 1]);
  nest.reductionsLast();
  // Vectorize the reduction loop along which the input is dense.
  int vector = -1;
  for (int l = 0; l < nest.numLoops; ++l)
    if (nest.loops[l].isReduction &&
        (vector < 0 || nest.loops[l].stride[0] == 1))
      vector = l;
  Loop columns = nest.loops[vector];
  nest.erase(vector);
  ScalarFrame frame;
  enterProgram(core, body, frame);
  int valueReg = body.yields[0], indexReg = body.yields[1];
  Odometer<Loop> odometer(nest.loops, nest.numLoops, nest.numOperands);
  do {
    float *best = reinterpret_cast<float *>(nest.at(out, odometer.offset[out]));
    uint8_t *bestIndex = nest.at(out + 1, odometer.offset[out + 1]);
    for (int64_t column = 0; column < columns.extent; column += kBlock) {
      BlockShape shape{1, std::min(kBlock, columns.extent - column)};
      for (int i = 0; i < nest.numInputs; ++i)
        bindInput(core, frame, body.inputs[i], nest.elem[i],
                  nest.at(i, odometer.offset[i] + column * columns.stride[i]),
                  shape, 0, columns.stride[i], body.numScratch + i);
      for (int l = 0; l < numLoops; ++l)
        frame.indexDivisor[l] = frame.indexExtent[l] = 0;
      for (int l = 0; l < nest.numLoops; ++l)
        frame.indexBase[nest.loops[l].original] = odometer.index[l];
      frame.indexBase[columns.original] = column;
      frame.indexDivisor[columns.original] = 1;
      runProgram(core, body, frame, size_t(shape.columns));

      const float *values = static_cast<const float *>(frame.ptr[valueReg]);
      int64_t valueStep = frame.step[valueReg];
      // Most blocks have no value as good as the best one so far: skip these.
      if (valueStep == 1) {
        float extreme = values[0];
        k.reduceRows(isArgMax ? ReduceOp::Max : ReduceOp::Min, values, 1,
                     size_t(shape.columns), shape.columns, &extreme);
        if (extreme == extreme &&
            (isArgMax ? extreme < *best : extreme > *best))
          continue;
      }
      const void *indices = frame.ptr[indexReg];
      int64_t indexStep = frame.step[indexReg];
      for (int64_t c = 0; c < shape.columns; ++c) {
        float value = values[c * valueStep];
        int64_t index =
            isWideIndex ? static_cast<const int64_t *>(indices)[c * indexStep]
                        : static_cast<const int32_t *>(indices)[c * indexStep];
        int64_t current = isWideIndex ? *reinterpret_cast<int64_t *>(bestIndex)
                                      : *reinterpret_cast<int32_t *>(bestIndex);
        if (!isBetter(isArgMax, value, index, *best, current))
          continue;
        *best = value;
        if (isWideIndex)
          *reinterpret_cast<int64_t *>(bestIndex) = index;
        else
          *reinterpret_cast<int32_t *>(bestIndex) = static_cast<int32_t>(index);
      }
    }
  } while (odometer.next());
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

void StructuredLoop::runGeneral(Core &core, Nest &nest) const {
  int out0 = nest.numInputs;
  // Parallel loops are outside and reductions inside, each in their order, and
  // one parallel loop is vectorized.
  nest.reductionsLast();
  int vector = -1;
  for (int l = 0; l < nest.numLoops; ++l)
    if (!nest.loops[l].isReduction &&
        (vector < 0 || nest.loops[l].extent >= nest.loops[vector].extent))
      vector = l;
  Loop columns{};
  columns.extent = 1;
  columns.original = -1;
  if (vector >= 0) {
    columns = nest.loops[vector];
    nest.erase(vector);
  }
  ScalarFrame frame;
  enterProgram(core, body, frame);
  int numYields = static_cast<int>(body.yields.size());
  Odometer<Loop> odometer(nest.loops, nest.numLoops, nest.numOperands);
  do {
    for (int64_t column = 0; column < columns.extent; column += kBlock) {
      BlockShape shape{1, std::min(kBlock, columns.extent - column)};
      auto address = [&](int k) {
        return nest.at(k, odometer.offset[k] + column * columns.stride[k]);
      };
      for (int k = 0; k < nest.numOperands; ++k)
        bindInput(core, frame, body.inputs[k], nest.elem[k], address(k), shape,
                  0, columns.stride[k], body.numScratch + k);
      if (hasIndex) {
        for (int l = 0; l < numLoops; ++l)
          frame.indexDivisor[l] = frame.indexExtent[l] = 0;
        for (int l = 0; l < nest.numLoops; ++l)
          frame.indexBase[nest.loops[l].original] = odometer.index[l];
        if (columns.original >= 0) {
          frame.indexBase[columns.original] = column;
          frame.indexDivisor[columns.original] = 1;
        }
      }
      runProgram(core, body, frame, size_t(shape.columns));
      // A body may yield the argument of another output, so read all values
      // before writing any.
      for (int y = 0; y < numYields; ++y) {
        int reg = body.yields[y];
        bool isArgument = body.scratch[reg] < 0;
        if (!isArgument || numYields == 1)
          continue;
        void *copy =
            scratchBuffer(core, body.numScratch + nest.numOperands + y);
        size_t count = frame.step[reg] ? size_t(shape.columns) : 1;
        std::memcpy(copy, frame.ptr[reg],
                    count * hostSize(nest.elem[out0 + y]));
        frame.ptr[reg] = copy;
      }
      for (int y = 0; y < numYields; ++y)
        writeOutput(frame, body.yields[y], nest.elem[out0 + y],
                    address(out0 + y), shape, 0, columns.stride[out0 + y]);
    }
  } while (odometer.next());
}
