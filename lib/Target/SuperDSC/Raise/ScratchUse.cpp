// SPDX-License-Identifier: Apache-2.0
//===- ScratchUse.cpp - What executions leave to each other -----*- C++ -*-===//

#include "ScratchUse.h"

#include "Spyre/Target/SuperDSC/Model/Geometry.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <array>
#include <map>

using namespace mlir;
using namespace spyre::superdsc;

namespace {

/// Bytes from `first` to before `last`.
struct ByteRange {
  int64_t first, last;
};

/// The pool, or one core's LX.
struct Memory {
  struct Result {
    int64_t last;
    const Execution *execution;
    unsigned tensor;
    bool isRead;
  };
  /// Disjoint ranges that do not touch, by their first bytes.
  std::map<int64_t, int64_t> written;
  /// Disjoint ranges: those that nothing has overwritten.
  std::map<int64_t, Result> results;

  /// Whether something has written all of a range.
  bool holds(ByteRange range) const {
    auto after = written.upper_bound(range.first);
    return after != written.begin() && std::prev(after)->second >= range.last;
  }

  /// The first result that ends after the start of a range. It may lie behind
  /// the range.
  std::map<int64_t, Result>::iterator find(ByteRange range) {
    auto next = results.upper_bound(range.first);
    if (next != results.begin() && std::prev(next)->second.last > range.first)
      --next;
    return next;
  }

  void write(ByteRange range, const Execution &execution, unsigned tensor) {
    auto old = find(range);
    while (old != results.end() && old->first < range.last)
      old = results.erase(old);
    results[range.first] = {range.last, &execution, tensor, false};
    auto next = written.upper_bound(range.first);
    if (next != written.begin() && std::prev(next)->second >= range.first)
      --next;
    while (next != written.end() && next->first <= range.last) {
      range.first = std::min(range.first, next->first);
      range.last = std::max(range.last, next->second);
      next = written.erase(next);
    }
    written[range.first] = range.last;
  }
};

/// Whether a core holds another slice of a tensor than it reads. Nothing is
/// said of tensors with other dimensions.
static bool differs(const Execution &left, unsigned leftTensor,
                    const Execution &right, unsigned rightTensor,
                    int64_t core) {
  auto slicesOf = [&](const Execution &execution, unsigned tensor,
                      SmallVectorImpl<std::array<int64_t, 4>> &dims) {
    const Sdsc &sdsc = *execution.sdsc;
    SmallVector<int64_t> slices;
    Geometry geometry = *getGeometry(sdsc, sdsc.tensors[tensor]);
    for (const TensorDim &dim : geometry.dims) {
      if (dim.scale != Scale::Present || sdsc.dims[dim.dim].size == 1)
        continue;
      dims.push_back(
          {sdsc.dims[dim.dim].size, dim.perCore, dim.stick, dim.stride});
      slices.push_back(sdsc.sliceOf(core, dim.dim));
    }
    return slices;
  };
  SmallVector<std::array<int64_t, 4>> leftDims, rightDims;
  SmallVector<int64_t> leftSlices = slicesOf(left, leftTensor, leftDims);
  SmallVector<int64_t> rightSlices = slicesOf(right, rightTensor, rightDims);
  return leftDims == rightDims && leftSlices != rightSlices;
}

class ScratchUse {
public:
  LogicalResult visit(ArrayRef<ExecutionNode> nodes, bool isAgain);
  LogicalResult checkResults();

private:
  LogicalResult visit(const Execution &execution, bool isAgain);
  Memory &memoryOf(const Place &place, int64_t core) {
    return memories[place.kind == Place::Pool ? 0 : core + 1];
  }
  FailureOr<ByteRange> getRange(const Execution &execution,
                                unsigned tensor) const;

  /// Iterations of the loops around.
  SmallVector<int64_t> counts;
  /// The pool, then the LX of each core.
  std::map<int64_t, Memory> memories;
};

} // namespace

/// The smallest range of bytes around all accesses of a tensor in all
/// iterations: of one core in LX, of all cores in the pool.
FailureOr<ByteRange> ScratchUse::getRange(const Execution &execution,
                                          unsigned tensor) const {
  const Sdsc &sdsc = *execution.sdsc;
  const Place &place = execution.places[tensor];
  Geometry geometry = *getGeometry(sdsc, sdsc.tensors[tensor]);
  int64_t sticks = geometry.span();
  if (place.kind == Place::Pool) {
    sticks = 1;
    for (const TensorDim &dim : geometry.dims) {
      int64_t size = dim.scale != Scale::Present || dim.isGathered
                         ? dim.extent
                         : std::min(sdsc.dims[dim.dim].size, dim.extent);
      sticks += (llvm::divideCeil(size, dim.stick) - 1) * dim.stride;
    }
  }
  ByteRange range{place.offset, 0};
  bool isTooFar = llvm::AddOverflow(place.offset, sticks * ::spyre::kStickBytes,
                                    range.last);
  for (auto [count, stride] : llvm::zip(counts, place.strides)) {
    int64_t distance;
    isTooFar |= llvm::MulOverflow(stride, count - 1, distance);
    int64_t &end = distance < 0 ? range.first : range.last;
    isTooFar |= llvm::AddOverflow(end, distance, end);
  }
  if (isTooFar)
    return FailureOr<ByteRange>(emitError(execution.loc)
                                << "Tensor" << tensor
                                << " moves beyond all addresses");
  return range;
}

LogicalResult ScratchUse::visit(const Execution &execution, bool isAgain) {
  const Sdsc &sdsc = *execution.sdsc;
  auto isScratch = [&](unsigned tensor) {
    return execution.places[tensor].kind != Place::Argument;
  };
  auto forEachMemory = [&](unsigned tensor, auto function) {
    const Place &place = execution.places[tensor];
    int64_t numMemories = place.kind == Place::Pool ? 1 : sdsc.numCores();
    for (int64_t core = 0; core < numMemories; ++core)
      if (failed(function(memoryOf(place, core), core)))
        return failure();
    return success();
  };
  auto read = [&](unsigned tensor) {
    FailureOr<ByteRange> range = getRange(execution, tensor);
    if (failed(range))
      return failure();
    return forEachMemory(tensor, [&](Memory &memory, int64_t core) {
      bool isPool = execution.places[tensor].kind == Place::Pool;
      auto found = memory.find(*range);
      if (!isPool && found != memory.results.end() &&
          found->first == range->first && found->second.last == range->last &&
          differs(*found->second.execution, found->second.tensor, execution,
                  tensor, core))
        return LogicalResult(emitError(execution.loc)
                             << "Tensor" << tensor
                             << " is read from LX of core " << core
                             << ", which holds another slice of it");
      for (; found != memory.results.end() && found->first < range->last;
           ++found)
        found->second.isRead = true;
      if (isAgain || memory.holds(*range))
        return success();
      return LogicalResult(
          emitError(execution.loc)
          << "Tensor" << tensor << " is read from bytes " << range->first
          << " to " << range->last - 1 << " of "
          << (isPool ? "the pool" : "LX of core " + std::to_string(core))
          << ", but no earlier operation has written all of them");
    });
  };
  for (ArrayRef<unsigned> operands :
       {ArrayRef(sdsc.inputs), ArrayRef(sdsc.indices)})
    for (unsigned tensor : operands)
      // Reductions list their results, too.
      if (isScratch(tensor) && !llvm::is_contained(sdsc.outputs, tensor) &&
          failed(read(tensor)))
        return failure();
  for (unsigned tensor : sdsc.outputs)
    if (isScratch(tensor)) {
      FailureOr<ByteRange> range = getRange(execution, tensor);
      if (failed(range))
        return failure();
      (void)forEachMemory(tensor, [&](Memory &memory, int64_t) {
        memory.write(*range, execution, tensor);
        return success();
      });
    }
  return success();
}

/// `isAgain`: in later iterations, which read what earlier ones have written.
LogicalResult ScratchUse::visit(ArrayRef<ExecutionNode> nodes, bool isAgain) {
  for (const ExecutionNode &node : nodes) {
    if (node.execution) {
      if (failed(visit(*node.execution, isAgain)))
        return failure();
      continue;
    }
    counts.push_back(node.count);
    LogicalResult result = visit(node.body, isAgain);
    if (succeeded(result) && !isAgain)
      result = visit(node.body, /*isAgain=*/true);
    counts.pop_back();
    if (failed(result))
      return failure();
  }
  return success();
}

LogicalResult ScratchUse::checkResults() {
  for (auto &[number, memory] : memories)
    for (auto &[first, result] : memory.results)
      if (!result.isRead)
        return emitError(result.execution->loc)
               << "Tensor" << result.tensor << " is left in "
               << (number == 0 ? "the pool" : "LX")
               << ", but no operation reads it: a bundle after the last one "
                  "may be missing";
  return success();
}

LogicalResult spyre::superdsc::checkScratchUse(ArrayRef<ExecutionNode> nodes,
                                               bool isWhole) {
  ScratchUse use;
  if (failed(use.visit(nodes, /*isAgain=*/false)))
    return failure();
  return isWhole ? use.checkResults() : success();
}
