//===- SpyreGraph.h - The spyre_graph dialect -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPH_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPH_H

#include "Spyre/Device/DataFormat.h"
#include "Spyre/Device/TensorLayout.h"
#include "Spyre/Dialect/SpyreGraph/IR/ScalarBuilder.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphEnums.h.inc"

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphAttrInterfaces.h.inc"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphAttrs.h.inc"

namespace mlir::spyre_graph {

/// Compute unit of a core (spec/hardware.md): PT, the systolic array, or SFU,
/// the vector unit.
enum class Unit { PT, SFU };

/// How iterations that write one element combine. ArgMax and ArgMin carry the
/// value and its index. The Scan ones write every partial result, of extrema
/// the value or the index. The Sort ones write all elements in order.
enum class Combiner {
  None,
  Add,
  Mul,
  Max,
  Min,
  And,
  Or,
  ArgMax,
  ArgMin,
  ScanAdd,
  ScanMax,
  ScanMin,
  Sort,
  SortDescending
};

/// What a reduction, scan or sort returns of each ranked element, the first in
/// the order of its combiner first: value or index. None: it does not rank
/// elements.
enum class RankedResult { None, Value, Index };

/// Whether partial results of several cores can be combined (SG-DIVISION-C3).
bool isCombinedAcrossCores(Combiner combiner);
/// Whether every partial result is written.
inline bool isScan(Combiner combiner) {
  return combiner == Combiner::ScanAdd || combiner == Combiner::ScanMax ||
         combiner == Combiner::ScanMin;
}
/// Whether all elements are written, in another order.
inline bool isSort(Combiner combiner) {
  return combiner == Combiner::Sort || combiner == Combiner::SortDescending;
}

/// Families of layout rules (spec/layouts.md, "Propagation rules").
enum class LayoutRule {
  Pointwise,
  Reduction,
  Matmul,
  Gather,
  Scatter,
  Scan,
  Any
};

/// Operand `operand` is accessed along its dimension `dim` at the value that
/// operand `index` holds.
struct IndirectAccess {
  unsigned operand;
  unsigned index;
  int64_t dim;
};

/// An operation writes its init along dimension `dim` from `expr` on, an
/// expression of the function's symbols.
struct InitOffset {
  int64_t dim;
  AffineExpr expr;
};

/// The device format in which elements of `type` are stored (spec/layouts.md,
/// "Host dtype"); nothing if the device cannot store them.
std::optional<::spyre::DataFormat> getDeviceFormat(Type type);

/// The element type a KTIR kernel sees in memory: f16 for f16, bf16 and i1,
/// i32 for i64, i32 and ui8 (spec/numerics.md, "In KTIR").
Type getDeviceElementType(Type type);

/// The layout in the encoding or memory space of a shaped type, or null.
LayoutAttrInterface getLayout(Type type);

/// How many steps of one dimension share a stick of a layout, alternating with
/// those of the stick dimension: 1 but for the second factors of products of 8
/// bits (LayoutAttr, `packed`).
int64_t getNumPacked(LayoutAttrInterface layout);
/// That dimension, or -1 if there is none.
int64_t getPackedDim(LayoutAttrInterface layout);
/// Steps of a dimension that share a stick: 1 outside of sticks.
int64_t getStepsPerStick(LayoutAttrInterface layout, ArrayRef<int64_t> shape,
                         int64_t dim);

/// Simplifies an affine map whose dimension d lies in [0, extents[d]): resolves
/// floor divisions and moduli that the ranges decide.
AffineMap simplifyWithRanges(AffineMap map, ArrayRef<int64_t> extents);
AffineExpr simplifyWithRanges(AffineExpr expr, ArrayRef<int64_t> extents);

/// Smallest and largest value of an expression over the same box (an
/// over-approximation for expressions that use a dimension more than once).
std::pair<int64_t, int64_t> getRange(AffineExpr expr,
                                     ArrayRef<int64_t> extents);

/// The value of an expression without symbols where dimension d is `point[d]`.
int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> point);

namespace detail {
LogicalResult verifySpyreOp(Operation *op);
} // namespace detail

} // namespace mlir::spyre_graph

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphOpInterfaces.h.inc"

namespace mlir::spyre_graph::detail {

/// Loop extents and one map per operand.
struct LoopStructure {
  SmallVector<int64_t> extents;
  SmallVector<AffineMap> maps;
};

LoopStructure getPointwiseLoops(Operation *op);
LoopStructure getReductionLoops(Operation *op, ArrayRef<int64_t> dims);
LoopStructure getMatmulLoops(Operation *op);
LoopStructure getGatherLoops(Operation *op, int64_t axis);
LoopStructure getScatterLoops(Operation *op, int64_t axis);
SmallVector<utils::IteratorType> getDefaultLoopKinds(SpyreOpInterface op);

// Checks of what the functions above rely on; they run first.
/// The op has `least` to `most` logical operands.
LogicalResult verifyOperandCount(SpyreOpInterface op, unsigned least,
                                 unsigned most);
/// An op without a default form says its loops.
LogicalResult verifyHasLoops(SpyreOpInterface op);
/// `dim` is a loop dimension of an op whose default loops are its init's.
LogicalResult verifyLoopDim(SpyreOpInterface op, int64_t dim);
LogicalResult verifyPointwise(SpyreOpInterface op);
/// The length of runs, and indices that come as an input.
LogicalResult verifySort(SpyreOpInterface op);
LogicalResult verifyReduction(SpyreOpInterface op, ArrayRef<int64_t> dims);
LogicalResult verifyMatmul(SpyreOpInterface op, int64_t numScales,
                           bool hasBias);
LogicalResult verifyUnpackInt4(SpyreOpInterface op, int64_t dim);
LogicalResult verifyGather(SpyreOpInterface op);
LogicalResult verifyScatter(SpyreOpInterface op);
LogicalResult verifyReshard(SpyreOpInterface op, WorkDivisionAttr source);
LogicalResult verifyInsert(SpyreOpInterface op, int64_t axis, AffineMap offset);

/// Tensor inputs and immediates in logical order, all in compute types.
SmallVector<Value> getLogicalOperands(ScalarBuilder &b,
                                      std::optional<ArrayAttr> immediates,
                                      ValueRange ins, Value init);
/// One over the number of iterations that a mean combines, less `correction`;
/// infinity if there are no more than that.
double getMeanScale(SpyreOpInterface op, double correction = 0);
/// The same as an f32; `count` as for buildEpilogue.
Value buildMeanScale(ScalarBuilder &b, SpyreOpInterface op, double correction,
                     function_ref<Value()> count);

void getDeviceOpEffects(
    DestinationStyleOpInterface op,
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects);

} // namespace mlir::spyre_graph::detail

#define GET_OP_CLASSES
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphOps.h.inc"

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPH_H
