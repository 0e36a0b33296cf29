// SPDX-License-Identifier: Apache-2.0
//
// mlir-opt with the project's dialects and passes beside upstream's.

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#ifdef SPYRE_HAS_SpyreGraphIR
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#endif
#if defined(SPYRE_HAS_SpyreGraphTransforms) &&                                 \
    __has_include("Spyre/Dialect/SpyreGraph/Transforms/Passes.h")
#define SPYRE_GRAPH_PASSES 1
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#endif
#if defined(SPYRE_HAS_SpyreGraphToKTIR) &&                                     \
    __has_include("Spyre/Conversion/Passes.h")
#define SPYRE_CONVERSION_PASSES 1
#include "Spyre/Conversion/Passes.h"
#endif

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  registry.insert<mlir::ktdp::KTDPDialect>();
#ifdef SPYRE_HAS_SpyreGraphIR
  registry.insert<mlir::spyre_graph::SpyreGraphDialect>();
#endif
#ifdef SPYRE_GRAPH_PASSES
  mlir::spyre_graph::registerSpyreGraphPasses();
#endif
#ifdef SPYRE_CONVERSION_PASSES
  mlir::registerSpyreConversionPasses();
#endif
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "spyre-opt\n", registry));
}
