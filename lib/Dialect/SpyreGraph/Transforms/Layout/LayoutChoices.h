//===- LayoutChoices.h - What an operation asks of layouts ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_LAYOUTCHOICES_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_LAYOUTCHOICES_H

#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"

namespace mlir::spyre_graph {

inline int64_t getSizeInBytes(LayoutAttrInterface layout,
                              ArrayRef<int64_t> shape) {
  return layout.getSizeInBytes(shape);
}

/// The loop dimension that runs along the sticks of an op, or nothing if no
/// dimension does (one element per stick).
using StickChoice = std::optional<unsigned>;

/// The loops of an op and how it accesses its operands, computed once.
struct OpInfo {
  explicit OpInfo(SpyreOpInterface op)
      : op(op), extents(op.getLoopExtents()), maps(op.getIndexingMaps()),
        kinds(op.getLoopKinds()), indirect(op.getIndirectAccess()) {}

  /// The same op where the symbols of the function are `sizes`.
  OpInfo at(ArrayRef<int64_t> sizes) const;

  unsigned getInitNumber() const { return maps.size() - 1; }
  ArrayRef<int64_t> getShape(unsigned operand) const {
    return shapes.empty() ? spyre_graph::shapeOf(op->getOperand(operand))
                          : ArrayRef<int64_t>(shapes[operand]);
  }
  LaneAccess getAccess(unsigned operand, LayoutAttrInterface layout) const {
    return getLaneAccess(maps[operand], layout, getShape(operand), extents);
  }
  /// Whether the stick dimension of an operand does not restrict the op: this
  /// holds for indices, and for a table accessed indirectly along its sticks.
  bool isExempt(unsigned operand, LayoutAttrInterface layout) const {
    if (!indirect)
      return false;
    return operand == indirect->index ||
           (operand == indirect->operand &&
            layout.getStickDim(getShape(operand)) == indirect->dim);
  }
  /// The dimension of the init whose coordinate is a loop index plus a
  /// constant, or -1 if there is none.
  int64_t getInitDim(unsigned loopDim) const {
    for (auto [dim, expr] : llvm::enumerate(maps.back().getResults())) {
      AffineExpr variable = expr;
      if (auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
          sum && sum.getKind() == AffineExprKind::Add &&
          isa<AffineConstantExpr>(sum.getRHS()))
        variable = sum.getLHS();
      if (auto loop = dyn_cast<AffineDimExpr>(variable);
          loop && loop.getPosition() == loopDim)
        return dim;
    }
    return -1;
  }
  /// The loop dimension along which the operation sorts, or -1.
  int64_t getSortedDim() const {
    if (!isSort(SpyreOpInterface(op).getCombiner()))
      return -1;
    return llvm::find(kinds, utils::IteratorType::reduction) - kinds.begin();
  }
  /// Whether there are several results of what a loop goes over: a loop that is
  /// not parallel counts them, and no operand has it.
  bool countsResults() const {
    for (unsigned dim = 0; dim < kinds.size(); ++dim) {
      auto hasDim = [dim](AffineMap map) { return map.isFunctionOfDim(dim); };
      if (kinds[dim] == utils::IteratorType::reduction && hasDim(maps.back()) &&
          llvm::none_of(ArrayRef(maps).drop_back(), hasDim))
        return true;
    }
    return false;
  }

  SpyreOpInterface op;
  SmallVector<int64_t> extents;
  SmallVector<AffineMap> maps;
  SmallVector<utils::IteratorType> kinds;
  std::optional<IndirectAccess> indirect;
  /// What the symbols are, and shapes of the operands. Empty at the largest
  /// sizes, where types say the shapes.
  SmallVector<int64_t> sizes;
  SmallVector<SmallVector<int64_t>> shapes;
};

/// Whether an op whose sticks run along `stick` can make an access in place: it
/// must run along that dimension, or read one element per stick without using
/// that dimension.
inline bool isCompatible(const LaneAccess &access, AffineMap map,
                         ArrayRef<int64_t> extents, StickChoice stick) {
  switch (access.kind) {
  case LaneAccess::Irregular:
    return false;
  case LaneAccess::Variable:
    return stick && *stick == access.dim;
  case LaneAccess::Zero:
    return !stick || !getUsedDims(map, extents).test(*stick);
  }
  llvm_unreachable("unknown kind of lane access");
}

/// Whether an op only moves elements. It may read operands along any stick.
inline bool isCopy(Operation *op) {
  return isa<IdentityOp, InsertOp, RestickifyOp>(op);
}

/// The sticks that a contraction needs: x along K, y and the result along N.
struct MatmulSticks {
  explicit MatmulSticks(const OpInfo &info) {
    for (unsigned dim = 0; dim < info.extents.size(); ++dim) {
      bool inX = info.maps[0].isFunctionOfDim(dim);
      bool inY = info.maps[1].isFunctionOfDim(dim);
      if (info.kinds[dim] == utils::IteratorType::reduction && inX && inY)
        k = dim;
      if (info.kinds[dim] == utils::IteratorType::parallel && !inX)
        n = dim; // The last one: those before it are batch dimensions.
    }
  }
  StickChoice getFor(unsigned operand) const { return operand == 0 ? k : n; }
  StickChoice k, n;
};

/// The same contraction with the factors exchanged: (y^T x^T)^T. Its sticks run
/// along K in y, and along the rows in x and in the result.
inline OpInfo exchangeFactors(const OpInfo &info) {
  OpInfo exchanged = info;
  std::swap(exchanged.maps[0], exchanged.maps[1]);
  return exchanged;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Creates a copy operation of the given name. Its result has shape `shape`,
/// and holds at each index the element of `source` to which `map` takes it.
/// `sizeMap` says how large the result is where that varies.
Value createCopy(OpBuilder &builder, StringRef opName, Location loc,
                 Value source, AffineMap map, ArrayRef<int64_t> shape,
                 Attribute layout, AffineMap sizeMap = {});

/// A copy of an operand that could be created: of the whole source in its own
/// shape, or of the accessed elements, over the loop dimensions that the
/// operand depends on. Loops that walk windows of one coordinate share a
/// dimension, so that an element of several windows is copied once.
struct CopyPlan {
  bool hasSourceShape = false;
  /// From the loops of the op to the coordinates of a copy without the source's
  /// shape.
  AffineMap map;
  SmallVector<int64_t> shape;
  /// How large the copy is, or null if that does not vary.
  AffineMap sizeMap;
  AffineMap sourceMap;
  LayoutAttr layout;
  int64_t sizeInBytes;
  /// The same where the symbols are `sizes`; if empty, the largest.
  int64_t getSizeInBytesAt(ArrayRef<int64_t> sizes) const;
  bool operator==(const CopyPlan &other) const {
    return sourceMap == other.sourceMap && layout == other.layout &&
           shape == other.shape && sizeMap == other.sizeMap;
  }
};

/// The part of an indirectly accessed operand that a copy must hold: all of the
/// dimension that indices select from, and of the others what the loops
/// access.
struct IndirectPart {
  SmallVector<int64_t> shape;
  AffineMap sourceMap;
  /// The op's indexing map for the copy.
  AffineMap map;
  /// The layout of the copy, in which indices select whole rows of sticks.
  LayoutAttr layout;
};
/// The part that must be copied, or nothing if indices select whole rows of
/// sticks in `layout` already. With `isWhole` the copy has the operand's
/// shape.
std::optional<IndirectPart>
getIndirectPart(const OpInfo &info, LayoutAttrInterface layout, bool isWhole);

/// The copy that makes operand `operand` accessible along `stick`.
CopyPlan planCopy(const OpInfo &info, unsigned operand, StickChoice stick);

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// The layout of a new result: its dimensions in order, but the stick dimension
/// last. One element per stick if no dimension of the result runs along
/// `stick`.
LayoutAttr getResultLayout(const OpInfo &info, StickChoice stick);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_LAYOUTCHOICES_H
