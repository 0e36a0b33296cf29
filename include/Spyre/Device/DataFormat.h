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

/// How the device stores elements. NumberFormats.def has all there is to know
/// of each.
enum class DataFormat {
#define SPYRE_DEVICE_FORMAT(name, number, bits, elementType) name = (number),
#include "Spyre/Device/NumberFormats.def"
};

/// Element types of PyTorch tensors that the device stores.
enum class HostDtype {
#define SPYRE_HOST_DTYPE(name, pytorchName, bytes, format, elementType, npy,   \
                         scalarType)                                           \
  name,
#include "Spyre/Device/NumberFormats.def"
};

/// Bytes of a stick, the unit of transfer (spec/hardware.md).
inline constexpr int64_t kStickBytes = 128;

const char *toString(DataFormat format);
const char *toString(HostDtype dtype);
/// Nothing if there is no such name, or if it is INVALID, which no data has.
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
