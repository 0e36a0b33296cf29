// SPDX-License-Identifier: Apache-2.0
#include "ReplaceAll.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "gtest/gtest.h"

#include <string>
#include <vector>

using namespace spyre::runtime;

namespace {
/// x is [batches, rows, columns]: dense, or in sticks of 64 columns as in
/// device memory, [batches, sticks, rows, 64].
struct Shape {
  int batches, rows, columns;
  bool inSticks;
  int sticks() const { return (columns + 63) / 64; }
  int place(int batch, int row, int column) const {
    if (!inSticks)
      return (batch * rows + row) * columns + column;
    return ((batch * sticks() + column / 64) * rows + row) * 64 + column % 64;
  }
  int size() const {
    return batches * rows * (inSticks ? sticks() * 64 : columns);
  }
};

/// What is done with tile %a of x, which becomes `%r`.
constexpr char kReduce[] = R"(
  %e = tensor.empty() : tensor<BxRxf32>
  %first = arith.constant IDENTITY : f32
  %f = linalg.fill ins(%first : f32) outs(%e : tensor<BxRxf32>) -> tensor<BxRxf32>
  %r = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a : tensor<BxRxCxf16>) outs(%f : tensor<BxRxf32>) {
  ^bb0(%p: f16, %q: f32):
    %t = arith.extf %p : f16 to f32
    %u = COMBINE %q, %t : f32
    linalg.yield %u : f32
  } -> tensor<BxRxf32>
  %yv = ktdp.construct_memory_view %y, sizes: [B, R], strides: [R, 1] {coordinate_set = #sums, memory_space = #ktdp.memory_space<global>} : memref<BxRxf32>
  %yt = ktdp.construct_access_tile %yv[%c0, %c0] {access_tile_set = #sums, access_tile_order = #pair} : memref<BxRxf32> -> !ktdp.access_tile<BxRxindex>
  ktdp.store %r, %yt : tensor<BxRxf32>, !ktdp.access_tile<BxRxindex>
)";
/// y, which lies as x does, is computed of x, of one element of z per row (NaN
/// if it is infinite), and of one element of z per column.
constexpr char kScale[] = R"(
  VIEW %y
  %zv = ktdp.construct_memory_view %z, sizes: [B, R], strides: [R, 1] {coordinate_set = #sums, memory_space = #ktdp.memory_space<global>} : memref<BxRxf16>
  %zt = ktdp.construct_access_tile %zv[%c0, %c0] {access_tile_set = #sums, access_tile_order = #pair} : memref<BxRxf16> -> !ktdp.access_tile<BxRxindex>
  %wv = ktdp.construct_memory_view %z, sizes: [C], strides: [1] {coordinate_set = #line, memory_space = #ktdp.memory_space<global>} : memref<Cxf16>
  %wt = ktdp.construct_access_tile %wv[%c0] {access_tile_set = #line, access_tile_order = #one} : memref<Cxf16> -> !ktdp.access_tile<Cxindex>
  %loaded = ktdp.load %zt : !ktdp.access_tile<BxRxindex> -> tensor<BxRxf16>
  %n = tensor.empty() : tensor<BxRxf16>
  %b = linalg.generic {indexing_maps = [#pair, #pair], iterator_types = ["parallel", "parallel"]} ins(%loaded : tensor<BxRxf16>) outs(%n : tensor<BxRxf16>) {
  ^bb0(%p: f16, %o: f16):
    %t = arith.subf %p, %p : f16
    %u = arith.addf %t, %p : f16
    linalg.yield %u : f16
  } -> tensor<BxRxf16>
  %w = ktdp.load %wt : !ktdp.access_tile<Cxindex> -> tensor<Cxf16>
  %e = tensor.empty() : tensor<BxRxCxf16>
  %r = linalg.generic {indexing_maps = [#id, #rows, #columns, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a, %b, %w : tensor<BxRxCxf16>, tensor<BxRxf16>, tensor<Cxf16>) outs(%e : tensor<BxRxCxf16>) {
  ^bb0(%p: f16, %q: f16, %s: f16, %o: f16):
    %t = arith.subf %p, %q : f16
    %u = FUNCTION : f16
    %v = arith.mulf %u, %s : f16
    linalg.yield %v : f16
  } -> tensor<BxRxCxf16>
  ktdp.store %r, %yt : tensor<BxRxCxf16>, !ktdp.access_tile<BxRxCxindex>
)";

std::string kernelOf(const Shape &shape, const std::string &body,
                     const std::string &combine = "",
                     const std::string &identity = "") {
  std::string text = R"(
#stored = affine_set<(b, s, r, c) : (b >= 0, -b + LB >= 0, s >= 0, -s + LS >= 0, r >= 0, -r + LR >= 0, c >= 0, -c + 63 >= 0)>
#whole = affine_set<(b, r, c) : (b >= 0, -b + LB >= 0, r >= 0, -r + LR >= 0, c >= 0, -c + LC >= 0)>
#sums = affine_set<(b, r) : (b >= 0, -b + LB >= 0, r >= 0, -r + LR >= 0)>
#line = affine_set<(c) : (c >= 0, -c + LC >= 0)>
#id = affine_map<(b, r, c) -> (b, r, c)>
#rows = affine_map<(b, r, c) -> (b, r)>
#columns = affine_map<(b, r, c) -> (c)>
#pair = affine_map<(b, r) -> (b, r)>
#one = affine_map<(c) -> (c)>
func.func @f(%x: index, %y: index, %z: index) {
  %c0 = arith.constant 0 : index
  VIEW %x
  %a = ktdp.load %xt : !ktdp.access_tile<BxRxCxindex> -> tensor<BxRxCxf16>
)" + body + R"(
  return
}
)";
  auto replace = [&](const std::string &from, const std::string &to) {
    replaceAll(text, from, to);
  };
  for (const std::string &name : {"%x", "%y"})
    replace(
        "VIEW " + name,
        shape.inSticks
            ? name + "v = ktdp.construct_memory_view " + name +
                  ", sizes: [B, S, R, 64], strides: [SB, SS, 64, 1] "
                  "{coordinate_set = #stored, memory_space = "
                  "#ktdp.memory_space<global>} : memref<BxSxRx64xf16>\n  " +
                  name +
                  "t = ktdp.construct_indirect_access_tile "
                  "intermediate_variables(%i, %j, %k) " +
                  name +
                  "v[(%i), (%k floordiv 64), (%j), (%k mod 64)] "
                  "{variables_space_order = #id, variables_space_set = #whole} "
                  ": memref<BxSxRx64xf16> -> !ktdp.access_tile<BxRxCxindex>"
            : name + "v = ktdp.construct_memory_view " + name +
                  ", sizes: [B, R, C], strides: [SB, C, 1] {coordinate_set = "
                  "#whole, memory_space = #ktdp.memory_space<global>} : "
                  "memref<BxRxCxf16>\n  " +
                  name + "t = ktdp.construct_access_tile " + name +
                  "v[%c0, %c0, %c0] {access_tile_set = #whole, "
                  "access_tile_order = #id} : memref<BxRxCxf16> -> "
                  "!ktdp.access_tile<BxRxCxindex>");
  auto number = [](int n) { return std::to_string(n); };
  std::string b = number(shape.batches), r = number(shape.rows),
              c = number(shape.columns), s = number(shape.sticks());
  replace("COMBINE", combine);
  replace("IDENTITY", identity);
  replace("[SB,", "[" + number(shape.place(1, 0, 0)) + ",");
  replace(" SS,", " " + number(shape.rows * 64) + ",");
  replace("+ LB ", "+ " + number(shape.batches - 1) + " ");
  replace("+ LS ", "+ " + number(shape.sticks() - 1) + " ");
  replace("+ LR ", "+ " + number(shape.rows - 1) + " ");
  replace("+ LC ", "+ " + number(shape.columns - 1) + " ");
  replace("<BxSxRx64x", "<" + b + "x" + s + "x" + r + "x64x");
  replace("<BxRxCx", "<" + b + "x" + r + "x" + c + "x");
  replace("<BxRx", "<" + b + "x" + r + "x");
  replace("<Cx", "<" + c + "x");
  replace("[B, S, R, 64]", "[" + b + ", " + s + ", " + r + ", 64]");
  replace("[B, R, C]", "[" + b + ", " + r + ", " + c + "]");
  replace(", C, 1]", ", " + c + ", 1]");
  replace("[B, R]", "[" + b + ", " + r + "]");
  replace("[R, 1]", "[" + r + ", 1]");
  replace("[C]", "[" + c + "]");
  return text;
}

uint16_t codeOf(int i) {
  return uint16_t(0x3a00 + i * 37 % 0x700 + (i * 13 % 7 < 3 ? 0x8000 : 0));
}

/// x in memory. Infinity is what padding must not give to a result.
void fill(const Shape &shape, uint16_t *codes) {
  std::fill_n(codes, shape.size(), uint16_t(0x7fff));
  for (int b = 0, i = 0; b < shape.batches; ++b)
    for (int r = 0; r < shape.rows; ++r)
      for (int c = 0; c < shape.columns; ++c, ++i)
        codes[shape.place(b, r, c)] = codeOf(i);
}

/// The bits of the reductions of all rows.
std::vector<uint32_t> reduce(const Shape &shape, const std::string &combine,
                             const std::string &identity) {
  auto program = loadProgramBytes(kernelOf(shape, kReduce, combine, identity),
                                  {}, "rows.mlir");
  DeviceMemory memory;
  uint64_t x = memory.allocate(uint64_t(shape.size()) * 2);
  int numRows = shape.batches * shape.rows;
  uint64_t y = memory.allocate(uint64_t(numRows) * 4);
  fill(shape, reinterpret_cast<uint16_t *>(memory.at(x)));
  program->run(memory, {int64_t(x / 2), int64_t(y / 4), 0}, RunOptions());
  auto *sums = reinterpret_cast<uint32_t *>(memory.at(y));
  return std::vector<uint32_t>(sums, sums + numRows);
}

/// What kScale makes of a difference: a number of its own, or one more step of
/// a chain.
constexpr const char *kFunctions[] = {"math.exp %t", "arith.addf %t, %p"};

/// y of kScale in the order of its elements, and how many of the places around
/// them have changed. It begins `distance` elements behind x, or before it.
std::pair<std::vector<uint16_t>, int>
scale(const Shape &shape, const std::string &function, int distance) {
  std::string body = kScale;
  replaceAll(body, "FUNCTION", function);
  auto program = loadProgramBytes(kernelOf(shape, body), {}, "rows.mlir");
  DeviceMemory memory;
  int numScales = std::max(shape.batches * shape.rows, shape.columns);
  int before = std::max(-distance, 0);
  int room = 3 * shape.size() + 1024;
  uint64_t start = memory.allocate(uint64_t(room + numScales) * 2);
  auto *codes = reinterpret_cast<uint16_t *>(memory.at(start));
  std::fill_n(codes, room, uint16_t(0x1234));
  for (int i = 0; i < numScales; ++i)
    codes[room + i] = i == 2 ? 0x7fff : codeOf(i * 5 + 3);
  fill(shape, codes + before);
  std::vector<uint16_t> was(codes, codes + room);
  int64_t first = int64_t(start / 2), y = before + distance;
  program->run(memory, {first + before, first + y, first + room}, RunOptions());
  std::vector<uint16_t> result;
  for (int b = 0; b < shape.batches; ++b)
    for (int r = 0; r < shape.rows; ++r)
      for (int c = 0; c < shape.columns; ++c) {
        size_t place = size_t(y + shape.place(b, r, c));
        result.push_back(codes[place]);
        was[place] = codes[place];
      }
  int changed = 0;
  for (int i = 0; i < room; ++i)
    changed += was[size_t(i)] != codes[i];
  return {result, changed};
}
} // namespace

// Tiles of few elements are decoded first, others are read where they are. The
// order in which the elements of a row are added is that of the row,
// however it lies in memory.
TEST(RowsOfSticks, HaveTheBitsOfDenseRows) {
  for (int columns : {1, 63, 64, 65, 128, 200, 640, 1000})
    for (int rows : {1, 33, 300})
      for (int batches : {1, 2})
        for (auto [combine, identity] :
             {std::pair("arith.addf", "0.0"), std::pair("arith.mulf", "1.0"),
              std::pair("arith.maximumf", "0xFF800000"),
              std::pair("arith.minimumf", "0x7F800000")})
          EXPECT_EQ(reduce({batches, rows, columns, true}, combine, identity),
                    reduce({batches, rows, columns, false}, combine, identity))
              << combine << " of " << batches << " x " << rows << " rows of "
              << columns;
}

// Also where the result lies on what is read.
TEST(RowsOfSticks, ArePartsOfLoopsOverPoints) {
  for (const char *function : kFunctions)
    for (int columns : {1, 63, 64, 65, 128, 192, 200, 1000})
      for (int rows : {3, 4, 300})
        for (int batches : {1, 2, 16}) {
          Shape dense{batches, rows, columns, false};
          Shape sticks{batches, rows, columns, true};
          auto [expected, others] = scale(dense, function, dense.size());
          EXPECT_EQ(others, 0);
          for (int distance : {sticks.size(), 0, 64, -64, rows * 64}) {
            auto [found, changed] = scale(sticks, function, distance);
            EXPECT_EQ(found, expected)
                << function << ", " << batches << " x " << rows << " rows of "
                << columns << ", " << distance << " elements apart";
            EXPECT_EQ(changed, 0);
          }
        }
}

// Sizes that are known at run time only.
TEST(RowsOfSticks, HaveAsManyColumnsAsTheLoop) {
  std::string body = kScale;
  replaceAll(body, "FUNCTION", kFunctions[1]);
  const Shape shape{16, 4, 192, true};
  std::string text = kernelOf(shape, body);
  replaceAll(text, "#line, access_tile_order", "#part, access_tile_order");
  replaceAll(text, "%wv[%c0] {", "%wv[%c0] symbols(%count) {");
  replaceAll(text, "access_tile<192x", "access_tile<?x");
  replaceAll(text, "tensor<192x", "tensor<?x");
  replaceAll(text, "  %c0 =", "  %count = arith.constant 128 : index\n  %c0 =");
  text = "#part = affine_set<(c)[n] : (c >= 0, -c + n - 1 >= 0)>" + text;
  auto program = loadProgramBytes(text, {}, "rows.mlir");
  DeviceMemory memory;
  const auto size = uint64_t(shape.size());
  auto x = int64_t(memory.allocate(size * 2) / 2);
  auto y = int64_t(memory.allocate(size * 2) / 2);
  auto z = int64_t(memory.allocate(512) / 2);
  try {
    program->run(memory, {x, y, z}, RunOptions());
    FAIL();
  } catch (const std::exception &error) {
    EXPECT_NE(std::string(error.what())
                  .find("has size 128, but its loop goes over 192"),
              std::string::npos)
        << error.what();
  }
}
