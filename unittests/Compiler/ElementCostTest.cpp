// SPDX-License-Identifier: Apache-2.0
//===- ElementCostTest.cpp - Planners and timing ask one price --*- C++ -*-===//

#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"

#include "Spyre/Compiler/Pipeline.h"
#include "Spyre/Runtime/Loader/Loader.h"
#include "Spyre/Runtime/Memory/DeviceMemory.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using spyre::DeviceSpec;

namespace {

/// An operation on `count` inputs of 63 x 1025 elements, and its results' type
/// and shape.
struct Case {
  const char *op;
  unsigned count = 1;
  const char *attributes = "";
  const char *input = "63x1025xf16", *result = "63x1025xf16";
};

std::ostream &operator<<(std::ostream &os, const Case &c) {
  return os << c.op << " of " << c.input;
}

std::string makeGraph(const Case &c) {
  std::string arguments, names, types, input(c.input), result(c.result);
  StringRef element = StringRef(input).rsplit('x').second;
  const char *format = element == "f32"   ? "IEEE_FP32"
                       : element == "i32" ? "IEEE_INT32"
                                          : "SEN169_FP16";
  input += std::string(", #spyre_graph.layout<order = [0, 1], ") + format + ">";
  for (unsigned number = 0; number < c.count; ++number) {
    std::string comma = number ? ", " : "",
                name = "%x" + std::to_string(number);
    arguments += comma + name + ": tensor<" + input + ">";
    names += comma + name;
    types += comma + "tensor<" + input + ">";
  }
  return "func.func @graph(" + arguments + ") -> tensor<" + result + "> {\n" +
         "%e = tensor.empty() : tensor<" + result + ">\n" +
         "%r = spyre_graph." + c.op + " ins(" + names + " : " + types +
         ") outs(%e : tensor<" + result + ">) " + c.attributes + " -> tensor<" +
         result + ">\nreturn %r : tensor<" + result + ">\n}\n";
}

class ElementCost : public testing::TestWithParam<Case> {};

} // namespace

TEST_P(ElementCost, IsWhatTheTimingEngineCounts) {
  DialectRegistry registry;
  spyre::registerCompilerDialects(registry);
  MLIRContext context(registry);
  auto module = parseSourceString<ModuleOp>(makeGraph(GetParam()), &context);
  ASSERT_TRUE(module);
  // So slow that everything else takes no time; a second per element operation.
  DeviceSpec spec;
  spec.numSFULanes = spec.numCoreletsPerCore = 1;
  spec.clockHertz = 1;
  spec.sfuTranscendentalWeight = 7;
  spec.ringBytesPerCycle = int64_t(1) << 40;
  double expected = 0;
  module->walk([&](spyre_graph::SpyreOpInterface op) {
    expected = spyre_graph::getElementCost(op, spec);
    for (int64_t extent : op.getLoopExtents())
      expected *= static_cast<double>(extent);
  });

  PassManager manager(&context);
  spyre::PipelineOptions options;
  options.cores = 1;
  spyre::buildSpyrePipeline(manager, options);
  ASSERT_TRUE(succeeded(manager.run(*module)));
  auto program = spyre::runtime::loadProgram(*module);
  spyre::runtime::DeviceMemory memory;
  std::vector<int64_t> values;
  for (const spyre::runtime::ArgumentInfo &info : program->arguments())
    values.push_back(static_cast<int64_t>(memory.allocate(1 << 20)) /
                     std::max<int64_t>(info.elementSizeInBytes, 1));
  spyre::runtime::TimingOptions timing;
  timing.spec = spec;
  double counted =
      program->simulate(memory, values, {}, timing).predictedSeconds;
  // Reductions start and end with a few operations per result.
  EXPECT_NEAR(counted, expected, 0.01 * expected + 1);
}

constexpr const char *kTwo = "{beta = 1.0 : f64, threshold = 20.0 : f64}";
INSTANTIATE_TEST_SUITE_P(
    Operations, ElementCost,
    testing::Values(
        Case{"add", 2}, Case{"mul", 2}, Case{"div", 2}, Case{"exp"},
        Case{"rsqrt"}, Case{"sqrt"}, Case{"reciprocal"}, Case{"tanh"},
        Case{"sigmoid"}, Case{"silu"}, Case{"gelu"}, Case{"gelu_tanh"},
        Case{"softplus", 1, kTwo}, Case{"softplus_backward", 2, kTwo},
        Case{"exp_sub", 2}, Case{"pow", 2}, Case{"relu"}, Case{"abs"},
        Case{"round"}, Case{"fma", 3}, Case{"layernormnorm", 5},
        Case{"gelu_backward", 2},
        Case{"eq", 2, "", "63x1025xf16", "63x1025xi1"},
        Case{"logical_not", 1, "", "63x1025xi1", "63x1025xi1"},
        Case{"add", 2, "", "63x1025xi32", "63x1025xi32"},
        Case{"exp", 1, "", "63x1025xf32", "63x1025xf32"},
        Case{"identity", 1, "", "63x1025xf16", "63x1025xf32"},
        Case{"sum", 1, "{dims = array<i64: 1>}", "63x1025xf16", "63xf16"},
        Case{"max", 1, "{dims = array<i64: 0>}", "63x1025xf16", "1025xf16"},
        Case{"sum_squares", 2, "{dims = array<i64: 1>, scale = 1.0 : f64}",
             "63x1025xf32", "63xf32"}));
