// SPDX-License-Identifier: Apache-2.0
//===- Simulator.cpp - When the steps of a kernel happen ------------------===//

#include "Simulator.h"
#include "Ring.h"

#include "Spyre/Support/Error.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

using namespace spyre;
using namespace spyre::runtime;

namespace {
/// Something that happens at a moment which other cores have a say in.
struct Event {
  enum Kind : uint8_t { Flow, Message, Remote, Hop };
  double time;
  int core, step; ///< Hop: the core that sends, and the packet
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

  /// A tile on its way around the ring, in one direction.
  struct Packet {
    struct Receiver {
      int core, step, numHops;
    };
    RingWay way; ///< to the furthest receiver
    uint64_t bytes;
    int core, step; ///< that it comes from
    bool isMessage; ///< receivers wait for it; else it is all that they do
    int hop = 0;
    std::vector<Receiver> receivers;
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
  void sendPacket(Packet packet, double time);
  void beginHop(const Event &event);

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
  std::vector<Packet> packets;
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
    if (step.isWait)
      return finish(core, s, t.start + (overlap ? step.seconds : 0));
    [[fallthrough]];
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

void Simulator::sendPacket(Packet packet, double time) {
  for (const Packet::Receiver &receiver : packet.receivers)
    packet.way.numHops = std::max(packet.way.numHops, receiver.numHops);
  events.push(
      {time, packet.core, static_cast<int>(packets.size()), Event::Hop});
  packets.push_back(std::move(packet));
}

/// A tile takes the next link of its way as soon as those have passed that were
/// there before it.
void Simulator::beginHop(const Event &event) {
  Packet &packet = packets[event.step];
  int link = packet.way.getLink(packet.hop), direction = packet.way.direction;
  double begin = std::max(event.time, linkFree[direction][link]);
  double seconds = double(packet.bytes) / spec.ringBytesPerSecond();
  linkFree[direction][link] = begin + seconds;
  result.links.push_back(
      {begin, begin + seconds, packet.bytes, link, direction});
  double arrival = begin + spec.ringHopSeconds();
  bool isFirstHop = packet.hop++ == 0;
  if (packet.hop < packet.way.numHops)
    events.push({arrival, event.core, event.step, Event::Hop});
  for (const Packet::Receiver &receiver : packet.receivers) {
    if (isFirstHop)
      result.steps[receiver.core][receiver.step].flow = begin;
    if (receiver.numHops != packet.hop)
      continue;
    if (packet.isMessage)
      waitFor(receiver.core, receiver.step, arrival, packet.core, packet.step);
    else
      finish(receiver.core, receiver.step, arrival + seconds);
  }
}

void Simulator::sendMessage(const Event &event) {
  const Step &step = coreSteps[event.core].list[event.step];
  if (event.kind == Event::Remote) {
    // Reads come from the other core, writes (needing a tile) go there.
    bool isWrite = step.tileBytes == 0;
    RingWay way(isWrite ? event.core : step.peer,
                isWrite ? step.peer : event.core, ringSize);
    return sendPacket({way,
                       step.bytes,
                       event.core,
                       event.step,
                       /*isMessage=*/false,
                       0,
                       {{event.core, event.step, way.numHops}}},
                      event.time);
  }
  auto it = listeners.find({step.sends, event.core});
  if (it == listeners.end())
    return;
  // Parts of a tile differ per target; a whole tile passes a link once for all
  // targets behind it.
  std::optional<Packet> whole[2];
  for (auto [core, number] : it->second) {
    const Step &target = coreSteps[core].list[number];
    RingWay way(event.core, core, ringSize);
    Packet packet{way, target.bytes, event.core, event.step, true, 0, {}};
    std::optional<Packet> &shared = whole[way.direction];
    Packet &used = target.isPart ? packet
                   : shared      ? *shared
                                 : shared.emplace(packet);
    used.bytes = std::max(used.bytes, target.bytes);
    used.receivers.push_back({core, number, way.numHops});
    if (target.isPart)
      sendPacket(std::move(packet), event.time);
  }
  for (std::optional<Packet> &packet : whole)
    if (packet)
      sendPacket(std::move(*packet), event.time);
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

KernelTimes Simulator::run() {
  int numCores = static_cast<int>(coreSteps.size());
  ringSize = getRingSize(numCores, spec);
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
      else if (event.kind == Event::Hop)
        beginHop(event);
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
