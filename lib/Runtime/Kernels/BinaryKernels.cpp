// SPDX-License-Identifier: Apache-2.0
#include "Kernels.h"
#include "Rounders.h"
#include "VectorMath.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

template <class F>
static __attribute__((noinline)) void
run(const float *a, size_t stepA, const float *b, size_t stepB, float *result,
    size_t n, Rounding rounding, F f) {
  computeRounded(
      result, n, rounding, [&](size_t begin, size_t count, auto rounder) {
        Operand x(stepA ? a + begin : a, stepA, count);
        Operand y(stepB ? b + begin : b, stepB, count);
        float *out = result + begin;
        GroupRounder<decltype(rounder)> groups;
        size_t i = 0;
        for (; i + kGroup * kLanes <= count; i += kGroup * kLanes) {
          VF value[kGroup];
          for (int g = 0; g < kGroup; ++g)
            value[g] = f(x.at(i + g * kLanes), y.at(i + g * kLanes));
          roundGroup(groups, value);
          for (int g = 0; g < kGroup; ++g)
            store(out + i + g * kLanes, value[g]);
        }
        for (; i + kLanes <= count; i += kLanes)
          store(out + i, rounder.round(f(x.at(i), y.at(i))));
        if (size_t rest = count - i)
          storeTail(out + i, rounder.round(f(x.tail(i, rest), y.tail(i, rest))),
                    rest);
      });
}

/// The larger (Sign = 1) or smaller (-1) of two numbers, with -0 below +0.
template <int Sign>
static SPYRE_INLINE VF extremum(VF a, VF b) {
  VF chosen = Sign > 0 ? select(a > b, a, b) : select(a < b, a, b);
  VU both =
      Sign > 0 ? bitsAs<VU>(a) & bitsAs<VU>(b) : bitsAs<VU>(a) | bitsAs<VU>(b);
  return select(a == b, bitsAs<VF>(both), chosen);
}
template <int Sign>
static SPYRE_INLINE VF propagating(VF a, VF b) {
  return select(isNaN(a) | isNaN(b), a + b, extremum<Sign>(a, b));
}
template <int Sign>
static SPYRE_INLINE VF preferNumber(VF a, VF b) {
  return select(isNaN(a), b, select(isNaN(b), a, extremum<Sign>(a, b)));
}

static SPYRE_INLINE VF remainder(VF a, VF b) {
  VF r = {};
  for (int i = 0; i < kLanes; ++i)
    r[i] = __builtin_fmodf(a[i], b[i]);
  return r;
}

/// a * b + c with one rounding.
static SPYRE_INLINE VF fusedExactly(VF a, VF b, VF c) {
#ifdef SPYRE_HAS_VECTOR_FMA
  return __builtin_elementwise_fma(a, b, c);
#else
  VF r = {};
  for (int i = 0; i < kLanes; ++i)
    r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}

template <class F>
static __attribute__((noinline)) void compare(const float *a, size_t stepA,
                                              const float *b, size_t stepB,
                                              int32_t *result, size_t n, F f) {
  Operand x(a, stepA, n), y(b, stepB, n);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(result + i, VI(f(x.at(i), y.at(i))) & 1);
  if (size_t rest = n - i) {
    VI last = VI(f(x.tail(i, rest), y.tail(i, rest))) & 1;
    __builtin_memcpy(result + i, &last, rest * sizeof(int32_t));
  }
}

void binary(BinaryOp op, const float *a, size_t stepA, const float *b,
            size_t stepB, float *result, size_t n, Rounding rounding) {
#define SPYRE_BINARY(NAME, EXPRESSION)                                         \
  case BinaryOp::NAME:                                                         \
    return run(a, stepA, b, stepB, result, n, rounding,                        \
               [](VF x, VF y) { return EXPRESSION; });

  switch (op) {
    SPYRE_BINARY(Add, x + y)
    SPYRE_BINARY(Sub, x - y)
    SPYRE_BINARY(Mul, x * y)
    SPYRE_BINARY(Div, x / y)
    SPYRE_BINARY(Rem, remainder(x, y))
    SPYRE_BINARY(Maximum, propagating<1>(x, y))
    SPYRE_BINARY(Minimum, propagating<-1>(x, y))
    SPYRE_BINARY(MaxNum, preferNumber<1>(x, y))
    SPYRE_BINARY(MinNum, preferNumber<-1>(x, y))
    SPYRE_BINARY(Pow, powV(x, y))
    SPYRE_BINARY(Atan2, atan2V(x, y))
    SPYRE_BINARY(CopySign, withSignOf(x, y))
  }
#undef SPYRE_BINARY
}

void fusedMultiplyAdd(const float *a, size_t stepA, const float *b,
                      size_t stepB, const float *c, size_t stepC, float *result,
                      size_t n, Rounding rounding) {
  computeRounded(
      result, n, rounding, [&](size_t begin, size_t count, auto rounder) {
        Operand x(stepA ? a + begin : a, stepA, count);
        Operand y(stepB ? b + begin : b, stepB, count);
        Operand z(stepC ? c + begin : c, stepC, count);
        float *out = result + begin;
        size_t i = 0;
        for (; i + kLanes <= count; i += kLanes)
          store(out + i,
                rounder.round(fusedExactly(x.at(i), y.at(i), z.at(i))));
        if (size_t rest = count - i)
          storeTail(out + i,
                    rounder.round(fusedExactly(x.tail(i, rest), y.tail(i, rest),
                                               z.tail(i, rest))),
                    rest);
      });
}

void compareFloat(FloatPredicate predicate, const float *a, size_t stepA,
                  const float *b, size_t stepB, int32_t *result, size_t n) {
#define SPYRE_COMPARE(NAME, EXPRESSION)                                        \
  case FloatPredicate::NAME:                                                   \
    return compare(a, stepA, b, stepB, result, n, [](VF x, VF y) {             \
      (void)x;                                                                 \
      (void)y;                                                                 \
      return EXPRESSION;                                                       \
    });

  switch (predicate) {
    SPYRE_COMPARE(False, VI{})
    SPYRE_COMPARE(OEQ, x == y)
    SPYRE_COMPARE(OGT, x > y)
    SPYRE_COMPARE(OGE, x >= y)
    SPYRE_COMPARE(OLT, x < y)
    SPYRE_COMPARE(OLE, x <= y)
    SPYRE_COMPARE(ONE, (x < y) | (x > y))
    SPYRE_COMPARE(ORD, ~(isNaN(x) | isNaN(y)))
    SPYRE_COMPARE(UEQ, ~((x < y) | (x > y)))
    SPYRE_COMPARE(UGT, ~(x <= y))
    SPYRE_COMPARE(UGE, ~(x < y))
    SPYRE_COMPARE(ULT, ~(x >= y))
    SPYRE_COMPARE(ULE, ~(x > y))
    SPYRE_COMPARE(UNE, ~(x == y))
    SPYRE_COMPARE(UNO, isNaN(x) | isNaN(y))
    SPYRE_COMPARE(True, ~VI{})
  }
#undef SPYRE_COMPARE
}

void selectFloat(const int32_t *condition, size_t stepCondition, const float *a,
                 size_t stepA, const float *b, size_t stepB, float *result,
                 size_t n) {
  // Selecting moves bits, so the integer kernel does it.
  selectInt32(condition, stepCondition, reinterpret_cast<const int32_t *>(a),
              stepA, reinterpret_cast<const int32_t *>(b), stepB,
              reinterpret_cast<int32_t *>(result), n);
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
