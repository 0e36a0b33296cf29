// SPDX-License-Identifier: Apache-2.0
//===- TileBlock.cpp - Kernels that are one block of tiles ----------------===//

#include "TileBlock.h"

#include <algorithm>
#include <set>

using namespace spyre;
using namespace spyre::runtime;

namespace {
/// Finds the one block of a kernel that has tiles.
class TileBlockFinder {
public:
  explicit TileBlockFinder(TileBlock &result) : result(result) {}

  /// False if there is anything but steps in one block, and scalars and loops
  /// around it.
  bool visit(const Block &block) {
    for (const std::unique_ptr<Instr> &instr : block.instrs)
      if (!visit(block, *instr))
        return false;
    return true;
  }
  /// Finds the arguments that views start at. Call once, after visit().
  void findAddresses();
  /// Finds the only loop, if there is but one. Call once, after visit().
  void findLoop();

private:
  bool visit(const Block &block, const Instr &instr);
  bool visitScalars(const Instr &instr);
  bool visitControl(const Instr &instr);
  bool visitStep(const Block &block, const Instr &instr);
  void read(int slot) { scalarsRead.insert(slot); }
  void read(const std::vector<SizeSource> &sizes) {
    for (const SizeSource &size : sizes)
      if (size.slot >= 0)
        read(size.slot);
  }
  void readInStep(int slot) {
    read(slot);
    if (std::find(result.scalars.begin(), result.scalars.end(), slot) ==
        result.scalars.end())
      result.scalars.push_back(slot);
  }
  void readInStep(const std::vector<SizeSource> &sizes) {
    for (const SizeSource &size : sizes)
      if (size.slot >= 0)
        readInStep(size.slot);
  }
  bool isConstantTile(int slot) const {
    return result.function->isConstant(slot);
  }
  bool canStack(const StructuredLoop &loop) const;

  TileBlock &result;
  std::set<int> scalarsRead; ///< but for the offsets of views
  std::vector<const MemoryViewInstr *> views;
  std::vector<const AccessTileInstr *> tiles;
};
} // namespace

bool TileBlockFinder::visit(const Block &block, const Instr &instr) {
  return visitScalars(instr) || visitControl(instr) || visitStep(block, instr);
}

bool TileBlockFinder::visitScalars(const Instr &instr) {
  if (auto *op = dynamic_cast<const ScalarInt *>(&instr)) {
    if (op->op == ScalarInt::TileId)
      return true;
    read(op->a);
    if (op->op == ScalarInt::Binary || op->op == ScalarInt::Compare ||
        op->op == ScalarInt::Select)
      read(op->b);
    if (op->op == ScalarInt::Select)
      read(op->c);
    return true;
  }
  if (auto *affine = dynamic_cast<const AffineInstr *>(&instr)) {
    for (int slot : affine->operands)
      read(slot);
    return true;
  }
  if (auto *program = dynamic_cast<const ScalarProgramInstr *>(&instr)) {
    for (auto [reg, slot] : program->body.captured)
      read(slot);
    return !program->body.extracts();
  }
  if (auto *view = dynamic_cast<const MemoryViewInstr *>(&instr)) {
    read(view->strides);
    for (int slot : view->symbolSlots)
      read(slot);
    // Each core's tiles are in another LX: stacks there do not move.
    if (view->isLX)
      read(view->offsetSlot);
    views.push_back(view);
    return !view->isPartition;
  }
  if (auto *tile = dynamic_cast<const AccessTileInstr *>(&instr)) {
    for (int slot : tile->plan.capturedSlots)
      read(slot);
    tiles.push_back(tile);
    return tile->plan.partitionSlots.empty() &&
           tile->plan.indexViewSlots.empty() && !tile->plan.isEnumerated;
  }
  return false;
}

bool TileBlockFinder::visitControl(const Instr &instr) {
  auto isEmpty = [](const Transfer &transfer) {
    return transfer.scalars.empty() && transfer.tensors.empty();
  };
  if (auto *loop = dynamic_cast<const ForInstr *>(&instr)) {
    read(loop->lower);
    read(loop->upper);
    read(loop->step);
    return isEmpty(loop->enter) && isEmpty(loop->next) &&
           isEmpty(loop->leave) && visit(loop->body);
  }
  if (auto *condition = dynamic_cast<const IfInstr *>(&instr)) {
    read(condition->condition);
    return isEmpty(condition->thenResults) && isEmpty(condition->elseResults) &&
           visit(condition->thenBlock) && visit(condition->elseBlock);
  }
  return false;
}

bool TileBlockFinder::canStack(const StructuredLoop &loop) const {
  if (loop.fused)
    return canStack(*loop.fused);
  auto isConstant = [&](const LoopOperand &operand) {
    return isConstantTile(operand.use.slot);
  };
  return loop.strategy == StructuredLoop::Parallel && !loop.hasIndex &&
         !loop.body.canFail() && loop.numLoops < StructuredLoop::kMaxLoops &&
         std::none_of(loop.inputs.begin(), loop.inputs.end(), isConstant) &&
         std::none_of(loop.outputs.begin(), loop.outputs.end(), isConstant);
}

bool TileBlockFinder::visitStep(const Block &block, const Instr &instr) {
  if (result.block && result.block != &block)
    return false;
  result.block = &block;
  TileBlock::Step step{&instr};
  if ((step.load = dynamic_cast<const LoadInstr *>(&instr))) {
    // Its tile says the rest.
  } else if ((step.store = dynamic_cast<const StoreInstr *>(&instr))) {
    if (isConstantTile(step.store->data.slot))
      return false;
  } else if (auto *loop = dynamic_cast<const StructuredLoop *>(&instr)) {
    if (!canStack(*loop))
      return false;
    for (auto [reg, slot] : (loop->fused ? *loop->fused : *loop).body.captured)
      readInStep(slot);
  } else if (auto *empty = dynamic_cast<const EmptyInstr *>(&instr)) {
    readInStep(empty->sizes);
  } else if (auto *splat = dynamic_cast<const SplatInstr *>(&instr)) {
    if (splat->values.size() != 1)
      return false;
    readInStep(splat->sizes);
    readInStep(splat->values[0]);
  } else if (auto *reshape = dynamic_cast<const ReshapeInstr *>(&instr)) {
    if (isConstantTile(reshape->source.slot))
      return false;
    readInStep(reshape->sizes);
  } else {
    return false;
  }
  result.steps.push_back(step);
  return true;
}

void TileBlockFinder::findAddresses() {
  const std::vector<int> &arguments = result.function->argSlots;
  for (int slot : arguments)
    result.isAddress.push_back(scalarsRead.count(slot) == 0);
  for (TileBlock::Step &step : result.steps) {
    if (!step.accessesMemory())
      continue;
    auto tile = std::find_if(tiles.begin(), tiles.end(), [&](auto *candidate) {
      return candidate->dst == step.tileSlot();
    });
    auto view = std::find_if(views.begin(), views.end(), [&](auto *candidate) {
      return candidate->dst == (*tile)->plan.viewSlot;
    });
    auto argument =
        std::find(arguments.begin(), arguments.end(), (*view)->offsetSlot);
    if ((*view)->isLX || argument == arguments.end())
      continue;
    auto number = argument - arguments.begin();
    if (result.isAddress[number])
      step.argument = static_cast<int>(number);
  }
}

/// Whether the map takes each loop to a dimension of its own.
static bool isPermutation(const std::vector<MapResult> &map, int numLoops) {
  std::set<int> loops;
  for (const MapResult &result : map) {
    if (result.constant != 0 || result.terms.size() != 1 ||
        result.terms[0].second != 1)
      return false;
    loops.insert(result.terms[0].first);
  }
  return map.size() == loops.size() &&
         map.size() == static_cast<size_t>(numLoops);
}

void TileBlockFinder::findLoop() {
  const StructuredLoop *loop = nullptr;
  std::vector<int> loaded, stored; // slots, per access; -1: the other
  for (const TileBlock::Step &step : result.steps) {
    if (dynamic_cast<const ReshapeInstr *>(step.instr))
      return;
    if (step.accessesMemory()) {
      loaded.push_back(step.load ? step.load->dst : -1);
      stored.push_back(step.store ? step.store->data.slot : -1);
    }
    auto *candidate = dynamic_cast<const StructuredLoop *>(step.instr);
    if (!candidate || candidate->isFusedAway)
      continue;
    if (loop)
      return;
    loop = candidate->fused ? candidate->fused.get() : candidate;
  }
  if (!loop || !isPermutation(loop->outputs[0].map, loop->numLoops))
    return;
  std::vector<bool> isUsed(loaded.size(), false);
  auto add = [&](const std::vector<int> &slots, int slot, bool isOne) {
    auto access = std::find(slots.begin(), slots.end(), slot) - slots.begin();
    if (access == static_cast<ptrdiff_t>(slots.size()))
      return false;
    isUsed[access] = true;
    result.operands.push_back(static_cast<size_t>(access));
    result.isOne.push_back(isOne);
    return true;
  };
  for (const LoopOperand &in : loop->inputs)
    if (!add(loaded, in.use.slot, in.map != loop->outputs[0].map))
      return;
  for (size_t r = 0; r < loop->outputs.size(); ++r)
    if (loop->outputs[r].map != loop->outputs[0].map || loop->readsOutput[r] ||
        !loop->coversOutput[r] || !add(stored, loop->results[r], false))
      return;
  if (std::find(isUsed.begin(), isUsed.end(), false) != isUsed.end())
    return;
  result.loop = loop;
  result.isChain = loop->isChainOfHalves();
}

bool TileBlock::isStep(const Instr &instr) const {
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step &step) { return step.instr == &instr; });
}

std::unique_ptr<TileBlock> TileBlock::find(const Function &function) {
  if (function.hasCalls || function.numProduceOps > 0 || !function.hasGrid)
    return nullptr;
  auto result = std::make_unique<TileBlock>();
  result->function = &function;
  TileBlockFinder finder(*result);
  if (!finder.visit(function.body) || !result->block)
    return nullptr;
  finder.findAddresses();
  finder.findLoop();
  return result;
}
