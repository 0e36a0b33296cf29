// SPDX-License-Identifier: Apache-2.0
//===- Pipeline.cpp - The passes of the compiler, in order ------*- C++ -*-===//

#include "Spyre/Compiler/Pipeline.h"

#include "Spyre/Conversion/Passes.h"
#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/BufferizableOpInterfaceImpl.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/AllocationOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// The target that the option superdsc-compatible stands for.
static constexpr const char *kSuperDSCTarget = "superdsc";

void spyre::registerCompilerDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect,
                  bufferization::BufferizationDialect, func::FuncDialect,
                  ktdp::KTDPDialect, linalg::LinalgDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, SpyreGraphDialect,
                  tensor::TensorDialect>();
  registerBufferizableOpInterfaceExternalModels(registry);
  // Compiled programs are loaded in the compiler's context.
  func::registerInlinerExtension(registry);
  // Without it, --spyre-bufferize copies results instead of writing them in
  // place.
  memref::registerAllocationOpInterfaceExternalModels(registry);
}

namespace {

/// Adds the passes that make the plan, each followed by a check of what has
/// been decided so far if the options ask for it.
class PlanningPasses {
public:
  PlanningPasses(OpPassManager &manager, const spyre::PipelineOptions &options)
      : manager(manager), options(options) {}

  void add(std::unique_ptr<Pass> pass) {
    manager.addPass(std::move(pass));
    verifyPart();
  }

  void addToFunctions(std::unique_ptr<Pass> pass) {
    manager.addNestedPass<func::FuncOp>(std::move(pass));
    verifyPart();
  }

  /// Reads the decisions that one stage can take, if there is a file of them.
  void takeDecisions(StringRef stage) {
    if (options.decisionsIn.empty())
      return;
    SpyreDecisionsInOptions decisions;
    decisions.file = options.decisionsIn;
    decisions.stage = stage;
    add(createSpyreDecisionsIn(decisions));
  }

  void verify(bool partial) {
    SpyreVerifyPlanOptions verify;
    verify.cores = options.cores;
    verify.partial = partial;
    verify.maxSpan = options.maxSpan;
    manager.addNestedPass<func::FuncOp>(createSpyreVerifyPlan(verify));
  }

private:
  void verifyPart() {
    if (options.verifyEach)
      verify(/*partial=*/true);
  }

  OpPassManager &manager;
  const spyre::PipelineOptions &options;
};

} // namespace

void spyre::buildSpyrePipeline(OpPassManager &manager,
                               const PipelineOptions &options) {
  PlanningPasses passes(manager, options);
  bool hasDecisions =
      !options.decisionsIn.empty() || !options.decisionsOut.empty();
  for (const std::string &target :
       {options.target.getValue(),
        std::string(options.forSuperDSC ? kSuperDSCTarget : "")})
    if (!target.empty())
      manager.addPass(createSpyreSetTarget(SpyreSetTargetOptions{target}));
  if (!options.device.empty())
    manager.addPass(
        createSpyreSetDevice(SpyreSetDeviceOptions{options.device}));
  passes.addToFunctions(createSpyreDecompose());
  if (hasDecisions)
    passes.addToFunctions(createSpyreNumberOperations());
  passes.takeDecisions("layouts");
  SpyrePropagateLayoutsOptions layouts;
  layouts.maxSpan = options.maxSpan;
  passes.addToFunctions(createSpyrePropagateLayouts(layouts));
  passes.addToFunctions(createSpyreUpdateInPlace());
  passes.addToFunctions(createSpyreLegalizeForTarget());
  passes.addToFunctions(createSpyreResolveHints());
  if (hasDecisions)
    passes.addToFunctions(createSpyreNumberOperations());
  if (options.sizeLoops)
    passes.addToFunctions(createSpyreSizeLoops());
  if (options.lxPlanning) {
    passes.takeDecisions("tilings");
    SpyreCoarseTilingOptions tiling;
    tiling.cores = options.cores;
    tiling.maxSpan = options.maxSpan;
    passes.addToFunctions(createSpyreCoarseTiling(tiling));
  }
  passes.takeDecisions("divisions");
  SpyreWorkDivisionOptions division;
  division.cores = options.cores;
  division.mode = options.mode;
  division.maxSpan = options.maxSpan;
  passes.addToFunctions(createSpyreWorkDivision(division));
  SpyreBufferizeOptions bufferize;
  bufferize.cores = options.cores;
  passes.add(createSpyreBufferize(bufferize));
  if (options.lxPlanning) {
    SpyreLXPlanningOptions lx;
    lx.solver = options.lxSolver;
    lx.cloneInputs = options.lxCloneInputs;
    lx.mode = options.mode;
    lx.maxSpan = options.maxSpan;
    passes.addToFunctions(createSpyreLXPlanning(lx));
  }
  passes.addToFunctions(createSpyreMemoryPlanning());
  passes.takeDecisions("plan");
  passes.verify(/*partial=*/false);
  if (!options.decisionsOut.empty()) {
    SpyreDecisionsOutOptions decisions;
    decisions.file = options.decisionsOut;
    manager.addPass(createSpyreDecisionsOut(decisions));
  }
  if (options.toKTIR)
    manager.addPass(createConvertSpyreGraphToKTIR());
}

void spyre::registerSpyrePipelines() {
  PassPipelineRegistration<PipelineOptions>(
      "spyre-pipeline", "imported spyre_graph to KTIR: every pass, in order",
      buildSpyrePipeline);
}
