// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/DataFormat.h"
#include "Spyre/Support/Error.h"

#include <gtest/gtest.h>

using namespace spyre;

namespace {

TEST(DataFormat, NamesAndNumbers) {
  // spec/layouts.md, "Enum values".
  const char *const names[] = {
      "SEN169_FP16", "IEEE_FP32",  "INVALID",    "SEN143_FP8", "SEN152_FP8",
      "SEN153_FP9",  "SENINT2",    "SENINT4",    "SENINT8",    "SENINT16",
      "SENINT24",    "IEEE_INT64", "IEEE_INT32", "SENUINT32",  "SENUINT2",
      "IEEE_FP16",   "BOOL",       "BFLOAT16",   "SEN18F_FP24"};
  for (int i = 0; i < 19; ++i) {
    EXPECT_STREQ(toString(static_cast<DataFormat>(i)), names[i]);
    if (static_cast<DataFormat>(i) != DataFormat::INVALID)
      EXPECT_EQ(parseDataFormat(names[i]), static_cast<DataFormat>(i));
  }
  // No data has it, so no text may ask for it.
  EXPECT_EQ(parseDataFormat("INVALID"), std::nullopt);
  EXPECT_EQ(parseDataFormat("FP16"), std::nullopt);
  EXPECT_THROW(toString(static_cast<DataFormat>(19)), Error);
}

struct DtypeCase {
  HostDtype dtype;
  const char *name;
  int64_t hostBytes;
  DataFormat format;
  int64_t storageBytes, elemsPerStick;
};

TEST(DataFormat, HostDtypes) {
  const DtypeCase cases[] = {
      {HostDtype::Float16, "float16", 2, DataFormat::SEN169_FP16, 2, 64},
      {HostDtype::BFloat16, "bfloat16", 2, DataFormat::SEN169_FP16, 2, 64},
      {HostDtype::Float32, "float32", 4, DataFormat::IEEE_FP32, 4, 32},
      {HostDtype::Bool, "bool", 1, DataFormat::SEN169_FP16, 2, 64},
      {HostDtype::UInt8, "uint8", 1, DataFormat::SENUINT32, 4, 32},
      {HostDtype::Int8, "int8", 1, DataFormat::SENINT8, 1, 128},
      {HostDtype::Int16, "int16", 2, DataFormat::SENINT16, 2, 64},
      {HostDtype::Int32, "int32", 4, DataFormat::IEEE_INT32, 4, 32},
      {HostDtype::Int64, "int64", 8, DataFormat::IEEE_INT32, 4, 32},
  };
  for (const DtypeCase &c : cases) {
    EXPECT_STREQ(toString(c.dtype), c.name);
    EXPECT_EQ(parseHostDtype(c.name), c.dtype);
    EXPECT_EQ(hostBytes(c.dtype), c.hostBytes) << c.name;
    EXPECT_EQ(deviceFormat(c.dtype), c.format) << c.name;
    EXPECT_EQ(storageBytes(c.format), c.storageBytes) << c.name;
    EXPECT_EQ(elemsPerStick(c.format), c.elemsPerStick) << c.name;
  }
  EXPECT_EQ(parseHostDtype("float64"), std::nullopt);
  EXPECT_EQ(parseHostDtype("complex64"), std::nullopt);
}

TEST(DataFormat, OtherFormats) {
  EXPECT_EQ(elemsPerStick(DataFormat::SEN143_FP8), 128);
  EXPECT_EQ(elemsPerStick(DataFormat::SEN152_FP8), 128);
  EXPECT_EQ(elemsPerStick(DataFormat::SENINT4), 256);
  EXPECT_EQ(elemsPerStick(DataFormat::IEEE_INT64), 16);
  EXPECT_THROW(storageBytes(DataFormat::SENINT4), Error);
  EXPECT_THROW(storageBytes(DataFormat::INVALID), Error);
  EXPECT_THROW(elemsPerStick(DataFormat::INVALID), Error);
}

} // namespace
