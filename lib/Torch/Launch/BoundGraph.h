// SPDX-License-Identifier: Apache-2.0
//===- BoundGraph.h - Compiled graphs run on spyre storages -----*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_LAUNCH_BOUNDGRAPH_H
#define SPYRE_LIB_TORCH_LAUNCH_BOUNDGRAPH_H

#include "../Profiling/Trace.h"
#include "../Storage/Storage.h"
#include "../Storage/ViewShift.h"

#include "Spyre/Compiler/Compiler.h"
#include "Spyre/Runtime/Launch/SizedPredictions.h"

#include <atomic>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

namespace spyre::pytorch {

/// A result as a view of an output root, or of argument -1 - root.
struct ResultView {
  int root = 0;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;

  ResultView(const OutputInfo &info, const std::vector<int64_t> &sizes)
      : root(info.root), sizes(info.sizes.at(sizes)),
        strides(info.strides.at(sizes)), offset(info.offset.at(sizes)) {}
  /// The view of its root.
  at::Tensor of(const at::Tensor &tensor) const;
};

/// What grows in a run.
struct Growth {
  struct Entry {
    size_t number, dim;
  };
  /// Arguments that are grown tensors: the input has the first rows along
  /// `dim`, and the program writes the others. Without room in its layout, the
  /// argument is as growRows() makes it.
  std::vector<Entry> arguments;
  /// Output roots that hold an argument and more rows along `dim`: the next
  /// call may grow them, unless their sticks run along it.
  std::vector<Entry> outputs;
  /// Arguments that have not been grown so: for others there is a better
  /// program.
  std::vector<Entry> fresh;
  /// Arguments whose storages have the room that the program's have.
  std::vector<size_t> roomy;
};

/// A compiled graph and the report of its first run. Thread-safe; owned by a
/// shared_ptr, because work in a stream keeps it.
class BoundGraph : public std::enable_shared_from_this<BoundGraph> {
public:
  /// What of a storage has to be what the program was made for.
  enum class Match {
    Everything,  ///< host dtype, sizes, strides and layout
    DeviceLayout ///< the device's sizes, but for ones, and format
  };

  explicit BoundGraph(CompiledGraph graph, Match match = Match::Everything)
      : graph(std::move(graph)), match(match) {}

  const CompiledGraph graph;
  const Match match;

  /// Queues a run on the current stream, on the storages under the tensors:
  /// inputs are one per argument of the graph, outputs one per output root.
  /// Throws if the numbers differ, cards meet, or a storage is not stored as
  /// the program expects. `shifts`, empty or one per input, are added to the
  /// addresses of the inputs (ViewShift::deviceElements). `sizes` are those of
  /// the graph's symbols, in order. `grown` as in launch(), with tensors on the
  /// other storages.
  void run(const std::vector<at::Tensor> &inputs,
           const std::vector<at::Tensor> &outputs,
           const std::vector<int64_t> &shifts = {},
           const std::vector<int64_t> &sizes = {},
           const std::vector<std::pair<size_t, at::Tensor>> &grown = {});

  /// As above, for a caller that has checked the storages: one per argument
  /// except the pool. `traffic`, which must outlive the work, grows
  /// by the bytes of device memory that the run reads and writes. `grown` are
  /// storages that have grown from others: argument, and the other storage.
  void launch(c10::DeviceIndex index, std::vector<c10::Storage> storages,
              const std::vector<int64_t> &shifts = {},
              std::atomic<int64_t> *traffic = nullptr,
              const std::vector<int64_t> &sizes = {},
              const std::vector<std::pair<size_t, c10::Storage>> &grown = {});

  /// Whether the storages under the inputs are what the program takes where its
  /// symbols have these sizes: each one another, on one card.
  bool takes(const std::vector<at::Tensor> &inputs,
             const std::vector<int64_t> &sizes,
             const Growth &growth = {}) const;

  /// How the output roots are stored where the symbols have these sizes.
  std::vector<StorageFormat> outputsAt(const std::vector<int64_t> &sizes) const;

  /// Makes the output roots for these sizes, grows arguments, runs, and returns
  /// the results. The program must take the inputs. `shifts`, one per input,
  /// say how far what it accesses of each has moved.
  std::vector<at::Tensor> call(std::vector<at::Tensor> inputs,
                               const std::vector<OutputInfo> &results,
                               const std::vector<int64_t> &sizes,
                               const Growth &growth,
                               const std::vector<ViewShift> &shifts);

  /// The report of the first run on the device model; empty before it. Waits
  /// for the runs that are queued.
  runtime::RunReport report() const;

private:
  /// One queued run less.
  void finish();
  /// Whether a run takes no longer than to have another thread do it, and the
  /// card is free for it.
  bool isShort(Card &card, const std::vector<int64_t> &sizes) const;
  /// Keeps what the host took for a run.
  void measure(const std::vector<int64_t> &sizes, double seconds);
  void execute(Card &card, std::vector<int64_t> arguments, double enqueued,
               runtime::Stream &stream, std::atomic<int64_t> *traffic,
               const LaunchRecord *launch);
  /// Whether an input can become an argument that has grown row by row.
  bool canGrowInto(size_t argument, const at::Tensor &input, size_t dim,
                   const std::vector<int64_t> &sizes) const;
  bool isStoredFor(size_t argument, const StorageFormat &format,
                   const std::vector<int64_t> &sizes,
                   std::optional<size_t> growsAlong = std::nullopt) const;

  mutable std::mutex mutex;
  mutable std::condition_variable finished;
  int numQueued = 0;
  std::shared_ptr<const runtime::RunReport> firstReport;
  runtime::SizedPredictions predictions;
  /// Of the host, for a run; of those at once on several cards, any.
  std::atomic<double> runSeconds = std::numeric_limits<double>::infinity();
  /// Of a program for many sizes: the largest sizes at which a run was short.
  /// Guarded by the mutex.
  std::vector<int64_t> shortSizes;
};

/// SPYRE_LAUNCH_BLOCKING=1: every launch waits, errors appear where they occur.
bool isLaunchBlocking();

/// Keeps storages until the last copy of the pointer is gone. The stream's
/// thread may be the one that frees them: a profiler of the launching thread
/// is to see that.
std::shared_ptr<const std::vector<c10::Storage>>
holdStorages(const std::vector<c10::Storage> &storages);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_LAUNCH_BOUNDGRAPH_H
