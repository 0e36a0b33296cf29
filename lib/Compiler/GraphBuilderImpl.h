// SPDX-License-Identifier: Apache-2.0
//===- GraphBuilderImpl.h - What a graph builder holds ----------*- C++ -*-===//

#ifndef SPYRE_LIB_COMPILER_GRAPHBUILDERIMPL_H
#define SPYRE_LIB_COMPILER_GRAPHBUILDERIMPL_H

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
    llvm::SmallVector<int64_t> sizes, strides;
    int argument = -1;
  };
  /// A view of a root.
  struct Entry {
    int root;
    llvm::SmallVector<int64_t> sizes, strides;
    int64_t offset;
    mlir::Value value;
  };

  const Entry &entry(int value) const;
  mlir::Location location(const SourceLocation &frames);
  /// The tensor of a view of a root; the root's own where it is all of it.
  mlir::Value buildView(mlir::Location loc, int root,
                        llvm::ArrayRef<int64_t> sizes,
                        llvm::ArrayRef<int64_t> strides, int64_t offset);
  /// A fresh tensor with the same elements.
  mlir::Value buildCopy(mlir::Value value);
  /// The value as one whose root is dense.
  int compact(int value);
  int addRoot(mlir::Value value, HostDtype dtype, llvm::ArrayRef<int64_t> sizes,
              llvm::ArrayRef<int64_t> strides, int argument);
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
  bool finished = false;
};

} // namespace spyre

#endif // SPYRE_LIB_COMPILER_GRAPHBUILDERIMPL_H
