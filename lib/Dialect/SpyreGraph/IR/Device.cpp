// SPDX-License-Identifier: Apache-2.0
//===- Device.cpp - The device that a module is planned for -----*- C++ -*-===//

#include "Spyre/Dialect/SpyreGraph/IR/Device.h"

#include "Spyre/Support/Error.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace mlir;
using namespace mlir::spyre_graph;

/// A number or a string as JSON; nothing for other attributes, and for values
/// that JSON does not have.
static std::optional<llvm::json::Value> toJson(Attribute attribute) {
  if (auto text = dyn_cast<StringAttr>(attribute))
    return llvm::json::Value(llvm::json::fixUTF8(text.getValue()));
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    if (integer.getType().isSignlessInteger(64))
      return llvm::json::Value(integer.getInt());
  if (auto number = dyn_cast<FloatAttr>(attribute))
    if (number.getType().isF64() && std::isfinite(number.getValueAsDouble()))
      return llvm::json::Value(number.getValueAsDouble());
  return std::nullopt;
}

/// Throws Error if DeviceSpec does not accept the numbers. All are of a kind
/// that JSON has.
static ::spyre::DeviceSpec readDevice(DictionaryAttr device) {
  llvm::json::Object object;
  for (NamedAttribute entry : device)
    if (std::optional<llvm::json::Value> value = toJson(entry.getValue()))
      object[llvm::json::fixUTF8(entry.getName().strref())] = std::move(*value);
  std::string text =
      llvm::formatv("{0}", llvm::json::Value(std::move(object))).str();
  return ::spyre::DeviceSpec::fromJson(text, kDeviceAttrName.str());
}

::spyre::DeviceSpec spyre_graph::getDeviceSpec(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto device = module ? module->getAttrOfType<DictionaryAttr>(kDeviceAttrName)
                       : DictionaryAttr();
  return device ? readDevice(device) : ::spyre::DeviceSpec();
}

DictionaryAttr spyre_graph::getDeviceAttr(MLIRContext *context,
                                          const ::spyre::DeviceSpec &spec) {
  const ::spyre::DeviceSpec defaults;
  Builder builder(context);
  auto toAttribute = [&](auto value) -> Attribute {
    if constexpr (std::is_same_v<decltype(value), ::spyre::NonNumber>)
      return builder.getStringAttr(value == ::spyre::NonNumber::Inf ? "inf"
                                                                    : "nan");
    else if constexpr (std::is_same_v<decltype(value), double>)
      return builder.getF64FloatAttr(value);
    else
      return builder.getI64IntegerAttr(value);
  };
  SmallVector<NamedAttribute> entries;
  for (const ::spyre::ParameterInfo &info : ::spyre::DeviceSpec::parameters())
    std::visit(
        [&](auto member) {
          if (spec.*member != defaults.*member)
            entries.push_back(
                builder.getNamedAttr(info.name, toAttribute(spec.*member)));
        },
        info.member);
  return builder.getDictionaryAttr(entries);
}

FailureOr<DictionaryAttr> spyre_graph::readDeviceFile(Operation *op,
                                                      StringRef path) {
  try {
    return getDeviceAttr(op->getContext(),
                         ::spyre::DeviceSpec::fromJsonFile(path.str()));
  } catch (const ::spyre::Error &error) {
    return op->emitError() << error.what();
  }
}

LogicalResult spyre_graph::verifyDeviceAttr(Operation *op,
                                            Attribute attribute) {
  // SG-DEVICE-C1
  auto device = dyn_cast<DictionaryAttr>(attribute);
  if (!isa<ModuleOp>(op) || !device)
    return op->emitOpError()
           << kDeviceAttrName
           << " must be a dictionary, as in {numCores = 4}, on a module, but "
              "is "
           << attribute;
  for (NamedAttribute entry : device)
    if (!toJson(entry.getValue()))
      return op->emitOpError()
             << kDeviceAttrName << ": " << entry.getName()
             << " must be an i64, a finite f64 or a string, but is "
             << entry.getValue();
  // SG-DEVICE-C2
  try {
    (void)readDevice(device);
  } catch (const ::spyre::Error &error) {
    return op->emitOpError() << error.what();
  }
  return success();
}
