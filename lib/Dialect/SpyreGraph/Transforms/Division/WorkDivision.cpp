//===- WorkDivision.cpp - Loops over cores ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "DivisionPlanner.h"
#include "ReferenceDivision.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/DeviceOptions.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/Stage.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREWORKDIVISION
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

class WorkDivisionPass
    : public spyre_graph::impl::SpyreWorkDivisionBase<WorkDivisionPass> {
public:
  using SpyreWorkDivisionBase::SpyreWorkDivisionBase;

  void runOnOperation() override {
    DeviceOptions options;
    options.cores = cores;
    options.maxSpan = maxSpan;
    FailureOr<::spyre::DeviceSpec> given = options.apply(getOperation());
    if (failed(given))
      return signalPassFailure();
    numCores = given->numCores;
    // Prices are those of the device.
    spec = getDeviceSpec(getOperation());
    spec.maxSpanBytes = given->maxSpanBytes;
    if (sweeps < 1 || !(tolerance >= 0)) {
      getOperation().emitError()
          << "expected at least one sweep and a tolerance of at least 0, found "
          << sweeps.getValue() << " and " << tolerance.getValue();
      return signalPassFailure();
    }
    if (mode != "default" && mode != "reference") {
      getOperation().emitError() << "unknown mode '" << mode.getValue()
                                 << "', expected 'default' or 'reference'";
      return signalPassFailure();
    }
    target = getTarget(getOperation());
    if (!target || failed(checkLayouts(getOperation()))) // SG-WORK-DIVISION-C1
      return signalPassFailure();
    SmallVector<SpyreOpInterface> ops;
    getOperation().walk([&](SpyreOpInterface op) { ops.push_back(op); });
    for (SpyreOpInterface op : ops)
      if (failed(applyHint(op)) ||
          (mode == "reference" && failed(applyReference(op))))
        return signalPassFailure();
    if (mode == "default") {
      DivisionPlanner planner(numCores, tolerance, *target,
                              reshard && target->allowsReshard(), spec);
      for (SpyreOpInterface op : ops)
        planner.addOp(op);
      planner.run(sweeps);
      numAgreeing += planner.numAgreeing;
      if (auto apart = planner.findSizesApart())
        getOperation()->setAttr(
            kSizesApartAttrName,
            DenseI64ArrayAttr::get(
                &getContext(),
                {static_cast<int64_t>(apart->first), apart->second}));
    }
    for (SpyreOpInterface op : ops)
      ++(op.getWorkDivision().getNumCores() > 1 ? numDivided : numSingleCore);
    if (getContext().getRemarkEngine())
      for (SpyreOpInterface op : ops)
        emitRemark(op);
  }

private:
  /// Whether the target needs all slices to have the same size.
  bool onlyEqual() const {
    return mode == "reference" || !target->allowsUnequalSlices();
  }

  /// What makes slices equal, for messages.
  std::string getRestrictor() const {
    return mode == "reference" ? "the reference" : target->getTitle().str();
  }

  /// The number of non-empty slices if a dimension is cut into `wanted` slices;
  /// 0 if slices must be equal and are not.
  int64_t getNumSlices(int64_t units, int64_t wanted) const {
    if (onlyEqual())
      return units % wanted == 0 ? wanted : 0;
    return llvm::divideCeilSigned(units, llvm::divideCeilSigned(units, wanted));
  }

  /// Text that lists the numbers of slices that a dimension can have.
  std::string listSlices(int64_t units) const {
    std::string text;
    llvm::raw_string_ostream os(text);
    for (int64_t first = 1; first <= numCores; ++first) {
      if (getNumSlices(units, first) != first)
        continue;
      int64_t last = first;
      while (last < numCores && getNumSlices(units, last + 1) == last + 1)
        ++last;
      os << (first > 1 ? ", " : "") << first;
      if (last > first)
        os << (last > first + 1 ? " to " : ", ") << last;
      first = last;
    }
    return text;
  }

  /// Turns a user's hint into the division.
  LogicalResult applyHint(SpyreOpInterface op) {
    StringRef name = kWorkDivisionHintAttrName;
    Attribute attribute = op->getAttr(name);
    if (!attribute || op.getWorkDivision())
      return success();
    SmallVector<int64_t> extents = op.getLoopExtents();
    SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
    SmallVector<int64_t> granularity = getSliceGranularity(op);
    auto hint = dyn_cast<DenseI64ArrayAttr>(attribute);
    // SG-DIVISION-HINT-C1
    if (!hint || hint.size() != static_cast<int64_t>(extents.size()))
      return op->emitOpError()
             << name << " must be an array of " << extents.size()
             << " numbers of slices, one per loop "
                "dimension, but is "
             << attribute;
    SmallVector<int64_t> splits, chunks;
    int64_t coresUsed = 1;
    int64_t splitReduction = -1;
    for (auto [dim, split] : llvm::enumerate(hint.asArrayRef())) {
      int64_t units =
          llvm::divideCeilSigned(std::max<int64_t>(extents[dim], 1),
                                 std::max<int64_t>(granularity[dim], 1));
      // SG-DIVISION-HINT-C2
      if (split < 1)
        return op->emitOpError() << "work division hint asks for " << split
                                 << " slices of loop dimension " << dim
                                 << "; it must be at least 1";
      // SG-DIVISION-HINT-C3
      coresUsed *= std::min<int64_t>(split, numCores + 1);
      if (coresUsed > numCores)
        return op->emitOpError()
               << "work division hint asks for "
               << llvm::join(llvm::map_range(hint.asArrayRef(),
                                             [](int64_t slices) {
                                               return std::to_string(slices);
                                             }),
                             " x ")
               << " slices, which exceeds SENCORES (" << numCores << " cores)";
      // SG-DIVISION-HINT-C4
      if (split > 1 && kinds[dim] != utils::IteratorType::parallel) {
        if (!isCombinedAcrossCores(op.getCombiner()))
          return op->emitOpError()
                 << "work division hint splits loop dimension " << dim
                 << ", but parts of this operation's result cannot be "
                    "combined, so it stays on one core";
        if (splitReduction >= 0)
          return op->emitOpError()
                 << "work division hint splits the reduction dimensions "
                 << splitReduction << " and " << dim
                 << "; only one of them can be";
        splitReduction = dim;
      }
      // SG-DIVISION-HINT-C5
      if (getNumSlices(units, split) != split)
        return op->emitOpError()
               << "work division hint asks for " << split
               << " slices of loop dimension " << dim << ", but its " << units
               << (granularity[dim] > 1 ? " sticks" : " iterations")
               << " are not evenly divisible into that many"
               << (onlyEqual()
                       ? " equal ones, which " + getRestrictor() + " needs"
                       : ", nor with a smaller last one")
               << "; possible: " << listSlices(units);
      int64_t unitsPerSlice = llvm::divideCeilSigned(units, split);
      splits.push_back(split);
      chunks.push_back(split == 1 ? extents[dim]
                                  : unitsPerSlice * granularity[dim]);
    }
    op.setWorkDivision(getDivision(op, splits, chunks));
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
      int64_t span = getSpanInBytes(op, operand, chunks);
      if (span > spec.maxSpanBytes)
        op->emitWarning() << "work division hint leaves operand " << operand
                          << " a span of " << span << " bytes per core, above "
                          << spec.maxSpanBytes;
    }
    ++numHints;
    return success();
  }

  LogicalResult applyReference(SpyreOpInterface op) {
    if (op.getWorkDivision())
      return success();
    ReferenceDivision division = divideAsReference(op, numCores, spec);
    if (division.splitsTwoReductions)
      return op->emitOpError("the reference would split more than one "
                             "reduction dimension to keep spans small");
    if (division.spanTooLarge)
      op->emitWarning() << "no split brings the span of operand "
                        << division.spanTooLarge->first << " below "
                        << spec.maxSpanBytes << " bytes; the best has "
                        << division.spanTooLarge->second;
    SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
    SmallVector<int64_t> extents = op.getLoopExtents();
    for (unsigned dim = 0; dim < extents.size(); ++dim) {
      if (division.splits[dim] == 1 ||
          kinds[dim] == utils::IteratorType::parallel ||
          isCombinedAcrossCores(op.getCombiner()))
        continue;
      op->emitWarning() << "the reference splits loop dimension " << dim
                        << " over " << division.splits[dim]
                        << " cores; parts of the result cannot be combined, "
                           "so it stays whole";
      division.splits[dim] = 1;
      division.chunks[dim] = extents[dim];
    }
    op.setWorkDivision(getDivision(op, division.splits, division.chunks));
    return success();
  }

  /// A remark on what was decided, with its price and that of the cheapest
  /// division of the op alone.
  void emitRemark(SpyreOpInterface op) {
    auto remark =
        remark::analysis(op->getLoc(), remark::RemarkOpts::name("division")
                                           .category("spyre-work-division")
                                           .function(getOperation().getName()));
    if (!remark)
      return;
    SlicingNumbers numbers;
    WorkDivisionAttr chosen = op.getWorkDivision();
    double seconds = DivisionSearch(op, numCores, *target, spec, numbers)
                         .price(chosen)
                         .getSecondsAlone(0);
    Divisions all =
        DivisionSearch(op, numCores, *target, spec, numbers).runExhaustively();
    double cheapest = std::min(seconds, all.getLeastSecondsAlone());
    std::string text;
    llvm::raw_string_ostream os(text);
    os << op->getName().stripDialect() << " on " << chosen.getNumCores()
       << " cores, splits [";
    llvm::interleaveComma(chosen.getSplits(), os);
    os << "]: " << llvm::format("%.6e", seconds) << " s alone, the cheapest of "
       << all.candidates.size() << " " << llvm::format("%.6e", cheapest)
       << " s";
    remark << text;
  }

  const Target *target = nullptr;
  ::spyre::DeviceSpec spec;
  int64_t numCores = 0;
};

} // namespace
