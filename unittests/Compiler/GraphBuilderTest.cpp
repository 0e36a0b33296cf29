// SPDX-License-Identifier: Apache-2.0
//===- GraphBuilderTest.cpp - Import of ATen graphs -------------*- C++ -*-===//

#include "Spyre/Compiler/GraphBuilder.h"

#include "Spyre/Support/Shape.h"
#include "gtest/gtest.h"

#include <algorithm>

using namespace spyre;

namespace {

using Sizes = std::vector<int64_t>;

::testing::AssertionResult contains(const std::string &text,
                                    const std::string &part) {
  if (text.find(part) != std::string::npos)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "no '" << part << "' in:\n" << text;
}

class GraphBuilderTest : public ::testing::Test {
protected:
  int argument(const std::string &name, const Sizes &sizes,
               HostDtype dtype = HostDtype::Float16) {
    return builder.addArgument(name, dtype, sizes, rowMajorStrides(sizes),
                               TensorLayout(sizes, dtype));
  }
  ValueMeta meta(const Sizes &sizes, HostDtype dtype = HostDtype::Float16) {
    return {dtype, sizes, rowMajorStrides(sizes)};
  }
  int op(const std::string &name, Arguments args, const ValueMeta &result,
         KeywordArguments kwargs = {}) {
    return builder.op(name, args, kwargs, {result}).at(0);
  }
  Argument value(int id) { return ValueId{id}; }

  GraphBuilder builder;
};

TEST_F(GraphBuilderTest, ImportsAnOperator) {
  int x = argument("x", {4, 8}), y = argument("y", {8});
  int sum = op("aten.add.Tensor", {value(x), value(y)}, meta({4, 8}));
  std::vector<OutputInfo> outputs = builder.setOutputs({sum});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].root, 0);
  EXPECT_EQ(outputs[0].sizes, Sizes({4, 8}));
  EXPECT_TRUE(contains(builder.print(), "spyre_graph.add ins("));
  EXPECT_TRUE(contains(builder.print(), "spyre_graph.name = \"out0\""));
}

TEST_F(GraphBuilderTest, RoundsOncePerOperator) {
  int x = argument("x", {4, 8}), y = argument("y", {4, 8});
  op("aten.add.Tensor", {value(x), value(y)}, meta({4, 8}),
     {{"alpha", Argument(2.5)}});
  EXPECT_TRUE(contains(builder.print(), "spyre_graph.fma"));
  EXPECT_TRUE(contains(builder.print(), "2.500000e+00 : f32"));
}

TEST_F(GraphBuilderTest, KeepsSourceLines) {
  int x = argument("x", {4});
  builder.op("aten.abs.default", {value(x)}, {}, {meta({4})},
             {{"model.py", 12, "forward"}, {"main.py", 3, "<module>"}});
  EXPECT_TRUE(contains(builder.print(true), "model.py\":12"));
  EXPECT_FALSE(contains(builder.print(false), "model.py"));
}

TEST_F(GraphBuilderTest, ViewsAddressTheRoot) {
  int x = argument("x", {4, 8});
  int transposed = builder.view(x, {8, 4}, {1, 8}, 0);
  // A view of a view addresses the same storage.
  int row = builder.view(transposed, {8}, {1}, 16);
  EXPECT_TRUE(contains(builder.print(), "(d0) -> (2, d0)"));
  EXPECT_EQ(builder.meta(row).sizes, Sizes({8}));
  EXPECT_EQ(builder.view(x, {4, 8}, {8, 1}, 0), row + 1);
  EXPECT_THROW(builder.view(x, {5, 8}, {8, 1}, 0), Error);
  EXPECT_THROW(builder.view(x, {4}, {-1}, 3), Error);
  EXPECT_THROW(builder.view(99, {4}, {1}, 0), Error);
}

TEST_F(GraphBuilderTest, RefusesWithoutASideEffect) {
  int x = argument("x", {4, 8});
  std::string before = builder.print();
  EXPECT_THROW(op("aten.no_such_op.default", {value(x)}, meta({4, 8})),
               UnsupportedOp);
  // The row exists, the argument does not fit; some ops were made already.
  EXPECT_THROW(op("aten.linalg_vector_norm.default", {value(x), Argument(3.0)},
                  meta({})),
               UnsupportedOp);
  EXPECT_THROW(
      op("aten.embedding_dense_backward.default",
         {value(x), value(x), Argument(3), Argument(-1), Argument(true)},
         meta({3, 8})),
      UnsupportedOp);
  // A result of another shape than the op computes.
  EXPECT_THROW(
      op("aten.slice_scatter.default", {value(x), value(x)}, meta({5, 8})),
      UnsupportedOp);
  // Shapes that do not fit.
  EXPECT_THROW(op("aten.abs.default", {value(x)}, meta({5, 8})), UnsupportedOp);
  EXPECT_THROW(op("aten.mm.default", {value(x), value(x)}, meta({4, 8})),
               UnsupportedOp);
  EXPECT_THROW(op("aten.cat.default",
                  {Argument(Argument::List{value(x)}), Argument(0)},
                  meta({3, 8})),
               UnsupportedOp);
  EXPECT_EQ(builder.print(), before);
}

TEST_F(GraphBuilderTest, UpdatesArgumentsInPlace) {
  int cache = argument("cache", {16, 8}), row = argument("row", {1, 8});
  int updated =
      op("aten.slice_scatter.default",
         {value(cache), value(row), Argument(0), Argument(3), Argument(4)},
         meta({16, 8}));
  builder.mutate(cache, updated);
  std::vector<OutputInfo> outputs = builder.setOutputs({cache});
  EXPECT_EQ(outputs[0].root, -1);
  std::string text = builder.print();
  EXPECT_TRUE(contains(text, "(d0, d1) -> (d0 + 3, d1)"));
  EXPECT_TRUE(contains(text, "bufferization.materialize_in_destination"));
  // One write of one row, no copy of the cache.
  EXPECT_EQ(text.find("spyre_graph.identity"),
            text.rfind("spyre_graph.identity"));
}

TEST_F(GraphBuilderTest, ResultsMayHaveGaps) {
  int cache = argument("cache", {16, 8}), rows = argument("rows", {2, 4});
  int part = builder.view(cache, {2, 4}, {8, 1}, 0);
  int copied = builder.op("aten.copy.default", {value(part), value(rows)}, {},
                          {ValueMeta{HostDtype::Float16, {2, 4}, {8, 1}}})[0];
  builder.view(copied, {4}, {1}, 8);
  EXPECT_THROW(builder.view(copied, {4}, {1}, 2), Error);
  std::vector<OutputInfo> outputs = builder.setOutputs({copied});
  EXPECT_EQ(outputs[0].strides, Sizes({4, 1}));
  EXPECT_EQ(outputs[0].rootMeta.strides, Sizes({4, 1}));
}

TEST_F(GraphBuilderTest, DropsLaterArguments) {
  int x = argument("x", {4, 8}), y = argument("y", {8}), z = argument("z", {});
  int turned = builder.view(y, {8, 1}, {1, 1}, 0);
  int sum = op("aten.add.Tensor", {value(x), value(x)}, meta({4, 8}));
  int mixed = op("aten.mul.Tensor", {value(x), value(y)}, meta({4, 8}));
  op("aten.mul.Tensor", {value(mixed), value(z)}, meta({4, 8}));
  EXPECT_THROW(builder.dropArguments(4), Error);
  EXPECT_THROW(builder.dropArguments(-1), Error);
  builder.dropArguments(3);
  EXPECT_TRUE(contains(builder.print(), "spyre_graph.name = \"z\""));
  builder.dropArguments(1);
  for (int dropped : {y, z, turned, mixed}) {
    EXPECT_THROW(builder.meta(dropped), Error);
    EXPECT_THROW(builder.view(dropped, {1}, {1}, 0), Error);
  }
  EXPECT_EQ(builder.setOutputs({sum}).at(0).root, 0);
  EXPECT_FALSE(contains(builder.print(), "spyre_graph.mul"));
  EXPECT_FALSE(contains(builder.print(), "spyre_graph.view"));
  EXPECT_FALSE(contains(builder.print(), "spyre_graph.name = \"y\""));
}

TEST_F(GraphBuilderTest, KeepsArgumentsThatItsResultsNeed) {
  int x = argument("x", {4}), y = argument("y", {4});
  builder.mutate(x, y);
  EXPECT_THROW(builder.dropArguments(1), Error);
}

TEST_F(GraphBuilderTest, OutputsShareRoots) {
  int x = argument("x", {4, 8});
  int y = op("aten.neg.default", {value(x)}, meta({4, 8}));
  int view = builder.view(y, {8}, {1}, 8);
  std::vector<OutputInfo> outputs =
      builder.setOutputs({view, y, x, builder.view(x, {2}, {1}, 0)});
  EXPECT_EQ(outputs[0].root, 0);
  EXPECT_EQ(outputs[0].offset, 8);
  EXPECT_EQ(outputs[1].root, 0);
  EXPECT_EQ(outputs[2].root, -1);
  EXPECT_EQ(outputs[3].root, -1);
  EXPECT_EQ(outputs[0].rootMeta.sizes, Sizes({4, 8}));
  EXPECT_THROW(builder.setOutputs({y}), Error);
}

TEST_F(GraphBuilderTest, RefusesBadArguments) {
  EXPECT_THROW(builder.addArgument("x", HostDtype::Float16, {4, 8}, {16, 1},
                                   TensorLayout({4, 8}, HostDtype::Float16)),
               Error);
  EXPECT_THROW(builder.addArgument("x", HostDtype::Float32, {4, 8}, {8, 1},
                                   TensorLayout({4, 8}, HostDtype::Float16)),
               Error);
}

TEST_F(GraphBuilderTest, ListsItsOperators) {
  std::vector<std::string> ops = listSupportedOps();
  EXPECT_TRUE(std::binary_search(ops.begin(), ops.end(),
                                 std::string("aten.addmm.default")));
  EXPECT_TRUE(std::is_sorted(ops.begin(), ops.end()));
}

/// Rows of a batch, [b, s, 64], as those of one matrix, [b x s, 64].
class FlattenedRowsTest : public GraphBuilderTest {
protected:
  FlattenedRowsTest() {
    builder.addSymbol("b", {2, 4, 1}, 3);
    builder.addSymbol("s", {2, 512, 1}, 9);
    int x = builder.addArgument("x", HostDtype::Float16, {b, s, 64},
                                {s * 64, 64, 1},
                                TensorLayout({3, 9, 64}, HostDtype::Float16));
    rows = builder.view(x, {b * s, 64}, {64, 1}, 0);
  }
  ValueMeta matrix(int64_t width) {
    return {HostDtype::Float16, {b * s, width}, {width, 1}};
  }

  SizeExpr b = SizeExpr::symbol(0), s = SizeExpr::symbol(1);
  int rows;
};

TEST_F(FlattenedRowsTest, OperatorsThatTreatRowsAlikeNeedNoCopy) {
  int y = op("aten.relu.default", {value(rows)}, matrix(64));
  int z = op("aten._softmax.default", {value(y), Argument(-1), Argument(false)},
             matrix(64));
  int sum = op("aten.sum.dim_IntList",
               {value(z), Argument(Argument::List{Argument(0)})}, meta({64}));
  // Of rows as they are in the batch; what PyTorch speaks of is a view of it.
  std::vector<OutputInfo> outputs = builder.setOutputs({z, sum});
  EXPECT_EQ(outputs[0].sizes, SizeList({b * s, 64}));
  EXPECT_EQ(outputs[0].rootMeta.sizes, SizeList({b, s, 64}));
  std::string text = builder.print();
  EXPECT_TRUE(contains(text, "affine_map<()[s0, s1] -> (s0, s1, 64)>"));
  EXPECT_TRUE(contains(text, "spyre_graph.softmax %1 {dim = 2 : i64}"));
  EXPECT_TRUE(contains(text, "dims = array<i64: 0, 1>"));
  EXPECT_TRUE(contains(text, "affine_map<(d0, d1, d2) -> (d2)>"));
  for (const char *part : {"gather", "scatter", "view", "s2", "rows"})
    EXPECT_FALSE(contains(text, part));
}

TEST_F(FlattenedRowsTest, AllElementsKeepTheirRows) {
  SizeExpr count = b * s * 64;
  int all = builder.view(rows, {count}, {1}, 0);
  int y = op("aten.relu.default", {value(all)},
             ValueMeta{HostDtype::Float16, {count}, {1}});
  std::vector<OutputInfo> outputs = builder.setOutputs({y});
  EXPECT_EQ(outputs[0].sizes, SizeList({count}));
  EXPECT_EQ(outputs[0].rootMeta.sizes, SizeList({b, s, 64}));
}

TEST_F(FlattenedRowsTest, OthersAreRefusedWithoutASideEffect) {
  std::string before = builder.print();
  EXPECT_THROW(
      op("aten.cumsum.default", {value(rows), Argument(0)}, matrix(64)),
      UnsupportedOp);
  EXPECT_THROW(op("aten.argmax.default", {value(rows), Argument(0)},
                  meta({64}, HostDtype::Int64)),
               UnsupportedOp);
  EXPECT_THROW(op("aten.flip.default",
                  {value(rows), Argument(Argument::List{Argument(0)})},
                  matrix(64)),
               UnsupportedOp);
  EXPECT_EQ(builder.print(), before);
}

} // namespace
