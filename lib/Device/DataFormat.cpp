// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/DataFormat.h"
#include "Spyre/Support/Error.h"

using namespace spyre;

namespace {
struct FormatRow {
  DataFormat format;
  const char *name;
  int64_t bits; ///< of storage; 0: not storable
};
struct DtypeRow {
  HostDtype dtype;
  const char *name;
  int64_t bytes;
  DataFormat format;
};
} // namespace

static constexpr FormatRow kFormats[] = {
#define SPYRE_DEVICE_FORMAT(name, number, bits, elementType)                   \
  {DataFormat::name, #name, bits},
#include "Spyre/Device/NumberFormats.def"
};

static constexpr DtypeRow kDtypes[] = {
#define SPYRE_HOST_DTYPE(name, pytorchName, bytes, format, elementType, npy,   \
                         scalarType)                                           \
  {HostDtype::name, pytorchName, bytes, DataFormat::format},
#include "Spyre/Device/NumberFormats.def"
};

static const FormatRow &row(DataFormat format) {
  for (const FormatRow &row : kFormats)
    if (row.format == format)
      return row;
  throw Error("unknown device format " +
              std::to_string(static_cast<int>(format)));
}

static const DtypeRow &row(HostDtype dtype) {
  return kDtypes[static_cast<int>(dtype)];
}

const char *spyre::toString(DataFormat format) { return row(format).name; }
const char *spyre::toString(HostDtype dtype) { return row(dtype).name; }

std::optional<DataFormat> spyre::parseDataFormat(const std::string &name) {
  for (const FormatRow &row : kFormats)
    if (name == row.name && row.format != DataFormat::INVALID)
      return row.format;
  return std::nullopt;
}

std::optional<HostDtype> spyre::parseHostDtype(const std::string &name) {
  for (const DtypeRow &row : kDtypes)
    if (name == row.name)
      return row.dtype;
  return std::nullopt;
}

DataFormat spyre::deviceFormat(HostDtype dtype) { return row(dtype).format; }
int64_t spyre::hostBytes(HostDtype dtype) { return row(dtype).bytes; }

int64_t spyre::storageBytes(DataFormat format) {
  int64_t bits = row(format).bits;
  if (bits < 8)
    throw Error(std::string("device format ") + toString(format) +
                " has no whole-byte elements");
  return bits / 8;
}

int64_t spyre::elemsPerStick(DataFormat format) {
  int64_t bits = row(format).bits;
  if (bits == 0)
    throw Error("device format INVALID has no elements");
  return kStickBytes * 8 / bits;
}
