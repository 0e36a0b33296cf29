// SPDX-License-Identifier: Apache-2.0
//===- SpyreGraphToKTIR.cpp - Planned graphs to KTIR ------------*- C++ -*-===//

#include "ArgumentReach.h"
#include "KernelBuilder.h"
#include "Spyre/Conversion/Passes.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/IR/TileOffset.h"
#include "Spyre/Dialect/SpyreGraph/IR/UsedSizes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir {
#define GEN_PASS_DEF_CONVERTSPYREGRAPHTOKTIR
#include "Spyre/Conversion/Passes.h.inc"
} // namespace mlir

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// Lowers one planned function to a sequence function and its kernels.
class SequenceBuilder {
public:
  SequenceBuilder(ModuleOp module, func::FuncOp planned, SymbolTable &symbols,
                  int64_t lxBytes, const ::spyre::DeviceSpec &spec)
      : module(module), planned(planned), symbols(symbols), lxBytes(lxBytes),
        spec(spec), builder(module.getContext()),
        sizeSymbols(getSizeSymbols(planned)) {}

  LogicalResult build();

  unsigned getNumKernels() const { return numKernels; }
  unsigned getNumCalls() const { return numCalls; }

private:
  LogicalResult addArguments();
  LogicalResult lower(Block &block);
  LogicalResult lower(SpyreOpInterface op);
  LogicalResult lower(scf::ForOp loop);
  LogicalResult lower(TileStartOp start);
  LogicalResult lower(memref::SubViewOp tile);
  /// Element index at which a buffer starts.
  FailureOr<Value> getStart(Value buffer, Operation *user);
  FailureOr<OperandStorage> getStorage(Value buffer, Operation *user);
  /// What an expression of the function's symbols is in a run.
  OpFoldResult getSize(AffineExpr expr);
  /// The scalar of the sequence for an index of the planned function.
  Value getIndex(OpFoldResult index);
  Value getIndexConstant(int64_t value);
  Value getPool(int64_t elementBytes);

  ModuleOp module;
  func::FuncOp planned, sequence;
  SymbolTable &symbols;
  int64_t lxBytes;
  const ::spyre::DeviceSpec &spec;
  OpBuilder builder;
  /// The function's symbols, and what they are in a run.
  SmallVector<SizeSymbolAttr> sizeSymbols;
  SmallVector<Value> symbolValues;
  Value pool;
  /// Addresses of buffers and tiles, and the values of induction variables.
  llvm::DenseMap<Value, Value> starts, indices;
  /// Starts of buffers are computed before it: they outlive the loop around
  /// the call that needs them first.
  Operation *outermostLoop = nullptr;
  llvm::DenseMap<int64_t, Value> constants, pools;
  llvm::DenseMap<Attribute, func::FuncOp> kernels;
  unsigned numKernels = 0, numCalls = 0;
};

} // namespace

/// Row-major strides over device sizes.
static SmallVector<int64_t> getDeviceStrides(LayoutAttrInterface layout,
                                             ArrayRef<int64_t> shape) {
  SmallVector<int64_t> sizes = layout.getDeviceSize(shape);
  SmallVector<int64_t> strides(sizes.size(), 1);
  for (int64_t dim = static_cast<int64_t>(sizes.size()) - 1; dim > 0; --dim)
    strides[dim - 1] = strides[dim] * sizes[dim];
  return strides;
}

/// How large an argument is in the function's symbols; null if always the same.
static AffineMap getSizeMap(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto map = function.getArgAttrOfType<AffineMapAttr>(
      argument.getArgNumber(), SpyreGraphDialect::getSizeMapAttrName());
  return map ? map.getValue() : AffineMap();
}

/// The buffer that a tile is part of, or the buffer itself.
static Value getWholeBuffer(Value buffer) {
  auto tile = buffer.getDefiningOp<memref::SubViewOp>();
  return tile ? tile.getSource() : buffer;
}

static PlacementAttr getPlacement(Value buffer) {
  Operation *definition = buffer.getDefiningOp();
  return definition ? definition->getAttrOfType<PlacementAttr>(
                          SpyreGraphDialect::getPlacementAttrName())
                    : PlacementAttr();
}

Value SequenceBuilder::getIndexConstant(int64_t value) {
  Value &constant = constants[value];
  if (!constant) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&sequence.front());
    constant =
        arith::ConstantIndexOp::create(builder, sequence.getLoc(), value);
  }
  return constant;
}

Value SequenceBuilder::getPool(int64_t elementBytes) {
  Value &start = pools[elementBytes];
  if (!start) {
    Value bytes = getIndexConstant(elementBytes);
    start = arith::DivUIOp::create(builder, sequence.getLoc(), pool, bytes);
  }
  return start;
}

LogicalResult SequenceBuilder::addArguments() {
  MLIRContext *context = builder.getContext();
  auto poolSize = planned->getAttrOfType<IntegerAttr>(
      SpyreGraphDialect::getPoolSizeAttrName());
  bool hasPool = poolSize && poolSize.getInt() > 0;
  SmallVector<Type> types(planned.getNumArguments(), builder.getIndexType());
  for (SizeSymbolAttr symbol : sizeSymbols)
    types.push_back(ktdp::RuntimeArgType::get(
        context, builder.getIndexType(), symbol.getStep(), symbol.getMost()));
  if (hasPool)
    types.push_back(builder.getIndexType());
  sequence = func::FuncOp::create(builder, planned.getLoc(), planned.getName(),
                                  builder.getFunctionType(types, {}));
  Block *body = sequence.addEntryBlock();
  // Set together: setting one copies those of all arguments.
  SmallVector<DictionaryAttr> attributes;
  for (BlockArgument argument : planned.getArguments()) {
    unsigned number = argument.getArgNumber();
    // SG-TO-KTIR-C1
    FailureOr<HostArgument> host = getHostArgument(planned, number);
    if (failed(host))
      return failure();
    ArrayRef<int64_t> shape = host->type.getShape();
    auto transfer = ktdp::LayoutAttr::get(
        context, host->layout.getDeviceSize(shape),
        host->layout.getStrideMap(shape, host->strides),
        ::spyre::toString(host->layout.getDataFormat()),
        ::spyre::toString(host->dtype), shape, host->strides);
    SmallVector<NamedAttribute> named{
        builder.getNamedAttr("ktdp.layout", transfer),
        builder.getNamedAttr("ktdp.name", builder.getStringAttr(host->name))};
    SmallVector<int64_t> reach = getReach(argument);
    if (ArrayRef(reach) != shape)
      named.push_back(builder.getNamedAttr(
          "ktdp.reach", builder.getDenseI64ArrayAttr(reach)));
    if (AffineMap sizes = getSizeMap(argument))
      named.push_back(
          builder.getNamedAttr("ktdp.size_map", AffineMapAttr::get(sizes)));
    if (Attribute used = planned.getArgAttr(number, kUsedMapAttrName))
      named.push_back(builder.getNamedAttr("ktdp.used_map", used));
    attributes.push_back(builder.getDictionaryAttr(named));
    body->getArgument(number).setLoc(argument.getLoc());
    starts[argument] = body->getArgument(number);
  }
  for (SizeSymbolAttr symbol : sizeSymbols)
    attributes.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("ktdp.name",
                              builder.getStringAttr(symbol.getName())),
         builder.getNamedAttr("ktdp.least",
                              builder.getI64IntegerAttr(symbol.getLeast()))}));
  if (hasPool) {
    pool = body->getArguments().back();
    attributes.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("ktdp.name", builder.getStringAttr("pool")),
         builder.getNamedAttr("ktdp.pool_size", poolSize)}));
  }
  sequence.setAllArgAttrs(attributes);
  builder.setInsertionPointToEnd(body);
  for (unsigned number = 0; number < sizeSymbols.size(); ++number)
    symbolValues.push_back(ktdp::RuntimeArgExtractOp::create(
        builder, planned.getLoc(), builder.getIndexType(),
        ktdp::RuntimeArgExtractKind::value,
        body->getArgument(planned.getNumArguments() + number)));
  return success();
}

FailureOr<OperandStorage> SequenceBuilder::getStorage(Value buffer,
                                                      Operation *user) {
  OperandStorage storage;
  storage.layout = getLayout(buffer.getType());
  Value whole = getWholeBuffer(buffer);
  PlacementAttr placement = getPlacement(whole);
  // SG-TO-KTIR-C1
  if (!storage.layout || (!placement && !isa<BlockArgument>(whole)))
    return user->emitOpError()
           << "operand of type " << buffer.getType()
           << " must be a function argument or an allocation with a layout "
              "and a placement";
  storage.shape =
      llvm::to_vector(cast<MemRefType>(buffer.getType()).getShape());
  if (placement && placement.getSpace() == MemorySpace::lx) {
    storage.isInLX = true;
    storage.shape = llvm::to_vector(placement.getLocal());
    storage.strides = getDeviceStrides(storage.layout, storage.shape);
    return storage;
  }
  if (auto argument = dyn_cast<BlockArgument>(whole))
    storage.sizeMap = getSizeMap(argument);
  // A tile lies in the device memory of the whole.
  storage.wholeShape =
      llvm::to_vector(cast<MemRefType>(whole.getType()).getShape());
  storage.strides = getDeviceStrides(storage.layout, storage.wholeShape);
  return storage;
}

FailureOr<Value> SequenceBuilder::getStart(Value buffer, Operation *user) {
  auto known = starts.find(buffer);
  if (known != starts.end())
    return known->second;
  PlacementAttr placement = getPlacement(buffer);
  int64_t elementBytes =
      ::spyre::storageBytes(getLayout(buffer.getType()).getDataFormat());
  Value start = getIndexConstant(placement.getOffset() / elementBytes);
  if (placement.getSpace() == MemorySpace::pool) {
    if (!pool)
      return user->emitOpError("uses the pool, but the function has none; run "
                               "--spyre-memory-planning first");
    OpBuilder::InsertionGuard guard(builder);
    if (outermostLoop)
      builder.setInsertionPoint(outermostLoop);
    start = arith::AddIOp::create(builder, sequence.getLoc(),
                                  getPool(elementBytes), start);
  }
  starts[buffer] = start;
  return start;
}

Value SequenceBuilder::getIndex(OpFoldResult index) {
  if (std::optional<int64_t> number = getConstantIntValue(index))
    return getIndexConstant(*number);
  return indices.lookup(cast<Value>(index));
}

LogicalResult SequenceBuilder::lower(scf::ForOp loop) {
  Value bounds[] = {getIndex(loop.getLowerBound()),
                    getIndex(loop.getUpperBound()), getIndex(loop.getStep())};
  // SG-TO-KTIR-C4
  if (!llvm::all_of(bounds, [](Value bound) { return bound; }) ||
      loop.getNumResults() != 0)
    return loop.emitOpError("must have constant bounds and carry nothing");
  if (std::optional<LoopBound> bound = getLoopBound(loop)) {
    bounds[1] = symbolValues[bound->symbol];
    if (bound->divisor != 1)
      bounds[1] = arith::DivUIOp::create(builder, loop.getLoc(), bounds[1],
                                         getIndexConstant(bound->divisor));
  }
  auto lowered = scf::ForOp::create(builder, loop.getLoc(), bounds[0],
                                    bounds[1], bounds[2]);
  indices[loop.getInductionVar()] = lowered.getInductionVar();
  bool isOutermost = !outermostLoop;
  if (isOutermost)
    outermostLoop = lowered;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(lowered.getBody());
    if (failed(lower(*loop.getBody())))
      return failure();
  }
  if (isOutermost)
    outermostLoop = nullptr;
  return success();
}

OpFoldResult SequenceBuilder::getSize(AffineExpr expr) {
  return affine::makeComposedFoldedAffineApply(
      builder, planned.getLoc(), AffineMap::get(0, symbolValues.size(), expr),
      getAsOpFoldResult(symbolValues));
}

LogicalResult SequenceBuilder::lower(TileStartOp start) {
  auto loop = cast<scf::ForOp>(
      indices.lookup(start.getIndex()).getParentBlock()->getParentOp());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  Value last = arith::SubIOp::create(builder, start.getLoc(),
                                     loop.getUpperBound(), loop.getStep());
  builder.setInsertionPointToStart(loop.getBody());
  indices[start] = arith::MinSIOp::create(builder, start.getLoc(),
                                          loop.getInductionVar(), last);
  return success();
}

/// The start of a tile: that of the whole and, for each device dimension, the
/// device stride times the coordinate of the tile's first element.
LogicalResult SequenceBuilder::lower(memref::SubViewOp tile) {
  // SG-TO-KTIR-C4
  auto layout = dyn_cast_or_null<LayoutAttr>(getLayout(tile.getType()));
  PlacementAttr placement = getPlacement(tile.getSource());
  if (!layout || tile.getSource().getDefiningOp<memref::SubViewOp>() ||
      (placement && placement.getSpace() == MemorySpace::lx) ||
      llvm::any_of(tile.getMixedStrides(), [](OpFoldResult stride) {
        return getConstantIntValue(stride) != 1;
      }))
    return tile.emitOpError("must be a dense tile of a whole buffer in device "
                            "memory with a layout relative to its shape");
  FailureOr<OperandStorage> storage = getStorage(tile, tile);
  FailureOr<Value> start = getStart(tile.getSource(), tile);
  if (failed(storage) || failed(start))
    return failure();
  DeviceView view = storage->getDeviceView(
      builder, tile.getLoc(), [&](AffineExpr size) { return getSize(size); });
  // Strides that vary are multiplied by operations, others by the map.
  SmallVector<Value> operands, products;
  AffineExpr offset = builder.getAffineConstantExpr(0);
  for (auto [device, stride] : llvm::zip_equal(
           layout.getDeviceDims(storage->wholeShape), view.strides)) {
    if (device.hostDim < 0)
      continue;
    std::optional<TileOffset> first =
        getTileOffset(tile.getMixedOffsets()[device.hostDim]);
    if (!first)
      return tile.emitOpError("must start at an induction variable");
    if (!first->isMultipleOf(device.step))
      return tile.emitOpError()
             << "must start at whole sticks of dimension " << device.hostDim;
    std::optional<int64_t> known = getConstantIntValue(stride);
    // The lane.
    if (known == 1)
      continue;
    AffineExpr coordinate = builder.getAffineConstantExpr(first->number);
    SmallVector<Value> index;
    if (first->loop) {
      coordinate =
          builder.getAffineDimExpr(known ? operands.size() : 0) * first->factor;
      index.push_back(indices.lookup(first->index));
    }
    coordinate = coordinate.floorDiv(device.step);
    if (known) {
      offset = offset + coordinate * *known;
      llvm::append_range(operands, index);
    } else if (first->loop || first->number != 0) {
      Value steps = affine::AffineApplyOp::create(
          builder, tile.getLoc(), AffineMap::get(index.size(), 0, coordinate),
          index);
      products.push_back(arith::MulIOp::create(builder, tile.getLoc(), steps,
                                               cast<Value>(stride)));
    }
  }
  unsigned numDims = operands.size();
  operands.push_back(*start);
  Value first = affine::AffineApplyOp::create(
      builder, tile.getLoc(),
      AffineMap::get(numDims, 1, builder.getAffineSymbolExpr(0) + offset),
      operands);
  for (Value product : products)
    first = arith::AddIOp::create(builder, tile.getLoc(), first, product);
  // Strides that nothing is multiplied with. Each was made of the next one.
  llvm::SmallSetVector<Operation *, 4> strides;
  for (OpFoldResult stride : view.strides)
    if (auto value = dyn_cast<Value>(stride))
      if (auto product = value.getDefiningOp<arith::MulIOp>())
        strides.insert(product);
  for (Operation *product : strides)
    if (product->use_empty())
      product->erase();
  starts[tile] = first;
  return success();
}

/// What a kernel depends on. Kernels that differ only in addresses, and in
/// which symbols their sizes follow, are one, as those of a model's layers do.
/// Those of other lines of the user's are not: errors name a line.
static Attribute getKernelKey(SpyreOpInterface op,
                              ArrayRef<OperandStorage> storage,
                              ArrayRef<unsigned> symbols) {
  MLIRContext *context = op->getContext();
  auto renumber = [&](AffineMap map) {
    SmallVector<AffineExpr> numbers;
    for (unsigned symbol = 0; symbol < map.getNumSymbols(); ++symbol) {
      // One that no size follows keeps its number, behind the others.
      auto *known = llvm::find(symbols, symbol);
      numbers.push_back(getAffineSymbolExpr(known == symbols.end()
                                                ? symbols.size() + symbol
                                                : known - symbols.begin(),
                                            context));
    }
    return map.replaceDimsAndSymbols({}, numbers, map.getNumDims(),
                                     symbols.size() + map.getNumSymbols());
  };
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](AffineMapAttr map) {
    return AffineMapAttr::get(renumber(map.getValue()));
  });
  replacer.addReplacement([&](WorkDivisionAttr division) {
    AffineMap chunks = division.getChunkMap();
    return chunks ? division.withChunkMap(renumber(chunks)) : division;
  });
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.erase(kNumberAttrName);

  Builder b(context);
  SmallVector<Attribute> key{
      op->getName().getIdentifier(),
      replacer.replace(attributes.getDictionary(context)), op->getLoc()};
  for (auto [operand, place] : llvm::zip(op->getOperands(), storage)) {
    auto mapOrUnit = [&](AffineMap map) {
      return map ? Attribute(AffineMapAttr::get(renumber(map)))
                 : Attribute(b.getUnitAttr());
    };
    key.push_back(b.getArrayAttr(
        {TypeAttr::get(operand.getType()),
         b.getDenseI64ArrayAttr({place.parameter, place.isInLX}),
         b.getDenseI64ArrayAttr(place.shape),
         b.getDenseI64ArrayAttr(place.wholeShape),
         b.getDenseI64ArrayAttr(place.strides), mapOrUnit(place.sizeMap),
         mapOrUnit(place.numRowsMap)}));
  }
  return b.getArrayAttr(key);
}

LogicalResult SequenceBuilder::lower(SpyreOpInterface op) {
  // SG-TO-KTIR-C1
  if (!op.getWorkDivision())
    return op->emitOpError(
        "has no work division; run --spyre-work-division first");
  // Nothing is written.
  if (llvm::is_contained(
          cast<ShapedType>(op.getSpyreInit().getType()).getShape(), 0))
    return success();
  for (auto [extent, kind] : llvm::zip(op.getLoopExtents(), op.getLoopKinds()))
    if (extent == 0 && (kind == utils::IteratorType::parallel ||
                        op.getCombiner() == Combiner::None))
      return success();

  // One parameter per distinct buffer.
  SmallVector<OperandStorage> storage;
  SmallVector<Value> buffers, arguments;
  for (Value operand : op->getOperands()) {
    FailureOr<OperandStorage> place = getStorage(operand, op);
    if (failed(place))
      return failure();
    auto *known = llvm::find(buffers, operand);
    place->parameter = known - buffers.begin();
    if (known == buffers.end()) {
      FailureOr<Value> start = getStart(operand, op);
      if (failed(start))
        return failure();
      buffers.push_back(operand);
      arguments.push_back(*start);
    }
    storage.push_back(*place);
  }

  // At smaller sizes, rows behind the last one are no rows.
  if (std::optional<IndirectAccess> indirect = op.getIndirectAccess()) {
    OperandStorage &table = storage[indirect->operand];
    if (!table.sizeMap)
      table.numRowsMap = makeSizeMap(
          getSizes(op->getOperand(indirect->operand))[indirect->dim],
          symbolValues.size(), builder.getContext());
  }

  AffineMap extentMap = op.getLoopExtentMap();
  std::optional<InitOffset> offset = op.getInitOffset();
  SmallVector<unsigned> used;
  for (unsigned symbol = 0; symbol < symbolValues.size(); ++symbol) {
    auto uses = [&](AffineMap map) {
      return map && map.isFunctionOfSymbol(symbol);
    };
    if (!uses(extentMap) && !uses(op.getWorkDivision().getChunkMap()) &&
        !(offset && offset->expr.isFunctionOfSymbol(symbol)) &&
        !uses(op.getAccessDivision(0).getChunkMap()) &&
        llvm::none_of(storage, [&](const OperandStorage &place) {
          return uses(place.sizeMap) || uses(place.numRowsMap);
        }))
      continue;
    used.push_back(symbol);
    arguments.push_back(symbolValues[symbol]);
  }

  func::FuncOp &kernel = kernels[getKernelKey(op, storage, used)];
  if (!kernel) {
    OpBuilder moduleBuilder = OpBuilder::atBlockEnd(module.getBody());
    std::string name =
        ("k" + Twine(numKernels++) + "_" + op->getName().stripDialect()).str();
    kernel = func::FuncOp::create(
        moduleBuilder, op->getLoc(), name,
        builder.getFunctionType(
            SmallVector<Type>(arguments.size(), builder.getIndexType()), {}));
    kernel.setPrivate();
    symbols.insert(kernel); // Renames it if another function has its name.
    if (failed(KernelBuilder(op, storage, used, lxBytes, spec).build(kernel)))
      return failure();
  }
  func::CallOp::create(builder, op->getLoc(), kernel, arguments);
  ++numCalls;
  return success();
}

LogicalResult SequenceBuilder::lower(Block &block) {
  for (Operation &operation : block) {
    LogicalResult result =
        llvm::TypeSwitch<Operation *, LogicalResult>(&operation)
            .Case<SpyreOpInterface, scf::ForOp, TileStartOp, memref::SubViewOp>(
                [&](auto op) { return lower(op); })
            .Case<memref::AllocOp, memref::DeallocOp, arith::ConstantOp,
                  arith::MulIOp, scf::YieldOp, func::ReturnOp>(
                [](Operation *) { return success(); })
            .Default([](Operation *op) {
              return op->emitOpError("is not part of a planned graph; plan the "
                                     "module with --spyre-pipeline first");
            });
    if (failed(result))
      return failure();
  }
  return success();
}

LogicalResult SequenceBuilder::build() {
  builder.setInsertionPoint(planned);
  if (!planned.getBody().hasOneBlock() || planned.getNumResults() != 0)
    return planned.emitError("must have one block and no results; run "
                             "--spyre-bufferize first");
  if (failed(addArguments()))
    return failure();
  if (failed(lower(planned.front())))
    return failure();
  func::ReturnOp::create(builder, planned.getLoc());
  planned.erase();
  return success();
}

namespace {
struct ConvertSpyreGraphToKTIR
    : impl::ConvertSpyreGraphToKTIRBase<ConvertSpyreGraphToKTIR> {
  using ConvertSpyreGraphToKTIRBase::ConvertSpyreGraphToKTIRBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    // SG-TO-KTIR-C1
    for (func::FuncOp function : functions)
      if (function->hasAttr(ktdp::kGridAttr)) {
        function.emitOpError("has a grid: it is a kernel of KTIR, to which the "
                             "module has been lowered already");
        return signalPassFailure();
      }
    SymbolTable symbols(module);
    const ::spyre::DeviceSpec spec = spyre_graph::getDeviceSpec(module);
    int64_t tileBytes =
        spyre_graph::orOfDevice<int64_t>(lxBytes, spec.reservedLXBytes());
    if (tileBytes < 0) {
      module.emitError() << "expected at least 0 bytes of LX, found "
                         << tileBytes;
      return signalPassFailure();
    }
    for (func::FuncOp function : functions) {
      if (function.isExternal())
        continue;
      SequenceBuilder sequence(module, function, symbols, tileBytes, spec);
      if (failed(sequence.build()))
        return signalPassFailure();
      numKernels += sequence.getNumKernels();
      numCalls += sequence.getNumCalls();
    }
    // KTIR is planned no further. The device it is for stays.
    module->removeAttr(spyre_graph::SpyreGraphDialect::getTargetAttrName());
  }
};
} // namespace
