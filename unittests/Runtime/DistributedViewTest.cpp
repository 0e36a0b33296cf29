// SPDX-License-Identifier: Apache-2.0
// Distributed views against a walk over their points.
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace spyre;
using namespace spyre::runtime;

namespace {
using Point = std::vector<int64_t>;

struct Random {
  explicit Random(unsigned seed) : engine(seed) {}
  int64_t in(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() %
                                      static_cast<uint64_t>(high - low + 1));
  }
  std::mt19937_64 engine;
};

/// A box of the view, stored densely or with gaps, in any order of dimensions.
struct Part {
  Point low, high, strides;
  int64_t core = -1; ///< whose LX; -1: device memory
  int64_t element = 0;
  int64_t span = 1;
  float *data = nullptr;

  /// Where a point lies, if it is one of this part.
  float *find(const Point &point) const {
    int64_t offset = 0;
    for (size_t d = 0; d < point.size(); ++d) {
      if (point[d] < low[d] || point[d] > high[d])
        return nullptr;
      offset += (point[d] - low[d]) * strides[d];
    }
    return data + offset;
  }
};

struct Case {
  int rank;
  Point shape, at, extents;
  std::vector<int>
      order; ///< the tile's k-th dimension is the set's order[k]-th
  std::vector<Part> parts;
};
} // namespace

/// "a, b, c" of `count` values.
template <typename F>
static std::string list(size_t count, F &&text, const char *separator = ", ") {
  std::string result;
  for (size_t i = 0; i < count; ++i)
    result += (i ? separator : "") + text(i);
  return result;
}

static std::string shapeText(const Point &sizes) {
  return list(
      sizes.size(), [&](size_t d) { return std::to_string(sizes[d]); }, "x");
}

static std::string boxText(const Point &low, const Point &high) {
  auto dim = [](size_t d) { return "d" + std::to_string(d); };
  return "affine_set<(" + list(low.size(), dim) + ") : (" +
         list(low.size(),
              [&](size_t d) {
                return dim(d) + " - " + std::to_string(low[d]) + " >= 0, -" +
                       dim(d) + " + " + std::to_string(high[d]) + " >= 0";
              }) +
         ")>";
}

/// The tile's shape: of the set's extents in the order's order.
static Point tileShape(const Case &c) {
  Point shape;
  for (int d : c.order)
    shape.push_back(c.extents[d]);
  return shape;
}

/// f loads the tile and stores it to %z, or the other way round.
static std::string program(const Case &c, bool isStore) {
  auto dims = [](size_t d) { return "d" + std::to_string(d); };
  auto number = [](const Point &values) {
    return list(values.size(),
                [&](size_t d) { return std::to_string(values[d]); });
  };
  Point zero(c.rank, 0), tile = tileShape(c), last;
  for (int64_t size : tile)
    last.push_back(size - 1);
  Point end;
  for (int64_t size : c.extents)
    end.push_back(size - 1);
  std::string identity = "affine_map<(" + list(c.rank, dims) + ") -> (" +
                         list(c.rank, dims) + ")>";
  std::string order = "affine_map<(" + list(c.rank, dims) + ") -> (" +
                      list(c.rank, [&](size_t k) { return dims(c.order[k]); }) +
                      ")>";
  std::string text = "func.func @f(";
  for (size_t i = 0; i < c.parts.size(); ++i)
    text += "%p" + std::to_string(i) + ": index, ";
  text += "%z: index) {\n";
  std::string types;
  for (size_t i = 0; i < c.parts.size(); ++i) {
    const Part &part = c.parts[i];
    Point sizes;
    for (int d = 0; d < c.rank; ++d)
      sizes.push_back(part.high[d] - part.low[d] + 1);
    std::string type = "memref<" + shapeText(sizes) + "xf32>";
    types += (i ? ", " : "") + type;
    std::string n = std::to_string(i);
    text += "%v" + n + " = ktdp.construct_memory_view %p" + n + ", sizes: [" +
            number(sizes) + "], strides: [" + number(part.strides) +
            "] {coordinate_set = " + boxText(part.low, part.high) +
            ", memory_space = #ktdp.memory_space<" +
            (part.core < 0 ? "global"
                           : "ct_local, ct_id = " + std::to_string(part.core)) +
            ">} : " + type + "\n";
  }
  std::string whole = "memref<" + shapeText(c.shape) + "xf32>";
  std::string tileType = "!ktdp.access_tile<" + shapeText(tile) + "xindex>";
  std::string tensor = "tensor<" + shapeText(tile) + "xf32>";
  std::string dense = "memref<" + shapeText(tile) + "xf32>";
  Point strides(c.rank, 1);
  for (int d = c.rank - 1; d-- > 0;)
    strides[d] = strides[d + 1] * tile[d + 1];
  text +=
      "%v = ktdp.construct_distributed_memory_view (" +
      list(c.parts.size(), [](size_t i) { return "%v" + std::to_string(i); }) +
      " : " + types + ") : " + whole + "\n";
  for (int d = 0; d < c.rank; ++d)
    text += "%at" + std::to_string(d) + " = arith.constant " +
            std::to_string(c.at[d]) + " : index\n";
  text += "%c0 = arith.constant 0 : index\n";
  text += "%t = ktdp.construct_access_tile %v[" +
          list(c.rank, [](size_t d) { return "%at" + std::to_string(d); }) +
          "] {access_tile_set = " + boxText(zero, end) +
          ", access_tile_order = " + order + "} : " + whole + " -> " +
          tileType + "\n";
  text += "%zv = ktdp.construct_memory_view %z, sizes: [" + number(tile) +
          "], strides: [" + number(strides) +
          "] {coordinate_set = " + boxText(zero, last) +
          ", memory_space = #ktdp.memory_space<global>} : " + dense + "\n";
  text += "%zt = ktdp.construct_access_tile %zv[" +
          list(c.rank, [](size_t) { return std::string("%c0"); }) +
          "] {access_tile_set = " + boxText(zero, last) +
          ", access_tile_order = " + identity + "} : " + dense + " -> " +
          tileType + "\n";
  text += std::string("%d = ktdp.load %") + (isStore ? "zt" : "t") + " : " +
          tileType + " -> " + tensor + "\nktdp.store %d, %" +
          (isStore ? "t" : "zt") + " : " + tensor + ", " + tileType +
          "\nreturn\n}\n";
  return text;
}

static Case makeCase(Random &random, DeviceMemory &memory) {
  Case c;
  c.rank = static_cast<int>(random.in(1, 3));
  for (int d = 0; d < c.rank; ++d) {
    c.shape.push_back(0);
    c.order.push_back(d);
  }
  std::shuffle(c.order.begin(), c.order.end(), random.engine);
  int64_t numParts = random.in(1, 4);
  for (int64_t i = 0; i < numParts; ++i) {
    Part part;
    std::vector<int> storage(c.rank);
    std::iota(storage.begin(), storage.end(), 0);
    std::shuffle(storage.begin(), storage.end(), random.engine);
    part.strides.resize(c.rank);
    for (int d = 0; d < c.rank; ++d) {
      part.low.push_back(random.in(0, 6));
      part.high.push_back(part.low[d] + random.in(0, 5));
      c.shape[d] = std::max(c.shape[d], part.high[d] + 1);
    }
    for (int d : storage) {
      part.strides[d] = part.span;
      part.span *= part.high[d] - part.low[d] + 1 + random.in(0, 1);
    }
    part.core = random.in(0, 2) == 0 ? random.in(0, 3) : -1;
    if (part.core < 0) {
      uint64_t address = memory.allocate(part.span * 4);
      part.element = static_cast<int64_t>(address / 4);
      part.data = reinterpret_cast<float *>(memory.at(address));
    } else {
      part.element = i * 4096;
      part.data =
          reinterpret_cast<float *>(memory.lx(part.core)) + part.element;
    }
    for (int64_t k = 0; k < part.span; ++k)
      part.data[k] = static_cast<float>(1000 * (i + 1) + k);
    c.parts.push_back(std::move(part));
  }
  for (int d = 0; d < c.rank; ++d) {
    c.at.push_back(random.in(0, c.shape[d] - 1));
    // Sometimes past the end.
    c.extents.push_back(random.in(1, c.shape[d] - c.at[d] + random.in(0, 1)));
  }
  return c;
}

TEST(DistributedView, MatchesAWalkOverItsPoints) {
  int numCovered = 0, numHoles = 0, numMissed = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    DeviceMemory memory;
    Case c = makeCase(random, memory);
    int64_t count = 1;
    for (int64_t size : c.extents)
      count *= size;
    uint64_t address = memory.allocate(count * 4);
    auto *z = reinterpret_cast<float *>(memory.at(address));

    // The element of each place of the tile: of the first part that has it.
    Point tile = tileShape(c);
    std::vector<Point> points;
    std::vector<float *> places(count);
    for (int64_t i = 0; i < count; ++i) {
      Point point = c.at;
      int64_t rest = i;
      for (int k = c.rank - 1; k >= 0; --k) {
        point[c.order[k]] += rest % tile[k];
        rest /= tile[k];
      }
      for (const Part &part : c.parts)
        if ((places[i] = part.find(point)))
          break;
      points.push_back(point);
    }
    bool isCovered = std::any_of(places.begin(), places.end(),
                                 [](float *place) { return place; });
    (isCovered ? numCovered : numMissed) += 1;
    numHoles += isCovered && std::count(places.begin(), places.end(), nullptr);

    std::vector<int64_t> arguments;
    for (const Part &part : c.parts)
      arguments.push_back(part.element);
    arguments.push_back(static_cast<int64_t>(address / 4));
    for (CheckLevel check : {CheckLevel::None, CheckLevel::Bounds}) {
      RunOptions options;
      options.check = check;
      auto load = loadProgramBytes(program(c, false));
      if (!isCovered) {
        EXPECT_THROW(load->run(memory, arguments, options), Error);
        continue;
      }
      std::fill(z, z + count, -1.0f);
      load->run(memory, arguments, options);
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(z[i], places[i] ? *places[i] : 0) << "element " << i;

      std::vector<std::vector<float>> expected;
      for (const Part &part : c.parts)
        expected.emplace_back(part.data, part.data + part.span);
      for (int64_t i = 0; i < count; ++i) {
        z[i] = static_cast<float>(-i - 5);
        // A store goes to all of them.
        for (size_t p = 0; p < c.parts.size(); ++p)
          if (float *place = c.parts[p].find(points[i]))
            expected[p][place - c.parts[p].data] = z[i];
      }
      loadProgramBytes(program(c, true))->run(memory, arguments, options);
      for (size_t p = 0; p < c.parts.size(); ++p)
        for (int64_t k = 0; k < c.parts[p].span; ++k)
          ASSERT_EQ(c.parts[p].data[k], expected[p][k])
              << "part " << p << " element " << k;
    }
  }
  // All kinds were met.
  EXPECT_GT(numCovered, 100);
  EXPECT_GT(numHoles, 20);
  EXPECT_GT(numMissed, 2);
}

/// Twelve cores read all that four of them hold, and each what one of them
/// holds, from two places in one run.
static std::string sharingProgram() {
  std::string parts;
  for (int i = 0; i < 4; ++i)
    parts += "%p" + std::to_string(i) +
             " = ktdp.construct_memory_view %x, sizes: [8], strides: [1] "
             "{coordinate_set = affine_set<(d0) : (d0 - " +
             std::to_string(8 * i) + " >= 0, -d0 + " +
             std::to_string(8 * i + 7) +
             " >= 0)>, memory_space = #ktdp.memory_space<ct_local, ct_id = " +
             std::to_string(i) + ">} : memref<8xf32>\n";
  auto loadAndStore = [](const std::string &name, const std::string &from,
                         int size, const std::string &at, const std::string &to,
                         int offset) {
    std::string n = std::to_string(size);
    std::string set = "{access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + " +
                      std::to_string(size - 1) +
                      " >= 0)>, access_tile_order = affine_map<(d0) -> (d0)>}";
    std::string type = "!ktdp.access_tile<" + n + "xindex>";
    return "%" + name + "t = ktdp.construct_access_tile %v[%" + at + "] " +
           set + " : " + from + " -> " + type + "\n%" + name +
           " = ktdp.load %" + name + "t : " + type + " -> tensor<" + n +
           "xf32>\n%" + name +
           "at = affine.apply affine_map<(d0) -> (d0 * 40 + " +
           std::to_string(offset) + ")>(%id)\n%" + name +
           "o = ktdp.construct_access_tile %" + to + "[%" + name + "at] " +
           set + " : memref<480xf32> -> " + type + "\nktdp.store %" + name +
           ", %" + name + "o : tensor<" + n + "xf32>, " + type + "\n";
  };
  std::string whole = "memref<32xf32>";
  return "func.func private @k(%x: index, %z: index) attributes {grid = [12]} "
         "{\n%id = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : "
         "index\n%own = affine.apply affine_map<(d0) -> ((d0 mod 4) * 8)>(%id)"
         "\n" +
         parts +
         "%v = ktdp.construct_distributed_memory_view (%p0, %p1, %p2, %p3 : "
         "memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>) : " +
         whole +
         "\n%zv = ktdp.construct_memory_view %z, sizes: [480], strides: [1] "
         "{coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 479 >= 0)>, "
         "memory_space = #ktdp.memory_space<global>} : memref<480xf32>\n" +
         loadAndStore("a", whole, 32, "c0", "zv", 0) +
         loadAndStore("b", whole, 8, "own", "zv", 32) +
         "return\n}\nfunc.func @f(%x: index, %y: index, %z: index, %w: index) "
         "{\ncall @k(%x, %z) : (index, index) -> ()\ncall @k(%y, %w) : (index, "
         "index) -> ()\nreturn\n}\n";
}

TEST(DistributedView, CoresShareWhatTheyLoad) {
  DeviceMemory memory;
  constexpr int64_t count = 480;
  uint64_t address[] = {memory.allocate(count * 4), memory.allocate(count * 4)};
  const int64_t element[] = {0, 4096};
  for (CheckLevel check : {CheckLevel::None, CheckLevel::Bounds})
    for (int threads : {1, 2, 5}) {
      RunOptions options;
      options.check = check;
      options.threads = threads;
      auto load = loadProgramBytes(sharingProgram());
      for (int run = 0; run < 3; ++run) {
        SCOPED_TRACE("run " + std::to_string(run));
        auto value = [&](int place, int64_t i) {
          return static_cast<float>(1000 * place + 100 * run + i);
        };
        for (int place : {0, 1})
          for (int64_t i = 0; i < 32; ++i)
            reinterpret_cast<float *>(
                memory.lx(i / 8))[element[place] + i % 8] = value(place, i);
        load->run(memory,
                  {element[0], element[1], int64_t(address[0] / 4),
                   int64_t(address[1] / 4)},
                  options);
        for (int place : {0, 1}) {
          auto *z = reinterpret_cast<float *>(memory.at(address[place]));
          for (int64_t core = 0; core < 12; ++core)
            for (int64_t i = 0; i < 40; ++i)
              ASSERT_EQ(z[core * 40 + i],
                        value(place, i < 32 ? i : core % 4 * 8 + i - 32))
                  << "core " << core << " element " << i;
        }
      }
    }
}
