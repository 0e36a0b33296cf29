//===- PropagateLayouts.cpp - Views into maps, layouts on tensors -*- C++ -*-=//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "FoldCasts.h"
#include "LayoutChoices.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREPROPAGATELAYOUTS
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// Price of one more kernel in device bytes: about what the card moves while it
/// starts one (a guess; the order of a microsecond at 204.8 GB/s).
constexpr int64_t kKernelInBytes = 1 << 16;
/// Users that a choice looks at; more would make the pass quadratic where one
/// value has very many.
constexpr unsigned kMaxUsersInspected = 8;

class LayoutPropagation {
public:
  struct Counters {
    int64_t unusedOps = 0, copiesFolded = 0, viewsFolded = 0,
            viewsMaterialized = 0, restickify = 0, laneCopies = 0,
            copiedBytes = 0;
  };

  LayoutPropagation(func::FuncOp func, bool superdscCompatible)
      : func(func), superdscCompatible(superdscCompatible),
        context(func.getContext()), builder(func.getContext()) {}

  LogicalResult run() {
    if (failed(checkArguments()))
      return failure();
    eraseUnused();
    func.walk([](SpyreOpInterface op) {
      op.setLoopStructure(op.getIndexingMaps(), op.getLoopExtents());
    });
    turnCopiesIntoViews();
    SmallVector<ViewOp> views;
    func.walk<WalkOrder::PreOrder>([&](ViewOp view) { views.push_back(view); });
    for (ViewOp view : views)
      foldView(view);
    // SuperDSC has operations on one type only.
    if (!superdscCompatible)
      counters.copiesFolded += foldCasts(func);
    WalkResult result = func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      return failed(visit(op)) ? WalkResult::interrupt()
                               : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    updateFunctionType();
    func.walk([](tensor::EmptyOp empty) {
      if (empty->use_empty())
        empty->erase();
    });
    return success();
  }

  Counters counters;

private:
  /// SG-PROPAGATE-C1
  LogicalResult checkArguments() {
    for (BlockArgument argument : func.getArguments())
      if (isa<TensorType>(argument.getType()) && !getLayout(argument.getType()))
        return func.emitError() << "argument " << argument.getArgNumber()
                                << " has no layout: " << argument.getType();
    return success();
  }

  /// Erases operations whose results nothing uses: decomposition makes every
  /// result of a composite, and training graphs save more than they read.
  void eraseUnused() {
    SmallVector<Operation *> ops;
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<SpyreOpInterface, ViewOp>(op) && op->getNumResults() == 1)
        ops.push_back(op);
    });
    for (Operation *op : llvm::reverse(ops))
      if (op->use_empty()) {
        counters.unusedOps += isa<SpyreOpInterface>(op);
        op->erase();
      }
  }

  //===--------------------------------------------------------------------===//
  // Views
  //===--------------------------------------------------------------------===//

  /// A copy that only rearranges (clone, contiguous) and has one user, itself
  /// an operation, is a view: if the user cannot read it in place, it gets a
  /// copy below, in the layout that it needs.
  void turnCopiesIntoViews() {
    SmallVector<IdentityOp> copies;
    func.walk<WalkOrder::PreOrder>([&](IdentityOp op) {
      if (isPlainCopy(op))
        copies.push_back(op);
    });
    for (IdentityOp op : copies) {
      builder.setInsertionPoint(op);
      AffineMap map = cast<AffineMapAttr>((*op.getMaps())[0]).getValue();
      Value view =
          ViewOp::create(builder, op.getLoc(), op.getResult().getType(),
                         op.getInputs()[0], AffineMapAttr::get(map));
      op.getResult().replaceAllUsesWith(view);
      op.erase();
      ++counters.copiesFolded;
    }
  }

  static bool isPlainCopy(IdentityOp op) {
    if (op->getNumResults() != 1 || op.getInputs().size() != 1 ||
        !op.getResult().hasOneUse() ||
        !op.getInit().getDefiningOp<tensor::EmptyOp>())
      return false;
    auto source = cast<ShapedType>(op.getInputs()[0].getType());
    auto result = cast<ShapedType>(op.getResult().getType());
    if (source.getElementType() != result.getElementType() ||
        getLayout(result) || result.getNumElements() == 0 ||
        *op.getExtents() != result.getShape() ||
        !cast<AffineMapAttr>((*op.getMaps())[1]).getValue().isIdentity())
      return false;
    OpOperand &use = *op.getResult().use_begin();
    auto user = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
    if (!isa<ViewOp>(use.getOwner()) &&
        !(user && isa<SpyreOpInterface>(use.getOwner()) &&
          !user.isDpsInit(&use)))
      return false;
    // Of an argument that is updated the copy keeps the old value, at the size
    // of what is read instead of the whole argument.
    Value root = op.getInputs()[0];
    while (auto view = root.getDefiningOp<ViewOp>())
      root = view.getSource();
    return llvm::none_of(root.getUses(), [](OpOperand &use) {
      auto op = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
      return isa<bufferization::MaterializeInDestinationOp>(use.getOwner()) ||
             (op && op.isDpsInit(&use));
    });
  }

  void foldView(ViewOp view) {
    Value copy;
    for (OpOperand &use : llvm::make_early_inc_range(view->getUses())) {
      if (succeeded(foldIntoUser(view, use))) {
        ++counters.viewsFolded;
        continue;
      }
      if (!copy) {
        builder.setInsertionPoint(view);
        ArrayRef<int64_t> shape = getShape(view.getResult());
        copy = createCopy(IdentityOp::getOperationName(), view.getLoc(),
                          view.getSource(), view.getMap(), shape,
                          /*layout=*/nullptr);
        ++counters.viewsMaterialized;
      }
      use.set(copy);
    }
    view.erase();
  }

  LogicalResult foldIntoUser(ViewOp view, OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto other = dyn_cast<ViewOp>(user)) {
      other.setMap(simplifyWithRanges(view.getMap().compose(other.getMap()),
                                      getShape(other.getResult())));
      use.set(view.getSource());
      return success();
    }
    auto op = dyn_cast<SpyreOpInterface>(user);
    if (!op || op.isDpsInit(&use))
      return failure();
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    SmallVector<int64_t> extents = op.getLoopExtents();
    AffineMap &map = maps[use.getOperandNumber()];
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    bool isIndirect = indirect && indirect->operand == use.getOperandNumber();
    // The index replaces one coordinate of the table, so the view must pass
    // that coordinate on as it is.
    if (isIndirect && !keepsCoordinate(view, indirect->dim))
      return failure();
    map = simplifyWithRanges(view.getMap().compose(map), extents);
    op.setLoopStructure(maps, extents);
    use.set(view.getSource());
    return success();
  }

  static bool keepsCoordinate(ViewOp view, int64_t dim) {
    if (dim >= static_cast<int64_t>(view.getMap().getNumResults()) ||
        getShape(view.getSource())[dim] != getShape(view.getResult())[dim])
      return false;
    for (auto [number, expr] : llvm::enumerate(view.getMap().getResults())) {
      if (static_cast<int64_t>(number) == dim) {
        // One row has one index, whatever the view's map says.
        if (expr != getAffineDimExpr(dim, view.getContext()))
          return false;
      } else if (expr.isFunctionOfDim(dim)) {
        return false;
      }
    }
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Copies
  //===--------------------------------------------------------------------===//

  /// A new tensor of shape `shape` that holds `source` at `map`.
  Value createCopy(StringRef opName, Location loc, Value source, AffineMap map,
                   ArrayRef<int64_t> shape, Attribute layout) {
    auto type = RankedTensorType::get(
        shape, cast<ShapedType>(source.getType()).getElementType(), layout);
    Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
    OperationState state(loc, opName);
    state.addOperands({source, empty});
    state.addTypes(type);
    AffineMap initMap =
        AffineMap::getMultiDimIdentityMap(shape.size(), context);
    state.addAttribute("maps", builder.getAffineMapArrayAttr({map, initMap}));
    state.addAttribute("extents", builder.getDenseI64ArrayAttr(shape));
    return builder.create(state)->getResult(0);
  }

  /// What a copy of an operand would be: the source in its own shape, or a
  /// tensor over the loop dimensions that the operand depends on.
  struct CopyPlan {
    bool hasSourceShape = false;
    SmallVector<unsigned> loopDims;
    SmallVector<int64_t> shape;
    AffineMap sourceMap;
    LayoutAttr layout;
    int64_t sizeInBytes;
  };

  CopyPlan planCopy(const OpInfo &info, unsigned operand, StickChoice stick) {
    CopyPlan plan;
    AffineMap map = simplifyWithRanges(info.maps[operand], info.extents);
    SmallVector<AffineExpr> renumbered(info.extents.size(),
                                       builder.getAffineConstantExpr(0));
    SmallVector<int64_t> order;
    int64_t stickDim = -1;
    llvm::SmallBitVector usedDims = getUsedDims(map, info.extents);
    for (unsigned dim : usedDims.set_bits()) {
      unsigned position = plan.loopDims.size();
      renumbered[dim] = builder.getAffineDimExpr(position);
      if (stick && *stick == dim)
        stickDim = position;
      else
        order.push_back(position);
      plan.loopDims.push_back(dim);
      plan.shape.push_back(info.extents[dim]);
    }
    bool sparse = stickDim < 0 && !order.empty();
    if (stickDim >= 0)
      order.push_back(stickDim);
    plan.sourceMap =
        map.replaceDimsAndSymbols(renumbered, {}, plan.loopDims.size(), 0);
    auto type = cast<ShapedType>(info.op->getOperand(operand).getType());
    if (std::optional<int64_t> sourceStick = getStickOfSourceCopy(
            map, info.extents, type.getShape(),
            ShapedType::getNumElements(plan.shape), stick)) {
      plan.hasSourceShape = true;
      plan.shape = llvm::to_vector(type.getShape());
      plan.sourceMap =
          AffineMap::getMultiDimIdentityMap(type.getRank(), context);
      sparse = *sourceStick < 0;
      order.clear();
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        if (dim != *sourceStick)
          order.push_back(dim);
      if (!sparse)
        order.push_back(*sourceStick);
    }
    plan.layout =
        LayoutAttr::get(context, order, type.getElementType(), sparse);
    plan.sizeInBytes = getSizeInBytes(plan.layout, plan.shape);
    return plan;
  }

  /// The stick dimension, -1 for one element per stick, that the source of an
  /// access has to have for the access to run along `stick`; nothing if the
  /// source cannot, or if a copy of what is accessed is smaller. A copy of the
  /// source is read by every loop nest alike (and grouped queries read each
  /// head of keys several times).
  static std::optional<int64_t> getStickOfSourceCopy(AffineMap map,
                                                     ArrayRef<int64_t> extents,
                                                     ArrayRef<int64_t> shape,
                                                     int64_t numAccessed,
                                                     StickChoice stick) {
    int64_t numElements = ShapedType::getNumElements(shape);
    bool isPlain = llvm::all_of(
        map.getResults(), llvm::IsaPred<AffineDimExpr, AffineConstantExpr>);
    if (shape.empty() || numElements > numAccessed ||
        (numElements == numAccessed && !isPlain))
      return std::nullopt;
    if (!stick || !getUsedDims(map, extents).test(*stick))
      return -1;
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr);
          loop && loop.getPosition() == *stick)
        return dim;
    return std::nullopt;
  }

  /// Bytes that the copy of an operand moves, in units of the price of a
  /// choice.
  int64_t getCopyPrice(const OpInfo &info, unsigned operand,
                       StickChoice stick) {
    return 2 * planCopy(info, operand, stick).sizeInBytes + kKernelInBytes;
  }

  /// Makes operand `operand` accessible along `stick` by copying it.
  void copyOperand(OpInfo &info, unsigned operand, StickChoice stick,
                   LaneAccess::Kind kind) {
    CopyPlan plan = planCopy(info, operand, stick);
    Value source = info.op->getOperand(operand);
    Value copy;
    for (const MadeCopy &made : madeCopies[source])
      if (made.block == info.op->getBlock() && made.map == plan.sourceMap &&
          made.layout == plan.layout &&
          getShape(made.copy) == ArrayRef(plan.shape))
        copy = made.copy;
    if (!copy) {
      builder.setInsertionPoint(info.op);
      bool changesStick = kind != LaneAccess::Irregular;
      copy = createCopy(changesStick ? RestickifyOp::getOperationName()
                                     : IdentityOp::getOperationName(),
                        info.op->getLoc(), source, plan.sourceMap, plan.shape,
                        plan.layout);
      madeCopies[source].push_back(
          {info.op->getBlock(), plan.sourceMap, plan.layout, copy});
      ++(changesStick ? counters.restickify : counters.laneCopies);
      counters.copiedBytes += plan.sizeInBytes;
    }
    if (!plan.hasSourceShape) {
      SmallVector<AffineExpr> results;
      for (unsigned dim : plan.loopDims)
        results.push_back(builder.getAffineDimExpr(dim));
      info.maps[operand] =
          AffineMap::get(info.extents.size(), 0, results, context);
    }
    info.op->setOperand(operand, copy);
    info.op.setLoopStructure(info.maps, info.extents);
  }

  //===--------------------------------------------------------------------===//
  // Layouts
  //===--------------------------------------------------------------------===//

  LogicalResult visit(Operation *op) {
    if (auto spyreOp = dyn_cast<SpyreOpInterface>(op))
      return visitSpyreOp(spyreOp);
    if (auto materialize =
            dyn_cast<bufferization::MaterializeInDestinationOp>(op)) {
      if (materialize.getResult())
        materialize.getResult().setType(
            cast<TensorType>(materialize.getDest().getType()));
      return success();
    }
    // SG-PROPAGATE-C2
    if (isa<tensor::EmptyOp>(op))
      return success();
    for (Type type : op->getResultTypes())
      if (isa<TensorType>(type))
        return op->emitOpError(
            "is no device operation; run --spyre-decompose first, or leave "
            "the operation outside the graph");
    return success();
  }

  LogicalResult visitSpyreOp(SpyreOpInterface op) {
    if (op->getNumResults() == 0)
      return success(); // On buffers, whose layouts are settled.
    // Undefined contents have any layout.
    for (Value input : op.getSpyreInputs())
      if (!getLayout(input.getType())) {
        auto empty = input.getDefiningOp<tensor::EmptyOp>();
        if (!empty)
          return op->emitOpError()
                 << "input has no layout: " << input.getType();
        auto type = cast<RankedTensorType>(input.getType());
        input.setType(type.cloneWithEncoding(LayoutAttr::getDefault(type)));
      }

    OpInfo info(op);
    if (info.indirect)
      makeIndirectlyAccessible(info);
    Value init = op.getSpyreInit();
    LayoutAttrInterface fixed = getLayout(init.getType());
    if (op.getLayoutRule() == LayoutRule::Matmul)
      settleMatmul(info, fixed);
    else
      settle(info, fixed);
    return success();
  }

  /// A layout of the same shape in which indices select along `dim` whole rows
  /// of sticks, or null if `layout` is one.
  LayoutAttr getIndexableLayout(ShapedType type, LayoutAttrInterface layout,
                                int64_t dim) {
    SmallVector<::spyre::DeviceDim> deviceDims =
        layout.getDeviceDims(type.getShape());
    unsigned parts = llvm::count_if(deviceDims, [&](const auto &deviceDim) {
      return deviceDim.hostDim == dim;
    });
    if (parts == 1 && deviceDims.back().hostDim != dim)
      return nullptr;
    int64_t stickDim = -1;
    SmallVector<int64_t> order;
    for (int64_t other = 0; other < type.getRank(); ++other)
      if (other != dim && type.getDimSize(other) > 1)
        stickDim = other;
    for (int64_t other = 0; other < type.getRank(); ++other)
      if (other != stickDim)
        order.push_back(other);
    if (stickDim >= 0)
      order.push_back(stickDim);
    return LayoutAttr::get(context, order, type.getElementType(),
                           /*sparse=*/stickDim < 0);
  }

  /// Indices cannot select lanes: where the accessed dimension lies along the
  /// sticks, the op works on a copy with another stick, which is copied back if
  /// the op updates it.
  void makeIndirectlyAccessible(OpInfo &info) {
    unsigned operand = info.indirect->operand;
    Value accessed = info.op->getOperand(operand);
    auto type = cast<ShapedType>(accessed.getType());
    LayoutAttrInterface layout = getLayout(type);
    LayoutAttr indexable =
        layout ? getIndexableLayout(type, layout, info.indirect->dim) : nullptr;
    if (!indexable)
      return;
    AffineMap identity =
        AffineMap::getMultiDimIdentityMap(type.getRank(), context);
    builder.setInsertionPoint(info.op);
    Value copy = createCopy(RestickifyOp::getOperationName(), info.op->getLoc(),
                            accessed, identity, type.getShape(), indexable);
    ++counters.restickify;
    counters.copiedBytes += getSizeInBytes(indexable, type.getShape());
    info.op->setOperand(operand, copy);
    if (operand != info.getInitNumber())
      return;
    Value result = info.op->getResult(0);
    result.setType(cast<RankedTensorType>(copy.getType()));
    builder.setInsertionPointAfter(info.op);
    OperationState state(info.op->getLoc(), RestickifyOp::getOperationName());
    state.addOperands({result, accessed});
    state.addTypes(accessed.getType());
    state.addAttribute("maps",
                       builder.getAffineMapArrayAttr({identity, identity}));
    state.addAttribute("extents",
                       builder.getDenseI64ArrayAttr(type.getShape()));
    Operation *back = builder.create(state);
    result.replaceAllUsesExcept(back->getResult(0), back);
    ++counters.restickify;
    counters.copiedBytes += getSizeInBytes(layout, type.getShape());
  }

  /// The sticks of a contraction follow from which factor is x and which is y.
  /// They are exchanged where that is half the price (what the users of users
  /// need is not seen here): few rows are turned instead of a large weight. The
  /// result must stay in the function, whose callers expect its usual layout.
  void settleMatmul(OpInfo &info, LayoutAttrInterface fixed) {
    if (!fixed && !superdscCompatible && !llvm::is_contained(info.extents, 0)) {
      OpInfo exchanged = exchangeFactors(info);
      if (fillsSticks(exchanged) &&
          llvm::all_of(info.op->getUsers(), llvm::IsaPred<SpyreOpInterface>) &&
          2 * getMatmulPrice(exchanged, /*isExchanged=*/true) <
              getMatmulPrice(info, /*isExchanged=*/false)) {
        Value x = info.op->getOperand(0), y = info.op->getOperand(1);
        info.op->setOperand(0, y);
        info.op->setOperand(1, x);
        info.op.setLoopStructure(exchanged.maps, exchanged.extents);
        info = exchanged;
      }
    }
    MatmulSticks sticks(info);
    for (unsigned operand = 0; operand < info.getInitNumber(); ++operand)
      makeCompatible(info, operand, sticks.getFor(operand));
    if (!fixed)
      setResultLayout(info, getResultLayout(info, sticks.n));
    else
      setResultLayout(info, fixed);
  }

  /// Whether the dimension along the sticks of the result fills one: the matrix
  /// unit computes whole sticks.
  static bool fillsSticks(const OpInfo &info) {
    StickChoice n = MatmulSticks(info).n;
    return n && info.getInitDim(*n) >= 0 &&
           info.extents[*n] >=
               ::spyre::elemsPerStick(
                   getDeviceFormat(
                       cast<ShapedType>(info.op->getResult(0).getType())
                           .getElementType())
                       .value_or(::spyre::DataFormat::SEN169_FP16));
  }

  /// As getPrice(), for a contraction whose factors are exchanged or not.
  int64_t getMatmulPrice(const OpInfo &info, bool isExchanged) {
    MatmulSticks sticks(info);
    int64_t price = 0;
    for (unsigned number = 0; number < info.getInitNumber(); ++number) {
      // The operation itself has its operands in the order they came in.
      unsigned operand = isExchanged && number < 2 ? 1 - number : number;
      LayoutAttrInterface layout =
          getLayout(info.op->getOperand(operand).getType());
      StickChoice stick = sticks.getFor(number);
      LaneAccess access =
          getLaneAccess(info.maps[number], layout,
                        getShape(info.op->getOperand(operand)), info.extents);
      if (isCompatible(access, info.maps[number], info.extents, stick))
        continue;
      OpInfo asGiven(info.op);
      price += getCopyPrice(asGiven, operand, stick);
    }
    return price + getResultPrice(info, sticks.n);
  }

  void settle(OpInfo &info, LayoutAttrInterface fixed) {
    StickChoice stick;
    if (fixed) {
      LaneAccess access = info.getAccess(info.getInitNumber(), fixed);
      if (access.kind == LaneAccess::Variable)
        stick = access.dim;
      else if (access.kind == LaneAccess::Zero)
        stick = getStickOfReducedInput(info);
      else
        return setResultLayout(info, fixed); // The op moves within sticks.
    } else {
      stick = chooseStick(info);
    }
    if (!isCopy(info.op))
      for (unsigned operand = 0; operand < info.getInitNumber(); ++operand)
        makeCompatible(info, operand, stick);
    setResultLayout(info, fixed ? fixed : getResultLayout(info, stick));
  }

  /// For an op that writes one element per stick: the reduced loop dimension
  /// along the sticks of an input, which a reduction may keep.
  StickChoice getStickOfReducedInput(const OpInfo &info) {
    for (unsigned operand = 0; operand < info.getInitNumber(); ++operand) {
      LaneAccess access = info.getAccess(
          operand, getLayout(info.op->getOperand(operand).getType()));
      if (access.kind == LaneAccess::Variable &&
          !info.maps.back().isFunctionOfDim(access.dim))
        return access.dim;
    }
    return std::nullopt;
  }

  void makeCompatible(OpInfo &info, unsigned operand, StickChoice stick) {
    LayoutAttrInterface layout =
        getLayout(info.op->getOperand(operand).getType());
    if (info.isExempt(operand, layout) || llvm::is_contained(info.extents, 0))
      return;
    LaneAccess access = info.getAccess(operand, layout);
    if (!isCompatible(access, info.maps[operand], info.extents, stick) &&
        !(info.indirect && info.indirect->operand == operand))
      copyOperand(info, operand, stick, access.kind);
  }

  /// The cheapest stick for an op that makes a new tensor.
  StickChoice chooseStick(const OpInfo &info) {
    SmallVector<StickChoice> candidates;
    auto addCandidate = [&](StickChoice stick) {
      if (!llvm::is_contained(candidates, stick))
        candidates.push_back(stick);
    };
    bool allLaneZero = info.getInitNumber() > 0;
    for (unsigned operand = 0; operand < info.getInitNumber(); ++operand) {
      LayoutAttrInterface layout =
          getLayout(info.op->getOperand(operand).getType());
      if (info.isExempt(operand, layout))
        continue;
      LaneAccess access = info.getAccess(operand, layout);
      if (access.kind != LaneAccess::Zero)
        allLaneZero = false;
      if (access.kind == LaneAccess::Variable &&
          (info.getInitDim(access.dim) >= 0 ||
           !info.maps.back().isFunctionOfDim(access.dim)))
        addCandidate(access.dim);
    }
    if (allLaneZero)
      addCandidate(std::nullopt);
    for (unsigned number = info.maps.back().getNumResults(); number-- > 0;)
      for (unsigned dim = 0; dim < info.extents.size(); ++dim)
        if (info.extents[dim] > 1 &&
            info.getInitDim(dim) == static_cast<int64_t>(number))
          addCandidate(dim);
    if (candidates.empty())
      return std::nullopt;
    if (candidates.size() == 1)
      return candidates.front();
    StickChoice best;
    int64_t bestPrice = std::numeric_limits<int64_t>::max();
    for (StickChoice candidate : candidates) {
      int64_t price = getPrice(info, candidate);
      if (price < bestPrice) {
        best = candidate;
        bestPrice = price;
      }
    }
    return best;
  }

  /// Device bytes of the result, and of the copies that a choice causes for
  /// this op and its direct users.
  int64_t getPrice(const OpInfo &info, StickChoice stick) {
    int64_t price = 0;
    if (!isCopy(info.op))
      for (unsigned operand = 0; operand < info.getInitNumber(); ++operand) {
        LayoutAttrInterface layout =
            getLayout(info.op->getOperand(operand).getType());
        if (!info.isExempt(operand, layout) &&
            !isCompatible(info.getAccess(operand, layout), info.maps[operand],
                          info.extents, stick))
          price += getCopyPrice(info, operand, stick);
      }
    return price + getResultPrice(info, stick);
  }

  /// Device bytes of the result, and of the copies that its users need.
  int64_t getResultPrice(const OpInfo &info, StickChoice stick) {
    LayoutAttr layout = getResultLayout(info, stick);
    Value result = info.op->getResult(0);
    int64_t price = getSizeInBytes(layout, getShape(result));
    unsigned inspected = 0;
    for (OpOperand &use : result.getUses()) {
      if (inspected++ == kMaxUsersInspected)
        break;
      price += getUserPrice(use, layout);
    }
    return price;
  }

  /// Bytes of the copies that one user needs if its operand has `layout`.
  int64_t getUserPrice(OpOperand &use, LayoutAttr layout) {
    auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
    if (!op) // The function's result: the default layout is what users expect.
      return layout == LayoutAttr::getDefault(
                           cast<ShapedType>(use.get().getType()))
                 ? 0
                 : 1;
    if (isCopy(op) && !op.isDpsInit(&use))
      return 0;
    OpInfo user(op);
    unsigned number = use.getOperandNumber();
    LaneAccess access = user.getAccess(number, layout);
    if (op.getLayoutRule() == LayoutRule::Matmul) {
      StickChoice stick = MatmulSticks(user).getFor(number);
      return isCompatible(access, user.maps[number], user.extents, stick)
                 ? 0
                 : getCopyPrice(user, number, stick);
    }
    if (user.isExempt(number, layout))
      return 0;
    if (access.kind == LaneAccess::Irregular)
      return op.isDpsInit(&use) ? 0 : getCopyPrice(user, number, std::nullopt);
    // One of the two operands has to be copied where their sticks differ.
    int64_t price = 0;
    for (unsigned other = 0; other < user.maps.size(); ++other) {
      LayoutAttrInterface otherLayout =
          getLayout(op->getOperand(other).getType());
      if (other == number || !otherLayout || user.isExempt(other, otherLayout))
        continue;
      LaneAccess otherAccess = user.getAccess(other, otherLayout);
      if (otherAccess.kind == LaneAccess::Irregular ||
          (access.kind == LaneAccess::Zero &&
           otherAccess.kind == LaneAccess::Zero))
        continue;
      StickChoice stick = otherAccess.kind == LaneAccess::Variable
                              ? StickChoice(otherAccess.dim)
                              : StickChoice(access.dim);
      bool compatible =
          isCompatible(access, user.maps[number], user.extents, stick) &&
          isCompatible(otherAccess, user.maps[other], user.extents, stick);
      if (!compatible)
        price = std::max(
            price, std::min(getCopyPrice(user, number, stick),
                            getCopyPrice(user, other,
                                         access.kind == LaneAccess::Variable
                                             ? StickChoice(access.dim)
                                             : StickChoice())));
    }
    return price;
  }

  /// The layout of a new result: dimensions in order, the one along the stick
  /// last; one element per stick where no dimension runs along it.
  LayoutAttr getResultLayout(const OpInfo &info, StickChoice stick) {
    auto type = cast<ShapedType>(info.op->getResult(0).getType());
    int64_t stickDim = stick ? info.getInitDim(*stick) : -1;
    // One element fills no stick either way; the default says so simplest.
    bool single = type.getRank() == 0 ||
                  llvm::all_of(type.getShape(),
                               [](int64_t extent) { return extent <= 1; });
    bool indexed =
        info.indirect && info.indirect->operand == info.getInitNumber();
    if (stickDim < 0 && !indexed && (single || info.getInitNumber() == 0))
      return LayoutAttr::getDefault(type);
    SmallVector<int64_t> order;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (dim != stickDim)
        order.push_back(dim);
    if (stickDim >= 0)
      order.push_back(stickDim);
    return LayoutAttr::get(context, order, type.getElementType(),
                           /*sparse=*/stickDim < 0);
  }

  void setResultLayout(OpInfo &info, LayoutAttrInterface layout) {
    Value init = info.op.getSpyreInit();
    auto type =
        cast<RankedTensorType>(init.getType()).cloneWithEncoding(layout);
    if (init.getType() != type) {
      // Other ops may use the same undefined tensor in another layout.
      builder.setInsertionPoint(info.op);
      Value empty = tensor::EmptyOp::create(builder, info.op->getLoc(), type,
                                            ValueRange());
      info.op->setOperand(info.getInitNumber(), empty);
    }
    info.op->getResult(0).setType(type);
  }

  void updateFunctionType() {
    Operation *terminator = func.getBody().back().getTerminator();
    func.setType(
        FunctionType::get(context, func.getArgumentTypes(),
                          llvm::to_vector(terminator->getOperandTypes())));
  }

  struct MadeCopy {
    Block *block;
    AffineMap map;
    LayoutAttr layout;
    Value copy;
  };

  func::FuncOp func;
  bool superdscCompatible;
  MLIRContext *context;
  OpBuilder builder;
  DenseMap<Value, SmallVector<MadeCopy, 1>> madeCopies;
};

class PropagateLayoutsPass
    : public spyre_graph::impl::SpyrePropagateLayoutsBase<
          PropagateLayoutsPass> {
public:
  using SpyrePropagateLayoutsBase::SpyrePropagateLayoutsBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    LayoutPropagation propagation(getOperation(), superdscCompatible);
    if (failed(propagation.run()))
      return signalPassFailure();
    numUnused += propagation.counters.unusedOps;
    numCopiesFolded += propagation.counters.copiesFolded;
    numViewsFolded += propagation.counters.viewsFolded;
    numViewsMaterialized += propagation.counters.viewsMaterialized;
    numRestickify += propagation.counters.restickify;
    numLaneCopies += propagation.counters.laneCopies;
    numCopiedBytes += propagation.counters.copiedBytes;
  }
};

} // namespace
