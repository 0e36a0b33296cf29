//===- FoldViews.cpp - Views and copies as parts of maps --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "FoldViews.h"
#include "FoldIndexedViews.h"
#include "LayoutChoices.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

class ViewFolding {
public:
  explicit ViewFolding(func::FuncOp func)
      : func(func), builder(func.getContext()) {}

  ViewCounters run() {
    turnCopiesIntoViews();
    SmallVector<ViewOp> views;
    func.walk<WalkOrder::PreOrder>([&](ViewOp view) { views.push_back(view); });
    for (ViewOp view : views)
      foldView(view);
    return counters;
  }

private:
  /// Turns copies that only rearrange elements (clone, contiguous) into views
  /// if their one user is an operation. If the user cannot read the view in
  /// place, propagation creates a copy in the layout that the user needs.
  void turnCopiesIntoViews() {
    SmallVector<IdentityOp> copies;
    func.walk<WalkOrder::PreOrder>([&](IdentityOp op) {
      if (isPlainCopy(op))
        copies.push_back(op);
    });
    for (IdentityOp op : copies) {
      builder.setInsertionPoint(op);
      AffineMap map = cast<AffineMapAttr>((*op.getMaps())[0]).getValue();
      Value view = ViewOp::create(
          builder, op.getLoc(), op.getResult().getType(), op.getInputs()[0],
          AffineMapAttr::get(map), op.getExtentMapAttr());
      op.getResult().replaceAllUsesWith(view);
      op.erase();
      ++counters.copiesFolded;
    }
  }

  static bool isPlainCopy(IdentityOp op) {
    if (op->getNumResults() != 1 || op.getInputs().size() != 1 ||
        !op.getResult().hasOneUse() ||
        !op.getInit().getDefiningOp<tensor::EmptyOp>())
      return false;
    auto source = cast<ShapedType>(op.getInputs()[0].getType());
    auto result = cast<ShapedType>(op.getResult().getType());
    if (source.getElementType() != result.getElementType() ||
        getLayout(result) || result.getNumElements() == 0 ||
        *op.getExtents() != result.getShape() ||
        !cast<AffineMapAttr>((*op.getMaps())[1]).getValue().isIdentity())
      return false;
    OpOperand &use = *op.getResult().use_begin();
    auto user = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
    if (!isa<ViewOp>(use.getOwner()) &&
        !(user && isa<SpyreOpInterface>(use.getOwner()) &&
          !user.isDpsInit(&use)))
      return false;
    // The copy of an argument that is updated must stay: it keeps the old
    // value, and is smaller than a copy of the whole argument.
    Value root = op.getInputs()[0];
    while (auto view = root.getDefiningOp<ViewOp>())
      root = view.getSource();
    return llvm::none_of(root.getUses(), [](OpOperand &use) {
      auto op = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
      return isa<bufferization::MaterializeInDestinationOp>(use.getOwner()) ||
             (op && op.isDpsInit(&use));
    });
  }

  void foldView(ViewOp view) {
    Value copy;
    for (OpOperand &use : llvm::make_early_inc_range(view->getUses())) {
      if (succeeded(foldIntoUser(view, use))) {
        ++counters.viewsFolded;
        continue;
      }
      if (!copy) {
        builder.setInsertionPoint(view);
        ArrayRef<int64_t> shape = shapeOf(view.getResult());
        copy = createCopy(builder, IdentityOp::getOperationName(),
                          view.getLoc(), view.getSource(), view.getMap(), shape,
                          /*layout=*/nullptr,
                          view.getSizeMap().value_or(AffineMap()));
        ++counters.viewsMaterialized;
      }
      use.set(copy);
    }
    indexedViews.forget(view.getResult());
    view.erase();
  }

  static AffineMap compose(ViewOp view, AffineMap map,
                           ArrayRef<int64_t> extents) {
    return joinRemainders(
        simplifyWithRanges(view.getMap().compose(map), extents), extents);
  }

  LogicalResult foldIntoUser(ViewOp view, OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto other = dyn_cast<ViewOp>(user)) {
      other.setMap(compose(view, other.getMap(), shapeOf(other.getResult())));
      use.set(view.getSource());
      return success();
    }
    auto op = dyn_cast<SpyreOpInterface>(user);
    if (!op || op.isDpsInit(&use))
      return failure();
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    SmallVector<int64_t> extents = op.getLoopExtents();
    AffineMap &map = maps[use.getOperandNumber()];
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    bool isIndirect = indirect && indirect->operand == use.getOperandNumber();
    // The index replaces one coordinate of the table. If the view changes that
    // coordinate, it changes the indices.
    if (isIndirect && !keepsCoordinate(view, indirect->dim))
      return indexedViews.fold(view, op);
    SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
    AffineMap before = map;
    map = compose(view, map, extents);
    op.setLoopStructure(maps, extents);
    // Kinds of loops follow from the maps: the loop that counts the results of
    // a topk is the one that only the init uses. A loop along which the view
    // repeats elements must not become one.
    for (auto [extent, old, now] :
         llvm::zip_equal(extents, kinds, op.getLoopKinds())) {
      if (extent <= 1 || old == now)
        continue;
      map = before;
      op.setLoopStructure(maps, extents);
      return failure();
    }
    use.set(view.getSource());
    return success();
  }

  static bool keepsCoordinate(ViewOp view, int64_t dim) {
    if (dim >= static_cast<int64_t>(view.getMap().getNumResults()) ||
        shapeOf(view.getSource())[dim] != shapeOf(view.getResult())[dim])
      return false;
    for (auto [number, expr] : llvm::enumerate(view.getMap().getResults())) {
      if (static_cast<int64_t>(number) == dim) {
        // In a dimension of one row, the index is 0 whatever the view's map is.
        if (expr != getAffineDimExpr(dim, view.getContext()))
          return false;
      } else if (expr.isFunctionOfDim(dim)) {
        return false;
      }
    }
    return true;
  }

  func::FuncOp func;
  OpBuilder builder;
  IndexedViewFolding indexedViews;
  ViewCounters counters;
};

} // namespace

int64_t spyre_graph::eraseUnusedOps(func::FuncOp func) {
  int64_t numErased = 0;
  SmallVector<Operation *> ops;
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<SpyreOpInterface, ViewOp>(op) && op->getNumResults() == 1)
      ops.push_back(op);
  });
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty()) {
      numErased += isa<SpyreOpInterface>(op);
      op->erase();
    }
  return numErased;
}

ViewCounters spyre_graph::foldViews(func::FuncOp func) {
  return ViewFolding(func).run();
}
