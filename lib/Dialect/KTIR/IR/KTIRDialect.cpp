// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/KTIR/IR/KTIR.h"

using namespace mlir;
using namespace mlir::ktdp;

#include "Spyre/Dialect/KTIR/IR/KTIRDialect.cpp.inc"

void KTDPDialect::initialize() {
  registerAttributes();
  registerTypes();
  registerOps();
}

LogicalResult
KTDPDialect::verifyRegionArgAttribute(Operation *op, unsigned regionIndex,
                                      unsigned argIndex, NamedAttribute attr) {
  auto emitError = [&]() {
    return op->emitError("argument ") << argIndex << ": ";
  };
  StringRef name = attr.getName().strref();

  if (name == kNameAttr) {
    // KTDP-ARG-C1
    auto string = dyn_cast<StringAttr>(attr.getValue());
    if (!string || string.getValue().empty())
      return emitError() << "'" << kNameAttr
                         << "' must be a non-empty string, but got "
                         << attr.getValue();
    return success();
  }

  StringRef other;
  if (name == kLayoutAttr) {
    // KTDP-ARG-C2
    if (!isa<LayoutAttr>(attr.getValue()))
      return emitError() << "'" << kLayoutAttr
                         << "' must be a #ktdp.layout, but got "
                         << attr.getValue();
    other = kPoolSizeAttr;
  } else if (name == kPoolSizeAttr) {
    // KTDP-ARG-C3
    auto integer = dyn_cast<IntegerAttr>(attr.getValue());
    if (!integer || !integer.getType().isSignlessInteger(64) ||
        integer.getInt() < 0)
      return emitError() << "'" << kPoolSizeAttr
                         << "' must be a non-negative i64, but got "
                         << attr.getValue();
    other = kLayoutAttr;
  } else {
    // KTDP-ARG-C5
    return emitError() << "unknown argument attribute '" << name
                       << "', expected '" << kNameAttr << "', '" << kLayoutAttr
                       << "' or '" << kPoolSizeAttr << "'";
  }

  // KTDP-ARG-C4
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  if (function.getArgAttr(argIndex, other))
    return emitError() << "'" << name << "' and '" << other
                       << "' exclude each other";
  ArrayRef<Type> types = function.getArgumentTypes();
  if (regionIndex == 0 && argIndex < types.size() &&
      !types[argIndex].isIndex())
    return emitError() << "'" << name
                       << "' needs an argument of type 'index', but got "
                       << types[argIndex];
  return success();
}
