// SPDX-License-Identifier: Apache-2.0
//===- Report.cpp - What a kernel costs on the modelled device ------------===//

#include "Engine.h"

#include <algorithm>

using namespace spyre::runtime;

void RunState::addReport(const Function &callee,
                         const std::vector<Counters> &perCore, int location) {
  KernelReport k;
  k.name = callee.name;
  k.location = plan.locations[location];
  k.numCores = callee.numCores();
  Counters total;
  for (const Counters &c : perCore)
    total.add(c);
  k.deviceBytesRead = total.deviceBytesRead;
  k.deviceBytesWritten = total.deviceBytesWritten;
  k.lxBytesRead = total.lxBytesRead;
  k.lxBytesWritten = total.lxBytesWritten;
  k.sfuElementOps = total.sfuElementOps;
  k.ptMacs = total.ptMacs;
  report->kernels.push_back(std::move(k));
}
