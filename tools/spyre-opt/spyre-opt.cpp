// SPDX-License-Identifier: Apache-2.0
//
// mlir-opt with the project's dialects and passes, and those of upstream's that
// the project's IR consists of.

#include "Spyre/Dialect/Check/IR/Check.h"
#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "Spyre/Dialect/KTIR/IR/ParserGuards.h"
#include "Spyre/Dialect/KTIR/Transforms/Passes.h"
#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundle.h"
#include "Spyre/Support/Version.h"
#include "Upstream.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

#ifdef SPYRE_HAS_SpyreGraphIR
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#endif
#ifdef SPYRE_HAS_SpyreGraphTransforms
#include "Spyre/Dialect/SpyreGraph/Transforms/BufferizableOpInterfaceImpl.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#endif
#ifdef SPYRE_HAS_SpyreGraphToKTIR
#include "Spyre/Conversion/Passes.h"
#endif

#ifdef SPYRE_HAS_SpyreCompiler
#include "Spyre/Compiler/Pipeline.h"
#include "Spyre/Target/SuperDSC/Transforms/Passes.h"
#include "Spyre/Target/Targets.h"
#endif

/// Stands above the options in --help.
static constexpr const char *kOverview =
    R"(spyre-opt: runs passes of the compiler on IR, as mlir-opt does

  spyre-opt graph.mlir --spyre-pipeline         a graph to a plan and to KTIR
  spyre-opt plan.mlir --spyre-verify-plan -o -  one pass
  spyre-opt graph.mlir --spyre-pipeline --dump-pass-pipeline
                                                which passes that are

The passes of this project are --convert-aten-to-spyre-graph,
--convert-spyre-graph-to-ktir, and those that begin with --spyre- and --ktdp-;
the others are MLIR's. docs/internals has a page for each stage.
)";

/// mlir-opt, but for a look at the text before it is parsed.
static mlir::LogicalResult optimize(int argc, char **argv,
                                    mlir::DialectRegistry &registry) {
  auto [inputFile, outputFile] =
      mlir::registerAndParseCLIOptions(argc, argv, kOverview, registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(argc, argv, inputFile, outputFile, registry);
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> input =
      mlir::openInputFile(inputFile, &message);
  std::unique_ptr<llvm::ToolOutputFile> output;
  if (input)
    output = mlir::openOutputFile(outputFile, &message);
  if (!output) {
    llvm::errs() << message << "\n";
    return mlir::failure();
  }
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects(config.shouldAllowUnregisteredDialects());
  llvm::SourceMgr sources;
  llvm::MemoryBufferRef source = input->getMemBufferRef();
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(
                                 source, /*RequiresNullTerminator=*/false),
                             llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  if (failed(mlir::ktdp::checkSource(source, &context)) ||
      failed(
          mlir::MlirOptMain(output->os(), std::move(input), registry, config)))
    return mlir::failure();
  output->keep();
  return mlir::success();
}

int spyre_opt_main(int argc, char **argv) {
  llvm::InitLLVM initialize(argc, argv);
  spyre::setVersionPrinter();
  mlir::ktdp::exitOnFatalErrors();
  mlir::DialectRegistry registry;
  spyre::registerUpstreamDialects(registry);
  spyre::registerUpstreamPasses();
  registry.insert<mlir::check::CheckDialect, mlir::ktdp::KTDPDialect,
                  mlir::sdscbundle::SDSCBundleDialect>();
  mlir::ktdp::registerKTIRPasses();
#ifdef SPYRE_HAS_SpyreGraphIR
  registry.insert<mlir::spyre_graph::SpyreGraphDialect>();
#endif
#ifdef SPYRE_HAS_SpyreGraphTransforms
  mlir::spyre_graph::registerBufferizableOpInterfaceExternalModels(registry);
  mlir::spyre_graph::registerSpyreGraphPasses();
#endif
#ifdef SPYRE_HAS_SpyreGraphToKTIR
  mlir::registerSpyreConversionPasses();
#endif
#ifdef SPYRE_HAS_SpyreCompiler
  spyre::registerSpyrePipelines();
  spyre::registerTargets(registry);
  spyre::superdsc::registerSuperDSCPasses();
#endif
  return mlir::asMainReturnCode(optimize(argc, argv, registry));
}
