// SPDX-License-Identifier: Apache-2.0
//===- LoaderAccessTile.cpp - Decoding access tiles -----------------------===//

#include "LoaderImpl.h"

#include "Spyre/Dialect/KTIR/IR/KTIR.h"

using namespace mlir;
using namespace spyre::runtime;

/// Decodes one ktdp.construct_access_tile or construct_indirect_access_tile.
class FunctionLoader::AccessTileLoader {
public:
  AccessTileLoader(FunctionLoader &loader, Operation *op, AccessTilePlan &plan)
      : loader(loader), op(op), plan(plan),
        direct(dyn_cast<ktdp::ConstructAccessTileOp>(op)),
        indirect(dyn_cast<ktdp::ConstructIndirectAccessTileOp>(op)),
        base(direct ? direct.getBase() : indirect.getBase()) {}

  LogicalResult load();

private:
  /// A dimension or symbol of a map: ('v', variable) or ('c', captured value).
  using Leaf = std::pair<char, int>;

  LogicalResult loadBase();
  void capture(ValueRange values, SmallVectorImpl<Leaf> &leaves);
  LogicalResult loadPoints();
  LogicalResult loadBox(const ktdp::BoxBounds &box, AffineMap order);
  LogicalResult loadPointSet(IntegerSet set, AffineMap order);
  LogicalResult loadDirectSubscripts();
  LogicalResult loadIndirectSubscripts();
  LogicalResult loadIndices(int64_t baseDim, ArrayRef<Leaf> mapDims,
                            AccessTilePlan::BaseDim &dim);

  FunctionLoader &loader;
  Operation *op;
  AccessTilePlan &plan;
  ktdp::ConstructAccessTileOp direct;           ///< or null
  ktdp::ConstructIndirectAccessTileOp indirect; ///< or null
  Value base;
  SmallVector<Leaf> capturedLeaves, symbolLeaves;
  SmallVector<Leaf> variables; ///< per dimension of the set
};

LogicalResult FunctionLoader::AccessTileLoader::load() {
  if (failed(loadBase()))
    return failure();
  // Captured values, then symbols.
  capture(direct ? ValueRange(direct.getIndices())
                 : ValueRange(indirect.getCaptured()),
          capturedLeaves);
  capture(direct ? ValueRange(direct.getSymbolOperands())
                 : ValueRange(indirect.getSymbolOperands()),
          symbolLeaves);
  if (failed(loadPoints()) ||
      failed(direct ? loadDirectSubscripts() : loadIndirectSubscripts()))
    return failure();
  plan.finish();
  if (plan.groups.size() > kMaxRank)
    return op->emitError("more than ")
           << kMaxRank << " independent index groups";
  return success();
}

LogicalResult FunctionLoader::AccessTileLoader::loadBase() {
  auto distributed =
      base.getDefiningOp<ktdp::ConstructDistributedMemoryViewOp>();
  if (!isa<MemRefType>(base.getType()) || (!isPlainView(base) && !distributed))
    return op->emitError("base must be a result of construct_memory_view, "
                         "construct_distributed_memory_view or "
                         "memref.subview, found ")
           << base.getType();
  if (distributed) {
    plan.isEnumerated = static_cast<bool>(indirect);
    for (Value partition : distributed.getPartitions()) {
      plan.partitionSlots.push_back(loader.viewSlot(partition));
      plan.isEnumerated |= isIrregularView(partition);
    }
  } else {
    plan.viewSlot = loader.viewSlot(base);
    plan.isEnumerated = isIrregularView(base);
  }
  if (indirect)
    for (Value index : indirect.getIndexMemrefs())
      plan.isEnumerated |= isIrregularView(index);
  return success();
}

void FunctionLoader::AccessTileLoader::capture(ValueRange values,
                                               SmallVectorImpl<Leaf> &leaves) {
  for (Value v : values) {
    leaves.push_back({'c', static_cast<int>(plan.capturedSlots.size())});
    plan.capturedSlots.push_back(loader.scalarSlot(v));
  }
}

/// Which points the tile has, and which of its dimensions each variable is.
LogicalResult FunctionLoader::AccessTileLoader::loadPoints() {
  IntegerSet set =
      direct ? direct.getAccessTileSet() : indirect.getVariablesSpaceSet();
  AffineMap order =
      direct ? direct.getAccessTileOrder() : indirect.getVariablesSpaceOrder();
  variables.resize(set.getNumDims());
  std::optional<ktdp::BoxBounds> box = ktdp::matchBoxSet(set);
  if (box && order.isPermutation())
    return loadBox(*box, order);
  return loadPointSet(set, order);
}

/// The tile's elements are the points in their order; variable d is dimension
/// d of the set.
LogicalResult FunctionLoader::AccessTileLoader::loadPointSet(IntegerSet set,
                                                             AffineMap order) {
  if (set.getNumDims() == 0)
    return op->emitError("the set has no dimensions, and conditions: ")
           << IntegerSetAttr::get(set);
  plan.isEnumerated = true;
  plan.pointSet = loader.makePointSet(op, set);
  if (!plan.pointSet)
    return failure();
  for (AffineExpr expr : order.getResults()) {
    if (!hasPositiveDivisors(expr))
      return op->emitError("order divides by a value that is not a positive "
                           "constant: ")
             << AffineMapAttr::get(order);
    plan.pointOrder.roots.push_back(
        addAffineNodes(expr, order.getNumDims(), plan.pointOrder.nodes));
  }
  for (auto [kind, index] : symbolLeaves)
    plan.pointSymbols.push_back(index);
  for (int d = 0; d < plan.rank; ++d)
    variables[d] = {'v', d};
  return success();
}

/// Points come in the lexicographic order of order(point): tile dimension t is
/// set dimension order[t].
LogicalResult
FunctionLoader::AccessTileLoader::loadBox(const ktdp::BoxBounds &box,
                                          AffineMap order) {
  for (int t = 0; t < plan.rank; ++t) {
    unsigned setDim = order.getDimPosition(t);
    variables[setDim] = {'v', t};
    int lower = loader.addForm(op, plan, box.lower[setDim], {}, symbolLeaves);
    int upper = loader.addForm(op, plan, box.upper[setDim], {}, symbolLeaves);
    if (lower < 0 || upper < 0)
      return failure();
    plan.lowerForms.push_back(lower);
    plan.upperForms.push_back(upper);
    auto lowest = dyn_cast<AffineConstantExpr>(box.lower[setDim]);
    auto highest = dyn_cast<AffineConstantExpr>(box.upper[setDim]);
    if (!lowest || !highest)
      continue;
    int64_t size = std::max<int64_t>(
        wrappingAdd(wrappingSub(highest.getValue(), lowest.getValue()), 1), 0);
    if (plan.staticSizes[t] >= 0 && plan.staticSizes[t] != size)
      return op->emitError("dimension ")
             << t << " of the tile has " << plan.staticSizes[t]
             << " points, its set " << size;
  }
  return success();
}

/// A base coordinate each, to which the point's variable is added.
LogicalResult FunctionLoader::AccessTileLoader::loadDirectSubscripts() {
  int64_t baseRank = cast<MemRefType>(base.getType()).getRank();
  AffineMap map = direct.getBaseMap();
  if (map.getNumResults() != baseRank)
    return op->emitError("subscripts have ")
           << map.getNumResults() << " dimensions, the base " << baseRank;
  // Symbols of the base map follow its dims among the operands.
  SmallVector<Leaf> mapSymbols(
      capturedLeaves.begin() +
          std::min<size_t>(map.getNumDims(), capturedLeaves.size()),
      capturedLeaves.end());
  for (unsigned d = 0; d < map.getNumResults(); ++d) {
    LinearForm form;
    if (failed(loader.addTerms(op, plan, map.getResult(d), 1, capturedLeaves,
                               mapSymbols, form)))
      return failure();
    form.vars.push_back({variables[d].second, 1});
    AccessTilePlan::BaseDim dim;
    dim.form = plan.addForm(std::move(form));
    plan.dims.push_back(std::move(dim));
  }
  return success();
}

/// Functions of captured values and variables, or what index memory holds
/// there.
LogicalResult FunctionLoader::AccessTileLoader::loadIndirectSubscripts() {
  int64_t baseRank = cast<MemRefType>(base.getType()).getRank();
  if (static_cast<int64_t>(indirect.getPerDimSubscriptKinds().size()) !=
      baseRank)
    return op->emitError("found ")
           << indirect.getPerDimSubscriptKinds().size()
           << " subscripts, the base has " << baseRank << " dimensions";
  SmallVector<Leaf> mapDims = capturedLeaves;
  mapDims.append(variables.begin(), variables.end());
  for (int64_t d = 0; d < baseRank; ++d) {
    AccessTilePlan::BaseDim dim;
    if (indirect.isIndirect(d)) {
      if (failed(loadIndices(d, mapDims, dim)))
        return failure();
    } else {
      dim.form = loader.addForm(
          op, plan, indirect.getSubscriptMap(d).getResult(0), mapDims, {});
      if (dim.form < 0)
        return failure();
    }
    plan.dims.push_back(std::move(dim));
  }
  return success();
}

LogicalResult FunctionLoader::AccessTileLoader::loadIndices(
    int64_t baseDim, ArrayRef<Leaf> mapDims, AccessTilePlan::BaseDim &dim) {
  dim.isIndirect = true;
  Value index = indirect.getIndexMemRef(baseDim);
  auto indexType = dyn_cast<MemRefType>(index.getType());
  if (!indexType || !isPlainView(index))
    return op->emitError("index memref must be a result of "
                         "construct_memory_view or memref.subview");
  if (!indexType.getElementType().isIntOrIndex() ||
      indexType.getElementType().isInteger(1))
    return op->emitError("index memref must hold integers, found ")
           << indexType;
  dim.indexView = static_cast<int>(plan.indexViewSlots.size());
  plan.indexViewSlots.push_back(loader.viewSlot(index));
  for (AffineExpr expr : indirect.getSubscriptMap(baseDim).getResults()) {
    int form = loader.addForm(op, plan, expr, mapDims, {});
    if (form < 0)
      return failure();
    dim.indexForms.push_back(form);
  }
  return success();
}

LogicalResult FunctionLoader::loadAccessTile(Operation *op) {
  auto &instr = add<AccessTileInstr>(op);
  accessTiles[op->getResult(0)] = &instr;
  instr.dst = tileSlot(op->getResult(0));
  auto tileType = cast<ShapedType>(op->getResult(0).getType());
  instr.plan.rank = static_cast<int>(tileType.getRank());
  for (int64_t size : tileType.getShape())
    instr.plan.staticSizes.push_back(ShapedType::isDynamic(size) ? -1 : size);
  return AccessTileLoader(*this, op, instr.plan).load();
}
