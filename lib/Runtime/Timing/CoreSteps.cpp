// SPDX-License-Identifier: Apache-2.0
//===- CoreSteps.cpp - What the cores of a kernel do, without data --------===//

#include "CoreSteps.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

const char *spyre::runtime::toString(Unit unit) {
  static const char *const names[] = {"pt",    "sfu",  "load",
                                      "store", "ring", "none"};
  return names[int(unit)];
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

int CoreSteps::add(const Instr *instr, Unit unit, const char *name,
                   std::initializer_list<int> required) {
  int index = static_cast<int>(list.size());
  Step step;
  step.unit = unit;
  step.location = instr->location;
  step.name = name;
  step.needsBegin = static_cast<int>(needs.size());
  auto need = [&](int other) {
    if (other < 0)
      return;
    needs.push_back(other);
    list[other].lastUse = index;
  };
  for (int other : required)
    need(other);
  for (int other : pending)
    need(other);
  pending.clear();
  // Two buffers per tile: the last user of the one before the last.
  auto [it, isNew] = history.try_emplace(instr, -1, -1);
  auto &[last, beforeLast] = it->second;
  // The step does not wait for itself, which needs the parts of one tile.
  if (beforeLast >= 0 && list[beforeLast].lastUse >= 0 &&
      list[beforeLast].lastUse != index)
    needs.push_back(list[beforeLast].lastUse);
  beforeLast = last;
  last = index;
  std::sort(needs.begin() + step.needsBegin, needs.end());
  needs.erase(std::unique(needs.begin() + step.needsBegin, needs.end()),
              needs.end());
  step.needsEnd = static_cast<int>(needs.size());
  // What only hands a tile on leaves it where it is.
  step.isAccumulated = unit == Unit::PT;
  if (unit == Unit::None)
    for (int n = step.needsBegin; n < step.needsEnd; ++n) {
      step.isAccumulated |= list[needs[n]].isAccumulated;
      step.exposedShare =
          std::max(step.exposedShare, list[needs[n]].exposedShare);
    }
  list.push_back(step);
  return index;
}

double CoreSteps::getExposedShare(const Instr *instr, int64_t first,
                                  const Sticks &sticks) {
  if (hasProduct || sticks.firstRun == 0)
    return 0;
  std::unordered_map<int64_t, uint64_t> &lengths = runLengths[instr];
  uint64_t length = sticks.firstRun;
  if (auto begun = lengths.find(first); begun != lengths.end()) {
    length += begun->second;
    lengths.erase(begun);
  }
  lengths[first + static_cast<int64_t>(sticks.firstRun)] = length;
  double beyond = double(length) -
                  double(spec->overlappedRunBytes) / double(spec->stickBytes);
  return std::clamp(beyond / double(sticks.firstRun), 0.0, 1.0);
}

void CoreSteps::addWait(const Instr *instr, double seconds) {
  Step step;
  step.unit = Unit::Load;
  step.location = instr->location;
  step.name = "wait";
  step.seconds = seconds;
  step.isWait = true;
  step.needsBegin = step.needsEnd = static_cast<int>(needs.size());
  list.push_back(step);
}

void CoreSteps::noteWrite(bool isLX, int64_t low, int64_t high, int step) {
  if (step < 0)
    return;
  Writes &w = writes[isLX];
  w.low = w.list.empty() ? low : std::min(w.low, low);
  w.high = w.list.empty() ? high : std::max(w.high, high);
  w.list.push_back({low, high, step});
}

int CoreSteps::needWrites(bool isLX, int64_t low, int64_t high) {
  // It is enough to look at the last overlapping writes, as each unit works in
  // order.
  constexpr int kMaxLooks = 256;
  const Writes &w = writes[isLX];
  int found = -1;
  if (w.list.empty() || low >= w.high || high <= w.low)
    return found;
  int looks = 0;
  for (size_t i = w.list.size(); i-- > 0 && looks < kMaxLooks; ++looks)
    if (low < w.list[i].high && high > w.list[i].low) {
      addNeed(w.list[i].step);
      found = std::max(found, w.list[i].step);
      if (low >= w.list[i].low && high <= w.list[i].high)
        break;
    }
  return found;
}

void spyre::runtime::beginTensor(Core &core, int slot, int step) {
  core.releaseTensor(slot);
  TensorVal &t = core.tensors[slot];
  t.step = step;
  t.isUniform = t.isBuffer = false;
}
