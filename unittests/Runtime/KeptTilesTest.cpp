// SPDX-License-Identifier: Apache-2.0
#include "Engine/KeptTiles.h"
#include "ReplaceAll.h"
#include "Spyre/Runtime/Kernels/TileKernels.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "gtest/gtest.h"

#include <cmath>
#include <string>
#include <vector>

using namespace spyre::runtime;

namespace {
/// C [rows, columns] = A [rows, depth] * B [depth, columns] by tiles. Each core
/// computes a C of its own.
struct Product {
  int rows = 4, depth = 16;
  int step = 8, tile = 4; ///< elements of a row in a tile of A, and of B
  int cores = 1;
  /// Of A, B and C; sums are fp32.
  bool areHalves = false;
  int columns() const { return 3 * tile; }
  /// Columns of a core.
  const char *last = "affine_map<(core) -> (COLUMNS)>";
  /// Where the loop along a row of A ends, in iteration %n of the other one.
  const char *end = "arith.constant DEPTH : index";
  /// The first column of a tile of A.
  const char *place = "arith.addi %c0, %k : index";
};

std::string textOf(const Product &product) {
  std::string text = R"(
#a = affine_set<(r, c) : (r >= 0, -r + ROWS - 1 >= 0, c >= 0, -c + DEPTH - 1 >= 0)>
#b = affine_set<(r, c) : (r >= 0, -r + DEPTH - 1 >= 0, c >= 0, -c + COLUMNS - 1 >= 0)>
#c = affine_set<(r, c) : (r >= 0, -r + ROWS - 1 >= 0, c >= 0, -c + COLUMNS - 1 >= 0)>
#at = affine_set<(r, c) : (r >= 0, -r + ROWS - 1 >= 0, c >= 0, -c + STEP - 1 >= 0)>
#bt = affine_set<(r, c) : (r >= 0, -r + STEP - 1 >= 0, c >= 0, -c + TILE - 1 >= 0)>
#ct = affine_set<(r, c) : (r >= 0, -r + ROWS - 1 >= 0, c >= 0, -c + TILE - 1 >= 0)>
#id = affine_map<(r, c) -> (r, c)>
#end = LAST
func.func @product(%a: index, %b: index, %c: index) attributes {grid = [CORES]} {
  %core = ktdp.get_compute_tile_id : index
  %c0 = arith.constant 0 : index
  %tile = arith.constant TILE : index
  %size = arith.constant SIZE : index
  %step = arith.constant STEP : index
  %zero = arith.constant 0.0 : f32
  %columns = affine.apply #end(%core)
  %own = arith.muli %core, %size : index
  %place = arith.addi %c, %own : index
  scf.for %n = %c0 to %columns step %tile {
    %empty = tensor.empty() : tensor<ROWSxTILExf32>
    %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<ROWSxTILExf32>) -> tensor<ROWSxTILExf32>
    %end = END
    %sum = scf.for %k = %c0 to %end step %step iter_args(%before = %none) -> (tensor<ROWSxTILExf32>) {
      %column = PLACE
      %av = ktdp.construct_memory_view %a, sizes: [ROWS, DEPTH], strides: [DEPTH, 1] {coordinate_set = #a, memory_space = #ktdp.memory_space<global>} : memref<ROWSxDEPTHxELEMENT>
      %at = ktdp.construct_access_tile %av[%c0, %column] {access_tile_set = #at, access_tile_order = #id} : memref<ROWSxDEPTHxELEMENT> -> !ktdp.access_tile<ROWSxSTEPxindex>
      %bv = ktdp.construct_memory_view %b, sizes: [DEPTH, COLUMNS], strides: [COLUMNS, 1] {coordinate_set = #b, memory_space = #ktdp.memory_space<global>} : memref<DEPTHxCOLUMNSxELEMENT>
      %bt = ktdp.construct_access_tile %bv[%k, %n] {access_tile_set = #bt, access_tile_order = #id} : memref<DEPTHxCOLUMNSxELEMENT> -> !ktdp.access_tile<STEPxTILExindex>
      %left = ktdp.load %at : !ktdp.access_tile<ROWSxSTEPxindex> -> tensor<ROWSxSTEPxELEMENT>
      %right = ktdp.load %bt : !ktdp.access_tile<STEPxTILExindex> -> tensor<STEPxTILExELEMENT>
      %after = linalg.matmul ins(%left, %right : tensor<ROWSxSTEPxELEMENT>, tensor<STEPxTILExELEMENT>) outs(%before : tensor<ROWSxTILExf32>) -> tensor<ROWSxTILExf32>
      scf.yield %after : tensor<ROWSxTILExf32>
    }
    %cv = ktdp.construct_memory_view %place, sizes: [ROWS, COLUMNS], strides: [COLUMNS, 1] {coordinate_set = #c, memory_space = #ktdp.memory_space<global>} : memref<ROWSxCOLUMNSxELEMENT>
    %ct = ktdp.construct_access_tile %cv[%c0, %n] {access_tile_set = #ct, access_tile_order = #id} : memref<ROWSxCOLUMNSxELEMENT> -> !ktdp.access_tile<ROWSxTILExindex>
    STORED
    ktdp.store %stored, %ct : tensor<ROWSxTILExELEMENT>, !ktdp.access_tile<ROWSxTILExindex>
  }
  return
}
func.func @main(%a: index, %b: index, %c: index) {
  func.call @product(%a, %b, %c) : (index, index, index) -> ()
  return
}
)";
  auto replace = [&](const std::string &from, const std::string &to) {
    replaceAll(text, from, to);
  };
  const std::string sums = "tensor<ROWSxTILExf32>";
  replace("STORED",
          product.areHalves
              ? "%stored = arith.truncf %sum : " + sums +
                    " to tensor<ROWSxTILExf16>"
              : "%stored = tensor.cast %sum : " + sums + " to " + sums);
  replace("ELEMENT", product.areHalves ? "f16" : "f32");
  replace("LAST", product.last);
  replace("END", product.end);
  replace("PLACE", product.place);
  replace("CORES", std::to_string(product.cores));
  replace("DEPTH", std::to_string(product.depth));
  replace("STEP", std::to_string(product.step));
  replace("ROWS", std::to_string(product.rows));
  replace("COLUMNS", std::to_string(product.columns()));
  replace("TILE", std::to_string(product.tile));
  replace("SIZE", std::to_string(product.rows * product.columns()));
  return text;
}

constexpr int kRows = 4, kTile = 4, kColumns = 12; // of most products

class KeptTilesTest : public testing::Test {
protected:
  KeptTilesTest() : memory(64 << 20) {}

  /// Small numbers, so that all sums are exact.
  int64_t makeFilled(int64_t count) {
    int64_t element = int64_t(memory.allocate(uint64_t(count) * 4)) / 4;
    for (int64_t i = 0; i < count; ++i)
      at(element)[i] = float((i * 7 + element) % 5) - 2;
    return element;
  }
  float *at(int64_t element) {
    return reinterpret_cast<float *>(memory.at(uint64_t(element) * 4));
  }
  /// Runs it; returns how many tiles were found.
  int64_t run(const Product &product, int64_t a, int64_t b, int64_t c) {
    auto program = loadProgramBytes(textOf(product), {}, "product.mlir");
    return program->run(memory, {a, b, c}, {}).host.keptTiles;
  }
  /// Checks C against sums of what is in A now.
  void expectProduct(const Product &product, int64_t a, int64_t b, int64_t c,
                     int columns) {
    for (int row = 0; row < product.rows; ++row)
      for (int column = 0; column < columns; ++column) {
        float sum = 0;
        for (int k = 0; k < product.depth; ++k)
          sum += at(a)[row * product.depth + k] *
                 at(b)[k * product.columns() + column];
        EXPECT_EQ(at(c)[row * product.columns() + column], sum)
            << row << ", " << column;
      }
  }

  DeviceMemory memory;
};
} // namespace

TEST_F(KeptTilesTest, ReadsEachTileOfTheLeftFactorOnce) {
  int64_t a = makeFilled(64), b = makeFilled(192), c = makeFilled(48);
  // Two tiles, in the second and third iteration.
  EXPECT_EQ(run({}, a, b, c), 4);
  expectProduct({}, a, b, c, 12);
}

TEST_F(KeptTilesTest, CoresThatEndEarlierThanOthersOfTheirGang) {
  Product product;
  product.cores = 4;
  product.last = "affine_map<(core) -> (core * TILE)>";
  int64_t a = makeFilled(64), b = makeFilled(192), c = makeFilled(4 * 48);
  run(product, a, b, c);
  for (int core = 0; core < 4; ++core)
    expectProduct(product, a, b, c + core * 48, core * 4);
}

TEST_F(KeptTilesTest, WhatIsStoredIsReadAgain) {
  // C lies on the last elements of A, or in front of it, or behind it.
  for (int64_t distance : {0, 1, 40, 63, 64, -40, -48}) {
    int64_t room = makeFilled(192), a = room + 64, b = makeFilled(192);
    int64_t c = a + distance;
    std::vector<float> expected(at(room), at(room) + 192);
    for (int n = 0; n < kColumns; n += kTile) {
      float sums[kRows][kTile] = {};
      for (int row = 0; row < kRows; ++row)
        for (int column = 0; column < kTile; ++column)
          for (int k = 0; k < 16; ++k)
            sums[row][column] += expected[size_t(64 + row * 16 + k)] *
                                 at(b)[k * kColumns + n + column];
      for (int row = 0; row < kRows; ++row)
        for (int column = 0; column < kTile; ++column)
          expected[size_t(c - room + row * kColumns + n + column)] =
              sums[row][column];
    }
    bool isApart = distance == 64 || distance == -48;
    int64_t found = run({}, a, b, c);
    EXPECT_EQ(std::vector<float>(at(room), at(room) + 192), expected)
        << distance;
    EXPECT_EQ(found == 4, isApart) << distance;
  }
}

TEST_F(KeptTilesTest, TilesThatDependOnTheLoopAreReadInEachIteration) {
  int64_t a = makeFilled(64), b = makeFilled(192), c = makeFilled(48);
  Product product;
  product.step = 4;
  product.end = "arith.constant 8 : index";
  product.place = "arith.addi %n, %k : index";
  EXPECT_EQ(run(product, a, b, c), 0);
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column) {
      float sum = 0;
      for (int k = 0; k < 8; ++k)
        sum += at(a)[row * 16 + column / kTile * kTile + k] *
               at(b)[k * kColumns + column];
      EXPECT_EQ(at(c)[row * kColumns + column], sum) << row << ", " << column;
    }
}

TEST_F(KeptTilesTest, IterationsThatReadMoreTilesThanOthers) {
  int64_t a = makeFilled(64), b = makeFilled(192), c = makeFilled(48);
  Product product;
  product.step = 4;
  product.end = "arith.addi %n, %tile : index";
  EXPECT_EQ(run(product, a, b, c), 0);
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column) {
      float sum = 0;
      for (int k = 0; k < column / kTile * kTile + kTile; ++k)
        sum += at(a)[row * 16 + k] * at(b)[k * kColumns + column];
      EXPECT_EQ(at(c)[row * kColumns + column], sum) << row << ", " << column;
    }
}

TEST_F(KeptTilesTest, KeepsNoMoreThanThereIsRoomFor) {
  // Three tiles of 768 KiB, of which two are kept.
  Product product;
  product.rows = 48;
  product.step = 4096;
  product.tile = 12;
  product.depth = 3 * product.step;
  int64_t a = makeFilled(int64_t(product.rows) * product.depth);
  int64_t b = makeFilled(int64_t(product.columns()) * product.depth);
  int64_t c = makeFilled(48 * 36);
  EXPECT_EQ(run(product, a, b, c), 4);
  expectProduct(product, a, b, c, 36);
}

namespace {
/// The same with DL16: products of matrices whose codes may be read where they
/// are (KernelTable::gemmOfHalves).
class KeptCodesTest : public testing::TestWithParam<int> {
protected:
  KeptCodesTest() : memory(64 << 20) {
    product.areHalves = true;
    product.rows = GetParam();
    product.depth = 96;
    product.step = 48;
    product.tile = 20;
  }

  size_t sizeOfA() const { return size_t(product.rows * product.depth); }
  size_t sizeOfB() const { return size_t(product.depth * product.columns()); }
  size_t sizeOfC() const { return size_t(product.rows * product.columns()); }
  int64_t allocate(size_t count) {
    return int64_t(memory.allocate(uint64_t(count) * 2)) / 2;
  }
  /// Mostly zeros, so that sums of stored sums stay exact.
  static std::vector<float> makeValues(size_t count, size_t seed) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = (i * 7 + seed) % 11 < 3 ? float((i + seed) % 3) - 1 : 0;
    return values;
  }
  void write(int64_t element, const std::vector<float> &values) {
    kernels().storeFloatRun(ElementFormat::DL16, values.data(),
                            memory.at(uint64_t(element) * 2), values.size());
  }
  std::vector<float> read(int64_t element, size_t count) {
    std::vector<float> values(count);
    kernels().loadFloatRun(ElementFormat::DL16,
                           memory.at(uint64_t(element) * 2), values.data(),
                           count);
    return values;
  }
  void run(int64_t a, int64_t b, int64_t c) {
    loadProgramBytes(textOf(product), {}, "product.mlir")
        ->run(memory, {a, b, c}, {});
  }
  /// Writes a tile of C, of the columns from `n` on, as the program does.
  void multiply(const float *a, const float *b, float *c, int n) const {
    std::vector<float> sums(size_t(product.rows * product.tile));
    for (int row = 0; row < product.rows; ++row)
      for (int column = 0; column < product.tile; ++column)
        for (int k = 0; k < product.depth; ++k)
          sums[size_t(row * product.tile + column)] +=
              a[row * product.depth + k] *
              b[k * product.columns() + n + column];
    for (int row = 0; row < product.rows; ++row)
      for (int column = 0; column < product.tile; ++column)
        c[row * product.columns() + n + column] =
            sums[size_t(row * product.tile + column)];
  }

  DeviceMemory memory;
  Product product;
};
} // namespace

TEST_P(KeptCodesTest, WhatIsStoredIsReadAgain) {
  const size_t size = sizeOfA() + sizeOfC();
  // C lies behind A, or on its last elements, or on all of them.
  for (size_t distance : {sizeOfA(), sizeOfA() - 1, sizeOfA() / 2, size_t(0)}) {
    int64_t a = allocate(size), b = allocate(sizeOfB());
    std::vector<float> expected = makeValues(size, distance);
    const std::vector<float> factor = makeValues(sizeOfB(), 5);
    write(a, expected);
    write(b, factor);
    // A second run may not find anything of the first.
    for (int i = 0; i < 2; ++i) {
      run(a, b, a + int64_t(distance));
      for (int n = 0; n < product.columns(); n += product.tile)
        multiply(expected.data(), factor.data(), expected.data() + distance, n);
      ASSERT_EQ(read(a, size), expected) << distance << ", run " << i;
    }
  }
}

TEST_P(KeptCodesTest, CoresOfAGangReadTheSameCodes) {
  product.cores = 4;
  int64_t a = allocate(sizeOfA()), b = allocate(sizeOfB());
  int64_t c = allocate(4 * sizeOfC());
  for (size_t seed : {1, 2}) {
    const std::vector<float> left = makeValues(sizeOfA(), seed);
    const std::vector<float> right = makeValues(sizeOfB(), 3 * seed);
    write(a, left);
    write(b, right);
    run(a, b, c);
    std::vector<float> expected(sizeOfC());
    for (int n = 0; n < product.columns(); n += product.tile)
      multiply(left.data(), right.data(), expected.data(), n);
    for (int core = 0; core < 4; ++core)
      ASSERT_EQ(read(c + int64_t(core * sizeOfC()), sizeOfC()), expected)
          << core;
  }
}

// Fewer rows than gemmOfHalves() takes, as many, and some blocks of rows.
INSTANTIATE_TEST_SUITE_P(Rows, KeptCodesTest, testing::Values(7, 8, 40));

/// Cores of a gang share what they read; with a thread for each core none does.
TEST(HalfProductTest, SumsDoNotDependOnThreads) {
  const std::string text = R"(
#set = affine_set<(n, r, c) : (n >= 0, -n + 1 >= 0, r >= 0, -r + 15 >= 0, c >= 0, -c + 95 >= 0)>
#wide = affine_set<(n, r, c) : (n >= 0, -n + 1 >= 0, r >= 0, -r + 95 >= 0, c >= 0, -c + 127 >= 0)>
#sums = affine_set<(n, r, c) : (n >= 0, -n + 1 >= 0, r >= 0, -r + 15 >= 0, c >= 0, -c + 127 >= 0)>
#id = affine_map<(n, r, c) -> (n, r, c)>
func.func @product(%a: index, %b: index, %c: index) attributes {grid = [4]} {
  %core = ktdp.get_compute_tile_id : index
  %c0 = arith.constant 0 : index
  %size = arith.constant 4096 : index
  %zero = arith.constant 0.0 : f32
  %own = arith.muli %core, %size : index
  %place = arith.addi %c, %own : index
  %av = ktdp.construct_memory_view %a, sizes: [2, 16, 96], strides: [1536, 96, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : memref<2x16x96xf16>
  %at = ktdp.construct_access_tile %av[%c0, %c0, %c0] {access_tile_set = #set, access_tile_order = #id} : memref<2x16x96xf16> -> !ktdp.access_tile<2x16x96xindex>
  %bv = ktdp.construct_memory_view %b, sizes: [2, 96, 128], strides: [12288, 128, 1] {coordinate_set = #wide, memory_space = #ktdp.memory_space<global>} : memref<2x96x128xf16>
  %bt = ktdp.construct_access_tile %bv[%c0, %c0, %c0] {access_tile_set = #wide, access_tile_order = #id} : memref<2x96x128xf16> -> !ktdp.access_tile<2x96x128xindex>
  %left = ktdp.load %at : !ktdp.access_tile<2x16x96xindex> -> tensor<2x16x96xf16>
  %right = ktdp.load %bt : !ktdp.access_tile<2x96x128xindex> -> tensor<2x96x128xf16>
  %empty = tensor.empty() : tensor<2x16x128xf32>
  %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x16x128xf32>) -> tensor<2x16x128xf32>
  %sum = linalg.batch_matmul ins(%left, %right : tensor<2x16x96xf16>, tensor<2x96x128xf16>) outs(%none : tensor<2x16x128xf32>) -> tensor<2x16x128xf32>
  %cv = ktdp.construct_memory_view %place, sizes: [2, 16, 128], strides: [2048, 128, 1] {coordinate_set = #sums, memory_space = #ktdp.memory_space<global>} : memref<2x16x128xf32>
  %ct = ktdp.construct_access_tile %cv[%c0, %c0, %c0] {access_tile_set = #sums, access_tile_order = #id} : memref<2x16x128xf32> -> !ktdp.access_tile<2x16x128xindex>
  ktdp.store %sum, %ct : tensor<2x16x128xf32>, !ktdp.access_tile<2x16x128xindex>
  return
}
func.func @main(%a: index, %b: index, %c: index) {
  func.call @product(%a, %b, %c) : (index, index, index) -> ()
  return
}
)";
  DeviceMemory memory(64 << 20);
  const auto fill = [&](size_t count, float scale) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = std::sin(scale * float(i)); // of ten bits
    uint64_t address = memory.allocate(count * 2);
    kernels().storeFloatRun(ElementFormat::DL16, values.data(),
                            memory.at(address), count);
    return int64_t(address / 2);
  };
  const int64_t a = fill(2 * 16 * 96, 0.37f), b = fill(2 * 96 * 128, 0.11f);
  constexpr size_t kSums = 4 * 4096;
  const uint64_t c = memory.allocate(kSums * 4);
  auto program = loadProgramBytes(text, {}, "product.mlir");
  const auto sumsOf = [&](int threads) {
    RunOptions options;
    options.threads = threads;
    program->run(memory, {a, b, int64_t(c / 4)}, options);
    auto *sums = reinterpret_cast<const float *>(memory.at(c));
    return std::vector<float>(sums, sums + kSums);
  };
  const std::vector<float> expected = sumsOf(1);
  EXPECT_NE(expected[0], 0);
  EXPECT_EQ(sumsOf(4), expected);
}
