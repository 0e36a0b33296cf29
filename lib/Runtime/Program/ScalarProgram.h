// SPDX-License-Identifier: Apache-2.0
//===- ScalarProgram.h - Scalar bodies as vector programs -------*- C++ -*-===//
//
// The scalar body of a linalg op (or one elementwise op) decoded into
// operations on registers. A register is an array of up to kBlock values, or
// one value that stands for all (step 0).
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_PROGRAM_SCALARPROGRAM_H
#define SPYRE_LIB_RUNTIME_PROGRAM_SCALARPROGRAM_H

#include "Elements.h"

#include "Spyre/Device/CostModel.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace spyre::runtime {

struct ScalarOp {
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
  CostClass cost = CostClass::Simple;
  int location = 0;
  int name = 0; ///< Plan::operationNames
  /// Operations from this one on of which each is all that uses the one
  /// before: one pass over the points can compute them (KernelTable::chain).
  uint8_t chain = 0;
  /// Whether all that uses the chain's result is an exponential, right behind
  /// it (KernelTable::expOfChain). Of an exponential: whether its operand is of
  /// its own type.
  bool isExpOfChain = false;
  /// Of a step of a chain: whether all operands are of the result's type.
  bool hasOneType = false;
  /// Whether some operations of the chain make fp32, others a narrow type.
  bool isMixedChain = false;
};

struct ScalarConstant {
  int reg;
  Elem elem;
  Scalar value; ///< float types: before rounding
  /// Float types: rounded for DL16 and for IEEE numerics, by finish().
  float rounded[2] = {0, 0};
};

struct ScalarProgram {
  static constexpr int kMaxRegs = 128;

  std::vector<Elem> regElem; ///< element type of every register
  std::vector<ScalarConstant> constants;
  std::vector<std::pair<int, int>> captured; ///< (register, scalar slot)
  std::vector<int> inputs;                   ///< register of each argument
  /// Per argument: whether nothing but steps of chains reads it.
  std::vector<bool> isReadByChains;
  std::vector<ScalarOp> ops;
  std::vector<int> yields;
  std::vector<int> scratch; ///< per register: scratch buffer or -1
  int numScratch = 0;
  uint64_t opsPerPoint = 0;             ///< SFU element-ops per point
  uint64_t transcendentalsPerPoint = 0; ///< of them

  /// Lets operations round where a truncf of their only use would, and leaves
  /// out those that change nothing.
  void fuseRounding();
  void findChains();

  /// Whether it reads tensors that are not among the inputs.
  bool extracts() const;
  /// Whether the body is one chain (KernelTable::chain) of one type, which
  /// makes the first yield.
  bool isChain() const;
  /// Whether a chain ends in this register, which no operation reads.
  bool endsChain(int reg) const;
  /// Whether the body yields its first input, and does nothing.
  bool yieldsInput() const;
  /// Whether there are values for which it has no result.
  bool canFail() const;
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

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_PROGRAM_SCALARPROGRAM_H
