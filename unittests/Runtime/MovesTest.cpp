// SPDX-License-Identifier: Apache-2.0
#include "Engine/Moves.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "gtest/gtest.h"

#include <cstring>

using namespace spyre;
using namespace spyre::runtime;

namespace {
/// Elements of 2 bytes that each of the cores that hold something has.
constexpr int64_t kPart = 32;

std::string boxOf(int64_t first, int64_t count) {
  return "affine_set<(i) : (i - " + std::to_string(first) + " >= 0, -i + " +
         std::to_string(first + count - 1) + " >= 0)>";
}

/// Core i of the first `holders` has 32 elements at %from in its LX, from the
/// (i * apart)-th on. All `cores` store `count` of them, from `first` on, at
/// %to.
std::string kernelOf(int64_t cores, int64_t holders, int64_t count,
                     const std::string &first = "%c0", int64_t apart = kPart) {
  std::string size = std::to_string((holders - 1) * apart + kPart);
  std::string tile = std::to_string(count);
  std::string text =
      "#tile = " + boxOf(0, count) + "\n#id = affine_map<(i) -> (i)>\n" +
      "func.func @kernel(%from: index, %to: index) attributes {grid = [" +
      std::to_string(cores) + "]} {\n" +
      "  %core = ktdp.get_compute_tile_id : index\n"
      "  %c0 = arith.constant 0 : index\n"
      "  %c16 = arith.constant 16 : index\n"
      "  %start = arith.muli %core, %c16 : index\n";
  std::string parts, types;
  for (int64_t i = 0; i < holders; ++i) {
    std::string name = "%p" + std::to_string(i);
    text += "  " + name +
            " = ktdp.construct_memory_view %from, sizes: [32], strides: [1] "
            "{coordinate_set = " +
            boxOf(i * apart, kPart) +
            ", memory_space = #ktdp.memory_space<ct_local, ct_id = " +
            std::to_string(i) + ">} : memref<32xf16>\n";
    parts += (i ? ", " : "") + name;
    types += i ? ", memref<32xf16>" : "memref<32xf16>";
  }
  return text + "  %all = ktdp.construct_distributed_memory_view(" + parts +
         " : " + types + ") : memref<" + size + "xf16>\n" +
         "  %own = ktdp.construct_memory_view %to, sizes: [" + tile +
         "], strides: [1] {coordinate_set = #tile, memory_space = "
         "#ktdp.memory_space<ct_local>} : memref<" +
         tile + "xf16>\n" + "  %st = ktdp.construct_access_tile %all[" + first +
         "] {access_tile_set = #tile, access_tile_order = #id} : memref<" +
         size + "xf16> -> !ktdp.access_tile<" + tile + "xindex>\n" +
         "  %tt = ktdp.construct_access_tile %own[%c0] {access_tile_set = "
         "#tile, access_tile_order = #id} : memref<" +
         tile + "xf16> -> !ktdp.access_tile<" + tile + "xindex>\n" +
         "  %v = ktdp.load %st : !ktdp.access_tile<" + tile +
         "xindex> -> tensor<" + tile + "xf16>\n" +
         "  ktdp.store %v, %tt : tensor<" + tile + "xf16>, !ktdp.access_tile<" +
         tile + "xindex>\n  return\n}\n";
}

class Moves : public testing::Test {
protected:
  Moves() : memory(1 << 20) {}

  uint16_t *lx(int64_t core, int64_t element) {
    return reinterpret_cast<uint16_t *>(memory.lx(core)) + element;
  }
  /// Codes of all kinds, others in each run.
  void fill(int64_t holders, int64_t from) {
    for (int64_t core = 0; core < holders; ++core)
      for (int64_t i = 0; i < kPart; ++i)
        *lx(core, from + i) = next = static_cast<uint16_t>(next * 40503u + 1);
  }
  /// The number of tasks that a run has; 0: its cores run one by one.
  int64_t run(const Program &program, int64_t from, int64_t to,
              CheckLevel check = CheckLevel::Bounds) {
    RunOptions options;
    options.check = check;
    return program.run(memory, {from, to}, options).host.shortcutTasks;
  }
  /// Checks what each of the cores has: `count` elements from that of `first`
  /// on.
  template <typename First>
  void expectMoved(int64_t cores, int64_t from, int64_t to, int64_t count,
                   First first) {
    for (int64_t core = 0; core < cores; ++core)
      for (int64_t i = 0; i < count; ++i) {
        int64_t element = first(core) + i;
        uint16_t expected = *lx(element / kPart, from + element % kPart);
        ASSERT_EQ(*lx(core, to + i), expected)
            << "core " << core << ", element " << i;
      }
  }
  static std::shared_ptr<Program> load(const std::string &text) {
    return loadProgramBytes(text, {}, "moves.mlir");
  }

  DeviceMemory memory;

private:
  uint16_t next = 1;
};

int64_t atZero(int64_t) { return 0; }

TEST_F(Moves, AllCoresGetTheSame) {
  auto program = load(kernelOf(12, 5, 160));
  for (int i = 0; i < 4; ++i) {
    fill(5, 64);
    EXPECT_EQ(run(*program, 64, 4096), i == 0 ? 0 : 2) << "run " << i;
    expectMoved(12, 64, 4096, 160, atZero);
  }
}

TEST_F(Moves, EachCoreGetsAnotherPart) {
  auto program = load(kernelOf(7, 4, 32, "%start"));
  for (int i = 0; i < 3; ++i) {
    fill(4, 0);
    EXPECT_EQ(run(*program, 0, 640), i == 0 ? 0 : 7) << "run " << i;
    expectMoved(7, 0, 640, 32, [](int64_t core) { return 16 * core; });
  }
}

TEST_F(Moves, EachPlaceHasItsOwn) {
  auto program = load(kernelOf(3, 2, 64));
  for (int i = 0; i < 3; ++i)
    for (int64_t place = 0; place < 5; ++place) {
      fill(2, 64 * place);
      EXPECT_EQ(run(*program, 64 * place, 4096 + 64 * place), i == 0 ? 0 : 1);
      expectMoved(3, 64 * place, 4096 + 64 * place, 64, atZero);
    }
}

TEST_F(Moves, ManyPlacesTakeTurns) {
  auto program = load(kernelOf(3, 2, 64));
  for (int i = 0; i < 3; ++i)
    for (int64_t place = 0; place < 20; ++place) {
      fill(2, 64 * place);
      run(*program, 64 * place, 4096 + 64 * place);
      expectMoved(3, 64 * place, 4096 + 64 * place, 64, atZero);
    }
}

TEST_F(Moves, WhatNobodyHoldsIsZero) {
  auto program = load(kernelOf(3, 2, 96, "%c0", /*apart=*/64));
  for (int i = 0; i < 3; ++i) {
    fill(2, 0);
    *lx(0, 4096 + 40) = 7;
    EXPECT_EQ(run(*program, 0, 4096), 0);
    for (int64_t core = 0; core < 3; ++core)
      for (int64_t k = 0; k < kPart; ++k) {
        ASSERT_EQ(*lx(core, 4096 + k), *lx(0, k));
        ASSERT_EQ(*lx(core, 4096 + 32 + k), 0);
        ASSERT_EQ(*lx(core, 4096 + 64 + k), *lx(1, k));
      }
  }
}

TEST_F(Moves, NoneWhereACoreStoresWhatOthersLoad) {
  // One holder: it replaces what it has by the same.
  auto program = load(kernelOf(1, 1, 32));
  for (int i = 0; i < 3; ++i) {
    fill(1, 0);
    EXPECT_EQ(run(*program, 0, 16), 0);
  }
}

TEST_F(Moves, AFullCheckSeesCores) {
  auto program = load(kernelOf(3, 2, 64));
  for (int i = 0; i < 3; ++i) {
    fill(2, 0);
    run(*program, 0, 4096);
    try {
      run(*program, 0, 4096, CheckLevel::Full);
      FAIL() << "no error";
    } catch (const Error &error) {
      EXPECT_NE(std::string(error.what()).find("core 0: reads LX of core 0"),
                std::string::npos)
          << error.what();
    }
  }
}
} // namespace
