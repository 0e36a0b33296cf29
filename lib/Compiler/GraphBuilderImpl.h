// SPDX-License-Identifier: Apache-2.0
//===- GraphBuilderImpl.h - What a graph builder holds ----------*- C++ -*-===//

#ifndef SPYRE_LIB_COMPILER_GRAPHBUILDERIMPL_H
#define SPYRE_LIB_COMPILER_GRAPHBUILDERIMPL_H

#include "FlattenedRows.h"
#include "ViewMap.h"

#include "Spyre/Compiler/GraphBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>

namespace spyre {

struct GraphBuilder::Impl {
  Impl();
  ~Impl();

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
    /// Null as long as nothing needs a view that takes a copy.
    mlir::Value value;
    /// What stood for the root when the view was made.
    mlir::Value home = {};
  };

  const Entry &entry(int value) const;
  /// The tensor of a view, which is made if it takes a copy.
  mlir::Value tensorOf(int value, mlir::Location loc);
  mlir::Location location(const SourceLocation &frames);
  /// The tensor of a view of a root; the root's own where it is all of it.
  mlir::Value buildView(mlir::Location loc, const Root &home,
                        const SizeList &sizes, const SizeList &strides,
                        const SizeExpr &offset);
  /// With which other dimensions of a home a map says a view of it, if any.
  std::optional<Regrouping> findRegrouping(const Root &home,
                                           const SizeList &sizes,
                                           const SizeList &strides,
                                           const SizeExpr &offset);
  /// A copy of a home with these dimensions.
  mlir::Value buildRegrouped(mlir::Location loc, const Root &home,
                             const Regrouping &regrouping);
  /// Which dimension of a view that takes a copy takes two for one, if any.
  std::optional<Flattening> findFlattening(const Entry &view);
  /// Those in the operands and results of a call, each size once.
  llvm::SmallVector<Flattening>
  findFlattenings(const Arguments &args, const KeywordArguments &kwargs,
                  const std::vector<std::optional<ValueMeta>> &results);
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
  /// Of a tensor at its largest; null for none.
  mlir::RankedTensorType getType(const std::optional<ValueMeta> &meta);
  /// Sizes as expressions of the function's symbols. Throws UnsupportedOp if
  /// one is not linear.
  llvm::SmallVector<mlir::AffineExpr> getExprs(const SizeList &list);
  /// The map of these, or null if none varies.
  mlir::AffineMap getSizeMap(const SizeList &list);
  void checkOpen() const;
  /// Gives the function the type and attributes of its arguments.
  void declareFunction(mlir::TypeRange results);

  /// A context that other graphs may have had before, and may have after. A
  /// graph is the same in any.
  struct OwnContext {
    OwnContext();
    ~OwnContext();

    std::unique_ptr<mlir::MLIRContext> context;
    size_t numTensors = 0; ///< of the graphs before
  };

  OwnContext own;
  mlir::MLIRContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  llvm::SmallVector<Root> roots;
  llvm::SmallVector<Entry> entries;
  /// Of all views.
  llvm::SmallVector<Flattening> flattenings;
  /// Copies of homes with other dimensions.
  struct Regrouped {
    mlir::Value home;
    SizeList sizes;
    mlir::Value copy;
  };
  llvm::SmallVector<Regrouped> regrouped;
  /// Attributes of each argument of the function, which gets them at once:
  /// setting one argument's costs as much as setting all.
  llvm::SmallVector<mlir::NamedAttrList> argumentAttrs;
  /// Of the symbols.
  std::vector<SizeRange> ranges;
  std::vector<int64_t> hints;
  bool finished = false;
};

/// Calls `visit` with the number of each value in arguments.
void visitValues(const Arguments &args, const KeywordArguments &kwargs,
                 llvm::function_ref<void(int)> visit);

/// Whether two strided views of the same sizes address the same elements.
bool sameElements(const SizeList &sizes, const SizeList &strides,
                  const SizeList &otherSizes, const SizeList &otherStrides);

} // namespace spyre

#endif // SPYRE_LIB_COMPILER_GRAPHBUILDERIMPL_H
