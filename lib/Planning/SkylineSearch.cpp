// SPDX-License-Identifier: Apache-2.0
//===- SkylineSearch.cpp - Complete search for a placement ------*- C++ -*-===//

#include "SkylineSearch.h"

#include <algorithm>

using namespace spyre::planning;

/// Bounds the memory of long searches (about 40 bytes each).
static constexpr size_t kMaxFailedStates = 8000000;

static constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();

static uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

SkylineSearch::SkylineSearch(const std::vector<Buffer> &buffers)
    : numBuffers(static_cast<int>(buffers.size())), numSections(0) {
  // Sections: between a birth and the next death.
  struct Event {
    int64_t time;
    bool isBirth;
  };
  std::vector<Event> events;
  for (const Buffer &buffer : buffers) {
    size.push_back(buffer.size);
    events.push_back({buffer.lower, true});
    events.push_back({buffer.upper, false});
  }
  std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    return a.time != b.time ? a.time < b.time : a.isBirth < b.isBirth;
  });
  std::vector<int64_t> sectionTimes;
  for (size_t i = 0; i + 1 < events.size(); ++i)
    if (events[i].isBirth && !events[i + 1].isBirth)
      sectionTimes.push_back(events[i].time);
  numSections = static_cast<int>(sectionTimes.size());
  live.resize(numSections);
  for (int j = 0; j < numBuffers; ++j) {
    auto find = [&](int64_t time) {
      return static_cast<int>(
          std::lower_bound(sectionTimes.begin(), sectionTimes.end(), time) -
          sectionTimes.begin());
    };
    firstSection.push_back(find(buffers[j].lower));
    lastSection.push_back(find(buffers[j].upper));
    for (int s = firstSection[j]; s < lastSection[j]; ++s)
      live[s].push_back(j);
    byFirst.push_back(j);
    bufferKey.push_back(mix(2 * static_cast<uint64_t>(j)));
  }
  std::sort(byFirst.begin(), byFirst.end(), [&](int a, int b) {
    return std::make_pair(firstSection[a], a) <
           std::make_pair(firstSection[b], b);
  });
  byFirstStart.assign(numSections + 1, numBuffers);
  for (int i = numBuffers; i-- > 0;)
    byFirstStart[firstSection[byFirst[i]]] = i;
  for (int s = numSections; s-- > 0;) {
    byFirstStart[s] = std::min(byFirstStart[s], byFirstStart[s + 1]);
    sectionKey.push_back(mix(2 * static_cast<uint64_t>(s) + 1));
  }
  weight.assign(numSections, 1);
  valley.resize(numSections + 1);
  count.resize(numSections + 1);
  lowBefore.resize(numSections + 1);
  lowAfter.resize(numSections + 1);
}

void SkylineSearch::reset() {
  floorOf.assign(numSections, 0);
  remaining.assign(numSections, 0);
  numUnplaced.assign(numSections, 0);
  numCrossing.assign(numSections, 0);
  minOffset.assign(numBuffers, 0);
  offsets.assign(numBuffers, kUnplaced);
  isPlaced.assign(numBuffers, 0);
  isDirty.assign(numSections, 0);
  dirty.clear();
  trail.clear();
  for (int j = 0; j < numBuffers; ++j)
    for (int s = firstSection[j]; s < lastSection[j]; ++s) {
      remaining[s] += size[j];
      ++numUnplaced[s];
      numCrossing[s] += s + 1 < lastSection[j];
    }
}

void SkylineSearch::touch(int section) {
  if (!isDirty[section]) {
    isDirty[section] = 1;
    dirty.push_back(section);
  }
}

void SkylineSearch::setFloor(int section, int64_t floor) {
  trail.push_back({Change::Floor, section, floorOf[section]});
  floorOf[section] = floor;
  touch(section);
}

void SkylineSearch::place(int buffer, int64_t offset, bool onTop) {
  trail.push_back({Change::Placed, buffer, 0});
  isPlaced[buffer] = 1;
  offsets[buffer] = offset;
  for (int s = firstSection[buffer]; s < lastSection[buffer]; ++s) {
    remaining[s] -= size[buffer];
    --numUnplaced[s];
    numCrossing[s] -= s + 1 < lastSection[buffer];
    if (onTop)
      touch(s);
    else
      setFloor(s, offset + size[buffer]);
  }
}

void SkylineSearch::undo(size_t mark) {
  while (trail.size() > mark) {
    Change change = trail.back();
    trail.pop_back();
    switch (change.kind) {
    case Change::Floor:
      floorOf[change.index] = change.old;
      break;
    case Change::MinOffset:
      minOffset[change.index] = change.old;
      break;
    case Change::Placed: {
      int buffer = change.index;
      isPlaced[buffer] = 0;
      for (int s = firstSection[buffer]; s < lastSection[buffer]; ++s) {
        remaining[s] += size[buffer];
        ++numUnplaced[s];
        numCrossing[s] += s + 1 < lastSection[buffer];
      }
      break;
    }
    }
  }
}

bool SkylineSearch::propagate(int64_t limit) {
  while (!dirty.empty()) {
    int s = dirty.back();
    dirty.pop_back();
    isDirty[s] = 0;
    if (numUnplaced[s] == 0)
      continue;
    // The lowest height that an unplaced buffer can have here.
    int64_t lowest = kInfinity;
    for (int j : live[s]) {
      if (isPlaced[j])
        continue;
      if (minOffset[j] < floorOf[s]) {
        trail.push_back({Change::MinOffset, j, minOffset[j]});
        minOffset[j] = floorOf[s];
        for (int t = firstSection[j]; t < lastSection[j]; ++t)
          if (t != s && floorOf[t] < floorOf[s])
            touch(t);
      }
      lowest = std::min(lowest, minOffset[j]);
    }
    if (lowest > floorOf[s]) {
      trail.push_back({Change::Floor, s, floorOf[s]});
      floorOf[s] = lowest;
      // All buffers here are at least as high already: nothing follows.
    }
    if (floorOf[s] + remaining[s] > limit) {
      weight[s] += 1;
      for (int t : dirty)
        isDirty[t] = 0;
      dirty.clear();
      return false;
    }
  }
  return true;
}

uint64_t SkylineSearch::getStateHash(int first, int last, int64_t limit) const {
  // The buffers that a part has left, and how far its floors are from the
  // limit, are all that matters: a failure holds for every capacity.
  uint64_t hash =
      mix(static_cast<uint64_t>(first) << 32 | static_cast<uint64_t>(last));
  for (int s = first; s < last; ++s)
    hash += mix(sectionKey[s] ^ static_cast<uint64_t>(limit - floorOf[s]));
  for (int i = byFirstStart[first]; i < byFirstStart[last]; ++i)
    if (!isPlaced[byFirst[i]])
      hash += bufferKey[byFirst[i]];
  return hash;
}

void SkylineSearch::markValleys(int first, int last) {
  int numValleys = 0;
  for (int s = first; s < last;) {
    int end = s + 1;
    while (end < last && floorOf[end] == floorOf[s])
      ++end;
    bool isValley = (s == first || floorOf[s - 1] > floorOf[s]) &&
                    (end == last || floorOf[end] > floorOf[s]);
    numValleys += isValley;
    std::fill(valley.begin() + s, valley.begin() + end,
              isValley ? numValleys : 0);
    s = end;
  }
}

bool SkylineSearch::isCandidate(int buffer) const {
  return !isPlaced[buffer] && valley[firstSection[buffer]] != 0 &&
         minOffset[buffer] == floorOf[firstSection[buffer]];
}

int SkylineSearch::findValleyEnd(int section, int last) const {
  int end = section + 1;
  while (end < last && valley[end] == valley[section])
    ++end;
  return end;
}

void SkylineSearch::countCandidates(int first, int last) {
  std::fill(count.begin() + first, count.begin() + last + 1, 0);
  std::fill(lowBefore.begin() + first, lowBefore.begin() + last + 1, kInfinity);
  std::fill(lowAfter.begin() + first, lowAfter.begin() + last + 1, kInfinity);
  for (int i = byFirstStart[first]; i < byFirstStart[last]; ++i) {
    int j = byFirst[i];
    if (!isCandidate(j))
      continue;
    ++count[firstSection[j]];
    --count[lastSection[j]];
    // Sizes of candidates that end before, or begin after, a section.
    if (lastSection[j] < last)
      lowBefore[lastSection[j]] = std::min(lowBefore[lastSection[j]], size[j]);
    if (firstSection[j] > first)
      lowAfter[firstSection[j] - 1] =
          std::min(lowAfter[firstSection[j] - 1], size[j]);
  }
  for (int s = first + 1; s < last; ++s)
    count[s] += count[s - 1];
  for (int s = first; s < last;) {
    int end = findValleyEnd(s, last);
    if (valley[s] != 0) {
      lowBefore[s] = kInfinity;
      for (int t = s + 1; t < end; ++t)
        lowBefore[t] = std::min(lowBefore[t], lowBefore[t - 1]);
      lowAfter[end - 1] = kInfinity;
      for (int t = end - 1; t-- > s;)
        lowAfter[t] = std::min(lowAfter[t], lowAfter[t + 1]);
    }
    s = end;
  }
}

double SkylineSearch::getRank(int buffer) {
  double width = lastSection[buffer] - firstSection[buffer];
  double bytes = static_cast<double>(size[buffer]);
  double rank = 0;
  switch (order) {
  case Order::Longest:
    rank = width * 1e12 + bytes;
    break;
  case Order::Area:
    rank = width * bytes;
    break;
  case Order::Largest:
    rank = bytes;
    break;
  case Order::WidestFit:
  case Order::NumOrders:
    rank = width;
    break;
  }
  if (noise > 0)
    rank *= 1 + noise * (static_cast<double>(random() % 1024) / 1024 - 0.5);
  return rank;
}

int SkylineSearch::chooseSection(int first, int last, int64_t limit,
                                 std::vector<Option> &options,
                                 int64_t &wasteFloor) {
  markValleys(first, last);
  countCandidates(first, last);
  int best = -1;
  double bestScore = 0;
  int64_t bestWaste = kInfinity;
  for (int s = first; s < last;) {
    int end = findValleyEnd(s, last);
    if (valley[s] != 0) {
      int64_t wall = std::min(s == first ? kInfinity : floorOf[s - 1],
                              end == last ? kInfinity : floorOf[end]);
      for (int t = s; t < end; ++t) {
        // A buffer above the waste rests on the wall or on a buffer of the
        // valley beside this section.
        int64_t beside = std::min(lowBefore[t], lowAfter[t]);
        int64_t next = std::min(
            wall, beside == kInfinity ? kInfinity : floorOf[t] + beside);
        bool mayWaste = next != kInfinity && next + remaining[t] <= limit;
        double score = (count[t] + mayWaste) / weight[t];
        if (best < 0 || score < bestScore) {
          best = t;
          bestScore = score;
          bestWaste = mayWaste ? next : kInfinity;
        }
      }
    }
    s = end;
  }

  wasteFloor = bestWaste;
  options.clear();
  for (int j : live[best])
    if (isCandidate(j))
      options.push_back({j, getRank(j)});
  std::sort(options.begin(), options.end(),
            [](const Option &a, const Option &b) {
              return a.rank != b.rank ? a.rank > b.rank : a.buffer < b.buffer;
            });
  if (bestWaste != kInfinity)
    options.push_back({-1, 0});
  return best;
}

SkylineSearch::Result SkylineSearch::searchParts(int first, int last,
                                                 int64_t limit) {
  struct Part {
    int first, last;
    int64_t slack;
  };
  std::vector<Part> parts;
  for (int s = first; s < last; ++s) {
    if (numUnplaced[s] == 0)
      continue;
    Part part{s, s, kInfinity};
    for (;; ++s) {
      part.slack = std::min(part.slack, limit - floorOf[s] - remaining[s]);
      if (numCrossing[s] == 0)
        break;
    }
    part.last = s + 1;
    parts.push_back(part);
  }
  // The one most likely to fail first.
  std::sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) {
    return std::make_pair(a.slack, a.first) < std::make_pair(b.slack, b.first);
  });
  for (const Part &part : parts) {
    Result result = search(part.first, part.last, limit);
    if (result != Result::Found)
      return result;
  }
  return Result::Found;
}

SkylineSearch::Result SkylineSearch::search(int first, int last,
                                            int64_t limit) {
  // Buffers that span the part go to its top.
  bool hasPeeled = false;
  for (int i = byFirstStart[first]; i < byFirstStart[first + 1]; ++i) {
    int j = byFirst[i];
    if (isPlaced[j] || lastSection[j] != last)
      continue;
    limit -= size[j];
    place(j, limit, /*onTop=*/true);
    hasPeeled = true;
  }
  // Floors under buffers that begin before this part but were placed are
  // walls already; those of the part itself may rise now.
  if (hasPeeled) {
    if (!propagate(limit))
      return Result::Failed;
    return searchParts(first, last, limit);
  }

  ++numNodes;
  if (--nodesLeft < 0 || (numNodes % 256 == 0 && (*outOfTime)()))
    return Result::Limit;
  uint64_t state = getStateHash(first, last, limit);
  if (failedStates.count(state))
    return Result::Failed;
  std::vector<Option> options;
  int64_t wasteFloor;
  int section = chooseSection(first, last, limit, options, wasteFloor);
  for (const Option &option : options) {
    size_t mark = trail.size();
    if (option.buffer < 0)
      setFloor(section, wasteFloor);
    else
      place(option.buffer, floorOf[section], /*onTop=*/false);
    Result result =
        propagate(limit) ? searchParts(first, last, limit) : Result::Failed;
    if (result == Result::Found)
      return result;
    undo(mark);
    if (result == Result::Limit)
      return result;
  }
  if (failedStates.size() < kMaxFailedStates)
    failedStates.insert(state);
  return Result::Failed;
}

SkylineSearch::Result
SkylineSearch::run(int64_t capacity, Order newOrder, unsigned seed,
                   int64_t maxNodes, const std::function<bool()> &isOutOfTime) {
  order = newOrder;
  random.seed(seed + 1);
  noise = seed == 0 ? 0 : 0.3;
  nodesLeft = maxNodes;
  outOfTime = &isOutOfTime;
  reset();
  for (int s = 0; s < numSections; ++s)
    touch(s);
  if (!propagate(capacity))
    return Result::Failed;
  return searchParts(0, numSections, capacity);
}
