// SPDX-License-Identifier: Apache-2.0
//===- DeviceNames.h - Names that depend on operands ------------*- C++ -*-===//
//
// Predicates that `deviceOpName` in the definitions of operations uses.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_IR_DEVICENAMES_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_IR_DEVICENAMES_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph::detail {

/// Whether all operands and the result are boolean.
bool areBooleans(SpyreOpInterface op);

/// Whether the first logical operand is the only tensor.
bool hasNumbersAfterFirst(SpyreOpInterface op);

/// The name of a copy: a change of format, or none.
StringRef getCopyName(SpyreOpInterface op);

/// The name of a product, which says what its factors are.
StringRef getMatmulName(SpyreOpInterface op);

/// The name of a conversion to int8, which says how sticks are packed.
StringRef getQuantizeName(SpyreOpInterface op);

} // namespace mlir::spyre_graph::detail

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_IR_DEVICENAMES_H
