// SPDX-License-Identifier: Apache-2.0
//
// mlir-opt with the project's dialects and passes beside upstream's.

#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "Spyre/Dialect/KTIR/Transforms/Passes.h"
#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundle.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

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
#endif

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  registry
      .insert<mlir::ktdp::KTDPDialect, mlir::sdscbundle::SDSCBundleDialect>();
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
#endif
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "spyre-opt\n", registry));
}
