// SPDX-License-Identifier: Apache-2.0
#include "BoundGraph.h"
#include "../Python/Interpreter.h"
#include "../Python/RuntimeLog.h"
#include "../Storage/StorageFormatting.h"
#include "Growth.h"

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

at::Tensor ResultView::of(const at::Tensor &tensor) const {
  bool isWhole = offset == 0 && tensor.sizes() == c10::IntArrayRef(sizes) &&
                 tensor.strides() == c10::IntArrayRef(strides);
  return isWhole ? tensor : tensor.as_strided(sizes, strides, offset);
}

/// Throws if a size is none that the program is for.
static void checkSizes(const CompiledGraph &graph,
                       const std::vector<int64_t> &sizes) {
  const std::vector<runtime::ArgumentInfo> &arguments =
      graph.program->arguments();
  TORCH_CHECK_VALUE(sizes.size() == graph.numSizes, "the program takes ",
                    graph.numSizes, " sizes, but was given ", sizes.size(),
                    "; its arguments are ", runtime::listArguments(arguments));
  size_t first = arguments.size() - (graph.poolBytes != 0) - graph.numSizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::string wrong = runtime::checkSize(arguments, first + i, sizes[i]);
    TORCH_CHECK_VALUE(wrong.empty(), wrong);
  }
}

bool BoundGraph::isStoredFor(size_t argument, const StorageFormat &format,
                             const std::vector<int64_t> &sizes,
                             std::optional<size_t> growsAlong) const {
  const runtime::ArgumentInfo &info = graph.program->arguments()[argument];
  if (info.sizes.empty())
    return isStoredAs(info, format, match);
  runtime::ArrayStorage expected = info.storageAt(sizes);
  if (growsAlong) {
    size_t dim = *growsAlong;
    if (!format.room || format.room->dim != dim || format.sizes.size() <= dim ||
        format.sizes[dim] >= expected.shape[dim])
      return false;
    std::vector<int64_t> shape = expected.shape;
    shape[dim] = format.sizes[dim];
    expected = info.storageOf(std::move(shape));
  }
  return info.dtype == format.dtype &&
         runtime::isStoredAs(expected, format.sizes, format.strides,
                             info.hasRoom ? format.tightLayout()
                                          : format.layout);
}

/// An argument's sizes where the symbols have these.
static std::vector<int64_t> shapeAt(const runtime::ArgumentInfo &argument,
                                    const std::vector<int64_t> &sizes) {
  return argument.sizes.empty() ? argument.shape
                                : argument.storageAt(sizes).shape;
}

bool BoundGraph::canGrowInto(size_t argument, const at::Tensor &input,
                             size_t dim,
                             const std::vector<int64_t> &sizes) const {
  if (!firstGrowingRow(input, dim))
    return false;
  const runtime::ArgumentInfo &info = graph.program->arguments()[argument];
  std::vector<int64_t> shape = shapeAt(info, sizes);
  if (info.dtype != storageOf(input).format->dtype ||
      shape.size() != input.sizes().size() || shape[dim] <= input.sizes()[dim])
    return false;
  shape[dim] = input.sizes()[dim];
  return input.sizes() == c10::IntArrayRef(shape);
}

void BoundGraph::run(const std::vector<at::Tensor> &inputs,
                     const std::vector<at::Tensor> &outputs,
                     const std::vector<int64_t> &shifts,
                     const std::vector<int64_t> &sizes,
                     const std::vector<std::pair<size_t, at::Tensor>> &grown) {
  const std::vector<runtime::ArgumentInfo> &arguments =
      graph.program->arguments();
  checkSizes(graph, sizes);
  size_t expected =
      inputs.size() + outputs.size() + sizes.size() + (graph.poolBytes != 0);
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
    c10::Storage stored = tensor.storage();
    std::optional<StorageFormat> tight;
    if (storage.format->room &&
        !isStoredFor(storages.size(), *storage.format, sizes)) {
      tight = storage.format->withoutRoom();
      stored = storageWithoutRoom(tensor, argument.mayBeWritten);
    }
    const StorageFormat &format = tight ? *tight : *storage.format;
    bool isStored = isStoredFor(storages.size(), format, sizes);
    TORCH_CHECK_VALUE(isStored || argument.sizes.empty() ||
                          format.sizes == shapeAt(argument, sizes),
                      "argument '", argument.name, "' is of ",
                      c10::IntArrayRef(shapeAt(argument, sizes)), " where ",
                      runtime::listSizes(arguments, sizes),
                      ", but was given a tensor of ",
                      c10::IntArrayRef(format.sizes));
    TORCH_CHECK_VALUE(
        isStored, "argument '", argument.name,
        "' was compiled for another layout than ", format.layout.str(),
        " of a ", c10::IntArrayRef(format.sizes), " ", toString(format.dtype),
        " tensor", argument.layout ? ": " + argument.layout->str() : "");
    storages.push_back(std::move(stored));
  };
  for (const at::Tensor &tensor : inputs)
    addTensor(tensor);
  for (const at::Tensor &tensor : outputs)
    addTensor(tensor);
  std::vector<std::pair<size_t, c10::Storage>> sources;
  for (const auto &[argument, source] : grown)
    sources.emplace_back(argument, source.storage());
  launch(index < 0 ? currentDevice() : index, std::move(storages), shifts,
         nullptr, sizes, sources);
}

/// Whether a storage has the room that the program's argument has.
static bool hasRoomOf(const runtime::ArgumentInfo &argument,
                      const StorageFormat &format) {
  return format.room && format.layout.deviceSize == argument.layout->deviceSize;
}

/// The dimension along which an argument grows, if it does.
static std::optional<size_t> growsAlong(size_t argument, const Growth &growth) {
  for (auto [number, dim] : growth.arguments)
    if (number == argument)
      return dim;
  return std::nullopt;
}

bool BoundGraph::takes(const std::vector<at::Tensor> &inputs,
                       const std::vector<int64_t> &sizes,
                       const Growth &growth) const {
  if (inputs.size() != graph.argumentNames.size() ||
      sizes.size() != graph.numSizes)
    return false;
  const std::vector<runtime::ArgumentInfo> &arguments =
      graph.program->arguments();
  size_t first = arguments.size() - (graph.poolBytes != 0) - graph.numSizes;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!arguments[first + i].takesSize(sizes[i]))
      return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const SpyreStorageImpl &storage = storageOf(inputs[i]);
    std::optional<size_t> dim = growsAlong(i, growth);
    if (!storage.format ||
        !(dim && !arguments[i].hasRoom
              ? canGrowInto(i, inputs[i], *dim, sizes)
              : isStoredFor(i, *storage.format, sizes, dim)) ||
        storage.deviceIndex() != storageOf(inputs[0]).deviceIndex())
      return false;
  }
  auto formatOf = [&](size_t argument) -> const StorageFormat & {
    return *storageOf(inputs[argument]).format;
  };
  for (auto [number, dim] : growth.fresh)
    if (const auto &room = formatOf(number).room; room && room->dim == dim)
      return false;
  for (size_t number : growth.roomy)
    if (!hasRoomOf(arguments[number], formatOf(number)))
      return false;
  return true;
}

std::vector<StorageFormat>
BoundGraph::outputsAt(const std::vector<int64_t> &sizes) const {
  std::vector<StorageFormat> formats;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const runtime::ArgumentInfo &argument =
        graph.program->arguments()[graph.argumentNames.size() + i];
    runtime::ArrayStorage storage = argument.storageAt(sizes);
    formats.push_back({argument.dtype, std::move(storage.shape),
                       std::move(storage.strides), std::move(storage.layout),
                       /*room=*/{}});
  }
  return formats;
}

/// What a run uses of an array that has room for more: a tensor's sizes.
static at::Tensor usedPart(const at::Tensor &room, const at::Tensor &tensor) {
  return room.as_strided(tensor.sizes(), room.strides(), 0);
}

/// An array of the largest sizes.
static at::Tensor makeRoom(const runtime::ArgumentInfo &argument,
                           c10::DeviceIndex index) {
  return makeTensor(StorageFormat{argument.dtype, argument.shape,
                                  argument.strides, *argument.layout,
                                  /*room=*/{}},
                    index);
}

/// How a grown argument is stored: as in the program, with a home of its own.
static StorageFormat grownFormat(const runtime::ArgumentInfo &argument,
                                 size_t dim,
                                 const std::vector<int64_t> &sizes) {
  runtime::ArrayStorage tight = argument.storageAt(sizes);
  TensorLayout layout = tight.layout;
  layout.deviceSize = argument.layout->deviceSize;
  // The rows of a single stick have no steps from stick to stick.
  for (size_t d = 0; d < layout.deviceSize.size(); ++d)
    if (tight.layout.deviceSize[d] == 1 && layout.deviceSize[d] != 1)
      layout.strideMap[d] = -1;
  return {argument.dtype, std::move(tight.shape), std::move(tight.strides),
          std::move(layout),
          StorageFormat::Room{dim, argument.shape[dim], tight.layout}};
}

std::vector<at::Tensor> BoundGraph::call(std::vector<at::Tensor> inputs,
                                         const std::vector<OutputInfo> &results,
                                         const std::vector<int64_t> &sizes,
                                         const Growth &growth,
                                         const std::vector<ViewShift> &shifts) {
  c10::DeviceIndex index =
      inputs.empty() ? currentDevice() : storageOf(inputs[0]).deviceIndex();
  const std::vector<runtime::ArgumentInfo> &arguments =
      graph.program->arguments();
  std::vector<c10::Storage> storages;
  /// Arrays with room that a run writes, and the tensors that take it over.
  std::vector<std::pair<at::Tensor, at::Tensor>> rooms;
  auto addArgument = [&](const at::Tensor &tensor, bool isInput) {
    const runtime::ArgumentInfo &argument = arguments[storages.size()];
    storages.push_back(tensor.storage());
    if (!argument.hasRoom)
      return;
    at::Tensor home = homeOf(tensor);
    if (home.sizes() == c10::IntArrayRef(argument.shape) ||
        hasRoomOf(argument, *storageOf(tensor).format))
      return;
    at::Tensor room = makeRoom(argument, index);
    storages.back() = room.storage();
    if (isInput)
      usedPart(room, home).copy_(home);
    if (argument.mayBeWritten)
      rooms.emplace_back(room, home);
  };
  std::vector<std::pair<size_t, c10::Storage>> grown;
  for (auto [number, dim] : growth.arguments) {
    const runtime::ArgumentInfo &argument = arguments[number];
    grown.emplace_back(number, inputs[number].storage());
    if (argument.hasRoom) {
      inputs[number] =
          grow(homeOf(inputs[number]), grownFormat(argument, dim, sizes));
      continue;
    }
    inputs[number] =
        growAndCopyRows(inputs[number], dim, shapeAt(argument, sizes)[dim]);
    TORCH_CHECK(isStoredFor(number, *storageOf(inputs[number]).format, sizes),
                "argument '", argument.name,
                "' was compiled for another layout than what has grown: ",
                storageOf(inputs[number]).format->layout.str());
  }
  for (const at::Tensor &input : inputs)
    addArgument(input, true);
  std::vector<at::Tensor> roots;
  for (const StorageFormat &format : outputsAt(sizes)) {
    roots.push_back(makeTensor(format, index));
    addArgument(roots.back(), false);
  }
  for (auto [number, dim] : growth.outputs)
    letGrow(storageOf(roots[number]), dim);
  std::vector<int64_t> moved;
  for (const ViewShift &shift : shifts)
    moved.push_back(shift.deviceElements);
  launch(index, std::move(storages), moved, nullptr, sizes, grown);
  for (const auto &[room, tensor] : rooms)
    tensor.copy_(usedPart(room, tensor));
  std::vector<at::Tensor> tensors;
  for (const OutputInfo &info : results) {
    ResultView view(info, sizes);
    if (view.root < 0)
      view.offset += shifts[-1 - view.root].hostElements;
    tensors.push_back(
        view.of(view.root >= 0 ? roots[view.root] : inputs[-1 - view.root]));
  }
  return tensors;
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

void BoundGraph::launch(
    c10::DeviceIndex index, std::vector<c10::Storage> storages,
    const std::vector<int64_t> &shifts, std::atomic<int64_t> *traffic,
    const std::vector<int64_t> &sizes,
    const std::vector<std::pair<size_t, c10::Storage>> &grown) {
  Card &owner = card(index);
  c10::StreamId streamId = currentStream(index);
  runtime::Stream &stream = owner.stream(streamId);
  std::shared_ptr<LaunchRecord> record;
  if (isTracing())
    record = std::make_shared<LaunchRecord>(beginLaunch(index, streamId));
  std::shared_ptr<const std::vector<c10::Storage>> sources;
  if (!grown.empty()) {
    std::vector<c10::Storage> others;
    for (const auto &[argument, source] : grown)
      others.push_back(source);
    sources = holdStorages(others);
  }
  size_t numInputs = std::min(graph.argumentNames.size(), storages.size());
  for (size_t i = 0; i < numInputs; ++i)
    if (graph.program->arguments()[i].mayBeWritten &&
        std::none_of(grown.begin(), grown.end(),
                     [&](const auto &entry) { return entry.first == i; }))
      asSpyreStorage(storages[i]).ownMemory();
  for (size_t i = 0; i < storages.size(); ++i)
    asSpyreStorage(storages[i])
        .beginUse(stream, graph.program->arguments()[i].mayBeWritten);
  for (const auto &[argument, source] : grown)
    asSpyreStorage(source).beginUse(stream, /*isWritten=*/false);
  std::vector<int64_t> addresses;
  addresses.reserve(storages.size() + sizes.size() + 1);
  for (const c10::Storage &storage : storages)
    addresses.push_back(asSpyreStorage(storage).elementAddress());
  for (size_t i = 0; i < shifts.size(); ++i)
    addresses[i] += shifts[i];
  addresses.insert(addresses.end(), sizes.begin(), sizes.end());
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
               enqueued, traffic, numInputs, sources = std::move(sources),
               record](runtime::Stream &stream) -> runtime::FailureRef {
    for (size_t i = 0; i < numInputs; ++i)
      if (runtime::FailureRef why = asSpyreStorage((*held)[i]).failure())
        return why;
    if (sources)
      for (const c10::Storage &source : *sources)
        if (runtime::FailureRef why = asSpyreStorage(source).failure())
          return why;
    self->execute(owner, addresses, enqueued, stream, traffic, record.get());
    return nullptr;
  };
  auto dropped = [self, held](const runtime::FailureRef &why) {
    const std::vector<runtime::ArgumentInfo> &arguments =
        self->graph.program->arguments();
    for (size_t i = 0; i < held->size(); ++i)
      if (arguments[i].mayBeWritten)
        asSpyreStorage((*held)[i]).setFailure(why);
  };
  uint64_t number =
      isShort(owner, sizes)
          ? stream.submitShort(std::move(work), std::move(dropped))
          : stream.submit(std::move(work), std::move(dropped));
  held.reset();
  queued.reset();
  for (size_t i = 0; i < storages.size(); ++i)
    asSpyreStorage(storages[i])
        .addUse(stream, number, graph.program->arguments()[i].mayBeWritten);
  if (isLaunchBlocking())
    withoutGIL([&] { stream.synchronize(); });
}

/// Handing work to another thread takes about as long, in seconds.
static constexpr double kShortRun = 10e-6;

/// Whether no size is larger than the other one of its symbol.
static bool areWithin(const std::vector<int64_t> &sizes,
                      const std::vector<int64_t> &others) {
  return sizes.size() == others.size() &&
         std::equal(sizes.begin(), sizes.end(), others.begin(),
                    [](int64_t size, int64_t other) { return size <= other; });
}

bool BoundGraph::isShort(Card &card, const std::vector<int64_t> &sizes) const {
  if (sizes.empty() && runSeconds > kShortRun)
    return false;
  // What runs on the card now may take long.
  std::unique_lock<std::mutex> free(card.executionMutex, std::try_to_lock);
  if (!free.owns_lock() || sizes.empty())
    return free.owns_lock();
  std::lock_guard<std::mutex> lock(mutex);
  return areWithin(sizes, shortSizes);
}

void BoundGraph::measure(const std::vector<int64_t> &sizes, double seconds) {
  if (sizes.empty()) {
    // A run that the host has interrupted is no measure for the next one.
    runSeconds = std::min(seconds, 2 * runSeconds);
    return;
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (seconds <= kShortRun) {
    if (shortSizes.empty() || areWithin(shortSizes, sizes))
      shortSizes = sizes;
  } else if (areWithin(sizes, shortSizes)) {
    shortSizes.clear();
  }
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
  std::vector<int64_t> sizes(arguments.end() - graph.numSizes, arguments.end());
  ScopedBlock pool(card.memory, graph.poolBytes);
  if (graph.poolBytes != 0)
    arguments.push_back(static_cast<int64_t>(pool.address()));
  std::optional<runtime::Prediction> prediction = predictions.find(sizes);
  runtime::RunOptions options;
  // A trace has the kernels of just these sizes.
  options.report = !prediction || (launch && !sizes.empty());
  runtime::RunReport result =
      graph.program->run(card.memory, arguments, options);
  measure(sizes, result.host.wallSeconds);
  std::shared_ptr<const runtime::RunReport> report;
  if (options.report) {
    prediction =
        runtime::Prediction{result.predictedSeconds,
                            static_cast<double>(result.deviceBytesRead +
                                                result.deviceBytesWritten)};
    predictions.add(sizes, *prediction);
    report = std::make_shared<const runtime::RunReport>(std::move(result));
    std::lock_guard<std::mutex> lock(mutex);
    if (!firstReport)
      firstReport = report;
  }
  if (traffic)
    *traffic += static_cast<int64_t>(prediction->bytes);
  double start = stream.occupy(enqueued, prediction->seconds).first;
  if (launch) {
    std::lock_guard<std::mutex> lock(mutex);
    recordRun({*launch, start, report ? report : firstReport});
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
