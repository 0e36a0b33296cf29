// SPDX-License-Identifier: Apache-2.0
//===- Cases.cpp - The cases of a file of checks --------------------------===//

#include "Cases.h"
#include "Arrays.h"
#include "Comparison.h"

#include "Spyre/Dialect/Check/IR/Check.h"
#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "Spyre/Dialect/KTIR/IR/ParserGuards.h"
#include "Spyre/Runtime/Loader/Loader.h"
#include "Spyre/Support/Error.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace spyre;
using namespace spyre::runtime;
using namespace mlir;

/// The kernel around a computation: loads operands, stores results.
static func::FuncOp makeKernel(func::FuncOp function) {
  MLIRContext *context = function.getContext();
  Location loc = function.getLoc();
  OpBuilder builder(context);
  Type index = builder.getIndexType();
  SmallVector<Type> types;
  for (Type type : function.getArgumentTypes())
    types.push_back(isa<TensorType>(type) ? index : type);
  types.append(function.getNumResults(), index);
  auto kernel =
      func::FuncOp::create(builder, loc, "check_" + function.getName().str(),
                           builder.getFunctionType(types, {}));
  kernel->setAttr(ktdp::kGridAttr, ktdp::getGridAttr(context, {1}));
  builder.setInsertionPointToStart(kernel.addEntryBlock());
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  auto tileOf = [&](Value address, Type type) -> Value {
    auto tensor = cast<RankedTensorType>(type);
    Value view = ktdp::ConstructMemoryViewOp::create(
        builder, loc, address, tensor.getShape(), tensor.getElementType(),
        ktdp::MemorySpaceAttr::getGlobal(context));
    SmallVector<Value> start(tensor.getRank(), zero);
    return ktdp::ConstructAccessTileOp::create(
        builder, loc, view, start,
        getAsIndexOpFoldResult(context, tensor.getShape()));
  };
  SmallVector<Value> operands;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    Value argument = kernel.getArgument(i);
    operands.push_back(
        isa<TensorType>(type)
            ? ktdp::LoadOp::create(builder, loc, tileOf(argument, type))
                  .getResult()
            : argument);
  }
  auto call = func::CallOp::create(builder, loc, function, operands);
  for (auto [i, result] : llvm::enumerate(call.getResults())) {
    Value address = kernel.getArgument(function.getNumArguments() + i);
    ktdp::StoreOp::create(builder, loc, result,
                          tileOf(address, result.getType()));
  }
  func::ReturnOp::create(builder, loc);
  return kernel;
}

/// A scalar as a program's argument.
static int64_t valueOf(TypedAttr scalar) {
  if (auto number = dyn_cast<FloatAttr>(scalar))
    return number.getValue().bitcastToAPInt().getZExtValue();
  return cast<IntegerAttr>(scalar).getValue().getSExtValue();
}

namespace {

/// Runs the cases of one module.
class CaseRunner {
public:
  CaseRunner(const Options &options, ModuleOp module)
      : options(options), module(module) {}

  LogicalResult run(check::CaseOp test);

private:
  /// An operand or a result of a run: an array, or else a value.
  struct Known {
    NpyArray array;
    int64_t value = 0;
  };

  void run(check::RunOp run);
  LogicalResult expect(Operation *op);
  LogicalResult compareWith(Operation *op, Value actual, Value computed,
                            std::optional<ElementsAttr> constant,
                            const Tolerance &tolerance);
  LogicalResult expectError(check::ExpectErrorOp op);
  std::shared_ptr<Program> load(func::FuncOp function);

  const Options &options;
  ModuleOp module;
  llvm::DenseMap<Value, Known> known;
  llvm::StringMap<std::shared_ptr<Program>> programs;
};

} // namespace

/// Throws Error with the diagnostics.
std::shared_ptr<Program> CaseRunner::load(func::FuncOp function) {
  std::shared_ptr<Program> &program = programs[function.getName()];
  if (program)
    return program;
  std::string text;
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        llvm::raw_string_ostream os(text);
        os << (text.empty() ? "" : "\n");
        if (auto at =
                diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
          os << at.getFilename().getValue() << ":" << at.getLine() << ":"
             << at.getColumn() << ": error: ";
        os << diagnostic;
        return success();
      });
  LoadOptions loadOptions;
  if (options.device)
    loadOptions.programBytes = options.device->segmentBytes;
  OwningOpRef<func::FuncOp> kernel;
  if (check::isComputation(function)) {
    kernel = makeKernel(function);
    SymbolTable(module).insert(kernel.get());
  }
  program = loadProgram(module, kernel ? kernel->getName() : function.getName(),
                        loadOptions);
  if (!program)
    throw Error(text);
  if (programs.size() == 1)
    warnOfOtherDevice(options, program->plannedDevice());
  return program;
}

/// Throws Error.
void CaseRunner::run(check::RunOp run) {
  std::shared_ptr<Program> program =
      load(module.lookupSymbol<func::FuncOp>(run.getCallee()));
  RunOptions runOptions;
  runOptions.threads = options.threads;
  runOptions.numerics = options.numerics;
  runOptions.oob = options.oob;
  runOptions.check = options.check;
  if (auto numerics = run.getNumerics())
    runOptions.numerics =
        *numerics == check::Numerics::ieee ? Numerics::IEEE : Numerics::DL16;

  DeviceMemory memory(chooseDevice(options, program->plannedDevice()));
  std::vector<Array> arrays;
  std::vector<int64_t> values;
  const std::vector<ArgumentInfo> &infos = program->arguments();
  auto addArray = [&](size_t argument, NpyArray host) {
    const ArgumentInfo &info = infos[argument];
    checkArray(info, host, "check.run", runOptions.numerics);
    Array array;
    array.argument = argument;
    array.host = std::move(host);
    array.sizeInBytes = deviceBytes(info, array.host);
    array.address = memory.allocate(array.sizeInBytes);
    values.push_back(static_cast<int64_t>(array.address) /
                     elementSize(info, array.host));
    upload(info, array, runOptions.numerics, memory);
    arrays.push_back(std::move(array));
  };
  size_t numOperands = run.getInputs().size(), next = 0;
  // Operands, and behind them the results of a computation.
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].kind == ArgumentInfo::Pool) {
      values.push_back(
          static_cast<int64_t>(memory.allocate(infos[i].poolBytes)));
      continue;
    }
    size_t position = next++;
    if (position >= numOperands) {
      Value result = run.getOutputs()[position - numOperands];
      addArray(i, arrayOf(cast<ShapedType>(result.getType())));
      continue;
    }
    Value operand = run.getInputs()[position];
    if (isa<TensorType>(operand.getType()))
      addArray(i, known[operand].array);
    else
      values.push_back(known[operand].value);
  }
  program->run(memory, values, runOptions);
  // The arrays of the outputs come after those of the operands.
  size_t first = arrays.size() - run.getOutputs().size();
  for (auto [i, result] : llvm::enumerate(run.getOutputs())) {
    const Array &array = arrays[first + i];
    known[result].array =
        download(infos[array.argument], array, runOptions.numerics, memory);
  }
}

LogicalResult CaseRunner::compareWith(Operation *op, Value actual,
                                      Value computed,
                                      std::optional<ElementsAttr> constant,
                                      const Tolerance &tolerance) {
  NpyArray expected = constant ? arrayOf(*constant) : known[computed].array;
  std::optional<std::string> difference =
      compare(cast<ShapedType>(actual.getType()), known[actual].array, expected,
              tolerance);
  return difference ? op->emitError(*difference) : success();
}

LogicalResult CaseRunner::expectError(check::ExpectErrorOp op) {
  try {
    run(op.getRun());
  } catch (const std::exception &error) {
    if (llvm::StringRef(error.what()).contains(op.getText()))
      return success();
    return op->emitError("expected an error with the text '")
           << op.getText() << "', found: " << error.what();
  }
  return op->emitError("expected an error with the text '")
         << op.getText() << "', but @" << op.getRun().getCallee() << " ran";
}

/// Executes one operation of a case. Throws Error if a run fails.
LogicalResult CaseRunner::expect(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::ConstantOp constant) {
        Known &result = known[constant.getResult()];
        if (auto elements = dyn_cast<ElementsAttr>(constant.getValue()))
          result.array = arrayOf(elements);
        else
          result.value = valueOf(constant.getValue());
        return success();
      })
      .Case([&](check::GenerateOp generate) {
        Value result = generate.getResult();
        known[result].array =
            arrayOf(cast<ShapedType>(result.getType()), generate.getMap());
        return success();
      })
      .Case([&](check::RunOp op) {
        run(op);
        return success();
      })
      .Case([&](check::ExpectEqOp op) {
        return compareWith(op, op.getActual(), op.getComputed(),
                           op.getConstant(), {});
      })
      .Case([&](check::ExpectCloseOp op) {
        Tolerance tolerance;
        tolerance.maxUlp = op.getMaxUlp();
        if (FloatAttr atol = op.getAtolAttr())
          tolerance.atol = atol.getValueAsDouble();
        return compareWith(op, op.getActual(), op.getComputed(),
                           op.getConstant(), tolerance);
      })
      .Case([&](check::ExpectErrorOp op) { return expectError(op); });
}

LogicalResult CaseRunner::run(check::CaseOp test) {
  known.clear();
  LogicalResult result = success();
  for (Operation &op : test.getBody().front()) {
    try {
      if (failed(expect(&op)))
        result = failure();
    } catch (const std::exception &error) {
      // Later operations of the case have no values to look at.
      op.emitError(error.what());
      result = failure();
      break;
    }
  }
  if (failed(result))
    emitRemark(test.getLoc(), "in the case '") << test.getName() << "'";
  return result;
}

bool spyre::runCases(const Options &options) {
  std::string path = options.program;
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer)
    throw Error(path + ": error: " + buffer.getError().message());
  DialectRegistry registry;
  registerProgramDialects(registry);
  registry.insert<check::CheckDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  // The kernels around computations use dialects that the text need not.
  context.loadAllAvailableDialects();
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context, llvm::errs());
  const llvm::MemoryBuffer *source =
      sources.getMemoryBuffer(sources.getMainFileID());
  if (failed(ktdp::checkSource(source->getMemBufferRef(), &context)))
    return false;
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return false;
  SmallVector<check::CaseOp> tests(module->getOps<check::CaseOp>());
  if (tests.empty())
    throw Error(path + ": error: has no check.case");
  CaseRunner runner(options, *module);
  bool holds = true;
  for (check::CaseOp test : tests)
    holds &= succeeded(runner.run(test));
  return holds;
}
