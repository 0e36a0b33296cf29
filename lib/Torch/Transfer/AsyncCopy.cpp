// SPDX-License-Identifier: Apache-2.0
// Copies between pinned host memory and the device that do not wait: work of
// the current stream, as a launch is.
#include "AsyncCopy.h"
#include "../Profiling/Trace.h"
#include "../Storage/StorageImage.h"

#include "Spyre/Device/HostTransfer.h"

namespace spyre::pytorch {

/// Whether a CPU tensor holds exactly the host image of a spyre tensor, in
/// memory that the host's allocator keeps for devices.
static bool isPinnedImage(const at::Tensor &host, const at::Tensor &onDevice) {
  return host.is_cpu() && host.scalar_type() == onDevice.scalar_type() &&
         host.sizes() == onDevice.sizes() &&
         host.strides() == onDevice.strides() && isNative(onDevice) &&
         isWholeHome(onDevice) && host.is_pinned();
}

bool copyAsynchronously(const at::Tensor &source,
                        const at::Tensor &destination) {
  bool toDevice = destination.device().type() == kSpyre;
  const at::Tensor &host = toDevice ? source : destination;
  const at::Tensor &onDevice = toDevice ? destination : source;
  if (onDevice.device().type() != kSpyre || !isPinnedImage(host, onDevice))
    return false;
  SpyreStorageImpl &storage = storageOf(onDevice);
  c10::DeviceIndex index = storage.deviceIndex();
  runtime::Stream &stream = card(index).stream(currentStream(index));
  void *memory = toDevice ? const_cast<void *>(host.storage().data())
                          : host.storage().mutable_data();
  uint8_t *image =
      static_cast<uint8_t *>(memory) + host.storage_offset() * host.itemsize();
  if (toDevice)
    storage.ownMemory();
  storage.beginUse(stream, /*isWritten=*/toDevice);
  uint8_t *bytes = card(index).memory.at(storage.deviceAddress());
  if (toDevice)
    warnAboutInt64Image(image, *storage.format);
  std::shared_ptr<LaunchRecord> record;
  if (isTracing()) {
    record = std::make_shared<LaunchRecord>(
        beginLaunch(index, currentStream(index)));
    record->end = runtime::hostSeconds();
  }
  // The work holds both storages: no memory is freed before it has run.
  auto work = [kept = onDevice.storage(), held = host.storage(), &storage,
               image, bytes, format = *storage.format, toDevice,
               record](runtime::Stream &) -> runtime::FailureRef {
    double begin = runtime::hostSeconds();
    if (toDevice) {
      convertToDevice(image, format, bytes);
      storage.setFailure(nullptr);
    } else {
      if (runtime::FailureRef why = storage.failure())
        return why;
      deviceToHost(bytes, format.layout, format.sizes, format.strides,
                   format.dtype, image);
    }
    if (record)
      recordTransfer(
          *record,
          toDevice ? TransferKind::HostToDevice : TransferKind::DeviceToHost,
          /*isQueued=*/true,
          format.numElements() *
              static_cast<int64_t>(storageBytes(format.layout.format)),
          begin);
    return nullptr;
  };
  runtime::Stream::Dropped dropped;
  if (toDevice)
    dropped = [kept = onDevice.storage(), &storage](
                  const runtime::FailureRef &why) { storage.setFailure(why); };
  uint64_t number = stream.submit(std::move(work), std::move(dropped));
  storage.addUse(stream, number, /*isWritten=*/toDevice);
  return true;
}

} // namespace spyre::pytorch
