// SPDX-License-Identifier: Apache-2.0
//===- LoopParallel.cpp - Parallel loops, blocks of points ----------------===//

#include "LoopBlocks.h"

using namespace spyre::runtime;

void spyre::runtime::bindInput(Core &core, ScalarFrame &frame, int reg,
                               Elem elem, uint8_t *address, BlockShape shape,
                               int64_t rowStride, int64_t columnStride,
                               int scratch) {
  bool rowsMatter = shape.rows > 1, columnsMatter = shape.columns > 1;
  if ((!rowsMatter || rowStride == 0) &&
      (!columnsMatter || columnStride == 0)) {
    frame.ptr[reg] = address;
    frame.step[reg] = 0;
    return;
  }
  frame.step[reg] = 1;
  if ((!columnsMatter || columnStride == 1) &&
      (!rowsMatter || rowStride == shape.columns)) {
    frame.ptr[reg] = address;
    return;
  }
  void *buffer = scratchBuffer(core, scratch);
  size_t sizes[2] = {size_t(shape.rows), size_t(shape.columns)};
  ptrdiff_t to[2] = {ptrdiff_t(shape.columns), 1};
  ptrdiff_t from[2] = {rowStride, columnStride};
  copyBox(elem, buffer, to, address, from, sizes, 2);
  frame.ptr[reg] = buffer;
}

void spyre::runtime::writeOutput(ScalarFrame &frame, int reg, Elem elem,
                                 uint8_t *address, BlockShape shape,
                                 int64_t rowStride, int64_t columnStride,
                                 bool isCodes) {
  if (frame.ptr[reg] == address)
    return;
  size_t sizes[2] = {size_t(shape.rows), size_t(shape.columns)};
  ptrdiff_t to[2] = {rowStride, columnStride};
  ptrdiff_t step = frame.step[reg];
  ptrdiff_t from[2] = {step * ptrdiff_t(shape.columns), step};
  if (isCodes)
    return kernels().storeFloat(ElementFormat::DL16, address, to,
                                static_cast<const float *>(frame.ptr[reg]),
                                from, sizes, 2);
  copyBox(elem, address, to, frame.ptr[reg], from, sizes, 2);
}

static bool isDense(BlockShape shape, int64_t rowStride, int64_t columnStride) {
  return (shape.columns == 1 || columnStride == 1) &&
         (shape.rows == 1 || rowStride == shape.columns);
}

StructuredLoop::BlockwiseRun::BlockwiseRun(const StructuredLoop &instr,
                                           Core &core, const Nest &nest)
    : instr(instr), body(instr.body), core(core), nest(nest),
      columns(nest.numLoops > 0 ? nest.loops[nest.numLoops - 1] : unit),
      rows(nest.numLoops > 1 ? nest.loops[nest.numLoops - 2] : unit),
      numOuter(std::max(nest.numLoops - 2, 0)), out0(nest.numInputs),
      numYields(static_cast<int>(body.yields.size())), uniform(body),
      odometer(nest.loops, numOuter, nest.numOperands) {
  enterProgram(core, body, frame);
  for (int y = 0; y < numYields; ++y) {
    int reg = body.yields[y];
    isDirect[y] =
        body.scratch[reg] >= 0 &&
        std::count(body.yields.begin(), body.yields.end(), reg) == 1 &&
        (nest.codes != out0 + y || body.endsChain(reg));
  }
  readsAnyOutput = std::find(instr.readsOutput.begin(), instr.readsOutput.end(),
                             true) != instr.readsOutput.end();
  chooseBlocks();
}

void StructuredLoop::BlockwiseRun::chooseBlocks() {
  blockColumns = std::min(columns.extent, kBlock);
  // With many columns, a block is part of one row: operands that depend on only
  // one of the two loops then need no copies.
  blockRows = columns.extent >= kBlock / 4
                  ? 1
                  : std::min(rows.extent,
                             std::max<int64_t>(kBlock / columns.extent, 1));
  if (blockRows == 1 && blockColumns < columns.extent && canTakeWholeRows())
    blockColumns = columns.extent;
}

/// Whether a whole row can be one block, because no values need scratch
/// buffers.
bool StructuredLoop::BlockwiseRun::canTakeWholeRows() const {
  if (instr.hasIndex || core.shadow)
    return false;
  bool varies[kMaxOperands], isContiguous = true, toPlace[kMaxOperands];
  for (int k = 0; k < nest.numOperands; ++k) {
    varies[k] = columns.stride[k] != 0;
    isContiguous &= columns.stride[k] == 0 || columns.stride[k] == 1;
  }
  for (int y = 0; y < numYields; ++y)
    toPlace[y] = isDirect[y] && columns.stride[out0 + y] == 1;
  return isContiguous && body.runsWithoutScratch(varies, toPlace);
}

void StructuredLoop::BlockwiseRun::run() {
  do {
    for (int64_t row = runRows(); row < rows.extent; row += blockRows)
      for (int64_t column = 0; column < columns.extent; column += blockColumns)
        runBlock(row, column);
  } while (odometer.next());
}

void StructuredLoop::BlockwiseRun::runBlock(int64_t row, int64_t column) {
  BlockShape shape{std::min(blockRows, rows.extent - row),
                   std::min(blockColumns, columns.extent - column)};
  bindOperands(row, column, shape);
  if (instr.hasIndex)
    setIndices(frame, instr.numLoops, nest.loops, numOuter, odometer.index,
               rows, row, columns, column, shape);
  runBody(shape);
  writeOutputs(row, column, shape);
}

void StructuredLoop::BlockwiseRun::runBody(BlockShape shape) {
  bool keepUniform =
      !readsAnyOutput && !instr.hasIndex && uniform.areAsBefore(frame, out0);
  runProgram(core, body, frame, size_t(shape.rows * shape.columns),
             keepUniform);
}

int64_t StructuredLoop::BlockwiseRun::runRows() {
  if (blockRows != 1 || rows.extent == 1)
    return 0;
  beginRows();
  int64_t row = 0;
  while (movesOn && row < rows.extent)
    runRow(row++);
  endRows();
  return row;
}

void StructuredLoop::BlockwiseRun::beginRows() {
  blockRows = 1;
  numPlaces = 0;
  movesOn =
      blockColumns == columns.extent && !readsAnyOutput && !instr.hasIndex;
}

void StructuredLoop::BlockwiseRun::runRow(int64_t row) {
  if (!movesOn) {
    for (int64_t column = 0; column < columns.extent; column += blockColumns)
      runBlock(row, column);
    return;
  }
  BlockShape shape{1, columns.extent};
  if (numPlaces == 0)
    findPlaces(row, shape);
  else
    for (int i = 0; i < numPlaces; ++i)
      frame.ptr[places[i].reg] =
          static_cast<uint8_t *>(frame.ptr[places[i].reg]) + places[i].distance;
  runBody(shape);
  for (int y = 0; y < numYields; ++y)
    movesOn &= frame.step[body.yields[y]] == 1;
  if (!movesOn)
    writeOutputs(row, 0, shape);
}

void StructuredLoop::BlockwiseRun::findPlaces(int64_t row, BlockShape shape) {
  bindOperands(row, 0, shape);
  auto add = [&](int reg, int k) {
    places[numPlaces++] = {reg, address(k, 1, 0) - address(k, 0, 0)};
    movesOn &= frame.ptr[reg] == address(k, row, 0);
  };
  for (int k = 0; k < out0; ++k)
    add(body.inputs[k], k);
  for (int y = 0; y < numYields; ++y)
    add(body.yields[y], out0 + y);
}

void StructuredLoop::BlockwiseRun::endRows() {
  if (movesOn && numPlaces > 0)
    resetOutputs();
}

/// Lets chains read input k of a block of rows where it is, if it repeats along
/// rows or along columns, or rows lie apart.
bool StructuredLoop::BlockwiseRun::bindRows(int k, int64_t row, int64_t column,
                                            BlockShape shape) {
  int64_t rowStride = rows.stride[k], columnStride = columns.stride[k];
  bool isUniform = rowStride == 0 && columnStride == 0;
  if (shape.rows == 1 || shape.columns == 1 || core.shadow || isUniform ||
      !body.isReadByChains[size_t(k)] || !isFloat(nest.elem[k]) ||
      (columnStride != 0 && columnStride != 1) ||
      isDense(shape, rowStride, columnStride))
    return false;
  int reg = body.inputs[k];
  frame.ptr[reg] = address(k, row, column);
  frame.step[reg] = uint8_t(columnStride);
  frame.rowStride[reg] = rowStride;
  frame.isByRows[reg] = frame.hasRows = true;
  frame.rows = size_t(shape.rows);
  frame.columns = size_t(shape.columns);
  return true;
}

void StructuredLoop::BlockwiseRun::bindOperands(int64_t row, int64_t column,
                                                BlockShape shape) {
  frame.hasRows = false;
  for (int k = 0; k < nest.numOperands; ++k) {
    int reg = body.inputs[k];
    if (k >= out0 && !instr.readsOutput[k - out0])
      continue;
    frame.isByRows[reg] = false;
    if (k < out0 && bindRows(k, row, column, shape))
      continue;
    bindInput(core, frame, reg, nest.elem[k], address(k, row, column), shape,
              rows.stride[k], columns.stride[k], body.numScratch + k);
  }
  for (int y = 0; y < numYields; ++y)
    if (isDirect[y] &&
        isDense(shape, rows.stride[out0 + y], columns.stride[out0 + y])) {
      frame.ptr[body.yields[y]] = address(out0 + y, row, column);
      if (nest.codes == out0 + y) {
        frame.codes = body.yields[y];
        frame.pastCaches = nest.pastCaches;
      }
    }
}

void StructuredLoop::BlockwiseRun::writeOutputs(int64_t row, int64_t column,
                                                BlockShape shape) {
  for (int y = 0; y < numYields; ++y) {
    int reg = body.yields[y], k = out0 + y;
    // A uniform result is one value, which is written to all points. It is
    // copied first, as it may be in the output itself.
    void *own = frame.ptr[reg];
    Scalar value;
    if (frame.step[reg] == 0) {
      std::memcpy(&value, own, hostSize(nest.elem[k]));
      frame.ptr[reg] = &value;
    }
    writeOutput(frame, reg, nest.elem[k], address(k, row, column), shape,
                rows.stride[k], columns.stride[k], nest.codes == k);
    frame.ptr[reg] = own;
  }
  resetOutputs();
}

void StructuredLoop::BlockwiseRun::resetOutputs() {
  for (int y = 0; y < numYields; ++y)
    if (int reg = body.yields[y]; isDirect[y])
      frame.ptr[reg] = scratchBuffer(core, body.scratch[reg]);
  frame.codes = -1;
}

/// Makes the loop along which operand `k` is dense the innermost one, and puts
/// the loop with the next smallest stride before it, so that blocks of rows are
/// dense.
template <typename NestT>
static void putDenseLoopsLast(NestT &nest, int k) {
  if (nest.numLoops <= 1)
    return;
  int best = nest.numLoops - 1;
  for (int l = nest.numLoops - 1; l >= 0; --l)
    if (nest.loops[l].stride[k] == 1 && nest.loops[l].extent > 1) {
      best = l;
      break;
    }
  if (nest.loops[best].stride[k] == 1)
    nest.moveToBack(best);
  int64_t inner = nest.loops[nest.numLoops - 1].extent;
  for (int l = nest.numLoops - 2; l >= 0; --l)
    if (nest.loops[l].stride[k] == inner) {
      auto moved = nest.loops[l];
      for (int i = l; i + 2 < nest.numLoops; ++i)
        nest.loops[i] = nest.loops[i + 1];
      nest.loops[nest.numLoops - 2] = moved;
      break;
    }
}

void StructuredLoop::runParallel(Core &core, Nest &nest) const {
  if (!hasIndex)
    simplify(nest);
  putDenseLoopsLast(nest, nest.numInputs);
  BlockwiseRun(*this, core, nest).run();
}
