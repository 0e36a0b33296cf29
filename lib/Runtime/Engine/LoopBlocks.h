// SPDX-License-Identifier: Apache-2.0
//===- LoopBlocks.h - Blocks of points in registers -------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_LOOPBLOCKS_H
#define SPYRE_LIB_RUNTIME_ENGINE_LOOPBLOCKS_H

#include "LoopNest.h"

namespace spyre::runtime {

/// The shape of a block of points: `rows` iterations of one loop times
/// `columns` iterations of another.
struct BlockShape {
  int64_t rows, columns;
};

/// Copies a box of elements between host tiles.
void copyBox(Elem elem, void *dst, const ptrdiff_t *dstStrides, const void *src,
             const ptrdiff_t *srcStrides, const size_t *shape, unsigned rank);

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

/// Writes a register to the block's place in an output, which is DL16 codes if
/// `isCodes`.
void writeOutput(ScalarFrame &frame, int reg, Elem elem, uint8_t *address,
                 BlockShape shape, int64_t rowStride, int64_t columnStride,
                 bool isCodes = false);

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_LOOPBLOCKS_H
