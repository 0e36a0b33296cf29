// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "mlir/AsmParser/AsmParser.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace mlir::ktdp;

namespace {

class BoxSetTest : public ::testing::Test {
protected:
  IntegerSet parse(StringRef text) {
    Attribute attr = parseAttribute(text, &context);
    return attr ? cast<IntegerSetAttr>(attr).getValue() : IntegerSet();
  }

  MLIRContext context;
};

TEST_F(BoxSetTest, StaticExtents) {
  EXPECT_EQ(getBoxSet(&context, {4, 256}),
            parse("affine_set<(r, c) : (r >= 0, -r + 3 >= 0, c >= 0, "
                  "-c + 255 >= 0)>"));
}

TEST_F(BoxSetTest, DynamicExtentsAreSymbolsInOrder) {
  IntegerSet set =
      getBoxSet(&context, {ShapedType::kDynamic, 8, ShapedType::kDynamic});
  EXPECT_EQ(set, parse("affine_set<(a, b, c)[m, n] : (a >= 0, -a + m - 1 >= 0, "
                       "b >= 0, -b + 7 >= 0, c >= 0, -c + n - 1 >= 0)>"));
  std::optional<BoxBounds> bounds = matchBoxSet(set);
  ASSERT_TRUE(bounds);
  EXPECT_EQ(bounds->upper[2], getAffineSymbolExpr(1, &context) - 1);
}

TEST_F(BoxSetTest, MatchReversesGet) {
  std::mt19937 random(20240917);
  for (int round = 0; round < 200; ++round) {
    SmallVector<int64_t> extents(random() % 6);
    for (int64_t &extent : extents)
      extent = random() % 1000;
    std::optional<BoxBounds> bounds = matchBoxSet(getBoxSet(&context, extents));
    ASSERT_TRUE(bounds) << "seed 20240917, round " << round;
    for (auto [dim, extent] : llvm::enumerate(extents)) {
      EXPECT_EQ(bounds->lower[dim], getAffineConstantExpr(0, &context));
      EXPECT_EQ(bounds->upper[dim], getAffineConstantExpr(extent - 1, &context))
          << "seed 20240917, round " << round;
    }
  }
}

TEST_F(BoxSetTest, MatchOffsetsAndEqualities) {
  std::optional<BoxBounds> bounds = matchBoxSet(
      parse("affine_set<(a, b) : (a - 96 >= 0, 191 - a >= 0, b - 3 == 0)>"));
  ASSERT_TRUE(bounds);
  EXPECT_EQ(bounds->lower[0], getAffineConstantExpr(96, &context));
  EXPECT_EQ(bounds->lower[1], getAffineConstantExpr(3, &context));
  EXPECT_EQ(bounds->upper[0], getAffineConstantExpr(191, &context));
  EXPECT_EQ(bounds->upper[1], getAffineConstantExpr(3, &context));
}

TEST_F(BoxSetTest, MatchGroupOfCores) {
  std::optional<BoxBounds> bounds = matchBoxSet(
      parse("affine_set<(i)[g] : (i - 2*g >= 0, -i + 2*g + 1 >= 0)>"));
  ASSERT_TRUE(bounds);
  AffineExpr group = getAffineSymbolExpr(0, &context);
  EXPECT_EQ(bounds->lower[0], group * 2);
  EXPECT_EQ(bounds->upper[0], group * 2 + 1);
}

TEST_F(BoxSetTest, EmptyRangeKeepsItsBounds) {
  std::optional<BoxBounds> bounds =
      matchBoxSet(parse("affine_set<(a) : (a - 9 >= 0, 3 - a >= 0)>"));
  ASSERT_TRUE(bounds);
  EXPECT_EQ(bounds->lower[0], getAffineConstantExpr(9, &context));
  EXPECT_EQ(bounds->upper[0], getAffineConstantExpr(3, &context));
}

TEST_F(BoxSetTest, OthersDoNotMatch) {
  for (StringRef text : {
           "affine_set<(a) : (a >= 0)>", // no upper bound
           "affine_set<(a) : (a >= 0, a - 1 >= 0, 9 - a >= 0)>", // two lower
           "affine_set<(a) : (2 * a >= 0, 9 - a >= 0)>",         // coefficient
           "affine_set<(a, b) : (a >= 0, b - a >= 0, b >= 0, 9 - b >= 0)>",
           "affine_set<(a) : (a mod 2 == 0, a >= 0, 9 - a >= 0)>",
           "affine_set<(a) : (1 == 0, a >= 0, 9 - a >= 0)>", // empty
       })
    EXPECT_FALSE(matchBoxSet(parse(text))) << text.str();
}

} // namespace
