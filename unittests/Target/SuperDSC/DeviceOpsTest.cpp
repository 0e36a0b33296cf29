// SPDX-License-Identifier: Apache-2.0
//===- DeviceOpsTest.cpp - The table of device operations -----------------===//

#include "Spyre/Target/SuperDSC/Model/DeviceOps.h"
#include "Spyre/Target/SuperDSC/Writer/SdscWriter.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

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

TEST(DeviceOps, AllAreInTheDocumentedTable) {
  std::set<std::string> known, documented;
  for (const DeviceOp &op : getDeviceOps()) {
    known.emplace(op.name);
    if (op.hasNonstick)
      known.insert(std::string(op.name) + "nonstick");
  }
  std::ifstream page(SPYRE_SUPERDSC_PAGE);
  ASSERT_TRUE(page);
  bool isTable = false;
  for (std::string line; std::getline(page, line);) {
    isTable |= line == "## Device operations";
    if (!isTable || line.rfind("| ", 0) != 0 ||
        line.rfind("| device operation", 0) == 0)
      continue;
    std::string names = line.substr(2, line.find(" |", 2) - 2);
    std::istringstream list(names.substr(0, names.find(" {")));
    for (std::string name; std::getline(list >> std::ws, name, ',');)
      EXPECT_TRUE(documented.insert(name).second) << name;
  }
  EXPECT_EQ(documented, known);
}
