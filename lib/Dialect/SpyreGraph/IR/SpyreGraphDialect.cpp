//===- SpyreGraphDialect.cpp - The spyre_graph dialect ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/BundleOps.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/IR/UsedSizes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::spyre_graph;

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphDialect.cpp.inc"

void SpyreGraphDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphBundleOps.cpp.inc"
      >();
  registerSpyreAttributes();
}

std::optional<::spyre::DataFormat> spyre_graph::getDeviceFormat(Type type) {
  std::optional<::spyre::HostDtype> dtype = getHostDtype(type);
  if (!dtype)
    return std::nullopt;
  return ::spyre::deviceFormat(*dtype);
}

Type spyre_graph::getDeviceElementType(Type type) {
  std::optional<::spyre::DataFormat> format = getDeviceFormat(type);
  return format ? getElementType(type.getContext(), *format) : type;
}

LayoutAttrInterface spyre_graph::getLayout(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return dyn_cast_or_null<LayoutAttrInterface>(tensor.getEncoding());
  if (auto memref = dyn_cast<MemRefType>(type))
    return dyn_cast_or_null<LayoutAttrInterface>(memref.getMemorySpace());
  return nullptr;
}

/// SG-PLACEMENT-C3
static LogicalResult verifyPlacement(Operation *op, Attribute attribute) {
  auto placement = dyn_cast<PlacementAttr>(attribute);
  auto alloc = dyn_cast<memref::AllocOp>(op);
  if (!placement || !alloc)
    return op->emitOpError()
           << SpyreGraphDialect::getPlacementAttrName()
           << " must be a #spyre_graph.placement on a memref.alloc, but is "
           << attribute;
  size_t numLocal = placement.getLocal().size();
  int64_t rank = alloc.getType().getRank();
  if (placement.getSpace() == MemorySpace::lx &&
      static_cast<int64_t>(numLocal) != rank)
    return op->emitOpError() << "placement in LX has " << numLocal
                             << " local extents for " << rank << " dimensions";
  return success();
}

LogicalResult
SpyreGraphDialect::verifyOperationAttribute(Operation *op,
                                            NamedAttribute attribute) {
  // SG-TARGET-C1
  if (attribute.getName() == getTargetAttrName() &&
      (!isa<ModuleOp>(op) || !isa<TargetAttr>(attribute.getValue())))
    return op->emitOpError()
           << getTargetAttrName()
           << " must be a target, as in #spyre_graph.target<ktir>, on a "
              "module, but is "
           << attribute.getValue();
  if (attribute.getName() == getPlacementAttrName())
    return verifyPlacement(op, attribute.getValue());
  // SG-SYMBOL-C1
  if (attribute.getName() == getSymbolsAttrName()) {
    auto list = dyn_cast<ArrayAttr>(attribute.getValue());
    llvm::StringSet<> names;
    bool isValid = isa<FunctionOpInterface>(op) && list &&
                   llvm::all_of(list, [&](Attribute entry) {
                     auto symbol = dyn_cast<SizeSymbolAttr>(entry);
                     return symbol && names.insert(symbol.getName()).second;
                   });
    if (!isValid)
      return op->emitOpError()
             << getSymbolsAttrName()
             << " must be an array of #spyre_graph.symbol of different names, "
                "on a function, but is "
             << attribute.getValue();
  }
  if (attribute.getName() == kBoundMapAttrName)
    return verifyLoopBound(op, attribute.getValue());
  if (attribute.getName() == kSizesApartAttrName)
    return verifySizesApart(op, attribute.getValue());
  // SG-DEVICE-C1 and SG-DEVICE-C2
  if (attribute.getName() == kDeviceAttrName)
    return verifyDeviceAttr(op, attribute.getValue());
  return success();
}

LogicalResult
SpyreGraphDialect::verifyRegionArgAttribute(Operation *op, unsigned regionIndex,
                                            unsigned argIndex,
                                            NamedAttribute attribute) {
  Region &region = op->getRegion(regionIndex);
  // SG-ARG-C1
  if (attribute.getName() == getHostStridesAttrName()) {
    auto strides = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (!strides)
      return op->emitOpError()
             << getHostStridesAttrName() << " must be an array of i64";
    Type type;
    if (!region.empty() && argIndex < region.getNumArguments())
      type = region.getArgument(argIndex).getType();
    else if (auto function = dyn_cast<FunctionOpInterface>(op))
      type = function.getArgumentTypes()[argIndex];
    auto shaped = dyn_cast_or_null<ShapedType>(type);
    if (!shaped || !shaped.hasRank() || shaped.getRank() != strides.size())
      return op->emitOpError() << getHostStridesAttrName() << " of argument "
                               << argIndex << " has " << strides.size()
                               << " entries, but the type is " << type;
    // SG-ARG-C4; transfers know no packed sticks, but other passes refuse them.
    LayoutAttrInterface layout = getLayout(type);
    if (!layout || !shaped.hasStaticShape() || getNumPacked(layout) > 1)
      return success();
    return verifyHome(shaped, layout, strides.asArrayRef(), [&] {
      return op->emitOpError() << "argument " << argIndex << ": ";
    });
  }
  // SG-ARG-C2
  if (attribute.getName() == getNameAttrName()) {
    if (!isa<StringAttr>(attribute.getValue()))
      return op->emitOpError() << getNameAttrName() << " must be a string";
    return success();
  }
  bool isUsedMap = attribute.getName() == kUsedMapAttrName;
  if (isUsedMap || attribute.getName() == getSizeMapAttrName()) {
    // SG-SYMBOL-C2
    auto map = dyn_cast<AffineMapAttr>(attribute.getValue());
    auto function = dyn_cast<FunctionOpInterface>(op);
    auto shaped =
        function ? dyn_cast<ShapedType>(function.getArgumentTypes()[argIndex])
                 : ShapedType();
    auto emitError = [&] {
      return op->emitOpError() << attribute.getName().getValue()
                               << " of argument " << argIndex << " ";
    };
    // SG-SYMBOL-C3
    if (isUsedMap && function &&
        function.getArgAttr(argIndex, getSizeMapAttrName()))
      return emitError() << "cannot stand beside " << getSizeMapAttrName()
                         << ": the array is as large in every run";
    if (!map || !shaped || !shaped.hasStaticShape())
      return emitError() << "must be an affine map beside a shape, but is "
                         << attribute.getValue();
    return verifySizeMap(map.getValue(), shaped.getShape(), getSizeSymbols(op),
                         emitError);
  }
  // --spyre-resolve-hints checks what it says.
  if (attribute.getName() == kDimNamesAttrName)
    return success();
  // SG-ARG-C3
  return op->emitOpError() << "unknown argument attribute "
                           << attribute.getName();
}
