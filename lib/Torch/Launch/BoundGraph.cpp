// SPDX-License-Identifier: Apache-2.0
#include "BoundGraph.h"
#include "../Card/RuntimeLog.h"
#include "../Storage/StorageFormatting.h"

#include "Spyre/Runtime/Launch/LaunchGrid.h"
#include "Spyre/Support/Environment.h"

#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <string>

namespace spyre::pytorch {

namespace {

/// A block of device memory for the time of a run.
class ScopedBlock {
public:
  ScopedBlock(runtime::DeviceMemory &memory, uint64_t bytes)
      : memory(memory), start(bytes ? memory.allocate(bytes) : 0),
        isUsed(bytes != 0) {}
  ~ScopedBlock() {
    if (isUsed)
      memory.free(start);
  }
  ScopedBlock(const ScopedBlock &) = delete;
  ScopedBlock &operator=(const ScopedBlock &) = delete;

  uint64_t address() const { return start; }

private:
  runtime::DeviceMemory &memory;
  uint64_t start;
  bool isUsed;
};

} // namespace

/// Dimensions of one element say nothing about where others are.
static std::vector<int64_t> withoutOnes(std::vector<int64_t> sizes) {
  sizes.erase(std::remove(sizes.begin(), sizes.end(), 1), sizes.end());
  return sizes;
}

static bool isStoredAs(const runtime::ArgumentInfo &argument,
                       const StorageFormat &format, BoundGraph::Match match) {
  if (match == BoundGraph::Match::Everything)
    return runtime::isStoredAs(argument, format.dtype, format.sizes,
                               format.strides, format.layout);
  return argument.layout && argument.layout->format == format.layout.format &&
         withoutOnes(argument.layout->deviceSize) ==
             withoutOnes(format.layout.deviceSize);
}

void BoundGraph::run(const std::vector<at::Tensor> &inputs,
                     const std::vector<at::Tensor> &outputs,
                     const std::vector<int64_t> &shifts) {
  const std::vector<runtime::ArgumentInfo> &arguments =
      graph.program->arguments();
  size_t expected = inputs.size() + outputs.size() + (graph.poolBytes != 0);
  TORCH_CHECK_VALUE(outputs.size() == graph.outputs.size() &&
                        arguments.size() == expected,
                    "the program takes ", arguments.size(), " arguments with ",
                    graph.outputs.size(), " outputs, but was given ",
                    inputs.size(), " inputs and ", outputs.size(), " outputs");
  TORCH_CHECK_VALUE(shifts.empty() || shifts.size() == inputs.size(),
                    "expected one shift per input, found ", shifts.size(),
                    " for ", inputs.size());
  std::vector<c10::Storage> storages;
  c10::DeviceIndex index = -1;
  auto addTensor = [&](const at::Tensor &tensor) {
    SpyreStorageImpl &storage = formattedStorage(tensor);
    TORCH_CHECK_VALUE(index < 0 || storage.deviceIndex() == index,
                      "a compiled graph runs on one card, found tensors on "
                      "spyre:",
                      static_cast<int>(index),
                      " and spyre:", static_cast<int>(storage.deviceIndex()));
    index = storage.deviceIndex();
    const runtime::ArgumentInfo &argument = arguments[storages.size()];
    const StorageFormat &format = *storage.format;
    TORCH_CHECK_VALUE(
        isStoredAs(argument, format, match), "argument '", argument.name,
        "' was compiled for another layout than ", format.layout.str(),
        " of a ", c10::IntArrayRef(format.sizes), " ", toString(format.dtype),
        " tensor", argument.layout ? ": " + argument.layout->str() : "");
    storages.push_back(tensor.storage());
  };
  for (const at::Tensor &tensor : inputs)
    addTensor(tensor);
  for (const at::Tensor &tensor : outputs)
    addTensor(tensor);
  launch(index < 0 ? currentDevice() : index, std::move(storages), shifts);
}

static SpyreStorageImpl &implOf(const c10::Storage &storage) {
  return asSpyreStorage(*storage.unsafeGetStorageImpl());
}

bool isLaunchBlocking() {
  static const bool isSet = environment::launchBlocking();
  return isSet;
}

std::shared_ptr<const std::vector<c10::Storage>>
holdStorages(const std::vector<c10::Storage> &storages) {
  auto state = c10::ThreadLocalDebugInfo::current();
  if (!state)
    return std::make_shared<const std::vector<c10::Storage>>(storages);
  return std::shared_ptr<const std::vector<c10::Storage>>(
      new std::vector<c10::Storage>(storages),
      [state](const std::vector<c10::Storage> *held) {
        auto previous = c10::ThreadLocalDebugInfo::current();
        c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(state);
        delete held;
        c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(previous);
      });
}

void BoundGraph::launch(c10::DeviceIndex index,
                        std::vector<c10::Storage> storages,
                        const std::vector<int64_t> &shifts,
                        std::atomic<int64_t> *traffic) {
  Card &owner = card(index);
  c10::StreamId streamId = currentStream(index);
  runtime::Stream &stream = owner.stream(streamId);
  std::shared_ptr<LaunchRecord> record;
  if (isTracing())
    record = std::make_shared<LaunchRecord>(beginLaunch(index, streamId));
  std::vector<int64_t> addresses;
  addresses.reserve(storages.size() + 1);
  for (const c10::Storage &storage : storages)
    addresses.push_back(implOf(storage).elementAddress());
  for (size_t i = 0; i < shifts.size(); ++i)
    addresses[i] += shifts[i];
  if (isRuntimeLogged())
    logRuntime("spyre:" + std::to_string(index) + " stream " +
               std::to_string(streamId) + ": launch of " +
               graph.cacheKey.substr(0, 12) + " with " +
               std::to_string(storages.size()) + " arguments");
  {
    std::lock_guard<std::mutex> lock(mutex);
    ++numQueued;
  }
  // The work holds the storages: nothing is freed before it has run.
  auto held = holdStorages(storages);
  auto self = shared_from_this();
  double enqueued = runtime::hostSeconds();
  std::shared_ptr<void> queued(nullptr, [self](void *) { self->finish(); });
  if (record)
    record->end = runtime::hostSeconds();
  auto work = [self, held, queued, &owner, addresses = std::move(addresses),
               enqueued, traffic,
               record](runtime::Stream &stream) -> runtime::FailureRef {
    size_t numInputs = self->graph.argumentNames.size();
    for (size_t i = 0; i < std::min(numInputs, held->size()); ++i)
      if (runtime::FailureRef why = implOf((*held)[i]).failure())
        return why;
    self->execute(owner, addresses, enqueued, stream, traffic, record.get());
    return nullptr;
  };
  auto dropped = [self, held](const runtime::FailureRef &why) {
    const std::vector<runtime::ArgumentInfo> &arguments =
        self->graph.program->arguments();
    for (size_t i = 0; i < held->size(); ++i)
      if (arguments[i].mayBeWritten)
        implOf((*held)[i]).setFailure(why);
  };
  uint64_t number = stream.submit(std::move(work), std::move(dropped));
  held.reset();
  queued.reset();
  for (const c10::Storage &storage : storages)
    implOf(storage).addUse(stream, number);
  if (isLaunchBlocking())
    withoutGIL([&] { stream.synchronize(); });
}

void BoundGraph::finish() {
  std::lock_guard<std::mutex> lock(mutex);
  --numQueued;
  finished.notify_all();
}

void BoundGraph::execute(Card &card, std::vector<int64_t> arguments,
                         double enqueued, runtime::Stream &stream,
                         std::atomic<int64_t> *traffic,
                         const LaunchRecord *launch) {
  // A card runs one program at a time: cores and LX are shared.
  std::lock_guard<std::mutex> busy(card.executionMutex);
  ScopedBlock pool(card.memory, graph.poolBytes);
  if (graph.poolBytes != 0)
    arguments.push_back(static_cast<int64_t>(pool.address()));
  runtime::RunOptions options;
  options.report = !hasReport;
  runtime::RunReport result =
      graph.program->run(card.memory, arguments, options);
  if (options.report) {
    std::lock_guard<std::mutex> lock(mutex);
    trafficInBytes = static_cast<int64_t>(result.deviceBytesRead +
                                          result.deviceBytesWritten);
    firstReport = std::make_shared<const runtime::RunReport>(std::move(result));
    hasReport = true;
  }
  if (traffic)
    *traffic += trafficInBytes;
  double start =
      stream.occupy(enqueued, graph.program->predictedSeconds()).first;
  if (launch) {
    std::lock_guard<std::mutex> lock(mutex);
    recordRun({*launch, start, firstReport});
  }
}

runtime::RunReport BoundGraph::report() const {
  runtime::RunReport result;
  withoutGIL([&] {
    std::unique_lock<std::mutex> lock(mutex);
    finished.wait(lock, [&] { return numQueued == 0; });
    if (firstReport)
      result = *firstReport;
  });
  return result;
}

} // namespace spyre::pytorch
