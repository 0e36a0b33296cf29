// SPDX-License-Identifier: Apache-2.0
//===- LoopBlocks.h - Blocks of points in registers -------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_LOOPBLOCKS_H
#define SPYRE_LIB_RUNTIME_ENGINE_LOOPBLOCKS_H

#include "LoopNest.h"

#include <optional>

namespace spyre::runtime {

/// The shape of a block of points: `rows` iterations of one loop times
/// `columns` iterations of another.
struct BlockShape {
  int64_t rows, columns;
};

/// Prepares linalg.index for a block: loop `l` of `loops` is at `index[l]`,
/// and the block has `shape.rows` iterations of one loop, from `row` on, times
/// `shape.columns` of another. Loops that the nest has not got are at 0.
template <typename LoopT>
void setIndices(ScalarFrame &frame, int numLoops, const LoopT *loops, int count,
                const int64_t *index, const LoopT &rows, int64_t row,
                const LoopT &columns, int64_t column, BlockShape shape) {
  for (int l = 0; l < numLoops; ++l)
    frame.indexBase[l] = frame.indexDivisor[l] = frame.indexExtent[l] = 0;
  for (int l = 0; l < count; ++l)
    frame.indexBase[loops[l].original] = index[l];
  if (rows.original >= 0) {
    frame.indexBase[rows.original] = row;
    frame.indexDivisor[rows.original] = shape.rows > 1 ? shape.columns : 0;
  }
  if (columns.original >= 0) {
    frame.indexBase[columns.original] = column;
    frame.indexDivisor[columns.original] = 1;
    frame.indexExtent[columns.original] = shape.rows > 1 ? shape.columns : 0;
  }
}

/// Points register `reg` at the block's values of one operand, copying them
/// to `scratch` if they are neither dense nor uniform.
void bindInput(Core &core, ScalarFrame &frame, int reg, Elem elem,
               uint8_t *address, BlockShape shape, int64_t rowStride,
               int64_t columnStride, int scratch);

/// Remembers the uniform inputs of a body in the last block.
class UniformInputs {
public:
  explicit UniformInputs(const ScalarProgram &body) : body(body) {}
  /// Whether the uniform ones among the first `count` inputs are the same as in
  /// the last block. Then values that the body computes from them alone are the
  /// same, too.
  bool areAsBefore(const ScalarFrame &frame, int count) {
    bool same = !isFirst;
    isFirst = false;
    for (int i = 0; i < count; ++i) {
      int reg = body.inputs[i];
      const void *now = frame.step[reg] == 0 ? frame.ptr[reg] : nullptr;
      same &= now == last[i];
      last[i] = now;
    }
    return same;
  }

private:
  const ScalarProgram &body;
  bool isFirst = true;
  const void *last[StructuredLoop::kMaxOperands] = {};
};

/// A parallel nest, block by block of its two innermost loops ("rows" and
/// "columns").
class StructuredLoop::BlockwiseRun {
public:
  BlockwiseRun(const StructuredLoop &instr, Core &core, const Nest &nest);
  void run();

  /// Runs row after row, when the caller says so: runRow() in ascending order
  /// without gaps, between the other two.
  void beginRows();
  /// Lets the rows be added up where they are made.
  void addUp(SumOfChain &sum) {
    sum.reg = body.yields[0];
    sum.count = size_t(columns.extent);
    frame.sum = &sum;
  }
  void runRow(int64_t row);
  void endRows();

private:
  void chooseBlocks();
  bool canTakeWholeRows() const;
  void runBlock(int64_t row, int64_t column);
  void runBody(BlockShape shape);
  /// Runs rows that are one block each, until operands have to be copied.
  /// Returns how many.
  int64_t runRows();
  void findPlaces(int64_t row, BlockShape shape);
  bool bindRows(int k, int64_t row, int64_t column, BlockShape shape);
  void bindOperands(int64_t row, int64_t column, BlockShape shape);
  void writeOutputs(int64_t row, int64_t column, BlockShape shape);
  void resetOutputs();

  uint8_t *address(int operand, int64_t row, int64_t column) const {
    return nest.at(operand, odometer.offset[operand] +
                                row * rows.stride[operand] +
                                column * columns.stride[operand]);
  }
  static Loop unitLoop() {
    Loop unit{};
    unit.extent = 1;
    unit.original = -1;
    return unit;
  }

  const StructuredLoop &instr;
  const ScalarProgram &body;
  Core &core;
  const Nest &nest;
  const Loop unit = unitLoop(); ///< in place of loops that the nest lacks
  const Loop &columns, &rows;
  const int numOuter, out0, numYields;
  int64_t blockRows = 1, blockColumns = 1;
  /// A yield's register can be the output itself if an operation makes it and
  /// no other yield shares it.
  bool isDirect[kMaxOperands];
  /// An output that the body reads changes where it is.
  bool readsAnyOutput;
  ScalarFrame frame;
  UniformInputs uniform;
  Odometer<Loop> odometer; ///< of the loops around the blocks
  /// If each row is one block, and the body reads and writes all operands where
  /// they are, they are bound once, and move on from row to row.
  bool movesOn = false;
  struct Place {
    int reg;
    int64_t distance; ///< bytes from one row to the next
  };
  Place places[kMaxOperands];
  int numPlaces = 0;
};

/// A reduction whose points are added in blocks.
class StructuredLoop::ReductionRun {
public:
  /// Sorts the loops of the nest, which is to stay.
  ReductionRun(const StructuredLoop &instr, Core &core, Nest &nest);
  void run();
  /// Reduces the points of the two inner loops, with the operands this far
  /// from where the nest has them.
  void runAt(const int64_t *offset);

  /// The only result of runAt(), if it combines the row of values at `row` as
  /// they are. Null if it does anything else.
  float *resultOf(const void *row, const int64_t *offset) const;
  /// Prepares `sum` to do what runAt() does, if that is the sum of what a chain
  /// makes of the values at `row`. `chain` keeps the steps.
  bool prepareSum(const float *row, const int64_t *offset,
                  std::optional<ChainSteps> &chain, SumOfChain &sum);
  ReduceOp combiner() const;

private:
  static Loop unitLoop() {
    Loop unit{};
    unit.extent = 1;
    return unit;
  }
  /// Whether there is one result, of one row.
  bool isOneRow() const {
    return rowWise && rows.extent == 1 && nest.numLoops == 0 &&
           isFloat(nest.elem[nest.numInputs]) && columns.isReduction;
  }
  void runBlock(const int64_t *offset, int64_t row, int64_t column,
                BlockShape shape);

  const StructuredLoop &instr;
  const ScalarProgram &body;
  Core &core;
  Nest &nest;
  /// If `rowWise`, rows are neighbouring output points; otherwise they are
  /// reduction points.
  Loop columns = unitLoop(), rows = unitLoop();
  bool rowWise = false;
  bool isPlain;     ///< the body yields its input, which is reduced directly
  bool isSumOfRows; ///< of floats
  ScalarFrame frame;
  UniformInputs uniform;
};

/// Writes a register to the block's place in an output, which is DL16 codes if
/// `isCodes`.
void writeOutput(ScalarFrame &frame, int reg, Elem elem, uint8_t *address,
                 BlockShape shape, int64_t rowStride, int64_t columnStride,
                 bool isCodes = false);

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_LOOPBLOCKS_H
