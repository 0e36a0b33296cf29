// SPDX-License-Identifier: Apache-2.0
//===- SpyreCode.cpp - Folders with spyrecode.json ------------------------===//

#include "Translations.h"

#include "Spyre/Compiler/Pipeline.h"
#include "Spyre/Dialect/KTIR/IR/ParserGuards.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Support/OpenDirectory.h"
#include "Spyre/Target/SpyreCode/Translate.h"
#include "Spyre/Target/Targets.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace spyre;

/// Writes the job of a planned file; diagnostics go to standard error.
static void writeCode(const SpyreCodeRequest &request, bool &ok) {
  std::string message;
  auto input = mlir::openInputFile(request.input, &message);
  if (!input)
    throw Error(message);
  mlir::DialectRegistry registry;
  registerCompilerDialects(registry);
  registerTargets(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  // Locations are in the image, which does not depend on where the file is.
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(
          input->getBuffer(), llvm::sys::path::filename(request.input)),
      llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  ok = false;
  const auto *source = sources.getMemoryBuffer(sources.getMainFileID());
  if (mlir::failed(
          mlir::ktdp::checkSource(source->getMemBufferRef(), &context)))
    return;
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return;
  spyrecode::WriteOptions options;
  if (request.asSpecified)
    options.flavor = spyrecode::Flavor::Spec;
  options.symbolicArguments = request.symbolicArguments;
  auto files = spyrecode::writeModule(*module, options);
  if (mlir::failed(files))
    return;
  for (const auto &[name, content] : *files)
    spyre::writeFile(request.output, name, content);
  ok = true;
}

std::string spyre::runSpyreCode(const SpyreCodeRequest &request, bool &ok) {
  if (request.action == SpyreCodeRequest::Write) {
    writeCode(request, ok);
    return "";
  }
  superdsc::Report report;
  spyrecode::loadSpyreCode(request.input, report);
  ok = report.ok();
  if (request.json)
    return spyre::dumpJson(report.toJson()) + "\n";
  return ok ? request.input + ": valid\n" : report.toText();
}
