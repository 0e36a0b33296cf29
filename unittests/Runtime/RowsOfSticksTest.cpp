// SPDX-License-Identifier: Apache-2.0
#include "ReplaceAll.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "gtest/gtest.h"

#include <string>
#include <vector>

using namespace spyre::runtime;

namespace {
/// x is [batches, rows, columns]: dense, or in sticks of 64 columns as in device
/// memory, [batches, sticks, rows, 64].
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

std::string kernelOf(const Shape &shape, const std::string &combine,
                     const std::string &identity) {
  std::string text = R"(
#stored = affine_set<(b, s, r, c) : (b >= 0, -b + LB >= 0, s >= 0, -s + LS >= 0, r >= 0, -r + LR >= 0, c >= 0, -c + 63 >= 0)>
#whole = affine_set<(b, r, c) : (b >= 0, -b + LB >= 0, r >= 0, -r + LR >= 0, c >= 0, -c + LC >= 0)>
#sums = affine_set<(b, r) : (b >= 0, -b + LB >= 0, r >= 0, -r + LR >= 0)>
#id = affine_map<(b, r, c) -> (b, r, c)>
#rows = affine_map<(b, r, c) -> (b, r)>
#pair = affine_map<(b, r) -> (b, r)>
func.func @f(%x: index, %y: index) {
  %c0 = arith.constant 0 : index
  %first = arith.constant IDENTITY : f32
  LOAD
  %a = ktdp.load %xt : !ktdp.access_tile<BxRxCxindex> -> tensor<BxRxCxf16>
  %e = tensor.empty() : tensor<BxRxf32>
  %f = linalg.fill ins(%first : f32) outs(%e : tensor<BxRxf32>) -> tensor<BxRxf32>
  %s = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a : tensor<BxRxCxf16>) outs(%f : tensor<BxRxf32>) {
  ^bb0(%p: f16, %q: f32):
    %t = arith.extf %p : f16 to f32
    %u = COMBINE %q, %t : f32
    linalg.yield %u : f32
  } -> tensor<BxRxf32>
  %yv = ktdp.construct_memory_view %y, sizes: [B, R], strides: [R, 1] {coordinate_set = #sums, memory_space = #ktdp.memory_space<global>} : memref<BxRxf32>
  %yt = ktdp.construct_access_tile %yv[%c0, %c0] {access_tile_set = #sums, access_tile_order = #pair} : memref<BxRxf32> -> !ktdp.access_tile<BxRxindex>
  ktdp.store %s, %yt : tensor<BxRxf32>, !ktdp.access_tile<BxRxindex>
  return
}
)";
  const std::string dense = R"(
  %xv = ktdp.construct_memory_view %x, sizes: [B, R, C], strides: [SB, C, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<BxRxCxf16>
  %xt = ktdp.construct_access_tile %xv[%c0, %c0, %c0] {access_tile_set = #whole, access_tile_order = #id} : memref<BxRxCxf16> -> !ktdp.access_tile<BxRxCxindex>)";
  const std::string sticks = R"(
  %xv = ktdp.construct_memory_view %x, sizes: [B, S, R, 64], strides: [SB, SS, 64, 1] {coordinate_set = #stored, memory_space = #ktdp.memory_space<global>} : memref<BxSxRx64xf16>
  %xt = ktdp.construct_indirect_access_tile intermediate_variables(%i, %j, %k) %xv[(%i), (%k floordiv 64), (%j), (%k mod 64)] {variables_space_order = #id, variables_space_set = #whole} : memref<BxSxRx64xf16> -> !ktdp.access_tile<BxRxCxindex>)";
  auto replace = [&](const std::string &from, const std::string &to) {
    replaceAll(text, from, to);
  };
  auto number = [](int n) { return std::to_string(n); };
  std::string b = number(shape.batches), r = number(shape.rows),
              c = number(shape.columns), s = number(shape.sticks());
  replace("LOAD", shape.inSticks ? sticks : dense);
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
  replace("[B, S, R, 64]", "[" + b + ", " + s + ", " + r + ", 64]");
  replace("[B, R, C]", "[" + b + ", " + r + ", " + c + "]");
  replace(", C, 1]", ", " + c + ", 1]");
  replace("[B, R]", "[" + b + ", " + r + "]");
  replace("[R, 1]", "[" + r + ", 1]");
  return text;
}

/// The bits of the reductions of all rows.
std::vector<uint32_t> reduce(const Shape &shape, const std::string &combine,
                             const std::string &identity) {
  auto program =
      loadProgramBytes(kernelOf(shape, combine, identity), {}, "rows.mlir");
  DeviceMemory memory;
  uint64_t x = memory.allocate(uint64_t(shape.size()) * 2);
  int numRows = shape.batches * shape.rows;
  uint64_t y = memory.allocate(uint64_t(numRows) * 4);
  auto *codes = reinterpret_cast<uint16_t *>(memory.at(x));
  // Infinity is what padding must not give to a result.
  std::fill_n(codes, shape.size(), uint16_t(0x7fff));
  for (int b = 0, i = 0; b < shape.batches; ++b)
    for (int r = 0; r < shape.rows; ++r)
      for (int c = 0; c < shape.columns; ++c, ++i)
        codes[shape.place(b, r, c)] =
            uint16_t(0x3a00 + i * 37 % 0x700 + (i * 13 % 7 < 3 ? 0x8000 : 0));
  program->run(memory, {int64_t(x / 2), int64_t(y / 4)}, RunOptions());
  auto *sums = reinterpret_cast<uint32_t *>(memory.at(y));
  return std::vector<uint32_t>(sums, sums + numRows);
}
} // namespace

// The order in which the elements of a row are added is that of the row, however
// it lies in memory.
TEST(RowsOfSticks, HaveTheBitsOfDenseRows) {
  for (int columns : {1, 63, 64, 65, 128, 200, 640, 1000})
    for (int rows : {1, 3, 33, 65})
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
