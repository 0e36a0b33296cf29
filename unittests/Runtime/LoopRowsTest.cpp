// SPDX-License-Identifier: Apache-2.0
#include "ReplaceAll.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "gtest/gtest.h"

#include <string>

using namespace spyre::runtime;

namespace {
/// Reductions of rows of x [rows, columns] and what follows of them give %r.
struct Case {
  int rows, columns;
  int rowStride = 0;        ///< of x, in elements; 0: dense
  int place = -1;           ///< where the result begins; -1: behind the rest
  const char *strides = ""; ///< of the result; "": dense
  bool hasInfinity = false; ///< x, which is below all numbers
};

std::string numbered(std::string text, const Case &c) {
  auto replace = [&](const std::string &from, const std::string &to) {
    replaceAll(text, from, to);
  };
  std::string rows = std::to_string(c.rows),
              columns = std::to_string(c.columns);
  replace("TILE", "tensor<" + rows + "x" + columns + "xf16>");
  replace("WIDE", "tensor<" + rows + "x" + columns + "xf32>");
  replace("COLUMN", "tensor<" + rows + "xf16>");
  replace("ROW", "tensor<" + columns + "xf16>");
  replace("VIEW", "memref<" + rows + "x" + columns + "xf16>");
  replace("ACCESS", "!ktdp.access_tile<" + rows + "x" + columns + "xindex>");
  replace("$R", rows);
  replace("$C", columns);
  replace("$LR", std::to_string(c.rows - 1));
  replace("$LC", std::to_string(c.columns - 1));
  replace("$S", std::to_string(c.rowStride ? c.rowStride : c.columns));
  replace("$Z", *c.strides ? c.strides : columns + ", 1");
  return text;
}

/// What is in memory afterwards: x from element 64 on, then y, then a row.
std::vector<uint16_t> run(const std::string &body, const Case &c,
                          CheckLevel check) {
  std::string text = numbered(R"(
#set = affine_set<(r, c) : (r >= 0, -r + $LR >= 0, c >= 0, -c + $LC >= 0)>
#one = affine_set<(c) : (c >= 0, -c + $LC >= 0)>
#id = affine_map<(r, c) -> (r, c)>
#swap = affine_map<(r, c) -> (c, r)>
#row = affine_map<(r, c) -> (r)>
#column = affine_map<(r, c) -> (c)>
#line = affine_map<(c) -> (c)>
func.func @f(%x: index, %y: index, %w: index, %z: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %least = arith.constant 0xFC00 : f16
  %scale = arith.constant 0.001 : f16
  %xv = ktdp.construct_memory_view %x, sizes: [$R, $C], strides: [$S, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : VIEW
  %yv = ktdp.construct_memory_view %y, sizes: [$R, $C], strides: [$C, 1] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : VIEW
  %wv = ktdp.construct_memory_view %w, sizes: [$C], strides: [1] {coordinate_set = #one, memory_space = #ktdp.memory_space<global>} : memref<$Cxf16>
  %zv = ktdp.construct_memory_view %z, sizes: [$R, $C], strides: [$Z] {coordinate_set = #set, memory_space = #ktdp.memory_space<global>} : VIEW
  %xt = ktdp.construct_access_tile %xv[%c0, %c0] {access_tile_set = #set, access_tile_order = #id} : VIEW -> ACCESS
  %yt = ktdp.construct_access_tile %yv[%c0, %c0] {access_tile_set = #set, access_tile_order = #id} : VIEW -> ACCESS
  %wt = ktdp.construct_access_tile %wv[%c0] {access_tile_set = #one, access_tile_order = #line} : memref<$Cxf16> -> !ktdp.access_tile<$Cxindex>
  %zt = ktdp.construct_access_tile %zv[%c0, %c0] {access_tile_set = #set, access_tile_order = #id} : VIEW -> ACCESS
  %a = ktdp.load %xt : ACCESS -> TILE
  %b = ktdp.load %yt : ACCESS -> TILE
  %v = ktdp.load %wt : !ktdp.access_tile<$Cxindex> -> ROW
  %e = tensor.empty() : TILE
  %ce = tensor.empty() : COLUMN
  %zeros = linalg.fill ins(%zero : f16) outs(%ce : COLUMN) -> COLUMN
  %leasts = linalg.fill ins(%least : f16) outs(%ce : COLUMN) -> COLUMN
)" + body + R"(
  ktdp.store %r, %zt : TILE, ACCESS
  return
}
)",
                              c);
  int stride = c.rowStride ? c.rowStride : c.columns;
  int y = 64 + c.rows * stride + 100, w = y + c.rows * c.columns;
  int z = c.place >= 0 ? c.place : w + c.columns + 64;
  int space = w + c.columns + 64 + 2 * c.rows * c.columns + 9000;
  auto program = loadProgramBytes(text, {}, "rows.mlir");
  DeviceMemory memory;
  uint64_t base = memory.allocate(uint64_t(space) * 2);
  auto *codes = reinterpret_cast<uint16_t *>(memory.at(base));
  // Around one, of both signs, and few zeros.
  for (int i = 0; i < space; ++i)
    codes[i] = uint16_t(i % 997 == 5 ? 0
                                     : 0x3a00 + i * 37 % 0x700 +
                                           (i * 13 % 7 < 3 ? 0x8000 : 0));
  if (c.hasInfinity)
    codes[64 + stride + 77] = 0xffff;
  auto start = int64_t(base / 2);
  RunOptions options;
  options.check = check;
  program->run(memory, {start + 64, start + y, start + w, start + z}, options);
  return std::vector<uint16_t>(codes, codes + space);
}

const char *softmax = R"(
  %m = linalg.reduce { arith.maximumf } ins(%a : TILE) outs(%leasts : COLUMN) dimensions = [1]
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %m : TILE, COLUMN) outs(%e : TILE) {
  ^bb0(%p: f16, %q: f16, %o: f16):
    %s = arith.subf %p, %q : f16
    %t = math.exp %s : f16
    linalg.yield %t : f16
  } -> TILE
  %n = linalg.reduce { arith.addf } ins(%d : TILE) outs(%zeros : COLUMN) dimensions = [1]
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%d, %n : TILE, COLUMN) outs(%e : TILE) {
  ^bb0(%p: f16, %q: f16, %o: f16):
    %s = arith.divf %p, %q : f16
    linalg.yield %s : f16
  } -> TILE
)";

// Residuals, values per row of their own, and a row of weights. The sums start
// at what the maximum is.
const char *norm = R"(
  %s = linalg.reduce { arith.addf } ins(%a : TILE) outs(%zeros : COLUMN) dimensions = [1]
  %mean = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%s : COLUMN) outs(%ce : COLUMN) {
  ^bb0(%p: f16, %o: f16):
    %t = arith.mulf %p, %scale : f16
    linalg.yield %t : f16
  } -> COLUMN
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %mean : TILE, COLUMN) outs(%e : TILE) {
  ^bb0(%p: f16, %q: f16, %o: f16):
    %t = arith.subf %p, %q : f16
    linalg.yield %t : f16
  } -> TILE
  %q = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%d, %v : TILE, ROW) outs(%e : TILE) {
  ^bb0(%p: f16, %w1: f16, %o: f16):
    %t = arith.mulf %p, %p : f16
    %u = arith.mulf %t, %w1 : f16
    linalg.yield %u : f16
  } -> TILE
  %m = linalg.reduce { arith.maximumf } ins(%a : TILE) outs(%leasts : COLUMN) dimensions = [1]
  %n = linalg.reduce { arith.addf } ins(%q : TILE) outs(%m : COLUMN) dimensions = [1]
  %r = linalg.generic {indexing_maps = [#id, #row, #column, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%d, %n, %v, %b : TILE, COLUMN, ROW, TILE) outs(%e : TILE) {
  ^bb0(%p: f16, %p1: f16, %p2: f16, %p3: f16, %o: f16):
    %t = arith.mulf %p, %p2 : f16
    %u = arith.addf %t, %p3 : f16
    %w1 = arith.subf %u, %p1 : f16
    linalg.yield %w1 : f16
  } -> TILE
)";

// As `norm`, but its sums begin with a constant: squares in place of products.
const char *squares = R"(
  %s = linalg.reduce { arith.addf } ins(%a : TILE) outs(%zeros : COLUMN) dimensions = [1]
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %s : TILE, COLUMN) outs(%e : TILE) {
  ^bb0(%p: f16, %q: f16, %o: f16):
    %t0 = arith.mulf %q, %scale : f16
    %t = arith.subf %p, %t0 : f16
    linalg.yield %t : f16
  } -> TILE
  %q = arith.mulf %d, %d : TILE
  %n = linalg.reduce { arith.addf } ins(%q : TILE) outs(%zeros : COLUMN) dimensions = [1]
  %r = linalg.generic {indexing_maps = [#id, #row, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%d, %n, %v : TILE, COLUMN, ROW) outs(%e : TILE) {
  ^bb0(%p: f16, %p1: f16, %p2: f16, %o: f16):
    %h = math.rsqrt %p1 : f16
    %t = arith.mulf %p, %h : f16
    %u = arith.mulf %t, %p2 : f16
    linalg.yield %u : f16
  } -> TILE
)";

// In fp32, with a choice, a smallest value, and the tile read twice.
const char *choices = R"(
  %m = linalg.reduce { arith.minimumf } ins(%a : TILE) outs(%zeros : COLUMN) dimensions = [1]
  %we = tensor.empty() : WIDE
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %m : TILE, COLUMN) outs(%we : WIDE) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %s = arith.extf %p : f16 to f32
    %t = arith.extf %q : f16 to f32
    %u = arith.mulf %s, %t : f32
    %is = arith.cmpf ogt, %u, %s : f32
    %w1 = arith.select %is, %u, %t : f32
    linalg.yield %w1 : f32
  } -> WIDE
  %n = linalg.reduce { arith.maximumf } ins(%b : TILE) outs(%zeros : COLUMN) dimensions = [1]
  %r = linalg.generic {indexing_maps = [#id, #id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%d, %a, %n : WIDE, TILE, COLUMN) outs(%e : TILE) {
  ^bb0(%p: f32, %p1: f16, %p2: f16, %o: f16):
    %s = arith.truncf %p : f32 to f16
    %t = arith.addf %s, %p1 : f16
    %u = arith.maximumf %t, %p2 : f16
    linalg.yield %u : f16
  } -> TILE
)";

// The first value of each row, beside the row.
const char *firsts = R"(
  %m = linalg.reduce { arith.maximumf } ins(%a : TILE) outs(%leasts : COLUMN) dimensions = [1]
  %r = linalg.generic {indexing_maps = [#id, affine_map<(r, c) -> (r, 0)>, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %a, %m : TILE, TILE, COLUMN) outs(%e : TILE) {
  ^bb0(%p: f16, %q: f16, %p1: f16, %o: f16):
    %s = arith.addf %p, %q : f16
    %t = arith.subf %s, %p1 : f16
    linalg.yield %t : f16
  } -> TILE
)";
} // namespace

/// --check=full keeps every tile, and runs one loop after another.
static void compare(const char *body, const Case &c) {
  std::vector<uint16_t> expected = run(body, c, CheckLevel::Full);
  for (CheckLevel check : {CheckLevel::None, CheckLevel::Bounds})
    ASSERT_EQ(run(body, c, check), expected)
        << c.rows << " x " << c.columns << " from " << c.rowStride << " to "
        << c.place << " " << c.strides << "\n"
        << body;
}

TEST(Rows, AreWhatTilesAre) {
  // Short ones, which run together; lengths about those of blocks and groups.
  const Case cases[] = {{16, 1024}, {3, 4099}, {40, 512}, {17, 603},
                        {64, 256},  {4, 8192}, {1, 9000}, {5, 2048},
                        {33, 511},  {8, 1025}, {2, 12000}};
  for (const char *body : {softmax, norm, squares, choices, firsts})
    for (const Case &c : cases)
      compare(body, c);
  for (const char *body : {softmax, firsts})
    for (Case c : cases) {
      c.hasInfinity = true;
      compare(body, c);
    }
}

TEST(Rows, LieAnywhere) {
  // With gaps; where x is, and near it, so that a result would overwrite what
  // is read later; transposed, apart, and several values in one place.
  const Case cases[] = {{16, 1024, 1100},
                        {16, 1024, 1100, 64, "1100, 1"},
                        {16, 1024, 0, 64},
                        {16, 1024, 0, 64 + 1024},
                        {16, 1024, 0, 64 + 32},
                        {16, 1024, 0, 0},
                        {16, 1024, 0, 64, "1, 16"},
                        {16, 1024, 0, -1, "1, 16"},
                        {16, 1024, 0, -1, "2048, 2"},
                        {16, 1024, 0, -1, "1500, 1"},
                        {16, 1024, 0, -1, "0, 1"},
                        {16, 1024, 0, -1, "1, 1"},
                        {2, 8192, 9000, 64, "9000, 1"},
                        {2, 8192, 0, 64 + 8192}};
  for (const char *body : {softmax, norm, squares, choices})
    for (const Case &c : cases)
      compare(body, c);
}
