// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Planning/LayoutAssignment.h"

#include "Spyre/Device/Error.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>

using namespace spyre;
using namespace spyre::planning;

namespace {

using Way = LayoutProblem::Way;
using Value = LayoutProblem::Value;

constexpr unsigned kReferenceWidth = 64;

[[noreturn]] void fail(size_t value, const std::string &what) {
  throw Error("value " + std::to_string(value) + " of a layout problem " +
              what);
}

void verify(const LayoutProblem &problem) {
  for (size_t number = 0; number < problem.values.size(); ++number) {
    const Value &value = problem.values[number];
    if (value.prices.empty())
      fail(number, "has no choice");
    for (const LayoutProblem::Use &use : value.uses) {
      if (use.value >= number)
        fail(number, "uses a value that is made later");
      const Value &used = problem.values[use.value];
      if (use.ways.size() != used.prices.size() * value.prices.size())
        fail(number, "has a table of another size");
      for (const Way &way : use.ways)
        if (way.copy < LayoutProblem::kNoCopy ||
            way.copy >= static_cast<int>(used.copyPrices.size()))
          fail(number, "needs a copy that is none");
    }
  }
}

int64_t add(int64_t a, int64_t b) {
  return std::min(a + b, LayoutProblem::kImpossible);
}

/// Partial assignments: those that later values cannot tell apart are one.
class Search {
public:
  Search(const LayoutProblem &problem, unsigned width, bool isMerging)
      : problem(problem), width(width), isMerging(isMerging) {
    lastUse.resize(problem.values.size());
    for (size_t number = 0; number < problem.values.size(); ++number) {
      lastUse[number] = number;
      for (const LayoutProblem::Use &use : problem.values[number].uses)
        lastUse[use.value] = number;
    }
  }

  LayoutAssignment run() {
    states.push_back({});
    for (size_t number = 0; number < problem.values.size(); ++number)
      extend(number);
    const State *best = nullptr;
    for (const State &state : states)
      if (!best || state.price < best->price)
        best = &state;
    if (!best || best->price >= LayoutProblem::kImpossible)
      throw Error("no assignment of layouts is possible");
    LayoutAssignment assignment;
    assignment.price = best->price;
    assignment.isProven = isProven;
    assignment.choices.resize(problem.values.size());
    int link = best->link;
    for (size_t number = problem.values.size(); number-- > 0;) {
      assignment.choices[number] = links[link].choice;
      link = links[link].previous;
    }
    return assignment;
  }

private:
  /// What is seen of a value that is still used.
  struct Live {
    unsigned choice;
    /// Copies made so far.
    std::vector<bool> copies;
  };
  struct State {
    int64_t price = 0;
    /// Of the values in `live`, in order.
    std::vector<Live> seen;
    int link = -1;
  };
  /// The choices that led to a state.
  struct Link {
    unsigned choice;
    int previous;
  };

  void extend(size_t number) {
    const Value &value = problem.values[number];
    // Where the values used stand among the live ones.
    std::vector<size_t> positions;
    for (const LayoutProblem::Use &use : value.uses)
      positions.push_back(
          std::lower_bound(live.begin(), live.end(), use.value) - live.begin());
    std::vector<size_t> kept;
    for (size_t position = 0; position < live.size(); ++position)
      if (lastUse[live[position]] > number)
        kept.push_back(position);
    bool staysLive = lastUse[number] > number;

    std::vector<State> next;
    std::unordered_map<std::string, size_t> known;
    std::vector<Live> seen;
    for (const State &state : states) {
      for (unsigned choice = 0; choice < value.prices.size(); ++choice) {
        int64_t price = add(state.price, value.prices[choice]);
        seen = state.seen;
        for (size_t use = 0; use < value.uses.size(); ++use) {
          Live &used = seen[positions[use]];
          const Way &way =
              value.uses[use].ways[used.choice * value.prices.size() + choice];
          price = add(price, way.price);
          if (way.copy == LayoutProblem::kNoCopy || used.copies[way.copy])
            continue;
          used.copies[way.copy] = true;
          price =
              add(price,
                  problem.values[value.uses[use].value].copyPrices[way.copy]);
        }
        if (price >= LayoutProblem::kImpossible)
          continue;
        State extended;
        extended.price = price;
        for (size_t position : kept)
          extended.seen.push_back(std::move(seen[position]));
        if (staysLive)
          extended.seen.push_back(
              {choice, std::vector<bool>(value.copyPrices.size())});
        extended.link = static_cast<int>(links.size());
        links.push_back({choice, state.link});
        if (isMerging) {
          auto [place, isNew] =
              known.try_emplace(getKey(extended.seen), next.size());
          if (!isNew) {
            if (price < next[place->second].price)
              next[place->second] = std::move(extended);
            continue;
          }
        }
        next.push_back(std::move(extended));
      }
    }
    std::vector<size_t> stillLive;
    for (size_t position : kept)
      stillLive.push_back(live[position]);
    if (staysLive)
      stillLive.push_back(number);
    live = std::move(stillLive);
    isProven &= next.size() <= width;
    // The plain beam is always in order, as the reference's is.
    if (!isMerging || next.size() > width)
      keepCheapest(next);
    states = std::move(next);
  }

  /// Sorts by price, of equal ones the earlier first.
  void keepCheapest(std::vector<State> &found) const {
    std::vector<size_t> order(found.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::make_pair(found[a].price, a) <
             std::make_pair(found[b].price, b);
    });
    order.resize(std::min(order.size(), width));
    std::vector<State> kept;
    for (size_t number : order)
      kept.push_back(std::move(found[number]));
    found = std::move(kept);
  }

  static std::string getKey(const std::vector<Live> &seen) {
    std::string key;
    for (const Live &value : seen) {
      key += std::to_string(value.choice);
      for (bool made : value.copies)
        key += made ? 'y' : 'n';
      key += ' ';
    }
    return key;
  }

  const LayoutProblem &problem;
  size_t width;
  bool isMerging;
  bool isProven = true;
  std::vector<size_t> lastUse;
  /// Values that later ones use, ascending.
  std::vector<size_t> live;
  std::vector<State> states;
  std::vector<Link> links;
};

} // namespace

int64_t planning::getPrice(const LayoutProblem &problem,
                           const std::vector<unsigned> &choices) {
  int64_t price = 0;
  std::set<std::pair<unsigned, int>> made;
  for (size_t number = 0; number < problem.values.size(); ++number) {
    const Value &value = problem.values[number];
    price = add(price, value.prices[choices[number]]);
    for (const LayoutProblem::Use &use : value.uses) {
      const Way &way =
          use.ways[choices[use.value] * value.prices.size() + choices[number]];
      price = add(price, way.price);
      if (way.copy != LayoutProblem::kNoCopy &&
          made.insert({use.value, way.copy}).second)
        price = add(price, problem.values[use.value].copyPrices[way.copy]);
    }
  }
  return price;
}

LayoutAssignment planning::assignLayouts(const LayoutProblem &problem,
                                         unsigned width) {
  verify(problem);
  LayoutAssignment best = Search(problem, width, /*isMerging=*/true).run();
  if (best.isProven)
    return best;
  LayoutAssignment plain =
      Search(problem, kReferenceWidth, /*isMerging=*/false).run();
  return plain.price < best.price ? plain : best;
}
