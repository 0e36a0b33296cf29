// SPDX-License-Identifier: Apache-2.0
//===- Rounders.h - Rounding and codes of the narrow float types *- C++ -*-===//
//
// Each format is a struct with
//   round(VF) -> VF     nearest value of the format
//   encode(VF) -> VU    its code
//   decode(VU) -> VF
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_ROUNDERS_H
#define SPYRE_LIB_RUNTIME_KERNELS_ROUNDERS_H

#include "Spyre/Runtime/Kernels/TileKernels.h"
#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

constexpr uint32_t kInfinityBits = 0x7f800000u;

struct NoRounding {
  static SPYRE_INLINE VF round(VF x) { return x; }
};

/// spec/numerics.md: exponent bias 31, no subnormals, half away from zero,
/// 0x7fff and 0xffff are the infinities.
struct FormatDL16 {
  // The bits of the float 2^-31, which has the code of zero.
  static constexpr uint32_t kZero = (127u - 31u) << 23;
  static constexpr uint32_t kNonNumber = kZero + (0x7fffu << 14);

  // Magnitudes from which on rounding gives a number above zero, and none any
  // more.
  static constexpr uint32_t kFirstNumber = kZero + 0x2000u;
  static constexpr uint32_t kFirstNonNumber = kNonNumber - 0x2000u;

  /// For zero and magnitudes from kFirstNumber to below kFirstNonNumber.
  static SPYRE_INLINE VF roundCommon(VF x) {
    return bitsAs<VF>((bitsAs<VU>(x) + 0x2000u) & 0xffffc000u);
  }
  /// For magnitudes below kFirstNonNumber.
  static SPYRE_INLINE VF roundBelowNonNumber(VF x) {
    VU bits = bitsAs<VU>(x);
    return bitsAs<VF>(select(bitsAs<VU>(absV(x)) >= splatU(kFirstNumber),
                             (bits + 0x2000u) & 0xffffc000u, signOf(x)));
  }
  static SPYRE_INLINE VF round(VF x) {
    VU magnitude = bitsAs<VU>(absV(x));
    VU sign = signOf(x);
    if (!mayHold(magnitude >= splatU(kFirstNonNumber)))
      return roundBelowNonNumber(x);
    VU rounded = (magnitude + 0x2000u) & 0xffffc000u;
    rounded = select(rounded <= splatU(kZero), VU{}, rounded);
    rounded =
        select(rounded >= splatU(kNonNumber), splatU(kInfinityBits), rounded);
    sign = select(magnitude > splatU(kInfinityBits), VU{}, sign);
    return bitsAs<VF>(rounded | sign);
  }
  static SPYRE_INLINE VU encode(VF x) {
    VU bits = bitsAs<VU>(x);
    VU magnitude = bits & ~kSignBit;
    VI code = bitsAs<VI>((magnitude + 0x2000u) >> 14) - int32_t(kZero >> 14);
    code = select(code < 0, VI{}, code);
    code = select(code > splatI(0x7fff), splatI(0x7fff), code);
    return select(isNaN(x), splatU(0x7fffu),
                  bitsAs<VU>(code) | ((bits >> 16) & 0x8000u));
  }
  /// The codes of the magnitudes of two vectors, in the order of
  /// packUnsigned(). What has the sign bit is no code: only magnitudes from
  /// 2^33 on have it, and NaN's.
  static SPYRE_INLINE VW encodeMagnitudes(VF a, VF b) {
    auto code = [](VF x) {
      return bitsAs<VI>(bitsAs<VU>(absV(x)) + (0x2000u - kZero)) >> 14;
    };
    return packUnsigned(code(a), code(b));
  }

  /// The values of codes, of which none may be an infinity's, in two vectors
  /// as unpackHalves() makes them. Halves of floats take half as many
  /// registers.
  static SPYRE_INLINE void decodePair(VW codes, VF &a, VF &b) {
    VW high = bitsAs<VW>(bitsAs<VS>(codes) >> 2) & uint16_t(0x9fff);
    VW zero = (codes + codes) == VW{} ? VW{} : VW{} + uint16_t(kZero >> 16);
    unpackHalves(VW(codes << 14), VW(high + zero), a, b);
  }
  /// 2^96 times the values of codes at even places, and of those at odd ones.
  /// Zero becomes the power of two below the least number; what has the
  /// exponent of the infinities, an infinity or NaN.
  static SPYRE_INLINE void decodeScaled(VW codes, VF &even, VF &odd) {
    constexpr int32_t exponent = 0x60000000;
    even = bitsAs<VF>(shiftEvenHalves<14>(codes) | exponent);
    odd = bitsAs<VF>(((bitsAs<VI>(codes) >> 2) & ~0x3fff) | exponent);
  }
  static constexpr float kUnscale = 0x1p-96f;
  /// For all codes but the infinities'.
  static SPYRE_INLINE VF decodeNumber(VU code) {
    // Sign and magnitude at their places in a float, and copies of the sign.
    VU bits = bitsAs<VU>(bitsAs<VI>(code << 16) >> 2) & 0x9fffc000u;
    return bitsAs<VF>(bits +
                      select((code & 0x7fffu) == VU{}, VU{}, splatU(kZero)));
  }
  static SPYRE_INLINE VF decode(VU code) {
    return select((code & 0x7fffu) == splatU(0x7fff),
                  bitsAs<VF>(((code & 0x8000u) << 16) | kInfinityBits),
                  decodeNumber(code));
  }
};

/// An IEEE-like format of `Bits` bits with `Fraction` fraction bits, rounding
/// half to even. `FiniteOnly` formats use the largest exponent for numbers, all
/// ones for NaN, and overflow to NaN.
template <int Bits, int Fraction, bool FiniteOnly>
struct FormatIEEE {
  static constexpr int kExponentBits = Bits - 1 - Fraction;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kShift = 23 - Fraction;
  static constexpr uint32_t kSignCode = 1u << (Bits - 1);
  static constexpr uint32_t kMagnitudeCode = kSignCode - 1;
  // The first code that is no finite number.
  static constexpr uint32_t kLimitCode =
      FiniteOnly ? kMagnitudeCode : ((1u << kExponentBits) - 1) << Fraction;
  static constexpr uint32_t kNaNCode =
      FiniteOnly ? kMagnitudeCode : kLimitCode | (1u << (Fraction - 1));
  static constexpr uint32_t kRebias = uint32_t(127 - kBias) << 23;
  static constexpr uint32_t kLimit = (kLimitCode << kShift) + kRebias;
  static constexpr uint32_t kOverflow =
      FiniteOnly ? 0x7fc00000u : kInfinityBits;
  static constexpr uint32_t kMinNormal = kRebias + (1u << 23);
  // A power of two whose last place is the smallest subnormal of the format:
  // adding it rounds there.
  static constexpr uint32_t kSubnormalBits =
      uint32_t(127 + 1 - kBias - Fraction + 23) << 23;

  static SPYRE_INLINE VU roundMagnitude(VU magnitude) {
    return (magnitude + ((1u << (kShift - 1)) - 1) +
            ((magnitude >> kShift) & 1u)) &
           ~((1u << kShift) - 1);
  }
  static SPYRE_INLINE VF magic() { return bitsAs<VF>(splatU(kSubnormalBits)); }

  static SPYRE_INLINE VF round(VF x) {
    VU bits = bitsAs<VU>(x);
    VU magnitude = bits & ~kSignBit;
    VU rounded = roundMagnitude(magnitude);
    VF subnormal = (bitsAs<VF>(magnitude) + magic()) - magic();
    rounded =
        select(magnitude < splatU(kMinNormal), bitsAs<VU>(subnormal), rounded);
    rounded = select(rounded >= splatU(kLimit), splatU(kOverflow), rounded);
    rounded =
        select(magnitude > splatU(kInfinityBits), splatU(0x7fc00000u), rounded);
    return bitsAs<VF>(rounded | (bits & kSignBit));
  }
  static SPYRE_INLINE VU encode(VF x) {
    VU bits = bitsAs<VU>(x);
    VU magnitude = bits & ~kSignBit;
    VU code = (roundMagnitude(magnitude) - kRebias) >> kShift;
    VU subnormal =
        bitsAs<VU>(bitsAs<VF>(magnitude) + magic()) - splatU(kSubnormalBits);
    VU rounded = roundMagnitude(magnitude);
    code = select(magnitude < splatU(kMinNormal), subnormal, code);
    code = select(rounded >= splatU(kLimit), splatU(kLimitCode), code);
    code = select(magnitude > splatU(kInfinityBits), splatU(kNaNCode), code);
    return code | ((bits >> (32 - Bits)) & kSignCode);
  }
  static SPYRE_INLINE VF decode(VU code) {
    VU magnitude = code & kMagnitudeCode;
    VU bits = (magnitude << kShift) + kRebias;
    VF subnormal = bitsAs<VF>(magnitude + splatU(kSubnormalBits)) - magic();
    bits =
        select(magnitude < splatU(1u << Fraction), bitsAs<VU>(subnormal), bits);
    bits = select(magnitude >= splatU(kLimitCode),
                  FiniteOnly ? splatU(0x7fc00000u)
                             : ((magnitude << kShift) | kInfinityBits),
                  bits);
    return bitsAs<VF>(bits | ((code & kSignCode) << (32 - Bits)));
  }
};

using FormatHalf = FormatIEEE<16, 10, false>;
using FormatE4M3FN = FormatIEEE<8, 3, true>;
using FormatE5M2 = FormatIEEE<8, 2, false>;

struct FormatBF16 {
  static SPYRE_INLINE VF round(VF x) {
    VU bits = bitsAs<VU>(x);
    VU rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
    rounded = select(isNaN(x), (bits & kSignBit) | 0x7fc00000u, rounded);
    return bitsAs<VF>(rounded);
  }
  static SPYRE_INLINE VU encode(VF x) { return bitsAs<VU>(round(x)) >> 16; }
  static SPYRE_INLINE VF decode(VU code) { return bitsAs<VF>(code << 16); }
};

/// Rounds groups of vectors. `compute(round)` computes a group's values and
/// calls `round` on them after each operation; it may be called again from the
/// start, and the last call counts.
template <class Format>
struct GroupRounder {
  template <int N, class Compute>
  SPYRE_INLINE void run(Compute compute) {
    compute([](VF(&x)[N]) SPYRE_INLINE_LAMBDA {
      for (VF &v : x)
        v = Format::round(v);
    });
  }
};

/// One test per group: whether roundCommon() rounded every value.
template <>
struct GroupRounder<FormatDL16> {
  /// Zero is common: from the first one on, the test lets it pass.
  bool hasZeros = false;
  /// How often magnitudes were not usual lately.
  unsigned unusual = 0;

  /// Magnitudes from 2^-24 to below 2^8 are usual. Their distances from the
  /// first one have no upper bits, so that two instructions note a value.
  struct Usual {
    static constexpr uint32_t kFirst = (127u - 24u) << 23;
    static constexpr uint32_t kUpperBits = 0x70000000u;
    VU seen{};
    SPYRE_INLINE void note(VF v) { seen |= bitsAs<VU>(v) - kFirst; }
    SPYRE_INLINE bool mayBeRare() const {
      return mayHold((seen & kUpperBits) != VU{});
    }
  };
  /// Zero counts as rare.
  struct NonZero {
    VU largest{};
    SPYRE_INLINE void note(VF v) {
      VU distance =
          bitsAs<VU>(v) + bitsAs<VU>(v) - 2 * FormatDL16::kFirstNumber;
      largest = select(distance > largest, distance, largest);
    }
    SPYRE_INLINE bool mayBeRare() const {
      return mayHold(largest >= splatU(2 * (FormatDL16::kFirstNonNumber -
                                            FormatDL16::kFirstNumber)));
    }
  };
  struct AnyNumber {
    VU least = splatU(~0u), largest{};
    SPYRE_INLINE void note(VF v) {
      VU magnitude = bitsAs<VU>(absV(v));
      VU below = magnitude - 1u;
      least = select(below < least, below, least);
      largest = select(magnitude > largest, magnitude, largest);
    }
    SPYRE_INLINE bool mayBeRare() const {
      return mayHold((least < splatU(FormatDL16::kFirstNumber - 1)) |
                     (largest >= splatU(FormatDL16::kFirstNonNumber)));
    }
  };

  template <int N, class Compute>
  SPYRE_INLINE void run(Compute compute) {
    auto isCommon = [&](auto noted) SPYRE_INLINE_LAMBDA {
      compute([&](VF(&x)[N]) SPYRE_INLINE_LAMBDA {
        for (VF &v : x) {
          noted.note(v);
          v = FormatDL16::roundCommon(v);
        }
      });
      return !noted.mayBeRare();
    };
    // Groups that are unusual cost twice: not more than one in ten.
    constexpr unsigned cost = 10, most = 4 * cost;
    if (unusual < most) {
      if (isCommon(Usual())) {
        unusual -= unusual > 0;
        return;
      }
      unusual += cost;
    }
    if (!hasZeros && isCommon(NonZero()))
      return;
    if (isCommon(AnyNumber())) {
      hasZeros = true;
      return;
    }
    compute([](VF(&x)[N]) SPYRE_INLINE_LAMBDA {
      for (VF &v : x)
        v = FormatDL16::round(v);
    });
  }
};

/// Vectors that are computed side by side, and rounded together.
constexpr int kGroup = 4;

/// Rounds values that need not be computed again.
template <class Format, int N>
SPYRE_INLINE void roundGroup(GroupRounder<Format> &groups, VF (&x)[N]) {
  VF exact[N];
  for (int g = 0; g < N; ++g)
    exact[g] = x[g];
  groups.template run<N>([&](auto round) SPYRE_INLINE_LAMBDA {
    for (int g = 0; g < N; ++g)
      x[g] = exact[g];
    round(x);
  });
}

/// Calls f with the rounder of `rounding`.
template <class F>
SPYRE_INLINE void dispatchRounding(Rounding rounding, F f) {
  switch (rounding) {
  case Rounding::None:
    return f(NoRounding());
  case Rounding::DL16:
    return f(FormatDL16());
  case Rounding::IEEEHalf:
    return f(FormatHalf());
  case Rounding::BF16:
    return f(FormatBF16());
  case Rounding::F8E4M3FN:
    return f(FormatE4M3FN());
  case Rounding::F8E5M2:
    return f(FormatE5M2());
  }
}

/// Rounds in place; the result of a preceding pass over few elements.
void roundInPlace(float *x, size_t n, Rounding rounding);

/// Elements that a two-pass kernel handles at a time: they stay in the first
/// cache.
constexpr size_t kBlock = 512;

/// Runs `compute(begin, count, rounder)` over n elements. The common roundings
/// are part of the pass, the others follow block by block.
template <class Compute>
SPYRE_INLINE void computeRounded(float *result, size_t n, Rounding rounding,
                                 Compute compute) {
  if (rounding == Rounding::None)
    return compute(size_t(0), n, NoRounding());
  if (rounding == Rounding::DL16)
    return compute(size_t(0), n, FormatDL16());
  for (size_t begin = 0; begin < n; begin += kBlock) {
    size_t count = n - begin < kBlock ? n - begin : kBlock;
    compute(begin, count, NoRounding());
    roundInPlace(result + begin, count, rounding);
  }
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_ROUNDERS_H
