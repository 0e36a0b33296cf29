// SPDX-License-Identifier: Apache-2.0
//===- ScalarRun.cpp - Running scalar programs ----------------------------===//

#include "ScalarRun.h"
#include "NaNCheck.h"

#include <algorithm>
#include <type_traits>

using namespace spyre::runtime;

void *spyre::runtime::scratchBuffer(Core &core, int index) {
  while (static_cast<int>(core.registers.size()) <= index)
    core.registers.push_back(core.pool->get(kBlock * sizeof(int64_t)));
  return core.registers[index]->data();
}

void spyre::runtime::enterProgram(Core &core, const ScalarProgram &program,
                                  ScalarFrame &frame) {
  for (size_t r = 0; r < program.regElem.size(); ++r) {
    frame.step[r] = 1;
    frame.isByRows[r] = false;
    frame.ptr[r] = program.scratch[r] >= 0
                       ? scratchBuffer(core, program.scratch[r])
                       : nullptr;
  }
  auto setScalar = [&](int reg, Elem elem, Scalar value) {
    Scalar &s = frame.constant[reg];
    s.i = 0;
    if (isFloat(elem))
      s.f = value.f;
    else if (isWide(elem))
      s.i = value.i;
    else {
      int32_t v = static_cast<int32_t>(value.i);
      std::memcpy(&s, &v, sizeof(v));
    }
    frame.ptr[reg] = &s;
    frame.step[reg] = 0;
  };
  for (const ScalarConstant &c : program.constants) {
    Scalar value = c.value;
    if (isFloat(c.elem))
      value.f = c.rounded[core.ieee];
    setScalar(c.reg, c.elem, value);
  }
  for (auto [reg, slot] : program.captured)
    setScalar(reg, program.regElem[reg], core.scalars[slot]);
}

static void checkStatus(Core &core, const ScalarOp &op, unsigned status) {
  if (status & kIntDivideByZero)
    core.fail(op.location, "integer division by zero");
  if ((status & kIntOverflow) && op.noWrap)
    core.fail(op.location, std::string("integer overflow: the result does "
                                       "not fit ") +
                               elemName(op.elem));
}

/// A trunci that must not lose anything.
static void checkTruncation(Core &core, const ScalarOp &op, const void *x,
                            size_t n) {
  int shift = 64 - bitWidth(op.elem);
  auto check = [&](const auto *values) {
    bool bad = false;
    for (size_t i = 0; i < n; ++i) {
      int64_t v = values[i];
      bad |=
          static_cast<int64_t>(static_cast<uint64_t>(v) << shift) >> shift != v;
    }
    if (!bad)
      return;
    for (size_t i = 0; i < n; ++i) {
      int64_t v = values[i];
      if (static_cast<int64_t>(static_cast<uint64_t>(v) << shift) >> shift != v)
        core.fail(op.location, "integer overflow: " + std::to_string(v) +
                                   " does not fit " + elemName(op.elem));
    }
  };
  if (isWide(op.source))
    check(static_cast<const int64_t *>(x));
  else
    check(static_cast<const int32_t *>(x));
}

/// math.ipowi. Overflow wraps around, and a negative exponent gives the
/// truncated reciprocal.
template <typename T>
static bool powerOfInts(const T *a, size_t stepA, const T *b, size_t stepB,
                        T *result, size_t n) {
  using U = std::make_unsigned_t<T>;
  bool dividesByZero = false;
  for (size_t i = 0; i < n; ++i) {
    T base = a[i * stepA], exponent = b[i * stepB];
    if (exponent < 0) {
      dividesByZero |= base == 0;
      result[i] = base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
      continue;
    }
    U value = 1, square = static_cast<U>(base);
    for (U rest = static_cast<U>(exponent); rest; rest >>= 1) {
      if (rest & 1)
        value *= square;
      square *= square;
    }
    result[i] = static_cast<T>(value);
  }
  return dividesByZero;
}

/// Computes the values of type `to` whose bits in device memory are those of
/// `a`. With DL16 numerics, the bits of an f16 are its DL16 code.
static void bitcast(const void *a, Elem from, void *result, Elem to, size_t n,
                    bool ieee) {
  const ptrdiff_t one = 1;
  uint8_t codes[kBlock * sizeof(int64_t)];
  storeBox(from, elementFormat(from, ieee), codes, &one, a, &one, &n, 1);
  loadBox(to, elementFormat(to, ieee), result, &one, codes, &one, &n, 1);
}

/// tensor.extract at n points, whose indices are in up to three registers.
static void extract(Core &core, const ScalarOp &op, const ScalarFrame &frame,
                    void *result, size_t n) {
  core.materialize(op.slot, op.elem);
  const TensorVal &t = core.tensors[op.slot];
  int registers[3] = {op.a, op.b, op.c};
  size_t size = hostSize(op.elem);
  for (size_t i = 0; i < n; ++i) {
    int64_t offset = 0;
    for (int d = 0; d < t.rank; ++d) {
      int64_t index = static_cast<const int64_t *>(
          frame.ptr[registers[d]])[i * frame.step[registers[d]]];
      if (index < 0 || index >= t.sizes[d])
        core.fail(op.location, "index " + std::to_string(index) +
                                   " is outside dimension " +
                                   std::to_string(d) + " of size " +
                                   std::to_string(t.sizes[d]));
      offset = offset * t.sizes[d] + index;
    }
    std::memcpy(static_cast<uint8_t *>(result) + i * size,
                static_cast<const uint8_t *>(t.data) + size_t(offset) * size,
                size);
  }
}

static unsigned width(Elem e) { return static_cast<unsigned>(bitWidth(e)); }

static ptrdiff_t rowStrideOf(const ScalarFrame &frame, int reg) {
  if (frame.isByRows[reg])
    return frame.rowStride[reg];
  return frame.step[reg] ? ptrdiff_t(frame.columns) : 0;
}

/// Whether a step of the chain that `op` begins reads a register by rows.
static bool readsByRows(const ScalarOp *op, const ScalarFrame &frame) {
  return std::any_of(op, op + op->chain, [&](const ScalarOp &step) {
    return frame.isByRows[step.a] || frame.isByRows[step.b];
  });
}

/// What the results of the chain that `op` begins are rounded to, where they
/// are.
static Rounding roundingOfChain(const ScalarOp *op, bool ieee) {
  auto *narrow = std::find_if(op, op + op->chain, [](const ScalarOp &step) {
    return step.elem != Elem::F32;
  });
  return narrow == op + op->chain ? Rounding::None
                                  : roundingOf(narrow->elem, ieee);
}

ChainSteps::ChainSteps(const ScalarOp *op, const ScalarFrame &frame,
                       bool ieee) {
  for (unsigned s = 0; s < op->chain; ++s) {
    bool isReversed = s > 0 && op[s].b == op[s - 1].dst;
    int other = isReversed ? op[s].a : op[s].b;
    steps[s] = {BinaryOp(op[s].op), isReversed,
                static_cast<const float *>(frame.ptr[other]), frame.step[other],
                op[s].elem != Elem::F32};
    if (frame.hasRows)
      steps[s].rowStride = rowStrideOf(frame, other);
    // Multiplying by the inverse is exact enough for DL16. With ten bits in x
    // and y and eleven in m, which is halfway between two results, x / y is
    // never m, and if x / y is not m, they differ by 2^-21 of m or more: x and
    // m * y are different whole numbers below 2^21, but for powers of two. The
    // inverse and the product are each off by 2^-24 at most.
    if (steps[s].op == BinaryOp::Div && !isReversed && steps[s].step == 0 &&
        !frame.isByRows[other] && op[s].hasOneType && op[s].elem == Elem::F16 &&
        !ieee) {
      inverse[s] = 1.0f / *steps[s].x;
      steps[s].op = BinaryOp::Mul;
      steps[s].x = &inverse[s];
    }
  }
}

/// Makes room for a result that varies. In the block before it may have been
/// one value, as where a block has but one column.
static void *placeOf(Core &core, const ScalarProgram &program,
                     ScalarFrame &frame, int reg) {
  frame.step[reg] = 1;
  if (frame.ptr[reg] == &frame.constant[reg])
    frame.ptr[reg] = scratchBuffer(core, program.scratch[reg]);
  return frame.ptr[reg];
}

/// Whether the sum of the chain that `op` ends is to be made beside it.
static bool isSummed(const Core &core, const ScalarOp &op,
                     const ScalarFrame &frame, size_t n) {
  return frame.sum && frame.sum->reg == op.dst && frame.sum->count == n &&
         frame.ptr[op.dst] == frame.sum->row && op.elem == Elem::F16 &&
         !core.ieee && !core.shadow;
}

/// runChain() with a sum.
static void runSummedChain(Core &core, const float *x, size_t step,
                           ChainSteps &chain, unsigned numSteps, float *result,
                           SumOfChain &sum) {
  ChainStep summing[kMaxChain];
  std::copy_n(sum.steps, sum.numSteps, summing);
  // Sums of chains are added block by block.
  size_t block = sum.numSteps == 0 ? sum.count : size_t(kBlock);
  for (size_t begin = 0; begin < sum.count; begin += block) {
    size_t count = std::min(block, sum.count - begin);
    kernels().chainAndSum(x, step, chain.steps, numSteps, result, summing,
                          sum.numSteps, count, sum.acc, &core.readAhead);
    x += step * count;
    result += count;
    for (unsigned s = 0; s < numSteps; ++s)
      chain.steps[s].x += chain.steps[s].step * count;
    for (unsigned s = 0; s < sum.numSteps; ++s)
      summing[s].x += summing[s].step * count;
  }
  sum.isDone = true;
}

/// Runs `op` and the rest of its chain. The result goes to the address that
/// `frame.ptr` has for the last operation.
static void runChain(Core &core, const ScalarProgram &program,
                     const ScalarOp *op, ScalarFrame &frame, size_t n) {
  ChainSteps chain(op, frame, core.ieee);
  int last = op[op->chain - 1].dst;
  void *result = placeOf(core, program, frame, last);
  if (frame.codes == last)
    return kernels().chainToCodes(static_cast<const float *>(frame.ptr[op->a]),
                                  frame.step[op->a], chain.steps, op->chain,
                                  result, n, &core.readAhead, frame.pastCaches);
  if (!op->isMixedChain && isSummed(core, op[op->chain - 1], frame, n))
    return runSummedChain(core, static_cast<const float *>(frame.ptr[op->a]),
                          frame.step[op->a], chain, op->chain,
                          static_cast<float *>(result), *frame.sum);
  kernels().chain(static_cast<const float *>(frame.ptr[op->a]),
                  frame.step[op->a], chain.steps, op->chain,
                  static_cast<float *>(result), n,
                  roundingOfChain(op, core.ieee), &core.readAhead);
}

/// runChain() for a chain that reads a register by rows.
static void runChainOfRows(Core &core, const ScalarProgram &program,
                           const ScalarOp *op, ScalarFrame &frame) {
  ChainSteps chain(op, frame, core.ieee);
  int last = op[op->chain - 1].dst;
  void *result = placeOf(core, program, frame, last);
  kernels().chainOfRows(
      static_cast<const float *>(frame.ptr[op->a]), frame.step[op->a],
      rowStrideOf(frame, op->a), chain.steps, op->chain, result, frame.rows,
      frame.columns, roundingOfChain(op, core.ieee), frame.codes == last);
}

/// Runs the chain that `op` begins, if it is one, and the exponential of it.
static void runExpOfChain(Core &core, const ScalarProgram &program,
                          const ScalarOp *op, ScalarFrame &frame, size_t n) {
  ChainSteps chain(op, frame, core.ieee);
  const ScalarOp &last = op[op->chain];
  void *result = placeOf(core, program, frame, last.dst);
  bool sums = isSummed(core, last, frame, n) && frame.sum->numSteps == 0;
  kernels().expOfChain(static_cast<const float *>(frame.ptr[op->a]),
                       frame.step[op->a], chain.steps, op->chain,
                       static_cast<float *>(result), n,
                       sums ? frame.sum->acc : nullptr, &core.readAhead);
  if (sums)
    frame.sum->isDone = true;
}

namespace {
/// One operation over the points of a block, with the addresses of its operands
/// and of its result.
struct OpOnBlock {
  OpOnBlock(Core &core, const ScalarOp &op, ScalarFrame &frame)
      : core(core), op(op), frame(frame),
        a(op.a >= 0 ? frame.ptr[op.a] : nullptr),
        b(op.b >= 0 ? frame.ptr[op.b] : nullptr),
        c(op.c >= 0 ? frame.ptr[op.c] : nullptr),
        stepA(op.a >= 0 ? frame.step[op.a] : 0),
        stepB(op.b >= 0 ? frame.step[op.b] : 0),
        stepC(op.c >= 0 ? frame.step[op.c] : 0) {}

  /// Whether all operands are uniform, and therefore the result.
  bool isUniform() const {
    return !stepA && !stepB && !stepC &&
           (op.kind != ScalarOp::LoopIndex || frame.indexDivisor[op.op] == 0);
  }
  /// A NaN has to be seen before it is rounded: DL16 has none.
  bool isWatched() const {
    return core.shadow && isFloat(op.elem) &&
           (op.kind == ScalarOp::Unary || op.kind == ScalarOp::Binary ||
            op.kind == ScalarOp::Fma || op.kind == ScalarOp::IntToFloat);
  }
  /// Computes the result.
  void compute(Rounding rounding) const;
  /// Fails if the operation computed a NaN, then rounds the result.
  void checkAndRound() const;

  Core &core;
  const ScalarOp &op;
  const ScalarFrame &frame;
  const void *a, *b, *c;
  size_t stepA, stepB, stepC;
  void *result = nullptr;
  size_t count = 0; ///< values of the result

private:
  void computeFloat(Rounding rounding) const;
  void computeSelect() const;
  void computeInteger() const;
  void computePower() const;
  void computeConversion(Rounding rounding) const;
  void computeLoopIndex() const;

  static const float *floats(const void *p) {
    return static_cast<const float *>(p);
  }
  static const int32_t *ints(const void *p) {
    return static_cast<const int32_t *>(p);
  }
  static const int64_t *longs(const void *p) {
    return static_cast<const int64_t *>(p);
  }
  float *floatResult() const { return static_cast<float *>(result); }
  int32_t *intResult() const { return static_cast<int32_t *>(result); }
  int64_t *longResult() const { return static_cast<int64_t *>(result); }
};
} // namespace

void OpOnBlock::compute(Rounding rounding) const {
  switch (op.kind) {
  case ScalarOp::Unary:
  case ScalarOp::Binary:
  case ScalarOp::Fma:
  case ScalarOp::Round:
  case ScalarOp::CompareF:
    return computeFloat(rounding);
  case ScalarOp::Select:
    return computeSelect();
  case ScalarOp::IntUnary:
  case ScalarOp::IntBinary:
  case ScalarOp::CompareI:
    return computeInteger();
  case ScalarOp::IntPower:
    return computePower();
  case ScalarOp::CastInt:
  case ScalarOp::IntToFloat:
  case ScalarOp::FloatToInt:
  case ScalarOp::Bitcast:
    return computeConversion(rounding);
  case ScalarOp::Extract:
    return extract(core, op, frame, result, count);
  case ScalarOp::LoopIndex:
    return computeLoopIndex();
  }
}

void OpOnBlock::computeFloat(Rounding rounding) const {
  const KernelTable &k = kernels();
  switch (op.kind) {
  case ScalarOp::Unary:
    return k.unary(UnaryOp(op.op), floats(a), floatResult(), count, rounding);
  case ScalarOp::Binary:
    return k.binary(BinaryOp(op.op), floats(a), stepA, floats(b), stepB,
                    floatResult(), count, rounding);
  case ScalarOp::Fma:
    return k.fma(floats(a), stepA, floats(b), stepB, floats(c), stepC,
                 floatResult(), count, rounding);
  case ScalarOp::Round:
    return k.round(floats(a), floatResult(), count, rounding);
  default:
    return k.compareFloat(FloatPredicate(op.op), floats(a), stepA, floats(b),
                          stepB, intResult(), count);
  }
}

void OpOnBlock::computeSelect() const {
  const KernelTable &k = kernels();
  if (isFloat(op.elem))
    k.selectFloat(ints(a), stepA, floats(b), stepB, floats(c), stepC,
                  floatResult(), count);
  else if (isWide(op.elem))
    k.selectInt64(ints(a), stepA, longs(b), stepB, longs(c), stepC,
                  longResult(), count);
  else
    k.selectInt32(ints(a), stepA, ints(b), stepB, ints(c), stepC, intResult(),
                  count);
}

void OpOnBlock::computeInteger() const {
  const KernelTable &k = kernels();
  switch (op.kind) {
  case ScalarOp::IntUnary:
    if (isWide(op.elem))
      k.unaryInt64(IntUnaryOp(op.op), longs(a), longResult(), count);
    else
      k.unaryInt32(IntUnaryOp(op.op), ints(a), intResult(), count,
                   width(op.elem));
    return;
  case ScalarOp::IntBinary:
    if (isWide(op.elem))
      checkStatus(core, op,
                  k.binaryInt64(IntBinaryOp(op.op), longs(a), stepA, longs(b),
                                stepB, longResult(), count));
    else
      checkStatus(core, op,
                  k.binaryInt32(IntBinaryOp(op.op), ints(a), stepA, ints(b),
                                stepB, intResult(), count, width(op.elem)));
    return;
  default: // CompareI
    if (isWide(op.source))
      k.compareInt64(IntPredicate(op.op), longs(a), stepA, longs(b), stepB,
                     intResult(), count);
    else
      k.compareInt32(IntPredicate(op.op), ints(a), stepA, ints(b), stepB,
                     intResult(), count, width(op.source));
  }
}

void OpOnBlock::computePower() const {
  bool dividesByZero =
      isWide(op.elem)
          ? powerOfInts(longs(a), stepA, longs(b), stepB, longResult(), count)
          : powerOfInts(ints(a), stepA, ints(b), stepB, intResult(), count);
  if (dividesByZero)
    core.fail(op.location, "zero to a negative integer power");
  if (bitWidth(op.elem) < 32)
    kernels().castInt(result, 32, true, result, width(op.elem), count);
}

void OpOnBlock::computeConversion(Rounding rounding) const {
  const KernelTable &k = kernels();
  switch (op.kind) {
  case ScalarOp::CastInt:
    if (op.noWrap)
      checkTruncation(core, op, a, count);
    return k.castInt(a, width(op.source), op.isSigned, result, width(op.elem),
                     count);
  case ScalarOp::IntToFloat:
    return k.intToFloat(a, width(op.source), op.isSigned, floatResult(), count,
                        rounding);
  case ScalarOp::FloatToInt:
    k.floatToInt(floats(a), result, width(op.elem), op.isSigned, count);
    return;
  default:
    return bitcast(a, op.source, result, op.elem, count, core.ieee);
  }
}

void OpOnBlock::computeLoopIndex() const {
  int64_t *out = longResult();
  int64_t base = frame.indexBase[op.op];
  int64_t divisor = frame.indexDivisor[op.op];
  int64_t extent = frame.indexExtent[op.op];
  if (divisor == 0)
    std::fill(out, out + count, base);
  else if (divisor == 1 && extent == 0)
    for (size_t p = 0; p < count; ++p)
      out[p] = base + static_cast<int64_t>(p);
  else
    for (size_t p = 0; p < count; ++p) {
      int64_t q = static_cast<int64_t>(p) / divisor;
      out[p] = base + (extent ? q % extent : q);
    }
}

void OpOnBlock::checkAndRound() const {
  const float *operands[3] = {floats(a), floats(b), floats(c)};
  size_t steps[3] = {stepA, stepB, stepC};
  int numOperands = op.kind == ScalarOp::IntToFloat ? 0
                    : op.c >= 0                     ? 3
                    : op.b >= 0                     ? 2
                                                    : 1;
  checkForNaN(core, op, floatResult(), count, operands, steps, numOperands);
  if (Rounding last = roundingOf(op.elem, core.ieee); last != Rounding::None)
    kernels().round(floatResult(), floatResult(), count, last);
}

void spyre::runtime::runProgram(Core &core, const ScalarProgram &program,
                                ScalarFrame &frame, size_t n,
                                bool keepUniform) {
  for (size_t at = 0; at < program.ops.size(); ++at) {
    const ScalarOp &op = program.ops[at];
    OpOnBlock step(core, op, frame);
    step.count = n;
    if (frame.hasRows && op.chain != 0 && readsByRows(&op, frame)) {
      runChainOfRows(core, program, &op, frame);
      at += op.chain - 1;
      continue;
    }
    if (step.isUniform()) {
      frame.step[op.dst] = 0;
      frame.ptr[op.dst] = step.result = &frame.constant[op.dst];
      if (keepUniform)
        continue;
      step.count = 1;
    } else if (op.isExpOfChain && op.elem == Elem::F16 && !core.ieee &&
               !core.shadow) {
      runExpOfChain(core, program, &op, frame, n);
      at += op.chain;
      continue;
    } else if ((op.chain > 1 || frame.codes == op.dst ||
                (op.chain == 1 && isSummed(core, op, frame, n))) &&
               !core.shadow) {
      runChain(core, program, &op, frame, n);
      at += op.chain - 1;
      continue;
    } else {
      step.result = placeOf(core, program, frame, op.dst);
    }
    bool isWatched = step.isWatched();
    step.compute(isWatched ? Rounding::None : roundingOf(op.elem, core.ieee));
    if (isWatched)
      step.checkAndRound();
  }
}
