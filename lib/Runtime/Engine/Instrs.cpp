// SPDX-License-Identifier: Apache-2.0
//===- Instrs.cpp - Scalars and control flow ------------------------------===//

#include "Instrs.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

static int64_t wrap(int64_t value, Elem elem) {
  switch (elem) {
  case Elem::I1:
    return value & 1;
  case Elem::I8:
    return static_cast<int8_t>(value);
  case Elem::I16:
    return static_cast<int16_t>(value);
  case Elem::I32:
    return static_cast<int32_t>(value);
  default:
    return value;
  }
}

static uint64_t asUnsigned(int64_t value, Elem elem) {
  int width = bitWidth(elem);
  return width == 64
             ? static_cast<uint64_t>(value)
             : static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
}

static int64_t asSigned(int64_t value, Elem elem) {
  return elem == Elem::I1 ? -(value & 1) : value;
}

static bool compareInt(IntPredicate predicate, int64_t a, int64_t b,
                       Elem elem) {
  uint64_t ua = asUnsigned(a, elem), ub = asUnsigned(b, elem);
  a = asSigned(a, elem);
  b = asSigned(b, elem);
  switch (predicate) {
  case IntPredicate::EQ:
    return a == b;
  case IntPredicate::NE:
    return a != b;
  case IntPredicate::SLT:
    return a < b;
  case IntPredicate::SLE:
    return a <= b;
  case IntPredicate::SGT:
    return a > b;
  case IntPredicate::SGE:
    return a >= b;
  case IntPredicate::ULT:
    return ua < ub;
  case IntPredicate::ULE:
    return ua <= ub;
  case IntPredicate::UGT:
    return ua > ub;
  case IntPredicate::UGE:
    return ua >= ub;
  }
  return false;
}

static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

/// Divides integers. The smallest value divided by -1 wraps around.
static int64_t divideScalars(IntBinaryOp op, Elem elem, int64_t x, int64_t y) {
  uint64_t ux = asUnsigned(x, elem), uy = asUnsigned(y, elem);
  bool minusOne = y == -1;
  int64_t negated = static_cast<int64_t>(-static_cast<uint64_t>(x));
  switch (op) {
  case IntBinaryOp::DivS:
    return minusOne ? negated : x / y;
  case IntBinaryOp::DivU:
    return static_cast<int64_t>(ux / uy);
  case IntBinaryOp::FloorDivS:
    return minusOne ? negated : floorDivide(x, y);
  case IntBinaryOp::CeilDivS:
    return minusOne ? negated : floorDivide(x, y) + (x % y != 0);
  case IntBinaryOp::CeilDivU:
    return static_cast<int64_t>(ux / uy + (ux % uy != 0));
  case IntBinaryOp::RemS:
    return minusOne ? 0 : x % y;
  default: // RemU
    return static_cast<int64_t>(ux % uy);
  }
}

/// Computes in unsigned arithmetic, so that overflow wraps around. The caller
/// narrows the result to its type.
static int64_t combineScalars(IntBinaryOp op, Elem elem, int64_t x, int64_t y) {
  uint64_t ux = asUnsigned(x, elem), uy = asUnsigned(y, elem);
  uint64_t width = static_cast<uint64_t>(bitWidth(elem));
  switch (op) {
  case IntBinaryOp::Add:
    return static_cast<int64_t>(static_cast<uint64_t>(x) +
                                static_cast<uint64_t>(y));
  case IntBinaryOp::Sub:
    return static_cast<int64_t>(static_cast<uint64_t>(x) -
                                static_cast<uint64_t>(y));
  case IntBinaryOp::Mul:
    return static_cast<int64_t>(static_cast<uint64_t>(x) *
                                static_cast<uint64_t>(y));
  case IntBinaryOp::DivS:
  case IntBinaryOp::DivU:
  case IntBinaryOp::FloorDivS:
  case IntBinaryOp::CeilDivS:
  case IntBinaryOp::CeilDivU:
  case IntBinaryOp::RemS:
  case IntBinaryOp::RemU:
    return divideScalars(op, elem, x, y);
  case IntBinaryOp::And:
    return x & y;
  case IntBinaryOp::Or:
    return x | y;
  case IntBinaryOp::Xor:
    return x ^ y;
  case IntBinaryOp::Shl:
    return uy < width ? static_cast<int64_t>(ux << uy) : 0;
  case IntBinaryOp::ShrS:
    return x >> std::min<uint64_t>(uy, 63);
  case IntBinaryOp::ShrU:
    return uy < width ? static_cast<int64_t>(ux >> uy) : 0;
  case IntBinaryOp::MinS:
    return std::min(x, y);
  case IntBinaryOp::MaxS:
    return std::max(x, y);
  case IntBinaryOp::MinU:
    return ux < uy ? x : y;
  case IntBinaryOp::MaxU:
    return ux > uy ? x : y;
  }
  return 0;
}

void ScalarInt::run(Core &core) const {
  Scalar *s = core.scalars.data();
  switch (op) {
  case Copy:
    s[dst].i = s[a].i;
    return;
  case TileId:
    s[dst].i = core.coordinate[code];
    return;
  case Compare:
    s[dst].i = compareInt(IntPredicate(code), s[a].i, s[b].i, source);
    return;
  case Select:
    s[dst] = s[a].i ? s[b] : s[c];
    return;
  case Cast:
    s[dst].i = wrap(isSigned ? asSigned(s[a].i, source)
                             : static_cast<int64_t>(asUnsigned(s[a].i, source)),
                    elem);
    return;
  case Binary: {
    int64_t x = asSigned(s[a].i, elem), y = asSigned(s[b].i, elem);
    if (y == 0 && isDivision(IntBinaryOp(code)))
      core.fail(location, "integer division by zero");
    s[dst].i = wrap(combineScalars(IntBinaryOp(code), elem, x, y), elem);
  }
  }
}

void RuntimeArgInstr::run(Core &core) const {
  Scalar value = core.scalars[source];
  if (!isFloat(elem)) {
    if (value.i % granularity != 0)
      core.fail(location, "run-time " + name + " is " +
                              std::to_string(value.i) +
                              ", which is not a multiple of its granularity " +
                              std::to_string(granularity));
    if (upperbound >= 0 && value.i > upperbound)
      core.fail(location, "run-time " + name + " is " +
                              std::to_string(value.i) +
                              ", which is above its upper bound " +
                              std::to_string(upperbound));
  }
  core.scalars[dst] = value;
}

void ScalarProgramInstr::run(Core &core) const {
  ScalarFrame frame;
  enterProgram(core, body, frame);
  runProgram(core, body, frame, 1);
  for (size_t r = 0; r < results.size(); ++r) {
    int reg = body.yields[r];
    core.scalars[results[r]] = readElement(frame.ptr[reg], body.regElem[reg]);
  }
}

int64_t AffineInstr::evaluate(Core &core, int index) const {
  const AffineNode &node = nodes[index];
  switch (node.kind) {
  case AffineNode::Constant:
    return node.value;
  case AffineNode::Operand:
    return core.scalars[operands[node.value]].i;
  default:
    break;
  }
  int64_t x = evaluate(core, node.lhs), y = evaluate(core, node.rhs);
  switch (node.kind) {
  case AffineNode::Add:
    return x + y;
  case AffineNode::Mul:
    return x * y;
  default:
    break;
  }
  if (y <= 0)
    core.fail(location, "affine division by " + std::to_string(y) +
                            ", expected a positive divisor");
  int64_t q = floorDivide(x, y);
  if (node.kind == AffineNode::FloorDiv)
    return q;
  if (node.kind == AffineNode::CeilDiv)
    return q + (x - q * y != 0);
  return x - q * y;
}

void AffineInstr::run(Core &core) const {
  int64_t result = evaluate(core, roots[0]);
  for (size_t i = 1; i < roots.size(); ++i) {
    int64_t value = evaluate(core, roots[i]);
    result = mode == Min ? std::min(result, value) : std::max(result, value);
  }
  core.scalars[dst].i = result;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void Transfer::run(Core &core) const {
  if (scalars.size() == 1) {
    core.scalars[scalars[0].second] = core.scalars[scalars[0].first];
  } else if (!scalars.empty()) {
    std::vector<Scalar> values;
    values.reserve(scalars.size());
    for (auto [from, to] : scalars)
      values.push_back(core.scalars[from]);
    for (size_t i = 0; i < scalars.size(); ++i)
      core.scalars[scalars[i].second] = values[i];
  }
  if (tensors.empty())
    return;
  if (tensors.size() == 1) {
    auto [use, to] = tensors[0];
    if (use.slot != to) {
      core.moveTileBytes(to, use);
      core.moveTensor(to, use);
    }
    return;
  }
  // Take all references first: targets may be sources of others.
  std::vector<TensorVal> values;
  std::vector<int64_t> tileBytes;
  values.reserve(tensors.size());
  tileBytes.reserve(tensors.size());
  for (auto &[use, to] : tensors) {
    TensorVal &source = core.tensors[use.slot];
    values.push_back(source);
    tileBytes.push_back(use.dies ? core.tileBytes[use.slot] : 0);
    if (use.dies)
      core.tileBytes[use.slot] = 0;
    if (!source.buffer)
      continue;
    if (use.dies) {
      source.buffer = nullptr;
      source.data = nullptr;
    } else {
      core.pool->retain(source.buffer);
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    int to = tensors[i].second;
    core.releaseTensor(to);
    core.tensors[to] = values[i];
    core.liveTileBytes -= core.tileBytes[to];
    core.tileBytes[to] = tileBytes[i];
  }
}

static int64_t countTrips(Core &core, int location, int64_t low, int64_t high,
                          int64_t by, bool isUnsigned = false) {
  if (by <= 0)
    core.fail(location, "loop step is " + std::to_string(by) +
                            ", expected a positive one");
  bool isEmpty = isUnsigned
                     ? static_cast<uint64_t>(low) >= static_cast<uint64_t>(high)
                     : low >= high;
  if (isEmpty)
    return 0;
  return static_cast<int64_t>(
      (uint64_t(high) - uint64_t(low) - 1) / uint64_t(by) + 1);
}

int64_t ForInstr::count(Core &core) const {
  return countTrips(core, location, core.scalars[lower].i,
                    core.scalars[upper].i, core.scalars[step].i, isUnsigned);
}

void ForInstr::enterKeptTiles(Core &core, int64_t trips) const {
  for (int kept : keptTiles)
    if (trips > 1)
      core.keptTiles[kept].enterLoop();
}

void ForInstr::nextOfKeptTiles(Core &core) const {
  for (int kept : keptTiles)
    core.keptTiles[kept].nextIteration();
}

void ForInstr::leaveKeptTiles(Core &core) const {
  for (int kept : keptTiles)
    core.keptTiles[kept].leaveLoop(*core.pool);
}

void ForInstr::run(Core &core) const {
  int64_t trips = count(core);
  int64_t low = core.scalars[lower].i, by = core.scalars[step].i;
  enter.run(core);
  enterKeptTiles(core, trips);
  for (int64_t i = 0; i < trips; ++i) {
    if (i == RepeatedBody::kFirst && repeated)
      i += repeated->run(core, low, by, trips);
    core.scalars[induction].i = low + i * by;
    nextOfKeptTiles(core);
    body.run(core);
    next.run(core);
  }
  leaveKeptTiles(core);
  leave.run(core);
}

void ForInstr::runGang(Core *const *cores, int numCores) const {
  // The slice of the last core may be shorter: it leaves the others early.
  struct Member {
    Core *core;
    int64_t low, by, trips;
  };
  std::vector<Member> members;
  int64_t most = 0;
  for (int i = 0; i < numCores; ++i) {
    Core &core = *cores[i];
    members.push_back(
        {&core, core.scalars[lower].i, core.scalars[step].i, count(core)});
    most = std::max(most, members.back().trips);
    enter.run(core);
    enterKeptTiles(core, members.back().trips);
  }
  std::vector<Core *> running;
  for (int64_t trip = 0; trip < most; ++trip) {
    running.clear();
    for (const Member &member : members)
      if (trip < member.trips) {
        member.core->scalars[induction].i = member.low + trip * member.by;
        nextOfKeptTiles(*member.core);
        running.push_back(member.core);
      }
    body.runGang(running.data(), static_cast<int>(running.size()));
    for (Core *core : running)
      next.run(*core);
  }
  for (int i = 0; i < numCores; ++i) {
    leaveKeptTiles(*cores[i]);
    leave.run(*cores[i]);
  }
}

namespace {
/// One loop of a nest.
struct NestLoop {
  int64_t low, by, trips;
  int slot; ///< scalar slot of its variable
};
} // namespace

/// Calls visit() for each point, the last loop fastest.
template <typename Visit>
static void forEachIteration(Core &core, const std::vector<NestLoop> &loops,
                             Visit &&visit) {
  for (const NestLoop &loop : loops)
    if (loop.trips == 0)
      return;
  std::vector<int64_t> at(loops.size(), 0);
  while (true) {
    for (size_t d = 0; d < loops.size(); ++d)
      core.scalars[loops[d].slot].i = loops[d].low + at[d] * loops[d].by;
    visit();
    size_t d = loops.size();
    for (; d > 0; --d) {
      if (++at[d - 1] < loops[d - 1].trips)
        break;
      at[d - 1] = 0;
    }
    if (d == 0)
      return;
  }
}

void ParallelInstr::run(Core &core) const {
  std::vector<NestLoop> loops;
  for (size_t d = 0; d < lower.size(); ++d) {
    int64_t low = core.scalars[lower[d]].i, by = core.scalars[step[d]].i;
    loops.push_back(
        {low, by, countTrips(core, location, low, core.scalars[upper[d]].i, by),
         induction[d]});
  }
  for (const Reduction &r : reductions)
    r.enter.run(core);
  forEachIteration(core, loops, [&] {
    body.run(core);
    for (const Reduction &r : reductions) {
      r.operands.run(core);
      r.combiner.run(core);
      r.leave.run(core);
    }
  });
}

void ForallInstr::run(Core &core) const {
  std::vector<NestLoop> loops;
  for (size_t d = 0; d < lower.size(); ++d) {
    int64_t low = lower[d].get(core), by = step[d].get(core);
    loops.push_back({low, by,
                     countTrips(core, location, low, upper[d].get(core), by),
                     induction[d]});
  }
  enter.run(core);
  results.run(core);
  forEachIteration(core, loops, [&] { body.run(core); });
  for (int slot : arguments)
    core.releaseTensor(slot);
}

void IfInstr::run(Core &core) const {
  if (core.scalars[condition].i) {
    thenBlock.run(core);
    thenResults.run(core);
  } else {
    elseBlock.run(core);
    elseResults.run(core);
  }
}

void IfInstr::runGang(Core *const *cores, int numCores) const {
  std::vector<Core *> taken, others;
  for (int i = 0; i < numCores; ++i)
    (cores[i]->scalars[condition].i ? taken : others).push_back(cores[i]);
  thenBlock.runGang(taken.data(), static_cast<int>(taken.size()));
  for (Core *core : taken)
    thenResults.run(*core);
  elseBlock.runGang(others.data(), static_cast<int>(others.size()));
  for (Core *core : others)
    elseResults.run(*core);
}

void WhileInstr::run(Core &core) const {
  enter.run(core);
  while (true) {
    before.run(core);
    if (!core.scalars[condition].i) {
      results.run(core);
      return;
    }
    forward.run(core);
    after.run(core);
    next.run(core);
  }
}

void CallInstr::run(Core &core) const {
  Scalar values[64];
  std::vector<Scalar> many;
  Scalar *p = values;
  if (args.size() > 64) {
    many.resize(args.size());
    p = many.data();
  }
  for (size_t i = 0; i < args.size(); ++i)
    p[i] = core.scalars[args[i]];
  callFunction(core, *callee, p);
}
