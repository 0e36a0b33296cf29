//===- PropagateLayouts.cpp - Views into maps, layouts on tensors -*- C++ -*-=//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "FoldCasts.h"
#include "FoldViews.h"
#include "LayoutGraph.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/DeviceOptions.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "Spyre/Support/Error.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREPROPAGATELAYOUTS
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

class LayoutPropagation {
public:
  struct Counters {
    ViewCounters views;
    int64_t unusedOps = 0, restickify = 0, laneCopies = 0, copiedBytes = 0,
            proven = 0;
  };

  LayoutPropagation(func::FuncOp func, const Target &target,
                    const ::spyre::DeviceSpec &spec)
      : func(func), target(target), spec(spec), context(func.getContext()),
        builder(func.getContext()), graph(func, target, spec) {}

  LogicalResult run() {
    if (failed(checkArguments()) || failed(checkSizes()))
      return failure();
    counters.unusedOps = eraseUnusedOps(func);
    if (failed(inferSizes(func)))
      return failure();
    func.walk([](SpyreOpInterface op) {
      op.setLoopStructure(op.getIndexingMaps(), op.getLoopExtents());
    });
    counters.views = foldViews(func);
    if (target.allowsMixedElementTypes())
      counters.views.copiesFolded += foldCasts(func);
    if (failed(settleGivenLayouts()))
      return failure();
    try {
      if (failed(graph.solve()))
        return failure();
    } catch (const ::spyre::Error &error) {
      return func.emitError() << "layouts: " << error.what();
    }
    counters.proven = graph.isProven();
    remark();
    SmallVector<SpyreOpInterface> ops;
    func.walk<WalkOrder::PreOrder>([&](SpyreOpInterface op) {
      if (op->getNumResults() == 1)
        ops.push_back(op);
    });
    for (SpyreOpInterface op : ops)
      apply(op);
    updateFunctionType();
    func.walk([](tensor::EmptyOp empty) {
      if (empty->use_empty())
        empty->erase();
    });
    // Of copies that were made for other operations.
    return inferSizes(func);
  }

  Counters counters;

private:
  /// SG-PROPAGATE-C1
  LogicalResult checkArguments() {
    for (BlockArgument argument : func.getArguments())
      if (isa<TensorType>(argument.getType()) && !getLayout(argument.getType()))
        return func.emitError()
               << "argument " << argument.getArgNumber()
               << " has no layout: " << argument.getType()
               << "; give its type one, such as #spyre_graph.layout<order = "
                  "[0, 1], SEN169_FP16>";
    return success();
  }

  /// SG-PROPAGATE-C4. Sticks of 128 bytes hold at least one element each.
  LogicalResult checkSizes() {
    auto isCountable = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      int64_t bytes = ::spyre::kStickBytes;
      if (!tensor || !tensor.hasStaticShape() ||
          llvm::is_contained(tensor.getShape(), 0))
        return true;
      return llvm::none_of(tensor.getShape(), [&](int64_t extent) {
        return llvm::MulOverflow(bytes, extent, bytes);
      });
    };
    for (BlockArgument argument : func.getArguments())
      if (!isCountable(argument.getType()))
        return func.emitError()
               << "argument " << argument.getArgNumber()
               << " has so many elements that its bytes overflow 64 bits: "
               << argument.getType();
    WalkResult result = func.walk([&](Operation *op) {
      for (Type type : op->getResultTypes())
        if (!isCountable(type)) {
          op->emitOpError()
              << "has so many elements that its bytes overflow 64 bits: "
              << type;
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Sets the layouts that need no choice: an input of undefined contents gets
  /// the default layout, and the result of an update that of the tensor that it
  /// updates.
  LogicalResult settleGivenLayouts() {
    WalkResult result = func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto spyreOp = dyn_cast<SpyreOpInterface>(op)) {
        if (op->getNumResults() == 0)
          return WalkResult::advance(); // On buffers, with settled layouts.
        for (Value input : spyreOp.getSpyreInputs()) {
          auto type = cast<RankedTensorType>(input.getType());
          if (!getLayout(type) && input.getDefiningOp<tensor::EmptyOp>())
            input.setType(type.cloneWithEncoding(LayoutAttr::getDefault(type)));
        }
        return WalkResult::advance();
      }
      if (auto update =
              dyn_cast<bufferization::MaterializeInDestinationOp>(op)) {
        if (update.getResult())
          update.getResult().setType(
              cast<TensorType>(update.getDest().getType()));
        return WalkResult::advance();
      }
      // SG-PROPAGATE-C2
      if (isa<tensor::EmptyOp>(op))
        return WalkResult::advance();
      for (Type type : op->getResultTypes())
        if (isa<TensorType>(type)) {
          // A module that was lowered may come here again.
          if (func->hasAttr("grid"))
            op->emitOpError("is not a device operation; its function has a "
                            "grid: it is a kernel of KTIR, which has been "
                            "planned and lowered");
          else
            op->emitOpError("is not a device operation; run --spyre-decompose "
                            "first, or leave the operation outside the graph");
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  //===--------------------------------------------------------------------===//
  // Copies
  //===--------------------------------------------------------------------===//

  /// Makes operand `operand` accessible along `stick` by copying it.
  void copyOperand(OpInfo &info, unsigned operand, StickChoice stick,
                   LaneAccess::Kind kind) {
    CopyPlan plan = planCopy(info, operand, stick);
    Value source = info.op->getOperand(operand);
    Value copy;
    for (const MadeCopy &made : madeCopies[source])
      if (made.block == info.op->getBlock() && made.map == plan.sourceMap &&
          made.layout == plan.layout && made.sizeMap == plan.sizeMap &&
          shapeOf(made.copy) == ArrayRef(plan.shape))
        copy = made.copy;
    if (!copy) {
      builder.setInsertionPoint(info.op);
      bool changesStick = kind != LaneAccess::Irregular;
      copy = createCopy(builder,
                        changesStick ? RestickifyOp::getOperationName()
                                     : IdentityOp::getOperationName(),
                        info.op->getLoc(), source, plan.sourceMap, plan.shape,
                        plan.layout, plan.sizeMap);
      madeCopies[source].push_back({info.op->getBlock(), plan.sourceMap,
                                    plan.layout, plan.sizeMap, copy});
      ++(changesStick ? counters.restickify : counters.laneCopies);
      counters.copiedBytes += plan.sizeInBytes;
      remarkCopy(info.op, operand, plan, kind);
    }
    if (!plan.hasSourceShape)
      info.maps[operand] = plan.map;
    info.op->setOperand(operand, copy);
    info.op.setLoopStructure(info.maps, info.extents);
  }
  /// Indices cannot select lanes. If the accessed dimension lies along the
  /// sticks, lets the op access a copy with another stick dimension, and copies
  /// it back if the op updates it.
  void makeIndirectlyAccessible(OpInfo &info) {
    unsigned operand = info.indirect->operand;
    Value accessed = info.op->getOperand(operand);
    auto type = cast<ShapedType>(accessed.getType());
    LayoutAttrInterface layout = getLayout(type);
    bool isInit = operand == info.getInitNumber();
    std::optional<IndirectPart> part;
    if (layout)
      part =
          getIndirectPart(info, layout, isInit || !target.allowsCopyOfPart());
    if (!part)
      return;
    builder.setInsertionPoint(info.op);
    Value copy =
        createCopy(builder, RestickifyOp::getOperationName(), info.op->getLoc(),
                   accessed, part->sourceMap, part->shape, part->layout);
    ++counters.restickify;
    counters.copiedBytes += getSizeInBytes(part->layout, part->shape);
    info.op->setOperand(operand, copy);
    info.maps[operand] = part->map;
    info.op.setLoopStructure(info.maps, info.extents);
    if (!isInit)
      return;
    AffineMap identity = part->sourceMap;
    Value result = info.op->getResult(0);
    result.setType(cast<RankedTensorType>(copy.getType()));
    builder.setInsertionPointAfter(info.op);
    auto back =
        RestickifyOp::create(builder, info.op->getLoc(), result, accessed,
                             {identity, identity}, type.getShape());
    result.replaceAllUsesExcept(back.getResult(), back);
    ++counters.restickify;
    counters.copiedBytes += getSizeInBytes(layout, type.getShape());
  }

  //===--------------------------------------------------------------------===//
  // Layouts
  //===--------------------------------------------------------------------===//

  void apply(SpyreOpInterface op) {
    op->removeAttr(kLayoutHintAttrName);
    LayoutChoice choice = graph.getChoice(op);
    OpInfo info(op);
    if (info.indirect)
      makeIndirectlyAccessible(info);
    LayoutAttrInterface given = getLayout(op.getSpyreInit().getType());
    SmallVector<std::optional<StickChoice>> required;
    for (unsigned operand = 0; operand < info.getInitNumber(); ++operand)
      required.push_back(LayoutGraph::getRequired(info, choice, operand));
    if (choice.isExchanged) {
      Value x = op->getOperand(0), y = op->getOperand(1);
      op->setOperand(0, y);
      op->setOperand(1, x);
      std::swap(required[0], required[1]);
      info = exchangeFactors(info);
      op.setLoopStructure(info.maps, info.extents);
    }
    for (unsigned operand = 0; operand < info.getInitNumber(); ++operand)
      if (required[operand])
        makeCompatible(info, operand, *required[operand]);
    setResultLayout(info, given ? given : choice.layout);
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
  void setResultLayout(OpInfo &info, LayoutAttrInterface layout) {
    Value init = info.op.getSpyreInit();
    auto type =
        cast<RankedTensorType>(init.getType()).cloneWithEncoding(layout);
    if (init.getType() != type) {
      // Other ops may use the same tensor.empty in another layout.
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

  /// Adds remarks on what was decided, and why.
  void remark() {
    if (!context->getRemarkEngine())
      return;
    std::string text;
    llvm::raw_string_ostream(text)
        << "layouts are priced at " << graph.getPrice() << " bytes ("
        << getCycles(graph.getPrice()) << " cycles), "
        << (graph.isProven() ? "the least possible"
                             : "the least of those looked at");
    remark::analysis(func.getLoc(), named("layouts")) << text;
  }

  void remarkCopy(SpyreOpInterface op, unsigned operand, const CopyPlan &plan,
                  LaneAccess::Kind kind) {
    if (!context->getRemarkEngine())
      return;
    std::string text;
    llvm::raw_string_ostream(text)
        << op->getName().stripDialect() << " reads operand " << operand
        << (kind == LaneAccess::Irregular ? " across its sticks"
                                          : " along another stick")
        << ": a copy of " << plan.sizeInBytes << " bytes ("
        << getCycles(plan.sizeInBytes) << " cycles to write)";
    remark::analysis(op->getLoc(), named("copy")) << text;
  }

  remark::RemarkOpts named(StringRef name) {
    return remark::RemarkOpts::name(name)
        .category("spyre-propagate-layouts")
        .function(func.getName());
  }

  int64_t getCycles(int64_t bytes) const {
    return std::llround(static_cast<double>(bytes) /
                        spec.effectiveMemoryBytesPerSecond * spec.clockHertz);
  }

  struct MadeCopy {
    Block *block;
    AffineMap map;
    LayoutAttr layout;
    AffineMap sizeMap;
    Value copy;
  };

  func::FuncOp func;
  const Target &target;
  const ::spyre::DeviceSpec &spec;
  MLIRContext *context;
  OpBuilder builder;
  LayoutGraph graph;
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
    const Target *target = getTarget(getOperation());
    if (!target)
      return signalPassFailure();
    DeviceOptions options;
    options.maxSpan = maxSpan;
    FailureOr<::spyre::DeviceSpec> spec = options.apply(getOperation());
    if (failed(spec))
      return signalPassFailure();
    LayoutPropagation propagation(getOperation(), *target, *spec);
    if (failed(propagation.run()))
      return signalPassFailure();
    numUnused += propagation.counters.unusedOps;
    numCopiesFolded += propagation.counters.views.copiesFolded;
    numViewsFolded += propagation.counters.views.viewsFolded;
    numViewsMaterialized += propagation.counters.views.viewsMaterialized;
    numProven += propagation.counters.proven;
    numRestickify += propagation.counters.restickify;
    numLaneCopies += propagation.counters.laneCopies;
    numCopiedBytes += propagation.counters.copiedBytes;
  }
};

} // namespace
