// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Planning/LayoutAssignment.h"

#include "ChoiceHistory.h"
#include "Spyre/Support/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

using namespace spyre::planning;

namespace {

using Value = LayoutProblem::Value;
using Use = LayoutProblem::Use;

class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}
  int64_t get(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  }

  /// Values with up to `maxChoices` choices, uses of earlier ones not more than
  /// `reach` before.
  LayoutProblem getProblem(size_t numValues, int64_t maxChoices, size_t reach) {
    LayoutProblem problem;
    for (size_t number = 0; number < numValues; ++number) {
      Value value;
      int64_t numChoices = get(1, maxChoices);
      for (int64_t choice = 0; choice < numChoices; ++choice)
        value.prices.push_back(get(0, 20));
      int64_t numCopies = get(0, 3);
      for (int64_t copy = 0; copy < numCopies; ++copy)
        value.copyPrices.push_back(get(1, 60));
      int64_t numUses = number == 0 ? 0 : get(0, 3);
      for (int64_t count = 0; count < numUses; ++count) {
        Use use;
        use.value = static_cast<unsigned>(
            get(static_cast<int64_t>(number > reach ? number - reach : 0),
                static_cast<int64_t>(number) - 1));
        const Value &used = problem.values[use.value];
        for (size_t way = 0; way < used.prices.size() * value.prices.size();
             ++way) {
          int64_t kind = get(0, 19);
          int copy =
              kind < 8 || used.copyPrices.empty()
                  ? LayoutProblem::kNoCopy
                  : static_cast<int>(get(
                        0, static_cast<int64_t>(used.copyPrices.size()) - 1));
          // The first way is always possible.
          use.ways.push_back(
              {kind == 0 && way > 0 ? LayoutProblem::kImpossible : get(0, 9),
               copy});
        }
        // Each choice of the used value leaves the user one.
        for (size_t way = 0; way < use.ways.size(); way += value.prices.size())
          use.ways[way].price = std::min<int64_t>(use.ways[way].price, 9);
        value.uses.push_back(std::move(use));
      }
      problem.values.push_back(std::move(value));
    }
    return problem;
  }

private:
  std::mt19937 engine;
};

int64_t getLeastPrice(const LayoutProblem &problem) {
  std::vector<unsigned> choices(problem.values.size(), 0);
  int64_t least = LayoutProblem::kImpossible;
  while (true) {
    least = std::min(least, getPrice(problem, choices));
    size_t number = 0;
    while (number < choices.size() &&
           ++choices[number] == problem.values[number].prices.size())
      choices[number++] = 0;
    if (number == choices.size())
      return least;
  }
}

/// The reference's optimiser: the `width` cheapest histories of every value.
int64_t getBeamPrice(const LayoutProblem &problem, size_t width) {
  // Price, number and choices; sorted by price, then number.
  using History = std::tuple<int64_t, size_t, std::vector<unsigned>>;
  std::vector<History> beam{{0, 0, {}}};
  LayoutProblem prefix;
  for (const Value &value : problem.values) {
    prefix.values.push_back(value);
    std::vector<History> next;
    for (const auto &[price, number, choices] : beam)
      for (unsigned choice = 0; choice < value.prices.size(); ++choice) {
        std::vector<unsigned> longer = choices;
        longer.push_back(choice);
        int64_t longerPrice = getPrice(prefix, longer);
        if (longerPrice < LayoutProblem::kImpossible)
          next.emplace_back(longerPrice, next.size(), std::move(longer));
      }
    std::sort(next.begin(), next.end());
    if (next.size() > width)
      next.resize(width);
    beam = std::move(next);
  }
  return std::get<0>(beam.front());
}

TEST(LayoutAssignment, CopiesOnceForAllUsers) {
  LayoutProblem problem;
  Value source{{0}, {}, {100}};
  // Either price 60 each without the copy, or with it.
  Value user{{60, 0}, {Use{0, {{0, -1}, {0, 0}}}}, {}};
  problem.values = {source, user};
  EXPECT_EQ(assignLayouts(problem).choices, (std::vector<unsigned>{0, 0}));
  problem.values.push_back(user);
  LayoutAssignment both = assignLayouts(problem);
  EXPECT_EQ(both.choices, (std::vector<unsigned>{0, 1, 1}));
  EXPECT_EQ(both.price, 100);
  EXPECT_TRUE(both.isProven);
}

TEST(LayoutAssignment, LooksPastDirectUsers) {
  // Only the last of three wants choice 1, but very much.
  LayoutProblem problem;
  Value first{{0, 1}, {}, {}};
  Value middle{{0, 0}, {Use{0, {{0, -1}, {50, -1}, {50, -1}, {0, -1}}}}, {}};
  Value last{{0}, {Use{1, {{40, -1}, {0, -1}}}}, {}};
  problem.values = {first, middle, last};
  EXPECT_EQ(assignLayouts(problem).choices, (std::vector<unsigned>{1, 1, 0}));
}

TEST(LayoutAssignment, KeepsNoStatesOfChoicesThatAreAlwaysDearer) {
  // Of each value, the second choice saves its user one copy of 10 at most.
  LayoutProblem problem;
  Value last{{0}, {}, {}};
  for (unsigned number = 0; number < 12; ++number) {
    problem.values.push_back(Value{{0, 11}, {}, {10}});
    last.uses.push_back(Use{number, {{0, 0}, {0, -1}}});
  }
  problem.values.push_back(last);
  LayoutAssignment assignment = assignLayouts(problem, /*width=*/1);
  EXPECT_TRUE(assignment.isProven);
  EXPECT_EQ(assignment.price, 120);
  // With a price of 10 either may be taken.
  for (unsigned number = 0; number < 12; ++number)
    problem.values[number].prices[1] = 10;
  EXPECT_FALSE(assignLayouts(problem, /*width=*/1).isProven);
}

TEST(LayoutAssignment, ForgetsCopiesThatNothingNeedsAnyMore) {
  // The first value stays live. Of its users each may make a copy of its own.
  LayoutProblem problem;
  Value first{{0}, {}, {}}, last{{0}, {Use{0, {{0, -1}}}}, {}};
  for (int number = 0; number < 40; ++number) {
    first.copyPrices.push_back(5);
    problem.values.push_back(
        Value{{5, 0}, {Use{0, {{0, -1}, {0, number}}}}, {}});
  }
  problem.values.insert(problem.values.begin(), first);
  problem.values.push_back(last);
  LayoutAssignment assignment = assignLayouts(problem, /*width=*/2);
  EXPECT_TRUE(assignment.isProven);
  EXPECT_EQ(assignment.price, 200);
}

TEST(LayoutAssignment, EqualsBruteForce) {
  const unsigned kSeed = 20261122;
  Random random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    LayoutProblem problem = random.getProblem(random.get(1, 7), 4, 7);
    LayoutAssignment assignment = assignLayouts(problem);
    ASSERT_TRUE(assignment.isProven) << "seed " << kSeed << " round " << round;
    ASSERT_EQ(assignment.price, getPrice(problem, assignment.choices));
    ASSERT_EQ(assignment.price, getLeastPrice(problem))
        << "seed " << kSeed << " round " << round;
  }
}

TEST(LayoutAssignment, NeverDearerThanTheReferencesBeam) {
  const unsigned kSeed = 20261123;
  Random random(kSeed);
  int numProven = 0, numCheaper = 0;
  for (int round = 0; round < 10; ++round) {
    // Some with few live values, some where any may be used at any time.
    LayoutProblem problem = random.getProblem(40, 4, round % 2 == 0 ? 4 : 40);
    // Narrow, so that not everything is kept.
    LayoutAssignment assignment = assignLayouts(problem, /*width=*/16);
    int64_t beam = getBeamPrice(problem, 64);
    ASSERT_EQ(assignment.price, getPrice(problem, assignment.choices));
    ASSERT_LE(assignment.price, beam) << "seed " << kSeed << " round " << round;
    LayoutAssignment wide = assignLayouts(problem);
    ASSERT_LE(wide.price, beam) << "seed " << kSeed << " round " << round;
    numProven += wide.isProven;
    numCheaper += wide.price < beam;
  }
  // The states kept are worth it.
  EXPECT_GT(numProven, 0);
  EXPECT_GT(numCheaper, 0);
}

TEST(ChoiceHistory, FindsWhatAnAssignmentChangedAtAnyValue) {
  const unsigned kSeed = 20261128;
  Random random(kSeed);
  ChoiceHistory history;
  // Of each step: its assignment's changes so far, with numbers of its own.
  std::vector<std::vector<Word>> chosen{{}};
  for (Word step = 1; step < 3000; ++step) {
    // Long ones, that part late.
    auto previous =
        static_cast<unsigned>(random.get(step > 8 ? step - 8 : 0, step - 1));
    std::vector<Word> choices = chosen[previous];
    choices.push_back(step);
    ASSERT_EQ(history.add(previous, {step, ~step}), step);
    ASSERT_EQ(history.getPrevious(step), previous);
    for (size_t number = 0; number < choices.size(); ++number) {
      const Word *changes = history.getChanges(step, number);
      ASSERT_EQ(changes[0], choices[number])
          << "seed " << kSeed << " step " << step << " value " << number;
      ASSERT_EQ(changes[1], ~choices[number]);
    }
    chosen.push_back(std::move(choices));
  }
}

TEST(ChoiceHistory, FingerprintsAreOfWhatIsSeenNotOfTheWayThere) {
  auto of = [](size_t value, std::vector<Word> entry) {
    return Fingerprint::of(value, entry.data(), entry.size());
  };
  Fingerprint seen = of(3, {1, 0});
  seen += of(7, {0, 5});
  Fingerprint same = of(7, {0, 4});
  same += of(3, {1, 0});
  EXPECT_FALSE(seen == same);
  same -= of(7, {0, 4});
  same += of(7, {0, 5});
  EXPECT_TRUE(seen == same);
  // Which value, and which word, has what.
  EXPECT_FALSE(of(3, {1, 0}) == of(3, {0, 1}));
  EXPECT_FALSE(of(3, {1, 0}) == of(1, {3, 0}));
  Fingerprint exchanged = of(3, {0, 5});
  exchanged += of(7, {1, 0});
  EXPECT_FALSE(seen == exchanged);
}

TEST(LayoutAssignment, CountsProblemsAlike) {
  // At the large size the second choice costs a tenth more than the first, at
  // the small one a third less.
  LayoutProblem large, small;
  large.values = {{{100, 110}, {}, {3}}};
  small.values = {{{15, 10}, {}, {1}}};
  EXPECT_EQ(assignLayouts(large).choices.front(), 0u);
  LayoutProblem both = addUp({large, small});
  EXPECT_EQ(both.values.front().prices, (std::vector<int64_t>{250, 210}));
  EXPECT_EQ(both.values.front().copyPrices, std::vector<int64_t>{13});
  EXPECT_EQ(assignLayouts(both).choices.front(), 1u);
  // Where nothing costs anything, nothing decides.
  small.values.front() = {{0, 0}, {}, {0}};
  EXPECT_EQ(addUp({large, small}).values.front().prices,
            large.values.front().prices);
  // What is impossible stays so.
  large.values.front().prices[1] = LayoutProblem::kImpossible;
  small.values.front() = {{15, LayoutProblem::kImpossible}, {}, {1}};
  EXPECT_EQ(addUp({large, small}).values.front().prices.back(),
            LayoutProblem::kImpossible);
}

TEST(LayoutAssignment, RefusesWhatIsNoProblem) {
  LayoutProblem problem;
  problem.values = {Value{{}, {}, {}}};
  EXPECT_THROW(assignLayouts(problem), spyre::Error);
  problem.values = {Value{{0}, {Use{0, {{0, -1}}}}, {}}};
  EXPECT_THROW(assignLayouts(problem), spyre::Error);
  problem.values = {Value{{0}, {}, {}}, Value{{0}, {Use{0, {}}}, {}}};
  EXPECT_THROW(assignLayouts(problem), spyre::Error);
  problem.values = {Value{{0}, {}, {}}, Value{{0}, {Use{0, {{0, 0}}}}, {}}};
  EXPECT_THROW(assignLayouts(problem), spyre::Error);
  problem.values = {Value{{LayoutProblem::kImpossible}, {}, {}}};
  EXPECT_THROW(assignLayouts(problem), spyre::Error);
}

} // namespace
