// SPDX-License-Identifier: Apache-2.0
//===- GraphBuilder.h - Import of an ATen graph -----------------*- C++ -*-===//
//
// Builds the imported form of spyre_graph from calls that follow an ATen graph
// node by node. No MLIR types.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_COMPILER_GRAPHBUILDER_H
#define SPYRE_COMPILER_GRAPHBUILDER_H

#include "Spyre/Conversion/ATenToSpyreGraph/Arguments.h"
#include "Spyre/Device/TensorLayout.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spyre {

/// A tensor that the graph returns, as a view (sizes, strides and offset in
/// elements of the root's home) of an output root or of an argument.
struct OutputInfo {
  /// Index of the distinct output root, or -1 - a if it aliases argument a.
  int root = 0;
  SizeList sizes, strides;
  SizeExpr offset = 0;
  /// Home of the root: what the caller allocates (or has).
  ValueMeta rootMeta;
};

/// A hint of the user to the planner, for one operator
/// (spyre_graph::kHintsAttrName). Exactly one of tiles, workDivision (0: not
/// given) and namedDims.
struct Hint {
  std::string dim;
  int64_t scope = 0;
  int64_t tiles = 0, workDivision = 0;
  std::vector<std::string> namedDims;
};

/// Names and sizes of the parts of one dimension, outermost first.
using DimNames = std::vector<std::pair<std::string, int64_t>>;

/// The graph under construction. Values are numbered from 0 in the order of
/// their creation. Every value is a view of a *root*: an argument's home or
/// the result of an operation; sizes, strides and offsets count elements of
/// the root's storage, as those of FX tensors do.
///
/// Not thread-safe; different builders are independent.
class GraphBuilder {
public:
  GraphBuilder();
  ~GraphBuilder();
  GraphBuilder(GraphBuilder &&);
  GraphBuilder &operator=(GraphBuilder &&);

  /// Adds a symbol, a size that is known when the program runs, before any
  /// argument; returns its number. `hint` is its size in what the layouts of
  /// arguments are of. Throws Error unless 1 <= least <= hint <= most, all
  /// multiples of step.
  int addSymbol(const std::string &name, const SizeRange &range, int64_t hint);

  using Room = std::pair<size_t, SizeExpr>;

  /// Adds an argument: a storage, given by the home it was created for
  /// (`homeStrides`: dense and non-overlapping, any order of dimensions) and
  /// its device layout. The value is the home itself. Throws Error if the
  /// home is not dense or the layout does not fit it. With `room`, given by a
  /// dimension and a number of rows that varies, the argument lies in every run
  /// as where the symbols are largest, and has so many rows along the
  /// dimension, of which a home that has fewer has the first.
  int addArgument(const std::string &name, HostDtype dtype,
                  const SizeList &homeSizes, const SizeList &homeStrides,
                  const TensorLayout &layout,
                  const std::optional<Room> &room = {});

  /// Names the dimensions of an argument's home, for hints. Throws Error unless
  /// there is one entry per dimension.
  void setDimNames(int argument, const std::vector<DimNames> &names);

  /// The elements offset + sum(i * strides) of the root storage of `value`
  /// (strides and offset of the result tensor, whatever view `value` is).
  /// Throws Error if they leave the storage; UnsupportedOp if sizes vary and no
  /// one map says where the elements are, also not with two adjacent dimensions
  /// of the root as one, or one as two. Those take a copy, if an operation
  /// needs the view.
  int view(int value, const SizeList &sizes, const SizeList &strides,
           const SizeExpr &offset, const SourceLocation &loc = {});

  /// One ATen operator. `results`: what PyTorch says the results are, in
  /// order; nothing for a result that is no tensor or that nobody uses.
  /// Returns one value per entry, -1 where there was nothing.
  /// Throws UnsupportedOp before changing anything if the table cannot take
  /// the operator with these arguments, or a result is not dense; Error if the
  /// CPU does not take them, either.
  std::vector<int> op(const std::string &atenName, const Arguments &args,
                      const KeywordArguments &kwargs,
                      const std::vector<std::optional<ValueMeta>> &results,
                      const SourceLocation &loc = {},
                      const std::vector<Hint> &hints = {});

  /// aten.copy_: the storage of `target`, an argument or a view of one, holds
  /// `value` (same sizes, converted to its type) when the graph ends.
  void mutate(int target, int value, const SourceLocation &loc = {});

  /// Forgets the arguments from number `first` on, and all values computed from
  /// them. Throws Error if one of these is stored in an argument.
  void dropArguments(int first);

  /// Sets the values that the graph returns. This is the last call on a builder
  /// before compiling. Entries that share a root share an output root.
  std::vector<OutputInfo> setOutputs(const std::vector<int> &values);

  /// Sizes, strides and type of a value.
  ValueMeta meta(int value) const;

  /// The imported module as text, with or without locations.
  std::string print(bool locations = false) const;

  /// For the compiler.
  struct Impl;
  Impl &getImpl() const { return *impl; }

private:
  /// An operator on views that take the rows of batches of sizes that vary for
  /// one dimension, which no map says, is one on what they are views of.
  /// Nothing if there are no such views, or, for a `reason`, if it does not
  /// treat rows alike.
  std::optional<std::vector<int>>
  opOnRows(const std::string &atenName, const Arguments &args,
           const KeywordArguments &kwargs,
           const std::vector<std::optional<ValueMeta>> &results,
           const SourceLocation &loc, std::string &reason);

  std::unique_ptr<Impl> impl;
};

} // namespace spyre

#endif // SPYRE_COMPILER_GRAPHBUILDER_H
