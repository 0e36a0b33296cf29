// SPDX-License-Identifier: Apache-2.0
//===- LegalizeSuperDSC.cpp - Accesses that SuperDSC can say ----*- C++ -*-===//

#include "Access.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/StickAccess.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYRELEGALIZESUPERDSC
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// Copies that a copy is unrolled to at most.
constexpr int64_t kMaxUnrolled = 64;

/// Dimensions of which all orders are tried.
constexpr int64_t kMaxPermuted = 4;

/// One operation being legalized.
class Legalizer {
public:
  Legalizer(SpyreOpInterface op, SmallVectorImpl<SpyreOpInterface> &made)
      : op(op), operation(op), builder(op), loc(op->getLoc()), made(made) {
    load();
  }

  /// Whether anything changed; what is made is legalized after.
  void run() {
    refined = refine();
    for (unsigned number = 0; number + 1 < op->getNumOperands(); ++number)
      if ((!access(number) && !isIndirect(number)) || hasGapInMatmul(number) ||
          (!isCopy() && isInterleaved(number)))
        replaceInput(number);
    // Loops are batches, rows, columns and one reduction.
    if (isa<MatmulOp>(operation) &&
        llvm::count(op.getLoopKinds(), utils::IteratorType::reduction) == 1) {
      expandFactors();
      mergeBatches();
    }
    unsigned init = op->getNumOperands() - 1;
    if ((!access(init) && !isIndirect(init)) || writesPartOfStick() ||
        hasGapInMatmul(init) || (!isCopy() && isInterleaved(init)) ||
        addsToParts())
      replaceInit();
    if (isCopy()) {
      unrollCopy();
      splitCopy();
    }
  }

  bool refined = false;

private:
  void load() {
    extents = op.getLoopExtents();
    maps = op.getIndexingMaps();
    for (AffineMap &map : maps)
      map = simplifyWithRanges(map, extents);
  }

  bool isCopy() const { return isa<IdentityOp, RestickifyOp>(operation); }
  bool isIndirect(unsigned number) {
    auto indirect = op.getIndirectAccess();
    return indirect && indirect->operand == number;
  }
  RankedTensorType typeOf(unsigned number) const {
    return cast<RankedTensorType>(operation->getOperand(number).getType());
  }
  std::optional<StickAccess> access(unsigned number) const {
    RankedTensorType type = typeOf(number);
    return getStickAccess(maps[number], getLayout(type), type.getShape(),
                          extents);
  }

  /// Whether a matmul skips sticks of an operand inside of all loops. That
  /// takes a dimension of its own, which matmuls do not have.
  bool hasGapInMatmul(unsigned number) const {
    if (!isa<MatmulOp>(operation))
      return false;
    auto own = access(number);
    return own && own->getInnermostStride() > 1;
  }

  /// Whether the loops' strides over sticks do not nest: some overlap or
  /// interleave, or walk backwards.
  bool isInterleaved(unsigned number) {
    auto own = access(number);
    return own && !isIndirect(number) && !areNested(*own, extents);
  }

  /// Whether each loop's stride is a multiple of what the loops inside of it
  /// walk over; `without` one of them.
  static bool areNested(const StickAccess &access, ArrayRef<int64_t> extents,
                        int64_t without = -1) {
    SmallVector<std::pair<int64_t, int64_t>> steps;
    for (auto [loop, stride] : llvm::enumerate(access.strides)) {
      bool isLane = access.laneDim == static_cast<int64_t>(loop);
      int64_t count =
          isLane ? llvm::divideCeilSigned(extents[loop], access.stickElements)
                 : extents[loop];
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

  bool refine() {
    // These know their loops by number.
    if (isa<TriOp, IotaOp, CumSumOp>(operation))
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
    // Of a matmul only rows and batches are cut.
    if (isa<MatmulOp>(operation) &&
        ArrayRef(loops->extents).take_back(2) != ArrayRef(extents).take_back(2))
      return false;
    for (auto [number, map] : llvm::enumerate(loops->maps))
      if (!getStickAccess(map, layouts[number], shapes[number],
                          loops->extents) &&
          access(number))
        return false;
    op.setLoopStructure(loops->maps, loops->extents);
    load();
    return true;
  }

  /// A tensor of one element per stick, or with the stick along `stick`.
  static RankedTensorType withStick(ArrayRef<int64_t> shape, Type element,
                                    int64_t stick) {
    SmallVector<int64_t> order;
    for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim)
      if (dim != stick)
        order.push_back(dim);
    if (stick >= 0)
      order.push_back(stick);
    return RankedTensorType::get(
        shape, element,
        LayoutAttr::get(element.getContext(), order, element, stick < 0));
  }

  Value empty(RankedTensorType type) {
    return tensor::EmptyOp::create(builder, loc, type.getShape(),
                                   type.getElementType(), type.getEncoding());
  }

  /// A copy over loops of `extents`.
  Value copy(Value from, AffineMap fromMap, Value to, AffineMap toMap,
             ArrayRef<int64_t> extents) {
    auto toType = cast<RankedTensorType>(to.getType());
    auto fromType = cast<RankedTensorType>(from.getType());
    // Changes of stick are operations of their own.
    auto in = getLaneAccess(fromMap, getLayout(fromType), fromType.getShape(),
                            extents);
    auto out =
        getLaneAccess(toMap, getLayout(toType), toType.getShape(), extents);
    bool changes = in.kind != out.kind || in.dim != out.dim;
    OperationState state(loc, changes ? RestickifyOp::getOperationName()
                                      : IdentityOp::getOperationName());
    state.addOperands({from, to});
    state.addTypes(toType);
    state.addAttribute("maps", builder.getAffineMapArrayAttr({fromMap, toMap}));
    state.addAttribute("extents", builder.getDenseI64ArrayAttr(extents));
    auto made = cast<SpyreOpInterface>(builder.create(state));
    this->made.push_back(made);
    return made->getResult(0);
  }

  Value copyWhole(Value from, RankedTensorType type, Value to = nullptr) {
    AffineMap map =
        AffineMap::getMultiDimIdentityMap(type.getRank(), builder.getContext());
    return copy(from, map, to ? to : empty(type), map, type.getShape());
  }

  /// The loops that a map depends on, and the map in terms of them alone.
  struct Used {
    SmallVector<unsigned> loops;
    SmallVector<int64_t> extents;
    /// From the operation's loops to the used ones, and the map after that.
    AffineMap projection, map;
  };
  Used getUsed(AffineMap map, const llvm::SmallBitVector &others = {}) {
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
    used.map =
        map.replaceDimsAndSymbols(replacements, {}, used.loops.size(), 0);
    return used;
  }

  /// A stick under which a tensor is accessed by `map` in SuperDSC's form: a
  /// dimension, or -1 for one element per stick.
  int64_t findStick(RankedTensorType type, AffineMap map,
                    ArrayRef<int64_t> extents) {
    for (int64_t stick = type.getRank() - 1; stick >= 0; --stick) {
      if (type.getDimSize(stick) == 1)
        continue;
      RankedTensorType own =
          withStick(type.getShape(), type.getElementType(), stick);
      auto access =
          getStickAccess(map, getLayout(own), own.getShape(), extents);
      if (access && access->laneDim >= 0)
        return stick;
    }
    return -1;
  }

  /// The loop along which the operation wants an operand's stick, or -1.
  int64_t wantedLane(unsigned number) {
    if (isa<MatmulOp>(operation))
      return static_cast<int64_t>(extents.size()) - (number == 0 ? 1 : 2);
    unsigned init = op->getNumOperands() - 1;
    for (unsigned other = init + 1; other-- > 0;) {
      if (other == number || isIndirect(other))
        continue;
      if (auto known = access(other); known && known->laneDim >= 0)
        return known->laneDim;
    }
    return -1;
  }

  static int64_t positionOf(ArrayRef<unsigned> loops, int64_t loop) {
    auto *found = llvm::find(loops, static_cast<unsigned>(loop));
    return loop < 0 || found == loops.end() ? -1 : found - loops.begin();
  }

  /// An order of a tensor's elements in which `map` reads them at fixed
  /// distances: where each element is, and what is read. Row-major if there is
  /// none.
  std::pair<AffineMap, AffineMap> getLine(RankedTensorType type, AffineMap map,
                                          ArrayRef<int64_t> extents) {
    MLIRContext *context = builder.getContext();
    SmallVector<unsigned> order(
        llvm::to_vector(llvm::seq<unsigned>(0, type.getRank())));
    std::optional<std::pair<AffineMap, AffineMap>> first;
    do {
      SmallVector<int64_t> shape;
      SmallVector<AffineExpr> all, read;
      for (unsigned dim : order) {
        shape.push_back(type.getDimSize(dim));
        all.push_back(getAffineDimExpr(dim, context));
        read.push_back(map.getResult(dim));
      }
      auto line = std::pair(
          getLinearIndex(AffineMap::get(type.getRank(), 0, all, context), shape,
                         type.getShape()),
          getLinearIndex(AffineMap::get(extents.size(), 0, read, context),
                         shape, extents));
      if (getLinearForm(line.second.getResult(0), extents.size()))
        return line;
      if (!first)
        first = line;
    } while (type.getRank() <= kMaxPermuted &&
             std::next_permutation(order.begin(), order.end()));
    return *first;
  }

  /// Leads an input through a copy of what the loops read of it; `others` are
  /// loops that the copy varies along, too.
  void replaceInput(unsigned number, const llvm::SmallBitVector &others = {}) {
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
        auto [toLine, fromLine] = getLine(type, used.map, used.extents);
        turned = copy(
            turned,
            AffineMap::getMultiDimIdentityMap(type.getRank(),
                                              builder.getContext()),
            empty(withStick(type.getNumElements(), type.getElementType(), -1)),
            toLine, type.getShape());
        used.map = fromLine;
      }
    }
    AffineMap identity = AffineMap::getMultiDimIdentityMap(
        used.extents.size(), builder.getContext());
    Value part =
        copy(turned, used.map,
             empty(withStick(used.extents, type.getElementType(), lane)),
             identity, used.extents);
    int64_t wanted = positionOf(used.loops, wantedLane(number));
    if (wanted != lane)
      part = copyWhole(part,
                       withStick(used.extents, type.getElementType(), wanted));
    operation->setOperand(number, part);
    setMap(number, used.projection);
  }

  /// Copies what a matmul's factors lack: x varies along all loops but the
  /// columns, y along columns and the reduction.
  void expandFactors() {
    unsigned columns = extents.size() - 2;
    for (unsigned number : {0, 1}) {
      llvm::SmallBitVector lacks(extents.size());
      for (unsigned loop = number == 0 ? 0 : columns; loop < extents.size();
           ++loop)
        if (extents[loop] > 1 && (number == 1 || loop != columns))
          lacks.set(loop);
      lacks.reset(getUsedDims(maps[number], extents));
      if (lacks.any())
        replaceInput(number, lacks);
    }
  }

  /// At most two batches are in both factors, and one beside the rows in x
  /// alone: more of them become one.
  void mergeBatches() {
    for (bool isInBoth : {true, false}) {
      llvm::SmallBitVector ofY = getUsedDims(maps[1], extents);
      llvm::SmallBitVector group(extents.size());
      for (unsigned loop = 0; loop + 3 < extents.size(); ++loop)
        if (extents[loop] > 1 && ofY.test(loop) == isInBoth)
          group.set(loop);
      if (group.count() > (isInBoth ? 2 : 1))
        mergeLoops(group);
    }
  }

  /// Makes one loop of several, through copies of the operands that vary along
  /// them in which they are one dimension.
  void mergeLoops(const llvm::SmallBitVector &group) {
    unsigned init = op->getNumOperands() - 1;
    for (unsigned number = 0; number <= init; ++number)
      if (!access(number))
        return;
    MLIRContext *context = builder.getContext();
    SmallVector<int64_t> merged;
    SmallVector<unsigned> newLoop(extents.size());
    unsigned first = group.find_first();
    for (unsigned loop = 0; loop < extents.size(); ++loop) {
      if (group.test(loop) && loop != first) {
        newLoop[loop] = newLoop[first];
        merged[newLoop[first]] *= extents[loop];
        continue;
      }
      newLoop[loop] = merged.size();
      merged.push_back(extents[loop]);
    }
    SmallVector<AffineMap> changed;
    builder.setInsertionPoint(operation);
    for (unsigned number = 0; number <= init; ++number) {
      AffineMap map = maps[number];
      if (!getUsedDims(map, extents).anyCommon(group)) {
        SmallVector<AffineExpr> renamed;
        for (unsigned loop = 0; loop < extents.size(); ++loop)
          renamed.push_back(group.test(loop)
                                ? getAffineConstantExpr(0, context)
                                : getAffineDimExpr(newLoop[loop], context));
        changed.push_back(
            map.replaceDimsAndSymbols(renamed, {}, merged.size(), 0));
        continue;
      }
      Used used = getUsed(map, group);
      // The copy's dimensions, and its coordinates in the loops used.
      SmallVector<int64_t> shape;
      SmallVector<AffineExpr> coordinates, projection;
      for (auto [position, loop] : llvm::enumerate(used.loops)) {
        AffineExpr own = getAffineDimExpr(position, context);
        AffineExpr dim = getAffineDimExpr(newLoop[loop], context);
        auto *known = llvm::find(projection, dim);
        if (known == projection.end()) {
          projection.push_back(dim);
          coordinates.push_back(own);
          shape.push_back(merged[newLoop[loop]]);
          continue;
        }
        AffineExpr &sum = coordinates[known - projection.begin()];
        sum = sum * extents[loop] + own;
      }
      auto toMap = AffineMap::get(used.loops.size(), 0, coordinates, context);
      auto laneOf = [&](int64_t loop) -> int64_t {
        if (positionOf(used.loops, loop) < 0 || group.test(loop))
          return -1;
        auto *known =
            llvm::find(projection, getAffineDimExpr(newLoop[loop], context));
        return known - projection.begin();
      };
      Type element = typeOf(number).getElementType();
      int64_t lane = laneOf(access(number)->laneDim);
      RankedTensorType type = withStick(shape, element, lane);
      changed.push_back(AffineMap::get(merged.size(), 0, projection, context));
      if (number != init) {
        Value part = copy(operation->getOperand(number), used.map, empty(type),
                          toMap, used.extents);
        int64_t wanted = laneOf(wantedLane(number));
        if (wanted != lane)
          part = copyWhole(part, withStick(shape, element, wanted));
        operation->setOperand(number, part);
        continue;
      }
      Value target = operation->getOperand(init);
      operation->setOperand(init, empty(type));
      Value result = operation->getResult(0);
      result.setType(type);
      builder.setInsertionPointAfter(operation);
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : result.getUses())
        uses.push_back(&use);
      Value whole = copy(result, toMap, target, used.map, used.extents);
      for (OpOperand *use : uses)
        use->set(whole);
    }
    op.setLoopStructure(changed, merged);
    load();
  }

  /// A copy that reads elements twice, or reads or writes them between each
  /// other, becomes one copy per iteration of a loop.
  void unrollCopy() {
    auto in = access(0), out = access(1);
    if (!in || !out)
      return;
    auto isEnough = [&](int64_t without) {
      return areNested(*in, extents, without) &&
             areNested(*out, extents, without);
    };
    if (isEnough(/*without=*/-1))
      return;
    // The shortest loop without which the others nest, or the shortest.
    std::optional<std::tuple<bool, int64_t, int64_t>> best;
    for (int64_t loop = 0; loop < static_cast<int64_t>(extents.size()); ++loop)
      if (extents[loop] > 1 && extents[loop] <= kMaxUnrolled &&
          in->laneDim != loop && out->laneDim != loop)
        best = std::min(best.value_or(std::tuple(true, kMaxUnrolled + 1, 0)),
                        std::tuple(!isEnough(loop), extents[loop], loop));
    if (!best)
      return;
    unsigned chosen = std::get<2>(*best);
    SmallVector<int64_t> rest(extents);
    rest.erase(rest.begin() + chosen);
    MLIRContext *context = builder.getContext();
    builder.setInsertionPoint(operation);
    for (int64_t number = 0; number < extents[chosen]; ++number) {
      SmallVector<AffineExpr> renamed;
      for (unsigned loop = 0; loop < extents.size(); ++loop)
        renamed.push_back(
            loop == chosen ? getAffineConstantExpr(number, context)
                           : getAffineDimExpr(loop - (loop > chosen), context));
      SmallVector<AffineMap> changed;
      for (AffineMap map : maps)
        changed.push_back(simplifyWithRanges(
            map.replaceDimsAndSymbols(renamed, {}, rest.size(), 0), rest));
      if (number + 1 < extents[chosen]) {
        operation->setOperand(1,
                              copy(operation->getOperand(0), changed[0],
                                   operation->getOperand(1), changed[1], rest));
        continue;
      }
      op.setLoopStructure(changed, rest);
      made.push_back(op);
      load();
      return;
    }
  }

  void setMap(unsigned number, AffineMap map) {
    SmallVector<AffineMap> changed = op.getIndexingMaps();
    changed[number] = map;
    op.setLoopStructure(changed, extents);
    load();
  }

  /// Whether the last stick written holds elements that the operation does not
  /// compute: other cores' or other operations'.
  bool writesPartOfStick() {
    unsigned init = op->getNumOperands() - 1;
    auto own = access(init);
    if (!own || own->laneDim < 0 ||
        extents[own->laneDim] % own->stickElements == 0)
      return false;
    RankedTensorType type = typeOf(init);
    int64_t dim = getLayout(type).getStickDim(type.getShape());
    return dim >= 0 && getRange(maps[init].getResult(dim), extents).second + 1 <
                           type.getDimSize(dim);
  }

  /// Whether the operation writes a part of a tensor whose other parts are
  /// collected in another form.
  bool addsToParts() {
    Value target = operation->getOperand(op->getNumOperands() - 1);
    return !op.getIndirectAccess() && !writesAll(op) &&
           isa_and_nonnull<RestickifyOp>(target.getDefiningOp()) &&
           isMadeOfParts(target);
  }

  void replaceInit() {
    unsigned init = op->getNumOperands() - 1;
    builder.setInsertionPoint(operation);
    RankedTensorType type = typeOf(init);
    Value target = operation->getOperand(init);
    Used used = getUsed(maps[init]);
    // Sticks along the inputs' lane, where there is one.
    int64_t wanted = -1;
    if (isa<MatmulOp>(operation))
      wanted = extents.size() - 2;
    for (unsigned number = 0; number < init && wanted < 0; ++number)
      if (auto own = access(number); own && !isIndirect(number))
        wanted = own->laneDim;
    int64_t lane = positionOf(used.loops, wanted);
    RankedTensorType partType =
        withStick(used.extents, type.getElementType(), lane);
    // Parts of one tensor are collected in one form: turning it in between
    // would read what is not written yet.
    bool isPart = !target.getDefiningOp<tensor::EmptyOp>() || feedsInit();
    int64_t stick = isPart ? -1 : findStick(type, used.map, used.extents);
    if (!writesWholeSticksOnly(type, used, stick))
      stick = -1;
    RankedTensorType turnedType =
        withStick(type.getShape(), type.getElementType(), stick);
    auto [turned, destination] = getTurned(init, turnedType);
    operation->setOperand(init, empty(partType));
    operation->getResult(0).setType(partType);
    SmallVector<AffineMap> changed = op.getIndexingMaps();
    changed[init] = used.projection;
    op.setLoopStructure(changed, extents);
    load();
    builder.setInsertionPointAfter(operation);
    Value result = operation->getResult(0);
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : result.getUses())
      uses.push_back(&use);
    Value part = result;
    int64_t turnedLane = -1;
    if (stick >= 0)
      turnedLane = getStickAccess(used.map, getLayout(turnedType),
                                  turnedType.getShape(), used.extents)
                       ->laneDim;
    if (turnedLane != lane)
      part = copyWhole(
          part, withStick(used.extents, type.getElementType(), turnedLane));
    AffineMap identity = AffineMap::getMultiDimIdentityMap(
        used.extents.size(), builder.getContext());
    Value whole = copy(part, identity, turned, used.map, used.extents);
    Value back = copyWhole(whole, type, destination);
    for (OpOperand *use : uses)
      use->set(back);
  }

  /// Whether another operation writes into the result.
  bool feedsInit() {
    return llvm::any_of(operation->getResult(0).getUses(), [](OpOperand &use) {
      auto user = dyn_cast<SpyreOpInterface>(use.getOwner());
      return user && user.isDpsInit(&use);
    });
  }

  /// Whether an operation writes all of its result.
  static bool writesAll(SpyreOpInterface op) {
    return op.getIndexingMaps().back().isIdentity() &&
           ArrayRef(op.getLoopExtents()) ==
               cast<ShapedType>(op->getResult(0).getType()).getShape();
  }

  /// Whether parts of a tensor are all that is written of it, in whatever form
  /// they are collected.
  static bool isMadeOfParts(Value tensor) {
    while (auto writer = tensor.getDefiningOp<SpyreOpInterface>()) {
      if (!writesAll(writer))
        tensor = writer.getSpyreInit();
      else if (isa<RestickifyOp>(*writer))
        tensor = writer->getOperand(0);
      else
        return false;
    }
    return tensor && tensor.getDefiningOp<tensor::EmptyOp>();
  }

  /// The tensor that an operation writes into in another layout, and where it
  /// goes when it is turned back.
  std::pair<Value, Value> getTurned(unsigned init,
                                    RankedTensorType turnedType) {
    Value target = operation->getOperand(init);
    if (target.getDefiningOp<tensor::EmptyOp>())
      return {empty(turnedType), target};
    // Another part, written before: in the same form, made so if need be.
    auto writer = target.getDefiningOp<SpyreOpInterface>();
    if (writer && target.hasOneUse()) {
      bool isBack = isa<RestickifyOp>(*writer) &&
                    writer->getOperand(0).getType() == turnedType;
      if (!isBack && !writesAll(writer) && isMadeOfParts(target) &&
          !writer.getIndirectAccess()) {
        Legalizer(writer, made).replaceInit();
        target = operation->getOperand(init);
        writer = target.getDefiningOp<SpyreOpInterface>();
        isBack = writer && isa<RestickifyOp>(*writer) &&
                 writer->getOperand(0).getType() == turnedType;
        builder.setInsertionPoint(operation);
      }
      if (isBack)
        return {writer->getOperand(0), writer.getSpyreInit()};
    }
    return {copyWhole(target, turnedType), target};
  }

  static bool writesWholeSticksOnly(RankedTensorType type, const Used &used,
                                    int64_t stick) {
    if (stick < 0)
      return true;
    int64_t elements = ::spyre::elemsPerStick(getLayout(type).getDataFormat());
    auto [low, high] = getRange(used.map.getResult(stick), used.extents);
    return (high - low + 1) % elements == 0 ||
           high + 1 == type.getDimSize(stick);
  }

  /// A change of stick reads and writes whole tensors and converts nothing.
  void splitCopy() {
    auto in = access(0), out = access(1);
    if (!in || !out)
      return;
    if (in->laneDim == out->laneDim)
      return;
    RankedTensorType from = typeOf(0), to = typeOf(1);
    auto isWhole = [&](unsigned number) {
      AffineMap map = maps[number];
      RankedTensorType type = typeOf(number);
      int64_t count = 1;
      for (int64_t extent : extents)
        count *= extent;
      if (count != type.getNumElements())
        return false;
      llvm::SmallBitVector seen(extents.size());
      for (AffineExpr expr : map.getResults()) {
        if (auto constant = dyn_cast<AffineConstantExpr>(expr))
          continue;
        auto dim = dyn_cast<AffineDimExpr>(expr);
        if (!dim || seen.test(dim.getPosition()))
          return false;
        seen.set(dim.getPosition());
      }
      return true;
    };
    AffineMap identity =
        AffineMap::getMultiDimIdentityMap(extents.size(), builder.getContext());
    bool converts = from.getElementType() != to.getElementType();
    if (converts || !isWhole(0)) {
      // First the part in its own stick, converted.
      builder.setInsertionPoint(operation);
      int64_t lane = in->laneDim;
      Value part = copy(operation->getOperand(0), maps[0],
                        empty(withStick(extents, to.getElementType(), lane)),
                        identity, extents);
      operation->setOperand(0, part);
      setMap(0, identity);
    }
    if (!isWhole(1)) {
      int64_t lane = out->laneDim;
      builder.setInsertionPoint(operation);
      Value part = copy(operation->getOperand(0), maps[0],
                        empty(withStick(extents, to.getElementType(), lane)),
                        identity, extents);
      operation->setOperand(0, part);
      setMap(0, identity);
    }
  }

  SpyreOpInterface op;
  Operation *operation;
  OpBuilder builder;
  Location loc;
  SmallVectorImpl<SpyreOpInterface> &made;
  SmallVector<int64_t> extents;
  SmallVector<AffineMap> maps;
};

/// What a reduction of nothing gives, which SuperDSC has no dimension for:
/// nothing if it gives no number or reads more than what it reduces.
static std::optional<double> getEmptyResult(SpyreOpInterface op) {
  SmallVector<utils::IteratorType> kinds = op.getLoopKinds();
  bool isEmpty = false;
  for (auto [extent, kind] : llvm::zip_equal(op.getLoopExtents(), kinds)) {
    if (kind == utils::IteratorType::parallel && extent == 0)
      return std::nullopt;
    isEmpty |= extent == 0;
  }
  if (!isEmpty || op.getNumEpilogueInputs() != 0)
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, std::optional<double>>(op.getOperation())
      .Case<SumOp, MatmulOp, SumProductsOp, AnyOp>([](auto) { return 0.0; })
      .Case<ProdOp, AllOp>([](auto) { return 1.0; })
      .Default([](Operation *) { return std::nullopt; });
}

/// Replaces a reduction of nothing by its result.
static void fillEmptyReductions(func::FuncOp function) {
  SmallVector<std::pair<SpyreOpInterface, double>> empty;
  function.walk([&](SpyreOpInterface op) {
    if (op.getCombiner() != Combiner::None && op->getNumResults() == 1)
      if (std::optional<double> value = getEmptyResult(op))
        empty.emplace_back(op, *value);
  });
  for (auto [op, value] : empty) {
    OpBuilder builder(op);
    auto type = cast<RankedTensorType>(op.getSpyreInit().getType());
    OperationState state(op->getLoc(), FillOp::getOperationName());
    state.addOperands(op.getSpyreInit());
    state.addTypes(op->getResult(0).getType());
    TypedAttr number = builder.getF32FloatAttr(value);
    if (!isa<FloatType>(type.getElementType()))
      number = builder.getI64IntegerAttr(static_cast<int64_t>(value));
    state.addAttribute("immediates", builder.getArrayAttr({number}));
    auto fill = cast<SpyreOpInterface>(builder.create(state));
    fill.setLoopStructure({AffineMap::getMultiDimIdentityMap(
                              type.getRank(), builder.getContext())},
                          type.getShape());
    op->replaceAllUsesWith(fill->getResults());
    op->erase();
  }
}

class LegalizeSuperDSCPass
    : public spyre_graph::impl::SpyreLegalizeSuperDSCBase<
          LegalizeSuperDSCPass> {
public:
  using SpyreLegalizeSuperDSCBase::SpyreLegalizeSuperDSCBase;

  void runOnOperation() override {
    fillEmptyReductions(getOperation());
    SmallVector<SpyreOpInterface> work;
    getOperation().walk([&](SpyreOpInterface op) {
      if (op->getNumResults() == 1 && getLayout(op.getSpyreInit().getType()) &&
          !llvm::is_contained(op.getLoopExtents(), 0))
        work.push_back(op);
    });
    // Copies that are made need at most loops cut and parts made whole.
    llvm::SetVector<Operation *> all;
    for (unsigned round = 0; round < 8 && !work.empty(); ++round) {
      SmallVector<SpyreOpInterface> made;
      for (SpyreOpInterface op : work) {
        Legalizer legalizer(op, made);
        legalizer.run();
        numRefined += legalizer.refined;
      }
      for (SpyreOpInterface op : made)
        all.insert(op);
      work = std::move(made);
    }
    // What joined parts is not needed between them.
    for (Operation *op : llvm::reverse(all)) {
      if (op->use_empty())
        op->erase();
      else
        ++numCopies;
    }
  }
};

} // namespace
