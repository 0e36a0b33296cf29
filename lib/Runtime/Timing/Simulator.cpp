// SPDX-License-Identifier: Apache-2.0
//===- Simulator.cpp - When the steps of a kernel happen ------------------===//

#include "Simulator.h"

#include "Spyre/Support/Error.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

using namespace spyre;
using namespace spyre::runtime;

namespace {
/// Something that happens at a moment which other cores have a say in.
struct Event {
  enum Kind : uint8_t { Flow, Message, Remote };
  double time;
  int core, step;
  Kind kind;
  // Earliest first; of equal times the lowest core and step.
  bool operator<(const Event &other) const {
    if (time != other.time)
      return time > other.time;
    if (core != other.core)
      return core > other.core;
    return step > other.step;
  }
};

class Simulator {
public:
  Simulator(std::vector<CoreSteps> &cores, const DeviceSpec &spec, bool overlap)
      : coreSteps(cores), spec(spec), overlap(overlap) {}
  KernelTimes run();

private:
  struct CoreState {
    std::vector<int> waiting;             ///< per step: what is not known yet
    std::vector<int> followers, followAt; ///< who needs a step
    std::vector<int> lanes[kNumUnits];    ///< steps in order
    size_t head[kNumUnits] = {};
    double freeAt[kNumUnits] = {};
    int lastOf[kNumUnits];
  };
  struct Flight {
    double endShare; ///< bytes each transfer will have had when it ends
    int index;       ///< into result.transfers
    uint64_t key;
    bool isWrite;
    bool operator<(const Flight &other) const {
      return endShare != other.endShare ? endShare > other.endShare
                                        : index > other.index;
    }
  };

  void prepare(int core);
  bool isFirst(int core, int step) const;
  void issue(int core, int step);
  void finish(int core, int step, double end);
  void waitFor(int core, int step, double time, int otherCore, int otherStep);
  void settle();
  void beginFlow(const Event &event);
  void endFlow(double time);
  void advance(double time);
  double bytesPerSecondOfEach() const;
  void sendMessage(const Event &event);
  double sendOver(int from, const std::vector<int> &targets, double time,
                  uint64_t bytes);
  int distance(int from, int to, int &direction) const;

  std::vector<CoreSteps> &coreSteps;
  const DeviceSpec &spec;
  const bool overlap;
  std::vector<CoreState> cores;
  KernelTimes result;
  std::priority_queue<Event> events;
  std::vector<std::pair<int, int>> ready; ///< steps to issue

  // Device memory: every transfer in flight has had `share` bytes more than at
  // its start.
  double now = 0, share = 0;
  std::priority_queue<Flight> flights;
  size_t numWrites = 0;                        ///< among the flights
  std::unordered_map<uint64_t, int> shareable; ///< key -> transfer in flight
  std::vector<std::vector<std::pair<int, int>>> members; ///< per transfer

  // Ring.
  int ringSize = 1;
  std::vector<double> linkFree[2];
  /// (message, producing core) -> (core, step) that wait for it.
  std::map<std::pair<int, int>, std::vector<std::pair<int, int>>> listeners;
  std::map<std::pair<int, int>, std::pair<int, int>> senders;
};
} // namespace

void Simulator::prepare(int core) {
  CoreSteps &steps = coreSteps[core];
  CoreState &state = cores[core];
  int count = static_cast<int>(steps.list.size());
  state.waiting.assign(count, 0);
  state.followAt.assign(count + 1, 0);
  std::fill(state.lastOf, state.lastOf + kNumUnits, -1);
  result.steps[core].resize(count);
  auto forEachNeed = [&](int s, auto &&visit) {
    const Step &step = steps.list[s];
    for (int n = step.needsBegin; n < step.needsEnd; ++n)
      visit(steps.needs[n]);
    // One step after another: also the one before.
    if (!overlap && s > 0)
      visit(s - 1);
  };
  for (int s = 0; s < count; ++s)
    forEachNeed(s, [&](int other) {
      ++state.followAt[other + 1];
      ++state.waiting[s];
    });
  for (int s = 0; s < count; ++s)
    state.followAt[s + 1] += state.followAt[s];
  state.followers.resize(state.followAt[count]);
  std::vector<int> at(state.followAt.begin(), state.followAt.end() - 1);
  for (int s = 0; s < count; ++s)
    forEachNeed(s, [&](int other) { state.followers[at[other]++] = s; });
  for (int s = 0; s < count; ++s) {
    const Step &step = steps.list[s];
    if (step.unit != Unit::None)
      state.lanes[int(step.unit)].push_back(s);
    if (step.unit == Unit::Ring && step.message >= 0 && step.peer != core) {
      ++state.waiting[s];
      listeners[{step.message, step.peer}].push_back({core, s});
    }
    if (step.sends >= 0)
      senders[{step.sends, core}] = {core, s};
  }
}

/// Whether the step's unit has nothing before it.
bool Simulator::isFirst(int core, int step) const {
  const CoreState &state = cores[core];
  int unit = int(coreSteps[core].list[step].unit);
  return unit == int(Unit::None) || state.lanes[unit][state.head[unit]] == step;
}

void Simulator::waitFor(int core, int step, double time, int otherCore,
                        int otherStep) {
  StepTime &t = result.steps[core][step];
  if (time >= t.start) {
    t.start = time;
    t.waitedCore = otherCore;
    t.waitedStep = otherStep;
  }
  if (--cores[core].waiting[step] == 0 && isFirst(core, step))
    ready.push_back({core, step});
}

void Simulator::issue(int core, int s) {
  const Step &step = coreSteps[core].list[s];
  CoreState &state = cores[core];
  StepTime &t = result.steps[core][s];
  int unit = int(step.unit);
  if (step.unit != Unit::None && state.freeAt[unit] > t.start) {
    t.start = state.freeAt[unit];
    t.waitedCore = core;
    t.waitedStep = state.lastOf[unit];
  }
  t.flow = t.start;
  switch (step.unit) {
  case Unit::PT:
  case Unit::SFU:
    return finish(core, s, t.start + step.seconds);
  case Unit::None:
    return finish(core, s, t.start);
  case Unit::Load:
  case Unit::Store:
    events.push({t.start + step.seconds, core, s, Event::Flow});
    return;
  case Unit::Ring:
    if (step.bytes == 0)
      return finish(core, s, t.start);
    if (step.message < 0) {
      events.push({t.start, core, s, Event::Remote});
      return;
    }
    // The message is there: it comes in at the pace of a link.
    return finish(core, s,
                  t.start + double(step.bytes) / spec.ringBytesPerSecond());
  }
}

void Simulator::finish(int core, int s, double end) {
  const Step &step = coreSteps[core].list[s];
  CoreState &state = cores[core];
  result.steps[core][s].end = end;
  result.seconds = std::max(result.seconds, end);
  if (step.unit != Unit::None) {
    int unit = int(step.unit);
    state.freeAt[unit] = end;
    state.lastOf[unit] = s;
    if (++state.head[unit] < state.lanes[unit].size()) {
      int next = state.lanes[unit][state.head[unit]];
      if (state.waiting[next] == 0)
        ready.push_back({core, next});
    }
  }
  for (int f = state.followAt[s]; f < state.followAt[s + 1]; ++f)
    waitFor(core, state.followers[f], end, core, s);
  if (step.sends >= 0)
    events.push({end, core, s, Event::Message});
}

void Simulator::settle() {
  while (!ready.empty()) {
    auto [core, step] = ready.back();
    ready.pop_back();
    issue(core, step);
  }
}

//===----------------------------------------------------------------------===//
// Device memory
//===----------------------------------------------------------------------===//

/// All transfers in flight go on at the same rate: that of a core, or their
/// share of device memory, which turns around between reading and writing.
double Simulator::bytesPerSecondOfEach() const {
  double turning = double(std::min(numWrites, flights.size() - numWrites));
  double secondsPerByte =
      double(flights.size()) / spec.effectiveMemoryBytesPerSecond +
      turning * spec.memoryTurnaroundSecondsPerByte;
  return std::min(1 / secondsPerByte, spec.coreMemoryBytesPerSecond);
}

void Simulator::advance(double time) {
  if (!flights.empty())
    share += (time - now) * bytesPerSecondOfEach();
  now = time;
}

void Simulator::beginFlow(const Event &event) {
  advance(event.time);
  const Step &step = coreSteps[event.core].list[event.step];
  result.steps[event.core][event.step].flow = event.time;
  if (step.key) {
    auto it = shareable.find(step.key);
    if (it != shareable.end()) {
      TransferTime &transfer = result.transfers[it->second];
      members[it->second].push_back({event.core, event.step});
      if (++transfer.numSharing == spec.numBroadcastCores)
        shareable.erase(it);
      return;
    }
  }
  int index = static_cast<int>(result.transfers.size());
  result.transfers.push_back(
      {event.time, event.time, step.bytes, event.core, event.step, 1});
  members.push_back({{event.core, event.step}});
  bool isWrite = step.unit == Unit::Store;
  // Every run of contiguous sticks takes as if it were longer.
  double bytes =
      double(step.bytes) + double(step.numRuns) * spec.memoryRunOverheadBytes;
  flights.push({share + bytes, index, step.key, isWrite});
  numWrites += isWrite;
  if (step.key && spec.numBroadcastCores > 1)
    shareable[step.key] = index;
}

void Simulator::endFlow(double time) {
  advance(time);
  Flight flight = flights.top();
  flights.pop();
  numWrites -= flight.isWrite;
  // Rounding must not hold anything up.
  share = std::max(share, flight.endShare);
  if (flights.empty())
    share = 0;
  auto it = shareable.find(flight.key);
  if (it != shareable.end() && it->second == flight.index)
    shareable.erase(it);
  result.transfers[flight.index].end = time;
  std::vector<std::pair<int, int>> served = std::move(members[flight.index]);
  for (auto [core, step] : served)
    finish(core, step, time);
}

//===----------------------------------------------------------------------===//
// Ring
//===----------------------------------------------------------------------===//

int Simulator::distance(int from, int to, int &direction) const {
  int up = (to - from + ringSize) % ringSize;
  direction = up * 2 <= ringSize ? 0 : 1;
  return direction == 0 ? up : ringSize - up;
}

/// Sends a tile from a core to all targets, each the shorter way; a tile passes
/// a link once however many targets lie behind. Returns when it sets off.
double Simulator::sendOver(int from, const std::vector<int> &targets,
                           double time, uint64_t bytes) {
  int hops[2] = {0, 0};
  for (int target : targets) {
    int direction, d = distance(from, target, direction);
    hops[direction] = std::max(hops[direction], d);
  }
  auto linkOf = [&](int direction, int hop) {
    return direction == 0 ? (from + hop) % ringSize
                          : (from - hop + ringSize) % ringSize;
  };
  double start = time;
  for (int direction : {0, 1})
    for (int hop = 0; hop < hops[direction]; ++hop)
      start = std::max(start, linkFree[direction][linkOf(direction, hop)]);
  double seconds = double(bytes) / spec.ringBytesPerSecond();
  for (int direction : {0, 1})
    for (int hop = 0; hop < hops[direction]; ++hop) {
      int link = linkOf(direction, hop);
      double begin = start + hop * spec.ringHopSeconds();
      linkFree[direction][link] = begin + seconds;
      result.links.push_back({begin, begin + seconds, bytes, link, direction});
    }
  return start;
}

void Simulator::sendMessage(const Event &event) {
  if (event.kind == Event::Remote) {
    const Step &step = coreSteps[event.core].list[event.step];
    int direction, hops = distance(step.peer, event.core, direction);
    // Reads come from the other core, writes (needing a tile) go there.
    bool isWrite = step.tileBytes == 0;
    double start =
        isWrite ? sendOver(event.core, {step.peer}, event.time, step.bytes)
                : sendOver(step.peer, {event.core}, event.time, step.bytes);
    result.steps[event.core][event.step].flow = start;
    finish(event.core, event.step,
           start + hops * spec.ringHopSeconds() +
               double(step.bytes) / spec.ringBytesPerSecond());
    return;
  }
  int message = coreSteps[event.core].list[event.step].sends;
  auto it = listeners.find({message, event.core});
  if (it == listeners.end())
    return;
  // Parts of a tile differ per target; a whole tile is one multicast.
  std::vector<int> targets;
  uint64_t bytes = 0;
  for (auto [core, step] : it->second) {
    targets.push_back(core);
    bytes = std::max(bytes, coreSteps[core].list[step].bytes);
  }
  bool isWhole = !coreSteps[it->second.front().first]
                      .list[it->second.front().second]
                      .isPart;
  double start = event.time;
  if (isWhole)
    start = sendOver(event.core, targets, event.time, bytes);
  for (auto [core, step] : it->second) {
    if (!isWhole)
      start = sendOver(event.core, {core}, event.time, bytes);
    int direction, hops = distance(event.core, core, direction);
    result.steps[core][step].flow = start;
    waitFor(core, step, start + hops * spec.ringHopSeconds(), event.core,
            event.step);
  }
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

KernelTimes Simulator::run() {
  int numCores = static_cast<int>(coreSteps.size());
  ringSize = std::max<int>(numCores, static_cast<int>(spec.numCores));
  for (std::vector<double> &links : linkFree)
    links.assign(ringSize, 0);
  cores.resize(numCores);
  result.steps.resize(numCores);
  for (int core = 0; core < numCores; ++core)
    prepare(core);
  for (int core = 0; core < numCores; ++core)
    for (size_t s = 0; s < coreSteps[core].list.size(); ++s)
      if (cores[core].waiting[s] == 0 && isFirst(core, static_cast<int>(s)))
        ready.push_back({core, static_cast<int>(s)});
  settle();
  while (!events.empty() || !flights.empty()) {
    double flowEnd = 0;
    if (!flights.empty())
      flowEnd = std::max(now, now + (flights.top().endShare - share) /
                                        bytesPerSecondOfEach());
    if (!flights.empty() && (events.empty() || flowEnd <= events.top().time)) {
      endFlow(flowEnd);
    } else {
      Event event = events.top();
      events.pop();
      if (event.kind == Event::Flow)
        beginFlow(event);
      else
        sendMessage(event);
    }
    settle();
  }
  for (int core = 0; core < numCores; ++core)
    for (size_t s = 0; s < coreSteps[core].list.size(); ++s)
      if (cores[core].waiting[s] != 0)
        throw Error("core " + std::to_string(core) +
                    " waits for a tile of core " +
                    std::to_string(coreSteps[core].list[s].peer) +
                    " that is never sent");
  return std::move(result);
}

KernelTimes spyre::runtime::simulateKernel(std::vector<CoreSteps> &cores,
                                           const DeviceSpec &spec,
                                           bool overlap) {
  return Simulator(cores, spec, overlap).run();
}
