// SPDX-License-Identifier: Apache-2.0
//===- ChoiceHistory.h - What partial assignments have chosen ---*- C++ -*-===//
//
// A search that assigns one value after the other keeps many partial
// assignments, most of which started alike. Here they are a tree of steps: what
// they have in common is there once, and to extend one takes as long however
// many values it has.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_PLANNING_CHOICEHISTORY_H
#define SPYRE_PLANNING_CHOICEHISTORY_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spyre::planning {

/// What is kept of a value is some of these.
using Word = uint32_t;

/// The steps of all partial assignments, one for each value. A step holds what
/// it changes, and points to the step of the value before.
class ChoiceHistory {
public:
  /// Before the first value.
  static constexpr unsigned kStart = 0;

  ChoiceHistory() { steps.push_back({kStart, kStart, 0, 0}); }

  /// Adds a step for the value after that of step `previous`.
  unsigned add(unsigned previous, const std::vector<Word> &changes) {
    // Two jumps of one length are followed by one over both: the number of
    // jumps to any step grows with the logarithm of the distance (Myers, "An
    // applicative random-access stack", 1983).
    const Step &jump = steps[steps[previous].jump];
    size_t first = steps[previous].numValues - jump.numValues;
    size_t second = jump.numValues - steps[jump.jump].numValues;
    steps.push_back({previous, first == second ? jump.jump : previous,
                     steps[previous].numValues + 1, words.size()});
    words.insert(words.end(), changes.begin(), changes.end());
    return static_cast<unsigned>(steps.size() - 1);
  }

  /// What the assignment that ends with step `last` changed at value `number`.
  const Word *getChanges(unsigned last, size_t number) const {
    while (steps[last].numValues > number + 1) {
      const Step &step = steps[last];
      last = steps[step.jump].numValues > number ? step.jump : step.previous;
    }
    return &words[steps[last].firstWord];
  }

  unsigned getPrevious(unsigned step) const { return steps[step].previous; }

private:
  struct Step {
    unsigned previous, jump;
    /// In the assignment that ends with this step.
    size_t numValues;
    size_t firstWord;
  };
  std::vector<Step> steps;
  std::vector<Word> words;
};

/// Tells apart what states know of their live values: the sum of a term for
/// each value, so that a step exchanges the terms that it changes. With 128
/// bits two states that differ do not have one sum by chance. If they had, the
/// search would keep the cheaper one of them, and go on with what that one
/// knows.
struct Fingerprint {
  uint64_t low = 0, high = 0;

  static Fingerprint of(size_t value, const Word *entry, size_t numWords) {
    Fingerprint term{mix(value), mix(~value)};
    for (size_t word = 0; word < numWords; ++word) {
      term.low = mix(term.low ^ entry[word]);
      term.high = mix(term.high ^ entry[word]);
    }
    return term;
  }

  void operator+=(const Fingerprint &other) {
    low += other.low;
    high += other.high;
  }
  void operator-=(const Fingerprint &other) {
    low -= other.low;
    high -= other.high;
  }
  bool operator==(const Fingerprint &other) const {
    return low == other.low && high == other.high;
  }

  struct Hash {
    size_t operator()(const Fingerprint &of) const { return of.low; }
  };

private:
  /// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
  /// generators", 2014).
  static uint64_t mix(uint64_t bits) {
    bits += 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }
};

} // namespace spyre::planning

#endif // SPYRE_PLANNING_CHOICEHISTORY_H
