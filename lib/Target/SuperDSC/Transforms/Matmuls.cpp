// SPDX-License-Identifier: Apache-2.0
//===- Matmuls.cpp - Factors and batches that SuperDSC has ------*- C++ -*-===//

#include "Legalizer.h"

using namespace mlir;
using namespace mlir::spyre_graph;

void SuperDSCLegalizer::expandFactors() {
  unsigned columns = extents.size() - 2;
  for (unsigned number : {0, 1}) {
    llvm::SmallBitVector lacks(extents.size());
    for (unsigned loop = number == 0 ? 0 : columns; loop < extents.size();
         ++loop)
      if (extents[loop] > 1 && (number == 1 || loop != columns))
        lacks.set(loop);
    lacks.reset(getUsedDims(maps[number], extents));
    if (lacks.any())
      replaceInput(number, lacks);
  }
}

void SuperDSCLegalizer::mergeReductions() {
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  int64_t count = countReductions();
  llvm::SmallBitVector group(extents.size());
  group.set(extents.size() - count, extents.size());
  if (count > 1 &&
      llvm::all_of(ArrayRef(kinds).take_back(count), [](auto kind) {
        return kind == utils::IteratorType::reduction;
      }))
    mergeLoops(group);
}

void SuperDSCLegalizer::mergeBatches() {
  for (bool isInBoth : {true, false}) {
    llvm::SmallBitVector ofY = getUsedDims(maps[1], extents);
    llvm::SmallBitVector group(extents.size());
    for (unsigned loop = 0; loop + 3 < extents.size(); ++loop)
      if (extents[loop] > 1 && ofY.test(loop) == isInBoth)
        group.set(loop);
    if (group.count() > (isInBoth ? 2 : 1))
      mergeLoops(group);
  }
}

void SuperDSCLegalizer::mergeLoops(const llvm::SmallBitVector &group) {
  unsigned init = op->getNumOperands() - 1;
  for (unsigned number = 0; number <= init; ++number)
    if (!access(number))
      return;
  MLIRContext *context = builder.getContext();
  SmallVector<int64_t> merged;
  SmallVector<unsigned> newLoop(extents.size());
  unsigned first = group.find_first();
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    if (group.test(loop) && loop != first) {
      newLoop[loop] = newLoop[first];
      merged[newLoop[first]] *= extents[loop];
      continue;
    }
    newLoop[loop] = merged.size();
    merged.push_back(extents[loop]);
  }
  SmallVector<AffineMap> changed;
  builder.setInsertionPoint(operation);
  for (unsigned number = 0; number <= init; ++number) {
    AffineMap map = maps[number];
    if (!getUsedDims(map, extents).anyCommon(group)) {
      SmallVector<AffineExpr> renamed;
      for (unsigned loop = 0; loop < extents.size(); ++loop)
        renamed.push_back(group.test(loop)
                              ? getAffineConstantExpr(0, context)
                              : getAffineDimExpr(newLoop[loop], context));
      changed.push_back(
          map.replaceDimsAndSymbols(renamed, {}, merged.size(), 0));
      continue;
    }
    Used used = getUsed(map, group);
    // The copy's dimensions, and its coordinates in the loops used.
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> coordinates, projection;
    for (auto [position, loop] : llvm::enumerate(used.loops)) {
      AffineExpr own = getAffineDimExpr(position, context);
      AffineExpr dim = getAffineDimExpr(newLoop[loop], context);
      auto *known = llvm::find(projection, dim);
      if (known == projection.end()) {
        projection.push_back(dim);
        coordinates.push_back(own);
        shape.push_back(merged[newLoop[loop]]);
        continue;
      }
      AffineExpr &sum = coordinates[known - projection.begin()];
      sum = sum * extents[loop] + own;
    }
    auto toMap = AffineMap::get(used.loops.size(), 0, coordinates, context);
    auto laneOf = [&](int64_t loop, bool isMerged = false) -> int64_t {
      if (positionOf(used.loops, loop) < 0 || (group.test(loop) && !isMerged))
        return -1;
      auto *known =
          llvm::find(projection, getAffineDimExpr(newLoop[loop], context));
      return known - projection.begin();
    };
    Type element = typeOf(number).getElementType();
    int64_t lane = laneOf(access(number)->laneDim);
    RankedTensorType type = withStick(shape, element, lane);
    changed.push_back(AffineMap::get(merged.size(), 0, projection, context));
    if (number != init) {
      Value part = copy(operation->getOperand(number), used.map, empty(type),
                        toMap, used.extents);
      int64_t wanted = laneOf(wantedLane(number), /*isMerged=*/true);
      if (wanted != lane)
        part = copyWhole(part, withStick(shape, element, wanted));
      operation->setOperand(number, part);
      continue;
    }
    Value target = operation->getOperand(init);
    operation->setOperand(init, empty(type));
    Value result = operation->getResult(0);
    result.setType(type);
    builder.setInsertionPointAfter(operation);
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : result.getUses())
      uses.push_back(&use);
    Value whole = copy(result, toMap, target, used.map, used.extents);
    for (OpOperand *use : uses)
      use->set(whole);
  }
  op.setLoopStructure(changed, merged);
  load();
}
