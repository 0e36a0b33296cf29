//===- DivisionHints.cpp - Tiles that divide as hints ask -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "DivisionHints.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"

using namespace mlir;
using namespace mlir::spyre_graph;

bool DivisionHints::areGiven(const OpGroup &group) {
  return llvm::any_of(group, [](Operation *op) {
    return op->hasAttr(kWorkDivisionHintAttrName);
  });
}

bool DivisionHints::fit(SpyreOpInterface op, ArrayRef<int64_t> extents,
                        Slices slices) const {
  auto hint = op->getAttrOfType<DenseI64ArrayAttr>(kWorkDivisionHintAttrName);
  if (!hint || hint.size() != static_cast<int64_t>(extents.size()))
    return true;
  SmallVector<int64_t> &granularity = granularities[op];
  if (granularity.empty())
    granularity = getSliceGranularity(op);
  SmallVector<int64_t> wholes = op.getLoopExtents();
  for (auto [dim, split] : llvm::enumerate(hint.asArrayRef())) {
    int64_t step = std::max<int64_t>(granularity[dim], 1);
    int64_t units = llvm::divideCeilSigned(extents[dim], step);
    if (split <= 1 || units % split == 0)
      continue;
    bool isWholeEqual = llvm::divideCeilSigned(wholes[dim], step) % split == 0;
    if (!target.allowsUnequalSlices() ||
        (slices == Slices::AsEqual && isWholeEqual))
      return false;
    if (llvm::divideCeilSigned(units, llvm::divideCeilSigned(units, split)) !=
        split)
      return false;
  }
  return true;
}

bool DivisionHints::fit(const OpGroup &group, ArrayRef<TileLevel> levels,
                        Slices slices) const {
  if (!areGiven(group))
    return true;
  // The last tile of each level may be smaller.
  for (unsigned lastOf = 0; lastOf < 1u << levels.size(); ++lastOf) {
    SmallVector<int64_t> tiles;
    for (auto [number, level] : llvm::enumerate(levels)) {
      int64_t rest = level.extent % level.tile;
      tiles.push_back(rest && (lastOf >> number & 1) ? rest : level.tile);
    }
    if (!llvm::all_of(group, [&](Operation *op) {
          auto own = cast<SpyreOpInterface>(op);
          return fit(own, getTileExtents(own, levels, tiles), slices);
        }))
      return false;
  }
  return true;
}
