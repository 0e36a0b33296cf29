// SPDX-License-Identifier: Apache-2.0
//===- Bundle.cpp - SuperDSC bundles as programs ----------------*- C++ -*-===//

#include "BundleLowering.h"

#include "Spyre/Compiler/Pipeline.h"
#include "Spyre/Conversion/Passes.h"
#include "Spyre/Device/Error.h"
#include "Spyre/Target/SuperDSC/Folder.h"
#include "Spyre/Target/SuperDSC/Translate.h"

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

OwningOpRef<ModuleOp> spyre::lowerBundles(const std::string &folder,
                                          const BundleOptions &options,
                                          MLIRContext *context) {
  superdsc::Report report;
  auto program = superdsc::loadProgram(folder, report, {options.lenient});
  if (!program || !report.ok())
    throw Error("'" + folder + "' is not a valid bundle:\n" + report.toText());
  OwningOpRef<ModuleOp> module =
      superdsc::raiseProgram(*program, {options.hasPool}, context);
  if (!module)
    return nullptr;
  PassManager manager(context);
  manager.addPass(createConvertSpyreGraphToKTIR());
  if (failed(manager.run(*module)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp> spyre::lowerThroughBundles(ModuleOp planned,
                                                 const std::string &folder) {
  auto program = superdsc::writeGraph(planned, {});
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
  for (const auto &[name, content] : superdsc::printProgram(*program)) {
    SmallString<128> file(path);
    llvm::sys::path::append(file, name);
    if (std::error_code code = llvm::sys::fs::create_directories(
            llvm::sys::path::parent_path(file)))
      throw Error(
          ("cannot make the folder of '" + file + "': " + code.message())
              .str());
    superdsc::writeFile(file.str().str(), content);
  }
  return lowerBundles(path.str().str(), {}, planned.getContext());
}

std::string spyre::lowerBundles(const std::string &folder,
                                const BundleOptions &options) {
  DialectRegistry registry;
  registerCompilerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  std::string text;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    llvm::raw_string_ostream os(text);
    if (!text.empty())
      os << "\n";
    if (auto file = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
      os << file.getFilename().getValue() << ": ";
    os << diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = lowerBundles(folder, options, &context);
  if (!module)
    throw Error("'" + folder + "' cannot be executed:\n" + text);
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  if (failed(writeBytecodeToFile(*module, os)))
    throw Error("the KTIR module cannot be written:\n" + text);
  return bytes;
}
