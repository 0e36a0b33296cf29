// SPDX-License-Identifier: Apache-2.0
//===- ScalarProgram.cpp - Preparing decoded bodies for many runs ---------===//

#include "ScalarProgram.h"

#include <algorithm>

using namespace spyre::runtime;
using spyre::CostClass;

void ScalarProgram::fuseRounding() {
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
  auto replace = [&](int reg, int by) {
    for (ScalarOp &op : ops)
      for (int *r : {&op.a, &op.b, &op.c})
        if (*r == reg)
          *r = by;
    std::replace(yields.begin(), yields.end(), reg, by);
    uses[by] += uses[reg] - 1;
  };
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != ScalarOp::Round)
      continue;
    if (regElem[ops[i].a] == ops[i].elem) {
      // What was extended, which changes nothing, and not changed since.
      replace(ops[i].dst, ops[i].a);
      dropped[i] = true;
      continue;
    }
    if (definition[ops[i].a] < 0 || uses[ops[i].a] != 1)
      continue;
    ScalarOp &source = ops[definition[ops[i].a]];
    bool computes =
        source.kind == ScalarOp::Unary || source.kind == ScalarOp::Binary ||
        source.kind == ScalarOp::Fma || source.kind == ScalarOp::IntToFloat;
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

void ScalarProgram::findChains() {
  std::vector<int> uses(regElem.size(), 0);
  for (const ScalarOp &op : ops)
    for (int r : {op.a, op.b, op.c})
      if (r >= 0)
        ++uses[r];
  for (int r : yields)
    ++uses[r];
  auto canChain = [](const ScalarOp &op) {
    return op.kind == ScalarOp::Binary && (BinaryOp(op.op) == BinaryOp::Add ||
                                           BinaryOp(op.op) == BinaryOp::Sub ||
                                           BinaryOp(op.op) == BinaryOp::Mul ||
                                           BinaryOp(op.op) == BinaryOp::Div);
  };
  for (size_t i = ops.size(); i-- > 0;) {
    ScalarOp &op = ops[i];
    if (op.kind == ScalarOp::Unary && UnaryOp(op.op) == UnaryOp::Exp)
      op.isExpOfChain = regElem[op.a] == op.elem;
    if (!canChain(op))
      continue;
    op.chain = 1;
    op.hasOneType = regElem[op.a] == op.elem && regElem[op.b] == op.elem;
    if (i + 1 == ops.size())
      continue;
    const ScalarOp &next = ops[i + 1];
    if (uses[op.dst] != 1 || (next.a != op.dst && next.b != op.dst))
      continue;
    op.isExpOfChain =
        next.isExpOfChain && next.chain < kMaxChain && next.elem == op.elem;
    if (next.chain == 0)
      continue;
    // fp32, and one type that is rounded to.
    int length = std::min(next.chain + 1, int(kMaxChain));
    Elem narrow = Elem::F32;
    bool fits = true, isMixed = false;
    for (int s = 0; s < length; ++s) {
      Elem elem = ops[i + size_t(s)].elem;
      isMixed |= elem != op.elem;
      if (elem == Elem::F32)
        continue;
      fits &= narrow == Elem::F32 || narrow == elem;
      narrow = elem;
    }
    // An exponential has a chain of its own type.
    if (!fits || (isMixed && next.isExpOfChain))
      continue;
    op.chain = static_cast<uint8_t>(length);
    op.isMixedChain = isMixed;
  }
  isReadByChains.assign(inputs.size(), true);
  for (size_t k = 0; k < inputs.size(); ++k) {
    int reg = inputs[k];
    for (const ScalarOp &op : ops)
      if (op.a == reg || op.b == reg || op.c == reg)
        isReadByChains[k] =
            isReadByChains[k] && op.chain != 0 && !op.isExpOfChain;
    if (std::find(yields.begin(), yields.end(), reg) != yields.end())
      isReadByChains[k] = false;
  }
}

bool ScalarProgram::extracts() const {
  return std::any_of(ops.begin(), ops.end(), [](const ScalarOp &op) {
    return op.kind == ScalarOp::Extract;
  });
}

bool ScalarProgram::isChain() const {
  return !ops.empty() && ops[0].chain == ops.size() && !ops[0].isMixedChain &&
         yields[0] == ops.back().dst;
}

bool ScalarProgram::endsChain(int reg) const {
  bool ends = false, isRead = false;
  for (const ScalarOp &op : ops) {
    ends |= op.dst == reg && op.chain == 1;
    isRead |= op.a == reg || op.b == reg || op.c == reg;
  }
  return ends && !isRead;
}

bool ScalarProgram::yieldsInput() const {
  return ops.empty() && yields[0] == inputs[0];
}

static bool canFail(const ScalarOp &op) {
  switch (op.kind) {
  case ScalarOp::IntPower:
  case ScalarOp::Extract:
    return true;
  case ScalarOp::IntBinary:
    return op.noWrap || isDivision(IntBinaryOp(op.op));
  default:
    return op.noWrap;
  }
}

bool ScalarProgram::canFail() const {
  return std::any_of(ops.begin(), ops.end(),
                     [](const ScalarOp &op) { return ::canFail(op); });
}

bool ScalarProgram::runsWithoutScratch(const bool *varies,
                                       const bool *isDirect) const {
  bool registerVaries[kMaxRegs] = {};
  for (size_t i = 0; i < inputs.size(); ++i)
    registerVaries[inputs[i]] = varies[i];
  for (size_t at = 0; at < ops.size(); ++at) {
    const ScalarOp *op = &ops[at];
    bool any = op->kind == ScalarOp::LoopIndex;
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

void ScalarProgram::finish() {
  fuseRounding();
  findChains();
  for (ScalarConstant &c : constants)
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
  for (const ScalarOp &op : ops) {
    opsPerPoint += op.cost != CostClass::Free;
    transcendentalsPerPoint += op.cost == CostClass::Transcendental;
  }
}
