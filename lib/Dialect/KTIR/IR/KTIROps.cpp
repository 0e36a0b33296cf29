// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/Threading.h"

using namespace mlir;
using namespace mlir::ktdp;

// custom<TileType>, custom<RuntimeArgType>: read with or without the mnemonic
// (the front end prints the type without), printed in full.
template <typename TypeT>
static ParseResult parseFullOrElided(OpAsmParser &parser, Type &type) {
  TypeT parsed;
  if (parser.parseCustomTypeWithFallback(parsed))
    return failure();
  type = parsed;
  return success();
}
static ParseResult parseTileType(OpAsmParser &parser, Type &type) {
  return parseFullOrElided<AccessTileType>(parser, type);
}
static void printTileType(OpAsmPrinter &printer, Operation *, Type type) {
  printer << type;
}

// MLIR finds the end of `!dialect.type<...>` by counting brackets before the
// type's own parser runs, and takes the `>` of `groups = affine_set<(g) : (g >=
// 0)>` for one. The published spelling has just that, so where that count fails
// the body is read without it: by then the parser stands at its `<`. The elided
// spelling and a set behind an alias do not have the problem.
static ParseResult parseTileFuture(OpAsmParser &parser, Type &type) {
  static constexpr llvm::StringLiteral kName = "!ktdp.tile_future";
  const char *start = parser.getCurrentLocation().getPointer();
  if (!StringRef(start).starts_with(kName))
    return parseFullOrElided<TileFutureType>(parser, type);

  SmallVector<Diagnostic> diagnostics;
  ParseResult parsed = failure();
  {
    uint64_t thread = llvm::get_threadid();
    ScopedDiagnosticHandler handler(
        parser.getContext(), [&](Diagnostic &diagnostic) -> LogicalResult {
          if (llvm::get_threadid() != thread)
            return failure();
          diagnostics.push_back(std::move(diagnostic));
          return success();
        });
    parsed = parser.parseType(type);
  }
  if (failed(parsed) &&
      parser.getCurrentLocation().getPointer() == start + kName.size()) {
    type = TileFutureType::parse(parser);
    return failure(!type);
  }
  for (Diagnostic &diagnostic : diagnostics)
    parser.getContext()->getDiagEngine().emit(std::move(diagnostic));
  if (failed(parsed))
    return failure();
  if (!isa<TileFutureType>(type))
    return parser.emitError(llvm::SMLoc::getFromPointer(start),
                            "expected a tile future, but got ")
           << type;
  return success();
}
// Without the mnemonic, as the front end prints it.
static void printTileFuture(OpAsmPrinter &printer, Operation *, Type type) {
  printer.printStrippedAttrOrType(cast<TileFutureType>(type));
}
static ParseResult parseRuntimeArgType(OpAsmParser &parser, Type &type) {
  return parseFullOrElided<RuntimeArgType>(parser, type);
}
static void printRuntimeArgType(OpAsmPrinter &printer, Operation *, Type type) {
  printer << type;
}

// custom<ProducedFuture>: (`:` T)? `->` future. The older spelling names the
// future's tile type before the arrow.
static ParseResult parseProducedFuture(OpAsmParser &parser, Type &future) {
  Type partial;
  llvm::SMLoc loc;
  if (succeeded(parser.parseOptionalColon())) {
    loc = parser.getCurrentLocation();
    if (parser.parseType(partial))
      return failure();
  }
  if (parser.parseArrow() || parseTileFuture(parser, future))
    return failure();
  // KTDP-INTER_TILE_PRODUCE-C4
  Type tile = cast<TileFutureType>(future).getTileType();
  if (partial && partial != tile)
    return parser.emitError(loc, "partial type ")
           << partial << " differs from the future's tile type " << tile;
  return success();
}
static void printProducedFuture(OpAsmPrinter &printer, Operation *op,
                                Type future) {
  printer << "-> ";
  printTileFuture(printer, op, future);
}

// custom<ProduceAttrDict>: the older spelling says `attributes` before it.
static ParseResult parseProduceAttrDict(OpAsmParser &parser,
                                        NamedAttrList &attributes) {
  if (parser.parseOptionalAttrDictWithKeyword(attributes))
    return failure();
  return attributes.empty() ? parser.parseOptionalAttrDict(attributes)
                            : success();
}
static void printProduceAttrDict(OpAsmPrinter &printer, InterTileProduceOp op,
                                 DictionaryAttr attributes) {
  printer.printOptionalAttrDict(attributes.getValue(),
                                op.getProducerTilesPerGroupAttrName().strref());
}

// custom<DependencyThenComma>: `,` (`producer_dependency_per_consumer` `=` set
// `,`)?. An optional group cannot tell its comma from the next entry's.
static ParseResult parseDependencyThenComma(OpAsmParser &parser,
                                            IntegerSetAttr &dependency) {
  if (parser.parseComma())
    return failure();
  if (failed(parser.parseOptionalKeyword("producer_dependency_per_consumer")))
    return success();
  return failure(parser.parseEqual() || parser.parseAttribute(dependency) ||
                 parser.parseComma());
}
static void printDependencyThenComma(OpAsmPrinter &printer, Operation *,
                                     IntegerSetAttr dependency) {
  printer << ',';
  if (dependency)
    printer << " producer_dependency_per_consumer = " << dependency << ',';
}

#define GET_OP_CLASSES
#include "Spyre/Dialect/KTIR/IR/KTIROps.cpp.inc"

void KTDPDialect::registerOps() {
  addOperations<
#define GET_OP_LIST
#include "Spyre/Dialect/KTIR/IR/KTIROps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// GetComputeTileIdOp
//===----------------------------------------------------------------------===//

void GetComputeTileIdOp::build(OpBuilder &builder, OperationState &state,
                               unsigned numDims) {
  state.addTypes(SmallVector<Type>(numDims, builder.getIndexType()));
}

LogicalResult GetComputeTileIdOp::verify() {
  // KTDP-GET_COMPUTE_TILE_ID-C1
  // KTDP-GET_COMPUTE_TILE_ID-C2: by the result constraint.
  if (getNumResults() == 0)
    return emitOpError(
        "must return at least one index (num tile-grid dims >= 1)");
  return success();
}

//===----------------------------------------------------------------------===//
// RuntimeArgExtractOp
//===----------------------------------------------------------------------===//

LogicalResult RuntimeArgExtractOp::verify() {
  auto type = cast<RuntimeArgType>(getSource().getType());
  // KTDP-RUNTIME_ARG_EXTRACT-C1
  if (getKind() == RuntimeArgExtractKind::value) {
    if (getType() != type.getValueType())
      return emitOpError("extracting value gives ")
             << type.getValueType() << ", but the result is " << getType();
    return success();
  }
  // KTDP-RUNTIME_ARG_EXTRACT-C2
  bool present = getKind() == RuntimeArgExtractKind::granularity
                     ? type.getGranularity().has_value()
                     : type.getUpperbound().has_value();
  StringRef kind = stringifyRuntimeArgExtractKind(getKind());
  if (!present)
    return emitOpError("cannot extract ")
           << kind << " from runtime_arg that doesn't have one";
  // KTDP-RUNTIME_ARG_EXTRACT-C3
  if (!getType().isIndex())
    return emitOpError("extracting ")
           << kind << " gives 'index', but the result is " << getType();
  return success();
}

//===----------------------------------------------------------------------===//
// ConstructMemoryViewOp
//===----------------------------------------------------------------------===//

void ConstructMemoryViewOp::build(OpBuilder &builder, OperationState &state,
                                  Value offset, ArrayRef<int64_t> sizes,
                                  ArrayRef<int64_t> strides, Type elementType,
                                  KtdpMemorySpaceAttr memorySpace) {
  build(builder, state, MemRefType::get(sizes, elementType), offset,
        /*sizes=*/ValueRange(), /*strides=*/ValueRange(), sizes, strides,
        memorySpace, getBoxSet(builder.getContext(), sizes));
}

void ConstructMemoryViewOp::build(OpBuilder &builder, OperationState &state,
                                  Value offset, ArrayRef<int64_t> sizes,
                                  Type elementType,
                                  KtdpMemorySpaceAttr memorySpace) {
  SmallVector<int64_t> strides(sizes.size(), 1);
  for (size_t dim = sizes.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * sizes[dim];
  build(builder, state, offset, sizes, strides, elementType, memorySpace);
}

void ConstructMemoryViewOp::build(OpBuilder &builder, OperationState &state,
                                  Value offset, ArrayRef<OpFoldResult> sizes,
                                  ArrayRef<OpFoldResult> strides,
                                  Type elementType,
                                  KtdpMemorySpaceAttr memorySpace) {
  SmallVector<int64_t> staticSizes, staticStrides;
  SmallVector<Value> dynamicSizes, dynamicStrides;
  dispatchIndexOpFoldResults(sizes, dynamicSizes, staticSizes);
  dispatchIndexOpFoldResults(strides, dynamicStrides, staticStrides);
  build(builder, state, MemRefType::get(staticSizes, elementType), offset,
        dynamicSizes, dynamicStrides, staticSizes, staticStrides, memorySpace,
        getBoxSet(builder.getContext(), staticSizes));
}

SmallVector<OpFoldResult> ConstructMemoryViewOp::getMixedSizes() {
  Builder builder(getContext());
  return mlir::getMixedValues(getStaticSizes(), getSizes(), builder);
}

SmallVector<OpFoldResult> ConstructMemoryViewOp::getMixedStrides() {
  Builder builder(getContext());
  return mlir::getMixedValues(getStaticStrides(), getStrides(), builder);
}

LogicalResult ConstructMemoryViewOp::verify() {
  ArrayRef<int64_t> sizes = getStaticSizes();
  ArrayRef<int64_t> strides = getStaticStrides();
  // KTDP-CONSTRUCT_MEMORY_VIEW-C1
  if (sizes.size() != strides.size())
    return emitOpError("expected sizes and strides of equal length, but got ")
           << sizes.size() << " and " << strides.size();
  // KTDP-CONSTRUCT_MEMORY_VIEW-C2
  size_t dynamicSizes = llvm::count_if(sizes, ShapedType::isDynamic);
  size_t dynamicStrides = llvm::count_if(strides, ShapedType::isDynamic);
  if (dynamicSizes != getSizes().size())
    return emitOpError("expected ")
           << dynamicSizes << " dynamic sizes, but got " << getSizes().size();
  if (dynamicStrides != getStrides().size())
    return emitOpError("expected ")
           << dynamicStrides << " dynamic strides, but got "
           << getStrides().size();
  // KTDP-CONSTRUCT_MEMORY_VIEW-C3
  auto type = cast<MemRefType>(getType());
  if (static_cast<size_t>(type.getRank()) != sizes.size())
    return emitOpError("result memref rank does not match sizes/strides "
                       "length: ")
           << type << " has rank " << type.getRank() << ", expected "
           << sizes.size();
  return success();
}

//===----------------------------------------------------------------------===//
// ConstructDistributedMemoryViewOp
//===----------------------------------------------------------------------===//

LogicalResult ConstructDistributedMemoryViewOp::verify() {
  auto result = cast<MemRefType>(getType());
  for (auto [position, operandType] :
       llvm::enumerate(getPartitions().getTypes())) {
    auto type = cast<MemRefType>(operandType);
    // KTDP-CONSTRUCT_DISTRIBUTED_MEMORY_VIEW-C1
    if (type.getElementType() != result.getElementType())
      return emitOpError("partition ")
             << position << " has element type " << type.getElementType()
             << ", expected " << result.getElementType();
    // KTDP-CONSTRUCT_DISTRIBUTED_MEMORY_VIEW-C2
    if (type.getRank() != result.getRank())
      return emitOpError("partition ")
             << position << " has rank " << type.getRank() << ", expected "
             << result.getRank();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// LoadOp, StoreOp
//===----------------------------------------------------------------------===//

void LoadOp::build(OpBuilder &builder, OperationState &state, Value tile,
                   Type elementType) {
  (void)builder;
  state.addOperands(tile);
  state.addTypes(RankedTensorType::get(
      cast<AccessTileType>(tile.getType()).getShape(), elementType));
}

void LoadOp::build(OpBuilder &builder, OperationState &state, Value tile) {
  Type elementType = getBaseElementType(tile);
  assert(elementType && "tile must come from construct_[indirect_]access_tile");
  build(builder, state, tile, elementType);
}

LogicalResult LoadOp::verify() {
  // KTDP-LOAD-C1
  auto tile = cast<AccessTileType>(getTile().getType());
  if (tile.getShape() != getType().getShape())
    return emitOpError("access tile shape must match result tensor shape, but "
                       "got ")
           << tile << " and " << getType();
  return success();
}

LogicalResult StoreOp::verify() {
  // KTDP-STORE-C1
  auto tile = cast<AccessTileType>(getTile().getType());
  if (tile.getShape() != getData().getType().getShape())
    return emitOpError("data tile shape must match access tile shape, but got ")
           << getData().getType() << " and " << tile;
  return success();
}
