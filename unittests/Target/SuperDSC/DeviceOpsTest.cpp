// SPDX-License-Identifier: Apache-2.0
//===- DeviceOpsTest.cpp - The table of device operations -----------------===//

#include "Spyre/Target/SuperDSC/Model/DeviceOps.h"
#include "Spyre/Target/SuperDSC/Writer/SdscWriter.h"

#include <gtest/gtest.h>

#include <set>

using namespace spyre::superdsc;

TEST(DeviceOps, SeventyEightArePublished) {
  // The nonstick variants of sum, max, min, mean and absmax count.
  unsigned published = 0;
  std::set<std::string_view> names;
  for (const DeviceOp &op : getDeviceOps()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    if (!op.isExtension)
      published += 1 + op.hasNonstick;
  }
  EXPECT_EQ(published, 78u);
}

TEST(DeviceOps, NonstickIsASuffixOfReductions) {
  bool nonstick = false;
  ASSERT_TRUE(findDeviceOp("sumnonstick", nonstick));
  EXPECT_TRUE(nonstick);
  ASSERT_TRUE(findDeviceOp("sum", nonstick));
  EXPECT_FALSE(nonstick);
  EXPECT_FALSE(findDeviceOp("addnonstick", nonstick));
  EXPECT_FALSE(findDeviceOp("exx2nonstick", nonstick));
  EXPECT_FALSE(findDeviceOp("nonstick", nonstick));
  EXPECT_FALSE(findDeviceOp("", nonstick));
}

TEST(DeviceOps, DimensionNamesArePositional) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(*getDimNames(1, false), Names({"out"}));
  EXPECT_EQ(*getDimNames(3, false), Names({"mb", "x", "out"}));
  EXPECT_EQ(getDimNames(8, false)->size(), 8u);
  EXPECT_FALSE(getDimNames(9, false));
  EXPECT_FALSE(getDimNames(0, false));
  EXPECT_EQ(*getDimNames(3, true), Names({"mb", "out", "in"}));
  EXPECT_EQ(*getDimNames(5, true), Names({"y", "x", "mb", "out", "in"}));
  EXPECT_FALSE(getDimNames(8, true));
}
