// SPDX-License-Identifier: Apache-2.0
//===- Report.cpp - What a kernel costs on the modelled device ------------===//

#include "Engine.h"

#include "Spyre/Device/CostModel.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

void RunState::addReport(const Function &callee,
                         const std::vector<Counters> &perCore, int location) {
  static const DeviceSpec spec;
  Counters total;
  OpWork work;
  work.numCores = callee.numCores();
  for (const Counters &c : perCore) {
    total.add(c);
    work.macsPerCore =
        std::max(work.macsPerCore, static_cast<double>(c.ptMacs));
    work.sfuElementsPerCore = std::max(work.sfuElementsPerCore,
                                       static_cast<double>(c.sfuElementOps));
    work.lxBytesPerCore =
        std::max(work.lxBytesPerCore,
                 static_cast<double>(c.lxBytesRead + c.lxBytesWritten));
  }
  // The fewest rows that any product of the critical core streams.
  for (const Counters &c : perCore)
    if (c.ptMacs > 0 && (work.ptRowsPerCore == 0 ||
                         c.ptRows < work.ptRowsPerCore))
      work.ptRowsPerCore = static_cast<double>(c.ptRows);
  // Each core's sticks counted apart: broadcasts are not taken off.
  work.deviceAccesses.push_back(
      {static_cast<double>(total.deviceBytesRead), 1, false});
  work.deviceAccesses.push_back(
      {static_cast<double>(total.deviceBytesWritten), 1, true});
  OpCost cost = estimateOp(work, spec);

  KernelReport k;
  k.name = callee.name;
  k.location = plan.locations[location];
  k.numCores = callee.numCores();
  k.deviceBytesRead = total.deviceBytesRead;
  k.deviceBytesWritten = total.deviceBytesWritten;
  k.lxBytesRead = total.lxBytesRead;
  k.lxBytesWritten = total.lxBytesWritten;
  k.sfuElementOps = total.sfuElementOps;
  k.ptMacs = total.ptMacs;
  k.predictedSeconds = cost.seconds;
  k.bottleneck = toString(cost.bottleneck);
  report->kernels.push_back(std::move(k));
}

double RunState::launchSeconds() { return DeviceSpec().launchSeconds; }
