// SPDX-License-Identifier: Apache-2.0
//===- ViewShift.h - Views at other places of their storages ----*- C++ -*-===//
//
// A program reads and writes a view at the offset that it was compiled for. At
// another offset of the same storage the same program serves if every element
// of the view lies the same number of device bytes further on: the argument's
// address is moved. Within the dimension of the sticks that holds for whole
// sticks, hence programs are keyed on the offset modulo the stick.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_STORAGE_VIEWSHIFT_H
#define SPYRE_LIB_TORCH_STORAGE_VIEWSHIFT_H

#include "Storage.h"

#include "Spyre/Runtime/Program/Program.h"

#include <vector>

namespace spyre::pytorch {

/// How far the views of one storage can be moved towards its start together.
struct ViewShift {
  int64_t hostElements = 0;   ///< by which their storage offsets shrink
  int64_t deviceElements = 0; ///< by which the argument's address grows
};

/// Whether a program finds all that it accesses of an argument inside the
/// argument's storage when it runs on views that lie `hostElements` further on
/// than those it was compiled for. More may be accessed than the views: a plan
/// may rearrange the whole array, or take indices into a dimension of it.
/// `sizes` are those of the program's symbols.
bool staysInStorage(const runtime::ArgumentInfo &argument, int64_t hostElements,
                    const std::vector<int64_t> &sizes);

/// One shift per tensor, equal for tensors of one storage. All must be native
/// tensors of formatted storages or empty.
std::vector<ViewShift> shiftViews(const std::vector<at::Tensor> &tensors);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_STORAGE_VIEWSHIFT_H
