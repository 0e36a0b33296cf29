// SPDX-License-Identifier: Apache-2.0
//===- ScalarRun.h - Running scalar programs --------------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_SCALARRUN_H
#define SPYRE_LIB_RUNTIME_ENGINE_SCALARRUN_H

#include "../Program/ScalarProgram.h"
#include "Core.h"

#include <cstdint>

namespace spyre::runtime {

/// The most points of a block, except for bodies that need no scratch buffers.
constexpr int64_t kBlock = 2048;

/// The sum of a row, which another body makes of what a chain makes.
struct SumOfChain {
  const void *row = nullptr;        ///< where the chain puts its results
  int reg = -1;                     ///< the result of the chain
  size_t count = 0;                 ///< points of the row
  const ChainStep *steps = nullptr; ///< from the chain's result to summands
  unsigned numSteps = 0;
  float *acc = nullptr;
  bool isDone = false; ///< whether the chain has added it to *acc
};

/// The registers of a body that is running.
struct ScalarFrame {
  static constexpr int kMaxRegs = ScalarProgram::kMaxRegs;
  void *ptr[kMaxRegs];
  uint8_t step[kMaxRegs];
  /// A register of a block of rows that is neither dense nor uniform: what a
  /// row has is `step` apart, what the next one has `rowStride` elements
  /// behind. For inputs that only chains read.
  bool isByRows[kMaxRegs];
  ptrdiff_t rowStride[kMaxRegs];
  size_t rows = 1, columns = 0; ///< of the block, if there are such registers
  bool hasRows = false;         ///< whether there are
  Scalar constant[kMaxRegs];    ///< values of uniform (step 0) results of ops
  /// linalg.index: value of loop d at point i of the block is
  /// base[d] + (i / divisor[d]) % extent[d] (extent 0: no modulus).
  int64_t indexBase[kMaxRank * 2];
  int64_t indexDivisor[kMaxRank * 2];
  int64_t indexExtent[kMaxRank * 2];
  /// The result of a chain that is written as DL16 codes, or -1.
  int codes = -1;
  /// What to add up beside a chain, or null.
  SumOfChain *sum = nullptr;
  /// How these are written (KernelTable::chainToCodes).
  bool pastCaches = false;
};

/// Points temporaries at scratch buffers and fills constants.
void enterProgram(Core &core, const ScalarProgram &program, ScalarFrame &frame);
/// Runs all operations over n points: at most kBlock, unless
/// runsWithoutScratch(). `keepUniform` says that the frame's uniform inputs are
/// those of the last run, so that uniform results need not be computed again.
void runProgram(Core &core, const ScalarProgram &program, ScalarFrame &frame,
                size_t n, bool keepUniform = false);

/// The steps of the chain that `op` begins, over the frame's operands. Valid
/// while this lives.
struct ChainSteps {
  ChainSteps(const ScalarOp *op, const ScalarFrame &frame, bool ieee);
  ChainSteps(const ChainSteps &) = delete;
  ChainStep steps[kMaxChain];

private:
  float inverse[kMaxChain];
};

/// Scratch buffer number `index`, which has room for kBlock 8-byte values.
void *scratchBuffer(Core &core, int index);

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_SCALARRUN_H
