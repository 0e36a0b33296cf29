//===- WorkDivision.cpp - Loops over cores ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREWORKDIVISION
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// Constants of the price of a division (spec/hardware.md and spec/passes.md,
/// "Work division"). They only rank divisions of one op against each other.
struct Prices {
  /// Multiply-accumulates of the matrix unit of one core, per microsecond.
  double macsPerMicrosecond = 1536000;
  /// Lane operations of the vector units of one core, per microsecond: two
  /// corelets of one stick of fp16 per cycle at 1 GHz (a guess; not public).
  double laneOpsPerMicrosecond = 128000;
  /// Device-memory bytes per microsecond, of the card.
  double bytesPerMicrosecond = 204800;
  /// Cores that one broadcast serves at full bandwidth.
  double coresPerBroadcast = 8;
  /// Rows of the systolic array, and passes that fill its pipeline.
  double rowsPerPass = 8;
  double passesForFullRate = 8;
  /// LX bytes per core that plans may use.
  int64_t scratchpadBytes = 1677721;
};

/// What the price of an op's divisions depends on for one operand.
struct OperandPrice {
  /// Loop dimensions that select its data; cores that differ only in others
  /// read the same data.
  SmallVector<unsigned, 6> dims;
  /// Device bytes the op moves for it.
  double sizeInBytes;
  AffineMap map;
  /// The slices in which its producer wrote it, if it may stay in LX.
  const Slicing *produced = nullptr;
};

struct Candidate {
  SmallVector<int64_t, 6> splits;
  SmallVector<int64_t, 6> chunks;
  double cost;
  double residentBytes;
  double largestSlice;
};

/// The search for one op's division.
class DivisionSearch {
public:
  DivisionSearch(SpyreOpInterface op, int64_t cores, double tolerance)
      : op(op), cores(cores), tolerance(tolerance),
        extents(op.getLoopExtents()), maps(op.getIndexingMaps()) {
    granularity = getSliceGranularity(op);
    kinds = op.getLoopKinds();
    initDims = getUsedDims(maps.back(), extents);
    for (OpOperand &operand : op->getOpOperands())
      operands.push_back(describeOperand(operand));
  }

  /// States in which slices the producer of an operand left it in LX.
  void setProducedSlicing(unsigned operand, const Slicing *slicing) {
    operands[operand].produced = slicing;
  }

  WorkDivisionAttr run() {
    Candidate whole;
    for (int64_t extent : extents) {
      whole.splits.push_back(1);
      whole.chunks.push_back(extent);
    }
    if (!llvm::is_contained(extents, 0))
      enumerate(0, 1, whole);
    else
      addCandidate(whole);
    return WorkDivisionAttr::get(op->getContext(), best().splits,
                                 best().chunks);
  }

private:
  OperandPrice describeOperand(OpOperand &operand) {
    OperandPrice price;
    price.map = maps[operand.getOperandNumber()];
    auto type = cast<ShapedType>(operand.get().getType());
    double iterations = 1;
    for (unsigned dim : getUsedDims(price.map, extents).set_bits()) {
      price.dims.push_back(dim);
      iterations *= extents[dim];
    }
    double elements = std::max<int64_t>(type.getNumElements(), 1);
    LayoutAttrInterface layout = getLayout(type);
    double bytes = layout ? layout.getSizeInBytes(type.getShape())
                          : elements * 4;
    price.sizeInBytes = bytes * std::min(1.0, iterations / elements);
    return price;
  }

  /// Tries every useful number of slices of loop dimension `dim` and those
  /// after it.
  void enumerate(unsigned dim, int64_t coresUsed, Candidate &candidate) {
    if (dim == extents.size())
      return addCandidate(candidate);
    enumerate(dim + 1, coresUsed, candidate);
    if (kinds[dim] != utils::IteratorType::parallel || !initDims.test(dim))
      return;
    int64_t units = llvm::divideCeil(extents[dim], granularity[dim]);
    int64_t previous = 1;
    for (int64_t wanted = 2; wanted <= std::min(units, cores / coresUsed);
         ++wanted) {
      // Equal slices but for the last: fewer may be enough to cover.
      int64_t unitsPerSlice = llvm::divideCeil(units, wanted);
      int64_t splits = llvm::divideCeil(units, unitsPerSlice);
      if (splits == previous)
        continue;
      previous = splits;
      candidate.splits[dim] = splits;
      candidate.chunks[dim] = unitsPerSlice * granularity[dim];
      enumerate(dim + 1, coresUsed * splits, candidate);
    }
    candidate.splits[dim] = 1;
    candidate.chunks[dim] = extents[dim];
  }

  void addCandidate(Candidate &candidate) {
    price(candidate);
    candidates.push_back(candidate);
  }

  void price(Candidate &candidate) {
    double coresUsed = 1;
    candidate.largestSlice = 1;
    for (unsigned dim = 0; dim < extents.size(); ++dim) {
      coresUsed *= candidate.splits[dim];
      candidate.largestSlice *= candidate.chunks[dim];
    }
    double compute;
    if (op.getUnit() == Unit::PT) {
      // Rows that stream through the array: what the second input, which the
      // array holds, does not select.
      double rows = 1;
      for (unsigned dim : initDims.set_bits())
        if (!llvm::is_contained(operands[1].dims, dim))
          rows *= candidate.chunks[dim];
      double passes = std::max(1.0, rows / prices.rowsPerPass);
      double rate = std::min(
          1.0, std::sqrt(passes / prices.passesForFullRate));
      compute = candidate.largestSlice / (prices.macsPerMicrosecond * rate);
    } else {
      compute = candidate.largestSlice * op.getElementCost() /
                prices.laneOpsPerMicrosecond;
    }
    double memory = 0;
    candidate.residentBytes = 0;
    for (const OperandPrice &operand : operands) {
      if (isResident(operand, candidate)) {
        candidate.residentBytes += operand.sizeInBytes;
        continue;
      }
      double readers = coresUsed;
      for (unsigned dim : operand.dims)
        readers /= candidate.splits[dim];
      memory += operand.sizeInBytes / prices.bytesPerMicrosecond *
                std::max(1.0, readers / prices.coresPerBroadcast);
    }
    candidate.cost = std::max(compute, memory);
  }

  bool isResident(const OperandPrice &operand, const Candidate &candidate) {
    if (!operand.produced ||
        operand.sizeInBytes / operand.produced->numCores >
            prices.scratchpadBytes)
      return false;
    int64_t coresUsed = 1;
    for (int64_t split : candidate.splits)
      coresUsed *= split;
    if (coresUsed != operand.produced->numCores)
      return false;
    std::optional<Slicing> slicing = getSlicing(
        operand.map, extents, candidate.splits, candidate.chunks);
    return slicing && *slicing == *operand.produced;
  }

  const Candidate &best() const {
    double cheapest = candidates.front().cost;
    for (const Candidate &candidate : candidates)
      cheapest = std::min(cheapest, candidate.cost);
    const Candidate *chosen = nullptr;
    for (const Candidate &candidate : candidates)
      if (candidate.cost <= cheapest * (1 + tolerance) &&
          (!chosen || isPreferred(candidate, *chosen)))
        chosen = &candidate;
    return *chosen;
  }

  /// Order among candidates of about equal price; total, so that the choice
  /// does not depend on the enumeration.
  static bool isPreferred(const Candidate &a, const Candidate &b) {
    if (a.residentBytes != b.residentBytes)
      return a.residentBytes > b.residentBytes;
    if (a.largestSlice != b.largestSlice)
      return a.largestSlice < b.largestSlice;
    return std::lexicographical_compare(b.splits.begin(), b.splits.end(),
                                        a.splits.begin(), a.splits.end());
  }

  SpyreOpInterface op;
  int64_t cores;
  double tolerance;
  Prices prices;
  SmallVector<int64_t> extents;
  SmallVector<AffineMap> maps;
  SmallVector<int64_t> granularity;
  SmallVector<utils::IteratorType> kinds;
  llvm::SmallBitVector initDims;
  SmallVector<OperandPrice, 4> operands;
  std::vector<Candidate> candidates;
};

class WorkDivisionPass
    : public spyre_graph::impl::SpyreWorkDivisionBase<WorkDivisionPass> {
public:
  using SpyreWorkDivisionBase::SpyreWorkDivisionBase;

  void runOnOperation() override {
    if (cores < 1 || cores > 32) {
      getOperation().emitError()
          << "expected 1 to 32 cores, found " << cores.getValue();
      return signalPassFailure();
    }
    produced.clear();
    getOperation().walk([&](SpyreOpInterface op) { divide(op); });
  }

private:
  void divide(SpyreOpInterface op) {
    // A division that is there already, from a file or a user, stays.
    WorkDivisionAttr division = op.getWorkDivision();
    if (!division) {
      DivisionSearch search(op, cores, tolerance);
      for (OpOperand &operand : op->getOpOperands())
        if (auto found = produced.find(operand.get()); found != produced.end())
          search.setProducedSlicing(operand.getOperandNumber(),
                                    &found->second);
      division = search.run();
      op.setWorkDivision(division);
    }
    ++(division.getNumCores() > 1 ? numDivided : numSingleCore);
    recordSlicing(op, division);
  }

  /// Remembers in which slices the op leaves its result, if all of it is
  /// written by this op.
  void recordSlicing(SpyreOpInterface op, WorkDivisionAttr division) {
    SmallVector<int64_t> extents = op.getLoopExtents();
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    for (OpOperand &operand : op->getOpOperands())
      if (auto found = produced.find(operand.get()); found != produced.end())
        if (std::optional<Slicing> slicing =
                getSlicing(maps[operand.getOperandNumber()], extents,
                           division.getSplits(), division.getChunks());
            slicing && *slicing == found->second)
          ++numAgreeing;
    Value init = op.getSpyreInit();
    Value result = op->getNumResults() == 1 ? op->getResult(0) : init;
    auto type = cast<ShapedType>(result.getType());
    std::optional<Slicing> slicing =
        getSlicing(maps.back(), extents, division.getSplits(),
                   division.getChunks());
    if (slicing && slicing->covers(type.getShape()) && !op.getIndirectAccess())
      produced[result] = std::move(*slicing);
    else
      produced.erase(result);
  }

  /// In which slices each value written so far lies, filled in program order.
  DenseMap<Value, Slicing> produced;
};

} // namespace

WorkDivisionAttr spyre_graph::chooseWorkDivision(SpyreOpInterface op,
                                                 int64_t cores) {
  return DivisionSearch(op, cores, /*tolerance=*/0.05).run();
}
