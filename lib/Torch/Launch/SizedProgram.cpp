// SPDX-License-Identifier: Apache-2.0
#include "SizedProgram.h"

#include <unordered_map>

namespace spyre::pytorch {

SizedProgram::SizedProgram(std::shared_ptr<BoundGraph> graph,
                           std::vector<SizedInput> inputs,
                           std::vector<OutputInfo> results, Growth growth)
    : graph(std::move(graph)), inputs(std::move(inputs)),
      results(std::move(results)), growth(std::move(growth)) {
  for (size_t i = 0; i < this->inputs.size(); ++i) {
    auto argument = static_cast<size_t>(this->inputs[i].argument);
    TORCH_CHECK_VALUE(argument <= firstInputs.size(),
                      "arguments are numbered in the order of the inputs");
    if (argument == firstInputs.size())
      firstInputs.push_back(i);
  }
}

bool SizedProgram::takes(const std::vector<at::Tensor> &tensors,
                         const std::vector<ViewShift> &shifts,
                         const std::vector<int64_t> &sizes) const {
  std::unordered_map<const c10::StorageImpl *, int> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const SizedInput &input = inputs[i];
    const at::Tensor &tensor = tensors[i];
    if (tensor.dim() != static_cast<int64_t>(input.sizes.size()) ||
        tensor.storage_offset() - shifts[i].hostElements !=
            input.offset.at(sizes))
      return false;
    for (int64_t dim = 0; dim < tensor.dim(); ++dim)
      if (tensor.size(dim) != input.sizes[dim].at(sizes) ||
          (tensor.size(dim) > 1 &&
           tensor.stride(dim) != input.strides[dim].at(sizes)))
        return false;
    // Inputs share storages as they did when the program was made: the first
    // one on a storage is the first one of an argument.
    auto [known, isNew] = arguments.try_emplace(
        tensor.storage().unsafeGetStorageImpl(), input.argument);
    if (known->second != input.argument ||
        isNew != (firstInputs[input.argument] == i))
      return false;
  }
  return true;
}

std::optional<std::vector<at::Tensor>>
SizedProgram::run(const std::vector<at::Tensor> &tensors,
                  const std::vector<int64_t> &sizes) const {
  if (tensors.size() != inputs.size())
    return std::nullopt;
  std::vector<ViewShift> shifts = shiftViews(tensors);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].mayMove)
      shifts[i] = {};
  if (!takes(tensors, shifts, sizes))
    return std::nullopt;
  std::vector<at::Tensor> storages;
  std::vector<ViewShift> ofStorages;
  for (size_t first : firstInputs) {
    storages.push_back(tensors[first]);
    ofStorages.push_back(shifts[first]);
  }
  if (!graph->takes(storages, sizes, growth))
    return std::nullopt;
  for (size_t i = 0; i < storages.size(); ++i)
    if (int64_t moved = ofStorages[i].hostElements;
        moved != 0 &&
        !staysInStorage(graph->graph.program->arguments()[i], moved, sizes))
      return std::nullopt;
  return graph->call(std::move(storages), results, sizes, growth, ofStorages);
}

} // namespace spyre::pytorch
