// SPDX-License-Identifier: Apache-2.0
//===- SizedProgram.h - A compiled graph for many sizes ---------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_LAUNCH_SIZEDPROGRAM_H
#define SPYRE_LIB_TORCH_LAUNCH_SIZEDPROGRAM_H

#include "BoundGraph.h"

#include <memory>
#include <optional>
#include <vector>

namespace spyre::pytorch {

/// How an input lies on its storage: sizes, strides and offset in elements.
struct SizedInput {
  int argument = 0; ///< the program's argument that is its storage
  SizeList sizes, strides;
  SizeExpr offset;
  /// Whether it may lie further on in its storage by what shiftViews() says.
  /// All inputs on a storage may, or none.
  bool mayMove = false;
};

/// A compiled graph with symbols, and the tensors that it is called with.
class SizedProgram {
public:
  /// Arguments are numbered in the order of the inputs.
  SizedProgram(std::shared_ptr<BoundGraph> graph,
               std::vector<SizedInput> inputs, std::vector<OutputInfo> results,
               Growth growth);

  /// Runs where the symbols have these sizes. Nothing if the program is for
  /// other sizes, or for inputs that lie on their storages otherwise.
  std::optional<std::vector<at::Tensor>>
  run(const std::vector<at::Tensor> &tensors,
      const std::vector<int64_t> &sizes) const;

  const std::shared_ptr<BoundGraph> graph;

private:
  /// Whether the tensors lie on their storages, moved by `shifts`, as the
  /// program's inputs do.
  bool takes(const std::vector<at::Tensor> &tensors,
             const std::vector<ViewShift> &shifts,
             const std::vector<int64_t> &sizes) const;

  std::vector<SizedInput> inputs;
  std::vector<OutputInfo> results;
  Growth growth;
  /// The first input on the storage of each argument.
  std::vector<size_t> firstInputs;
};

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_LAUNCH_SIZEDPROGRAM_H
