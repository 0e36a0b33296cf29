// SPDX-License-Identifier: Apache-2.0
//===- HostTypes.h - Element types and lines of the host --------*- C++ -*-===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_HOSTTYPES_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_HOSTTYPES_H

#include "Spyre/Device/DataFormat.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <optional>
#include <string>

namespace mlir::spyre_graph {

/// The element type that stands for a host type.
Type getElementType(MLIRContext *context, ::spyre::HostDtype dtype);
/// The element type of what is in a format, where nothing says the host's; null
/// for formats that nothing here computes with.
Type getElementType(MLIRContext *context, ::spyre::DataFormat format);
/// The host type that an element type stands for; nothing for other types.
std::optional<::spyre::HostDtype> getHostDtype(Type type);

/// The lowest finite number of a floating-point type as the device stores it.
double getLowestNumber(Type element);

/// An argument of a function as the host knows it.
struct HostArgument {
  MemRefType type;
  LayoutAttrInterface layout;
  ::spyre::HostDtype dtype;
  std::string name;
  /// In elements; row-major where the function does not say.
  SmallVector<int64_t> strides;
};

/// An error unless arrays of the host with these strides (in elements) can lie
/// in this layout: SG-ARG-C4.
LogicalResult verifyHome(ShapedType type, LayoutAttrInterface layout,
                         ArrayRef<int64_t> strides,
                         function_ref<InFlightDiagnostic()> emitError);

/// Describes an argument of a planned function. An error, at the function, for
/// one that is no memref with a layout or whose element type is no host type.
FailureOr<HostArgument> getHostArgument(FunctionOpInterface function,
                                        unsigned number);

/// The innermost line of source, "file:line", or nothing.
std::string getSourceLine(Location loc);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_HOSTTYPES_H
