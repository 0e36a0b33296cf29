//===- SpyreGraphAttrs.cpp - Layouts, divisions, placements -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Support/Error.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphEnums.cpp.inc"

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphAttrInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphAttrs.cpp.inc"

void SpyreGraphDialect::registerSpyreAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// LayoutAttrInterface
//===----------------------------------------------------------------------===//

SmallVector<int64_t>
LayoutAttrInterface::getDeviceSize(ArrayRef<int64_t> shape) const {
  return llvm::map_to_vector(
      const_cast<LayoutAttrInterface *>(this)->getDeviceDims(shape),
      [](const ::spyre::DeviceDim &dim) { return dim.extent; });
}

AffineMap LayoutAttrInterface::getDeviceMap(ArrayRef<int64_t> shape,
                                            MLIRContext *context) const {
  SmallVector<::spyre::DeviceDim> dims =
      const_cast<LayoutAttrInterface *>(this)->getDeviceDims(shape);
  SmallVector<AffineExpr> results;
  for (const ::spyre::DeviceDim &dim : dims) {
    if (dim.hostDim < 0) {
      results.push_back(getAffineConstantExpr(0, context));
      continue;
    }
    AffineExpr expr = getAffineDimExpr(dim.hostDim, context);
    // The device dimension that counts the next larger step of the same host
    // dimension bounds this one.
    int64_t nextStep = 0;
    for (const ::spyre::DeviceDim &other : dims)
      if (other.hostDim == dim.hostDim && other.step > dim.step &&
          (nextStep == 0 || other.step < nextStep))
        nextStep = other.step;
    if (nextStep != 0)
      expr = expr % nextStep;
    if (dim.step != 1)
      expr = expr.floorDiv(dim.step);
    results.push_back(expr);
  }
  int64_t packed = getNumPacked(*this);
  if (packed > 1)
    results.back() = results.back() * packed +
                     getAffineDimExpr(getPackedDim(*this), context) % packed;
  return simplifyWithRanges(AffineMap::get(shape.size(), 0, results, context),
                            shape);
}

int64_t LayoutAttrInterface::getSizeInBytes(ArrayRef<int64_t> shape) const {
  int64_t sticks = 1;
  SmallVector<int64_t> deviceSize = getDeviceSize(shape);
  for (int64_t extent : ArrayRef(deviceSize).drop_back())
    sticks *= extent;
  return sticks * ::spyre::kStickBytes;
}

//===----------------------------------------------------------------------===//
// LayoutAttr
//===----------------------------------------------------------------------===//

int64_t spyre_graph::getNumPacked(LayoutAttrInterface layout) {
  auto relative = dyn_cast<LayoutAttr>(layout);
  return relative ? relative.getPacked() : 1;
}

int64_t spyre_graph::getPackedDim(LayoutAttrInterface layout) {
  return getNumPacked(layout) > 1 ? cast<LayoutAttr>(layout).getOrder().front()
                                  : -1;
}

int64_t spyre_graph::getStepsPerStick(LayoutAttrInterface layout,
                                      ArrayRef<int64_t> shape, int64_t dim) {
  int64_t packed = getNumPacked(layout);
  if (dim < 0)
    return 1;
  if (dim == layout.getStickDim(shape))
    return ::spyre::elemsPerStick(layout.getDataFormat()) / packed;
  return dim == getPackedDim(layout) ? packed : 1;
}

LayoutAttr LayoutAttr::get(MLIRContext *context, ArrayRef<int64_t> order,
                           Type elementType, bool sparse) {
  return get(
      context, order, sparse,
      getDeviceFormat(elementType).value_or(::spyre::DataFormat::INVALID));
}

LayoutAttr LayoutAttr::getDefault(ShapedType type) {
  return get(type.getContext(),
             llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())),
             type.getElementType());
}

SmallVector<::spyre::DeviceDim>
LayoutAttr::getDeviceDims(ArrayRef<int64_t> shape) const {
  ArrayRef<int64_t> order = getOrder();
  int64_t stickSize = ::spyre::elemsPerStick(getFormat()), packed = getPacked();
  SmallVector<::spyre::DeviceDim> dims;
  auto whole = [&](int64_t hostDim) {
    return ::spyre::DeviceDim{static_cast<int>(hostDim), 1, shape[hostDim]};
  };
  ::spyre::DeviceDim none{-1, 1, 1};
  if (order.empty())
    return {none, {-1, 1, stickSize}};
  if (getSparse()) {
    // The spec's order o0..o(n-1),-1: [o1..o(n-1), tile of nothing, o0, stick].
    for (int64_t hostDim : order.drop_front())
      dims.push_back(whole(hostDim));
    dims.push_back(none);
    dims.push_back(whole(order.front()));
    dims.push_back({-1, 1, stickSize});
    return dims;
  }
  int64_t stickDim = order.back();
  // Lanes are those of a whole stick, also if another dimension shares it.
  int64_t tileSize = stickSize / packed;
  ::spyre::DeviceDim tile{static_cast<int>(stickDim), tileSize,
                          llvm::divideCeilSigned(shape[stickDim], tileSize)};
  ::spyre::DeviceDim lane{static_cast<int>(stickDim), 1, stickSize};
  if (order.size() == 1)
    return {tile, lane};
  for (int64_t hostDim : order.drop_front().drop_back())
    dims.push_back(whole(hostDim));
  dims.push_back(tile);
  dims.push_back(whole(order.front()));
  if (packed > 1) {
    dims.back().step = packed;
    dims.back().extent = llvm::divideCeilSigned(dims.back().extent, packed);
  }
  dims.push_back(lane);
  return dims;
}

SmallVector<int64_t>
LayoutAttr::getStrideMap(ArrayRef<int64_t> shape,
                         ArrayRef<int64_t> hostStrides) const {
  SmallVector<int64_t> strideMap;
  for (const ::spyre::DeviceDim &dim : getDeviceDims(shape))
    strideMap.push_back(dim.hostDim < 0 || shape[dim.hostDim] == 1
                            ? -1
                            : hostStrides[dim.hostDim] * dim.step);
  return strideMap;
}

::spyre::DataFormat LayoutAttr::getDataFormat() const { return getFormat(); }

int64_t LayoutAttr::getStickDim(ArrayRef<int64_t>) const {
  return getSparse() || getOrder().empty() ? -1 : getOrder().back();
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                           function_ref<InFlightDiagnostic()> emitError) const {
  // SG-LAYOUT-C1
  llvm::SmallBitVector seen(shape.size());
  bool isPermutation = getOrder().size() == shape.size();
  for (int64_t dim : getOrder()) {
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) || seen[dim]) {
      isPermutation = false;
      break;
    }
    seen.set(dim);
  }
  if (!isPermutation)
    return emitError() << "layout order [" << getOrder()
                       << "] is not a permutation of the " << shape.size()
                       << " dimensions";
  // SG-LAYOUT-C2
  if (getDeviceFormat(elementType) != getFormat())
    return emitError() << "layout format " << ::spyre::toString(getFormat())
                       << " does not store elements of type " << elementType;
  // SG-LAYOUT-C3
  int64_t packed = getPacked(), stickSize = ::spyre::elemsPerStick(getFormat());
  if (packed < 1 || stickSize % packed != 0 ||
      (packed > 1 && (getSparse() || shape.size() < 2)))
    return emitError() << "layout packs " << packed << " steps of a dimension "
                       << "into sticks of " << stickSize << " elements of "
                       << shape.size() << " dimensions";
  return success();
}

static ParseResult parseIntegers(AsmParser &parser,
                                 SmallVectorImpl<int64_t> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(values.emplace_back());
  });
}

static void printIntegers(AsmPrinter &printer, ArrayRef<int64_t> values) {
  printer << '[';
  llvm::interleaveComma(values, printer);
  printer << ']';
}

static ParseResult parseFormat(AsmParser &parser, ::spyre::DataFormat &format) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<::spyre::DataFormat> parsed =
      ::spyre::parseDataFormat(keyword.str());
  if (!parsed)
    return parser.emitError(loc) << "unknown device format '" << keyword << "'";
  format = *parsed;
  return success();
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> order;
  ::spyre::DataFormat format;
  if (parser.parseLess() || parser.parseKeyword("order") ||
      parser.parseEqual() || parseIntegers(parser, order) ||
      parser.parseComma())
    return {};
  bool sparse = succeeded(parser.parseOptionalKeyword("sparse"));
  if (sparse && parser.parseComma())
    return {};
  int64_t packed = 1;
  if (succeeded(parser.parseOptionalKeyword("packed")) &&
      (parser.parseEqual() || parser.parseInteger(packed) ||
       parser.parseComma()))
    return {};
  if (parseFormat(parser, format) || parser.parseGreater())
    return {};
  return get(parser.getContext(), order, sparse, format, packed);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<order = ";
  printIntegers(printer, getOrder());
  printer << (getSparse() ? ", sparse, " : ", ");
  if (getPacked() != 1)
    printer << "packed = " << getPacked() << ", ";
  printer << ::spyre::toString(getFormat()) << '>';
}

//===----------------------------------------------------------------------===//
// ExplicitLayoutAttr
//===----------------------------------------------------------------------===//

static ::spyre::TensorLayout toTensorLayout(ExplicitLayoutAttr layout) {
  ::spyre::TensorLayout result;
  result.deviceSize = layout.getDeviceSize().vec();
  result.strideMap = layout.getStrideMap().vec();
  result.format = layout.getFormat();
  return result;
}

SmallVector<::spyre::DeviceDim>
ExplicitLayoutAttr::getDeviceDims(ArrayRef<int64_t> shape) const {
  return llvm::to_vector(::spyre::resolveDeviceDims(
      toTensorLayout(*this), shape.vec(), getHostStrides().vec()));
}

SmallVector<int64_t> ExplicitLayoutAttr::getStrideMap(ArrayRef<int64_t>,
                                                      ArrayRef<int64_t>) const {
  return llvm::to_vector(getStrideMap());
}

::spyre::DataFormat ExplicitLayoutAttr::getDataFormat() const {
  return getFormat();
}

int64_t ExplicitLayoutAttr::getStickDim(ArrayRef<int64_t> shape) const {
  return getDeviceDims(shape).back().hostDim;
}

LogicalResult ExplicitLayoutAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type elementType,
    function_ref<InFlightDiagnostic()> emitError) const {
  // SG-EXPLICIT-LAYOUT-C2
  if (getDeviceFormat(elementType) != getFormat())
    return emitError() << "layout format " << ::spyre::toString(getFormat())
                       << " does not store elements of type " << elementType;
  // SG-EXPLICIT-LAYOUT-C1
  if (getHostStrides().size() != shape.size())
    return emitError() << "layout has " << getHostStrides().size()
                       << " host strides for " << shape.size() << " dimensions";
  try {
    (void)getDeviceDims(shape);
  } catch (const ::spyre::Error &error) {
    return emitError() << error.what();
  }
  return success();
}

Attribute ExplicitLayoutAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> deviceSize, strideMap, hostStrides;
  ::spyre::DataFormat format;
  if (parser.parseLess() || parser.parseKeyword("device_size") ||
      parser.parseEqual() || parseIntegers(parser, deviceSize) ||
      parser.parseComma() || parser.parseKeyword("stride_map") ||
      parser.parseEqual() || parseIntegers(parser, strideMap) ||
      parser.parseComma() || parser.parseKeyword("host_strides") ||
      parser.parseEqual() || parseIntegers(parser, hostStrides) ||
      parser.parseComma() || parseFormat(parser, format) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), deviceSize, strideMap, hostStrides, format);
}

void ExplicitLayoutAttr::print(AsmPrinter &printer) const {
  printer << "<device_size = ";
  printIntegers(printer, getDeviceSize());
  printer << ", stride_map = ";
  printIntegers(printer, getStrideMap());
  printer << ", host_strides = ";
  printIntegers(printer, getHostStrides());
  printer << ", " << ::spyre::toString(getFormat()) << '>';
}

//===----------------------------------------------------------------------===//
// SizeSymbolAttr
//===----------------------------------------------------------------------===//

LogicalResult
SizeSymbolAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       StringRef name, int64_t least, int64_t most,
                       int64_t step) {
  // SG-SYMBOL-C1
  if (name.empty() || least < 1 || most < least || step < 1 ||
      least % step != 0 || most % step != 0)
    return emitError() << "symbol '" << name << "' has sizes from " << least
                       << " to " << most << " by " << step
                       << "; expected a name, 1 <= least <= most, and a "
                          "positive step that divides both";
  return success();
}

//===----------------------------------------------------------------------===//
// WorkDivisionAttr
//===----------------------------------------------------------------------===//

LogicalResult
WorkDivisionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         ArrayRef<int64_t> splits, ArrayRef<int64_t> chunks,
                         ArrayRef<int64_t>, AffineMap) {
  // SG-DIVISION-C1
  if (llvm::any_of(splits, [](int64_t split) { return split < 1; }) ||
      llvm::any_of(chunks, [](int64_t chunk) { return chunk < 0; }))
    return emitError()
           << "splits must be positive and chunks not negative, but are ["
           << splits << "] and [" << chunks << "]";
  // SG-DIVISION-C6
  int64_t cores = 1, iterations;
  bool overflows = false;
  for (int64_t split : splits)
    overflows |= llvm::MulOverflow(cores, split, cores);
  for (auto [split, chunk] : llvm::zip(splits, chunks))
    overflows |= llvm::MulOverflow(split, chunk, iterations);
  if (overflows)
    return emitError() << "division into [" << splits << "] slices of ["
                       << chunks << "] iterations has more cores or "
                       << "iterations than 63 bits can count";
  return success();
}

Attribute WorkDivisionAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> splits, chunks, order;
  AffineMapAttr chunkMap;
  if (parser.parseLess() || parser.parseKeyword("splits") ||
      parser.parseEqual() || parseIntegers(parser, splits) ||
      parser.parseComma() || parser.parseKeyword("chunks") ||
      parser.parseEqual() || parseIntegers(parser, chunks))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    if (!chunkMap && succeeded(parser.parseOptionalKeyword("chunk_map"))) {
      if (parser.parseEqual() || parser.parseAttribute(chunkMap))
        return {};
      break;
    }
    if (!order.empty() || parser.parseKeyword("order") || parser.parseEqual() ||
        parseIntegers(parser, order))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<WorkDivisionAttr>(
      loc, parser.getContext(), splits, chunks, order,
      chunkMap ? chunkMap.getValue() : AffineMap());
}

void WorkDivisionAttr::print(AsmPrinter &printer) const {
  printer << "<splits = ";
  printIntegers(printer, getSplits());
  printer << ", chunks = ";
  printIntegers(printer, getChunks());
  if (!getOrder().empty()) {
    printer << ", order = ";
    printIntegers(printer, getOrder());
  }
  if (getChunkMap())
    printer << ", chunk_map = " << AffineMapAttr::get(getChunkMap());
  printer << '>';
}

WorkDivisionAttr WorkDivisionAttr::withChunkMap(AffineMap map) const {
  return get(getContext(), getSplits(), getChunks(), getOrder(), map);
}

bool WorkDivisionAttr::covers(unsigned dim, int64_t extent) const {
  int64_t split = getSplits()[dim], chunk = getChunks()[dim];
  return (split - 1) * chunk <= std::max<int64_t>(extent - 1, 0) &&
         split * chunk >= extent;
}

int64_t WorkDivisionAttr::getNumCores() const {
  int64_t cores = 1;
  for (int64_t split : getSplits())
    cores *= split;
  return cores;
}

SmallVector<int64_t> WorkDivisionAttr::getCoreStrides() const {
  ArrayRef<int64_t> splits = getSplits(), order = getOrder();
  SmallVector<int64_t> strides(splits.size(), 1);
  int64_t stride = 1;
  for (size_t place = 0; place < splits.size(); ++place) {
    size_t dim = order.empty() ? place : order[place];
    strides[dim] = stride;
    stride *= splits[dim];
  }
  return strides;
}

WorkDivisionAttr WorkDivisionAttr::getWithFirst(MLIRContext *context,
                                                ArrayRef<int64_t> splits,
                                                ArrayRef<int64_t> chunks,
                                                int64_t first) {
  SmallVector<int64_t> order;
  if (first > 0) {
    order.push_back(first);
    for (int64_t dim = 0; dim < static_cast<int64_t>(splits.size()); ++dim)
      if (dim != first)
        order.push_back(dim);
  }
  return get(context, splits, chunks, order);
}

//===----------------------------------------------------------------------===//
// PlacementAttr
//===----------------------------------------------------------------------===//

LogicalResult
PlacementAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      MemorySpace space, int64_t offset,
                      ArrayRef<int64_t> local) {
  // SG-PLACEMENT-C1
  if (offset < 0 || offset % ::spyre::kStickBytes != 0)
    return emitError() << "offset " << offset << " is not a multiple of "
                       << ::spyre::kStickBytes << " bytes from 0 on";
  // SG-PLACEMENT-C2
  if (space == MemorySpace::pool && !local.empty())
    return emitError() << "local elements [" << local
                       << "] are for lx only; the pool is not local to a core";
  if (llvm::any_of(local, [](int64_t size) { return size < 0; }))
    return emitError() << "local elements must not be negative, but are ["
                       << local << "]";
  return success();
}

//===----------------------------------------------------------------------===//
// Target
//===----------------------------------------------------------------------===//

Attribute TargetAttr::parse(AsmParser &parser, Type) {
  StringRef name;
  if (parser.parseLess() || parser.parseKeyword(&name) || parser.parseGreater())
    return {};
  return TargetAttr::get(parser.getContext(), name);
}

void TargetAttr::print(AsmPrinter &printer) const {
  printer << "<" << getName() << ">";
}
