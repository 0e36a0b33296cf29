// SPDX-License-Identifier: Apache-2.0
//===- Report.cpp - What a kernel costs on the modelled device ------------===//

#include "Engine.h"

#include "Spyre/Device/CostModel.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace spyre;
using namespace spyre::runtime;

void RunState::addReport(const Function &callee, std::vector<Counters> &perCore,
                         int location) {
  Counters total;
  OpWork work;
  work.numCores = callee.numCores();
  for (const Counters &c : perCore) {
    total.add(c);
    work.macsPerCore =
        std::max(work.macsPerCore, static_cast<double>(c.ptMacs));
    work.sfuElementsPerCore =
        std::max(work.sfuElementsPerCore, static_cast<double>(c.sfuElementOps));
    work.lxBytesPerCore =
        std::max(work.lxBytesPerCore,
                 static_cast<double>(c.lxBytesRead + c.lxBytesWritten));
  }
  // The fewest rows that any product of the critical core streams.
  for (const Counters &c : perCore)
    if (c.ptMacs > 0 &&
        (work.ptRowsPerCore == 0 || c.ptRows < work.ptRowsPerCore))
      work.ptRowsPerCore = static_cast<double>(c.ptRows);
  // What several cores read is one broadcast: the mean number of readers of a
  // stick says how many share it.
  Sticks all;
  uint64_t ownSticks = 0;
  for (Counters &c : perCore) {
    ownSticks += mergeSticks(c.deviceSticksRead);
    all.insert(all.end(), c.deviceSticksRead.begin(), c.deviceSticksRead.end());
  }
  uint64_t distinctSticks = mergeSticks(all);
  double sharing = distinctSticks > 0 ? static_cast<double>(ownSticks) /
                                            static_cast<double>(distinctSticks)
                                      : 1;
  double onceRead = static_cast<double>(total.deviceBytesRead) / sharing;
  work.deviceAccesses.push_back({onceRead, sharing, false});
  work.deviceAccesses.push_back(
      {static_cast<double>(total.deviceBytesWritten), 1, true});
  // Around the ring, half way on average.
  work.ringByteHops = static_cast<double>(total.ringBytes) *
                      static_cast<double>(work.numCores) / 2;
  OpCost cost = estimateOp(work, spec);

  KernelReport k;
  k.name = callee.name;
  k.location = plan.locations[location];
  k.numCores = callee.numCores();
  // A broadcast serves so many cores and no more.
  k.deviceBytesRead = static_cast<uint64_t>(std::llround(
      onceRead *
      std::max(1.0, sharing / static_cast<double>(spec.numBroadcastCores))));
  k.deviceBytesDemanded = total.deviceBytesRead;
  k.deviceBytesWritten = total.deviceBytesWritten;
  k.lxBytesRead = total.lxBytesRead;
  k.lxBytesWritten = total.lxBytesWritten;
  k.sfuElementOps = total.sfuElementOps;
  k.ptMacs = total.ptMacs;
  k.predictedSeconds = cost.seconds;
  k.bottleneck = toString(cost.bottleneck);
  report->kernels.push_back(std::move(k));
}

void RunState::sumReport() {
  if (report->kernels.empty())
    return;
  report->predictedSeconds = spec.launchSeconds;
  std::map<std::string, double> seconds = {{"launch", spec.launchSeconds}};
  for (const KernelReport &kernel : report->kernels) {
    report->predictedSeconds += kernel.predictedSeconds;
    report->deviceBytesRead += kernel.deviceBytesRead;
    report->deviceBytesWritten += kernel.deviceBytesWritten;
    report->deviceBytesDemanded += kernel.deviceBytesDemanded;
    report->lxBytesRead += kernel.lxBytesRead;
    report->lxBytesWritten += kernel.lxBytesWritten;
    report->sfuElementOps += kernel.sfuElementOps;
    report->ptMacs += kernel.ptMacs;
    seconds[kernel.bottleneck] += kernel.predictedSeconds;
  }
  for (const auto &[bottleneck, share] : seconds)
    if (report->bottleneck.empty() || share > seconds[report->bottleneck])
      report->bottleneck = bottleneck;
}
