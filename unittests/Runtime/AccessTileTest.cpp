// SPDX-License-Identifier: Apache-2.0
//
// Random access tiles against point-by-point evaluation.

#include "Engine/AccessTile.h"

#include "gtest/gtest.h"

#include <numeric>
#include <random>

using namespace spyre::runtime;

namespace {

/// A random subscript and its evaluation at a point.
struct Random {
  explicit Random(unsigned seed) : engine(seed) {}
  int64_t in(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  }
  std::mt19937 engine;
};

int64_t floorDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q * b > a ? q - 1 : q;
}

int64_t evaluate(const AccessTilePlan &plan, const LinearForm &form,
                 const std::vector<int64_t> &vars,
                 const std::vector<int64_t> &captured) {
  int64_t value = form.constant;
  for (auto [v, c] : form.vars)
    value += c * vars[v];
  for (auto [v, c] : form.captured)
    value += c * captured[v];
  for (auto [a, c] : form.atoms) {
    const Atom &atom = plan.atoms[a];
    int64_t x = evaluate(plan, plan.forms[atom.inner], vars, captured);
    int64_t q = floorDiv(atom.kind == Atom::CeilDiv ? x + atom.divisor - 1 : x,
                         atom.divisor);
    value += c * (atom.kind == Atom::Mod ? x - q * atom.divisor : q);
  }
  return value;
}

LinearForm randomForm(Random &random, AccessTilePlan &plan, int rank,
                      int depth) {
  LinearForm form;
  form.constant = random.in(-3, 20);
  if (random.in(0, 1))
    form.captured.push_back({0, random.in(1, 3)});
  for (int v = 0; v < rank; ++v)
    if (random.in(0, 2) == 0)
      form.vars.push_back({v, random.in(-2, 3)});
  if (depth > 0 && random.in(0, 2)) {
    Atom atom;
    atom.kind = Atom::Kind(random.in(0, 2));
    const int64_t divisors[] = {1, 2, 3, 5, 8, 64};
    atom.divisor = divisors[random.in(0, 5)];
    for (int shift = 0; shift < 8; ++shift)
      if (int64_t(1) << shift == atom.divisor)
        atom.shift = shift;
    LinearForm inner = randomForm(random, plan, rank, depth - 1);
    std::vector<bool> uses(rank, false);
    for (auto [v, c] : inner.vars)
      uses[v] = true;
    for (auto [a, c] : inner.atoms)
      for (int v : plan.atoms[a].vars)
        uses[v] = true;
    for (int v = 0; v < rank; ++v)
      if (uses[v])
        atom.vars.push_back(v);
    atom.inner = plan.addForm(std::move(inner));
    plan.atoms.push_back(atom);
    form.atoms.push_back(
        {static_cast<int>(plan.atoms.size()) - 1, random.in(1, 4)});
  }
  return form;
}

constexpr int64_t kNumIndices = 4096;

/// A random tile of a view of numbered elements, and where each of its points
/// lies.
class RandomTile {
public:
  explicit RandomTile(unsigned seed) : random(seed) {
    makeBox();
    makeSubscripts();
    findPoints();
  }

  /// A view that is just large enough, sometimes one short. Returns whether it
  /// is of a size that is worth a test.
  bool makeView();

  // One thing each that should hold of a tile inside its view.
  void checkExtents();
  void checkLoad();
  void checkLoadCodes();
  void checkAllocationBounds();
  void checkSticks();
  void checkStore();
  /// Whether a tile inside its view is one with other captured values, too.
  bool checkOtherCaptured();

  TileVal tile;
  bool isInside = true; ///< all indices and coordinates are legal

private:
  void makeBox();
  void makeSubscripts();
  void findPoints();
  std::vector<int64_t> coordinateOf(int64_t point);

  Random random;
  AccessTilePlan plan;
  std::vector<int64_t> extents, captured;
  int numDims = 0;
  std::vector<LinearForm> subscripts; ///< or of indices
  std::vector<int32_t> indexMemory;
  ViewVal indexView;
  int64_t numPoints = 1;
  std::vector<std::vector<int64_t>> points; ///< base coordinates
  std::vector<int64_t> low, high;           ///< their range
  std::vector<int32_t> memory;              ///< element i holds i
  int64_t size = 1, origin = 0;             ///< elements
  std::vector<int32_t> values;              ///< what the tile holds
};

void RandomTile::makeBox() {
  plan.rank = static_cast<int>(random.in(0, 3));
  captured = {random.in(0, 70)};
  LinearForm zero;
  for (int t = 0; t < plan.rank; ++t) {
    // Rows of several periods of the divisors, and many rows.
    extents.push_back(random.in(1, t + 1 == plan.rank ? 200 : t == 0 ? 90 : 7));
    plan.staticSizes.push_back(extents.back());
    LinearForm upper;
    upper.constant = extents.back() - 1;
    plan.lowerForms.push_back(plan.addForm(zero));
    plan.upperForms.push_back(plan.addForm(upper));
  }
}

void RandomTile::makeSubscripts() {
  numDims = static_cast<int>(random.in(1, 3));
  bool hasIndirect = random.in(0, 3) == 0;
  indexMemory.resize(kNumIndices);
  for (int32_t &x : indexMemory)
    x = static_cast<int32_t>(random.in(0, 30));
  indexView.base = reinterpret_cast<uint8_t *>(indexMemory.data());
  indexView.elem = Elem::I32;
  indexView.rank = 1;
  indexView.lo[0] = 0;
  indexView.hi[0] = kNumIndices - 1;
  indexView.strides[0] = 1;
  indexView.checked = true;
  for (int d = 0; d < numDims; ++d) {
    AccessTilePlan::BaseDim dim;
    int form = plan.addForm(randomForm(random, plan, plan.rank, 2));
    if (hasIndirect && d == 0) {
      dim.isIndirect = true;
      dim.indexView = 0;
      dim.indexForms = {form};
    } else {
      dim.form = form;
    }
    plan.dims.push_back(dim);
  }
  for (const AccessTilePlan::BaseDim &dim : plan.dims)
    subscripts.push_back(
        plan.forms[dim.isIndirect ? dim.indexForms[0] : dim.form]);
  plan.finish();
}

void RandomTile::findPoints() {
  for (int64_t e : extents)
    numPoints *= e;
  low.assign(numDims, INT64_MAX);
  high.assign(numDims, INT64_MIN);
  for (int64_t i = 0; i < numPoints; ++i) {
    points.push_back(coordinateOf(i));
    for (int d = 0; d < numDims; ++d) {
      low[d] = std::min(low[d], points.back()[d]);
      high[d] = std::max(high[d], points.back()[d]);
    }
  }
}

std::vector<int64_t> RandomTile::coordinateOf(int64_t point) {
  std::vector<int64_t> vars(plan.rank), coordinate;
  int64_t rest = point;
  for (int t = plan.rank - 1; t >= 0; --t) {
    vars[t] = rest % extents[t];
    rest /= extents[t];
  }
  for (int d = 0; d < numDims; ++d) {
    int64_t x = evaluate(plan, subscripts[d], vars, captured);
    if (plan.dims[d].isIndirect) {
      bool isLegal = x >= 0 && x < kNumIndices;
      isInside &= isLegal;
      x = isLegal ? indexMemory[x] : 0;
    }
    coordinate.push_back(x);
  }
  return coordinate;
}

bool RandomTile::makeView() {
  tile.plan = &plan;
  tile.view.elem = Elem::I32;
  tile.view.rank = numDims;
  for (int d = numDims - 1; d >= 0; --d) {
    int64_t lo = low[d], hi = high[d];
    if (random.in(0, 15) == 0)
      (random.in(0, 1) ? lo : hi) += random.in(0, 1) ? 1 : -1;
    isInside &= lo <= low[d] && hi >= high[d];
    tile.view.lo[d] = lo;
    tile.view.hi[d] = hi;
    tile.view.strides[d] = size;
    size *= std::max<int64_t>(high[d] - low[d] + 3, 1);
  }
  if (size > (1 << 22))
    return false;
  memory.resize(size);
  std::iota(memory.begin(), memory.end(), 0);
  for (int d = 0; d < numDims; ++d)
    origin += (low[d] - 1) * tile.view.strides[d];
  tile.view.base = reinterpret_cast<uint8_t *>(memory.data()) - origin * 4;
  tile.view.checked = true;
  tile.indexViews = {&indexView};
  tile.captured = captured;
  return true;
}

void RandomTile::checkExtents() {
  ASSERT_EQ(tile.setExtents(), "");
  ASSERT_EQ(tile.numElements, numPoints);
}

void RandomTile::checkLoad() {
  values.assign(numPoints, -1);
  tile.load(values.data(), false);
  for (int64_t i = 0; i < numPoints; ++i) {
    int64_t offset = -origin;
    for (int d = 0; d < numDims; ++d)
      offset += points[i][d] * tile.view.strides[d];
    ASSERT_EQ(values[i], offset) << "point " << i;
  }
}

/// Codes come into any order of dimensions, also beside each other.
void RandomTile::checkLoadCodes() {
  std::vector<uint16_t> codes(size);
  std::iota(codes.begin(), codes.end(), uint16_t(0));
  TileVal ofCodes = tile;
  ofCodes.view.elem = Elem::F16;
  ofCodes.view.base = reinterpret_cast<uint8_t *>(codes.data()) - origin * 2;
  int64_t strides[kMaxRank] = {}, step = random.in(1, 2);
  for (int t = 0; t < plan.rank; ++t) {
    strides[t] = step;
    step *= extents[t];
  }
  std::vector<uint16_t> loaded(step, 0x5555);
  ASSERT_TRUE(
      ofCodes.loadCodes(reinterpret_cast<uint8_t *>(loaded.data()), strides));
  for (int64_t i = 0; i < numPoints; ++i) {
    int64_t rest = i, at = 0;
    for (int t = plan.rank - 1; t >= 0; --t) {
      at += rest % extents[t] * strides[t];
      rest /= extents[t];
    }
    ASSERT_EQ(loaded[at], uint16_t(values[i])) << "point " << i;
  }
}

/// The exact allocation check: what the points touch is enough.
void RandomTile::checkAllocationBounds() {
  tile.view.checked = false;
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (int32_t v : values) {
    first = std::min<int64_t>(first, v + origin);
    last = std::max<int64_t>(last, v + origin);
  }
  tile.view.limitLo = first * 4;
  tile.view.limitHi = last * 4 + 4;
  EXPECT_EQ(tile.prepare(), "");
  tile.view.limitHi -= 1;
  EXPECT_NE(tile.prepare(), "");
  tile.view.limitHi += 1;
  ASSERT_EQ(tile.prepare(), "");
}

/// Sticks: distinct 128-byte blocks of what was read.
void RandomTile::checkSticks() {
  tile.view.byteAddress = -origin * 4 + 4096;
  std::vector<std::pair<int64_t, int64_t>> sticks;
  tile.appendSticks(sticks);
  std::vector<bool> expected(size * 4 / 128 + 64), actual(expected.size());
  for (int32_t v : values)
    expected[(v * 4 + 4096) / 128] = true;
  for (auto [a, b] : sticks)
    for (int64_t s = a; s <= b; ++s)
      actual.at(s) = true;
  EXPECT_EQ(actual, expected);
}

/// Stores reach the same places.
void RandomTile::checkStore() {
  std::vector<int32_t> written(numPoints);
  for (int64_t i = 0; i < numPoints; ++i)
    written[i] = values[i] + 1;
  tile.store(written.data(), false);
  std::vector<bool> touched(size);
  for (int32_t v : values)
    touched.at(v) = true;
  for (int64_t i = 0; i < size; ++i) {
    ASSERT_EQ(memory[i], i + touched[i]);
    if (i > 5000)
      break;
  }
}

/// What is kept of earlier values does not show.
bool RandomTile::checkOtherCaptured() {
  bool isAnyInside = false;
  for (int64_t change : {1, 64, -65}) {
    tile.captured[0] += change;
    TileVal fresh;
    fresh.plan = &plan;
    fresh.view = tile.view;
    fresh.indexViews = tile.indexViews;
    fresh.captured = tile.captured;
    EXPECT_EQ(tile.setExtents(), fresh.setExtents());
    EXPECT_EQ(tile.numElements, fresh.numElements);
    std::string error = fresh.prepare();
    EXPECT_EQ(tile.prepare(), error);
    if (!error.empty())
      continue;
    std::vector<int32_t> expected(numPoints, -1);
    fresh.load(expected.data(), false);
    tile.load(values.data(), false);
    EXPECT_EQ(values, expected);
    isAnyInside = true;
  }
  return isAnyInside;
}

} // namespace

TEST(AccessTile, MatchesPointwiseEvaluation) {
  int numInside = 0, numOutside = 0, numMoved = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTile random(seed);
    if (!random.makeView())
      continue;
    ASSERT_NO_FATAL_FAILURE(random.checkExtents());
    std::string error = random.tile.prepare();
    EXPECT_EQ(error.empty(), random.isInside) << error;
    if (!error.empty() || !random.isInside) {
      ++numOutside;
      continue;
    }
    ++numInside;
    ASSERT_NO_FATAL_FAILURE(random.checkLoad());
    ASSERT_NO_FATAL_FAILURE(random.checkLoadCodes());
    ASSERT_NO_FATAL_FAILURE(random.checkAllocationBounds());
    random.checkSticks();
    ASSERT_NO_FATAL_FAILURE(random.checkStore());
    numMoved += random.checkOtherCaptured();
  }
  // Both kinds were met.
  EXPECT_GT(numInside, 1000);
  EXPECT_GT(numOutside, 200);
  EXPECT_GT(numMoved, 100);
}

TEST(AccessTile, KeepsRunsAndSeesNewIndices) {
  AccessTilePlan plan;
  plan.rank = 1;
  plan.staticSizes = {4};
  LinearForm zero, three, var;
  three.constant = 3;
  var.vars = {{0, 1}};
  plan.lowerForms = {plan.addForm(zero)};
  plan.upperForms = {plan.addForm(three)};
  AccessTilePlan::BaseDim dim;
  dim.isIndirect = true;
  dim.indexView = 0;
  dim.indexForms = {plan.addForm(var)};
  plan.dims = {dim};
  plan.finish();
  std::vector<int32_t> index{3, 2, 1, 0}, memory{10, 11, 12, 13};
  ViewVal indexView;
  indexView.base = reinterpret_cast<uint8_t *>(index.data());
  indexView.elem = Elem::I32;
  indexView.rank = 1;
  indexView.lo[0] = 0;
  indexView.hi[0] = 3;
  indexView.strides[0] = 1;
  indexView.checked = true;
  TileVal tile;
  tile.plan = &plan;
  tile.view = indexView;
  tile.view.base = reinterpret_cast<uint8_t *>(memory.data());
  tile.indexViews = {&indexView};
  std::vector<int32_t> values(4);
  ASSERT_EQ(tile.setExtents(), "");
  ASSERT_EQ(tile.prepare(), "");
  tile.load(values.data(), false);
  EXPECT_EQ(values, (std::vector<int32_t>{13, 12, 11, 10}));
  index = {0, 0, 2, 2};
  ASSERT_EQ(tile.prepare(), "");
  tile.load(values.data(), false);
  EXPECT_EQ(values, (std::vector<int32_t>{10, 10, 12, 12}));
  index[1] = 4;
  EXPECT_NE(tile.prepare().find("index value 4"), std::string::npos);
}
