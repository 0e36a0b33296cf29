//===- SizeInference.cpp - Sizes that follow from operands ----------------===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {
/// Collects what is known of the extents of loops, or of a view's dimensions.
class ExtentInference {
public:
  ExtentInference(Operation *op, ArrayRef<int64_t> extents)
      : op(op), symbols(getSizeSymbols(op)), extents(extents),
        known(extents.size()) {}

  /// Takes in that `map` takes the loops to a tensor of shape `shape`, whose
  /// dimensions are `sizes`, and that each loop stays inside. With `mayBePart`,
  /// a loop that is known to vary may be so in a dimension that does not.
  LogicalResult add(AffineMap map, ArrayRef<int64_t> shape,
                    ArrayRef<AffineExpr> sizes, const Twine &what,
                    std::optional<unsigned> skipped = std::nullopt,
                    bool mayBePart = false) {
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      if (skipped == dim)
        continue;
      auto loop = dyn_cast<AffineDimExpr>(expr);
      bool isPart = mayBePart && loop && varies(loop.getPosition()) &&
                    isa<AffineConstantExpr>(sizes[dim]);
      if (loop && !isPart && extents[loop.getPosition()] == shape[dim]) {
        if (failed(set(loop.getPosition(), sizes[dim], what)))
          return failure();
        continue;
      }
      if (isa<AffineConstantExpr>(sizes[dim]))
        continue;
      // What is accessed at all sizes is there at the least one.
      if (getRange(expr, extents).second <
          getSizeRange(sizes[dim], symbols).first)
        continue;
      parts.push_back(
          {map, static_cast<unsigned>(dim), sizes[dim], what.str()});
    }
    return success();
  }

  /// SG-SYMBOL-C6: checks, with all extents known, that what is accessed in
  /// parts is there at all sizes.
  LogicalResult checkParts() {
    SmallVector<AffineExpr> last;
    for (auto [extent, size] : llvm::zip_equal(extents, known))
      last.push_back(
          (size ? size : getAffineConstantExpr(extent, op->getContext())) - 1);
    for (const Part &part : parts) {
      AffineExpr expr = part.map.getResult(part.dim);
      if (!grows(expr) ||
          getSizeRange(
              simplifyAffineExpr(part.size - 1 - expr.replaceDims(last), 0,
                                 symbols.size()),
              symbols)
                  .first < 0)
        return op->emitOpError()
               << "accesses dimension " << part.dim << " of " << part.what
               << ", whose size varies, in parts: by "
               << AffineMapAttr::get(part.map);
    }
    return success();
  }

  /// SG-SYMBOL-C5
  LogicalResult set(unsigned loop, AffineExpr size, const Twine &what) {
    if (!known[loop])
      known[loop] = size;
    if (known[loop] == size)
      return success();
    std::string text;
    llvm::raw_string_ostream(text)
        << "loop dimension " << loop << " has extent " << size << " by " << what
        << " and " << known[loop] << " by another one";
    return op->emitOpError(text);
  }

  bool varies(unsigned loop) const {
    return known[loop] && !isa<AffineConstantExpr>(known[loop]);
  }

  AffineMap getMap() const {
    SmallVector<AffineExpr> sizes;
    for (auto [extent, size] : llvm::zip_equal(extents, known))
      sizes.push_back(size ? size
                           : getAffineConstantExpr(extent, op->getContext()));
    return makeSizeMap(sizes, symbols.size(), op->getContext());
  }

private:
  /// A dimension that is not accessed by one loop that walks all of it.
  struct Part {
    AffineMap map;
    unsigned dim;
    AffineExpr size;
    std::string what;
  };

  /// Whether the largest coordinate is that of the last iterations.
  static bool grows(AffineExpr expr) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!binary)
      return true;
    if (!grows(binary.getLHS()) || !grows(binary.getRHS()))
      return false;
    if (binary.getKind() == AffineExprKind::Add)
      return true;
    auto number = dyn_cast<AffineConstantExpr>(binary.getRHS());
    return number && number.getValue() > 0 &&
           (binary.getKind() == AffineExprKind::Mul ||
            binary.getKind() == AffineExprKind::FloorDiv);
  }

  Operation *op;
  SmallVector<SizeSymbolAttr> symbols;
  ArrayRef<int64_t> extents;
  SmallVector<AffineExpr> known;
  SmallVector<Part> parts;
};
} // namespace

/// Whether nothing has been written into an init yet.
static bool isFresh(Value init, Operation *writer) {
  if (init.getDefiningOp<tensor::EmptyOp>())
    return true;
  if (!init.getDefiningOp<memref::AllocOp>())
    return false;
  return llvm::none_of(init.getUses(), [&](OpOperand &use) {
    auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
    return op && op != writer && op.isDpsInit(&use);
  });
}

LogicalResult spyre_graph::inferExtentMap(SpyreOpInterface op,
                                          ArrayRef<AffineExpr> results) {
  if (op.getLoopExtentMap() || !hasSizeSymbols(op))
    return success();
  SmallVector<int64_t> extents = op.getLoopExtents();
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  std::optional<InitOffset> offset = op.getInitOffset();
  ExtentInference inference(op, extents);
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    bool isInit = op.isDpsInit(&operand);
    SmallVector<AffineExpr> sizes;
    if (!isInit || !isFresh(operand.get(), op))
      sizes = getSizes(operand.get());
    else if (!results.empty())
      sizes = llvm::to_vector(results);
    else
      continue;
    std::optional<unsigned> skipped;
    if (indirect && indirect->operand == number)
      skipped = indirect->dim;
    if (offset && isInit)
      skipped = offset->dim;
    // The init comes last: what varies may be stored in a part of it.
    if (failed(inference.add(maps[number], shapeOf(operand.get()), sizes,
                             "operand " + Twine(number), skipped,
                             /*mayBePart=*/isInit)))
      return failure();
  }
  if (failed(inference.checkParts()))
    return failure();
  op.setLoopExtentMap(inference.getMap());
  return success();
}

LogicalResult spyre_graph::inferSizeMap(ViewOp view,
                                        ArrayRef<AffineExpr> results) {
  if (view.getSizeMap() || !hasSizeSymbols(view))
    return success();
  ArrayRef<int64_t> shape = shapeOf(view.getResult());
  ExtentInference inference(view, shape);
  for (auto [dim, size] : llvm::enumerate(results))
    if (failed(inference.set(dim, size, "its result")))
      return failure();
  // Up to the largest size, what varies may be all of what does not.
  if (failed(inference.add(view.getMap(), shapeOf(view.getSource()),
                           getSizes(view.getSource()), "its source",
                           /*skipped=*/std::nullopt, /*mayBePart=*/true)))
    return failure();
  if (failed(inference.checkParts()))
    return failure();
  if (AffineMap map = inference.getMap())
    view.setSizeMapAttr(AffineMapAttr::get(map));
  return success();
}

LogicalResult spyre_graph::inferSizes(Operation *function) {
  if (!hasSizeSymbols(function))
    return success();
  WalkResult result = function->walk<WalkOrder::PreOrder>([](Operation *op) {
    if (auto view = dyn_cast<ViewOp>(op))
      return WalkResult(inferSizeMap(view));
    if (auto device = dyn_cast<SpyreOpInterface>(op))
      return WalkResult(inferExtentMap(device));
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
