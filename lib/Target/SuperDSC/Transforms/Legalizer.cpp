// SPDX-License-Identifier: Apache-2.0
//===- Legalizer.cpp - Copies of what an operand accesses ---------===//

#include "Legalizer.h"

#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace mlir::spyre_graph;

/// Loops that an operation can have.
static constexpr int64_t kMaxLoops = 8;
/// Dimensions of which all orders are tried.
static constexpr int64_t kMaxPermuted = 4;

void SuperDSCLegalizer::load() {
  extents = op.getLoopExtents();
  maps = op.getIndexingMaps();
  for (AffineMap &map : maps)
    map = simplifyWithRanges(map, extents);
}

void SuperDSCLegalizer::setLoops(ArrayRef<AffineMap> maps,
                                 ArrayRef<int64_t> extents) {
  op.setLoopStructure(maps, extents);
  op.setLoopExtentMap(AffineMap());
}

bool SuperDSCLegalizer::run() {
  if (isa<MatmulOp>(operation) && !hasNarrowFactors())
    widenFactors();
  if (isCopy())
    widenCompared();
  bool refined = refine(), convolves = isConvolution();
  for (unsigned number = convolves; number + 1 < op->getNumOperands(); ++number)
    if ((!access(number) && !isIndirect(number)) || hasGapInMatmul(number) ||
        (!isCopy() && isInterleaved(number)) || hasOtherSticksOfTopK(number))
      replaceInput(number);
  if (hasScatteredIndices())
    replaceInput(op.getIndirectAccess()->index);
  if (!convolves && (isa<MatmulOp>(operation) ||
                     static_cast<int64_t>(extents.size()) > kMaxLoops))
    mergeReductions();
  // Loops are batches, rows, columns and one reduction.
  if (!convolves && isa<MatmulOp>(operation) && countReductions() == 1) {
    expandFactors();
    mergeBatches();
  }
  unsigned init = op->getNumOperands() - 1;
  if ((!access(init) && !isIndirect(init)) || writesPartOfStick() ||
      hasGapInMatmul(init) || (!isCopy() && isInterleaved(init)) ||
      gathersAcrossSticks() || addsToParts() || hasOtherSticksOfTopK(init))
    replaceInit();
  if (isa<MatmulOp>(operation) && hasNarrowFactors())
    packFactor();
  if (isCopy()) {
    unrollCopy();
    splitCopy();
  }
  return refined;
}

bool SuperDSCLegalizer::hasGapInMatmul(unsigned number) const {
  if (!isa<MatmulOp>(operation))
    return false;
  auto own = access(number);
  return own && own->getInnermostStride() > 1;
}

int64_t SuperDSCLegalizer::laneOfTopK() const {
  int64_t longest = -1;
  for (int64_t loop = 0; loop < static_cast<int64_t>(extents.size()); ++loop) {
    if (extents[loop] == 1 || !maps[0].isFunctionOfDim(loop) ||
        !maps[1].isFunctionOfDim(loop))
      continue;
    for (unsigned number : {0, 1})
      if (auto own = access(number); own && own->laneDim == loop)
        return loop;
    if (longest < 0 || extents[loop] > extents[longest])
      longest = loop;
  }
  return longest;
}

bool SuperDSCLegalizer::hasOtherSticksOfTopK(unsigned number) const {
  if (!isa<TopKOp>(operation))
    return false;
  auto own = access(number);
  return own && own->laneDim != laneOfTopK();
}

bool SuperDSCLegalizer::hasScatteredIndices() {
  std::optional<IndirectAccess> indirect = op.getIndirectAccess();
  if (!indirect)
    return false;
  auto own = access(indirect->index);
  int64_t wanted = wantedLane(indirect->index);
  return own && own->laneDim < 0 && wanted >= 0 && own->strides[wanted] != 0;
}

bool SuperDSCLegalizer::isInterleaved(unsigned number) {
  auto own = access(number);
  return own && !isIndirect(number) && !areNested(*own, extents);
}

bool SuperDSCLegalizer::areNested(const StickAccess &access,
                                  ArrayRef<int64_t> extents, int64_t without) {
  SmallVector<std::pair<int64_t, int64_t>> steps;
  for (auto [loop, stride] : llvm::enumerate(access.strides)) {
    int64_t count =
        llvm::divideCeilSigned(extents[loop], access.getStepsPerStick(loop));
    if (stride != 0 && count > 1 && without != static_cast<int64_t>(loop))
      steps.emplace_back(stride, count);
  }
  llvm::sort(steps);
  if (!steps.empty() && steps.front().first < 0)
    return false;
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    if (steps[i + 1].first % steps[i].first != 0 ||
        steps[i + 1].first / steps[i].first < steps[i].second)
      return false;
  return true;
}

bool SuperDSCLegalizer::refine() {
  // Those that know their loops by number keep them.
  if (isScan(op.getCombiner()) || isSort(op.getCombiner()) ||
      llvm::any_of(llvm::seq<unsigned>(0, extents.size()),
                   [&](unsigned loop) { return op.usesLoopIndex(loop); }))
    return false;
  SmallVector<LayoutAttrInterface> layouts;
  SmallVector<SmallVector<int64_t>> shapes;
  for (unsigned number = 0; number < op->getNumOperands(); ++number) {
    layouts.push_back(getLayout(typeOf(number)));
    shapes.push_back(llvm::to_vector(typeOf(number).getShape()));
  }
  std::optional<RefinedLoops> loops =
      refineLoops(maps, extents, layouts, shapes);
  if (!loops)
    return false;
  // Only rows and batches of a matmul may be cut.
  if (isa<MatmulOp>(operation) &&
      ArrayRef(loops->extents).take_back(2) != ArrayRef(extents).take_back(2))
    return false;
  for (auto [number, map] : llvm::enumerate(loops->maps))
    if (!getStickAccess(map, layouts[number], shapes[number], loops->extents) &&
        access(number))
      return false;
  int64_t numSteps = countSteps(numLastReductions);
  setLoops(loops->maps, loops->extents);
  load();
  // Loops of one are in none of the maps now, so that rows and columns look
  // reduced. The reductions have as many steps as before.
  while (countSteps(numLastReductions) != numSteps)
    ++numLastReductions;
  return true;
}

RankedTensorType SuperDSCLegalizer::withStick(ArrayRef<int64_t> shape,
                                              Type element, int64_t stick) {
  return RankedTensorType::get(shape, element,
                               getStickLayout(element, shape.size(), stick));
}

Value SuperDSCLegalizer::empty(RankedTensorType type) {
  return tensor::EmptyOp::create(builder, loc, type.getShape(),
                                 type.getElementType(), type.getEncoding());
}

Value SuperDSCLegalizer::copy(Value from, AffineMap fromMap, Value to,
                              AffineMap toMap, ArrayRef<int64_t> extents) {
  auto toType = cast<RankedTensorType>(to.getType());
  auto fromType = cast<RankedTensorType>(from.getType());
  // Changes of stick are operations of their own.
  auto in =
      getLaneAccess(fromMap, getLayout(fromType), fromType.getShape(), extents);
  auto out =
      getLaneAccess(toMap, getLayout(toType), toType.getShape(), extents);
  bool changes = in.kind != out.kind || in.dim != out.dim;
  SpyreOpInterface made =
      createCopyOp(builder, loc,
                   changes ? RestickifyOp::getOperationName()
                           : IdentityOp::getOperationName(),
                   from, to, fromMap, toMap, extents);
  this->made.push_back(made);
  return made->getResult(0);
}

Value SuperDSCLegalizer::copyWhole(Value from, RankedTensorType type,
                                   Value to) {
  AffineMap map =
      AffineMap::getMultiDimIdentityMap(type.getRank(), builder.getContext());
  return copy(from, map, to ? to : empty(type), map, type.getShape());
}

SuperDSCLegalizer::Used
SuperDSCLegalizer::getUsed(AffineMap map, const llvm::SmallBitVector &others) {
  Used used;
  MLIRContext *context = builder.getContext();
  SmallVector<AffineExpr> replacements(extents.size(),
                                       getAffineConstantExpr(0, context));
  SmallVector<AffineExpr> results;
  llvm::SmallBitVector usedDims = getUsedDims(map, extents);
  usedDims |= others;
  for (unsigned loop : usedDims.set_bits()) {
    replacements[loop] = getAffineDimExpr(used.loops.size(), context);
    results.push_back(getAffineDimExpr(loop, context));
    used.loops.push_back(loop);
    used.extents.push_back(extents[loop]);
  }
  used.projection = AffineMap::get(extents.size(), 0, results, context);
  used.map = map.replaceDimsAndSymbols(replacements, {}, used.loops.size(), 0);
  return used;
}

int64_t SuperDSCLegalizer::findStick(RankedTensorType type, AffineMap map,
                                     ArrayRef<int64_t> extents) {
  for (int64_t stick = type.getRank() - 1; stick >= 0; --stick) {
    if (type.getDimSize(stick) == 1)
      continue;
    RankedTensorType own =
        withStick(type.getShape(), type.getElementType(), stick);
    auto access = getStickAccess(map, getLayout(own), own.getShape(), extents);
    if (access && access->laneDim >= 0)
      return stick;
  }
  return -1;
}

static bool reduces(utils::IteratorType kind) {
  return kind == utils::IteratorType::reduction;
}

int64_t SuperDSCLegalizer::countReductions() {
  if (isa<MatmulOp>(operation))
    return numLastReductions;
  return llvm::count_if(op.getLoopKinds(), reduces);
}

int64_t SuperDSCLegalizer::countLastReductions() {
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  return llvm::find_if_not(llvm::reverse(kinds), reduces) - kinds.rbegin();
}

int64_t SuperDSCLegalizer::countSteps(int64_t count) const {
  return llvm::product_of(ArrayRef(extents).take_back(count));
}

int64_t SuperDSCLegalizer::wantedLane(unsigned number) {
  if (isa<MatmulOp>(operation))
    return static_cast<int64_t>(extents.size()) - 1 -
           (number == 0 ? 0 : countReductions());
  if (isa<TopKOp>(operation))
    return laneOfTopK();
  unsigned init = op->getNumOperands() - 1;
  for (unsigned other = init + 1; other-- > 0;) {
    if (other == number || isIndirect(other))
      continue;
    if (auto known = access(other); known && known->laneDim >= 0)
      return known->laneDim;
  }
  return -1;
}

int64_t SuperDSCLegalizer::positionOf(ArrayRef<unsigned> loops, int64_t loop) {
  auto *found = llvm::find(loops, static_cast<unsigned>(loop));
  return loop < 0 || found == loops.end() ? -1 : found - loops.begin();
}

/// The least common multiple of the factors in a sum, `most` at most.
static int64_t getCommonStep(AffineExpr expr, int64_t most) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && binary.getKind() == AffineExprKind::Add) {
    int64_t left = getCommonStep(binary.getLHS(), most),
            right = getCommonStep(binary.getRHS(), most);
    // Both are at most `most`, an extent, so that the product does not overflow
    // where it counts.
    return std::min(most, left / std::gcd(left, right) * right);
  }
  if (binary && binary.getKind() == AffineExprKind::Mul)
    if (auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      return std::clamp<int64_t>(factor.getValue(), 1, most);
  return 1;
}

/// How long each dimension of a line is. Steps that are no divisor of a row's
/// length would fall between those along the next row: such a row has a gap at
/// its end.
static SmallVector<int64_t> getLengths(ArrayRef<int64_t> shape, AffineMap map) {
  SmallVector<int64_t> lengths;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
    int64_t step = getCommonStep(expr, size);
    lengths.push_back(step < size ? llvm::alignTo(size, step) : size);
  }
  return lengths;
}

std::pair<AffineMap, AffineMap>
SuperDSCLegalizer::getLine(RankedTensorType type, AffineMap map,
                           ArrayRef<int64_t> extents,
                           ArrayRef<int64_t> lengths) {
  MLIRContext *context = builder.getContext();
  SmallVector<unsigned> order(
      llvm::to_vector(llvm::seq<unsigned>(0, type.getRank())));
  std::optional<std::pair<AffineMap, AffineMap>> first;
  do {
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> all, read;
    for (unsigned dim : order) {
      shape.push_back(lengths[dim]);
      all.push_back(getAffineDimExpr(dim, context));
      read.push_back(map.getResult(dim));
    }
    auto line = std::pair(
        getLinearIndex(AffineMap::get(type.getRank(), 0, all, context), shape,
                       type.getShape()),
        getLinearIndex(AffineMap::get(extents.size(), 0, read, context), shape,
                       extents));
    if (getLinearForm(line.second.getResult(0), extents.size()))
      return line;
    if (!first)
      first = line;
  } while (type.getRank() <= kMaxPermuted &&
           std::next_permutation(order.begin(), order.end()));
  return *first;
}

Value SuperDSCLegalizer::copyToLine(Value from, AffineMap toLine,
                                    AffineMap &fromLine,
                                    ArrayRef<int64_t> extents,
                                    ArrayRef<int64_t> lengths) {
  auto type = cast<RankedTensorType>(from.getType());
  unsigned rank = type.getRank();
  int64_t numElements = ShapedType::getNumElements(lengths), repeats = 1;
  // Reads past the end continue at the beginning, so the line is longer.
  auto remainder = dyn_cast<AffineBinaryOpExpr>(fromLine.getResult(0));
  if (remainder && remainder.getKind() == AffineExprKind::Mod &&
      remainder.getRHS() ==
          getAffineConstantExpr(numElements, builder.getContext())) {
    auto [low, high] = getRange(remainder.getLHS(), extents);
    if (low >= 0 && getLinearForm(remainder.getLHS(), extents.size())) {
      repeats = high / numElements + 1;
      fromLine = AffineMap::get(extents.size(), 0, remainder.getLHS());
    }
  }
  SmallVector<int64_t> loops(type.getShape());
  AffineExpr to = toLine.getResult(0);
  if (repeats > 1) {
    to = to + builder.getAffineDimExpr(rank) * numElements;
    loops.push_back(repeats);
  }
  AffineMap read =
      AffineMap::getMultiDimIdentityMap(loops.size(), builder.getContext())
          .getMajorSubMap(rank);
  RankedTensorType lineType =
      withStick(numElements * repeats, type.getElementType(), -1);
  Value line = empty(lineType);
  if (numElements != type.getNumElements())
    line = fillGaps(line);
  return copy(from, read, line, AffineMap::get(loops.size(), 0, to), loops);
}

Value SuperDSCLegalizer::fillGaps(Value line) {
  auto type = cast<RankedTensorType>(line.getType());
  TypedAttr zero = builder.getF32FloatAttr(0.0);
  if (!isa<FloatType>(type.getElementType()))
    zero = builder.getI64IntegerAttr(0);
  auto fill = FillOp::create(builder, loc, ValueRange(), line,
                             builder.getMultiDimIdentityMap(type.getRank()),
                             type.getShape());
  fill.setImmediatesAttr(builder.getArrayAttr({zero}));
  made.push_back(fill);
  return fill.getResult();
}

void SuperDSCLegalizer::replaceInput(unsigned number,
                                     const llvm::SmallBitVector &others) {
  builder.setInsertionPoint(operation);
  RankedTensorType type = typeOf(number);
  Used used = getUsed(maps[number], others);
  Value turned = operation->getOperand(number);
  int64_t lane = -1;
  if (auto own = access(number)) {
    lane = positionOf(used.loops, own->laneDim);
  } else {
    int64_t stick = findStick(type, used.map, used.extents);
    RankedTensorType turnedType =
        withStick(type.getShape(), type.getElementType(), stick);
    turned = copyWhole(turned, turnedType);
    auto access = getStickAccess(used.map, getLayout(turnedType),
                                 type.getShape(), used.extents);
    if (access && stick >= 0)
      lane = access->laneDim;
    if (!access) {
      // Quotients of an index over all elements: as a line of elements.
      SmallVector<int64_t> lengths = getLengths(type.getShape(), used.map);
      auto [toLine, fromLine] = getLine(type, used.map, used.extents, lengths);
      turned = copyToLine(turned, toLine, fromLine, used.extents, lengths);
      used.map = fromLine;
    }
  }
  AffineMap identity = AffineMap::getMultiDimIdentityMap(used.extents.size(),
                                                         builder.getContext());
  Value part = copy(turned, used.map,
                    empty(withStick(used.extents, type.getElementType(), lane)),
                    identity, used.extents);
  int64_t wanted = positionOf(used.loops, wantedLane(number));
  if (wanted != lane)
    part =
        copyWhole(part, withStick(used.extents, type.getElementType(), wanted));
  operation->setOperand(number, part);
  setMap(number, used.projection);
}

void SuperDSCLegalizer::setMap(unsigned number, AffineMap map) {
  SmallVector<AffineMap> changed = op.getIndexingMaps();
  changed[number] = map;
  op.setLoopStructure(changed, extents);
  load();
}
