// SPDX-License-Identifier: Apache-2.0
//===- StorageFormatting.h - Giving storages formats and sizes --*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_STORAGE_STORAGEFORMATTING_H
#define SPYRE_LIB_TORCH_STORAGE_STORAGEFORMATTING_H

#include "Storage.h"

namespace spyre::pytorch {

/// Puts a format on a raw storage and converts its bytes: done when a tensor
/// is put on a storage. No-op for a formatted storage, and for uint8 unless
/// `force` is set.
void formatFor(const at::Tensor &tensor, bool force = false);

/// The storage under a spyre tensor, with a format: raw storages get one.
/// Throws if there is none because the storage is empty.
SpyreStorageImpl &formattedStorage(const at::Tensor &tensor);

/// Changes the size of a storage, keeping the leading host bytes. A format
/// stays if the size returns to what it describes; `tensor`, where given, is
/// the tensor that grows the storage and may become its home.
void resizeStorage(SpyreStorageImpl &storage, uint64_t sizeInBytes,
                   const at::Tensor *tensor = nullptr);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_STORAGE_STORAGEFORMATTING_H
