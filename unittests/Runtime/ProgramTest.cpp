// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "gtest/gtest.h"

#include <cstring>
#include <thread>

using namespace spyre;
using namespace spyre::runtime;

/// y = x * 2 over 64 x 16 f32, one row block per core, twice through LX.
static const char kProgram[] = R"(
#whole = affine_set<(r, c) : (r >= 0, -r + 63 >= 0, c >= 0, -c + 15 >= 0)>
#part = affine_set<(r, c) : (r >= 0, -r + 7 >= 0, c >= 0, -c + 15 >= 0)>
#order = affine_map<(r, c) -> (r, c)>
func.func @main(%x: index {ktdp.name = "x"}, %y: index {ktdp.name = "y"}, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  call @toLX(%x) : (index) -> ()
  scf.for %i = %c0 to %n step %c1 {
    func.call @double() : () -> ()
  }
  call @fromLX(%y) : (index) -> ()
  return
}
func.func private @toLX(%x: index) attributes {grid = [8]} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %core = ktdp.get_compute_tile_id : index
  %row = arith.muli %core, %c8 : index
  %v = ktdp.construct_memory_view %x, sizes: [64, 16], strides: [16, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<64x16xf32>
  %l = ktdp.construct_memory_view %c8, sizes: [8, 16], strides: [16, 1] {coordinate_set = #part, memory_space = #ktdp.memory_space<ct_local>} : memref<8x16xf32>
  %t = ktdp.construct_access_tile %v[%row, %c0] {access_tile_set = #part, access_tile_order = #order} : memref<64x16xf32> -> !ktdp.access_tile<8x16xindex>
  %u = ktdp.construct_access_tile %l[%c0, %c0] {access_tile_set = #part, access_tile_order = #order} : memref<8x16xf32> -> !ktdp.access_tile<8x16xindex>
  %d = ktdp.load %t : !ktdp.access_tile<8x16xindex> -> tensor<8x16xf32>
  ktdp.store %d, %u : tensor<8x16xf32>, !ktdp.access_tile<8x16xindex>
  return
}
func.func private @double() attributes {grid = [8]} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %l = ktdp.construct_memory_view %c8, sizes: [8, 16], strides: [16, 1] {coordinate_set = #part, memory_space = #ktdp.memory_space<ct_local>} : memref<8x16xf32>
  %u = ktdp.construct_access_tile %l[%c0, %c0] {access_tile_set = #part, access_tile_order = #order} : memref<8x16xf32> -> !ktdp.access_tile<8x16xindex>
  %d = ktdp.load %u : !ktdp.access_tile<8x16xindex> -> tensor<8x16xf32>
  %s = arith.addf %d, %d : tensor<8x16xf32>
  ktdp.store %s, %u : tensor<8x16xf32>, !ktdp.access_tile<8x16xindex>
  return
}
func.func private @fromLX(%y: index) attributes {grid = [8]} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %core = ktdp.get_compute_tile_id : index
  %row = arith.muli %core, %c8 : index
  %v = ktdp.construct_memory_view %y, sizes: [64, 16], strides: [16, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<64x16xf32>
  %l = ktdp.construct_memory_view %c8, sizes: [8, 16], strides: [16, 1] {coordinate_set = #part, memory_space = #ktdp.memory_space<ct_local>} : memref<8x16xf32>
  %t = ktdp.construct_access_tile %v[%row, %c0] {access_tile_set = #part, access_tile_order = #order} : memref<64x16xf32> -> !ktdp.access_tile<8x16xindex>
  %u = ktdp.construct_access_tile %l[%c0, %c0] {access_tile_set = #part, access_tile_order = #order} : memref<8x16xf32> -> !ktdp.access_tile<8x16xindex>
  %d = ktdp.load %u : !ktdp.access_tile<8x16xindex> -> tensor<8x16xf32>
  ktdp.store %d, %t : tensor<8x16xf32>, !ktdp.access_tile<8x16xindex>
  return
}
)";

namespace {
struct Buffers {
  explicit Buffers(DeviceMemory &memory)
      : memory(memory), x(memory.allocate(4096)), y(memory.allocate(4096)) {
    for (int i = 0; i < 1024; ++i)
      values(x)[i] = static_cast<float>(i);
  }
  float *values(uint64_t address) {
    return reinterpret_cast<float *>(memory.at(address));
  }
  std::vector<int64_t> arguments(int64_t n) {
    return {static_cast<int64_t>(x / 4), static_cast<int64_t>(y / 4), n};
  }
  DeviceMemory &memory;
  uint64_t x, y;
};
} // namespace

TEST(Program, DescribesItsArguments) {
  auto program = loadProgramBytes(kProgram);
  ASSERT_EQ(program->arguments().size(), 3u);
  EXPECT_EQ(program->name(), "main");
  EXPECT_EQ(program->arguments()[0].name, "x");
  EXPECT_EQ(program->arguments()[0].kind, ArgumentInfo::Array);
  EXPECT_EQ(program->arguments()[0].elementType, "f32");
  EXPECT_EQ(program->arguments()[2].kind, ArgumentInfo::Scalar);
}

TEST(Program, TellsWhatKernelsReadAndWrite) {
  auto program = loadProgramBytes(kProgram);
  const auto &arguments = program->arguments();
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_TRUE(arguments[0].mayBeRead);
  EXPECT_FALSE(arguments[0].mayBeWritten);
  EXPECT_FALSE(arguments[1].mayBeRead);
  EXPECT_TRUE(arguments[1].mayBeWritten);
  EXPECT_FALSE(arguments[2].mayBeRead || arguments[2].mayBeWritten);
}

/// y[index[i]] = x[i]: the indices are read though nothing is loaded from them.
TEST(Program, ReadsIndices) {
  auto program = loadProgramBytes(R"(
#set = affine_set<(i) : (i >= 0, -i + 63 >= 0)>
#order = affine_map<(i) -> (i)>
func.func @main(%x: index, %index: index, %y: index) {
  %c0 = arith.constant 0 : index
  %xv = ktdp.construct_memory_view %x, sizes: [64], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<64xf32>
  %iv = ktdp.construct_memory_view %index, sizes: [64], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<64xi32>
  %yv = ktdp.construct_memory_view %y, sizes: [64], strides: [1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<64xf32>
  %xt = ktdp.construct_access_tile %xv[%c0] {access_tile_set = #set, access_tile_order = #order} : memref<64xf32> -> !ktdp.access_tile<64xindex>
  %d = ktdp.load %xt : !ktdp.access_tile<64xindex> -> tensor<64xf32>
  %yt = ktdp.construct_indirect_access_tile intermediate_variables(%i) %yv[ind(%iv[%i])] {variables_space_set = #set, variables_space_order = #order} : memref<64xf32>, memref<64xi32> -> !ktdp.access_tile<64xindex>
  ktdp.store %d, %yt : tensor<64xf32>, !ktdp.access_tile<64xindex>
  return
}
)");
  const auto &arguments = program->arguments();
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_TRUE(arguments[1].mayBeRead);
  EXPECT_FALSE(arguments[1].mayBeWritten);
  EXPECT_FALSE(arguments[2].mayBeRead);
  EXPECT_TRUE(arguments[2].mayBeWritten);
}

TEST(Program, KeepsLXThroughASequence) {
  auto program = loadProgramBytes(kProgram);
  DeviceMemory memory;
  Buffers buffers(memory);
  for (int threads : {1, 2, 4}) {
    RunOptions options;
    options.threads = threads;
    program->run(memory, buffers.arguments(threads), options);
    for (int i = 0; i < 1024; ++i)
      ASSERT_EQ(buffers.values(buffers.y)[i], i * float(1 << threads));
  }
}

TEST(Program, ReportsWhatKernelsCost) {
  auto program = loadProgramBytes(kProgram);
  DeviceMemory memory;
  Buffers buffers(memory);
  RunOptions options;
  options.report = true;
  for (int64_t n : {2, 2, 3}) {
    RunReport report = program->run(memory, buffers.arguments(n), options);
    ASSERT_EQ(report.kernels.size(), static_cast<size_t>(n) + 2);
    const KernelReport &first = report.kernels[0], &second = report.kernels[1];
    EXPECT_EQ(first.name, "toLX");
    EXPECT_EQ(first.numCores, 8);
    EXPECT_EQ(first.deviceBytesRead, 4096u);
    EXPECT_EQ(first.deviceBytesWritten, 0u);
    // 8 x 16 f32 from byte 32: five sticks.
    EXPECT_EQ(first.lxBytesWritten, 8u * 5 * 128);
    EXPECT_EQ(second.sfuElementOps, 1024u);
    EXPECT_GT(report.predictedSeconds, 0);
    EXPECT_EQ(program->predictedSeconds(), report.predictedSeconds);
  }
}

TEST(Program, NeedsSticksWhereLayoutsAndPoolsBegin) {
  auto program = loadProgramBytes(R"(
func.func @f(%x: index {ktdp.name = "x", ktdp.layout = #ktdp.layout<device_size = [1, 2, 64],
    stride_map = [64, 64, 1], format = SEN169_FP16, host_dtype = float16, shape = [2, 64], strides = [64, 1]>},
    %pool: index {ktdp.name = "pool", ktdp.pool_size = 256 : i64}) {
  return
})");
  DeviceMemory memory;
  auto x = static_cast<int64_t>(memory.allocate(256));
  auto pool = static_cast<int64_t>(memory.allocate(256));
  program->run(memory, {x / 2, pool});
  RunOptions trusting;
  trusting.check = CheckLevel::None;
  auto message = [&](std::vector<int64_t> values) -> std::string {
    program->run(memory, values, trusting);
    try {
      program->run(memory, values);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({x / 2 + 1, pool})
                .find("error: argument 'x' starts at element " +
                      std::to_string(x / 2 + 1) +
                      " of 2 bytes, which is not on a stick of 128 bytes"),
            std::string::npos);
  EXPECT_NE(message({x / 2, pool + 64}).find("error: argument 'pool' starts"),
            std::string::npos);
}

TEST(Program, RunsFromSeveralThreads) {
  auto program = loadProgramBytes(kProgram);
  auto work = [&](int64_t n) {
    DeviceMemory memory;
    Buffers buffers(memory);
    for (int repeat = 0; repeat < 50; ++repeat) {
      program->run(memory, buffers.arguments(n));
      for (int i = 0; i < 1024; i += 17)
        ASSERT_EQ(buffers.values(buffers.y)[i], i * float(1 << n));
    }
  };
  std::thread other(work, 3);
  work(1);
  other.join();
}

TEST(Program, NamesTheLowestFailingCore) {
  auto program = loadProgramBytes(kProgram, {}, "sequence.mlir");
  DeviceMemory memory;
  uint64_t x = memory.allocate(4096 - 1024); // cores 6 and 7 have no rows
  uint64_t y = memory.allocate(4096);
  for (int threads : {1, 2, 3})
    try {
      RunOptions options;
      options.threads = threads;
      memory.free(y);
      program->run(memory, {int64_t(x / 4), int64_t(x / 4), 0}, options);
      FAIL();
    } catch (const Error &e) {
      y = memory.allocate(4096);
      std::string text = e.what();
      EXPECT_EQ(text.find("sequence.mlir:24:8: error: core 6: access to"), 0u)
          << text;
    }
}

// Rows of several blocks of points: what depends on the row alone is computed
// once a row, from each row's own values.
TEST(Program, ComputesUniformValuesPerRow) {
  const char text[] = R"(
#whole = affine_set<(r, c) : (r >= 0, -r + 2 >= 0, c >= 0, -c + 5000 >= 0)>
#order = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r, 0)>
func.func @main(%x: index, %y: index, %z: index) {
  %c0 = arith.constant 0 : index
  %zv = ktdp.construct_memory_view %z, sizes: [3, 5001], strides: [5001, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<3x5001xf32>
  %zt = ktdp.construct_access_tile %zv[%c0, %c0] {access_tile_set = #whole, access_tile_order = #order} : memref<3x5001xf32> -> !ktdp.access_tile<3x5001xindex>
  %xv = ktdp.construct_memory_view %x, sizes: [3, 5001], strides: [5001, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<3x5001xf32>
  %yv = ktdp.construct_memory_view %y, sizes: [3, 5001], strides: [5001, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<3x5001xf32>
  %xt = ktdp.construct_access_tile %xv[%c0, %c0] {access_tile_set = #whole, access_tile_order = #order} : memref<3x5001xf32> -> !ktdp.access_tile<3x5001xindex>
  %yt = ktdp.construct_access_tile %yv[%c0, %c0] {access_tile_set = #whole, access_tile_order = #order} : memref<3x5001xf32> -> !ktdp.access_tile<3x5001xindex>
  %a = ktdp.load %xt : !ktdp.access_tile<3x5001xindex> -> tensor<3x5001xf32>
  %first = tensor.extract_slice %a[0, 0] [3, 1] [1, 1] : tensor<3x5001xf32> to tensor<3x1xf32>
  %e = tensor.empty() : tensor<3x5001xf32>
  %r:2 = linalg.generic {indexing_maps = [#order, #row, #order, #order], iterator_types = ["parallel", "parallel"]} ins(%a, %first : tensor<3x5001xf32>, tensor<3x1xf32>) outs(%e, %e : tensor<3x5001xf32>, tensor<3x5001xf32>) {
  ^bb0(%v: f32, %f: f32, %o: f32, %p: f32):
    %two = arith.addf %f, %f : f32
    %square = arith.mulf %two, %f : f32
    %s = arith.subf %square, %v : f32
    %t = arith.mulf %s, %f : f32
    %u = arith.subf %t, %v : f32
    linalg.yield %u, %square : f32, f32
  } -> (tensor<3x5001xf32>, tensor<3x5001xf32>)
  ktdp.store %r#0, %yt : tensor<3x5001xf32>, !ktdp.access_tile<3x5001xindex>
  ktdp.store %r#1, %zt : tensor<3x5001xf32>, !ktdp.access_tile<3x5001xindex>
  return
}
)";
  constexpr int rows = 3, columns = 5001;
  auto program = loadProgramBytes(text, {}, "uniform.mlir");
  DeviceMemory memory;
  uint64_t x = memory.allocate(rows * columns * 4);
  uint64_t y = memory.allocate(rows * columns * 4);
  uint64_t z = memory.allocate(rows * columns * 4);
  auto at = [&](uint64_t address) {
    return reinterpret_cast<float *>(memory.at(address));
  };
  // Small integers: every product is exact.
  for (int i = 0; i < rows * columns; ++i)
    at(x)[i] = float(i % 7 - 3 + i / columns);
  program->run(memory, {int64_t(x / 4), int64_t(y / 4), int64_t(z / 4)});
  for (int i = 0; i < rows * columns; ++i) {
    float v = at(x)[i], f = at(x)[i / columns * columns];
    ASSERT_EQ(at(y)[i], (2 * f * f - v) * f - v) << i;
    ASSERT_EQ(at(z)[i], 2 * f * f) << i;
  }
}

TEST(Program, RejectsBeforeRunning) {
  auto expectError = [](const std::string &text, const std::string &part) {
    try {
      loadProgramBytes(text, {}, "bad.mlir");
      FAIL() << part;
    } catch (const Error &e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
          << e.what();
    }
  };
  expectError("func.func @f() {", "bad.mlir:1:");
  expectError("func.func @f() { cf.br ^a\n^a: return }", "bad.mlir:1:");
  expectError("func.func @f() { call @g() : () -> ()\nreturn }\n"
              "func.func @g() { call @h() : () -> ()\nreturn }\n"
              "func.func @h() { call @g() : () -> ()\nreturn }",
              "recursive");
  expectError("func.func private @g()\nfunc.func @f() { call @g() : () -> ()\n"
              "return }",
              "@g has no body");
  expectError("func.func @f(%x: tensor<4xf32>) { return }", "argument 0");
  expectError("func.func @f() attributes {grid = [4096]} { return }",
              "grid is too large");
  expectError("func.func @f() { %0 = arith.constant 0.0 : f64\nreturn }",
              "element type is not supported: 'f64'");
  expectError(
      "func.func @f() attributes {grid = [2]} { call @g() : () -> ()\n"
      "return }\nfunc.func private @g() attributes {grid = [1]} { return }",
      "cannot call");
  expectError("", "the module has no sequence function");
  EXPECT_THROW(loadProgramFile("/nonexistent.mlir"), Error);
}
