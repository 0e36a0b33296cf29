// SPDX-License-Identifier: Apache-2.0
//===- DataFormat.h - Host dtypes and device formats ------------*- C++ -*-===//
//
// spec/layouts.md, "Host dtype".
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DEVICE_DATAFORMAT_H
#define SPYRE_DEVICE_DATAFORMAT_H

#include <cstdint>
#include <optional>
#include <string>

namespace spyre {

/// Values as the field numbers them (spec/runtime.md, `_C` types).
enum class DataFormat {
  SEN169_FP16 = 0,
  IEEE_FP32 = 1,
  INVALID = 2,
  SEN143_FP8 = 3,
  SEN152_FP8 = 4,
  SEN153_FP9 = 5,
  SENINT2 = 6,
  SENINT4 = 7,
  SENINT8 = 8,
  SENINT16 = 9,
  SENINT24 = 10,
  IEEE_INT64 = 11,
  IEEE_INT32 = 12,
  SENUINT32 = 13,
  SENUINT2 = 14,
  IEEE_FP16 = 15,
  BOOL = 16,
  BFLOAT16 = 17,
  SEN18F_FP24 = 18
};

/// Element types of PyTorch tensors that the device stores.
enum class HostDtype {
  Float16,
  BFloat16,
  Float32,
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64
};

/// Bytes of a stick, the unit of transfer (spec/hardware.md).
inline constexpr int64_t kStickBytes = 128;

const char *toString(DataFormat format);
const char *toString(HostDtype dtype);
/// Nothing if there is no such name.
std::optional<DataFormat> parseDataFormat(const std::string &name);
std::optional<HostDtype> parseHostDtype(const std::string &name);

/// The format in which the device stores a host dtype.
DataFormat deviceFormat(HostDtype dtype);
/// Bytes of one host element.
int64_t hostBytes(HostDtype dtype);
/// Bytes of one stored element. Throws Error for formats below a byte and
/// INVALID.
int64_t storageBytes(DataFormat format);
/// Elements per 128-byte stick. Throws Error for INVALID.
int64_t elemsPerStick(DataFormat format);

} // namespace spyre

#endif // SPYRE_DEVICE_DATAFORMAT_H
