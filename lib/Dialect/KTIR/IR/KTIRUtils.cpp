// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ktdp;

IntegerSet mlir::ktdp::getBoxSet(MLIRContext *context,
                                 ArrayRef<int64_t> extents) {
  SmallVector<AffineExpr> constraints;
  unsigned numSymbols = 0;
  for (auto [dim, extent] : llvm::enumerate(extents)) {
    AffineExpr d = getAffineDimExpr(dim, context);
    constraints.push_back(d);
    // Associated as text reads, so that a set equals the one read back.
    constraints.push_back(
        ShapedType::isDynamic(extent)
            ? -d + getAffineSymbolExpr(numSymbols++, context) - 1
            : -d + (extent - 1));
  }
  // An integer set needs a constraint.
  if (constraints.empty())
    constraints.push_back(getAffineConstantExpr(0, context));
  SmallVector<bool> eqFlags(constraints.size(), false);
  return IntegerSet::get(extents.size(), numSymbols, constraints, eqFlags);
}

namespace {
/// `coefficient * d_dim + rest`, rest without dimensions.
struct SingleDimTerm {
  unsigned dim;
  int64_t coefficient;
  AffineExpr rest;
};
} // namespace

/// Flattens the sum `expr` (times `scale`) into `coefficients` of the
/// dimensions and a rest of constants and symbols; false if a dimension occurs
/// in any other way.
static bool flattenSum(AffineExpr expr, int64_t scale,
                       MutableArrayRef<int64_t> coefficients,
                       AffineExpr &rest) {
  if (expr.isSymbolicOrConstant()) {
    rest = rest + expr * scale;
    return true;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return !llvm::AddOverflow(coefficients[dim.getPosition()], scale,
                              coefficients[dim.getPosition()]);
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (expr.getKind() == AffineExprKind::Add)
    return flattenSum(binary.getLHS(), scale, coefficients, rest) &&
           flattenSum(binary.getRHS(), scale, coefficients, rest);
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  int64_t newScale;
  return expr.getKind() == AffineExprKind::Mul && factor &&
         !llvm::MulOverflow(scale, factor.getValue(), newScale) &&
         flattenSum(binary.getLHS(), newScale, coefficients, rest);
}

static std::optional<SingleDimTerm> matchSingleDim(AffineExpr expr,
                                                   unsigned numDims) {
  SmallVector<int64_t> coefficients(numDims, 0);
  AffineExpr rest = getAffineConstantExpr(0, expr.getContext());
  if (!flattenSum(expr, 1, coefficients, rest))
    return std::nullopt;
  std::optional<SingleDimTerm> term;
  for (auto [dim, coefficient] : llvm::enumerate(coefficients)) {
    if (coefficient == 0)
      continue;
    if (term || (coefficient != 1 && coefficient != -1))
      return std::nullopt;
    term = SingleDimTerm{static_cast<unsigned>(dim), coefficient, rest};
  }
  return term;
}

std::optional<BoxBounds> mlir::ktdp::matchBoxSet(IntegerSet set) {
  BoxBounds bounds;
  bounds.lower.resize(set.getNumDims());
  bounds.upper.resize(set.getNumDims());
  auto setOnce = [](AffineExpr &bound, AffineExpr value) {
    if (bound)
      return false;
    bound = value;
    return true;
  };
  for (auto [index, constraint] : llvm::enumerate(set.getConstraints())) {
    // A true constant constraint, as in the set of rank 0.
    if (auto constant = dyn_cast<AffineConstantExpr>(constraint)) {
      if (set.isEq(index) ? constant.getValue() == 0 : constant.getValue() >= 0)
        continue;
      return std::nullopt;
    }
    std::optional<SingleDimTerm> term =
        matchSingleDim(constraint, set.getNumDims());
    if (!term)
      return std::nullopt;
    // d + rest >= 0 is d >= -rest; -d + rest >= 0 is d <= rest.
    AffineExpr value = term->coefficient == 1 ? -term->rest : term->rest;
    bool isEq = set.isEq(index);
    if ((isEq || term->coefficient == 1) &&
        !setOnce(bounds.lower[term->dim], value))
      return std::nullopt;
    if ((isEq || term->coefficient == -1) &&
        !setOnce(bounds.upper[term->dim], value))
      return std::nullopt;
  }
  auto isSet = [](AffineExpr bound) { return static_cast<bool>(bound); };
  if (!llvm::all_of(bounds.lower, isSet) || !llvm::all_of(bounds.upper, isSet))
    return std::nullopt;
  return bounds;
}

static std::optional<int64_t> evaluate(AffineExpr expr, ArrayRef<int64_t> dims,
                                       ArrayRef<int64_t> symbols) {
  if (auto c = dyn_cast<AffineConstantExpr>(expr))
    return c.getValue();
  if (auto d = dyn_cast<AffineDimExpr>(expr))
    return dims[d.getPosition()];
  if (auto s = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[s.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<int64_t> x = evaluate(binary.getLHS(), dims, symbols);
  std::optional<int64_t> y = evaluate(binary.getRHS(), dims, symbols);
  if (!x || !y)
    return std::nullopt;
  int64_t result;
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    if (llvm::AddOverflow(*x, *y, result))
      return std::nullopt;
    return result;
  case AffineExprKind::Mul:
    if (llvm::MulOverflow(*x, *y, result))
      return std::nullopt;
    return result;
  default:
    break;
  }
  if (*y <= 0)
    return std::nullopt;
  switch (binary.getKind()) {
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(*x, *y);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(*x, *y);
  default:
    return llvm::mod(*x, *y);
  }
}

bool mlir::ktdp::containsPoint(IntegerSet set, ArrayRef<int64_t> dims,
                               ArrayRef<int64_t> symbols) {
  for (unsigned i = 0; i < set.getNumConstraints(); ++i) {
    std::optional<int64_t> value =
        evaluate(set.getConstraint(i), dims, symbols);
    if (!value || *value < 0 || (set.isEq(i) && *value != 0))
      return false;
  }
  return true;
}

std::optional<std::pair<int64_t, int64_t>>
mlir::ktdp::getConstantRange(IntegerSet set) {
  std::optional<BoxBounds> box = matchBoxSet(set);
  if (!box || box->lower.size() != 1)
    return std::nullopt;
  auto lower = dyn_cast<AffineConstantExpr>(box->lower[0]);
  auto upper = dyn_cast<AffineConstantExpr>(box->upper[0]);
  int64_t extent;
  if (!lower || !upper ||
      llvm::SubOverflow(upper.getValue(), lower.getValue(), extent))
    return std::nullopt;
  return std::pair(lower.getValue(), upper.getValue());
}

FailureOr<std::optional<SmallVector<int64_t>>>
mlir::ktdp::getGrid(func::FuncOp func) {
  Attribute attr = func->getAttr(kGridAttr);
  if (!attr)
    return std::optional<SmallVector<int64_t>>();
  SmallVector<int64_t> grid;
  bool valid = true;
  if (auto dense = dyn_cast<DenseI64ArrayAttr>(attr)) {
    grid.append(dense.asArrayRef().begin(), dense.asArrayRef().end());
  } else if (auto array = dyn_cast<ArrayAttr>(attr)) {
    for (Attribute element : array) {
      auto integer = dyn_cast<IntegerAttr>(element);
      valid &= integer && integer.getValue().isSignedIntN(64);
      if (valid)
        grid.push_back(integer.getValue().getSExtValue());
    }
  } else {
    valid = false;
  }
  if (!valid || grid.empty() || grid.size() > 3 ||
      llvm::any_of(grid, [](int64_t size) { return size < 1; }))
    return func.emitError("'grid' must be an array of one to three positive "
                          "integers, but got ")
           << attr;
  return std::optional<SmallVector<int64_t>>(std::move(grid));
}

ArrayAttr mlir::ktdp::getGridAttr(MLIRContext *context,
                                  ArrayRef<int64_t> grid) {
  return Builder(context).getI64ArrayAttr(grid);
}

Type mlir::ktdp::getBaseElementType(Value tile) {
  Value base;
  if (auto op = tile.getDefiningOp<ConstructAccessTileOp>())
    base = op.getBase();
  else if (auto op = tile.getDefiningOp<ConstructIndirectAccessTileOp>())
    base = op.getBase();
  return base ? cast<ShapedType>(base.getType()).getElementType() : Type();
}
