// SPDX-License-Identifier: Apache-2.0
//===- AccessTilePlan.cpp - What is known of an access tile ---------------===//

#include "AccessTilePlan.h"

#include <algorithm>
#include <numeric>
#include <optional>

using namespace spyre::runtime;

int AccessTilePlan::addForm(LinearForm form) {
  forms.push_back(std::move(form));
  return static_cast<int>(forms.size()) - 1;
}

namespace {

/// Deals the terms of a plan's base dimensions out to groups of variables that
/// meet in one atom or in one gather index.
class VariableGrouping {
public:
  explicit VariableGrouping(AccessTilePlan &plan)
      : plan(plan), parent(plan.rank), isGrouped(plan.rank, false) {
    std::iota(parent.begin(), parent.end(), 0);
  }

  /// Fills groups, groupOfVar, linearTerms and constantForms.
  void run() {
    joinVariables();
    makeGroups();
    plan.linearTerms.assign(plan.rank, {});
    plan.constantForms.assign(plan.dims.size(), -1);
    for (size_t d = 0; d < plan.dims.size(); ++d)
      if (plan.dims[d].isIndirect)
        addIndirectDim(static_cast<int>(d));
      else
        addDirectDim(static_cast<int>(d));
  }

private:
  // Union-find over the variables.
  int rootOf(int v) {
    while (parent[v] != v)
      v = parent[v] = parent[parent[v]];
    return v;
  }
  void join(const std::vector<int> &vars) {
    for (int v : vars) {
      isGrouped[v] = true;
      parent[rootOf(v)] = rootOf(vars.front());
    }
  }

  /// All variables below the indices of a gather; those of one index sorted.
  std::vector<int> varsOfIndices(const AccessTilePlan::BaseDim &dim) const {
    std::vector<int> all;
    for (int form : dim.indexForms) {
      std::vector<int> vars = varsOfForm(plan.forms[form]);
      all.insert(all.end(), vars.begin(), vars.end());
    }
    return all;
  }
  std::vector<int> varsOfForm(const LinearForm &form) const {
    std::vector<int> vars;
    for (auto [v, coefficient] : form.vars)
      vars.push_back(v);
    for (auto [a, coefficient] : form.atoms)
      vars.insert(vars.end(), plan.atoms[a].vars.begin(),
                  plan.atoms[a].vars.end());
    std::sort(vars.begin(), vars.end());
    vars.erase(std::unique(vars.begin(), vars.end()), vars.end());
    return vars;
  }

  /// An atom or an indirect dimension joins all variables below it.
  void joinVariables() {
    for (const AccessTilePlan::BaseDim &dim : plan.dims)
      if (dim.isIndirect)
        join(varsOfIndices(dim));
      else
        for (auto [a, coefficient] : plan.forms[dim.form].atoms)
          join(plan.atoms[a].vars);
  }

  void makeGroups() {
    plan.groupOfVar.assign(plan.rank, -1);
    std::vector<int> groupOfRoot(plan.rank, -1);
    for (int v = 0; v < plan.rank; ++v) {
      if (!isGrouped[v])
        continue;
      int &g = groupOfRoot[rootOf(v)];
      if (g < 0)
        g = addGroup();
      plan.groups[g].vars.push_back(v);
      plan.groupOfVar[v] = g;
    }
  }
  int addGroup() {
    plan.groups.emplace_back();
    return static_cast<int>(plan.groups.size()) - 1;
  }

  void addIndirectDim(int d) {
    std::vector<int> vars = varsOfIndices(plan.dims[d]);
    // An index without variables (one row for the whole tile) still needs a
    // group of its own.
    int g = vars.empty() ? addGroup() : plan.groupOfVar[vars.front()];
    plan.groups[g].indirect.push_back(d);
  }

  void addDirectDim(int d) {
    const LinearForm form = plan.forms[plan.dims[d].form];
    LinearForm constant;
    constant.constant = form.constant;
    constant.captured = form.captured;
    std::vector<LinearForm> perGroup(plan.groups.size());
    for (auto term : form.vars) {
      if (int g = plan.groupOfVar[term.first]; g >= 0)
        perGroup[g].vars.push_back(term);
      else
        plan.linearTerms[term.first].push_back({d, term.second});
    }
    for (auto term : form.atoms) {
      const std::vector<int> &vars = plan.atoms[term.first].vars;
      if (vars.empty())
        constant.atoms.push_back(term);
      else
        perGroup[plan.groupOfVar[vars.front()]].atoms.push_back(term);
    }
    plan.constantForms[d] = plan.addForm(std::move(constant));
    for (size_t g = 0; g < perGroup.size(); ++g)
      if (!perGroup[g].vars.empty() || !perGroup[g].atoms.empty())
        plan.groups[g].direct.push_back(
            {d, plan.addForm(std::move(perGroup[g]))});
  }

  AccessTilePlan &plan;
  std::vector<int> parent;
  std::vector<bool> isGrouped;
};

} // namespace

/// AccessTilePlan::denseVar.
static int findDenseVar(const AccessTilePlan &plan) {
  int denseVar = -1;
  if (plan.dims.empty() || plan.dims.back().isIndirect)
    return denseVar;
  const LinearForm &last = plan.forms[plan.dims.back().form];
  for (auto [v, coefficient] : last.vars)
    if (coefficient == 1)
      denseVar = v;
  for (auto [a, coefficient] : last.atoms)
    if (plan.atoms[a].kind == Atom::Mod && coefficient == 1)
      for (auto [v, inner] : plan.forms[plan.atoms[a].inner].vars)
        if (inner == 1)
          denseVar = v;
  return denseVar;
}

/// Captured values that a group's table depends on, sorted.
static std::vector<int> findKeyCaptured(const AccessTilePlan &plan,
                                        const AccessTilePlan::Group &group) {
  std::vector<int> key, work;
  for (auto [d, form] : group.direct)
    work.push_back(form);
  while (!work.empty()) {
    const LinearForm &form = plan.forms[work.back()];
    work.pop_back();
    for (auto [c, coefficient] : form.captured)
      key.push_back(c);
    for (auto [a, coefficient] : form.atoms)
      work.push_back(plan.atoms[a].inner);
  }
  std::sort(key.begin(), key.end());
  key.erase(std::unique(key.begin(), key.end()), key.end());
  return key;
}

namespace {

/// A function f of an integer with f(i + period) = f(i) + step for all i.
struct Periodic {
  int64_t period = 1, step = 0;
};

/// Finds out how forms repeat along one variable. No result if numbers are so
/// large that they might overflow.
class PeriodFinder {
public:
  PeriodFinder(const AccessTilePlan &plan, int variable)
      : plan(plan), variable(variable) {}

  std::optional<Periodic> ofForm(int index) const {
    const LinearForm &form = plan.forms[index];
    Periodic sum;
    for (auto [v, coefficient] : form.vars)
      if (v == variable)
        sum.step += coefficient;
    for (auto [a, coefficient] : form.atoms) {
      std::optional<Periodic> term = ofAtom(plan.atoms[a]);
      if (!term || !isSmall(sum) || !isSmall({1, coefficient}))
        return std::nullopt;
      int64_t period = std::lcm(sum.period, term->period);
      if (!isSmall({period, 0}))
        return std::nullopt;
      sum.step = sum.step * (period / sum.period) +
                 coefficient * (term->step * (period / term->period));
      sum.period = period;
    }
    return isSmall(sum) ? std::optional(sum) : std::nullopt;
  }

private:
  static bool isSmall(const Periodic &function) {
    constexpr int64_t limit = int64_t(1) << 20;
    return function.period <= limit && function.step <= limit &&
           function.step >= -limit;
  }

  std::optional<Periodic> ofAtom(const Atom &atom) const {
    std::optional<Periodic> inner = ofForm(atom.inner);
    if (!inner || !isSmall({atom.divisor, 0}))
      return std::nullopt;
    // After so many periods the inner form is larger by a multiple.
    int64_t count = atom.divisor / std::gcd(atom.divisor, inner->step);
    Periodic result{inner->period * count, 0};
    if (atom.kind != Atom::Mod)
      result.step = inner->step * count / atom.divisor;
    return isSmall(result) ? std::optional(result) : std::nullopt;
  }

  const AccessTilePlan &plan;
  const int variable;
};

} // namespace

/// Fills Group::period and periodSteps.
static void findPeriod(const AccessTilePlan &plan,
                       AccessTilePlan::Group &group) {
  if (group.vars.empty())
    return;
  PeriodFinder finder(plan, group.vars.back());
  std::vector<Periodic> parts;
  int64_t period = 1;
  for (auto [d, form] : group.direct) {
    std::optional<Periodic> part = finder.ofForm(form);
    if (!part)
      return;
    parts.push_back(*part);
    period = std::lcm(period, part->period);
    if (period > int64_t(1) << 20)
      return;
  }
  group.period = period;
  for (const Periodic &part : parts)
    group.periodSteps.push_back(part.step * (period / part.period));
}

void AccessTilePlan::findChangingForms() {
  std::vector<bool> changes(forms.size(), false);
  for (size_t i = 0; i < forms.size(); ++i) {
    changes[i] = !forms[i].captured.empty();
    for (auto [a, coefficient] : forms[i].atoms)
      changes[i] =
          changes[i] || (atoms[a].vars.empty() && changes[atoms[a].inner]);
    if (changes[i])
      changingForms.push_back(static_cast<int>(i));
  }
  auto isConstant = [&](int form) { return !changes[form]; };
  hasConstantBox =
      std::all_of(lowerForms.begin(), lowerForms.end(), isConstant) &&
      std::all_of(upperForms.begin(), upperForms.end(), isConstant);
}

void AccessTilePlan::finish() {
  if (isEnumerated) {
    // One group whose only row is all of the tile.
    groups.resize(1);
    groups[0].vars.assign(rank > 0 ? 1 : 0, rank - 1);
    groupOfVar.assign(rank, 0);
    linearTerms.assign(rank, {});
    constantForms.assign(dims.size(), -1);
    findChangingForms();
    return;
  }
  VariableGrouping(*this).run();
  denseVar = findDenseVar(*this);
  for (Group &group : groups) {
    group.keyCaptured = findKeyCaptured(*this, group);
    findPeriod(*this, group);
  }
  findChangingForms();
}
