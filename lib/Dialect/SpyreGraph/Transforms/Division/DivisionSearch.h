//===- DivisionSearch.h - All divisions of an operation ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Enumerates how one operation can be divided over cores, and prices each way
// with the terms of spyre::estimateOp: memory per operand, because a plan may
// keep any operand in LX.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_DIVISIONSEARCH_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_DIVISIONSEARCH_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Target/Interface/Target.h"
#include <map>

namespace mlir::spyre_graph {

/// Numbers slicings so that equal ones have the same number.
class SlicingNumbers {
public:
  static constexpr int kNone = -1;

  int get(const Slicing &slicing);
  /// Cores that hold one slice of a numbered slicing.
  int64_t getCopies(int number) const { return copies[number]; }

private:
  std::map<std::vector<int64_t>, int> numbers;
  std::vector<int64_t> copies;
};

/// One way to divide an op.
struct DivisionCandidate {
  SmallVector<int64_t, 4> splits, chunks;
  double computeSeconds = 0;
  /// Into how many a core can cut its slice, to load one while it computes
  /// another.
  double numPieces = 1;
  /// Of which each stores its part of the result, as far as they count.
  double numStores = 1;
  /// To combine the parts of a split reduction.
  double partialSumSeconds = 0;
  /// Iterations of the core with the most.
  double largestSlice = 0;
};

/// How one operand fares under one candidate.
struct OperandCost {
  /// Time to move it from or to device memory.
  double seconds;
  /// The slices in which the cores access all of it, or kNone.
  int slicing;
};

/// All divisions of an op, priced alone; shared by ops that are alike.
struct Divisions {
  unsigned numOperands = 0;
  /// Of the transfers of an operand.
  double setupSeconds = 0;
  std::vector<DivisionCandidate> candidates;
  /// numOperands entries per candidate.
  std::vector<OperandCost> operandCosts;
  /// Device bytes that each operand moves.
  SmallVector<double, 4> operandBytes;

  const OperandCost &get(unsigned candidate, unsigned operand) const {
    return operandCosts[candidate * numOperands + operand];
  }
  /// Of a candidate that takes so long to move its operands and its result, but
  /// for the setup that stays when no load is left to hide it.
  double getSeconds(unsigned number, double loadSeconds,
                    double storeSeconds) const;
  /// Of a candidate, with all operands in device memory.
  double getSecondsAlone(unsigned candidate) const;
  /// Of the cheapest candidate alone.
  double getLeastSecondsAlone() const;
};

class DivisionSearch {
public:
  DivisionSearch(SpyreOpInterface op, int64_t cores, const Target &target,
                 const ::spyre::DeviceSpec &spec, SlicingNumbers &numbers);

  /// The divisions among which a graph may choose. Whether and how a reduction
  /// is split does not depend on the graph: sums are rounded alike wherever the
  /// operation stands.
  Divisions run();
  /// Whether an operation works on tiles.
  static bool isInLoop(Operation *op);

  /// Every division there is, split reductions among them.
  Divisions runExhaustively();

  /// Just one division, the one the op has.
  Divisions price(WorkDivisionAttr division);

private:
  void describeOperand(OpOperand &operand);
  void keepSmallSpans();
  void keepIf(function_ref<bool(unsigned)> isKept);
  void search();
  void enumerate(unsigned dim, int64_t coresUsed, DivisionCandidate &candidate);
  bool canSplit(unsigned dim) const;
  void addCandidate(DivisionCandidate &candidate,
                    ArrayRef<int64_t> coreStrides);
  double getComputeSeconds(const DivisionCandidate &candidate);
  double getLoadedBytes(unsigned operand, const DivisionCandidate &candidate);
  void countPieces(DivisionCandidate &candidate);
  void priceSubTiles(DivisionCandidate &candidate, OperandCost &x,
                     OperandCost &y) const;
  int getSlicingNumber(unsigned operand, const DivisionCandidate &candidate,
                       ArrayRef<int64_t> coreStrides);

  SpyreOpInterface op;
  int64_t cores;
  const Target &target;
  const ::spyre::DeviceSpec &spec;
  SlicingNumbers &numbers;
  SmallVector<int64_t> extents;
  SmallVector<AffineMap> maps;
  SmallVector<utils::IteratorType> kinds;
  SmallVector<int64_t> granularity;
  std::optional<IndirectAccess> indirect;
  /// Of the vector unit, SFU element operations per iteration.
  double elementCost = 0;
  /// Loop dimensions that select the data of each operand.
  SmallVector<SmallVector<unsigned, 6>, 4> operandDims;
  /// Of each operand, whether one stick may hold what several slices read.
  SmallVector<bool, 4> readsAcrossSticks;
  /// The reduction dimension to split, or -1.
  int64_t splitReduction = -1;
  Divisions result;
};

/// The work division of an operation over at most `cores` cores without regard
/// to other operations, as the target can express it.
WorkDivisionAttr chooseWorkDivision(SpyreOpInterface op, int64_t cores,
                                    const Target &target);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_DIVISIONSEARCH_H
