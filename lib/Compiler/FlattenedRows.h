// SPDX-License-Identifier: Apache-2.0
//===- FlattenedRows.h - Operators on rows of batches -----------*- C++ -*-===//

#ifndef SPYRE_LIB_COMPILER_FLATTENEDROWS_H
#define SPYRE_LIB_COMPILER_FLATTENEDROWS_H

#include "Spyre/Conversion/ATenToSpyreGraph/ATenToSpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace spyre {

/// A dimension of `size` elements that takes two or three for one: the rows of
/// a batch, and what they have of elements.
struct Flattening {
  SizeExpr size;
  SizeList parts; ///< the outermost first
};

/// The import of one operator at the end of a function, in which each flattened
/// dimension is a symbol of its own. What was made is taken back unless it is
/// finished.
class FlattenedRows {
public:
  FlattenedRows(mlir::func::FuncOp function, llvm::ArrayRef<Flattening> rows,
                const std::vector<SizeRange> &ranges);
  ~FlattenedRows();
  FlattenedRows(const FlattenedRows &) = delete;
  FlattenedRows &operator=(const FlattenedRows &) = delete;

  /// An argument with the symbols in place of flattened sizes.
  Argument substitute(const Argument &argument) const;
  /// Sizes as expressions of the function's symbols and these. Throws
  /// UnsupportedOp if one is not linear.
  llvm::SmallVector<mlir::AffineExpr> getExprs(const SizeList &sizes) const;
  /// Sizes and strides with the parts of each dimension that is flattened.
  std::pair<SizeList, SizeList> part(const SizeList &sizes,
                                     const SizeList &strides) const;
  /// Adds the symbols. All that operands are made of is there by now.
  void open();
  /// What stands for a tensor with the parts, which has these `sizes` and this
  /// type where they are flattened. The operator is imported after all
  /// operands have been added.
  mlir::Value addOperand(mlir::Location loc, mlir::Value value,
                         const SizeList &sizes,
                         mlir::RankedTensorType flattened);

  /// Makes a loop for each part of one along flattened rows in all that was
  /// imported, and gives its results so. Throws UnsupportedOp if an operation
  /// does not treat rows alike: if it selects, counts, ranks or scans them.
  llvm::SmallVector<mlir::Value> finish(llvm::ArrayRef<mlir::Value> values);

private:
  using Exprs = llvm::SmallVector<mlir::AffineExpr>;

  mlir::Operation *getLast();
  llvm::iterator_range<mlir::Block::iterator> getOpsAfter(mlir::Operation *op);
  void close();
  SizeExpr substitute(const SizeExpr &size) const;
  /// Which flattened dimension has this size, if any.
  std::optional<unsigned> getRows(mlir::AffineExpr size) const;
  /// An expression of the function's symbols alone.
  mlir::AffineExpr getSize(mlir::AffineExpr expr) const;
  Exprs partSizes(llvm::ArrayRef<mlir::AffineExpr> sizes) const;
  llvm::SmallVector<int64_t>
  atMost(llvm::ArrayRef<mlir::AffineExpr> sizes) const;
  llvm::SmallVector<unsigned>
  renumber(llvm::ArrayRef<mlir::AffineExpr> sizes) const;
  /// A map from loops, or dimensions of a view, to an operand of these sizes.
  mlir::AffineMap partMap(mlir::Operation *op, mlir::AffineMap map,
                          llvm::ArrayRef<mlir::AffineExpr> loops,
                          llvm::ArrayRef<mlir::AffineExpr> sizes) const;
  mlir::Value getParted(mlir::Value value) const;
  void checkLoops(mlir::spyre_graph::SpyreOpInterface op,
                  llvm::ArrayRef<mlir::AffineExpr> loops) const;
  void partView(mlir::spyre_graph::ViewOp view);
  void partDevice(mlir::spyre_graph::SpyreOpInterface op);
  void partComposite(mlir::Operation *op);
  /// Takes the symbols out of maps of sizes.
  void dropRows(mlir::Operation *op);
  bool hasRows(mlir::Operation *op) const;
  void verifyAll(llvm::ArrayRef<mlir::Value> values,
                 llvm::ArrayRef<Exprs> sizes);

  mlir::func::FuncOp function;
  llvm::ArrayRef<Flattening> rows;
  const std::vector<SizeRange> &ranges;
  mutable mlir::OpBuilder builder;
  unsigned numSymbols;
  llvm::SmallVector<mlir::spyre_graph::SizeSymbolAttr> symbols;
  /// The function's own while it has others, too.
  mlir::ArrayAttr attribute;
  /// The last operation before those that are made.
  mlir::Operation *before;
  /// The last one before those of the operator.
  mlir::Operation *imported = nullptr;
  llvm::SmallVector<mlir::Operation *> operands;
  llvm::DenseMap<mlir::Value, mlir::Value> parted;
  bool isKept = false;
};

} // namespace spyre

#endif // SPYRE_LIB_COMPILER_FLATTENEDROWS_H
