// SPDX-License-Identifier: Apache-2.0
//===- TileKernels.h - Native kernels on tiles of host values ---*- C++ -*-===//
//
// The functional engine holds a tile as a dense row-major host buffer:
//   f16 (DL16 or IEEE half), bf16, f32, f8   float, already rounded to the type
//   i8, i16, i32                             int32_t, sign-extended
//   i1                                       int32_t, 0 or 1
//   i64, index                               int64_t
// The kernels work on such buffers and are free of state and allocation. All
// counts, steps and strides are in elements. Result buffers may be the very
// same buffer as an operand with step 1, and may not overlap otherwise.
//
// Steps: an operand with step 1 is an array of n values, with step 0 a single
// value used n times.
//
// Bits depend on the chosen instruction set, never on threads or alignment.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_RUNTIME_KERNELS_TILEKERNELS_H
#define SPYRE_RUNTIME_KERNELS_TILEKERNELS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spyre::runtime {

/// The type that a float result is rounded to, in the pass that computes it.
/// DL16: spec/numerics.md (half away from zero; too large gives infinity, too
/// small zero, NaN gives +infinity). The others round half to even; IEEEHalf,
/// BF16 and F8E5M2 overflow to infinity and F8E4M3FN to NaN, as
/// llvm::APFloat does.
enum class Rounding : uint8_t {
  None,
#define SPYRE_ROUNDED_FLOAT(name, bytes) name,
#include "Spyre/Device/NumberFormats.def"
};

/// arith and math operations of one float. Round is half away from zero.
enum class UnaryOp : uint8_t {
  Neg,
  Abs,
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sqrt,
  Rsqrt,
  Reciprocal,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  Erfc,
  Cbrt,
  Floor,
  Ceil,
  Round,
  RoundEven,
  Trunc,
  Copy
};
constexpr unsigned kNumUnaryOps = unsigned(UnaryOp::Copy) + 1;

/// Maximum/Minimum propagate NaN and order -0 below +0 (arith.maximumf);
/// MaxNum/MinNum prefer the number over a NaN (arith.maxnumf). Rem is C fmod
/// (arith.remf), Pow is C pow.
enum class BinaryOp : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Rem,
  Maximum,
  Minimum,
  MaxNum,
  MinNum,
  Pow,
  Atan2,
  CopySign
};
constexpr unsigned kNumBinaryOps = unsigned(BinaryOp::CopySign) + 1;

/// One operation of a chain: value = round(value op x[i]), or, if
/// `isReversed`, round(x[i] op value). Only Add, Sub and Mul.
struct ChainStep {
  BinaryOp op;
  bool isReversed;
  const float *x;
  size_t step;
  /// Whether the value is rounded after this step; the last one of a chain that
  /// makes codes always is. The kernels that reduce, those of codes and
  /// expOfChain take steps that are.
  bool isRounded = true;
  /// From what one row reads to what the next one does, in elements
  /// (KernelTable::chainOfRows).
  ptrdiff_t rowStride = 0;
};
constexpr unsigned kMaxChain = 8;

/// Memory that will probably be read next. Kernels that take one fetch it into
/// a cache while they compute, a line of 64 bytes per 64 points, and move
/// `next` on. Changes no value; need not be mapped.
struct ReadAhead {
  const uint8_t *next = nullptr, *end = nullptr;
};

/// Same values as mlir::arith::CmpFPredicate.
enum class FloatPredicate : uint8_t {
  False,
  OEQ,
  OGT,
  OGE,
  OLT,
  OLE,
  ONE,
  ORD,
  UEQ,
  UGT,
  UGE,
  ULT,
  ULE,
  UNE,
  UNO,
  True
};

/// Same values as mlir::arith::CmpIPredicate.
enum class IntPredicate : uint8_t {
  EQ,
  NE,
  SLT,
  SLE,
  SGT,
  SGE,
  ULT,
  ULE,
  UGT,
  UGE
};

enum class IntUnaryOp : uint8_t { Abs, CtPop, Ctlz, Cttz };

/// Shl and the shifts right by the width or more give 0 (ShrS: the sign).
enum class IntBinaryOp : uint8_t {
  Add,
  Sub,
  Mul,
  DivS,
  DivU,
  FloorDivS,
  CeilDivS,
  CeilDivU,
  RemS,
  RemU,
  And,
  Or,
  Xor,
  Shl,
  ShrS,
  ShrU,
  MinS,
  MaxS,
  MinU,
  MaxU
};

/// Whether a second operand of 0 is an error.
inline bool isDivision(IntBinaryOp op) {
  switch (op) {
  case IntBinaryOp::DivS:
  case IntBinaryOp::DivU:
  case IntBinaryOp::FloorDivS:
  case IntBinaryOp::CeilDivS:
  case IntBinaryOp::CeilDivU:
  case IntBinaryOp::RemS:
  case IntBinaryOp::RemU:
    return true;
  default:
    return false;
  }
}

/// Conditions that an integer kernel met, or-ed over all elements. Results are:
/// Overflow (the exact signed result does not fit the width): wrapped;
/// DivideByZero: 0; BadShift (amount >= width): see IntBinaryOp; OutOfRange (a
/// float that the integer type cannot hold): saturated, NaN gives 0. Overflow
/// reads operands as signed, so it says nothing about unsigned arithmetic and
/// is not raised for i1.
enum IntStatus : unsigned {
  kIntOk = 0,
  kIntOverflow = 1,
  kIntDivideByZero = 2,
  kIntBadShift = 4,
  kIntOutOfRange = 8
};

/// Max and Min propagate NaN; the last two are these where no value is NaN.
enum class ReduceOp : uint8_t {
  Sum,
  Mul,
  Max,
  Min,
  MaxNum,
  MinNum,
  MaxWithoutNaN,
  MinWithoutNaN
};

/// The value that leaves the other operand of `op` unchanged.
float reduceIdentity(ReduceOp op);

/// How elements sit in device memory (NumberFormats.def). I1 takes one byte (0
/// or 1).
enum class ElementFormat : uint8_t {
#define SPYRE_ROUNDED_FLOAT(name, bytes) name,
#define SPYRE_EXACT_ELEMENT(name, bytes) name,
#include "Spyre/Device/NumberFormats.def"
};

constexpr unsigned storageBytes(ElementFormat format) {
  constexpr unsigned kBytes[] = {
#define SPYRE_ROUNDED_FLOAT(name, bytes) bytes,
#define SPYRE_EXACT_ELEMENT(name, bytes) bytes,
#include "Spyre/Device/NumberFormats.def"
  };
  return kBytes[unsigned(format)];
}

/// A or B of a product C += A * B whose values have at most 16 significant
/// bits, as those of DL16 and IEEE half.
struct HalfFactor {
  /// Floats, or DL16 codes whose rows are dense.
  const void *values = nullptr;
  bool areCodes = false;
  /// In elements.
  ptrdiff_t rowStride = 0, columnStride = 0;
  /// Codes of a row: behind so many, a multiple of kHalfPart, the next ones are
  /// `partStride` elements behind the first of these, and so on.
  size_t partLength = SIZE_MAX;
  ptrdiff_t partStride = 0;
  /// Not 0: a number of these values, which no other values at the same address
  /// have. What is prepared of the factor is kept for other products.
  uint64_t version = 0;

  /// Whether both are known to be the same values.
  bool isSame(const HalfFactor &other) const {
    return version != 0 && version == other.version && values == other.values &&
           areCodes == other.areCodes && rowStride == other.rowStride &&
           columnStride == other.columnStride &&
           partLength == other.partLength && partStride == other.partStride;
  }
};
constexpr size_t kHalfPart = 32;
constexpr size_t kMinRowsOfHalves = 8;

/// A product C += A * B, one of several with the same B.
struct HalfProduct {
  HalfFactor a;
  size_t rows = 0;
  float *c = nullptr;
  ptrdiff_t rowStrideC = 0;
};

/// The rounding of a float that is stored in a format.
constexpr Rounding roundingOf(ElementFormat format) {
  return format < ElementFormat::F32 ? Rounding(unsigned(format) + 1)
                                     : Rounding::None;
}

/// All kernels of one instruction set.
struct KernelTable {
  /// "baseline", "avx2" or "avx512".
  const char *name;

  //===--- float, elementwise ---------------------------------------------===//

  /// result[i] = round(op(x[i])).
  void (*unary)(UnaryOp op, const float *x, float *result, size_t n,
                Rounding rounding);
  /// result[i] = round(op(a[i], b[i])).
  void (*binary)(BinaryOp op, const float *a, size_t stepA, const float *b,
                 size_t stepB, float *result, size_t n, Rounding rounding);
  /// Several operations in one pass, rounded as `binary` does where the steps
  /// say so: the value starts as x[i] and result[i] is the last. numSteps <=
  /// kMaxChain.
  void (*chain)(const float *x, size_t step, const ChainStep *steps,
                unsigned numSteps, float *result, size_t n, Rounding rounding,
                ReadAhead *ahead);
  /// The DL16 codes of what `chain` with that rounding makes, an array of
  /// uint16_t. With `pastCaches` they go to memory without being read into a
  /// cache first, where instruction set and alignment allow it: faster for what
  /// the caches will have dropped when it is read.
  void (*chainToCodes)(const float *x, size_t step, const ChainStep *steps,
                       unsigned numSteps, void *result, size_t n,
                       ReadAhead *ahead, bool pastCaches);
  /// `chain`, or with `makesCodes` `chainToCodes`, of rows of `columns` points
  /// each. The results are dense; rowStride is x's.
  void (*chainOfRows)(const float *x, size_t step, ptrdiff_t rowStride,
                      const ChainStep *steps, unsigned numSteps, void *result,
                      size_t rows, size_t columns, Rounding rounding,
                      bool makesCodes);
  /// chainToCodes from DL16 codes to codes: x, the result and what steps read
  /// are arrays of uint16_t, but for operands with step 0, which are one float.
  /// What is read may be where the result is written, but not beside it.
  void (*chainOfCodes)(const void *x, size_t step, const ChainStep *steps,
                       unsigned numSteps, void *result, size_t n);
  /// result[i] = what `unary` makes, with Exp and rounding to DL16, of what
  /// `chain` makes with that rounding. Without steps x has values of DL16. If
  /// `sum` is not null, it becomes what `reduceRows` makes of the results.
  void (*expOfChain)(const float *x, size_t step, const ChainStep *steps,
                     unsigned numSteps, float *result, size_t n, float *sum,
                     ReadAhead *ahead);
  /// result[i] = round(a[i] * b[i] + c[i]), the sum being exact inside.
  void (*fma)(const float *a, size_t stepA, const float *b, size_t stepB,
              const float *c, size_t stepC, float *result, size_t n,
              Rounding rounding);
  /// result[i] = round(x[i]): arith.truncf.
  void (*round)(const float *x, float *result, size_t n, Rounding rounding);
  /// result[i] = predicate(a[i], b[i]) ? 1 : 0.
  void (*compareFloat)(FloatPredicate predicate, const float *a, size_t stepA,
                       const float *b, size_t stepB, int32_t *result, size_t n);
  /// result[i] = condition[i] != 0 ? a[i] : b[i].
  void (*selectFloat)(const int32_t *condition, size_t stepCondition,
                      const float *a, size_t stepA, const float *b,
                      size_t stepB, float *result, size_t n);

  //===--- integers, elementwise; width is 1, 8, 16 or 32 -----------------===//

  IntStatus (*unaryInt32)(IntUnaryOp op, const int32_t *x, int32_t *result,
                          size_t n, unsigned width);
  IntStatus (*unaryInt64)(IntUnaryOp op, const int64_t *x, int64_t *result,
                          size_t n);
  IntStatus (*binaryInt32)(IntBinaryOp op, const int32_t *a, size_t stepA,
                           const int32_t *b, size_t stepB, int32_t *result,
                           size_t n, unsigned width);
  IntStatus (*binaryInt64)(IntBinaryOp op, const int64_t *a, size_t stepA,
                           const int64_t *b, size_t stepB, int64_t *result,
                           size_t n);
  void (*compareInt32)(IntPredicate predicate, const int32_t *a, size_t stepA,
                       const int32_t *b, size_t stepB, int32_t *result,
                       size_t n, unsigned width);
  void (*compareInt64)(IntPredicate predicate, const int64_t *a, size_t stepA,
                       const int64_t *b, size_t stepB, int32_t *result,
                       size_t n);
  void (*selectInt32)(const int32_t *condition, size_t stepCondition,
                      const int32_t *a, size_t stepA, const int32_t *b,
                      size_t stepB, int32_t *result, size_t n);
  void (*selectInt64)(const int32_t *condition, size_t stepCondition,
                      const int64_t *a, size_t stepA, const int64_t *b,
                      size_t stepB, int64_t *result, size_t n);
  /// A stage of a sorting network over keys [numBlocks, 2, distance, columns]:
  /// of two keys whose places differ in the second dimension alone, the smaller
  /// one is put where that is 0. If `isMirrored`, the places of a pair add up
  /// to distance - 1 in the third dimension. `result` is apart from `keys`.
  void (*comparePairs)(const int64_t *keys, int64_t *result, size_t numBlocks,
                       size_t distance, size_t columns, bool isMirrored);

  //===--- casts. Width 64 means an int64_t buffer, less an int32_t one ---===//

  /// arith.extsi / extui / trunci / index_cast(ui): reads x as signed or
  /// unsigned of its width, keeps the low bits.
  void (*castInt)(const void *x, unsigned widthX, bool isSigned, void *result,
                  unsigned widthResult, size_t n);
  /// arith.sitofp / uitofp, rounded once.
  void (*intToFloat)(const void *x, unsigned widthX, bool isSigned,
                     float *result, size_t n, Rounding rounding);
  /// arith.fptosi / fptoui: towards zero.
  IntStatus (*floatToInt)(const float *x, void *result, unsigned widthResult,
                          bool isSigned, size_t n);

  //===--- reductions, fp32 inside ----------------------------------------===//

  /// acc[r] = op(acc[r], op over x[r * rowStride + j], j < n). Element j goes
  /// to partial result j mod 32; the partials are folded pairwise, then with
  /// acc[r].
  void (*reduceRows)(ReduceOp op, const float *x, size_t rows, size_t n,
                     ptrdiff_t rowStride, float *acc);
  /// The same of rows of DL16 codes, arrays of uint16_t. A row may be in parts
  /// of `partLength` elements, a multiple of 64, `partStride` elements from one
  /// to the next; the last one may be shorter.
  void (*reduceCodeRows)(ReduceOp op, const void *codes, size_t rows, size_t n,
                         ptrdiff_t rowStride, size_t partLength,
                         ptrdiff_t partStride, float *acc);
  /// acc[j] = op(acc[j], x[r * rowStride + j]) for r ascending.
  void (*accumulateRows)(ReduceOp op, const float *x, size_t rows, size_t n,
                         ptrdiff_t rowStride, float *acc);
  /// Replaces best[j] and bestIndex[j] by values[j * step] and
  /// indices[j * indexStep] where that value is larger (smaller, if not
  /// `isMax`), or the same with a smaller index. A NaN replaces numbers.
  void (*keepBetterInt32)(bool isMax, const float *values, size_t step,
                          const int32_t *indices, size_t indexStep, float *best,
                          int32_t *bestIndex, size_t n);
  void (*keepBetterInt64)(bool isMax, const float *values, size_t step,
                          const int64_t *indices, size_t indexStep, float *best,
                          int64_t *bestIndex, size_t n);
  /// acc[0] becomes what reduceRows makes of the row that `chain` makes.
  void (*sumChain)(const float *x, size_t step, const ChainStep *steps,
                   unsigned numSteps, size_t n, Rounding rounding, float *acc,
                   ReadAhead *ahead);
  /// The values of n DL16 codes, and what reduceRows makes of them in acc[0].
  void (*decodeAndReduce)(ReduceOp op, const void *codes, float *values,
                          size_t n, float *acc);
  /// What `chain` makes with rounding to DL16, and in acc[0] what sumChain
  /// makes of its results with the other steps and that rounding. Of these the
  /// ones that have `result` as operand use each value as it is made.
  void (*chainAndSum)(const float *x, size_t step, const ChainStep *steps,
                      unsigned numSteps, float *result,
                      const ChainStep *sumSteps, unsigned numSumSteps, size_t n,
                      float *acc, ReadAhead *ahead);

  //===--- matrix product -------------------------------------------------===//

  /// C[i, j] += sum over k of A[i, k] * B[k, j] in fp32, where X[p, q] is
  /// x[p * rowStrideX + q * colStrideX] and C has unit column stride. Every
  /// element is one chain of (fused where the set has it) multiply-adds from
  /// C[i, j] with k ascending, hence independent of M, N and the strides.
  void (*gemm)(size_t m, size_t n, size_t k, const float *a,
               ptrdiff_t rowStrideA, ptrdiff_t colStrideA, const float *b,
               ptrdiff_t rowStrideB, ptrdiff_t colStrideB, float *c,
               ptrdiff_t rowStrideC);
  /// The same, to the bit, for a B of DL16 codes of unit column stride.
  void (*gemmOfCodes)(size_t m, size_t n, size_t k, const float *a,
                      ptrdiff_t rowStrideA, ptrdiff_t colStrideA, const void *b,
                      ptrdiff_t rowStrideB, float *c, ptrdiff_t rowStrideC);
  /// The same for halves, with a sum of fp32 in an order of its own, which
  /// depends on k alone (AmxKernels.cpp). To be used for kMinRowsOfHalves rows
  /// and more; for fewer, gemm() is faster. Products of few rows are made
  /// together. Every A is of codes or none is, and no C is read by another
  /// product. Null for all sets but `amx`.
  void (*gemmOfHalves)(const HalfProduct *products, size_t numProducts,
                       size_t n, size_t k, const HalfFactor &b);

  //===--- strided copies and device memory -------------------------------===//
  // Strides are in elements of their own side and may be 0 (source only) or
  // negative; rank 0 moves one element. Where destination elements coincide,
  // which source element wins is not specified.

  void (*copyFloat)(float *dst, const ptrdiff_t *dstStrides, const float *src,
                    const ptrdiff_t *srcStrides, const size_t *shape,
                    unsigned rank);
  void (*copyInt16)(int16_t *dst, const ptrdiff_t *dstStrides,
                    const int16_t *src, const ptrdiff_t *srcStrides,
                    const size_t *shape, unsigned rank);
  void (*copyInt32)(int32_t *dst, const ptrdiff_t *dstStrides,
                    const int32_t *src, const ptrdiff_t *srcStrides,
                    const size_t *shape, unsigned rank);
  void (*copyInt64)(int64_t *dst, const ptrdiff_t *dstStrides,
                    const int64_t *src, const ptrdiff_t *srcStrides,
                    const size_t *shape, unsigned rank);

  /// Device memory to tile. `format` is a float format for loadFloat and an
  /// integer format for loadInt32 (not I64) and loadInt64 (any). `src` need
  /// only be aligned to its element.
  void (*loadFloat)(ElementFormat format, float *dst,
                    const ptrdiff_t *dstStrides, const void *src,
                    const ptrdiff_t *srcStrides, const size_t *shape,
                    unsigned rank);
  void (*loadInt32)(ElementFormat format, int32_t *dst,
                    const ptrdiff_t *dstStrides, const void *src,
                    const ptrdiff_t *srcStrides, const size_t *shape,
                    unsigned rank);
  void (*loadInt64)(ElementFormat format, int64_t *dst,
                    const ptrdiff_t *dstStrides, const void *src,
                    const ptrdiff_t *srcStrides, const size_t *shape,
                    unsigned rank);
  /// Tile to device memory; floats are rounded to the format, integers keep
  /// their low bits.
  void (*storeFloat)(ElementFormat format, void *dst,
                     const ptrdiff_t *dstStrides, const float *src,
                     const ptrdiff_t *srcStrides, const size_t *shape,
                     unsigned rank);
  void (*storeInt32)(ElementFormat format, void *dst,
                     const ptrdiff_t *dstStrides, const int32_t *src,
                     const ptrdiff_t *srcStrides, const size_t *shape,
                     unsigned rank);
  void (*storeInt64)(ElementFormat format, void *dst,
                     const ptrdiff_t *dstStrides, const int64_t *src,
                     const ptrdiff_t *srcStrides, const size_t *shape,
                     unsigned rank);

  /// As loadFloat and storeFloat, for contiguous runs of n elements.
  void (*loadFloatRun)(ElementFormat format, const void *src, float *dst,
                       size_t n);
  void (*storeFloatRun)(ElementFormat format, const float *src, void *dst,
                        size_t n);
  /// dst[i] = table[src[i]], for arrays of uint16_t; `table` has 65,536.
  void (*lookUp)(const uint16_t *table, const void *src, void *dst, size_t n);
};

/// The table of this host's best instruction set, or of the one that
/// SPYRE_CPU_CAPABILITY names. Chosen once; throws spyre::Error if the host has
/// no such set.
const KernelTable &kernels();

/// Every table that this host can run, baseline first.
std::vector<const KernelTable *> kernelVariants();

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_KERNELS_TILEKERNELS_H
