// SPDX-License-Identifier: Apache-2.0
//===- BoundGraph.h - Compiled graphs that run on spyre storages -*- C++
//-*-===//

#ifndef SPYRE_LIB_TORCH_BOUNDGRAPH_H
#define SPYRE_LIB_TORCH_BOUNDGRAPH_H

#include "Storage.h"

#include "Spyre/Compiler/Compiler.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace spyre::device {

/// A compiled graph and the report of its first run. Thread-safe.
class BoundGraph {
public:
  explicit BoundGraph(CompiledGraph graph) : graph(std::move(graph)) {}

  const CompiledGraph graph;

  /// Runs on the storages under the tensors: inputs are one per argument of
  /// the graph, outputs one per output root. Throws if the numbers differ,
  /// cards meet, or a storage is not stored as the program expects.
  void run(const std::vector<at::Tensor> &inputs,
           const std::vector<at::Tensor> &outputs);

  /// The same for a caller that has resolved the arguments but for the pool:
  /// the device addresses of the storages in units of their elements.
  void run(Card &card, std::vector<int64_t> arguments);

  /// What the first run cost on the device model; empty before it.
  runtime::RunReport report() const;

  /// Bytes of device memory that a run reads and writes; 0 before the first.
  uint64_t trafficInBytes() const { return traffic; }

private:
  mutable std::mutex mutex;
  std::atomic<bool> hasReport = false;
  std::atomic<uint64_t> traffic = 0;
  runtime::RunReport firstReport;
};

} // namespace spyre::device

#endif // SPYRE_LIB_TORCH_BOUNDGRAPH_H
