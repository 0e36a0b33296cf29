// SPDX-License-Identifier: Apache-2.0
//===- Convolution.cpp - Products that read windows -------------*- C++ -*-===//

#include "Spyre/Dialect/SpyreGraph/IR/Convolution.h"

#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// The loops whose sum, plus a constant, an expression is. False if it is none.
static bool collectTerms(AffineExpr expr, SmallVectorImpl<unsigned> &terms) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    terms.push_back(dim.getPosition());
    return true;
  }
  auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
  return isa<AffineConstantExpr>(expr) ||
         (sum && sum.getKind() == AffineExprKind::Add &&
          collectTerms(sum.getLHS(), terms) &&
          collectTerms(sum.getRHS(), terms));
}

/// The loops of more than one iteration of which a map is made.
static llvm::SmallBitVector getLoops(AffineMap map, ArrayRef<int64_t> extents) {
  llvm::SmallBitVector loops(extents.size());
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    loops[loop] = extents[loop] > 1 && map.isFunctionOfDim(loop);
  return loops;
}

SmallVector<Window, 2> spyre_graph::getConvolutionWindows(SpyreOpInterface op) {
  if (!isa<MatmulOp>(op.getOperation()) ||
      getMacFormat(op) != ::spyre::MacFormat::FP16)
    return {};
  SmallVector<int64_t> extents = op.getLoopExtents();
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  AffineMap image = simplifyWithRanges(maps[0], extents);
  unsigned numLoops = extents.size();
  // Loops of the image: each is in one coordinate.
  SmallVector<Window, 2> windows;
  llvm::SmallBitVector seen(numLoops);
  for (AffineExpr result : image.getResults()) {
    SmallVector<unsigned> terms;
    if (!collectTerms(result, terms) || terms.size() > 2)
      return {};
    for (unsigned loop : terms) {
      if (seen.test(loop))
        return {};
      seen.set(loop);
    }
    if (terms.size() < 2)
      continue;
    if (kinds[terms[0]] == utils::IteratorType::reduction)
      std::swap(terms[0], terms[1]);
    windows.push_back({terms[0], terms[1]});
  }
  if (windows.empty() || windows.size() > 2)
    return {};
  llvm::sort(windows, [](const Window &a, const Window &b) {
    return a.output < b.output;
  });
  // Outputs, the filters' columns, places, channels.
  unsigned columns = numLoops - 2 - windows.size(), place = columns;
  for (const Window &window : windows)
    if (window.place != ++place || window.output >= columns)
      return {};
  for (unsigned loop = columns; loop < numLoops; ++loop)
    if ((kinds[loop] == utils::IteratorType::reduction) != (loop > columns))
      return {};
  llvm::SmallBitVector ofImage(numLoops), ofFilter(numLoops);
  unsigned numOutputs = 0;
  for (unsigned loop = 0; loop < numLoops; ++loop) {
    ofImage[loop] = extents[loop] > 1 && loop != columns;
    ofFilter[loop] = extents[loop] > 1 && loop >= columns;
    numOutputs += extents[loop] > 1 && loop < columns;
  }
  AffineMap filter = simplifyWithRanges(maps[1], extents);
  if (numOutputs > 3 || getLoops(image, extents) != ofImage ||
      getLoops(filter, extents) != ofFilter)
    return {};
  return windows;
}
