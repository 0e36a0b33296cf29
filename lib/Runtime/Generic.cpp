// SPDX-License-Identifier: Apache-2.0
//===- Generic.cpp - Structured loops over tiles --------------------------===//

#include "Generic.h"

#include <algorithm>
#include <type_traits>

using namespace spyre::runtime;

struct GenericInstr::Nest {
  Loop loops[kMaxLoops];
  int numLoops = 0;
  int numInputs = 0, numOperands = 0;
  uint8_t *base[kMaxOperands]; ///< address of the first point
  Elem elem[kMaxOperands];
  int64_t points = 1;

  uint8_t *at(int operand, int64_t offset) const {
    return base[operand] + offset * int64_t(hostSize(elem[operand]));
  }
  void erase(int loop) {
    for (int i = loop; i + 1 < numLoops; ++i)
      loops[i] = loops[i + 1];
    --numLoops;
  }
  /// Parallel loops first, each kind in its own order.
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

namespace {
/// Odometer over the loops [0, count): offsets per operand, ascending with
/// the last loop fastest.
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
  int64_t offset[GenericInstr::kMaxOperands];
  int64_t index[GenericInstr::kMaxLoops];

private:
  const LoopT *loops;
  int count, numOperands;
};
} // namespace

static void copyBox(Elem elem, void *dst, const ptrdiff_t *dstStrides,
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

//===----------------------------------------------------------------------===//
// Setting up
//===----------------------------------------------------------------------===//

void GenericInstr::makeNest(Core &core, Nest &nest) const {
  nest.numInputs = static_cast<int>(inputs.size());
  nest.numOperands = nest.numInputs + static_cast<int>(outputs.size());
  auto operand = [&](int k) -> const GenericOperand & {
    return k < nest.numInputs ? inputs[k] : outputs[k - nest.numInputs];
  };
  nest.numLoops = numLoops;
  nest.points = 1;
  for (int l = 0; l < numLoops; ++l) {
    auto [k, dim] = extentSource[l];
    Loop &loop = nest.loops[l];
    loop.extent = core.tensors[operand(k).use.slot].sizes[dim];
    loop.original = l;
    loop.isReduction = isReduction[l];
    std::fill(loop.stride, loop.stride + nest.numOperands, 0);
    nest.points *= loop.extent;
  }
  for (int k = 0; k < nest.numOperands; ++k) {
    const GenericOperand &o = operand(k);
    const TensorVal &t = core.tensors[o.use.slot];
    nest.elem[k] = o.elem;
    // Outputs become row-major.
    const int64_t *strides = nullptr;
    if (k < nest.numInputs && t.deferredTile >= 0)
      strides = core.tiles[t.deferredTile].hostStrides();
    else if (k < nest.numInputs && t.isPermuted)
      strides = t.strides;
    int64_t rowMajor = 1;
    for (int d = static_cast<int>(o.map.size()) - 1; d >= 0; --d) {
      const MapResult &result = o.map[d];
      int64_t step = strides ? strides[d] : rowMajor;
      int64_t low = result.constant, high = result.constant;
      for (auto [l, coefficient] : result.terms) {
        Loop &loop = nest.loops[l];
        loop.stride[k] += coefficient * step;
        int64_t last = coefficient * (loop.extent - 1);
        low += std::min<int64_t>(last, 0);
        high += std::max<int64_t>(last, 0);
      }
      bool isLoop = result.terms.size() == 1 && result.constant == 0 &&
                    result.terms[0].second == 1;
      if (isLoop && nest.loops[result.terms[0].first].extent != t.sizes[d])
        core.fail(location,
                  name + ": dimension " + std::to_string(d) + " of operand " +
                      std::to_string(k) + " has size " +
                      std::to_string(t.sizes[d]) + ", but its loop goes over " +
                      std::to_string(nest.loops[result.terms[0].first].extent));
      if (nest.points > 0 && (low < 0 || high >= t.sizes[d]))
        core.fail(location,
                  name + ": the loops reach index " +
                      std::to_string(low < 0 ? low : high) + " of dimension " +
                      std::to_string(d) + " of operand " + std::to_string(k) +
                      ", whose size is " + std::to_string(t.sizes[d]));
      rowMajor *= t.sizes[d];
    }
  }
}

void GenericInstr::prepareOutputs(Core &core, Nest &nest) const {
  for (size_t r = 0; r < outputs.size(); ++r) {
    const GenericOperand &out = outputs[r];
    TensorVal &init = core.tensors[out.use.slot];
    bool needsInit = readsOutput[r] || !coversOutput[r] || nest.points == 0;
    if (needsInit) {
      core.materialize(out.use.slot, out.elem);
      if (out.use.dies && init.buffer->references == 1) {
        core.moveTensor(results[r], out.use);
        continue;
      }
      TensorVal copy = init;
      core.tensors[results[r]].setShape(copy);
      core.allocateTensor(results[r], out.elem, copy.numElements);
      std::memcpy(core.tensors[results[r]].data, copy.data,
                  size_t(copy.numElements) * hostSize(out.elem));
      continue;
    }
    // Nothing of the initial value survives: overwrite a buffer that dies.
    if (out.use.dies && init.buffer && init.buffer->references == 1) {
      core.moveTensor(results[r], out.use);
      core.tensors[results[r]].isPermuted = false;
      continue;
    }
    bool reused = false;
    if (isInPlaceSafe && outputs.size() == 1)
      for (const GenericOperand &in : inputs) {
        TensorVal &t = core.tensors[in.use.slot];
        if (!in.use.dies || !t.buffer || t.isPermuted ||
            t.buffer->references != 1 ||
            hostSize(in.elem) != hostSize(out.elem) ||
            t.numElements != init.numElements)
          continue;
        bool sameMap = in.map.size() == out.map.size();
        for (size_t d = 0; sameMap && d < in.map.size(); ++d)
          sameMap = in.map[d].constant == out.map[d].constant &&
                    in.map[d].terms == out.map[d].terms;
        if (!sameMap)
          continue;
        // The input stays readable through its own slot until it is released.
        TensorVal shape = init;
        core.moveTensor(results[r], {in.use.slot, false});
        core.tensors[results[r]].setShape(shape);
        reused = true;
        break;
      }
    if (reused)
      continue;
    TensorVal shape = init;
    core.tensors[results[r]].setShape(shape);
    core.allocateTensor(results[r], out.elem, shape.numElements);
  }

  // Addresses, now that every buffer stands.
  for (int k = 0; k < nest.numOperands; ++k) {
    bool isInput = k < nest.numInputs;
    const GenericOperand &o = isInput ? inputs[k] : outputs[k - nest.numInputs];
    if (isInput && core.tensors[o.use.slot].deferredTile >= 0) {
      nest.base[k] = nullptr; // each strip has its own
      continue;
    }
    if (isInput && !core.tensors[o.use.slot].isPermuted)
      core.materialize(o.use.slot, o.elem);
    const TensorVal &t =
        core.tensors[isInput ? o.use.slot : results[k - nest.numInputs]];
    nest.base[k] = static_cast<uint8_t *>(t.data);
    int64_t step = 1, offset = 0;
    for (int d = static_cast<int>(o.map.size()) - 1; d >= 0; --d) {
      offset += o.map[d].constant * (t.isPermuted ? t.strides[d] : step);
      step *= t.sizes[d];
    }
    nest.base[k] += offset * int64_t(hostSize(o.elem));
  }
}

/// Drops unit loops and fuses neighbours that are one loop for all operands.
template <typename NestT>
static void simplify(NestT &nest) {
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

void GenericInstr::runNest(Core &core, Nest &nest) const {
  switch (strategy) {
  case Parallel:
    return runParallel(core, nest);
  case Reduction:
    return runReduction(core, nest);
  case Contraction:
    return runContraction(core, nest);
  case ArgReduction:
    return runArgReduction(core, nest);
  case General:
    return runGeneral(core, nest);
  }
}

void GenericInstr::run(Core &core) const {
  Nest nest;
  int strip = -1;
  bool hasDeferred = false;
  for (const GenericOperand &in : inputs)
    hasDeferred |= core.tensors[in.use.slot].deferredTile >= 0;
  if (hasDeferred) {
    strip = chooseStrip(core);
    if (strip < 0)
      for (const GenericOperand &in : inputs)
        loadDeferred(core, in);
  }
  makeNest(core, nest);
  prepareOutputs(core, nest);
  if (core.counters) {
    if (strategy == Contraction)
      core.counters->ptMacs += nest.points;
    else
      core.counters->sfuElementOps +=
          nest.points * (body.opsPerPoint + (strategy != Parallel));
  }
  if (nest.points == 0)
    return;
  if (strip >= 0)
    runStrips(core, nest, strip);
  else
    runNest(core, nest);
  if (strategy != Reduction && strategy != Contraction)
    return;
  // Accumulated in fp32: one rounding to the output's type at the end.
  Rounding rounding = roundingOf(outputs[0].elem, core.ieee);
  if (rounding != Rounding::None) {
    TensorVal &t = core.tensors[results[0]];
    kernels().round(t.f(), t.f(), t.numElements, rounding);
  }
}

//===----------------------------------------------------------------------===//
// Reading tiles piece by piece
//===----------------------------------------------------------------------===//

int GenericInstr::dimOf(const GenericOperand &operand, int loop) const {
  int found = -1;
  for (int d = 0; d < static_cast<int>(operand.map.size()); ++d)
    for (auto [l, coefficient] : operand.map[d].terms)
      if (l == loop) {
        if (found != -1 || operand.map[d].terms.size() != 1 ||
            coefficient != 1 || operand.map[d].constant != 0)
          return -2;
        found = d;
      }
  return found;
}

void GenericInstr::loadDeferred(Core &core,
                                const GenericOperand &operand) const {
  TensorVal &t = core.tensors[operand.use.slot];
  if (t.deferredTile < 0)
    return;
  const TileVal &tile = core.tiles[t.deferredTile];
  core.allocateTensor(operand.use.slot, operand.elem, t.numElements);
  tile.load(t.data, core.ieee);
  if (tile.plan->denseInnermost) {
    t.isPermuted = true;
    std::copy(tile.hostStrides(), tile.hostStrides() + t.rank, t.strides);
  }
}

/// A parallel loop along which every deferred input can be read in pieces.
/// Those that do not vary along it are read now. -1: there is none.
int GenericInstr::chooseStrip(Core &core) const {
  if (hasIndex || (strategy != Parallel && strategy != Reduction))
    return -1;
  for (int loop = 0; loop < numLoops; ++loop) {
    if (isReduction[loop])
      continue;
    bool fits = true, helps = false;
    for (const GenericOperand &in : inputs) {
      const TensorVal &t = core.tensors[in.use.slot];
      if (t.deferredTile < 0)
        continue;
      int dim = dimOf(in, loop);
      if (dim == -1)
        continue;
      const TileVal &tile = core.tiles[t.deferredTile];
      fits &= dim >= 0 && tile.isStrip(dim);
      helps = true;
    }
    if (!fits || !helps)
      continue;
    for (const GenericOperand &in : inputs)
      if (core.tensors[in.use.slot].deferredTile >= 0 && dimOf(in, loop) == -1)
        loadDeferred(core, in);
    return loop;
  }
  return -1;
}

void GenericInstr::runStrips(Core &core, const Nest &whole, int strip) const {
  // Bytes of all pieces together: about the first-level cache and a bit.
  constexpr int64_t kStripBytes = 64 << 10;
  int64_t extent = whole.loops[strip].extent;
  int64_t bytesPerStep = 0;
  struct Piece {
    int operand, dim;
    const TileVal *tile;
    Buffer *buffer;
  };
  Piece pieces[kMaxOperands];
  int numPieces = 0;
  for (int k = 0; k < whole.numInputs; ++k) {
    const TensorVal &t = core.tensors[inputs[k].use.slot];
    if (t.deferredTile < 0)
      continue;
    pieces[numPieces++] = {k, dimOf(inputs[k], strip),
                           &core.tiles[t.deferredTile], nullptr};
    bytesPerStep += t.numElements / extent * int64_t(hostSize(inputs[k].elem));
  }
  int64_t length = std::min(
      extent,
      std::max<int64_t>(kStripBytes / std::max<int64_t>(bytesPerStep, 1), 1));
  for (int i = 0; i < numPieces; ++i) {
    const TensorVal &t = core.tensors[inputs[pieces[i].operand].use.slot];
    pieces[i].buffer = core.pool->get(size_t(t.numElements / extent * length) *
                                      hostSize(inputs[pieces[i].operand].elem));
  }
  for (int64_t start = 0; start < extent; start += length) {
    Nest nest = whole;
    Loop &loop = nest.loops[strip];
    loop.extent = std::min(length, extent - start);
    for (int k = 0; k < nest.numOperands; ++k)
      nest.base[k] = nest.at(k, start * loop.stride[k]);
    for (int i = 0; i < numPieces; ++i) {
      pieces[i].tile->load(pieces[i].buffer->data(), core.ieee, pieces[i].dim,
                           start, loop.extent);
      nest.base[pieces[i].operand] = pieces[i].buffer->data();
    }
    runNest(core, nest);
  }
  for (int i = 0; i < numPieces; ++i)
    core.pool->release(pieces[i].buffer);
}

//===----------------------------------------------------------------------===//
// Blocks of registers
//===----------------------------------------------------------------------===//

namespace {
/// A block of points: `rows` steps of one loop times `columns` of another.
struct BlockShape {
  int64_t rows, columns;
};
} // namespace

/// Points register `reg` at the block's values of one operand, copying them
/// to `scratch` if they are neither dense nor uniform.
static void bindInput(Core &core, BodyFrame &frame, int reg, Elem elem,
                      uint8_t *address, BlockShape shape, int64_t rowStride,
                      int64_t columnStride, int scratch) {
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

static bool isDense(BlockShape shape, int64_t rowStride, int64_t columnStride) {
  return (shape.columns == 1 || columnStride == 1) &&
         (shape.rows == 1 || rowStride == shape.columns);
}

/// Writes a register to the block's place in an output.
static void writeOutput(BodyFrame &frame, int reg, Elem elem, uint8_t *address,
                        BlockShape shape, int64_t rowStride,
                        int64_t columnStride) {
  if (frame.ptr[reg] == address)
    return;
  size_t sizes[2] = {size_t(shape.rows), size_t(shape.columns)};
  ptrdiff_t to[2] = {rowStride, columnStride};
  ptrdiff_t step = frame.step[reg];
  ptrdiff_t from[2] = {step * ptrdiff_t(shape.columns), step};
  copyBox(elem, address, to, frame.ptr[reg], from, sizes, 2);
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
        runBody(core, body, frame, size_t(shape.rows * shape.columns));
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

/// Folds a dense block of registers into the accumulators: its rows one by
/// one (`acc` per row), or column by column.
static void foldBlock(const GenericInstr &instr, Elem elem, bool rowWise,
                      const void *x, BlockShape shape, void *acc) {
  const KernelTable &k = kernels();
  if (isFloat(elem)) {
    (rowWise ? k.reduceRows : k.accumulateRows)(
        instr.combiner, static_cast<const float *>(x), shape.rows,
        shape.columns, shape.columns, static_cast<float *>(acc));
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

void GenericInstr::runReduction(Core &core, Nest &nest) const {
  const KernelTable &k = kernels();
  simplify(nest);
  int out = nest.numInputs;
  auto firstOf = [&](auto &&predicate) {
    for (int l = nest.numLoops - 1; l >= 0; --l)
      if (predicate(nest.loops[l]))
        return l;
    return -1;
  };
  // Sort: parallel loops outside, reductions inside, in their own order.
  nest.reductionsLast();
  // The inner loop is the one along which the first input is dense.
  int inner = firstOf([&](const Loop &l) { return l.stride[0] == 1; });
  if (inner < 0)
    inner = firstOf([](const Loop &l) { return l.isReduction; });
  bool rowWise = inner < 0 || nest.loops[inner].isReduction;
  if (!rowWise && nest.loops[inner].stride[out] != 1) {
    inner = firstOf([](const Loop &l) { return l.isReduction; });
    rowWise = true;
  }
  Loop unit{};
  unit.extent = 1;
  Loop columns = unit, rows = unit;
  if (inner >= 0) {
    columns = nest.loops[inner];
    nest.erase(inner);
  }
  // Row-wise: rows are output points next to each other. Else: rows are
  // reduction points.
  int rowLoop = firstOf([&](const Loop &l) {
    return rowWise ? !l.isReduction && l.stride[out] == 1 : l.isReduction;
  });
  if (rowLoop >= 0) {
    rows = nest.loops[rowLoop];
    nest.erase(rowLoop);
  }

  // The body is only "the input itself": no register is needed.
  bool isPlain = body.ops.empty() && body.yields[0] == body.inputs[0] &&
                 isFloat(nest.elem[0]);
  BodyFrame frame;
  enterBody(core, body, frame);
  Odometer<Loop> odometer(nest.loops, nest.numLoops, nest.numOperands);
  do {
    uint8_t *acc = nest.at(out, odometer.offset[out]);
    size_t accSize = hostSize(nest.elem[out]);
    if (isPlain && columns.stride[0] == 1) {
      const float *x =
          reinterpret_cast<const float *>(nest.at(0, odometer.offset[0]));
      if (rowWise)
        k.reduceRows(combiner, x, rows.extent, columns.extent, rows.stride[0],
                     reinterpret_cast<float *>(acc));
      else
        k.accumulateRows(combiner, x, rows.extent, columns.extent,
                         rows.stride[0], reinterpret_cast<float *>(acc));
      continue;
    }
    int64_t blockColumns = std::min(columns.extent, kBlock);
    int64_t blockRows =
        std::min(rows.extent, std::max<int64_t>(kBlock / columns.extent, 1));
    // Columns outside for the outer reduction, so that the accumulators of a
    // block stay near; every output's order of points is the same either way.
    for (int64_t column = 0; column < columns.extent; column += blockColumns) {
      for (int64_t row = 0; row < rows.extent; row += blockRows) {
        BlockShape shape{std::min(blockRows, rows.extent - row),
                         std::min(blockColumns, columns.extent - column)};
        for (int i = 0; i < nest.numInputs; ++i)
          bindInput(core, frame, body.inputs[i], nest.elem[i],
                    nest.at(i, odometer.offset[i] + row * rows.stride[i] +
                                   column * columns.stride[i]),
                    shape, rows.stride[i], columns.stride[i],
                    body.numScratch + i);
        runBody(core, body, frame, size_t(shape.rows * shape.columns));
        int reg = body.yields[0];
        const void *x = frame.ptr[reg];
        if (frame.step[reg] == 0) {
          void *spread =
              scratchBuffer(core, body.numScratch + nest.numOperands);
          size_t count[1] = {size_t(shape.rows * shape.columns)};
          ptrdiff_t one[1] = {1}, zero[1] = {0};
          copyBox(nest.elem[out], spread, one, x, zero, count, 1);
          x = spread;
        }
        foldBlock(*this, nest.elem[out], rowWise, x, shape,
                  acc + (rowWise ? row : column) * accSize);
      }
    }
  } while (odometer.next());
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

void GenericInstr::runContraction(Core &core, Nest &nest) const {
  simplify(nest);
  constexpr int a = 0, b = 1, c = 2;
  // Pick one loop each for m, n and k; the others go around. C's dense loop
  // decides which input is the left one.
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
  // Ascending order of the contracted points: the innermost reduction loop.
  for (int l = nest.numLoops - 1; l >= 0; --l)
    if (nest.loops[l].isReduction) {
      k = nest.loops[l];
      nest.erase(l);
      break;
    }
  const KernelTable &table = kernels();
  // The matrix unit keeps the weights (the second input) and streams M.
  if (core.counters)
    core.counters->ptRows = std::min<uint64_t>(core.counters->ptRows,
                                               left == a ? m.extent : n.extent);
  Odometer<Loop> odometer(nest.loops, nest.numLoops, nest.numOperands);
  do {
    table.gemm(
        m.extent, n.extent, k.extent,
        reinterpret_cast<const float *>(nest.at(left, odometer.offset[left])),
        m.stride[left], k.stride[left],
        reinterpret_cast<const float *>(nest.at(right, odometer.offset[right])),
        k.stride[right], n.stride[right],
        reinterpret_cast<float *>(nest.at(c, odometer.offset[c])), m.stride[c]);
  } while (odometer.next());
}

//===----------------------------------------------------------------------===//
// Value and index of a maximum or minimum
//===----------------------------------------------------------------------===//

/// NaN beats numbers; of equal values the smaller index wins. A total order:
/// points may come in any sequence.
static bool isBetter(bool isMax, float value, int64_t index, float best,
                     int64_t bestIndex) {
  bool valueIsNan = value != value, bestIsNan = best != best;
  if (valueIsNan != bestIsNan)
    return valueIsNan;
  if (!valueIsNan && value != best)
    return isMax ? value > best : value < best;
  return index < bestIndex;
}

void GenericInstr::runArgReduction(Core &core, Nest &nest) const {
  const KernelTable &k = kernels();
  int out = nest.numInputs;
  bool isWideIndex = isWide(nest.elem[out + 1]);
  nest.reductionsLast();
  // The vector is the reduction along which the input is dense.
  int vector = -1;
  for (int l = 0; l < nest.numLoops; ++l)
    if (nest.loops[l].isReduction &&
        (vector < 0 || nest.loops[l].stride[0] == 1))
      vector = l;
  Loop columns = nest.loops[vector];
  nest.erase(vector);
  BodyFrame frame;
  enterBody(core, body, frame);
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
      runBody(core, body, frame, size_t(shape.columns));

      const float *values = static_cast<const float *>(frame.ptr[valueReg]);
      int64_t valueStep = frame.step[valueReg];
      // Most blocks hold nothing as good as what was found.
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

void GenericInstr::runGeneral(Core &core, Nest &nest) const {
  int out0 = nest.numInputs;
  // Parallel loops outside in order, reductions inside in order, and one
  // parallel loop as the vector.
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
  BodyFrame frame;
  enterBody(core, body, frame);
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
      runBody(core, body, frame, size_t(shape.columns));
      // A yield may be another output's argument: all values first.
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
