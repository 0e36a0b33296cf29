// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ktdp;

#define GET_TYPEDEF_CLASSES
#include "Spyre/Dialect/KTIR/IR/KTIRTypes.cpp.inc"

void KTDPDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "Spyre/Dialect/KTIR/IR/KTIRTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// AccessTileType
//===----------------------------------------------------------------------===//

LogicalResult
AccessTileType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                       ArrayRef<int64_t> shape, Type elementType) {
  // KTDP-ACCESS_TILE-C1
  if (!elementType.isIndex())
    return emitError() << "tile element type must be 'index', but got: "
                       << elementType;
  // KTDP-ACCESS_TILE-C2
  for (int64_t size : shape)
    if (!ShapedType::isDynamic(size) && size < 0)
      return emitError() << "tile dimension size must be dynamic or >= 0";
  return success();
}

ShapedType AccessTileType::cloneWith(std::optional<ArrayRef<int64_t>> shape,
                                     Type elementType) const {
  return AccessTileType::get(getContext(), shape.value_or(getShape()),
                             elementType);
}

Type AccessTileType::parse(AsmParser &parser) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/true) ||
      parser.parseType(elementType) || parser.parseGreater())
    return {};
  return parser.getChecked<AccessTileType>(
      loc, parser.getContext(), ArrayRef<int64_t>(shape), elementType);
}

void AccessTileType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t size : getShape()) {
    if (ShapedType::isDynamic(size))
      printer << '?';
    else
      printer << size;
    printer << 'x';
  }
  printer << getElementType() << '>';
}

//===----------------------------------------------------------------------===//
// RuntimeArgType
//===----------------------------------------------------------------------===//

LogicalResult
RuntimeArgType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                       Type valueType, std::optional<int64_t> granularity,
                       std::optional<int64_t> upperbound) {
  // KTDP-RUNTIME_ARG-C1
  if (!valueType.isIntOrIndexOrFloat())
    return emitError() << "runtime_arg type must be index, integer or float, "
                          "but got "
                       << valueType;
  // KTDP-RUNTIME_ARG-C2
  if (granularity && *granularity <= 0)
    return emitError() << "runtime_arg granularity must be positive, but got "
                       << *granularity;
  // KTDP-RUNTIME_ARG-C3
  if (upperbound && *upperbound <= 0)
    return emitError() << "runtime_arg upperbound must be positive, but got "
                       << *upperbound;
  return success();
}

Type RuntimeArgType::parse(AsmParser &parser) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  Type valueType;
  std::optional<int64_t> granularity, upperbound;
  if (parser.parseLess() || parser.parseType(valueType))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    llvm::SMLoc keyLoc = parser.getCurrentLocation();
    StringRef key;
    if (parser.parseKeyword(&key))
      return {};
    std::optional<int64_t> *entry = key == "granularity"  ? &granularity
                                    : key == "upperbound" ? &upperbound
                                                          : nullptr;
    if (!entry) {
      parser.emitError(keyLoc, "unknown runtime_arg keyword '")
          << key << "', expected 'granularity' or 'upperbound'";
      return {};
    }
    if (*entry) {
      parser.emitError(keyLoc, "duplicate runtime_arg keyword '") << key << "'";
      return {};
    }
    int64_t value = 0;
    if (parser.parseEqual() || parser.parseInteger(value))
      return {};
    *entry = value;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<RuntimeArgType>(loc, parser.getContext(), valueType,
                                           granularity, upperbound);
}

void RuntimeArgType::print(AsmPrinter &printer) const {
  printer << '<' << getValueType();
  if (getGranularity())
    printer << ", granularity=" << *getGranularity();
  if (getUpperbound())
    printer << ", upperbound=" << *getUpperbound();
  printer << '>';
}

//===----------------------------------------------------------------------===//
// TileFutureType
//===----------------------------------------------------------------------===//

LogicalResult
TileFutureType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                       Type tileType, IntegerSetAttr groups) {
  // KTDP-TILE_FUTURE-C1
  if (!isa<RankedTensorType>(tileType))
    return emitError() << "tile_future tile must be a ranked tensor, but got "
                       << tileType;
  // KTDP-TILE_FUTURE-C2
  IntegerSet set = groups.getValue();
  if (set.getNumDims() != 1 || set.getNumSymbols() != 0)
    return emitError() << "tile_future groups must have one dimension and no "
                          "symbol, but got "
                       << set.getNumDims() << " and " << set.getNumSymbols();
  return success();
}

Type TileFutureType::parse(AsmParser &parser) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  Type tileType;
  IntegerSetAttr groups;
  if (parser.parseLess())
    return {};
  bool parens = succeeded(parser.parseOptionalLParen());
  if (parser.parseType(tileType) || (parens && parser.parseRParen()) ||
      parser.parseComma() || parser.parseKeyword("groups") ||
      parser.parseEqual() || parser.parseAttribute(groups) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<TileFutureType>(loc, parser.getContext(), tileType,
                                           groups);
}

void TileFutureType::print(AsmPrinter &printer) const {
  printer << "<(" << getTileType() << "), groups = " << getGroups() << '>';
}
