// SPDX-License-Identifier: Apache-2.0
//===- Copies.cpp - Copies that SuperDSC has ---------- -*- C++ -*-===//

#include "Legalizer.h"

#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Copies that a copy is unrolled to at most.
static constexpr int64_t kMaxUnrolled = 256;

void SuperDSCLegalizer::widen(unsigned number) {
  builder.setInsertionPoint(operation);
  RankedTensorType type = typeOf(number);
  int64_t stick = getLayout(type).getStickDim(type.getShape());
  RankedTensorType wide =
      withStick(type.getShape(), builder.getF16Type(), stick);
  operation->setOperand(number, copyWhole(operation->getOperand(number), wide));
}

void SuperDSCLegalizer::widenCompared() {
  auto element = dyn_cast<FloatType>(typeOf(0).getElementType());
  if (!element || element.getWidth() != 8 ||
      !typeOf(1).getElementType().isInteger(1))
    return;
  widen(0);
  load();
}

void SuperDSCLegalizer::unrollCopy() {
  auto in = access(0), out = access(1);
  if (!in || !out)
    return;
  auto isEnough = [&](int64_t without) {
    return areNested(*in, extents, without) &&
           areNested(*out, extents, without);
  };
  if (isEnough(/*without=*/-1))
    return;
  // The shortest loop without which the others nest, or the shortest.
  std::optional<std::tuple<bool, int64_t, int64_t>> best;
  for (int64_t loop = 0; loop < static_cast<int64_t>(extents.size()); ++loop)
    if (extents[loop] > 1 && extents[loop] <= kMaxUnrolled &&
        !varies(op.getLoopExtentMap(), loop) && in->laneDim != loop &&
        out->laneDim != loop)
      best = std::min(best.value_or(std::tuple(true, kMaxUnrolled + 1, 0)),
                      std::tuple(!isEnough(loop), extents[loop], loop));
  if (!best)
    return;
  unsigned chosen = std::get<2>(*best);
  SmallVector<int64_t> rest(extents);
  rest.erase(rest.begin() + chosen);
  MLIRContext *context = builder.getContext();
  AffineMap sizes = op.getLoopExtentMap();
  if (sizes)
    sizes = sizes.dropResult(chosen);
  builder.setInsertionPoint(operation);
  for (int64_t number = 0; number < extents[chosen]; ++number) {
    SmallVector<AffineExpr> renamed;
    for (unsigned loop = 0; loop < extents.size(); ++loop)
      renamed.push_back(
          loop == chosen ? getAffineConstantExpr(number, context)
                         : getAffineDimExpr(loop - (loop > chosen), context));
    SmallVector<AffineMap> changed;
    for (AffineMap map : maps)
      changed.push_back(simplifyWithRanges(
          map.replaceDimsAndSymbols(renamed, {}, rest.size(), 0), rest));
    if (number + 1 < extents[chosen]) {
      operation->setOperand(1,
                            copy(operation->getOperand(0), changed[0],
                                 operation->getOperand(1), changed[1], rest));
      made.back().setLoopExtentMap(sizes);
      continue;
    }
    setLoops(changed, rest);
    op.setLoopExtentMap(sizes);
    made.push_back(op);
    load();
    return;
  }
}

void SuperDSCLegalizer::splitCopy() {
  auto in = access(0), out = access(1);
  if (!in || !out)
    return;
  if (in->laneDim == out->laneDim)
    return;
  RankedTensorType from = typeOf(0), to = typeOf(1);
  auto isWhole = [&](unsigned number) {
    return ShapedType::getNumElements(extents) ==
               typeOf(number).getNumElements() &&
           isInLoopDims(maps[number]);
  };
  AffineMap identity =
      AffineMap::getMultiDimIdentityMap(extents.size(), builder.getContext());
  auto copyPart = [&](int64_t lane) {
    builder.setInsertionPoint(operation);
    Value part = copy(operation->getOperand(0), maps[0],
                      empty(withStick(extents, to.getElementType(), lane)),
                      identity, extents);
    made.back().setLoopExtentMap(op.getLoopExtentMap());
    operation->setOperand(0, part);
    setMap(0, identity);
  };
  // First the part in its own stick, converted.
  if (from.getElementType() != to.getElementType() || !isWhole(0))
    copyPart(in->laneDim);
  if (!isWhole(1))
    copyPart(out->laneDim);
}
