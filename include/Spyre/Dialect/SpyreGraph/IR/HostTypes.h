// SPDX-License-Identifier: Apache-2.0
//===- HostTypes.h - Element types and lines of the host ---------*- C++
//-*-===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_HOSTTYPES_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_HOSTTYPES_H

#include "Spyre/Device/DataFormat.h"

#include "mlir/IR/Location.h"
#include "mlir/IR/Types.h"

#include <optional>
#include <string>

namespace mlir::spyre_graph {

/// The element type that stands for a host type.
Type getElementType(MLIRContext *context, ::spyre::HostDtype dtype);
/// The inverse; nothing for other types.
std::optional<::spyre::HostDtype> getHostDtype(Type type);

/// The innermost line of source, "file:line", or nothing.
std::string getSourceLine(Location loc);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_HOSTTYPES_H
