//===- ScalarBuilder.cpp - Scalar bodies of device operations ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::spyre_graph;

Type spyre_graph::getComputeType(Type type) {
  MLIRContext *context = type.getContext();
  if (isa<FloatType>(type))
    return Float32Type::get(context);
  if (type.isInteger(1) || type.isInteger(64))
    return type;
  return IntegerType::get(context, 32);
}

static bool isFloat(Value x) { return isa<FloatType>(x.getType()); }
static bool isBool(Value x) { return x.getType().isInteger(1); }

Value ScalarBuilder::constantF32(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

Value ScalarBuilder::constantInt(Type type, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

int64_t spyre_graph::saturateToInt64(double value) {
  APSInt integer(64, /*isUnsigned=*/false);
  bool isExact;
  APFloat(value).convertToInteger(integer, APFloat::rmTowardZero, &isExact);
  return integer.getSExtValue();
}

Value ScalarBuilder::constantLike(Value like, double value) {
  Type type = getComputeType(getElementTypeOrSelf(like.getType()));
  if (isa<FloatType>(type))
    return constantF32(value);
  return constantInt(type, saturateToInt64(value));
}

Value ScalarBuilder::constantLike(Value like, TypedAttr value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return constantLike(like, number.getValueAsDouble());
  APInt integer = cast<IntegerAttr>(value).getValue();
  int64_t number = integer.getBitWidth() == 1 ? integer.getZExtValue()
                                              : integer.getSExtValue();
  Type type = getComputeType(getElementTypeOrSelf(like.getType()));
  if (isa<FloatType>(type))
    return constantF32(static_cast<double>(number));
  if (type.isInteger(1))
    return constantInt(type, number != 0);
  return constantInt(type, number);
}

Value ScalarBuilder::convert(Value value, Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  if (type.isInteger(1))
    return toBool(value);
  if (isa<FloatType>(type)) {
    assert(!isFloat(value) && "f32 is the only floating-point compute type");
    if (isBool(value))
      return arith::UIToFPOp::create(b, loc, type, value);
    return arith::SIToFPOp::create(b, loc, type, value);
  }
  if (isFloat(value)) {
    // The runtime's conversion takes numbers out of range to the nearest that
    // fits, and the device stores 32 bits.
    Type narrow = b.getI32Type();
    Value integer = arith::FPToSIOp::create(b, loc, narrow, value);
    return convert(integer, type);
  }
  if (isBool(value))
    return arith::ExtUIOp::create(b, loc, type, value);
  if (from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(b, loc, type, value);
  return arith::TruncIOp::create(b, loc, type, value);
}

Value ScalarBuilder::saturate(Value x) {
  APInt number;
  if (!x.getType().isInteger(64) || !matchPattern(x, m_ConstantInt(&number)))
    return x;
  return constantInt(x.getType(), number.truncSSat(32).getSExtValue());
}

Value ScalarBuilder::fromIndex(Value index, Value like) {
  Type type = getComputeType(getElementTypeOrSelf(like.getType()));
  Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  return convert(wide, type);
}

void ScalarBuilder::promote(Value &x, Value &y) {
  auto rank = [](Value v) {
    return isFloat(v) ? 100u : v.getType().getIntOrFloatBitWidth();
  };
  if (rank(x) < rank(y))
    x = convert(x, y.getType());
  else if (rank(y) < rank(x))
    y = convert(y, x.getType());
}

void ScalarBuilder::promoteSaturated(Value &x, Value &y) {
  promote(x, y);
  x = saturate(x);
  y = saturate(y);
}

Value ScalarBuilder::toBool(Value x) {
  if (isBool(x))
    return x;
  return ne(x, zeroLike(x));
}

Value ScalarBuilder::asFloat(Value x) { return convert(x, b.getF32Type()); }

/// The operation for the type that both values have.
template <typename FloatOp, typename BoolOp, typename IntOp>
static Value ofType(OpBuilder &b, Location loc, Value x, Value y) {
  if (isFloat(x))
    return FloatOp::create(b, loc, x, y);
  if (isBool(x))
    return BoolOp::create(b, loc, x, y);
  return IntOp::create(b, loc, x, y);
}

Value ScalarBuilder::add(Value x, Value y) {
  promote(x, y);
  return ofType<arith::AddFOp, arith::OrIOp, arith::AddIOp>(b, loc, x, y);
}

Value ScalarBuilder::sub(Value x, Value y) {
  promote(x, y);
  return ofType<arith::SubFOp, arith::XOrIOp, arith::SubIOp>(b, loc, x, y);
}

Value ScalarBuilder::mul(Value x, Value y) {
  promote(x, y);
  return ofType<arith::MulFOp, arith::AndIOp, arith::MulIOp>(b, loc, x, y);
}

Value ScalarBuilder::div(Value x, Value y) {
  return arith::DivFOp::create(b, loc, asFloat(x), asFloat(y));
}

Value ScalarBuilder::floorDiv(Value x, Value y) {
  promote(x, y);
  if (!isFloat(x))
    return arith::FloorDivSIOp::create(b, loc, x, y);
  // Python divides x minus what is left, so that the result is right where x /
  // y would round up to an integer. What is left of a finite x by an infinite y
  // is all of x: one is subtracted from a quotient of zero.
  Value rest = arith::RemFOp::create(b, loc, x, y);
  Value quotient = roundEven(arith::DivFOp::create(b, loc, sub(x, rest), y));
  Value below = sub(quotient, constantLike(quotient, 1.0));
  Value rounded = select(isOfOtherSign(rest, y), below, quotient);
  // Division by zero gives what x / y gives.
  Value plain = arith::DivFOp::create(b, loc, x, y);
  return select(eq(y, zeroLike(y)), plain, rounded);
}

Value ScalarBuilder::truncDiv(Value x, Value y) {
  promote(x, y);
  if (!isFloat(x))
    return arith::DivSIOp::create(b, loc, x, y);
  return trunc(arith::DivFOp::create(b, loc, x, y));
}

Value ScalarBuilder::remainder(Value x, Value y) {
  promote(x, y);
  Value rest = isFloat(x) ? arith::RemFOp::create(b, loc, x, y).getResult()
                          : arith::RemSIOp::create(b, loc, x, y).getResult();
  return select(isOfOtherSign(rest, y), add(rest, y), rest);
}

Value ScalarBuilder::isOfOtherSign(Value rest, Value divisor) {
  Value zero = zeroLike(rest);
  Value signsDiffer = logicalXor(lt(rest, zero), lt(divisor, zero));
  return logicalAnd(ne(rest, zero), signsDiffer);
}

Value ScalarBuilder::pow(Value x, Value y) {
  if (isFloat(x) || isFloat(y))
    return math::PowFOp::create(b, loc, asFloat(x), asFloat(y));
  promote(x, y);
  // Zero to a negative power is zero in PyTorch, and undefined for
  // math.ipowi.
  APInt exponent;
  if (!matchPattern(y, m_ConstantInt(&exponent)) || exponent.isNegative())
    y = select(logicalAnd(eq(x, zeroLike(x)), lt(y, zeroLike(y))),
               constantInt(y.getType(), 1), y);
  return math::IPowIOp::create(b, loc, x, y);
}

Value ScalarBuilder::maximum(Value x, Value y) {
  promoteSaturated(x, y);
  return ofType<arith::MaximumFOp, arith::OrIOp, arith::MaxSIOp>(b, loc, x, y);
}

Value ScalarBuilder::minimum(Value x, Value y) {
  promoteSaturated(x, y);
  return ofType<arith::MinimumFOp, arith::AndIOp, arith::MinSIOp>(b, loc, x, y);
}

static Value compare(OpBuilder &b, Location loc, Value x, Value y,
                     arith::CmpFPredicate floating,
                     arith::CmpIPredicate integer,
                     arith::CmpIPredicate boolean) {
  if (isFloat(x))
    return arith::CmpFOp::create(b, loc, floating, x, y);
  return arith::CmpIOp::create(b, loc, isBool(x) ? boolean : integer, x, y);
}

Value ScalarBuilder::eq(Value x, Value y) {
  promoteSaturated(x, y);
  return compare(b, loc, x, y, arith::CmpFPredicate::OEQ,
                 arith::CmpIPredicate::eq, arith::CmpIPredicate::eq);
}

Value ScalarBuilder::ne(Value x, Value y) {
  promoteSaturated(x, y);
  return compare(b, loc, x, y, arith::CmpFPredicate::UNE,
                 arith::CmpIPredicate::ne, arith::CmpIPredicate::ne);
}

Value ScalarBuilder::lt(Value x, Value y) {
  promoteSaturated(x, y);
  return compare(b, loc, x, y, arith::CmpFPredicate::OLT,
                 arith::CmpIPredicate::slt, arith::CmpIPredicate::ult);
}

Value ScalarBuilder::le(Value x, Value y) {
  promoteSaturated(x, y);
  return compare(b, loc, x, y, arith::CmpFPredicate::OLE,
                 arith::CmpIPredicate::sle, arith::CmpIPredicate::ule);
}

Value ScalarBuilder::logicalNot(Value x) {
  Value condition = toBool(x);
  return arith::XOrIOp::create(b, loc, condition,
                               constantInt(b.getI1Type(), 1));
}

Value ScalarBuilder::logicalAnd(Value x, Value y) {
  return arith::AndIOp::create(b, loc, toBool(x), toBool(y));
}

Value ScalarBuilder::logicalOr(Value x, Value y) {
  return arith::OrIOp::create(b, loc, toBool(x), toBool(y));
}

Value ScalarBuilder::logicalXor(Value x, Value y) {
  return arith::XOrIOp::create(b, loc, toBool(x), toBool(y));
}

Value ScalarBuilder::bitAnd(Value x, Value y) {
  promote(x, y);
  return arith::AndIOp::create(b, loc, x, y);
}

Value ScalarBuilder::bitOr(Value x, Value y) {
  promote(x, y);
  return arith::OrIOp::create(b, loc, x, y);
}

Value ScalarBuilder::bitXor(Value x, Value y) {
  promote(x, y);
  return arith::XOrIOp::create(b, loc, x, y);
}

Value ScalarBuilder::select(Value condition, Value x, Value y) {
  promoteSaturated(x, y);
  return arith::SelectOp::create(b, loc, condition, x, y);
}

Value ScalarBuilder::triangle(Value row, Value column, int64_t diagonal,
                              bool upper) {
  Value distance = arith::SubIOp::create(b, loc, column, row);
  Value bound = arith::ConstantIndexOp::create(b, loc, diagonal);
  return arith::CmpIOp::create(
      b, loc, upper ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sle,
      distance, bound);
}

Value ScalarBuilder::nibble(Value word, Value index) {
  Type type = word.getType();
  Value bits = arith::MulIOp::create(b, loc, index,
                                     arith::ConstantIndexOp::create(b, loc, 4));
  Value amount =
      convert(arith::IndexCastOp::create(b, loc, b.getI64Type(), bits), type);
  return bitAnd(arith::ShRUIOp::create(b, loc, word, amount),
                constantInt(type, 15));
}

Value ScalarBuilder::scale(Value x, double factor) {
  return factor == 1.0 ? x : mul(x, constantLike(x, factor));
}

Value ScalarBuilder::product(Value x, Value y) {
  promote(x, y);
  return mul(x, y);
}

Value ScalarBuilder::abs(Value x) {
  if (isFloat(x))
    return math::AbsFOp::create(b, loc, x);
  return isBool(x) ? x : math::AbsIOp::create(b, loc, x).getResult();
}

Value ScalarBuilder::neg(Value x) {
  if (isFloat(x))
    return arith::NegFOp::create(b, loc, x);
  return sub(zeroLike(x), x);
}

Value ScalarBuilder::exp(Value x) {
  return math::ExpOp::create(b, loc, asFloat(x));
}
Value ScalarBuilder::expm1(Value x) {
  return math::ExpM1Op::create(b, loc, asFloat(x));
}
Value ScalarBuilder::log(Value x) {
  return math::LogOp::create(b, loc, asFloat(x));
}
Value ScalarBuilder::log2(Value x) {
  return math::Log2Op::create(b, loc, asFloat(x));
}
Value ScalarBuilder::log1p(Value x) {
  return math::Log1pOp::create(b, loc, asFloat(x));
}
Value ScalarBuilder::sqrt(Value x) {
  return math::SqrtOp::create(b, loc, asFloat(x));
}
Value ScalarBuilder::rsqrt(Value x) {
  return math::RsqrtOp::create(b, loc, asFloat(x));
}
Value ScalarBuilder::reciprocal(Value x) {
  return arith::DivFOp::create(b, loc, constantF32(1.0), asFloat(x));
}
Value ScalarBuilder::sin(Value x) {
  return math::SinOp::create(b, loc, asFloat(x));
}
Value ScalarBuilder::cos(Value x) {
  return math::CosOp::create(b, loc, asFloat(x));
}
Value ScalarBuilder::tan(Value x) {
  return math::TanOp::create(b, loc, asFloat(x));
}
Value ScalarBuilder::tanh(Value x) {
  return math::TanhOp::create(b, loc, asFloat(x));
}
Value ScalarBuilder::erf(Value x) {
  return math::ErfOp::create(b, loc, asFloat(x));
}

Value ScalarBuilder::sigmoid(Value x) {
  Value one = constantF32(1.0);
  return div(one, add(one, exp(neg(asFloat(x)))));
}

Value ScalarBuilder::geluErf(Value x) {
  // x/2 * erfc(-x / sqrt 2): no cancellation in the negative tail.
  Value arg = mul(asFloat(x), constantF32(-1.0 / std::sqrt(2.0)));
  Value tail = math::ErfcOp::create(b, loc, arg);
  return mul(mul(asFloat(x), constantF32(0.5)), tail);
}

Value ScalarBuilder::geluTanh(Value x) {
  // x/2 * (1 + tanh u) = x * sigmoid(2u), which does not cancel.
  Value value = asFloat(x);
  Value cube = mul(mul(value, value), value);
  Value u = add(value, mul(cube, constantF32(0.044715)));
  return mul(value, sigmoid(mul(u, constantF32(2.0 * std::sqrt(2.0 / M_PI)))));
}

Value ScalarBuilder::softplus(Value x, double beta, double threshold) {
  Value value = asFloat(x);
  Value scaled = scale(value, beta);
  Value soft = scale(log1p(exp(scaled)), 1.0 / beta);
  return select(lt(constantF32(threshold), scaled), value, soft);
}

Value ScalarBuilder::floor(Value x) {
  return isFloat(x) ? math::FloorOp::create(b, loc, x).getResult() : x;
}
Value ScalarBuilder::ceil(Value x) {
  return isFloat(x) ? math::CeilOp::create(b, loc, x).getResult() : x;
}
Value ScalarBuilder::roundEven(Value x) {
  return isFloat(x) ? math::RoundEvenOp::create(b, loc, x).getResult() : x;
}
Value ScalarBuilder::trunc(Value x) {
  return isFloat(x) ? math::TruncOp::create(b, loc, x).getResult() : x;
}

Value ScalarBuilder::sign(Value x) {
  if (isBool(x))
    return x;
  Value zero = zeroLike(x), one = constantLike(x, 1.0),
        minusOne = constantLike(x, -1.0);
  return select(lt(zero, x), one, select(lt(x, zero), minusOne, zero));
}

Value ScalarBuilder::isNan(Value x) {
  if (!isFloat(x))
    return constantInt(b.getI1Type(), 0);
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
}

//===----------------------------------------------------------------------===//
// Bits of floats
//===----------------------------------------------------------------------===//

static constexpr int32_t kSignBit = std::numeric_limits<int32_t>::min(),
                         kMagnitude = std::numeric_limits<int32_t>::max();
/// Fraction bits of fp32 and its exponent's bias.
static constexpr int kFractionBits = 23, kBias = 127;

Value ScalarBuilder::bitsOf(Value x) {
  return arith::BitcastOp::create(b, loc, b.getI32Type(), x);
}

Value ScalarBuilder::floatOfBits(Value bits) {
  return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
}

Value ScalarBuilder::orderOf(Value x) {
  Type i32 = b.getI32Type();
  if (!isFloat(x))
    return convert(x, i32);
  Value bits = bitsOf(x);
  Value magnitude = bitAnd(bits, constantInt(i32, kMagnitude));
  Value order = select(lt(bits, zeroLike(bits)), neg(magnitude), magnitude);
  return select(isNan(x), constantInt(i32, kMagnitude), order);
}

Value ScalarBuilder::floatOfOrder(Value order) {
  Type i32 = b.getI32Type();
  Value sign = bitAnd(order, constantInt(i32, kSignBit));
  return floatOfBits(bitOr(abs(order), sign));
}

Value ScalarBuilder::lacksExponent(Value x) {
  Value size = abs(x);
  return logicalOr(eq(x, zeroLike(x)),
                   logicalNot(lt(size, constantF32(HUGE_VAL))));
}

/// Subnormal numbers have no bits of an exponent; times this they have.
static constexpr int kRaisedExponent = 24;

static Value raise(ScalarBuilder &s, Value x) {
  return s.mul(x, s.constantF32(std::ldexp(1.0, kRaisedExponent)));
}

static Value isSubnormal(ScalarBuilder &s, Value x) {
  return s.lt(s.abs(x), s.constantF32(std::ldexp(1.0, 1 - kBias)));
}

Value ScalarBuilder::mantissa(Value x) {
  Value value = asFloat(x);
  Value normal = select(isSubnormal(*this, value), raise(*this, value), value);
  Type i32 = b.getI32Type();
  constexpr int32_t kFraction = (1 << kFractionBits) - 1;
  Value kept = bitAnd(bitsOf(normal), constantInt(i32, kSignBit | kFraction));
  Value half = constantInt(i32, (kBias - 1) << kFractionBits);
  return select(lacksExponent(value), value, floatOfBits(bitOr(kept, half)));
}

Value ScalarBuilder::exponent(Value x) {
  Value value = asFloat(x);
  Value small = isSubnormal(*this, value);
  Value normal = select(small, raise(*this, value), value);
  Type i32 = b.getI32Type();
  Value biased = arith::ShRUIOp::create(
      b, loc, bitAnd(bitsOf(normal), constantInt(i32, kMagnitude)),
      constantInt(i32, kFractionBits));
  Value bias = select(small, constantInt(i32, kBias - 1 + kRaisedExponent),
                      constantInt(i32, kBias - 1));
  return select(lacksExponent(value), constantInt(i32, 0), sub(biased, bias));
}

namespace {
/// The numbers of a format, by their order.
struct NumberRange {
  int32_t step;     ///< from one number to the next
  int32_t smallest; ///< above 0
  int32_t infinity; ///< after the largest
};
} // namespace

static NumberRange getNumbers(Type type) {
  if (type.isF32())
    return {1, 1, 0xff << kFractionBits};
  // DL16 (spec/numerics.md): 9 fraction bits, exponents from -31 to 32, no
  // subnormals; the codes of 2^-31 and of the largest number are others.
  constexpr int32_t kStep = 1 << (kFractionBits - 9);
  auto orderOfPower = [](int exponent) {
    return (kBias + exponent) << kFractionBits;
  };
  return {kStep, orderOfPower(-31) + kStep, orderOfPower(33) - kStep};
}

Value ScalarBuilder::nextAfter(Value x, Value target, Type type) {
  Value from = asFloat(x), to = asFloat(target);
  NumberRange numbers = getNumbers(getElementTypeOrSelf(type));
  Type i32 = b.getI32Type();
  auto number = [&](int32_t value) { return constantInt(i32, value); };
  auto clamp = [&](Value value, int32_t limit) {
    return minimum(maximum(value, number(-limit)), number(limit));
  };
  Value order = clamp(orderOf(from), numbers.infinity), zero = number(0);
  auto step = [&](int32_t sign) {
    Value next = add(order, number(sign * numbers.step));
    // There is nothing between 0 and the smallest numbers.
    Value away = number(sign * numbers.smallest);
    Value isInside = lt(abs(next), number(numbers.smallest));
    next = select(isInside, zero, next);
    return select(eq(order, zero), away, next);
  };
  Value next = select(lt(from, to), step(1), step(-1));
  Value infinity = constantF32(HUGE_VAL);
  Value result = floatOfOrder(next);
  Value isBeyond = le(number(numbers.infinity), abs(next));
  result =
      select(isBeyond, select(lt(next, zero), neg(infinity), infinity), result);
  // Equal numbers give the target, and so does a NaN of either.
  result = select(eq(from, to), to, result);
  return select(logicalOr(isNan(from), isNan(to)), add(from, to), result);
}
