// SPDX-License-Identifier: Apache-2.0
//===- LoopPairs.cpp - Stages of sorting networks -------------------------===//
//
// A stage reads a tile of keys twice, the second time with the two sides of
// each block exchanged, and keeps the smaller key of a pair on the first side
// and the greater one on the second (KernelSort.cpp). Here it is done pair by
// pair: each key is read once, and no key is moved to where its partner is.
//
//===----------------------------------------------------------------------===//

#include "LoopNest.h"

using namespace spyre::runtime;

/// Whether the result of a map is `constant` + `sign` times a loop.
static bool isLoop(const MapResult &result, int loop, int64_t constant = 0,
                   int64_t sign = 1) {
  return result == MapResult{constant, {{loop, sign}}};
}

/// Whether a body is select(third, min(first, second), max(first, second)).
static bool choosesFromPair(const ScalarProgram &body) {
  if (body.ops.size() != 3 || body.inputs.size() < 3 || body.yields.size() != 1)
    return false;
  const auto isOfPair = [&](const ScalarOp &op, IntBinaryOp kind) {
    return op.kind == ScalarOp::IntBinary && IntBinaryOp(op.op) == kind &&
           op.elem == Elem::I64 && op.a == body.inputs[0] &&
           op.b == body.inputs[1];
  };
  const ScalarOp &smaller = body.ops[0], &greater = body.ops[1],
                 &chosen = body.ops[2];
  return isOfPair(smaller, IntBinaryOp::MinS) &&
         isOfPair(greater, IntBinaryOp::MaxS) &&
         chosen.kind == ScalarOp::Select && chosen.a == body.inputs[2] &&
         chosen.b == smaller.dst && chosen.c == greater.dst &&
         chosen.dst == body.yields[0];
}

void StructuredLoop::findPairs() {
  if (strategy != Parallel || inputs.size() != 3 || outputs.size() != 1 ||
      readsOutput[0] || hasIndex || !choosesFromPair(body))
    return;
  const LoopOperand &keys = inputs[0], &partners = inputs[1],
                    &sides = inputs[2];
  const bool areKeys = keys.elem == Elem::I64 && partners.elem == Elem::I64 &&
                       keys.use.slot == partners.use.slot;
  if (!areKeys || keys.map.size() != size_t(numLoops) ||
      !(keys.map == outputs[0].map) || partners.map.size() != keys.map.size() ||
      sides.map.size() != 1 || sides.map[0].terms.size() != 1)
    return;
  const int side = sides.map[0].terms[0].first;
  if (!isLoop(sides.map[0], side))
    return;
  for (int d = 0; d < numLoops; ++d) {
    const MapResult &partner = partners.map[size_t(d)];
    if (!isLoop(keys.map[size_t(d)], d))
      return;
    if (d == side
            ? !isLoop(partner, d, 1, -1)
            : !isLoop(partner, d) &&
                  !(d == side + 1 && isLoop(partner, d, partner.constant, -1)))
      return;
  }
  sideLoop = side;
}

bool StructuredLoop::runPairs(const Core &core, const Nest &nest) const {
  if (sideLoop < 0 || core.shadow)
    return false;
  const TensorVal &keys = core.tensors[inputs[0].use.slot],
                  &sides = core.tensors[inputs[2].use.slot];
  if (keys.isPermuted || keys.deferredTile >= 0 || sides.isPermuted ||
      sides.deferredTile >= 0 || keys.sizes[sideLoop] != 2 ||
      nest.base[0] == nest.base[3])
    return false;
  for (int tile = 0; tile < core.numStacked; ++tile)
    if (sides.i32()[2 * tile] == 0 || sides.i32()[2 * tile + 1] != 0)
      return false;
  int64_t numBlocks = core.numStacked, columns = 1;
  for (int d = 0; d < sideLoop; ++d)
    numBlocks *= keys.sizes[d];
  const bool hasRows = sideLoop + 1 < numLoops;
  const int64_t distance = hasRows ? keys.sizes[sideLoop + 1] : 1;
  for (int d = sideLoop + 2; d < numLoops; ++d)
    columns *= keys.sizes[d];
  const bool isMirrored =
      hasRows && !isLoop(inputs[1].map[size_t(sideLoop) + 1], sideLoop + 1);
  if (isMirrored &&
      inputs[1].map[size_t(sideLoop) + 1].constant != distance - 1)
    return false;
  kernels().comparePairs(keys.i64(), reinterpret_cast<int64_t *>(nest.base[3]),
                         size_t(numBlocks), size_t(distance), size_t(columns),
                         isMirrored);
  return true;
}
