// SPDX-License-Identifier: Apache-2.0
//===- Strict.cpp - What the verifiers leave open -------------------------===//

#include "Strict.h"

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "Spyre/Dialect/KTIR/Transforms/Passes.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::ktdp {
#define GEN_PASS_DEF_KTDPSTRICT
#include "Spyre/Dialect/KTIR/Transforms/Passes.h.inc"
} // namespace mlir::ktdp

using namespace mlir;
using namespace mlir::ktdp;

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

static LogicalResult checkView(ConstructMemoryViewOp view) {
  auto type = cast<MemRefType>(view.getType());
  ArrayRef<int64_t> sizes = view.getStaticSizes();
  ArrayRef<int64_t> strides = view.getStaticStrides();
  LogicalResult result = success();
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    // KTDP-STRICT-C1
    int64_t declared = type.getDimSize(dim);
    if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(declared) &&
        size != declared)
      result = view.emitOpError("size ")
               << size << " of dimension " << dim << " differs from " << type;
  }
  // KTDP-STRICT-C2
  IntegerSet set = view.getCoordinateSet();
  if (set.getNumDims() != sizes.size() ||
      set.getNumSymbols() > view.getSizes().size())
    result = view.emitOpError("coordinate_set has ")
             << set.getNumDims() << " dimensions and " << set.getNumSymbols()
             << " symbols, expected " << sizes.size()
             << " dimensions and at most " << view.getSizes().size()
             << " symbols, one per dynamic size";
  // KTDP-STRICT-C3
  if (Attribute space = type.getMemorySpace();
      space && space != Attribute(view.getMemorySpace()))
    result = view.emitOpError("memory space of ")
             << type << " differs from the view's " << view.getMemorySpace();
  // KTDP-STRICT-C4
  SmallVector<int64_t> layoutStrides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(layoutStrides, offset))) {
    result = view.emitOpError("layout of ") << type << " has no strides";
    return result;
  }
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    int64_t declared = layoutStrides[dim];
    if (sizes[dim] == 1 || ShapedType::isDynamic(stride) ||
        ShapedType::isDynamic(declared) || stride == declared)
      continue;
    result = view.emitOpError("stride ")
             << stride << " of dimension " << dim << " differs from "
             << declared << ", that of " << type;
  }
  return result;
}

namespace {
/// Inclusive bounds of a partition, both constant.
struct ConstantBox {
  SmallVector<int64_t> lower, upper;
};
} // namespace

static std::optional<ConstantBox> getConstantBox(IntegerSet set) {
  std::optional<BoxBounds> bounds = matchBoxSet(set);
  if (!bounds)
    return std::nullopt;
  ConstantBox box;
  for (auto [low, high] : llvm::zip_equal(bounds->lower, bounds->upper)) {
    auto lower = dyn_cast<AffineConstantExpr>(low);
    auto upper = dyn_cast<AffineConstantExpr>(high);
    if (!lower || !upper)
      return std::nullopt;
    box.lower.push_back(lower.getValue());
    box.upper.push_back(upper.getValue());
  }
  return box;
}

static LogicalResult
checkDistributedView(ConstructDistributedMemoryViewOp view) {
  // KTDP-STRICT-C10
  if (view.getPartitions().empty())
    return view.emitOpError("expected at least one partition");
  auto type = cast<MemRefType>(view.getType());
  SmallVector<ConstantBox> boxes;
  for (Value partition : view.getPartitions()) {
    auto part = partition.getDefiningOp<ConstructMemoryViewOp>();
    std::optional<ConstantBox> box;
    if (part)
      box = getConstantBox(part.getCoordinateSet());
    // The runtime checks what depends on values that only it knows.
    if (!box || static_cast<int64_t>(box->lower.size()) != type.getRank())
      return success();
    boxes.push_back(*box);
  }
  LogicalResult result = success();
  // KTDP-STRICT-C11
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    int64_t extent = 0;
    for (const ConstantBox &box : boxes)
      extent = std::max(extent, box.upper[dim] + 1);
    if (!type.isDynamicDim(dim) && type.getDimSize(dim) != extent)
      result = view.emitOpError("declared size ")
               << type.getDimSize(dim) << " of dimension " << dim
               << " does not match the partitions' extent " << extent;
  }
  // KTDP-STRICT-C12
  for (auto [i, box] : llvm::enumerate(boxes))
    for (size_t j = 0; j < i; ++j) {
      bool overlap = true;
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        overlap &= box.lower[dim] <= boxes[j].upper[dim] &&
                   boxes[j].lower[dim] <= box.upper[dim];
      if (overlap)
        return view.emitOpError("partitions ")
               << j << " and " << i << " overlap";
    }
  // KTDP-STRICT-C13
  if (failed(result) || !type.hasStaticShape())
    return result;
  int64_t held = 0;
  for (const ConstantBox &box : boxes) {
    int64_t points = 1;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      points *= std::max<int64_t>(box.upper[dim] - box.lower[dim] + 1, 0);
    held += points;
  }
  if (held != type.getNumElements())
    return view.emitOpError("partitions hold ")
           << held << " of the " << type.getNumElements() << " elements of "
           << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

static LogicalResult checkTile(Operation *op, IntegerSet set, AffineMap order,
                               AccessTileType type, size_t numSubscripts,
                               Type base) {
  LogicalResult result = success();
  // KTDP-STRICT-C5
  if (auto shaped = dyn_cast<ShapedType>(base);
      shaped.hasRank() &&
      static_cast<size_t>(shaped.getRank()) != numSubscripts)
    result = op->emitOpError("expected one subscript per dimension of ")
             << base << ", but got " << numSubscripts;
  // KTDP-STRICT-C7
  if (!order.isPermutation())
    return op->emitOpError("order must permute its dimensions, but got ")
           << AffineMapAttr::get(order);
  // KTDP-STRICT-C6
  std::optional<BoxBounds> bounds = matchBoxSet(set);
  if (!bounds)
    return result;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    unsigned setDim = order.getDimPosition(dim);
    auto lower = dyn_cast<AffineConstantExpr>(bounds->lower[setDim]);
    auto upper = dyn_cast<AffineConstantExpr>(bounds->upper[setDim]);
    int64_t extent;
    if (!lower || !upper ||
        llvm::SubOverflow(upper.getValue(), lower.getValue(), extent) ||
        llvm::AddOverflow(extent, int64_t(1), extent))
      continue;
    extent = std::max<int64_t>(extent, 0);
    int64_t size = type.getDimSize(dim);
    if (!ShapedType::isDynamic(size) && size != extent)
      result = op->emitOpError("dimension ")
               << dim << " of " << type << " has " << size
               << " points, its set " << extent;
  }
  return result;
}

static LogicalResult checkIndices(ConstructIndirectAccessTileOp tile) {
  LogicalResult result = success();
  for (Value memref : tile.getIndexMemrefs()) {
    // KTDP-STRICT-C9
    Type element = cast<MemRefType>(memref.getType()).getElementType();
    if (!element.isIntOrIndex() || element.isInteger(1))
      result = tile.emitOpError("index memref must hold integers, but got ")
               << memref.getType();
  }
  return result;
}

static LogicalResult checkElementType(Operation *op, Value tile, Type data) {
  // KTDP-STRICT-C8
  Type element = getBaseElementType(tile);
  Type own = cast<ShapedType>(data).getElementType();
  if (!element || element == own)
    return success();
  return op->emitOpError("data tile has element type ")
         << own << ", its view " << element;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct KTDPStrict : public ktdp::impl::KTDPStrictBase<KTDPStrict> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    markAllAnalysesPreserved();
    bool isLegal = true;
    auto check = [&](LogicalResult result) { isLegal &= succeeded(result); };
    function.walk([&](Operation *op) {
      if (auto view = dyn_cast<ConstructMemoryViewOp>(op)) {
        check(checkView(view));
      } else if (auto view = dyn_cast<ConstructDistributedMemoryViewOp>(op)) {
        check(checkDistributedView(view));
      } else if (auto tile = dyn_cast<ConstructAccessTileOp>(op)) {
        check(checkTile(tile, tile.getAccessTileSet(),
                        tile.getAccessTileOrder(), tile.getType(),
                        tile.getBaseMap().getNumResults(),
                        tile.getBase().getType()));
      } else if (auto tile = dyn_cast<ConstructIndirectAccessTileOp>(op)) {
        check(checkTile(tile, tile.getVariablesSpaceSet(),
                        tile.getVariablesSpaceOrder(), tile.getType(),
                        tile.getPerDimSubscriptKinds().size(),
                        tile.getBase().getType()));
        check(checkIndices(tile));
      } else if (auto load = dyn_cast<LoadOp>(op)) {
        check(checkElementType(load, load.getTile(), load.getType()));
      } else if (auto store = dyn_cast<StoreOp>(op)) {
        check(checkElementType(store, store.getTile(),
                               store.getData().getType()));
      }
    });
    FailureOr<std::optional<SmallVector<int64_t>>> grid = getGrid(function);
    if (failed(grid))
      return signalPassFailure();
    int64_t numCores = 1;
    if (grid->has_value())
      for (int64_t size : **grid)
        if (llvm::MulOverflow(numCores, size, numCores))
          numCores = std::numeric_limits<int64_t>::max();
    check(checkInterTile(function, numCores));
    if (!isLegal)
      signalPassFailure();
  }
};
} // namespace
