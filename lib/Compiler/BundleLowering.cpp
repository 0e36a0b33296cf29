// SPDX-License-Identifier: Apache-2.0
//===- BundleLowering.cpp - SuperDSC bundles as programs --------*- C++ -*-===//

#include "BundleLowering.h"

#include "Spyre/Compiler/Pipeline.h"
#include "Spyre/Conversion/Passes.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Target/SuperDSC/Raise/RaiseGraph.h"
#include "Spyre/Target/SuperDSC/Reader/Load.h"
#include "Spyre/Target/SuperDSC/Writer/ProgramPrinter.h"
#include "Spyre/Target/Targets.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using spyre::Error;
namespace superdsc = spyre::superdsc;

static OwningOpRef<ModuleOp> raiseBundles(const std::string &folder,
                                          const spyre::BundleOptions &options,
                                          MLIRContext *context) {
  superdsc::Report report;
  auto program = superdsc::loadProgram(folder, report, {options.lenient});
  if (!program || !report.ok())
    throw Error("'" + folder + "' is not a valid bundle:\n" + report.toText());
  return superdsc::raiseProgram(*program, {options.hasPool}, context);
}

OwningOpRef<ModuleOp> spyre::lowerBundles(const std::string &folder,
                                          const BundleOptions &options,
                                          MLIRContext *context) {
  OwningOpRef<ModuleOp> module = raiseBundles(folder, options, context);
  if (!module)
    return nullptr;
  PassManager manager(context);
  manager.addPass(createConvertSpyreGraphToKTIR());
  if (failed(manager.run(*module)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp>
spyre::lowerThroughBundles(ModuleOp planned, const std::string &folder,
                           const superdsc::WriteOptions &options) {
  auto program = superdsc::writeGraph(planned, options);
  if (failed(program))
    return nullptr;
  SmallString<128> path(folder);
  bool isTemporary = folder.empty();
  if (isTemporary)
    if (std::error_code code =
            llvm::sys::fs::createUniqueDirectory("spyre-superdsc", path))
      throw Error("cannot make a temporary folder: " + code.message());
  llvm::scope_exit cleanup([&] {
    if (isTemporary)
      llvm::sys::fs::remove_directories(path);
  });
  superdsc::writeProgram(*program, path.str().str());
  return lowerBundles(path.str().str(), {}, planned.getContext());
}

namespace {
/// A context for modules from bundles, and its diagnostics as text.
struct BundleContext {
  BundleContext()
      : context(makeRegistry(), MLIRContext::Threading::DISABLED),
        handler(&context, [this](Diagnostic &diagnostic) {
          llvm::raw_string_ostream os(text);
          if (!text.empty())
            os << "\n";
          if (auto file = dyn_cast<FileLineColLoc>(diagnostic.getLocation())) {
            os << file.getFilename().getValue();
            // What stands in a JSON file has no line.
            if (file.getLine() > 1)
              os << ":" << file.getLine();
            os << ": ";
          }
          os << diagnostic.str();
          return success();
        }) {
    context.printOpOnDiagnostic(false);
  }

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    spyre::registerCompilerDialects(registry);
    spyre::registerTargets(registry);
    return registry;
  }

  MLIRContext context;
  std::string text;
  ScopedDiagnosticHandler handler;
};
} // namespace

std::string spyre::lowerBundles(const std::string &folder,
                                const BundleOptions &options) {
  BundleContext own;
  OwningOpRef<ModuleOp> module = lowerBundles(folder, options, &own.context);
  if (!module)
    throw Error("'" + folder + "' cannot be executed:\n" + own.text);
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  if (failed(writeBytecodeToFile(*module, os)))
    throw Error("the KTIR module cannot be written:\n" + own.text);
  return bytes;
}

std::vector<std::pair<std::string, std::string>>
spyre::rewriteBundles(const std::string &folder) {
  BundleContext own;
  OwningOpRef<ModuleOp> module = raiseBundles(folder, {}, &own.context);
  if (!module)
    throw Error("'" + folder + "' cannot be raised:\n" + own.text);
  auto program = superdsc::writeGraph(*module, {});
  if (failed(program))
    throw Error("'" + folder + "' cannot be written again:\n" + own.text);
  return superdsc::printProgram(*program);
}
