// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Planning/LayoutAssignment.h"

#include "Spyre/Planning/SizePrices.h"
#include "Spyre/Support/Error.h"

#include <algorithm>
#include <cmath>
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

/// Whether each choice of each value is still considered.
using Open = std::vector<std::vector<bool>>;

/// Closes choices that no cheapest assignment has: with another choice of the
/// same value, and all other choices as they are, every assignment costs less.
class Elimination {
public:
  Elimination(const LayoutProblem &problem, Open &open)
      : problem(problem), open(open), users(problem.values.size()) {
    for (size_t number = 0; number < problem.values.size(); ++number)
      for (const LayoutProblem::Use &use : problem.values[number].uses)
        users[use.value].push_back({number, &use});
  }

  /// What the first sweep closes lets the second close more.
  void run() {
    for (size_t number = 0; number < problem.values.size(); ++number)
      close(number);
    for (size_t number = problem.values.size(); number-- > 0;)
      close(number);
  }

private:
  /// Of values with more choices all stay open: comparing each two of them
  /// would take too long.
  static constexpr size_t kMaxCompared = 32;

  void close(size_t number) {
    size_t count = open[number].size();
    if (count > kMaxCompared)
      return;
    for (unsigned choice = 0; choice < count; ++choice)
      for (unsigned other = 0; other < count && open[number][choice]; ++other)
        if (other != choice && open[number][other] &&
            isDearer(number, choice, other))
          open[number][choice] = false;
  }

  /// Whether `choice` costs more than `other` whatever the rest is.
  bool isDearer(size_t number, unsigned choice, unsigned other) const {
    const Value &value = problem.values[number];
    size_t count = value.prices.size();
    int64_t more = value.prices[choice] - value.prices[other];
    // So that it cannot overflow, whatever is impossible.
    auto addMore = [&](int64_t price) {
      more = std::clamp(more + price, -LayoutProblem::kImpossible,
                        LayoutProblem::kImpossible);
    };
    for (const LayoutProblem::Use &use : value.uses)
      addMore(getLeastMore(use, open[use.value], choice, other, count, 1));
    for (const auto &[user, use] : users[number])
      addMore(getLeastMore(*use, open[user], choice, other, 1,
                           problem.values[user].prices.size()));
    return more > 0;
  }

  /// By how much a use costs more at least, over all choices of its other end.
  /// The strides are those of its ways, by the choice there and that here.
  int64_t getLeastMore(const LayoutProblem::Use &use,
                       const std::vector<bool> &openThere, unsigned choice,
                       unsigned other, size_t strideThere,
                       size_t strideHere) const {
    int64_t least = LayoutProblem::kImpossible;
    for (size_t there = 0; there < openThere.size(); ++there) {
      if (!openThere[there])
        continue;
      const Way *ways = &use.ways[there * strideThere];
      const Way &way = ways[choice * strideHere];
      const Way &instead = ways[other * strideHere];
      // Others may need the copy of `way` too, and none that of `instead`.
      int64_t copy = 0;
      if (instead.copy != LayoutProblem::kNoCopy && instead.copy != way.copy)
        copy = problem.values[use.value].copyPrices[instead.copy];
      if (way.price < LayoutProblem::kImpossible)
        least = std::min(least, way.price - add(instead.price, copy));
    }
    return least;
  }

  const LayoutProblem &problem;
  Open &open;
  /// Of each value, who uses it and how.
  std::vector<std::vector<std::pair<size_t, const LayoutProblem::Use *>>> users;
};

/// Partial assignments: those that later values cannot tell apart are one.
class Search {
public:
  Search(const LayoutProblem &problem, unsigned width, bool isMerging,
         const Open &open)
      : problem(problem), width(width), isMerging(isMerging), open(open) {
    lastUse.resize(problem.values.size());
    for (size_t number = 0; number < problem.values.size(); ++number) {
      lastUse[number] = number;
      lastNeed.emplace_back(problem.values[number].copyPrices.size(), number);
      for (const LayoutProblem::Use &use : problem.values[number].uses) {
        lastUse[use.value] = number;
        noteNeeds(use, number);
      }
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

  /// Notes the copies that value `number` may need.
  void noteNeeds(const LayoutProblem::Use &use, size_t number) {
    size_t count = open[number].size();
    for (size_t way = 0; way < use.ways.size(); ++way)
      if (use.ways[way].copy != LayoutProblem::kNoCopy &&
          open[use.value][way / count] && open[number][way % count])
        lastNeed[use.value][use.ways[way].copy] = number;
  }

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
    // Places of copies that nothing later needs: whether they are made is past.
    std::vector<size_t> past;
    for (const Live &place : live)
      for (size_t copy = 0; copy < lastNeed[place.value].size(); ++copy)
        if (lastNeed[place.value][copy] == number)
          past.push_back(place.begin + 1 + copy);

    std::vector<State> next;
    std::unordered_map<Seen, size_t> known;
    for (const State &state : states) {
      for (unsigned choice = 0; choice < value.prices.size(); ++choice) {
        if (!open[number][choice])
          continue;
        State extended;
        extended.seen = state.seen;
        extended.price = add(add(state.price, value.prices[choice]),
                             use(value, choice, used, extended.seen));
        if (extended.price >= LayoutProblem::kImpossible)
          continue;
        for (size_t place : past)
          extended.seen[place] = 0;
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
  const Open &open;
  bool isProven = true;
  std::vector<size_t> lastUse;
  /// Of each value and each of its copies, the last value that may need it.
  std::vector<std::vector<size_t>> lastNeed;
  /// Ascending.
  std::vector<Live> live;
  std::vector<State> states;
  std::vector<Link> links;
};

} // namespace

/// What no assignment costs less than: the least of each choice and way.
static double getFloor(const LayoutProblem &problem) {
  double sum = 0;
  for (const Value &value : problem.values) {
    sum += static_cast<double>(
        *std::min_element(value.prices.begin(), value.prices.end()));
    for (const LayoutProblem::Use &use : value.uses)
      sum +=
          static_cast<double>(std::min_element(use.ways.begin(), use.ways.end(),
                                               [](const Way &a, const Way &b) {
                                                 return a.price < b.price;
                                               })
                                  ->price);
  }
  return sum;
}

LayoutProblem planning::addUp(const std::vector<LayoutProblem> &problems) {
  LayoutProblem sum = problems.front();
  const double unit = getFloor(sum);
  for (size_t number = 1; number < problems.size(); ++number) {
    const double weight = unit * getSizeWeight(getFloor(problems[number]));
    auto addTo = [&](int64_t &price, int64_t more) {
      constexpr auto kMost = static_cast<double>(LayoutProblem::kImpossible);
      price = add(price, std::llround(std::min(
                             weight * static_cast<double>(more), kMost)));
    };
    for (size_t value = 0; value < sum.values.size(); ++value) {
      Value &to = sum.values[value];
      const Value &from = problems[number].values[value];
      for (size_t choice = 0; choice < to.prices.size(); ++choice)
        addTo(to.prices[choice], from.prices[choice]);
      for (size_t copy = 0; copy < to.copyPrices.size(); ++copy)
        addTo(to.copyPrices[copy], from.copyPrices[copy]);
      for (size_t use = 0; use < to.uses.size(); ++use)
        for (size_t way = 0; way < to.uses[use].ways.size(); ++way)
          addTo(to.uses[use].ways[way].price, from.uses[use].ways[way].price);
    }
  }
  return sum;
}

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
  Open all;
  for (const Value &value : problem.values)
    all.emplace_back(value.prices.size(), true);
  Open open = all;
  Elimination(problem, open).run();
  LayoutAssignment best =
      Search(problem, width, /*isMerging=*/true, open).run();
  if (best.isProven)
    return best;
  LayoutAssignment plain =
      Search(problem, kReferenceWidth, /*isMerging=*/false, all).run();
  return plain.price < best.price ? plain : best;
}
