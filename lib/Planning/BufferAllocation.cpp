// SPDX-License-Identifier: Apache-2.0
//===- BufferAllocation.cpp - Buffers in one linear memory ------*- C++ -*-===//

#include "Spyre/Planning/BufferAllocation.h"
#include "Spyre/Support/Error.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::planning;

static std::string describe(const AllocationProblem &problem, size_t index) {
  const Buffer &buffer = problem.buffers[index];
  return "buffer " + std::to_string(index) + " (live during [" +
         std::to_string(buffer.lower) + ", " + std::to_string(buffer.upper) +
         "), " + std::to_string(buffer.size) + " bytes)";
}

void planning::verifyProblem(const AllocationProblem &problem) {
  if (problem.capacity < 0)
    throw Error("capacity must not be negative, but is " +
                std::to_string(problem.capacity));
  if (problem.alignment < 1)
    throw Error("alignment must be positive, but is " +
                std::to_string(problem.alignment));
  int64_t total = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer &buffer = problem.buffers[i];
    if (buffer.upper <= buffer.lower)
      throw Error(describe(problem, i) + " has an empty lifetime");
    if (buffer.size < 0)
      throw Error(describe(problem, i) + " has a negative size");
    // Whatever is computed from offsets stays below this sum.
    if (__builtin_add_overflow(total, buffer.size, &total) ||
        __builtin_add_overflow(total, problem.alignment, &total))
      throw Error("the sizes of buffers 0 to " + std::to_string(i) +
                  " add up to more than 64 bits");
    if (buffer.inPlaceParent < 0)
      continue;
    if (buffer.inPlaceParent >= static_cast<int64_t>(problem.buffers.size()) ||
        problem.buffers[buffer.inPlaceParent].upper != buffer.lower + 1 ||
        problem.buffers[buffer.inPlaceParent].lower >= buffer.lower)
      throw Error(describe(problem, i) + " cannot take over buffer " +
                  std::to_string(buffer.inPlaceParent) +
                  ", whose lifetime does not end with its birth");
  }
}

std::string planning::checkOffsets(const AllocationProblem &problem,
                                   const std::vector<int64_t> &offsets) {
  if (offsets.size() != problem.buffers.size())
    return "there are " + std::to_string(offsets.size()) + " offsets for " +
           std::to_string(problem.buffers.size()) + " buffers";
  std::vector<size_t> placed;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] == kUnplaced)
      continue;
    if (offsets[i] < 0 || offsets[i] % problem.alignment != 0)
      return describe(problem, i) + " has offset " +
             std::to_string(offsets[i]) + ", which is not a multiple of " +
             std::to_string(problem.alignment);
    if (problem.buffers[i].size > problem.capacity - offsets[i])
      return describe(problem, i) + " at offset " + std::to_string(offsets[i]) +
             " ends above the capacity of " + std::to_string(problem.capacity);
    placed.push_back(i);
  }
  std::sort(placed.begin(), placed.end(), [&](size_t a, size_t b) {
    return std::make_pair(problem.buffers[a].lower, a) <
           std::make_pair(problem.buffers[b].lower, b);
  });
  std::vector<size_t> live;
  for (size_t i : placed) {
    const Buffer &buffer = problem.buffers[i];
    live.erase(std::remove_if(live.begin(), live.end(),
                              [&](size_t j) {
                                return problem.buffers[j].upper <= buffer.lower;
                              }),
               live.end());
    for (size_t j : live) {
      bool isInPlace =
          (buffer.inPlaceParent == static_cast<int64_t>(j) ||
           problem.buffers[j].inPlaceParent == static_cast<int64_t>(i)) &&
          offsets[i] == offsets[j];
      if (!isInPlace && offsets[i] < offsets[j] + problem.buffers[j].size &&
          offsets[j] < offsets[i] + buffer.size)
        return describe(problem, j) + " at offset " +
               std::to_string(offsets[j]) + " overlaps " +
               describe(problem, i) + " at offset " +
               std::to_string(offsets[i]);
    }
    live.push_back(i);
  }
  return "";
}

int64_t planning::getHeight(const AllocationProblem &problem,
                            const std::vector<int64_t> &offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] != kUnplaced)
      height = std::max(height, offsets[i] + problem.buffers[i].size);
  return height;
}

LiveMaximum planning::getLiveMaximum(const AllocationProblem &problem) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (const Buffer &buffer : problem.buffers) {
    int64_t size = roundUp(buffer.size, problem.alignment);
    steps.push_back({buffer.lower, size});
    steps.push_back({buffer.upper, -size});
  }
  // At one time the dead go first.
  std::sort(steps.begin(), steps.end());
  LiveMaximum maximum;
  int64_t bytes = 0;
  for (auto [time, change] : steps) {
    bytes += change;
    if (bytes > maximum.bytes)
      maximum = {bytes, time};
  }
  return maximum;
}
