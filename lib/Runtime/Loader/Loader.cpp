// SPDX-License-Identifier: Apache-2.0
//===- Loader.cpp - KTIR module to program --------------------------------===//

#include "Spyre/Runtime/Loader/Loader.h"
#include "../Engine/Engine.h"
#include "../Engine/ProgramImpl.h"
#include "LoaderImpl.h"

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "Spyre/Dialect/KTIR/Transforms/InlineHelpers.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineExprVisitor.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <numeric>

using namespace mlir;
using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

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

namespace {
enum class Access { Load, Store };
} // namespace

/// Whether a memory view may be loaded from, or stored to, as far as one can
/// tell.
static bool mayAccess(Value view, Access access) {
  for (OpOperand &use : view.getUses()) {
    Operation *user = use.getOwner();
    if (!isa<ktdp::ConstructAccessTileOp, ktdp::ConstructIndirectAccessTileOp>(
            user))
      return true;
    // The tile's own view comes first; others hold indices, which are read.
    if (use.getOperandNumber() != 0) {
      if (access == Access::Load)
        return true;
      continue;
    }
    for (Operation *tileUser : user->getUsers())
      if (access == Access::Load ? !isa<ktdp::StoreOp>(tileUser)
                                 : !isa<ktdp::LoadOp>(tileUser))
        return true;
  }
  return false;
}

/// The same for the memory that `address` points to.
static bool mayAccessAt(Value address, Access access, int depth = 0) {
  if (depth > 8)
    return true;
  for (OpOperand &use : address.getUses()) {
    Operation *user = use.getOwner();
    if (auto view = dyn_cast<ktdp::ConstructMemoryViewOp>(user)) {
      if (use.getOperandNumber() == 0 && mayAccess(view.getResult(), access))
        return true;
    } else if (isa<arith::AddIOp, affine::AffineApplyOp>(user)) {
      if (mayAccessAt(user->getResult(0), access, depth + 1))
        return true;
    } else if (auto call = dyn_cast<func::CallOp>(user)) {
      auto module = call->getParentOfType<ModuleOp>();
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal() ||
          use.getOperandNumber() >= callee.getNumArguments() ||
          mayAccessAt(callee.getArgument(use.getOperandNumber()), access,
                      depth + 1))
        return true;
    } else {
      return true;
    }
  }
  return false;
}

/// The sizes of an array that varies, or of what is used of it in a run, as
/// functions of run-time arguments.
static LogicalResult loadSizes(func::FuncOp entry, unsigned number,
                               ArgumentInfo &info) {
  StringRef name = ktdp::KTDPDialect::kSizeMapAttr;
  auto attribute = entry.getArgAttrOfType<AffineMapAttr>(number, name);
  if (!attribute) {
    name = ktdp::KTDPDialect::kUsedMapAttr;
    attribute = entry.getArgAttrOfType<AffineMapAttr>(number, name);
    info.hasRoom = static_cast<bool>(attribute);
  }
  if (!attribute)
    return success();
  auto fail = [&](const Twine &why) {
    return entry->emitError("argument ")
           << number << ": '" << name << "' " << why;
  };
  if (!info.layout)
    return fail("stands beside no layout");
  AffineMap map = attribute.getValue();
  SmallVector<int64_t> granularity;
  for (BlockArgument argument : entry.getArguments())
    if (auto type = dyn_cast<ktdp::RuntimeArgType>(argument.getType()))
      granularity.push_back(type.getGranularity().value_or(1));
  for (AffineExpr expr : map.getResults()) {
    ArgumentInfo::Size &size = info.sizes.emplace_back();
    if (auto quotient = dyn_cast<AffineBinaryOpExpr>(expr);
        quotient && quotient.getKind() == AffineExprKind::FloorDiv)
      if (auto divisor = dyn_cast<AffineConstantExpr>(quotient.getRHS());
          divisor && divisor.getValue() > 0) {
        size.divisor = divisor.getValue();
        expr = quotient.getLHS();
      }
    SimpleAffineExprFlattener flattener(0, map.getNumSymbols());
    if (failed(flattener.walkPostOrder(expr)) || !flattener.localExprs.empty())
      return fail("must be linear, or that divided by a number");
    ArrayRef<int64_t> form = flattener.operandExprStack.back();
    size.constant = form.back();
    bool isWhole = size.constant % size.divisor == 0;
    for (auto [symbol, factor] : llvm::enumerate(form.drop_back()))
      if (factor != 0) {
        size.terms.emplace_back(symbol, factor);
        int64_t step = symbol < granularity.size() ? granularity[symbol] : 1;
        isWhole &= step % (size.divisor / std::gcd(factor, size.divisor)) == 0;
      }
    if (!isWhole)
      return fail("must divide by what divides the sizes");
  }
  try {
    info.deviceDims =
        spyre::resolveDeviceDims(*info.layout, info.shape, info.strides);
  } catch (const spyre::Error &error) {
    return fail(Twine("cannot be applied: ") + error.what());
  }
  return success();
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
      info.isRuntimeArgument = true;
      info.granularity = runtimeArg.getGranularity().value_or(1);
      info.upperBound = runtimeArg.getUpperbound().value_or(-1);
      if (auto least = entry.getArgAttrOfType<IntegerAttr>(
              i, ktdp::KTDPDialect::kLeastAttr))
        info.lowerBound = least.getInt();
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
      auto arrangement =
          spyre::parseElementArrangement(layout.getArrangement().str());
      if (!format || !dtype || !arrangement)
        return entry->emitError("argument ")
               << i << ": unknown format, dtype or arrangement in " << attr;
      info.kind = ArgumentInfo::Array;
      info.dtype = *dtype;
      info.shape.assign(layout.getShape().begin(), layout.getShape().end());
      info.strides.assign(layout.getStrides().begin(),
                          layout.getStrides().end());
      try {
        info.layout = spyre::TensorLayout(layout.getDeviceSize().vec(),
                                          layout.getStrideMap().vec(), *format,
                                          *arrangement);
      } catch (const std::exception &e) {
        return entry->emitError("argument ") << i << ": " << e.what();
      }
      info.elementSizeInBytes = spyre::storageBytes(*format);
      auto reach = entry.getArgAttrOfType<DenseI64ArrayAttr>(
          i, ktdp::KTDPDialect::kReachAttr);
      llvm::append_range(info.reach,
                         reach ? reach.asArrayRef() : layout.getShape());
    }
    if (failed(loadSizes(entry, i, info)))
      return failure();
    plan.argumentLocations.push_back(locations.get(arg.getLoc()));
    if (info.kind == ArgumentInfo::Scalar) {
      info.mayBeWritten = info.mayBeRead = false;
    } else {
      info.mayBeWritten = mayAccessAt(arg, Access::Store);
      info.mayBeRead = mayAccessAt(arg, Access::Load);
    }
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
      bytes = wrappingMul(bytes, size);
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
    return "; it has no function with a body";
  if (count > kMost)
    names += " and " + std::to_string(count - kMost) + " more";
  return "; it has " + names;
}

/// The location of the module; MLIR gives 0:0 if the text omits `module`.
static Location startOf(ModuleOp module) {
  auto start = dyn_cast<FileLineColLoc>(module.getLoc());
  if (!start || start.getLine() != 0)
    return module.getLoc();
  return FileLineColLoc::get(start.getFilename(), 1, 1);
}

/// What the module says of the device that it is planned for.
static LogicalResult loadDevice(ModuleOp module, Plan &plan,
                                LocationTable &locations) {
  Attribute device = module->getAttr(spyre_graph::kDeviceAttrName);
  if (!device)
    return success();
  // No dialect of the program verifies it.
  if (failed(spyre_graph::verifyDeviceAttr(module, device)))
    return failure();
  Location location = startOf(module);
  plan.device = {spyre_graph::getDeviceSpec(module),
                 plan.locations[locations.get(location)]};
  return success();
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
              "nothing calls): choose one by name")
        << listEntries(module);
  else
    emitError(startOf(module), "found ")
        << sequences.size() << " sequence functions, starting with @"
        << sequences[0].getName() << " and @" << sequences[1].getName()
        << ": choose one by name" << listEntries(module);
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
  if (failed(loadDevice(module, plan, locations)))
    return nullptr;
  const int64_t programMemory = options.programBytes.value_or(
      plan.device ? plan.device->spec.segmentBytes
                  : ::spyre::DeviceSpec().segmentBytes);

  // Only what the entry reaches.
  FailureOr<ktdp::CalledFunctions> called =
      ktdp::collectCalledFunctions(module, entry);
  if (failed(called))
    return nullptr;
  SmallVector<func::FuncOp> order = std::move(called->functions);
  // The caller's module stays as it is.
  OwningOpRef<ModuleOp> copy;
  if (!called->helpers.empty()) {
    copy = module.clone();
    SymbolTable symbols(*copy);
    for (func::FuncOp &f : order)
      f = symbols.lookup<func::FuncOp>(f.getName());
    if (failed(ktdp::inlineHelpers(*copy, order)))
      return nullptr;
    entry = order.back();
  }

  llvm::StringMap<Function *> functions;
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
    if (programBytes > programMemory) {
      f->emitError("program memory is full: the ")
          << function->numCores() << " cores of @" << f.getName() << " need "
          << bytes << " bytes, and with what comes before the program takes "
          << programBytes << " of " << programMemory << " bytes";
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
  // For helper functions, which take the place of their calls.
  func::registerInlinerExtension(registry);
}
