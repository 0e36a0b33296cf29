//===- LXPlanning.cpp - Buffers in the cores' scratchpads -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Access.h"
#include "Liveness.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYRELXPLANNING
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

class LXPlanningPass
    : public spyre_graph::impl::SpyreLXPlanningBase<LXPlanningPass> {
public:
  using SpyreLXPlanningBase::SpyreLXPlanningBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (solver != "greedy") {
      func.emitError() << "unknown solver '" << solver.getValue()
                       << "', expected 'greedy'";
      return signalPassFailure();
    }
    if (capacity < 0 || !(lxFraction >= 0 && lxFraction <= 1)) {
      func.emitError() << "expected a capacity of at least 0 and a fraction "
                          "from 0 to 1, found "
                       << capacity.getValue() << " and "
                       << lxFraction.getValue();
      return signalPassFailure();
    }
    StringRef attrName = SpyreGraphDialect::getPlacementAttrName();
    FirstFit memory(static_cast<int64_t>(static_cast<double>(capacity) *
                                         (1.0 - lxFraction)));
    for (BufferLifetime &lifetime : getBufferLifetimes(func)) {
      if (lifetime.alloc->hasAttr(attrName))
        continue;
      std::optional<Slicing> slicing = getCommonSlicing(lifetime);
      if (!slicing) {
        ++numIneligible;
        continue;
      }
      SmallVector<int64_t> local = slicing->getLocalShape();
      int64_t sizeInBytes =
          getLayout(lifetime.alloc.getType()).getSizeInBytes(local);
      std::optional<int64_t> offset =
          memory.place(sizeInBytes, lifetime.first, lifetime.last);
      if (!offset) {
        ++numNotFitting;
        continue;
      }
      lifetime.alloc->setAttr(attrName, PlacementAttr::get(func.getContext(),
                                                           MemorySpace::lx,
                                                           *offset, local));
      ++numPlaced;
    }
  }

private:
  /// The slices in which every user accesses the buffer, if they agree and the
  /// whole buffer is accessed.
  static std::optional<Slicing> getCommonSlicing(BufferLifetime &lifetime) {
    MemRefType type = lifetime.alloc.getType();
    // Slices of a layout that is relative to the shape have that layout too.
    if (!isa_and_nonnull<LayoutAttr>(type.getMemorySpace()))
      return std::nullopt;
    std::optional<Slicing> common;
    for (Operation *user : lifetime.users) {
      auto op = dyn_cast<SpyreOpInterface>(user);
      WorkDivisionAttr division = op ? op.getWorkDivision() : nullptr;
      // A core's LX outlives its loops, but slices of tiles differ by tile.
      if (!division || user->getBlock() != lifetime.alloc->getBlock())
        return std::nullopt;
      SmallVector<int64_t> extents = op.getLoopExtents();
      SmallVector<AffineMap> maps = op.getIndexingMaps();
      std::optional<IndirectAccess> indirect = op.getIndirectAccess();
      for (OpOperand &operand : user->getOpOperands()) {
        if (operand.get() != lifetime.alloc.getResult())
          continue;
        unsigned number = operand.getOperandNumber();
        if (indirect && indirect->operand == number)
          return std::nullopt;
        std::optional<Slicing> slicing = getSlicing(
            maps[number], extents, division.getSplits(), division.getChunks());
        if (!slicing || !slicing->covers(type.getShape()) ||
            (common && !(*common == *slicing)))
          return std::nullopt;
        common = std::move(slicing);
      }
    }
    // A slice must be whole sticks, else it has another lane in LX.
    int64_t stickDim =
        cast<LayoutAttr>(type.getMemorySpace()).getStickDim(type.getShape());
    if (common && stickDim >= 0 && common->dims[stickDim].split > 1 &&
        common->dims[stickDim].chunk % getStickElements(getLayout(type)) != 0)
      return std::nullopt;
    return common;
  }
};

} // namespace
