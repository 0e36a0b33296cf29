// SPDX-License-Identifier: Apache-2.0
//===- Body.cpp - Scalar bodies as vector programs ------------------------===//

#include "Body.h"
#include "Check.h"

#include <algorithm>
#include <type_traits>

using namespace spyre::runtime;

void *spyre::runtime::scratchBuffer(Core &core, int index) {
  while (static_cast<int>(core.registers.size()) <= index)
    core.registers.push_back(core.pool->get(kBlock * sizeof(int64_t)));
  return core.registers[index]->data();
}

void BodyProgram::fuseRounding() {
  std::vector<int> uses(regElem.size(), 0), definition(regElem.size(), -1);
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    definition[ops[i].dst] = i;
    for (int r : {ops[i].a, ops[i].b, ops[i].c})
      if (r >= 0)
        ++uses[r];
  }
  for (int r : yields)
    ++uses[r];
  std::vector<bool> dropped(ops.size(), false);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != BodyOp::Round || definition[ops[i].a] < 0 ||
        uses[ops[i].a] != 1)
      continue;
    BodyOp &source = ops[definition[ops[i].a]];
    bool computes =
        source.kind == BodyOp::Unary || source.kind == BodyOp::Binary ||
        source.kind == BodyOp::Fma || source.kind == BodyOp::IntToFloat;
    if (!computes || source.elem != Elem::F32)
      continue;
    // The result in fp32, rounded as it is written: the same one rounding.
    definition[ops[i].dst] = definition[ops[i].a];
    source.elem = ops[i].elem;
    source.dst = ops[i].dst;
    dropped[i] = true;
  }
  size_t kept = 0;
  for (size_t i = 0; i < ops.size(); ++i)
    if (!dropped[i])
      ops[kept++] = ops[i];
  ops.resize(kept);
}

void BodyProgram::findChains() {
  std::vector<int> uses(regElem.size(), 0);
  for (const BodyOp &op : ops)
    for (int r : {op.a, op.b, op.c})
      if (r >= 0)
        ++uses[r];
  for (int r : yields)
    ++uses[r];
  auto canChain = [](const BodyOp &op) {
    return op.kind == BodyOp::Binary && (BinaryOp(op.op) == BinaryOp::Add ||
                                         BinaryOp(op.op) == BinaryOp::Sub ||
                                         BinaryOp(op.op) == BinaryOp::Mul);
  };
  for (size_t i = ops.size(); i-- > 0;) {
    BodyOp &op = ops[i];
    if (!canChain(op))
      continue;
    op.chain = 1;
    if (i + 1 == ops.size())
      continue;
    const BodyOp &next = ops[i + 1];
    if (next.chain != 0 && next.elem == op.elem && uses[op.dst] == 1 &&
        (next.a == op.dst || next.b == op.dst))
      op.chain = static_cast<uint8_t>(std::min(next.chain + 1, int(kMaxChain)));
  }
}

bool BodyProgram::extracts() const {
  return std::any_of(ops.begin(), ops.end(), [](const BodyOp &op) {
    return op.kind == BodyOp::Extract;
  });
}

bool BodyProgram::runsWithoutScratch(const bool *varies,
                                     const bool *isDirect) const {
  bool registerVaries[BodyFrame::kMaxRegs] = {};
  for (size_t i = 0; i < inputs.size(); ++i)
    registerVaries[inputs[i]] = varies[i];
  for (size_t at = 0; at < ops.size(); ++at) {
    const BodyOp *op = &ops[at];
    bool any = op->kind == BodyOp::LoopIndex;
    for (int r : {op->a, op->b, op->c})
      any |= r >= 0 && registerVaries[r];
    if (!any)
      continue;
    if (op->chain > 1) {
      at += op->chain - 1;
      op = &ops[at];
    }
    auto yield = std::find(yields.begin(), yields.end(), op->dst);
    if (yield == yields.end() || !isDirect[yield - yields.begin()])
      return false;
    registerVaries[op->dst] = true;
  }
  return true;
}

static bool isTranscendental(const BodyOp &op) {
  if (op.kind == BodyOp::Binary)
    return BinaryOp(op.op) == BinaryOp::Pow ||
           BinaryOp(op.op) == BinaryOp::Atan2;
  if (op.kind != BodyOp::Unary)
    return false;
  switch (UnaryOp(op.op)) {
  case UnaryOp::Neg:
  case UnaryOp::Abs:
  case UnaryOp::Sqrt:
  case UnaryOp::Rsqrt:
  case UnaryOp::Reciprocal:
  case UnaryOp::Floor:
  case UnaryOp::Ceil:
  case UnaryOp::Round:
  case UnaryOp::RoundEven:
  case UnaryOp::Trunc:
  case UnaryOp::Copy:
    return false;
  default:
    return true;
  }
}

void BodyProgram::finish() {
  fuseRounding();
  findChains();
  for (BodyConstant &c : constants)
    for (bool ieee : {false, true}) {
      float &rounded = c.rounded[ieee];
      rounded = c.value.f;
      Rounding rounding = roundingOf(c.elem, ieee);
      if (isFloat(c.elem) && rounding != Rounding::None)
        kernels().round(&rounded, &rounded, 1, rounding);
    }
  int numRegs = static_cast<int>(regElem.size());
  scratch.assign(numRegs, -1);
  std::vector<int> lastUse(numRegs, -1);
  for (int i = 0; i < static_cast<int>(ops.size()); ++i)
    for (int r : {ops[i].a, ops[i].b, ops[i].c})
      if (r >= 0)
        lastUse[r] = i;
  for (int r : yields)
    lastUse[r] = static_cast<int>(ops.size());
  std::vector<int> freeScratch;
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    // The result never shares a buffer with an operand: steps may differ.
    if (!freeScratch.empty()) {
      scratch[ops[i].dst] = freeScratch.back();
      freeScratch.pop_back();
    } else {
      scratch[ops[i].dst] = numScratch++;
    }
    int operands[3] = {ops[i].a, ops[i].b, ops[i].c};
    for (int k = 0; k < 3; ++k) {
      int r = operands[k];
      bool repeated = std::find(operands, operands + k, r) != operands + k;
      if (r >= 0 && !repeated && scratch[r] >= 0 && lastUse[r] == i)
        freeScratch.push_back(scratch[r]);
    }
    if (lastUse[ops[i].dst] < 0)
      freeScratch.push_back(scratch[ops[i].dst]);
  }
  opsPerPoint = transcendentalsPerPoint = 0;
  for (const BodyOp &op : ops)
    switch (op.kind) {
    case BodyOp::Round:
    case BodyOp::CastInt:
    case BodyOp::Bitcast:
    case BodyOp::LoopIndex:
    case BodyOp::Extract:
      break;
    default:
      ++opsPerPoint;
      transcendentalsPerPoint += isTranscendental(op);
    }
}

void spyre::runtime::enterBody(Core &core, const BodyProgram &program,
                               BodyFrame &frame) {
  for (size_t r = 0; r < program.regElem.size(); ++r) {
    frame.step[r] = 1;
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
  for (const BodyConstant &c : program.constants) {
    Scalar value = c.value;
    if (isFloat(c.elem))
      value.f = c.rounded[core.ieee];
    setScalar(c.reg, c.elem, value);
  }
  for (auto [reg, slot] : program.captured)
    setScalar(reg, program.regElem[reg], core.scalars[slot]);
}

static void checkStatus(Core &core, const BodyOp &op, unsigned status) {
  if (status & kIntDivideByZero)
    core.fail(op.location, "integer division by zero");
  if ((status & kIntOverflow) && op.noWrap)
    core.fail(op.location, std::string("integer overflow: the result does "
                                       "not fit ") +
                               elemName(op.elem));
}

/// A trunci that must not lose anything.
static void checkTruncation(Core &core, const BodyOp &op, const void *x,
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

/// math.ipowi: wraps; a negative exponent gives the truncated reciprocal.
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

/// Values whose codes in memory are those of `a`: with DL16 numerics the bits
/// of an f16 are its DL16 code.
static void bitcast(const void *a, Elem from, void *result, Elem to, size_t n,
                    bool ieee) {
  const KernelTable &k = kernels();
  const ptrdiff_t one = 1;
  uint8_t codes[kBlock * sizeof(int64_t)];
  StorageFormat source = storageFormat(from, ieee);
  StorageFormat target = storageFormat(to, ieee);
  if (isFloat(from))
    k.storeFloat(source, codes, &one, static_cast<const float *>(a), &one, &n,
                 1);
  else if (isWide(from))
    k.storeInt64(source, codes, &one, static_cast<const int64_t *>(a), &one, &n,
                 1);
  else
    k.storeInt32(source, codes, &one, static_cast<const int32_t *>(a), &one, &n,
                 1);
  if (isFloat(to))
    k.loadFloat(target, static_cast<float *>(result), &one, codes, &one, &n, 1);
  else if (isWide(to))
    k.loadInt64(target, static_cast<int64_t *>(result), &one, codes, &one, &n,
                1);
  else
    k.loadInt32(target, static_cast<int32_t *>(result), &one, codes, &one, &n,
                1);
}

/// tensor.extract at n points, whose indices are in up to three registers.
static void extract(Core &core, const BodyOp &op, const BodyFrame &frame,
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

void spyre::runtime::makeChain(const BodyOp *op, const BodyFrame &frame,
                               ChainStep *steps) {
  for (unsigned s = 0; s < op->chain; ++s) {
    bool isReversed = s > 0 && op[s].b == op[s - 1].dst;
    int other = isReversed ? op[s].a : op[s].b;
    steps[s] = {BinaryOp(op[s].op), isReversed,
                static_cast<const float *>(frame.ptr[other]),
                frame.step[other]};
  }
}

/// Runs `op` and the rest of its chain; frame.ptr of the last result says
/// where to.
static void runChain(Core &core, const BodyOp *op, BodyFrame &frame, size_t n) {
  ChainStep steps[kMaxChain];
  makeChain(op, frame, steps);
  int last = op[op->chain - 1].dst;
  frame.step[last] = 1;
  kernels().chain(static_cast<const float *>(frame.ptr[op->a]),
                  frame.step[op->a], steps, op->chain,
                  static_cast<float *>(frame.ptr[last]), n,
                  roundingOf(op->elem, core.ieee), &core.readAhead);
}

void spyre::runtime::runBody(Core &core, const BodyProgram &program,
                             BodyFrame &frame, size_t n, bool keepUniform) {
  const KernelTable &k = kernels();
  for (size_t at = 0; at < program.ops.size(); ++at) {
    const BodyOp &op = program.ops[at];
    const void *a = op.a >= 0 ? frame.ptr[op.a] : nullptr;
    const void *b = op.b >= 0 ? frame.ptr[op.b] : nullptr;
    const void *c = op.c >= 0 ? frame.ptr[op.c] : nullptr;
    size_t stepA = op.a >= 0 ? frame.step[op.a] : 0;
    size_t stepB = op.b >= 0 ? frame.step[op.b] : 0;
    size_t stepC = op.c >= 0 ? frame.step[op.c] : 0;
    // All operands uniform: so is the result.
    size_t count = n;
    bool uniform = !stepA && !stepB && !stepC && op.kind != BodyOp::LoopIndex;
    frame.step[op.dst] = uniform ? 0 : 1;
    void *own = &frame.constant[op.dst];
    if (uniform) {
      frame.ptr[op.dst] = own;
      if (keepUniform)
        continue;
      count = 1;
    } else if (op.chain > 1 && !core.shadow) {
      runChain(core, &op, frame, n);
      at += op.chain - 1;
      continue;
    } else if (frame.ptr[op.dst] == own) {
      frame.ptr[op.dst] = scratchBuffer(core, program.scratch[op.dst]);
    }
    void *dst = frame.ptr[op.dst];
    // A NaN has to be seen before it is rounded: DL16 has none.
    bool isWatched = core.shadow && isFloat(op.elem) &&
                     (op.kind == BodyOp::Unary || op.kind == BodyOp::Binary ||
                      op.kind == BodyOp::Fma || op.kind == BodyOp::IntToFloat);
    Rounding rounding =
        isWatched ? Rounding::None : roundingOf(op.elem, core.ieee);
    auto f = [](const void *p) { return static_cast<const float *>(p); };
    auto i = [](const void *p) { return static_cast<const int32_t *>(p); };
    auto l = [](const void *p) { return static_cast<const int64_t *>(p); };
    switch (op.kind) {
    case BodyOp::Unary:
      k.unary(UnaryOp(op.op), f(a), static_cast<float *>(dst), count, rounding);
      break;
    case BodyOp::Binary:
      k.binary(BinaryOp(op.op), f(a), stepA, f(b), stepB,
               static_cast<float *>(dst), count, rounding);
      break;
    case BodyOp::Fma:
      k.fma(f(a), stepA, f(b), stepB, f(c), stepC, static_cast<float *>(dst),
            count, rounding);
      break;
    case BodyOp::Round:
      k.round(f(a), static_cast<float *>(dst), count, rounding);
      break;
    case BodyOp::CompareF:
      k.compareFloat(FloatPredicate(op.op), f(a), stepA, f(b), stepB,
                     static_cast<int32_t *>(dst), count);
      break;
    case BodyOp::Select:
      if (isFloat(op.elem))
        k.selectFloat(i(a), stepA, f(b), stepB, f(c), stepC,
                      static_cast<float *>(dst), count);
      else if (isWide(op.elem))
        k.selectInt64(i(a), stepA, l(b), stepB, l(c), stepC,
                      static_cast<int64_t *>(dst), count);
      else
        k.selectInt32(i(a), stepA, i(b), stepB, i(c), stepC,
                      static_cast<int32_t *>(dst), count);
      break;
    case BodyOp::IntUnary:
      if (isWide(op.elem))
        k.unaryInt64(IntUnaryOp(op.op), l(a), static_cast<int64_t *>(dst),
                     count);
      else
        k.unaryInt32(IntUnaryOp(op.op), i(a), static_cast<int32_t *>(dst),
                     count, width(op.elem));
      break;
    case BodyOp::IntBinary:
      if (isWide(op.elem))
        checkStatus(core, op,
                    k.binaryInt64(IntBinaryOp(op.op), l(a), stepA, l(b), stepB,
                                  static_cast<int64_t *>(dst), count));
      else
        checkStatus(core, op,
                    k.binaryInt32(IntBinaryOp(op.op), i(a), stepA, i(b), stepB,
                                  static_cast<int32_t *>(dst), count,
                                  width(op.elem)));
      break;
    case BodyOp::IntPower:
      if (isWide(op.elem) ? powerOfInts(l(a), stepA, l(b), stepB,
                                        static_cast<int64_t *>(dst), count)
                          : powerOfInts(i(a), stepA, i(b), stepB,
                                        static_cast<int32_t *>(dst), count))
        core.fail(op.location, "zero to a negative integer power");
      if (bitWidth(op.elem) < 32)
        k.castInt(dst, 32, true, dst, width(op.elem), count);
      break;
    case BodyOp::CompareI:
      if (isWide(op.source))
        k.compareInt64(IntPredicate(op.op), l(a), stepA, l(b), stepB,
                       static_cast<int32_t *>(dst), count);
      else
        k.compareInt32(IntPredicate(op.op), i(a), stepA, i(b), stepB,
                       static_cast<int32_t *>(dst), count, width(op.source));
      break;
    case BodyOp::CastInt:
      if (op.noWrap)
        checkTruncation(core, op, a, count);
      k.castInt(a, width(op.source), op.isSigned, dst, width(op.elem), count);
      break;
    case BodyOp::IntToFloat:
      k.intToFloat(a, width(op.source), op.isSigned, static_cast<float *>(dst),
                   count, rounding);
      break;
    case BodyOp::FloatToInt:
      k.floatToInt(f(a), dst, width(op.elem), op.isSigned, count);
      break;
    case BodyOp::Bitcast:
      bitcast(a, op.source, dst, op.elem, count, core.ieee);
      break;
    case BodyOp::Extract:
      extract(core, op, frame, dst, count);
      break;
    case BodyOp::LoopIndex: {
      int64_t *out = static_cast<int64_t *>(dst);
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
      break;
    }
    }
    if (!isWatched)
      continue;
    const float *operands[3] = {f(a), f(b), f(c)};
    size_t steps[3] = {stepA, stepB, stepC};
    int numOperands = op.kind == BodyOp::IntToFloat ? 0
                      : op.c >= 0                   ? 3
                      : op.b >= 0                   ? 2
                                                    : 1;
    float *result = static_cast<float *>(dst);
    checkForNaN(core, op, result, count, operands, steps, numOperands);
    if (Rounding last = roundingOf(op.elem, core.ieee); last != Rounding::None)
      k.round(result, result, count, last);
  }
}
