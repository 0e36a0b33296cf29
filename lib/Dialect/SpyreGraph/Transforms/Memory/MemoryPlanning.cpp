//===- MemoryPlanning.cpp - Buffers in the device-memory pool ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Liveness.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/Stage.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "Spyre/Planning/BufferAllocation.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Remarks.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREMEMORYPLANNING
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;
namespace planning = ::spyre::planning;

namespace {

/// Limit of the exact search, in nodes per function; the timeout is never
/// reached, because a plan must not depend on the clock.
constexpr int64_t kMaxSearchNodes = 5000;
constexpr double kNoTimeout = 1e8;

class MemoryPlanningPass
    : public spyre_graph::impl::SpyreMemoryPlanningBase<MemoryPlanningPass> {
public:
  using SpyreMemoryPlanningBase::SpyreMemoryPlanningBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    if (failed(checkBufferized(func))) // SG-MEMORY-C1
      return signalPassFailure();
    StringRef attrName = SpyreGraphDialect::getPlacementAttrName(),
              poolSizeName = SpyreGraphDialect::getPoolSizeAttrName();

    // An allocation that nothing uses needs no memory.
    func.walk([](memref::AllocOp alloc) {
      if (alloc->use_empty())
        alloc.erase();
    });

    std::vector<BufferLifetime> lifetimes = getBufferLifetimes(func);
    llvm::erase_if(lifetimes, [&](const BufferLifetime &lifetime) {
      return lifetime.alloc->hasAttr(attrName);
    });
    // Buffers that have a place in a pool keep it; the others come after it.
    auto given = func->getAttrOfType<IntegerAttr>(poolSizeName);
    int64_t kept = given ? given.getInt() : 0;
    planning::AllocationProblem problem;
    problem.alignment = ::spyre::kStickBytes;
    for (BufferLifetime &lifetime : lifetimes) {
      memref::AllocOp alloc = lifetime.alloc;
      LayoutAttrInterface layout = getLayout(alloc.getType());
      if (!layout) {
        alloc.emitError("expected a layout as memory space, found ")
            << alloc.getType();
        return signalPassFailure();
      }
      // Of a buffer that device operations use, their verifier has asked this.
      if (failed(cast<VerifiableTensorEncoding>(layout).verifyEncoding(
              alloc.getType().getShape(), alloc.getType().getElementType(),
              [&] { return alloc.emitError("has a buffer whose "); })))
        return signalPassFailure();
      planning::Buffer buffer;
      buffer.lower = lifetime.first;
      buffer.upper = lifetime.last + 1;
      // A buffer without elements has an address too.
      buffer.size = std::max(layout.getSizeInBytes(alloc.getType().getShape()),
                             ::spyre::kStickBytes);
      problem.buffers.push_back(buffer);
      unsharedBytes += buffer.size;
    }
    planning::SolveOptions options;
    options.maxNodes = kMaxSearchNodes;
    options.timeoutSeconds = kNoTimeout;
    planning::SolveResult result = planning::minimizeHeight(problem, options);
    int64_t poolSize = 0;
    kept = llvm::divideCeilSigned(kept, ::spyre::kStickBytes);
    if (kept < 0 || llvm::MulOverflow(kept, ::spyre::kStickBytes, kept) ||
        llvm::AddOverflow(kept, result.height, poolSize)) {
      func.emitError() << poolSizeName
                       << " must not be negative and leave room "
                       << "for " << result.height << " bytes more, but is "
                       << given.getInt();
      return signalPassFailure();
    }
    for (auto [lifetime, offset] : llvm::zip_equal(lifetimes, result.offsets))
      lifetime.alloc->setAttr(
          attrName, PlacementAttr::get(func.getContext(), MemorySpace::pool,
                                       kept + offset, ArrayRef<int64_t>()));
    func->setAttr(
        poolSizeName,
        IntegerAttr::get(IntegerType::get(func.getContext(), 64), poolSize));
    numPlaced += lifetimes.size();
    poolBytes += result.height;
    remark::analysis(func.getLoc(), remark::RemarkOpts::name("pool")
                                        .category("spyre-memory-planning")
                                        .function(func.getName()))
        << ("a pool of " + Twine(result.height) + " bytes for " +
            Twine(lifetimes.size()) + " buffers; no pool is smaller than " +
            Twine(result.lowerBound))
               .str();
  }
};

} // namespace
