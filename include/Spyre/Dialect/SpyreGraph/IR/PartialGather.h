//===- PartialGather.h - Gathers from parts of a table ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// A gather from a table is gathers from parts of its rows, of which each
// element takes the one that its index lies in. This is how passes make them
// without knowing an operation.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_PARTIALGATHER_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_PARTIALGATHER_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// Builds the parts of an operation on tensors with getIndirectAccess(). All
/// operations go before the gather, which stays as it is.
class PartialGather {
public:
  explicit PartialGather(SpyreOpInterface gather)
      : gather(gather), access(*gather.getIndirectAccess()), b(gather) {}

  /// Rows of the table.
  int64_t getNumRows();
  /// Rows `first` to `first + count - 1` of the table.
  Value createRows(int64_t first, int64_t count);
  /// The gather from these rows. Indices of other parts give any row of this
  /// one, but those outside of the table stay outside: the program reports
  /// them.
  Value createPart(int64_t first, int64_t count);
  /// The indices with one element per stick, as every lane of a row reads them.
  Value createSpreadIndices();
  /// `part` where the index is `first` or above, `others` elsewhere; `spread`
  /// is of createSpreadIndices().
  Value createChoice(Value spread, int64_t first, Value part, Value others);

private:
  Value createEmpty(Type type);
  Value createOnIndices(StringRef name, Value indices, Type type,
                        ArrayRef<int64_t> numbers);
  Value createLocalIndices(int64_t first, int64_t count);

  SpyreOpInterface gather;
  IndirectAccess access;
  OpBuilder b;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_PARTIALGATHER_H
