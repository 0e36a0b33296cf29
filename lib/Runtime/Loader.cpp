// SPDX-License-Identifier: Apache-2.0
//===- Loader.cpp - KTIR module to program --------------------------------===//

#include "Spyre/Runtime/Loader.h"
#include "Engine.h"
#include "LoaderImpl.h"

#include "Spyre/Dialect/KTIR/IR/KTIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
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
  } else if (isBodyOp(op)) {
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
    if (auto *loop = dynamic_cast<GenericInstr *>(current->back().get()))
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
  if (succeeded(result))
    fuseLoops(into);
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

void FunctionLoader::noteFloatOp(Operation *op) {
  std::optional<Elem> elem;
  if (op->getNumResults() > 0)
    elem = elemOf(op->getResult(0).getType());
  if (!elem || !isFloat(*elem) || op->hasTrait<OpTrait::ConstantLike>())
    return;
  int location = locations.get(op->getLoc());
  std::string name = op->getName().getStringRef().str();
  auto [it, isNew] = plan.floatOps.try_emplace(location);
  FloatOp &known = it->second;
  if (isNew)
    known.name = name;
  else if (known.name != name && op->getParentOp()->getLoc() != op->getLoc())
    known.name.clear();
  SmallVector<Operation *> producers;
  for (Value operand : op->getOperands())
    if (std::optional<Elem> type = elemOf(operand.getType());
        type && isFloat(*type))
      findProducers(operand, producers);
  for (Operation *producer : producers) {
    int from = locations.get(producer->getLoc());
    if (from != location && !llvm::is_contained(known.producers, from))
      known.producers.push_back(from);
  }
}

LogicalResult FunctionLoader::loadOp(Operation *op) {
  noteFloatOp(op);
  ++function.numOperations;
  if (isa<linalg::LinalgOp, tensor::GenerateOp, tensor::PadOp>(op))
    for (Region &region : op->getRegions())
      for (Operation &nested : region.front().without_terminator()) {
        noteFloatOp(&nested);
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
  if (isBodyOp(op)) {
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
  void trace(Core &core) const override { run(core); }
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

/// The element type of a view that starts at `value`, directly or after
/// additions; null if there is none.
static Type viewElementType(Value value, int depth = 0) {
  if (depth > 8)
    return {};
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto view = dyn_cast<ktdp::ConstructMemoryViewOp>(user)) {
      if (view.getOffset() == value)
        return getElementTypeOrSelf(view.getResult().getType());
    } else if (auto add = dyn_cast<arith::AddIOp>(user)) {
      if (Type type = viewElementType(add.getResult(), depth + 1))
        return type;
    } else if (auto apply = dyn_cast<affine::AffineApplyOp>(user)) {
      if (Type type = viewElementType(apply.getResult(), depth + 1))
        return type;
    } else if (auto call = dyn_cast<func::CallOp>(user)) {
      auto module = call->getParentOfType<ModuleOp>();
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (callee && !callee.isExternal() &&
          use.getOperandNumber() < callee.getNumArguments())
        if (Type type = viewElementType(
                callee.getArgument(use.getOperandNumber()), depth + 1))
          return type;
    }
  }
  return {};
}

/// Whether anything is stored through a memory view, as far as one can tell.
static bool mayStoreThrough(Value view) {
  for (OpOperand &use : view.getUses()) {
    Operation *user = use.getOwner();
    if (!isa<ktdp::ConstructAccessTileOp, ktdp::ConstructIndirectAccessTileOp>(
            user))
      return true;
    // The tile's own view comes first; others hold indices, which are read.
    if (use.getOperandNumber() != 0)
      continue;
    for (Operation *access : user->getUsers())
      if (!isa<ktdp::LoadOp>(access))
        return true;
  }
  return false;
}

/// Whether anything is stored where `value` points to, as far as one can tell.
static bool mayBeWritten(Value value, int depth = 0) {
  if (depth > 8)
    return true;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto view = dyn_cast<ktdp::ConstructMemoryViewOp>(user)) {
      if (use.getOperandNumber() == 0 && mayStoreThrough(view.getResult()))
        return true;
    } else if (isa<arith::AddIOp, affine::AffineApplyOp>(user)) {
      if (mayBeWritten(user->getResult(0), depth + 1))
        return true;
    } else if (auto call = dyn_cast<func::CallOp>(user)) {
      auto module = call->getParentOfType<ModuleOp>();
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal() ||
          use.getOperandNumber() >= callee.getNumArguments() ||
          mayBeWritten(callee.getArgument(use.getOperandNumber()), depth + 1))
        return true;
    } else {
      return true;
    }
  }
  return false;
}

static LogicalResult loadArguments(func::FuncOp entry, Plan &plan,
                                   LocationTable &locations,
                                   const NameOfArgument &nameOf) {
  for (BlockArgument arg : entry.getArguments()) {
    unsigned i = arg.getArgNumber();
    ArgumentInfo info;
    info.name = nameOf(arg.getLoc());
    if (info.name.empty())
      info.name = "arg" + std::to_string(i);
    if (auto name = entry.getArgAttrOfType<StringAttr>(i, "ktdp.name"))
      info.name = name.getValue().str();
    auto runtimeArg = dyn_cast<ktdp::RuntimeArgType>(arg.getType());
    info.isFloat =
        isa<FloatType>(runtimeArg ? runtimeArg.getValueType() : arg.getType());
    if (runtimeArg) {
      info.granularity = runtimeArg.getGranularity().value_or(1);
      info.upperBound = runtimeArg.getUpperbound().value_or(-1);
    }
    if (arg.getType().isIndex())
      if (Type type = viewElementType(arg)) {
        info.kind = ArgumentInfo::Array;
        std::optional<Elem> elem = elemOf(type);
        if (elem) {
          info.elementSizeInBytes = deviceSize(*elem);
          info.elementType = elemName(*elem);
        }
      }
    if (auto pool = entry.getArgAttrOfType<IntegerAttr>(i, "ktdp.pool_size")) {
      info.kind = ArgumentInfo::Pool;
      if (pool.getValue().getSExtValue() < 0)
        return entry->emitError("argument ")
               << i << ": pool size " << pool.getValue().getSExtValue()
               << " is negative";
      info.poolBytes = pool.getValue().getZExtValue();
    }
    if (Attribute attr = entry.getArgAttr(i, "ktdp.layout")) {
      auto layout = dyn_cast<ktdp::LayoutAttr>(attr);
      if (!layout)
        return entry->emitError("argument ")
               << i << ": ktdp.layout is not a #ktdp.layout";
      auto format = spyre::parseDataFormat(layout.getFormat().str());
      auto dtype = spyre::parseHostDtype(layout.getHostDtype().str());
      if (!format || !dtype)
        return entry->emitError("argument ")
               << i << ": unknown format or dtype in " << attr;
      info.kind = ArgumentInfo::Array;
      info.dtype = *dtype;
      info.shape.assign(layout.getShape().begin(), layout.getShape().end());
      info.strides.assign(layout.getStrides().begin(),
                          layout.getStrides().end());
      spyre::ElementArrangement arrangement =
          spyre::ElementArrangement::STANDARD;
      if (layout.getArrangement() == "DL16_TO_FP32")
        arrangement = spyre::ElementArrangement::DL16_TO_FP32;
      else if (layout.getArrangement() == "QFP8CH")
        arrangement = spyre::ElementArrangement::QFP8CH;
      else if (layout.getArrangement() == "EXX2")
        arrangement = spyre::ElementArrangement::EXX2;
      try {
        info.layout = spyre::TensorLayout(layout.getDeviceSize().vec(),
                                          layout.getStrideMap().vec(), *format,
                                          arrangement);
      } catch (const std::exception &e) {
        return entry->emitError("argument ") << i << ": " << e.what();
      }
      info.elementSizeInBytes = spyre::storageBytes(*format);
    }
    plan.argumentLocations.push_back(locations.get(arg.getLoc()));
    info.mayBeWritten = info.kind != ArgumentInfo::Scalar && mayBeWritten(arg);
    plan.arguments.push_back(std::move(info));
  }
  return success();
}

// Program images come in blocks of this size (spec/runtime.md, init.txt).
static constexpr int64_t kProgramBlockBytes = 128;

/// Model of the program memory that a function takes: for each of its cores a
/// block per operation (loops are not unrolled), and the constant tiles that
/// are not of one value, in whole blocks.
static int64_t getProgramBytes(const Function &function) {
  int64_t blocks = function.numOperations;
  for (const ConstantTensor &constant : function.tensors) {
    if (constant.isSplat)
      continue;
    int64_t bytes = deviceSize(constant.elem);
    for (int64_t size : constant.shape)
      bytes *= size;
    blocks += llvm::divideCeil(bytes, kProgramBlockBytes);
  }
  return blocks * kProgramBlockBytes * function.numCores();
}

/// The functions that a program can begin with, for errors: "; it has @a, @b".
static std::string listEntries(ModuleOp module) {
  std::string names;
  int count = 0;
  constexpr int kMost = 16;
  for (auto f : module.getOps<func::FuncOp>())
    if (!f.isExternal() && ++count <= kMost)
      names += (names.empty() ? "@" : ", @") + f.getName().str();
  if (count == 0)
    return "; it has none with a body";
  if (count > kMost)
    names += " and " + std::to_string(count - kMost) + " more";
  return "; it has " + names;
}

/// Where the module begins, which is 0:0 if the text does not say `module`.
static Location startOf(ModuleOp module) {
  auto start = dyn_cast<FileLineColLoc>(module.getLoc());
  if (!start || start.getLine() != 0)
    return module.getLoc();
  return FileLineColLoc::get(start.getFilename(), 1, 1);
}

static func::FuncOp findEntry(ModuleOp module, llvm::StringRef name) {
  if (!name.empty()) {
    auto entry = module.lookupSymbol<func::FuncOp>(name);
    if (!entry)
      emitError(startOf(module), "the module has no function @")
          << name << listEntries(module);
    else if (entry.isExternal())
      entry->emitError("entry function has no body");
    else
      return entry;
    return {};
  }
  llvm::SmallPtrSet<Operation *, 8> called;
  module.walk([&](func::CallOp call) {
    if (auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee()))
      called.insert(callee);
  });
  SmallVector<func::FuncOp> sequences, roots;
  for (auto f : module.getOps<func::FuncOp>()) {
    if (f.isExternal())
      continue;
    if (called.contains(f))
      continue;
    roots.push_back(f);
    if (!f->hasAttr(ktdp::kGridAttr))
      sequences.push_back(f);
  }
  if (sequences.size() == 1)
    return sequences.front();
  if (roots.size() == 1)
    return roots.front();
  if (sequences.empty())
    emitError(startOf(module),
              "the module has no sequence function (one without a grid that "
              "nothing calls): name an entry")
        << listEntries(module);
  else
    emitError(startOf(module), "found ")
        << sequences.size() << " sequence functions, starting with @"
        << sequences[0].getName() << " and @" << sequences[1].getName()
        << ": name an entry" << listEntries(module);
  return {};
}

std::shared_ptr<Program>
spyre::runtime::loadProgram(ModuleOp module, const LoadOptions &options) {
  return loadProgramWithNames(module, options,
                              [](Location) { return std::string(); });
}

std::shared_ptr<Program> spyre::runtime::loadProgramWithNames(
    ModuleOp module, const LoadOptions &options, const NameOfArgument &nameOf) {
  func::FuncOp entry = findEntry(module, options.entry);
  if (!entry)
    return nullptr;
  auto impl = std::make_unique<Program::Impl>();
  Plan &plan = impl->plan;
  plan.name = entry.getName().str();
  LocationTable locations(plan);

  // Only what the entry reaches; callees before callers, no recursion.
  llvm::StringMap<Function *> functions;
  llvm::SetVector<func::FuncOp> order;
  // Alone, as a helper of a sequence, and of a kernel. 1: open, 2: done.
  llvm::DenseMap<std::pair<Operation *, int>, int> state;
  bool hasHelpers = false;
  std::function<LogicalResult(func::FuncOp, bool, bool)> visit =
      [&](func::FuncOp f, bool isHelper, bool isInKernel) -> LogicalResult {
    isInKernel |= f->hasAttr(ktdp::kGridAttr);
    auto key = std::make_pair(f.getOperation(), isHelper + isInKernel);
    if (state[key] == 2)
      return success();
    if (state[key] == 1)
      return f->emitError("recursive calls are not supported");
    state[key] = 1;
    WalkResult result = f.walk([&](func::CallOp call) {
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal()) {
        call->emitError("called function @")
            << call.getCallee() << " has no body";
        return WalkResult::interrupt();
      }
      LogicalResult visited =
          visit(callee, isInlined(call, isInKernel), isInKernel);
      return failed(visited) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    state[key] = 2;
    hasHelpers |= isHelper;
    if (!isHelper)
      order.insert(f);
    return success();
  };
  if (failed(visit(entry, false, false)))
    return nullptr;

  // The caller's module stays as it is.
  OwningOpRef<ModuleOp> copy;
  if (hasHelpers) {
    copy = module.clone();
    llvm::SetVector<func::FuncOp> inlined;
    SymbolTable symbols(*copy);
    int64_t numOperations = 0;
    for (func::FuncOp f : order) {
      auto same = symbols.lookup<func::FuncOp>(f.getName());
      if (failed(inlineHelpers(same, symbols, numOperations)))
        return nullptr;
      inlined.insert(same);
    }
    order = std::move(inlined);
    entry = symbols.lookup<func::FuncOp>(entry.getName());
  }

  int64_t programBytes = 0;
  for (func::FuncOp f : order) {
    auto function = std::make_unique<Function>();
    function->name = f.getName().str();
    function->location = locations.get(f->getLoc());
    function->index = static_cast<int>(plan.functions.size());
    FailureOr<std::optional<SmallVector<int64_t>>> grid = ktdp::getGrid(f);
    if (failed(grid))
      return nullptr;
    if (grid->has_value()) {
      function->hasGrid = true;
      int64_t product = 1;
      for (auto [d, size] : llvm::enumerate(**grid)) {
        if (d >= 3 || size > DeviceMemory::kMaxCores ||
            (product *= size) > DeviceMemory::kMaxCores) {
          f->emitError("grid is too large: the device model has ")
              << int64_t(DeviceMemory::kMaxCores) << " cores in 3 dimensions";
          return nullptr;
        }
        function->grid[d] = size;
      }
    }
    FunctionLoader loader(plan, locations, *function, functions);
    if (failed(loader.load(f)))
      return nullptr;
    int64_t bytes = getProgramBytes(*function);
    programBytes += bytes;
    if (programBytes > options.programBytes) {
      f->emitError("program memory is full: the ")
          << function->numCores() << " cores of @" << f.getName() << " need "
          << bytes << " bytes, and with what comes before the program takes "
          << programBytes << " of " << options.programBytes << " bytes";
      return nullptr;
    }
    if (function->hasCalls && function->accessesMemory) {
      f->emitError("a sequence function cannot access memory itself");
      return nullptr;
    }
    functions[f.getName()] = function.get();
    plan.entry = function.get();
    plan.functions.push_back(std::move(function));
  }
  if (failed(loadArguments(entry, plan, locations, nameOf)))
    return nullptr;
  return std::make_shared<Program>(std::move(impl));
}

std::shared_ptr<Program> spyre::runtime::loadProgram(ModuleOp module,
                                                     llvm::StringRef entry,
                                                     LoadOptions options) {
  if (!entry.empty())
    options.entry = entry.str();
  return loadProgram(module, options);
}

void spyre::runtime::registerProgramDialects(DialectRegistry &registry) {
  registry
      .insert<affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
              ktdp::KTDPDialect, linalg::LinalgDialect, math::MathDialect,
              memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect>();
}
