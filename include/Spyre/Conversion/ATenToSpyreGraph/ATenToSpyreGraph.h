// SPDX-License-Identifier: Apache-2.0
//===- ATenToSpyreGraph.h - The ATen table ----------------------*- C++ -*-===//
//
// The one place that knows what an ATen operator means: (overload name,
// arguments) -> spyre_graph ops.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_CONVERSION_ATENTOSPYREGRAPH_ATENTOSPYREGRAPH_H
#define SPYRE_CONVERSION_ATENTOSPYREGRAPH_ATENTOSPYREGRAPH_H

#include "Spyre/Conversion/ATenToSpyreGraph/Arguments.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::spyre_graph {

/// A size as an expression of the function's symbols. Throws UnsupportedOp if
/// it is not linear.
AffineExpr getSizeExpr(const ::spyre::SizeExpr &size, MLIRContext *context);

/// Makes the ops of one call of `name` ("aten.add.Tensor") at the builder's
/// insertion point, which must be the end of a block.
///
/// `results` are the types PyTorch's meta function gives the results; a null
/// type stands for a result that is not a tensor or that nobody uses. The
/// returned values have these types, null where the type was null. In a
/// function with symbols `sizes` has, per result, the size of each dimension.
///
/// Throws UnsupportedOp, and leaves the block as it was, if there is no row
/// for the operator, the row cannot take these arguments, or it is not for
/// sizes that vary; Error if the CPU does not take them, either.
SmallVector<Value> importATenOp(OpBuilder &builder, Location loc,
                                StringRef name, const ::spyre::Arguments &args,
                                const ::spyre::KeywordArguments &kwargs,
                                ArrayRef<RankedTensorType> results,
                                function_ref<Value(::spyre::ValueId)> lookup,
                                ArrayRef<SmallVector<AffineExpr>> sizes = {});

} // namespace mlir::spyre_graph

#endif // SPYRE_CONVERSION_ATENTOSPYREGRAPH_ATENTOSPYREGRAPH_H
