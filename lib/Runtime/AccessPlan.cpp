// SPDX-License-Identifier: Apache-2.0
//===- AccessPlan.cpp - What the loader knows about an access tile --------===//

#include "AccessTile.h"

#include <algorithm>
#include <numeric>

using namespace spyre::runtime;

int AccessPlan::addForm(LinearForm form) {
  forms.push_back(std::move(form));
  return static_cast<int>(forms.size()) - 1;
}

void AccessPlan::finish() {
  if (isEnumerated) {
    // One group whose only row is all of the tile.
    groups.resize(1);
    groups[0].vars.assign(rank > 0 ? 1 : 0, rank - 1);
    groupOfVar.assign(rank, 0);
    linearTerms.assign(rank, {});
    constantForms.assign(dims.size(), -1);
    return;
  }
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
