//===- MemoryPlanning.cpp - Buffers in the device-memory pool ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Liveness.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREMEMORYPLANNING
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

class MemoryPlanningPass
    : public spyre_graph::impl::SpyreMemoryPlanningBase<MemoryPlanningPass> {
public:
  using SpyreMemoryPlanningBase::SpyreMemoryPlanningBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    StringRef attrName = SpyreGraphDialect::getPlacementAttrName();

    // An allocation that nothing uses needs no memory.
    func.walk([](memref::AllocOp alloc) {
      if (alloc->use_empty())
        alloc.erase();
    });

    FirstFit pool(/*capacity=*/-1);
    for (BufferLifetime &lifetime : getBufferLifetimes(func)) {
      memref::AllocOp alloc = lifetime.alloc;
      if (alloc->hasAttr(attrName))
        continue;
      LayoutAttrInterface layout = getLayout(alloc.getType());
      if (!layout) {
        alloc.emitError("expected a layout as memory space, found ")
            << alloc.getType();
        return signalPassFailure();
      }
      int64_t sizeInBytes = layout.getSizeInBytes(alloc.getType().getShape());
      std::optional<int64_t> offset =
          pool.place(sizeInBytes, lifetime.first, lifetime.last);
      assert(offset && "the pool has no limit");
      alloc->setAttr(attrName,
                     PlacementAttr::get(func.getContext(), MemorySpace::pool,
                                        *offset, ArrayRef<int64_t>()));
      ++numPlaced;
      unsharedBytes += sizeInBytes;
    }
    func->setAttr(SpyreGraphDialect::getPoolSizeAttrName(),
                  IntegerAttr::get(IntegerType::get(func.getContext(), 64),
                                   pool.getHighWater()));
    poolBytes += pool.getHighWater();
  }
};

} // namespace
