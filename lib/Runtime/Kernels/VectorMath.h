// SPDX-License-Identifier: Apache-2.0
//===- VectorMath.h - Elementary functions of vectors -----------*- C++ -*-===//
//
// exp, exp2, tanh and erf work in fp32; where fp32 would need double-word
// tricks (erfc, logarithms, powers, angles) the lanes are widened to fp64,
// which also makes subnormals and the final rounding come out by themselves.
// Coefficients: fit_polynomials.py.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_VECTORMATH_H
#define SPYRE_LIB_RUNTIME_KERNELS_VECTORMATH_H

#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

//===----------------------------------------------------------------------===//
// Rounding to integers
//===----------------------------------------------------------------------===//

// From here on every float is an integer.
constexpr float kTwo23 = 8388608.0f;

SPYRE_INLINE VF truncV(VF x) {
  VF magnitude = absV(x);
  VI small = magnitude < kTwo23;
  VF whole =
      toFloat(__builtin_convertvector(select(small, magnitude, VF{}), VI));
  return withSignOf(select(small, whole, magnitude), x);
}
SPYRE_INLINE VF floorV(VF x) {
  VF whole = truncV(x);
  return withSignOf(whole - select(whole > x, splat(1.0f), VF{}), x);
}
SPYRE_INLINE VF ceilV(VF x) {
  VF whole = truncV(x);
  return withSignOf(whole + select(whole < x, splat(1.0f), VF{}), x);
}
SPYRE_INLINE VF roundHalfAwayV(VF x) {
  VF whole = truncV(x);
  VF rest = absV(x) - absV(whole);
  VF up = select(rest >= 0.5f, splat(1.0f), VF{});
  return withSignOf(absV(whole) + up, x);
}
SPYRE_INLINE VF roundHalfEvenV(VF x) {
  VF magnitude = absV(x);
  VF rounded = (magnitude + kTwo23) - kTwo23;
  return withSignOf(select(magnitude < kTwo23, rounded, magnitude), x);
}

//===----------------------------------------------------------------------===//
// Exponentials
//===----------------------------------------------------------------------===//

// x + kRoundMagic has round(x) in its low bits, for |x| < 2^22 and 2^51.
constexpr float kRoundMagic = 12582912.0f;
constexpr double kRoundMagicD = 6755399441055744.0;

/// p * 2^n for a whole n in [-252, 254], rounded once; `shifted` is
/// n + kRoundMagic.
SPYRE_INLINE VF scaleByPowerOfTwo(VF p, [[maybe_unused]] VF n,
                                  [[maybe_unused]] VF shifted) {
#if defined(__AVX512F__)
  constexpr int currentRounding = 4;
  return __builtin_ia32_scalefps512_mask(p, n, p, uint16_t(-1),
                                         currentRounding);
#else
  // Two factors, as one would be no normal number.
  VI whole = bitsAs<VI>(shifted) - bitsAs<VI>(splat(kRoundMagic));
  VI half = whole >> 1;
  VF first = bitsAs<VF>((half + 127) << 23);
  VF second = bitsAs<VF>((whole - half + 127) << 23);
  return p * first * second;
#endif
}

/// exp(x) = p * 2^n.
struct ScaledExp {
  VF p, n;
  VF shifted; ///< n + kRoundMagic
};
SPYRE_INLINE ScaledExp scaledExp(VF x) {
  VF shifted = mulAdd(x, splat(1.44269504f), splat(kRoundMagic));
  VF n = shifted - kRoundMagic;
  VF r = mulAdd(n, splat(-0.693359375f), x);
  r = mulAdd(n, splat(2.12194440e-4f), r);
  VF p = splat(0.0013950482286908159f);
  p = mulAdd(p, r, splat(0.0083688822238248315f));
  p = mulAdd(p, r, splat(0.041666205933032824f));
  p = mulAdd(p, r, splat(0.16666518898995191f));
  p = mulAdd(p, r, splat(0.5f));
  p = mulAdd(p, r * r, r) + 1.0f;
  return {p, n, shifted};
}

SPYRE_INLINE VF expV(VF x) {
  x = select(x > 89.0f, splat(89.0f), x);
  x = select(x < -104.0f, splat(-104.0f), x);
  ScaledExp e = scaledExp(x);
  return scaleByPowerOfTwo(e.p, e.n, e.shifted);
}

// Up to this magnitude the result and every factor are normal numbers.
constexpr float kExpNormal = 86.0f;

/// As expV(), for magnitudes of at most kExpNormal and NaN.
SPYRE_INLINE VF expNormalOrNaN(VF x) {
  ScaledExp e = scaledExp(x);
  VI biased = bitsAs<VI>(e.shifted) - (bitsAs<VI>(splat(kRoundMagic)) - 127);
  return e.p * bitsAs<VF>(biased << 23);
}

/// As expV(), for magnitudes of at most kExpNormal.
SPYRE_INLINE VF expNormal(VF x) {
  ScaledExp e = scaledExp(x);
  // The low nine bits of kRoundMagic are zero.
  return bitsAs<VF>(bitsAs<VI>(e.p) + (bitsAs<VI>(e.shifted) << 23));
}

#ifdef SPYRE_HAS_VECTOR_FMA
// Up to here exp(x) and its rounding to DL16 are common numbers.
constexpr float kExpCommon = 21.0f;

/// exp(x), which rounds to DL16 as expV() does, for x of DL16's values of
/// magnitudes of at most kExpCommon. Coefficients were searched for that are
/// right for all of them. Step by step for all vectors: each waits for the one
/// before.
template <int N>
SPYRE_INLINE void expOfCodes(VF (&x)[N]) {
  VF shifted[N], p[N];
  for (int g = 0; g < N; ++g)
    shifted[g] = mulAdd(x[g], splat(1.44269504f), splat(kRoundMagic));
  for (int g = 0; g < N; ++g)
    x[g] = mulAdd(shifted[g] - kRoundMagic, splat(-0.693147182f), x[g]);
  for (int g = 0; g < N; ++g)
    p[g] = mulAdd(splat(0.00889007933f), x[g], splat(0.0420746803f));
  constexpr float rest[] = {0.16665554f, 0.499985993f, 1.0f, 1.0f};
  for (float c : rest)
    for (int g = 0; g < N; ++g)
      p[g] = mulAdd(p[g], x[g], splat(c));
  for (int g = 0; g < N; ++g)
    x[g] = bitsAs<VF>(bitsAs<VI>(p[g]) + (bitsAs<VI>(shifted[g]) << 23));
}
#endif

SPYRE_INLINE VF exp2V(VF x) {
  x = select(x > 129.0f, splat(129.0f), x);
  x = select(x < -151.0f, splat(-151.0f), x);
  VF shifted = x + kRoundMagic;
  VF n = shifted - kRoundMagic;
  VF r = x - n;
  VF p = splat(0.00015476304160001842f);
  p = mulAdd(p, r, splat(0.0013400269576928209f));
  p = mulAdd(p, r, splat(0.0096180038755360064f));
  p = mulAdd(p, r, splat(0.055503277915002218f));
  p = mulAdd(p, r, splat(0.24022651346030114f));
  p = mulAdd(p, r, splat(0.69314720624801588f));
  p = mulAdd(p, r, splat(1.0f));
  return scaleByPowerOfTwo(p, n, shifted);
}

SPYRE_INLINE VD clampD(VD x, double lo, double hi) {
  x = select(x > hi, splatD(hi), x);
  return select(x < lo, splatD(lo), x);
}

/// 2^n for a whole n held in the low bits of n + kRoundMagicD.
SPYRE_INLINE VD powerOfTwo(VD shifted) {
  VL n = bitsAs<VL>(shifted) - bitsAs<VL>(splatD(kRoundMagicD));
  return bitsAs<VD>((n + 1023) << 52);
}

/// exp(r) - 1 for |r| <= ln(2) / 2.
SPYRE_INLINE VD expm1Reduced(VD r) {
  VD p = splatD(1.0 / 3628800);
  p = mulAdd(p, r, splatD(1.0 / 362880));
  p = mulAdd(p, r, splatD(1.0 / 40320));
  p = mulAdd(p, r, splatD(1.0 / 5040));
  p = mulAdd(p, r, splatD(1.0 / 720));
  p = mulAdd(p, r, splatD(1.0 / 120));
  p = mulAdd(p, r, splatD(1.0 / 24));
  p = mulAdd(p, r, splatD(1.0 / 6));
  p = mulAdd(p, r, splatD(0.5));
  return mulAdd(p, r * r, r);
}

constexpr double kLn2 = 0.69314718055994531;

/// exp(x) = scale * exp(r), with a power of two and |r| <= ln(2) / 2.
struct ReducedExpD {
  VD scale, r;
};
SPYRE_INLINE ReducedExpD reduceExpD(VD x) {
  x = clampD(x, -200.0, 200.0);
  VD shifted = x * (1.0 / kLn2) + kRoundMagicD;
  return {powerOfTwo(shifted), x - (shifted - kRoundMagicD) * kLn2};
}

SPYRE_INLINE VD expm1D(VD x) {
  ReducedExpD e = reduceExpD(x);
  return e.scale * expm1Reduced(e.r) + (e.scale - 1.0);
}

SPYRE_INLINE VD exp2D(VD x) {
  x = clampD(x, -300.0, 300.0);
  VD shifted = x + kRoundMagicD;
  VD r = (x - (shifted - kRoundMagicD)) * kLn2;
  return powerOfTwo(shifted) * (expm1Reduced(r) + 1.0);
}

SPYRE_INLINE VD expD(VD x) {
  ReducedExpD e = reduceExpD(x);
  return e.scale * (expm1Reduced(e.r) + 1.0);
}

SPYRE_INLINE VF expm1V(VF x) {
  return select(x == 0.0f, x, toFloat(expm1D(toDouble(x))));
}
SPYRE_INLINE VF sinhV(VF x) {
  VD e = expm1D(toDouble(absV(x)));
  return withSignOf(toFloat((e + e / (e + 1.0)) * 0.5), x);
}
SPYRE_INLINE VF coshV(VF x) {
  VD e = expm1D(toDouble(absV(x))) + 1.0;
  return toFloat((e + 1.0 / e) * 0.5);
}

SPYRE_INLINE VF tanhV(VF x) {
  VF t = absV(x);
  VF s = x * x;
  VF p = splat(-0.0057049855917135653f);
  p = mulAdd(p, s, splat(0.020639085832889888f));
  p = mulAdd(p, s, splat(-0.053739714589285467f));
  p = mulAdd(p, s, splat(0.1333144219118837f));
  p = mulAdd(p, s, splat(-0.33333281941703373f));
  VF small = mulAdd(p * s, x, x);
  VF limited = select(t > 10.0f, splat(10.0f), t);
  VF large = 1.0f - 2.0f / (expNormalOrNaN(limited + limited) + 1.0f);
  return withSignOf(select(t < 0.625f, small, large), x);
}

SPYRE_INLINE VF erfV(VF x) {
  VF t = absV(x);
  VF s = x * x;
  VF p = splat(8.2674397349361571e-5f);
  p = mulAdd(p, s, splat(-0.00081180691139316558f));
  p = mulAdd(p, s, splat(0.0051988291544465694f));
  p = mulAdd(p, s, splat(-0.026858496707895483f));
  p = mulAdd(p, s, splat(0.11283678959208759f));
  p = mulAdd(p, s, splat(-0.37612632636994356f));
  p = mulAdd(p, s, splat(0.12837916652045968f));
  VF small = mulAdd(p, x, x);
  // From 4 on the nearest float is 1.
  VF u = select(t > 4.0f, splat(4.0f), t);
  VF q = splat(3.4480575955127003e-7f);
  q = mulAdd(q, u, splat(1.6797526719414279e-5f));
  q = mulAdd(q, u, splat(-0.00041164596861357974f));
  q = mulAdd(q, u, splat(0.0041036884863891666f));
  q = mulAdd(q, u, splat(-0.02499845826284815f));
  q = mulAdd(q, u, splat(0.10814493402753521f));
  q = mulAdd(q, u, splat(0.63343859399287491f));
  q = mulAdd(q, u, splat(1.1294804439064286f));
  q = mulAdd(q, u, splat(-0.00016918855561634039f));
  VF large = 1.0f - expNormalOrNaN(-q);
  return withSignOf(select(t < 0.9375f, small, large), x);
}

SPYRE_INLINE VF erfcV(VF x) {
  VD t = toDouble(absV(x));
  // From 10.1 on the nearest float is 0.
  t = select(t > 10.1, splatD(10.1), t);
  // erfc(t) = u exp(P(u) - t^2).
  VD u = 2.0 / (t + 2.0);
  VD p = splatD(0.1832484424240232);
  p = mulAdd(p, u, splatD(-1.3539578540249717));
  p = mulAdd(p, u, splatD(4.3320046353738817));
  p = mulAdd(p, u, splatD(-7.753658808113302));
  p = mulAdd(p, u, splatD(8.3760027715665929));
  p = mulAdd(p, u, splatD(-5.6101771492536661));
  p = mulAdd(p, u, splatD(2.5740377325302683));
  p = mulAdd(p, u, splatD(-1.0327933978901511));
  p = mulAdd(p, u, splatD(0.12288180418766437));
  p = mulAdd(p, u, splatD(0.049570608514119428));
  p = mulAdd(p, u, splatD(0.37856858115954731));
  p = mulAdd(p, u, splatD(0.99977866815013696));
  p = mulAdd(p, u, splatD(-1.2655060344685546));
  VD value = u * expD(p - t * t);
  value = select(widen(bitsAs<VI>(x) < 0), 2.0 - value, value);
  return toFloat(value);
}

//===----------------------------------------------------------------------===//
// Logarithms
//===----------------------------------------------------------------------===//

/// log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1].
SPYRE_INLINE VD log1pReduced(VD f) {
  VD p = splatD(0.053867267805272998);
  p = mulAdd(p, f, splatD(-0.098630280980505603));
  p = mulAdd(p, f, splatD(0.099884782202131844));
  p = mulAdd(p, f, splatD(-0.099245466909451633));
  p = mulAdd(p, f, splatD(0.11014791980195486));
  p = mulAdd(p, f, splatD(-0.12498286688112697));
  p = mulAdd(p, f, splatD(0.14290174390103562));
  p = mulAdd(p, f, splatD(-0.16666855083669201));
  p = mulAdd(p, f, splatD(0.19999911255865977));
  p = mulAdd(p, f, splatD(-0.2499999707626903));
  p = mulAdd(p, f, splatD(0.33333333892366514));
  VD square = f * f;
  return mulAdd(p, f * square, mulAdd(square, splatD(-0.5), f));
}

/// x = 2^exponent * (1 + fraction), fraction as log1pReduced wants it; x is a
/// positive normal double.
struct SplitD {
  VD exponent, fraction;
};
SPYRE_INLINE SplitD splitD(VD x) {
  constexpr int64_t sqrtHalf = INT64_C(0x3fe6a09e667f3bcd);
  VL bits = bitsAs<VL>(x);
  VL e = (bits - sqrtHalf) >> 52;
  VD fraction = bitsAs<VD>(bits - (e << 52)) - 1.0;
  // The reverse of the rounding trick: an integer conversion would be a scalar
  // one before AVX-512.
  VD exponent = bitsAs<VD>(e + bitsAs<VL>(splatD(kRoundMagicD))) - kRoundMagicD;
  return {exponent, fraction};
}

/// A logarithm of x where x is 0, negative, infinite or NaN; `value` elsewhere.
SPYRE_INLINE VF logSpecial(VF x, VF value) {
  value = select(x == kInfinity, x, value);
  value = select(x == 0.0f, splat(-kInfinity), value);
  return select((x < 0.0f) | isNaN(x), splat(kNaN), value);
}

template <int Base>
SPYRE_INLINE VF logV(VF x) {
  SplitD split = splitD(toDouble(x));
  VD ln = log1pReduced(split.fraction);
  VD value;
  if constexpr (Base == 2)
    value = mulAdd(ln, splatD(1.0 / kLn2), split.exponent);
  else
    value = mulAdd(split.exponent, splatD(kLn2), ln);
  if constexpr (Base == 10)
    value = value * 0.43429448190325183;
  return logSpecial(x, toFloat(value));
}

SPYRE_INLINE VF log1pV(VF x) {
  VD wide = toDouble(x);
  // 1 + x rounds, which matters near 0 only; there x is the fraction.
  SplitD split = splitD(wide + 1.0);
  VL small = (wide > -0.29) & (wide < 0.41);
  VD fraction = select(small, wide, split.fraction);
  VD exponent = select(small, VD{}, split.exponent);
  VF value = toFloat(mulAdd(exponent, splatD(kLn2), log1pReduced(fraction)));
  // Sums lose the sign of -0.
  return select(x == 0.0f, x, logSpecial(x + 1.0f, value));
}

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

SPYRE_INLINE VF powV(VF x, VF y) {
  VF magnitude = absV(x);
  SplitD split = splitD(toDouble(magnitude));
  VD log2x =
      mulAdd(log1pReduced(split.fraction), splatD(1.0 / kLn2), split.exponent);
  VD infinity = splatD(__builtin_huge_val());
  log2x = select(widen(magnitude == 0.0f), -infinity, log2x);
  log2x = select(widen(magnitude == kInfinity), infinity, log2x);
  VF value = toFloat(exp2D(toDouble(y) * log2x));

  VF yMagnitude = absV(y);
  // From 2^24 on every float is an even integer; infinity counts as one.
  VI isLarge = yMagnitude >= 16777216.0f;
  VF limited = select(isLarge, VF{}, yMagnitude);
  VI whole = __builtin_convertvector(limited, VI);
  VI isInteger = toFloat(whole) == limited;
  VI isOdd = isInteger & ((whole & 1) == 1);
  VI isNegative = bitsAs<VI>(x) < 0;
  VI isFinite = magnitude < kInfinity;
  value = select((x < 0.0f) & isFinite & ~isInteger, splat(kNaN), value);
  value = select(isNegative & isOdd, -value, value);
  value = select(isNaN(x) | isNaN(y), splat(kNaN), value);
  VI isOne =
      (y == 0.0f) | (x == 1.0f) | ((x == -1.0f) & (yMagnitude == kInfinity));
  return select(isOne, splat(1.0f), value);
}

SPYRE_INLINE VF cbrtV(VF x) {
  VF magnitude = absV(x);
  SplitD split = splitD(toDouble(magnitude));
  VD log2x =
      mulAdd(log1pReduced(split.fraction), splatD(1.0 / kLn2), split.exponent);
  VF value = toFloat(exp2D(log2x * (1.0 / 3.0)));
  VI isSpecial = (magnitude == 0.0f) | ~(magnitude < kInfinity);
  return select(isSpecial, x, withSignOf(value, x));
}

//===----------------------------------------------------------------------===//
// Angles
//===----------------------------------------------------------------------===//

// Up to here the quotient by pi/2 times either of the first two parts of pi/2
// (33 bits each) is exact.
constexpr float kAngleLimit = 1.0e6f;

struct SinCosD {
  VD sine, cosine;
  VL quadrant;
};

SPYRE_INLINE SinCosD sinCosD(VD x) {
  VD shifted = mulAdd(x, splatD(0.63661977236758134), splatD(kRoundMagicD));
  VD n = shifted - kRoundMagicD;
  VD r = mulAdd(n, splatD(-1.57079632673412561417e+00), x);
  r = mulAdd(n, splatD(-6.07710050630396597660e-11), r);
  r = mulAdd(n, splatD(-2.02226624879595063154e-21), r);
  VD s = r * r;
  VD p = splatD(-1.0 / 39916800);
  p = mulAdd(p, s, splatD(1.0 / 362880));
  p = mulAdd(p, s, splatD(-1.0 / 5040));
  p = mulAdd(p, s, splatD(1.0 / 120));
  p = mulAdd(p, s, splatD(-1.0 / 6));
  VD q = splatD(1.0 / 479001600);
  q = mulAdd(q, s, splatD(-1.0 / 3628800));
  q = mulAdd(q, s, splatD(1.0 / 40320));
  q = mulAdd(q, s, splatD(-1.0 / 720));
  q = mulAdd(q, s, splatD(1.0 / 24));
  q = mulAdd(q, s, splatD(-0.5));
  return {mulAdd(p * s, r, r), mulAdd(q, s, splatD(1.0)), bitsAs<VL>(shifted)};
}

/// `fast` within the range of sinCosD, `exact` lane by lane if any is outside.
template <class Exact>
SPYRE_INLINE VF withinAngles(VF x, VF fast, Exact exact) {
  VI outside = ~(absV(x) <= kAngleLimit);
  if (__builtin_expect(any(outside), 0))
    for (int i = 0; i < kLanes; ++i)
      if (outside[i])
        fast[i] = exact(x[i]);
  return fast;
}

/// sin(x + quadrants * pi/2).
template <int Quadrants>
SPYRE_INLINE VF sineV(VF x) {
  SinCosD value = sinCosD(toDouble(x));
  VL quadrant = value.quadrant + Quadrants;
  VD chosen = select((quadrant & 1) == 0, value.sine, value.cosine);
  VL sign = (quadrant & 2) << 62;
  VF fast = toFloat(bitsAs<VD>(bitsAs<VL>(chosen) ^ sign));
  return withinAngles(x, fast, [](float v) {
    return Quadrants == 0 ? __builtin_sinf(v) : __builtin_cosf(v);
  });
}
SPYRE_INLINE VF sinV(VF x) { return select(x == 0.0f, x, sineV<0>(x)); }
SPYRE_INLINE VF cosV(VF x) { return sineV<1>(x); }

SPYRE_INLINE VF tanV(VF x) {
  SinCosD value = sinCosD(toDouble(x));
  VL even = (value.quadrant & 1) == 0;
  VD above = select(even, value.sine, -value.cosine);
  VD below = select(even, value.cosine, value.sine);
  VF fast = toFloat(above / below);
  fast = withinAngles(x, fast, [](float v) { return __builtin_tanf(v); });
  return select(x == 0.0f, x, fast);
}

/// The angle of the point (x, y) of the first quadrant, both not NaN.
SPYRE_INLINE VD angleD(VD y, VD x) {
  VL steep = y > x;
  VD above = select(steep, x, y);
  VD below = select(steep, y, x);
  // 0/0 means the angle 0, infinity/infinity 45 degrees.
  VD t = above / below;
  t = select(below == 0.0, VD{}, t);
  t = select(above == __builtin_huge_val(), splatD(1.0), t);
  VL upper = t > 0.41421356237309503;
  VD u = select(upper, (t - 1.0) / (t + 1.0), t);
  VD s = u * u;
  VD p = splatD(-0.037959358774358977);
  p = mulAdd(p, s, splatD(0.069932917254945102));
  p = mulAdd(p, s, splatD(-0.089973201681128599));
  p = mulAdd(p, s, splatD(0.11104058515084292));
  p = mulAdd(p, s, splatD(-0.14285426766644911));
  p = mulAdd(p, s, splatD(0.19999994409554275));
  p = mulAdd(p, s, splatD(-0.33333333296459738));
  VD angle = mulAdd(p * s, u, u);
  angle = angle + select(upper, splatD(0.78539816339744828), VD{});
  return select(steep, 1.5707963267948966 - angle, angle);
}

SPYRE_INLINE VF atan2V(VF y, VF x) {
  VD angle = angleD(toDouble(absV(y)), toDouble(absV(x)));
  VI isLeft = bitsAs<VI>(x) < 0;
  angle = select(widen(isLeft), 3.1415926535897931 - angle, angle);
  VF value = withSignOf(toFloat(angle), y);
  return select(isNaN(x) | isNaN(y), splat(kNaN), value);
}

SPYRE_INLINE VF atanV(VF x) {
  VF value = toFloat(angleD(toDouble(absV(x)), splatD(1.0)));
  return select(isNaN(x), x, withSignOf(value, x));
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_VECTORMATH_H
