// SPDX-License-Identifier: Apache-2.0
//===- Vector.h - Vector types of one instruction set -----------*- C++ -*-===//
//
// Every file of the kernels but TileKernels.cpp is compiled once per
// instruction set, with SPYRE_KERNEL_ISA naming it. Code lives in a namespace
// of that name and calls no inline function of other headers: the linker keeps
// one copy of such a function, which may be the one for a newer processor.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_VECTOR_H
#define SPYRE_LIB_RUNTIME_KERNELS_VECTOR_H

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#ifdef __AVX2__
// Only functions that are always inlined.
#include <immintrin.h>
#endif

#ifndef SPYRE_KERNEL_ISA
#error "SPYRE_KERNEL_ISA must name the instruction set"
#endif

#define SPYRE_INLINE inline __attribute__((always_inline))
#define SPYRE_INLINE_LAMBDA __attribute__((always_inline))

namespace spyre::runtime::SPYRE_KERNEL_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kLanes = kVectorBytes / 4;

typedef float VF __attribute__((vector_size(kVectorBytes)));
typedef int32_t VI __attribute__((vector_size(kVectorBytes)));
typedef uint32_t VU __attribute__((vector_size(kVectorBytes)));
// Vectors with the lanes of VF. The compiler splits wide ones over two
// registers.
typedef double VD __attribute__((vector_size(2 * kVectorBytes)));
typedef int64_t VL __attribute__((vector_size(2 * kVectorBytes)));
typedef uint16_t VH __attribute__((vector_size(kVectorBytes / 2)));
// Twice as many lanes, in one register.
typedef uint16_t VW __attribute__((vector_size(kVectorBytes)));
typedef int16_t VS __attribute__((vector_size(kVectorBytes)));
typedef uint8_t VB __attribute__((vector_size(kVectorBytes / 4)));

template <class To, class From>
SPYRE_INLINE To bitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

template <class V, class T>
SPYRE_INLINE V load(const T *p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}

template <class V, class T>
SPYRE_INLINE void store(T *p, V v) {
  __builtin_memcpy(p, &v, sizeof(V));
}

/// store() past the caches, if the instruction set can; p is aligned to a
/// vector. Other threads see the value after finishStreams().
template <class V, class T>
SPYRE_INLINE void stream(T *p, V v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i *>(p), bitsAs<__m512i>(v));
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i *>(p), bitsAs<__m256i>(v));
#else
  store(p, v);
#endif
}
SPYRE_INLINE void finishStreams() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}

SPYRE_INLINE VF splat(float x) { return x - VF{}; }
SPYRE_INLINE VD splatD(double x) { return x - VD{}; }
SPYRE_INLINE VI splatI(int32_t x) { return x + VI{}; }
SPYRE_INLINE VU splatU(uint32_t x) { return x + VU{}; }

SPYRE_INLINE VF toFloat(VI x) { return __builtin_convertvector(x, VF); }
SPYRE_INLINE VF toFloat(VD x) { return __builtin_convertvector(x, VF); }
SPYRE_INLINE VD toDouble(VF x) { return __builtin_convertvector(x, VD); }
SPYRE_INLINE VL widen(VI mask) { return __builtin_convertvector(mask, VL); }

SPYRE_INLINE VF select(VI mask, VF a, VF b) { return mask ? a : b; }
SPYRE_INLINE VI select(VI mask, VI a, VI b) { return mask ? a : b; }
SPYRE_INLINE VU select(VI mask, VU a, VU b) { return mask ? a : b; }
SPYRE_INLINE VD select(VL mask, VD a, VD b) { return mask ? a : b; }

SPYRE_INLINE bool any(VI mask) {
  // A vector that is compared as integers: cheap enough outside inner loops.
  int32_t all = 0;
  for (int i = 0; i < kLanes; ++i)
    all |= mask[i];
  return all != 0;
}

/// Whether any lane of a comparison may hold, which is expected not to be: for
/// shortcuts past what is rare. True where the set has no cheap test.
template <class Mask>
SPYRE_INLINE bool mayHold([[maybe_unused]] Mask mask) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_reduce_or)
  return __builtin_expect(__builtin_reduce_or(mask) != 0, 0);
#endif
#endif
  return true;
}

// a * b + c, fused where the instruction set can.
#if defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_fma) &&                                \
    (defined(__FMA__) || defined(__aarch64__))
#define SPYRE_HAS_VECTOR_FMA 1
#endif
#endif
template <class V>
SPYRE_INLINE V mulAdd(V a, V b, V c) {
#ifdef SPYRE_HAS_VECTOR_FMA
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}

constexpr uint32_t kSignBit = 0x80000000u;
constexpr float kInfinity = __builtin_huge_valf();
constexpr float kNaN = __builtin_nanf("");

SPYRE_INLINE VF absV(VF x) { return bitsAs<VF>(bitsAs<VU>(x) & ~kSignBit); }
SPYRE_INLINE VU signOf(VF x) { return bitsAs<VU>(x) & kSignBit; }
SPYRE_INLINE VF withSignOf(VF magnitude, VF sign) {
  return bitsAs<VF>((bitsAs<VU>(magnitude) & ~kSignBit) | signOf(sign));
}
SPYRE_INLINE VI isNaN(VF x) { return x != x; }
SPYRE_INLINE bool isNaN(float x) { return __builtin_isnan(x); }
SPYRE_INLINE VD absV(VD x) {
  return bitsAs<VD>(bitsAs<VL>(x) & INT64_C(0x7fffffffffffffff));
}

SPYRE_INLINE VF sqrtV(VF x) {
#if defined(__has_builtin) && __has_builtin(__builtin_elementwise_sqrt)
  return __builtin_elementwise_sqrt(x);
#else
  VF r = {};
  for (int i = 0; i < kLanes; ++i)
    r[i] = __builtin_sqrtf(x[i]);
  return r;
#endif
}

/// Calls a scalar function for each lane.
template <class F>
SPYRE_INLINE VF perLane(VF x, F f) {
  VF r = {};
  for (int i = 0; i < kLanes; ++i)
    r[i] = f(x[i]);
  return r;
}

// Instructions that take two vectors of 32-bit lanes to one of 16-bit lanes, or
// back, do so within blocks of 16 bytes: the "packed order" of 2 * kLanes
// halves has four of the first vector, four of the second, and so on.
constexpr int kBlocks = kVectorBytes / 16;

template <class F, int... I>
SPYRE_INLINE VW shuffleHalves(VW a, VW b, F, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, F::at(I)...);
}
template <class F>
SPYRE_INLINE VW shuffleHalves(VW a, VW b) {
  return shuffleHalves(a, b, F(),
                       std::make_integer_sequence<int, 2 * kLanes>());
}

/// Halves in order to packed order.
SPYRE_INLINE VW toPackedOrder(VW x) {
  struct Index {
    static constexpr int at(int i) {
      int block = i / 8, second = i / 4 % 2;
      return (second * kBlocks + block) * 4 + i % 4;
    }
  };
  return shuffleHalves<Index>(x, x);
}
SPYRE_INLINE VW fromPackedOrder(VW x) {
  struct Index {
    static constexpr int at(int i) {
      int four = i / 4, second = four / kBlocks;
      return (four % kBlocks * 2 + second) * 4 + i % 4;
    }
  };
  return shuffleHalves<Index>(x, x);
}

/// Two vectors of floats by their lower and upper halves in packed order.
SPYRE_INLINE void unpackHalves(VW lower, VW upper, VF &a, VF &b) {
  struct First {
    static constexpr int at(int i) {
      return i / 8 * 8 + i % 8 / 2 + i % 2 * 2 * kLanes;
    }
  };
  struct Second {
    static constexpr int at(int i) { return First::at(i) + 4; }
  };
  a = bitsAs<VF>(shuffleHalves<First>(lower, upper));
  b = bitsAs<VF>(shuffleHalves<Second>(lower, upper));
}

/// Each lane as the nearest number that 16 bits hold, in packed order.
SPYRE_INLINE VW packUnsigned(VI a, VI b) {
#if defined(__AVX512BW__)
  return bitsAs<VW>(
      _mm512_packus_epi32(bitsAs<__m512i>(a), bitsAs<__m512i>(b)));
#elif defined(__AVX2__)
  return bitsAs<VW>(
      _mm256_packus_epi32(bitsAs<__m256i>(a), bitsAs<__m256i>(b)));
#else
  auto clamp = [](VI x) {
    x = x < 0 ? VI{} : x;
    return bitsAs<VW>(x > 0xffff ? VI{} + 0xffff : x);
  };
  struct Even {
    static constexpr int at(int i) { return 2 * i; }
  };
  return shuffleHalves<Even>(clamp(a), clamp(b));
#endif
}

/// 0x8000 where a lane is negative, else 0, in packed order.
SPYRE_INLINE VW packSigns(VF a, VF b) {
#if defined(__AVX512BW__)
  VW halves =
      bitsAs<VW>(_mm512_packs_epi32(bitsAs<__m512i>(a), bitsAs<__m512i>(b)));
#elif defined(__AVX2__)
  VW halves =
      bitsAs<VW>(_mm256_packs_epi32(bitsAs<__m256i>(a), bitsAs<__m256i>(b)));
#else
  struct Odd {
    static constexpr int at(int i) { return 2 * i + 1; }
  };
  VW halves = shuffleHalves<Odd>(bitsAs<VW>(a), bitsAs<VW>(b));
#endif
  return halves & uint16_t(0x8000);
}

/// Halves at even places as signed numbers, times 2^Shift.
template <int Shift>
SPYRE_INLINE VI shiftEvenHalves(VW x) {
  static_assert(Shift < 15);
  // One instruction, which adds the products of two neighbours.
#if defined(__AVX512BW__)
  return bitsAs<VI>(_mm512_madd_epi16(bitsAs<__m512i>(x),
                                      bitsAs<__m512i>(splatI(1 << Shift))));
#elif defined(__AVX2__)
  return bitsAs<VI>(_mm256_madd_epi16(bitsAs<__m256i>(x),
                                      bitsAs<__m256i>(splatI(1 << Shift))));
#else
  return (bitsAs<VI>(x) << 16) >> (16 - Shift);
#endif
}

/// Calls f(integral_constant<int, I>) for I from 0 to N - 1, without a loop.
template <class F, int... I>
SPYRE_INLINE void unrollSequence(F f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>()), ...);
}
template <int N, class F>
SPYRE_INLINE void unroll(F f) {
  unrollSequence(f, std::make_integer_sequence<int, N>());
}

/// The first n < kLanes values of p, the other lanes 1.
SPYRE_INLINE VF loadTail(const float *p, size_t n) {
  VF v = splat(1.0f);
  if (n == 1) // a scalar: spares the call
    v[0] = *p;
  else
    __builtin_memcpy(&v, p, n * sizeof(float));
  return v;
}
SPYRE_INLINE void storeTail(float *p, VF v, size_t n) {
  if (n == 1)
    *p = v[0];
  else
    __builtin_memcpy(p, &v, n * sizeof(float));
}

/// y[i] = f(x[i]) for a function of vectors.
template <class F>
SPYRE_INLINE void mapVectors(const float *x, float *y, size_t n, F f) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(y + i, f(load<VF>(x + i)));
  if (i < n)
    storeTail(y + i, f(loadTail(x + i, n - i)), n - i);
}

/// Reads an operand that is an array (step 1) or one value (step 0).
struct Operand {
  const float *data;
  bool isArray;
  VF value;

  SPYRE_INLINE Operand(const float *data, size_t step, size_t n)
      : data(data), isArray(step != 0),
        value(step != 0 || n == 0 ? VF{} : splat(*data)) {}
  SPYRE_INLINE VF at(size_t i) const {
    return isArray ? load<VF>(data + i) : value;
  }
  /// The values from i on: one decision for all of them.
  template <int N>
  SPYRE_INLINE void read(size_t i, VF (&values)[N]) const {
    if (isArray)
      for (int g = 0; g < N; ++g)
        values[g] = load<VF>(data + i + g * kLanes);
    else
      for (VF &v : values)
        v = value;
  }
  SPYRE_INLINE VF tail(size_t i, size_t n) const {
    return isArray ? loadTail(data + i, n) : value;
  }
};

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_VECTOR_H
