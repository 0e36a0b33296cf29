// SPDX-License-Identifier: Apache-2.0
//===- AccessTile.cpp - Addresses of the points of an access tile ---------===//

#include "AccessTile.h"

#include <algorithm>
#include <limits>

using namespace spyre::runtime;

static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

static int64_t floorDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q * b > a ? q - 1 : q;
}

/// The value at the current variables, its slope along `inner`, and the number
/// of steps, including this one, for which the slope holds.
TileVal::Piece TileVal::evalForm(int index, int inner) const {
  const LinearForm &form = plan->forms[index];
  Piece piece{formBase[index], 0, kUnlimited};
  for (auto [v, coefficient] : form.vars) {
    piece.value += coefficient * varValue[v];
    if (v == inner)
      piece.slope += coefficient;
  }
  for (auto [a, coefficient] : form.atoms) {
    if (plan->atoms[a].vars.empty())
      continue; // part of formBase
    Piece p = evalAtom(plan->atoms[a], inner);
    piece.value += coefficient * p.value;
    piece.slope += coefficient * p.slope;
    piece.length = std::min(piece.length, p.length);
  }
  return piece;
}

TileVal::Piece TileVal::evalAtom(const Atom &atom, int inner) const {
  Piece x = evalForm(atom.inner, inner);
  int64_t k = atom.divisor;
  // ceildiv(x, k) = floordiv(x + k - 1, k).
  int64_t value = atom.kind == Atom::CeilDiv ? x.value + k - 1 : x.value;
  int64_t quotient, remainder;
  if (atom.shift >= 0) {
    quotient = value >> atom.shift;
    remainder = value & (k - 1);
  } else {
    quotient = floorDiv(value, k);
    remainder = value - quotient * k;
  }
  bool isMod = atom.kind == Atom::Mod;
  if (x.slope == 0)
    return {isMod ? remainder : quotient, 0, x.length};
  if (x.slope % k == 0)
    return {isMod ? remainder : quotient, isMod ? 0 : x.slope / k, x.length};
  int64_t steps = x.slope > 0 ? (k - remainder + x.slope - 1) / x.slope
                              : remainder / -x.slope + 1;
  return {isMod ? remainder : quotient, isMod ? x.slope : 0,
          std::min(steps, x.length)};
}

/// The value of a form without its variables.
int64_t TileVal::baseOf(const LinearForm &form) const {
  int64_t value = form.constant;
  for (auto [c, coefficient] : form.captured)
    value += coefficient * captured[c];
  for (auto [a, coefficient] : form.atoms) {
    const Atom &atom = plan->atoms[a];
    if (!atom.vars.empty())
      continue;
    int64_t x = formBase[atom.inner];
    int64_t q = floorDiv(atom.kind == Atom::CeilDiv ? x + atom.divisor - 1 : x,
                         atom.divisor);
    value += coefficient * (atom.kind == Atom::Mod ? x - q * atom.divisor : q);
  }
  return value;
}

std::string TileVal::setExtents() {
  const AccessTilePlan &p = *plan;
  if (extentsOf == plan) {
    for (int i : p.changingForms)
      formBase[i] = baseOf(p.forms[i]);
    if (p.hasConstantBox && !p.pointSet)
      return "";
  } else {
    extentsOf = nullptr;
    formBase.resize(p.forms.size());
    for (size_t i = 0; i < p.forms.size(); ++i)
      formBase[i] = baseOf(p.forms[i]);
  }
  numElements = 1;
  if (p.pointSet)
    return enumeratePoints();
  for (int t = 0; t < p.rank; ++t) {
    lo[t] = formBase[p.lowerForms[t]];
    int64_t hi = formBase[p.upperForms[t]];
    int64_t size = std::max<int64_t>(hi - lo[t] + 1, 0);
    if (p.staticSizes[t] >= 0 && size != p.staticSizes[t])
      return "dimension " + std::to_string(t) + " of the access tile has " +
             std::to_string(size) + " points, its type says " +
             std::to_string(p.staticSizes[t]);
    sizes[t] = size;
    if (size > 0 && numElements > (int64_t(1) << 40) / size)
      return "access tile with more than 2^40 points";
    numElements *= size;
  }
  extentsOf = plan;
  return "";
}

std::string spyre::runtime::outsideView(const ViewVal &view, int dim,
                                        int64_t coordinate, const char *what) {
  return std::string(what) + " coordinate " + std::to_string(coordinate) +
         " of view dimension " + std::to_string(dim) +
         " is outside its range " + std::to_string(view.lo[dim]) + " to " +
         std::to_string(view.hi[dim]);
}

int64_t spyre::runtime::readIndex(const uint8_t *p, int64_t sizeInBytes) {
  switch (sizeInBytes) {
  case 1:
    return static_cast<int8_t>(*p);
  case 2: {
    int16_t v;
    std::memcpy(&v, p, 2);
    return v;
  }
  case 4: {
    int32_t v;
    std::memcpy(&v, p, 4);
    return v;
  }
  default: {
    int64_t v;
    std::memcpy(&v, p, 8);
    return v;
  }
  }
}

std::string spyre::runtime::outsideIndices(const ViewVal &view, int dim,
                                           int64_t value) {
  return "index value " + std::to_string(value) + " for view dimension " +
         std::to_string(dim) + " is outside its range " +
         std::to_string(view.lo[dim]) + " to " + std::to_string(view.hi[dim]);
}

void TileVal::makeRunsOfTable(GroupState &state, int64_t rows, int64_t length) {
  state.runs.clear();
  state.rowStart.assign(1, 0);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t *t = state.table.data() + row * length;
    for (int64_t i = 0; i < length;) {
      int64_t stride = i + 1 < length ? t[i + 1] - t[i] : 1;
      int64_t end = i + 1;
      while (end < length && t[end] - t[end - 1] == stride)
        ++end;
      state.runs.push_back({i, end - i, t[i], stride});
      i = end;
    }
    state.rowStart.push_back(static_cast<int>(state.runs.size()));
  }
}

/// Computes the offset of each point from the runs, for loops over points.
void TileVal::makeTableOfRuns(GroupState &state, const GroupRows &rows) {
  state.table.resize(rows.count * rows.length);
  for (int64_t row = 0; row < rows.count; ++row)
    for (int r = state.rowStart[row]; r < state.rowStart[row + 1]; ++r) {
      const Run &run = state.runs[r];
      int64_t *t = state.table.data() + row * rows.length + run.start;
      for (int64_t i = 0; i < run.length; ++i)
        t[i] = run.offset + i * run.stride;
    }
}

bool TileVal::updateKey(const AccessTilePlan::Group &group, GroupState &state,
                        bool wantTable) const {
  std::vector<int64_t> &key = state.key;
  size_t at = 0;
  bool same = state.valid && group.indirect.empty();
  auto put = [&](int64_t value) {
    if (at == key.size()) {
      key.push_back(value);
      same = false;
    } else if (key[at] != value) {
      key[at] = value;
      same = false;
    }
    ++at;
  };
  for (int v : group.vars) {
    put(lo[v]);
    put(sizes[v]);
  }
  for (int c : group.keyCaptured)
    put(captured[c]);
  for (auto [d, form] : group.direct)
    put(view.strides[d]);
  put(wantTable);
  return same;
}

TileVal::GroupRows TileVal::rowsOf(const AccessTilePlan::Group &group) const {
  GroupRows rows;
  if (!group.vars.empty()) {
    rows.inner = group.vars.back();
    rows.length = sizes[rows.inner];
    for (size_t i = 0; i + 1 < group.vars.size(); ++i)
      rows.count *= sizes[group.vars[i]];
  }
  return rows;
}

void TileVal::enterRow(const AccessTilePlan::Group &group, int64_t row) const {
  int64_t rest = row;
  for (int i = static_cast<int>(group.vars.size()) - 2; i >= 0; --i) {
    int v = group.vars[i];
    varValue[v] = lo[v] + rest % sizes[v];
    rest /= sizes[v];
  }
}

/// Appends a piece to the runs; one that continues the last run of its row is
/// part of it.
void TileVal::addToRuns(GroupState &state, const Run &piece) {
  bool isFirst = state.rowStart.back() == static_cast<int>(state.runs.size());
  if (!isFirst) {
    Run &last = state.runs.back();
    int64_t step = last.length == 1 ? piece.offset - last.offset : last.stride;
    if (last.offset + last.length * step == piece.offset &&
        (piece.length == 1 || piece.stride == step)) {
      last.length += piece.length;
      last.stride = step;
      return;
    }
  }
  state.runs.push_back(piece);
}

void TileVal::addDirectDims(const AccessTilePlan::Group &group,
                            GroupState &state, const GroupRows &rows,
                            int64_t row) const {
  if (!group.indirect.empty())
    return addPieces(group, state, rows, row, 0, rows.length, 1);
  // Whole periods, of which only the first is computed, and what is left.
  int64_t repeats = group.period > 0 ? rows.length / group.period : 0;
  int64_t done = 0;
  if (repeats > 1) {
    auto first = static_cast<int64_t>(state.runs.size());
    addPieces(group, state, rows, row, 0, group.period, repeats);
    repeatRuns(group, state, first, repeats);
    done = repeats * group.period;
  }
  addPieces(group, state, rows, row, done, rows.length, 1);
  state.rowStart.push_back(static_cast<int>(state.runs.size()));
}

void TileVal::repeatRuns(const AccessTilePlan::Group &group, GroupState &state,
                         int64_t first, int64_t repeats) const {
  int64_t step = 0;
  for (size_t i = 0; i < group.direct.size(); ++i)
    step += group.periodSteps[i] * view.strides[group.direct[i].first];
  auto end = static_cast<int64_t>(state.runs.size());
  if (end - first == 1) {
    Run &run = state.runs.back();
    int64_t stride = run.length == 1 ? step : run.stride;
    if (run.length * stride == step) {
      run.length *= repeats;
      run.stride = stride;
      return;
    }
  }
  for (int64_t k = 1; k < repeats; ++k)
    for (int64_t i = first; i < end; ++i) {
      // A copy that continues the last run may have made that one longer.
      Run run = state.runs[i];
      if (i + 1 == end)
        run.length = group.period - run.start;
      addToRuns(state, {run.start + k * group.period, run.length,
                        run.offset + k * step, run.stride});
    }
}

void TileVal::addPieces(const AccessTilePlan::Group &group, GroupState &state,
                        const GroupRows &rows, int64_t row, int64_t from,
                        int64_t to, int64_t repeats) const {
  bool isIndirect = !group.indirect.empty();
  for (int64_t start = from; start < to;) {
    if (rows.inner >= 0)
      varValue[rows.inner] = lo[rows.inner] + start;
    int64_t offset = 0, stride = 0, steps = to - start;
    Piece pieces[kMaxRank];
    for (size_t i = 0; i < group.direct.size(); ++i) {
      pieces[i] = evalForm(group.direct[i].second, rows.inner);
      steps = std::min(steps, pieces[i].length);
      int d = group.direct[i].first;
      offset += pieces[i].value * view.strides[d];
      stride += pieces[i].slope * view.strides[d];
    }
    for (size_t i = 0; i < group.direct.size(); ++i) {
      int64_t first = pieces[i].value;
      int64_t last = first + (steps - 1) * pieces[i].slope;
      // Of the first and the last repetition.
      int64_t shift = repeats > 1 ? (repeats - 1) * group.periodSteps[i] : 0;
      auto &range = state.range[i];
      range.first = std::min(range.first, std::min(first, last) +
                                              std::min<int64_t>(shift, 0));
      range.second = std::max(range.second, std::max(first, last) +
                                                std::max<int64_t>(shift, 0));
    }
    if (isIndirect) {
      int64_t *t = state.table.data() + row * rows.length + start;
      for (int64_t i = 0; i < steps; ++i)
        t[i] += offset + i * stride;
    } else {
      addToRuns(state, {start, steps, offset, stride});
    }
    start += steps;
  }
}

std::string TileVal::addIndirectDim(int d, GroupState &state,
                                    const GroupRows &rows, int64_t row,
                                    bool zeroOutside) const {
  const AccessTilePlan::BaseDim &dim = plan->dims[d];
  const ViewVal &index = *indexViews[dim.indexView];
  int64_t elemSize = deviceSize(index.elem);
  for (int64_t start = 0; start < rows.length;) {
    if (rows.inner >= 0)
      varValue[rows.inner] = lo[rows.inner] + start;
    int64_t offset = 0, stride = 0, steps = rows.length - start;
    Piece pieces[kMaxRank];
    for (size_t i = 0; i < dim.indexForms.size(); ++i) {
      pieces[i] = evalForm(dim.indexForms[i], rows.inner);
      steps = std::min(steps, pieces[i].length);
      offset += pieces[i].value * index.strides[i];
      stride += pieces[i].slope * index.strides[i];
    }
    for (size_t i = 0; i < dim.indexForms.size(); ++i) {
      int64_t first = pieces[i].value;
      int64_t last = first + (steps - 1) * pieces[i].slope;
      for (int64_t x : {first, last})
        if (zeroOutside ? isFar(x, index.strides[i])
                        : x < index.lo[i] || x > index.hi[i])
          return outsideView(index, static_cast<int>(i), x, "index");
    }
    int64_t firstByte = offset * elemSize;
    int64_t lastByte = (offset + (steps - 1) * stride) * elemSize;
    int64_t low = std::min(firstByte, lastByte);
    int64_t high = std::max(firstByte, lastByte) + elemSize;
    if ((!index.checked || zeroOutside) &&
        (low < index.limitLo || high > index.limitHi))
      return "index access at byte address " +
             std::to_string(index.byteAddress + low) +
             " is outside allocated memory";
    state.indexBytes.push_back(
        {dim.indexView, index.byteAddress + low, index.byteAddress + high - 1});
    int64_t position = row * rows.length + start;
    int64_t *t = state.table.data() + position;
    start += steps;
    if (!hasData) {
      for (int64_t i = 0; i < steps; ++i)
        t[i] +=
            spreadIndex(position + i, view.lo[d], view.hi[d]) * view.strides[d];
      continue;
    }
    const uint8_t *p = index.base + firstByte;
    for (int64_t i = 0; i < steps; ++i, p += stride * elemSize) {
      int64_t value = readIndex(p, elemSize);
      if (zeroOutside ? value < 0 || isFar(value, view.strides[d])
                      : value < view.lo[d] || value > view.hi[d])
        return outsideIndices(view, d, value);
      t[i] += value * view.strides[d];
    }
  }
  return "";
}

std::string TileVal::prepareGroup(int g, bool wantTable, bool zeroOutside) {
  const AccessTilePlan::Group &group = plan->groups[g];
  GroupState &state = states[g];
  bool isIndirect = !group.indirect.empty();
  if (updateKey(group, state, wantTable))
    return "";
  state.valid = false;

  GroupRows rows = rowsOf(group);
  state.runs.clear();
  state.rowStart.assign(1, 0);
  state.range.assign(group.direct.size(), {kUnlimited, -kUnlimited});
  state.indexBytes.clear();
  for (int v : group.vars)
    varValue[v] = lo[v];
  if (isIndirect)
    state.table.assign(rows.count * rows.length, 0);
  for (int64_t row = 0; row < rows.count; ++row) {
    enterRow(group, row);
    addDirectDims(group, state, rows, row);
    for (int d : group.indirect) {
      std::string error = addIndirectDim(d, state, rows, row, zeroOutside);
      if (!error.empty())
        return error;
    }
  }
  if (isIndirect && !wantTable)
    makeRunsOfTable(state, rows.count, rows.length);
  else if (!isIndirect && wantTable)
    makeTableOfRuns(state, rows);
  state.valid = true;
  return "";
}

std::pair<int64_t, int64_t> TileVal::offsetRange() const {
  if (numElements == 0)
    return {0, -1};
  int64_t minOffset = baseOffset, maxOffset = baseOffset;
  for (const Loop &loop : linearLoops) {
    int64_t last = (loop.extent - 1) * loop.memoryStride;
    minOffset += std::min<int64_t>(last, 0);
    maxOffset += std::max<int64_t>(last, 0);
  }
  for (size_t g = 0; g < plan->groups.size(); ++g) {
    int64_t minimum = kUnlimited, maximum = -kUnlimited;
    if (static_cast<int>(g) != primary) {
      for (int64_t offset : states[g].table) {
        minimum = std::min(minimum, offset);
        maximum = std::max(maximum, offset);
      }
    } else {
      for (const Run &run : states[g].runs) {
        int64_t last = run.offset + (run.length - 1) * run.stride;
        minimum = std::min({minimum, run.offset, last});
        maximum = std::max({maximum, run.offset, last});
      }
    }
    minOffset += minimum;
    maxOffset += maximum;
  }
  return {minOffset, maxOffset};
}

std::string TileVal::prepare(bool zeroOutside) {
  const AccessTilePlan &p = *plan;
  isPartlyOutside = false;
  if (numElements == 0)
    return "";
  states.resize(p.groups.size());
  if (p.isEnumerated)
    return prepareEnumerated(zeroOutside);
  int64_t step = 1;
  if (p.denseInnermost) {
    tileStrides[p.denseVar] = 1;
    step = sizes[p.denseVar];
  }
  for (int t = p.rank - 1; t >= 0; --t) {
    if (p.denseInnermost && t == p.denseVar)
      continue;
    tileStrides[t] = step;
    step *= sizes[t];
  }
  // The group with the last variable is walked as runs, the others as tables.
  primary = -1;
  int lastVar = -1;
  for (size_t g = 0; g < p.groups.size(); ++g) {
    int v = p.groups[g].vars.empty() ? -1 : p.groups[g].vars.back();
    if (primary < 0 || v > lastVar) {
      primary = static_cast<int>(g);
      lastVar = v;
    }
  }
  for (size_t g = 0; g < p.groups.size(); ++g) {
    std::string error = prepareGroup(
        static_cast<int>(g), static_cast<int>(g) != primary, zeroOutside);
    if (!error.empty())
      return error;
  }

  int numDims = static_cast<int>(p.dims.size());
  int64_t low[kMaxRank], high[kMaxRank];
  baseOffset = 0;
  for (int d = 0; d < numDims; ++d) {
    if (p.dims[d].isIndirect) {
      low[d] = high[d] = 0;
      continue;
    }
    low[d] = high[d] = formBase[p.constantForms[d]];
    baseOffset += low[d] * view.strides[d];
  }
  linearLoops.clear();
  for (int t = 0; t < p.rank; ++t) {
    if (p.groupOfVar[t] >= 0)
      continue;
    int64_t memoryStride = 0;
    for (auto [d, coefficient] : p.linearTerms[t]) {
      int64_t first = coefficient * lo[t];
      int64_t last = coefficient * (lo[t] + sizes[t] - 1);
      low[d] += std::min(first, last);
      high[d] += std::max(first, last);
      baseOffset += first * view.strides[d];
      memoryStride += coefficient * view.strides[d];
    }
    if (sizes[t] > 1)
      linearLoops.push_back({sizes[t], memoryStride, tileStrides[t], t});
  }
  for (size_t g = 0; g < p.groups.size(); ++g)
    for (size_t i = 0; i < p.groups[g].direct.size(); ++i) {
      int d = p.groups[g].direct[i].first;
      low[d] += states[g].range[i].first;
      high[d] += states[g].range[i].second;
    }
  for (int d = 0; d < numDims; ++d) {
    if (p.dims[d].isIndirect)
      continue;
    int64_t stride = view.strides[d];
    if (zeroOutside ? isFar(low[d], stride) : low[d] < view.lo[d])
      return outsideView(view, d, low[d], "access:");
    if (zeroOutside ? isFar(high[d], stride) : high[d] > view.hi[d])
      return outsideView(view, d, high[d], "access:");
  }
  if (view.checked && !zeroOutside)
    return "";
  return checkAllocation(zeroOutside);
}

std::string TileVal::checkAllocation(bool zeroOutside) {
  // The view exceeds its allocation, but this tile may still be inside.
  auto [minOffset, maxOffset] = offsetRange();
  int64_t elemSize = deviceSize(view.elem);
  int64_t firstByte = minOffset * elemSize;
  int64_t endByte = (maxOffset + 1) * elemSize;
  isPartlyOutside = firstByte < view.limitLo || endByte > view.limitHi;
  if (isPartlyOutside && !zeroOutside)
    return std::string("access to ") + (view.isLX ? "LX" : "device memory") +
           " bytes " + std::to_string(view.byteAddress + firstByte) + " to " +
           std::to_string(view.byteAddress + endByte - 1) +
           (view.isLX ? " leaves the LX scratchpad"
                      : " leaves the allocation at its view's base");
  return "";
}

std::optional<HalfFactor> TileVal::halfFactor(int dim) const {
  std::optional<EvenParts> parts = evenParts();
  if (!parts || parts->first.strides[dim] != 1)
    return std::nullopt;
  HalfFactor factor;
  factor.values = parts->first.first;
  factor.areCodes = true;
  factor.columnStride = 1;
  if (parts->distance != 0) {
    if (parts->first.dim != dim || parts->first.length % kHalfPart != 0)
      return std::nullopt;
    factor.partLength = size_t(parts->first.length);
    factor.partStride = parts->distance;
  }
  for (int d = 0; d < plan->rank; ++d) {
    if (d == dim || sizes[d] == 1)
      continue;
    if (factor.rowStride != 0)
      return std::nullopt;
    factor.rowStride = parts->first.strides[d];
  }
  return factor;
}
