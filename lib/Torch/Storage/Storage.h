// SPDX-License-Identifier: Apache-2.0
//===- Storage.h - Storages that know their device layout -------*- C++ -*-===//
//
// The layout of a spyre tensor belongs to its storage. A storage is
//  - formatted: it holds elements of one host dtype; its *home* (sizes and
//    strides of the host tensor it was made for, dense and non-overlapping)
//    and its TensorLayout say where each host element lives on the device; or
//  - raw: bytes, stored literally. Storages made through PyTorch's storage
//    factory (torch.UntypedStorage, deepcopy, torch.load) start raw and are
//    formatted by the first tensor that is put on them whose dtype is not
//    uint8 (torch itself uses uint8 tensors to copy raw bytes).
// Tensors are plain TensorImpls: sizes, strides and offset count the storage's
// logical host elements, as on the CPU. nbytes() is the span of these in host
// bytes; the device block may be larger (padding) and never is smaller.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_STORAGE_STORAGE_H
#define SPYRE_LIB_TORCH_STORAGE_STORAGE_H

#include "../Card/Card.h"

#include "Spyre/Device/DataFormat.h"
#include "Spyre/Device/TensorLayout.h"

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <optional>
#include <vector>

namespace spyre::pytorch {

/// How a storage holds elements.
struct StorageFormat {
  HostDtype dtype;
  std::vector<int64_t> sizes;   ///< home sizes
  std::vector<int64_t> strides; ///< home strides, in elements
  TensorLayout layout;

  /// The layout of a home that grows along a dimension may have places for more
  /// rows than there are.
  struct Room {
    size_t dim;
    int64_t numRows;    ///< at most, in the layout
    TensorLayout tight; ///< the layout for the rows that there are
  };
  std::optional<Room> room;

  int64_t numElements() const;
  /// The layout for the rows that there are.
  const TensorLayout &tightLayout() const {
    return room ? room->tight : layout;
  }
  StorageFormat withoutRoom() const {
    return {dtype, sizes, strides, tightLayout(), /*room=*/{}};
  }
};

class SpyreStorageImpl final : public c10::StorageImpl {
public:
  SpyreStorageImpl(use_byte_size_t, c10::SymInt sizeInBytes,
                   c10::DataPtr pointer, c10::Allocator *allocator,
                   bool resizable);
  ~SpyreStorageImpl() override;

  /// None for a storage of raw bytes.
  std::optional<StorageFormat> format;

  /// Distinguishes storages of the process; never reused.
  uint64_t serial() const { return serialNumber; }
  c10::DeviceIndex deviceIndex() const { return device().index(); }
  /// Byte address of the device block; 0 if the storage is empty.
  uint64_t deviceAddress() const;
  /// deviceAddress() in units of device elements, as programs take it. Needs a
  /// format.
  int64_t elementAddress() const;
  /// Size of the device block, 0 if the storage is empty.
  uint64_t deviceSizeInBytes() const;
  /// Host pointer to the block inside the memory model, null if empty. Waits
  /// for the work that uses the storage, and throws the error of work that
  /// should have written it.
  const uint8_t *deviceBytes() const;
  /// The same to store there.
  uint8_t *writableBytes();
  /// Moves to memory of its own if others share the block (Launch/Growth.h):
  /// comes before anything that is stored in place. Waits if it moves.
  void ownMemory();

  /// The work that a stream gets next reads the storage, or also writes it: it
  /// waits for what other streams hold now, if they still write the storage, or
  /// read what is to be written.
  void beginUse(runtime::Stream &stream, bool isWritten);
  /// Work number `number` of a stream uses the storage.
  void addUse(runtime::Stream &stream, uint64_t number, bool isWritten);
  /// Waits for all work that uses the storage; does not throw.
  void waitForUses() const;
  /// Says why the contents could not be computed; null if they could.
  void setFailure(runtime::FailureRef why);
  runtime::FailureRef failure() const;
  /// All elements are about to be stored: waits, forgets a failure.
  void beginOverwrite();

  void release_resources() override;

private:
  uint64_t serialNumber;
  mutable std::mutex usesMutex;
  struct Use {
    runtime::Stream *stream;
    uint64_t last;
    uint64_t lastWrite; ///< 0: none
  };
  /// The last use by each stream.
  mutable std::vector<Use> uses;
  runtime::FailureRef lastFailure;
};

/// Host dtype of a torch dtype. Throws unsupportedDtypeError(), which names the
/// supported dtypes, for any other.
HostDtype hostDtype(c10::ScalarType dtype);
bool isSupportedDtype(c10::ScalarType dtype);
c10::ScalarType scalarType(HostDtype dtype);

/// Whether the strides address distinct elements without gaps.
bool isDense(c10::IntArrayRef sizes, c10::IntArrayRef strides);

/// The format of a new storage for a tensor. The home is the tensor's sizes
/// and strides where these are dense, with dimensions merged that `layout`
/// counts as one, else the one-dimensional span. A tensor of more than six
/// dimensions has its span as home where no layout is given. Throws if `layout`
/// cannot hold that home, and says which one could.
StorageFormat makeFormat(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         c10::ScalarType dtype,
                         const TensorLayout *layout = nullptr);

/// Throws spyre::Error unless every element of the home has its own place.
void checkLayout(const StorageFormat &format);

/// Uninitialised tensor with a storage of its own.
at::Tensor makeTensor(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      c10::ScalarType dtype, c10::Device device,
                      const TensorLayout *layout = nullptr);

/// Makes a tensor that is the home of a new storage with this format, which is
/// not checked.
at::Tensor makeTensor(const StorageFormat &format, c10::DeviceIndex index);
/// The same on a block that is large enough.
at::Tensor makeTensor(const StorageFormat &format, c10::DataPtr block);

/// A new storage without format and with uninitialised bytes.
c10::intrusive_ptr<c10::StorageImpl> makeRawStorage(c10::DeviceIndex index,
                                                    uint64_t sizeInBytes);

/// The storage under a spyre tensor. Throws for other tensors, and for
/// storages that another extension made.
SpyreStorageImpl &storageOf(const at::Tensor &tensor);
SpyreStorageImpl &asSpyreStorage(c10::StorageImpl &storage);
SpyreStorageImpl &asSpyreStorage(const c10::Storage &storage);

/// Bytes of the device block for a format and its host image.
uint64_t blockSize(const StorageFormat &format, uint64_t hostBytes);

/// Whether the tensor's elements are what its storage is formatted for.
bool isNative(const at::Tensor &tensor);

/// Whether the tensor is the home of its storage, or one that its layout makes
/// that home of: all elements in their order.
bool isWholeHome(const at::Tensor &tensor);

/// The home of a tensor's storage, which has a format.
at::Tensor homeOf(const at::Tensor &tensor);

/// The layout with elements of another dtype in place of these, if there is
/// one.
std::optional<TensorLayout> layoutFor(const StorageFormat &format,
                                      HostDtype dtype);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_STORAGE_STORAGE_H
