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
#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Spyre/Target/Interface/Target.h"
#include <map>

namespace mlir::spyre_graph {

/// Numbers slicings so that equal ones have the same number.
class SlicingNumbers {
public:
  static constexpr int kNone = -1;

  int get(const Slicing &slicing);
  const Slicing &operator[](int number) const { return slicings[number]; }
  /// The number of cores that hold the same slice.
  int64_t getCopies(int number) const { return copies[number]; }
  /// A number of the slices themselves, whichever cores hold them.
  int getCut(int number) const { return cuts[number]; }

private:
  int64_t getNumber(AffineExpr expr);

  llvm::DenseMap<AffineExpr, int64_t> expressions;
  std::map<std::vector<int64_t>, int> numbers;
  std::vector<Slicing> slicings;
  std::vector<int64_t> copies;
  std::map<std::vector<int64_t>, int> knownCuts;
  std::vector<int> cuts;
};

/// One way to divide an op.
struct DivisionCandidate {
  SmallVector<int64_t, 4> splits, chunks;
  double computeSeconds = 0;
  /// Pieces into which a core can cut its slice, so that it loads one piece
  /// while it computes another.
  double numPieces = 1;
  /// Pieces that each store a part of the result. Numbers above
  /// kPiecesInFlight make no difference and are capped there.
  double numStores = 1;
  /// Transfers of what the cores read over the number of reads: below 1 where
  /// one transfer serves several cores.
  double transfersPerRead = 1;
  /// Time to combine the partial results of a split reduction.
  double partialSumSeconds = 0;
  /// Share of computeSeconds in which nothing is loaded.
  double exposedShare = 0;
  /// Iterations of the core that has the most.
  double largestSlice = 0;
};

/// What one operand costs under one candidate.
struct OperandCost {
  /// Time to move it from or to device memory.
  double seconds;
  /// Time to read it once: products read operands for each part of the result,
  /// and heads of a query read the key that they share one after another.
  double onceSeconds;
  /// Bytes that device memory delivers or takes for it.
  double bytes;
  /// Number of the slicing in which the cores access the operand; kNone if
  /// they do not access all of it in slices.
  int slicing;
};

/// The candidate divisions of one op, each priced without regard to other ops.
/// Equal ops share one object.
struct Divisions {
  unsigned numOperands = 0;
  /// Time before the first byte of an operand's transfer flows.
  double setupSeconds = 0;
  /// Time lost per second of the direction of device memory that takes less
  /// time.
  double turnaround = 0;
  /// Whether the unit waits while the result is stored.
  bool isDrained = false;
  /// Whether both factors of a product have a dimension that the result has,
  /// too.
  bool isBatchedProduct = false;
  std::vector<DivisionCandidate> candidates;
  /// `numOperands` entries per candidate.
  std::vector<OperandCost> operandCosts;
  /// Bytes of device memory that each operand's transfer moves.
  SmallVector<double, 4> operandBytes;
  /// The same candidates at a few smaller sizes. Empty if no extent of the op
  /// varies.
  std::vector<Divisions> atSmallerSizes;

  /// At the largest sizes (0), or the next smaller ones.
  const Divisions &at(unsigned size) const {
    return size == 0 || atSmallerSizes.empty() ? *this
                                               : atSmallerSizes[size - 1];
  }
  const OperandCost &get(unsigned candidate, unsigned operand) const {
    return operandCosts[candidate * numOperands + operand];
  }
  /// Time of a candidate whose operands take `loadSeconds` and whose result
  /// takes `storeSeconds` to move. Without the setup of transfers, except for
  /// the part that no load hides.
  double getSeconds(unsigned number, double loadSeconds,
                    double storeSeconds) const;
  /// Time of a candidate with all operands and the result in device memory.
  double getSecondsAlone(unsigned candidate) const;
  /// Time of the cheapest candidate, in the same sense.
  double getLeastSecondsAlone() const;
};

/// What the symbols of an operation's function are where its divisions are
/// priced besides the largest sizes.
SmallVector<SmallVector<int64_t>> getSmallerSizes(Operation *op);

class DivisionSearch {
public:
  DivisionSearch(SpyreOpInterface op, int64_t cores, const Target &target,
                 const ::spyre::DeviceSpec &spec, SlicingNumbers &numbers);

  /// The divisions that work division may choose from. Whether and how a
  /// reduction is split depends on the op alone, so that an op rounds its sums
  /// in the same way in every graph.
  Divisions run();
  /// Whether an operation stands in a loop over tiles.
  static bool isInLoop(Operation *op);

  /// All divisions, with every way to split a reduction.
  Divisions runExhaustively();

  /// Only the given division, priced.
  Divisions price(WorkDivisionAttr division);

private:
  /// Prices what another search adds, at smaller sizes.
  DivisionSearch(const DivisionSearch &atLargest, ArrayRef<int64_t> sizes);

  void describe();
  void describeOperand(OpOperand &operand);
  double
  sumOverSizes(function_ref<double(const DivisionSearch &)> getSeconds) const;
  void keepSmallSpans();
  void keepIf(function_ref<bool(unsigned)> isKept);
  void searchAll();
  void search();
  void searchReductions();
  std::optional<unsigned> chooseSplitReduction() const;
  unsigned chooseAmongEqualSplits(unsigned alone) const;
  bool isSecondFactorComputed() const;
  bool isTooLargeToMove() const;
  double getSecondsAmongNeighbours(unsigned number) const;
  double getPriceAlone(unsigned number) const;
  double getPriceAmongNeighbours(unsigned number) const;
  std::pair<int64_t, int64_t> getReductionSlices(unsigned number) const;
  void enumerate(unsigned dim, int64_t coresUsed, DivisionCandidate &candidate);
  bool canSplit(unsigned dim) const;
  bool canBeEqual(unsigned dim, int64_t numSlices) const;
  /// Whether both factors of a product and its result have a dimension.
  bool isBatch(unsigned dim) const;
  void addCandidate(DivisionCandidate &candidate,
                    ArrayRef<int64_t> coreStrides);
  void addAtSize();
  double getSharingCores(unsigned operand,
                         const DivisionCandidate &candidate) const;
  /// What an operand costs under the newest candidate.
  const OperandCost &getNewest(unsigned operand) const {
    return result.get(result.candidates.size() - 1, operand);
  }
  double getLoadedBytes(unsigned operand, const DivisionCandidate &candidate);
  double getNumLoads(unsigned operand, const DivisionCandidate &candidate,
                     int slicing) const;
  std::optional<double> getRunBytes(unsigned operand,
                                    const DivisionCandidate &candidate) const;
  void countPieces(DivisionCandidate &candidate);
  double getPartialSumSeconds(const DivisionCandidate &candidate) const;
  void priceAccumulators(DivisionCandidate &candidate, OperandCost &x,
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
  /// Extents at each size, or null: also if the search is at smaller sizes.
  AffineMap extentMap;
  SmallVector<SmallVector<int64_t, 6>, 4> shapes;
  SmallVector<int64_t> granularity;
  std::optional<IndirectAccess> indirect;
  /// Element operations of the SFU per iteration; 0 for other units.
  double elementCost = 0;
  /// Loop dimensions that select the data of each operand.
  SmallVector<SmallVector<unsigned, 6>, 4> operandDims;
  /// Per operand, the sticks that the loops walk, if they can be told.
  SmallVector<std::optional<StickAccess>, 4> stickAccesses;
  /// Per operand, whether slices may share sticks that they read.
  SmallVector<bool, 4> readsAcrossSticks;
  /// The reduction dimension to split, or -1.
  int64_t splitReduction = -1;
  Divisions result;
  /// Searches at smaller sizes, of as many candidates.
  std::vector<std::unique_ptr<DivisionSearch>> atSmallerSizes;
  /// Of such a search, the one whose candidates it prices.
  const DivisionSearch *atLargest = nullptr;
  /// Time of the cheapest candidate at the sizes of this search.
  double leastSeconds = 0;
};

/// Whether work division splits a reduction of an operation in no loop.
bool splitsReduction(SpyreOpInterface op, int64_t cores, const Target &target,
                     const ::spyre::DeviceSpec &spec);

/// The best work division over at most `cores` cores that the target can
/// express, without regard to other operations.
WorkDivisionAttr chooseWorkDivision(SpyreOpInterface op, int64_t cores,
                                    const Target &target,
                                    const ::spyre::DeviceSpec &spec);

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_DIVISIONSEARCH_H
