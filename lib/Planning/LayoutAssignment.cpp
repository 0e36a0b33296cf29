// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Planning/LayoutAssignment.h"

#include "ChoiceHistory.h"
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

[[noreturn]] void fail(size_t value, const std::string &what) {
  throw Error("value " + std::to_string(value) + " of a layout problem " +
              what);
}

void verify(const LayoutProblem &problem) {
  for (size_t number = 0; number < problem.values.size(); ++number) {
    const Value &value = problem.values[number];
    if (value.prices.empty())
      fail(number, "has no possible layout");
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
      : problem(problem), width(width), isMerging(isMerging), open(open),
        places(problem.values.size()), lastUse(problem.values.size()) {
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
    unsigned step = best->step;
    for (size_t number = problem.values.size(); number-- > 0;) {
      assignment.choices[number] = *history.getChanges(step, number);
      step = history.getPrevious(step);
    }
    return assignment;
  }

private:
  struct State {
    int64_t price = 0;
    /// The entries of all live values, which are what later values depend on.
    Fingerprint seen;
    unsigned step = ChoiceHistory::kStart;
  };
  /// A state with a choice for the next value.
  struct Candidate {
    int64_t price;
    Fingerprint seen;
    const State *state;
    unsigned choice;
  };
  /// Where the entry of a value is: its choice, then a bit for each of its
  /// copies that is made and that a later value may need.
  struct Place {
    /// The last value whose step changed it, and the word of those changes.
    size_t number = 0, firstWord = 0;
  };
  /// What the steps of one value change: its own entry, then those of the
  /// values that it uses.
  struct Changes {
    std::vector<size_t> values;
    std::vector<size_t> firstWords;
    /// For each use, the first word of the value used.
    std::vector<size_t> usedWords;
    /// For each word, the bits that are still of interest afterwards.
    std::vector<Word> masks;
  };

  static constexpr size_t kWordBits = 8 * sizeof(Word);

  /// Notes the copies that value `number` may need.
  void noteNeeds(const LayoutProblem::Use &use, size_t number) {
    size_t count = open[number].size();
    for (size_t way = 0; way < use.ways.size(); ++way)
      if (use.ways[way].copy != LayoutProblem::kNoCopy &&
          open[use.value][way / count] && open[number][way % count])
        lastNeed[use.value][use.ways[way].copy] = number;
  }

  size_t getNumWords(size_t number) const {
    size_t numCopies = problem.values[number].copyPrices.size();
    return 1 + (numCopies + kWordBits - 1) / kWordBits;
  }

  Changes getChanges(size_t number) const {
    Changes changes;
    auto add = [&](size_t value) {
      auto known =
          std::find(changes.values.begin(), changes.values.end(), value);
      if (known != changes.values.end())
        return changes.firstWords[known - changes.values.begin()];
      size_t first = changes.masks.size();
      changes.values.push_back(value);
      changes.firstWords.push_back(first);
      changes.masks.resize(first + getNumWords(value), ~Word{0});
      for (size_t copy = 0; copy < lastNeed[value].size(); ++copy)
        if (lastNeed[value][copy] == number)
          changes.masks[first + 1 + copy / kWordBits] &=
              ~(Word{1} << copy % kWordBits);
      return first;
    };
    add(number);
    for (const LayoutProblem::Use &use : problem.values[number].uses)
      changes.usedWords.push_back(add(use.value));
    return changes;
  }

  void extend(size_t number) {
    const Value &value = problem.values[number];
    const Changes changes = getChanges(number);
    std::vector<Word> before, entries;
    std::vector<Candidate> next;
    std::unordered_map<Fingerprint, size_t, Fingerprint::Hash> known;
    for (const State &state : states) {
      read(state, changes, before);
      Fingerprint others = state.seen;
      if (isMerging)
        others -= getFingerprint(changes, before, /*first=*/1, number);
      for (unsigned choice = 0; choice < value.prices.size(); ++choice) {
        if (!open[number][choice])
          continue;
        entries = before;
        Candidate candidate{add(add(state.price, value.prices[choice]),
                                choose(number, choice, changes, entries)),
                            others, &state, choice};
        if (candidate.price >= LayoutProblem::kImpossible)
          continue;
        if (isMerging) {
          candidate.seen +=
              getFingerprint(changes, entries, /*first=*/0, number + 1);
          auto [place, isNew] = known.try_emplace(candidate.seen, next.size());
          if (!isNew) {
            if (candidate.price < next[place->second].price)
              next[place->second] = candidate;
            continue;
          }
        }
        next.push_back(candidate);
      }
    }
    isProven &= next.size() <= width;
    // The plain beam is always in order, as the reference's is.
    if (!isMerging || next.size() > width)
      keepCheapest(next);
    std::vector<State> extended;
    for (const Candidate &kept : next) {
      read(*kept.state, changes, entries);
      choose(number, kept.choice, changes, entries);
      extended.push_back(
          {kept.price, kept.seen, history.add(kept.state->step, entries)});
    }
    states = std::move(extended);
    for (size_t entry = 0; entry < changes.values.size(); ++entry)
      places[changes.values[entry]] = {number, changes.firstWords[entry]};
  }

  /// Reads the entries of the values used; that of the new one is zeros.
  void read(const State &state, const Changes &changes,
            std::vector<Word> &entries) const {
    entries.assign(changes.masks.size(), 0);
    for (size_t entry = 1; entry < changes.values.size(); ++entry) {
      size_t value = changes.values[entry];
      // The entry of one without copies and other choices is zeros, too.
      if (problem.values[value].prices.size() == 1 && lastNeed[value].empty())
        continue;
      const Place &place = places[value];
      const Word *words =
          history.getChanges(state.step, place.number) + place.firstWord;
      std::copy_n(words, getNumWords(value),
                  entries.begin() + changes.firstWords[entry]);
    }
  }

  /// Notes a choice for value `number`, and the copies that are made for it.
  /// Returns the price of its uses.
  int64_t choose(size_t number, unsigned choice, const Changes &changes,
                 std::vector<Word> &entries) const {
    const Value &value = problem.values[number];
    int64_t price = 0;
    for (size_t use = 0; use < value.uses.size(); ++use) {
      const LayoutProblem::Use &used = value.uses[use];
      Word *entry = &entries[changes.usedWords[use]];
      const Way &way = used.ways[*entry * value.prices.size() + choice];
      price = add(price, way.price);
      if (way.copy == LayoutProblem::kNoCopy)
        continue;
      Word &made = entry[1 + way.copy / kWordBits];
      Word bit = Word{1} << way.copy % kWordBits;
      if (!(made & bit))
        price = add(price, problem.values[used.value].copyPrices[way.copy]);
      made |= bit;
    }
    entries.front() = choice;
    for (size_t word = 0; word < entries.size(); ++word)
      entries[word] &= changes.masks[word];
    return price;
  }

  /// Of the entries from the given one on of values that value `number`, or a
  /// later one, uses.
  Fingerprint getFingerprint(const Changes &changes,
                             const std::vector<Word> &entries, size_t first,
                             size_t number) const {
    Fingerprint sum;
    for (size_t entry = first; entry < changes.values.size(); ++entry) {
      size_t value = changes.values[entry];
      if (lastUse[value] >= number)
        sum += Fingerprint::of(value, &entries[changes.firstWords[entry]],
                               getNumWords(value));
    }
    return sum;
  }

  /// Sorts by price, of equal ones the earlier first.
  void keepCheapest(std::vector<Candidate> &found) const {
    std::vector<size_t> order(found.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::make_pair(found[a].price, a) <
             std::make_pair(found[b].price, b);
    });
    order.resize(std::min(order.size(), width));
    std::vector<Candidate> kept;
    for (size_t number : order)
      kept.push_back(found[number]);
    found = std::move(kept);
  }

  const LayoutProblem &problem;
  size_t width;
  bool isMerging;
  const Open &open;
  bool isProven = true;
  std::vector<Place> places;
  std::vector<size_t> lastUse;
  /// Of each value and each of its copies, the last value that may need it.
  std::vector<std::vector<size_t>> lastNeed;
  std::vector<State> states;
  ChoiceHistory history;
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
