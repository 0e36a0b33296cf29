// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/KTIR/IR/KTIR.h"

#include "Spyre/Device/TransferDescriptors.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ktdp;

#include "Spyre/Dialect/KTIR/IR/KTIRAttrInterfaces.cpp.inc"
#include "Spyre/Dialect/KTIR/IR/KTIREnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "Spyre/Dialect/KTIR/IR/KTIRAttrs.cpp.inc"

void KTDPDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Spyre/Dialect/KTIR/IR/KTIRAttrs.cpp.inc"
      >();
}

Attribute KTDPDialect::parseAttribute(DialectAsmParser &parser,
                                      Type type) const {
  llvm::SMLoc loc = parser.getCurrentLocation();
  StringRef mnemonic;
  Attribute attr;
  if (generatedAttributeParser(parser, &mnemonic, type, attr).has_value())
    return attr;
  if (mnemonic == MemorySpaceAttr::kFrontEndMnemonic)
    return MemorySpaceAttr::parseFrontEndSpelling(parser);
  parser.emitError(loc, "unknown attribute '")
      << mnemonic << "' of dialect '" << getNamespace() << "'";
  return {};
}

void KTDPDialect::printAttribute(Attribute attr,
                                 DialectAsmPrinter &printer) const {
  if (auto space = dyn_cast<MemorySpaceAttr>(attr)) {
    printer << space.getSpelling();
    space.print(printer);
    return;
  }
  (void)generatedAttributePrinter(attr, printer);
}

//===----------------------------------------------------------------------===//
// MemorySpaceAttr
//===----------------------------------------------------------------------===//

MemorySpaceAttr MemorySpaceAttr::getGlobal(MLIRContext *context) {
  return get(context, MemorySpaceKind::HBM);
}

MemorySpaceAttr MemorySpaceAttr::getCtLocal(MLIRContext *context,
                                            int64_t core) {
  return get(context, MemorySpaceKind::LX, core);
}

StringRef MemorySpaceAttr::getSpelling() const {
  return isGlobal() || isCtLocal() ? StringRef(getMnemonic())
                                   : StringRef(kFrontEndMnemonic);
}

LogicalResult
MemorySpaceAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                        MemorySpaceKind kind, int64_t core) {
  // KTDP-MEMORY_SPACE-C1
  if (core < -1)
    return emitError() << "core must be non-negative, but got " << core;
  // KTDP-MEMORY_SPACE-C2
  if (core != -1 && kind != MemorySpaceKind::LX && kind != MemorySpaceKind::L0)
    return emitError() << "core affinity is only valid for LX or L0 memory "
                          "spaces, but got memory space '"
                       << stringifyMemorySpaceKind(kind)
                       << "' with core = " << core;
  return success();
}

/// `<` keyword (`,` coreKeyword `=` integer)? `>`
static Attribute parseMemorySpace(
    AsmParser &parser, StringRef coreKeyword, StringRef expected,
    llvm::function_ref<std::optional<MemorySpaceKind>(StringRef)> lookup) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  llvm::SMLoc keywordLoc;
  int64_t core = -1;
  if (parser.parseLess())
    return {};
  keywordLoc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return {};
  std::optional<MemorySpaceKind> kind = lookup(keyword);
  if (!kind) {
    parser.emitError(keywordLoc, "unknown memory space '")
        << keyword << "', expected " << expected;
    return {};
  }
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword(coreKeyword) || parser.parseEqual() ||
       parser.parseInteger(core)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<MemorySpaceAttr>(loc, parser.getContext(), *kind,
                                            core);
}

Attribute MemorySpaceAttr::parse(AsmParser &parser, Type) {
  return parseMemorySpace(
      parser, "ct_id", "'global' or 'ct_local'",
      [](StringRef keyword) -> std::optional<MemorySpaceKind> {
        if (keyword == "global")
          return MemorySpaceKind::HBM;
        if (keyword == "ct_local")
          return MemorySpaceKind::LX;
        return std::nullopt;
      });
}

Attribute MemorySpaceAttr::parseFrontEndSpelling(AsmParser &parser) {
  return parseMemorySpace(
      parser, "core", "'HBM', 'LX', 'L0' or 'unspecified'",
      [](StringRef keyword) { return symbolizeMemorySpaceKind(keyword); });
}

void MemorySpaceAttr::print(AsmPrinter &printer) const {
  bool frontEnd = getSpelling() == kFrontEndMnemonic;
  printer << '<';
  if (isGlobal())
    printer << "global";
  else if (isCtLocal())
    printer << "ct_local";
  else
    printer << stringifyMemorySpaceKind(getKind());
  if (hasCore())
    printer << (frontEnd ? ", core = " : ", ct_id = ") << getCore();
  printer << '>';
}

//===----------------------------------------------------------------------===//
// LayoutAttr
//===----------------------------------------------------------------------===//

/// The product of `sizes`, nothing if a size is negative or it overflows.
static std::optional<int64_t> checkedProduct(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    if (size < 0 || llvm::MulOverflow(product, size, product))
      return std::nullopt;
  return product;
}

LogicalResult
LayoutAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                   ArrayRef<int64_t> deviceSize, ArrayRef<int64_t> strideMap,
                   StringRef format, StringRef hostDtype,
                   ArrayRef<int64_t> shape, ArrayRef<int64_t> strides,
                   StringRef arrangement) {
  // KTDP-LAYOUT-C1
  if (deviceSize.empty() || deviceSize.size() != strideMap.size())
    return emitError()
           << "device_size and stride_map must have equal, non-zero "
              "length, but got "
           << deviceSize.size() << " and " << strideMap.size();
  // KTDP-LAYOUT-C2
  if (shape.size() != strides.size())
    return emitError() << "shape and strides must have equal length, but got "
                       << shape.size() << " and " << strides.size();
  // KTDP-LAYOUT-C3
  if (!checkedProduct(deviceSize))
    return emitError()
           << "device_size must not be negative and its product fit 63 "
              "bits, but got ["
           << deviceSize << "]";
  if (!checkedProduct(shape))
    return emitError() << "shape must not be negative and its product fit 63 "
                          "bits, but got ["
                       << shape << "]";
  // KTDP-LAYOUT-C4
  auto knownFormat = ::spyre::parseDataFormat(format.str());
  if (!knownFormat)
    return emitError() << "unknown device format '" << format << "'";
  if (!::spyre::parseHostDtype(hostDtype.str()))
    return emitError() << "unknown host dtype '" << hostDtype << "'";
  auto knownArrangement = ::spyre::parseElementArrangement(arrangement.str());
  if (!knownArrangement)
    return emitError() << "unknown element arrangement '" << arrangement << "'";
  // KTDP-LAYOUT-C5
  if (llvm::any_of(strideMap, [](int64_t stride) { return stride < -1; }))
    return emitError() << "stride_map entries must be at least -1, but got ["
                       << strideMap << "]";
  // KTDP-LAYOUT-C6
  try {
    ::spyre::makeTransferDescriptors(
        ::spyre::TensorLayout(deviceSize.vec(), strideMap.vec(), *knownFormat,
                              *knownArrangement),
        shape.vec(), strides.vec(), ::spyre::TransferDirection::HostToDevice);
  } catch (const std::exception &error) {
    return emitError() << error.what();
  }
  return success();
}

/// `[` integers `]`
static ParseResult parseIntegerList(AsmParser &parser,
                                    SmallVectorImpl<int64_t> &list) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() {
    return parser.parseInteger(list.emplace_back());
  });
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  std::pair<StringRef, SmallVector<int64_t>> lists[] = {
      {"device_size", {}}, {"stride_map", {}}, {"shape", {}}, {"strides", {}}};
  std::pair<StringRef, StringRef> names[] = {
      {"format", ""}, {"host_dtype", ""}, {"arrangement", ""}};
  llvm::SmallVector<StringRef> seen;

  auto parseEntry = [&]() -> ParseResult {
    llvm::SMLoc keyLoc = parser.getCurrentLocation();
    StringRef key;
    if (parser.parseKeyword(&key))
      return failure();
    if (llvm::is_contained(seen, key))
      return parser.emitError(keyLoc, "'") << key << "' is given twice";
    seen.push_back(key);
    if (parser.parseEqual())
      return failure();
    for (auto &[name, list] : lists)
      if (name == key)
        return parseIntegerList(parser, list);
    for (auto &[name, value] : names)
      if (name == key)
        return parser.parseKeyword(&value);
    return parser.emitError(keyLoc, "unknown layout entry '") << key << "'";
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseEntry))
    return {};
  for (StringRef required : {"device_size", "stride_map", "format",
                             "host_dtype", "shape", "strides"})
    if (!llvm::is_contained(seen, required)) {
      parser.emitError(loc, "layout lacks '") << required << "'";
      return {};
    }
  StringRef arrangement =
      names[2].second.empty() ? StringRef("STANDARD") : names[2].second;
  return parser.getChecked<LayoutAttr>(
      loc, parser.getContext(), ArrayRef<int64_t>(lists[0].second),
      ArrayRef<int64_t>(lists[1].second), names[0].second, names[1].second,
      ArrayRef<int64_t>(lists[2].second), ArrayRef<int64_t>(lists[3].second),
      arrangement);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<device_size = [" << getDeviceSize() << "], stride_map = ["
          << getStrideMap() << "], format = " << getFormat()
          << ", host_dtype = " << getHostDtype() << ", shape = [" << getShape()
          << "], strides = [" << getStrides() << "]";
  if (getArrangement() != "STANDARD")
    printer << ", arrangement = " << getArrangement();
  printer << '>';
}
