//===- SizeSymbols.h - Sizes that are known when a program runs -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// A function may have symbols (SG-SYMBOL-C1). Shapes and extents are the
// largest that they can be; maps of the symbols say what they are.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SIZESYMBOLS_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_SIZESYMBOLS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// The symbols of the function that an operation is, or lies in.
SmallVector<SizeSymbolAttr> getSizeSymbols(Operation *op);
/// Whether there are any: without, nothing below has anything to do.
bool hasSizeSymbols(Operation *op);

/// For messages: "'s0' from 64 to 512 by 64".
std::string describe(SizeSymbolAttr symbol);

/// Name of the attribute of an `scf.for` that runs up to a size: a map of the
/// function's symbols to what its upper bound is in a run (SG-SYMBOL-C4).
inline constexpr llvm::StringLiteral kBoundMapAttrName =
    "spyre_graph.bound_map";
/// A loop up to a symbol divided by a number.
struct LoopBound {
  unsigned symbol = 0;
  int64_t divisor = 1;

  AffineExpr getSize(MLIRContext *context) const;
};
/// Nothing for an operation that is no such loop.
std::optional<LoopBound> getLoopBound(Operation *loop);
/// Lets a loop run up to a symbol of its function.
void setLoopBound(Operation *loop, unsigned symbol);
/// SG-SYMBOL-C4 for an operation with this attribute.
LogicalResult verifyLoopBound(Operation *op, Attribute attribute);

/// Name of the attribute of a function that would rather have two plans
/// (SG-SYMBOL-C5): the number of a symbol, and its largest size in the first.
inline constexpr llvm::StringLiteral kSizesApartAttrName =
    "spyre_graph.sizes_apart";
/// SG-SYMBOL-C5 for an operation with this attribute.
LogicalResult verifySizesApart(Operation *op, Attribute attribute);

/// Smallest and largest value of an expression of the symbols.
std::pair<int64_t, int64_t> getSizeRange(AffineExpr expr,
                                         ArrayRef<SizeSymbolAttr> symbols);
/// The value of an expression of symbols at the given sizes.
int64_t evaluateSize(AffineExpr expr, ArrayRef<int64_t> sizes);

/// What the symbols of an operation's function are where plans are priced
/// besides the largest sizes: for each of `shares`, so much of the largest size
/// of every symbol. None without symbols.
SmallVector<SmallVector<int64_t>> getSmallerSizes(Operation *op,
                                                  ArrayRef<double> shares);

/// The results of a map of sizes; of a null one, `numbers`.
SmallVector<AffineExpr> getSizeExprs(AffineMap map, ArrayRef<int64_t> numbers,
                                     MLIRContext *context);
/// The map of these expressions, or null if none varies.
AffineMap makeSizeMap(ArrayRef<AffineExpr> sizes, unsigned numSymbols,
                      MLIRContext *context);
/// Whether a result of a map of sizes, which may be null, varies.
bool varies(AffineMap map, unsigned position);

/// SG-SYMBOL-C2 for a map that says what `numbers` are at each size.
LogicalResult verifySizeMap(AffineMap map, ArrayRef<int64_t> numbers,
                            ArrayRef<SizeSymbolAttr> symbols,
                            function_ref<InFlightDiagnostic()> emitError);

/// What is said of the sizes of an argument, or of what is used of it
/// (UsedSizes.h); null if it is all of it in each run.
AffineMapAttr getArgumentSizeMap(BlockArgument argument);

/// How much of an allocated buffer the operation writes that writes it first,
/// if that is all of it at the largest sizes. So it decides how large the
/// contents are, and others write parts of them.
std::optional<SmallVector<AffineExpr>> getFilledSizes(Value buffer);

/// Whether that is all of the buffer at all sizes.
bool isFilledFirst(Value buffer);

/// How large what an operation writes into a buffer is: its init, or that of
/// which the init is a tile. Dimensions that it writes in parts, other than in
/// tiles of a loop up to a size, are as large as the type says.
SmallVector<AffineExpr> getSizesWrittenInBuffer(SpyreOpInterface op);
/// The operations that write into a buffer, or into a tile of it.
SmallVector<SpyreOpInterface> getWriters(Value buffer);

/// Where along a dimension of its init an operation writes, in loop indices and
/// the function's symbols: what the init's map says, with the offset in place
/// of the largest one.
AffineExpr getWrittenCoordinate(SpyreOpInterface op, unsigned dim);

/// Whether others write into the result of an operation on tensors from offsets
/// on, along any dimension or along `dim`.
bool isInsertedInto(Value result, std::optional<int64_t> dim = std::nullopt);

/// How large each dimension of a tensor or buffer is: of an argument, a view, a
/// result, or what is written into an allocation.
SmallVector<AffineExpr> getSizes(Value value);

/// Gives an operation without `extent_map` the one that follows from the sizes
/// of its operands: a loop is as long as the dimensions that it walks whole.
/// `results`, unless empty, are the sizes of what it writes. Fails with a
/// diagnostic if operands disagree, or if a dimension that varies is accessed
/// otherwise. Does nothing in functions without symbols.
LogicalResult inferExtentMap(SpyreOpInterface op,
                             ArrayRef<AffineExpr> results = {});
/// The same for the `size_map` of a view.
LogicalResult inferSizeMap(ViewOp view, ArrayRef<AffineExpr> results = {});
/// Does this for all operations of a function that have no such map yet.
LogicalResult inferSizes(Operation *function);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SIZESYMBOLS_H
