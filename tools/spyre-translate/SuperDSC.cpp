// SPDX-License-Identifier: Apache-2.0
//===- SuperDSC.cpp - Folders of bundles ----------------------------------===//

#include "Translations.h"

#include "Spyre/Support/Error.h"
#include "Spyre/Target/SuperDSC/Raise/RaiseGraph.h"
#include "Spyre/Target/SuperDSC/Reader/Load.h"
#include "Spyre/Target/SuperDSC/Writer/ProgramPrinter.h"
#include "Spyre/Target/SuperDSC/Writer/Schema.h"
#include "Spyre/Target/SuperDSC/Writer/WriteGraph.h"

#include "Spyre/Dialect/KTIR/IR/ParserGuards.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/SourceMgr.h"

using namespace spyre;

/// Writes the bundles of a planned file; diagnostics go to standard error.
static std::string writeBundles(const SuperDSCRequest &request, bool &ok) {
  std::string message;
  auto input = mlir::openInputFile(request.folder, &message);
  if (!input)
    throw Error(message);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  context.loadDialect<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                      mlir::memref::MemRefDialect, mlir::scf::SCFDialect,
                      mlir::spyre_graph::SpyreGraphDialect>();
  llvm::SourceMgr sources;
  llvm::MemoryBufferRef source = input->getMemBufferRef();
  sources.AddNewSourceBuffer(std::move(input), llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  ok = false;
  if (mlir::failed(mlir::ktdp::checkGraphSource(source, &context)))
    return "";
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return "";
  superdsc::WriteOptions options;
  options.flavor =
      request.asSpecified ? superdsc::Flavor::Spec : superdsc::Flavor::AsBuilt;
  options.symbolicArguments = request.symbolicArguments;
  options.unrollLoops = request.unrollLoops;
  auto program = superdsc::writeGraph(*module, options);
  if (mlir::failed(program))
    return "";
  superdsc::writeProgram(*program, request.output);
  ok = true;
  return "";
}

std::string spyre::runSuperDSC(const SuperDSCRequest &request, bool &ok) {
  if (request.action == SuperDSCRequest::Schema)
    return spyre::dumpJson(superdsc::makeSchema()) + "\n";
  if (request.action == SuperDSCRequest::Write)
    return writeBundles(request, ok);
  ok = true;
  superdsc::Report report;
  auto program =
      superdsc::loadProgram(request.folder, report, {request.lenient});
  if (request.action == SuperDSCRequest::Validate && program && report.ok() &&
      program->manifest)
    superdsc::checkRaises(*program, {request.hasPool}, report);
  ok = program && report.ok();
  if (request.action == SuperDSCRequest::Validate) {
    if (request.json)
      return spyre::dumpJson(report.toJson()) + "\n";
    return report.ok() ? request.folder + ": valid\n" : report.toText();
  }
  if (!ok)
    throw Error("'" + request.folder + "' is not a valid bundle:\n" +
                report.toText());
  if (request.action == SuperDSCRequest::Raise) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    llvm::SourceMgr sources;
    mlir::SourceMgrDiagnosticHandler handler(sources, &context);
    auto module = superdsc::raiseProgram(*program, {request.hasPool}, &context);
    ok = static_cast<bool>(module);
    std::string text;
    if (module) {
      llvm::raw_string_ostream os(text);
      module->print(os);
      os << '\n';
    }
    return text;
  }
  superdsc::writeProgram(*program, request.output);
  return "";
}
