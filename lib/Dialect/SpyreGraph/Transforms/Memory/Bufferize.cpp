//===- Bufferize.cpp - Tensors into buffers ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "../Division/DivisionSearch.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/InitAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/Stage.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "Spyre/Target/Interface/Target.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREBUFFERIZE
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

class BufferizePass
    : public spyre_graph::impl::SpyreBufferizeBase<BufferizePass> {
public:
  using SpyreBufferizeBase::SpyreBufferizeBase;

  void runOnOperation() override {
    spec = getDeviceSpec(getOperation());
    numCores = orOfDevice<int64_t>(cores, spec.numCores);
    if (std::string wrong = ::spyre::checkNumCores(numCores); !wrong.empty()) {
      getOperation().emitError() << wrong;
      return signalPassFailure();
    }
    target = getTarget(getOperation());
    if (!target || failed(checkLayouts()))
      return signalPassFailure();
    copies = copiedBytes = 0;
    carried.clear();
    separateEmptyTensors();
    getOperation().walk([&](func::FuncOp func) {
      delayUpdates(func);
      if (!func.isDeclaration())
        protectInputs(func);
    });
    if (failed(bufferize()) || failed(turnResultsIntoParameters()))
      return signalPassFailure();
    numCopies += copies;
    numCopiedBytes += copiedBytes;
  }

private:
  /// SG-BUFFERIZE-C1
  LogicalResult checkLayouts() {
    WalkResult result = getOperation().walk([](Operation *op) {
      auto func = dyn_cast<func::FuncOp>(op);
      // SG-BUFFERIZE-C2
      for (Type type : func ? func.getResultTypes() : ArrayRef<Type>())
        if (isa<BaseMemRefType>(type)) {
          func.emitOpError() << "returns a buffer, " << type
                             << "; expected tensors, which get buffers here";
          return WalkResult::interrupt();
        }
      bool isValid =
          func ? succeeded(spyre_graph::checkLayouts(
                     func, func.getArgumentTypes())) &&
                     succeeded(
                         spyre_graph::checkLayouts(func, func.getResultTypes()))
               : succeeded(spyre_graph::checkLayouts(op, op->getResultTypes()));
      return isValid ? WalkResult::advance() : WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  /// Gives each use of a tensor.empty its own one. Ops that share one could
  /// share a buffer, which would tie an intermediate value to a result's
  /// memory.
  void separateEmptyTensors() {
    SmallVector<tensor::EmptyOp> shared;
    getOperation().walk([&](tensor::EmptyOp empty) {
      if (!empty->use_empty() && !empty->hasOneUse())
        shared.push_back(empty);
    });
    for (tensor::EmptyOp empty : shared)
      for (OpOperand &use :
           llvm::make_early_inc_range(llvm::drop_begin(empty->getUses())))
        use.set(OpBuilder(empty).clone(*empty)->getResult(0));
  }

  /// Moves the updates of arguments to the end of the function, where nothing
  /// reads an old value any more, and copies arguments that updates read.
  void delayUpdates(func::FuncOp func) {
    SmallVector<bufferization::MaterializeInDestinationOp> updates;
    func.walk([&](bufferization::MaterializeInDestinationOp op) {
      if (op.getResult() && func->isAncestor(op->getParentOp()) &&
          op->getParentOp() == func)
        updates.push_back(op);
    });
    if (updates.empty())
      return;
    Operation *terminator = func.getBody().back().getTerminator();
    OpBuilder builder(updates.front());
    llvm::erase_if(updates, [&](auto update) {
      return returnIfCarried(func, terminator, update);
    });
    for (bufferization::MaterializeInDestinationOp update : updates) {
      if (isa<BlockArgument>(update.getSource())) {
        builder.setInsertionPoint(updates.front());
        Value empty = tensor::EmptyOp::create(
            builder, update.getLoc(),
            cast<RankedTensorType>(update.getSource().getType()), ValueRange());
        update.getSourceMutable().assign(
            createDividedCopy(builder, update.getLoc(), update.getSource(),
                              empty)
                ->getResult(0));
      }
      update.getResult().replaceAllUsesWith(update.getSource());
      update->moveBefore(terminator);
    }
    // A result that is also an update's source is read after the update: it is
    // the argument's new contents, unless a later update changes them.
    llvm::SmallPtrSet<Value, 4> updatedLater;
    for (bufferization::MaterializeInDestinationOp update :
         llvm::reverse(updates))
      if (updatedLater.insert(update.getDest()).second)
        for (OpOperand &operand : terminator->getOpOperands())
          if (operand.get() == update.getSource())
            operand.set(update.getResult());
  }

  /// Whether `value` is what a loop over tiles has made of `destination`.
  static bool isCarriedFrom(Value value, Value destination) {
    bool isCarried = false;
    while (value != destination) {
      Operation *definition = value.getDefiningOp();
      if (auto loop = dyn_cast_or_null<scf::ForOp>(definition)) {
        value = loop.getTiedLoopInit(cast<OpResult>(value))->get();
        isCarried = true;
      } else if (auto insertion =
                     dyn_cast_or_null<tensor::InsertSliceOp>(definition)) {
        value = insertion.getDest();
      } else if (auto op = dyn_cast_or_null<SpyreOpInterface>(definition)) {
        value = op.getSpyreInit();
      } else {
        return false;
      }
    }
    return isCarried;
  }

  /// Lets the function return the new contents of an argument that a loop
  /// updates, in place of the update. Upstream's analysis does not know yet
  /// that such a loop yields the argument when it refuses updates that would
  /// read what they write.
  bool returnIfCarried(func::FuncOp func, Operation *terminator,
                       bufferization::MaterializeInDestinationOp update) {
    Value source = update.getSource();
    auto argument = dyn_cast<BlockArgument>(update.getDest());
    bool isLast =
        llvm::all_of(update.getResult().getUsers(), [](Operation *op) {
          return !isa<bufferization::MaterializeInDestinationOp>(op);
        });
    if (!argument || !isLast || !isCarriedFrom(source, argument))
      return false;
    update.getResult().replaceAllUsesWith(source);
    update.erase();
    terminator->insertOperands(terminator->getNumOperands(), source);
    (void)func.insertResult(func.getNumResults(), source.getType(), {});
    carried[func].push_back(argument.getArgNumber());
    return true;
  }

  /// Drops what the function returns only because a loop updates an argument.
  /// Where the update was not made in place, copies it into the argument.
  LogicalResult storeCarriedUpdates(func::FuncOp func) {
    ArrayRef<unsigned> numbers = carried[func];
    Operation *terminator = func.getBody().back().getTerminator();
    unsigned first = terminator->getNumOperands() - numbers.size();
    OpBuilder builder(terminator);
    for (auto [position, number] : llvm::enumerate(numbers)) {
      Value updated = terminator->getOperand(first + position);
      Value argument = func.getArgument(number);
      if (updated == argument)
        continue;
      if (isa<BlockArgument>(updated))
        return func.emitError() << "argument " << number
                                << " is updated in place of another one";
      createDividedCopy(builder, terminator->getLoc(), updated, argument);
    }
    for (size_t count = numbers.size(); count > 0; --count)
      if (failed(func.eraseResult(func.getNumResults() - 1)))
        return failure();
    terminator->eraseOperands(first, numbers.size());
    return success();
  }

  /// Makes arguments read-only, except those that the program updates: the
  /// contents of inputs must not change.
  void protectInputs(func::FuncOp func) {
    llvm::SmallPtrSet<Value, 4> updated;
    func.walk([&](bufferization::MaterializeInDestinationOp op) {
      updated.insert(op.getDest());
    });
    for (unsigned number : carried[func])
      updated.insert(func.getArgument(number));
    changeArgAttrs(func, [&](BlockArgument argument, NamedAttrList &list) {
      if (isa<TensorType>(argument.getType()) && !updated.contains(argument))
        list.set(bufferization::BufferizationDialect::kWritableAttrName,
                 BoolAttr::get(&getContext(), false));
    });
  }

  /// Lets `change` edit the attributes of each argument, and sets all at once:
  /// setting those of one argument costs as much.
  static void
  changeArgAttrs(func::FuncOp func,
                 function_ref<void(BlockArgument, NamedAttrList &)> change) {
    if (func.isExternal())
      return;
    SmallVector<DictionaryAttr> attributes;
    for (BlockArgument argument : func.getArguments()) {
      NamedAttrList list(func.getArgAttrDict(argument.getArgNumber()));
      change(argument, list);
      attributes.push_back(list.getDictionary(func.getContext()));
    }
    func.setAllArgAttrs(attributes);
  }

  LogicalResult bufferize() {
    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.setFunctionBoundaryTypeConversion(
        bufferization::LayoutMapOption::IdentityLayoutMap);
    options.unknownTypeConverterFn =
        [](TensorType type, Attribute memorySpace,
           const bufferization::BufferizationOptions &) {
          return bufferization::getMemRefTypeWithStaticIdentityLayout(
              type, memorySpace);
        };
    options.defaultMemorySpaceFn =
        [](TensorType type) -> std::optional<Attribute> {
      return cast<RankedTensorType>(type).getEncoding();
    };
    // Memory planning decides the alignment.
    options.bufferAlignment = 0;
    options.memCpyFn = [this](OpBuilder &builder, Location loc, Value from,
                              Value to) {
      if (from != to)
        createDividedCopy(builder, loc, from, to);
      return success();
    };
    // The steps of runOneShotModuleBufferize(), but the attributes that the
    // analysis reads are removed in between: upstream removes them one argument
    // after the other, and rebuilds those of all arguments each time.
    bufferization::BufferizationState state;
    SmallVector<SpyreOpInterface> updates;
    getOperation().walk([&](SpyreOpInterface op) {
      if (op->getNumResults() != 0 && canAlwaysUpdateInit(op))
        updates.push_back(op);
    });
    if (failed(
            bufferization::insertTensorCopies(getOperation(), options, state)))
      return failure();
    // A new buffer would lack the old contents, which the analysis was told
    // that these operations do not read.
    for (SpyreOpInterface op : updates)
      if (!canAlwaysUpdateInit(op))
        return op->emitOpError() << "does not update its init in place, which "
                                    "nothing else uses";
    getOperation().walk([](func::FuncOp func) {
      changeArgAttrs(func, [](BlockArgument, NamedAttrList &list) {
        list.erase(bufferization::BufferizationDialect::kWritableAttrName);
      });
    });
    if (failed(
            bufferization::bufferizeModuleOp(getOperation(), options, state)))
      return failure();
    dropCarriedBuffers();
    // After an update in place, the copy to an argument or tile has it as
    // source and target: it does nothing.
    getOperation().walk([&](SpyreOpInterface op) {
      Value from = op->getOperand(0), to = op.getSpyreInit();
      if (!isa<IdentityOp>(op) || (from != to && !isSameTile(from, to)))
        return;
      SmallVector<AffineMap> maps = op.getIndexingMaps();
      if (maps.front() != maps.back())
        return;
      copies -= 1;
      copiedBytes -=
          getSizeInBytes(cast<ShapedType>(op.getSpyreInit().getType()));
      op->erase();
      if (auto tile = to.getDefiningOp<memref::SubViewOp>();
          tile && tile->use_empty())
        tile.erase();
    });
    return success();
  }

  /// Removes buffers that loops over tiles carry: such a loop yields the buffer
  /// that it was given, and the operations in it can use that directly.
  void dropCarriedBuffers() {
    RewritePatternSet patterns(&getContext());
    scf::ForOp::getCanonicalizationPatterns(patterns, &getContext());
    SmallVector<Operation *> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    if (!loops.empty())
      (void)applyOpPatternsGreedily(loops, std::move(patterns));
  }

  /// Copies each result that is an argument or the same buffer as an earlier
  /// result. Upstream's conversion handles allocations only.
  void giveResultsOwnBuffers(func::FuncOp func) {
    if (func.isExternal())
      return;
    Operation *terminator = func.getBody().back().getTerminator();
    llvm::SmallPtrSet<Operation *, 8> owned;
    OpBuilder builder(terminator);
    for (OpOperand &operand :
         terminator->getOpOperands().drop_back(carried[func].size())) {
      auto type = dyn_cast<MemRefType>(operand.get().getType());
      if (!type)
        continue;
      auto alloc = operand.get().getDefiningOp<memref::AllocOp>();
      if (alloc && owned.insert(alloc).second)
        continue;
      Value copy = memref::AllocOp::create(builder, terminator->getLoc(), type);
      createDividedCopy(builder, terminator->getLoc(), operand.get(), copy);
      operand.set(copy);
    }
  }

  LogicalResult turnResultsIntoParameters() {
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>()) {
      giveResultsOwnBuffers(func);
      if (!func.isExternal() && failed(storeCarriedUpdates(func)))
        return failure();
      unsigned number = 0;
      for (unsigned result = 0; result < func.getNumResults(); ++result) {
        if (!isa<MemRefType>(func.getResultTypes()[result]))
          continue;
        StringRef nameAttr = SpyreGraphDialect::getNameAttrName();
        if (!func.getResultAttr(result, nameAttr))
          func.setResultAttr(
              result, nameAttr,
              StringAttr::get(&getContext(), "out" + Twine(number)));
        ++number;
      }
    }
    bufferization::BufferResultsToOutParamsOpts options;
    options.hoistStaticAllocs = true;
    options.modifyPublicFunctions = true;
    options.memCpyFn = [this](OpBuilder &builder, Location loc, Value from,
                              Value to) {
      if (from != to)
        createDividedCopy(builder, loc, from, to);
      return success();
    };
    return bufferization::promoteBufferResultsToOutParams(getOperation(),
                                                          options);
  }

  /// Whether two values are the same part of one buffer. A tile that was
  /// computed in place is inserted into the buffer that it is a part of.
  static bool isSameTile(Value a, Value b) {
    auto first = a.getDefiningOp<memref::SubViewOp>();
    auto second = b.getDefiningOp<memref::SubViewOp>();
    return first && second && first.getSource() == second.getSource() &&
           first.getMixedOffsets() == second.getMixedOffsets() &&
           first.getMixedSizes() == second.getMixedSizes() &&
           first.getMixedStrides() == second.getMixedStrides();
  }

  Operation *createDividedCopy(OpBuilder &builder, Location loc, Value from,
                               Value to) {
    SpyreOpInterface copy = createCopyOp(builder, loc, from, to);
    copy.setWorkDivision(chooseWorkDivision(copy, numCores, *target, spec));
    copies += 1;
    copiedBytes += getSizeInBytes(cast<ShapedType>(to.getType()));
    return copy;
  }

  static int64_t getSizeInBytes(ShapedType type) {
    return getLayout(type).getSizeInBytes(type.getShape());
  }

  ::spyre::DeviceSpec spec;
  int64_t numCores = 0;
  const Target *target = nullptr;
  int64_t copies = 0, copiedBytes = 0;
  /// Per function the arguments whose new contents its last results are.
  DenseMap<Operation *, SmallVector<unsigned>> carried;
};

} // namespace
