// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Planning/LayoutAssignment.h"

#include "Spyre/Support/Error.h"

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

/// Choices that a character of Seen can tell apart.
constexpr size_t kMaxChoices = 1 << 16;

[[noreturn]] void fail(size_t value, const std::string &what) {
  throw Error("value " + std::to_string(value) + " of a layout problem " +
              what);
}

void verify(const LayoutProblem &problem) {
  for (size_t number = 0; number < problem.values.size(); ++number) {
    const Value &value = problem.values[number];
    if (value.prices.empty())
      fail(number, "has no possible layout");
    if (value.prices.size() > kMaxChoices)
      fail(number, "has more than " + std::to_string(kMaxChoices) + " choices");
    for (const LayoutProblem::Use &use : value.uses) {
      if (use.value >= number)
        fail(number, "uses a value that is defined later");
      const Value &used = problem.values[use.value];
      if (use.ways.size() != used.prices.size() * value.prices.size())
        fail(number, "has a table of the wrong size");
      for (const Way &way : use.ways)
        if (way.copy < LayoutProblem::kNoCopy ||
            way.copy >= static_cast<int>(used.copyPrices.size()))
          fail(number, "needs a copy that is not in the problem");
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
  /// The part of a state that later values depend on: for each live value its
  /// choice, then for each of its copies whether it has been made.
  using Seen = std::u16string;

  struct State {
    int64_t price = 0;
    Seen seen;
    int link = -1;
  };
  /// The choices that led to a state.
  struct Link {
    unsigned choice;
    int previous;
  };
  /// A value that later ones use, and where it stands in `Seen`.
  struct Live {
    size_t value, begin, length;
  };

  /// A value with one choice and no copies is the same in all states.
  size_t getLength(const Value &value) const {
    bool isFixed = value.prices.size() == 1 && value.copyPrices.empty();
    return isFixed ? 0 : 1 + value.copyPrices.size();
  }

  void extend(size_t number) {
    const Value &value = problem.values[number];
    // The live values that are used, or null for those that are not live.
    std::vector<const Live *> used;
    for (const LayoutProblem::Use &use : value.uses) {
      auto place = std::lower_bound(
          live.begin(), live.end(), use.value,
          [](const Live &a, size_t other) { return a.value < other; });
      bool isFound = place != live.end() && place->value == use.value;
      used.push_back(isFound ? &*place : nullptr);
    }
    // From the back, so that places before it stay where they are.
    std::vector<Live> ended;
    for (size_t place = live.size(); place-- > 0;)
      if (lastUse[live[place].value] <= number)
        ended.push_back(live[place]);
    bool staysLive = lastUse[number] > number && getLength(value) != 0;

    std::vector<State> next;
    std::unordered_map<Seen, size_t> known;
    for (const State &state : states) {
      for (unsigned choice = 0; choice < value.prices.size(); ++choice) {
        State extended;
        extended.seen = state.seen;
        extended.price = add(add(state.price, value.prices[choice]),
                             use(value, choice, used, extended.seen));
        if (extended.price >= LayoutProblem::kImpossible)
          continue;
        for (const Live &last : ended)
          extended.seen.erase(last.begin, last.length);
        if (staysLive) {
          extended.seen.push_back(static_cast<char16_t>(choice));
          extended.seen.append(value.copyPrices.size(), u'\0');
        }
        extended.link = static_cast<int>(links.size());
        links.push_back({choice, state.link});
        if (isMerging) {
          auto [place, isNew] = known.try_emplace(extended.seen, next.size());
          if (!isNew) {
            if (extended.price < next[place->second].price)
              next[place->second] = std::move(extended);
            continue;
          }
        }
        next.push_back(std::move(extended));
      }
    }
    renumberLive(number, staysLive);
    isProven &= next.size() <= width;
    // The plain beam is always in order, as the reference's is.
    if (!isMerging || next.size() > width)
      keepCheapest(next);
    states = std::move(next);
  }

  /// The price of all uses by a choice of `value`; notes the copies made.
  int64_t use(const Value &value, unsigned choice,
              const std::vector<const Live *> &used, Seen &seen) const {
    int64_t price = 0;
    for (size_t number = 0; number < value.uses.size(); ++number) {
      const LayoutProblem::Use &use = value.uses[number];
      size_t usedChoice = used[number] ? seen[used[number]->begin] : 0;
      const Way &way = use.ways[usedChoice * value.prices.size() + choice];
      price = add(price, way.price);
      if (way.copy == LayoutProblem::kNoCopy)
        continue;
      char16_t &isMade = seen[used[number]->begin + 1 + way.copy];
      if (!isMade)
        price = add(price, problem.values[use.value].copyPrices[way.copy]);
      isMade = 1;
    }
    return price;
  }

  void renumberLive(size_t number, bool staysLive) {
    std::vector<Live> still;
    size_t begin = 0;
    for (const Live &value : live)
      if (lastUse[value.value] > number) {
        still.push_back({value.value, begin, value.length});
        begin += value.length;
      }
    if (staysLive)
      still.push_back({number, begin, getLength(problem.values[number])});
    live = std::move(still);
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

  const LayoutProblem &problem;
  size_t width;
  bool isMerging;
  bool isProven = true;
  std::vector<size_t> lastUse;
  /// Ascending.
  std::vector<Live> live;
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
