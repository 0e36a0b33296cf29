//===- SizeSymbols.cpp - Sizes that are known when a program runs ---------===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"
#include "Spyre/Dialect/SpyreGraph/IR/TileOffset.h"
#include "Spyre/Dialect/SpyreGraph/IR/UsedSizes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

//===----------------------------------------------------------------------===//
// Symbols and maps of them
//===----------------------------------------------------------------------===//

static ArrayAttr getSymbolList(Operation *op) {
  auto function = dyn_cast_or_null<FunctionOpInterface>(op);
  if (!function && op)
    function = op->getParentOfType<FunctionOpInterface>();
  return function ? function->getAttrOfType<ArrayAttr>(
                        SpyreGraphDialect::getSymbolsAttrName())
                  : ArrayAttr();
}

bool spyre_graph::hasSizeSymbols(Operation *op) {
  ArrayAttr list = getSymbolList(op);
  return list && !list.empty();
}

SmallVector<SizeSymbolAttr> spyre_graph::getSizeSymbols(Operation *op) {
  SmallVector<SizeSymbolAttr> symbols;
  if (ArrayAttr list = getSymbolList(op))
    for (Attribute entry : list)
      if (auto symbol = dyn_cast<SizeSymbolAttr>(entry))
        symbols.push_back(symbol);
  return symbols;
}

std::string spyre_graph::describe(SizeSymbolAttr symbol) {
  std::string text = "'" + symbol.getName().str() + "' from " +
                     std::to_string(symbol.getLeast()) + " to " +
                     std::to_string(symbol.getMost());
  if (symbol.getStep() != 1)
    text += " by " + std::to_string(symbol.getStep());
  return text;
}

AffineExpr LoopBound::getSize(MLIRContext *context) const {
  return getAffineSymbolExpr(symbol, context).floorDiv(divisor);
}

std::optional<LoopBound> spyre_graph::getLoopBound(Operation *loop) {
  auto map = loop->getAttrOfType<AffineMapAttr>(kBoundMapAttrName);
  if (!map || map.getValue().getNumResults() != 1)
    return std::nullopt;
  AffineExpr expr = map.getValue().getResult(0);
  LoopBound bound;
  if (auto quotient = dyn_cast<AffineBinaryOpExpr>(expr);
      quotient && quotient.getKind() == AffineExprKind::FloorDiv) {
    auto divisor = dyn_cast<AffineConstantExpr>(quotient.getRHS());
    if (!divisor || divisor.getValue() < 1)
      return std::nullopt;
    bound.divisor = divisor.getValue();
    expr = quotient.getLHS();
  }
  auto symbol = dyn_cast<AffineSymbolExpr>(expr);
  if (!symbol)
    return std::nullopt;
  bound.symbol = symbol.getPosition();
  return bound;
}

void spyre_graph::setLoopBound(Operation *loop, unsigned symbol) {
  AffineMap bound =
      AffineMap::get(0, getSizeSymbols(loop).size(),
                     getAffineSymbolExpr(symbol, loop->getContext()));
  loop->setAttr(kBoundMapAttrName, AffineMapAttr::get(bound));
}

LogicalResult spyre_graph::verifyLoopBound(Operation *op, Attribute attribute) {
  // SG-SYMBOL-C4
  auto loop = dyn_cast<scf::ForOp>(op);
  std::optional<int64_t> low, high, step;
  if (loop) {
    low = getConstantIntValue(loop.getLowerBound());
    high = getConstantIntValue(loop.getUpperBound());
    step = getConstantIntValue(loop.getStep());
  }
  auto fail = [&] { return op->emitOpError() << kBoundMapAttrName << " "; };
  if (low != 0 || !high || !step || *step < 1)
    return fail() << "must be of an scf.for from 0 to the largest size by a "
                     "constant step";
  SmallVector<SizeSymbolAttr> symbols = getSizeSymbols(op);
  auto map = dyn_cast<AffineMapAttr>(attribute);
  if (!map || failed(verifySizeMap(map.getValue(), {*high}, symbols, fail)))
    return map ? failure() : fail() << "must be an affine map";
  std::optional<LoopBound> bound = getLoopBound(op);
  if (!bound)
    return fail() << "must be one symbol, or one divided by a number, but is "
                  << attribute;
  SizeSymbolAttr symbol = symbols[bound->symbol];
  int64_t tile;
  bool mayOverlap = bound->divisor == 1 && symbol.getLeast() >= *step;
  if (llvm::MulOverflow(bound->divisor, *step, tile) ||
      (symbol.getStep() % tile != 0 && !mayOverlap))
    return fail() << "is of " << describe(symbol) << ", which iterations of "
                  << *step << " x " << bound->divisor
                  << " would leave a part of out";
  return success();
}

std::pair<int64_t, int64_t>
spyre_graph::getSizeRange(AffineExpr expr, ArrayRef<SizeSymbolAttr> symbols) {
  // Symbols become dimensions that begin at 0.
  SmallVector<AffineExpr> replacements;
  SmallVector<int64_t> extents;
  for (auto [number, symbol] : llvm::enumerate(symbols)) {
    extents.push_back(
        (symbol.getMost() - symbol.getLeast()) / symbol.getStep() + 1);
    replacements.push_back(getAffineDimExpr(number, expr.getContext()) *
                               symbol.getStep() +
                           symbol.getLeast());
  }
  return getRange(expr.replaceSymbols(replacements), extents);
}

int64_t spyre_graph::evaluateSize(AffineExpr expr, ArrayRef<int64_t> sizes) {
  SmallVector<AffineExpr> numbers;
  for (int64_t size : sizes)
    numbers.push_back(getAffineConstantExpr(size, expr.getContext()));
  return evaluate(expr.replaceSymbols(numbers), {});
}

SmallVector<SmallVector<int64_t>>
spyre_graph::getSmallerSizes(Operation *op, ArrayRef<double> shares) {
  SmallVector<SizeSymbolAttr> symbols = getSizeSymbols(op);
  SmallVector<SmallVector<int64_t>> sizes;
  if (symbols.empty())
    return sizes;
  for (double share : shares)
    sizes.push_back(llvm::map_to_vector(symbols, [&](SizeSymbolAttr symbol) {
      auto wanted =
          static_cast<int64_t>(static_cast<double>(symbol.getMost()) * share);
      int64_t steps =
          std::max<int64_t>(wanted - symbol.getLeast(), 0) / symbol.getStep();
      return symbol.getLeast() + steps * symbol.getStep();
    }));
  return sizes;
}

LogicalResult spyre_graph::verifySizesApart(Operation *op,
                                            Attribute attribute) {
  // SG-SYMBOL-C5
  auto numbers = dyn_cast<DenseI64ArrayAttr>(attribute);
  SmallVector<SizeSymbolAttr> symbols;
  if (isa<FunctionOpInterface>(op))
    symbols = getSizeSymbols(op);
  if (!numbers || numbers.size() != 2 || numbers[0] < 0 ||
      numbers[0] >= static_cast<int64_t>(symbols.size()))
    return op->emitOpError()
           << kSizesApartAttrName
           << " must be the number of one of the function's " << symbols.size()
           << " symbols and a size, but is " << attribute;
  SizeSymbolAttr symbol = symbols[numbers[0]];
  if (numbers[1] < symbol.getLeast() || numbers[1] >= symbol.getMost())
    return op->emitOpError()
           << kSizesApartAttrName << " must leave sizes on both sides, but "
           << describe(symbol) << " is to be cut behind " << numbers[1];
  return success();
}

SmallVector<AffineExpr> spyre_graph::getSizeExprs(AffineMap map,
                                                  ArrayRef<int64_t> numbers,
                                                  MLIRContext *context) {
  if (map)
    return llvm::to_vector(map.getResults());
  return llvm::map_to_vector(numbers, [&](int64_t number) {
    return getAffineConstantExpr(number, context);
  });
}

AffineMap spyre_graph::makeSizeMap(ArrayRef<AffineExpr> sizes,
                                   unsigned numSymbols, MLIRContext *context) {
  if (llvm::all_of(sizes, llvm::IsaPred<AffineConstantExpr>))
    return AffineMap();
  return AffineMap::get(0, numSymbols, sizes, context);
}

bool spyre_graph::varies(AffineMap map, unsigned position) {
  return map && !isa<AffineConstantExpr>(map.getResult(position));
}

LogicalResult
spyre_graph::verifySizeMap(AffineMap map, ArrayRef<int64_t> numbers,
                           ArrayRef<SizeSymbolAttr> symbols,
                           function_ref<InFlightDiagnostic()> emitError) {
  // SG-SYMBOL-C2
  if (map.getNumDims() != 0 || map.getNumSymbols() != symbols.size() ||
      map.getNumResults() != numbers.size())
    return emitError() << "must take the function's " << symbols.size()
                       << " symbols to " << numbers.size() << " sizes, but is "
                       << AffineMapAttr::get(map);
  for (auto [number, expr] : llvm::zip_equal(numbers, map.getResults())) {
    if (!isa<AffineConstantExpr>(expr) && !expr.isPureAffine())
      return emitError() << "must be affine, but is "
                         << AffineMapAttr::get(map);
    bool arePositive = true;
    expr.walk([&](AffineExpr part) {
      auto binary = dyn_cast<AffineBinaryOpExpr>(part);
      if (!binary || binary.getKind() == AffineExprKind::Add ||
          binary.getKind() == AffineExprKind::Mul)
        return;
      auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
      arePositive &= divisor && divisor.getValue() > 0;
    });
    if (!arePositive)
      return emitError() << "must divide by positive constants, but is "
                         << AffineMapAttr::get(map);
    auto [least, most] = getSizeRange(expr, symbols);
    if (most != number || (!isa<AffineConstantExpr>(expr) && least < 1))
      return emitError() << "must have results from 1 to what they stand "
                            "beside, but in "
                         << AffineMapAttr::get(map) << " one is " << least
                         << " to " << most << " beside " << number;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Sizes of values
//===----------------------------------------------------------------------===//

static SmallVector<AffineExpr> getTypeSizes(Value value) {
  return getSizeExprs(AffineMap(), shapeOf(value), value.getContext());
}

/// The dimensions of a slice that are whole are as large as the source's.
static SmallVector<AffineExpr> getSliceSizes(Value slice, Value source) {
  SmallVector<AffineExpr> sizes = getTypeSizes(slice);
  if (shapeOf(slice).size() != shapeOf(source).size())
    return sizes;
  SmallVector<AffineExpr> whole = getSizes(source);
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    if (shapeOf(slice)[dim] == shapeOf(source)[dim])
      sizes[dim] = whole[dim];
  return sizes;
}

/// How large what loops write tile by tile is, a slice of which has these
/// sizes: in dimensions that it cuts, as the loop says that moves it up to a
/// size, or as `whole` says.
static SmallVector<AffineExpr> getWholeSizes(OffsetSizeAndStrideOpInterface cut,
                                             ArrayRef<int64_t> shape,
                                             ArrayRef<AffineExpr> sizes,
                                             SmallVector<AffineExpr> whole) {
  if (sizes.size() != shape.size())
    return whole;
  for (auto [dim, offset] : llvm::enumerate(cut.getMixedOffsets())) {
    if (cut.getStaticSizes()[dim] == shape[dim]) {
      whole[dim] = sizes[dim];
      continue;
    }
    std::optional<TileOffset> start = getTileOffset(offset);
    if (auto bound =
            start && start->loop ? getLoopBound(start->loop) : std::nullopt)
      whole[dim] = bound->getSize(cut->getContext()) * start->factor;
  }
  return whole;
}

AffineExpr spyre_graph::getWrittenCoordinate(SpyreOpInterface op,
                                             unsigned dim) {
  AffineMap map = op.getIndexingMaps().back();
  std::optional<InitOffset> offset = op.getInitOffset();
  if (!offset || offset->dim != static_cast<int64_t>(dim))
    return map.getResult(dim);
  // SG-INSERT-C2
  SmallVector<AffineExpr> begin(map.getNumDims(),
                                getAffineConstantExpr(0, op->getContext()));
  return map.getResult(dim) - map.getResult(dim).replaceDims(begin) +
         offset->expr;
}

/// How large what an operation writes into its init is, where its loops walk
/// whole dimensions, or up to the end from an offset; elsewhere as the type
/// says.
static SmallVector<AffineExpr> getWrittenSizes(SpyreOpInterface op) {
  Value init = op.getSpyreInit();
  SmallVector<AffineExpr> sizes = getTypeSizes(init);
  SmallVector<int64_t> extents = op.getLoopExtents();
  SmallVector<AffineExpr> extentsNow =
      getSizeExprs(op.getLoopExtentMap(), extents, op->getContext());
  AffineMap map = op.getIndexingMaps().back();
  for (auto [dim, expr] : llvm::enumerate(map.getResults()))
    if (auto loop = dyn_cast<AffineDimExpr>(expr);
        loop && extents[loop.getPosition()] == shapeOf(init)[dim])
      sizes[dim] = extentsNow[loop.getPosition()];
  std::optional<InitOffset> offset = op.getInitOffset();
  if (!offset || llvm::is_contained(extents, 0) ||
      getRange(map.getResult(offset->dim), extents).second + 1 !=
          shapeOf(init)[offset->dim])
    return sizes;
  SmallVector<AffineExpr> last = llvm::map_to_vector(
      extentsNow, [](AffineExpr extent) { return extent - 1; });
  sizes[offset->dim] = simplifyAffineExpr(
      getWrittenCoordinate(op, offset->dim).replaceDims(last) + 1, 0,
      getSizeSymbols(op).size());
  return sizes;
}

/// The operation that writes into the result of another one.
static SpyreOpInterface getUpdater(Value result) {
  for (OpOperand &use : result.getUses())
    if (auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
        op && op.isDpsInit(&use) && op->getNumResults() == 1)
      return op;
  return nullptr;
}

bool spyre_graph::isInsertedInto(Value result, std::optional<int64_t> dim) {
  while (SpyreOpInterface op = getUpdater(result)) {
    std::optional<InitOffset> offset = op.getInitOffset();
    if (offset && offset->dim == dim.value_or(offset->dim))
      return true;
    result = op->getResult(0);
  }
  return false;
}

/// `sizes` with other last dimensions: `count` of size 1.
static SmallVector<AffineExpr> keepAsOne(SmallVector<AffineExpr> sizes,
                                         unsigned count, MLIRContext *context) {
  for (unsigned dim = sizes.size() - count; dim < sizes.size(); ++dim)
    sizes[dim] = getAffineConstantExpr(1, context);
  return sizes;
}

static SmallVector<AffineExpr> getCompositeSizes(Operation *op, Value result) {
  MLIRContext *context = op->getContext();
  return llvm::TypeSwitch<Operation *, SmallVector<AffineExpr>>(op)
      .Case([](SoftmaxOp softmax) { return getSizes(softmax.getInput()); })
      .Case<LayerNormOp, RmsNormOp>([&](auto norm) {
        SmallVector<AffineExpr> sizes = getSizes(norm.getInput());
        return result == norm.getResult()
                   ? sizes
                   : keepAsOne(sizes, norm.getNumDims(), context);
      })
      .Case([&](AttentionOp attention) {
        SmallVector<AffineExpr> sizes = getSizes(attention.getQuery());
        sizes.back() = getSizes(attention.getValue()).back();
        if (result == attention.getLogsumexp())
          sizes.pop_back();
        return sizes;
      })
      .Case([&](AttentionBackwardOp backward) {
        return getSizes(result == backward.getGradQuery() ? backward.getQuery()
                        : result == backward.getGradKey()
                            ? backward.getKey()
                            : backward.getValue());
      })
      .Default([&](Operation *) { return getTypeSizes(result); });
}

/// Whether an operation writes all of its init, at the largest sizes.
static bool fillsInit(SpyreOpInterface op) {
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  if (indirect && op.isDpsInit(&op->getOpOperand(indirect->operand)))
    return false;
  SmallVector<int64_t> extents = op.getLoopExtents();
  llvm::SmallBitVector isUsed(extents.size());
  for (auto [expr, size] :
       llvm::zip_equal(op.getIndexingMaps().back().getResults(),
                       shapeOf(op.getSpyreInit()))) {
    if (expr == getAffineConstantExpr(0, op->getContext()) && size == 1)
      continue;
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop || extents[loop.getPosition()] != size ||
        isUsed.test(loop.getPosition()))
      return false;
    isUsed.set(loop.getPosition());
  }
  return true;
}

std::optional<SmallVector<AffineExpr>>
spyre_graph::getFilledSizes(Value buffer) {
  auto alloc = buffer.getDefiningOp<memref::AllocOp>();
  if (!alloc)
    return std::nullopt;
  Operation *first = nullptr;
  bool grows = false;
  for (OpOperand &use : buffer.getUses()) {
    auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
    if (op && !op.isDpsInit(&use))
      continue;
    grows |= op && op.getInitOffset();
    // What is not an operation of the device may write, too.
    Operation *writer =
        alloc->getBlock()->findAncestorOpInBlock(*use.getOwner());
    if (!first || writer->isBeforeInBlock(first))
      first = writer;
  }
  auto op = dyn_cast_or_null<SpyreOpInterface>(first);
  if (!op || op.getSpyreInit() != buffer || !fillsInit(op))
    return std::nullopt;
  SmallVector<AffineExpr> sizes = getWrittenSizes(op);
  // What is joined behind something that varies is no part of it.
  if (grows && !llvm::all_of(sizes, llvm::IsaPred<AffineConstantExpr>))
    return std::nullopt;
  return sizes;
}

bool spyre_graph::isFilledFirst(Value buffer) {
  std::optional<SmallVector<AffineExpr>> sizes = getFilledSizes(buffer);
  return sizes && llvm::all_of(*sizes, llvm::IsaPred<AffineConstantExpr>);
}

SmallVector<AffineExpr>
spyre_graph::getSizesWrittenInBuffer(SpyreOpInterface op) {
  SmallVector<AffineExpr> sizes = getWrittenSizes(op);
  auto tile = op.getSpyreInit().getDefiningOp<memref::SubViewOp>();
  if (!tile)
    return sizes;
  return getWholeSizes(tile, shapeOf(tile.getSource()), sizes,
                       getTypeSizes(tile.getSource()));
}

SmallVector<SpyreOpInterface> spyre_graph::getWriters(Value buffer) {
  SmallVector<SpyreOpInterface> writers;
  for (OpOperand &use : buffer.getUses()) {
    if (auto tile = dyn_cast<memref::SubViewOp>(use.getOwner()))
      llvm::append_range(writers, getWriters(tile));
    auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
    if (op && op.isDpsInit(&use))
      writers.push_back(op);
  }
  return writers;
}

/// Of a buffer: what the operations that write it say together.
static SmallVector<AffineExpr> getBufferSizes(Value buffer) {
  if (std::optional<SmallVector<AffineExpr>> filled = getFilledSizes(buffer))
    return *filled;
  SmallVector<AffineExpr> sizes = getTypeSizes(buffer);
  for (SpyreOpInterface op : getWriters(buffer))
    for (auto [size, written] :
         llvm::zip_equal(sizes, getSizesWrittenInBuffer(op)))
      if (!isa<AffineConstantExpr>(written))
        size = written;
  return sizes;
}

AffineMapAttr spyre_graph::getArgumentSizeMap(BlockArgument argument) {
  auto function =
      dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  unsigned number = argument.getArgNumber();
  // While a function is built its type may not list the argument yet.
  if (!function || number >= function.getNumArguments())
    return AffineMapAttr();
  if (auto map = function.getArgAttrOfType<AffineMapAttr>(
          number, SpyreGraphDialect::getSizeMapAttrName()))
    return map;
  return function.getArgAttrOfType<AffineMapAttr>(number, kUsedMapAttrName);
}

static SmallVector<AffineExpr> getArgumentSizes(BlockArgument argument) {
  if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()))
    if (OpOperand *init = loop.getTiedLoopInit(argument))
      return getSizes(init->get());
  AffineMapAttr map = getArgumentSizeMap(argument);
  return getSizeExprs(map ? map.getValue() : AffineMap(), shapeOf(argument),
                      argument.getContext());
}

/// Of what an operation on tensors gives.
static SmallVector<AffineExpr> getResultSizes(SpyreOpInterface op) {
  Value init = op.getSpyreInit();
  if (init.getDefiningOp<tensor::EmptyOp>())
    return getWrittenSizes(op);
  SmallVector<AffineExpr> sizes = getSizes(init);
  if (std::optional<InitOffset> offset = op.getInitOffset())
    if (AffineExpr written = getWrittenSizes(op)[offset->dim];
        !isa<AffineConstantExpr>(written))
      sizes[offset->dim] = written;
  return sizes;
}

SmallVector<AffineExpr> spyre_graph::getSizes(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getArgumentSizes(argument);
  Operation *op = value.getDefiningOp();
  if (!hasSizeSymbols(op))
    return getTypeSizes(value);
  return llvm::TypeSwitch<Operation *, SmallVector<AffineExpr>>(op)
      .Case([&](ViewOp view) {
        return getSizeExprs(view.getSizeMap().value_or(AffineMap()),
                            shapeOf(value), view.getContext());
      })
      .Case([&](SpyreOpInterface device) { return getResultSizes(device); })
      .Case([&](scf::ForOp loop) {
        return getSizes(
            loop.getYieldedValues()[cast<OpResult>(value).getResultNumber()]);
      })
      .Case([](bufferization::MaterializeInDestinationOp update) {
        return getSizes(update.getDest());
      })
      .Case([](bufferization::ToBufferOp buffer) {
        // Bufferization copies values into it before it allocates it.
        if (buffer.getTensor().getDefiningOp<bufferization::AllocTensorOp>())
          return getBufferSizes(buffer);
        return getSizes(buffer.getTensor());
      })
      .Case([](bufferization::ToTensorOp tensor) {
        return getSizes(tensor.getBuffer());
      })
      .Case([](tensor::InsertSliceOp insert) {
        return getWholeSizes(insert, shapeOf(insert.getDest()),
                             getSizes(insert.getSource()),
                             getSizes(insert.getDest()));
      })
      .Case<tensor::ExtractSliceOp, memref::SubViewOp>(
          [&](auto slice) { return getSliceSizes(value, slice.getSource()); })
      .Case([&](memref::AllocOp) { return getBufferSizes(value); })
      .Default(
          [&](Operation *other) { return getCompositeSizes(other, value); });
}
