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
// A cache that slides keeps the last rows: a view of what cat has made. The
// next result begins at the first row of the view, further on in the same
// block.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_LAUNCH_GROWTH_H
#define SPYRE_LIB_TORCH_LAUNCH_GROWTH_H

#include "../Storage/Storage.h"

#include <utility>

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

/// A contiguous home whose rows along a dimension follow each other in memory.
struct Rows {
  StorageFormat format;
  int64_t elements; ///< of the device, in each
};
/// The home of these sizes, if it can be stored so.
std::optional<Rows> rowsOf(HostDtype dtype, c10::IntArrayRef sizes, size_t dim);

/// The first of the rows along `dim` of a storage that has `room` for more
/// along it, if a tensor is all from there to the last one. The home is
/// contiguous.
std::optional<int64_t> firstGrowingRow(const at::Tensor &tensor, size_t dim);

/// A tensor of so many rows that follow each other in memory, the home of a new
/// storage, which is to begin with those of `tensor`, for which there is a
/// firstGrowingRow(). True: it has them, as it is on the same block. That is so
/// where `tensor` is stored so, too, nothing else has grown from it, and the
/// block has room, but not more than for twice as many again. Otherwise it is
/// on a block for twice as many, and the caller copies them.
std::pair<at::Tensor, bool> growRows(const at::Tensor &tensor, size_t dim,
                                     int64_t numRows);

/// The same, with the rows copied where they have to be.
at::Tensor growAndCopyRows(const at::Tensor &tensor, size_t dim,
                           int64_t numRows);

/// The storage to pass for a tensor where a program takes the layout of its
/// format withoutRoom(). What a program only reads stays as it is, as other
/// threads may read it, too: if it is stored otherwise, this is a copy.
c10::Storage storageWithoutRoom(const at::Tensor &tensor, bool isWritten);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_LAUNCH_GROWTH_H
