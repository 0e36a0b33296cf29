// SPDX-License-Identifier: Apache-2.0
//===- Pointwise.cpp - Elementwise operators --------------------*- C++ -*-===//

#include "ATenCall.h"

#include <cmath>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

/// Adds "aten.<name>.default" with one tensor operand.
template <typename OpTy>
static void addUnary(ATenTable &table, ArrayRef<StringRef> names) {
  table.add(names, "self", [](ATenCall &c) {
    return c.pointwise<OpTy>(c.type(), {c.tensor("self")});
  });
}

template <typename OpTy>
static void addBinary(ATenTable &table, ArrayRef<StringRef> names) {
  table.add(names, "self other", [](ATenCall &c) {
    return c.pointwise<OpTy>(c.type(), {c.operand("self"), c.operand("other")});
  });
}

static double asDouble(TypedAttr attribute) {
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  APInt integer = cast<IntegerAttr>(attribute).getValue();
  return integer.roundToDouble(/*isSigned=*/integer.getBitWidth() > 1);
}

static bool isNumber(TypedAttr attribute, double value) {
  return asDouble(attribute) == value;
}

static APInt get64Bits(TypedAttr integer) {
  APInt value = cast<IntegerAttr>(integer).getValue();
  return value.getBitWidth() == 1 ? value.zext(64) : value;
}

/// Integers wrap.
static TypedAttr multiply(const ATenCall &c, IntegerAttr x, IntegerAttr y) {
  return c.immInt((get64Bits(x) * get64Bits(y)).getSExtValue());
}

static TypedAttr negate(const ATenCall &c, TypedAttr attribute) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return multiply(c, integer, c.b.getI64IntegerAttr(-1));
  return c.imm(-asDouble(attribute));
}

/// A number by which elements are multiplied: integer types must have it.
static Operand factor(const ATenCall &c, StringRef name) {
  Type element = c.type().getElementType();
  if (!isa<IntegerType>(element))
    return c.operand(name);
  Operand result = c.element(name, element);
  c.require(!result.tensor || isa<IntegerType>(elementOf(result.tensor)),
            "a factor of integers must be known");
  return result;
}

/// PyTorch's rules for the alpha of a sum.
static TypedAttr getAlpha(const ATenCall &c) {
  TypedAttr alpha = c.scalar("alpha");
  Type element = c.type().getElementType();
  if (isa<IntegerType>(element) && isa<FloatAttr>(alpha))
    c.wrong("alpha of integers must not be a floating point number");
  if (!isBool(element) && isBool(alpha.getType()))
    c.wrong("a boolean alpha is for boolean results only");
  return factor(c, "alpha").number;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static bool isBoolean(const Operand &operand) {
  return isBool(operand.tensor ? elementOf(operand.tensor)
                               : operand.number.getType());
}

/// self + alpha x other, rounded once; `reversed` swaps the roles.
static Value lowerAddSub(ATenCall &c, bool subtract, bool reversed) {
  Operand x = c.operand(reversed ? "other" : "self");
  Operand y = c.operand(reversed ? "self" : "other");
  if (subtract && (isBoolean(x) || isBoolean(y)))
    c.wrong("subtraction with booleans is not supported");
  if (c.isTensor("alpha")) {
    c.require(!subtract, "sub with a tensor as alpha is not supported");
    return c.pointwise<FmaOp>(c.type(), {y, c.operand("alpha"), x});
  }
  TypedAttr alpha = c.has("alpha") ? getAlpha(c) : c.immInt(1);
  if (isNumber(alpha, 1.0)) {
    if (subtract)
      return c.pointwise<SubOp>(c.type(), {x, y});
    return c.pointwise<AddOp>(c.type(), {x, y});
  }
  if (subtract)
    alpha = negate(c, alpha);
  if (y.number) {
    // Two numbers cannot be multiplied by an op: put the product in.
    auto number = dyn_cast<IntegerAttr>(y.number),
         integer = dyn_cast<IntegerAttr>(alpha);
    double product = c.number(reversed ? "self" : "other") * c.number("alpha") *
                     (subtract ? -1.0 : 1.0);
    return c.pointwise<AddOp>(
        c.type(),
        {x, number && integer ? multiply(c, number, integer) : c.imm(product)});
  }
  return c.pointwise<FmaOp>(c.type(), {y, alpha, x});
}

static Value lowerDiv(ATenCall &c) {
  Operand x = c.operand("self"), y = c.operand("other");
  std::string mode = c.text("rounding_mode");
  if (mode.empty())
    return c.pointwise<DivOp>(c.type(), {x, y});
  if (mode == "floor")
    return c.pointwise<FloorDivOp>(c.type(), {x, y});
  c.require(mode == "trunc", "unknown rounding mode '" + mode + "'");
  return c.pointwise<TruncDivOp>(c.type(), {x, y});
}

static Value lowerPowScalar(ATenCall &c) {
  Value x = c.tensor("self");
  RankedTensorType type = c.type();
  bool toFloat = isa<FloatType>(type.getElementType());
  TypedAttr exponent = c.scalar("exponent");
  if (!toFloat && asDouble(exponent) < 0)
    c.wrong("integers to negative integer powers are not allowed");
  if (!toFloat)
    exponent = c.elementNumber("exponent", type.getElementType());
  if (isNumber(exponent, 0.0))
    return c.full(type, toFloat ? c.imm(1.0) : c.immInt(1));
  if (isNumber(exponent, 1.0))
    return c.copy(x, type);
  // The square of an integer may not be one that there is.
  if (isNumber(exponent, 2.0))
    return c.pointwise<SquareOp>(
        type, {toFloat ? c.cast(x, type.getElementType()) : x});
  if (toFloat) {
    if (isNumber(exponent, 0.5))
      return c.pointwise<SqrtOp>(type, {x});
    if (isNumber(exponent, -0.5))
      return c.pointwise<RsqrtOp>(type, {x});
    if (isNumber(exponent, -1.0))
      return c.pointwise<ReciprocalOp>(type, {x});
  }
  return c.pointwise<PowOp>(type, {x, exponent});
}

/// (end - self) x weight + self, or, as PyTorch has it from the middle on,
/// (end - self) x (weight - 1) + end: it gives `end` itself for a weight of 1,
/// and an infinite `self` its sign at one of 0.5.
static Value lowerLerp(ATenCall &c) {
  Operand self = c.operand("self"), end = c.operand("end");
  Operand weight = c.operand("weight");
  auto interpolate = [&](Operand factor, Operand nearest) {
    // (x - mean) x factor x 1 + nearest, rounded once.
    return c.pointwise<LayerNormNormOp>(
        c.type(), {end, self, factor, c.imm(1.0), nearest});
  };
  if (weight.number) {
    auto number = static_cast<float>(c.number("weight"));
    if (std::abs(number) < 0.5f)
      return interpolate(c.imm(number), self);
    return interpolate(c.imm(number - 1.0f), end);
  }
  RankedTensorType type = typeOf(weight.tensor);
  Value magnitude = c.pointwise<AbsOp>(type, {weight});
  Value isNearSelf = c.pointwise<LtOp>(c.typeLike(magnitude, c.b.getI1Type()),
                                       {magnitude, c.imm(0.5)});
  Value fromEnd = c.pointwise<SubOp>(type, {weight, c.imm(1.0)});
  Value factor = c.pointwise<WhereOp>(type, {isNearSelf, weight, fromEnd});
  return interpolate(factor,
                     c.pointwise<WhereOp>(c.type(), {isNearSelf, self, end}));
}

static void addArithmetic(ATenTable &table) {
  table.add({"aten.add.Tensor", "aten.add.Scalar"}, "self other alpha",
            [](ATenCall &c) { return lowerAddSub(c, false, false); });
  table.add({"aten.sub.Tensor", "aten.sub.Scalar"}, "self other alpha",
            [](ATenCall &c) { return lowerAddSub(c, true, false); });
  table.add({"aten.rsub.Tensor", "aten.rsub.Scalar"}, "self other alpha",
            [](ATenCall &c) { return lowerAddSub(c, true, true); });
  addBinary<MulOp>(table, {"aten.mul.Tensor", "aten.mul.Scalar"});
  table.add({"aten.div.Tensor", "aten.div.Scalar", "aten.div.Tensor_mode",
             "aten.div.Scalar_mode", "aten.true_divide.Tensor"},
            "self other rounding_mode", lowerDiv);
  addBinary<FloorDivOp>(
      table, {"aten.floor_divide.default", "aten.floor_divide.Scalar"});
  addBinary<RemainderOp>(table,
                         {"aten.remainder.Tensor", "aten.remainder.Scalar",
                          "aten.remainder.Scalar_Tensor"});
  addBinary<MaximumOp>(table, {"aten.maximum.default", "aten.max.other"});
  addBinary<MinimumOp>(table, {"aten.minimum.default", "aten.min.other"});

  table.add({"aten.pow.Tensor_Scalar"}, "self exponent", lowerPowScalar);
  table.add({"aten.pow.Tensor_Tensor", "aten.pow.Scalar"}, "self exponent",
            [](ATenCall &c) {
              return c.pointwise<PowOp>(
                  c.type(), {c.operand("self"), c.operand("exponent")});
            });

  table.add({"aten.addcmul.default"}, "self tensor1 tensor2 value",
            [](ATenCall &c) {
              Operand self = c.operand("self"), x = c.operand("tensor1"),
                      y = c.operand("tensor2");
              if (!c.has("value") ||
                  (!c.isTensor("value") && isNumber(c.scalar("value"), 1.0)))
                return c.pointwise<FmaOp>(c.type(), {x, y, self});
              if (isa<IntegerType>(c.type().getElementType())) {
                Value product = c.pointwise<MulOp>(c.type(), {x, y});
                return c.pointwise<FmaOp>(c.type(),
                                          {product, factor(c, "value"), self});
              }
              // (x - 0) x value x y + self, rounded once.
              return c.pointwise<LayerNormNormOp>(
                  c.type(), {x, c.imm(0.0), c.operand("value"), y, self});
            });
  table.add({"aten.addcdiv.default"}, "self tensor1 tensor2 value",
            [](ATenCall &c) {
              if (isa<IntegerType>(elementOf(c.tensor("tensor1"))) &&
                  isa<IntegerType>(elementOf(c.tensor("tensor2"))))
                c.wrong("addcdiv does not divide integers");
              Operand value =
                  c.has("value") ? c.operand("value") : Operand(c.imm(1.0));
              return c.pointwise<AddCDivOp>(
                  c.type(), {c.operand("self"), c.operand("tensor1"),
                             c.operand("tensor2"), value});
            });
  table.add({"aten.lerp.Scalar", "aten.lerp.Tensor"}, "self end weight",
            lowerLerp);
}

//===----------------------------------------------------------------------===//
// Functions of one element
//===----------------------------------------------------------------------===//

static Value lowerClamp(ATenCall &c, StringRef low, StringRef high) {
  Value x = c.tensor("self");
  Type element = c.type().getElementType();
  auto has = [&](StringRef name) { return !name.empty() && c.has(name); };
  c.require(has(low) || has(high), "expects a lower or an upper bound");
  if (!has(high))
    return c.pointwise<MaximumOp>(c.type(), {x, c.element(low, element)});
  if (!has(low))
    return c.pointwise<MinimumOp>(c.type(), {x, c.element(high, element)});
  return c.pointwise<ClampOp>(
      c.type(), {x, c.element(low, element), c.element(high, element)});
}

static void addUnaryRows(ATenTable &table) {
  addUnary<AbsOp>(table, {"aten.abs.default"});
  addUnary<NegOp>(table, {"aten.neg.default"});
  addUnary<ExpOp>(table, {"aten.exp.default"});
  addUnary<Expm1Op>(table, {"aten.expm1.default"});
  addUnary<LogOp>(table, {"aten.log.default"});
  addUnary<Log2Op>(table, {"aten.log2.default"});
  addUnary<Log1pOp>(table, {"aten.log1p.default"});
  addUnary<SqrtOp>(table, {"aten.sqrt.default"});
  addUnary<RsqrtOp>(table, {"aten.rsqrt.default"});
  addUnary<ReciprocalOp>(table, {"aten.reciprocal.default"});
  addUnary<SquareOp>(table, {"aten.square.default"});
  addUnary<SinOp>(table, {"aten.sin.default"});
  addUnary<CosOp>(table, {"aten.cos.default"});
  addUnary<TanOp>(table, {"aten.tan.default"});
  addUnary<TanhOp>(table, {"aten.tanh.default"});
  addUnary<ErfOp>(table, {"aten.erf.default"});
  addUnary<SigmoidOp>(table, {"aten.sigmoid.default"});
  addUnary<ReluOp>(table, {"aten.relu.default"});
  addUnary<SiluOp>(table, {"aten.silu.default"});
  addUnary<FloorOp>(table, {"aten.floor.default"});
  addUnary<CeilOp>(table, {"aten.ceil.default"});
  addUnary<RoundOp>(table, {"aten.round.default"});
  addUnary<TruncOp>(table, {"aten.trunc.default", "aten.fix.default"});
  addUnary<SignOp>(table, {"aten.sign.default", "aten.sgn.default"});
  addUnary<NotOp>(table, {"aten.logical_not.default"});
  addUnary<IsNanOp>(table, {"aten.isnan.default"});

  table.add({"aten.gelu.default"}, "self approximate", [](ATenCall &c) {
    std::string approximate = c.text("approximate", "none");
    if (approximate == "tanh")
      return c.pointwise<GeluTanhOp>(c.type(), {c.tensor("self")});
    c.require(approximate == "none",
              "unknown approximation '" + approximate + "'");
    return c.pointwise<GeluOp>(c.type(), {c.tensor("self")});
  });
  table.add({"aten.softplus.default"}, "self beta threshold", [](ATenCall &c) {
    return c.pointwise<SoftplusOp>(
        c.type(), {c.tensor("self")},
        {c.attr("beta", c.b.getF64FloatAttr(c.number("beta", 1.0))),
         c.attr("threshold",
                c.b.getF64FloatAttr(c.number("threshold", 20.0)))});
  });
  table.add(
      {"aten.leaky_relu.default"}, "self negative_slope", [](ATenCall &c) {
        return c.pointwise<LeakyReluOp>(
            c.type(), {c.tensor("self")},
            {c.attr("slope",
                    c.b.getF64FloatAttr(c.number("negative_slope", 0.01)))});
      });
  table.add({"aten.hardtanh.default"}, "self min_val max_val", [](ATenCall &c) {
    Type element = c.type().getElementType();
    auto bound = [&](StringRef name, double byDefault) -> Operand {
      return c.has(name) ? c.element(name, element)
                         : c.immElement(byDefault, element);
    };
    return c.pointwise<ClampOp>(
        c.type(),
        {c.tensor("self"), bound("min_val", -1.0), bound("max_val", 1.0)});
  });
  table.add({"aten.relu6.default"}, "self", [](ATenCall &c) {
    return c.pointwise<ClampOp>(c.type(),
                                {c.tensor("self"), c.imm(0.0), c.imm(6.0)});
  });
  table.add({"aten.clamp.default", "aten.clamp.Tensor", "aten.clip.default"},
            "self min max",
            [](ATenCall &c) { return lowerClamp(c, "min", "max"); });
  table.add({"aten.clamp_min.default", "aten.clamp_min.Tensor"}, "self min",
            [](ATenCall &c) { return lowerClamp(c, "min", ""); });
  table.add({"aten.clamp_max.default", "aten.clamp_max.Tensor"}, "self max",
            [](ATenCall &c) { return lowerClamp(c, "", "max"); });
}

//===----------------------------------------------------------------------===//
// Comparisons, logic, selection
//===----------------------------------------------------------------------===//

template <typename OpTy>
static void addComparison(ATenTable &table, ArrayRef<StringRef> names) {
  table.add(names, "self other", [](ATenCall &c) {
    Operand x = c.operand("self"), y = c.operand("other");
    // An immediate takes the type of the tensor it meets; a boolean cannot
    // hold any number but 0 and 1.
    if (y.number && isBool(elementOf(x.tensor)))
      y = c.imm(c.number("other"));
    return c.pointwise<OpTy>(c.type(), {x, y});
  });
}

static Value lowerBitwise(ATenCall &c, StringRef onBool, StringRef onInteger) {
  return c.createPointwise(isBool(c.type().getElementType()) ? onBool
                                                             : onInteger,
                           {c.operand("self"), c.operand("other")}, c.type());
}

/// The bits of an integer on the device, and whether the first is its sign.
static std::pair<int64_t, bool> getStoredBits(Type type) {
  int64_t bits = std::min(type.getIntOrFloatBitWidth(), 32u);
  return {bits, !type.isUnsignedInteger()};
}

/// An operand in the type of the result.
static Operand shiftOperand(const ATenCall &c, StringRef name) {
  Type element = c.type().getElementType();
  c.require(isa<IntegerType>(element), "only integers are shifted");
  return c.inType(c.operand(name), element);
}

/// x times a power of two, which wraps to zero from the number of bits on; a
/// negative power is zero, as PyTorch shifts by negative numbers.
static Value lowerLeftShift(ATenCall &c) {
  Type element = c.type().getElementType();
  Operand x = shiftOperand(c, "self"), by = shiftOperand(c, "other");
  int64_t bits = getStoredBits(element).first;
  if (!by.number)
    return c.pointwise<MulOp>(
        c.type(), {x, c.pointwise<PowOp>(c.type(), {c.immInt(2), by})});
  int64_t count = get64Bits(by.number).getSExtValue();
  bool isInside = count >= 0 && count < bits;
  return c.pointwise<MulOp>(c.type(),
                            {x, c.immInt(isInside ? int64_t(1) << count : 0)});
}

/// x divided by a power of two, rounded down: twice, because the type of x does
/// not hold the power that leaves nothing but the sign. As in PyTorch that is
/// the result also from the number of bits on, and for negative numbers.
static Value lowerRightShift(ATenCall &c) {
  RankedTensorType type = c.type();
  Operand x = shiftOperand(c, "self"), by = shiftOperand(c, "other");
  auto [bits, isSigned] = getStoredBits(type.getElementType());
  int64_t most = isSigned ? bits - 1 : bits;
  if (by.number) {
    int64_t count = get64Bits(by.number).getSExtValue();
    count = count < 0 ? most : std::min(count, most);
    int64_t first = std::min(count, most - 1);
    Value part =
        c.pointwise<FloorDivOp>(type, {x, c.immInt(int64_t(1) << first)});
    return first == count ? part
                          : c.pointwise<FloorDivOp>(type, {part, c.immInt(2)});
  }
  Value count = c.pointwise<MinimumOp>(type, {by, c.immInt(most)});
  if (isSigned) {
    auto flags = RankedTensorType::get(type.getShape(), c.b.getI1Type());
    Value isNegative = c.pointwise<LtOp>(flags, {count, c.immInt(0)});
    count = c.pointwise<WhereOp>(type, {isNegative, c.immInt(most), count});
  }
  Value first = c.pointwise<MinimumOp>(type, {count, c.immInt(most - 1)});
  Value rest = c.pointwise<SubOp>(type, {count, first});
  Value part = c.pointwise<FloorDivOp>(
      type, {x, c.pointwise<PowOp>(type, {c.immInt(2), first})});
  return c.pointwise<FloorDivOp>(
      type, {part, c.pointwise<PowOp>(type, {c.immInt(2), rest})});
}

static void addShifts(ATenTable &table) {
  table.add({"aten.bitwise_left_shift.Tensor",
             "aten.bitwise_left_shift.Tensor_Scalar",
             "aten.bitwise_left_shift.Scalar_Tensor", "aten.__lshift__.Tensor",
             "aten.__lshift__.Scalar"},
            "self other", lowerLeftShift);
  table.add({"aten.bitwise_right_shift.Tensor",
             "aten.bitwise_right_shift.Tensor_Scalar",
             "aten.bitwise_right_shift.Scalar_Tensor", "aten.__rshift__.Tensor",
             "aten.__rshift__.Scalar"},
            "self other", lowerRightShift);
}

/// Whether all numbers of a type, rounded if need be, are numbers of another.
static bool alwaysFits(Type from, Type to) {
  if (from == to || isa<FloatType>(to))
    return true;
  auto own = dyn_cast<IntegerType>(from), integer = cast<IntegerType>(to);
  if (!own || own.getWidth() >= integer.getWidth())
    return false;
  return isBool(own) || own.isUnsigned() || !integer.isUnsigned();
}

static void addLogic(ATenTable &table) {
  addComparison<EqOp>(table, {"aten.eq.Tensor", "aten.eq.Scalar"});
  addComparison<NeOp>(table, {"aten.ne.Tensor", "aten.ne.Scalar"});
  addComparison<LtOp>(table, {"aten.lt.Tensor", "aten.lt.Scalar"});
  addComparison<LeOp>(table, {"aten.le.Tensor", "aten.le.Scalar"});
  addComparison<GtOp>(table, {"aten.gt.Tensor", "aten.gt.Scalar"});
  addComparison<GeOp>(table, {"aten.ge.Tensor", "aten.ge.Scalar"});
  addBinary<AndOp>(table, {"aten.logical_and.default"});
  addBinary<OrOp>(table, {"aten.logical_or.default"});
  addBinary<XorOp>(table, {"aten.logical_xor.default"});
  table.add({"aten.bitwise_and.Tensor", "aten.bitwise_and.Scalar",
             "aten.bitwise_and.Scalar_Tensor", "aten.__and__.Tensor",
             "aten.__and__.Scalar"},
            "self other", [](ATenCall &c) {
              return lowerBitwise(c, AndOp::getOperationName(),
                                  BitwiseAndOp::getOperationName());
            });
  table.add({"aten.bitwise_or.Tensor", "aten.bitwise_or.Scalar",
             "aten.bitwise_or.Scalar_Tensor", "aten.__or__.Tensor",
             "aten.__or__.Scalar"},
            "self other", [](ATenCall &c) {
              return lowerBitwise(c, OrOp::getOperationName(),
                                  BitwiseOrOp::getOperationName());
            });
  table.add({"aten.bitwise_xor.Tensor", "aten.bitwise_xor.Scalar",
             "aten.bitwise_xor.Scalar_Tensor", "aten.__xor__.Tensor",
             "aten.__xor__.Scalar"},
            "self other", [](ATenCall &c) {
              return lowerBitwise(c, XorOp::getOperationName(),
                                  BitwiseXorOp::getOperationName());
            });
  table.add({"aten.bitwise_not.default"}, "self", [](ATenCall &c) {
    Value x = c.tensor("self");
    if (isBool(elementOf(x)))
      return c.pointwise<NotOp>(c.type(), {x});
    return c.pointwise<BitwiseXorOp>(c.type(), {x, c.immInt(-1)});
  });
  table.add({"aten.isinf.default"}, "self", [](ATenCall &c) {
    Value x = c.tensor("self");
    if (!isa<FloatType>(elementOf(x)))
      return c.full(c.type(), c.b.getBoolAttr(false));
    Value magnitude = c.pointwise<AbsOp>(typeOf(x), {x});
    return c.pointwise<EqOp>(c.type(), {magnitude, c.imm(INFINITY)});
  });
  table.add({"aten.isfinite.default"}, "self", [](ATenCall &c) {
    Value x = c.tensor("self");
    if (!isa<FloatType>(elementOf(x)))
      return c.full(c.type(), c.b.getBoolAttr(true));
    Value magnitude = c.pointwise<AbsOp>(typeOf(x), {x});
    return c.pointwise<LtOp>(c.type(), {magnitude, c.imm(INFINITY)});
  });

  table.add({"aten.where.self", "aten.where.Scalar", "aten.where.ScalarSelf",
             "aten.where.ScalarOther"},
            "condition self other", [](ATenCall &c) {
              Type element = c.type().getElementType();
              return c.pointwise<WhereOp>(
                  c.type(), {c.tensor("condition"), c.element("self", element),
                             c.element("other", element)});
            });
  table.add({"aten.masked_fill.Scalar", "aten.masked_fill.Tensor"},
            "self mask value", [](ATenCall &c) {
              Value self = c.tensor("self");
              // The value takes self's type, whatever its own.
              Operand value = c.element("value", elementOf(self));
              // On the CPU the value decides whether it fits.
              if (value.tensor &&
                  !alwaysFits(elementOf(value.tensor), elementOf(self)))
                c.wrong("the value must be known, or of a type whose numbers "
                        "all are numbers of self's");
              if (value.tensor)
                value = c.cast(value.tensor, elementOf(self));
              return c.pointwise<WhereOp>(c.type(),
                                          {c.tensor("mask"), value, self});
            });
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

/// A copy for PyTorch. Values of the graph never change, so one that an op made
/// is its own copy.
static Value lowerCopy(ATenCall &c, StringRef source) {
  Value value = c.tensor(source);
  if (value.getDefiningOp<DestinationStyleOpInterface>() &&
      shapeOf(value) == c.type().getShape() &&
      elementOf(value) == c.type().getElementType())
    return value;
  return c.copy(value, c.type());
}

static void addConversion(ATenTable &table) {
  table.add({"aten._to_copy.default"},
            "self dtype layout device pin_memory non_blocking memory_format",
            [](ATenCall &c) { return lowerCopy(c, "self"); });
  table.add({"prims.convert_element_type.default"}, "a dtype",
            [](ATenCall &c) { return lowerCopy(c, "a"); });
  table.add({"aten.clone.default", "aten.contiguous.default"},
            "self memory_format",
            [](ATenCall &c) { return lowerCopy(c, "self"); });
  table.add({"aten.lift_fresh_copy.default", "prims.clone.default"}, "self",
            [](ATenCall &c) { return lowerCopy(c, "self"); });
  // Strides are PyTorch's metadata.
  table.add({"prims.copy_strided.default"}, "a stride",
            [](ATenCall &c) { return lowerCopy(c, "a"); });
  // The second argument, in the shape and type of the first.
  table.add({"aten.copy.default"}, "self src non_blocking",
            [](ATenCall &c) { return lowerCopy(c, "src"); });
}

/// Mantissas, exponents and neighbours of floats.
static void addFloatParts(ATenTable &table) {
  table.addMany({"aten.frexp.Tensor"}, "self", [](ATenCall &c) {
    Value x = c.tensor("self");
    Values results(2);
    if (c.wants(0))
      results[0] = c.pointwise<MantissaOp>(c.type(0), {x});
    if (c.wants(1))
      results[1] = c.pointwise<ExponentOp>(c.type(1), {x});
    return results;
  });
  table.add({"aten.nextafter.default"}, "self other", [](ATenCall &c) {
    return c.pointwise<NextAfterOp>(c.type(),
                                    {c.tensor("self"), c.tensor("other")});
  });
}

void aten::addPointwiseRows(ATenTable &table) {
  ATenTable::ForAnySize rows(table);
  addFloatParts(table);
  addArithmetic(table);
  addUnaryRows(table);
  addLogic(table);
  addShifts(table);
  addConversion(table);
}
