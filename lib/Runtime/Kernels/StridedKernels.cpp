// SPDX-License-Identifier: Apache-2.0
//===- StridedKernels.cpp - Copies between buffers and memory -------------===//
//
// One driver for all: dimensions are ordered by destination stride, adjacent
// ones joined, and the inner two handed to a loop that knows the cases
// contiguous, transposed, broadcast and anything else.
//
//===----------------------------------------------------------------------===//

#include "Codes.h"
#include "Kernels.h"
#include "Transpose.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

//===----------------------------------------------------------------------===//
// Conversion of contiguous runs
//===----------------------------------------------------------------------===//

namespace {
template <class T>
struct Copy {
  using Source = T;
  using Target = T;
  static SPYRE_INLINE void run(const T *src, T *dst, size_t n,
                               ptrdiff_t ahead = kAheadBytes) {
    // The 128 bytes of a stick.
    constexpr size_t count = 128 / sizeof(T);
    constexpr size_t step = sizeof(VU) / sizeof(T);
    size_t i = 0;
    for (; i + count <= n; i += count) {
      fetchAhead<count * sizeof(T), false>(src + i, ahead);
      VU values[count / step];
      for (size_t v = 0; v < count / step; ++v)
        values[v] = load<VU>(src + i + v * step);
      for (size_t v = 0; v < count / step; ++v)
        store(dst + i + v * step, values[v]);
    }
    for (; i < n; ++i)
      dst[i] = src[i];
  }
};

template <class Format, class Code, class VCode>
struct Decode {
  using Source = Code;
  using Target = float;
  static SPYRE_INLINE VF decode(VCode codes) {
    return Format::decode(__builtin_convertvector(codes, VU));
  }
  template <int Cache = 3>
  static SPYRE_INLINE void run(const Code *src, float *dst, size_t n,
                               ptrdiff_t ahead = kAheadBytes) {
    size_t i = 0;
    for (; i + kGroup * kLanes <= n; i += kGroup * kLanes) {
      fetchAhead<kGroup * kLanes * sizeof(Code), false, Cache>(src + i, ahead);
      VF values[kGroup];
      decodeGroup<Format, VCode>(src + i, values);
      for (int g = 0; g < kGroup; ++g)
        store(dst + i + g * kLanes, values[g]);
    }
    for (; i + kLanes <= n; i += kLanes)
      store(dst + i, decode(load<VCode>(src + i)));
    if (i < n) {
      VCode last = {};
      __builtin_memcpy(&last, src + i, (n - i) * sizeof(Code));
      storeTail(dst + i, decode(last), n - i);
    }
  }
};

template <class Convert>
constexpr bool kDecodes = false;
template <class Format, class Code, class VCode>
constexpr bool kDecodes<Decode<Format, Code, VCode>> = true;

template <class Format, class Code, class VCode>
struct Encode {
  using Source = float;
  using Target = Code;
  static SPYRE_INLINE VCode encode(VF values) {
    return __builtin_convertvector(Format::encode(values), VCode);
  }
  static SPYRE_INLINE void run(const float *src, Code *dst, size_t n,
                               ptrdiff_t ahead = kAheadBytes) {
    size_t i = 0;
    for (; i + kGroup * kLanes <= n; i += kGroup * kLanes) {
      fetchAhead<kGroup * kLanes * sizeof(Code), true>(dst + i, ahead);
      VF values[kGroup];
      for (int g = 0; g < kGroup; ++g)
        values[g] = load<VF>(src + i + g * kLanes);
      encodeGroup<Format, VCode>(values, dst + i);
    }
    for (; i + kLanes <= n; i += kLanes)
      store(dst + i, encode(load<VF>(src + i)));
    if (i < n) {
      VCode last = encode(loadTail(src + i, n - i));
      __builtin_memcpy(dst + i, &last, (n - i) * sizeof(Code));
    }
  }
};

/// Sign extension and truncation.
template <class S, class T>
struct Resize {
  using Source = S;
  using Target = T;
  static SPYRE_INLINE void run(const S *src, T *dst, size_t n, ptrdiff_t = 0) {
    for (size_t i = 0; i < n; ++i)
      dst[i] = T(src[i]);
  }
};

template <class T>
struct LoadBool {
  using Source = uint8_t;
  using Target = T;
  static SPYRE_INLINE void run(const uint8_t *src, T *dst, size_t n,
                               ptrdiff_t = 0) {
    for (size_t i = 0; i < n; ++i)
      dst[i] = src[i] != 0;
  }
};
template <class S>
struct StoreBool {
  using Source = S;
  using Target = uint8_t;
  static SPYRE_INLINE void run(const S *src, uint8_t *dst, size_t n,
                               ptrdiff_t = 0) {
    for (size_t i = 0; i < n; ++i)
      dst[i] = uint8_t(src[i] & 1);
  }
};

//===----------------------------------------------------------------------===//
// Two dimensions
//===----------------------------------------------------------------------===//

} // namespace

/// Rows from r on, as many whole blocks as there are; returns the row after.
template <int Quarters, class T>
static SPYRE_INLINE size_t transposeBlocks(T *dst, ptrdiff_t dstStride,
                                           const T *src, ptrdiff_t srcStride,
                                           size_t r, size_t rows,
                                           size_t columns) {
  constexpr size_t width = kQuarterLanes<T>, height = Quarters * width;
  for (; r + height <= rows; r += height) {
    size_t c = 0;
    for (; c + width <= columns; c += width)
      transposeBlock<Quarters>(dst + ptrdiff_t(c) * dstStride + r, dstStride,
                               src + ptrdiff_t(r) * srcStride + c, srcStride);
    for (; c < columns; ++c)
      for (size_t i = r; i < r + height; ++i)
        dst[ptrdiff_t(c) * dstStride + ptrdiff_t(i)] =
            src[ptrdiff_t(i) * srcStride + ptrdiff_t(c)];
  }
  return r;
}

/// dst[c * dstStride + r] = src[r * srcStride + c].
template <class T>
static SPYRE_INLINE void transpose(T *dst, ptrdiff_t dstStride, const T *src,
                                   ptrdiff_t srcStride, size_t rows,
                                   size_t columns) {
  // Pairs, with a stride that is known, so that this loop vectorises.
  if (columns == 2 && srcStride == 2) {
    for (size_t i = 0; i < rows; ++i) {
      dst[i] = src[2 * i];
      dst[dstStride + ptrdiff_t(i)] = src[2 * i + 1];
    }
    return;
  }
  size_t r = transposeBlocks<kQuarters>(dst, dstStride, src, srcStride, 0, rows,
                                        columns);
  r = transposeBlocks<1>(dst, dstStride, src, srcStride, r, rows, columns);
  for (size_t c = 0; c < columns; ++c)
    for (size_t i = r; i < rows; ++i)
      dst[ptrdiff_t(c) * dstStride + ptrdiff_t(i)] =
          src[ptrdiff_t(i) * srcStride + ptrdiff_t(c)];
}

namespace {
struct Dimension {
  size_t size;
  ptrdiff_t dst, src;
};

} // namespace

// A block of a converted transposition: 16 KiB of four-byte elements.
constexpr size_t kBlockRows = 64;
constexpr size_t kBlockColumns = 64;

/// Unit stride in the destination along `inner`, in the source along `outer`.
template <class Convert>
static SPYRE_INLINE void moveTransposed(typename Convert::Target *dst,
                                        const typename Convert::Source *src,
                                        Dimension outer, Dimension inner) {
  using S = typename Convert::Source;
  using T = typename Convert::Target;
  // Converting beside the shorter elements keeps the shuffles on four bytes.
  constexpr bool convertFirst = sizeof(T) >= sizeof(S);
  if constexpr (std::is_same_v<Convert, Copy<T>>) {
    transpose(dst, outer.dst, src, inner.src, inner.size, outer.size);
    return;
  }
  std::conditional_t<convertFirst, T, S> block[kBlockRows * kBlockColumns];
  for (size_t i = 0; i < inner.size; i += kBlockRows) {
    size_t rows = inner.size - i < kBlockRows ? inner.size - i : kBlockRows;
    for (size_t o = 0; o < outer.size; o += kBlockColumns) {
      size_t columns =
          outer.size - o < kBlockColumns ? outer.size - o : kBlockColumns;
      const S *from = src + ptrdiff_t(i) * inner.src + o;
      T *to = dst + ptrdiff_t(o) * outer.dst + i;
      if constexpr (convertFirst) {
        for (size_t r = 0; r < rows; ++r)
          Convert::run(from + ptrdiff_t(r) * inner.src,
                       block + r * kBlockColumns, columns);
        transpose(to, outer.dst, block, ptrdiff_t(kBlockColumns), rows,
                  columns);
      } else {
        transpose(block, ptrdiff_t(kBlockRows), from, inner.src, rows, columns);
        for (size_t c = 0; c < columns; ++c)
          Convert::run(block + c * kBlockRows, to + ptrdiff_t(c) * outer.dst,
                       rows);
      }
    }
  }
}

/// One dimension of any strides, converted by way of dense buffers.
template <class Convert>
static SPYRE_INLINE void moveRun(typename Convert::Target *dst,
                                 const typename Convert::Source *src,
                                 Dimension run) {
  using S = typename Convert::Source;
  using T = typename Convert::Target;
  constexpr size_t count = 256;
  S gathered[count];
  T converted[count];
  if (run.src == 0) {
    Convert::run(src, converted, 1);
    const T value = converted[0];
    if (run.dst == 1)
      for (size_t i = 0; i < run.size; ++i)
        dst[i] = value;
    else
      for (size_t i = 0; i < run.size; ++i)
        dst[ptrdiff_t(i) * run.dst] = value;
    return;
  }
  if constexpr (std::is_same_v<Convert, Copy<T>>) {
    for (size_t i = 0; i < run.size; ++i)
      dst[ptrdiff_t(i) * run.dst] = src[ptrdiff_t(i) * run.src];
    return;
  }
  for (size_t begin = 0; begin < run.size; begin += count) {
    size_t n = run.size - begin < count ? run.size - begin : count;
    const S *from = src + ptrdiff_t(begin) * run.src;
    T *to = dst + ptrdiff_t(begin) * run.dst;
    if (run.src != 1) {
      for (size_t i = 0; i < n; ++i)
        gathered[i] = from[ptrdiff_t(i) * run.src];
      from = gathered;
    }
    if (run.dst == 1) {
      Convert::run(from, to, n);
      continue;
    }
    Convert::run(from, converted, n);
    for (size_t i = 0; i < n; ++i)
      to[ptrdiff_t(i) * run.dst] = converted[i];
  }
}

template <class Convert>
static __attribute__((noinline)) void
moveTwo(typename Convert::Target *dst, const typename Convert::Source *src,
        const Dimension &outer, const Dimension &inner) {
  using S = typename Convert::Source;
  using T = typename Convert::Target;
  if (inner.dst == 1 && inner.src == 1) {
    ptrdiff_t ahead = sizeof(S) < sizeof(T)
                          ? aheadOf<S>(outer.size, outer.src, inner.size)
                          : aheadOf<T>(outer.size, outer.dst, inner.size);
    if constexpr (kDecodes<Convert>)
      if (outer.size > 1 && shareWays<S>(outer.src, inner.size)) {
        for (size_t o = 0; o < outer.size;
             ++o, dst += outer.dst, src += outer.src)
          Convert::template run<2>(src, dst, inner.size, ahead);
        return;
      }
    for (size_t o = 0; o < outer.size; ++o, dst += outer.dst, src += outer.src)
      Convert::run(src, dst, inner.size, ahead);
    return;
  }
  if (inner.dst == 1 && outer.src == 1 && inner.src != 0 && outer.size > 1)
    return moveTransposed<Convert>(dst, src, outer, inner);
  for (size_t o = 0; o < outer.size; ++o, dst += outer.dst, src += outer.src)
    moveRun<Convert>(dst, src, inner);
}

//===----------------------------------------------------------------------===//
// Any number of dimensions
//===----------------------------------------------------------------------===//

constexpr unsigned kMaxDimensions = 16;

static SPYRE_INLINE size_t distance(ptrdiff_t stride) {
  return stride < 0 ? 0 - size_t(stride) : size_t(stride);
}

template <class Convert>
static void move(void *dstBase, const ptrdiff_t *dstStrides,
                 const void *srcBase, const ptrdiff_t *srcStrides,
                 const size_t *shape, unsigned rank) {
  using S = typename Convert::Source;
  using T = typename Convert::Target;
  T *dst = static_cast<T *>(dstBase);
  const S *src = static_cast<const S *>(srcBase);
  if (rank > kMaxDimensions) {
    for (size_t i = 0; i < shape[0]; ++i)
      move<Convert>(dst + ptrdiff_t(i) * dstStrides[0], dstStrides + 1,
                    src + ptrdiff_t(i) * srcStrides[0], srcStrides + 1,
                    shape + 1, rank - 1);
    return;
  }

  // Dimensions of more than one element by descending destination stride. Their
  // numbers are moved, as a processor waits where a copy of several words meets
  // words that have just been stored one by one.
  unsigned order[kMaxDimensions];
  unsigned count = 0;
  for (unsigned d = 0; d < rank; ++d) {
    if (shape[d] == 0)
      return;
    if (shape[d] == 1)
      continue;
    unsigned at = count++;
    for (; at > 0 &&
           distance(dstStrides[order[at - 1]]) < distance(dstStrides[d]);
         --at)
      order[at] = order[at - 1];
    order[at] = d;
  }
  size_t sizes[kMaxDimensions];
  ptrdiff_t dstSteps[kMaxDimensions], srcSteps[kMaxDimensions];
  unsigned joined = 0;
  for (unsigned i = 0; i < count; ++i) {
    unsigned d = order[i];
    ptrdiff_t size = ptrdiff_t(shape[d]);
    bool joins = joined > 0 && dstSteps[joined - 1] == dstStrides[d] * size &&
                 srcSteps[joined - 1] == srcStrides[d] * size;
    if (!joins)
      sizes[joined++] = 1;
    sizes[joined - 1] *= shape[d];
    dstSteps[joined - 1] = dstStrides[d];
    srcSteps[joined - 1] = srcStrides[d];
  }

  auto dimension = [&](unsigned d) SPYRE_INLINE_LAMBDA {
    return Dimension{sizes[d], dstSteps[d], srcSteps[d]};
  };
  Dimension inner = joined > 0 ? dimension(--joined) : Dimension{1, 1, 1};
  Dimension outer = {1, 0, 0};
  unsigned chosen = joined;
  if (joined > 0) {
    chosen = joined - 1;
    if (inner.src != 1) {
      for (unsigned d = 0; d < joined; ++d)
        if (srcSteps[d] == 1)
          chosen = d;
    } else if constexpr (kDecodes<Convert>) {
      // What is decoded comes from afar, to a buffer: all rows of a stick.
      for (unsigned d = 0; d < joined; ++d)
        if (distance(srcSteps[d]) < distance(srcSteps[chosen]))
          chosen = d;
    }
    outer = dimension(chosen);
  }

  size_t index[kMaxDimensions];
  for (unsigned d = 0; d < joined; ++d)
    index[d] = 0;
  while (true) {
    moveTwo<Convert>(dst, src, outer, inner);
    unsigned d = joined;
    for (; d > 0; --d) {
      unsigned at = d - 1;
      if (at == chosen)
        continue;
      dst += dstSteps[at];
      src += srcSteps[at];
      if (++index[at] < sizes[at])
        break;
      dst -= ptrdiff_t(sizes[at]) * dstSteps[at];
      src -= ptrdiff_t(sizes[at]) * srcSteps[at];
      index[at] = 0;
    }
    if (d == 0)
      return;
  }
}

using DecodeDL16 = Decode<FormatDL16, uint16_t, VH>;
using DecodeHalf = Decode<FormatHalf, uint16_t, VH>;
using DecodeBF16 = Decode<FormatBF16, uint16_t, VH>;
using DecodeE4M3 = Decode<FormatE4M3FN, uint8_t, VB>;
using DecodeE5M2 = Decode<FormatE5M2, uint8_t, VB>;
using EncodeDL16 = Encode<FormatDL16, uint16_t, VH>;
using EncodeHalf = Encode<FormatHalf, uint16_t, VH>;
using EncodeBF16 = Encode<FormatBF16, uint16_t, VH>;
using EncodeE4M3 = Encode<FormatE4M3FN, uint8_t, VB>;
using EncodeE5M2 = Encode<FormatE5M2, uint8_t, VB>;

/// A format of the wrong kind moves nothing; callers check types when they
/// plan.
template <class T>
static SPYRE_INLINE void loadInt(ElementFormat format, T *dst,
                                 const ptrdiff_t *dstStrides, const void *src,
                                 const ptrdiff_t *srcStrides,
                                 const size_t *shape, unsigned rank) {
  switch (format) {
  case ElementFormat::I1:
    return move<LoadBool<T>>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::I8:
    return move<Resize<int8_t, T>>(dst, dstStrides, src, srcStrides, shape,
                                   rank);
  case ElementFormat::I16:
    return move<Resize<int16_t, T>>(dst, dstStrides, src, srcStrides, shape,
                                    rank);
  case ElementFormat::I32:
    return move<Resize<int32_t, T>>(dst, dstStrides, src, srcStrides, shape,
                                    rank);
  case ElementFormat::I64:
    return move<Resize<int64_t, T>>(dst, dstStrides, src, srcStrides, shape,
                                    rank);
  default:
    __builtin_trap();
  }
}

template <class S>
static SPYRE_INLINE void storeInt(ElementFormat format, void *dst,
                                  const ptrdiff_t *dstStrides, const S *src,
                                  const ptrdiff_t *srcStrides,
                                  const size_t *shape, unsigned rank) {
  switch (format) {
  case ElementFormat::I1:
    return move<StoreBool<S>>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::I8:
    return move<Resize<S, int8_t>>(dst, dstStrides, src, srcStrides, shape,
                                   rank);
  case ElementFormat::I16:
    return move<Resize<S, int16_t>>(dst, dstStrides, src, srcStrides, shape,
                                    rank);
  case ElementFormat::I32:
    return move<Resize<S, int32_t>>(dst, dstStrides, src, srcStrides, shape,
                                    rank);
  case ElementFormat::I64:
    return move<Resize<S, int64_t>>(dst, dstStrides, src, srcStrides, shape,
                                    rank);
  default:
    __builtin_trap();
  }
}

void copyFloat(float *dst, const ptrdiff_t *dstStrides, const float *src,
               const ptrdiff_t *srcStrides, const size_t *shape,
               unsigned rank) {
  move<Copy<float>>(dst, dstStrides, src, srcStrides, shape, rank);
}

void copyInt16(int16_t *dst, const ptrdiff_t *dstStrides, const int16_t *src,
               const ptrdiff_t *srcStrides, const size_t *shape,
               unsigned rank) {
  move<Copy<int16_t>>(dst, dstStrides, src, srcStrides, shape, rank);
}

void copyInt32(int32_t *dst, const ptrdiff_t *dstStrides, const int32_t *src,
               const ptrdiff_t *srcStrides, const size_t *shape,
               unsigned rank) {
  move<Copy<int32_t>>(dst, dstStrides, src, srcStrides, shape, rank);
}

void copyInt64(int64_t *dst, const ptrdiff_t *dstStrides, const int64_t *src,
               const ptrdiff_t *srcStrides, const size_t *shape,
               unsigned rank) {
  move<Copy<int64_t>>(dst, dstStrides, src, srcStrides, shape, rank);
}

void loadFloat(ElementFormat format, float *dst, const ptrdiff_t *dstStrides,
               const void *src, const ptrdiff_t *srcStrides,
               const size_t *shape, unsigned rank) {
  switch (format) {
  case ElementFormat::DL16:
    return move<DecodeDL16>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::IEEEHalf:
    return move<DecodeHalf>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::BF16:
    return move<DecodeBF16>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::F32:
    return move<Copy<float>>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::F8E4M3FN:
    return move<DecodeE4M3>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::F8E5M2:
    return move<DecodeE5M2>(dst, dstStrides, src, srcStrides, shape, rank);
  default:
    __builtin_trap();
  }
}

void storeFloat(ElementFormat format, void *dst, const ptrdiff_t *dstStrides,
                const float *src, const ptrdiff_t *srcStrides,
                const size_t *shape, unsigned rank) {
  switch (format) {
  case ElementFormat::DL16:
    return move<EncodeDL16>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::IEEEHalf:
    return move<EncodeHalf>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::BF16:
    return move<EncodeBF16>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::F32:
    return move<Copy<float>>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::F8E4M3FN:
    return move<EncodeE4M3>(dst, dstStrides, src, srcStrides, shape, rank);
  case ElementFormat::F8E5M2:
    return move<EncodeE5M2>(dst, dstStrides, src, srcStrides, shape, rank);
  default:
    __builtin_trap();
  }
}

void loadInt32(ElementFormat format, int32_t *dst, const ptrdiff_t *dstStrides,
               const void *src, const ptrdiff_t *srcStrides,
               const size_t *shape, unsigned rank) {
  loadInt(format, dst, dstStrides, src, srcStrides, shape, rank);
}

void loadInt64(ElementFormat format, int64_t *dst, const ptrdiff_t *dstStrides,
               const void *src, const ptrdiff_t *srcStrides,
               const size_t *shape, unsigned rank) {
  loadInt(format, dst, dstStrides, src, srcStrides, shape, rank);
}

void storeInt32(ElementFormat format, void *dst, const ptrdiff_t *dstStrides,
                const int32_t *src, const ptrdiff_t *srcStrides,
                const size_t *shape, unsigned rank) {
  storeInt(format, dst, dstStrides, src, srcStrides, shape, rank);
}

void storeInt64(ElementFormat format, void *dst, const ptrdiff_t *dstStrides,
                const int64_t *src, const ptrdiff_t *srcStrides,
                const size_t *shape, unsigned rank) {
  storeInt(format, dst, dstStrides, src, srcStrides, shape, rank);
}

void loadFloatRun(ElementFormat format, const void *src, float *dst, size_t n) {
  const ptrdiff_t stride = 1;
  loadFloat(format, dst, &stride, src, &stride, &n, 1);
}

void storeFloatRun(ElementFormat format, const float *src, void *dst,
                   size_t n) {
  const ptrdiff_t stride = 1;
  storeFloat(format, dst, &stride, src, &stride, &n, 1);
}

void lookUp(const uint16_t *table, const void *src, void *dst, size_t n) {
  auto *from = static_cast<const uint16_t *>(src);
  auto *to = static_cast<uint16_t *>(dst);
  constexpr size_t part = 32;
  size_t i = 0;
  for (; i + part <= n; i += part)
    unroll<part / 4>([&](auto number) SPYRE_INLINE_LAMBDA {
      // Four indices per load: loads are what there are most of.
      size_t at = i + 4 * number;
      uint64_t four = load<uint64_t>(from + at);
      uint16_t values[4] = {table[uint16_t(four)], table[uint16_t(four >> 16)],
                            table[uint16_t(four >> 32)], table[four >> 48]};
      __builtin_memcpy(to + at, values, sizeof(values));
    });
  for (; i < n; ++i)
    to[i] = table[from[i]];
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
