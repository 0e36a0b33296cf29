// SPDX-License-Identifier: Apache-2.0
//===- Timing.cpp - A program in time, without data -----------------------===//

#include "Timing.h"
#include "../Engine/ProgramImpl.h"
#include "Ring.h"

#include "Spyre/Device/CostModel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <unordered_map>

using namespace spyre;
using namespace spyre::runtime;

TimingRun::TimingRun(const Plan &plan, DeviceMemory &memory,
                     const std::vector<int64_t> &argValues,
                     const RunOptions &options, const TimingOptions &timing)
    : plan(plan), memory(memory), options(options), timing(timing) {
  cores.resize(plan.functions.size());
  traffic.resize(plan.arguments.size() + 1);
  for (size_t i = 0; i < plan.arguments.size(); ++i) {
    const ArgumentInfo &info = plan.arguments[i];
    traffic[i].name = info.name;
    if (info.kind == ArgumentInfo::Scalar)
      continue;
    int64_t unit = info.kind == ArgumentInfo::Pool
                       ? 1
                       : std::max<int64_t>(info.elementSizeInBytes, 1);
    arguments.push_back({argValues[i] * unit, static_cast<int>(i)});
  }
  traffic.back().name = "other";
  std::sort(arguments.begin(), arguments.end());
}

TimingRun::~TimingRun() = default;

int TimingRun::nameNumber(const std::string &name) {
  auto [it, isNew] =
      names.try_emplace(name, static_cast<int>(report.names.size()));
  if (isNew)
    report.names.push_back(name);
  return it->second;
}

int TimingRun::messageNumber(int op, int64_t instance) {
  return messages.try_emplace({op, instance}, static_cast<int>(messages.size()))
      .first->second;
}

Core &TimingRun::core(const Function &function) {
  std::unique_ptr<Core> &core = cores[function.index];
  if (!core) {
    core = std::make_unique<Core>(plan, function, &pool,
                                  options.numerics == Numerics::IEEE);
    core->memory = &memory;
    core->zeroOutside = options.oob == OutOfBounds::Zero;
    core->check = options.check;
    core->timing = this;
  }
  return *core;
}

void TimingRun::begin(CoreSteps &steps) {
  steps.spec = &timing.spec;
  steps.plan = &plan;
  steps.arguments = &arguments;
  steps.knownSticks = &knownSticks;
}

void TimingRun::call(const Function &callee, const Scalar *args, int location,
                     const Instr *site) {
  if (!callee.hasCalls && (callee.hasGrid || callee.accessesMemory))
    return runKernel(callee, args, location, site);
  CoreSteps steps;
  begin(steps);
  Core &core = this->core(callee);
  core.steps = &steps;
  core.execute(0, args);
}

void TimingRun::runKernel(const Function &callee, const Scalar *args,
                          int location, const Instr *site) {
  int64_t numCores = callee.numCores();
  std::vector<CoreSteps> coreSteps(numCores);
  messages.clear();
  Core &core = this->core(callee);
  for (int64_t index = 0; index < numCores; ++index) {
    begin(coreSteps[index]);
    coreSteps[index].hasProduct = callee.hasContraction;
    core.steps = &coreSteps[index];
    core.produced.assign(callee.numProduceOps, 0);
    core.producedShapes.assign(callee.numProduceOps, {});
    core.producedSteps.assign(callee.numProduceOps, -1);
    core.execute(index, args);
    if (int at = coreSteps[index].dataLocation; at >= 0)
      report.dataDependent.push_back(plan.locations[at]);
  }
  KernelTimes times;
  try {
    times = simulateKernel(coreSteps, timing.spec, timing.overlap);
  } catch (const Error &error) {
    throw Error(plan.locations[callee.location] + ": error: " + error.what());
  }
  times.startupSeconds = startupSeconds(site);
  addReport(callee, location, coreSteps, times);
  if (timing.events)
    addEvents(callee, location, coreSteps, times);
  now += times.startupSeconds + times.seconds;
}

/// A call in a loop takes time to start anew.
double TimingRun::startupSeconds(const Instr *site) {
  return !site || sites.insert(site).second ? 0
                                            : timing.spec.kernelRepeatSeconds;
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

namespace {
/// A part of the time of a chain of steps.
struct Share {
  const char *name;
  const char *parameter; ///< of DeviceSpec, on which it rests
};
enum ShareKind { PTShare, SFUShare, LXShare, MemoryShare, RingShare, Latency };
constexpr int kNumShares = Latency + 1;
const Share kShares[kNumShares] = {
    {"pt", "ptMacsPerSecondPerCore"},
    {"sfu", "numSFULanes"},
    {"lx", "lxBytesPerSecondPerCore"},
    {"device memory", "effectiveMemoryBytesPerSecond"},
    {"ring", "clockHertz"},
    {"latency", "transferSetupSeconds"}};
} // namespace

static bool isGuessed(const char *parameter) {
  return findParameter(parameter)->basis == Basis::Guessed;
}

void TimingRun::findCriticalPath(const std::vector<CoreSteps> &coreSteps,
                                 const KernelTimes &times,
                                 KernelReport &kernel) const {
  double shares[kNumShares] = {};
  shares[Latency] = times.startupSeconds;
  int core = -1, step = -1;
  double end = -1;
  for (size_t c = 0; c < coreSteps.size(); ++c)
    for (size_t s = 0; s < coreSteps[c].list.size(); ++s)
      if (times.steps[c][s].end > end) {
        end = times.steps[c][s].end;
        core = static_cast<int>(c);
        step = static_cast<int>(s);
      }
  while (core >= 0 && step >= 0) {
    const Step &s = coreSteps[core].list[step];
    const StepTime &t = times.steps[core][step];
    double seconds = t.end - t.start;
    switch (s.unit) {
    case Unit::PT:
    case Unit::SFU:
      shares[s.isLXBound          ? LXShare
             : s.unit == Unit::PT ? PTShare
                                  : SFUShare] += seconds;
      break;
    case Unit::Load:
      if (s.isWait) {
        shares[SFUShare] += seconds;
        break;
      }
      [[fallthrough]];
    case Unit::Store:
      shares[Latency] += t.flow - t.start;
      shares[MemoryShare] += t.end - t.flow;
      break;
    case Unit::Ring:
      shares[RingShare] += seconds;
      break;
    case Unit::None:
      break;
    }
    // A message is under way between its producer's end and this start.
    double known = 0;
    if (t.waitedStep >= 0)
      known = times.steps[t.waitedCore][t.waitedStep].end;
    if (t.waitedStep >= 0 && t.start > known)
      shares[RingShare] += t.start - known;
    core = t.waitedCore;
    step = t.waitedStep;
  }
  double sum = 0, guessed = 0;
  int largest = MemoryShare;
  for (int i = 0; i < kNumShares; ++i) {
    sum += shares[i];
    if (shares[i] > shares[largest])
      largest = i;
    if (isGuessed(kShares[i].parameter))
      guessed += shares[i];
  }
  kernel.bottleneck = kShares[largest].name;
  kernel.guessedShare = sum > 0 ? guessed / sum : 0;
}

/// What passes over the links of the ring, and into and out of the cores.
static void addRingWork(const std::vector<CoreSteps> &coreSteps,
                        const DeviceSpec &spec, OpWork &work) {
  int ringSize = getRingSize(work.numCores, spec);
  std::vector<double> links[2];
  for (std::vector<double> &direction : links)
    direction.assign(ringSize, 0);
  auto send = [&](const RingWay &way, int firstHop, double bytes) {
    for (int hop = firstHop; hop < way.numHops; ++hop)
      links[way.direction][way.getLink(hop)] += bytes;
  };
  // A whole tile passes a link once for all cores behind it.
  std::map<std::tuple<int, int, int>, int> reached;
  for (size_t c = 0; c < coreSteps.size(); ++c) {
    double moved = 0, hops = 0;
    for (const Step &step : coreSteps[c].list) {
      if (step.unit != Unit::Ring || step.bytes == 0)
        continue;
      auto bytes = double(step.bytes);
      int core = static_cast<int>(c);
      bool isWrite = step.message < 0 && step.tileBytes == 0;
      RingWay way(isWrite ? core : step.peer, isWrite ? step.peer : core,
                  ringSize);
      moved += bytes;
      hops += way.numHops;
      int firstHop = 0;
      if (step.message >= 0 && !step.isPart) {
        int &known = reached[{step.message, step.peer, way.direction}];
        firstHop = known;
        known = std::max(known, way.numHops);
      }
      send(way, firstHop, bytes);
    }
    // A core moves one tile after another.
    work.ringBytesBusiestLink = std::max(work.ringBytesBusiestLink, moved);
    work.ringHopsPerCore = std::max(work.ringHopsPerCore, hops);
  }
  for (const std::vector<double> &direction : links)
    for (double bytes : direction)
      work.ringBytesBusiestLink = std::max(work.ringBytesBusiestLink, bytes);
}

/// Adds up the cores; returns what the cost model asks for.
static OpWork sumWork(const std::vector<CoreSteps> &coreSteps,
                      const DeviceSpec &spec, KernelReport &kernel) {
  OpWork work;
  work.numCores = kernel.numCores;
  // Cores that load the same share that, but not what one loads again.
  struct Load {
    const CoreSteps *core = nullptr;
    int64_t count = 0, most = 0, numCores = 0;
    double bytes = 0;
  };
  std::unordered_map<uint64_t, Load> loads;
  double read = 0, demanded = 0, written = 0;
  for (const CoreSteps &steps : coreSteps) {
    const WorkTotals &t = steps.totals;
    kernel.deviceBytesDemanded += t.deviceBytesRead;
    kernel.deviceBytesWritten += t.deviceBytesWritten;
    kernel.lxBytesRead += t.lxBytesRead;
    kernel.lxBytesWritten += t.lxBytesWritten;
    kernel.ringBytes += t.ringBytes;
    kernel.sfuElementOps += t.sfuElementOps;
    kernel.ptMacs += t.ptMacs;
    kernel.ptFP16Macs += t.ptFP16Macs;
    work.macsPerCore = std::max(work.macsPerCore, t.ptFP16Macs);
    work.sfuElementsPerCore = std::max(work.sfuElementsPerCore, t.sfuElements);
    work.lxBytesPerCore = std::max(work.lxBytesPerCore, double(t.lxTileBytes));
    if (t.ptRows > 0 &&
        (work.ptRowsPerCore == 0 || double(t.ptRows) < work.ptRowsPerCore))
      work.ptRowsPerCore = double(t.ptRows);
    work.numExposedTransfers =
        std::max<int64_t>(work.numExposedTransfers, t.numStreams);
    double exposedSeconds = 0;
    for (const Step &step : steps.list) {
      if (step.isWait)
        exposedSeconds += step.seconds;
      double bytes = double(step.bytes) +
                     double(step.numRuns) * spec.memoryRunOverheadBytes;
      if (step.unit == Unit::Store)
        written += bytes;
      if (step.unit != Unit::Load)
        continue;
      demanded += bytes;
      if (step.key == 0) {
        read += bytes;
        continue;
      }
      Load &load = loads[step.key];
      if (load.core != &steps) {
        load.core = &steps;
        load.count = 0;
        ++load.numCores;
      }
      load.most = std::max(load.most, ++load.count);
      load.bytes = std::max(load.bytes, bytes);
    }
    work.exposedSfuSeconds = std::max(work.exposedSfuSeconds, exposedSeconds);
  }
  for (const auto &[key, load] : loads) {
    int64_t served = spec.numBroadcastCores;
    read += double(load.most * ((load.numCores + served - 1) / served)) *
            load.bytes;
  }
  work.deviceAccesses.push_back({read, read > 0 ? demanded / read : 1, false});
  work.deviceAccesses.push_back({written, 1, true});
  addRingWork(coreSteps, spec, work);
  return work;
}

void TimingRun::addTraffic(const std::vector<CoreSteps> &coreSteps,
                           const KernelTimes &times, KernelReport &kernel) {
  auto trafficOf = [&](int argument) -> TensorTraffic & {
    return traffic[argument < 0 ? traffic.size() - 1 : argument];
  };
  for (const TransferTime &transfer : times.transfers) {
    const Step &step = coreSteps[transfer.core].list[transfer.step];
    uint64_t bytes = transfer.bytes - step.indexBytes;
    // Indices are read, also for a store.
    kernel.deviceBytesRead += step.indexBytes;
    trafficOf(step.indexArgument).bytesRead += step.indexBytes;
    if (step.unit == Unit::Load) {
      kernel.deviceBytesRead += bytes;
      trafficOf(step.argument).bytesRead += bytes;
    } else {
      trafficOf(step.argument).bytesWritten += bytes;
    }
  }
}

void TimingRun::addUtilisation(const std::vector<CoreSteps> &coreSteps,
                               const KernelTimes &times, KernelReport &kernel) {
  double busy[kNumTimedUnits] = {};
  for (size_t c = 0; c < coreSteps.size(); ++c)
    for (size_t s = 0; s < coreSteps[c].list.size(); ++s) {
      const StepTime &t = times.steps[c][s];
      Unit unit = coreSteps[c].list[s].unit;
      if (unit != Unit::None && !coreSteps[c].list[s].isWait)
        busy[int(unit)] += (t.end - t.start) / double(kernel.numCores);
    }
  // The ring counts as busy as its busiest link.
  std::map<std::pair<int, int>, double> links;
  double &ring = busy[int(TimedUnit::Ring)];
  ring = 0;
  for (const LinkTime &link : times.links) {
    double &sum = links[{link.direction, link.link}];
    sum += link.end - link.start;
    ring = std::max(ring, sum);
  }
  busy[int(TimedUnit::DeviceMemory)] =
      double(kernel.deviceBytesRead + kernel.deviceBytesWritten) /
      timing.spec.effectiveMemoryBytesPerSecond;
  for (int u = 0; u < kNumTimedUnits; ++u) {
    busySeconds[u] += busy[u];
    if (kernel.predictedSeconds > 0)
      kernel.utilisation[u] = std::min(1.0, busy[u] / kernel.predictedSeconds);
  }
}

/// The roofline of the unit that does most of the work.
static void setRoofline(const DeviceSpec &spec, KernelReport &kernel) {
  double flops = double(kernel.flops());
  double peak = (2 * kernel.ptMacs >= kernel.sfuElementOps && kernel.ptMacs > 0
                     ? 2 * spec.ptMacsPerSecondPerCore * double(kernel.ptMacs) /
                           kernel.ptFP16Macs
                     : spec.sfuElementsPerSecondPerCore()) *
                double(kernel.numCores);
  double deviceBytes =
      double(kernel.deviceBytesRead + kernel.deviceBytesWritten);
  double memoryBound =
      deviceBytes > 0 ? flops / deviceBytes * spec.effectiveMemoryBytesPerSecond
                      : std::numeric_limits<double>::infinity();
  kernel.arithmeticIntensity = deviceBytes > 0
                                   ? flops / deviceBytes
                                   : std::numeric_limits<double>::infinity();
  kernel.isMemoryBound = memoryBound < peak;
  kernel.attainableFlopsPerSecond = std::min(peak, memoryBound);
  kernel.flopsPerSecond =
      kernel.predictedSeconds > 0 ? flops / kernel.predictedSeconds : 0;
}

/// Of all that the cores do.
static TimeFactors getTimeFactors(const std::vector<CoreSteps> &coreSteps,
                                  const DeviceSpec &spec) {
  KernelKinds kinds = 0;
  for (const CoreSteps &steps : coreSteps)
    kinds |= steps.totals.kinds;
  return spec.getTimeFactors(kinds);
}

void TimingRun::addReport(const Function &callee, int location,
                          std::vector<CoreSteps> &coreSteps,
                          const KernelTimes &times) {
  KernelReport kernel;
  kernel.name = callee.name;
  kernel.location = plan.locations[location];
  kernel.numCores = callee.numCores();
  kernel.startSeconds = now;
  kernel.predictedSeconds = times.startupSeconds + times.seconds;
  TimeFactors factors = getTimeFactors(coreSteps, timing.spec);
  kernel.lowSeconds = factors.low * kernel.predictedSeconds;
  kernel.highSeconds = factors.high * kernel.predictedSeconds;
  OpWork work = sumWork(coreSteps, timing.spec, kernel);
  work.addsPartialProducts = callee.addsPartialResults;
  kernel.costModelSeconds =
      times.startupSeconds + estimateOp(work, timing.spec).seconds;
  addTraffic(coreSteps, times, kernel);
  findCriticalPath(coreSteps, times, kernel);
  addUtilisation(coreSteps, times, kernel);
  setRoofline(timing.spec, kernel);

  bottlenecks[kernel.bottleneck] += kernel.predictedSeconds;
  guessedSeconds += kernel.guessedShare * kernel.predictedSeconds;
  report.kernels.push_back(std::move(kernel));
}

void TimingRun::finishReport() {
  report.predictedSeconds = now;
  report.lowSeconds = report.highSeconds = report.launchSeconds;
  for (const KernelReport &kernel : report.kernels) {
    report.lowSeconds += kernel.lowSeconds;
    report.highSeconds += kernel.highSeconds;
  }
  double inKernels = now - report.launchSeconds;
  for (const KernelReport &kernel : report.kernels)
    addWork(report, kernel);
  bottlenecks["launch"] += report.launchSeconds;
  double most = -1;
  for (const auto &[name, seconds] : bottlenecks)
    if (seconds > most) {
      most = seconds;
      report.bottleneck = name;
    }
  if (now > 0)
    report.guessedShare =
        (guessedSeconds +
         (isGuessed("launchSeconds") ? report.launchSeconds : 0)) /
        now;
  if (inKernels > 0)
    for (int u = 0; u < kNumTimedUnits; ++u)
      report.utilisation[u] = std::min(1.0, busySeconds[u] / inKernels);
  for (TensorTraffic &tensor : traffic)
    if (tensor.bytesRead + tensor.bytesWritten > 0)
      report.tensors.push_back(tensor);
  std::sort(report.dataDependent.begin(), report.dataDependent.end());
  report.dataDependent.erase(
      std::unique(report.dataDependent.begin(), report.dataDependent.end()),
      report.dataDependent.end());
}

TimingReport TimingRun::run(const Scalar *args) {
  report.overlap = timing.overlap;
  report.launchSeconds = timing.spec.launchSeconds;
  now = report.launchSeconds;
  call(*plan.entry, args, plan.entry->location);
  if (report.kernels.empty()) {
    report.launchSeconds = 0;
    now = 0;
  }
  finishReport();
  return std::move(report);
}

//===----------------------------------------------------------------------===//
// Events of the steps
//===----------------------------------------------------------------------===//

void TimingRun::addEvents(const Function &callee, int location,
                          const std::vector<CoreSteps> &coreSteps,
                          const KernelTimes &times) {
  auto lane = [&](int process, int number, const std::string &name) {
    report.lanes.try_emplace({process, number}, name);
  };
  auto slice = [&](int process, int number, int name, int at, double start,
                   double end, uint64_t bytes) {
    if (end > start)
      report.events.push_back({TraceEvent::Slice, process, number, name, at,
                               start, end - start, bytes});
  };
  // Steps count from the end of the start-up.
  double first = now + times.startupSeconds;
  int where = nameNumber(plan.locations[location]);
  lane(0, 0, "kernels");
  slice(0, 0, nameNumber(callee.name), where, now, first + times.seconds, 0);
  if (times.startupSeconds + times.seconds > 0) {
    report.events.back().lowSeconds = report.kernels.back().lowSeconds;
    report.events.back().highSeconds = report.kernels.back().highSeconds;
  }

  // Transfers in flight at once lie in lanes side by side.
  std::vector<TransferTime> transfers = times.transfers;
  std::sort(transfers.begin(), transfers.end(),
            [](const TransferTime &a, const TransferTime &b) {
              return std::tie(a.start, a.core, a.step) <
                     std::tie(b.start, b.core, b.step);
            });
  std::vector<double> laneEnd;
  for (const TransferTime &transfer : transfers) {
    const Step &step = coreSteps[transfer.core].list[transfer.step];
    size_t number = 0;
    while (number < laneEnd.size() && laneEnd[number] > transfer.start)
      ++number;
    if (number == laneEnd.size())
      laneEnd.push_back(0);
    laneEnd[number] = transfer.end;
    std::string name = step.unit == Unit::Load ? "read " : "write ";
    name +=
        traffic[step.argument < 0 ? traffic.size() - 1 : step.argument].name;
    if (transfer.numSharing > 1)
      name += " for " + std::to_string(transfer.numSharing) + " cores";
    lane(1, static_cast<int>(number), "transfer " + std::to_string(number));
    slice(1, static_cast<int>(number), nameNumber(name),
          nameNumber(plan.locations[step.location]), first + transfer.start,
          first + transfer.end, transfer.bytes);
  }
  for (const LinkTime &link : times.links) {
    int number = link.link * 2 + link.direction;
    lane(2, number,
         "core " + std::to_string(link.link) +
             (link.direction == 0 ? " up" : " down"));
    slice(2, number, nameNumber("tile"), where, first + link.start,
          first + link.end, link.bytes);
  }
  for (size_t c = 0; c < coreSteps.size(); ++c) {
    int process = 3 + static_cast<int>(c);
    std::vector<std::pair<double, int64_t>> changes;
    for (size_t s = 0; s < coreSteps[c].list.size(); ++s) {
      const Step &step = coreSteps[c].list[s];
      const StepTime &t = times.steps[c][s];
      if (step.unit != Unit::None) {
        lane(process, int(step.unit), toString(step.unit));
        slice(process, int(step.unit), nameNumber(step.name),
              nameNumber(plan.locations[step.location]), first + t.start,
              first + t.end, step.bytes);
      }
      if (step.tileBytes == 0)
        continue;
      double end = step.lastUse >= 0 ? times.steps[c][step.lastUse].end : t.end;
      changes.push_back({t.start, int64_t(step.tileBytes)});
      changes.push_back({std::max(end, t.end), -int64_t(step.tileBytes)});
    }
    std::sort(changes.begin(), changes.end());
    int64_t bytes = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
      bytes += changes[i].second;
      if (i + 1 == changes.size() || changes[i + 1].first > changes[i].first)
        report.events.push_back({TraceEvent::Counter, process, 0,
                                 nameNumber("LX bytes of tiles"), where,
                                 first + changes[i].first, 0, uint64_t(bytes)});
    }
  }
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

TimingReport Program::simulate(DeviceMemory &memory,
                               const std::vector<int64_t> &argValues,
                               const RunOptions &options,
                               const TimingOptions &timing) const {
  checkArgumentCount(argValues);
  std::vector<Scalar> args = impl->makeArguments(argValues);
  return TimingRun(impl->plan, memory, argValues, options, timing)
      .run(args.data());
}
