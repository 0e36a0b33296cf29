// SPDX-License-Identifier: Apache-2.0
//===- Compiler.cpp - From an imported graph to a program -------*- C++ -*-===//

#include "Spyre/Compiler/Compiler.h"
#include "BundleLowering.h"
#include "CompilerImpl.h"
#include "GraphBuilderImpl.h"

#include "Spyre/Compiler/Pipeline.h"
#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/PlanRules.h"
#include "Spyre/Runtime/Loader/Loader.h"
#include "Spyre/Support/Environment.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>

using namespace mlir;
using spyre::CompiledGraph;
using spyre::CompileOptions;
using spyre::Error;
using spyre::GraphBuilder;

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

namespace {
/// Collects the diagnostics of a context as text: errors in one, and warnings.
class DiagnosticText {
public:
  explicit DiagnosticText(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
            append(diagnostic, "error");
            onlySpans &=
                spyre_graph::breaksPlanRule(diagnostic, spyre_graph::kSpanRule);
          }
          // Its notes would be the operation, which is no news to a user.
          if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
            warnings.push_back(line(diagnostic, "warning"));
          return success();
        }) {}

  const std::string &str() const { return errors; }
  /// Whether there are errors, and all say that spans are too large.
  bool areOfSpans() const { return !errors.empty() && onlySpans; }
  std::vector<std::string> takeWarnings() { return std::move(warnings); }

private:
  static std::string line(Diagnostic &diagnostic, const char *kind) {
    std::string where = spyre_graph::getSourceLine(diagnostic.getLocation());
    return (where.empty() ? kind : where + ": " + kind) + ": " +
           diagnostic.str();
  }

  void append(Diagnostic &diagnostic, const char *kind) {
    if (!errors.empty())
      errors += "\n";
    errors += line(diagnostic, kind);
    for (Diagnostic &note : diagnostic.getNotes())
      append(note, "note");
  }

  std::string errors;
  bool onlySpans = true;
  std::vector<std::string> warnings;
  ScopedDiagnosticHandler handler;
};

//===----------------------------------------------------------------------===//
// What passes leave behind
//===----------------------------------------------------------------------===//

/// Writes the module after each pass, measures how long each took, and keeps
/// what the plan says of sizes, which conversion to KTIR drops. This is
/// not enableIRPrintingToFileTree, whose files lie in a folder per function,
/// nor enableTiming, which prints a report of its own: dumps are promised as
/// <NN>-<pass>.mlir, each a module that spyre-opt reads, and users of the times
/// want the passes in order, by the names of their options.
class PassObserver : public PassInstrumentation {
public:
  PassObserver(std::string dumpDir, CompiledGraph &graph, std::string &error,
               std::string &failedPass)
      : dumpDir(std::move(dumpDir)), graph(graph), error(error),
        failedPass(failedPass) {}

  void runBeforePass(Pass *, Operation *) override {
    started.push_back(std::chrono::steady_clock::now());
  }
  void runAfterPass(Pass *pass, Operation *op) override { finish(pass, op); }
  void runAfterPassFailed(Pass *pass, Operation *op) override {
    finish(pass, op);
    // The pass itself comes before the adaptors that run it.
    if (failedPass.empty())
      failedPass = pass->getArgument().str();
  }

private:
  void finish(Pass *pass, Operation *op) {
    std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - started.pop_back_val();
    // Adaptors that run nested passes have no name.
    if (pass->getArgument().empty())
      return;
    graph.passSeconds.emplace_back(pass->getArgument().str(), elapsed.count());
    if (auto apart = op->getAttrOfType<DenseI64ArrayAttr>(
            spyre_graph::kSizesApartAttrName))
      graph.sizesApart = {apart[0], apart[1]};
    if (dumpDir.empty())
      return;
    while (op->getParentOp())
      op = op->getParentOp();
    std::string name =
        llvm::formatv("{0,0+2}-{1}.mlir", ++number, pass->getArgument());
    ::spyre::dumpModule(dumpDir, name, op, error);
  }

  std::string dumpDir;
  CompiledGraph &graph;
  std::string &error, &failedPass;
  SmallVector<std::chrono::steady_clock::time_point> started;
  unsigned number = 0;
};
} // namespace

void spyre::dumpModule(const std::string &folder, const std::string &name,
                       Operation *module, std::string &error) {
  SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  std::error_code code;
  llvm::raw_fd_ostream os(path, code);
  if (code) {
    error = ("cannot write '" + path + "': " + code.message()).str();
    return;
  }
  // A broken module must not stop the printer.
  module->print(os, OpPrintingFlags().enableDebugInfo().assumeVerified());
  os << "\n";
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

/// In the dump folder: the decisions of the plan, and those that are to replace
/// the planned ones if the caller put them there.
static constexpr const char kDecisionsOutFile[] = "decisions.json";
static constexpr const char kDecisionsInFile[] = "decisions-in.json";

/// The pass that fails where another one has made a wrong plan.
static constexpr const char kPlanVerifier[] = "spyre-verify-plan";

/// Whether values may make it fail: indices outside, divisions by zero.
static bool mayFail(spyre_graph::SpyreOpInterface op) {
  bool divides = isa<spyre_graph::FloorDivOp, spyre_graph::TruncDivOp,
                     spyre_graph::RemainderOp>(op.getOperation());
  return op.getIndirectAccess() ||
         (divides && isa<IntegerType>(getElementTypeOrSelf(op->getResult(0))));
}

/// Errors name an operator that runs by itself, so that such operators do not
/// share programs that may fail. Those of the user's lines do: a file that is
/// edited keeps its programs.
static void addNamesInErrors(llvm::SHA256 &hash, ModuleOp module) {
  module->walk([&](spyre_graph::SpyreOpInterface op) {
    if (!mayFail(op))
      return;
    op->getLoc()->walk([&](Location location) {
      auto file = dyn_cast<FileLineColLoc>(location);
      if (file && file.getFilename().getValue().starts_with("<"))
        hash.update(file.getFilename().getValue());
      return WalkResult::advance();
    });
  });
}

std::string spyre::getCacheKey(const GraphBuilder &builder,
                               const CompileOptions &options) {
  llvm::SHA256 hash;
  hash.update(StringRef(getCompilerIdentity()));
  std::string text = printCompileOptions(options);
  hash.update(StringRef(text));
  text = builder.print();
  hash.update(StringRef(text));
  addNamesInErrors(hash, *builder.getImpl().module);
  return llvm::toHex(hash.result(), /*LowerCase=*/true);
}

static void makeDumpFolder(const std::string &dumpDir) {
  if (dumpDir.empty())
    return;
  if (std::error_code code = llvm::sys::fs::create_directories(dumpDir))
    throw Error("cannot make the folder '" + dumpDir + "': " + code.message());
}

/// Hints that the options ignore are as if the user had not given them.
static void dropIgnoredHints(ModuleOp module, const CompileOptions &options) {
  if (!options.ignoreWorkDivisionHints && !options.ignoreTileHints)
    return;
  module->walk([&](Operation *op) {
    auto hints = op->getAttrOfType<ArrayAttr>(spyre_graph::kHintsAttrName);
    if (!hints)
      return;
    SmallVector<Attribute> kept;
    for (Attribute attribute : hints) {
      auto hint = dyn_cast<DictionaryAttr>(attribute);
      bool isIgnored =
          hint &&
          ((options.ignoreWorkDivisionHints && hint.contains("work_div")) ||
           (options.ignoreTileHints && hint.contains("tiles")));
      if (!isIgnored)
        kept.push_back(attribute);
    }
    if (kept.empty())
      op->removeAttr(spyre_graph::kHintsAttrName);
    else
      op->setAttr(spyre_graph::kHintsAttrName,
                  ArrayAttr::get(op->getContext(), kept));
  });
}

CompiledGraph spyre::compile(const GraphBuilder &builder,
                             const CompileOptions &options,
                             const std::string &dumpDir, std::string cacheKey) {
  checkCompileOptions(options);
  makeDumpFolder(dumpDir);
  GraphBuilder::Impl &impl = builder.getImpl();
  if (!impl.finished)
    throw Error("the outputs of the graph are not set");

  CompiledGraph result;
  result.cacheKey =
      cacheKey.empty() ? getCacheKey(builder, options) : std::move(cacheKey);
  DiagnosticText diagnostics(&impl.context);
  std::string dumpError, failedPass;
  OwningOpRef<ModuleOp> module = impl.module->clone();
  if (!dumpDir.empty())
    dumpModule(dumpDir, "00-import.mlir", *module, dumpError);
  if (failed(verify(*module)))
    throw Error("the imported graph is not valid:\n" + diagnostics.str());
  dropIgnoredHints(*module, options);

  PassManager manager(&impl.context);
  manager.enableVerifier(true);
  manager.addInstrumentation(
      std::make_unique<PassObserver>(dumpDir, result, dumpError, failedPass));
  PipelineOptions pipeline;
  pipeline.cores = options.cores;
  if (!options.device.empty()) {
    DeviceSpec device = DeviceSpec::fromJson(options.device, "option device");
    pipeline.cores = std::min(options.cores, device.numCores);
    (*module)->setAttr(spyre_graph::kDeviceAttrName,
                       spyre_graph::getDeviceAttr(&impl.context, device));
  }
  pipeline.lxPlanning = options.lxPlanning;
  if (!options.lxSolver.empty())
    pipeline.lxSolver = options.lxSolver;
  if (!options.mode.empty())
    pipeline.mode = options.mode;
  pipeline.forSuperDSC = options.forSuperDSC || options.throughSuperDSC;
  pipeline.toKTIR = !options.throughSuperDSC;
  pipeline.sizeLoops = options.throughSuperDSC && options.sizeLoops;
  pipeline.verifyEach = environment::verifyEachPass();
  if (!dumpDir.empty()) {
    auto inDump = [&](StringRef name) {
      SmallString<128> path(dumpDir);
      llvm::sys::path::append(path, name);
      return path.str().str();
    };
    pipeline.decisionsOut = inDump(kDecisionsOutFile);
    if (llvm::sys::fs::exists(inDump(kDecisionsInFile)))
      pipeline.decisionsIn = inDump(kDecisionsInFile);
  }
  buildSpyrePipeline(manager, pipeline);
  bool compiled = succeeded(manager.run(*module));
  if (compiled && options.throughSuperDSC) {
    SmallString<128> folder(dumpDir);
    if (!folder.empty())
      llvm::sys::path::append(folder, "superdsc");
    superdsc::WriteOptions written;
    written.unrollLoops = options.unrollLoops;
    written.symbolicArguments = options.symbolicArguments;
    module = lowerThroughBundles(*module, folder.str().str(), written);
    compiled = static_cast<bool>(module);
  }
  if (!dumpError.empty())
    throw Error(dumpError);
  if (failedPass == kPlanVerifier && !diagnostics.areOfSpans() &&
      environment::decisionsIn().empty())
    throw RefusedPlan("the plan of the graph is wrong:\n" + diagnostics.str());
  if (!compiled)
    throw Error("compiling the graph failed:\n" + diagnostics.str());

  auto started = std::chrono::steady_clock::now();
  {
    llvm::raw_string_ostream os(result.ktirBytecode);
    if (failed(writeBytecodeToFile(*module, os)))
      throw Error("the KTIR module cannot be written:\n" + diagnostics.str());
  }
  result.program = runtime::loadProgram(*module, "main");
  if (!result.program)
    throw Error("the KTIR program cannot be loaded:\n" + diagnostics.str());
  std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - started;
  result.passSeconds.emplace_back("load", elapsed.count());
  describeArguments(result, impl.argumentAttrs.size());
  result.warnings = diagnostics.takeWarnings();
  return result;
}

void spyre::describeArguments(CompiledGraph &graph, size_t numInputs) {
  const std::vector<runtime::ArgumentInfo> &arguments =
      graph.program->arguments();
  if (arguments.size() < numInputs)
    throw Error("the program has fewer arguments than the graph");
  for (size_t i = 0; i < arguments.size(); ++i) {
    const runtime::ArgumentInfo &argument = arguments[i];
    if (argument.kind == runtime::ArgumentInfo::Pool) {
      if (i + 1 != arguments.size())
        throw Error("the pool is not the program's last argument");
      graph.poolBytes = argument.poolBytes;
      continue;
    }
    if (argument.isRuntimeArgument && i >= numInputs) {
      ++graph.numSizes;
      continue;
    }
    if (argument.kind != runtime::ArgumentInfo::Array || !argument.layout ||
        graph.numSizes != 0)
      throw Error("argument '" + argument.name +
                  "' of the program is not an array with a layout");
    if (i < numInputs)
      graph.argumentNames.push_back(argument.name);
    else
      graph.outputs.push_back(
          {argument.dtype, argument.shape, argument.strides, *argument.layout});
  }
}
