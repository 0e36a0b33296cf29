// SPDX-License-Identifier: Apache-2.0
//===- ParserGuards.h - What upstream's parsers fail on --------*- C++ -*-===//

#ifndef SPYRE_DIALECT_KTIR_IR_PARSERGUARDS_H
#define SPYRE_DIALECT_KTIR_IR_PARSERGUARDS_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace mlir::ktdp {

/// To be called before a file from outside is parsed. MLIR 22's parser of
/// linalg.reduce, linalg.transpose and linalg.broadcast reports an array of
/// dimensions that is malformed, and then crashes on the attribute that it did
/// not get; and there is what MLIRTextGuard says. Emits an error at the first
/// such place. Tools read bytecode in a process of its own first, which may
/// crash; for others it is taken as it is.
LogicalResult checkSource(llvm::MemoryBufferRef source, MLIRContext *context);

/// The same for a file that has to be KTIR. Planned or imported graphs, which
/// users give instead, would fail on an attribute "with unregistered dialect".
LogicalResult checkKTIRSource(llvm::MemoryBufferRef source,
                              MLIRContext *context);

/// The same for a file that has to be a graph.
LogicalResult checkGraphSource(llvm::MemoryBufferRef source,
                               MLIRContext *context);

/// For tools, at their start: LLVM's fatal errors, with which MLIR's reader
/// ends on some malformed bytecode, become an error message and exit status 1,
/// and so do its crashes.
void exitOnFatalErrors();

} // namespace mlir::ktdp

#endif // SPYRE_DIALECT_KTIR_IR_PARSERGUARDS_H
