// SPDX-License-Identifier: Apache-2.0
#include "ReplaceAll.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"
#include "Spyre/Support/Error.h"

#include "gtest/gtest.h"

#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace spyre;
using namespace spyre::runtime;

namespace {
/// A scan over the rows of x, whose tiles have WIDTH elements.
struct Scan {
  int rows = 40, width = 5;
  const char *elem = "f16";
  /// The row of x that iteration %i reads.
  const char *row = "(%i)";
  /// From %in and the carried %out of f32 to both: what is carried, and what is
  /// stored.
  const char *body = "%next = arith.addf %out, %wide : f32";
  /// What the next iteration gets.
  const char *yield = "%sum";
  int viewRows = 0; ///< those that the view of x says it has; 0: all
};

std::string textOf(const Scan &scan) {
  std::string text = R"(
#view = affine_set<(r, c) : (r >= 0, -r + VIEWROWS - 1 >= 0, c >= 0, -c + WIDTH - 1 >= 0)>
#stored = affine_set<(r, c) : (r >= 0, -r + ROWS - 1 >= 0, c >= 0, -c + WIDTH - 1 >= 0)>
#tile = affine_set<(r, c) : (r >= 0, -r >= 0, c >= 0, -c + WIDTH - 1 >= 0)>
#id = affine_map<(r, c) -> (r, c)>
func.func @scan(%x: index, %y: index) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant ROWS : index
  %zero = arith.constant 0.5 : f32
  %empty = tensor.empty() : tensor<1xWIDTHxf32>
  %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<1xWIDTHxf32>) -> tensor<1xWIDTHxf32>
  %xv = ktdp.construct_memory_view %x, sizes: [VIEWROWS, WIDTH], strides: [WIDTH, 1] {coordinate_set = #view, memory_space = #ktdp.memory_space<global>} : memref<VIEWROWSxWIDTHxELEM>
  %end = scf.for %i = %c0 to %rows step %c1 iter_args(%before = %none) -> (tensor<1xWIDTHxf32>) {
    %xt = ktdp.construct_indirect_access_tile intermediate_variables(%r, %c) %xv[(PLACE + %r), (%c)] {variables_space_order = #id, variables_space_set = #tile} : memref<VIEWROWSxWIDTHxELEM> -> !ktdp.access_tile<1xWIDTHxindex>
    %a = ktdp.load %xt : !ktdp.access_tile<1xWIDTHxindex> -> tensor<1xWIDTHxELEM>
    %sum = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<1xWIDTHxELEM>) outs(%before : tensor<1xWIDTHxf32>) {
    ^bb0(%in: ELEM, %out: f32):
      %wide = WIDEN
      BODY
      linalg.yield %next : f32
    } -> tensor<1xWIDTHxf32>
    %for = tensor.empty() : tensor<1xWIDTHxELEM>
    %narrow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<1xWIDTHxf32>) outs(%for : tensor<1xWIDTHxELEM>) {
    ^bb0(%in: f32, %out: ELEM):
      %s = NARROW
      linalg.yield %s : ELEM
    } -> tensor<1xWIDTHxELEM>
    %yv = ktdp.construct_memory_view %y, sizes: [ROWS, WIDTH], strides: [WIDTH, 1] {coordinate_set = #stored, memory_space = #ktdp.memory_space<global>} : memref<ROWSxWIDTHxELEM>
    %yt = ktdp.construct_access_tile %yv[%i, %c0] {access_tile_set = #tile, access_tile_order = #id} : memref<ROWSxWIDTHxELEM> -> !ktdp.access_tile<1xWIDTHxindex>
    ktdp.store %narrow, %yt : tensor<1xWIDTHxELEM>, !ktdp.access_tile<1xWIDTHxindex>
    scf.yield YIELD : tensor<1xWIDTHxf32>
  }
  return
}
func.func @main(%x: index, %y: index) {
  func.call @scan(%x, %y) : (index, index) -> ()
  return
}
)";
  auto replace = [&](const std::string &from, const std::string &to) {
    replaceAll(text, from, to);
  };
  bool isWide = std::string(scan.elem) == "f32";
  replace("WIDEN", isWide ? "arith.addf %in, %in : f32"
                          : "arith.extf %in : ELEM to f32");
  replace("NARROW", isWide ? "arith.mulf %in, %in : f32"
                           : "arith.truncf %in : f32 to ELEM");
  replace("BODY", scan.body);
  replace("PLACE", scan.row);
  replace("YIELD", scan.yield);
  replace("VIEWROWS",
          std::to_string(scan.viewRows ? scan.viewRows : scan.rows));
  replace("ROWS", std::to_string(scan.rows));
  replace("WIDTH", std::to_string(scan.width));
  replace("ELEM", scan.elem);
  return text;
}

class RepeatedBodies : public testing::Test {
protected:
  RepeatedBodies() : memory(64 << 20) {}

  struct Result {
    std::vector<uint8_t> bytes; ///< of x and y
    int64_t repeated = 0;
    std::string error;
  };
  /// Runs a scan whose y lies `distance` elements behind x.
  Result run(const Scan &scan, int64_t distance, CheckLevel check) {
    int64_t size = std::string(scan.elem) == "f32" ? 4 : 2;
    int64_t count = int64_t(scan.rows) * scan.width;
    int64_t bytes = (count + distance) * size;
    auto address = int64_t(memory.allocate(uint64_t(bytes)));
    uint8_t *at = memory.at(uint64_t(address));
    for (int64_t i = 0; i < bytes / 2; ++i) {
      // No infinities, whether these are codes or halves of numbers.
      auto code = uint16_t(0x3000 + i * 97 % 0x1400 + (i % 3 == 0) * 0x8000);
      std::memcpy(at + 2 * i, &code, 2);
    }
    Result result;
    try {
      RunOptions options;
      options.check = check;
      auto program = loadProgramBytes(textOf(scan), {}, "scan.mlir");
      result.repeated =
          program
              ->run(memory, {address / size, address / size + distance},
                    options)
              .host.repeatedIterations;
    } catch (const Error &error) {
      result.error = error.what();
    }
    result.bytes.assign(at, at + bytes);
    return result;
  }
  /// Runs it as written and as it is, and compares.
  void expectSame(const Scan &scan, int64_t repeated, int64_t distance = -1) {
    if (distance < 0)
      distance = int64_t(scan.rows) * scan.width;
    Result expected = run(scan, distance, CheckLevel::Full);
    Result found = run(scan, distance, CheckLevel::Bounds);
    EXPECT_EQ(expected.error, "");
    EXPECT_EQ(found.error, "");
    EXPECT_EQ(expected.repeated, 0);
    EXPECT_EQ(found.repeated, repeated);
    EXPECT_EQ(found.bytes, expected.bytes);
  }

  DeviceMemory memory;
};
} // namespace

TEST_F(RepeatedBodies, GiveTheSameBits) {
  for (int width : {1, 2, 63, 64, 65, 1000, 2048})
    for (const char *elem : {"f16", "bf16", "f32"}) {
      SCOPED_TRACE(std::to_string(width) + " of " + elem);
      Scan scan;
      scan.width = width;
      scan.elem = elem;
      expectSame(scan, 37);
    }
}

TEST_F(RepeatedBodies, NeedEnoughIterationsAndSmallTiles) {
  for (auto [rows, repeated] :
       std::map<int, int>{{1, 0}, {3, 0}, {18, 0}, {19, 16}, {41, 38}}) {
    Scan scan;
    scan.rows = rows;
    expectSame(scan, repeated);
  }
  Scan large;
  large.width = 2049;
  expectSame(large, 0);
}

TEST_F(RepeatedBodies, StoresThatLaterIterationsLoad) {
  // The store of an iteration is what the next one, or one further on, reads.
  for (int64_t distance : {0, 1, 4, 5, 10, 25, 30}) {
    SCOPED_TRACE(distance);
    expectSame({}, 37, distance);
  }
}

TEST_F(RepeatedBodies, OtherBodies) {
  Scan product;
  product.body = "%p = arith.mulf %out, %wide : f32\n"
                 "%next = arith.subf %p, %wide : f32";
  expectSame(product, 37);
  Scan largest;
  largest.body = "%next = arith.maximumf %out, %wide : f32";
  expectSame(largest, 37);
  Scan constant;
  constant.body = "%next = arith.constant 2.0 : f32";
  expectSame(constant, 37);
  Scan notCarried;
  notCarried.yield = "%before";
  expectSame(notCarried, 37);
}

TEST_F(RepeatedBodies, RowsInOtherOrders) {
  Scan backwards;
  backwards.row = "(39 - %i)";
  expectSame(backwards, 37);
  Scan same;
  same.row = "(%i - %i)";
  expectSame(same, 37);
  // Not linear: these run as written.
  for (const char *row : {"(%i floordiv 3)", "(%i mod 7)", "(%i ceildiv 2)"}) {
    Scan scan;
    scan.row = row;
    expectSame(scan, 0);
  }
}

TEST_F(RepeatedBodies, ErrorsNameTheIterationThatFails) {
  Scan scan;
  scan.viewRows = 30;
  Result found = run(scan, 200, CheckLevel::Bounds);
  EXPECT_NE(found.error.find("coordinate 30 of view dimension 0 is outside its "
                             "range 0 to 29"),
            std::string::npos)
      << found.error;
  // What came before it has been stored.
  Result expected = run(scan, 200, CheckLevel::Full);
  EXPECT_EQ(found.bytes, expected.bytes);
}
