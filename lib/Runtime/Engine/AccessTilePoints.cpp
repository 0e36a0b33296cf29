// SPDX-License-Identifier: Apache-2.0
//===- AccessTilePoints.cpp - Access tiles point by point -----------------===//
//
// Access tiles that cannot be handled as runs, and have a list of points: sets
// that are not boxes, orders that are not permutations, views of irregular
// coordinates, computed subscripts into distributed views.
//
//===----------------------------------------------------------------------===//

#include "AccessTile.h"

#include <algorithm>
#include <numeric>

using namespace spyre::runtime;

/// How far apart, around a range, the first numbers lie that go on by a step.
static uint64_t getLeastDistance(uint64_t step, uint64_t range) {
  uint64_t least = range, count = std::min<uint64_t>(range, 64);
  for (uint64_t i = 1, at = step; i < count; ++i, at = (at + step) % range)
    least = std::min({least, at, range - at});
  return least;
}

/// A step with which numbers go to different places of a range until all are
/// taken, and are far apart for as long as may be: near the golden section.
static uint64_t getSpreadStep(uint64_t range) {
  auto golden = static_cast<uint64_t>(double(range) * 0.6180339887498949);
  uint64_t best = 1, most = 0;
  for (uint64_t i = 0; i < 32; ++i) {
    uint64_t step = i % 2 == 0 ? golden + i / 2 : golden - (i + 1) / 2;
    if (step == 0 || step >= range || std::gcd(step, range) != 1)
      continue;
    if (uint64_t least = getLeastDistance(step, range); least > most) {
      best = step;
      most = least;
    }
  }
  return best;
}

int64_t spyre::runtime::spreadIndex(int64_t number, int64_t low, int64_t high) {
  if (high < low)
    return 0;
  // Products of two such numbers fit, and so do indices of the device.
  constexpr uint64_t kMostRange = uint64_t(1) << 31;
  uint64_t range = std::min(uint64_t(high - low) + 1, kMostRange);
  // Callers ask for all indices of a dimension, one after another.
  thread_local uint64_t knownRange = 1, knownStep = 1;
  if (range != knownRange) {
    knownRange = range;
    knownStep = getSpreadStep(range);
  }
  return low + int64_t(uint64_t(number) % range * knownStep % range);
}

// The most points of a box that are tried when the points of a set are listed.
static constexpr int64_t kMaxCandidates = int64_t(1) << 26;

/// Calls visit() for every point of the box, the last dimension fastest, until
/// it returns false. `point` is the current one.
template <typename Visit>
static void forEachPoint(const int64_t *lo, const int64_t *hi, int rank,
                         int64_t *point, Visit &&visit) {
  for (int d = 0; d < rank; ++d) {
    if (hi[d] < lo[d])
      return;
    point[d] = lo[d];
  }
  while (visit()) {
    int d = rank - 1;
    for (; d >= 0; --d) {
      if (++point[d] <= hi[d])
        break;
      point[d] = lo[d];
    }
    if (d < 0)
      return;
  }
}

static std::string pointText(const int64_t *point, int rank) {
  std::string text = "(";
  for (int d = 0; d < rank; ++d)
    text += (d ? ", " : "") + std::to_string(point[d]);
  return text + ")";
}

/// Number of points in a box, or -1 if there are too many.
static int64_t countCandidates(const int64_t *lo, const int64_t *hi, int rank) {
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) {
    int64_t extent = std::max<int64_t>(hi[d] - lo[d] + 1, 0);
    if (extent > 0 && count > kMaxCandidates / extent)
      return -1;
    count *= extent;
  }
  return count;
}

std::string TileVal::enumeratePoints() {
  const AccessTilePlan &p = *plan;
  const PointSet &set = *p.pointSet;
  int rank = p.rank;
  std::vector<int64_t> operands(rank);
  for (int c : p.pointSymbols)
    operands.push_back(captured[c]);
  if (pointsKey != operands) {
    pointsKey.clear();
    points.clear();
    int64_t low[kMaxRank], high[kMaxRank];
    std::fill(low, low + rank, -PointSet::kUnbounded);
    std::fill(high, high + rank, PointSet::kUnbounded);
    std::vector<int64_t> key = operands;
    if (set.narrow(operands.data(), low, high)) {
      for (int d = 0; d < rank; ++d)
        if (low[d] <= -PointSet::kUnbounded || high[d] >= PointSet::kUnbounded)
          return "dimension " + std::to_string(d) +
                 " of the set has no bound that can be derived";
      if (countCandidates(low, high, rank) < 0)
        return "the set spans more than " + std::to_string(kMaxCandidates) +
               " candidate points";
      forEachPoint(low, high, rank, operands.data(), [&] {
        if (set.contains(operands.data()))
          points.insert(points.end(), operands.begin(),
                        operands.begin() + rank);
        return true;
      });
    }
    // Sort the points lexicographically by their results of the order map.
    int numKeys = static_cast<int>(p.pointOrder.roots.size());
    int64_t count = rank ? static_cast<int64_t>(points.size()) / rank : 0;
    std::vector<int64_t> keys(count * numKeys);
    for (int64_t i = 0; i < count; ++i)
      for (int k = 0; k < numKeys; ++k)
        keys[i * numKeys + k] =
            p.pointOrder.evaluate(p.pointOrder.roots[k], &points[i * rank]);
    std::vector<int64_t> order(count);
    std::iota(order.begin(), order.end(), int64_t(0));
    auto compare = [&](int64_t a, int64_t b) {
      const int64_t *x = &keys[a * numKeys], *y = &keys[b * numKeys];
      return std::lexicographical_compare(x, x + numKeys, y, y + numKeys);
    };
    std::sort(order.begin(), order.end(), compare);
    for (int64_t i = 1; i < count; ++i)
      if (!compare(order[i - 1], order[i]))
        return "the order gives points " +
               pointText(&points[order[i - 1] * rank], rank) + " and " +
               pointText(&points[order[i] * rank], rank) + " the same place";
    std::vector<int64_t> sorted;
    sorted.reserve(points.size());
    for (int64_t i : order)
      sorted.insert(sorted.end(), points.begin() + i * rank,
                    points.begin() + (i + 1) * rank);
    points = std::move(sorted);
    pointsKey = std::move(key);
  }

  // The k-th point is the tile's k-th element. One dynamic size can be computed
  // from the number of points.
  numElements = static_cast<int64_t>(points.size()) / rank;
  int64_t known = 1;
  int dynamic = -1;
  for (int t = 0; t < rank; ++t) {
    sizes[t] = p.staticSizes[t];
    if (sizes[t] >= 0)
      known *= sizes[t];
    else if (dynamic >= 0)
      return "the tile has two dynamic dimensions, its set is not a box";
    else
      dynamic = t;
  }
  if (dynamic >= 0)
    sizes[dynamic] = known > 0 ? numElements / known : 0;
  int64_t expected = dynamic >= 0 ? known * sizes[dynamic] : known;
  if (expected != numElements)
    return "the set has " + std::to_string(numElements) +
           " points, which do not fill the access tile";
  return "";
}

std::string TileVal::coordinateOf(int64_t number, int64_t *coordinate,
                                  bool zeroOutside, const int64_t *low,
                                  const int64_t *high,
                                  GroupState &state) const {
  const AccessTilePlan &p = *plan;
  for (size_t d = 0; d < p.dims.size(); ++d) {
    const AccessTilePlan::BaseDim &dim = p.dims[d];
    if (!dim.isIndirect) {
      coordinate[d] = evalForm(dim.form, -1).value;
      continue;
    }
    const ViewVal &index = *indexViews[dim.indexView];
    int64_t at[2 * kMaxRank], offset = 0;
    for (size_t i = 0; i < dim.indexForms.size(); ++i) {
      at[i] = evalForm(dim.indexForms[i], -1).value;
      if (zeroOutside ? isFar(at[i], index.strides[i])
                      : at[i] < index.lo[i] || at[i] > index.hi[i])
        return outsideView(index, static_cast<int>(i), at[i], "index");
      offset += at[i] * index.strides[i];
    }
    if (index.set && !zeroOutside) {
      std::copy(index.symbols, index.symbols + index.set->numSymbols,
                at + index.rank);
      if (!index.set->contains(at))
        return "index coordinate " + pointText(at, index.rank) +
               " is not in its view's coordinate set";
    }
    int64_t size = deviceSize(index.elem), byte = offset * size;
    if (byte < index.limitLo || byte + size > index.limitHi)
      return "index access at byte address " +
             std::to_string(index.byteAddress + byte) +
             " is outside allocated memory";
    state.indexBytes.push_back({dim.indexView, index.byteAddress + byte,
                                index.byteAddress + byte + size - 1});
    coordinate[d] = hasData ? readIndex(index.base + byte, size)
                            : spreadIndex(number, low[d], high[d]);
  }
  return "";
}

/// Calls visit(k) with `variables` set to the k-th point.
template <typename Visit>
static std::string
forEachTilePoint(const AccessTilePlan &plan, const std::vector<int64_t> &points,
                 const int64_t *lo, const int64_t *sizes, int64_t numElements,
                 int64_t *variables, Visit &&visit) {
  std::string error;
  if (plan.pointSet) {
    for (int64_t k = 0; k < numElements && error.empty(); ++k) {
      std::copy_n(&points[k * plan.rank], plan.rank, variables);
      error = visit(k);
    }
    return error;
  }
  int64_t high[kMaxRank], k = 0;
  for (int t = 0; t < plan.rank; ++t)
    high[t] = lo[t] + sizes[t] - 1;
  forEachPoint(lo, high, plan.rank, variables, [&] {
    error = visit(k++);
    return error.empty();
  });
  return error;
}

std::string TileVal::prepareEnumerated(bool zeroOutside) {
  const AccessTilePlan &p = *plan;
  GroupState &state = states[0];
  state.table.assign(numElements, 0);
  state.indexBytes.clear();
  int numDims = static_cast<int>(p.dims.size());
  int64_t coordinate[2 * kMaxRank];
  if (view.set)
    std::copy(view.symbols, view.symbols + view.set->numSymbols,
              coordinate + numDims);
  std::string error = forEachTilePoint(
      p, points, lo, sizes, numElements, varValue, [&](int64_t k) {
        std::string message =
            coordinateOf(k, coordinate, zeroOutside, view.lo, view.hi, state);
        for (int d = 0; d < numDims && message.empty(); ++d) {
          bool isOutside =
              coordinate[d] < view.lo[d] || coordinate[d] > view.hi[d];
          if (zeroOutside)
            isOutside = isFar(coordinate[d], view.strides[d]) ||
                        (p.dims[d].isIndirect && coordinate[d] < 0);
          if (isOutside)
            message = p.dims[d].isIndirect
                          ? outsideIndices(view, d, coordinate[d])
                          : outsideView(view, d, coordinate[d], "access:");
          state.table[k] += coordinate[d] * view.strides[d];
        }
        if (message.empty() && view.set && !zeroOutside &&
            !view.set->contains(coordinate))
          message = "access: coordinate " + pointText(coordinate, numDims) +
                    " is not in its view's coordinate set";
        return message;
      });
  if (!error.empty())
    return error;
  makeRunsOfTable(state, 1, numElements);
  baseOffset = 0;
  primary = 0;
  linearLoops.clear();
  setRowMajor();
  if (view.checked && !zeroOutside)
    return "";
  return checkAllocation(zeroOutside);
}

/// Whether a partition holds a coordinate. The array `coordinate` must have
/// room for the symbols of the partition's set.
static bool holds(const ViewVal &part, int64_t *coordinate) {
  for (int d = 0; d < part.rank; ++d)
    if (coordinate[d] < part.lo[d] || coordinate[d] > part.hi[d])
      return false;
  if (!part.set)
    return true;
  std::copy(part.symbols, part.symbols + part.set->numSymbols,
            coordinate + part.rank);
  return part.set->contains(coordinate);
}

/// A view with the range of all partitions together.
static ViewVal boxAround(const std::vector<const ViewVal *> &partitions) {
  ViewVal whole = *partitions.front();
  for (const ViewVal *part : partitions)
    for (int d = 0; d < whole.rank; ++d) {
      whole.lo[d] = std::min(whole.lo[d], part->lo[d]);
      whole.hi[d] = std::max(whole.hi[d], part->hi[d]);
    }
  return whole;
}

std::vector<std::pair<int, int64_t>>
TileVal::countEnumerated(const std::vector<const ViewVal *> &partitions) const {
  std::vector<int64_t> counts(partitions.size(), 0);
  const ViewVal whole = boxAround(partitions);
  GroupState indices;
  int64_t coordinate[2 * kMaxRank];
  forEachTilePoint(
      *plan, points, lo, sizes, numElements, varValue, [&](int64_t k) {
        std::string message =
            coordinateOf(k, coordinate, false, whole.lo, whole.hi, indices);
        bool isHeld = false;
        for (size_t i = 0; message.empty() && !isHeld && i < counts.size(); ++i)
          if ((isHeld = holds(*partitions[i], coordinate)))
            ++counts[i];
        return message;
      });
  std::vector<std::pair<int, int64_t>> result;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      result.push_back({static_cast<int>(i), counts[i]});
  return result;
}

std::string
TileVal::moveEnumerated(const std::vector<const ViewVal *> &partitions,
                        void *tile, bool isStore, bool ieee) {
  const AccessTilePlan &p = *plan;
  states.resize(1);
  states[0].indexBytes.clear();
  Elem elem = plan->movedElem(partitions.front()->elem);
  ElementFormat format = elementFormat(elem, ieee);
  int64_t memorySize = deviceSize(elem), size = hostSize(elem);
  if (!isStore)
    std::memset(tile, 0, size_t(numElements) * size);
  int numDims = static_cast<int>(p.dims.size());
  int64_t coordinate[2 * kMaxRank];
  const ViewVal whole = boxAround(partitions);
  bool isCovered = false;
  std::string error = forEachTilePoint(
      p, points, lo, sizes, numElements, varValue, [&](int64_t k) {
        std::string message =
            coordinateOf(k, coordinate, false, whole.lo, whole.hi, states[0]);
        if (!message.empty())
          return message;
        bool isHeld = false;
        for (size_t i = 0; i < partitions.size(); ++i) {
          const ViewVal &part = *partitions[i];
          if (!holds(part, coordinate))
            continue;
          int64_t offset = 0;
          for (int d = 0; d < numDims; ++d)
            offset += coordinate[d] * part.strides[d];
          isCovered = isHeld = true;
          int64_t byte = offset * memorySize;
          if (byte < part.limitLo || byte + memorySize > part.limitHi)
            return "access to partition " + std::to_string(i) +
                   " leaves its allocation";
          uint8_t *device = part.base + byte;
          uint8_t *host = static_cast<uint8_t *>(tile) + k * size;
          if (isStore)
            storeBox(elem, format, device, nullptr, host, nullptr, nullptr, 0);
          else
            loadBox(elem, format, host, nullptr, device, nullptr, nullptr, 0);
          // Loads read the first partition, stores write all.
          if (!isStore)
            break;
        }
        // A point that no partition holds reads as zero, but an index outside
        // of their common range is an error.
        for (int d = 0; d < numDims && !isHeld; ++d)
          if (p.dims[d].isIndirect &&
              (coordinate[d] < whole.lo[d] || coordinate[d] > whole.hi[d]))
            return outsideIndices(whole, d, coordinate[d]);
        return std::string();
      });
  if (!error.empty())
    return error;
  return isCovered || numElements == 0
             ? ""
             : "no partition covers the access region";
}

void TileVal::visitDistributed(
    const std::vector<const ViewVal *> &partitions, bool isStore,
    const std::function<void(size_t, int64_t)> &visit) const {
  const ViewVal whole = boxAround(partitions);
  int64_t size = deviceSize(whole.elem);
  int numDims = static_cast<int>(plan->dims.size());
  GroupState indices;
  int64_t coordinate[2 * kMaxRank];
  forEachTilePoint(
      *plan, points, lo, sizes, numElements, varValue, [&](int64_t k) {
        std::string message;
        if (plan->isEnumerated) {
          message =
              coordinateOf(k, coordinate, false, whole.lo, whole.hi, indices);
        } else {
          for (int t = 0; t < plan->rank; ++t) {
            int d = plan->linearTerms[t].front().first;
            coordinate[d] = formBase[plan->constantForms[d]] + varValue[t];
          }
        }
        for (size_t i = 0; message.empty() && i < partitions.size(); ++i) {
          if (!holds(*partitions[i], coordinate))
            continue;
          int64_t offset = 0;
          for (int d = 0; d < numDims; ++d)
            offset += coordinate[d] * partitions[i]->strides[d];
          visit(i, partitions[i]->byteAddress + offset * size);
          if (!isStore)
            break;
        }
        return message;
      });
}
