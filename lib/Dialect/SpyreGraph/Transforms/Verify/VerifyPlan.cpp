//===- VerifyPlan.cpp - Independent check of planned functions --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
// Shares no code with the planners on purpose: slices are computed here core by
// core, lifetimes by a sweep over the operations.
//===----------------------------------------------------------------------===//

#include "LiveIntervals.h"
#include "PlanBoxes.h"
#include "PlanDivisions.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/DeviceOptions.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/TileOffset.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/PlanRules.h"
#include "VerifySizes.h"
#include "VerifyUpdates.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SmallBitVector.h"
#include <map>

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREVERIFYPLAN
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

class PlanVerifier : PlanLimits {
public:
  PlanVerifier(func::FuncOp func, const PlanLimits &limits)
      : PlanLimits(limits), func(func) {}

  LogicalResult run() {
    for (BlockArgument argument : func.getArguments())
      if (failed(verifyBuffer(argument, [&] { return func.emitError(); })))
        return failure();
    WalkResult result = func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      order[op] = order.size();
      return failed(verifyOperation(op)) ? WalkResult::interrupt()
                                         : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    return verifyPlacements();
  }

private:
  /// SG-PLAN-C15, and what the rules say of each operation.
  LogicalResult verifyOperation(Operation *op) {
    if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
      allocs.push_back(alloc);
      return verifyBuffer(alloc, [&] { return op->emitOpError(); });
    }
    if (auto tile = dyn_cast<memref::SubViewOp>(op))
      return verifyTile(tile);
    auto spyreOp = dyn_cast<SpyreOpInterface>(op);
    if (!spyreOp) {
      if (!isPartial &&
          llvm::any_of(op->getOperandTypes(), llvm::IsaPred<ShapedType>))
        return op->emitOpError("is not a device operation but uses a buffer");
      return success();
    }
    if (!isPartial && op->getNumResults() != 0)
      return op->emitOpError("is on tensors; plans are on buffers; "
                             "run --spyre-bufferize first");
    // Between two passes, what has not been decided need not be there.
    bool isDivided = !isPartial || spyreOp.getWorkDivision();
    auto areAll = [&](function_ref<bool(Type)> predicate) {
      return !isPartial || llvm::all_of(op->getOperandTypes(), predicate);
    };
    bool onBuffers = areAll(llvm::IsaPred<MemRefType>);
    bool haveLayouts = areAll([](Type type) { return !!getLayout(type); });
    memref::AllocOp result = getAlloc(spyreOp.getSpyreInit());
    return failure(
        (isDivided && failed(verifyDivision(spyreOp, *this))) ||
        failed(verifyBounds(spyreOp)) ||
        (isDivided && haveLayouts &&
         failed(verifyWrittenSticks(spyreOp, result && isInLX(result)))) ||
        (isDivided && onBuffers &&
         (failed(verifySlices(spyreOp)) || failed(verifySpans(spyreOp)) ||
          failed(verifyUpdate(spyreOp)))) ||
        (haveLayouts && failed(verifySticks(spyreOp))) ||
        (onBuffers && failed(verifyContents(spyreOp))));
  }

  /// SG-PLAN-C1
  LogicalResult verifyBuffer(Value value,
                             function_ref<InFlightDiagnostic()> emitError) {
    auto type = dyn_cast<MemRefType>(value.getType());
    if (!type) {
      if (isa<TensorType>(value.getType()) && !isPartial)
        return emitError() << "has a tensor, " << value.getType()
                           << "; plans are on buffers; run --spyre-bufferize "
                              "first";
      return success();
    }
    if (!type.hasStaticShape() || !type.getLayout().isIdentity())
      return emitError() << "expected a buffer of static shape and identity "
                            "layout map, found "
                         << type;
    auto layout =
        dyn_cast_or_null<VerifiableTensorEncoding>(type.getMemorySpace());
    if (!layout || !getLayout(type))
      return emitError() << "expected a layout as memory space, found " << type;
    return layout.verifyEncoding(type.getShape(), type.getElementType(),
                                 emitError);
  }

  static std::optional<TileOffset::Range> getOffsets(OpFoldResult offset) {
    std::optional<TileOffset> known = getTileOffset(offset);
    auto range = known ? known->getRange() : std::nullopt;
    return range && range->last >= range->first ? range : std::nullopt;
  }

  /// SG-PLAN-C9
  LogicalResult verifyTile(memref::SubViewOp tile) {
    Value whole = tile.getSource();
    auto alloc = whole.getDefiningOp<memref::AllocOp>();
    if (!alloc && !isa<BlockArgument>(whole))
      return tile.emitOpError("must be a tile of a buffer");
    if (alloc && isInLX(alloc))
      return tile.emitOpError(
          "must be a tile of a buffer in device memory, not in LX");
    auto layout = dyn_cast_or_null<LayoutAttr>(tile.getType().getMemorySpace());
    if (!layout || tile.getSourceType().getMemorySpace() != layout)
      return tile.emitOpError("must have the layout, relative to its shape, of "
                              "the buffer it is a tile of");
    ArrayRef<int64_t> shape = tile.getSourceType().getShape();
    if (tile.getDroppedDims().any())
      return tile.emitOpError("must keep all dimensions");
    for (int64_t dim = 0; dim < tile.getType().getRank(); ++dim) {
      std::optional<TileOffset::Range> offsets =
          getOffsets(tile.getMixedOffsets()[dim]);
      int64_t size = tile.getType().getDimSize(dim);
      if (!offsets || getConstantIntValue(tile.getMixedStrides()[dim]) != 1)
        return tile.emitOpError()
               << "must be dense in dimension " << dim
               << " and start at a constant or an induction variable";
      if (offsets->first < 0 || offsets->last + size > shape[dim])
        return tile.emitOpError()
               << "takes coordinates " << offsets->first << " to "
               << offsets->last + size - 1 << " of dimension " << dim
               << ", whose extent is " << shape[dim];
      if (!getTileOffset(tile.getMixedOffsets()[dim])
               ->isMultipleOf(getStepsPerStick(layout, shape, dim)))
        return tile.emitOpError()
               << "starts inside a stick of dimension " << dim;
    }
    return success();
  }

  /// The buffer that a tile is part of, or the buffer itself.
  static memref::AllocOp getAlloc(Value buffer) {
    if (auto tile = buffer.getDefiningOp<memref::SubViewOp>())
      buffer = tile.getSource();
    return buffer.getDefiningOp<memref::AllocOp>();
  }

  /// The coordinates [low, high] of a dimension of an operand as coordinates of
  /// the whole buffer, over all iterations of the loops, and whether those in
  /// between are all among them.
  static bool widenToBuffer(Value operand, unsigned dim, int64_t &low,
                            int64_t &high) {
    auto tile = operand.getDefiningOp<memref::SubViewOp>();
    if (!tile)
      return true;
    TileOffset::Range offsets = *getOffsets(tile.getMixedOffsets()[dim]);
    bool dense = offsets.step == 0 || high - low + 1 >= offsets.step;
    low += offsets.first;
    high += offsets.last;
    return dense;
  }

  /// SG-PLAN-C8 for a buffer that a loop writes tile by tile: in that loop only
  /// the tile just written holds something.
  LogicalResult verifyReadInLoops(SpyreOpInterface op, OpOperand &operand,
                                  memref::AllocOp alloc) {
    for (memref::SubViewOp written : writtenTiles.lookup(alloc))
      for (auto [dim, offset] : llvm::enumerate(written.getMixedOffsets())) {
        scf::ForOp loop = getTileOffset(offset)->loop;
        if (!loop || !loop->isAncestor(op))
          continue;
        auto read = operand.get().getDefiningOp<memref::SubViewOp>();
        if (read && read.getMixedOffsets()[dim] == offset &&
            read.getType().getDimSize(dim) <= written.getType().getDimSize(dim))
          continue;
        return op->emitOpError()
               << "reads tiles of operand " << operand.getOperandNumber()
               << " that the loop around it may not have written";
      }
    return success();
  }

  /// SG-PLAN-C4
  LogicalResult verifyBounds(SpyreOpInterface op) {
    SmallVector<int64_t> extents = op.getLoopExtents();
    if (llvm::is_contained(extents, 0))
      return success();
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    for (OpOperand &operand : op->getOpOperands()) {
      unsigned number = operand.getOperandNumber();
      ArrayRef<int64_t> shape = shapeOf(operand.get());
      for (auto [dim, expr] : llvm::enumerate(maps[number].getResults())) {
        if (indirect && indirect->operand == number &&
            indirect->dim == static_cast<int64_t>(dim))
          continue;
        auto [low, high] = getRange(expr, extents);
        if (low < 0 || high >= shape[dim])
          return op->emitOpError()
                 << "accesses coordinates " << low << " to " << high
                 << " of dimension " << dim << " of operand " << number
                 << ", whose extent is " << shape[dim];
      }
    }
    return success();
  }

  /// SG-PLAN-C7
  LogicalResult verifySlices(SpyreOpInterface op) {
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    SmallVector<int64_t> extents = op.getLoopExtents();
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    bool crossesCores = llvm::any_of(
        llvm::seq<unsigned>(0, op->getNumOperands()), [&](unsigned operand) {
          return op.getAccessDivision(operand) != op.getWorkDivision();
        });
    for (OpOperand &operand : op->getOpOperands()) {
      auto alloc = operand.get().getDefiningOp<memref::AllocOp>();
      unsigned number = operand.getOperandNumber();
      if (!alloc || !isInLX(alloc)) {
        // SG-PLAN-C12
        if (crossesCores)
          return op->emitOpError() << "moves operand " << number
                                   << " between cores, but it is not in LX";
        continue;
      }
      PlacementAttr placement = getPlacement(alloc);
      WorkDivisionAttr division = op.getAccessDivision(number);
      if (indirect && indirect->operand == number)
        return op->emitOpError()
               << "accesses operand " << number << " in LX through indices";
      // Empty loops read nothing.
      if (number + 1 < op->getNumOperands() && llvm::is_contained(extents, 0))
        continue;
      std::vector<Box> boxes(cores);
      for (int64_t core = 0; core < cores; ++core)
        if (!planBoxes.getBox(maps[number], extents, division, core,
                              boxes[core]))
          return op->emitOpError()
                 << "accesses operand " << number << " in LX through the map "
                 << AffineMapAttr::get(maps[number])
                 << ", whose coordinates on core " << core << " are not a box";
      if (llvm::all_of(boxes, [](const Box &box) { return box.isEmpty(); }))
        continue;
      const std::vector<Box> &held =
          heldBoxes.try_emplace(alloc, boxes).first->second;
      for (int64_t core = 0; core < cores; ++core)
        if (!isHeld(held, boxes, core)) {
          InFlightDiagnostic diagnostic =
              op->emitOpError()
              << "core " << core << " accesses a slice of operand " << number
              << " that it does not hold in LX";
          diagnostic.attachNote(alloc.getLoc())
              << "the buffer is allocated here";
          return diagnostic;
        }
      if (failed(verifyHeldBoxes(alloc, placement, boxes)))
        return failure();
    }
    return success();
  }

  /// SG-PLAN-C7
  LogicalResult verifyHeldBoxes(memref::AllocOp alloc, PlacementAttr placement,
                                ArrayRef<Box> boxes) {
    ArrayRef<int64_t> local = placement.getLocal();
    ArrayRef<int64_t> shape = alloc.getType().getShape();
    LayoutAttrInterface layout = getLayout(alloc.getType());
    if (!isa<LayoutAttr>(layout))
      return alloc->emitOpError(
          "a buffer in LX must have a layout relative to its shape");
    llvm::SmallBitVector isWhole(shape.size());
    for (unsigned dim = 0; dim < shape.size(); ++dim)
      isWhole[dim] = isSameOnAllCores(boxes, dim);
    for (auto [core, box] : llvm::enumerate(boxes)) {
      if (box.isEmpty())
        continue;
      for (unsigned dim = 0; dim < shape.size(); ++dim) {
        auto [low, high] = box.dims[dim];
        if (isWhole[dim])
          low = 0;
        if (high - low > local[dim])
          return alloc->emitOpError()
                 << "core " << core << " needs " << high - low
                 << " coordinates of dimension " << dim
                 << ", but the placement has " << local[dim];
        if (low % getStepsPerStick(layout, shape, dim) != 0)
          return alloc->emitOpError()
                 << "the slice of core " << core << " starts at coordinate "
                 << low << " of dimension " << dim << ", inside a stick";
      }
    }
    return success();
  }

  /// SG-PLAN-C10
  LogicalResult verifySpans(SpyreOpInterface op) {
    for (OpOperand &operand : op->getOpOperands()) {
      // A tile's sticks are as far apart as those of its buffer.
      Value buffer = operand.get();
      if (auto tile = buffer.getDefiningOp<memref::SubViewOp>())
        buffer = tile.getSource();
      auto type = cast<MemRefType>(buffer.getType());
      memref::AllocOp alloc = getAlloc(buffer);
      if (getLayout(type).getSizeInBytes(type.getShape()) <= maxSpanBytes ||
          (alloc && isInLX(alloc)))
        continue;
      unsigned number = operand.getOperandNumber();
      int64_t span = getPlannedSpan(op, number, type);
      if (span > maxSpanBytes)
        return withPlanRule(
            op->emitOpError()
                << "operand " << number << " has a span of " << span
                << " bytes of device memory per core, of which " << maxSpanBytes
                << " can be addressed; divide an outer dimension of its layout "
                   "over more cores, or the operation into several",
            kSpanRule);
    }
    return success();
  }

  /// SG-PLAN-C11
  LogicalResult verifySticks(SpyreOpInterface op) {
    if (op.getLayoutRule() != LayoutRule::Pointwise || op->getNumOperands() < 3)
      return success();
    SmallVector<int64_t> extents = op.getLoopExtents();
    if (llvm::is_contained(extents, 0))
      return success();
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    std::optional<std::pair<unsigned, unsigned>> first;
    for (OpOperand &operand : op->getOpOperands()) {
      unsigned number = operand.getOperandNumber();
      int64_t stickDim = getLayout(operand.get().getType())
                             .getStickDim(shapeOf(operand.get()));
      if (stickDim < 0)
        continue;
      auto dim = dyn_cast<AffineDimExpr>(maps[number].getResult(stickDim));
      if (!dim || extents[dim.getPosition()] <= 1)
        continue;
      if (!first)
        first = {number, dim.getPosition()};
      else if (first->second != dim.getPosition())
        return op->emitOpError() << "operand " << number
                                 << " has its sticks along loop dimension "
                                 << dim.getPosition() << ", but operand "
                                 << first->first << " along " << first->second;
    }
    return success();
  }

  /// SG-PLAN-C8
  LogicalResult verifyContents(SpyreOpInterface op) {
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    SmallVector<int64_t> extents = op.getLoopExtents();
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    unsigned initNumber = op->getNumOperands() - 1;
    for (OpOperand &operand : op->getOpOperands()) {
      memref::AllocOp alloc = getAlloc(operand.get());
      if (!alloc)
        continue;
      unsigned number = operand.getOperandNumber();
      // Empty loops read nothing, but a reduction over nothing still writes.
      bool empty = false;
      for (unsigned dim = 0; dim < extents.size(); ++dim)
        empty |= extents[dim] == 0 &&
                 (number != initNumber || maps[number].isFunctionOfDim(dim));
      if (empty)
        continue;
      ArrayRef<int64_t> shape = alloc.getType().getShape();
      bool throughIndex = indirect && indirect->operand == number;
      auto [missing, isNew] = missingParts.try_emplace(alloc);
      if (isNew) {
        Box &whole = missing->second.emplace_back();
        for (int64_t extent : shape)
          whole.dims.push_back({0, extent});
        if (whole.isEmpty())
          missing->second.clear();
      }
      Box accessed;
      bool isBox = true;
      for (auto [dim, expr] : llvm::enumerate(maps[number].getResults())) {
        auto [low, high] = getRange(expr, extents);
        if (throughIndex && indirect->dim == static_cast<int64_t>(dim)) {
          high = shapeOf(operand.get())[dim] - 1;
          if (auto contents = alloc->getAttrOfType<DenseI64ArrayAttr>(
                  kBoundContentsAttrName))
            high = contents[dim] - 1;
        }
        isBox &= widenToBuffer(operand.get(), dim, low, high);
        accessed.dims.push_back({low, high + 1});
      }
      if (number != initNumber) {
        if (failed(verifyReadInLoops(op, operand, alloc)))
          return failure();
        SmallVector<Box> unread;
        for (const Box &part : missing->second)
          subtract(part, accessed, unread);
        if (!sameVolume(unread, missing->second)) {
          InFlightDiagnostic diagnostic = op->emitOpError()
                                          << "reads parts of operand " << number
                                          << " that have not been written";
          diagnostic.attachNote(alloc.getLoc())
              << "the buffer is allocated here";
          return diagnostic;
        }
        continue;
      }
      if (auto tile = operand.get().getDefiningOp<memref::SubViewOp>())
        writtenTiles[alloc].push_back(tile);
      std::optional<Box> written;
      if (!throughIndex && isBox)
        written = rowParts[alloc].add(maps[number], extents, accessed,
                                      operand.get() == alloc.getResult());
      if (!written)
        continue;
      SmallVector<Box> stillMissing;
      for (const Box &part : missing->second)
        subtract(part, *written, stillMissing);
      missing->second = std::move(stillMissing);
    }
    return success();
  }

  static bool sameVolume(ArrayRef<Box> a, ArrayRef<Box> b) {
    auto volume = [](ArrayRef<Box> boxes) {
      double sum = 0;
      for (const Box &box : boxes) {
        double product = 1;
        for (auto [low, high] : box.dims)
          product *= high - low;
        sum += product;
      }
      return sum;
    };
    return volume(a) == volume(b);
  }

  /// SG-PLAN-C5 and SG-PLAN-C6
  LogicalResult verifyPlacements() {
    int64_t poolSize = 0;
    if (auto attribute = func->getAttrOfType<IntegerAttr>(
            SpyreGraphDialect::getPoolSizeAttrName()))
      poolSize = attribute.getInt();
    std::vector<Interval> inPool, inScratchpad;
    for (memref::AllocOp alloc : allocs) {
      PlacementAttr placement = getPlacement(alloc);
      if (!placement && isPartial)
        continue;
      if (!placement)
        return alloc->emitOpError("has no placement");
      // Passes make attributes without having them checked.
      if (failed(PlacementAttr::verify(
              [&] { return alloc->emitOpError("its placement: "); },
              placement.getSpace(), placement.getOffset(),
              placement.getLocal())))
        return failure();
      bool isLX = placement.getSpace() == MemorySpace::lx;
      int64_t limit = isLX ? scratchpadBytes : poolSize;
      int64_t sizeInBytes =
          getLayout(alloc.getType())
              .getSizeInBytes(isLX ? placement.getLocal()
                                   : alloc.getType().getShape());
      int64_t begin = placement.getOffset();
      if (sizeInBytes > limit - begin)
        return alloc->emitOpError()
               << "bytes " << begin << " to " << begin + sizeInBytes
               << " are outside the " << (isLX ? "scratchpad" : "pool")
               << " of " << limit << " bytes";
      if (alloc->use_empty() || sizeInBytes == 0)
        continue;
      Interval interval{begin, begin + sizeInBytes,
                        std::numeric_limits<int64_t>::max(), 0, alloc};
      for (Operation *user : getUsersOfBuffer(alloc)) {
        // A use inside a loop lasts from the loop's begin to its end.
        Operation *outermost = user;
        while (outermost->getBlock() != alloc->getBlock())
          outermost = outermost->getParentOp();
        Operation *last = outermost;
        while (last->getNumRegions() != 0 &&
               !last->getRegions().back().empty() &&
               !last->getRegions().back().back().empty())
          last = &last->getRegions().back().back().back();
        if (order.lookup(outermost) <= interval.first) {
          interval.first = order.lookup(outermost);
          interval.firstUser = outermost;
        }
        if (order.lookup(last) >= interval.last) {
          interval.last = order.lookup(last);
          interval.lastUser = outermost;
        }
      }
      (isLX ? inScratchpad : inPool).push_back(interval);
    }
    return failure(failed(verifyDisjoint(inPool)) ||
                   failed(verifyDisjoint(inScratchpad)));
  }

  /// Users of a buffer and of its tiles.
  static SmallVector<Operation *> getUsersOfBuffer(memref::AllocOp alloc) {
    SmallVector<Operation *> users;
    for (Operation *user : alloc->getUsers()) {
      users.push_back(user);
      if (isa<memref::SubViewOp>(user))
        llvm::append_range(users, user->getUsers());
    }
    return users;
  }

  static PlacementAttr getPlacement(memref::AllocOp alloc) {
    return alloc->getAttrOfType<PlacementAttr>(
        SpyreGraphDialect::getPlacementAttrName());
  }

  static bool isInLX(memref::AllocOp alloc) {
    PlacementAttr placement = getPlacement(alloc);
    return placement && placement.getSpace() == MemorySpace::lx;
  }

  func::FuncOp func;
  DenseMap<Operation *, int64_t> order;
  SmallVector<memref::AllocOp> allocs;
  DenseMap<Operation *, std::vector<Box>> heldBoxes;
  PlanBoxes planBoxes;
  DenseMap<Operation *, SmallVector<Box>> missingParts;
  DenseMap<Operation *, RowParts> rowParts;
  DenseMap<Operation *, SmallVector<memref::SubViewOp>> writtenTiles;
};

class VerifyPlanPass
    : public spyre_graph::impl::SpyreVerifyPlanBase<VerifyPlanPass> {
public:
  using SpyreVerifyPlanBase::SpyreVerifyPlanBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    DeviceOptions options;
    options.cores = cores;
    options.capacity = capacity;
    options.lxFraction = lxFraction;
    options.maxSpan = maxSpan;
    FailureOr<::spyre::DeviceSpec> spec = options.apply(getOperation());
    if (failed(spec))
      return signalPassFailure();
    PlanLimits limits{spec->numCores, spec->usableLXBytes(), spec->maxSpanBytes,
                      partial};
    auto verify = [&](func::FuncOp function) {
      return PlanVerifier(function, limits).run();
    };
    if (failed(verify(getOperation())))
      return signalPassFailure();
    limits.mayBeEmpty = true;
    if (!partial && failed(verifySizes(getOperation(), verify))) // SG-PLAN-C13
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
