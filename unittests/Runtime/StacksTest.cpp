// SPDX-License-Identifier: Apache-2.0
#include "Engine/Stacks.h"
#include "ReplaceAll.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "gtest/gtest.h"

#include <functional>
#include <map>

using namespace spyre;
using namespace spyre::runtime;

namespace {
/// Tiles of 16 elements: each core has `trips` of them, one behind another.
constexpr int kTile = 16;

/// A kernel on tiles %a of x, %b of y and one of z, in whose body %at is where
/// they begin. It has `%xt`, `%yt` and `%zt`, and ends with a store.
std::string kernelOf(int cores, int trips, const std::string &body,
                     const std::string &placeOfZ = "%at") {
  std::map<std::string, std::string> words = {
      {"CORES", std::to_string(cores)},
      {"PART", std::to_string(trips * kTile)},
      {"COUNT", std::to_string(cores * trips * kTile)},
      {"LAST", std::to_string(cores * trips * kTile - 1)},
      {"PLACE", placeOfZ},
      {"BODY", body}};
  std::string text = R"(
#all = affine_set<(i) : (i >= 0, -i + LAST >= 0)>
#tile = affine_set<(i) : (i >= 0, -i + 15 >= 0)>
#tiles = affine_set<(i) : (i >= 0, -i + 31 >= 0)>
#one = affine_set<(i) : (i >= 0, -i >= 0)>
#id = affine_map<(i) -> (i)>
#first = affine_map<(i) -> (0)>
func.func @kernel(%x: index, %y: index, %z: index) attributes {grid = [CORES]} {
  %core = ktdp.get_compute_tile_id : index
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %part = arith.constant PART : index
  %start = arith.muli %core, %part : index
  scf.for %i = %c0 to %part step %c16 {
    %at = arith.addi %start, %i : index
    %xv = ktdp.construct_memory_view %x, sizes: [COUNT], strides: [1] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<COUNTxf32>
    %yv = ktdp.construct_memory_view %y, sizes: [COUNT], strides: [1] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<COUNTxf32>
    %zv = ktdp.construct_memory_view %z, sizes: [COUNT], strides: [1] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<COUNTxf32>
    %xt = ktdp.construct_access_tile %xv[%at] {access_tile_set = #tile, access_tile_order = #id} : memref<COUNTxf32> -> !ktdp.access_tile<16xindex>
    %yt = ktdp.construct_access_tile %yv[%at] {access_tile_set = #tile, access_tile_order = #id} : memref<COUNTxf32> -> !ktdp.access_tile<16xindex>
    %zt = ktdp.construct_access_tile %zv[PLACE] {access_tile_set = #tile, access_tile_order = #id} : memref<COUNTxf32> -> !ktdp.access_tile<16xindex>
    %a = ktdp.load %xt : !ktdp.access_tile<16xindex> -> tensor<16xf32>
    %b = ktdp.load %yt : !ktdp.access_tile<16xindex> -> tensor<16xf32>
BODY
  }
  return
}
func.func @main(%x: index, %y: index, %z: index) {
  func.call @kernel(%x, %y, %z) : (index, index, index) -> ()
  return
}
)";
  for (const auto &[word, by] : words)
    replaceAll(text, word, by);
  return text;
}

/// The same kernel with elements of DL16.
std::string ofCodes(std::string kernel) {
  replaceAll(kernel, "f32", "f16");
  return kernel;
}

/// The same kernel without %b.
std::string ofOneInput(std::string kernel) {
  size_t load = kernel.find("    %b = ktdp.load");
  return kernel.erase(load, kernel.find('\n', load) - load);
}

const char kAdd[] = R"(
    %s = arith.addf %a, %b : tensor<16xf32>
    ktdp.store %s, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)";

class Stacks : public testing::Test {
protected:
  /// Where x, y and z are, in elements.
  struct Places {
    int64_t x, y, z;
  };
  /// A new array of elements.
  int64_t allocate(int64_t count) {
    return int64_t(memory.allocate(uint64_t(count) * 4)) / 4;
  }
  float *at(int64_t element) {
    return reinterpret_cast<float *>(memory.at(uint64_t(element) * 4));
  }
  void fill(int64_t element, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      at(element)[i] = float(next++ * 7 % 31 - 15);
  }
  int64_t makeFilled(int64_t count) {
    int64_t element = allocate(count);
    fill(element, count);
    return element;
  }
  static std::shared_ptr<Program> load(const std::string &text) {
    return loadProgramBytes(text, {}, "stacks.mlir");
  }
  /// The number of stacks that a run has; 0: its cores run one by one.
  int64_t run(const Program &program, Places places,
              OutOfBounds oob = OutOfBounds::Error,
              CheckLevel check = CheckLevel::Bounds) {
    RunOptions options;
    options.check = check;
    options.oob = oob;
    HostWork work =
        program.run(memory, {places.x, places.y, places.z}, options).host;
    numTables += work.tables;
    return work.shortcutTasks;
  }
  std::string errorOf(const Program &program, Places places) {
    try {
      run(program, places);
    } catch (const Error &error) {
      return error.what();
    }
    return "no error";
  }
  /// What `program` leaves in `count` elements from `from` on, which are the
  /// same before each run: of cores one by one, then run by run.
  void expectSame(const Program &program, Places places, int64_t from,
                  int64_t count, int64_t numStacks, bool isKnown = false) {
    std::vector<float> before(at(from), at(from) + count);
    // Reads outside of an allocation need cores.
    EXPECT_EQ(run(program, places, OutOfBounds::Zero), 0);
    std::vector<float> expected(at(from), at(from) + count);
    for (int i = 0; i < 3; ++i) {
      std::copy(before.begin(), before.end(), at(from));
      int64_t found = run(program, places);
      EXPECT_EQ(std::vector<float>(at(from), at(from) + count), expected)
          << "run " << i;
      EXPECT_EQ(found, i == 0 && !isKnown ? 0 : numStacks) << "run " << i;
    }
  }

  DeviceMemory memory;
  int64_t numTables = 0; ///< of all runs

private:
  int next = 0;
};
} // namespace

TEST_F(Stacks, IterationsOfAllCoresAreOne) {
  constexpr int cores = 5, trips = 3, count = cores * trips * kTile;
  auto program = load(kernelOf(cores, trips, kAdd));
  for (int i = 0; i < 4; ++i) {
    // Elsewhere each time.
    Places places{makeFilled(count), makeFilled(count), allocate(count)};
    EXPECT_EQ(run(*program, places), i == 0 ? 0 : 1);
    for (int e = 0; e < count; ++e)
      ASSERT_EQ(at(places.z)[e], at(places.x)[e] + at(places.y)[e]) << e;
  }
}

TEST_F(Stacks, OfOneLoopAreDense) {
  constexpr int cores = 32, trips = 256, count = cores * trips * kTile;
  auto program = load(kernelOf(cores, trips, kAdd));
  Places places{makeFilled(count), makeFilled(count), allocate(count)};
  expectSame(*program, places, places.z, count, 2); // of 65,536 elements
}

// Tiles of four rows and four columns, of columns one behind another.
TEST_F(Stacks, OfOneOrderAreDense) {
  constexpr int cores = 32, trips = 256, columns = cores * trips * 4;
  auto kernelOf = [](const std::string &x, const std::string &y,
                     const std::string &z) {
    std::string text = R"(
#all = affine_set<(r, c) : (r >= 0, -r + 3 >= 0, c >= 0, -c + 32767 >= 0)>
#tile = affine_set<(r, c) : (r >= 0, -r + 3 >= 0, c >= 0, -c + 3 >= 0)>
#id = affine_map<(r, c) -> (r, c)>
func.func @kernel(%x: index, %y: index, %z: index) attributes {grid = [32]} {
  %core = ktdp.get_compute_tile_id : index
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %part = arith.constant 1024 : index
  %start = arith.muli %core, %part : index
  scf.for %i = %c0 to %part step %c4 {
    %at = arith.addi %start, %i : index
    %xv = ktdp.construct_memory_view %x, sizes: [4, 32768], strides: [XS] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<4x32768xf32>
    %yv = ktdp.construct_memory_view %y, sizes: [4, 32768], strides: [YS] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<4x32768xf32>
    %zv = ktdp.construct_memory_view %z, sizes: [4, 32768], strides: [ZS] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<4x32768xf32>
    %xt = ktdp.construct_access_tile %xv[%c0, %at] {access_tile_set = #tile, access_tile_order = #id} : memref<4x32768xf32> -> !ktdp.access_tile<4x4xindex>
    %yt = ktdp.construct_access_tile %yv[%c0, %at] {access_tile_set = #tile, access_tile_order = #id} : memref<4x32768xf32> -> !ktdp.access_tile<4x4xindex>
    %zt = ktdp.construct_access_tile %zv[%c0, %at] {access_tile_set = #tile, access_tile_order = #id} : memref<4x32768xf32> -> !ktdp.access_tile<4x4xindex>
    %a = ktdp.load %xt : !ktdp.access_tile<4x4xindex> -> tensor<4x4xf32>
    %b = ktdp.load %yt : !ktdp.access_tile<4x4xindex> -> tensor<4x4xf32>
    %s = arith.subf %a, %b : tensor<4x4xf32>
    ktdp.store %s, %zt : tensor<4x4xf32>, !ktdp.access_tile<4x4xindex>
  }
  return
}
func.func @main(%x: index, %y: index, %z: index) {
  func.call @kernel(%x, %y, %z) : (index, index, index) -> ()
  return
}
)";
    replaceAll(text, "XS", x);
    replaceAll(text, "YS", y);
    replaceAll(text, "ZS", z);
    return text;
  };
  constexpr int64_t room = 5 * columns;
  Places places{makeFilled(room), makeFilled(room), makeFilled(room)};
  const std::string byColumns = "1, 4", byRows = "32768, 1", apart = "1, 5";
  // Of 65,536 elements.
  auto alike = load(kernelOf(byColumns, byColumns, byColumns));
  expectSame(*alike, places, places.z, room, 2);
  EXPECT_EQ(at(places.z)[4321], at(places.x)[4321] - at(places.y)[4321]);
  // Of 8,192: they differ, or there is something between them.
  auto unalike = load(kernelOf(byColumns, byRows, byColumns));
  expectSame(*unalike, places, places.z, room, 16);
  EXPECT_EQ(at(places.z)[4321],
            at(places.x)[4321] - at(places.y)[32768 + 1080]);
  auto withGaps = load(kernelOf(apart, apart, apart));
  expectSame(*withGaps, places, places.z, room, 16);
}

// The last chain of a body writes codes.
TEST_F(Stacks, OfSeveralBlocksEndInCodes) {
  constexpr int cores = 8, trips = 40, count = cores * trips * kTile;
  for (const char *body :
       {"%e = math.exp %a : tensor<16xf32>\n%s = arith.mulf %e, %b : "
        "tensor<16xf32>",
        "%e = math.exp %a : tensor<16xf32>\n%t = arith.subf %e, %b : "
        "tensor<16xf32>\n%s = arith.divf %b, %t : tensor<16xf32>",
        "%e = arith.maximumf %b, %a : tensor<16xf32>\n%s = arith.addf %e, %e "
        ": tensor<16xf32>"}) {
    auto program = load(ofCodes(
        kernelOf(cores, trips,
                 std::string(body) + "\nktdp.store %s, %zt : tensor<16xf32>, "
                                     "!ktdp.access_tile<16xindex>\n")));
    auto place = [&] { return allocate(count / 2) * 2; };
    Places places{place(), place(), place()};
    auto codesAt = [&](int64_t element) {
      return reinterpret_cast<uint16_t *>(at(element / 2));
    };
    for (int e = 0; e < count; ++e) {
      codesAt(places.x)[e] = uint16_t(e * 40503);
      codesAt(places.y)[e] = uint16_t(e * 77 + 5);
    }
    std::vector<uint16_t> expected;
    for (int i = 0; i < 3; ++i) {
      std::fill_n(codesAt(places.z), count, uint16_t(0));
      EXPECT_EQ(run(*program, places), i == 0 ? 0 : 1);
      if (i == 0)
        expected.assign(codesAt(places.z), codesAt(places.z) + count);
      ASSERT_TRUE(
          std::equal(expected.begin(), expected.end(), codesAt(places.z)))
          << body;
    }
  }
}

// What only moves codes copies them; what makes floats of them does not.
TEST_F(Stacks, CodesThatOnlyMove) {
  constexpr int cores = 4, trips = 40, count = cores * trips * kTile;
  const std::string generic = R"(
    %e = tensor.empty() : tensor<16xZ>
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : tensor<16xf32>) outs(%e : tensor<16xZ>) {
    ^bb0(%p: f32, %o: Z):
      MOVE
    } -> tensor<16xZ>
    ktdp.store %s, %zt : tensor<16xZ>, !ktdp.access_tile<16xindex>
)";
  for (bool isWide : {false, true}) {
    std::string body = generic;
    replaceAll(body, "MOVE",
               isWide ? "%w = arith.extf %p : f32 to Z\nlinalg.yield %w : Z"
                      : "%w = arith.extf %p : f32 to Y\n%v = arith.truncf %w "
                        ": Y to Z\nlinalg.yield %v : Z");
    std::string kernel = ofCodes(ofOneInput(kernelOf(cores, trips, body)));
    // Views and tiles of z have its type.
    for (const char *name : {"%zv = ", "%zt = "}) {
      size_t begin = kernel.find(name), end = kernel.find('\n', begin);
      std::string line = kernel.substr(begin, end - begin);
      replaceAll(line, "f16", "Z");
      kernel.replace(begin, end - begin, line);
    }
    replaceAll(kernel, "Z", isWide ? "f32" : "f16");
    replaceAll(kernel, "Y", "f32");
    auto program = load(kernel);
    int64_t x = allocate(count / 2) * 2, z = allocate(count);
    auto *codes = reinterpret_cast<uint16_t *>(at(x / 2));
    for (int e = 0; e < count; ++e)
      codes[e] = uint16_t(e * 40503);
    Places places{x, x, isWide ? z : z * 2};
    auto *first = reinterpret_cast<uint8_t *>(at(z));
    std::vector<uint8_t> expected;
    for (int i = 0; i < 3; ++i) {
      std::fill_n(first, count * 4, uint8_t(0));
      EXPECT_EQ(run(*program, places), i == 0 ? 0 : 1);
      if (i == 0)
        expected.assign(first, first + count * 4);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), first));
    }
    if (!isWide)
      EXPECT_TRUE(std::equal(codes, codes + count,
                             reinterpret_cast<uint16_t *>(first)));
  }
}

// After so many points, the results per code are known. They are those of the
// cores one by one, for all codes.
TEST_F(Stacks, ACostlyFunctionOfACodeIsLookedUp) {
  constexpr int cores = 32, trips = 512, count = cores * trips * kTile;
  constexpr int codes = 65536;
  const char *store = R"(
    ktdp.store %s, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)";
  const std::string erf = R"(
    %e = math.erf %a : tensor<16xf32>
    %s = arith.addf %e, %a : tensor<16xf32>)";
  const std::string sigmoid = R"(
    %n = arith.negf %a : tensor<16xf32>
    %e = math.exp %n : tensor<16xf32>
    %one = arith.constant dense<1.0> : tensor<16xf32>
    %d = arith.addf %e, %one : tensor<16xf32>
    %s = arith.divf %one, %d : tensor<16xf32>)";
  const std::string cheap = R"(
    %n = arith.negf %a : tensor<16xf32>
    %s = arith.maximumf %n, %a : tensor<16xf32>)";
  int64_t from = allocate(count / 2) * 2;
  Places places{from, from, allocate(count / 2) * 2};
  auto *x = reinterpret_cast<uint16_t *>(at(places.x / 2));
  auto *z = reinterpret_cast<uint16_t *>(at(places.z / 2));
  for (const auto &[body, isTabled] :
       {std::pair(erf, true), std::pair(sigmoid, true),
        std::pair(cheap, false)}) {
    auto program =
        load(ofCodes(ofOneInput(kernelOf(cores, trips, body + store))));
    numTables = 0;
    std::vector<uint16_t> expected;
    for (int i = 0; i < 4; ++i) {
      // In another order each time.
      for (int e = 0; e < count; ++e)
        x[e] = uint16_t(e * (2 * i + 1));
      run(*program, places);
      if (i == 0)
        expected.assign(z, z + codes);
      for (int e = 0; e < count; ++e)
        ASSERT_EQ(z[e], expected[x[e]]) << "run " << i << ": " << x[e];
    }
    EXPECT_EQ(numTables, isTabled ? 1 : 0);
  }
}

TEST_F(Stacks, FewPointsAreNotLookedUp) {
  constexpr int cores = 32, trips = 16, count = cores * trips * kTile;
  auto program = load(ofCodes(ofOneInput(kernelOf(cores, trips, R"(
    %e = math.erf %a : tensor<16xf32>
    %s = arith.addf %e, %e : tensor<16xf32>
    ktdp.store %s, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)"))));
  int64_t x = allocate(count / 2) * 2;
  Places places{x, x, allocate(count / 2) * 2};
  std::memset(at(x / 2), 0x3e, count * 2);
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(run(*program, places), i == 0 ? 0 : 1);
  EXPECT_EQ(numTables, 0);
}

TEST_F(Stacks, AFullCheckSeesCores) {
  auto program = load(kernelOf(4, 2, kAdd));
  Places places{makeFilled(128), makeFilled(128), allocate(128)};
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(run(*program, places, OutOfBounds::Error, CheckLevel::Full), 0);
}

TEST_F(Stacks, AnIterationMayStoreWhereItLoads) {
  auto program = load(kernelOf(4, 3, kAdd));
  int64_t x = makeFilled(192), y = makeFilled(192);
  expectSame(*program, {x, y, x}, x, 192, 1);
  expectSame(*program, {x, x, x}, x, 192, 1, /*isKnown=*/true);
}

TEST_F(Stacks, AnIterationThatLoadsWhatAnotherStoresIsInTurn) {
  auto program = load(kernelOf(1, 12, kAdd));
  int64_t y = makeFilled(192), x = makeFilled(192 + kTile);
  expectSame(*program, {x, y, x + kTile}, x, 192 + kTile, 0);
  // Sums of all tiles before.
  float sum = at(x)[3];
  for (int t = 0; t < 12; ++t)
    sum += at(y)[t * kTile + 3];
  EXPECT_EQ(at(x)[192 + 3], sum);
}

TEST_F(Stacks, TheLastOfStoresInOnePlaceStays) {
  auto program = load(kernelOf(1, 12, kAdd, "%c0"));
  Places places{makeFilled(192), makeFilled(192), allocate(192)};
  expectSame(*program, places, places.z, kTile, 0);
  for (int e = 0; e < kTile; ++e)
    EXPECT_EQ(at(places.z)[e], at(places.x)[176 + e] + at(places.y)[176 + e]);
}

const char kTwice[] = R"(
    %s = arith.addf %a, %b : tensor<16xf32>
    ktdp.store %s, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
    %c = ktdp.load %zt : !ktdp.access_tile<16xindex> -> tensor<16xf32>
    %t = arith.mulf %c, %a : tensor<16xf32>
    ktdp.store %t, %yt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)";

TEST_F(Stacks, WhatAnIterationStoresItLoadsAgain) {
  auto program = load(kernelOf(4, 3, kTwice));
  Places places{makeFilled(192), makeFilled(192), allocate(192)};
  expectSame(*program, places, places.y, 192, 1);
}

TEST_F(Stacks, OfSeveralLoopsFitInACache) {
  constexpr int cores = 32, trips = 32, count = cores * trips * kTile;
  auto program = load(kernelOf(cores, trips, kTwice));
  Places places{makeFilled(count), makeFilled(count), allocate(count)};
  expectSame(*program, places, places.y, count, 2); // of 8,192 elements
}

TEST_F(Stacks, OneElementForAll) {
  // Each point is multiplied by the first element of y.
  auto program = load(kernelOf(4, 3, R"(
    %ot = ktdp.construct_access_tile %yv[%c0] {access_tile_set = #one, access_tile_order = #id} : memref<COUNTxf32> -> !ktdp.access_tile<1xindex>
    %o = ktdp.load %ot : !ktdp.access_tile<1xindex> -> tensor<1xf32>
    %e = tensor.empty() : tensor<16xf32>
    %s = linalg.generic {indexing_maps = [#id, #first, #id], iterator_types = ["parallel"]} ins(%a, %o : tensor<16xf32>, tensor<1xf32>) outs(%e : tensor<16xf32>) {
    ^bb0(%p: f32, %q: f32, %r: f32):
      %m = arith.mulf %p, %q : f32
      linalg.yield %m : f32
    } -> tensor<16xf32>
    ktdp.store %s, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)"));
  Places places{makeFilled(192), makeFilled(192), allocate(192)};
  expectSame(*program, places, places.z, 192, 1);
  EXPECT_EQ(at(places.z)[100], at(places.x)[100] * at(places.y)[0]);
}

TEST_F(Stacks, ThroughTheLXOfEachCore) {
  auto program = load(kernelOf(6, 1, R"(
    %lv = ktdp.construct_memory_view %c0, sizes: [16], strides: [1] {coordinate_set = #tile, memory_space = #ktdp.memory_space<ct_local>} : memref<16xf32>
    %lt = ktdp.construct_access_tile %lv[%c0] {access_tile_set = #tile, access_tile_order = #id} : memref<16xf32> -> !ktdp.access_tile<16xindex>
    %s = arith.addf %a, %b : tensor<16xf32>
    ktdp.store %s, %lt : tensor<16xf32>, !ktdp.access_tile<16xindex>
    %c = ktdp.load %lt : !ktdp.access_tile<16xindex> -> tensor<16xf32>
    %t = arith.mulf %c, %b : tensor<16xf32>
    ktdp.store %t, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)"));
  Places places{makeFilled(96), makeFilled(96), allocate(96)};
  expectSame(*program, places, places.z, 96, 1);
}

TEST_F(Stacks, FromOnePlaceInTheLXOfEachCoreToAnother) {
  auto program = load(kernelOf(6, 1, R"(
    %lv = ktdp.construct_memory_view %c0, sizes: [32], strides: [1] {coordinate_set = #tiles, memory_space = #ktdp.memory_space<ct_local>} : memref<32xf32>
    %lt = ktdp.construct_access_tile %lv[%c0] {access_tile_set = #tile, access_tile_order = #id} : memref<32xf32> -> !ktdp.access_tile<16xindex>
    %mt = ktdp.construct_access_tile %lv[%c16] {access_tile_set = #tile, access_tile_order = #id} : memref<32xf32> -> !ktdp.access_tile<16xindex>
    ktdp.store %a, %lt : tensor<16xf32>, !ktdp.access_tile<16xindex>
    %c = ktdp.load %lt : !ktdp.access_tile<16xindex> -> tensor<16xf32>
    %t = arith.mulf %c, %b : tensor<16xf32>
    ktdp.store %t, %mt : tensor<16xf32>, !ktdp.access_tile<16xindex>
    %d = ktdp.load %mt : !ktdp.access_tile<16xindex> -> tensor<16xf32>
    ktdp.store %d, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)"));
  Places places{makeFilled(96), makeFilled(96), allocate(96)};
  expectSame(*program, places, places.z, 96, 1);
}

TEST_F(Stacks, NoneWithTheLXOfAnotherCore) {
  // Each core writes its own LX and reads that of the second one.
  auto program = load(kernelOf(6, 1, R"(
    %lv = ktdp.construct_memory_view %c0, sizes: [16], strides: [1] {coordinate_set = #tile, memory_space = #ktdp.memory_space<ct_local>} : memref<16xf32>
    %mv = ktdp.construct_memory_view %c0, sizes: [16], strides: [1] {coordinate_set = #tile, memory_space = #ktdp.memory_space<ct_local, ct_id = 1>} : memref<16xf32>
    %lt = ktdp.construct_access_tile %lv[%c0] {access_tile_set = #tile, access_tile_order = #id} : memref<16xf32> -> !ktdp.access_tile<16xindex>
    %mt = ktdp.construct_access_tile %mv[%c0] {access_tile_set = #tile, access_tile_order = #id} : memref<16xf32> -> !ktdp.access_tile<16xindex>
    ktdp.store %a, %lt : tensor<16xf32>, !ktdp.access_tile<16xindex>
    %c = ktdp.load %mt : !ktdp.access_tile<16xindex> -> tensor<16xf32>
    ktdp.store %c, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)"));
  Places places{makeFilled(96), makeFilled(96), allocate(96)};
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(run(*program, places), 0);
}

TEST_F(Stacks, StayWhereTheyAreInAnLX) {
  // y says where in each core's LX, too.
  auto program = load(kernelOf(6, 1, R"(
    %lv = ktdp.construct_memory_view %y, sizes: [16], strides: [1] {coordinate_set = #tile, memory_space = #ktdp.memory_space<ct_local>} : memref<16xf32>
    %lt = ktdp.construct_access_tile %lv[%c0] {access_tile_set = #tile, access_tile_order = #id} : memref<16xf32> -> !ktdp.access_tile<16xindex>
    %s = arith.addf %a, %b : tensor<16xf32>
    ktdp.store %s, %lt : tensor<16xf32>, !ktdp.access_tile<16xindex>
    ktdp.store %s, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)"));
  auto inLX = [&](int core, int64_t element) {
    return reinterpret_cast<float *>(memory.lx(core))[element];
  };
  Places places{makeFilled(96), makeFilled(96), allocate(96)};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run(*program, places), i == 0 ? 0 : 1);
    // x and z may move, but the LX is the same then.
    places.x = makeFilled(96);
  }
  for (int i = 0; i < 3; ++i) {
    places.y = makeFilled(96);
    EXPECT_EQ(run(*program, places), 0);
    for (int core = 0; core < 6; ++core)
      EXPECT_EQ(inLX(core, places.y + 5), at(places.z)[core * kTile + 5]);
  }
}

TEST_F(Stacks, ScalarsOfIterationsDiffer) {
  // A stack for each core: its number is added.
  auto program = load(kernelOf(3, 4, R"(
    %n = arith.index_cast %core : index to i32
    %f = arith.sitofp %n : i32 to f32
    %e = tensor.empty() : tensor<16xf32>
    %t = linalg.fill ins(%f : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %s = arith.addf %a, %t : tensor<16xf32>
    ktdp.store %s, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)"));
  Places places{makeFilled(192), makeFilled(192), allocate(192)};
  expectSame(*program, places, places.z, 192, 3);
  EXPECT_EQ(at(places.z)[190], at(places.x)[190] + 2);
}

TEST_F(Stacks, ReductionsAndDivisionsOfIntegersHaveNone) {
  Places places{makeFilled(128), makeFilled(128), allocate(128)};
  for (const char *body : {R"(
    %f = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<f32>
    %init = linalg.fill ins(%f : f32) outs(%e : tensor<f32>) -> tensor<f32>
    %m = linalg.reduce { arith.addf } ins(%a : tensor<16xf32>) outs(%init : tensor<f32>) dimensions = [0]
    %o = linalg.broadcast ins(%m : tensor<f32>) outs(%b : tensor<16xf32>) dimensions = [0]
    ktdp.store %o, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)",
                           R"(
    %p = arith.fptosi %a : tensor<16xf32> to tensor<16xi32>
    %one = arith.constant dense<3> : tensor<16xi32>
    %q = arith.divsi %p, %one : tensor<16xi32>
    %r = arith.sitofp %q : tensor<16xi32> to tensor<16xf32>
    ktdp.store %r, %zt : tensor<16xf32>, !ktdp.access_tile<16xindex>
)"}) {
    auto program = load(kernelOf(4, 2, body));
    expectSame(*program, places, places.z, 128, 0);
  }
}

TEST_F(Stacks, ErrorsNameTheCore) {
  constexpr int cores = 4, trips = 2, count = cores * trips * kTile;
  auto program = load(kernelOf(cores, trips, kAdd));
  Places places{makeFilled(count), makeFilled(count), allocate(count)};
  for (int i = 0; i < 3; ++i)
    run(*program, places);
  // Half of y is allocated: cores 2 and 3 find none of theirs.
  Places wrong = places;
  wrong.y = allocate(count / 2);
  std::string expected = errorOf(*load(kernelOf(cores, trips, kAdd)), wrong);
  EXPECT_NE(expected.find("core 2: "), std::string::npos) << expected;
  EXPECT_EQ(errorOf(*program, wrong), expected);
  EXPECT_EQ(run(*program, places), 0); // what was known is lost
  memory.free(uint64_t(places.x) * 4);
  EXPECT_NE(errorOf(*program, places).find("not in allocated device memory"),
            std::string::npos);
}
