//===- DivisionMoves.cpp - Values in other slices ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// What it takes to get a value from the slices that one operation writes to
// those that another reads: a move over the ring, or a copy of an argument that
// each core makes for itself.
//
//===----------------------------------------------------------------------===//

#include "DivisionPlanner.h"
#include "Reshard.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"

using namespace mlir;
using namespace mlir::spyre_graph;

static double getElementBytes(const Slicing &slicing, double bytes) {
  double elements = 1;
  for (const SliceDim &dim : slicing.dims)
    elements *= static_cast<double>(dim.extent);
  return bytes / std::max(elements, 1.0);
}

/// Whether LX has room for what a core holds of a value in slices on which the
/// operations agree.
bool DivisionPlanner::fitsInSlices(int slicing, double bytes) {
  if (slicing == SlicingNumbers::kNone)
    return true;
  const Slicing &held = numbers[slicing];
  return fitsLX(held, held, getElementBytes(held, bytes), spec);
}

/// The slices where the symbols are `sizes`: those of some cores may be empty.
static Slicing getSlicingAt(const Slicing &slicing, ArrayRef<int64_t> sizes) {
  Slicing result = slicing;
  for (SliceDim &dim : result.dims) {
    if (!dim.extentAt)
      continue;
    dim.extent = std::max<int64_t>(evaluateSize(dim.extentAt, sizes), 1);
    dim.chunk = dim.split == 1 ? dim.extent : evaluateSize(dim.chunkAt, sizes);
  }
  return result;
}

/// Time to move a value over the ring from the slices that one operation
/// writes to those that another reads; infinite if it cannot be moved at the
/// largest sizes.
double DivisionPlanner::getMoveSeconds(unsigned size, int written, int read,
                                       const Divisions &reader,
                                       unsigned operand) {
  if (!reshard || written == SlicingNumbers::kNone ||
      read == SlicingNumbers::kNone)
    return std::numeric_limits<double>::infinity();
  double mostBytes = reader.operandBytes[operand];
  double bytes = reader.at(size).operandBytes[operand];
  auto [entry, isNew] = moveSeconds.try_emplace(
      {size, written, read, llvm::bit_cast<uint64_t>(bytes)},
      std::numeric_limits<double>::infinity());
  if (!isNew)
    return entry->second;
  const Slicing &from = numbers[written], &to = numbers[read];
  if (!fitsLX(from, to, getElementBytes(from, mostBytes), spec))
    return entry->second;
  auto getSeconds = [&](const Slicing &from, const Slicing &to) {
    return getRingSeconds(from, to, getElementBytes(from, bytes), spec);
  };
  entry->second = size == 0
                      ? getSeconds(from, to)
                      : getSeconds(getSlicingAt(from, smallerSizes[size - 1]),
                                   getSlicingAt(to, smallerSizes[size - 1]));
  return entry->second;
}

/// The same from slices that are not known yet, each of which one core holds.
double DivisionPlanner::getShuffleSeconds(int read, double bytes) {
  if (!reshard || read == SlicingNumbers::kNone || !fitsInSlices(read, bytes))
    return std::numeric_limits<double>::infinity();
  return ::spyre::ringShuffleSeconds(
      bytes * static_cast<double>(numbers.getCopies(read)), cores, spec);
}

/// What a producer takes longer if each core makes what it reads for itself.
double DivisionPlanner::getRepeatSeconds(unsigned size, const Node &producer,
                                         unsigned chosen, int read) const {
  if (read == SlicingNumbers::kNone)
    return std::numeric_limits<double>::infinity();
  auto found = producer.repeatable.find(numbers.getCut(read));
  if (found == producer.repeatable.end())
    return std::numeric_limits<double>::infinity();
  const Divisions &divisions = producer.divisions->at(size);
  double transfers = ::spyre::numSharedReads(
      static_cast<double>(numbers.getCopies(read)), spec);
  auto getSeconds = [&](unsigned candidate, double transfers) {
    return divisions.getSeconds(
        candidate, divisions.get(candidate, 0).seconds * transfers, 0);
  };
  return std::max(getSeconds(found->second, transfers) - getSeconds(chosen, 1),
                  0.0);
}

/// The same for what an op reads as an operand, or the time to make it where it
/// is read.
double DivisionPlanner::getMoveSeconds(unsigned size, const Node &producer,
                                       unsigned chosen, int read,
                                       const Divisions &reader,
                                       unsigned operand) {
  const Divisions &divisions = *producer.divisions;
  int written = divisions.get(chosen, divisions.numOperands - 1).slicing;
  double seconds = getMoveSeconds(size, written, read, reader, operand);
  if (!producer.repeatable.empty() &&
      fitsInSlices(read, reader.operandBytes[operand]))
    seconds = std::min(seconds, getRepeatSeconds(size, producer, chosen, read));
  return seconds;
}

/// Finds the candidate that writes each cut fastest.
void DivisionPlanner::findRepeatable(Node &node) {
  const Divisions &divisions = *node.divisions;
  auto getSeconds = [&](unsigned candidate) {
    return divisions.getSeconds(candidate, divisions.get(candidate, 0).seconds,
                                0);
  };
  for (unsigned number = 0; number < divisions.candidates.size(); ++number) {
    int written = divisions.get(number, divisions.numOperands - 1).slicing;
    auto [entry, isNew] =
        node.repeatable.try_emplace(numbers.getCut(written), number);
    if (!isNew && getSeconds(number) < getSeconds(entry->second))
      entry->second = number;
  }
}
