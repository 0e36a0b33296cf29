// SPDX-License-Identifier: Apache-2.0
#include "Kernels.h"
#include "Rounders.h"
#include "VectorMath.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

/// value[g] = f(x[g * kLanes], ...).
template <class F>
static SPYRE_INLINE void computeGroup(F f, const float *x,
                                      VF (&value)[kGroup]) {
  for (int g = 0; g < kGroup; ++g)
    value[g] = f(load<VF>(x + g * kLanes));
}

namespace {
/// With `ToDL16`, exp() that is rounded to DL16 then: what becomes zero is no
/// subnormal float before, for which a processor takes much longer.
template <bool ToDL16>
struct Exp {
  SPYRE_INLINE VF operator()(VF x) const {
    constexpr float zero = -60.0f;
    return expV(ToDL16 ? select(x < zero, splat(zero), x) : x);
  }
};
} // namespace

/// Most results are normal numbers.
template <bool ToDL16>
static SPYRE_INLINE void computeGroup(Exp<ToDL16> f, const float *x,
                                      VF (&value)[kGroup]) {
  VU largest = {};
  for (int g = 0; g < kGroup; ++g) {
    value[g] = load<VF>(x + g * kLanes);
    VU magnitude = bitsAs<VU>(absV(value[g]));
    largest = select(magnitude > largest, magnitude, largest);
  }
  bool isNormal = !mayHold(largest > bitsAs<VU>(splat(kExpNormal)));
  for (VF &v : value)
    v = isNormal ? expNormal(v) : f(v);
}

/// One loop per operation and rounding; kept out of line so that the switch
/// stays small.
template <class F>
static __attribute__((noinline)) void
runGroups(const float *x, float *result, size_t n, Rounding rounding, F f) {
  computeRounded(result, n, rounding,
                 [&](size_t begin, size_t count, auto rounder) {
                   GroupRounder<decltype(rounder)> groups;
                   const float *in = x + begin;
                   float *out = result + begin;
                   size_t i = 0;
                   for (; i + kGroup * kLanes <= count; i += kGroup * kLanes) {
                     VF value[kGroup];
                     computeGroup(f, in + i, value);
                     roundGroup(groups, value);
                     for (int g = 0; g < kGroup; ++g)
                       store(out + i + g * kLanes, value[g]);
                   }
                   mapVectors(in + i, out + i, count - i,
                              [&](VF v) { return rounder.round(f(v)); });
                 });
}

/// As above, one vector after another, for functions of many instructions.
template <class F>
static __attribute__((noinline)) void run(const float *x, float *result,
                                          size_t n, Rounding rounding, F f) {
  computeRounded(result, n, rounding,
                 [&](size_t begin, size_t count, auto rounder) {
                   mapVectors(x + begin, result + begin, count,
                              [&](VF v) { return rounder.round(f(v)); });
                 });
}

void roundFloat(const float *x, float *result, size_t n, Rounding rounding) {
  dispatchRounding(rounding, [&](auto rounder) {
    mapVectors(x, result, n, [&](VF v) { return rounder.round(v); });
  });
}

void roundInPlace(float *x, size_t n, Rounding rounding) {
  roundFloat(x, x, n, rounding);
}

void unary(UnaryOp op, const float *x, float *result, size_t n,
           Rounding rounding) {
#define SPYRE_UNARY(NAME, EXPRESSION)                                          \
  case UnaryOp::NAME:                                                          \
    return runGroups(x, result, n, rounding, [](VF v) { return EXPRESSION; });
#define SPYRE_UNARY_LIBM(NAME, FUNCTION)                                       \
  case UnaryOp::NAME:                                                          \
    return run(x, result, n, rounding, [](VF v) {                              \
      return perLane(v, [](float f) { return FUNCTION(f); });                  \
    });

  switch (op) {
    SPYRE_UNARY(Neg, bitsAs<VF>(bitsAs<VU>(v) ^ kSignBit))
    SPYRE_UNARY(Abs, absV(v))
    SPYRE_UNARY(Exp2, exp2V(v))
    SPYRE_UNARY(Expm1, expm1V(v))
    SPYRE_UNARY(Log, logV<0>(v))
    SPYRE_UNARY(Log2, logV<2>(v))
    SPYRE_UNARY(Log10, logV<10>(v))
    SPYRE_UNARY(Log1p, log1pV(v))
    SPYRE_UNARY(Sqrt, sqrtV(v))
    SPYRE_UNARY(Rsqrt, 1.0f / sqrtV(v))
    SPYRE_UNARY(Reciprocal, 1.0f / v)
    SPYRE_UNARY(Sin, sinV(v))
    SPYRE_UNARY(Cos, cosV(v))
    SPYRE_UNARY(Tan, tanV(v))
    SPYRE_UNARY_LIBM(Asin, __builtin_asinf)
    SPYRE_UNARY_LIBM(Acos, __builtin_acosf)
    SPYRE_UNARY(Atan, atanV(v))
    SPYRE_UNARY(Sinh, sinhV(v))
    SPYRE_UNARY(Cosh, coshV(v))
    SPYRE_UNARY(Tanh, tanhV(v))
    SPYRE_UNARY_LIBM(Asinh, __builtin_asinhf)
    SPYRE_UNARY_LIBM(Acosh, __builtin_acoshf)
    SPYRE_UNARY_LIBM(Atanh, __builtin_atanhf)
    SPYRE_UNARY(Erf, erfV(v))
    SPYRE_UNARY(Erfc, erfcV(v))
    SPYRE_UNARY(Cbrt, cbrtV(v))
    SPYRE_UNARY(Floor, floorV(v))
    SPYRE_UNARY(Ceil, ceilV(v))
    SPYRE_UNARY(Round, roundHalfAwayV(v))
    SPYRE_UNARY(RoundEven, roundHalfEvenV(v))
    SPYRE_UNARY(Trunc, truncV(v))
  case UnaryOp::Exp:
    if (rounding == Rounding::DL16)
      return runGroups(x, result, n, rounding, Exp<true>());
    return runGroups(x, result, n, rounding, Exp<false>());
  case UnaryOp::Copy:
    return roundFloat(x, result, n, rounding);
  }
#undef SPYRE_UNARY_LIBM
#undef SPYRE_UNARY
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
