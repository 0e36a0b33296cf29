// SPDX-License-Identifier: Apache-2.0
//===- SourceCheck.h - Text that upstream's parser fails on -----*- C++ -*-===//

#ifndef SPYRE_DIALECT_KTIR_IR_SOURCECHECK_H
#define SPYRE_DIALECT_KTIR_IR_SOURCECHECK_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace mlir::ktdp {

/// To be called before a file from outside is parsed. MLIR 22's parser of
/// linalg.reduce, linalg.transpose and linalg.broadcast reports an array of
/// dimensions that is malformed, and then crashes on the attribute that it did
/// not get; and its recursion over brackets has no limit but the stack. Emits
/// an error at the first such place. Bytecode is taken as it is.
LogicalResult checkSource(llvm::MemoryBufferRef source, MLIRContext *context);

} // namespace mlir::ktdp

#endif // SPYRE_DIALECT_KTIR_IR_SOURCECHECK_H
