// SPDX-License-Identifier: Apache-2.0
//===- GenericParallel.cpp - Parallel loops, blocks of points -------------===//

#include "GenericBlocks.h"

using namespace spyre::runtime;

void spyre::runtime::copyBox(Elem elem, void *dst, const ptrdiff_t *dstStrides,
                             const void *src, const ptrdiff_t *srcStrides,
                             const size_t *shape, unsigned rank) {
  const KernelTable &k = kernels();
  if (isFloat(elem))
    k.copyFloat(static_cast<float *>(dst), dstStrides,
                static_cast<const float *>(src), srcStrides, shape, rank);
  else if (isWide(elem))
    k.copyInt64(static_cast<int64_t *>(dst), dstStrides,
                static_cast<const int64_t *>(src), srcStrides, shape, rank);
  else
    k.copyInt32(static_cast<int32_t *>(dst), dstStrides,
                static_cast<const int32_t *>(src), srcStrides, shape, rank);
}

void spyre::runtime::bindInput(Core &core, BodyFrame &frame, int reg, Elem elem,
                               uint8_t *address, BlockShape shape,
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

void spyre::runtime::writeOutput(BodyFrame &frame, int reg, Elem elem,
                                 uint8_t *address, BlockShape shape,
                                 int64_t rowStride, int64_t columnStride) {
  if (frame.ptr[reg] == address)
    return;
  size_t sizes[2] = {size_t(shape.rows), size_t(shape.columns)};
  ptrdiff_t to[2] = {rowStride, columnStride};
  ptrdiff_t step = frame.step[reg];
  ptrdiff_t from[2] = {step * ptrdiff_t(shape.columns), step};
  copyBox(elem, address, to, frame.ptr[reg], from, sizes, 2);
}

static bool isDense(BlockShape shape, int64_t rowStride, int64_t columnStride) {
  return (shape.columns == 1 || columnStride == 1) &&
         (shape.rows == 1 || rowStride == shape.columns);
}

void GenericInstr::runParallel(Core &core, Nest &nest) const {
  int out0 = nest.numInputs;
  if (!hasIndex)
    simplify(nest);
  // The loop along which the first output is dense goes innermost.
  if (nest.numLoops > 1) {
    int best = nest.numLoops - 1;
    for (int l = nest.numLoops - 1; l >= 0; --l)
      if (nest.loops[l].stride[out0] == 1 && nest.loops[l].extent > 1) {
        best = l;
        break;
      }
    if (nest.loops[best].stride[out0] == 1)
      nest.moveToBack(best);
    // The next denser one before it, so that blocks of rows are dense.
    int64_t inner = nest.loops[nest.numLoops - 1].extent;
    for (int l = nest.numLoops - 2; l >= 0; --l)
      if (nest.loops[l].stride[out0] == inner) {
        Loop moved = nest.loops[l];
        for (int i = l; i + 2 < nest.numLoops; ++i)
          nest.loops[i] = nest.loops[i + 1];
        nest.loops[nest.numLoops - 2] = moved;
        break;
      }
  }

  Loop unit{};
  unit.extent = 1;
  unit.original = -1;
  const Loop &columns =
      nest.numLoops > 0 ? nest.loops[nest.numLoops - 1] : unit;
  const Loop &rows = nest.numLoops > 1 ? nest.loops[nest.numLoops - 2] : unit;
  int numOuter = std::max(nest.numLoops - 2, 0);
  int64_t blockColumns = std::min(columns.extent, kBlock);
  // Many columns: one row at a time leaves rows and columns unmaterialised.
  int64_t blockRows =
      columns.extent >= kBlock / 4
          ? 1
          : std::min(rows.extent,
                     std::max<int64_t>(kBlock / columns.extent, 1));

  BodyFrame frame;
  enterBody(core, body, frame);
  int numYields = static_cast<int>(body.yields.size());
  // A yield's register can be the output itself if an operation makes it and
  // no other yield shares it.
  bool direct[kMaxOperands];
  for (int y = 0; y < numYields; ++y) {
    int reg = body.yields[y];
    direct[y] = body.scratch[reg] >= 0 &&
                std::count(body.yields.begin(), body.yields.end(), reg) == 1;
  }
  // A row at once if nothing of it has to be put aside.
  if (blockRows == 1 && blockColumns < columns.extent && !hasIndex &&
      !core.shadow) {
    bool varies[kMaxOperands], isContiguous = true, toPlace[kMaxOperands];
    for (int k = 0; k < nest.numOperands; ++k) {
      varies[k] = columns.stride[k] != 0;
      isContiguous &= columns.stride[k] == 0 || columns.stride[k] == 1;
    }
    for (int y = 0; y < numYields; ++y)
      toPlace[y] = direct[y] && columns.stride[out0 + y] == 1;
    if (isContiguous && body.runsWithoutScratch(varies, toPlace))
      blockColumns = columns.extent;
  }
  auto setIndices = [&](const int64_t *outerIndex, int64_t row, int64_t column,
                        BlockShape shape) {
    for (int l = 0; l < numLoops; ++l) {
      frame.indexBase[l] = 0;
      frame.indexDivisor[l] = 0;
      frame.indexExtent[l] = 0;
    }
    for (int l = 0; l < numOuter; ++l)
      frame.indexBase[nest.loops[l].original] = outerIndex[l];
    if (rows.original >= 0) {
      frame.indexBase[rows.original] = row;
      frame.indexDivisor[rows.original] = shape.columns;
    }
    if (columns.original >= 0) {
      frame.indexBase[columns.original] = column;
      frame.indexDivisor[columns.original] = 1;
      frame.indexExtent[columns.original] = shape.rows > 1 ? shape.columns : 0;
    }
  };

  // An output that the body reads changes where it is.
  bool readsAnyOutput = std::find(readsOutput.begin(), readsOutput.end(),
                                  true) != readsOutput.end();
  UniformInputs uniform(body);
  Odometer<Loop> odometer(nest.loops, numOuter, nest.numOperands);
  do {
    for (int64_t row = 0; row < rows.extent; row += blockRows) {
      for (int64_t column = 0; column < columns.extent;
           column += blockColumns) {
        BlockShape shape{std::min(blockRows, rows.extent - row),
                         std::min(blockColumns, columns.extent - column)};
        auto address = [&](int k) {
          return nest.at(k, odometer.offset[k] + row * rows.stride[k] +
                                column * columns.stride[k]);
        };
        for (int k = 0; k < nest.numOperands; ++k) {
          int reg = body.inputs[k];
          if (k >= out0 && !readsOutput[k - out0])
            continue;
          bindInput(core, frame, reg, nest.elem[k], address(k), shape,
                    rows.stride[k], columns.stride[k], body.numScratch + k);
        }
        for (int y = 0; y < numYields; ++y)
          if (direct[y] &&
              isDense(shape, rows.stride[out0 + y], columns.stride[out0 + y]))
            frame.ptr[body.yields[y]] = address(out0 + y);
        if (hasIndex)
          setIndices(odometer.index, row, column, shape);
        bool keepUniform = !readsAnyOutput && uniform.areAsBefore(frame, out0);
        runBody(core, body, frame, size_t(shape.rows * shape.columns),
                keepUniform);
        for (int y = 0; y < numYields; ++y) {
          int reg = body.yields[y];
          // A uniform result is one value: it has to be spread, from a copy.
          uint8_t *to = address(out0 + y);
          Scalar value;
          if (frame.step[reg] == 0) {
            std::memcpy(&value, frame.ptr[reg], hostSize(nest.elem[out0 + y]));
            frame.ptr[reg] = &value;
          }
          writeOutput(frame, reg, nest.elem[out0 + y], to, shape,
                      rows.stride[out0 + y], columns.stride[out0 + y]);
          if (direct[y])
            frame.ptr[reg] = scratchBuffer(core, body.scratch[reg]);
        }
      }
    }
  } while (odometer.next());
}
