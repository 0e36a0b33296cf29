// SPDX-License-Identifier: Apache-2.0
//===- CompileTest.cpp - Graphs through the whole compiler ------*- C++ -*-===//

#include "Spyre/Compiler/Compiler.h"

#include "Spyre/Device/DL16.h"
#include "Spyre/Device/HostTransfer.h"
#include "Spyre/Runtime/Memory/DeviceMemory.h"
#include "Spyre/Support/Shape.h"
#include "gtest/gtest.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

using namespace spyre;

namespace {

using Sizes = std::vector<int64_t>;

size_t count(const Sizes &sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), size_t(1),
                         std::multiplies<>());
}

/// Compiles and runs graphs on fp32 host values.
class CompileTest : public ::testing::Test {
protected:
  int argument(const std::string &name, const Sizes &sizes,
               std::vector<float> values) {
    TensorLayout layout(sizes, HostDtype::Float32);
    uint64_t address = memory.allocate(layout.sizeInBytes());
    EXPECT_EQ(values.size(), count(sizes));
    hostToDevice(values.data(), HostDtype::Float32, sizes,
                 rowMajorStrides(sizes), layout, memory.at(address));
    inputs.push_back(static_cast<int64_t>(address) / 4);
    return builder.addArgument(name, HostDtype::Float32, sizes,
                               rowMajorStrides(sizes), layout);
  }
  ValueMeta meta(const Sizes &sizes) {
    return {HostDtype::Float32, sizes, rowMajorStrides(sizes)};
  }
  int op(const std::string &name, Arguments args, const Sizes &result,
         KeywordArguments kwargs = {}) {
    return builder.op(name, args, kwargs, {meta(result)}).at(0);
  }
  Argument value(int id) { return ValueId{id}; }

  std::vector<std::vector<float>> run(const CompiledGraph &graph) {
    std::vector<int64_t> values = inputs;
    for (const OutputRoot &output : graph.outputs)
      values.push_back(
          static_cast<int64_t>(memory.allocate(output.layout.sizeInBytes())) /
          4);
    size_t numArrays = values.size();
    if (graph.program->arguments().size() > numArrays)
      values.push_back(static_cast<int64_t>(
          memory.allocate(std::max<uint64_t>(graph.poolBytes, 128))));
    graph.program->run(memory, values);
    std::vector<std::vector<float>> results;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const OutputRoot &output = graph.outputs[i];
      std::vector<float> host(count(output.sizes));
      deviceToHost(memory.at(values[inputs.size() + i] * 4), output.layout,
                   output.sizes, output.strides, output.dtype, host.data());
      results.push_back(std::move(host));
    }
    return results;
  }

  GraphBuilder builder;
  runtime::DeviceMemory memory;
  std::vector<int64_t> inputs;
};

std::vector<float> ramp(size_t count, float scale) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = scale * (static_cast<float>(i % 17) - 8.0f);
  return values;
}

TEST_F(CompileTest, Softmax) {
  std::vector<float> x = ramp(5 * 100, 0.25f);
  int input = argument("x", {5, 100}, x);
  int softmax = op("aten._softmax.default",
                   {value(input), Argument(-1), Argument(false)}, {5, 100});
  builder.setOutputs({softmax});
  std::vector<float> result = run(compile(builder)).at(0);
  for (int row = 0; row < 5; ++row) {
    double sum = 0;
    for (int i = 0; i < 100; ++i)
      sum += std::exp(static_cast<double>(x[row * 100 + i]));
    for (int i = 0; i < 100; ++i)
      EXPECT_NEAR(result[row * 100 + i],
                  std::exp(static_cast<double>(x[row * 100 + i])) / sum, 1e-7);
  }
}

TEST_F(CompileTest, LinearOfATransposedWeight) {
  std::vector<float> x = ramp(7 * 96, 0.5f), w = ramp(40 * 96, 0.125f),
                     b = ramp(40, 1.0f);
  int input = argument("x", {7, 96}, x), weight = argument("w", {40, 96}, w),
      bias = argument("b", {40}, b);
  int transposed = builder.view(weight, {96, 40}, {1, 96}, 0);
  int result = op("aten.addmm.default",
                  {value(bias), value(input), value(transposed)}, {7, 40});
  builder.setOutputs({result, builder.view(result, {40}, {1}, 40)});
  std::vector<float> found = run(compile(builder)).at(0);
  for (int m = 0; m < 7; ++m)
    for (int n = 0; n < 40; ++n) {
      double expected = b[n];
      for (int k = 0; k < 96; ++k)
        expected += static_cast<double>(x[m * 96 + k]) * w[n * 96 + k];
      EXPECT_NEAR(found[m * 40 + n], expected, 1e-4);
    }
}

TEST_F(CompileTest, UpdatesAnArgumentInPlace) {
  int cache = argument("cache", {8, 33}, std::vector<float>(8 * 33, 1.0f));
  int row = argument("row", {1, 33}, ramp(33, 1.0f));
  int updated =
      op("aten.slice_scatter.default",
         {value(cache), value(row), Argument(0), Argument(3), Argument(4)},
         {8, 33});
  int sum = op("aten.sum.dim_IntList",
               {value(updated), Argument(Argument::List{Argument(1)})}, {8});
  builder.mutate(cache, updated);
  builder.setOutputs({sum});
  CompiledGraph graph = compile(builder);
  std::vector<float> sums = run(graph).at(0);
  std::vector<float> row3 = ramp(33, 1.0f);
  EXPECT_FLOAT_EQ(sums[3], std::accumulate(row3.begin(), row3.end(), 0.0f));
  EXPECT_FLOAT_EQ(sums[4], 33.0f);
  std::vector<float> host(8 * 33);
  deviceToHost(memory.at(inputs[0] * 4),
               TensorLayout({8, 33}, HostDtype::Float32), {8, 33}, {33, 1},
               HostDtype::Float32, host.data());
  EXPECT_EQ(std::vector<float>(host.begin() + 99, host.begin() + 132), row3);
  EXPECT_EQ(host[0], 1.0f);
  EXPECT_EQ(host[200], 1.0f);
}

TEST_F(CompileTest, KeysFollowWhatMatters) {
  int x = argument("x", {4}, ramp(4, 1.0f));
  builder.op("aten.abs.default", {value(x)}, {}, {meta({4})},
             {{"a.py", 1, ""}});
  GraphBuilder other;
  int y = other.addArgument("x", HostDtype::Float32, {4}, {1},
                            TensorLayout({4}, HostDtype::Float32));
  other.op("aten.abs.default", {Argument(ValueId{y})}, {}, {meta({4})},
           {{"b.py", 2, ""}});
  CompileOptions options;
  std::string key = getCacheKey(builder, options);
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(key, getCacheKey(other, options));
  options.cores = 4;
  EXPECT_NE(key, getCacheKey(builder, options));
  options.cores = 0;
  EXPECT_THROW(compile(builder, options), Error);
}

TEST_F(CompileTest, EveryOptionIsInTheKey) {
  std::set<std::string> keys = {getCacheKey(builder, {})};
  ASSERT_FALSE(compileOptions().empty());
  for (const CompileOption &option : compileOptions()) {
    CompileOptions options;
    if (option.kind == CompileOption::Text) {
      const std::map<std::string, std::string> texts = {
          {"device", R"({"numCores": 31})"},
          {"lx_solver", "greedy"},
          {"mode", "reference"}};
      ASSERT_TRUE(texts.count(option.name)) << option.name;
      setCompileOption(options, option.name, texts.at(option.name));
      EXPECT_TRUE(keys.insert(getCacheKey(builder, options)).second)
          << option.name;
      EXPECT_THROW(setCompileOption(options, option.name, R"({"wings": 2})"),
                   Error);
      continue;
    }
    setCompileOption(options, option.name, option.byDefault);
    EXPECT_EQ(keys.count(getCacheKey(builder, options)), 1u) << option.name;
    int64_t other =
        option.byDefault == option.lowest ? option.highest : option.lowest;
    setCompileOption(options, option.name, other);
    EXPECT_TRUE(keys.insert(getCacheKey(builder, options)).second)
        << option.name;
    EXPECT_THROW(setCompileOption(options, option.name, option.lowest - 1),
                 Error);
    EXPECT_THROW(setCompileOption(options, option.name, option.highest + 1),
                 Error);
  }
  CompileOptions options;
  EXPECT_THROW(setCompileOption(options, "coers", 1), Error);
}

TEST_F(CompileTest, SerializesAndRefusesDamage) {
  int x = argument("x", {6, 70}, ramp(6 * 70, 0.5f));
  int y = op("aten.neg.default", {value(x)}, {6, 70});
  EXPECT_THROW(compile(builder), Error); // no outputs yet
  builder.setOutputs({y});
  CompiledGraph graph = compile(builder);
  graph.warnings = {"model.py:3: warning: hint ignored"};
  std::string bytes = graph.serialize();
  CompiledGraph again = CompiledGraph::deserialize(bytes);
  EXPECT_EQ(again.cacheKey, graph.cacheKey);
  EXPECT_EQ(again.warnings, graph.warnings);
  EXPECT_EQ(again.argumentNames, graph.argumentNames);
  ASSERT_EQ(again.outputs.size(), 1u);
  EXPECT_EQ(again.outputs[0].layout, graph.outputs[0].layout);
  EXPECT_EQ(run(again), run(graph));
  for (size_t position : {size_t(3), size_t(30), size_t(60), bytes.size() / 2,
                          bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[position] ^= 1;
    EXPECT_THROW(CompiledGraph::deserialize(damaged), Error);
    EXPECT_THROW(CompiledGraph::deserialize(bytes.substr(0, position)), Error);
  }
}

TEST_F(CompileTest, WritesResultsInPlace) {
  int x = argument("x", {6, 70}, ramp(6 * 70, 0.5f));
  builder.setOutputs({op("aten.neg.default", {value(x)}, {6, 70})});
  std::string ktir = compile(builder).printKTIR();
  EXPECT_EQ(ktir.find("identity"), std::string::npos) << ktir;
}

TEST_F(CompileTest, DumpsEveryPass) {
  int x = argument("x", {6, 70}, ramp(6 * 70, 0.5f));
  builder.setOutputs({op("aten._softmax.default",
                         {value(x), Argument(1), Argument(false)}, {6, 70})});
  std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "spyre-dump";
  compile(builder, {}, folder.string());
  EXPECT_TRUE(std::filesystem::exists(folder / "01-spyre-decompose.mlir"));
  std::filesystem::remove_all(folder);
}

// Builders leave their context to those that come after them.
TEST(Compile, GraphsAreTheSameAfterOthers) {
  auto makeGraph = [](int64_t size, const std::string &file) {
    GraphBuilder builder;
    Sizes sizes = {size, 8};
    int x = builder.addArgument("x", HostDtype::Float16, sizes, {8, 1},
                                TensorLayout(sizes, HostDtype::Float16));
    ValueMeta meta{HostDtype::Float16, sizes, {8, 1}};
    int y = builder.op("aten.exp.default", {Argument(ValueId{x})}, {}, {meta},
                       {{file, 3, "f"}})[0];
    builder.setOutputs({y});
    return builder.print(true) + compile(builder).ktirBytecode;
  };
  std::string first = makeGraph(4, "a.py");
  for (int64_t size : {1, 5, 63, 64, 65})
    EXPECT_NE(makeGraph(size, "b.py"), first);
  GraphBuilder open; // Has the context of the graph before.
  EXPECT_EQ(makeGraph(4, "a.py"), first);
  // One that is left when it is half done.
  EXPECT_THROW(open.view(99, {4}, {1}, 0), Error);
  open = GraphBuilder();
  EXPECT_EQ(makeGraph(4, "a.py"), first);
}

} // namespace
