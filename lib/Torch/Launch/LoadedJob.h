// SPDX-License-Identifier: Apache-2.0
//===- LoadedJob.h - SpyreCode on a card ------------------------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_LAUNCH_LOADEDJOB_H
#define SPYRE_LIB_TORCH_LAUNCH_LOADEDJOB_H

#include "../Profiling/Trace.h"
#include "../Storage/Storage.h"

#include "Spyre/Runtime/Launch/JobPlan.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spyre::pytorch {

/// A job in the memory of a card. Thread-safe; owned by a shared_ptr, because
/// work in a stream keeps it.
class LoadedJob : public std::enable_shared_from_this<LoadedJob> {
public:
  /// Reads and validates a folder of SpyreCode and transfers its images.
  /// Throws spyre::Error with every broken rule, c10::OutOfMemoryError.
  static std::shared_ptr<LoadedJob> load(const std::string &folder,
                                         c10::DeviceIndex index);

  using Argument = std::variant<at::Tensor, int64_t>;

  /// Queues a launch on the current stream. Throws before anything is queued if
  /// an argument is not what the job takes, or a tensor is not on its card.
  void launch(const std::vector<Argument> &given);

  const runtime::JobPlan &getPlan() const { return plan; }

private:
  LoadedJob(runtime::Job job, Card &owner)
      : owner(owner), plan(std::move(job), owner.memory),
        arguments(plan.arguments()) {}

  void execute(const runtime::Launch &launch, double enqueued,
               runtime::Stream &stream, const LaunchRecord *record);
  /// How the job finds a tensor, and the storage that it uses of it.
  std::pair<runtime::StoredTensor, c10::Storage>
  describe(const at::Tensor &tensor,
           const runtime::ArgumentInfo &argument) const;

  Card &owner;
  runtime::JobPlan plan;
  const std::vector<runtime::ArgumentInfo> arguments;
};

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_LAUNCH_LOADEDJOB_H
