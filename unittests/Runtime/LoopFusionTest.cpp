// SPDX-License-Identifier: Apache-2.0
#include "Engine/StructuredLoop.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "gtest/gtest.h"

#include <cmath>
#include <functional>

using namespace spyre;
using namespace spyre::runtime;

namespace {
constexpr int kRows = 48, kColumns = 80;
using Values = std::vector<float>;

class Fuse : public testing::Test {
protected:
  /// Runs `body` on x, y [48, 80] into z [sizes], which ends in %r.
  Values run(const std::string &body, const std::string &sizes,
             const std::string &set, int count) {
    std::string text = R"(
#set = affine_set<(r, c) : (r >= 0, -r + 47 >= 0, c >= 0, -c + 79 >= 0)>
#order = affine_map<(r, c) -> (r, c)>
#swap = affine_map<(r, c) -> (c, r)>
#row = affine_map<(r, c) -> (r)>
#id = affine_map<(r) -> (r)>
#out = )" + set + R"(
func.func @f(%x: index, %y: index, %z: index) {
  %c0 = arith.constant 0 : index
  %xv = ktdp.construct_memory_view %x, sizes: [48, 80], strides: [80, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<48x80xf32>
  %yv = ktdp.construct_memory_view %y, sizes: [48, 80], strides: [80, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<48x80xf32>
  %xt = ktdp.construct_access_tile %xv[%c0, %c0] {access_tile_set = #set, access_tile_order = #order} : memref<48x80xf32> -> !ktdp.access_tile<48x80xindex>
  %yt = ktdp.construct_access_tile %yv[%c0, %c0] {access_tile_set = #set, access_tile_order = #order} : memref<48x80xf32> -> !ktdp.access_tile<48x80xindex>
  %a = ktdp.load %xt : !ktdp.access_tile<48x80xindex> -> tensor<48x80xf32>
  %b = ktdp.load %yt : !ktdp.access_tile<48x80xindex> -> tensor<48x80xf32>
)" + body + "  ktdp.store %r, %zt : tensor<" +
                       sizes + "xf32>, !ktdp.access_tile<" + sizes +
                       "xindex>\n  return\n}\n";
    auto program = loadProgramBytes(text, {}, "fuse.mlir");
    DeviceMemory memory;
    uint64_t x = memory.allocate(kRows * kColumns * 4);
    uint64_t y = memory.allocate(kRows * kColumns * 4);
    uint64_t z = memory.allocate(count * 4);
    for (int i = 0; i < kRows * kColumns; ++i) {
      at(memory, x)[i] = left(i);
      at(memory, y)[i] = right(i);
    }
    program->run(memory, {int64_t(x / 4), int64_t(y / 4), int64_t(z / 4)});
    // Inputs stay what they are.
    for (int i = 0; i < kRows * kColumns; ++i)
      EXPECT_EQ(at(memory, x)[i], left(i));
    return Values(at(memory, z), at(memory, z) + count);
  }
  Values square(const std::string &body) {
    return run(
        R"(  %zv = ktdp.construct_memory_view %z, sizes: [48, 80], strides: [80, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<48x80xf32>
  %zt = ktdp.construct_access_tile %zv[%c0, %c0] {access_tile_set = #set, access_tile_order = #order} : memref<48x80xf32> -> !ktdp.access_tile<48x80xindex>
)" + body,
        "48x80", "affine_set<(r) : (r >= 0)>", kRows * kColumns);
  }
  Values vector(const std::string &body) {
    return run(
        R"(  %zv = ktdp.construct_memory_view %z, sizes: [48], strides: [1] {coordinate_set = #out, memory_space = #ktdp.memory_space<global>} : memref<48xf32>
  %zt = ktdp.construct_access_tile %zv[%c0] {access_tile_set = #out, access_tile_order = #id} : memref<48xf32> -> !ktdp.access_tile<48xindex>
)" + body,
        "48", "affine_set<(r) : (r >= 0, -r + 47 >= 0)>", kRows);
  }
  // Small integers: every order of summation is exact.
  static float left(int i) { return float(i * 7 % 31 - 15); }
  static float right(int i) { return float(i * 5 % 17 - 8); }
  static void expectEach(const Values &found,
                         const std::function<float(float, float)> &f) {
    for (int i = 0; i < kRows * kColumns; ++i)
      ASSERT_EQ(found[i], f(left(i), right(i))) << i;
  }

private:
  static float *at(DeviceMemory &memory, uint64_t address) {
    return reinterpret_cast<float *>(memory.at(address));
  }
};
} // namespace

TEST_F(Fuse, Chains) {
  expectEach(square(R"(
  %s = arith.addf %a, %b : tensor<48x80xf32>
  %t = arith.mulf %s, %a : tensor<48x80xf32>
  %u = arith.subf %t, %b : tensor<48x80xf32>
  %r = arith.negf %u : tensor<48x80xf32>
)"),
             [](float a, float b) { return -((a + b) * a - b); });
}

TEST_F(Fuse, TwoTilesAndALastUseBetween) {
  // %a's last use is between the first operation and the one that takes it.
  expectEach(square(R"(
  %s = arith.addf %a, %b : tensor<48x80xf32>
  %t = arith.mulf %a, %a : tensor<48x80xf32>
  %r = arith.subf %s, %t : tensor<48x80xf32>
)"),
             [](float a, float b) { return a + b - a * a; });
}

TEST_F(Fuse, ATileReadTwiceStaysATile) {
  expectEach(square(R"(
  %s = arith.addf %a, %b : tensor<48x80xf32>
  %e = tensor.empty() : tensor<48x80xf32>
  %r = linalg.generic {indexing_maps = [#order, #order, #order], iterator_types = ["parallel", "parallel"]} ins(%s, %s : tensor<48x80xf32>, tensor<48x80xf32>) outs(%e : tensor<48x80xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<48x80xf32>
)"),
             [](float a, float b) { return (a + b) * (a + b); });
}

TEST_F(Fuse, AnOutputThatIsReadStaysATile) {
  expectEach(square(R"(
  %s = arith.addf %a, %b : tensor<48x80xf32>
  %r = linalg.generic {indexing_maps = [#order, #order], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<48x80xf32>) outs(%s : tensor<48x80xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = arith.mulf %p, %o : f32
    linalg.yield %m : f32
  } -> tensor<48x80xf32>
)"),
             [](float a, float b) { return (a + b) * a; });
}

TEST_F(Fuse, StoresBetweenDelay) {
  // The second store overwrites what %s was computed from.
  expectEach(square(R"(
  %s = arith.addf %a, %b : tensor<48x80xf32>
  %n = arith.negf %b : tensor<48x80xf32>
  ktdp.store %n, %yt : tensor<48x80xf32>, !ktdp.access_tile<48x80xindex>
  %r = arith.mulf %s, %a : tensor<48x80xf32>
)"),
             [](float a, float b) { return (a + b) * a; });
}

TEST_F(Fuse, PermutedReads) {
  Values found = square(R"(
  %s = arith.addf %a, %b : tensor<48x80xf32>
  %te = tensor.empty() : tensor<80x48xf32>
  %t = linalg.generic {indexing_maps = [#swap, #order], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<48x80xf32>) outs(%te : tensor<80x48xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = arith.addf %p, %p : f32
    linalg.yield %m : f32
  } -> tensor<80x48xf32>
  %ue = tensor.empty() : tensor<48x80xf32>
  %r = linalg.generic {indexing_maps = [#swap, #order, #order], iterator_types = ["parallel", "parallel"]} ins(%t, %b : tensor<80x48xf32>, tensor<48x80xf32>) outs(%ue : tensor<48x80xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.subf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<48x80xf32>
)");
  expectEach(found, [](float a, float b) { return 2 * (a + b) - b; });
}

TEST_F(Fuse, Reductions) {
  Values found = vector(R"(
  %s = arith.mulf %a, %b : tensor<48x80xf32>
  %t = arith.addf %s, %a : tensor<48x80xf32>
  %c = arith.constant 3.0 : f32
  %e = tensor.empty() : tensor<48xf32>
  %i = linalg.fill ins(%c : f32) outs(%e : tensor<48xf32>) -> tensor<48xf32>
  %r = linalg.reduce { arith.addf } ins(%t : tensor<48x80xf32>) outs(%i : tensor<48xf32>) dimensions = [1]
)");
  for (int r = 0; r < kRows; ++r) {
    float expected = 3;
    for (int c = 0; c < kColumns; ++c) {
      int i = r * kColumns + c;
      expected += left(i) * right(i) + left(i);
    }
    EXPECT_EQ(found[r], expected) << r;
  }
}

TEST_F(Fuse, BroadcastTilesAreComputedOnce) {
  // One value per row for all columns: no fusion, the same values.
  expectEach(square(R"(
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<48xf32>
  %i = linalg.fill ins(%c : f32) outs(%e : tensor<48xf32>) -> tensor<48xf32>
  %m = linalg.reduce { arith.maximumf } ins(%a : tensor<48x80xf32>) outs(%i : tensor<48xf32>) dimensions = [1]
  %n = arith.addf %m, %m : tensor<48xf32>
  %ue = tensor.empty() : tensor<48x80xf32>
  %r = linalg.generic {indexing_maps = [#order, #row, #order], iterator_types = ["parallel", "parallel"]} ins(%b, %n : tensor<48x80xf32>, tensor<48xf32>) outs(%ue : tensor<48x80xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %v = arith.addf %p, %q : f32
    linalg.yield %v : f32
  } -> tensor<48x80xf32>
)"),
             // 80 consecutive elements hold all 31 values: the largest is 15.
             [](float, float b) { return b + 30; });
}

TEST(FuseLoops, TakesElementwiseLoopsIn) {
  // Three operations on registers of one loop, as the loader makes them.
  auto make = [](std::vector<int> inputs, int result, BinaryOp op) {
    auto loop = std::make_unique<StructuredLoop>();
    loop->numLoops = 1;
    loop->isReduction = {false};
    loop->extentSource = {{0, 0}};
    MapResult identity;
    identity.terms = {{0, 1}};
    ScalarOp body;
    body.kind = ScalarOp::Binary;
    body.op = uint8_t(op);
    for (int slot : inputs) {
      loop->inputs.push_back({{slot, false}, Elem::F32, {identity}});
      loop->body.inputs.push_back(loop->body.addReg(Elem::F32));
    }
    loop->outputs.push_back({{inputs[0], false}, Elem::F32, {identity}});
    loop->body.inputs.push_back(loop->body.addReg(Elem::F32));
    body.a = 0;
    body.b = static_cast<int>(inputs.size()) - 1;
    body.dst = loop->body.addReg(Elem::F32);
    loop->body.ops = {body};
    loop->body.yields = {body.dst};
    loop->body.finish();
    loop->results = {result};
    loop->readsOutput = {false};
    loop->coversOutput = {true};
    loop->isReadOnce = true;
    return loop;
  };
  Block block;
  block.instrs.push_back(make({0, 1}, 2, BinaryOp::Add));
  block.instrs.push_back(make({2, 0}, 3, BinaryOp::Mul));
  block.instrs.push_back(make({3, 1}, 4, BinaryOp::Sub));
  block.instrs[0]->releases = {7};
  fuseLoops(block);
  auto at = [&](int i) -> StructuredLoop & {
    return static_cast<StructuredLoop &>(*block.instrs[i]);
  };
  EXPECT_TRUE(at(0).isFusedAway);
  EXPECT_TRUE(at(1).isFusedAway);
  EXPECT_FALSE(at(2).isFusedAway);
  ASSERT_TRUE(at(2).fused);
  EXPECT_EQ(at(2).fused->body.ops.size(), 3u);
  EXPECT_EQ(at(2).fused->inputs.size(), 4u); // 0, 1, 0, 1
  EXPECT_EQ(block.instrs[0]->frees.size(), 0u);
  EXPECT_EQ(block.instrs[2]->frees, std::vector<int>{7});
  // In the LX of the device the tile dies where it did.
  EXPECT_EQ(block.instrs[0]->releases, std::vector<int>{7});
  // The passes that the device makes are still there.
  EXPECT_EQ(at(2).body.ops.size(), 1u);
}

//===----------------------------------------------------------------------===//
// Codes in device memory
//===----------------------------------------------------------------------===//

namespace {
/// A sum %s of the rows of y and the elements %a of x, [128, 80], give %r.
class Codes : public testing::Test {
protected:
  static constexpr int kRows = 128, kColumns = 80, kSpace = 40000;

  /// What is in memory afterwards; the result begins at element `place`, where
  /// x begins at 64.
  static std::vector<uint16_t> run(const std::string &body,
                                   const std::string &strides, int place,
                                   CheckLevel check) {
    std::string text =
        R"(
#set = affine_set<(r, c) : (r >= 0, -r + 127 >= 0, c >= 0, -c + 79 >= 0)>
#id = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
func.func @f(%x: index, %y: index, %z: index) {
  %c0 = arith.constant 0 : index
  %xv = ktdp.construct_memory_view %x, sizes: [128, 80], strides: [80, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<128x80xf16>
  %yv = ktdp.construct_memory_view %y, sizes: [128, 80], strides: [80, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<128x80xf16>
  %zv = ktdp.construct_memory_view %z, sizes: [128, 80], strides: [)" +
        strides +
        R"(] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<128x80xf16>
  %xt = ktdp.construct_access_tile %xv[%c0, %c0] {access_tile_set = #set, access_tile_order = #id} : memref<128x80xf16> -> !ktdp.access_tile<128x80xindex>
  %yt = ktdp.construct_access_tile %yv[%c0, %c0] {access_tile_set = #set, access_tile_order = #id} : memref<128x80xf16> -> !ktdp.access_tile<128x80xindex>
  %zt = ktdp.construct_access_tile %zv[%c0, %c0] {access_tile_set = #set, access_tile_order = #id} : memref<128x80xf16> -> !ktdp.access_tile<128x80xindex>
  %a = ktdp.load %xt : !ktdp.access_tile<128x80xindex> -> tensor<128x80xf16>
  %b = ktdp.load %yt : !ktdp.access_tile<128x80xindex> -> tensor<128x80xf16>
  %zero = arith.constant 0.0 : f16
  %se = tensor.empty() : tensor<128xf16>
  %sf = linalg.fill ins(%zero : f16) outs(%se : tensor<128xf16>) -> tensor<128xf16>
  %s = linalg.reduce { arith.addf } ins(%b : tensor<128x80xf16>) outs(%sf : tensor<128xf16>) dimensions = [1]
  %e = tensor.empty() : tensor<128x80xf16>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %s : tensor<128x80xf16>, tensor<128xf16>) outs(%e : tensor<128x80xf16>) {
  ^bb0(%p: f16, %q: f16, %o: f16):
    )" + body +
        R"(
    linalg.yield %v : f16
  } -> tensor<128x80xf16>
  ktdp.store %r, %zt : tensor<128x80xf16>, !ktdp.access_tile<128x80xindex>
  return
}
)";
    auto program = loadProgramBytes(text, {}, "codes.mlir");
    DeviceMemory memory;
    uint64_t base = memory.allocate(kSpace * 2);
    auto *codes = reinterpret_cast<uint16_t *>(memory.at(base));
    // Around one, but for zeros and one infinity.
    for (int i = 0; i < kSpace; ++i)
      codes[i] = uint16_t(i % 97 == 5 ? 0 : 0x3c00 + i * 37 % 0x500);
    codes[64 + 1234] = 0xffff;
    int y = 64 + kRows * kColumns + 100;
    int64_t start = int64_t(base / 2);
    RunOptions options;
    options.check = check;
    program->run(memory, {start + 64, start + y, start + place}, options);
    return std::vector<uint16_t>(codes, codes + kSpace);
  }
};
} // namespace

// Whether values are held as floats or as codes on the way makes no difference:
// --check=full keeps every tile.
TEST_F(Codes, StoresAsLoopsCompute) {
  const char *bodies[] = {
      "%v = arith.divf %p, %q : f16",
      "%t = arith.subf %p, %q : f16\n%v = arith.mulf %t, %p : f16",
      "%t = arith.mulf %q, %q : f16\n%v = arith.addf %p, %t : f16",
      "%t = arith.subf %p, %q : f16\n%v = math.exp %t : f16",
      "%v = arith.mulf %q, %q : f16",
      R"(%t = arith.addf %p, %p : f16
    %u = arith.mulf %t, %t : f16
    %v = arith.addf %u, %q : f16)",
      R"(%t = arith.divf %q, %p : f16
    %u = arith.subf %t, %q : f16
    %v = arith.divf %u, %q : f16)",
      R"(%pf = arith.extf %p : f16 to f32
    %qf = arith.extf %q : f16 to f32
    %t = arith.subf %pf, %qf : f32
    %u = arith.mulf %t, %qf : f32
    %v = arith.truncf %u : f32 to f16)",
      R"(%qf = arith.extf %q : f16 to f32
    %t = arith.mulf %p, %q : f16
    %tf = arith.extf %t : f16 to f32
    %u = arith.subf %qf, %tf : f32
    %w = arith.mulf %u, %qf : f32
    %v = arith.truncf %w : f32 to f16)",
      R"(%pf = arith.extf %p : f16 to f32
    %v = arith.truncf %pf : f32 to f16)",
      R"(%qf = arith.extf %q : f16 to f32
    %v = arith.truncf %qf : f32 to f16)",
      R"(%pf = arith.extf %p : f16 to f32
    %qf = arith.extf %q : f16 to f32
    %t = arith.subf %pf, %qf : f32
    %u = math.exp %t : f32
    %v = arith.truncf %u : f32 to f16)"};
  struct Place {
    const char *strides;
    int begin;
  };
  // Behind x and y; transposed, and with gaps; where x is, and near it; several
  // values in one place.
  const Place places[] = {
      {"80, 1", 22000}, {"1, 128", 22000}, {"90, 1", 22000}, {"160, 2", 19000},
      {"80, 1", 64},    {"80, 1", 144},    {"80, 1", 0},     {"1, 128", 64},
      {"0, 1", 22000},  {"1, 1", 22000},   {"2, 3", 22000}};
  for (const char *body : bodies)
    for (const Place &place : places) {
      std::vector<uint16_t> expected =
          run(body, place.strides, place.begin, CheckLevel::Full);
      for (CheckLevel check : {CheckLevel::None, CheckLevel::Bounds})
        ASSERT_EQ(run(body, place.strides, place.begin, check), expected)
            << body << ", strides " << place.strides << " from " << place.begin;
    }
}

// What varies in one block has one value in a block of one column.
TEST(Blocks, TheLastOneOfARowMayHaveOneColumn) {
  constexpr int rows = 3, columns = 2049;
  auto program = loadProgramBytes(R"(
#set = affine_set<(r, c) : (r >= 0, -r + 2 >= 0, c >= 0, -c + 2048 >= 0)>
#order = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
func.func @f(%x: index, %z: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %xv = ktdp.construct_memory_view %x, sizes: [3, 2049], strides: [2049, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<3x2049xf32>
  %zv = ktdp.construct_memory_view %z, sizes: [3, 2049], strides: [2049, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<3x2049xf32>
  %xt = ktdp.construct_access_tile %xv[%c0, %c0] {access_tile_set = #set, access_tile_order = #order} : memref<3x2049xf32> -> !ktdp.access_tile<3x2049xindex>
  %zt = ktdp.construct_access_tile %zv[%c0, %c0] {access_tile_set = #set, access_tile_order = #order} : memref<3x2049xf32> -> !ktdp.access_tile<3x2049xindex>
  %a = ktdp.load %xt : !ktdp.access_tile<3x2049xindex> -> tensor<3x2049xf32>
  %me = tensor.empty() : tensor<3xf32>
  %mf = linalg.fill ins(%zero : f32) outs(%me : tensor<3xf32>) -> tensor<3xf32>
  %m = linalg.reduce { arith.maximumf } ins(%a : tensor<3x2049xf32>) outs(%mf : tensor<3xf32>) dimensions = [1]
  %e = tensor.empty() : tensor<3x2049xf32>
  %r = linalg.generic {indexing_maps = [#order, #row, #order], iterator_types = ["parallel", "parallel"]} ins(%a, %m : tensor<3x2049xf32>, tensor<3xf32>) outs(%e : tensor<3x2049xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.subf %p, %q : f32
    %t = arith.mulf %s, %q : f32
    %u = math.absf %t : f32
    linalg.yield %u : f32
  } -> tensor<3x2049xf32>
  ktdp.store %r, %zt : tensor<3x2049xf32>, !ktdp.access_tile<3x2049xindex>
  return
}
)",
                                  {}, "blocks.mlir");
  DeviceMemory memory;
  uint64_t x = memory.allocate(rows * columns * 4);
  uint64_t z = memory.allocate(rows * columns * 4);
  auto at = [&](uint64_t address) {
    return reinterpret_cast<float *>(memory.at(address));
  };
  auto valueOf = [](int i) { return float(i * 7 % 31); };
  for (int i = 0; i < rows * columns; ++i)
    at(x)[i] = valueOf(i);
  program->run(memory, {int64_t(x / 4), int64_t(z / 4)});
  for (int i = 0; i < rows * columns; ++i)
    ASSERT_EQ(at(z)[i], (30 - valueOf(i)) * 30) << i;
}

namespace {
/// What a program with two arguments, `from` and `to`, leaves of codes that are
/// given.
std::vector<uint16_t> runOnCodes(const Program &program,
                                 const std::vector<uint16_t> &codes, int from,
                                 int to, CheckLevel check,
                                 int64_t *numTables = nullptr) {
  DeviceMemory memory;
  uint64_t base = memory.allocate(uint64_t(codes.size()) * 2);
  auto *stored = reinterpret_cast<uint16_t *>(memory.at(base));
  std::copy(codes.begin(), codes.end(), stored);
  auto start = int64_t(base / 2);
  RunOptions options;
  options.check = check;
  HostWork work = program.run(memory, {start + from, start + to}, options).host;
  if (numTables)
    *numTables += work.tables;
  return std::vector<uint16_t>(stored, stored + codes.size());
}

std::vector<uint16_t> numbers(int count) {
  std::vector<uint16_t> result(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    result[size_t(i)] = uint16_t(i % 0x7fff);
  return result;
}

int numSticks(int elements) { return (elements + 63) / 64; }

std::string setOf(const std::vector<std::pair<const char *, int>> &dims) {
  std::string names, bounds;
  for (auto [name, size] : dims) {
    names += (names.empty() ? "" : ", ") + std::string(name);
    bounds += (bounds.empty() ? "" : ", ") + std::string(name) + " >= 0, -" +
              name + " + " + std::to_string(size - 1) + " >= 0";
  }
  return "affine_set<(" + names + ") : (" + bounds + ")>";
}

/// A program that reads a tile of sticks along columns, whose element %p
/// becomes %v, and writes sticks along rows or columns.
std::string turnSticks(int rows, int columns, const std::string &body,
                       bool isTurned) {
  std::string shape = std::to_string(rows) + "x" + std::to_string(columns);
  std::string tile = "!ktdp.access_tile<" + shape + "xindex>";
  std::string tensor = "tensor<" + shape + "xf16>";
  auto access = [&](const std::string &name, bool isAlongRows) {
    int sticks = numSticks(isAlongRows ? rows : columns);
    int count = isAlongRows ? columns : rows;
    std::string stick = isAlongRows ? "%i" : "%j";
    std::string other = isAlongRows ? "%j" : "%i";
    std::string type = "memref<" + std::to_string(sticks) + "x" +
                       std::to_string(count) + "x64xf16>";
    return "  %" + name + "v = ktdp.construct_memory_view %" + name +
           ", sizes: [" + std::to_string(sticks) + ", " +
           std::to_string(count) + ", 64], strides: [" +
           std::to_string(count * 64) + ", 64, 1] {coordinate_set = " +
           setOf({{"s", sticks}, {"i", count}, {"l", 64}}) +
           ", memory_space = #ktdp.memory_space<global>} : " + type + "\n  %" +
           name + "t = ktdp.construct_indirect_access_tile " +
           "intermediate_variables(%i, %j) %" + name + "v[(" + stick +
           " floordiv 64), (" + other + "), (" + stick +
           " mod 64)] {variables_space_order = #order, variables_space_set = " +
           setOf({{"i", rows}, {"j", columns}}) + "} : " + type + " -> " +
           tile + "\n";
  };
  return "#order = affine_map<(i, j) -> (i, j)>\n"
         "func.func @f(%x: index, %z: index) {\n" +
         access("x", false) + access("z", isTurned) +
         "  %a = ktdp.load %xt : " + tile + " -> " + tensor +
         "\n  %e = tensor.empty() : " + tensor +
         "\n  %r = linalg.generic {indexing_maps = [#order, #order], "
         "iterator_types = [\"parallel\", \"parallel\"]} ins(%a : " +
         tensor + ") outs(%e : " + tensor + ") {\n  ^bb0(%p: f16, %o: f16):\n" +
         body + "\n    linalg.yield %v : f16\n  } -> " + tensor +
         "\n  ktdp.store %r, %zt : " + tensor + ", " + tile + "\n  return\n}\n";
}
} // namespace

// Rows of sticks become columns of sticks; sizes that fill no stick, and places
// that take some of what is read.
TEST(MovedCodes, ToOtherSticks) {
  for (auto [rows, columns] :
       {std::pair(256, 128), std::pair(65, 130), std::pair(1, 70),
        std::pair(70, 1), std::pair(129, 63)}) {
    auto program = loadProgramBytes(turnSticks(rows, columns, R"(
    %w = arith.extf %p : f16 to f32
    %v = arith.truncf %w : f32 to f16)",
                                               /*isTurned=*/true),
                                    {}, "sticks.mlir");
    int fromSize = numSticks(columns) * rows * 64;
    std::vector<uint16_t> codes =
        numbers(fromSize + numSticks(rows) * columns * 64);
    for (int to : {fromSize, fromSize - 64, 0})
      for (CheckLevel check :
           {CheckLevel::None, CheckLevel::Bounds, CheckLevel::Full}) {
        std::vector<uint16_t> expected = codes;
        for (int i = 0; i < rows; ++i)
          for (int j = 0; j < columns; ++j)
            expected[size_t(to + (i / 64 * columns + j) * 64 + i % 64)] =
                codes[size_t((j / 64 * rows + i) * 64 + j % 64)];
        ASSERT_EQ(runOnCodes(*program, codes, 0, to, check), expected)
            << rows << "x" << columns << " to " << to;
      }
  }
}

// --check=full computes each element.
TEST(MovedCodes, AreLookedUpAsTheyAreComputed) {
  const char *bodies[] = {"%v = math.tanh %p : f16", R"(
    %w = arith.extf %p : f16 to f32
    %t = math.erf %w : f32
    %u = arith.mulf %t, %w : f32
    %v = arith.truncf %u : f32 to f16)"};
  constexpr int rows = 515, columns = 512, size = rows * columns;
  std::vector<uint16_t> codes(2 * numSticks(rows) * 64 * columns);
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = uint16_t(i);
  for (const char *body : bodies)
    for (bool isTurned : {false, true})
      for (int to : {size, size - 64, 0}) {
        auto program = loadProgramBytes(
            turnSticks(rows, columns, body, isTurned), {}, "table.mlir");
        int64_t numTables = 0;
        std::vector<uint16_t> expected =
            runOnCodes(*program, codes, 0, to, CheckLevel::Full, &numTables);
        EXPECT_EQ(numTables, 0);
        for (CheckLevel check : {CheckLevel::Bounds, CheckLevel::None}) {
          ASSERT_EQ(runOnCodes(*program, codes, 0, to, check, &numTables),
                    expected)
              << body << " to " << to;
          EXPECT_EQ(numTables, 1);
        }
      }
}

// A row of a tile that is no loop's.
TEST(MovedCodes, FromAConstantRow) {
  std::string text = R"(
#rows = affine_set<(r, c) : (r >= 0, -r + 3 >= 0, c >= 0, -c + 4095 >= 0)>
#row = affine_set<(c) : (c >= 0, -c + 4095 >= 0)>
#order = affine_map<(r, c) -> (r, c)>
#second = affine_map<(c) -> (2, c)>
#id = affine_map<(c) -> (c)>
func.func @f(%x: index, %z: index) {
  %c0 = arith.constant 0 : index
  %xv = ktdp.construct_memory_view %x, sizes: [4, 4096], strides: [4096, 1] {coordinate_set = #rows, memory_space = #ktdp.memory_space<global>} : memref<4x4096xf16>
  %zv = ktdp.construct_memory_view %z, sizes: [4096], strides: [1] {coordinate_set = #row, memory_space = #ktdp.memory_space<global>} : memref<4096xf16>
  %xt = ktdp.construct_access_tile %xv[%c0, %c0] {access_tile_set = #rows, access_tile_order = #order} : memref<4x4096xf16> -> !ktdp.access_tile<4x4096xindex>
  %zt = ktdp.construct_access_tile %zv[%c0] {access_tile_set = #row, access_tile_order = #id} : memref<4096xf16> -> !ktdp.access_tile<4096xindex>
  %a = ktdp.load %xt : !ktdp.access_tile<4x4096xindex> -> tensor<4x4096xf16>
  %e = tensor.empty() : tensor<4096xf16>
  %r = linalg.generic {indexing_maps = [#second, #id], iterator_types = ["parallel"]} ins(%a : tensor<4x4096xf16>) outs(%e : tensor<4096xf16>) {
  ^bb0(%p: f16, %o: f16):
    linalg.yield %p : f16
  } -> tensor<4096xf16>
  ktdp.store %r, %zt : tensor<4096xf16>, !ktdp.access_tile<4096xindex>
  return
}
)";
  auto program = loadProgramBytes(text, {}, "row.mlir");
  std::vector<uint16_t> found =
      runOnCodes(*program, numbers(5 * 4096), 0, 4 * 4096, CheckLevel::Bounds);
  for (int i = 0; i < 4096; ++i)
    ASSERT_EQ(found[size_t(4 * 4096 + i)], 2 * 4096 + i);
}
