// SPDX-License-Identifier: Apache-2.0
//===- GraphBuilderImpl.h - What a graph builder holds ----------*- C++ -*-===//

#ifndef SPYRE_LIB_COMPILER_GRAPHBUILDERIMPL_H
#define SPYRE_LIB_COMPILER_GRAPHBUILDERIMPL_H

#include "ViewMap.h"

#include "Spyre/Compiler/GraphBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace spyre {

struct GraphBuilder::Impl {
  Impl();

  /// Storage with a home of its own.
  struct Root {
    mlir::Value value; ///< the tensor that now stands for the storage
    HostDtype dtype;
    SizeList sizes, strides;
    int argument = -1;
  };
  /// A view of a root.
  struct Entry {
    int root;
    SizeList sizes, strides;
    SizeExpr offset;
    mlir::Value value;
  };

  const Entry &entry(int value) const;
  mlir::Location location(const SourceLocation &frames);
  /// The tensor of a view of a root; the root's own where it is all of it.
  mlir::Value buildView(mlir::Location loc, int root, const SizeList &sizes,
                        const SizeList &strides, const SizeExpr &offset);
  mlir::Value buildSlice(mlir::Location loc, mlir::Value source,
                         const ShiftedViewMap::Shift &shift);
  /// A fresh tensor with the same elements.
  mlir::Value buildCopy(mlir::Value value);
  /// The value as one whose root is dense.
  int compact(int value);
  int addRoot(mlir::Value value, HostDtype dtype, const SizeList &sizes,
              const SizeList &strides, int argument);
  /// The largest that these can be.
  llvm::SmallVector<int64_t> atMost(const SizeList &list) const;
  /// Sizes as expressions of the function's symbols. Throws UnsupportedOp if
  /// one is not linear.
  llvm::SmallVector<mlir::AffineExpr> getExprs(const SizeList &list);
  /// The map of these, or null if none varies.
  mlir::AffineMap getSizeMap(const SizeList &list);
  void checkOpen() const;
  /// Gives the function the type and attributes of its arguments.
  void declareFunction(mlir::TypeRange results);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  llvm::SmallVector<Root> roots;
  llvm::SmallVector<Entry> entries;
  /// Attributes of each argument of the function, which gets them at once:
  /// setting one argument's costs as much as setting all.
  llvm::SmallVector<mlir::NamedAttrList> argumentAttrs;
  /// Of the symbols.
  std::vector<SizeRange> ranges;
  std::vector<int64_t> hints;
  bool finished = false;
};

/// Whether two strided views of the same sizes address the same elements.
bool sameElements(const SizeList &sizes, const SizeList &strides,
                  const SizeList &otherSizes, const SizeList &otherStrides);

} // namespace spyre

#endif // SPYRE_LIB_COMPILER_GRAPHBUILDERIMPL_H
