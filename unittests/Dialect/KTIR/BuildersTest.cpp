// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::ktdp;

namespace {

/// A function whose arguments are all indices, to build into.
class BuildersTest : public ::testing::Test {
protected:
  BuildersTest() : builder(&context), loc(builder.getUnknownLoc()) {
    context.loadDialect<KTDPDialect>();
    module = ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
    Type index = builder.getIndexType();
    func = func::FuncOp::create(
        builder, loc, "f",
        builder.getFunctionType(SmallVector<Type>(4, index), {}));
    builder.setInsertionPointToEnd(func.addEntryBlock());
  }

  Value arg(unsigned position) { return func.getArgument(position); }

  /// Ends the function, verifies, and checks that the module reads back the
  /// same.
  void finish() {
    func::ReturnOp::create(builder, loc);
    ASSERT_TRUE(succeeded(verify(*module)));
    std::string first, second;
    {
      llvm::raw_string_ostream os(first);
      module->print(os);
    }
    OwningOpRef<ModuleOp> again =
        parseSourceString<ModuleOp>(first, ParserConfig(&context));
    ASSERT_TRUE(again) << first;
    llvm::raw_string_ostream os(second);
    again->print(os, OpPrintingFlags().printGenericOpForm());
    std::string generic;
    llvm::raw_string_ostream genericOs(generic);
    module->print(genericOs, OpPrintingFlags().printGenericOpForm());
    EXPECT_EQ(generic, second);
  }

  MLIRContext context;
  OpBuilder builder;
  Location loc;
  OwningOpRef<ModuleOp> module;
  func::FuncOp func;
};

// KTDP-ACCESS_TILE-C2. Text cannot say it: the parser takes no negative size.
TEST_F(BuildersTest, AccessTilesHaveNoNegativeSize) {
  std::string message;
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  auto make = [&](int64_t size) {
    return AccessTileType::getChecked([&] { return emitError(loc); }, &context,
                                      ArrayRef<int64_t>{4, size},
                                      Type(builder.getIndexType()));
  };
  EXPECT_FALSE(make(-3));
  EXPECT_EQ(message, "tile dimension size must be dynamic or >= 0");
  EXPECT_TRUE(make(0));
  EXPECT_TRUE(make(ShapedType::kDynamic));
}

TEST_F(BuildersTest, DenseView) {
  auto view = ConstructMemoryViewOp::create(
      builder, loc, arg(0), ArrayRef<int64_t>{2, 100, 64}, builder.getF16Type(),
      MemorySpaceAttr::getGlobal(&context));
  EXPECT_EQ(view.getStaticStrides(), (ArrayRef<int64_t>{6400, 64, 1}));
  EXPECT_EQ(view.getType(),
            MemRefType::get({2, 100, 64}, builder.getF16Type()));
  EXPECT_EQ(view.getCoordinateSet(), getBoxSet(&context, {2, 100, 64}));
  finish();
}

TEST_F(BuildersTest, DynamicView) {
  auto view = ConstructMemoryViewOp::create(
      builder, loc, arg(0),
      ArrayRef<OpFoldResult>{arg(1), builder.getIndexAttr(64)},
      ArrayRef<OpFoldResult>{builder.getIndexAttr(64), builder.getIndexAttr(1)},
      builder.getF32Type(), MemorySpaceAttr::getCtLocal(&context, 3));
  EXPECT_EQ(view.getCoordinateSet().getNumSymbols(), 1u);
  EXPECT_EQ(view.getMixedSizes()[0], OpFoldResult(arg(1)));
  EXPECT_EQ(getConstantIntValue(view.getMixedStrides()[1]), 1);
  finish();
}

TEST_F(BuildersTest, AccessTile) {
  Value view = ConstructMemoryViewOp::create(
      builder, loc, arg(0), ArrayRef<int64_t>{64, 256}, builder.getF16Type(),
      MemorySpaceAttr::getGlobal(&context));
  auto tile = ConstructAccessTileOp::create(
      builder, loc, view, ValueRange{arg(1), arg(1)},
      ArrayRef<OpFoldResult>{arg(2), builder.getIndexAttr(256)});
  EXPECT_EQ(tile.getType().getShape(),
            (ArrayRef<int64_t>{ShapedType::kDynamic, 256}));
  // The same value twice is one operand: what assembly reads back.
  EXPECT_EQ(tile.getIndices().size(), 1u);
  auto data = LoadOp::create(builder, loc, tile);
  EXPECT_EQ(data.getType(), RankedTensorType::get({ShapedType::kDynamic, 256},
                                                  builder.getF16Type()));
  StoreOp::create(builder, loc, data, tile);
  finish();
}

TEST_F(BuildersTest, IndirectAccessTileInDeviceCoordinates) {
  Value view = ConstructMemoryViewOp::create(
      builder, loc, arg(0), ArrayRef<int64_t>{2, 100, 64}, builder.getF16Type(),
      MemorySpaceAttr::getGlobal(&context));
  Value seven = arith::ConstantIndexOp::create(builder, loc, 7);
  AffineExpr i, j, unused, first, column, constant;
  bindDims(&context, i, j);
  bindSymbols(&context, unused, column, first, constant);
  auto tile = ConstructIndirectAccessTileOp::create(
      builder, loc, view,
      ArrayRef<Subscript>{(column + j).floorDiv(64), first + i + constant,
                          (column + j) % 64},
      ValueRange{arg(3), arg(2), arg(1), seven},
      ArrayRef<OpFoldResult>{arg(1), builder.getIndexAttr(100)});
  // The unused value is dropped, the constant is in the map, the rest is in
  // order of appearance.
  EXPECT_EQ(SmallVector<Value>(tile.getCaptured()),
            (SmallVector<Value>{arg(2), arg(1)}));
  AffineExpr d0, d1, d2, d3;
  bindDims(&context, d0, d1, d2, d3);
  EXPECT_EQ(tile.getSubscriptMap(0).getResult(0), (d0 + d3).floorDiv(64));
  EXPECT_EQ(tile.getSubscriptMap(1).getResult(0), d1 + d2 + 7);
  EXPECT_EQ(tile.getNumVariables(), 2u);
  EXPECT_FALSE(tile.isIndirect(1));
  EXPECT_TRUE(isMemoryEffectFree(tile));
  finish();
}

TEST_F(BuildersTest, Gather) {
  Value view = ConstructMemoryViewOp::create(
      builder, loc, arg(0), ArrayRef<int64_t>{64, 128}, builder.getF16Type(),
      MemorySpaceAttr::getGlobal(&context));
  Value rows = ConstructMemoryViewOp::create(
      builder, loc, arg(1), ArrayRef<int64_t>{8, 1}, builder.getI32Type(),
      MemorySpaceAttr::getGlobal(&context));
  AffineExpr i = builder.getAffineDimExpr(0);
  AffineExpr c = builder.getAffineDimExpr(1);
  auto tile = ConstructIndirectAccessTileOp::create(
      builder, loc, view,
      ArrayRef<Subscript>{
          Subscript(rows, {i, builder.getAffineConstantExpr(0)}), c},
      ValueRange(),
      ArrayRef<OpFoldResult>{builder.getIndexAttr(8),
                             builder.getIndexAttr(128)});
  EXPECT_EQ(tile.getIndexMemRef(0), rows);
  EXPECT_FALSE(tile.getIndexMemRef(1));
  EXPECT_FALSE(isMemoryEffectFree(tile));
  finish();
}

TEST_F(BuildersTest, Grid) {
  auto none = getGrid(func);
  ASSERT_TRUE(succeeded(none));
  EXPECT_FALSE(none->has_value());
  func->setAttr(kGridAttr, getGridAttr(&context, {8, 4}));
  auto grid = getGrid(func);
  ASSERT_TRUE(succeeded(grid));
  EXPECT_EQ(**grid, (SmallVector<int64_t>{8, 4}));

  context.getDiagEngine().registerHandler([](Diagnostic &) {});
  for (Attribute bad :
       {Attribute(getGridAttr(&context, {})), Attribute(builder.getUnitAttr()),
        Attribute(getGridAttr(&context, {0})),
        Attribute(getGridAttr(&context, {1, 2, 3, 4})),
        Attribute(builder.getStrArrayAttr({"32"}))}) {
    func->setAttr(kGridAttr, bad);
    EXPECT_TRUE(failed(getGrid(func)));
  }
}

} // namespace
