// SPDX-License-Identifier: Apache-2.0
//===- FlattenedRows.cpp - Operators on rows of batches ---------*- C++ -*-===//
//
// Where sizes vary, a view that takes two dimensions for one may be no map
// (Regrouping.cpp). An operator that treats what is along that dimension alike
// needs none: it is imported with a symbol of its own for the dimension, and
// each loop along it then becomes one for each of the two.
//
//===----------------------------------------------------------------------===//

#include "FlattenedRows.h"
#include "ViewMap.h"

#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using spyre::Argument;
using spyre::FlattenedRows;
using spyre::Flattening;
using spyre::SizeExpr;
using spyre::SizeList;
using spyre::SizeRange;
using spyre::UnsupportedOp;

[[noreturn]] static void refuse(Operation *op, const Twine &reason) {
  throw UnsupportedOp(
      (op->getName().stripDialect() + " " + reason + " flattened rows").str());
}

FlattenedRows::FlattenedRows(func::FuncOp function, ArrayRef<Flattening> rows,
                             const std::vector<SizeRange> &ranges)
    : function(function), rows(rows), ranges(ranges),
      builder(function.getContext()), numSymbols(ranges.size()),
      symbols(getSizeSymbols(function)), before(getLast()) {}

FlattenedRows::~FlattenedRows() {
  close();
  if (isKept)
    return;
  SmallVector<Operation *> ops;
  for (Operation &op : getOpsAfter(before))
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    op->erase();
}

Operation *FlattenedRows::getLast() {
  Block &block = function.front();
  return block.empty() ? nullptr : &block.back();
}

llvm::iterator_range<Block::iterator>
FlattenedRows::getOpsAfter(Operation *op) {
  Block &block = function.front();
  return llvm::make_range(op ? std::next(op->getIterator()) : block.begin(),
                          block.end());
}

void FlattenedRows::open() {
  MLIRContext *context = builder.getContext();
  attribute = function->getAttrOfType<ArrayAttr>(
      SpyreGraphDialect::getSymbolsAttrName());
  SmallVector<Attribute> all(symbols.begin(), symbols.end());
  for (auto [number, flattening] : llvm::enumerate(rows))
    all.push_back(SizeSymbolAttr::get(
        context, "rows" + std::to_string(number),
        std::max<int64_t>(flattening.size.lowerBound(ranges), 1),
        flattening.size.upperBound(ranges), 1));
  function->setAttr(SpyreGraphDialect::getSymbolsAttrName(),
                    ArrayAttr::get(context, all));
  imported = getLast();
}

void FlattenedRows::close() {
  if (attribute)
    function->setAttr(SpyreGraphDialect::getSymbolsAttrName(), attribute);
  attribute = nullptr;
}

SizeExpr FlattenedRows::substitute(const SizeExpr &size) const {
  for (auto [number, flattening] : llvm::enumerate(rows))
    if (size == flattening.size)
      return SizeExpr::symbol(numSymbols + number);
  return size;
}

Argument FlattenedRows::substitute(const Argument &argument) const {
  if (const auto *size = std::get_if<SizeExpr>(&argument.value))
    return substitute(*size);
  if (const auto *list = std::get_if<Argument::List>(&argument.value)) {
    Argument::List parts;
    for (const Argument &part : *list)
      parts.push_back(substitute(part));
    return parts;
  }
  return argument;
}

SmallVector<AffineExpr> FlattenedRows::getExprs(const SizeList &sizes) const {
  return llvm::map_to_vector(sizes, [&](const SizeExpr &size) {
    return getSizeExpr(substitute(size), builder.getContext());
  });
}

std::pair<SizeList, SizeList>
FlattenedRows::part(const SizeList &sizes, const SizeList &strides) const {
  std::pair<SizeList, SizeList> parts;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
    const Flattening *found =
        llvm::find_if(rows, [&, &own = size](const Flattening &flattening) {
          return flattening.size == own;
        });
    SizeList own = found == rows.end() ? SizeList{size} : found->parts;
    for (const SizeExpr &step : getRowMajorStrides(own))
      parts.second.push_back(stride * step);
    parts.first.insert(parts.first.end(), own.begin(), own.end());
  }
  return parts;
}

Value FlattenedRows::addOperand(Location loc, Value value,
                                const SizeList &sizes,
                                RankedTensorType flattened) {
  SmallVector<AffineExpr> exprs = getExprs(sizes), coordinates;
  AffineExpr zero = builder.getAffineConstantExpr(0);
  for (auto [dim, size] : llvm::enumerate(exprs)) {
    if (std::optional<unsigned> number = getRows(size))
      coordinates.append(rows[*number].parts.size(), zero);
    else
      coordinates.push_back(builder.getAffineDimExpr(dim));
  }
  builder.setInsertionPointToEnd(&function.front());
  auto view =
      ViewOp::create(builder, loc, flattened, value,
                     AffineMapAttr::get(AffineMap::get(
                         exprs.size(), 0, coordinates, builder.getContext())));
  view.setSizeMapAttr(AffineMapAttr::get(AffineMap::get(
      0, numSymbols + rows.size(), exprs, builder.getContext())));
  parted[view.getResult()] = value;
  operands.push_back(view);
  imported = view;
  return view.getResult();
}

//===----------------------------------------------------------------------===//
// Loops along rows become several
//===----------------------------------------------------------------------===//

std::optional<unsigned> FlattenedRows::getRows(AffineExpr size) const {
  auto symbol = dyn_cast<AffineSymbolExpr>(size);
  if (!symbol || symbol.getPosition() < numSymbols)
    return std::nullopt;
  return symbol.getPosition() - numSymbols;
}

AffineExpr FlattenedRows::getSize(AffineExpr expr) const {
  SmallVector<AffineExpr> replacements;
  for (unsigned number = 0; number < numSymbols; ++number)
    replacements.push_back(builder.getAffineSymbolExpr(number));
  for (auto [number, flattening] : llvm::enumerate(rows))
    replacements.push_back(
        expr.isFunctionOfSymbol(numSymbols + number)
            ? getSizeExpr(flattening.size, builder.getContext())
            : builder.getAffineConstantExpr(0));
  return expr.replaceSymbols(replacements);
}

SmallVector<AffineExpr>
FlattenedRows::partSizes(ArrayRef<AffineExpr> sizes) const {
  SmallVector<AffineExpr> parts;
  for (AffineExpr size : sizes) {
    std::optional<unsigned> number = getRows(size);
    if (!number) {
      parts.push_back(getSize(size));
      continue;
    }
    for (const SizeExpr &part : rows[*number].parts)
      parts.push_back(getSizeExpr(part, builder.getContext()));
  }
  return parts;
}

SmallVector<int64_t> FlattenedRows::atMost(ArrayRef<AffineExpr> sizes) const {
  return llvm::map_to_vector(sizes, [&](AffineExpr size) {
    return getSizeRange(size, symbols).second;
  });
}

/// The number of the first of those that each dimension becomes.
SmallVector<unsigned>
FlattenedRows::renumber(ArrayRef<AffineExpr> sizes) const {
  SmallVector<unsigned> numbers;
  unsigned next = 0;
  for (AffineExpr size : sizes) {
    numbers.push_back(next);
    std::optional<unsigned> number = getRows(size);
    next += number ? rows[*number].parts.size() : 1;
  }
  return numbers;
}

AffineMap FlattenedRows::partMap(Operation *op, AffineMap map,
                                 ArrayRef<AffineExpr> loops,
                                 ArrayRef<AffineExpr> sizes) const {
  SmallVector<unsigned> numbers = renumber(loops);
  SmallVector<AffineExpr> dims =
      llvm::map_to_vector(numbers, [&](unsigned number) {
        return builder.getAffineDimExpr(number);
      });
  SmallVector<AffineExpr> results;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), sizes)) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    std::optional<unsigned> number = getRows(size);
    if (number) {
      if (!loop || getRows(loops[loop.getPosition()]) != number)
        refuse(op, "does not walk all");
      for (unsigned part = 0; part < rows[*number].parts.size(); ++part)
        results.push_back(
            builder.getAffineDimExpr(numbers[loop.getPosition()] + part));
      continue;
    }
    for (auto [position, own] : llvm::enumerate(loops))
      if (getRows(own) && expr.isFunctionOfDim(position))
        refuse(op, "walks something else with");
    results.push_back(expr.replaceDims(dims));
  }
  return AffineMap::get(partSizes(loops).size(), 0, results,
                        builder.getContext());
}

Value FlattenedRows::getParted(Value value) const {
  Value found = parted.lookup(value);
  return found ? found : value;
}

void FlattenedRows::partView(ViewOp view) {
  SmallVector<AffineExpr> sizes = getSizes(view.getResult()),
                          sourceSizes = getSizes(view.getSource());
  AffineMap map = partMap(view, view.getMap(), sizes, sourceSizes);
  SmallVector<AffineExpr> parts = partSizes(sizes);
  auto type = cast<RankedTensorType>(view.getResult().getType());
  auto other = ViewOp::create(
      builder, view.getLoc(),
      RankedTensorType::get(atMost(parts), type.getElementType()),
      getParted(view.getSource()), AffineMapAttr::get(map));
  if (AffineMap sizeMap = makeSizeMap(parts, numSymbols, builder.getContext()))
    other.setSizeMapAttr(AffineMapAttr::get(sizeMap));
  parted[view.getResult()] = other.getResult();
}

/// Refuses where iterations along rows depend on each other, or on which row it
/// is.
void FlattenedRows::checkLoops(SpyreOpInterface op,
                               ArrayRef<AffineExpr> loops) const {
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  for (auto [loop, size] : llvm::enumerate(loops)) {
    if (!getRows(size))
      continue;
    if (op.usesLoopIndex(loop))
      refuse(op, "counts");
    // Iterations of a scatter come one after the other, as before.
    if (kinds[loop] != utils::IteratorType::reduction || op.getIndirectAccess())
      continue;
    if (!isCombinedAcrossCores(op.getCombiner()))
      refuse(op, "ranks or scans");
  }
}

void FlattenedRows::partDevice(SpyreOpInterface op) {
  SmallVector<AffineExpr> loops = getSizeExprs(
      op.getLoopExtentMap(), op.getLoopExtents(), builder.getContext());
  checkLoops(op, loops);
  Value init = op.getSpyreInit();
  bool isFresh = init.getDefiningOp<tensor::EmptyOp>();
  SmallVector<AffineExpr> initSizes =
      getSizes(isFresh ? op->getResult(0) : init);
  SmallVector<AffineMap> maps;
  SmallVector<Value> operands;
  SmallVector<SmallVector<AffineExpr>> operandSizes;
  for (auto [operand, map] :
       llvm::zip_equal(op->getOperands(), op.getIndexingMaps())) {
    operandSizes.push_back(operand == init ? initSizes : getSizes(operand));
    maps.push_back(partMap(op, map, loops, operandSizes.back()));
    operands.push_back(getParted(operand));
  }
  SmallVector<AffineExpr> initParts = partSizes(initSizes),
                          loopParts = partSizes(loops);
  if (isFresh)
    operands.back() = tensor::EmptyOp::create(
        builder, op.getLoc(), atMost(initParts),
        cast<RankedTensorType>(init.getType()).getElementType());
  Operation *other = builder.clone(*op);
  other->setOperands(operands);
  other->getResult(0).setType(operands.back().getType());
  auto device = cast<SpyreOpInterface>(other);
  device.setLoopStructure(maps, atMost(loopParts));
  device.setLoopExtentMap(
      makeSizeMap(loopParts, numSymbols, builder.getContext()));
  // SG-OP-C2: `dim` and `dims` name loops, `axis` a dimension of what is
  // accessed through an index, or from an offset on.
  SmallVector<unsigned> numbers = renumber(loops);
  if (auto dim = op->getAttrOfType<IntegerAttr>("dim"))
    other->setAttr("dim", builder.getI64IntegerAttr(numbers[dim.getInt()]));
  if (auto dims = op->getAttrOfType<DenseI64ArrayAttr>("dims")) {
    SmallVector<int64_t> parts;
    for (int64_t dim : dims.asArrayRef()) {
      std::optional<unsigned> number = getRows(loops[dim]);
      for (unsigned part = 0; part < (number ? rows[*number].parts.size() : 1);
           ++part)
        parts.push_back(numbers[dim] + part);
    }
    other->setAttr("dims", builder.getDenseI64ArrayAttr(parts));
  }
  if (auto axis = op->getAttrOfType<IntegerAttr>("axis")) {
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    ArrayRef<AffineExpr> accessed =
        operandSizes[indirect ? indirect->operand : operands.size() - 1];
    other->setAttr(
        "axis", builder.getI64IntegerAttr(renumber(accessed)[axis.getInt()]));
  }
  dropRows(other);
  parted[op->getResult(0)] = other->getResult(0);
}

void FlattenedRows::partComposite(Operation *op) {
  SmallVector<AffineExpr> sizes = getSizes(op->getOperand(0));
  unsigned first = 0, count = 0;
  if (auto softmax = dyn_cast<SoftmaxOp>(op)) {
    first = softmax.getDim();
    count = 1;
  } else if (isa<LayerNormOp, RmsNormOp>(op)) {
    count = op->getAttrOfType<IntegerAttr>("num_dims").getInt();
    first = sizes.size() - count;
  } else {
    refuse(op, "may mix");
  }
  for (AffineExpr size : ArrayRef(sizes).slice(first, count))
    if (getRows(size))
      refuse(op, "mixes");
  Operation *other = builder.clone(*op);
  for (OpOperand &operand : other->getOpOperands())
    operand.set(getParted(operand.get()));
  for (auto [result, own] :
       llvm::zip_equal(op->getResults(), other->getResults())) {
    own.setType(RankedTensorType::get(
        atMost(partSizes(getSizes(result))),
        cast<RankedTensorType>(result.getType()).getElementType()));
    parted[result] = own;
  }
  if (auto softmax = dyn_cast<SoftmaxOp>(other))
    softmax.setDim(renumber(sizes)[first]);
}

void FlattenedRows::dropRows(Operation *op) {
  for (NamedAttribute named : llvm::to_vector(op->getAttrs())) {
    auto map = dyn_cast<AffineMapAttr>(named.getValue());
    if (!map || map.getValue().getNumSymbols() != numSymbols + rows.size())
      continue;
    SmallVector<AffineExpr> sizes =
        llvm::map_to_vector(map.getValue().getResults(),
                            [&](AffineExpr size) { return getSize(size); });
    op->setAttr(named.getName(),
                AffineMapAttr::get(AffineMap::get(0, numSymbols, sizes,
                                                  builder.getContext())));
  }
}

/// Whether an operation has rows in what it takes, walks or gives.
bool FlattenedRows::hasRows(Operation *op) const {
  auto isRows = [&](AffineExpr size) { return getRows(size).has_value(); };
  if (llvm::any_of(op->getOperands(),
                   [&](Value value) { return parted.contains(value); }))
    return true;
  if (auto device = dyn_cast<SpyreOpInterface>(op))
    return device.getLoopExtentMap() &&
           llvm::any_of(device.getLoopExtentMap().getResults(), isRows);
  return llvm::any_of(op->getResults(), [&](Value result) {
    return isa<RankedTensorType>(result.getType()) &&
           llvm::any_of(getSizes(result), isRows);
  });
}

SmallVector<Value> FlattenedRows::finish(ArrayRef<Value> values) {
  SmallVector<Operation *> ops;
  for (Operation &op : getOpsAfter(imported))
    ops.push_back(&op);
  SmallVector<Operation *> replaced;
  for (Operation *op : ops) {
    if (!hasRows(op)) {
      dropRows(op);
      continue;
    }
    replaced.push_back(op);
    builder.setInsertionPoint(op);
    if (auto view = dyn_cast<ViewOp>(op))
      partView(view);
    else if (auto device = dyn_cast<SpyreOpInterface>(op))
      partDevice(device);
    else
      partComposite(op);
  }
  SmallVector<SmallVector<AffineExpr>> sizes;
  for (Value value : values)
    sizes.push_back(value ? partSizes(getSizes(value))
                          : SmallVector<AffineExpr>());
  SmallVector<Value> found = llvm::map_to_vector(
      values, [&](Value value) { return value ? getParted(value) : value; });
  close();
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
  for (Operation *operand : operands)
    operand->erase();
  for (Operation &op : llvm::make_early_inc_range(getOpsAfter(before)))
    if (isa<tensor::EmptyOp>(op) && op.use_empty())
      op.erase();
  verifyAll(found, sizes);
  isKept = true;
  return found;
}

void FlattenedRows::verifyAll(ArrayRef<Value> values,
                              ArrayRef<SmallVector<AffineExpr>> sizes) {
  std::string text;
  ScopedDiagnosticHandler handler(
      builder.getContext(), [&](Diagnostic &diagnostic) {
        text += (text.empty() ? "" : "; ") + diagnostic.str();
        return success();
      });
  for (Operation &op : getOpsAfter(before))
    if (failed(verify(&op, /*verifyRecursively=*/false)))
      throw UnsupportedOp(text);
  for (auto [value, own] : llvm::zip_equal(values, sizes))
    if (value && getSizes(value) != own)
      throw UnsupportedOp(
          "the sizes of flattened rows do not follow from those "
          "of operands");
}
