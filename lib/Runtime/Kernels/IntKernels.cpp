// SPDX-License-Identifier: Apache-2.0
#include "Kernels.h"
#include "Rounders.h"
#include "Vector.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

//===----------------------------------------------------------------------===//
// The value of a width
//===----------------------------------------------------------------------===//

/// Keeps the low `Width` bits, in the form that a tile holds them.
template <unsigned Width, class T>
static SPYRE_INLINE T wrap(T x) {
  if constexpr (Width == 1)
    return x & 1;
  else if constexpr (Width == 8)
    return T(int8_t(x));
  else if constexpr (Width == 16)
    return T(int16_t(x));
  else if constexpr (Width == 32)
    return T(int32_t(x));
  else
    return x;
}

/// A tile holds the i1 true as 1; read as signed it is -1.
template <unsigned Width, class T>
static SPYRE_INLINE T asSigned(T x) {
  return Width == 1 ? -x : x;
}

template <unsigned Width, class T>
static SPYRE_INLINE std::make_unsigned_t<T> asUnsigned(T x) {
  using U = std::make_unsigned_t<T>;
  if constexpr (Width == 8 || Width == 16)
    return U(x) & ((U(1) << Width) - 1);
  else
    return U(x);
}

template <class F>
static SPYRE_INLINE void dispatchWidth(unsigned width, F f) {
  switch (width) {
  case 1:
    return f(std::integral_constant<unsigned, 1>());
  case 8:
    return f(std::integral_constant<unsigned, 8>());
  case 16:
    return f(std::integral_constant<unsigned, 16>());
  default:
    return f(std::integral_constant<unsigned, 32>());
  }
}

/// Calls f(i, a, b) for every i, in loops that the compiler can vectorise. One
/// of the steps is 1, or n is at most 1.
template <class T, class F>
static SPYRE_INLINE void forPairs(const T *a, size_t stepA, const T *b,
                                  size_t stepB, size_t n, F f) {
  if (n <= 1 || (stepA && stepB)) {
    for (size_t i = 0; i < n; ++i)
      f(i, a[i], b[i]);
  } else if (stepA) {
    T y = *b;
    for (size_t i = 0; i < n; ++i)
      f(i, a[i], y);
  } else {
    T x = *a;
    for (size_t i = 0; i < n; ++i)
      f(i, x, b[i]);
  }
}

/// The same in one loop, for what does not vectorise and takes longer than
/// finding the operands.
template <class T, class F>
static SPYRE_INLINE void forSlowPairs(const T *a, size_t stepA, const T *b,
                                      size_t stepB, size_t n, F f) {
  for (size_t i = 0; i < n; ++i)
    f(i, a[i * stepA], b[i * stepB]);
}

/// Gives all n elements the value of the first: the result of two scalars.
template <class T>
static void repeatFirst(T *result, size_t n) {
  T value = *result;
  for (size_t i = 1; i < n; ++i)
    result[i] = value;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

namespace {
/// Exact results are formed in a type that holds them, or by the compiler's
/// overflow-checking builtins.
template <unsigned Width, class T>
struct Arithmetic {
  using U = std::make_unsigned_t<T>;
  unsigned status = kIntOk;
  // Negative if an addition or subtraction overflowed.
  T overflowSigns = 0;

  unsigned finalStatus() const {
    return status | (overflowSigns < 0 ? kIntOverflow : kIntOk);
  }
  SPYRE_INLINE T finish(T low, bool overflows) {
    if (Width != 1)
      status |= overflows ? kIntOverflow : kIntOk;
    return low;
  }
  SPYRE_INLINE T fromWide(int64_t exact) {
    T low = wrap<Width>(T(exact));
    return finish(low, low != exact);
  }
  SPYRE_INLINE T add(T a, T b) {
    if constexpr (Width < 32)
      return fromWide(int64_t(a) + b);
    // Overflow: both operands differ in sign from the sum. The sign bits are
    // collected, which vectorises better than a flag does.
    T r = T(U(a) + U(b));
    overflowSigns |= (a ^ r) & (b ^ r);
    return r;
  }
  SPYRE_INLINE T sub(T a, T b) {
    if constexpr (Width < 32)
      return fromWide(int64_t(a) - b);
    T r = T(U(a) - U(b));
    overflowSigns |= (a ^ b) & (a ^ r);
    return r;
  }
  SPYRE_INLINE T mul(T a, T b) {
    if constexpr (Width < 64)
      return fromWide(int64_t(a) * b);
    T r;
    bool overflows = __builtin_mul_overflow(a, b, &r);
    return finish(r, overflows);
  }

  enum class Direction { Truncate, Floor, Ceil };
  template <Direction D>
  SPYRE_INLINE T divS(T x, T y) {
    T a = asSigned<Width>(x), b = asSigned<Width>(y);
    if (b == 0) {
      status |= kIntDivideByZero;
      return 0;
    }
    // The only quotient that may not fit, and that the processor traps on.
    if (b == -1)
      return wrap<Width>(sub(0, a));
    T q = a / b, r = a % b;
    if (D == Direction::Floor && r != 0 && (r < 0) != (b < 0))
      --q;
    if (D == Direction::Ceil && r != 0 && (r < 0) == (b < 0))
      ++q;
    return wrap<Width>(q);
  }
  SPYRE_INLINE T remS(T x, T y) {
    T a = asSigned<Width>(x), b = asSigned<Width>(y);
    if (b == 0) {
      status |= kIntDivideByZero;
      return 0;
    }
    return b == -1 ? 0 : wrap<Width>(T(a % b));
  }
  template <bool IsCeil>
  SPYRE_INLINE T divU(T x, T y) {
    U a = asUnsigned<Width>(x), b = asUnsigned<Width>(y);
    if (b == 0) {
      status |= kIntDivideByZero;
      return 0;
    }
    return wrap<Width>(T(a / b + (IsCeil && a % b != 0)));
  }
  SPYRE_INLINE T remU(T x, T y) {
    U a = asUnsigned<Width>(x), b = asUnsigned<Width>(y);
    if (b == 0) {
      status |= kIntDivideByZero;
      return 0;
    }
    return wrap<Width>(T(a % b));
  }

  SPYRE_INLINE bool isBadShift(T amount) {
    bool bad = asUnsigned<Width>(amount) >= Width;
    status |= bad ? kIntBadShift : kIntOk;
    return bad;
  }
  SPYRE_INLINE T shl(T a, T amount) {
    if (isBadShift(amount))
      return 0;
    T r = wrap<Width>(T(U(a) << amount));
    return finish(r, (asSigned<Width>(r) >> amount) != asSigned<Width>(a));
  }
  SPYRE_INLINE T shrS(T a, T amount) {
    T value = asSigned<Width>(a);
    return wrap<Width>(
        T(value >> (isBadShift(amount) ? T(Width - 1) : amount)));
  }
  SPYRE_INLINE T shrU(T a, T amount) {
    return isBadShift(amount) ? 0
                              : wrap<Width>(T(asUnsigned<Width>(a) >> amount));
  }
};

} // namespace

/// Divides numbers of 32 bits by one of them, by way of doubles, which
/// vectorises: their quotient is rounded by less than its distance to another
/// whole number. Returns false, and does nothing, if the operation is another
/// one, or some number is larger.
template <class T>
static bool divideByOne(IntBinaryOp op, const T *a, T divisor, T *result,
                        size_t n) {
  auto y = int32_t(divisor);
  if (y != divisor || y == 0 || y == -1)
    return false;
  if (sizeof(T) > sizeof(int32_t)) {
    bool fits = true;
    for (size_t i = 0; i < n; ++i)
      fits &= a[i] == int32_t(a[i]);
    if (!fits)
      return false;
  }
  auto forQuotients = [&](auto f) SPYRE_INLINE_LAMBDA {
    for (size_t i = 0; i < n; ++i) {
      auto x = int32_t(a[i]);
      auto q = int32_t(double(x) / double(y));
      auto r = int32_t(uint32_t(x) - uint32_t(q) * uint32_t(y));
      result[i] = f(q, r);
    }
    return true;
  };
  switch (op) {
  case IntBinaryOp::DivS:
    return forQuotients([](int32_t q, int32_t) { return q; });
  case IntBinaryOp::FloorDivS:
    return forQuotients([y](int32_t q, int32_t r) {
      return q - int32_t((r != 0) & ((r ^ y) < 0));
    });
  case IntBinaryOp::CeilDivS:
    return forQuotients([y](int32_t q, int32_t r) {
      return q + int32_t((r != 0) & ((r ^ y) >= 0));
    });
  case IntBinaryOp::RemS:
    return forQuotients([](int32_t, int32_t r) { return r; });
  default:
    return false;
  }
}

/// Operations whose result depends on the operands' bits alone, not on their
/// width. Returns false, and does nothing, if the operation is another one.
template <class T>
static __attribute__((noinline)) bool
runBitwise(IntBinaryOp op, const T *a, size_t stepA, const T *b, size_t stepB,
           T *result, size_t n) {
  using U = std::make_unsigned_t<T>;
#define SPYRE_BITWISE(NAME, EXPRESSION)                                        \
  case IntBinaryOp::NAME:                                                      \
    forPairs(a, stepA, b, stepB, n,                                            \
             [&](size_t i, T x, T y) { result[i] = EXPRESSION; });             \
    return true;

  switch (op) {
    SPYRE_BITWISE(And, x & y)
    SPYRE_BITWISE(Or, x | y)
    SPYRE_BITWISE(Xor, x ^ y)
    SPYRE_BITWISE(MinS, (x < y ? x : y))
    SPYRE_BITWISE(MaxS, (x > y ? x : y))
    // A sign-extended value has the unsigned order of its own width.
    SPYRE_BITWISE(MinU, (U(x) < U(y) ? x : y))
    SPYRE_BITWISE(MaxU, (U(x) > U(y) ? x : y))
  default:
    return false;
  }
#undef SPYRE_BITWISE
}

template <unsigned Width, class T>
static unsigned runBinary(IntBinaryOp op, const T *a, size_t stepA, const T *b,
                          size_t stepB, T *result, size_t n) {
  if (stepA == 0 && stepB == 0 && n > 1) {
    unsigned status = runBinary<Width>(op, a, 1, b, 1, result, 1);
    repeatFirst(result, n);
    return status;
  }
  if (Width >= 32 && stepA && !stepB && n > 1 &&
      divideByOne(op, a, *b, result, n))
    return kIntOk;
  // The signed values of i1 are 0 and -1: the smaller has the larger bit.
  bool isReversed = Width == 1;
  IntBinaryOp bitwise = op;
  if (isReversed && op == IntBinaryOp::MinS)
    bitwise = IntBinaryOp::MaxS;
  else if (isReversed && op == IntBinaryOp::MaxS)
    bitwise = IntBinaryOp::MinS;
  if (runBitwise(bitwise, a, stepA, b, stepB, result, n))
    return kIntOk;
  using A = Arithmetic<Width, T>;
  using D = typename A::Direction;
  A unit;
#define SPYRE_INT(LOOP, NAME, EXPRESSION)                                      \
  case IntBinaryOp::NAME:                                                      \
    LOOP(a, stepA, b, stepB, n,                                                \
         [&](size_t i, T x, T y) { result[i] = EXPRESSION; });                 \
    break;

  switch (op) {
    SPYRE_INT(forPairs, Add, unit.add(x, y))
    SPYRE_INT(forPairs, Sub, unit.sub(x, y))
    SPYRE_INT(forPairs, Mul, unit.mul(x, y))
    SPYRE_INT(forSlowPairs, DivS, unit.template divS<D::Truncate>(x, y))
    SPYRE_INT(forSlowPairs, DivU, unit.template divU<false>(x, y))
    SPYRE_INT(forSlowPairs, FloorDivS, unit.template divS<D::Floor>(x, y))
    SPYRE_INT(forSlowPairs, CeilDivS, unit.template divS<D::Ceil>(x, y))
    SPYRE_INT(forSlowPairs, CeilDivU, unit.template divU<true>(x, y))
    SPYRE_INT(forSlowPairs, RemS, unit.remS(x, y))
    SPYRE_INT(forSlowPairs, RemU, unit.remU(x, y))
    SPYRE_INT(forPairs, Shl, unit.shl(x, y))
    SPYRE_INT(forPairs, ShrS, unit.shrS(x, y))
    SPYRE_INT(forPairs, ShrU, unit.shrU(x, y))
  default:
    break;
  }
#undef SPYRE_INT
  return unit.finalStatus();
}

template <unsigned Width, class T>
static unsigned runUnary(IntUnaryOp op, const T *x, T *result, size_t n) {
  unsigned status = kIntOk;
  switch (op) {
  case IntUnaryOp::Abs: {
    Arithmetic<Width, T> unit;
    for (size_t i = 0; i < n; ++i) {
      T value = asSigned<Width>(x[i]);
      result[i] = wrap<Width>(value < 0 ? unit.sub(0, value) : value);
    }
    status = unit.finalStatus();
    break;
  }
  case IntUnaryOp::CtPop:
    for (size_t i = 0; i < n; ++i)
      result[i] = wrap<Width>(T(__builtin_popcountll(asUnsigned<Width>(x[i]))));
    break;
  case IntUnaryOp::Ctlz:
    for (size_t i = 0; i < n; ++i) {
      uint64_t value = asUnsigned<Width>(x[i]);
      result[i] = wrap<Width>(
          T(value ? unsigned(__builtin_clzll(value)) - (64 - Width) : Width));
    }
    break;
  case IntUnaryOp::Cttz:
    for (size_t i = 0; i < n; ++i) {
      uint64_t value = asUnsigned<Width>(x[i]);
      result[i] =
          wrap<Width>(T(value ? unsigned(__builtin_ctzll(value)) : Width));
    }
    break;
  }
  return status;
}

template <class T>
static void runCompare(IntPredicate predicate, const T *a, size_t stepA,
                       const T *b, size_t stepB, int32_t *result, size_t n) {
  if (stepA == 0 && stepB == 0 && n > 1) {
    runCompare(predicate, a, 1, b, 1, result, 1);
    return repeatFirst(result, n);
  }
  using U = std::make_unsigned_t<T>;
#define SPYRE_COMPARE(NAME, EXPRESSION)                                        \
  case IntPredicate::NAME:                                                     \
    return forPairs(a, stepA, b, stepB, n,                                     \
                    [&](size_t i, T x, T y) { result[i] = EXPRESSION; });

  switch (predicate) {
    SPYRE_COMPARE(EQ, x == y)
    SPYRE_COMPARE(NE, x != y)
    SPYRE_COMPARE(SLT, x < y)
    SPYRE_COMPARE(SLE, x <= y)
    SPYRE_COMPARE(SGT, x > y)
    SPYRE_COMPARE(SGE, x >= y)
    SPYRE_COMPARE(ULT, U(x) < U(y))
    SPYRE_COMPARE(ULE, U(x) <= U(y))
    SPYRE_COMPARE(UGT, U(x) > U(y))
    SPYRE_COMPARE(UGE, U(x) >= U(y))
  }
#undef SPYRE_COMPARE
}

template <class T>
static SPYRE_INLINE void
runSelect(const int32_t *condition, size_t stepCondition, const T *a,
          size_t stepA, const T *b, size_t stepB, T *result, size_t n) {
  if (n == 0)
    return;
  if (stepCondition == 0) {
    const T *source = *condition ? a : b;
    size_t step = *condition ? stepA : stepB;
    for (size_t i = 0; i < n; ++i)
      result[i] = source[i * step];
    return;
  }
  if (stepA == 0 && stepB == 0) {
    T x = *a, y = *b;
    for (size_t i = 0; i < n; ++i)
      result[i] = condition[i] != 0 ? x : y;
    return;
  }
  forPairs(a, stepA, b, stepB, n,
           [&](size_t i, T x, T y) { result[i] = condition[i] != 0 ? x : y; });
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// Reads element i of an int32_t or int64_t buffer as its width says.
template <class F>
static SPYRE_INLINE void dispatchSource(const void *x, unsigned width,
                                        bool isSigned, F f) {
  if (width == 64) {
    const int64_t *p = static_cast<const int64_t *>(x);
    return f([p](size_t i) { return p[i]; });
  }
  const int32_t *p = static_cast<const int32_t *>(x);
  if (isSigned) {
    // Only i1 is not held as its signed value.
    int32_t flip = width == 1 ? -1 : 0;
    return f([p, flip](size_t i) { return (p[i] ^ flip) - flip; });
  }
  uint32_t mask = width == 32 ? ~0u : (1u << width) - 1;
  f([p, mask](size_t i) { return int64_t(uint32_t(p[i]) & mask); });
}

/// The nearest float at or below 2^24 in magnitude; beyond, one of 24 bits
/// whose last bit is set if anything was cut off, so that rounding it to a
/// narrower format is rounding the integer.
static SPYRE_INLINE float floatForRounding(uint64_t magnitude) {
  if (magnitude < (UINT64_C(1) << 24))
    return float(int64_t(magnitude));
  int shift = 40 - __builtin_clzll(magnitude);
  uint64_t kept = magnitude >> shift;
  kept |= (kept << shift) != magnitude;
  uint32_t exponent = uint32_t(127 + shift + 23) << 23;
  return bitsAs<float>(exponent + (uint32_t(kept) - (1u << 23)));
}

template <class T>
static unsigned floatToWidth(const float *x, T *result, unsigned width,
                             bool isSigned, size_t n) {
  // Bounds as floats: `low` is the least value, `high` one past the largest.
  auto power = [](unsigned exponent) {
    return bitsAs<float>(uint32_t(127 + exponent) << 23);
  };
  float low = isSigned ? -power(width - 1) : 0.0f;
  float high = power(isSigned ? width - 1 : width);
  using U = std::make_unsigned_t<T>;
  uint64_t allOnes = width == 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1;
  uint64_t most = isSigned ? allOnes >> 1 : allOnes;
  uint64_t least = isSigned ? most + 1 : 0;
  unsigned status = kIntOk;
  for (size_t i = 0; i < n; ++i) {
    float value = __builtin_truncf(x[i]);
    uint64_t bits;
    if (value >= low && value < high) {
      bits = value < 0 ? uint64_t(int64_t(value)) : uint64_t(value);
    } else {
      status |= kIntOutOfRange;
      bits = value >= high ? most : value < low ? least : 0;
    }
    if (width == 1)
      result[i] = T(bits & 1);
    else if (width == 8)
      result[i] = T(int8_t(bits));
    else if (width == 16)
      result[i] = T(int16_t(bits));
    else
      result[i] = T(U(bits));
  }
  return status;
}

IntStatus unaryInt32(IntUnaryOp op, const int32_t *x, int32_t *result, size_t n,
                     unsigned width) {
  unsigned status = kIntOk;
  dispatchWidth(width, [&](auto w) {
    status = runUnary<decltype(w)::value>(op, x, result, n);
  });
  return IntStatus(status);
}

IntStatus unaryInt64(IntUnaryOp op, const int64_t *x, int64_t *result,
                     size_t n) {
  return IntStatus(runUnary<64>(op, x, result, n));
}

IntStatus binaryInt32(IntBinaryOp op, const int32_t *a, size_t stepA,
                      const int32_t *b, size_t stepB, int32_t *result, size_t n,
                      unsigned width) {
  unsigned status = kIntOk;
  dispatchWidth(width, [&](auto w) {
    status = runBinary<decltype(w)::value>(op, a, stepA, b, stepB, result, n);
  });
  return IntStatus(status);
}

IntStatus binaryInt64(IntBinaryOp op, const int64_t *a, size_t stepA,
                      const int64_t *b, size_t stepB, int64_t *result,
                      size_t n) {
  return IntStatus(runBinary<64>(op, a, stepA, b, stepB, result, n));
}

void compareInt32(IntPredicate predicate, const int32_t *a, size_t stepA,
                  const int32_t *b, size_t stepB, int32_t *result, size_t n,
                  unsigned width) {
  // The signed values of i1 are 0 and -1: exchange the operands.
  bool isSigned =
      predicate >= IntPredicate::SLT && predicate <= IntPredicate::SGE;
  if (width == 1 && isSigned)
    return runCompare(predicate, b, stepB, a, stepA, result, n);
  runCompare(predicate, a, stepA, b, stepB, result, n);
}

void compareInt64(IntPredicate predicate, const int64_t *a, size_t stepA,
                  const int64_t *b, size_t stepB, int32_t *result, size_t n) {
  runCompare(predicate, a, stepA, b, stepB, result, n);
}

void selectInt32(const int32_t *condition, size_t stepCondition,
                 const int32_t *a, size_t stepA, const int32_t *b, size_t stepB,
                 int32_t *result, size_t n) {
  runSelect(condition, stepCondition, a, stepA, b, stepB, result, n);
}

void selectInt64(const int32_t *condition, size_t stepCondition,
                 const int64_t *a, size_t stepA, const int64_t *b, size_t stepB,
                 int64_t *result, size_t n) {
  runSelect(condition, stepCondition, a, stepA, b, stepB, result, n);
}

void castInt(const void *x, unsigned widthX, bool isSigned, void *result,
             unsigned widthResult, size_t n) {
  dispatchSource(x, widthX, isSigned, [&](auto source) {
    if (widthResult == 64) {
      int64_t *out = static_cast<int64_t *>(result);
      for (size_t i = 0; i < n; ++i)
        out[i] = source(i);
      return;
    }
    int32_t *out = static_cast<int32_t *>(result);
    dispatchWidth(widthResult, [&](auto w) {
      for (size_t i = 0; i < n; ++i)
        out[i] = wrap<decltype(w)::value>(int32_t(source(i)));
    });
  });
}

void intToFloat(const void *x, unsigned widthX, bool isSigned, float *result,
                size_t n, Rounding rounding) {
  bool isWideUnsigned = widthX == 64 && !isSigned;
  dispatchSource(x, widthX, isSigned, [&](auto source) {
    // Integers of 16 bits are floats already.
    if (rounding == Rounding::None || widthX <= 16) {
      if (isWideUnsigned)
        for (size_t i = 0; i < n; ++i)
          result[i] = float(uint64_t(source(i)));
      else
        for (size_t i = 0; i < n; ++i)
          result[i] = float(source(i));
    } else {
      for (size_t i = 0; i < n; ++i) {
        int64_t value = source(i);
        bool isNegative = value < 0 && !isWideUnsigned;
        float magnitude = floatForRounding(isNegative ? 0 - uint64_t(value)
                                                      : uint64_t(value));
        result[i] = isNegative ? -magnitude : magnitude;
      }
    }
  });
  if (rounding != Rounding::None)
    roundInPlace(result, n, rounding);
}

IntStatus floatToInt(const float *x, void *result, unsigned widthResult,
                     bool isSigned, size_t n) {
  if (widthResult == 64)
    return IntStatus(
        floatToWidth(x, static_cast<int64_t *>(result), 64, isSigned, n));
  return IntStatus(floatToWidth(x, static_cast<int32_t *>(result), widthResult,
                                isSigned, n));
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
