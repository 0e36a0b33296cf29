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

constexpr int kMaxRank = 8;

enum class Elem : uint8_t {
  F16,
  BF16,
  F32,
  F8E4M3FN,
  F8E5M2,
  I1,
  I8,
  I16,
  I32,
  I64,
  Index
};

inline bool isFloat(Elem e) { return e <= Elem::F8E5M2; }
inline bool isWide(Elem e) { return e == Elem::I64 || e == Elem::Index; }
/// Bytes of one element of a tile on the host.
inline size_t hostSize(Elem e) { return isWide(e) ? 8 : 4; }
inline int bitWidth(Elem e) {
  switch (e) {
  case Elem::I1:
    return 1;
  case Elem::F8E4M3FN:
  case Elem::F8E5M2:
  case Elem::I8:
    return 8;
  case Elem::I16:
  case Elem::F16:
  case Elem::BF16:
    return 16;
  case Elem::F32:
  case Elem::I32:
    return 32;
  case Elem::I64:
  case Elem::Index:
    return 64;
  }
  return 0;
}
/// Bytes of one element in device memory (spec/numerics.md, "In KTIR").
inline int64_t deviceSize(Elem e) { return (bitWidth(e) + 7) / 8; }
const char *elemName(Elem e);

inline ElementFormat elementFormat(Elem e, bool ieee) {
  switch (e) {
  case Elem::F16:
    return ieee ? ElementFormat::IEEEHalf : ElementFormat::DL16;
  case Elem::BF16:
    return ElementFormat::BF16;
  case Elem::F32:
    return ElementFormat::F32;
  case Elem::F8E4M3FN:
    return ElementFormat::F8E4M3FN;
  case Elem::F8E5M2:
    return ElementFormat::F8E5M2;
  case Elem::I1:
    return ElementFormat::I1;
  case Elem::I8:
    return ElementFormat::I8;
  case Elem::I16:
    return ElementFormat::I16;
  case Elem::I32:
    return ElementFormat::I32;
  case Elem::I64:
  case Elem::Index:
    return ElementFormat::I64;
  }
  return ElementFormat::F32;
}

/// What a float result of element type `e` is rounded to.
inline Rounding roundingOf(Elem e, bool ieee) {
  switch (e) {
  case Elem::F16:
    return ieee ? Rounding::IEEEHalf : Rounding::DL16;
  case Elem::BF16:
    return Rounding::BF16;
  case Elem::F8E4M3FN:
    return Rounding::F8E4M3FN;
  case Elem::F8E5M2:
    return Rounding::F8E5M2;
  default:
    return Rounding::None;
  }
}

union Scalar {
  int64_t i;
  float f;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_PROGRAM_ELEMENTS_H
