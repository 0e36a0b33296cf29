//===- PartialReduction.h - Reductions part by part -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_PARTIALREDUCTION_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_PARTIALREDUCTION_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir::spyre_graph {

/// How a reduction is computed part by part: an accumulator starts from the
/// identity, takes in what each part of the iterations gives, and becomes the
/// result at the end, rounded once. Sums and products are accumulated in fp32.
class PartialReduction {
public:
  /// Nothing if parts of the operation's result cannot be combined.
  static std::optional<PartialReduction> get(SpyreOpInterface op);

  /// The accumulator of a result of this type; it has the same layout.
  RankedTensorType getAccumulatorType(RankedTensorType result);
  /// Whether the accumulator is the result in the end, as it stands.
  bool isResult(RankedTensorType result);
  /// An accumulator that nothing has been added to. Maxima and minima of
  /// floating-point numbers start from a finite number below (above) all others
  /// if `isFinite`.
  Value createIdentity(OpBuilder &b, RankedTensorType type,
                       bool isFinite = false);
  /// What a part gives: the operation without its epilogue. `ins` are tiles of
  /// all inputs.
  Value createPart(OpBuilder &b, ValueRange ins, RankedTensorType type,
                   ArrayRef<int64_t> extents);
  /// Takes a part in, in the accumulator's memory.
  Value createCombine(OpBuilder &b, Value accumulator, Value part);
  /// The result, written to `init`. `ins` as in createPart.
  Value createResult(OpBuilder &b, Value accumulator, ValueRange ins,
                     Value init);

private:
  explicit PartialReduction(SpyreOpInterface op) : op(op) {}

  SpyreOpInterface op;
};

/// An elementwise operation. `immediates`, if any, as in the dialect; `maps`
/// are identities if empty.
Value createElementwise(OpBuilder &b, Location loc, StringRef name,
                        ValueRange ins, Value init,
                        ArrayRef<Attribute> immediates = {},
                        ArrayRef<AffineMap> maps = {});

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_PARTIALREDUCTION_H
