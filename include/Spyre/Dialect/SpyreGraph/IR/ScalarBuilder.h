//===- ScalarBuilder.h - Scalar bodies of device operations -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Builds arith and math ops on scalars of the compute types (f32, i1, i32,
// i64), choosing the floating-point or integer op by the operand's type.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SCALARBUILDER_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_SCALARBUILDER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributeInterfaces.h"

namespace mlir::spyre_graph {

/// Towards zero; NaN is 0, and what is out of range the nearest, as the device
/// converts.
int64_t saturateToInt64(double value);

/// The type in which scalar bodies compute: f32, i1, i32 or i64.
Type getComputeType(Type type);

class ScalarBuilder {
public:
  ScalarBuilder(OpBuilder &builder, Location loc) : b(builder), loc(loc) {}

  // Constants. `constantLike(v, a)`: the number `a` in the compute type of v's
  // element type (v: a scalar or a shaped value).
  OpBuilder &getBuilder() { return b; }

  Value constantF32(double value);
  Value constantInt(Type type, int64_t value);
  Value constantLike(Value like, double value);
  Value constantLike(Value like, TypedAttr value);
  Value zeroLike(Value like) { return constantLike(like, 0.0); }

  /// Converts a compute-type value to another compute type: float to integer
  /// towards zero, to the nearest that 32 bits hold and NaN to 0; anything to
  /// i1 by comparing with zero.
  Value convert(Value value, Type type);
  /// Converts a compute-type value to f32.
  Value asFloat(Value x);
  /// An index value in the compute type of `like`'s element type.
  Value fromIndex(Value index, Value like);
  /// Brings both to one type: float over integer over boolean, wide over
  /// narrow.
  void promote(Value &x, Value &y);
  /// An i64 constant as the device can store it: the nearest that 32 bits hold.
  /// Constants of arithmetic stay as they are, whose results wrap; those that
  /// are stored, selected or compared with stored ones are saturated, so that
  /// `x.masked_fill(m, iinfo(int64).min) == iinfo(int64).min` holds.
  Value saturate(Value x);
  Value toBool(Value x);

  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value div(Value x, Value y);
  Value floorDiv(Value x, Value y);
  Value truncDiv(Value x, Value y);
  Value remainder(Value x, Value y);
  Value pow(Value x, Value y);
  Value maximum(Value x, Value y);
  Value minimum(Value x, Value y);
  Value eq(Value x, Value y);
  Value ne(Value x, Value y);
  Value lt(Value x, Value y);
  Value le(Value x, Value y);
  Value logicalNot(Value x);
  Value logicalAnd(Value x, Value y);
  Value logicalOr(Value x, Value y);
  Value logicalXor(Value x, Value y);
  Value bitAnd(Value x, Value y);
  Value bitOr(Value x, Value y);
  Value bitXor(Value x, Value y);
  Value select(Value condition, Value x, Value y);
  /// column - row <= diagonal (lower) or >= diagonal (upper), of index values.
  Value triangle(Value row, Value column, int64_t diagonal, bool upper);
  /// The 4-bit number of an integer at `index`, an index value, from the lowest
  /// bits: 0 to 15.
  Value nibble(Value word, Value index);
  /// x times a constant; x itself where the constant is one.
  Value scale(Value x, double factor);
  /// Product of two operands of any compute types after promotion.
  Value product(Value x, Value y);

  Value abs(Value x);
  Value neg(Value x);
  Value exp(Value x);
  Value expm1(Value x);
  Value log(Value x);
  Value log2(Value x);
  Value log1p(Value x);
  Value sqrt(Value x);
  Value rsqrt(Value x);
  Value reciprocal(Value x);
  Value sin(Value x);
  Value cos(Value x);
  Value tan(Value x);
  Value tanh(Value x);
  Value erf(Value x);
  Value sigmoid(Value x);
  Value geluErf(Value x);
  Value geluTanh(Value x);
  Value softplus(Value x, double beta, double threshold);
  Value floor(Value x);
  Value ceil(Value x);
  Value roundEven(Value x);
  Value trunc(Value x);
  Value sign(Value x);
  Value isNan(Value x);

  /// A 32-bit integer that is less where x is: floats by their bits, with one
  /// zero, and NaN above infinity.
  Value orderOf(Value x);
  /// The float (not a NaN, not -0) whose order this is.
  Value floatOfOrder(Value order);
  /// m and e of x = m 2^e with 0.5 <= |m| < 1; x and 0 where there are none.
  Value mantissa(Value x);
  Value exponent(Value x);
  /// The number next to x towards `target` in the device format of `type`.
  Value nextAfter(Value x, Value target, Type type);

private:
  /// Whether what is left of a division is not zero and has another sign than
  /// the divisor, so that Python's quotient is one less.
  Value isOfOtherSign(Value rest, Value divisor);
  Value bitsOf(Value x);
  Value floatOfBits(Value bits);
  /// Whether x is 0 or not finite.
  Value lacksExponent(Value x);
  void promoteSaturated(Value &x, Value &y);

  OpBuilder &b;
  Location loc;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SCALARBUILDER_H
