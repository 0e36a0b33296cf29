//===- SizeSymbols.cpp - Sizes that are known when a program runs ---------===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
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
  if (llvm::MulOverflow(bound->divisor, *step, tile) ||
      symbol.getStep() % tile != 0)
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

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<ShapedType>(value.getType()).getShape();
}

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

/// How large what an operation writes into its init is, where its loops walk
/// whole dimensions; elsewhere as the type says.
static SmallVector<AffineExpr> getWrittenSizes(SpyreOpInterface op) {
  Value init = op.getSpyreInit();
  SmallVector<AffineExpr> sizes = getTypeSizes(init);
  SmallVector<int64_t> extents = op.getLoopExtents();
  AffineMap extentMap = op.getLoopExtentMap();
  if (!extentMap)
    return sizes;
  for (auto [dim, expr] :
       llvm::enumerate(op.getIndexingMaps().back().getResults()))
    if (auto loop = dyn_cast<AffineDimExpr>(expr);
        loop && extents[loop.getPosition()] == shapeOf(init)[dim])
      sizes[dim] = extentMap.getResult(loop.getPosition());
  return sizes;
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

/// Whether an operation writes all of its init, which does not vary.
static bool fillsInit(SpyreOpInterface op) {
  AffineMap extentMap = op.getLoopExtentMap();
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
        varies(extentMap, loop.getPosition()) ||
        isUsed.test(loop.getPosition()))
      return false;
    isUsed.set(loop.getPosition());
  }
  return true;
}

bool spyre_graph::isFilledFirst(Value buffer) {
  auto alloc = buffer.getDefiningOp<memref::AllocOp>();
  if (!alloc)
    return false;
  Operation *first = nullptr;
  for (OpOperand &use : buffer.getUses()) {
    auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
    if (op && !op.isDpsInit(&use))
      continue;
    // What is not an operation of the device may write, too.
    Operation *writer =
        alloc->getBlock()->findAncestorOpInBlock(*use.getOwner());
    if (!first || writer->isBeforeInBlock(first))
      first = writer;
  }
  auto op = dyn_cast_or_null<SpyreOpInterface>(first);
  return op && op.getSpyreInit() == buffer && fillsInit(op);
}

/// Of a buffer: what the operations that write it say together.
static SmallVector<AffineExpr> getBufferSizes(Value buffer) {
  SmallVector<AffineExpr> sizes = getTypeSizes(buffer);
  if (isFilledFirst(buffer))
    return sizes;
  for (OpOperand &use : buffer.getUses()) {
    auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
    if (!op || !op.isDpsInit(&use))
      continue;
    for (auto [size, written] : llvm::zip_equal(sizes, getWrittenSizes(op)))
      if (!isa<AffineConstantExpr>(written))
        size = written;
  }
  return sizes;
}

AffineMapAttr spyre_graph::getArgumentSizeMap(BlockArgument argument) {
  auto function =
      dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (!function)
    return AffineMapAttr();
  unsigned number = argument.getArgNumber();
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
      .Case([&](SpyreOpInterface device) {
        Value init = device.getSpyreInit();
        return init.getDefiningOp<tensor::EmptyOp>() ? getWrittenSizes(device)
                                                     : getSizes(init);
      })
      .Case([&](scf::ForOp loop) {
        return getSizes(loop.getTiedLoopInit(cast<OpResult>(value))->get());
      })
      .Case([](bufferization::MaterializeInDestinationOp update) {
        return getSizes(update.getDest());
      })
      .Case([](bufferization::ToBufferOp buffer) {
        return getSizes(buffer.getTensor());
      })
      .Case([](bufferization::ToTensorOp tensor) {
        return getSizes(tensor.getBuffer());
      })
      .Case([](tensor::InsertSliceOp insert) {
        return getSizes(insert.getDest());
      })
      .Case<tensor::ExtractSliceOp, memref::SubViewOp>(
          [&](auto slice) { return getSliceSizes(value, slice.getSource()); })
      .Case([&](memref::AllocOp) { return getBufferSizes(value); })
      .Default(
          [&](Operation *other) { return getCompositeSizes(other, value); });
}

//===----------------------------------------------------------------------===//
// Inference
//===----------------------------------------------------------------------===//

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

  /// Checks, with all extents known, that what is accessed in parts is there
  /// at all sizes.
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
