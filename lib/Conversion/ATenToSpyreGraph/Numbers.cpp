// SPDX-License-Identifier: Apache-2.0
//===- Numbers.cpp - Numbers that elements and operators get ----*- C++ -*-===//
//
// PyTorch converts numbers in two ways. Those that meet a tensor in an operator
// (x + 300) wrap to the type in which it computes. Those that become elements
// or parameters of that type (fill, where, clamp, alpha) are refused if it does
// not have them.
//
//===----------------------------------------------------------------------===//

#include "ATenCall.h"
#include "Spyre/Device/DL16.h"
#include "Spyre/Dialect/SpyreGraph/IR/ScalarBuilder.h"

#include <cmath>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

//===----------------------------------------------------------------------===//
// Numbers that meet tensors
//===----------------------------------------------------------------------===//

/// The type to which PyTorch promotes two integer types; null has no say.
static Type promote(Type x, Type y) {
  if (!x || x == y)
    return y;
  unsigned widthOfX = x.getIntOrFloatBitWidth(),
           widthOfY = y.getIntOrFloatBitWidth();
  if (widthOfX == widthOfY) // uint8 and int8
    return IntegerType::get(x.getContext(), 2 * widthOfX);
  return widthOfX > widthOfY ? x : y;
}

/// The integer type to which PyTorch promotes operands; null if there is a
/// floating one, or no tensor. Numbers, and tensors without dimensions beside
/// others, have no say in how wide it is.
static Type getIntegerType(ArrayRef<Operand> operands) {
  Type withDims, without;
  for (const Operand &operand : operands) {
    Type type =
        operand.tensor ? elementOf(operand.tensor) : operand.number.getType();
    if (!isa<IntegerType>(type))
      return nullptr;
    if (operand.tensor) {
      Type &common = rankOf(operand.tensor) > 0 ? withDims : without;
      common = promote(common, type);
    }
  }
  // Any integers come before booleans.
  bool isDecided = withDims && (!isBool(withDims) || !without);
  return isDecided ? withDims : without;
}

Type aten::getComputedType(ArrayRef<Operand> operands, Type result) {
  Type common = getIntegerType(operands);
  if (!common || isBool(result))
    return common;
  return isa<FloatType>(result) ? result : promote(common, result);
}

/// The low bits of an integer as a number of a type.
static int64_t wrapInteger(int64_t value, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  APInt bits = APInt(64, value, /*isSigned=*/true).trunc(width);
  return type.isUnsignedInteger() ? bits.getZExtValue() : bits.getSExtValue();
}

Operand ATenCall::inType(const Operand &operand, Type type) const {
  if (operand.tensor) {
    Type own = elementOf(operand.tensor);
    bool fits = isa<FloatType>(type) || promote(own, type) == type;
    return fits ? operand : cast(operand.tensor, type);
  }
  auto number = llvm::dyn_cast<IntegerAttr>(operand.number);
  if (!number || isBool(number.getType()) || isBool(type))
    return operand;
  if (isa<FloatType>(type))
    return imm(static_cast<double>(number.getInt()));
  return immInt(wrapInteger(number.getInt(), type));
}

//===----------------------------------------------------------------------===//
// Numbers that become elements
//===----------------------------------------------------------------------===//

[[noreturn]] static void refuse(const ATenCall &c, const Twine &value,
                                Type type) {
  c.wrong("value cannot be converted to type " +
          Twine(type.isUnsignedInteger() ? "u" : "") + "int" +
          Twine(type.getIntOrFloatBitWidth()) +
          "_t without overflow: " + value);
}

/// Whether a number is infinite in bfloat16.
static bool isInfinite(double value) {
  APFloat number(value);
  bool losesInfo;
  number.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.isInfinity();
}

TypedAttr ATenCall::immElement(double value, Type type) const {
  if (isBool(type))
    return b.getBoolAttr(value != 0);
  if (isa<IntegerType>(type)) {
    unsigned width = type.getIntOrFloatBitWidth();
    bool isUnsigned = type.isUnsignedInteger();
    double lowest = isUnsigned ? 0 : -std::ldexp(1.0, width - 1);
    double largest = std::ldexp(1.0, isUnsigned ? width : width - 1) - 1;
    if (!(lowest <= value && value <= largest))
      refuse(*this, Twine(std::to_string(value)), type);
    return immWhole(value);
  }
  if (type.isBF16() && ::spyre::isBeyondDL16(value) && !isInfinite(value)) {
    bool isSmall = std::abs(value) < 1;
    value = std::copysign(
        isSmall ? ::spyre::kSmallestDL16 : ::spyre::kLargestDL16, value);
  }
  return imm(value);
}

TypedAttr ATenCall::immElement(int64_t value, Type type) const {
  if (!isa<IntegerType>(type) || isBool(type))
    return immElement(static_cast<double>(value), type);
  // Unsigned types wrap negative numbers that are no farther from zero than
  // their largest.
  unsigned width = type.getIntOrFloatBitWidth();
  int64_t largest = llvm::maxUIntN(width);
  bool fits = type.isUnsignedInteger() ? -largest <= value && value <= largest
                                       : llvm::isIntN(width, value);
  if (!fits)
    refuse(*this, Twine(value), type);
  return immInt(wrapInteger(value, type));
}

TypedAttr ATenCall::elementNumber(StringRef parameter, Type type) const {
  TypedAttr number = scalar(parameter);
  if (isa<FloatAttr>(number))
    return immElement(this->number(parameter), type);
  return immElement(integer(parameter), type);
}

TypedAttr ATenCall::immWhole(double value) const {
  return immInt(saturateToInt64(value));
}
