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
    {DataFormat::SEN169_FP16, "SEN169_FP16", 16},
    {DataFormat::IEEE_FP32, "IEEE_FP32", 32},
    {DataFormat::INVALID, "INVALID", 0},
    {DataFormat::SEN143_FP8, "SEN143_FP8", 8},
    {DataFormat::SEN152_FP8, "SEN152_FP8", 8},
    {DataFormat::SEN153_FP9, "SEN153_FP9", 16},
    {DataFormat::SENINT2, "SENINT2", 2},
    {DataFormat::SENINT4, "SENINT4", 4},
    {DataFormat::SENINT8, "SENINT8", 8},
    {DataFormat::SENINT16, "SENINT16", 16},
    {DataFormat::SENINT24, "SENINT24", 32},
    {DataFormat::IEEE_INT64, "IEEE_INT64", 64},
    {DataFormat::IEEE_INT32, "IEEE_INT32", 32},
    {DataFormat::SENUINT32, "SENUINT32", 32},
    {DataFormat::SENUINT2, "SENUINT2", 2},
    {DataFormat::IEEE_FP16, "IEEE_FP16", 16},
    {DataFormat::BOOL, "BOOL", 16},
    {DataFormat::BFLOAT16, "BFLOAT16", 16},
    {DataFormat::SEN18F_FP24, "SEN18F_FP24", 32},
};

static constexpr DtypeRow kDtypes[] = {
    {HostDtype::Float16, "float16", 2, DataFormat::SEN169_FP16},
    {HostDtype::BFloat16, "bfloat16", 2, DataFormat::SEN169_FP16},
    {HostDtype::Float32, "float32", 4, DataFormat::IEEE_FP32},
    {HostDtype::Bool, "bool", 1, DataFormat::SEN169_FP16},
    {HostDtype::UInt8, "uint8", 1, DataFormat::SENUINT32},
    {HostDtype::Int8, "int8", 1, DataFormat::SENINT8},
    {HostDtype::Int16, "int16", 2, DataFormat::SENINT16},
    {HostDtype::Int32, "int32", 4, DataFormat::IEEE_INT32},
    {HostDtype::Int64, "int64", 8, DataFormat::IEEE_INT32},
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
    if (name == row.name)
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
