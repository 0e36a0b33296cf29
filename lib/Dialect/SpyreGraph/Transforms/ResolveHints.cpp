//===- ResolveHints.cpp - Named dimensions to loop dimensions ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "mlir/IR/AffineExprVisitor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYRERESOLVEHINTS
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// A name for part of a dimension: coordinate = ... + stride x index + ...,
/// where index runs over [0, size).
struct NamedPart {
  StringAttr name;
  int64_t size, stride;
};
using DimParts = SmallVector<NamedPart, 2>;

/// The coefficient of each loop dimension in a sum of products, or nothing for
/// other expressions.
std::optional<SmallVector<int64_t>> getCoefficients(AffineExpr expr,
                                                    unsigned numDims) {
  SimpleAffineExprFlattener flattener(numDims, /*numSymbols=*/0);
  if (failed(flattener.walkPostOrder(expr)) || !flattener.localExprs.empty())
    return std::nullopt;
  ArrayRef<int64_t> flat = flattener.operandExprStack.back();
  return llvm::to_vector(flat.take_front(numDims));
}

class HintResolver {
public:
  explicit HintResolver(func::FuncOp func)
      : func(func), context(func.getContext()) {}

  LogicalResult run() {
    for (BlockArgument argument : func.getArguments())
      if (failed(readNames(argument)))
        return failure();
    for (Operation &op : func.front())
      if (auto spyreOp = dyn_cast<SpyreOpInterface>(op))
        if (failed(resolve(spyreOp)))
          return failure();
    for (auto &[name, use] : uses)
      // SG-HINT-C1
      if (!use.isResolved)
        return use.op->emitError()
               << "a hint names dimension '" << name.getValue()
               << "', which no operation under it has; it has "
               << llvm::join(use.known, ", ");
    for (BlockArgument argument : func.getArguments())
      func.removeArgAttr(argument.getArgNumber(), kDimNamesAttrName);
    return success();
  }

  int64_t numResolved = 0;

private:
  /// SG-HINT-C2
  LogicalResult readNames(BlockArgument argument) {
    Attribute attribute =
        func.getArgAttr(argument.getArgNumber(), kDimNamesAttrName);
    if (!attribute)
      return success();
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto dims = dyn_cast<ArrayAttr>(attribute);
    auto fail = [&] {
      return func.emitError()
             << kDimNamesAttrName << " of argument " << argument.getArgNumber()
             << " must give for each dimension names whose sizes multiply to "
                "its extent";
    };
    if (!type || !dims || static_cast<int64_t>(dims.size()) != type.getRank())
      return fail();
    SmallVector<DimParts> &parts = names[argument];
    for (auto [attribute, extent] : llvm::zip_equal(dims, type.getShape())) {
      auto list = dyn_cast<ArrayAttr>(attribute);
      if (!list)
        return fail();
      DimParts &dim = parts.emplace_back();
      int64_t stride = 1;
      for (Attribute part : llvm::reverse(list)) {
        auto dictionary = dyn_cast<DictionaryAttr>(part);
        auto name = dictionary ? dictionary.getAs<StringAttr>("name") : nullptr;
        auto size =
            dictionary ? dictionary.getAs<IntegerAttr>("size") : nullptr;
        if (!name || !size || size.getInt() < 1 ||
            size.getInt() > std::max<int64_t>(extent, 1))
          return fail();
        dim.push_back({name, size.getInt(), stride});
        stride *= size.getInt();
      }
      if (!dim.empty() && stride != extent)
        return fail();
    }
    return success();
  }

  /// Names of the loop dimensions, from those of the inputs.
  SmallVector<StringAttr> getLoopNames(SpyreOpInterface op,
                                       ArrayRef<AffineMap> maps,
                                       ArrayRef<int64_t> extents) {
    SmallVector<StringAttr> loops(extents.size());
    for (OpOperand &operand : op->getOpOperands()) {
      auto known = names.find(operand.get());
      if (known == names.end())
        continue;
      AffineMap map = maps[operand.getOperandNumber()];
      for (auto [expr, parts] :
           llvm::zip_equal(map.getResults(), known->second)) {
        auto coefficients = getCoefficients(expr, extents.size());
        if (!coefficients)
          continue;
        for (const NamedPart &part : parts)
          for (unsigned dim = 0; dim < extents.size(); ++dim)
            if (!loops[dim] && extents[dim] == part.size && part.size > 1 &&
                (*coefficients)[dim] == part.stride)
              loops[dim] = part.name;
      }
    }
    return loops;
  }

  LogicalResult resolve(SpyreOpInterface op) {
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    SmallVector<int64_t> extents = op.getLoopExtents();
    SmallVector<StringAttr> loops = getLoopNames(op, maps, extents);
    auto hints = op->getAttrOfType<ArrayAttr>(kHintsAttrName);
    if (hints && llvm::none_of(loops, [](StringAttr name) { return name; }))
      nameByHint(hints, maps.back(), loops);
    if (op->getNumResults() == 1) {
      SmallVector<DimParts> parts(maps.back().getNumResults());
      for (auto [dim, expr] : llvm::enumerate(maps.back().getResults()))
        if (auto coefficients = getCoefficients(expr, extents.size()))
          for (unsigned loop = 0; loop < extents.size(); ++loop)
            if (loops[loop] && (*coefficients)[loop] > 0)
              parts[dim].push_back(
                  {loops[loop], extents[loop], (*coefficients)[loop]});
      names[op->getResult(0)] = std::move(parts);
    }
    return hints ? apply(op, hints, loops) : success();
  }

  /// Operations without named inputs take the names that a hint gives to the
  /// dimensions of their results.
  static void nameByHint(ArrayAttr hints, AffineMap map,
                         SmallVectorImpl<StringAttr> &loops) {
    for (Attribute hint : hints) {
      auto dictionary = dyn_cast<DictionaryAttr>(hint);
      auto given =
          dictionary ? dictionary.getAs<ArrayAttr>("named_dims") : nullptr;
      if (!given || given.size() != map.getNumResults())
        continue;
      for (auto [name, expr] : llvm::zip_equal(given, map.getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr))
          loops[dim.getPosition()] = dyn_cast<StringAttr>(name);
    }
  }

  LogicalResult apply(SpyreOpInterface op, ArrayAttr hints,
                      ArrayRef<StringAttr> loops) {
    SmallVector<Attribute> tileHints;
    SmallVector<int64_t> splits(loops.size(), 1);
    bool hasSplits = false;
    Builder builder(context);
    for (Attribute hint : hints) {
      auto dictionary = dyn_cast<DictionaryAttr>(hint);
      if (dictionary && dictionary.contains("named_dims"))
        continue;
      auto name = dictionary ? dictionary.getAs<StringAttr>("dim") : nullptr;
      auto scope =
          dictionary ? dictionary.getAs<IntegerAttr>("scope") : nullptr;
      auto tiles =
          dictionary ? dictionary.getAs<IntegerAttr>("tiles") : nullptr;
      auto split =
          dictionary ? dictionary.getAs<IntegerAttr>("work_div") : nullptr;
      // SG-HINT-C3
      if (!name || !(split || (tiles && scope)) ||
          (tiles ? tiles : split).getInt() < 1)
        return op->emitOpError()
               << "has a hint that is neither {scope, dim, tiles} nor {dim, "
                  "work_div} with a positive number: "
               << hint;
      Use &use = uses.insert({name, Use{op, false, {}}}).first->second;
      int64_t loopDim = llvm::find(loops, name) - loops.begin();
      bool isFound = loopDim < static_cast<int64_t>(loops.size());
      use.isResolved |= isFound;
      for (StringAttr loop : loops)
        if (loop)
          use.known.insert(loop.getValue());
      if (tiles)
        tileHints.push_back(builder.getDenseI64ArrayAttr(
            {scope.getInt(), isFound ? loopDim : -1, tiles.getInt()}));
      if (split && isFound) {
        splits[loopDim] = split.getInt();
        hasSplits = true;
      }
    }
    op->removeAttr(kHintsAttrName);
    if (!tileHints.empty())
      op->setAttr(kTileHintsAttrName, builder.getArrayAttr(tileHints));
    if (hasSplits)
      op->setAttr(kWorkDivisionHintAttrName,
                  builder.getDenseI64ArrayAttr(splits));
    ++numResolved;
    return success();
  }

  /// A name that hints use.
  struct Use {
    Operation *op;
    bool isResolved;
    llvm::SetVector<StringRef> known;
  };

  func::FuncOp func;
  MLIRContext *context;
  DenseMap<Value, SmallVector<DimParts>> names;
  llvm::MapVector<StringAttr, Use> uses;
};

class ResolveHintsPass
    : public spyre_graph::impl::SpyreResolveHintsBase<ResolveHintsPass> {
public:
  using SpyreResolveHintsBase::SpyreResolveHintsBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    HintResolver resolver(getOperation());
    if (failed(resolver.run()))
      return signalPassFailure();
    numResolved += resolver.numResolved;
  }
};

} // namespace
