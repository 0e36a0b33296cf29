// SPDX-License-Identifier: Apache-2.0
//
// construct_access_tile and construct_indirect_access_tile: assembly,
// verifiers, builders.

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "SubscriptParser.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::ktdp;

using UnresolvedOperand = OpAsmParser::UnresolvedOperand;

//===----------------------------------------------------------------------===//
// Shared by both operations
//===----------------------------------------------------------------------===//

/// Gives each distinct operand its position in `operands`.
static unsigned getOperandPosition(SmallVectorImpl<UnresolvedOperand> &operands,
                                   const UnresolvedOperand &operand) {
  auto it = llvm::find_if(operands, [&](const UnresolvedOperand &other) {
    return other.name == operand.name && other.number == operand.number;
  });
  if (it != operands.end())
    return it - operands.begin();
  operands.push_back(operand);
  return operands.size() - 1;
}

/// (`symbols` `(` operands `)`)?
static ParseResult
parseSymbolOperands(OpAsmParser &parser,
                    SmallVectorImpl<UnresolvedOperand> &operands) {
  if (failed(parser.parseOptionalKeyword("symbols")))
    return success();
  return parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren);
}

/// The attribute dictionary, without the attributes that assembly derives, with
/// the two that it must have. Attributes of the wrong kind are errors.
template <typename OpTy>
static ParseResult
parseTileAttributes(OpAsmParser &parser, OperationState &result,
                    ArrayRef<StringRef> derived, StringRef setName,
                    StringRef setTitle, StringRef orderName,
                    StringRef orderTitle) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  NamedAttrList attributes;
  if (parser.parseOptionalAttrDict(attributes))
    return failure();
  for (StringRef name : derived)
    if (attributes.get(name))
      return parser.emitError(loc, "'")
             << name << "' is derived from the assembly and must not be given";
  if (!attributes.get(setName))
    return parser.emitError(loc) << setTitle << " is missing in the operation";
  if (!attributes.get(orderName))
    return parser.emitError(loc)
           << orderTitle << " is missing in the operation";
  if (failed(OpTy::verifyInherentAttrs(result.name, attributes, [&]() {
        return parser.emitError(loc)
               << "'" << result.name.getStringRef() << "' op ";
      })))
    return failure();
  result.attributes.append(attributes);
  return success();
}

/// `->` access-tile-type, full or elided.
static ParseResult parseArrowTileType(OpAsmParser &parser,
                                      OperationState &result) {
  AccessTileType type;
  if (parser.parseArrow() || parser.parseCustomTypeWithFallback(type))
    return failure();
  result.addTypes(type);
  return success();
}

static void printSymbolOperands(OpAsmPrinter &printer, ValueRange operands) {
  if (!operands.empty())
    printer << " symbols(" << operands << ')';
}

/// Whether `order` maps `numDims` dimensions, without symbols, to as many.
static bool isOrderOf(AffineMap order, unsigned numDims) {
  return order.getNumInputs() == numDims && order.getNumSymbols() == 0 &&
         order.getNumResults() == numDims;
}

/// Static extents (kDynamic for values) and the values.
static void splitExtents(ArrayRef<OpFoldResult> extents,
                         SmallVectorImpl<int64_t> &staticExtents,
                         SmallVectorImpl<Value> &dynamicExtents) {
  dispatchIndexOpFoldResults(extents, dynamicExtents, staticExtents);
}

//===----------------------------------------------------------------------===//
// ConstructAccessTileOp
//===----------------------------------------------------------------------===//

void ConstructAccessTileOp::build(OpBuilder &builder, OperationState &state,
                                  Value base, ValueRange indices,
                                  ArrayRef<OpFoldResult> extents) {
  build(builder, state, base, builder.getMultiDimIdentityMap(indices.size()),
        indices, extents);
}

void ConstructAccessTileOp::build(OpBuilder &builder, OperationState &state,
                                  Value base, AffineMap baseMap,
                                  ValueRange indices,
                                  ArrayRef<OpFoldResult> extents) {
  SmallVector<int64_t> staticExtents;
  SmallVector<Value> dynamicExtents;
  splitExtents(extents, staticExtents, dynamicExtents);
  // The assembly format needs each operand to be used and to occur once.
  SmallVector<Value> operands(indices);
  affine::canonicalizeMapAndOperands(&baseMap, &operands);
  MLIRContext *context = builder.getContext();
  build(builder, state, AccessTileType::get(context, staticExtents), base,
        operands, dynamicExtents, baseMap, getBoxSet(context, staticExtents),
        builder.getMultiDimIdentityMap(extents.size()));
}

// %base `[` affine, ... `]` (`symbols` `(` ... `)`)? attr-dict `:` type `->`
// tile
ParseResult ConstructAccessTileOp::parse(OpAsmParser &parser,
                                         OperationState &result) {
  UnresolvedOperand base;
  SmallVector<UnresolvedOperand> dims, mapSymbols, symbolOperands;
  SmallVector<AffineExpr> subscripts;
  MLIRContext *context = parser.getContext();
  auto getDim = [&](const UnresolvedOperand &operand) {
    return getAffineDimExpr(getOperandPosition(dims, operand), context);
  };
  auto getSymbol = [&](const UnresolvedOperand &operand) {
    return getAffineSymbolExpr(getOperandPosition(mapSymbols, operand),
                               context);
  };
  if (parser.parseOperand(base) ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square,
                                     [&]() {
                                       return parseSubscript(
                                           parser, getDim, getSymbol,
                                           subscripts.emplace_back());
                                     }) ||
      parseSymbolOperands(parser, symbolOperands) ||
      parseTileAttributes<ConstructAccessTileOp>(
          parser, result, {"base_map", "operandSegmentSizes"},
          "access_tile_set", "Access tile set", "access_tile_order",
          "Access tile order"))
    return failure();

  Type baseType;
  if (parser.parseColonType(baseType) || parseArrowTileType(parser, result))
    return failure();

  result.addAttribute(
      getBaseMapAttrName(result.name),
      AffineMapAttr::get(
          AffineMap::get(dims.size(), mapSymbols.size(), subscripts, context)));
  Type index = parser.getBuilder().getIndexType();
  auto &properties = result.getOrAddProperties<Properties>();
  properties.operandSegmentSizes = {
      1, static_cast<int32_t>(dims.size() + mapSymbols.size()),
      static_cast<int32_t>(symbolOperands.size())};
  return failure(
      parser.resolveOperand(base, baseType, result.operands) ||
      parser.resolveOperands(dims, index, result.operands) ||
      parser.resolveOperands(mapSymbols, index, result.operands) ||
      parser.resolveOperands(symbolOperands, index, result.operands));
}

void ConstructAccessTileOp::print(OpAsmPrinter &printer) {
  AffineMap map = getBaseMap();
  ValueRange dims = getIndices().take_front(map.getNumDims());
  ValueRange symbols = getIndices().drop_front(map.getNumDims());
  printer << ' ' << getBase() << '[';
  llvm::interleaveComma(map.getResults(), printer, [&](AffineExpr expr) {
    printer.printAffineExprOfSSAIds(expr, dims, symbols);
  });
  printer << ']';
  printSymbolOperands(printer, getSymbolOperands());
  printer.printOptionalAttrDict(
      (*this)->getAttrs(), {getBaseMapAttrName(), getOperandSegmentSizeAttr()});
  printer << " : " << getBase().getType() << " -> " << getType();
}

LogicalResult ConstructAccessTileOp::verify() {
  IntegerSet set = getAccessTileSet();
  AffineMap map = getBaseMap();
  // KTDP-CONSTRUCT_ACCESS_TILE-C1
  if (set.getNumDims() != map.getNumResults())
    return emitOpError("Access tile set and Base input dimensions should "
                       "match, but got ")
           << set.getNumDims() << " and " << map.getNumResults();
  // KTDP-CONSTRUCT_ACCESS_TILE-C2
  if (getIndices().size() != map.getNumInputs())
    return emitOpError("expected as many indices as base_map has inputs (")
           << map.getNumInputs() << "), but got " << getIndices().size();
  // KTDP-CONSTRUCT_ACCESS_TILE-C3
  if (set.getNumSymbols() != getSymbolOperands().size())
    return emitOpError("expected as many symbol operands as access_tile_set "
                       "has symbols (")
           << set.getNumSymbols() << "), but got "
           << getSymbolOperands().size();
  // KTDP-CONSTRUCT_ACCESS_TILE-C4
  AffineMap order = getAccessTileOrder();
  if (!isOrderOf(order, set.getNumDims()))
    return emitOpError("access_tile_order must map the set's ")
           << set.getNumDims()
           << " dimensions, without symbols, to as many results, but got "
           << AffineMapAttr::get(order);
  // KTDP-CONSTRUCT_ACCESS_TILE-C5
  if (getType().getRank() != set.getNumDims())
    return emitOpError("expected a tile of rank ")
           << set.getNumDims() << ", the set's number of dimensions, but got "
           << getType();
  return success();
}

//===----------------------------------------------------------------------===//
// ConstructIndirectAccessTileOp
//===----------------------------------------------------------------------===//

/// Fills the op's region: one block with an index argument per variable.
static void makeVariableRegion(Region &region, unsigned numVariables,
                               Location loc) {
  Block &block = region.emplaceBlock();
  OpBuilder builder(loc.getContext());
  for (unsigned i = 0; i < numVariables; ++i)
    block.addArgument(builder.getIndexType(), loc);
  builder.setInsertionPointToEnd(&block);
  RegionTerminatorOp::create(builder, loc);
}

void ConstructIndirectAccessTileOp::build(OpBuilder &builder,
                                          OperationState &state, Value base,
                                          ArrayRef<Subscript> subscripts,
                                          ValueRange captured,
                                          ArrayRef<OpFoldResult> extents) {
  MLIRContext *context = builder.getContext();
  SmallVector<int64_t> staticExtents;
  SmallVector<Value> dynamicExtents;
  splitExtents(extents, staticExtents, dynamicExtents);

  // Which captured values stay, in the order in which assembly meets them:
  // then printing and reading back gives the same op.
  SmallVector<AffineExpr> constants(captured.size());
  for (auto [position, value] : llvm::enumerate(captured))
    if (std::optional<int64_t> constant =
            getConstantIntValue(OpFoldResult(value)))
      constants[position] = getAffineConstantExpr(*constant, context);
  SmallVector<Value> kept;
  SmallVector<AffineExpr> symbolToDim(captured.size());
  auto keep = [&](unsigned position) {
    if (symbolToDim[position])
      return;
    if (constants[position]) {
      symbolToDim[position] = constants[position];
      return;
    }
    auto it = llvm::find(kept, captured[position]);
    symbolToDim[position] = getAffineDimExpr(it - kept.begin(), context);
    if (it == kept.end())
      kept.push_back(captured[position]);
  };
  for (const Subscript &subscript : subscripts)
    for (AffineExpr expr : subscript.exprs)
      expr.walk([&](AffineExpr part) {
        if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
          keep(symbol.getPosition());
      });
  for (AffineExpr &expr : symbolToDim)
    if (!expr)
      expr = getAffineConstantExpr(0, context);
  SmallVector<AffineExpr> variables;
  for (unsigned i = 0; i < extents.size(); ++i)
    variables.push_back(getAffineDimExpr(kept.size() + i, context));

  SmallVector<Value> indexMemRefs;
  SmallVector<bool> kinds;
  SmallVector<AffineMap> maps;
  for (const Subscript &subscript : subscripts) {
    kinds.push_back(static_cast<bool>(subscript.indexMemRef));
    if (subscript.indexMemRef)
      indexMemRefs.push_back(subscript.indexMemRef);
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : subscript.exprs)
      exprs.push_back(expr.replaceDimsAndSymbols(variables, symbolToDim));
    maps.push_back(AffineMap::get(kept.size() + extents.size(),
                                  /*symbolCount=*/0, exprs, context));
  }

  state.addOperands(base);
  state.addOperands(indexMemRefs);
  state.addOperands(kept);
  state.addOperands(dynamicExtents);
  auto &properties = state.getOrAddProperties<Properties>();
  properties.operandSegmentSizes = {
      1, static_cast<int32_t>(indexMemRefs.size()),
      static_cast<int32_t>(kept.size()),
      static_cast<int32_t>(dynamicExtents.size())};
  properties.per_dim_subscript_kinds = builder.getDenseBoolArrayAttr(kinds);
  properties.per_dim_subscript_maps = builder.getAffineMapArrayAttr(maps);
  properties.variables_space_set =
      IntegerSetAttr::get(getBoxSet(context, staticExtents));
  properties.variables_space_order =
      AffineMapAttr::get(builder.getMultiDimIdentityMap(extents.size()));
  makeVariableRegion(*state.addRegion(), extents.size(), state.location);
  state.addTypes(AccessTileType::get(context, staticExtents));
}

void ConstructIndirectAccessTileOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (!getIndexMemrefs().empty())
    effects.emplace_back(MemoryEffects::Read::get());
}

void ConstructIndirectAccessTileOp::getAsmBlockArgumentNames(
    Region &region, OpAsmSetValueNameFn setName) {
  static constexpr llvm::StringLiteral kNames[] = {"i", "j", "k", "l",
                                                   "m", "n", "o", "p"};
  for (BlockArgument argument : region.getArguments())
    if (argument.getArgNumber() < std::size(kNames))
      setName(argument, kNames[argument.getArgNumber()]);
}

Value ConstructIndirectAccessTileOp::getIndexMemRef(unsigned dim) {
  ArrayRef<bool> kinds = getPerDimSubscriptKinds();
  if (!kinds[dim])
    return {};
  return getIndexMemrefs()[llvm::count(kinds.take_front(dim), true)];
}

/// The subscripts as maps of captured values, which are their symbols, and then
/// variables, their dimensions.
static SmallVector<AffineMap>
makeSubscriptMaps(ArrayRef<SmallVector<AffineExpr>> subscripts,
                  unsigned numCaptured, unsigned numVariables,
                  MLIRContext *context) {
  SmallVector<AffineExpr> symbolToDim, dimToDim;
  for (unsigned i = 0; i < numCaptured; ++i)
    symbolToDim.push_back(getAffineDimExpr(i, context));
  for (unsigned i = 0; i < numVariables; ++i)
    dimToDim.push_back(getAffineDimExpr(numCaptured + i, context));
  SmallVector<AffineMap> maps;
  for (ArrayRef<AffineExpr> exprs : subscripts) {
    SmallVector<AffineExpr> results;
    for (AffineExpr expr : exprs)
      results.push_back(expr.replaceDimsAndSymbols(dimToDim, symbolToDim));
    maps.push_back(AffineMap::get(numCaptured + numVariables,
                                  /*symbolCount=*/0, results, context));
  }
  return maps;
}

// `intermediate_variables` `(` %var, ... `)` %base
// `[` (`ind` `(` %idx `[` affine, ... `]` `)` | affine), ... `]`
// (`symbols` `(` ... `)`)? attr-dict `:` base-type, idx-type... `->` tile
ParseResult ConstructIndirectAccessTileOp::parse(OpAsmParser &parser,
                                                 OperationState &result) {
  MLIRContext *context = parser.getContext();
  llvm::SMLoc variablesLoc;
  SmallVector<UnresolvedOperand> variables;
  UnresolvedOperand base;
  if (parser.parseKeyword("intermediate_variables") ||
      parser.getCurrentLocation(&variablesLoc) ||
      parser.parseOperandList(variables, OpAsmParser::Delimiter::Paren,
                              /*allowResultNumber=*/false) ||
      parser.parseOperand(base))
    return failure();
  for (auto [position, variable] : llvm::enumerate(variables))
    for (const UnresolvedOperand &other :
         ArrayRef(variables).take_front(position))
      if (other.name == variable.name)
        return parser.emitError(variable.location, "intermediate variable '")
               << variable.name << "' is named twice";

  // How many captured values there are is known at the end only: captured
  // values are symbols until then.
  SmallVector<UnresolvedOperand> captured, indexMemRefs, symbolOperands;
  auto getOperand = [&](const UnresolvedOperand &operand) {
    for (auto [position, variable] : llvm::enumerate(variables))
      if (variable.name == operand.name && operand.number == 0)
        return getAffineDimExpr(position, context);
    return getAffineSymbolExpr(getOperandPosition(captured, operand), context);
  };
  SmallVector<bool> kinds;
  SmallVector<SmallVector<AffineExpr>> subscripts;
  auto parseExpr = [&]() {
    return parseSubscript(parser, getOperand, /*getSymbol=*/nullptr,
                          subscripts.back().emplace_back());
  };
  auto parseDim = [&]() -> ParseResult {
    subscripts.emplace_back();
    kinds.push_back(succeeded(parser.parseOptionalKeyword("ind")));
    if (!kinds.back())
      return parseExpr();
    return failure(parser.parseLParen() ||
                   parser.parseOperand(indexMemRefs.emplace_back()) ||
                   parser.parseCommaSeparatedList(
                       OpAsmParser::Delimiter::Square, parseExpr) ||
                   parser.parseRParen());
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square,
                                     parseDim) ||
      parseSymbolOperands(parser, symbolOperands) ||
      parseTileAttributes<ConstructIndirectAccessTileOp>(
          parser, result,
          {"per_dim_subscript_kinds", "per_dim_subscript_maps",
           "operandSegmentSizes"},
          "variables_space_set", "Variables space set", "variables_space_order",
          "Variables space order"))
    return failure();

  SmallVector<Type> types;
  llvm::SMLoc typesLoc;
  if (parser.parseColon() || parser.getCurrentLocation(&typesLoc) ||
      parser.parseTypeList(types))
    return failure();
  if (types.size() != indexMemRefs.size() + 1)
    return parser.emitError(typesLoc, "expected ")
           << indexMemRefs.size() + 1 << " types (base + "
           << indexMemRefs.size() << " indirect memrefs), but got "
           << types.size();
  if (parseArrowTileType(parser, result))
    return failure();

  SmallVector<AffineMap> maps =
      makeSubscriptMaps(subscripts, captured.size(), variables.size(), context);

  Builder &builder = parser.getBuilder();
  result.addAttribute(getPerDimSubscriptKindsAttrName(result.name),
                      builder.getDenseBoolArrayAttr(kinds));
  result.addAttribute(getPerDimSubscriptMapsAttrName(result.name),
                      builder.getAffineMapArrayAttr(maps));
  auto &properties = result.getOrAddProperties<Properties>();
  properties.operandSegmentSizes = {
      1, static_cast<int32_t>(indexMemRefs.size()),
      static_cast<int32_t>(captured.size()),
      static_cast<int32_t>(symbolOperands.size())};
  makeVariableRegion(*result.addRegion(), variables.size(),
                     parser.getEncodedSourceLoc(variablesLoc));
  Type index = builder.getIndexType();
  return failure(
      parser.resolveOperand(base, types.front(), result.operands) ||
      parser.resolveOperands(indexMemRefs, ArrayRef(types).drop_front(),
                             typesLoc, result.operands) ||
      parser.resolveOperands(captured, index, result.operands) ||
      parser.resolveOperands(symbolOperands, index, result.operands));
}

void ConstructIndirectAccessTileOp::print(OpAsmPrinter &printer) {
  ValueRange variables = getVariables().front().getArguments();
  SmallVector<Value> dims(getCaptured());
  llvm::append_range(dims, variables);
  auto printExpr = [&](AffineExpr expr) {
    printer.printAffineExprOfSSAIds(expr, dims, ValueRange());
  };
  printer << " intermediate_variables(" << variables << ") " << getBase()
          << '[';
  llvm::interleaveComma(
      llvm::seq<unsigned>(0, getPerDimSubscriptKinds().size()), printer,
      [&](unsigned dim) {
        ArrayRef<AffineExpr> exprs = getSubscriptMap(dim).getResults();
        if (isIndirect(dim)) {
          printer << "ind(" << getIndexMemRef(dim) << '[';
          llvm::interleaveComma(exprs, printer, printExpr);
          printer << "])";
          return;
        }
        printer << '(';
        printExpr(exprs.front());
        printer << ')';
      });
  printer << ']';
  printSymbolOperands(printer, getSymbolOperands());
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getPerDimSubscriptKindsAttrName(),
                                 getPerDimSubscriptMapsAttrName(),
                                 getOperandSegmentSizeAttr()});
  printer << " : " << getBase().getType();
  for (Value memref : getIndexMemrefs())
    printer << ", " << memref.getType();
  printer << " -> " << getType();
}

LogicalResult ConstructIndirectAccessTileOp::verify() {
  // KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C1
  Block &block = getVariables().front();
  if (!llvm::all_of(block.getArgumentTypes(),
                    [](Type type) { return type.isIndex(); }))
    return emitOpError("expected only index arguments in its region");
  if (!llvm::hasSingleElement(block) || !isa<RegionTerminatorOp>(block.front()))
    return emitOpError("expected its region to hold only "
                       "'ktdp.region_terminator'");

  unsigned numVariables = block.getNumArguments();
  IntegerSet set = getVariablesSpaceSet();
  // KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C2
  if (set.getNumDims() != numVariables)
    return emitOpError("expected one dimension of variables_space_set per "
                       "intermediate variable (")
           << numVariables << "), but got " << set.getNumDims();
  // KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C3
  AffineMap order = getVariablesSpaceOrder();
  if (!isOrderOf(order, numVariables))
    return emitOpError("variables_space_order must map the ")
           << numVariables
           << " intermediate variables, without symbols, to as many results, "
              "but got "
           << AffineMapAttr::get(order);
  // KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C4
  if (getType().getRank() != numVariables)
    return emitOpError("expected a tile of rank ")
           << numVariables << ", the number of intermediate variables, but got "
           << getType();
  // KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C5
  if (set.getNumSymbols() != getSymbolOperands().size())
    return emitOpError("expected as many symbol operands as "
                       "variables_space_set has symbols (")
           << set.getNumSymbols() << "), but got "
           << getSymbolOperands().size();
  // KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C6
  size_t baseRank = cast<ShapedType>(getBase().getType()).getRank();
  ArrayRef<bool> kinds = getPerDimSubscriptKinds();
  size_t numMaps = getPerDimSubscriptMaps().size();
  if (kinds.size() != baseRank || numMaps != baseRank)
    return emitOpError("expected one subscript per base dimension (")
           << baseRank << "), but got " << kinds.size() << " kinds and "
           << numMaps << " maps";
  // KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C7
  size_t numIndirect = llvm::count(kinds, true);
  if (getIndexMemrefs().size() != numIndirect)
    return emitOpError("expected one index memref per indirect subscript (")
           << numIndirect << "), but got " << getIndexMemrefs().size();
  size_t numDims = getCaptured().size() + numVariables;
  for (unsigned dim = 0; dim < baseRank; ++dim) {
    AffineMap map = getSubscriptMap(dim);
    // KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C8
    if (map.getNumDims() != numDims || map.getNumSymbols() != 0)
      return emitOpError("subscript ")
             << dim << ": expected a map of " << numDims << " dimensions ("
             << getCaptured().size() << " captured values, " << numVariables
             << " variables) and no symbols, but got "
             << AffineMapAttr::get(map);
    if (Value memref = getIndexMemRef(dim)) {
      // KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C9
      auto type = cast<MemRefType>(memref.getType());
      if (map.getNumResults() != type.getRank())
        return emitOpError("subscript ")
               << dim << ": expected one expression per dimension of " << type
               << ", but got " << map.getNumResults();
    } else if (map.getNumResults() != 1) {
      // KTDP-CONSTRUCT_INDIRECT_ACCESS_TILE-C10
      return emitOpError("subscript ")
             << dim << ": expected a direct subscript to be one expression, "
             << "but got " << map.getNumResults();
    }
  }
  return success();
}
