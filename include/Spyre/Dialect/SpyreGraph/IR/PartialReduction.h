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
///
/// The index of an extremum (argmax, argmin) has two more accumulators: the
/// extremum so far, and the index at which the current part starts. As in the
/// whole, the first of equal elements wins, and NaN over every number; so parts
/// must come in order, and be parts of the outermost dimension reduced.
class PartialReduction {
public:
  /// Nothing if parts of the operation's result cannot be combined.
  static std::optional<PartialReduction> get(SpyreOpInterface op);

  /// Whether the operation finds the index of an extremum.
  bool isIndex();
  /// Whether parts along this loop dimension can be combined.
  bool canCut(unsigned loopDim);
  /// The accumulators of a result of this type; they have the same layout. The
  /// first becomes the result.
  SmallVector<RankedTensorType> getAccumulatorTypes(RankedTensorType result);
  /// Whether the accumulator is the result in the end, as it stands.
  bool isResult(RankedTensorType result);
  /// Accumulators, of a result of this type, that nothing has been added to.
  SmallVector<Value> createIdentity(OpBuilder &b, RankedTensorType result);
  /// A maximum's, filled with the lowest finite number.
  Value createLowest(OpBuilder &b, RankedTensorType result);
  /// Computes the results of a part for the accumulators, without the epilogue
  /// of the operation. `ins` are tiles of all inputs.
  SmallVector<Value> createPart(OpBuilder &b, ValueRange ins,
                                ValueRange accumulators,
                                ArrayRef<int64_t> extents);
  /// Takes in a part of `count` iterations, in the accumulators' memory.
  SmallVector<Value> createCombine(OpBuilder &b, ValueRange accumulators,
                                   ValueRange parts, int64_t count);
  /// Combines one part with one accumulator, and writes the result to `init`.
  Value createCombine(OpBuilder &b, Value accumulator, Value part, Value init);
  /// An accumulator multiplied with `factor`, read through `map`, in place. For
  /// operations that are isRescalable().
  Value createRescaled(OpBuilder &b, Value accumulator, Value factor,
                       AffineMap map);
  /// The result, written to `init`. `ins` as in createPart.
  Value createResult(OpBuilder &b, Value accumulator, ValueRange ins,
                     Value init);

private:
  explicit PartialReduction(SpyreOpInterface op) : op(op) {}

  Value createPartOf(OpBuilder &b, StringRef name, ValueRange ins,
                     RankedTensorType type, ArrayRef<int64_t> extents);
  SmallVector<Value> createIndexCombine(OpBuilder &b, ValueRange accumulators,
                                        ValueRange parts, int64_t count);
  Value createFirst(OpBuilder &b, RankedTensorType type, bool isFinite = false);

  SpyreOpInterface op;
};

/// The elementwise operation that combines two partial results; not for index
/// combiners, nor None.
StringRef getCombiningOperation(Combiner combiner);

/// An elementwise operation. `immediates`, if any, as in the dialect; `maps`
/// are identities if empty.
Value createElementwise(OpBuilder &b, Location loc, StringRef name,
                        ValueRange ins, Value init,
                        ArrayRef<Attribute> immediates = {},
                        ArrayRef<AffineMap> maps = {});

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_PARTIALREDUCTION_H
