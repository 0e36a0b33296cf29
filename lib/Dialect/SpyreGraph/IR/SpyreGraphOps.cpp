//===- SpyreGraphOps.cpp - Operations of spyre_graph ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "DeviceNames.h"

#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/Dialect/Traits.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::spyre_graph;

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphOpInterfaces.cpp.inc"

//===----------------------------------------------------------------------===//
// Shared by the device operations
//===----------------------------------------------------------------------===//

void spyre_graph::detail::getDeviceOpEffects(
    DestinationStyleOpInterface op,
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (!op.isDpsInit(&operand)) {
      effects.emplace_back(MemoryEffects::Read::get(), &operand,
                           SideEffects::DefaultResource::get());
      continue;
    }
    effects.emplace_back(MemoryEffects::Write::get(), &operand,
                         SideEffects::DefaultResource::get());
  }
}

SmallVector<Value>
spyre_graph::detail::getLogicalOperands(ScalarBuilder &b,
                                        std::optional<ArrayAttr> immediates,
                                        ValueRange ins, Value init) {
  if (!immediates)
    return llvm::to_vector(ins);
  // Immediates take the type of the tensors they meet, but a fraction never
  // becomes an integer; with no numeric tensor they take the result's type.
  Value like = init;
  for (Value in : ins)
    if (!in.getType().isInteger(1)) {
      like = in;
      break;
    }
  bool likeIsInteger = isa<IntegerType>(getElementTypeOrSelf(like.getType()));
  SmallVector<Value> operands;
  auto next = ins.begin();
  for (Attribute attribute : *immediates) {
    if (isa<UnitAttr>(attribute)) {
      operands.push_back(*next++);
      continue;
    }
    if (auto number = dyn_cast<FloatAttr>(attribute); number && likeIsInteger)
      operands.push_back(b.constantF32(number.getValueAsDouble()));
    else
      operands.push_back(b.constantLike(like, cast<TypedAttr>(attribute)));
  }
  return operands;
}

/// SG-OP-C9: MLIR's parser takes divisions by any number;
/// ranges need positive ones.
static LogicalResult verifyDivisors(Operation *op, AffineMap map) {
  bool arePositive = true;
  auto visit = [&](AffineExpr expr) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!binary || binary.getKind() == AffineExprKind::Add ||
        binary.getKind() == AffineExprKind::Mul)
      return;
    auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    arePositive &= divisor && divisor.getValue() > 0;
  };
  for (AffineExpr result : map.getResults())
    if (isa<AffineBinaryOpExpr>(result)) // Most are loop indices.
      result.walk(visit);
  if (arePositive)
    return success();
  return op->emitOpError() << "maps divide by positive constants only, found "
                           << AffineMapAttr::get(map);
}

/// The number of dimensions a map may have and the coordinates it gives.
static LogicalResult verifyLoops(SpyreOpInterface op, ArrayRef<AffineMap> maps,
                                 ArrayRef<int64_t> extents) {
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  bool empty = llvm::is_contained(extents, 0);
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    AffineMap map = maps[number];
    auto type = cast<ShapedType>(operand.getType());
    // SG-OP-C8
    if (map.getNumDims() != extents.size() || map.getNumSymbols() != 0 ||
        map.getNumResults() != type.getRank())
      return op->emitOpError()
             << "map of operand " << number << " must take " << extents.size()
             << " loop indices to " << type.getRank() << " coordinates, but is "
             << AffineMapAttr::get(map);
    if (failed(verifyDivisors(op, map)))
      return failure();
    if (empty)
      continue;
    // SG-OP-C9
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      if (indirect && indirect->operand == number &&
          indirect->dim == static_cast<int64_t>(dim))
        continue;
      auto [low, high] = getRange(expr, extents);
      if (low < 0 || high >= type.getDimSize(dim))
        return op->emitOpError()
               << "operand " << number << " is accessed at coordinates " << low
               << " to " << high << " of dimension " << dim
               << ", whose extent is " << type.getDimSize(dim);
    }
  }
  return success();
}

bool spyre_graph::isCombinedAcrossCores(Combiner combiner) {
  switch (combiner) {
  case Combiner::Add:
  case Combiner::Mul:
  case Combiner::Max:
  case Combiner::Min:
  case Combiner::And:
  case Combiner::Or:
    return true;
  case Combiner::None:
  case Combiner::ArgMax:
  case Combiner::ArgMin:
  case Combiner::ScanAdd:
  case Combiner::ScanMax:
  case Combiner::ScanMin:
  case Combiner::Sort:
  case Combiner::SortDescending:
    return false;
  }
  llvm_unreachable("unknown combiner");
}

/// SG-OP-C5
static LogicalResult verifyFloat8(Operation *op) {
  if (isa<IdentityOp, RestickifyOp, ReshardOp, InsertOp, FillOp, GatherOp,
          ScatterOp>(op))
    return success();
  for (OpOperand &operand : op->getOpOperands()) {
    auto element =
        dyn_cast<FloatType>(getElementTypeOrSelf(operand.get().getType()));
    bool isFactor = isa<MatmulOp>(op) && operand.getOperandNumber() < 2;
    if (element && element.getWidth() == 8 &&
        !(isFactor && isa<Float8E4M3FNType>(element)))
      return op->emitOpError()
             << "computes with " << element
             << ", which is moved, converted and multiplied by matrices only; "
                "convert it to f16";
  }
  return success();
}

static LogicalResult verifyDivision(SpyreOpInterface op,
                                    WorkDivisionAttr division) {
  ArrayRef<int64_t> splits = division.getSplits();
  ArrayRef<int64_t> chunks = division.getChunks();
  // SG-DIVISION-C1
  SmallVector<int64_t> extents = op.getLoopExtents();
  if (splits.size() != extents.size() || chunks.size() != extents.size())
    return op->emitOpError()
           << "division has " << splits.size() << " splits and "
           << chunks.size() << " chunks for " << extents.size()
           << " loop dimensions";
  // SG-DIVISION-C5
  AffineMap chunkMap = division.getChunkMap();
  if (!chunkMap != !op.getLoopExtentMap())
    return op->emitOpError()
           << (chunkMap ? "division has a chunk_map, but the operation no "
                          "extent_map"
                        : "division has no chunk_map, but the operation an "
                          "extent_map");
  if (chunkMap &&
      failed(verifySizeMap(chunkMap, chunks, getSizeSymbols(op), [&] {
        return op->emitOpError("chunk_map of the division ");
      })))
    return failure();
  // SG-DIVISION-C4
  ArrayRef<int64_t> order = division.getOrder();
  if (!order.empty() &&
      (order.size() != extents.size() || !isPermutationVector(order)))
    return op->emitOpError() << "order of the division, [" << order
                             << "], is not a permutation of the "
                             << extents.size() << " loop dimensions";
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  SmallVector<int64_t> strides = division.getCoreStrides();
  std::optional<unsigned> splitReduction;
  for (unsigned dim = 0; dim < extents.size(); ++dim) {
    // SG-DIVISION-C2
    if (!division.covers(dim, extents[dim]))
      return op->emitOpError()
             << splits[dim] << " slices of " << chunks[dim]
             << " iterations do not cover loop dimension " << dim
             << " of extent " << extents[dim] << " without an empty slice";
    if (splits[dim] == 1 || kinds[dim] == utils::IteratorType::parallel)
      continue;
    // SG-DIVISION-C3
    if (!isCombinedAcrossCores(op.getCombiner()))
      return op->emitOpError()
             << "loop dimension " << dim
             << " is not parallel and cannot be split: parts of its result "
                "cannot be combined";
    if (splitReduction)
      return op->emitOpError()
             << "reduction dimensions " << *splitReduction << " and " << dim
             << " are both split; split only one of them";
    splitReduction = dim;
    // SG-DIVISION-C4
    if (strides[dim] != 1)
      return op->emitOpError()
             << "reduction dimension " << dim
             << " is split, so it must be the first split one in core order";
  }
  return success();
}

LogicalResult spyre_graph::detail::verifySpyreOp(Operation *operation) {
  auto op = cast<SpyreOpInterface>(operation);
  // SG-OP-C6
  for (Value operand : operation->getOperands()) {
    auto type = cast<ShapedType>(operand.getType());
    if (!type.hasStaticShape())
      return op->emitOpError()
             << "operands must have static shapes, but found " << type;
    // MLIR asks the layout of a tensor whether it fits; here it is a memory
    // space, of which MLIR knows nothing.
    auto buffer = dyn_cast<MemRefType>(type);
    auto layout = buffer ? dyn_cast_or_null<VerifiableTensorEncoding>(
                               buffer.getMemorySpace())
                         : nullptr;
    if (layout && failed(layout.verifyEncoding(
                      type.getShape(), type.getElementType(),
                      [&] { return op->emitOpError("has a buffer whose "); })))
      return failure();
  }
  bool onTensors = isa<RankedTensorType>(op.getSpyreInit().getType());
  if (onTensors != (operation->getNumResults() == 1))
    return op->emitOpError("must have a result on tensors, none on buffers");
  if (onTensors &&
      operation->getResult(0).getType() != op.getSpyreInit().getType())
    return op->emitOpError()
           << "result type " << operation->getResult(0).getType()
           << " differs from the type of its init "
           << op.getSpyreInit().getType();

  // SG-OP-C7
  if (auto immediates = operation->getAttrOfType<ArrayAttr>("immediates")) {
    unsigned numTensors = llvm::count_if(immediates, [](Attribute attribute) {
      return isa<UnitAttr>(attribute);
    });
    if (numTensors != op.getSpyreInputs().size())
      return op->emitOpError()
             << "immediates name " << numTensors << " tensor operands, but "
             << op.getSpyreInputs().size() << " are given";
    for (Attribute attribute : immediates)
      if (!isa<UnitAttr, FloatAttr, IntegerAttr>(attribute))
        return op->emitOpError()
               << "an immediate must be unit or a number, but found "
               << attribute;
  }

  // SG-OP-C8
  auto maps = operation->getAttrOfType<ArrayAttr>("maps");
  if (!maps != !operation->hasAttr("extents"))
    return op->emitOpError("maps and extents must be given together");
  if (maps && maps.size() != operation->getNumOperands())
    return op->emitOpError() << "has " << maps.size() << " maps for "
                             << operation->getNumOperands() << " operands";
  if (failed(verifyFloat8(operation)) || failed(op.verifyOperands()))
    return failure();
  SmallVector<int64_t> extents = op.getLoopExtents();
  if (llvm::any_of(extents, [](int64_t extent) { return extent < 0; }))
    return op->emitOpError("loop extents must not be negative");
  if (failed(verifyLoops(op, op.getIndexingMaps(), extents)))
    return failure();
  // SG-SYMBOL-C2
  AffineMap extentMap = op.getLoopExtentMap();
  if (extentMap &&
      failed(verifySizeMap(extentMap, extents, getSizeSymbols(operation),
                           [&] { return op->emitOpError("extent_map "); })))
    return failure();
  WorkDivisionAttr division = op.getWorkDivision();
  return division ? verifyDivision(op, division) : success();
}

//===----------------------------------------------------------------------===//
// ViewOp
//===----------------------------------------------------------------------===//

LogicalResult ViewOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  AffineMap map = getMap();
  // SG-VIEW-C1
  if (map.getNumDims() != result.getRank() || map.getNumSymbols() != 0 ||
      map.getNumResults() != source.getRank())
    return emitOpError() << "map must take " << result.getRank()
                         << " coordinates to " << source.getRank()
                         << ", but is " << AffineMapAttr::get(map);
  if (failed(verifyDivisors(*this, map)))
    return failure();
  // SG-VIEW-C2
  if (source.getElementType() != result.getElementType())
    return emitOpError() << "element type of the result, "
                         << result.getElementType()
                         << ", must be the source's, "
                         << source.getElementType();
  // SG-OP-C6
  if (!source.hasStaticShape() || !result.hasStaticShape())
    return emitOpError("source and result must have static shapes");
  // SG-SYMBOL-C2
  if (getSizeMap() && failed(verifySizeMap(*getSizeMap(), result.getShape(),
                                           getSizeSymbols(*this), [&] {
                                             return emitOpError("size_map ");
                                           })))
    return failure();
  if (result.getNumElements() == 0)
    return success();
  // SG-VIEW-C3
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    auto [low, high] = getRange(expr, result.getShape());
    if (low < 0 || high >= source.getDimSize(dim))
      return emitOpError() << "reads coordinates " << low << " to " << high
                           << " of source dimension " << dim
                           << ", whose extent is " << source.getDimSize(dim);
  }
  return success();
}

OpFoldResult ViewOp::fold(FoldAdaptor) {
  if (getMap().isIdentity() && getSource().getType() == getResult().getType())
    return getSource();
  return nullptr;
}

namespace {
/// view(view(x, f), g) is view(x, f . g).
struct ComposeViews : OpRewritePattern<ViewOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ViewOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<ViewOp>();
    if (!inner)
      return failure();
    AffineMap map = simplifyWithRanges(
        inner.getMap().compose(op.getMap()),
        cast<RankedTensorType>(op.getResult().getType()).getShape());
    rewriter.replaceOpWithNewOp<ViewOp>(
        op, op.getResult().getType(), inner.getSource(),
        AffineMapAttr::get(map), op.getSizeMapAttr());
    return success();
  }
};
} // namespace

void ViewOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<ComposeViews>(context);
}

//===----------------------------------------------------------------------===//
// Verifiers of single operations
//===----------------------------------------------------------------------===//

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult SoftmaxOp::verify() {
  RankedTensorType input = tensorType(getInput());
  // SG-SOFTMAX-C1
  auto dim = static_cast<int64_t>(getDim());
  if (dim < 0 || dim >= input.getRank())
    return emitOpError() << "dim " << dim << " is not a dimension of " << input;
  // SG-SOFTMAX-C2
  if (input.getShape() != tensorType(getResult()).getShape())
    return emitOpError() << "result shape must be the input's, but found "
                         << getResult().getType() << " for " << input;
  return success();
}

/// Checks the operands that norms share: a weight and bias of the normalised
/// shape and f32 statistics with those dimensions kept as 1.
static LogicalResult verifyNorm(Operation *op, Value input, Value result,
                                ArrayRef<Value> affine,
                                ArrayRef<Value> statistics, int64_t numDims) {
  RankedTensorType type = tensorType(input);
  // SG-NORM-C1
  if (numDims < 1 || numDims > type.getRank())
    return op->emitOpError()
           << "cannot normalize " << numDims << " dimensions of " << type;
  // SG-NORM-C2
  if (tensorType(result).getShape() != type.getShape())
    return op->emitOpError() << "result shape must be the input's, but found "
                             << result.getType() << " for " << type;
  // SG-NORM-C3
  for (Value value : affine)
    if (value &&
        tensorType(value).getShape() != type.getShape().take_back(numDims))
      return op->emitOpError()
             << "weight and bias must have the normalised shape, but found "
             << value.getType() << " for " << type;
  // SG-NORM-C4
  SmallVector<int64_t> kept(type.getShape());
  std::fill(kept.end() - numDims, kept.end(), 1);
  for (Value value : statistics)
    if (!tensorType(value).getElementType().isF32() ||
        tensorType(value).getShape() != ArrayRef<int64_t>(kept))
      return op->emitOpError() << "statistics must be f32 with the normalised "
                                  "dimensions kept as 1, but found "
                               << value.getType();
  return success();
}

LogicalResult LayerNormOp::verify() {
  return verifyNorm(*this, getInput(), getResult(), {getWeight(), getBias()},
                    {getMean(), getRstd()}, getNumDims());
}
LogicalResult RmsNormOp::verify() {
  return verifyNorm(*this, getInput(), getResult(), {getWeight()}, {getRstd()},
                    getNumDims());
}

bool AttentionOp::isMaskElementType(Type type) {
  auto number = dyn_cast<FloatType>(type);
  return type.isInteger(1) || (number && number.getWidth() > 8);
}

bool AttentionOp::isMaskShape(ArrayRef<int64_t> mask,
                              ArrayRef<int64_t> scores) {
  SmallVector<int64_t> both;
  return ShapedType::isStaticShape(mask) &&
         OpTrait::util::getBroadcastedShape(mask, scores, both) &&
         ArrayRef<int64_t>(both) == scores;
}

/// Checks the operands that attention and its backward share.
static LogicalResult verifyAttention(Operation *op, RankedTensorType q,
                                     RankedTensorType k, RankedTensorType v,
                                     Value mask) {
  // SG-ATTENTION-C3
  if (q.getRank() != 4 || k.getRank() != 4 || v.getRank() != 4)
    return op->emitOpError()
           << "query, key and value must have rank 4, but are " << q << ", "
           << k << ", " << v;
  if (k.getDimSize(0) != q.getDimSize(0) || v.getDimSize(0) != q.getDimSize(0))
    return op->emitOpError("query, key and value must have one batch size");
  if (k.getDimSize(1) != v.getDimSize(1) ||
      (k.getDimSize(1) == 0 ? q.getDimSize(1) != 0
                            : q.getDimSize(1) % k.getDimSize(1) != 0))
    return op->emitOpError()
           << q.getDimSize(1) << " query heads are not a multiple of "
           << k.getDimSize(1) << " key and " << v.getDimSize(1)
           << " value heads";
  if (k.getDimSize(2) != v.getDimSize(2) || k.getDimSize(3) != q.getDimSize(3))
    return op->emitOpError()
           << "shapes " << q << ", " << k << ", " << v << " do not agree";
  if (!mask)
    return success();
  RankedTensorType maskType = tensorType(mask);
  // SG-ATTENTION-C1
  SmallVector<int64_t> scores{q.getDimSize(0), q.getDimSize(1), q.getDimSize(2),
                              k.getDimSize(2)};
  if (!AttentionOp::isMaskShape(maskType.getShape(), scores))
    return op->emitOpError() << "mask must broadcast to the scores [" << scores
                             << "], but is " << maskType;
  // SG-ATTENTION-C2
  if (!AttentionOp::isMaskElementType(maskType.getElementType()))
    return op->emitOpError() << "mask must be of i1, or of floats of more than "
                                "8 bits, but is "
                             << maskType;
  return success();
}

LogicalResult AttentionOp::verify() {
  RankedTensorType q = tensorType(getQuery()), k = tensorType(getKey()),
                   v = tensorType(getValue());
  if (failed(verifyAttention(*this, q, k, v, getMask())))
    return failure();
  // SG-ATTENTION-C4
  SmallVector<int64_t> outShape{q.getDimSize(0), q.getDimSize(1),
                                q.getDimSize(2), v.getDimSize(3)};
  if (tensorType(getResult()).getShape() != ArrayRef<int64_t>(outShape))
    return emitOpError() << "result must have shape [" << outShape
                         << "], but is " << getResult().getType();
  RankedTensorType lse = tensorType(getLogsumexp());
  if (!lse.getElementType().isF32() ||
      lse.getShape() != ArrayRef<int64_t>(outShape).drop_back())
    return emitOpError() << "logsumexp must be f32 of the first three result "
                            "dimensions, but is "
                         << lse;
  return success();
}

LogicalResult AttentionBackwardOp::verify() {
  RankedTensorType q = tensorType(getQuery()), k = tensorType(getKey()),
                   v = tensorType(getValue());
  if (failed(verifyAttention(*this, q, k, v, getMask())))
    return failure();
  // SG-ATTENTION-C5
  if (tensorType(getGradQuery()).getShape() != q.getShape() ||
      tensorType(getGradKey()).getShape() != k.getShape() ||
      tensorType(getGradValue()).getShape() != v.getShape())
    return emitOpError(
        "gradients must have the shapes of query, key and value");
  // SG-ATTENTION-C4
  SmallVector<int64_t> outShape{q.getDimSize(0), q.getDimSize(1),
                                q.getDimSize(2), v.getDimSize(3)};
  for (Value value : {getOutput(), getGradOutput()})
    if (tensorType(value).getShape() != ArrayRef<int64_t>(outShape))
      return emitOpError() << "output and its gradient must have shape ["
                           << outShape << "], but found " << value.getType();
  RankedTensorType lse = tensorType(getLogsumexp());
  if (!lse.getElementType().isF32() ||
      lse.getShape() != ArrayRef<int64_t>(outShape).drop_back())
    return emitOpError() << "logsumexp must be f32 of the first three output "
                            "dimensions, but is "
                         << lse;
  return success();
}

//===----------------------------------------------------------------------===//
// TileStartOp
//===----------------------------------------------------------------------===//

LogicalResult TileStartOp::verify() {
  // SG-TILE-START-C1
  scf::ForOp loop = scf::getForInductionVarOwner(getIndex());
  if (!loop)
    return emitOpError("must be given the induction variable of an scf.for");
  auto low = getConstantIntValue(loop.getLowerBound()),
       high = getConstantIntValue(loop.getUpperBound()),
       step = getConstantIntValue(loop.getStep());
  if (low != 0 || !high || !step || *step < 1)
    return emitOpError(
        "must be in a loop from 0 to a number by a constant step");
  // Sizes up to which loops run are not smaller (SG-SYMBOL-C4).
  if (*high < *step)
    return emitOpError() << "must be in a loop that has a whole tile of "
                         << *step << ", but it ends at " << *high;
  return success();
}

#define GET_OP_CLASSES
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphOps.cpp.inc"
