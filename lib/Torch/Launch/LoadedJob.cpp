// SPDX-License-Identifier: Apache-2.0
#include "LoadedJob.h"
#include "../Python/Interpreter.h"
#include "../Storage/StorageFormatting.h"
#include "BoundGraph.h"
#include "Growth.h"

#include "Spyre/Target/SpyreCode/SpyreCode.h"

#include <filesystem>
#include <tuple>

namespace spyre::pytorch {

std::shared_ptr<LoadedJob> LoadedJob::load(const std::string &folder,
                                           c10::DeviceIndex index) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw Error((std::filesystem::exists(folder, ignored)
                     ? "SpyreCode is a directory, but this is none: '"
                     : "SpyreCode directory does not exist: '") +
                folder + "'");
  if (!spyrecode::isSpyreCode(folder))
    throw Error(std::string(spyrecode::kCodeFile) + " not found in '" + folder +
                "'");
  superdsc::Report report;
  std::optional<runtime::Job> job = spyrecode::loadSpyreCode(folder, report);
  if (!job)
    throw Error("'" + folder + "' is not valid SpyreCode:\n" + report.toText());
  try {
    return std::shared_ptr<LoadedJob>(
        new LoadedJob(std::move(*job), card(index)));
  } catch (const runtime::OutOfMemory &error) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "spyre:", static_cast<int>(index),
                     ": ", error.what());
  }
}

std::pair<runtime::StoredTensor, c10::Storage>
LoadedJob::describe(const at::Tensor &tensor,
                    const runtime::ArgumentInfo &argument) const {
  const std::string &name = argument.name;
  c10::Device device(kSpyre, owner.index());
  TORCH_CHECK_VALUE(tensor.device() == device, "argument '", name, "' is on ",
                    tensor.device(), ", the job is on ", device);
  SpyreStorageImpl &storage = formattedStorage(tensor);
  TORCH_CHECK_VALUE(isNative(tensor) && isWholeHome(tensor), "argument '", name,
                    "' is a view of a part of its storage; a job takes whole "
                    "storages, so pass a copy");
  StorageFormat format = storage.format->withoutRoom();
  c10::Storage stored = storageWithoutRoom(tensor, argument.mayBeWritten);
  if (argument.mayBeWritten)
    storage.ownMemory();
  uint64_t address = asSpyreStorage(stored).deviceAddress();
  return {{format.dtype, std::move(format.sizes), std::move(format.strides),
           std::move(format.layout), address},
          std::move(stored)};
}

void LoadedJob::launch(const std::vector<Argument> &given) {
  runtime::checkArgumentCount(arguments, given.size());
  std::vector<runtime::LaunchArgument> described;
  std::vector<c10::Storage> storages;
  std::vector<bool> isWritten; // of `storages`
  for (size_t i = 0; i < given.size(); ++i) {
    runtime::LaunchArgument &own = described.emplace_back();
    if (const auto *value = std::get_if<int64_t>(&given[i])) {
      own.value = *value;
      continue;
    }
    const at::Tensor &tensor = std::get<at::Tensor>(given[i]);
    std::tie(own.tensor, storages.emplace_back()) =
        describe(tensor, arguments[i]);
    isWritten.push_back(arguments[i].mayBeWritten);
  }
  auto launch = std::make_shared<const runtime::Launch>(
      plan.prepare(std::move(described), runtime::allowsTiledLaunch()));

  c10::StreamId streamId = currentStream(owner.index());
  runtime::Stream &stream = owner.stream(streamId);
  for (size_t i = 0; i < storages.size(); ++i)
    asSpyreStorage(storages[i]).beginUse(stream, isWritten[i]);
  std::shared_ptr<LaunchRecord> record;
  if (isTracing())
    record =
        std::make_shared<LaunchRecord>(beginLaunch(owner.index(), streamId));
  // The work holds the storages: nothing is freed before it has run.
  auto held = holdStorages(storages);
  double enqueued = runtime::hostSeconds();
  if (record)
    record->end = enqueued;
  auto work = [self = shared_from_this(), held, launch, enqueued,
               record](runtime::Stream &stream) -> runtime::FailureRef {
    for (const c10::Storage &storage : *held)
      if (runtime::FailureRef why = asSpyreStorage(storage).failure())
        return why;
    self->execute(*launch, enqueued, stream, record.get());
    return nullptr;
  };
  auto dropped = [held, isWritten](const runtime::FailureRef &why) {
    for (size_t i = 0; i < held->size(); ++i)
      if (isWritten[i])
        asSpyreStorage((*held)[i]).setFailure(why);
  };
  uint64_t number = stream.submit(std::move(work), std::move(dropped));
  held.reset();
  for (size_t i = 0; i < storages.size(); ++i)
    asSpyreStorage(storages[i]).addUse(stream, number, isWritten[i]);
  if (isLaunchBlocking())
    withoutGIL([&] { stream.synchronize(); });
}

void LoadedJob::execute(const runtime::Launch &launch, double enqueued,
                        runtime::Stream &stream, const LaunchRecord *record) {
  // A card runs one program at a time: cores and LX are shared.
  std::lock_guard<std::mutex> busy(owner.executionMutex);
  runtime::RunOptions options;
  options.report = true;
  std::vector<runtime::RunReport> reports;
  double seconds = plan.run(launch, options, record ? &reports : nullptr);
  double start = stream.occupy(enqueued, seconds).first;
  for (runtime::RunReport &report : reports) {
    auto shared = std::make_shared<const runtime::RunReport>(std::move(report));
    recordRun({*record, start, shared});
    start += shared->predictedSeconds;
  }
}

} // namespace spyre::pytorch
