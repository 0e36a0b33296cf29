//===- ResolveHints.cpp - Named dimensions to loop dimensions ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/Analysis/Stage.h"
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
    for (auto &[name, use] : uses) {
      if (use.isResolved || mayIgnore(name, use))
        continue;
      // SG-HINT-C1
      if (use.isInner)
        return use.op->emitError()
               << "a hint names dimension '" << name.getValue()
               << "', which the operations under it have only inside of larger "
                  "steps of a flattened dimension: tiles and slices of it are "
                  "not boxes; name the dimension of a view that splits it, or "
                  "the outermost of its parts, instead";
      if (smallSizes.contains(name))
        return use.op->emitError()
               << "a hint cuts dimension '" << name.getValue() << "' into "
               << use.largest << " parts, but it has one element";
      InFlightDiagnostic diagnostic = use.op->emitWarning();
      diagnostic << "hint ignored: no operation under it has dimension '"
                 << name.getValue() << "'; ";
      if (use.known.empty())
        diagnostic << "the dimensions of its tensors have no names";
      else
        diagnostic << "it has " << llvm::join(use.known, ", ");
    }
    for (BlockArgument argument : func.getArguments())
      func.removeArgAttr(argument.getArgNumber(), kDimNamesAttrName);
    return success();
  }

  int64_t numResolved = 0;

private:
  struct Use;

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
        if (!name || !size || size.getInt() < std::min<int64_t>(extent, 1) ||
            size.getInt() > std::max<int64_t>(extent, 1))
          return fail();
        if (size.getInt() <= 1)
          smallSizes[name] = size.getInt();
        dim.push_back({name, size.getInt(), stride});
        stride *= size.getInt();
      }
      if (!dim.empty() && stride != extent)
        return fail();
    }
    return success();
  }

  /// A name of one element or none, of which no loop is cut: nothing is asked
  /// for, or there is nothing to do.
  bool mayIgnore(StringAttr name, const Use &use) const {
    auto known = smallSizes.find(name);
    return known != smallSizes.end() &&
           (known->second == 0 || use.largest == 1);
  }

  /// Gives a loop the part that one coordinate of an operand has, if it runs
  /// over all of it.
  static void addPart(DimParts &loop, const NamedPart &part, int64_t stride,
                      int64_t extent) {
    bool isKnown = llvm::any_of(loop, [&](const NamedPart &other) {
      return other.name == part.name || other.stride == stride;
    });
    if (!isKnown && part.size > 1 && extent % (stride * part.size) == 0)
      loop.push_back({part.name, part.size, stride});
  }

  /// Names of the loop dimensions and of their parts, from those of the inputs.
  SmallVector<DimParts> getLoopNames(SpyreOpInterface op,
                                     ArrayRef<AffineMap> maps,
                                     ArrayRef<int64_t> extents) {
    SmallVector<DimParts> loops(extents.size());
    for (OpOperand &operand : op->getOpOperands()) {
      auto known = names.find(operand.get());
      if (known == names.end())
        continue;
      AffineMap map = maps[operand.getOperandNumber()];
      for (auto [expr, parts] :
           llvm::zip_equal(map.getResults(), known->second))
        for (const NamedPart &part : parts)
          nameLoops(expr, part, extents, loops);
    }
    return loops;
  }

  /// Names the loops by which a coordinate runs over one of its parts.
  static void nameLoops(AffineExpr expr, const NamedPart &part,
                        ArrayRef<int64_t> extents,
                        MutableArrayRef<DimParts> loops) {
    // A view that takes a loop apart has it as quotient and remainder.
    if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
      auto loop = dyn_cast<AffineDimExpr>(binary.getLHS());
      auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
      if (loop && divisor && divisor.getValue() > 0) {
        unsigned dim = loop.getPosition();
        if (binary.getKind() == AffineExprKind::FloorDiv)
          addPart(loops[dim], part, part.stride * divisor.getValue(),
                  extents[dim]);
        if (binary.getKind() == AffineExprKind::Mod &&
            part.stride * part.size <= divisor.getValue())
          addPart(loops[dim], part, part.stride, extents[dim]);
        if (binary.getKind() == AffineExprKind::FloorDiv ||
            binary.getKind() == AffineExprKind::Mod)
          return;
      }
    }
    auto coefficients = getCoefficients(expr, extents.size());
    if (!coefficients)
      return;
    for (unsigned dim = 0; dim < extents.size(); ++dim)
      if (int64_t factor = (*coefficients)[dim];
          factor > 0 && part.stride % factor == 0)
        addPart(loops[dim], part, part.stride / factor, extents[dim]);
  }

  LogicalResult resolve(SpyreOpInterface op) {
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    SmallVector<int64_t> extents = op.getLoopExtents();
    SmallVector<DimParts> loops = getLoopNames(op, maps, extents);
    auto hints = op->getAttrOfType<ArrayAttr>(kHintsAttrName);
    if (hints && llvm::all_of(loops, [](const DimParts &parts) {
          return parts.empty();
        }))
      nameByHint(hints, maps.back(), extents, loops);
    auto updated = names.find(op.getSpyreInit());
    if (op->getNumResults() == 1 && updated != names.end()) {
      // The rest of a tensor that is updated keeps its names.
      SmallVector<DimParts> parts = updated->second;
      names[op->getResult(0)] = std::move(parts);
    } else if (op->getNumResults() == 1) {
      SmallVector<DimParts> parts(maps.back().getNumResults());
      for (auto [dim, expr] : llvm::enumerate(maps.back().getResults()))
        if (auto coefficients = getCoefficients(expr, extents.size()))
          for (unsigned loop = 0; loop < extents.size(); ++loop)
            if ((*coefficients)[loop] > 0)
              for (const NamedPart &part : loops[loop])
                parts[dim].push_back({part.name, part.size,
                                      part.stride * (*coefficients)[loop]});
      names[op->getResult(0)] = std::move(parts);
    }
    return hints ? apply(op, hints, loops, extents) : success();
  }

  /// Operations without named inputs take the names that a hint gives to the
  /// dimensions of their results.
  static void nameByHint(ArrayAttr hints, AffineMap map,
                         ArrayRef<int64_t> extents,
                         MutableArrayRef<DimParts> loops) {
    for (Attribute hint : hints) {
      auto dictionary = dyn_cast<DictionaryAttr>(hint);
      auto given =
          dictionary ? dictionary.getAs<ArrayAttr>("named_dims") : nullptr;
      if (!given || given.size() != map.getNumResults())
        continue;
      for (auto [name, expr] : llvm::zip_equal(given, map.getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr);
            dim && isa<StringAttr>(name))
          loops[dim.getPosition()].assign(
              {{cast<StringAttr>(name), extents[dim.getPosition()], 1}});
    }
  }

  /// The loop dimension of an operation that has a name.
  struct Found {
    int64_t loopDim = -1;
    NamedPart part;
    /// Its steps are larger than those of all other parts of the loop: tiles of
    /// it are tiles of the loop.
    bool isOutermost = false;
  };

  static Found find(StringAttr name, ArrayRef<DimParts> loops,
                    ArrayRef<int64_t> extents) {
    for (auto [dim, parts] : llvm::enumerate(loops))
      for (const NamedPart &part : parts)
        if (part.name == name)
          return {static_cast<int64_t>(dim), part,
                  part.stride * part.size == extents[dim]};
    return {};
  }

  LogicalResult apply(SpyreOpInterface op, ArrayAttr hints,
                      ArrayRef<DimParts> loops, ArrayRef<int64_t> extents) {
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
      Use &use =
          uses.insert({name, Use{op, false, false, 1, {}}}).first->second;
      use.largest = std::max(use.largest, (tiles ? tiles : split).getInt());
      Found found = find(name, loops, extents);
      bool isFound = found.loopDim >= 0 && found.isOutermost;
      use.isInner |= found.loopDim >= 0 && !found.isOutermost;
      use.isResolved |= isFound;
      for (const DimParts &parts : loops)
        for (const NamedPart &part : parts)
          use.known.insert(part.name.getValue());
      int64_t stride = isFound ? found.part.stride : 1;
      if (tiles) {
        SmallVector<int64_t> numbers{
            scope.getInt(), isFound ? found.loopDim : -1, tiles.getInt()};
        if (stride > 1)
          numbers.push_back(stride);
        tileHints.push_back(builder.getDenseI64ArrayAttr(numbers));
      }
      if (split && isFound) {
        // SG-HINT-C4
        if (stride > 1 && found.part.size % split.getInt() != 0)
          return op->emitOpError()
                 << "a hint asks for " << split.getInt()
                 << " slices of dimension '" << name.getValue()
                 << "', a part of loop dimension " << found.loopDim
                 << "; they must divide its " << found.part.size << " evenly";
        splits[found.loopDim] = split.getInt();
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
    bool isResolved, isInner;
    /// The largest number of parts that a hint asks for.
    int64_t largest;
    llvm::SetVector<StringRef> known;
  };

  func::FuncOp func;
  MLIRContext *context;
  DenseMap<Value, SmallVector<DimParts>> names;
  llvm::MapVector<StringAttr, Use> uses;
  /// Sizes of at most one of named parts.
  DenseMap<StringAttr, int64_t> smallSizes;
};

class ResolveHintsPass
    : public spyre_graph::impl::SpyreResolveHintsBase<ResolveHintsPass> {
public:
  using SpyreResolveHintsBase::SpyreResolveHintsBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    HintResolver resolver(getOperation());
    if (failed(checkLayouts(getOperation())) || // SG-HINT-C5
        failed(resolver.run()))
      return signalPassFailure();
    numResolved += resolver.numResolved;
  }
};

} // namespace
