// SPDX-License-Identifier: Apache-2.0
// The device's part of torch.profiler, for ProfilerActivity.PrivateUse1: a
// slice per kernel on the lane of its stream, in the device's clock, one per
// transfer on a lane of the card, and one per launch or call of a transfer on
// the lane of the thread that made it.
#include "Trace.h"

#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <chrono>
#include <cmath>
#include <set>
#include <string>
#include <utility>

namespace spyre::pytorch {

namespace {

using libkineto::ActivityType;

/// Lane of a card's transfers, after those of its streams.
constexpr int32_t kTransferLane = static_cast<int32_t>(Card::kNumStreams);

/// Nanoseconds since 1970, PyTorch's clock of traces, at hostSeconds() == 0.
int64_t epochInNanoseconds() {
  double host = runtime::hostSeconds();
  int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                    std::chrono::system_clock::now().time_since_epoch())
                    .count();
  return now - std::llround(host * 1e9);
}

class Session final : public libkineto::IActivityProfilerSession {
public:
  void start() override {
    epoch = epochInNanoseconds();
    trace = std::make_unique<Trace>();
  }

  void stop() override {
    if (!trace)
      return;
    records = trace->stop();
    transfers = trace->takeTransfers();
    trace.reset();
  }

  std::vector<std::string> errors() override { return {}; }

  void processTrace(libkineto::ActivityLogger &logger) override {
    processTrace(
        logger,
        [](int32_t) -> const libkineto::ITraceActivity * { return nullptr; }, 0,
        0);
  }

  void processTrace(libkineto::ActivityLogger &logger,
                    libkineto::getLinkedActivityCallback findLinked,
                    int64_t startTime, int64_t) override {
    buffer = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer->span = libkineto::TraceSpan(0, 0, "spyre");
    buffer->gpuOpCount = 0;
    std::pair<c10::DeviceIndex, c10::StreamId> lane(-1, -1);
    int64_t laneEnd = 0;
    for (const RunRecord &run : records) {
      const libkineto::ITraceActivity *linked =
          findLinked(static_cast<int32_t>(run.launch.correlation));
      addCall("spyreLaunchProgram", run.launch, linked, logger);
      if (lane != std::make_pair(run.launch.device, run.launch.stream)) {
        lane = {run.launch.device, run.launch.stream};
        laneEnd = 0;
        logger.handleResourceInfo(
            {run.launch.stream, run.launch.stream, run.launch.device,
             "stream " + std::to_string(run.launch.stream)},
            startTime);
      }
      for (const runtime::KernelReport &kernel : run.report->kernels)
        addKernel(run, kernel, linked, laneEnd, logger);
    }
    records.clear();
    addTransfers(findLinked, startTime, logger);
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return nullptr; // kineto names the device, processTrace() the streams
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    return {};
  }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::move(buffer);
  }

  void pushCorrelationId(uint64_t id) override { pushCorrelation(id); }
  void popCorrelationId() override { popCorrelation(); }

private:
  int64_t toNanoseconds(double seconds) const {
    return epoch + std::llround(seconds * 1e9);
  }

  libkineto::GenericTraceActivity &add(ActivityType type,
                                       const std::string &name) {
    buffer->emplace_activity(buffer->span, type, name);
    return *buffer->activities.back();
  }

  void addTransfers(const libkineto::getLinkedActivityCallback &findLinked,
                    int64_t startTime, libkineto::ActivityLogger &logger) {
    c10::DeviceIndex device = -1;
    int64_t laneEnd = 0;
    for (const TransferRecord &transfer : transfers) {
      const libkineto::ITraceActivity *linked =
          findLinked(static_cast<int32_t>(transfer.launch.correlation));
      addCall(transfer.isQueued ? "spyreCopyAsync" : "spyreCopy",
              transfer.launch, linked, logger);
      if (device != transfer.launch.device) {
        device = transfer.launch.device;
        laneEnd = 0;
        logger.handleResourceInfo(
            {kTransferLane, kTransferLane, device, "transfers"}, startTime);
      }
      addTransfer(transfer, linked, laneEnd, logger);
    }
    transfers.clear();
  }

  void addTransfer(const TransferRecord &transfer,
                   const libkineto::ITraceActivity *linked, int64_t &laneEnd,
                   libkineto::ActivityLogger &logger) {
    bool isFill = transfer.kind == TransferKind::Fill;
    libkineto::GenericTraceActivity &activity =
        add(isFill ? ActivityType::GPU_MEMSET : ActivityType::GPU_MEMCPY,
            isFill ? std::string("fill")
                   : std::string("copy ") + toString(transfer.kind));
    place(activity, transfer.start, transfer.seconds, laneEnd);
    activity.device = transfer.launch.device;
    activity.resource = kTransferLane;
    connect(activity, transfer.launch, linked, /*isStart=*/false);
    activity.addMetadata("device", static_cast<int>(transfer.launch.device));
    activity.addMetadata("stream", transfer.launch.stream);
    activity.addMetadata("predicted time (us)", transfer.seconds * 1e6);
    activity.addMetadata("bytes", transfer.bytes);
    activity.addMetadata("host time (us)", transfer.hostTime * 1e6);
    activity.log(logger);
  }

  /// Sets the interval of a slice; rounding must not make neighbours overlap.
  void place(libkineto::GenericTraceActivity &activity, double start,
             double seconds, int64_t &laneEnd) const {
    activity.startTime = std::max(toNanoseconds(start), laneEnd);
    activity.endTime =
        std::max(toNanoseconds(start + seconds), activity.startTime);
    laneEnd = activity.endTime;
  }

  void addCall(const char *name, const LaunchRecord &launch,
               const libkineto::ITraceActivity *linked,
               libkineto::ActivityLogger &logger) {
    libkineto::GenericTraceActivity &activity =
        add(ActivityType::PRIVATEUSE1_RUNTIME, name);
    activity.startTime = toNanoseconds(launch.begin);
    activity.endTime = toNanoseconds(launch.end);
    activity.device = libkineto::processId();
    activity.resource = activity.threadId = launch.thread;
    connect(activity, launch, linked, /*isStart=*/true);
    activity.log(logger);
  }

  void addKernel(const RunRecord &run, const runtime::KernelReport &kernel,
                 const libkineto::ITraceActivity *linked, int64_t &laneEnd,
                 libkineto::ActivityLogger &logger) {
    libkineto::GenericTraceActivity &activity =
        add(ActivityType::CONCURRENT_KERNEL, kernel.name);
    place(activity, run.start + kernel.startSeconds, kernel.predictedSeconds,
          laneEnd);
    activity.device = run.launch.device;
    activity.resource = static_cast<int32_t>(run.launch.stream);
    connect(activity, run.launch, linked, /*isStart=*/false);
    activity.addMetadata("device", static_cast<int>(run.launch.device));
    activity.addMetadata("stream", run.launch.stream);
    activity.addMetadata("predicted time (us)", kernel.predictedSeconds * 1e6);
    activity.addMetadata("10th percentile (us)", kernel.lowSeconds * 1e6);
    activity.addMetadata("90th percentile (us)", kernel.highSeconds * 1e6);
    activity.addMetadata("bytes read", kernel.deviceBytesRead);
    activity.addMetadata("bytes written", kernel.deviceBytesWritten);
    activity.addMetadata("LX bytes",
                         kernel.lxBytesRead + kernel.lxBytesWritten);
    activity.addMetadata("flops", kernel.flops());
    activity.addMetadata("cores", kernel.numCores);
    activity.addMetadataQuoted("bottleneck", kernel.bottleneck);
    activity.log(logger);
  }

  static void connect(libkineto::GenericTraceActivity &activity,
                      const LaunchRecord &launch,
                      const libkineto::ITraceActivity *linked, bool isStart) {
    activity.id = static_cast<int32_t>(launch.id);
    activity.addMetadata("correlation", launch.id);
    activity.flow.id = static_cast<uint32_t>(launch.id);
    activity.flow.type = libkineto::kLinkAsyncCpuGpu;
    activity.flow.start = isStart;
    activity.linked = linked;
  }

  int64_t epoch = 0;
  std::unique_ptr<Trace> trace;
  std::vector<RunRecord> records;
  std::vector<TransferRecord> transfers;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer;
};

class ActivityProfiler final : public libkineto::IActivityProfiler {
public:
  const std::string &name() const override { return profilerName; }
  const std::set<ActivityType> &availableActivities() const override {
    return activities;
  }

  std::unique_ptr<libkineto::IActivityProfilerSession>
  configure(const std::set<ActivityType> &wanted,
            const libkineto::Config &) override {
    if (!wanted.count(ActivityType::CONCURRENT_KERNEL))
      return nullptr; // only the CPU is traced
    return std::make_unique<Session>();
  }
  std::unique_ptr<libkineto::IActivityProfilerSession>
  configure(int64_t, int64_t, const std::set<ActivityType> &wanted,
            const libkineto::Config &config) override {
    return configure(wanted, config);
  }

private:
  std::string profilerName = "spyre";
  std::set<ActivityType> activities = {
      ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
      ActivityType::GPU_MEMSET, ActivityType::PRIVATEUSE1_RUNTIME};
};

REGISTER_PRIVATEUSE1_PROFILER(ActivityProfiler);

} // namespace

} // namespace spyre::pytorch
