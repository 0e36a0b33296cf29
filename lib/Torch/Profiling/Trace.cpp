// SPDX-License-Identifier: Apache-2.0
#include "Trace.h"
#include "../Python/Interpreter.h"

#include "Spyre/Device/DeviceSpec.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <sys/syscall.h>
#include <tuple>
#include <unistd.h>

namespace spyre::pytorch {

namespace {

std::atomic<int> numTraces = 0;
std::atomic<uint64_t> lastLaunch = 0;
thread_local std::vector<uint64_t> correlations;

struct OpenTraces {
  std::mutex mutex;
  std::vector<Trace *> traces;
};

OpenTraces &openTraces() {
  static auto *instance = new OpenTraces;
  return *instance;
}

} // namespace

Trace::Trace() {
  OpenTraces &open = openTraces();
  std::lock_guard<std::mutex> lock(open.mutex);
  open.traces.push_back(this);
  ++numTraces;
}

Trace::~Trace() {
  OpenTraces &open = openTraces();
  std::lock_guard<std::mutex> lock(open.mutex);
  auto it = std::find(open.traces.begin(), open.traces.end(), this);
  if (it == open.traces.end())
    return;
  open.traces.erase(it);
  --numTraces;
}

std::vector<RunRecord> Trace::stop() {
  withoutGIL([] { drainAll(); });
  {
    OpenTraces &open = openTraces();
    std::lock_guard<std::mutex> lock(open.mutex);
    auto it = std::find(open.traces.begin(), open.traces.end(), this);
    if (it != open.traces.end()) {
      open.traces.erase(it);
      --numTraces;
    }
  }
  std::lock_guard<std::mutex> lock(mutex);
  std::sort(records.begin(), records.end(),
            [](const RunRecord &a, const RunRecord &b) {
              return std::tie(a.launch.device, a.launch.stream, a.start,
                              a.launch.id) < std::tie(b.launch.device,
                                                      b.launch.stream, b.start,
                                                      b.launch.id);
            });
  return std::move(records);
}

bool isTracing() noexcept { return numTraces != 0; }

LaunchRecord beginLaunch(c10::DeviceIndex device, c10::StreamId stream) {
  LaunchRecord launch;
  launch.id = ++lastLaunch;
  launch.begin = runtime::hostSeconds();
  launch.thread = static_cast<int32_t>(::syscall(SYS_gettid));
  launch.correlation = correlations.empty() ? 0 : correlations.back();
  launch.device = device;
  launch.stream = stream;
  return launch;
}

void recordRun(const RunRecord &record) {
  OpenTraces &open = openTraces();
  std::lock_guard<std::mutex> lock(open.mutex);
  for (Trace *trace : open.traces) {
    std::lock_guard<std::mutex> traceLock(trace->mutex);
    trace->records.push_back(record);
  }
}

std::vector<TransferRecord> Trace::takeTransfers() {
  std::lock_guard<std::mutex> lock(mutex);
  std::sort(transfers.begin(), transfers.end(),
            [](const TransferRecord &a, const TransferRecord &b) {
              return std::tie(a.launch.device, a.start, a.launch.id) <
                     std::tie(b.launch.device, b.start, b.launch.id);
            });
  return std::move(transfers);
}

const char *toString(TransferKind kind) {
  switch (kind) {
  case TransferKind::HostToDevice:
    return "host to device";
  case TransferKind::DeviceToHost:
    return "device to host";
  case TransferKind::DeviceToDevice:
    return "device to device";
  case TransferKind::CardToCard:
    return "card to card";
  case TransferKind::Fill:
    return "fill";
  }
  return "";
}

/// Predicted time of a transfer on the device, from its bytes alone.
static double predictSeconds(TransferKind kind, int64_t bytes) {
  static const DeviceSpec spec;
  auto count = static_cast<double>(bytes);
  switch (kind) {
  case TransferKind::DeviceToDevice:
    return 2 * count / spec.effectiveMemoryBytesPerSecond;
  case TransferKind::Fill:
    return count / spec.effectiveMemoryBytesPerSecond;
  case TransferKind::CardToCard:
    return spec.cardLinkSeconds + count / spec.cardLinkBytesPerSecond;
  default:
    return count / spec.hostLinkBytesPerSecond();
  }
}

void recordTransfer(LaunchRecord launch, TransferKind kind, bool isQueued,
                    int64_t bytes, double begin) {
  double end = runtime::hostSeconds();
  if (!isQueued)
    launch.end = end;
  TransferRecord record{launch, kind, isQueued, bytes, 0, 0, end - begin};
  record.seconds = predictSeconds(kind, bytes);
  record.start =
      card(launch.device)
          .link.occupy(std::max(begin, end - record.seconds), record.seconds);
  OpenTraces &open = openTraces();
  std::lock_guard<std::mutex> lock(open.mutex);
  for (Trace *trace : open.traces) {
    std::lock_guard<std::mutex> traceLock(trace->mutex);
    trace->transfers.push_back(record);
  }
}

TransferScope::TransferScope(TransferKind kind, c10::DeviceIndex device,
                             int64_t bytes)
    : kind(kind), bytes(bytes), numExceptions(std::uncaught_exceptions()) {
  if (isTracing())
    launch = beginLaunch(device, currentStream(device));
}

TransferScope::~TransferScope() {
  if (launch && std::uncaught_exceptions() == numExceptions)
    recordTransfer(*launch, kind, /*isQueued=*/false, bytes, launch->begin);
}

void pushCorrelation(uint64_t id) { correlations.push_back(id); }
void popCorrelation() {
  if (!correlations.empty())
    correlations.pop_back();
}

} // namespace spyre::pytorch
