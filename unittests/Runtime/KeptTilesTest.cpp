// SPDX-License-Identifier: Apache-2.0
#include "Engine/KeptTiles.h"
#include "ReplaceAll.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "gtest/gtest.h"

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
      %av = ktdp.construct_memory_view %a, sizes: [ROWS, DEPTH], strides: [DEPTH, 1] {coordinate_set = #a, memory_space = #ktdp.memory_space<global>} : memref<ROWSxDEPTHxf32>
      %at = ktdp.construct_access_tile %av[%c0, %column] {access_tile_set = #at, access_tile_order = #id} : memref<ROWSxDEPTHxf32> -> !ktdp.access_tile<ROWSxSTEPxindex>
      %bv = ktdp.construct_memory_view %b, sizes: [DEPTH, COLUMNS], strides: [COLUMNS, 1] {coordinate_set = #b, memory_space = #ktdp.memory_space<global>} : memref<DEPTHxCOLUMNSxf32>
      %bt = ktdp.construct_access_tile %bv[%k, %n] {access_tile_set = #bt, access_tile_order = #id} : memref<DEPTHxCOLUMNSxf32> -> !ktdp.access_tile<STEPxTILExindex>
      %left = ktdp.load %at : !ktdp.access_tile<ROWSxSTEPxindex> -> tensor<ROWSxSTEPxf32>
      %right = ktdp.load %bt : !ktdp.access_tile<STEPxTILExindex> -> tensor<STEPxTILExf32>
      %after = linalg.matmul ins(%left, %right : tensor<ROWSxSTEPxf32>, tensor<STEPxTILExf32>) outs(%before : tensor<ROWSxTILExf32>) -> tensor<ROWSxTILExf32>
      scf.yield %after : tensor<ROWSxTILExf32>
    }
    %cv = ktdp.construct_memory_view %place, sizes: [ROWS, COLUMNS], strides: [COLUMNS, 1] {coordinate_set = #c, memory_space = #ktdp.memory_space<global>} : memref<ROWSxCOLUMNSxf32>
    %ct = ktdp.construct_access_tile %cv[%c0, %n] {access_tile_set = #ct, access_tile_order = #id} : memref<ROWSxCOLUMNSxf32> -> !ktdp.access_tile<ROWSxTILExindex>
    ktdp.store %sum, %ct : tensor<ROWSxTILExf32>, !ktdp.access_tile<ROWSxTILExindex>
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
