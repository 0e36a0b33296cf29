// SPDX-License-Identifier: Apache-2.0
//===- Arrays.cpp - Arrays of a run, on host and device -------------------===//

#include "Arrays.h"

#include "Spyre/Device/HostTransfer.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Support/Shape.h"

#include <algorithm>
#include <cstring>

using namespace spyre;
using namespace spyre::runtime;

/// Moves elements between a row-major array and the host image with the
/// strides of a layout (both hold `elemSize`-byte elements).
static void permute(const std::vector<int64_t> &shape,
                    const std::vector<int64_t> &strides, int64_t elemSize,
                    uint8_t *rowMajor, uint8_t *image, bool toImage) {
  int64_t count = 1;
  bool isDense = true;
  for (size_t d = shape.size(); d-- > 0;) {
    isDense &= shape[d] <= 1 || strides[d] == count;
    count *= shape[d];
  }
  if (isDense) {
    if (count > 0)
      std::memcpy(toImage ? image : rowMajor, toImage ? rowMajor : image,
                  count * elemSize);
    return;
  }
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      offset += index[d] * strides[d];
    if (toImage)
      std::memcpy(image + offset * elemSize, rowMajor + i * elemSize, elemSize);
    else
      std::memcpy(rowMajor + i * elemSize, image + offset * elemSize, elemSize);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
}

static int64_t spanOf(const std::vector<int64_t> &shape,
                      const std::vector<int64_t> &strides) {
  int64_t span = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0)
      return 0;
    span += (shape[d] - 1) * strides[d];
  }
  return span;
}

void spyre::checkHostSize(const ArgumentInfo &info, uint64_t most) {
  auto fail = [&](const std::string &what) {
    throw Error("argument '" + info.name + "' has sizes " +
                formatSizes(info.shape) + " and strides " +
                formatSizes(info.strides) + ", " + what);
  };
  int64_t count = hostBytes(info.dtype), span = 1;
  bool isEmpty = false, overflows = false;
  for (size_t d = 0; d < info.shape.size(); ++d) {
    int64_t size = info.shape[d], reach;
    if (size < 0)
      fail("of which one is negative");
    isEmpty |= size == 0;
    overflows |=
        __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count) ||
        __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), info.strides[d],
                               &reach) ||
        __builtin_add_overflow(span, reach, &span);
  }
  overflows |=
      __builtin_mul_overflow(span, int64_t(hostBytes(info.dtype)), &span);
  if (!isEmpty && (overflows || uint64_t(std::max(count, span)) > most))
    fail("which take " +
         (overflows ? "more than 64 bits can count"
                    : std::to_string(std::max(count, span)) + " bytes") +
         " on the host; the device memory has " + std::to_string(most));
}

/// With IEEE numerics 16-bit floats move as bits: the transfer is told of
/// int16.
static void asBits(Numerics numerics, HostDtype &dtype, TensorLayout &layout) {
  if (numerics != Numerics::IEEE || layout.format != DataFormat::SEN169_FP16)
    return;
  if (dtype != HostDtype::Float16)
    throw Error("with --numerics ieee only float16 arrays may use "
                "SEN169_FP16, found " +
                std::string(toString(dtype)));
  dtype = HostDtype::Int16;
  layout.format = DataFormat::SENINT16;
}

std::optional<TensorLayout> spyre::plainLayout(const ArgumentInfo &info,
                                               const NpyArray &array,
                                               Numerics numerics) {
  const std::string &type = info.elementType;
  HostDtype dtype = array.dtype;
  int64_t count = array.numElements();
  // numpy has no bf16: its uint16 holds the bits, which would pass for the
  // codes of f16 where bf16 values are converted.
  if (array.descriptor == "<u2" && !type.empty() && type != "bf16")
    throw Error("argument '" + info.name + "' has elements of type " + type +
                ", its file uint16, which is for bf16");
  bool isSixteen = dtype == HostDtype::Float16 ||
                   dtype == HostDtype::BFloat16 || dtype == HostDtype::Bool;
  if (type == "f16" ? isSixteen : type.empty() && dtype == HostDtype::Float16) {
    if (numerics == Numerics::IEEE && dtype == HostDtype::Float16)
      return std::nullopt;
    if (numerics == Numerics::IEEE)
      throw Error("argument '" + info.name +
                  "': with --numerics ieee f16 "
                  "arrays are float16, found " +
                  toString(dtype));
    return TensorLayout({count}, dtype);
  }
  if (type == "i32" && dtype == HostDtype::Int64)
    return TensorLayout({count}, dtype);
  if (type == "i32" && dtype == HostDtype::UInt8)
    return TensorLayout({count}, dtype);
  bool same =
      type.empty() || (type == "f32" && dtype == HostDtype::Float32) ||
      (type == "bf16" && dtype == HostDtype::BFloat16) ||
      (type == "i1" && dtype == HostDtype::Bool) ||
      (type == "i8" &&
       (dtype == HostDtype::Int8 || dtype == HostDtype::UInt8)) ||
      ((type == "f8E4M3FN" || type == "f8E5M2") && hostBytes(dtype) == 1) ||
      (type == "i16" && dtype == HostDtype::Int16) ||
      (type == "i32" && dtype == HostDtype::Int32) ||
      ((type == "i64" || type == "index") && dtype == HostDtype::Int64);
  if (!same)
    throw Error("argument '" + info.name + "' has elements of type " + type +
                ", its file " + toString(dtype));
  return std::nullopt;
}

void spyre::checkArray(const ArgumentInfo &info, const NpyArray &host,
                       const std::string &text, Numerics numerics,
                       const std::string &sizes) {
  if (info.layout && (host.dtype != info.dtype || host.shape != info.shape))
    throw Error(text + ": error: argument '" + info.name + "' is " +
                toString(info.dtype) + " " + formatSizes(info.shape) +
                (info.hasRoom ? ", room for the largest sizes," : "") +
                (sizes.empty() ? "" : " where " + sizes) + ", the file has " +
                toString(host.dtype) + " " + formatSizes(host.shape));
  if (!info.layout)
    plainLayout(info, host, numerics); // checks the type
  else if (deviceFormat(info.dtype) != info.layout->format)
    throw Error("argument '" + info.name + "': arrays of " +
                toString(info.dtype) + " are stored as " +
                toString(deviceFormat(info.dtype)) + ", its layout says " +
                toString(info.layout->format));
}

int64_t spyre::elementSize(const ArgumentInfo &info, const NpyArray &array) {
  return info.elementSizeInBytes ? info.elementSizeInBytes
                                 : hostBytes(array.dtype);
}

uint64_t spyre::deviceBytes(const ArgumentInfo &info, const NpyArray &array) {
  if (info.layout)
    return info.layout->sizeInBytes();
  return static_cast<uint64_t>(array.numElements()) * elementSize(info, array);
}

NpyArray spyre::zerosOf(const ArgumentInfo &info, bool hasData) {
  NpyArray zeros;
  zeros.dtype = info.dtype;
  zeros.shape = info.shape;
  if (hasData)
    zeros.data.resize(zeros.numElements() * hostBytes(info.dtype));
  return zeros;
}

bool spyre::isDeviceImage(const ArgumentInfo &info, const NpyArray &array) {
  return array.dtype == HostDtype::UInt8 && array.shape != info.shape &&
         array.shape == std::vector<int64_t>{info.layout->sizeInBytes()};
}

void spyre::upload(const ArgumentInfo &info, Array &array, Numerics numerics,
                   DeviceMemory &memory) {
  uint8_t *device = memory.at(array.address);
  HostDtype dtype = array.host.dtype;
  if (!array.deviceImage.empty()) {
    std::memcpy(device, array.deviceImage.data(), array.deviceImage.size());
    return;
  }
  if (info.layout) {
    TensorLayout layout = *info.layout;
    asBits(numerics, dtype, layout);
    int64_t elemSize = hostBytes(dtype);
    std::vector<uint8_t> image(spanOf(info.shape, info.strides) * elemSize);
    permute(info.shape, info.strides, elemSize, array.host.data.data(),
            image.data(), true);
    hostToDevice(image.data(), dtype, info.shape, info.strides, layout, device,
                 nullptr);
    return;
  }
  if (array.host.numElements() == 0)
    return;
  // The last stick's tail is part of the transfer, hence of the allocation.
  if (auto layout = plainLayout(info, array.host, numerics)) {
    std::vector<uint8_t> padded(layout->sizeInBytes());
    hostToDevice(array.host.data.data(), dtype, {array.host.numElements()}, {1},
                 *layout, padded.data(), nullptr);
    std::memcpy(device, padded.data(), deviceBytes(info, array.host));
    return;
  }
  std::memcpy(device, array.host.data.data(), array.host.data.size());
}

NpyArray spyre::download(const ArgumentInfo &info, const Array &array,
                         Numerics numerics, DeviceMemory &memory) {
  NpyArray result = array.host;
  const uint8_t *device = memory.at(array.address);
  HostDtype dtype = result.dtype;
  if (info.layout) {
    TensorLayout layout = *info.layout;
    asBits(numerics, dtype, layout);
    int64_t elemSize = hostBytes(dtype);
    std::vector<uint8_t> image(spanOf(info.shape, info.strides) * elemSize);
    deviceToHost(device, layout, info.shape, info.strides, dtype, image.data());
    permute(info.shape, info.strides, elemSize, result.data.data(),
            image.data(), false);
    return result;
  }
  if (result.numElements() == 0)
    return result;
  if (auto layout = plainLayout(info, result, numerics)) {
    std::vector<uint8_t> padded(layout->sizeInBytes());
    std::memcpy(padded.data(), device, deviceBytes(info, result));
    deviceToHost(padded.data(), *layout, {result.numElements()}, {1}, dtype,
                 result.data.data());
    return result;
  }
  std::memcpy(result.data.data(), device, result.data.size());
  return result;
}
