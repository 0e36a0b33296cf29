// SPDX-License-Identifier: Apache-2.0
//
// Folders and canonicalisations. What they gain: constants in maps and sets
// let the runtime lay out an access when it loads a program instead of each
// time that it runs, and leave no scalar code behind.

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::ktdp;

Operation *KTDPDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                            Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

OpFoldResult RuntimeArgExtractOp::fold(FoldAdaptor) {
  auto type = cast<RuntimeArgType>(getSource().getType());
  std::optional<int64_t> property;
  if (getKind() == RuntimeArgExtractKind::granularity)
    property = type.getGranularity();
  else if (getKind() == RuntimeArgExtractKind::upperbound)
    property = type.getUpperbound();
  if (!property)
    return {};
  return IntegerAttr::get(IndexType::get(getContext()), *property);
}

namespace {
/// Constant values among `operands`, as replacements of a set's symbols; the
/// other operands keep their order.
struct ConstantSymbols {
  SmallVector<AffineExpr> replacements;
  SmallVector<Value> kept;

  ConstantSymbols(MLIRContext *context, ValueRange operands) {
    for (Value operand : operands) {
      std::optional<int64_t> constant =
          getConstantIntValue(OpFoldResult(operand));
      if (constant) {
        replacements.push_back(getAffineConstantExpr(*constant, context));
        continue;
      }
      replacements.push_back(getAffineSymbolExpr(kept.size(), context));
      kept.push_back(operand);
    }
  }
  bool hasConstants() const { return kept.size() != replacements.size(); }
  IntegerSet substitute(IntegerSet set) const {
    SmallVector<AffineExpr> dims;
    for (unsigned dim = 0; dim < set.getNumDims(); ++dim)
      dims.push_back(getAffineDimExpr(dim, set.getContext()));
    return set.replaceDimsAndSymbols(dims, replacements, set.getNumDims(),
                                     kept.size());
  }
};

/// Sizes and strides that are constants become static.
struct ConstantSizes : public OpRewritePattern<ConstructMemoryViewOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConstructMemoryViewOp op,
                                PatternRewriter &rewriter) const override {
    IntegerSet set = op.getCoordinateSet();
    SmallVector<int64_t> sizes(op.getStaticSizes());
    SmallVector<int64_t> strides(op.getStaticStrides());
    SmallVector<Value> dynamicSizes, dynamicStrides;
    SmallVector<AffineExpr> symbols;
    bool changed = false;
    auto next = op.getSizes().begin();
    for (int64_t &size : sizes) {
      if (!ShapedType::isDynamic(size))
        continue;
      Value value = *next++;
      std::optional<int64_t> constant =
          getConstantIntValue(OpFoldResult(value));
      if (constant && *constant >= 0) {
        size = *constant;
        symbols.push_back(getAffineConstantExpr(size, op.getContext()));
        changed = true;
      } else {
        symbols.push_back(
            getAffineSymbolExpr(dynamicSizes.size(), op.getContext()));
        dynamicSizes.push_back(value);
      }
    }
    auto nextStride = op.getStrides().begin();
    for (int64_t &stride : strides) {
      if (!ShapedType::isDynamic(stride))
        continue;
      Value value = *nextStride++;
      std::optional<int64_t> constant =
          getConstantIntValue(OpFoldResult(value));
      if (constant && !ShapedType::isDynamic(*constant)) {
        stride = *constant;
        changed = true;
      } else {
        dynamicStrides.push_back(value);
      }
    }
    // The set's symbols are the first dynamic sizes; it may have fewer.
    if (!changed || set.getNumSymbols() > symbols.size())
      return failure();
    unsigned numSymbols = 0;
    for (unsigned s = 0; s < set.getNumSymbols(); ++s)
      numSymbols += isa<AffineSymbolExpr>(symbols[s]);
    symbols.truncate(set.getNumSymbols());
    SmallVector<AffineExpr> dims;
    for (unsigned dim = 0; dim < set.getNumDims(); ++dim)
      dims.push_back(getAffineDimExpr(dim, op.getContext()));
    set =
        set.replaceDimsAndSymbols(dims, symbols, set.getNumDims(), numSymbols);
    rewriter.replaceOpWithNewOp<ConstructMemoryViewOp>(
        op, op.getType(), op.getOffset(), dynamicSizes, dynamicStrides, sizes,
        strides, op.getMemorySpace(), set);
    return success();
  }
};

/// Constant subscripts go into the base map, constant symbols into the set.
struct ConstantSubscripts : public OpRewritePattern<ConstructAccessTileOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConstructAccessTileOp op,
                                PatternRewriter &rewriter) const override {
    // affine::canonicalizeMapAndOperands would turn operands into symbols,
    // which other readers of KTIR do not know.
    AffineMap map = op.getBaseMap();
    unsigned numDims = 0;
    SmallVector<Value> operands;
    SmallVector<AffineExpr> replacements;
    for (auto [position, value] : llvm::enumerate(op.getIndices())) {
      bool isDim = position < map.getNumDims();
      bool isUsed = isDim ? map.isFunctionOfDim(position)
                          : map.isFunctionOfSymbol(position - map.getNumDims());
      std::optional<int64_t> constant =
          getConstantIntValue(OpFoldResult(value));
      if (constant || !isUsed) {
        replacements.push_back(
            getAffineConstantExpr(constant.value_or(0), op.getContext()));
        continue;
      }
      // Symbols come after the dimensions.
      size_t from = isDim ? 0 : numDims;
      auto *it = llvm::find(MutableArrayRef(operands).drop_front(from), value);
      unsigned at = it - operands.begin() - from;
      replacements.push_back(isDim ? getAffineDimExpr(at, op.getContext())
                                   : getAffineSymbolExpr(at, op.getContext()));
      if (it == operands.end())
        operands.push_back(value);
      if (isDim)
        numDims = operands.size();
    }
    ArrayRef<AffineExpr> all(replacements);
    map = map.replaceDimsAndSymbols(all.take_front(map.getNumDims()),
                                    all.drop_front(map.getNumDims()), numDims,
                                    operands.size() - numDims);
    ConstantSymbols symbols(op.getContext(), op.getSymbolOperands());
    if (operands.size() == op.getIndices().size() && !symbols.hasConstants())
      return failure();
    rewriter.replaceOpWithNewOp<ConstructAccessTileOp>(
        op, op.getType(), op.getBase(), operands, symbols.kept, map,
        symbols.substitute(op.getAccessTileSet()), op.getAccessTileOrder());
    return success();
  }
};

/// Folds constants in subscripts over captured values, and removes captured
/// values that are unused or occur twice.
struct ConstantCaptured
    : public OpRewritePattern<ConstructIndirectAccessTileOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConstructIndirectAccessTileOp op,
                                PatternRewriter &rewriter) const override {
    MLIRContext *context = op.getContext();
    unsigned numCaptured = op.getCaptured().size();
    unsigned numVariables = op.getNumVariables();
    SmallVector<bool> isUsed(numCaptured, false);
    for (unsigned dim = 0; dim < op.getPerDimSubscriptKinds().size(); ++dim)
      for (unsigned c = 0; c < numCaptured; ++c)
        isUsed[c] = isUsed[c] || op.getSubscriptMap(dim).isFunctionOfDim(c);
    SmallVector<Value> kept;
    SmallVector<AffineExpr> dims;
    for (auto [c, value] : llvm::enumerate(op.getCaptured())) {
      std::optional<int64_t> constant =
          getConstantIntValue(OpFoldResult(value));
      if (constant || !isUsed[c]) {
        dims.push_back(getAffineConstantExpr(constant.value_or(0), context));
        continue;
      }
      auto *it = llvm::find(kept, value);
      dims.push_back(getAffineDimExpr(it - kept.begin(), context));
      if (it == kept.end())
        kept.push_back(value);
    }
    ConstantSymbols symbols(context, op.getSymbolOperands());
    if (kept.size() == numCaptured && !symbols.hasConstants())
      return failure();
    for (unsigned v = 0; v < numVariables; ++v)
      dims.push_back(getAffineDimExpr(kept.size() + v, context));
    SmallVector<AffineMap> maps;
    for (unsigned dim = 0; dim < op.getPerDimSubscriptKinds().size(); ++dim)
      maps.push_back(op.getSubscriptMap(dim).replaceDimsAndSymbols(
          dims, {}, kept.size() + numVariables, 0));
    rewriter.modifyOpInPlace(op, [&]() {
      op.getCapturedMutable().assign(kept);
      op.getSymbolOperandsMutable().assign(symbols.kept);
      op.setPerDimSubscriptMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      op.setVariablesSpaceSetAttr(
          IntegerSetAttr::get(symbols.substitute(op.getVariablesSpaceSet())));
    });
    return success();
  }
};

/// Folds the coordinate of a core to 0 if the grid has one core.
struct UnitGrid : public OpRewritePattern<GetComputeTileIdOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GetComputeTileIdOp op,
                                PatternRewriter &rewriter) const override {
    auto function = op->getParentOfType<func::FuncOp>();
    if (!function || !function->hasAttr(kGridAttr))
      return failure();
    // A malformed grid is reported by who uses it, not by a rewrite.
    auto array = function->getAttrOfType<ArrayAttr>(kGridAttr);
    if (!array)
      return failure();
    bool changed = false;
    for (auto [dim, id] : llvm::enumerate(op.getIds())) {
      if (dim < array.size()) {
        auto size = dyn_cast<IntegerAttr>(array[dim]);
        if (!size || !size.getValue().isOne())
          continue;
      }
      if (id.use_empty())
        continue;
      rewriter.setInsertionPoint(op);
      rewriter.replaceAllUsesWith(
          id, arith::ConstantIndexOp::create(rewriter, op.getLoc(), 0));
      changed = true;
    }
    return success(changed);
  }
};

/// A tile that nobody receives need not be made.
struct UnusedProduce : public OpRewritePattern<InterTileProduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(InterTileProduceOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getFuture().use_empty())
      return failure();
    for (Operation &nested : op.getBody().front().without_terminator())
      if (!isMemoryEffectFree(&nested))
        return failure();
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void ConstructMemoryViewOp::getCanonicalizationPatterns(
    RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ConstantSizes>(context);
}

void ConstructAccessTileOp::getCanonicalizationPatterns(
    RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ConstantSubscripts>(context);
}

void ConstructIndirectAccessTileOp::getCanonicalizationPatterns(
    RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ConstantCaptured>(context);
}

void GetComputeTileIdOp::getCanonicalizationPatterns(
    RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<UnitGrid>(context);
}

void InterTileProduceOp::getCanonicalizationPatterns(
    RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<UnusedProduce>(context);
}
