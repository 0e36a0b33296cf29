// SPDX-License-Identifier: Apache-2.0
//===- WrittenMemory.h - What operators may not write -----------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_EAGER_WRITTENMEMORY_H
#define SPYRE_LIB_TORCH_EAGER_WRITTENMEMORY_H

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace spyre::pytorch {

/// Which arguments an operator writes, and what else may lie there.
class WrittenMemory {
public:
  explicit WrittenMemory(const c10::FunctionSchema &schema);

  bool isWritten(size_t argument) const { return written[argument]; }
  bool any() const { return hasWritten; }

  /// Raises, in PyTorch's words, if two elements of a tensor that a call writes
  /// are one, or if such a tensor shares memory with another one: with a part
  /// of it, or for some operators with any of it, as on the CPU. Programs would
  /// compute with what was there before the call.
  void check(c10::ArrayRef<c10::IValue> arguments) const;

private:
  /// Per argument: whether it is written, and whether it may not be the tensor
  /// that is written.
  std::vector<bool> written, isApart;
  bool hasWritten = false;
};

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_EAGER_WRITTENMEMORY_H
