// SPDX-License-Identifier: Apache-2.0
#include "Kernels.h"
#include "Vector.h"

#define SPYRE_STRING_OF(X) #X
#define SPYRE_STRING(X) SPYRE_STRING_OF(X)

namespace spyre::runtime::SPYRE_KERNEL_ISA {

const KernelTable *table() {
  static constexpr KernelTable result = {SPYRE_STRING(SPYRE_KERNEL_ISA),
                                         unary,
                                         binary,
                                         chain,
                                         chainToCodes,
                                         chainOfRows,
                                         chainOfCodes,
                                         expOfChain,
                                         fusedMultiplyAdd,
                                         roundFloat,
                                         compareFloat,
                                         selectFloat,
                                         unaryInt32,
                                         unaryInt64,
                                         binaryInt32,
                                         binaryInt64,
                                         compareInt32,
                                         compareInt64,
                                         selectInt32,
                                         selectInt64,
                                         comparePairs,
                                         castInt,
                                         intToFloat,
                                         floatToInt,
                                         reduceRows,
                                         reduceCodeRows,
                                         accumulateRows,
                                         keepBetterInt32,
                                         keepBetterInt64,
                                         sumChain,
                                         decodeAndReduce,
                                         chainAndSum,
                                         gemm,
                                         gemmOfCodes,
                                         /*gemmOfHalves=*/nullptr,
                                         copyFloat,
                                         copyInt16,
                                         copyInt32,
                                         copyInt64,
                                         loadFloat,
                                         loadInt32,
                                         loadInt64,
                                         storeFloat,
                                         storeInt32,
                                         storeInt64,
                                         loadFloatRun,
                                         storeFloatRun,
                                         lookUp};
  return &result;
}

} // namespace spyre::runtime::SPYRE_KERNEL_ISA
