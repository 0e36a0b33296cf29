// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Planning/MiniMallocFormat.h"
#include "Spyre/Support/Error.h"

#include <gtest/gtest.h>

using namespace spyre;
using namespace spyre::planning;

static std::string errorOf(const std::string &text) {
  try {
    parseMiniMalloc(text, "in.csv");
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

TEST(MiniMallocFormat, ReadsWhatItPrints) {
  MiniMallocFile file =
      parseMiniMalloc("id,lower,upper,size\nb7,0,10,4\n3,5,6,2\n", "in.csv");
  ASSERT_EQ(file.ids, (std::vector<std::string>{"b7", "3"}));
  EXPECT_EQ(file.problem.buffers[0].upper, 10);
  EXPECT_EQ(file.problem.buffers[1].size, 2);
  std::string printed = printMiniMalloc(file, {2, 0});
  EXPECT_EQ(printed, "id,lower,upper,size,offset\nb7,0,10,4,2\n3,5,6,2,0\n");
  // A solution is a problem again.
  EXPECT_EQ(parseMiniMalloc(printed, "out.csv").ids, file.ids);
}

TEST(MiniMallocFormat, TakesOtherOrdersSpacesAndLineEnds) {
  MiniMallocFile file =
      parseMiniMalloc("size, upper,lower,id\r\n 4,10 ,0,x\r\n\r\n", "in.csv");
  ASSERT_EQ(file.ids.size(), 1u);
  EXPECT_EQ(file.problem.buffers[0].size, 4);
  EXPECT_EQ(file.problem.buffers[0].upper, 10);
  EXPECT_EQ(file.problem.buffers[0].lower, 0);
}

TEST(MiniMallocFormat, TakesNoBuffers) {
  EXPECT_TRUE(parseMiniMalloc("id,lower,upper,size", "in.csv").ids.empty());
}

TEST(MiniMallocFormat, SaysWhereBadInputIs) {
  const std::string header = "id,lower,upper,size\n";
  EXPECT_EQ(errorOf(""),
            "in.csv:1: expected a header id,lower,upper,size, found nothing");
  EXPECT_EQ(errorOf("id,lower,upper\n"), "in.csv:1: missing column 'size'");
  EXPECT_EQ(errorOf("id,lower,upper,size,size\n"),
            "in.csv:1: column 'size' occurs twice");
  EXPECT_EQ(errorOf("0,1,2,3\n"), "in.csv:1: expected columns id, lower, "
                                  "upper and size, found '0'");
  EXPECT_EQ(errorOf(header + "a,0,1\n"),
            "in.csv:2: expected 4 fields, found 3");
  EXPECT_EQ(errorOf(header + "a,0,1,2,3\n"),
            "in.csv:2: expected 4 fields, found 5");
  EXPECT_EQ(errorOf(header + ",0,1,2\n"), "in.csv:2: the id is empty");
  EXPECT_EQ(errorOf(header + "a,0,1,2\n\na,0,1,2\n"),
            "in.csv:4: id 'a' occurs twice, first in line 2");
  EXPECT_EQ(errorOf(header + "a,0,1,two\n"),
            "in.csv:2: expected an integer for size, found 'two'");
  EXPECT_EQ(errorOf(header + "a,0,1,2.5\n"),
            "in.csv:2: expected an integer for size, found '2.5'");
  EXPECT_EQ(errorOf(header + "a,0,1,\n"),
            "in.csv:2: expected an integer for size, found ''");
  EXPECT_EQ(errorOf(header + "a,0,1,9223372036854775808\n"),
            "in.csv:2: size 9223372036854775808 does not fit in 64 bits");
  EXPECT_EQ(errorOf(header + "a,-1,1,2\n"),
            "in.csv:2: lower must not be negative, but is -1");
  EXPECT_EQ(errorOf(header + "a,0,1,-2\n"),
            "in.csv:2: size must not be negative, but is -2");
  EXPECT_EQ(errorOf(header + "a,3,3,2\n"),
            "in.csv:2: upper must be above lower, but is 3 with lower 3");
  EXPECT_EQ(errorOf(header + "a,0,1,5000000000000000000\n"
                             "b,0,1,5000000000000000000\n"),
            "in.csv:3: the sizes up to here add up to more than 64 bits");
}
