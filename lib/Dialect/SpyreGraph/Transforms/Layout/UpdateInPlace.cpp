//===- UpdateInPlace.cpp - Results straight into what they update -*- C++ -*-=//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "LayoutChoices.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/Stage.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREUPDATEINPLACE
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// The argument whose contents a value is, perhaps after updates; null if the
/// value is something else.
BlockArgument getUpdatedArgument(Value value) {
  while (Operation *definition = value.getDefiningOp()) {
    if (auto update =
            dyn_cast<bufferization::MaterializeInDestinationOp>(definition))
      value = update.getDest();
    else if (auto op = dyn_cast<SpyreOpInterface>(definition))
      value = op.getSpyreInit();
    else
      return nullptr;
  }
  return dyn_cast<BlockArgument>(value);
}

/// A copy that stores a result in an argument, or in a part of one, and the
/// operation that computes the result.
class StoredResult {
public:
  StoredResult(IdentityOp copy, int64_t capacity)
      : copy(copy), stored(copy.getSpyreInit()), capacity(capacity) {}

  /// Lets the operation write into the argument, without the copy, if it can.
  bool fold() {
    if (!find() || !chooseLoops() || !readsWhatItWrites() || !isInOrder())
      return false;
    Value result = op->getResult(0);
    Operation *empty = op.getSpyreInit().getDefiningOp();
    op->setOperand(op->getNumOperands() - 1, stored);
    op.setLoopStructure(maps, extents);
    op.setLoopExtentMap(extentMap);
    result.setType(cast<RankedTensorType>(stored.getType()));
    copy.getResult().replaceAllUsesWith(isUpdated ? copy->getOperand(0)
                                                  : result);
    copy->erase();
    if (empty->use_empty())
      empty->erase();
    remark::passed(op.getLoc(),
                   remark::RemarkOpts::name("in-place")
                       .category("spyre-update-in-place")
                       .function(op->getParentOfType<func::FuncOp>().getName()))
        << (op->getName().stripDialect() + " writes its result into argument " +
            Twine(argument.getArgNumber()))
               .str();
    return true;
  }

private:
  /// Finds the operation and the argument. What others have updated since is
  /// still in the result of the first.
  bool find() {
    argument = getUpdatedArgument(stored);
    op = copy->getOperand(0).getDefiningOp<SpyreOpInterface>();
    while (op && op->getNumResults() == 1 &&
           !op.getSpyreInit().getDefiningOp<tensor::EmptyOp>()) {
      isUpdated = true;
      op = op.getSpyreInit().getDefiningOp<SpyreOpInterface>();
    }
    return argument && op && op->getBlock() == copy->getBlock() &&
           op->getNumResults() == 1 &&
           isa_and_nonnull<LayoutAttr>(getLayout(stored.getType()));
  }

  /// Chooses the loops by which the operation writes where the copy would.
  bool chooseLoops() {
    SmallVector<AffineMap> copyMaps = copy.getIndexingMaps(),
                           opMaps = op.getIndexingMaps();
    extents = op.getLoopExtents();
    extentMap = op.getLoopExtentMap();
    bool isWhole = op->getResult(0).getType() == stored.getType() &&
                   copyMaps[0].isIdentity() && copyMaps[1].isIdentity() &&
                   copy.getLoopExtents() == shapeOf(stored);
    if (isWhole && copy.getLoopExtentMap() &&
        getSizes(copy->getOperand(0)) != getSizes(stored))
      return false;
    // A value that is read again is better kept in LX, if it fits there.
    if (!op->getResult(0).hasOneUse() &&
        (!isWhole || getSizeInBytes(getLayout(stored.getType()),
                                    shapeOf(stored)) <= capacity))
      return false;
    if (isWhole) {
      maps = std::move(opMaps);
      return true;
    }
    return !isUpdated && takeLoopsOfCopy(copyMaps, opMaps);
  }

  /// Lets the operation compute each element where the copy would store it: in
  /// the copy's loops.
  bool takeLoopsOfCopy(ArrayRef<AffineMap> copyMaps,
                       ArrayRef<AffineMap> opMaps) {
    ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
    SmallVector<int64_t> copyExtents = copy.getLoopExtents();
    auto count = [](ArrayRef<int64_t> numbers) {
      return llvm::product_of(numbers);
    };
    if (op.getLayoutRule() != LayoutRule::Pointwise ||
        op.getCombiner() != Combiner::None || op.getIndirectAccess() ||
        opMaps.back().getNumDims() != opMaps.back().getNumResults() ||
        !opMaps.back().isPermutation() || extents != permuted(shape, opMaps) ||
        count(copyExtents) != count(shape) || count(shape) == 0)
      return false;
    for (unsigned dim = 0; dim < extents.size(); ++dim)
      if (op.usesLoopIndex(dim))
        return false;
    // At smaller sizes, the copy must store just what is computed.
    if ((extentMap || copy.getLoopExtentMap()) &&
        (!copyMaps[0].isIdentity() ||
         getSizeExprs(copy.getLoopExtentMap(), copyExtents, op.getContext()) !=
             getSizes(op->getResult(0))))
      return false;
    AffineMap toLoops = inversePermutation(opMaps.back()).compose(copyMaps[0]);
    for (AffineMap map : opMaps.drop_back())
      maps.push_back(joinRemainders(
          simplifyWithRanges(map.compose(toLoops), copyExtents), copyExtents));
    maps.push_back(simplifyWithRanges(copyMaps[1], copyExtents));
    extents = std::move(copyExtents);
    extentMap = copy.getLoopExtentMap();
    return fitsSticks();
  }

  /// The extents of the loops that walk a result of this shape.
  SmallVector<int64_t> permuted(ArrayRef<int64_t> shape,
                                ArrayRef<AffineMap> opMaps) {
    SmallVector<int64_t> result(shape.size());
    for (auto [dim, expr] : llvm::enumerate(opMaps.back().getResults()))
      result[cast<AffineDimExpr>(expr).getPosition()] = shape[dim];
    return result;
  }

  /// Whether the operation, in its new loops, meets all its operands along
  /// their sticks.
  bool fitsSticks() {
    auto getAccess = [&](unsigned number, Value value) {
      return getLaneAccess(maps[number], getLayout(value.getType()),
                           shapeOf(value), extents);
    };
    LaneAccess written = getAccess(maps.size() - 1, stored);
    if (written.kind == LaneAccess::Irregular)
      return false;
    StickChoice stick;
    if (written.kind == LaneAccess::Variable)
      stick = written.dim;
    for (unsigned number = 0; number + 1 < maps.size(); ++number) {
      Value value = op->getOperand(number);
      if (!getLayout(value.getType()) ||
          !isCompatible(getAccess(number, value), maps[number], extents, stick))
        return false;
    }
    return true;
  }

  /// Whether the operation reads nothing of the argument but, at each place,
  /// what it then writes there. Whatever else it reads needs the copy.
  bool readsWhatItWrites() {
    for (auto [number, value] : llvm::enumerate(op.getSpyreInputs()))
      if (getUpdatedArgument(value) == argument &&
          (value != stored || maps[number] != maps.back() ||
           op.getCombiner() != Combiner::None))
        return false;
    return true;
  }

  /// Whether the operation finds what it updates where it stands; moves it to
  /// the copy if something before the copy needs the argument as it is.
  bool isInOrder() {
    Operation *definition = stored.getDefiningOp();
    bool isDefined = !definition || (definition->getBlock() == op->getBlock() &&
                                     definition->isBeforeInBlock(op));
    bool isRead = false;
    for (Operation *between = op->getNextNode(); between != copy && !isRead;
         between = between->getNextNode())
      between->walk([&](Operation *inner) {
        isRead |= llvm::any_of(inner->getOperands(), [&](Value value) {
          return isa<RankedTensorType>(value.getType()) &&
                 getUpdatedArgument(value) == argument;
        });
      });
    if (isDefined && !isRead)
      return true;
    if (isUpdated || !op->getResult(0).hasOneUse())
      return isDefined && !isRead;
    op->moveBefore(copy);
    return true;
  }

  IdentityOp copy;
  Value stored; ///< what the copy updates
  int64_t capacity;
  BlockArgument argument;
  SpyreOpInterface op;    ///< computes what is stored
  bool isUpdated = false; ///< by others, before it is stored
  /// How `op` is to run.
  SmallVector<AffineMap> maps;
  SmallVector<int64_t> extents;
  AffineMap extentMap;
};

class UpdateInPlacePass
    : public spyre_graph::impl::SpyreUpdateInPlaceBase<UpdateInPlacePass> {
public:
  using SpyreUpdateInPlaceBase::SpyreUpdateInPlaceBase;

  void runOnOperation() override {
    if (failed(checkLayouts(getOperation()))) // SG-UPDATE-C1
      return signalPassFailure();
    ::spyre::DeviceSpec spec = getDeviceSpec(getOperation());
    int64_t capacity = spec.numCores * spec.usableLXBytes();
    SmallVector<IdentityOp> copies;
    getOperation().walk([&](IdentityOp copy) {
      if (copy->getNumResults() == 1 &&
          !copy.getSpyreInit().getDefiningOp<tensor::EmptyOp>())
        copies.push_back(copy);
    });
    // Once a result is in an argument, what updates it may be so, too.
    for (IdentityOp copy : llvm::reverse(copies))
      numInPlace += StoredResult(copy, capacity).fold();
  }
};

} // namespace
