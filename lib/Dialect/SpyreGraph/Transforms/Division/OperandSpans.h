//===- OperandSpans.h - How much of a tensor one core addresses -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// A core addresses up to DeviceSpec::maxSpanBytes of a tensor in device memory
// (spec/hardware.md). Not every division of an operation keeps to that.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_OPERANDSPANS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_OPERANDSPANS_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Target/Interface/Target.h"

namespace mlir::spyre_graph {

/// The type of the tensor that `value` is a tile of, or its own.
ShapedType getWholeType(Value value);

/// A division of one loop dimension.
struct DimDivision {
  int64_t numSlices;
  /// Iterations of a slice; the last may have fewer.
  int64_t chunk;
};

/// The divisions of `extent` iterations into two to `most` slices of whole
/// multiples of `granularity`, by increasing number. More slices than another
/// division needs for the same chunk are not listed, nor slices of different
/// sizes where the target wants equal ones.
SmallVector<DimDivision> getDivisions(int64_t extent, int64_t granularity,
                                      int64_t most, const Target &target);

/// Where an operation's operands lie that are larger than a core can address. A
/// tile's sticks are as far apart as those of the tensor that it is cut from.
class OperandSpans {
public:
  /// `accumulator`: what the operation writes instead of its result, if it has
  /// another type.
  OperandSpans(SpyreOpInterface op, const ::spyre::DeviceSpec &spec,
               ShapedType accumulator = {});

  /// Nothing but the operands for which `counts` holds from now on.
  void keepOnly(function_ref<bool(OpOperand &)> counts);
  bool isAnyLimited() const { return !operands.empty(); }

  /// Whether cores with slices of `chunks` iterations can address them.
  bool fit(ArrayRef<int64_t> chunks) const;

  struct Cores {
    int64_t number;
    const Target &target;
    /// In a loop reductions are whole.
    bool isInLoop;
  };
  /// Whether some division of `extents` iterations over the cores fits.
  bool canFit(ArrayRef<int64_t> extents, Cores cores) const;

private:
  struct Operand {
    OpOperand *use;
    /// Its device coordinates but for the lane, outermost first, and their
    /// extents.
    SmallVector<AffineExpr> coordinates;
    SmallVector<int64_t> sizes;
    int64_t sizeInBytes;
    /// Of the loops, and of the dimension that indices choose: all of it is
    /// within reach.
    SmallVector<int64_t> ranges;
  };
  void addOperand(SpyreOpInterface op, OpOperand &use, ShapedType type,
                  LayoutAttrInterface layout);
  bool canFitFrom(unsigned dim, ArrayRef<int64_t> extents, Cores cores,
                  int64_t coresLeft, bool canSplitReduction,
                  SmallVectorImpl<int64_t> &chunks) const;

  SmallVector<utils::IteratorType> kinds;
  SmallVector<int64_t> granularity;
  /// Whether the result's elements depend on a loop dimension.
  SmallVector<bool> isWritten;
  /// Whether a reduction can be split over cores.
  bool isCombined = false;
  int64_t maxSpanBytes;
  SmallVector<Operand, 4> operands;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_OPERANDSPANS_H
