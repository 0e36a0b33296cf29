// SPDX-License-Identifier: Apache-2.0
//===- AccessTile.cpp - Addresses of the points of an access tile ---------===//

#include "AccessTile.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace spyre::runtime;

static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

static int64_t floorDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q * b > a ? q - 1 : q;
}

//===----------------------------------------------------------------------===//
// AccessPlan
//===----------------------------------------------------------------------===//

int AccessPlan::addForm(LinearForm form) {
  forms.push_back(std::move(form));
  return static_cast<int>(forms.size()) - 1;
}

void AccessPlan::finish() {
  // Union-find over the variables: an atom or an indirect dimension joins all
  // variables below it.
  std::vector<int> parent(rank);
  std::iota(parent.begin(), parent.end(), 0);
  auto find = [&](int v) {
    while (parent[v] != v)
      v = parent[v] = parent[parent[v]];
    return v;
  };
  std::vector<bool> grouped(rank, false);
  auto join = [&](const std::vector<int> &vars) {
    for (int v : vars) {
      grouped[v] = true;
      parent[find(v)] = find(vars.front());
    }
  };
  auto varsOf = [&](int form) {
    std::vector<int> vars;
    for (auto [v, c] : forms[form].vars)
      vars.push_back(v);
    for (auto [a, c] : forms[form].atoms)
      vars.insert(vars.end(), atoms[a].vars.begin(), atoms[a].vars.end());
    std::sort(vars.begin(), vars.end());
    vars.erase(std::unique(vars.begin(), vars.end()), vars.end());
    return vars;
  };
  for (BaseDim &dim : dims) {
    if (!dim.isIndirect) {
      for (auto [a, c] : forms[dim.form].atoms)
        join(atoms[a].vars);
      continue;
    }
    std::vector<int> all;
    for (int form : dim.indexForms) {
      std::vector<int> vars = varsOf(form);
      all.insert(all.end(), vars.begin(), vars.end());
    }
    join(all);
  }

  groupOfVar.assign(rank, -1);
  std::vector<int> groupOfRoot(rank, -1);
  for (int v = 0; v < rank; ++v) {
    if (!grouped[v])
      continue;
    int &g = groupOfRoot[find(v)];
    if (g < 0) {
      g = static_cast<int>(groups.size());
      groups.emplace_back();
    }
    groups[g].vars.push_back(v);
    groupOfVar[v] = g;
  }
  // An index without variables (one row for the whole tile) still needs a
  // group of its own.
  auto groupOfVars = [&](const std::vector<int> &vars) {
    if (!vars.empty())
      return groupOfVar[vars.front()];
    groups.emplace_back();
    return static_cast<int>(groups.size()) - 1;
  };

  linearTerms.assign(rank, {});
  constantForms.assign(dims.size(), -1);
  for (size_t d = 0; d < dims.size(); ++d) {
    BaseDim &dim = dims[d];
    if (dim.isIndirect) {
      std::vector<int> all;
      for (int form : dim.indexForms) {
        std::vector<int> vars = varsOf(form);
        all.insert(all.end(), vars.begin(), vars.end());
      }
      groups[groupOfVars(all)].indirect.push_back(static_cast<int>(d));
      continue;
    }
    const LinearForm form = forms[dim.form];
    LinearForm constant;
    constant.constant = form.constant;
    constant.captured = form.captured;
    std::vector<LinearForm> perGroup(groups.size());
    for (auto term : form.vars) {
      if (int g = groupOfVar[term.first]; g >= 0)
        perGroup[g].vars.push_back(term);
      else
        linearTerms[term.first].push_back({static_cast<int>(d), term.second});
    }
    for (auto term : form.atoms) {
      if (atoms[term.first].vars.empty())
        constant.atoms.push_back(term);
      else
        perGroup[groupOfVar[atoms[term.first].vars.front()]].atoms.push_back(
            term);
    }
    constantForms[d] = addForm(std::move(constant));
    for (size_t g = 0; g < perGroup.size(); ++g)
      if (!perGroup[g].vars.empty() || !perGroup[g].atoms.empty())
        groups[g].direct.push_back(
            {static_cast<int>(d), addForm(std::move(perGroup[g]))});
  }

  if (!dims.empty() && !dims.back().isIndirect) {
    const LinearForm &last = forms[dims.back().form];
    for (auto [v, coefficient] : last.vars)
      if (coefficient == 1)
        denseVar = v;
    for (auto [a, coefficient] : last.atoms)
      if (atoms[a].kind == Atom::Mod && coefficient == 1)
        for (auto [v, inner] : forms[atoms[a].inner].vars)
          if (inner == 1)
            denseVar = v;
  }

  // Captured values that a group's table depends on.
  for (Group &group : groups) {
    std::vector<int> &key = group.keyCaptured;
    std::vector<int> work;
    for (auto [d, form] : group.direct)
      work.push_back(form);
    while (!work.empty()) {
      const LinearForm &form = forms[work.back()];
      work.pop_back();
      for (auto [c, coefficient] : form.captured)
        key.push_back(c);
      for (auto [a, coefficient] : form.atoms)
        work.push_back(atoms[a].inner);
    }
    std::sort(key.begin(), key.end());
    key.erase(std::unique(key.begin(), key.end()), key.end());
  }
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// Value at the current variables, slope along `inner` and for how many steps
/// (this one included) both hold.
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

std::string TileVal::setExtents() {
  const AccessPlan &p = *plan;
  formBase.resize(p.forms.size());
  for (size_t i = 0; i < p.forms.size(); ++i) {
    const LinearForm &form = p.forms[i];
    int64_t value = form.constant;
    for (auto [c, coefficient] : form.captured)
      value += coefficient * captured[c];
    for (auto [a, coefficient] : form.atoms) {
      const Atom &atom = p.atoms[a];
      if (!atom.vars.empty())
        continue;
      int64_t x = formBase[atom.inner];
      int64_t q = floorDiv(
          atom.kind == Atom::CeilDiv ? x + atom.divisor - 1 : x, atom.divisor);
      value +=
          coefficient * (atom.kind == Atom::Mod ? x - q * atom.divisor : q);
    }
    formBase[i] = value;
  }
  numElements = 1;
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
  return "";
}

static std::string outsideView(const ViewVal &view, int dim, int64_t coordinate,
                               const char *what) {
  return std::string(what) + " coordinate " + std::to_string(coordinate) +
         " of view dimension " + std::to_string(dim) +
         " is outside its range " + std::to_string(view.lo[dim]) + " to " +
         std::to_string(view.hi[dim]);
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

std::string TileVal::prepareGroup(int g, bool wantTable, bool zeroOutside) {
  const AccessPlan::Group &group = plan->groups[g];
  GroupState &state = states[g];
  bool isIndirect = !group.indirect.empty();

  // The same captured values, box and strides give the same runs, unless
  // index memory is read, which may have changed.
  std::vector<int64_t> &key = state.key;
  size_t at = 0;
  bool same = state.valid && !isIndirect;
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
  if (same)
    return "";
  state.valid = false;

  int64_t rows = 1, length = 1;
  int inner = -1;
  if (!group.vars.empty()) {
    inner = group.vars.back();
    length = sizes[inner];
    for (size_t i = 0; i + 1 < group.vars.size(); ++i)
      rows *= sizes[group.vars[i]];
  }
  state.runs.clear();
  state.rowStart.assign(1, 0);
  state.range.assign(group.direct.size(), {kUnlimited, -kUnlimited});
  state.indexBytes.clear();
  for (int v : group.vars)
    varValue[v] = lo[v];
  if (isIndirect)
    state.table.assign(rows * length, 0);

  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row;
    for (int i = static_cast<int>(group.vars.size()) - 2; i >= 0; --i) {
      int v = group.vars[i];
      varValue[v] = lo[v] + rest % sizes[v];
      rest /= sizes[v];
    }
    // Direct part: pieces.
    for (int64_t start = 0; start < length;) {
      if (inner >= 0)
        varValue[inner] = lo[inner] + start;
      int64_t offset = 0, stride = 0, steps = length - start;
      Piece pieces[kMaxRank];
      for (size_t i = 0; i < group.direct.size(); ++i) {
        pieces[i] = evalForm(group.direct[i].second, inner);
        steps = std::min(steps, pieces[i].length);
        int d = group.direct[i].first;
        offset += pieces[i].value * view.strides[d];
        stride += pieces[i].slope * view.strides[d];
      }
      for (size_t i = 0; i < group.direct.size(); ++i) {
        int64_t first = pieces[i].value;
        int64_t last = first + (steps - 1) * pieces[i].slope;
        auto &range = state.range[i];
        range.first = std::min(range.first, std::min(first, last));
        range.second = std::max(range.second, std::max(first, last));
      }
      if (isIndirect) {
        int64_t *t = state.table.data() + row * length + start;
        for (int64_t i = 0; i < steps; ++i)
          t[i] += offset + i * stride;
      } else {
        // A piece that continues the previous one is part of the same run.
        bool isFirst =
            state.rowStart.back() == static_cast<int>(state.runs.size());
        if (!isFirst) {
          Run &last = state.runs.back();
          int64_t step = last.length == 1 ? offset - last.offset : last.stride;
          if (last.offset + last.length * step == offset &&
              (steps == 1 || stride == step)) {
            last.length += steps;
            last.stride = step;
            start += steps;
            continue;
          }
        }
        state.runs.push_back({start, steps, offset, stride});
      }
      start += steps;
    }
    if (!isIndirect)
      state.rowStart.push_back(static_cast<int>(state.runs.size()));

    // Indirect part: one index per point.
    for (int d : group.indirect) {
      const AccessPlan::BaseDim &dim = plan->dims[d];
      const ViewVal &index = *indexViews[dim.indexView];
      for (int64_t start = 0; start < length;) {
        if (inner >= 0)
          varValue[inner] = lo[inner] + start;
        int64_t offset = 0, stride = 0, steps = length - start;
        Piece pieces[kMaxRank];
        for (size_t i = 0; i < dim.indexForms.size(); ++i) {
          pieces[i] = evalForm(dim.indexForms[i], inner);
          steps = std::min(steps, pieces[i].length);
          offset += pieces[i].value * index.strides[i];
          stride += pieces[i].slope * index.strides[i];
        }
        for (size_t i = 0; i < dim.indexForms.size(); ++i) {
          int64_t first = pieces[i].value;
          int64_t last = first + (steps - 1) * pieces[i].slope;
          for (int64_t x : {first, last})
            if (!zeroOutside && (x < index.lo[i] || x > index.hi[i]))
              return outsideView(index, static_cast<int>(i), x, "index");
        }
        int64_t elemSize = deviceSize(index.elem);
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
            {index.byteAddress + low, index.byteAddress + high - 1});
        int64_t *t = state.table.data() + row * length + start;
        const uint8_t *p = index.base + firstByte;
        for (int64_t i = 0; i < steps; ++i, p += stride * elemSize) {
          int64_t value = 0;
          switch (elemSize) {
          case 1:
            value = static_cast<int8_t>(*p);
            break;
          case 2: {
            int16_t v;
            std::memcpy(&v, p, 2);
            value = v;
            break;
          }
          case 4: {
            int32_t v;
            std::memcpy(&v, p, 4);
            value = v;
            break;
          }
          default:
            std::memcpy(&value, p, 8);
          }
          if (zeroOutside ? value < 0
                          : value < view.lo[d] || value > view.hi[d])
            return "index value " + std::to_string(value) +
                   " for view dimension " + std::to_string(d) +
                   " is outside its range " + std::to_string(view.lo[d]) +
                   " to " + std::to_string(view.hi[d]);
          t[i] += value * view.strides[d];
        }
        start += steps;
      }
    }
  }

  if (isIndirect) {
    if (!wantTable)
      makeRunsOfTable(state, rows, length);
  } else if (wantTable) {
    state.table.resize(rows * length);
    for (int64_t row = 0; row < rows; ++row)
      for (int r = state.rowStart[row]; r < state.rowStart[row + 1]; ++r) {
        const Run &run = state.runs[r];
        int64_t *t = state.table.data() + row * length + run.start;
        for (int64_t i = 0; i < run.length; ++i)
          t[i] = run.offset + i * run.stride;
      }
  }
  state.valid = true;
  return "";
}

std::string TileVal::prepare(bool zeroOutside) {
  const AccessPlan &p = *plan;
  isPartlyOutside = false;
  if (numElements == 0)
    return "";
  states.resize(p.groups.size());
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
    if (p.dims[d].isIndirect || zeroOutside)
      continue;
    if (low[d] < view.lo[d])
      return outsideView(view, d, low[d], "access:");
    if (high[d] > view.hi[d])
      return outsideView(view, d, high[d], "access:");
  }
  if (view.checked && !zeroOutside)
    return "";

  // The view as a whole leaves its allocation; this tile need not.
  int64_t minOffset = baseOffset, maxOffset = baseOffset;
  for (const Loop &loop : linearLoops) {
    int64_t last = (loop.extent - 1) * loop.memoryStride;
    minOffset += std::min<int64_t>(last, 0);
    maxOffset += std::max<int64_t>(last, 0);
  }
  for (size_t g = 0; g < p.groups.size(); ++g) {
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

//===----------------------------------------------------------------------===//
// Moving data
//===----------------------------------------------------------------------===//

template <typename Visit>
void TileVal::forEachBlock(Visit &&visit) const {
  const AccessPlan &p = *plan;
  if (primary < 0) {
    visit(baseOffset, int64_t(0), nullptr);
    return;
  }
  const AccessPlan::Group &main = p.groups[primary];
  const GroupState &mainState = states[primary];
  int64_t mainStride = main.vars.empty() ? 0 : tileStrides[main.vars.back()];
  int64_t mainRows = static_cast<int64_t>(mainState.rowStart.size()) - 1;

  auto tileOffset = [&](const AccessPlan::Group &group, int64_t point,
                        int numVars) {
    int64_t offset = 0;
    for (int i = numVars - 1; i >= 0; --i) {
      int v = group.vars[i];
      offset += point % sizes[v] * tileStrides[v];
      point /= sizes[v];
    }
    return offset;
  };
  auto walkMain = [&](int64_t memory, int64_t tile) {
    int outer = static_cast<int>(main.vars.size()) - 1;
    for (int64_t row = 0; row < mainRows; ++row) {
      int64_t rowTile =
          tile + (mainRows > 1 ? tileOffset(main, row, outer) : 0);
      for (int r = mainState.rowStart[row]; r < mainState.rowStart[row + 1];
           ++r) {
        const Run &run = mainState.runs[r];
        visit(memory + run.offset, rowTile + run.start * mainStride, &run);
      }
    }
  };
  // Odometer over the points of the other groups.
  int others[kMaxRank];
  int64_t point[kMaxRank] = {};
  int numOthers = 0;
  for (size_t g = 0; g < p.groups.size(); ++g)
    if (static_cast<int>(g) != primary) {
      if (numOthers == kMaxRank)
        return;
      others[numOthers++] = static_cast<int>(g);
    }
  while (true) {
    int64_t memory = baseOffset, tile = 0;
    for (int i = 0; i < numOthers; ++i) {
      const AccessPlan::Group &group = p.groups[others[i]];
      memory += states[others[i]].table[point[i]];
      tile += tileOffset(group, point[i], static_cast<int>(group.vars.size()));
    }
    walkMain(memory, tile);
    int i = numOthers - 1;
    for (; i >= 0; --i) {
      if (++point[i] < static_cast<int64_t>(states[others[i]].table.size()))
        break;
      point[i] = 0;
    }
    if (i < 0)
      return;
  }
}

template <typename Visit>
void TileVal::forEachElement(Visit &&visit) const {
  int64_t runTileStride = 0;
  if (primary >= 0 && !plan->groups[primary].vars.empty())
    runTileStride = tileStrides[plan->groups[primary].vars.back()];
  forEachBlock([&](int64_t memory, int64_t tile, const Run *run) {
    int64_t length = run ? run->length : 1;
    int64_t runStride = run ? run->stride : 0;
    for (int64_t i = 0; i < length; ++i) {
      int64_t index[kMaxRank + 1] = {};
      while (true) {
        int64_t m = memory + i * runStride, t = tile + i * runTileStride;
        for (size_t l = 0; l < linearLoops.size(); ++l) {
          m += index[l] * linearLoops[l].memoryStride;
          t += index[l] * linearLoops[l].tileStride;
        }
        visit(m, t);
        int l = static_cast<int>(linearLoops.size()) - 1;
        for (; l >= 0; --l) {
          if (++index[l] < linearLoops[l].extent)
            break;
          index[l] = 0;
        }
        if (l < 0)
          break;
      }
    }
  });
}

void TileVal::loadInside(void *tile, bool ieee) const {
  const KernelTable &table = kernels();
  StorageFormat format = storageFormat(view.elem, ieee);
  int64_t memorySize = deviceSize(view.elem), size = hostSize(view.elem);
  std::memset(tile, 0, size_t(numElements) * size);
  forEachElement([&](int64_t memory, int64_t offset) {
    int64_t byte = memory * memorySize;
    if (byte < view.limitLo || byte + memorySize > view.limitHi)
      return;
    const uint8_t *src = view.base + byte;
    uint8_t *dst = static_cast<uint8_t *>(tile) + offset * size;
    if (isFloat(view.elem))
      table.loadFloat(format, reinterpret_cast<float *>(dst), nullptr, src,
                      nullptr, nullptr, 0);
    else if (isWide(view.elem))
      table.loadInt64(format, reinterpret_cast<int64_t *>(dst), nullptr, src,
                      nullptr, nullptr, 0);
    else
      table.loadInt32(format, reinterpret_cast<int32_t *>(dst), nullptr, src,
                      nullptr, nullptr, 0);
  });
}

void TileVal::storeInside(const void *tile, bool ieee) const {
  const KernelTable &table = kernels();
  StorageFormat format = storageFormat(view.elem, ieee);
  int64_t memorySize = deviceSize(view.elem), size = hostSize(view.elem);
  forEachElement([&](int64_t memory, int64_t offset) {
    int64_t byte = memory * memorySize;
    if (byte < view.limitLo || byte + memorySize > view.limitHi)
      return;
    uint8_t *dst = view.base + byte;
    const uint8_t *src = static_cast<const uint8_t *>(tile) + offset * size;
    if (isFloat(view.elem))
      table.storeFloat(format, dst, nullptr,
                       reinterpret_cast<const float *>(src), nullptr, nullptr,
                       0);
    else if (isWide(view.elem))
      table.storeInt64(format, dst, nullptr,
                       reinterpret_cast<const int64_t *>(src), nullptr, nullptr,
                       0);
    else
      table.storeInt32(format, dst, nullptr,
                       reinterpret_cast<const int32_t *>(src), nullptr, nullptr,
                       0);
  });
}

bool TileVal::isStrip(int dim) const {
  if (isPartlyOutside || plan->groupOfVar[dim] >= 0 ||
      tileStrides[dim] * sizes[dim] != numElements)
    return false;
  for (const Loop &loop : linearLoops)
    if (loop.dim == dim)
      return true;
  return false;
}

void TileVal::load(void *tile, bool ieee, int dim, int64_t start,
                   int64_t length) const {
  if (numElements == 0)
    return;
  if (isPartlyOutside)
    return loadInside(tile, ieee);
  const KernelTable &table = kernels();
  StorageFormat format = storageFormat(view.elem, ieee);
  int64_t memorySize = deviceSize(view.elem);
  size_t tileSize = hostSize(view.elem);
  size_t shape[kMaxRank + 1];
  ptrdiff_t memoryStrides[kMaxRank + 1], strides[kMaxRank + 1];
  unsigned numLinear = 0;
  const uint8_t *base = view.base;
  for (const Loop &loop : linearLoops) {
    bool isStripped = loop.dim == dim;
    shape[numLinear] = isStripped ? length : loop.extent;
    if (isStripped)
      base += start * loop.memoryStride * memorySize;
    memoryStrides[numLinear] = loop.memoryStride;
    strides[numLinear++] = loop.tileStride;
  }
  int64_t runStride = 0;
  if (primary >= 0 && !plan->groups[primary].vars.empty())
    runStride = tileStrides[plan->groups[primary].vars.back()];
  bool floating = isFloat(view.elem), wide = isWide(view.elem);
  forEachBlock([&](int64_t memory, int64_t offset, const Run *run) {
    const uint8_t *src = base + memory * memorySize;
    uint8_t *dst = static_cast<uint8_t *>(tile) + offset * tileSize;
    unsigned rank = numLinear;
    if (run && run->length > 1) {
      shape[rank] = run->length;
      memoryStrides[rank] = run->stride;
      strides[rank++] = runStride;
    }
    if (floating) {
      if (rank == 1 && memoryStrides[0] == 1 && strides[0] == 1)
        table.loadFloatRun(format, src, reinterpret_cast<float *>(dst),
                           shape[0]);
      else
        table.loadFloat(format, reinterpret_cast<float *>(dst), strides, src,
                        memoryStrides, shape, rank);
    } else if (wide) {
      table.loadInt64(format, reinterpret_cast<int64_t *>(dst), strides, src,
                      memoryStrides, shape, rank);
    } else {
      table.loadInt32(format, reinterpret_cast<int32_t *>(dst), strides, src,
                      memoryStrides, shape, rank);
    }
  });
}

void TileVal::store(const void *tile, bool ieee) const {
  if (numElements == 0)
    return;
  if (isPartlyOutside)
    return storeInside(tile, ieee);
  const KernelTable &table = kernels();
  StorageFormat format = storageFormat(view.elem, ieee);
  int64_t memorySize = deviceSize(view.elem);
  size_t tileSize = hostSize(view.elem);
  size_t shape[kMaxRank + 1];
  ptrdiff_t memoryStrides[kMaxRank + 1], strides[kMaxRank + 1];
  unsigned numLinear = 0;
  for (const Loop &loop : linearLoops) {
    shape[numLinear] = loop.extent;
    memoryStrides[numLinear] = loop.memoryStride;
    strides[numLinear++] = loop.tileStride;
  }
  int64_t runStride = 0;
  if (primary >= 0 && !plan->groups[primary].vars.empty())
    runStride = tileStrides[plan->groups[primary].vars.back()];
  bool floating = isFloat(view.elem), wide = isWide(view.elem);
  forEachBlock([&](int64_t memory, int64_t offset, const Run *run) {
    uint8_t *dst = view.base + memory * memorySize;
    const uint8_t *src = static_cast<const uint8_t *>(tile) + offset * tileSize;
    unsigned rank = numLinear;
    if (run && run->length > 1) {
      shape[rank] = run->length;
      memoryStrides[rank] = run->stride;
      strides[rank++] = runStride;
    }
    if (floating) {
      if (rank == 1 && memoryStrides[0] == 1 && strides[0] == 1)
        table.storeFloatRun(format, reinterpret_cast<const float *>(src), dst,
                            shape[0]);
      else
        table.storeFloat(format, dst, memoryStrides,
                         reinterpret_cast<const float *>(src), strides, shape,
                         rank);
    } else if (wide) {
      table.storeInt64(format, dst, memoryStrides,
                       reinterpret_cast<const int64_t *>(src), strides, shape,
                       rank);
    } else {
      table.storeInt32(format, dst, memoryStrides,
                       reinterpret_cast<const int32_t *>(src), strides, shape,
                       rank);
    }
  });
}

void TileVal::appendSticks(
    std::vector<std::pair<int64_t, int64_t>> &data,
    std::vector<std::pair<int64_t, int64_t>> &indices) const {
  if (numElements == 0)
    return;
  constexpr int64_t stick = 128;
  int64_t elemSize = deviceSize(view.elem);
  auto add = [&](int64_t firstByte, int64_t lastByte) {
    int64_t first = firstByte / stick, last = lastByte / stick;
    if (!data.empty() && first >= data.back().first &&
        first <= data.back().second + 1)
      data.back().second = std::max(data.back().second, last);
    else
      data.push_back({first, last});
  };
  auto addRun = [&](int64_t offset, int64_t stride, int64_t length) {
    int64_t start = view.byteAddress + offset * elemSize;
    int64_t step = stride * elemSize;
    if (step >= -stick && step <= stick) {
      int64_t end = start + (length - 1) * step;
      add(std::min(start, end), std::max(start, end) + elemSize - 1);
      return;
    }
    for (int64_t i = 0; i < length; ++i)
      add(start + i * step, start + i * step + elemSize - 1);
  };
  forEachBlock([&](int64_t memory, int64_t, const Run *run) {
    // The loop with the smallest step goes innermost: intervals then merge.
    Loop loops[kMaxRank + 1];
    int n = 0;
    for (const Loop &loop : linearLoops)
      loops[n++] = loop;
    if (run && run->length > 1)
      loops[n++] = {run->length, run->stride, 0, -1};
    std::sort(loops, loops + n, [](const Loop &a, const Loop &b) {
      return std::abs(a.memoryStride) > std::abs(b.memoryStride);
    });
    if (n == 0) {
      addRun(memory, 1, 1);
      return;
    }
    int64_t index[kMaxRank + 1] = {};
    while (true) {
      int64_t offset = memory;
      for (int i = 0; i + 1 < n; ++i)
        offset += index[i] * loops[i].memoryStride;
      addRun(offset, loops[n - 1].memoryStride, loops[n - 1].extent);
      int i = n - 2;
      for (; i >= 0; --i) {
        if (++index[i] < loops[i].extent)
          break;
        index[i] = 0;
      }
      if (i < 0)
        break;
    }
  });
  for (const GroupState &state : states)
    for (auto [first, last] : state.indexBytes)
      indices.push_back({first / stick, last / stick});
}

std::string
TileVal::moveDistributed(const std::vector<const ViewVal *> &partitions,
                         void *tile, bool isStore, bool ieee) {
  const AccessPlan &p = *plan;
  if (numElements == 0)
    return "";
  int64_t step = 1;
  for (int t = p.rank - 1; t >= 0; --t) {
    tileStrides[t] = step;
    step *= sizes[t];
  }
  const KernelTable &table = kernels();
  Elem elem = partitions.front()->elem;
  StorageFormat format = storageFormat(elem, ieee);
  int64_t memorySize = deviceSize(elem), size = hostSize(elem);
  if (!isStore)
    std::memset(tile, 0, size_t(numElements) * size);
  bool isCovered = false;
  for (size_t i = partitions.size(); i-- > 0;) {
    const ViewVal &part = *partitions[i];
    size_t shape[kMaxRank];
    ptrdiff_t memoryStrides[kMaxRank], strides[kMaxRank];
    int64_t memory = 0, offset = 0, low = 0, high = 0;
    bool isEmpty = false;
    for (int t = 0; t < p.rank; ++t) {
      // Tile dimension t is one dimension of the view, with coefficient 1.
      int d = p.linearTerms[t].front().first;
      int64_t origin = formBase[p.constantForms[d]];
      int64_t first = std::max(origin + lo[t], part.lo[d]);
      int64_t last = std::min(origin + lo[t] + sizes[t] - 1, part.hi[d]);
      isEmpty |= last < first;
      shape[t] = isEmpty ? 0 : size_t(last - first + 1);
      memoryStrides[t] = part.strides[d];
      strides[t] = tileStrides[t];
      memory += first * part.strides[d];
      offset += (first - origin - lo[t]) * tileStrides[t];
      int64_t reach = isEmpty ? 0 : (last - first) * part.strides[d];
      low += std::min<int64_t>(reach, 0);
      high += std::max<int64_t>(reach, 0);
    }
    if (isEmpty)
      continue;
    isCovered = true;
    if (!part.checked && ((memory + low) * memorySize < part.limitLo ||
                          (memory + high + 1) * memorySize > part.limitHi))
      return "access to partition " + std::to_string(i) +
             " leaves its allocation";
    uint8_t *device = part.base + memory * memorySize;
    uint8_t *host = static_cast<uint8_t *>(tile) + offset * size;
    unsigned rank = static_cast<unsigned>(p.rank);
    if (isFloat(elem)) {
      float *f = reinterpret_cast<float *>(host);
      if (isStore)
        table.storeFloat(format, device, memoryStrides, f, strides, shape,
                         rank);
      else
        table.loadFloat(format, f, strides, device, memoryStrides, shape, rank);
    } else if (isWide(elem)) {
      int64_t *l = reinterpret_cast<int64_t *>(host);
      if (isStore)
        table.storeInt64(format, device, memoryStrides, l, strides, shape,
                         rank);
      else
        table.loadInt64(format, l, strides, device, memoryStrides, shape, rank);
    } else {
      int32_t *v = reinterpret_cast<int32_t *>(host);
      if (isStore)
        table.storeInt32(format, device, memoryStrides, v, strides, shape,
                         rank);
      else
        table.loadInt32(format, v, strides, device, memoryStrides, shape, rank);
    }
  }
  return isCovered ? "" : "no partition covers the access region";
}
