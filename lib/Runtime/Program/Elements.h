// SPDX-License-Identifier: Apache-2.0
//===- Elements.h - Element types and scalars -------------------*- C++ -*-===//
//
// Host representation of KTIR values. Floating-point tiles are arrays of
// float whatever their element type (each value already rounded to it), so an
// extension is free and a truncation is a rounding; integers up to 32 bits
// are sign-extended int32_t, i1 is 0 or 1; i64 and index are int64_t.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_PROGRAM_ELEMENTS_H
#define SPYRE_LIB_RUNTIME_PROGRAM_ELEMENTS_H

#include "Spyre/Runtime/Kernels/TileKernels.h"

#include <cstddef>
#include <cstdint>

namespace spyre::runtime {

constexpr int kMaxRank = 12;

/// The MLIR types of values: Spyre/Device/NumberFormats.def.
enum class Elem : uint8_t {
#define SPYRE_RUNTIME_ELEMENT(name, elementType, bits, stored) name,
#include "Spyre/Device/NumberFormats.def"
};

inline bool isFloat(Elem e) { return e <= Elem::F8E5M2; }
inline bool isWide(Elem e) { return e == Elem::I64 || e == Elem::Index; }
/// Bytes of one element of a tile on the host.
inline size_t hostSize(Elem e) { return isWide(e) ? 8 : 4; }
inline int bitWidth(Elem e) {
  switch (e) {
#define SPYRE_RUNTIME_ELEMENT(name, elementType, bits, stored)                 \
  case Elem::name:                                                             \
    return bits;
#include "Spyre/Device/NumberFormats.def"
  }
  return 0;
}
/// Bytes of one element in device memory (spec/numerics.md, "In KTIR").
inline int64_t deviceSize(Elem e) { return (bitWidth(e) + 7) / 8; }
const char *elemName(Elem e);

/// How an element sits in device memory.
inline ElementFormat elementFormat(Elem e, bool ieee) {
  if (e == Elem::F16 && ieee)
    return ElementFormat::IEEEHalf;
  switch (e) {
#define SPYRE_RUNTIME_ELEMENT(name, elementType, bits, stored)                 \
  case Elem::name:                                                             \
    return ElementFormat::stored;
#include "Spyre/Device/NumberFormats.def"
  }
  return ElementFormat::F32;
}

/// The rounding of a float result of element type `e`.
inline Rounding roundingOf(Elem e, bool ieee) {
  return roundingOf(elementFormat(e, ieee));
}

union Scalar {
  int64_t i;
  float f;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_PROGRAM_ELEMENTS_H
