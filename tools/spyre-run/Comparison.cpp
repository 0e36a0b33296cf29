// SPDX-License-Identifier: Apache-2.0
//===- Comparison.cpp - Tensors of checks ---------------------------------===//

#include "Comparison.h"

#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <cstring>

using namespace spyre;
using llvm::APFloat;
using llvm::APInt;

static HostDtype hostDtypeOf(mlir::Type type) {
  if (type.isF16())
    return HostDtype::Float16;
  if (type.isBF16())
    return HostDtype::BFloat16;
  if (type.isF32())
    return HostDtype::Float32;
  // fp8 is bytes on the host.
  if (llvm::isa<mlir::FloatType>(type))
    return HostDtype::UInt8;
  if (type.isInteger(1))
    return HostDtype::Bool;
  if (type.isInteger(8))
    return HostDtype::Int8;
  if (type.isInteger(16))
    return HostDtype::Int16;
  return type.isInteger(32) ? HostDtype::Int32 : HostDtype::Int64;
}

/// Bits of an element; those of index are 64.
static unsigned widthOf(mlir::Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

static void setElement(NpyArray &array, int64_t i, const APInt &bits) {
  int64_t bytes = hostBytes(array.dtype);
  uint64_t value = bits.getZExtValue();
  std::memcpy(array.data.data() + i * bytes, &value, bytes);
}

static APInt getElement(mlir::Type type, const NpyArray &array, int64_t i) {
  int64_t bytes = hostBytes(array.dtype);
  uint64_t value = 0;
  std::memcpy(&value, array.data.data() + i * bytes, bytes);
  // Keep all bits of a bool, so that a byte other than 0 and 1 shows.
  unsigned width = widthOf(type);
  return APInt(width == 1 ? 8 : width, value);
}

NpyArray spyre::arrayOf(mlir::ShapedType type) {
  NpyArray array;
  array.dtype = hostDtypeOf(type.getElementType());
  array.shape = type.getShape();
  array.data.resize(array.numElements() * hostBytes(array.dtype));
  return array;
}

NpyArray spyre::arrayOf(mlir::ElementsAttr constant) {
  NpyArray array = arrayOf(constant.getShapedType());
  int64_t i = 0;
  if (llvm::isa<mlir::FloatType>(constant.getElementType()))
    for (const APFloat &value : constant.getValues<APFloat>())
      setElement(array, i++, value.bitcastToAPInt());
  else
    for (const APInt &value : constant.getValues<APInt>())
      setElement(array, i++, value);
  return array;
}

NpyArray spyre::arrayOf(mlir::ShapedType type, mlir::AffineMap map) {
  NpyArray array = arrayOf(type);
  llvm::ArrayRef<int64_t> shape = type.getShape();
  llvm::SmallVector<mlir::Attribute> index(shape.size());
  mlir::Type indexType = mlir::IndexType::get(type.getContext());
  for (int64_t i = 0, count = array.numElements(); i < count; ++i) {
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
      index[d] = mlir::IntegerAttr::get(indexType, rest % shape[d]);
    llvm::SmallVector<mlir::Attribute> result;
    // The parser rejects maps with a divisor that is not positive.
    if (failed(map.constantFold(index, result)))
      llvm::report_fatal_error("cannot evaluate a map of check.generate");
    int64_t value = llvm::cast<mlir::IntegerAttr>(result[0]).getInt();
    auto element = llvm::dyn_cast<mlir::FloatType>(type.getElementType());
    if (!element) {
      unsigned width = widthOf(type.getElementType());
      setElement(array, i, APInt(64, value, true).trunc(width));
      continue;
    }
    APFloat number(element.getFloatSemantics());
    number.convertFromAPInt(APInt(64, value, true), true,
                            APFloat::rmNearestTiesToEven);
    setElement(array, i, number.bitcastToAPInt());
  }
  return array;
}

/// The value's place in the order of all values of its type; zeros have one.
static int64_t placeOf(const APFloat &value) {
  APInt bits = value.bitcastToAPInt();
  APInt magnitude = bits;
  magnitude.clearSignBit();
  int64_t place = static_cast<int64_t>(magnitude.getZExtValue());
  return bits.isSignBitSet() ? -place : place;
}

static double toDouble(APFloat value) {
  bool ignored;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &ignored);
  return value.convertToDouble();
}

static bool areClose(const APFloat &actual, const APFloat &expected,
                     const Tolerance &tolerance) {
  if (actual.isNaN() || expected.isNaN())
    return actual.isNaN() && expected.isNaN();
  if (!tolerance.maxUlp && !tolerance.atol)
    return actual.bitwiseIsEqual(expected);
  if (!actual.isFinite() || !expected.isFinite())
    return actual.bitwiseIsEqual(expected);
  if (tolerance.maxUlp &&
      std::abs(placeOf(actual) - placeOf(expected)) <= *tolerance.maxUlp)
    return true;
  return tolerance.atol &&
         std::fabs(toDouble(actual) - toDouble(expected)) <= *tolerance.atol;
}

static std::string textOf(const APFloat &value) {
  llvm::SmallString<32> text;
  value.toString(text);
  return std::string(text);
}

/// "[1, 2]", the place of an element; of a tensor without dimensions "[]".
static std::string indexOf(llvm::ArrayRef<int64_t> shape, int64_t i) {
  std::string text = "]";
  for (size_t d = shape.size(); d-- > 0; i /= shape[d])
    text = (d == 0 ? "" : ", ") + std::to_string(i % shape[d]) + text;
  return "[" + text;
}

std::optional<std::string> spyre::compare(mlir::ShapedType type,
                                          const NpyArray &actual,
                                          const NpyArray &expected,
                                          const Tolerance &tolerance) {
  mlir::Type elementType = type.getElementType();
  auto floatType = llvm::dyn_cast<mlir::FloatType>(elementType);
  std::string first;
  int64_t numWrong = 0;
  int64_t count = actual.numElements();
  for (int64_t i = 0; i < count; ++i) {
    APInt found = getElement(elementType, actual, i);
    APInt wanted = getElement(elementType, expected, i);
    std::string foundText, wantedText;
    if (floatType) {
      const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
      APFloat a(semantics, found), b(semantics, wanted);
      if (areClose(a, b, tolerance))
        continue;
      foundText = textOf(a), wantedText = textOf(b);
    } else {
      if (found == wanted)
        continue;
      foundText = llvm::toString(found, 10, true);
      wantedText = llvm::toString(wanted, 10, true);
    }
    if (numWrong++ == 0)
      first = "element " + indexOf(type.getShape(), i) + ": expected " +
              wantedText + ", found " + foundText;
  }
  if (numWrong == 0)
    return std::nullopt;
  return first + "; " + std::to_string(numWrong) + " of " +
         std::to_string(count) + " elements differ";
}
