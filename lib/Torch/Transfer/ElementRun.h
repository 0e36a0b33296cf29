// SPDX-License-Identifier: Apache-2.0
//===- ElementRun.h - Elements as the device holds them ---------*- C++ -*-===//
//
// Collectives move the stored elements of a tensor, without an image of it on
// the host.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_TRANSFER_ELEMENTRUN_H
#define SPYRE_LIB_TORCH_TRANSFER_ELEMENTRUN_H

#include "../Storage/Storage.h"

#include <optional>
#include <string>
#include <vector>

namespace spyre::pytorch {

/// Stored elements of a tensor that follow each other in device memory. They
/// are the tensor's in row-major order if it lies in a one-dimensional storage
/// of the default layout, and else all of a whole storage, padding included.
struct ElementRun {
  uint64_t offsetInBytes; ///< of the first, in the block of the storage
  int64_t count;          ///< elements
  int64_t elementSize;    ///< bytes
  /// Runs of the same kind and count have equal elements at equal places.
  std::string kind;
};

/// The run of a tensor whose elements are those of its storage; none if it has
/// no elements or they do not follow each other. Throws if the storage does not
/// hold the tensor.
std::optional<ElementRun> elementRunOf(const at::Tensor &tensor);

/// The elements of a tensor's run where they are: a one-dimensional CPU tensor
/// of fp32 values, or of codes of 16-bit floats as int16. They may be stored to
/// if `areWritten`, for which the storage may move. Waits for the work that
/// uses the tensor, which nothing else may use until they have been read or
/// written. Throws if there is no run of floats.
at::Tensor storedElements(const at::Tensor &tensor, bool areWritten);

/// Converts between codes of SEN169_FP16 (int16) and fp32 values, dense CPU
/// tensors of one size. Throws for others.
void decodeElements(const at::Tensor &codes, const at::Tensor &values);
void encodeElements(const at::Tensor &values, const at::Tensor &codes);

/// Adds up codes of SEN169_FP16 (int16) in fp32, in the order of the parts, and
/// rounds once. All are dense CPU tensors of one size; `sum` may be one of the
/// parts. Throws for others.
void sumElements(const std::vector<at::Tensor> &parts, const at::Tensor &sum);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_TRANSFER_ELEMENTRUN_H
