// SPDX-License-Identifier: Apache-2.0
//===- LoaderMemory.cpp - Decoding views, tiles, loads and stores ---------===//

#include "LoaderImpl.h"

#include "Spyre/Dialect/KTIR/IR/KTIR.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace spyre::runtime;

LogicalResult FunctionLoader::addTerms(
    Operation *op, AccessTilePlan &tilePlan, AffineExpr expr, int64_t factor,
    llvm::ArrayRef<std::pair<char, int>> dims,
    llvm::ArrayRef<std::pair<char, int>> symbols, LinearForm &form) {
  auto addLeaf = [&](std::pair<char, int> leaf) {
    auto &terms = leaf.first == 'v' ? form.vars : form.captured;
    for (auto &term : terms)
      if (term.first == leaf.second) {
        term.second = wrappingAdd(term.second, factor);
        return;
      }
    terms.push_back({leaf.second, factor});
  };
  if (factor == 0)
    return success();
  if (auto c = dyn_cast<AffineConstantExpr>(expr)) {
    form.constant =
        wrappingAdd(form.constant, wrappingMul(factor, c.getValue()));
    return success();
  }
  if (auto d = dyn_cast<AffineDimExpr>(expr)) {
    addLeaf(dims[d.getPosition()]);
    return success();
  }
  if (auto s = dyn_cast<AffineSymbolExpr>(expr)) {
    addLeaf(symbols[s.getPosition()]);
    return success();
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  if (binary.getKind() == AffineExprKind::Add) {
    if (failed(addTerms(op, tilePlan, binary.getLHS(), factor, dims, symbols,
                        form)))
      return failure();
    return addTerms(op, tilePlan, binary.getRHS(), factor, dims, symbols, form);
  }
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  AffineExpr other = binary.getLHS();
  if (!constant && binary.getKind() == AffineExprKind::Mul) {
    constant = dyn_cast<AffineConstantExpr>(binary.getLHS());
    other = binary.getRHS();
  }
  if (!constant)
    return op->emitError("subscript multiplies or divides by a value that is "
                         "not a constant");
  if (binary.getKind() == AffineExprKind::Mul)
    return addTerms(op, tilePlan, other,
                    wrappingMul(factor, constant.getValue()), dims, symbols,
                    form);
  if (constant.getValue() <= 0)
    return op->emitError("subscript divides by ")
           << constant.getValue() << ", expected a positive constant";
  Atom atom;
  atom.kind = binary.getKind() == AffineExprKind::Mod       ? Atom::Mod
              : binary.getKind() == AffineExprKind::CeilDiv ? Atom::CeilDiv
                                                            : Atom::FloorDiv;
  atom.divisor = constant.getValue();
  if (llvm::isPowerOf2_64(static_cast<uint64_t>(atom.divisor)))
    atom.shift = static_cast<int>(llvm::Log2_64(atom.divisor));
  LinearForm inner;
  if (failed(addTerms(op, tilePlan, other, 1, dims, symbols, inner)))
    return failure();
  for (auto [v, coefficient] : inner.vars)
    atom.vars.push_back(v);
  for (auto [a, coefficient] : inner.atoms)
    atom.vars.insert(atom.vars.end(), tilePlan.atoms[a].vars.begin(),
                     tilePlan.atoms[a].vars.end());
  llvm::sort(atom.vars);
  atom.vars.erase(std::unique(atom.vars.begin(), atom.vars.end()),
                  atom.vars.end());
  atom.inner = tilePlan.addForm(std::move(inner));
  tilePlan.atoms.push_back(std::move(atom));
  form.atoms.push_back({static_cast<int>(tilePlan.atoms.size()) - 1, factor});
  return success();
}

int FunctionLoader::addForm(Operation *op, AccessTilePlan &tilePlan,
                            AffineExpr expr,
                            llvm::ArrayRef<std::pair<char, int>> dims,
                            llvm::ArrayRef<std::pair<char, int>> symbols) {
  LinearForm form;
  if (failed(addTerms(op, tilePlan, expr, 1, dims, symbols, form)))
    return -1;
  return tilePlan.addForm(std::move(form));
}

/// "argument 2 of @main", or the name that the argument has.
static std::string nameOfRuntimeArgument(Value source) {
  auto argument = dyn_cast<BlockArgument>(source);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : func::FuncOp();
  if (!function)
    return "argument";
  unsigned number = argument.getArgNumber();
  if (auto name = function.getArgAttrOfType<StringAttr>(number, "ktdp.name"))
    return "argument '" + name.getValue().str() + "'";
  return "argument " + std::to_string(number) + " of @" +
         function.getName().str();
}

/// Whether the one user of a loaded tile may read it piece by piece: a
/// structured loop further down the block that is no product (those read their
/// tiles more than once), reads it from its start, as pieces have no other, and
/// has no write to memory before it.
static bool canDefer(ktdp::LoadOp load) {
  if (!load.getResult().hasOneUse() || !load.getTile().hasOneUse())
    return false;
  OpOperand &use = *load.getResult().use_begin();
  auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
  if (!user || user->getBlock() != load->getBlock() || !user.isDpsInput(&use))
    return false;
  AffineMap map = user.getMatchingIndexingMap(&use);
  SmallVector<int64_t> start(map.getNumDims(), 0);
  if (llvm::any_of(map.compose(start), [](int64_t at) { return at != 0; }))
    return false;
  for (Operation *op = load->getNextNode(); op != user; op = op->getNextNode())
    if (isa<ktdp::StoreOp>(op) || op->getNumRegions() != 0)
      if (!isa<linalg::LinalgOp, ktdp::ConstructIndirectAccessTileOp>(op))
        return false;
  return true;
}

bool spyre::runtime::hasPositiveDivisors(AffineExpr expr) {
  bool result = true;
  expr.walk([&](AffineExpr part) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(part);
    if (!binary || part.getKind() == AffineExprKind::Add ||
        part.getKind() == AffineExprKind::Mul)
      return;
    auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    result &= divisor && divisor.getValue() > 0;
  });
  return result;
}

LogicalResult FunctionLoader::loadMemory(Operation *op) {
  if (isa<ktdp::ConstructAccessTileOp, ktdp::ConstructIndirectAccessTileOp>(op))
    return loadAccessTile(op);
  if (auto ids = dyn_cast<ktdp::GetComputeTileIdOp>(op)) {
    if (op->getNumResults() > 3)
      return op->emitError("a grid has at most 3 dimensions, found ")
             << op->getNumResults() << " results";
    for (auto [d, result] : llvm::enumerate(op->getResults())) {
      auto &instr = add<ScalarInt>(op);
      instr.op = ScalarInt::TileId;
      instr.code = static_cast<uint8_t>(d);
      instr.dst = scalarSlot(result);
    }
    return success();
  }
  if (auto extract = dyn_cast<ktdp::RuntimeArgExtractOp>(op)) {
    auto type = cast<ktdp::RuntimeArgType>(extract.getSource().getType());
    if (extract.getKind() != ktdp::RuntimeArgExtractKind::value) {
      ConstantScalar constant;
      constant.slot = scalarSlot(extract.getResult());
      constant.elem = Elem::Index;
      constant.value.i =
          extract.getKind() == ktdp::RuntimeArgExtractKind::granularity
              ? *type.getGranularity()
              : *type.getUpperbound();
      function.scalars.push_back(constant);
      return success();
    }
    auto &instr = add<RuntimeArgInstr>(op);
    instr.dst = scalarSlot(extract.getResult());
    instr.source = scalarSlot(extract.getSource());
    instr.elem = *elemOf(extract.getResult().getType());
    instr.granularity = type.getGranularity().value_or(1);
    instr.upperbound = type.getUpperbound().value_or(-1);
    instr.name = nameOfRuntimeArgument(extract.getSource());
    return success();
  }
  if (isa<ktdp::ConstructMemoryViewOp>(op))
    return loadMemoryView(op);
  if (isa<ktdp::ConstructDistributedMemoryViewOp>(op))
    return loadDistributedView(op);
  if (isa<ktdp::LoadOp>(op))
    return loadLoad(op);
  if (isa<ktdp::StoreOp>(op))
    return loadStore(op);
  return loadInterTile(op);
}

std::unique_ptr<PointSet> FunctionLoader::makePointSet(Operation *op,
                                                       IntegerSet set) {
  auto result = std::make_unique<PointSet>();
  result->numDims = static_cast<int>(set.getNumDims());
  result->numSymbols = static_cast<int>(set.getNumSymbols());
  for (unsigned i = 0; i < set.getNumConstraints(); ++i) {
    if (!hasPositiveDivisors(set.getConstraint(i))) {
      op->emitError("set divides by a value that is not a positive constant: ")
          << IntegerSetAttr::get(set);
      return nullptr;
    }
    result->exprs.roots.push_back(addAffineNodes(
        set.getConstraint(i), set.getNumDims(), result->exprs.nodes));
    result->isEquality.push_back(set.isEq(i));
  }
  return result;
}

bool spyre::runtime::isIrregularView(Value memref) {
  auto view = memref.getDefiningOp<ktdp::ConstructMemoryViewOp>();
  if (!view)
    return false;
  IntegerSet set = view.getCoordinateSet();
  return set.getNumDims() == view.getStaticSizes().size() &&
         !ktdp::matchBoxSet(set);
}

bool spyre::runtime::isPlainView(Value memref) {
  Operation *op = memref.getDefiningOp();
  return isa_and_nonnull<ktdp::ConstructMemoryViewOp, memref::SubViewOp>(op);
}

LogicalResult FunctionLoader::loadMemoryView(Operation *op) {
  auto view = cast<ktdp::ConstructMemoryViewOp>(op);
  auto &instr = add<MemoryViewInstr>(op);
  auto type = cast<MemRefType>(view.getResult().getType());
  instr.dst = viewSlot(view.getResult());
  instr.elem = *elemOf(type);
  instr.offsetSlot = scalarSlot(view.getOffset());
  instr.isPartition =
      llvm::any_of(view.getResult().getUsers(), [](Operation *user) {
        return isa<ktdp::ConstructDistributedMemoryViewOp>(user);
      });
  auto space = dyn_cast<ktdp::MemorySpaceAttr>(view.getMemorySpace());
  if (!space || !(space.isGlobal() || space.isCtLocal()))
    return op->emitError("memory space is not supported: ")
           << view.getMemorySpace();
  instr.isLX = space.isCtLocal();
  if (instr.isLX && space.hasCore()) {
    instr.lxCore = space.getCore();
    if (instr.lxCore >= DeviceMemory::kMaxCores)
      return op->emitError("core ")
             << instr.lxCore << " does not exist, the device model has "
             << int64_t(DeviceMemory::kMaxCores);
  }
  for (OpFoldResult stride : view.getMixedStrides())
    instr.strides.push_back(sizeOf(stride));
  // Symbols bind to the dynamic sizes from left to right.
  SmallVector<std::pair<char, int>> symbols;
  for (Value size : view.getSizes()) {
    symbols.push_back({'c', static_cast<int>(symbols.size())});
    instr.symbolSlots.push_back(scalarSlot(size));
  }
  SmallVector<OpFoldResult> sizes = view.getMixedSizes();
  IntegerSet set = view.getCoordinateSet();
  std::optional<ktdp::BoxBounds> box = ktdp::matchBoxSet(set);
  // A set of another rank than the view says nothing about its coordinates.
  bool isAboutView = set.getNumDims() == sizes.size();
  if (isAboutView && set.getNumSymbols() > symbols.size())
    return op->emitError("coordinate_set has ")
           << set.getNumSymbols() << " symbols, the view " << symbols.size()
           << " dynamic sizes";
  bool useBox = box && isAboutView;
  if (!box && isAboutView && !(instr.set = makePointSet(op, set)))
    return failure();
  unsigned dynamic = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    LinearForm upper;
    if (std::optional<int64_t> constant = getConstantIntValue(sizes[d]);
        constant && isa<Attribute>(sizes[d])) {
      upper.constant = wrappingAdd(*constant, -1);
    } else {
      upper.constant = -1;
      upper.captured.push_back({static_cast<int>(dynamic++), 1});
    }
    int lowerForm = -1, upperForm = -1;
    if (useBox) {
      lowerForm = addForm(op, instr.bounds, box->lower[d], {}, symbols);
      upperForm = addForm(op, instr.bounds, box->upper[d], {}, symbols);
      if (lowerForm < 0 || upperForm < 0)
        return failure();
      if (!instr.bounds.atoms.empty())
        return op->emitError("coordinate_set divides a symbol, which is not "
                             "supported");
    } else {
      lowerForm = instr.bounds.addForm({});
      upperForm = instr.bounds.addForm(std::move(upper));
    }
    instr.lowerForms.push_back(lowerForm);
    instr.upperForms.push_back(upperForm);
  }
  return success();
}

LogicalResult FunctionLoader::loadDistributedView(Operation *op) {
  auto view = cast<ktdp::ConstructDistributedMemoryViewOp>(op);
  if (view.getPartitions().empty())
    return op->emitError("a distributed view needs at least one partition");
  auto type = cast<MemRefType>(view.getResult().getType());
  SmallVector<int64_t> extents(type.getRank(), 0);
  bool isKnown = true;
  for (Value partition : view.getPartitions()) {
    auto part = partition.getDefiningOp<ktdp::ConstructMemoryViewOp>();
    if (!part || !partition.hasOneUse())
      return op->emitError("partitions must be results of "
                           "construct_memory_view without other users");
    std::optional<ktdp::BoxBounds> box =
        ktdp::matchBoxSet(part.getCoordinateSet());
    if (static_cast<int64_t>(part.getCoordinateSet().getNumDims()) !=
        type.getRank())
      return part->emitError("coordinate_set of a partition must have ")
             << type.getRank() << " dimensions, found "
             << IntegerSetAttr::get(part.getCoordinateSet());
    if (!box) {
      isKnown = false;
      continue;
    }
    for (int64_t d = 0; d < type.getRank(); ++d) {
      auto upper = dyn_cast<AffineConstantExpr>(box->upper[d]);
      isKnown &= static_cast<bool>(upper);
      if (upper)
        extents[d] = std::max(extents[d], wrappingAdd(upper.getValue(), 1));
    }
  }
  for (int64_t d = 0; isKnown && d < type.getRank(); ++d)
    if (!type.isDynamicDim(d) && type.getDimSize(d) != extents[d])
      return op->emitError("declared size ")
             << type.getDimSize(d) << " of dimension " << d
             << " does not match the partitions' extent " << extents[d];
  return success();
}

LogicalResult FunctionLoader::loadSubView(Operation *op) {
  auto subView = cast<memref::SubViewOp>(op);
  if (!isPlainView(subView.getSource()) || isIrregularView(subView.getSource()))
    return op->emitError("source must be a view of one piece of memory whose "
                         "coordinate_set is a box");
  auto &instr = add<SubViewInstr>(op);
  instr.dst = viewSlot(subView.getResult());
  instr.source = viewSlot(subView.getSource());
  for (OpFoldResult v : subView.getMixedOffsets())
    instr.offsets.push_back(sizeOf(v));
  for (OpFoldResult v : subView.getMixedSizes())
    instr.sizes.push_back(sizeOf(v));
  for (OpFoldResult v : subView.getMixedStrides())
    instr.strides.push_back(sizeOf(v));
  llvm::SmallBitVector dropped = subView.getDroppedDims();
  for (unsigned d = 0; d < dropped.size(); ++d)
    instr.dropped.push_back(dropped.test(d));
  return success();
}

/// A tile of more elements takes longer to collect than threads would wait for
/// each other.
static constexpr int64_t kSmallTileElements = 8192;

/// Whether an access tile has the same coordinates in all cores.
static bool isSameInAllCores(Value tile) {
  Operation *op = tile.getDefiningOp();
  return llvm::all_of(llvm::drop_begin(op->getOperands()), [](Value v) {
    return isa<BlockArgument>(v) || matchPattern(v, m_Constant());
  });
}

/// Whether a value is the same in all iterations of a loop around it, as far as
/// the induction variables of loops inside are.
static bool isInvariant(Value value, scf::ForOp loop) {
  if (loop.isDefinedOutsideOfLoop(value))
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto inner = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return inner && inner != loop && argument == inner.getInductionVar();
  }
  Operation *op = value.getDefiningOp();
  // An access tile's region only names its variables.
  return (op->getNumRegions() == 0 ||
          isa<ktdp::ConstructIndirectAccessTileOp>(op)) &&
         isMemoryEffectFree(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value v) { return isInvariant(v, loop); });
}

/// Whether a loop changes memory by storing tiles only, and waits for no other
/// core.
static bool onlyStoresTiles(scf::ForOp loop) {
  WalkResult result = loop.walk([](Operation *op) {
    if (isa<ktdp::StoreOp>(op) ||
        op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
        isMemoryEffectFree(op))
      return WalkResult::advance();
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    return effects && effects.onlyHasEffect<MemoryEffects::Read>()
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

/// The innermost loop in whose iterations a load reads the same tiles in the
/// same order, or null.
static scf::ForOp findLoopThatReadsAgain(ktdp::LoadOp load) {
  SmallVector<scf::ForOp> inside;
  for (auto loop = dyn_cast<scf::ForOp>(load->getParentOp()); loop;
       loop = dyn_cast<scf::ForOp>(loop->getParentOp())) {
    bool isSame = isInvariant(load.getTile(), loop) &&
                  llvm::all_of(inside, [&](scf::ForOp inner) {
                    return isInvariant(inner.getLowerBound(), loop) &&
                           isInvariant(inner.getUpperBound(), loop) &&
                           isInvariant(inner.getStep(), loop);
                  });
    if (isSame)
      return onlyStoresTiles(loop) ? loop : nullptr;
    inside.push_back(loop);
  }
  return nullptr;
}

void FunctionLoader::keepTiles(Operation *op, AccessTilePlan &tilePlan) {
  auto load = cast<ktdp::LoadOp>(op);
  // Each load reads the indices, which the loop may change.
  if (!load.getTile().hasOneUse() || !tilePlan.indexViewSlots.empty())
    return;
  if (scf::ForOp loop = findLoopThatReadsAgain(load)) {
    tilePlan.keptTiles = function.numKeptTiles++;
    keptTiles[loop].push_back(tilePlan.keptTiles);
  }
}

/// Whether a load is for one loop nest only, which has several inputs and
/// reductions.
static bool isFactor(ktdp::LoadOp load) {
  if (!load.getResult().hasOneUse())
    return false;
  auto user = dyn_cast<linalg::LinalgOp>(*load.getResult().user_begin());
  return user && user.getNumReductionLoops() > 0 && user.getNumDpsInputs() > 1;
}

/// The dimension of a factor that has to be dense in memory so that
/// gemmOfHalves() takes its codes where they are: the one along columns of the
/// right factor, or along k of the left one. Returns -1 if the loop nest is no
/// product of two matrices of halves, or is known to have too few rows.
static int findDenseDim(OpOperand &factor) {
  auto op = cast<linalg::LinalgOp>(factor.getOwner());
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return -1;
  auto isHalf = [](OpOperand *input) {
    return elemOf(input->get().getType()) == Elem::F16;
  };
  FailureOr<linalg::ContractionDimensions> loops =
      linalg::inferContractionDims(op);
  if (failed(loops) || !llvm::all_of(op.getDpsInputOperands(), isHalf) ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return -1;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto isOne = [&](unsigned loop) { return extents[loop] == 1; };
  for (auto *kind : {&loops->batch, &loops->m, &loops->n, &loops->k})
    llvm::erase_if(*kind, isOne);
  if (!loops->batch.empty() || loops->m.size() != 1 || loops->n.size() != 1 ||
      loops->k.size() != 1)
    return -1;
  // The sum is dense along columns.
  AffineMap sum = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  auto placeOf = [&](AffineMap map, unsigned loop) {
    return *map.getResultPosition(getAffineDimExpr(loop, op.getContext()));
  };
  unsigned rows = loops->m[0], columns = loops->n[0];
  unsigned ofColumns = 1;
  if (placeOf(sum, columns) < placeOf(sum, rows)) {
    std::swap(rows, columns);
    ofColumns = 0;
  }
  // Where a run has fewer rows than it had to have, it reads the tile itself.
  if (!ShapedType::isDynamic(extents[rows]) &&
      extents[rows] < int64_t(kMinRowsOfHalves))
    return -1;
  const bool isOfColumns = factor.getOperandNumber() == ofColumns;
  return int(placeOf(op.getMatchingIndexingMap(&factor),
                     isOfColumns ? columns : loops->k[0]));
}

LogicalResult FunctionLoader::loadLoad(Operation *op) {
  auto load = cast<ktdp::LoadOp>(op);
  Type base = ktdp::getBaseElementType(load.getTile());
  if (!base)
    return op->emitError("the access tile must be the result of an operation "
                         "that constructs one");
  if (elemOf(base) != elemOf(load.getResult().getType()))
    return op->emitError("element type of the data tile is ")
           << getElementTypeOrSelf(load.getResult().getType())
           << ", that of the view is " << base;
  auto &instr = add<LoadInstr>(op);
  instr.dst = tensorSlot(load.getResult());
  instr.tile = tileSlot(load.getTile());
  instr.elem = *elemOf(base);
  function.accessesMemory = true;
  // Structured loops read any order: do not transpose for them.
  auto isLoopInput = [](OpOperand &operand) {
    auto user = dyn_cast<linalg::LinalgOp>(operand.getOwner());
    return user && user.isDpsInput(&operand);
  };
  AccessTilePlan &p = accessTiles.lookup(load.getTile())->plan;
  if (!p.partitionSlots.empty()) {
    auto type = cast<RankedTensorType>(load.getResult().getType());
    if (isSameInAllCores(load.getTile()))
      function.shareTiles(type.hasStaticShape() &&
                          type.getNumElements() <= kSmallTileElements);
    return success();
  }
  instr.isDeferred = canDefer(load);
  if (isFactor(load)) {
    instr.isFactor = true;
    if (instr.isDeferred)
      instr.denseDim = findDenseDim(*load.getResult().use_begin());
    keepTiles(op, p);
  }
  p.denseInnermost = p.denseVar >= 0 && p.denseVar + 1 != p.rank &&
                     load.getTile().hasOneUse() &&
                     llvm::all_of(load.getResult().getUses(), isLoopInput);
  return success();
}

LogicalResult FunctionLoader::loadStore(Operation *op) {
  auto store = cast<ktdp::StoreOp>(op);
  Type base = ktdp::getBaseElementType(store.getTile());
  if (!base)
    return op->emitError("the access tile must be the result of an operation "
                         "that constructs one");
  if (elemOf(base) != elemOf(store.getData().getType()))
    return op->emitError("element type of the data tile is ")
           << getElementTypeOrSelf(store.getData().getType())
           << ", that of the view is " << base;
  auto &instr = add<StoreInstr>(op);
  instr.data = use(store.getData(), op);
  instr.tile = tileSlot(store.getTile());
  instr.elem = *elemOf(base);
  function.accessesMemory = true;
  auto load = store.getData().getDefiningOp<ktdp::LoadOp>();
  if (load && load->hasOneUse() && load.getTile().hasOneUse() &&
      store.getTile().hasOneUse() && isFloat(instr.elem) &&
      deviceSize(instr.elem) == 2)
    for (Value tile : {load.getTile(), store.getTile()})
      accessTiles.lookup(tile)->plan.movesCodes = true;
  return success();
}
