// SPDX-License-Identifier: Apache-2.0

#include "Spyre/Dialect/SpyreGraph/IR/Slicing.h"
#include "Points.h"
#include "gtest/gtest.h"

#include <set>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre_test;

namespace {

/// Loops and their division among cores, as SG-DIVISION-C1 to C4 allow.
struct Division {
  SmallVector<int64_t> extents, splits, chunks, coreStrides;

  int64_t getNumCores() const {
    int64_t cores = 1;
    for (int64_t split : splits)
      cores *= split;
    return cores;
  }
  std::string str() const {
    return "extents " + text(extents) + " splits " + text(splits) + " chunks " +
           text(chunks) + " strides " + text(coreStrides);
  }
};

using Points = std::set<std::vector<int64_t>>;

class SlicingTest : public ::testing::Test {
protected:
  Division randomDivision(ArrayRef<int64_t> choice) {
    Division division;
    int64_t loops = random.number(1, 3);
    for (int64_t loop = 0; loop < loops; ++loop) {
      int64_t extent = random.pick(choice);
      int64_t chunk = extent == 0           ? 0
                      : random.chance(1, 3) ? extent
                                            : random.number(1, extent);
      division.extents.push_back(extent);
      division.chunks.push_back(chunk);
      // Without iterations any number of slices covers them.
      division.splits.push_back(chunk == 0 ? random.number(1, 3)
                                           : (extent + chunk - 1) / chunk);
    }
    division.coreStrides.assign(loops, 1);
    int64_t stride = 1, first = random.number(0, loops - 1);
    for (int64_t place = 0; place < loops; ++place) {
      int64_t loop = (first + place) % loops;
      division.coreStrides[loop] = stride;
      stride *= division.splits[loop];
    }
    return division;
  }

  /// d, a digit of d, or nonsense.
  AffineExpr randomTerm(ArrayRef<int64_t> extents) {
    unsigned loop = random.number(0, extents.size() - 1);
    AffineExpr term = getAffineDimExpr(loop, &context);
    if (random.chance(1, 3))
      term = term.floorDiv(random.pick({2, 3, 4, 6}));
    if (random.chance(1, 3))
      term = term % random.pick({2, 3, 4, 6});
    return term;
  }

  AffineMap randomMap(ArrayRef<int64_t> extents) {
    SmallVector<AffineExpr> results;
    for (int64_t count = random.number(0, 3); count > 0; --count) {
      if (random.chance(1, 6)) {
        results.push_back(getAffineConstantExpr(random.number(0, 5), &context));
        continue;
      }
      AffineExpr sum = randomTerm(extents);
      int64_t weight = 1;
      while (random.chance(1, 3)) {
        // Often the weight that leaves no gap.
        weight *= random.chance(1, 2) ? random.pick(extents)
                                      : random.pick({1, 2, 3, 6});
        sum = sum + randomTerm(extents) * std::max<int64_t>(weight, 1);
      }
      if (random.chance(1, 3))
        sum = sum + random.number(1, 5);
      results.push_back(sum);
    }
    return AffineMap::get(extents.size(), 0, results, &context);
  }

  MLIRContext context;
  Random random{20251103};
};

/// Checks what Slicing says of each core against its iterations.
void checkCores(AffineMap map, const Division &division,
                const Slicing &slicing) {
  Points all, boxes;
  SmallVector<int64_t> local(map.getNumResults(), 0);
  for (int64_t core = 0; core < slicing.numCores; ++core) {
    SmallVector<int64_t> start, counts;
    for (size_t loop = 0; loop < division.extents.size(); ++loop) {
      int64_t slice = core / division.coreStrides[loop] % division.splits[loop];
      start.push_back(slice * division.chunks[loop]);
      counts.push_back(std::min(division.chunks[loop],
                                division.extents[loop] - start.back()));
    }
    SmallVector<int64_t> low, size;
    int64_t volume = 1;
    for (auto [result, dim] : llvm::enumerate(slicing.dims)) {
      int64_t slice = core / dim.stride % dim.split;
      low.push_back(dim.offset + slice * dim.chunk);
      size.push_back(dim.offset +
                     std::min((slice + 1) * dim.chunk, dim.extent) -
                     low.back());
      local[result] = std::max(local[result], size.back());
      volume *= size.back();
    }
    Points touched;
    forEachPoint(counts, [&](ArrayRef<int64_t> point) {
      SmallVector<int64_t> iteration(point);
      for (auto [index, begin] : llvm::zip_equal(iteration, start))
        index += begin;
      SmallVector<int64_t> there = valuesAt(map, iteration),
                           here = valuesAt(map, point);
      for (size_t dim = 0; dim < there.size(); ++dim) {
        ASSERT_TRUE(there[dim] >= low[dim] && there[dim] < low[dim] + size[dim])
            << "core " << core << " leaves its box at " << text(there);
        // Its local iteration finds its own part of the box.
        ASSERT_EQ(here[dim] - slicing.dims[dim].offset, there[dim] - low[dim])
            << "core " << core << ", iteration " << text(iteration);
      }
      touched.insert({there.begin(), there.end()});
    });
    ASSERT_EQ(static_cast<int64_t>(touched.size()), volume)
        << "core " << core << " touches less than its box";
    all.insert(touched.begin(), touched.end());
  }
  EXPECT_EQ(slicing.getLocalShape(), local);
  // covers(): nothing but, and all of, the coordinates of the shape.
  SmallVector<int64_t> shape(map.getNumResults(), 0);
  for (const std::vector<int64_t> &point : all)
    for (size_t dim = 0; dim < point.size(); ++dim)
      shape[dim] = std::max(shape[dim], point[dim] + 1);
  int64_t volume = 1;
  for (int64_t size : shape)
    volume *= size;
  EXPECT_EQ(slicing.covers(shape), static_cast<int64_t>(all.size()) == volume);
  if (!shape.empty()) {
    ++shape.front();
    EXPECT_FALSE(slicing.covers(shape));
  }
}

TEST_F(SlicingTest, BoxesAreWhatCoresTouch) {
  int found = 0, divided = 0;
  for (int round = 0; round < 20000; ++round) {
    Division division = randomDivision({1, 2, 3, 4, 5, 6, 7, 12});
    AffineMap map = randomMap(division.extents);
    std::optional<Slicing> slicing =
        getSlicing(map, division.extents, division.splits, division.chunks,
                   division.coreStrides);
    if (!slicing)
      continue;
    ++found;
    divided += llvm::any_of(slicing->dims,
                            [](const SliceDim &dim) { return dim.split > 1; });
    ASSERT_EQ(slicing->numCores, division.getNumCores());
    checkCores(map, division, *slicing);
    if (HasFailure())
      FAIL() << text(map) << ", " << division.str() << ", round " << round;
  }
  // Enough of each kind that the above says something.
  EXPECT_GT(found, 5000);
  EXPECT_GT(divided, 1000);
}

TEST_F(SlicingTest, LoopsWithoutIterationsDoNoHarm) {
  for (int round = 0; round < 5000; ++round) {
    Division division = randomDivision({0, 0, 1, 2, 3, 65});
    AffineMap map = randomMap(division.extents);
    std::optional<Slicing> slicing =
        getSlicing(map, division.extents, division.splits, division.chunks,
                   division.coreStrides);
    if (slicing)
      EXPECT_EQ(slicing->numCores, division.getNumCores());
  }
}

TEST_F(SlicingTest, PlainDimensionsAreAlwaysBoxes) {
  for (int round = 0; round < 500; ++round) {
    Division division = randomDivision({1, 2, 3, 63, 64, 65});
    unsigned loops = division.extents.size();
    AffineMap map = AffineMap::getMultiDimIdentityMap(loops, &context);
    EXPECT_TRUE(isInLoopDims(map));
    std::optional<Slicing> slicing =
        getSlicing(map, division.extents, division.splits, division.chunks,
                   division.coreStrides);
    ASSERT_TRUE(slicing) << division.str();
    EXPECT_TRUE(slicing->covers(division.extents));
  }
}

TEST_F(SlicingTest, HeldPartsAreAllOfWhatIsNotDivided) {
  AffineExpr d0 = getAffineDimExpr(0, &context),
             d1 = getAffineDimExpr(1, &context);
  // Rows are divided, lanes 3 to 65 of 128 are read: all lanes are held.
  std::optional<Slicing> slicing =
      getSlicing(AffineMap::get(2, 0, {d0, d1 + 3}, &context), {65, 63}, {2, 1},
                 {33, 63}, {1, 2});
  ASSERT_TRUE(slicing);
  std::optional<Slicing> held = slicing->getHeld({65, 128});
  ASSERT_TRUE(held);
  EXPECT_EQ(held->getLocalShape(), (SmallVector<int64_t>{33, 128}));
  EXPECT_TRUE(held->covers({65, 128}));
  EXPECT_FALSE(slicing->covers({65, 128}));
  // A part of the divided dimension.
  EXPECT_FALSE(slicing->getHeld({66, 128}));
}

TEST_F(SlicingTest, CutsInsideAComponent) {
  AffineExpr d0 = getAffineDimExpr(0, &context);
  auto slice = [&](int64_t split, int64_t chunk) {
    return getSlicing(AffineMap::get(1, 0, {d0.floorDiv(8), d0 % 8}, &context),
                      {24}, {split}, {chunk}, {5});
  };
  // Six slices: two halves of each of three rows of eight.
  std::optional<Slicing> halves = slice(6, 4);
  ASSERT_TRUE(halves);
  EXPECT_EQ(halves->dims[0], (SliceDim{10, 3, 1, 3, 0}));
  EXPECT_EQ(halves->dims[1], (SliceDim{5, 2, 4, 8, 0}));
  EXPECT_EQ(slice(3, 8)->dims[0], (SliceDim{5, 3, 1, 3, 0}));
  EXPECT_EQ(slice(3, 8)->dims[1], (SliceDim{1, 1, 8, 8, 0}));
  EXPECT_TRUE(slice(2, 16));
  EXPECT_TRUE(slice(24, 1));
  // Slices that begin anywhere.
  EXPECT_FALSE(slice(4, 6));
  EXPECT_FALSE(slice(2, 12));
}

TEST_F(SlicingTest, CutsOfSeveralComponents) {
  AffineExpr d0 = getAffineDimExpr(0, &context),
             d1 = getAffineDimExpr(1, &context);
  auto slice = [&](ArrayRef<int64_t> splits, ArrayRef<int64_t> chunks,
                   ArrayRef<int64_t> coreStrides) {
    return getSlicing(AffineMap::get(2, 0, {d0 * 8 + d1}, &context), {3, 8},
                      splits, chunks, coreStrides);
  };
  // Halves of three rows of eight, the halves of a row on cores that follow.
  std::optional<Slicing> halves = slice({3, 2}, {1, 4}, {2, 1});
  ASSERT_TRUE(halves);
  EXPECT_EQ(halves->dims[0], (SliceDim{1, 6, 4, 24, 0}));
  // On cores in another order; of two rows; of rows that all cores have;
  // unequal.
  EXPECT_FALSE(slice({3, 2}, {1, 4}, {1, 3}));
  EXPECT_FALSE(slice({2, 2}, {2, 4}, {2, 1}));
  EXPECT_FALSE(slice({1, 2}, {3, 4}, {2, 1}));
  EXPECT_FALSE(slice({3, 3}, {1, 3}, {3, 1}));
}

TEST_F(SlicingTest, WindowsAreNotDivided) {
  AffineExpr c = getAffineDimExpr(0, &context),
             i = getAffineDimExpr(1, &context),
             k = getAffineDimExpr(2, &context);
  auto slice = [&](AffineExpr at, ArrayRef<int64_t> splits,
                   ArrayRef<int64_t> chunks) {
    return getSlicing(AffineMap::get(3, 0, {c, at}, &context), {6, 65, 3},
                      splits, chunks, {1, splits[0], splits[0] * splits[1]});
  };
  std::optional<Slicing> halves = slice(i + k, {2, 1, 1}, {3, 65, 3});
  ASSERT_TRUE(halves);
  EXPECT_EQ(halves->dims[0], (SliceDim{1, 2, 3, 6, 0}));
  EXPECT_EQ(halves->dims[1], (SliceDim{1, 1, 67, 67, 0}));
  EXPECT_EQ(slice(i * 2 + k + 1, {2, 1, 1}, {3, 65, 3})->dims[1],
            (SliceDim{1, 1, 131, 131, 1}));
  // Of one core, which has all; of windows, or of nothing else.
  EXPECT_TRUE(slice(i + k, {1, 1, 1}, {6, 65, 3}));
  EXPECT_FALSE(slice(i + k, {2, 5, 1}, {3, 13, 3}));
  EXPECT_FALSE(slice(i + k, {1, 1, 3}, {6, 65, 1}));
}

TEST_F(SlicingTest, OthersAreNoBoxes) {
  AffineExpr d0 = getAffineDimExpr(0, &context),
             d1 = getAffineDimExpr(1, &context);
  auto slice = [&](ArrayRef<AffineExpr> results, ArrayRef<int64_t> splits,
                   ArrayRef<int64_t> chunks) {
    return getSlicing(AffineMap::get(2, 0, results, &context), {6, 65}, splits,
                      chunks, {1, splits[0]});
  };
  EXPECT_FALSE(slice({d0, d0}, {1, 1}, {6, 65}));          // a diagonal
  EXPECT_FALSE(slice({d0 * 2}, {1, 1}, {6, 65}));          // gaps
  EXPECT_FALSE(slice({d0 + d1}, {2, 1}, {3, 65}));         // halves overlap
  EXPECT_FALSE(slice({d0 * 66 + d1}, {1, 1}, {6, 65}));    // gaps between rows
  EXPECT_FALSE(slice({d1 - d0 + 5}, {1, 1}, {6, 65}));     // backwards
  EXPECT_FALSE(slice({d1.floorDiv(64)}, {1, 1}, {6, 65})); // 65 is no multiple
  EXPECT_FALSE(slice({d0 % 3, d0.floorDiv(3)}, {3, 1}, {2, 65})); // cut inside
  EXPECT_TRUE(slice({d0 % 3, d0.floorDiv(3)}, {2, 1}, {3, 65}));
  EXPECT_FALSE(isInLoopDims(AffineMap::get(2, 0, {d0, d0}, &context)));
  EXPECT_FALSE(isInLoopDims(AffineMap::get(2, 0, {d0 + 1}, &context)));
}

} // namespace
