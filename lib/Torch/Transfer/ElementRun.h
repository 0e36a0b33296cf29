// SPDX-License-Identifier: Apache-2.0
//===- ElementRun.h - Elements as the device holds them ---------*- C++ -*-===//
//
// Collectives move the stored elements of a tensor piece by piece, without an
// image of the whole tensor on the host.
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

/// Copies as many elements as `elements` has, from element `first` of the run
/// of `tensor` on. `elements` is a one-dimensional dense CPU tensor whose items
/// are as wide as the stored elements. Throws if the run does not hold them.
void readElements(const at::Tensor &tensor, int64_t first,
                  const at::Tensor &elements);
void writeElements(const at::Tensor &tensor, int64_t first,
                   const at::Tensor &elements);

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
