// SPDX-License-Identifier: Apache-2.0

#ifndef SPYRE_LIB_DIALECT_KTIR_IR_SUBSCRIPTPARSER_H
#define SPYRE_LIB_DIALECT_KTIR_IR_SUBSCRIPTPARSER_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/OpImplementation.h"

namespace mlir::ktdp {

/// Gives the affine expression that an SSA name stands for.
using SubscriptOperandFn =
    llvm::function_ref<AffineExpr(const OpAsmParser::UnresolvedOperand &)>;

/// Parses an affine expression of SSA names. Upstream's
/// parseAffineExprOfSSAIds is not used because it takes `%id#0` and `%id#1`
/// for the same value, and because the divisors of floordiv, ceildiv and mod
/// must be positive here. `symbol(%s)` asks `getSymbol`; if that is null,
/// symbols are an error.
ParseResult parseSubscript(OpAsmParser &parser, SubscriptOperandFn getDim,
                           SubscriptOperandFn getSymbol, AffineExpr &result);

} // namespace mlir::ktdp

#endif // SPYRE_LIB_DIALECT_KTIR_IR_SUBSCRIPTPARSER_H
