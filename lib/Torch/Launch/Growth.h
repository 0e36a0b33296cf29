// SPDX-License-Identifier: Apache-2.0
//===- Growth.h - Tensors that grow in the memory of others -----*- C++ -*-===//
//
// A cache grows by torch.cat: the result has the rows of the old cache and some
// more, and the old cache stays as it is, for whoever still reads it. Where the
// block of the old one has room, the result is a storage of its own on the same
// block, of which each of both has the first rows. What is stored in place
// moves to memory of its own first (SpyreStorageImpl::ownMemory()), so that
// neither sees what happens to the other.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_LAUNCH_GROWTH_H
#define SPYRE_LIB_TORCH_LAUNCH_GROWTH_H

#include "../Storage/Storage.h"

namespace spyre::pytorch {

/// What growing has cost in this process.
struct GrowthCounts {
  int64_t numShared = 0; ///< times that the old rows stayed where they were
  int64_t numCopied = 0; ///< times that they were copied
  int64_t bytesCopied = 0;
};
GrowthCounts growthCounts();
/// Counts what has grown: the bytes of its old rows if they were copied, or 0.
void countGrowth(int64_t bytesCopied);

/// Says that the next call may grow a storage along a dimension of its home,
/// unless its sticks run along it: programs do not store single lanes of
/// sticks. What has room keeps it as it is.
void letGrow(SpyreStorageImpl &storage, size_t dim);

/// A tensor, the home of a new storage with this format, that begins with the
/// rows of `tensor`, a home whose storage has `room`: on the same block if the
/// format has as much room as its own, and nothing else has grown from it.
/// Otherwise they are copied, which waits for the work that uses the storage.
/// The other rows hold anything.
at::Tensor grow(const at::Tensor &tensor, const StorageFormat &format);

/// Stores what a storage has without room, if it has any.
void dropRoom(SpyreStorageImpl &storage);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_LAUNCH_GROWTH_H
