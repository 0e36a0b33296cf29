// SPDX-License-Identifier: Apache-2.0
#include "StorageImage.h"

#include "Spyre/Device/HostTransfer.h"
#include "Spyre/Support/Environment.h"
#include "Spyre/Support/Error.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace spyre::pytorch {

namespace {

/// Read on first use, so that an error reaches the caller and the next use
/// reports it again.
std::atomic<bool> &warnDowncast() {
  static std::atomic<bool> enabled{environment::downcastWarn()};
  return enabled;
}

/// Whether an int64 value that a transfer would lose is an error.
bool isDowncastError() {
  static const bool enabled = environment::downcastError();
  return enabled;
}

/// Whether the first transfer of int64 values, and the first that lost some,
/// have warned: a loss is said once even after the other warning.
std::atomic<bool> hasWarnedOfInt64{false}, hasWarnedOfLoss{false};

void warnAboutLoss(const TransferStats &stats) {
  if (stats.int64OutOfRange == 0 || !downcastWarning())
    return;
  hasWarnedOfInt64 = true;
  if (!hasWarnedOfLoss.exchange(true) || c10::WarningUtils::get_warnAlways())
    TORCH_WARN("the spyre device does not support int64 beyond 32 bits: ",
               stats.firstInt64OutOfRange, " does not fit; ",
               stats.int64OutOfRange,
               " values of this transfer became the nearest that do "
               "(TORCH_SPYRE_DOWNCAST_WARN=0 silences this, "
               "TORCH_SPYRE_DOWNCAST_ERROR=1 makes it an error)");
}

/// A format of literal integers whose elements are as wide as `layout`'s, so
/// that bits move without conversion.
std::pair<HostDtype, TensorLayout> literal(TensorLayout layout) {
  switch (storageBytes(layout.format)) {
  case 1:
    layout.format = DataFormat::SENINT8;
    return {HostDtype::Int8, layout};
  case 2:
    layout.format = DataFormat::SENINT16;
    return {HostDtype::Int16, layout};
  default:
    layout.format = DataFormat::IEEE_INT32;
    return {HostDtype::Int32, layout};
  }
}

} // namespace

/// Users of the card filter both for "does not support int64".
void warnAboutInt64() {
  if (downcastWarning() &&
      (!hasWarnedOfInt64.exchange(true) || c10::WarningUtils::get_warnAlways()))
    TORCH_WARN("the spyre device does not support int64: tensors of it have "
               "32-bit elements, and a value outside that range becomes the "
               "nearest inside (TORCH_SPYRE_DOWNCAST_WARN=0 silences this, "
               "TORCH_SPYRE_DOWNCAST_ERROR=1 makes the loss of a value an "
               "error)");
}

std::vector<uint8_t> readCodes(const SpyreStorageImpl &storage) {
  const StorageFormat &format = *storage.format;
  auto [dtype, layout] = literal(format.layout);
  std::vector<uint8_t> codes(format.numElements() * hostBytes(dtype));
  deviceToHost(storage.deviceBytes(), layout, format.sizes, format.strides,
               dtype, codes.data());
  return codes;
}

void writeCodes(const void *codes, SpyreStorageImpl &storage) {
  const StorageFormat &format = *storage.format;
  auto [dtype, layout] = literal(format.layout);
  hostToDevice(codes, dtype, format.sizes, format.strides, layout,
               storage.writableBytes());
}

void convertToDevice(const void *image, HostDtype dtype,
                     const std::vector<int64_t> &sizes,
                     const std::vector<int64_t> &strides,
                     const TensorLayout &layout, uint8_t *device) {
  TransferStats stats;
  bool raises = dtype == HostDtype::Int64 && isDowncastError();
  hostToDevice(image, dtype, sizes, strides, layout, device,
               raises ? nullptr : &stats);
  warnAboutLoss(stats);
  if (stats.bf16OutOfRange) {
    TORCH_WARN_ONCE(stats.bf16OutOfRange,
                    " finite bfloat16 values of a tensor are outside the range "
                    "of the device format (2^-31 < |x| < 2^33) and became zero "
                    "or infinity");
  }
}

void convertToDevice(const void *image, const StorageFormat &format,
                     uint8_t *device) {
  convertToDevice(image, format.dtype, format.sizes, format.strides,
                  format.layout, device);
}

void warnAboutInt64Image(const void *image, const StorageFormat &format) {
  if (format.dtype != HostDtype::Int64 || isDowncastError())
    return;
  TransferStats stats;
  checkInt64Image(image, format.sizes, format.strides, stats);
  warnAboutLoss(stats);
  warnAboutInt64();
}

bool downcastWarning() { return warnDowncast(); }
void setDowncastWarning(bool enabled) { warnDowncast() = enabled; }

ElementMap::ElementMap(const StorageFormat &format)
    : elementSize(storageBytes(format.layout.format)) {
  std::vector<DeviceDim> resolved =
      resolveDeviceDims(format.layout, format.sizes, format.strides);
  std::vector<uint64_t> scales(resolved.size());
  uint64_t scale = elementSize;
  for (size_t d = resolved.size(); d-- > 0;) {
    scales[d] = scale;
    scale *= format.layout.deviceSize[d];
  }
  for (size_t h = 0; h < format.sizes.size(); ++h) {
    if (format.sizes[h] <= 1)
      continue;
    Dim dim{format.strides[h], format.sizes[h], {}};
    for (size_t d = 0; d < resolved.size(); ++d) {
      if (resolved[d].hostDim != static_cast<int64_t>(h))
        continue;
      int64_t next = INT64_MAX;
      for (const DeviceDim &other : resolved)
        if (other.hostDim == static_cast<int64_t>(h) &&
            other.step > resolved[d].step)
          next = std::min(next, other.step);
      dim.terms.push_back(
          {resolved[d].step,
           next == INT64_MAX ? INT64_MAX : next / resolved[d].step, scales[d]});
    }
    dims.push_back(std::move(dim));
  }
  std::sort(dims.begin(), dims.end(),
            [](const Dim &a, const Dim &b) { return a.stride > b.stride; });
  if (dims.empty() || dims.back().stride != 1)
    return;
  for (const Term &term : dims.back().terms)
    if (term.step == 1 && term.scale == elementSize) {
      isDense = true;
      stickElements = term.modulus;
    }
}

ElementMap::Place ElementMap::find(int64_t hostElement) const {
  Place place{0, 1};
  int64_t index = 0;
  for (const Dim &dim : dims) {
    index = hostElement / dim.stride;
    hostElement -= index * dim.stride;
    for (const Term &term : dim.terms) {
      int64_t coordinate = term.step == 1 ? index : index / term.step;
      if (term.modulus != INT64_MAX)
        coordinate %= term.modulus;
      place.byteOffset += coordinate * term.scale;
    }
  }
  if (isDense)
    place.numElements = std::min(dims.back().extent - index,
                                 stickElements - index % stickElements);
  return place;
}

std::vector<uint8_t> readHostImage(SpyreStorageImpl &storage) {
  std::vector<uint8_t> image(storage.nbytes());
  if (image.empty())
    return image;
  if (storage.format)
    deviceToHost(storage.deviceBytes(), storage.format->layout,
                 storage.format->sizes, storage.format->strides,
                 storage.format->dtype, image.data());
  else
    std::memcpy(image.data(), storage.deviceBytes(), image.size());
  return image;
}

void writeHostImage(SpyreStorageImpl &storage, const uint8_t *image) {
  if (storage.nbytes() == 0)
    return;
  storage.beginOverwrite();
  if (storage.format)
    convertToDevice(image, *storage.format, storage.writableBytes());
  else
    std::memcpy(storage.writableBytes(), image, storage.nbytes());
}

} // namespace spyre::pytorch
