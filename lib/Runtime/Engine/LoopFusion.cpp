// SPDX-License-Identifier: Apache-2.0
//===- LoopFusion.cpp - Elementwise loops inside the loops that use them --===//
//
// The tile between two structured loops costs the host two passes over memory.
// If the second loop is the only one that reads it, point by point, it computes
// the values where it needs them: the same operations with the same roundings
// in the same order.
//
// This only saves time on the host, so it is not a pass on KTIR: there the tile
// is a value that needs room in LX, and both loops take time on the card.
// Memory limits, reports and the timing engine still use the program as it was
// written.
//
//===----------------------------------------------------------------------===//

#include "CodeTable.h"
#include "Instrs.h"
#include "StructuredLoop.h"

#include <algorithm>

using namespace spyre::runtime;

/// Whether each element of the loop's result is computed by itself, so that
/// another loop can compute it instead.
static bool canMoveInto(const StructuredLoop &a) {
  if (!a.isReadOnce || a.strategy != StructuredLoop::Parallel || a.hasIndex ||
      a.body.extracts() || a.outputs.size() != 1 || a.inputs.empty() ||
      a.readsOutput[0] || !a.coversOutput[0])
    return false;
  // Every loop must be one dimension of the result.
  std::vector<bool> seen(a.numLoops, false);
  for (const MapResult &result : a.outputs[0].map) {
    if (result.constant != 0 || result.terms.size() != 1 ||
        result.terms[0].second != 1 || seen[result.terms[0].first])
      return false;
    seen[result.terms[0].first] = true;
  }
  return std::all_of(seen.begin(), seen.end(), [](bool b) { return b; });
}

/// For each loop of `a`, the loop of `b` over the same dimension of the result
/// of `a`, which is input number `input` of `b`. Empty if `b` has other loops
/// or reads the tile in another way.
static std::vector<int> matchLoops(const StructuredLoop &a,
                                   const StructuredLoop &b, size_t input) {
  if (a.numLoops != b.numLoops)
    return {};
  const std::vector<MapResult> &reads = b.inputs[input].map;
  std::vector<int> loops(a.numLoops, -1);
  std::vector<bool> seen(b.numLoops, false);
  for (size_t d = 0; d < reads.size(); ++d) {
    if (reads[d].constant != 0 || reads[d].terms.size() != 1 ||
        reads[d].terms[0].second != 1 || seen[reads[d].terms[0].first])
      return {};
    seen[reads[d].terms[0].first] = true;
    loops[a.outputs[0].map[d].terms[0].first] = reads[d].terms[0].first;
  }
  return loops;
}

/// A body that runs `a` and then `b`, with the result of `a` as input number
/// `input` of `b`.
static ScalarProgram joinBodies(const ScalarProgram &a, const ScalarProgram &b,
                                size_t numInputsA, size_t input) {
  ScalarProgram body;
  body.regElem = a.regElem;
  int result = a.yields[0], replaced = b.inputs[input];
  std::vector<int> moved(b.regElem.size());
  for (size_t r = 0; r < b.regElem.size(); ++r)
    moved[r] =
        static_cast<int>(r) == replaced ? result : body.addReg(b.regElem[r]);
  auto at = [&](int reg) { return reg < 0 ? reg : moved[reg]; };
  body.constants = a.constants;
  for (ScalarConstant constant : b.constants) {
    constant.reg = at(constant.reg);
    body.constants.push_back(constant);
  }
  body.captured = a.captured;
  for (auto [reg, slot] : b.captured)
    body.captured.push_back({at(reg), slot});
  for (size_t i = 0; i < b.inputs.size(); ++i)
    if (i == input)
      body.inputs.insert(body.inputs.end(), a.inputs.begin(),
                         a.inputs.begin() + static_cast<ptrdiff_t>(numInputsA));
    else
      body.inputs.push_back(at(b.inputs[i]));
  body.ops = a.ops;
  for (ScalarOp op : b.ops) {
    op.dst = at(op.dst);
    op.a = at(op.a);
    op.b = at(op.b);
    op.c = at(op.c);
    body.ops.push_back(op);
  }
  for (int reg : b.yields)
    body.yields.push_back(at(reg));
  body.finish();
  return body;
}

/// Whether `b` reads the tile in `slot` as one input and in no other way.
static bool readsAsOneInput(const StructuredLoop &b, int slot) {
  for (size_t o = 0; o < b.outputs.size(); ++o)
    if (b.outputs[o].use.slot == slot &&
        (b.strategy != StructuredLoop::Parallel || b.readsOutput[o] ||
         !b.coversOutput[o]))
      return false;
  return std::count_if(
             b.inputs.begin(), b.inputs.end(),
             [&](const LoopOperand &in) { return in.use.slot == slot; }) == 1;
}

/// Fuses two loops into one; null if that is not possible.
static std::shared_ptr<StructuredLoop>
fuse(const StructuredLoop &a, const StructuredLoop &b, size_t input) {
  std::vector<int> loops = matchLoops(a, b, input);
  if (loops.empty() || a.inputs.size() + b.inputs.size() + b.outputs.size() >
                           StructuredLoop::kMaxOperands)
    return nullptr;
  if (a.body.regElem.size() + b.body.regElem.size() > ScalarFrame::kMaxRegs)
    return nullptr;
  auto result = std::make_shared<StructuredLoop>();
  result->location = b.location;
  result->strategy = b.strategy;
  result->numLoops = b.numLoops;
  result->isReduction = b.isReduction;
  result->outputs = b.outputs;
  result->results = b.results;
  result->readsOutput = b.readsOutput;
  result->coversOutput = b.coversOutput;
  result->hasIndex = b.hasIndex;
  result->combiner = b.combiner;
  result->intCombiner = b.intCombiner;
  result->isInPlaceSafe = a.isInPlaceSafe && b.isInPlaceSafe;
  result->name = b.name;

  std::vector<int> positionA, positionB; // of inputs in the result
  for (size_t i = 0; i < b.inputs.size(); ++i) {
    positionB.push_back(static_cast<int>(result->inputs.size()));
    if (i != input) {
      result->inputs.push_back(b.inputs[i]);
      continue;
    }
    for (const LoopOperand &source : a.inputs) {
      positionA.push_back(static_cast<int>(result->inputs.size()));
      LoopOperand operand = source;
      for (MapResult &r : operand.map)
        for (auto &[loop, coefficient] : r.terms)
          loop = loops[loop];
      result->inputs.push_back(std::move(operand));
    }
  }
  for (size_t o = 0; o < b.outputs.size(); ++o)
    positionB.push_back(static_cast<int>(result->inputs.size()) +
                        static_cast<int>(o));

  // Loop extents that were sizes of the tile between the loops become sizes of
  // the operands of `a`.
  result->extentSource.resize(b.numLoops);
  for (int l = 0; l < b.numLoops; ++l) {
    auto [operand, dim] = b.extentSource[l];
    if (operand != static_cast<int>(input)) {
      result->extentSource[l] = {positionB[operand], dim};
      continue;
    }
    int inner = static_cast<int>(std::find(loops.begin(), loops.end(), l) -
                                 loops.begin());
    auto [source, sourceDim] = a.extentSource[inner];
    if (source >= static_cast<int>(a.inputs.size()))
      return nullptr;
    result->extentSource[l] = {positionA[source], sourceDim};
  }
  // A tile that is read in two ways must not be overwritten.
  for (LoopOperand &operand : result->inputs)
    if (std::count_if(result->inputs.begin(), result->inputs.end(),
                      [&](const LoopOperand &other) {
                        return other.use.slot == operand.use.slot;
                      }) > 1)
      operand.use.dies = false;
  // Nor one that is an initial value, too: the result would take its place
  // before it is read.
  for (LoopOperand &init : result->outputs)
    for (LoopOperand &operand : result->inputs)
      if (operand.use.slot == init.use.slot)
        operand.use.dies = init.use.dies = false;
  result->body = joinBodies(a.body, b.body, a.inputs.size(), input);
  return result;
}

/// Whether the inputs of `a`, which is at position `from`, are unchanged up to
/// position `to`.
static bool inputsLast(const std::vector<std::unique_ptr<Instr>> &instrs,
                       const StructuredLoop &a, size_t from, size_t to) {
  auto isInput = [&](int slot) {
    return std::any_of(
        a.inputs.begin(), a.inputs.end(),
        [&](const LoopOperand &in) { return in.use.slot == slot; });
  };
  for (size_t i = from + 1; i < to; ++i) {
    const Instr *instr = instrs[i].get();
    if (std::any_of(instr->frees.begin(), instr->frees.end(), isInput))
      return false;
    if (auto *generic = dynamic_cast<const StructuredLoop *>(instr)) {
      if (generic->isFusedAway)
        continue;
      for (const auto *operands : {&generic->inputs, &generic->outputs})
        for (const LoopOperand &operand : *operands)
          if (operand.use.dies && isInput(operand.use.slot))
            return false;
      continue;
    }
    // The other instructions that cannot change existing tiles.
    if (!dynamic_cast<const EmptyInstr *>(instr) &&
        !dynamic_cast<const SplatInstr *>(instr) &&
        !dynamic_cast<const ScalarInt *>(instr) &&
        !dynamic_cast<const ScalarProgramInstr *>(instr) &&
        !dynamic_cast<const AffineInstr *>(instr) &&
        !dynamic_cast<const MemoryViewInstr *>(instr) &&
        !dynamic_cast<const AccessTileInstr *>(instr) &&
        !dynamic_cast<const LoadInstr *>(instr))
      return false;
  }
  return true;
}

/// Lets a store run the loop that makes its data; `mayStack` says that the loop
/// may also run by itself, on stacked tiles.
static void moveIntoStore(const std::vector<std::unique_ptr<Instr>> &instrs,
                          std::vector<std::pair<int, size_t>> &makers,
                          StoreInstr &store, size_t at, bool mayStack) {
  auto maker = std::find_if(makers.begin(), makers.end(), [&](const auto &m) {
    return m.first == store.data.slot;
  });
  if (maker == makers.end())
    return;
  auto &a = static_cast<StructuredLoop &>(*instrs[maker->second]);
  const StructuredLoop &source = a.fused ? *a.fused : a;
  if (source.body.canFail() || !inputsLast(instrs, source, maker->second, at))
    return;
  store.maker = a.fused ? a.fused : std::make_shared<StructuredLoop>(a);
  if (store.maker->inputs.size() == 1 && CodeTable::isFor(*store.maker))
    store.table = std::make_shared<CodeTable>();
  if (mayStack) {
    a.isDelayed = true;
  } else {
    a.isFusedAway = true;
    a.fused.reset();
  }
  store.frees.insert(store.frees.end(), a.frees.begin(), a.frees.end());
  a.frees.clear();
  makers.erase(maker);
}

void spyre::runtime::fuseLoops(Block &block) {
  std::vector<std::unique_ptr<Instr>> &instrs = block.instrs;
  std::vector<std::pair<int, size_t>> makers; // tensor slot, position
  for (std::unique_ptr<Instr> &instr : instrs)
    instr->frees = instr->releases;
  // What is elementwise alone may run as stacks.
  bool mayStack = std::all_of(
      instrs.begin(), instrs.end(), [](const std::unique_ptr<Instr> &instr) {
        auto *loop = dynamic_cast<StructuredLoop *>(instr.get());
        return !loop || loop->strategy == StructuredLoop::Parallel;
      });
  for (size_t at = 0; at < instrs.size(); ++at) {
    if (auto *store = dynamic_cast<StoreInstr *>(instrs[at].get()))
      moveIntoStore(instrs, makers, *store, at, mayStack);
    auto *b = dynamic_cast<StructuredLoop *>(instrs[at].get());
    if (!b)
      continue;
    bool takes = (b->strategy == StructuredLoop::Parallel ||
                  b->strategy == StructuredLoop::Reduction) &&
                 !b->hasIndex;
    // Fuse the latest loop first: then the loops between have been fused
    // already.
    for (size_t m = makers.size(); takes && m-- > 0;) {
      auto [slot, from] = makers[m];
      const StructuredLoop &current = b->fused ? *b->fused : *b;
      auto input = std::find_if(current.inputs.begin(), current.inputs.end(),
                                [&, slot = slot](const LoopOperand &in) {
                                  return in.use.slot == slot;
                                });
      if (input == current.inputs.end() || !readsAsOneInput(current, slot))
        continue;
      auto &a = static_cast<StructuredLoop &>(*instrs[from]);
      const StructuredLoop &source = a.fused ? *a.fused : a;
      if (!inputsLast(instrs, source, from, at))
        continue;
      std::shared_ptr<StructuredLoop> fused =
          fuse(source, current, size_t(input - current.inputs.begin()));
      if (!fused)
        continue;
      b->fused = std::move(fused);
      a.isFusedAway = true;
      a.fused.reset();
      b->frees.insert(b->frees.end(), a.frees.begin(), a.frees.end());
      a.frees.clear();
      makers.erase(makers.begin() + static_cast<ptrdiff_t>(m));
    }
    if (canMoveInto(*b))
      makers.push_back({b->results[0], at});
    constexpr size_t kMaxMakers = 16;
    if (makers.size() > kMaxMakers)
      makers.erase(makers.begin());
  }
}
