// SPDX-License-Identifier: Apache-2.0
//===- Kernels.h - The kernels of one instruction set -----------*- C++ -*-===//
//
// Contracts: Spyre/Runtime/Kernels/TileKernels.h.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_KERNELS_KERNELS_H
#define SPYRE_LIB_RUNTIME_KERNELS_KERNELS_H

#include "Spyre/Runtime/Kernels/TileKernels.h"

namespace spyre::runtime::SPYRE_KERNEL_ISA {

const KernelTable *table();

void unary(UnaryOp op, const float *x, float *result, size_t n,
           Rounding rounding);
void roundFloat(const float *x, float *result, size_t n, Rounding rounding);

void binary(BinaryOp op, const float *a, size_t stepA, const float *b,
            size_t stepB, float *result, size_t n, Rounding rounding);
void chain(const float *x, size_t step, const ChainStep *steps,
           unsigned numSteps, float *result, size_t n, Rounding rounding,
           ReadAhead *ahead);
void chainToCodes(const float *x, size_t step, const ChainStep *steps,
                  unsigned numSteps, void *result, size_t n, ReadAhead *ahead,
                  bool pastCaches);
void chainOfRows(const float *x, size_t step, ptrdiff_t rowStride,
                 const ChainStep *steps, unsigned numSteps, void *result,
                 size_t rows, size_t columns, Rounding rounding,
                 bool makesCodes);
void chainOfCodes(const void *x, size_t step, const ChainStep *steps,
                  unsigned numSteps, void *result, size_t n);
void expOfChain(const float *x, size_t step, const ChainStep *steps,
                unsigned numSteps, float *result, size_t n, float *sum,
                ReadAhead *ahead);
void fusedMultiplyAdd(const float *a, size_t stepA, const float *b,
                      size_t stepB, const float *c, size_t stepC, float *result,
                      size_t n, Rounding rounding);
void compareFloat(FloatPredicate predicate, const float *a, size_t stepA,
                  const float *b, size_t stepB, int32_t *result, size_t n);
void selectFloat(const int32_t *condition, size_t stepCondition, const float *a,
                 size_t stepA, const float *b, size_t stepB, float *result,
                 size_t n);

IntStatus unaryInt32(IntUnaryOp op, const int32_t *x, int32_t *result, size_t n,
                     unsigned width);
IntStatus unaryInt64(IntUnaryOp op, const int64_t *x, int64_t *result,
                     size_t n);
IntStatus binaryInt32(IntBinaryOp op, const int32_t *a, size_t stepA,
                      const int32_t *b, size_t stepB, int32_t *result, size_t n,
                      unsigned width);
IntStatus binaryInt64(IntBinaryOp op, const int64_t *a, size_t stepA,
                      const int64_t *b, size_t stepB, int64_t *result,
                      size_t n);
void compareInt32(IntPredicate predicate, const int32_t *a, size_t stepA,
                  const int32_t *b, size_t stepB, int32_t *result, size_t n,
                  unsigned width);
void compareInt64(IntPredicate predicate, const int64_t *a, size_t stepA,
                  const int64_t *b, size_t stepB, int32_t *result, size_t n);
void selectInt32(const int32_t *condition, size_t stepCondition,
                 const int32_t *a, size_t stepA, const int32_t *b, size_t stepB,
                 int32_t *result, size_t n);
void selectInt64(const int32_t *condition, size_t stepCondition,
                 const int64_t *a, size_t stepA, const int64_t *b, size_t stepB,
                 int64_t *result, size_t n);
void comparePairs(const int64_t *keys, int64_t *result, size_t numBlocks,
                  size_t distance, size_t columns, bool isMirrored);
void castInt(const void *x, unsigned widthX, bool isSigned, void *result,
             unsigned widthResult, size_t n);
void intToFloat(const void *x, unsigned widthX, bool isSigned, float *result,
                size_t n, Rounding rounding);
IntStatus floatToInt(const float *x, void *result, unsigned widthResult,
                     bool isSigned, size_t n);

void reduceRows(ReduceOp op, const float *x, size_t rows, size_t n,
                ptrdiff_t rowStride, float *acc);
void reduceCodeRows(ReduceOp op, const void *codes, size_t rows, size_t n,
                    ptrdiff_t rowStride, size_t partLength,
                    ptrdiff_t partStride, float *acc);
void sumChain(const float *x, size_t step, const ChainStep *steps,
              unsigned numSteps, size_t n, Rounding rounding, float *acc,
              ReadAhead *ahead);
void decodeAndReduce(ReduceOp op, const void *codes, float *values, size_t n,
                     float *acc);
void chainAndSum(const float *x, size_t step, const ChainStep *steps,
                 unsigned numSteps, float *result, const ChainStep *sumSteps,
                 unsigned numSumSteps, size_t n, float *acc, ReadAhead *ahead);
void keepBetterInt32(bool isMax, const float *values, size_t step,
                     const int32_t *indices, size_t indexStep, float *best,
                     int32_t *bestIndex, size_t n);
void keepBetterInt64(bool isMax, const float *values, size_t step,
                     const int64_t *indices, size_t indexStep, float *best,
                     int64_t *bestIndex, size_t n);
void accumulateRows(ReduceOp op, const float *x, size_t rows, size_t n,
                    ptrdiff_t rowStride, float *acc);

void gemm(size_t m, size_t n, size_t k, const float *a, ptrdiff_t rowStrideA,
          ptrdiff_t colStrideA, const float *b, ptrdiff_t rowStrideB,
          ptrdiff_t colStrideB, float *c, ptrdiff_t rowStrideC);
void gemmOfCodes(size_t m, size_t n, size_t k, const float *a,
                 ptrdiff_t rowStrideA, ptrdiff_t colStrideA, const void *b,
                 ptrdiff_t rowStrideB, float *c, ptrdiff_t rowStrideC);

void copyFloat(float *dst, const ptrdiff_t *dstStrides, const float *src,
               const ptrdiff_t *srcStrides, const size_t *shape, unsigned rank);
void copyInt16(int16_t *dst, const ptrdiff_t *dstStrides, const int16_t *src,
               const ptrdiff_t *srcStrides, const size_t *shape, unsigned rank);
void copyInt32(int32_t *dst, const ptrdiff_t *dstStrides, const int32_t *src,
               const ptrdiff_t *srcStrides, const size_t *shape, unsigned rank);
void copyInt64(int64_t *dst, const ptrdiff_t *dstStrides, const int64_t *src,
               const ptrdiff_t *srcStrides, const size_t *shape, unsigned rank);
void loadFloat(ElementFormat format, float *dst, const ptrdiff_t *dstStrides,
               const void *src, const ptrdiff_t *srcStrides,
               const size_t *shape, unsigned rank);
void loadInt32(ElementFormat format, int32_t *dst, const ptrdiff_t *dstStrides,
               const void *src, const ptrdiff_t *srcStrides,
               const size_t *shape, unsigned rank);
void loadInt64(ElementFormat format, int64_t *dst, const ptrdiff_t *dstStrides,
               const void *src, const ptrdiff_t *srcStrides,
               const size_t *shape, unsigned rank);
void storeFloat(ElementFormat format, void *dst, const ptrdiff_t *dstStrides,
                const float *src, const ptrdiff_t *srcStrides,
                const size_t *shape, unsigned rank);
void storeInt32(ElementFormat format, void *dst, const ptrdiff_t *dstStrides,
                const int32_t *src, const ptrdiff_t *srcStrides,
                const size_t *shape, unsigned rank);
void storeInt64(ElementFormat format, void *dst, const ptrdiff_t *dstStrides,
                const int64_t *src, const ptrdiff_t *srcStrides,
                const size_t *shape, unsigned rank);
void loadFloatRun(ElementFormat format, const void *src, float *dst, size_t n);
void storeFloatRun(ElementFormat format, const float *src, void *dst, size_t n);
void lookUp(const uint16_t *table, const void *src, void *dst, size_t n);

} // namespace spyre::runtime::SPYRE_KERNEL_ISA

#endif // SPYRE_LIB_RUNTIME_KERNELS_KERNELS_H
