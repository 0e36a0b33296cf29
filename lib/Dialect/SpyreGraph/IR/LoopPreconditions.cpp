//===- LoopPreconditions.cpp - What default loops rely on -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Loops are derived from operands and attributes. These checks run before they
// are, so that the derivation may take what they establish for granted.
//
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::spyre_graph;

LogicalResult spyre_graph::detail::verifyOperandCount(SpyreOpInterface op,
                                                      unsigned least,
                                                      unsigned most) {
  // SG-OP-C1
  unsigned count = op.getSpyreInputs().size();
  if (auto immediates = op->getAttrOfType<ArrayAttr>("immediates"))
    count = immediates.size();
  if (count >= least && count <= most)
    return success();
  InFlightDiagnostic error = op->emitOpError() << "expects " << least;
  if (most != least)
    error << " to " << most;
  return error << " inputs, but has " << count;
}

LogicalResult spyre_graph::detail::verifyHasLoops(SpyreOpInterface op) {
  // SG-OP-C4
  auto extents = op->getAttrOfType<DenseI64ArrayAttr>("extents");
  if (!op->hasAttr("maps") || !extents || extents.empty())
    return op->emitOpError("must have maps and extents, because this operation "
                           "has no default ones");
  return success();
}

LogicalResult spyre_graph::detail::verifyLoopDim(SpyreOpInterface op,
                                                 int64_t dim) {
  // SG-OP-C2
  auto extents = op->getAttrOfType<DenseI64ArrayAttr>("extents");
  int64_t numLoops =
      extents ? extents.size() : shapedType(op.getSpyreInit()).getRank();
  if (dim < 0 || dim >= numLoops)
    return op->emitOpError()
           << "has no loop dimension " << dim << ", only " << numLoops;
  return success();
}

/// Whether `shape` is broadcast to `loops` by trailing dimensions.
static bool isBroadcastTo(ArrayRef<int64_t> shape, ArrayRef<int64_t> loops) {
  if (shape.size() > loops.size())
    return false;
  return llvm::all_of(
      llvm::zip_equal(shape, loops.take_back(shape.size())), [](auto pair) {
        return std::get<0>(pair) == 1 || std::get<0>(pair) == std::get<1>(pair);
      });
}

/// Checks that `inputs` are broadcast to `shape`.
static LogicalResult verifyBroadcast(SpyreOpInterface op, ValueRange inputs,
                                     ArrayRef<int64_t> shape) {
  // SG-OP-C3
  for (Value input : inputs)
    if (!isBroadcastTo(shapedType(input).getShape(), shape))
      return op->emitOpError() << "input " << input.getType()
                               << " cannot be broadcast to [" << shape << "]";
  return success();
}

LogicalResult spyre_graph::detail::verifyPointwise(SpyreOpInterface op) {
  if (op->hasAttr("maps"))
    return success();
  return verifyBroadcast(op, op.getSpyreInputs(),
                         shapedType(op.getSpyreInit()).getShape());
}

LogicalResult spyre_graph::detail::verifySort(SpyreOpInterface op) {
  // SG-SORT-C1
  int64_t run = op.getSortedRun();
  if (run < 1 || !llvm::isPowerOf2_64(run))
    return op->emitOpError()
           << "runs must have a power of two elements, but have " << run;
  // SG-SORT-C2
  for (Value indices : op.getSpyreInputs().drop_front()) {
    Type element = shapedType(indices).getElementType();
    if (!element.isInteger(32) && !element.isInteger(64))
      return op->emitOpError()
             << "indices must be integers of 32 or 64 bits, but are "
             << element;
  }
  return success();
}

LogicalResult spyre_graph::detail::verifyReduction(SpyreOpInterface op,
                                                   ArrayRef<int64_t> dims) {
  if (op->hasAttr("maps"))
    return success();
  ArrayRef<int64_t> input = shapedType(op.getSpyreInputs()[0]).getShape();
  SmallVector<bool> reduced(input.size(), false);
  for (int64_t dim : dims) {
    // SG-OP-C2
    if (dim < 0 || dim >= static_cast<int64_t>(input.size()) || reduced[dim])
      return op->emitOpError()
             << "dims " << dims << " must be distinct dimensions of "
             << op.getSpyreInputs()[0].getType();
    reduced[dim] = true;
  }
  if (failed(verifyBroadcast(op, op.getSpyreInputs().drop_front(), input)))
    return failure();
  // SG-OP-C3
  SmallVector<int64_t> kept, dropped;
  for (auto [extent, isReduced] : llvm::zip_equal(input, reduced)) {
    kept.push_back(isReduced ? 1 : extent);
    if (!isReduced)
      dropped.push_back(extent);
  }
  ArrayRef<int64_t> init = shapedType(op.getSpyreInit()).getShape();
  if (init != ArrayRef(kept) && init != ArrayRef(dropped))
    return op->emitOpError()
           << "reduces to [" << kept << "] or [" << dropped
           << "], but its init is " << op.getSpyreInit().getType();
  return success();
}

LogicalResult spyre_graph::detail::verifyMatmul(SpyreOpInterface op,
                                                int64_t numScales,
                                                bool hasBias) {
  // SG-MATMUL-C1
  if (numScales < 0 || numScales > 2)
    return op->emitOpError()
           << "num_scales must be 0, 1 or 2, but is " << numScales;
  unsigned expected = 2 + numScales + (hasBias ? 1 : 0);
  if (op.getSpyreInputs().size() != expected)
    return op->emitOpError() << "expects " << expected << " inputs, but has "
                             << op.getSpyreInputs().size();
  if (op->hasAttr("maps"))
    return success();
  // SG-MATMUL-C2
  ArrayRef<int64_t> x = shapedType(op.getSpyreInputs()[0]).getShape(),
                    y = shapedType(op.getSpyreInputs()[1]).getShape(),
                    out = shapedType(op.getSpyreInit()).getShape();
  if (out.size() < 2 || x.size() < 2 || y.size() < 2)
    return op->emitOpError("operands must be matrices or batches of matrices");
  ArrayRef<int64_t> batch = out.drop_back(2), xs = x.take_back(2),
                    ys = y.take_back(2), outs = out.take_back(2);
  if (xs[1] != ys[0] || xs[0] != outs[0] || ys[1] != outs[1] ||
      !isBroadcastTo(x.drop_back(2), batch) ||
      !isBroadcastTo(y.drop_back(2), batch))
    return op->emitOpError()
           << "shapes " << op.getSpyreInputs()[0].getType() << ", "
           << op.getSpyreInputs()[1].getType() << " and "
           << op.getSpyreInit().getType() << " do not agree";
  return verifyBroadcast(op, op.getSpyreInputs().drop_front(2), out);
}

LogicalResult spyre_graph::detail::verifyUnpackInt4(SpyreOpInterface op,
                                                    int64_t dim) {
  if (failed(verifyHasLoops(op)))
    return failure();
  // SG-UNPACK-C1
  SmallVector<int64_t> extents = op.getLoopExtents();
  if (dim < 0 || dim >= static_cast<int64_t>(extents.size()))
    return op->emitOpError() << "dim " << dim << " is none of the "
                             << extents.size() << " loop dimensions";
  auto words = dyn_cast<IntegerType>(
      shapedType(op.getSpyreInputs()[0]).getElementType());
  if (!words || 4 * extents[dim] > words.getWidth())
    return op->emitOpError()
           << "words must be integers that have 4 bits for each of the "
           << extents[dim] << " iterations of loop dimension " << dim
           << ", but are " << op.getSpyreInputs()[0].getType();
  return success();
}

/// The rules that gather and scatter share.
static LogicalResult verifyIndirect(SpyreOpInterface op) {
  // SG-GATHER-C1, SG-SCATTER-C1
  IndirectAccess access = *op.getIndirectAccess();
  auto index = shapedType(op->getOperand(access.index));
  if (!isa<IntegerType>(index.getElementType()) ||
      index.getElementType().isInteger(1))
    return op->emitOpError() << "index elements must be integers, but are "
                             << index.getElementType();
  // SG-GATHER-C2, SG-SCATTER-C2
  auto accessed = shapedType(op->getOperand(access.operand));
  if (access.dim < 0 || access.dim >= accessed.getRank())
    return op->emitOpError()
           << "axis " << access.dim << " is not a dimension of " << accessed;
  auto maps = op->getAttrOfType<ArrayAttr>("maps");
  if (!maps || access.operand >= maps.size())
    return success();
  AffineMap map = cast<AffineMapAttr>(maps[access.operand]).getValue();
  auto zero = access.dim < map.getNumResults()
                  ? dyn_cast<AffineConstantExpr>(map.getResult(access.dim))
                  : AffineConstantExpr();
  if (!zero || zero.getValue() != 0)
    return op->emitOpError()
           << "map result for axis " << access.dim
           << " must be the constant 0 in " << AffineMapAttr::get(map);
  return success();
}

/// `shape` with `index` in place of the dimension `axis`.
static SmallVector<int64_t> replaceDim(ArrayRef<int64_t> shape, int64_t axis,
                                       ArrayRef<int64_t> index) {
  SmallVector<int64_t> result(shape.take_front(axis));
  llvm::append_range(result, index);
  llvm::append_range(result, shape.drop_front(axis + 1));
  return result;
}

/// Checks that the operand `result` has the shape `expected`.
static LogicalResult verifyShape(SpyreOpInterface op, Value result,
                                 ArrayRef<int64_t> expected) {
  // SG-OP-C3
  if (shapedType(result).getShape() != expected)
    return op->emitOpError() << "shapes do not agree: expects [" << expected
                             << "], but found " << result.getType();
  return success();
}

LogicalResult spyre_graph::detail::verifyGather(SpyreOpInterface op) {
  if (failed(verifyIndirect(op)))
    return failure();
  if (op->hasAttr("maps"))
    return success();
  return verifyShape(op, op.getSpyreInit(),
                     replaceDim(shapedType(op.getSpyreInputs()[0]).getShape(),
                                op.getIndirectAccess()->dim,
                                shapedType(op.getSpyreInputs()[1]).getShape()));
}

LogicalResult spyre_graph::detail::verifyScatter(SpyreOpInterface op) {
  if (failed(verifyIndirect(op)))
    return failure();
  if (op->hasAttr("maps"))
    return success();
  // SG-OP-C3
  ArrayRef<int64_t> index = shapedType(op.getSpyreInputs()[1]).getShape();
  if (index.size() != 1)
    return op->emitOpError() << "expects an index of rank 1, but found "
                             << op.getSpyreInputs()[1].getType();
  return verifyShape(op, op.getSpyreInputs()[0],
                     replaceDim(shapedType(op.getSpyreInit()).getShape(),
                                op.getIndirectAccess()->dim, index));
}

LogicalResult spyre_graph::detail::verifyInsert(SpyreOpInterface op,
                                                int64_t axis,
                                                AffineMap offset) {
  if (failed(verifyHasLoops(op)))
    return failure();
  // SG-INSERT-C1
  auto source = shapedType(op->getOperand(0)),
       init = shapedType(op.getSpyreInit());
  if (axis < 0 || axis >= init.getRank())
    return op->emitOpError()
           << "axis " << axis << " is not a dimension of " << init;
  if (source.getElementType() != init.getElementType())
    return op->emitOpError() << "copies " << source.getElementType()
                             << " into elements of " << init.getElementType();
  // SG-INSERT-C2
  AffineMap map = op.getIndexingMaps().back();
  SmallVector<AffineExpr> begin(map.getNumDims(),
                                getAffineConstantExpr(0, op->getContext()));
  auto most =
      axis < map.getNumResults()
          ? dyn_cast<AffineConstantExpr>(map.getResult(axis).replaceDims(begin))
          : AffineConstantExpr();
  if (!most)
    return op->emitOpError() << "maps the first iteration to no coordinate "
                                "along axis "
                             << axis << ": " << AffineMapAttr::get(map);
  if (failed(verifySizeMap(offset, {most.getValue()}, getSizeSymbols(op),
                           [&] { return op->emitOpError("offset_map "); })))
    return failure();
  // SG-INSERT-C3
  LayoutAttrInterface layout = getLayout(init);
  if (layout && getStepsPerStick(layout, init.getShape(), axis) != 1)
    return op->emitOpError() << "inserts along dimension " << axis
                             << ", along which sticks run: " << layout;
  return success();
}

LogicalResult spyre_graph::detail::verifyReshard(SpyreOpInterface op,
                                                 WorkDivisionAttr source) {
  // SG-RESHARD-C1
  if (op->getOperand(0).getType() != op.getSpyreInit().getType())
    return op->emitOpError()
           << "moves " << op->getOperand(0).getType() << " into "
           << op.getSpyreInit().getType() << "; both must have the same type";
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  SmallVector<int64_t> extents = op.getLoopExtents();
  // SG-RESHARD-C2
  if (maps[0] != maps[1] || !maps[0].isProjectedPermutation() ||
      maps[0].getNumDims() != extents.size())
    return op->emitOpError()
           << "must access both operands through one map made of distinct "
              "loop dimensions, but the maps are "
           << AffineMapAttr::get(maps[0]) << " and "
           << AffineMapAttr::get(maps[1]);
  // SG-RESHARD-C3
  ArrayRef<int64_t> splits = source.getSplits(), chunks = source.getChunks(),
                    order = source.getOrder();
  bool isValid =
      splits.size() == extents.size() && chunks.size() == extents.size() &&
      (order.empty() ||
       (order.size() == extents.size() && isPermutationVector(order)));
  for (unsigned dim = 0; isValid && dim < extents.size(); ++dim)
    isValid = source.covers(dim, extents[dim]);
  if (!isValid)
    return op->emitOpError()
           << "source_division " << source << " does not divide the loops ["
           << extents << "]";
  // SG-DIVISION-C5
  AffineMap chunkMap = source.getChunkMap();
  if (!chunkMap != !op.getLoopExtentMap())
    return op->emitOpError()
           << "source_division " << source << " must have a chunk_map where "
           << "the operation has an extent_map, and only there";
  return success(
      !chunkMap ||
      succeeded(verifySizeMap(chunkMap, chunks, getSizeSymbols(op), [&] {
        return op->emitOpError("chunk_map of source_division ");
      })));
}
