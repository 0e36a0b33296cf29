// SPDX-License-Identifier: Apache-2.0
//===- KernelAccess.cpp - Access tiles of operands -*- C++ -*-===//

#include "KernelBuilder.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/IR/Slicing.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Whether the coordinates that a core accesses are a box, in which its local
/// iterations have the coordinates that the map says.
static bool isLocal(SpyreOpInterface op, unsigned operand,
                    ArrayRef<int64_t> part, ArrayRef<int64_t> whole) {
  std::optional<Slicing> slicing = getSlicing(op, operand);
  if (!slicing)
    return false;
  for (auto [dim, own, all] : llvm::zip_equal(slicing->dims, part, whole))
    if (dim.offset != 0 && (dim.split != 1 || own != all))
      return false;
  return true;
}

Value KernelBuilder::buildView(unsigned operand) {
  const OperandStorage &place = storage[operand];
  MLIRContext *context = builder.getContext();
  auto space = place.isInLX ? ktdp::MemorySpaceAttr::getCtLocal(context)
                            : ktdp::MemorySpaceAttr::getGlobal(context);
  return ktdp::ConstructMemoryViewOp::create(
      builder, loc, kernel.getArgument(place.parameter), views[operand].sizes,
      views[operand].strides, getDeviceElementType(getElementType(operand)),
      space);
}

FailureOr<unsigned> KernelBuilder::getRowDim(unsigned operand,
                                             int64_t hostDim) {
  const OperandStorage &place = storage[operand];
  SmallVector<::spyre::DeviceDim> dims =
      place.layout.getDeviceDims(place.shape);
  std::optional<unsigned> rows;
  bool isOne = true;
  for (auto [number, dim] : llvm::enumerate(dims)) {
    if (dim.hostDim != hostDim)
      continue;
    isOne &= !rows && dim.step == 1 && number + 1 < dims.size();
    rows = number;
  }
  // SG-TO-KTIR-C2
  if (rows && isOne)
    return *rows;
  return op->emitOpError()
         << "dimension " << hostDim << " of operand " << operand
         << " is accessed " << (indirect ? "indirectly" : "from an offset on")
         << " and must be one whole device dimension outside the stick, but "
            "the layout is "
         << place.layout;
}

FailureOr<Value> KernelBuilder::buildAccessTile(unsigned operand) {
  MLIRContext *context = builder.getContext();
  SmallVector<unsigned> tileDims = getTileDims(operand);
  // Captured values: where the sub-tile starts along each loop dimension, in
  // the whole buffer or in the core's part of it.
  SmallVector<Value> captured;
  SmallVector<OpFoldResult> extents;
  for (unsigned dim : tileDims)
    extents.push_back(loops[dim].size);

  /// Device coordinates of an operand in tile variables and captured values.
  auto getDeviceExprs =
      [&](unsigned which) -> FailureOr<SmallVector<AffineExpr>> {
    const OperandStorage &place = storage[which];
    AffineMap map = maps[which];
    SmallVector<int64_t> extents;
    for (const Loop &loop : loops)
      extents.push_back(place.isInLX ? loop.chunk : loop.extent);
    // SG-TO-KTIR-C3
    if (place.isInLX &&
        !isLocal(op, which, place.shape,
                 cast<ShapedType>(operation->getOperand(which).getType())
                     .getShape()))
      return op->emitOpError()
             << "operand " << which
             << " lies in LX, where a core must access a box of it, but its "
                "map is "
             << AffineMapAttr::get(map);
    AffineMap device = simplifyWithRanges(
        place.layout.getDeviceMap(place.shape, context).compose(map), extents);
    SmallVector<AffineExpr> replacements;
    for (unsigned dim = 0; dim < loops.size(); ++dim) {
      if (!map.isFunctionOfDim(dim)) {
        replacements.push_back(getAffineConstantExpr(0, context));
        continue;
      }
      AffineExpr start = getAffineSymbolExpr(captured.size(), context);
      OpFoldResult local = loops[dim].local;
      captured.push_back(getValueOrCreateConstantIndexOp(
          builder, loc, place.isInLX ? local : getTileStart(builder, dim)));
      auto *position = llvm::find(tileDims, dim);
      replacements.push_back(
          position == tileDims.end()
              ? start
              : getAffineDimExpr(position - tileDims.begin(), context) + start);
    }
    return llvm::map_to_vector(device.getResults(), [&](AffineExpr expr) {
      return expr.replaceDims(replacements);
    });
  };

  FailureOr<SmallVector<AffineExpr>> exprs = getDeviceExprs(operand);
  if (failed(exprs))
    return failure();
  SmallVector<ktdp::Subscript> subscripts(exprs->begin(), exprs->end());
  if (indirect && indirect->operand == operand) {
    FailureOr<SmallVector<AffineExpr>> indexExprs =
        getDeviceExprs(indirect->index);
    if (failed(indexExprs))
      return failure();
    FailureOr<unsigned> rows = getRowDim(operand, indirect->dim);
    if (failed(rows))
      return failure();
    subscripts[*rows] =
        ktdp::Subscript(buildView(indirect->index), *indexExprs);
  }
  std::optional<InitOffset> offset = op.getInitOffset();
  if (offset && operand == getInit()) {
    FailureOr<unsigned> rows = getRowDim(operand, offset->dim);
    if (failed(rows))
      return failure();
    AffineExpr further = getAffineSymbolExpr(captured.size(), context);
    captured.push_back(
        getValueOrCreateConstantIndexOp(builder, loc, getSize(offset->expr)));
    subscripts[*rows] = ktdp::Subscript((*exprs)[*rows] + further);
  }
  return ktdp::ConstructIndirectAccessTileOp::create(
             builder, loc, buildView(operand), subscripts, captured, extents)
      .getResult();
}

LogicalResult KernelBuilder::loadUnchanged(ArrayRef<unsigned> stillToEnter) {
  // Epilogues load what they need, some on one of several cores only.
  unsigned numInputs = getInit() - op.getNumEpilogueInputs();
  for (unsigned operand = 0; operand < numInputs; ++operand) {
    SmallVector<unsigned> dims = getTileDims(operand);
    bool isUnchanged = llvm::none_of(stillToEnter, [&](unsigned dim) {
      return loops[dim].tile < loops[dim].chunk &&
             llvm::is_contained(dims, dim);
    });
    if (isIndex(operand) || !isUnchanged || loaded.contains(operand))
      continue;
    FailureOr<Value> tile = load(operand);
    if (failed(tile))
      return failure();
    loaded[operand] = *tile;
  }
  return success();
}

FailureOr<Value> KernelBuilder::load(unsigned operand) {
  if (Value tile = loaded.lookup(operand))
    return tile;
  FailureOr<Value> tile = buildAccessTile(operand);
  if (failed(tile))
    return failure();
  return ktdp::LoadOp::create(builder, loc, *tile,
                              getDeviceElementType(getElementType(operand)))
      .getResult();
}

LogicalResult KernelBuilder::store(Value data, unsigned operand) {
  FailureOr<Value> tile = buildAccessTile(operand);
  if (failed(tile))
    return failure();
  ktdp::StoreOp::create(builder, loc, data, *tile);
  return success();
}
