// SPDX-License-Identifier: Apache-2.0
//
// The `ktdp` dialect: dialect class, attributes, types, operations and helpers
// to build and to take apart the integer sets that they carry. Rules:
// spec/ktir.md, "Dialect `ktdp`, exact (FE), and drift".

#ifndef SPYRE_DIALECT_KTIR_IR_KTIR_H
#define SPYRE_DIALECT_KTIR_IR_KTIR_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "Spyre/Dialect/KTIR/IR/KTIRAttrInterfaces.h.inc"
#include "Spyre/Dialect/KTIR/IR/KTIRDialect.h.inc"
#include "Spyre/Dialect/KTIR/IR/KTIREnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Spyre/Dialect/KTIR/IR/KTIRAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "Spyre/Dialect/KTIR/IR/KTIRTypes.h.inc"

namespace mlir::ktdp {

/// One base dimension's subscript of construct_indirect_access_tile, for its
/// builder: an affine expression, or an element of an index memref. In the
/// expressions d<i> is intermediate variable i and s<j> is captured value j.
struct Subscript {
  /// Direct.
  Subscript(AffineExpr expr) : exprs({expr}) {}
  /// `ind(indexMemRef[exprs])`: one expression per dimension of the memref.
  Subscript(Value indexMemRef, ArrayRef<AffineExpr> exprs)
      : indexMemRef(indexMemRef), exprs(exprs) {}

  Value indexMemRef; ///< Null if direct.
  SmallVector<AffineExpr, 2> exprs;
};

} // namespace mlir::ktdp

#define GET_OP_CLASSES
#include "Spyre/Dialect/KTIR/IR/KTIROps.h.inc"

namespace mlir::ktdp {

/// The function attribute that holds a kernel's grid, x (fastest) first.
inline constexpr llvm::StringLiteral kGridAttr = "grid";

/// The box { d : 0 <= d_i < extents[i] }. Each ShapedType::kDynamic extent is
/// the next symbol: `-d_i + s_j - 1 >= 0`. Rank 0: the set of the one point.
IntegerSet getBoxSet(MLIRContext *context, ArrayRef<int64_t> extents);

/// Inclusive bounds of a set that pins each dimension by itself. The
/// expressions contain constants and symbols only.
struct BoxBounds {
  SmallVector<AffineExpr> lower;
  SmallVector<AffineExpr> upper;
};

/// The bounds of `set` if each constraint holds one dimension, with coefficient
/// 1 or -1 (in an equality: both bounds), and each dimension has exactly one
/// lower and one upper bound. Nothing otherwise.
std::optional<BoxBounds> matchBoxSet(IntegerSet set);

/// Whether a point is in a set, with its symbols given; false if an expression
/// cannot be evaluated (a divisor that is not positive).
bool containsPoint(IntegerSet set, ArrayRef<int64_t> dims,
                   ArrayRef<int64_t> symbols);

/// The inclusive bounds of a one-dimensional set without symbols that is a
/// range of constants; nothing otherwise.
std::optional<std::pair<int64_t, int64_t>> getConstantRange(IntegerSet set);

/// The grid of a kernel: `grid = [x(, y(, z))]`, given as an array of integers
/// or as a dense i64 array. Success with nullopt if the attribute is absent (a
/// sequence function, or a kernel on one core); an error is emitted on `func`
/// if it is malformed or a size is not positive.
FailureOr<std::optional<SmallVector<int64_t>>> getGrid(func::FuncOp func);

/// Makes the grid attribute: an array of i64 integer attributes.
ArrayAttr getGridAttr(MLIRContext *context, ArrayRef<int64_t> grid);

/// The element type of the memref or tensor that an access tile was made from;
/// null if `tile` is not a result of construct_[indirect_]access_tile.
Type getBaseElementType(Value tile);

} // namespace mlir::ktdp

#endif // SPYRE_DIALECT_KTIR_IR_KTIR_H
