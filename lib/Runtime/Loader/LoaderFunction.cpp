// SPDX-License-Identifier: Apache-2.0
//===- LoaderFunction.cpp - KTIR function to instructions -----------------===//

#include "../Engine/Engine.h"
#include "LoaderImpl.h"
#include "Spyre/Runtime/Loader/Loader.h"

#include "Spyre/Dialect/KTIR/IR/KTIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Types and locations
//===----------------------------------------------------------------------===//

std::optional<Elem> spyre::runtime::elemOf(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isF16())
    return Elem::F16;
  if (type.isBF16())
    return Elem::BF16;
  if (type.isF32())
    return Elem::F32;
  if (isa<Float8E4M3FNType>(type))
    return Elem::F8E4M3FN;
  if (isa<Float8E5M2Type>(type))
    return Elem::F8E5M2;
  if (type.isIndex())
    return Elem::Index;
  if (auto integer = dyn_cast<IntegerType>(type);
      integer && !integer.isUnsigned())
    switch (integer.getWidth()) {
    case 1:
      return Elem::I1;
    case 8:
      return Elem::I8;
    case 16:
      return Elem::I16;
    case 32:
      return Elem::I32;
    case 64:
      return Elem::I64;
    default:
      return std::nullopt;
    }
  return std::nullopt;
}

/// "file:line:col" of the innermost file position, or the printed location.
static std::string locationText(Location location) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto file = location->findInstanceOf<FileLineColLoc>())
    os << file.getFilename().getValue() << ":" << file.getLine() << ":"
       << file.getColumn();
  else
    location.print(os);
  return text;
}

int LocationTable::get(Location location) {
  auto [it, isNew] =
      known.try_emplace(location, static_cast<int>(plan.locations.size()));
  if (isNew)
    plan.locations.push_back(locationText(location));
  return it->second;
}

//===----------------------------------------------------------------------===//
// Slots and liveness
//===----------------------------------------------------------------------===//

static int slotIn(llvm::DenseMap<Value, int> &slots, Value value, int &count) {
  auto [it, isNew] = slots.try_emplace(value, count);
  if (isNew)
    ++count;
  return it->second;
}

int FunctionLoader::scalarSlot(Value value) {
  return slotIn(scalarSlots, value, function.numScalars);
}
int FunctionLoader::tensorSlot(Value value) {
  return slotIn(tensorSlots, value, function.numTensors);
}
int FunctionLoader::viewSlot(Value value) {
  return slotIn(viewSlots, value, function.numViews);
}
int FunctionLoader::tileSlot(Value value) {
  return slotIn(tileSlots, value, function.numTiles);
}

bool FunctionLoader::isScalar(Type type) const {
  if (auto argument = dyn_cast<ktdp::RuntimeArgType>(type))
    type = argument.getValueType();
  return !isa<ShapedType>(type) && elemOf(type).has_value();
}

LogicalResult FunctionLoader::checkType(Operation *op, Type type) {
  if (auto future = dyn_cast<ktdp::TileFutureType>(type))
    return checkType(op, future.getTileType());
  if (isa<ktdp::AccessTileType>(type)) {
    if (cast<ShapedType>(type).getRank() > kMaxRank)
      return op->emitError("access tiles of more than ")
             << kMaxRank << " dimensions are not supported: " << type;
    return success();
  }
  if (auto shaped = dyn_cast<ShapedType>(type)) {
    if (!shaped.hasRank() || !(isa<MemRefType, RankedTensorType>(type)))
      return op->emitError("type is not supported: ") << type;
    if (shaped.getRank() > kMaxRank)
      return op->emitError("types of more than ")
             << kMaxRank << " dimensions are not supported: " << type;
  }
  if (!elemOf(type))
    return op->emitError("element type is not supported: ") << type;
  return success();
}

bool FunctionLoader::isLastUser(Value value, Operation *op) {
  mlir::Block *block = op->getBlock();
  if (value.getParentBlock() != block)
    return false;
  if (Operation *definition = value.getDefiningOp();
      definition && definition->hasTrait<OpTrait::ConstantLike>())
    return false;
  for (Operation *user : value.getUsers()) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    if (!ancestor || (ancestor != op && !ancestor->isBeforeInBlock(op)))
      return false;
  }
  return true;
}

TensorUse FunctionLoader::use(Value value, Operation *op) {
  TensorUse result;
  result.slot = tensorSlot(value);
  if (!isLastUser(value, op))
    return result;
  // Used once by the op and not inside its regions.
  unsigned count = 0;
  for (OpOperand &operand : value.getUses())
    if (op->isAncestor(operand.getOwner()))
      ++count;
  result.dies = count == 1;
  return result;
}

SizeSource FunctionLoader::sizeOf(OpFoldResult size) {
  SizeSource result;
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    result.constant = *constant;
  else
    result.slot = scalarSlot(cast<Value>(size));
  return result;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Whether the only user of the op's only result is in the same block.
static bool isReadOnce(Operation *op) {
  if (op->getNumResults() != 1 || op->use_empty())
    return false;
  Operation *user = *op->user_begin();
  return user->getBlock() == op->getBlock() &&
         llvm::all_of(op->getUsers(),
                      [&](Operation *other) { return other == user; });
}

/// Operands whose tiles the op's results can take over while it runs: those it
/// updates, and those it reads only where it has written the result.
static SmallVector<Value> getReplaceable(Operation *op) {
  SmallVector<Value> values;
  auto addAlike = [&](Value operand, Value result) {
    auto from = dyn_cast<RankedTensorType>(operand.getType());
    auto to = dyn_cast<RankedTensorType>(result.getType());
    if (from && to && from.getShape() == to.getShape() &&
        deviceSize(*elemOf(from)) == deviceSize(*elemOf(to)))
      values.push_back(operand);
  };
  if (auto dps = dyn_cast<DestinationStyleOpInterface>(op))
    llvm::append_range(values, dps.getDpsInits());
  if (auto loops = dyn_cast<linalg::LinalgOp>(op)) {
    if (loops.getNumParallelLoops() == loops.getNumLoops() &&
        loops.getNumDpsInits() == 1)
      for (OpOperand *input : loops.getDpsInputOperands())
        if (loops.getMatchingIndexingMap(input) ==
            loops.getMatchingIndexingMap(loops.getDpsInitOperand(0)))
          addAlike(input->get(), op->getResult(0));
  } else if (isScalarOp(op)) {
    for (Value operand : op->getOperands())
      addAlike(operand, op->getResult(0));
  } else if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                 tensor::ReshapeOp, tensor::CastOp>(op)) {
    values.push_back(op->getOperand(0));
  } else if (auto reduce = dyn_cast<ktdp::InterTileReduceOp>(op)) {
    values.push_back(reduce.getIdentity());
  }
  return values;
}

LogicalResult FunctionLoader::loadBlock(mlir::Block &block,
                                        ::spyre::runtime::Block &into) {
  // Running a block takes host stack (Fiber::kStackBytes).
  constexpr int kMaxDepth = 256;
  if (depth == kMaxDepth)
    return block.getParentOp()->emitError("regions more than ")
           << kMaxDepth << " deep are not supported";
  ++depth;
  Emit *outer = current;
  current = &into.instrs;
  LogicalResult result = success();
  for (Operation &op : block.without_terminator()) {
    size_t before = current->size();
    if (failed(loadOp(&op))) {
      result = failure();
      break;
    }
    if (current->size() == before)
      continue;
    // Data tiles; what tensor.empty and splats describe takes no room.
    if (!isa<tensor::EmptyOp, tensor::SplatOp>(op))
      for (Value v : op.getResults())
        if (isa<RankedTensorType>(v.getType()))
          current->back()->defines.push_back(
              {tensorSlot(v), *elemOf(v.getType())});
    if (auto *loop = dynamic_cast<StructuredLoop *>(current->back().get()))
      loop->isReadOnce = isReadOnce(&op);
    // Tensors that nobody reads after this op.
    llvm::SmallPtrSet<Value, 8> seen;
    std::vector<int> &releases = current->back()->releases;
    auto consider = [&](Value v) {
      if (isa<RankedTensorType>(v.getType()) && seen.insert(v).second &&
          isLastUser(v, &op))
        releases.push_back(tensorSlot(v));
    };
    op.walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (operand.getParentBlock() == &block)
          consider(operand);
    });
    for (Value v : op.getResults())
      if (v.use_empty())
        consider(v);
    if (!current->back()->defines.empty())
      for (Value operand : getReplaceable(&op))
        if (isa<RankedTensorType>(operand.getType()) &&
            operand.getParentBlock() == &block && isLastUser(operand, &op) &&
            llvm::all_of(operand.getUsers(), [&](Operation *user) {
              return !op.isProperAncestor(user); // tensor.extract in the body
            }))
          current->back()->replaces.push_back(tensorSlot(operand));
  }
  current = outer;
  --depth;
  if (succeeded(result)) {
    fuseLoops(into);
    groupRows(into);
  }
  return result;
}

/// Operations that `value` comes from: its own, or for an argument of a body
/// those of what the operation around hands in.
static void findProducers(Value value, SmallVectorImpl<Operation *> &found) {
  if (Operation *op = value.getDefiningOp()) {
    found.push_back(op);
    return;
  }
  auto argument = cast<BlockArgument>(value);
  Operation *around = argument.getOwner()->getParentOp();
  if (auto loops = dyn_cast<linalg::LinalgOp>(around)) {
    if (argument.getArgNumber() < around->getNumOperands())
      findProducers(around->getOperand(argument.getArgNumber()), found);
  } else if (auto loop = dyn_cast<LoopLikeOpInterface>(around)) {
    for (OpOperand *handed : {loop.getTiedLoopInit(argument),
                              loop.getTiedLoopYieldedValue(argument)})
      if (handed && handed->get() != value)
        if (Operation *op = handed->get().getDefiningOp())
          found.push_back(op);
  }
}

void FunctionLoader::noteProducers(Operation *op) {
  std::optional<Elem> elem;
  if (op->getNumResults() > 0)
    elem = elemOf(op->getResult(0).getType());
  if (!elem || !isFloat(*elem) || op->hasTrait<OpTrait::ConstantLike>())
    return;
  int location = locations.get(op->getLoc());
  std::vector<int> &known = plan.producers[location];
  SmallVector<Operation *> producers;
  for (Value operand : op->getOperands())
    if (std::optional<Elem> type = elemOf(operand.getType());
        type && isFloat(*type))
      findProducers(operand, producers);
  for (Operation *producer : producers) {
    int from = locations.get(producer->getLoc());
    if (from != location && !llvm::is_contained(known, from))
      known.push_back(from);
  }
}

int FunctionLoader::nameNumber(Operation *op) {
  llvm::StringRef name = op->getName().getStringRef();
  std::vector<std::string> &names = plan.operationNames;
  auto it = llvm::find(names, name);
  if (it == names.end())
    it = names.insert(names.end(), name.str());
  return static_cast<int>(it - names.begin());
}

LogicalResult FunctionLoader::loadOp(Operation *op) {
  noteProducers(op);
  ++function.numOperations;
  if (isa<linalg::LinalgOp, tensor::GenerateOp, tensor::PadOp>(op))
    for (Region &region : op->getRegions())
      for (Operation &nested : region.front().without_terminator()) {
        noteProducers(&nested);
        ++function.numOperations;
      }
  for (Type type : op->getResultTypes())
    if (failed(checkType(op, type)))
      return failure();
  if (op->hasTrait<OpTrait::ConstantLike>())
    return loadConstant(op);
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return loadLinalg(linalgOp);
  if (isa<scf::SCFDialect>(op->getDialect()))
    return loadControlFlow(op);
  if (isa<func::CallOp>(op))
    return loadCall(op);
  if (isa<affine::AffineDialect>(op->getDialect()))
    return loadAffine(op);
  if (isa<ktdp::KTDPDialect>(op->getDialect()))
    return loadMemory(op);
  if (isa<memref::SubViewOp>(op))
    return loadSubView(op);
  if (isa<tensor::TensorDialect>(op->getDialect()))
    return loadTensorOp(op);
  if (isScalarOp(op)) {
    if (isa<RankedTensorType>(op->getResult(0).getType()))
      return loadElementwise(op);
    if (isScalar(op->getResult(0).getType()))
      return loadScalarOp(op);
  }
  return op->emitError("operation '")
         << op->getName() << "' is not supported by the runtime";
}

//===----------------------------------------------------------------------===//
// Functions and modules
//===----------------------------------------------------------------------===//

namespace {
/// Makes an argument a value of its type: integers have to fit, signed or
/// unsigned; floats are rounded.
class ArgumentInstr : public Instr {
public:
  int slot = 0;
  Elem elem = Elem::Index;

  void run(Core &core) const override {
    Scalar &value = core.scalars[slot];
    if (isFloat(elem)) {
      value.f = core.roundScalar(value.f, elem);
      return;
    }
    int64_t limit = int64_t(1) << bitWidth(elem);
    if (value.i < -(limit / 2) || value.i >= limit)
      core.fail(location, "argument is " + std::to_string(value.i) +
                              ", which does not fit " + elemName(elem));
    value.i &= limit - 1;
    if (elem != Elem::I1 && value.i >= limit / 2)
      value.i -= limit;
  }
  void walk(Core &core) const override { run(core); }
};
} // namespace

LogicalResult FunctionLoader::load(func::FuncOp op) {
  if (!op.getBody().hasOneBlock())
    return op->emitError("functions of more than one block are not supported");
  if (op.getNumResults() != 0)
    return op->emitError("functions with results are not supported");
  for (BlockArgument arg : op.getArguments()) {
    if (!isScalar(arg.getType()))
      return op->emitError("argument ")
             << arg.getArgNumber() << " has type " << arg.getType()
             << ", expected index, an integer, a float or a run-time argument "
                "of these";
    function.argSlots.push_back(scalarSlot(arg));
    auto runtimeArg = dyn_cast<ktdp::RuntimeArgType>(arg.getType());
    Elem elem = *elemOf(runtimeArg ? runtimeArg.getValueType() : arg.getType());
    if (isWide(elem) || elem == Elem::F32)
      continue;
    auto instr = std::make_unique<ArgumentInstr>();
    instr->location = locations.get(arg.getLoc());
    instr->slot = function.argSlots.back();
    instr->elem = elem;
    function.body.instrs.push_back(std::move(instr));
  }
  return loadBlock(op.getBody().front(), function.body);
}
