// SPDX-License-Identifier: Apache-2.0
//===- Body.h - Scalar bodies as vector programs ----------------*- C++ -*-===//
//
// The scalar body of a linalg op (or one elementwise op) decoded into
// operations on registers. A register is an array of up to kBlock values, or
// one value that stands for all (step 0).
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_BODY_H
#define SPYRE_LIB_RUNTIME_ENGINE_BODY_H

#include "Plan.h"

#include <cstdint>
#include <vector>

namespace spyre::runtime {

constexpr int64_t kBlock = 2048;

struct BodyOp {
  enum Kind : uint8_t {
    Unary,
    Binary,
    Fma,
    Round,
    CompareF,
    Select,
    IntUnary,
    IntBinary,
    IntPower,
    CompareI,
    CastInt,
    IntToFloat,
    FloatToInt,
    Bitcast,
    LoopIndex, ///< linalg.index: the loop is `op`
    Extract    ///< element a, b, c of the tensor in `slot`
  };
  Kind kind;
  uint8_t op = 0;          ///< UnaryOp, BinaryOp, predicate, ...
  bool isSigned = true;    ///< casts
  bool noWrap = false;     ///< nsw: leaving the type is an error
  Elem elem = Elem::F32;   ///< of the result
  Elem source = Elem::F32; ///< of the first operand (compare, casts)
  int dst = 0, a = -1, b = -1, c = -1;
  int slot = -1; ///< Extract
  int location = 0;
  /// Operations from this one on of which each is all that uses the one
  /// before: one pass over the points can compute them (KernelTable::chain).
  uint8_t chain = 0;
};

struct BodyConstant {
  int reg;
  Elem elem;
  Scalar value; ///< float types: before rounding
  /// Float types: rounded for DL16 and for IEEE numerics, by finish().
  float rounded[2] = {0, 0};
};

struct BodyProgram {
  std::vector<Elem> regElem; ///< element type of every register
  std::vector<BodyConstant> constants;
  std::vector<std::pair<int, int>> captured; ///< (register, scalar slot)
  std::vector<int> inputs;                   ///< register of each argument
  std::vector<BodyOp> ops;
  std::vector<int> yields;
  std::vector<int> scratch; ///< per register: scratch buffer or -1
  int numScratch = 0;
  uint64_t opsPerPoint = 0;             ///< SFU element-ops per point
  uint64_t transcendentalsPerPoint = 0; ///< of them

  /// Lets operations round where a truncf of their only use would.
  void fuseRounding();
  void findChains();

  /// Whether it reads tensors that are not among the inputs.
  bool extracts() const;
  /// Whether a run needs no scratch buffers, so that a block may have any
  /// number of points: all that varies within it are inputs (those whose entry
  /// of `varies` is true) and yields that go to where `isDirect` says so.
  bool runsWithoutScratch(const bool *varies, const bool *isDirect) const;

  int addReg(Elem elem) {
    regElem.push_back(elem);
    return static_cast<int>(regElem.size()) - 1;
  }
  /// Assigns scratch buffers and weights; call once when complete.
  void finish();
};

/// Registers of one executing body.
struct BodyFrame {
  static constexpr int kMaxRegs = 128;
  void *ptr[kMaxRegs];
  uint8_t step[kMaxRegs];
  Scalar constant[kMaxRegs]; ///< storage of step-0 registers that ops make
  /// linalg.index: value of loop d at point i of the block is
  /// base[d] + (i / divisor[d]) % extent[d] (extent 0: no modulus).
  int64_t indexBase[kMaxRank * 2];
  int64_t indexDivisor[kMaxRank * 2];
  int64_t indexExtent[kMaxRank * 2];
};

/// Points temporaries at scratch buffers and fills constants.
void enterBody(Core &core, const BodyProgram &program, BodyFrame &frame);
/// Runs all operations over n points, at most kBlock unless
/// runsWithoutScratch(). With `keepUniform` the frame's
/// uniform inputs are those of the last run, and so are uniform results.
void runBody(Core &core, const BodyProgram &program, BodyFrame &frame, size_t n,
             bool keepUniform = false);

/// The steps of the chain that `op` begins, over the frame's operands.
void makeChain(const BodyOp *op, const BodyFrame &frame, ChainStep *steps);

/// Scratch buffer number `index`, at least kBlock 8-byte values.
void *scratchBuffer(Core &core, int index);

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_BODY_H
