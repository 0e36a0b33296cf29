// SPDX-License-Identifier: Apache-2.0
#include "BoundGraph.h"

namespace spyre::device {

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

/// Whether a storage is stored as the program expects its argument to be. What
/// a dimension of extent 1 is multiplied by does not matter.
bool isStoredAs(const StorageFormat &format,
                const runtime::ArgumentInfo &argument) {
  auto stridesAgree = [](const std::vector<int64_t> &extents,
                         const std::vector<int64_t> &a,
                         const std::vector<int64_t> &b) {
    for (size_t dim = 0; dim < extents.size(); ++dim)
      if (extents[dim] > 1 && a[dim] != b[dim])
        return false;
    return true;
  };
  if (!argument.layout || argument.dtype != format.dtype ||
      argument.shape != format.sizes ||
      !stridesAgree(argument.shape, argument.strides, format.strides))
    return false;
  const TensorLayout &expected = *argument.layout;
  return expected.format == format.layout.format &&
         expected.arrangement == format.layout.arrangement &&
         expected.deviceSize == format.layout.deviceSize &&
         stridesAgree(expected.deviceSize, expected.strideMap,
                      format.layout.strideMap);
}

} // namespace

void BoundGraph::run(const std::vector<at::Tensor> &inputs,
                     const std::vector<at::Tensor> &outputs) {
  const std::vector<runtime::ArgumentInfo> &arguments =
      graph.program->arguments();
  size_t expected = inputs.size() + outputs.size() + (graph.poolBytes != 0);
  TORCH_CHECK_VALUE(outputs.size() == graph.outputs.size() &&
                        arguments.size() == expected,
                    "the program takes ", arguments.size(), " arguments with ",
                    graph.outputs.size(), " outputs, but was given ",
                    inputs.size(), " inputs and ", outputs.size(), " outputs");
  std::vector<int64_t> values;
  c10::DeviceIndex index = -1;
  auto addTensor = [&](const at::Tensor &tensor) {
    SpyreStorageImpl &storage = formattedStorage(tensor);
    TORCH_CHECK_VALUE(index < 0 || storage.deviceIndex() == index,
                      "tensors on spyre:", static_cast<int>(index),
                      " and spyre:", static_cast<int>(storage.deviceIndex()),
                      " meet in one compiled graph");
    index = storage.deviceIndex();
    const runtime::ArgumentInfo &argument = arguments[values.size()];
    TORCH_CHECK_VALUE(isStoredAs(*storage.format, argument), "argument '",
                      argument.name, "' was compiled for another layout than ",
                      storage.format->layout.str(), " of a ",
                      c10::IntArrayRef(storage.format->sizes), " ",
                      toString(storage.format->dtype), " tensor");
    values.push_back(storage.elementAddress());
  };
  for (const at::Tensor &tensor : inputs)
    addTensor(tensor);
  for (const at::Tensor &tensor : outputs)
    addTensor(tensor);
  run(card(index < 0 ? currentDevice() : index), std::move(values));
}

void BoundGraph::run(Card &card, std::vector<int64_t> arguments) {
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
    traffic = result.deviceBytesRead + result.deviceBytesWritten;
    firstReport = std::move(result);
    hasReport = true;
  }
}

runtime::RunReport BoundGraph::report() const {
  std::lock_guard<std::mutex> lock(mutex);
  return firstReport;
}

} // namespace spyre::device
