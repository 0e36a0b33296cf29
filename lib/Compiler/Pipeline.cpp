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

void spyre::registerCompilerDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, arith::ArithDialect,
                  bufferization::BufferizationDialect, func::FuncDialect,
                  ktdp::KTDPDialect, linalg::LinalgDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, SpyreGraphDialect,
                  tensor::TensorDialect>();
  registerBufferizableOpInterfaceExternalModels(registry);
  // Without it, --spyre-bufferize copies results instead of writing them in
  // place.
  memref::registerAllocationOpInterfaceExternalModels(registry);
}

/// Reads the decisions that one stage can take, if there is a file of them.
static void takeDecisions(OpPassManager &manager,
                          const spyre::PipelineOptions &options,
                          StringRef stage) {
  if (options.decisionsIn.empty())
    return;
  SpyreDecisionsInOptions decisions;
  decisions.file = options.decisionsIn;
  decisions.stage = stage;
  manager.addPass(createSpyreDecisionsIn(decisions));
}

void spyre::buildSpyrePipeline(OpPassManager &manager,
                               const PipelineOptions &options) {
  bool hasDecisions =
      !options.decisionsIn.empty() || !options.decisionsOut.empty();
  manager.addNestedPass<func::FuncOp>(createSpyreDecompose());
  if (hasDecisions)
    manager.addNestedPass<func::FuncOp>(createSpyreNumberOperations());
  takeDecisions(manager, options, "layouts");
  SpyrePropagateLayoutsOptions layouts;
  layouts.superdscCompatible = options.superdscCompatible;
  manager.addNestedPass<func::FuncOp>(createSpyrePropagateLayouts(layouts));
  if (options.superdscCompatible)
    manager.addNestedPass<func::FuncOp>(createSpyreLegalizeSuperDSC());
  manager.addNestedPass<func::FuncOp>(createSpyreResolveHints());
  if (hasDecisions)
    manager.addNestedPass<func::FuncOp>(createSpyreNumberOperations());
  if (options.lxPlanning) {
    takeDecisions(manager, options, "tilings");
    SpyreCoarseTilingOptions tiling;
    tiling.cores = options.cores;
    tiling.superdscCompatible = options.superdscCompatible;
    manager.addNestedPass<func::FuncOp>(createSpyreCoarseTiling(tiling));
  }
  takeDecisions(manager, options, "divisions");
  SpyreWorkDivisionOptions division;
  division.cores = options.cores;
  division.mode = options.mode;
  division.superdscCompatible = options.superdscCompatible;
  manager.addNestedPass<func::FuncOp>(createSpyreWorkDivision(division));
  SpyreBufferizeOptions bufferize;
  bufferize.cores = options.cores;
  bufferize.superdscCompatible = options.superdscCompatible;
  manager.addPass(createSpyreBufferize(bufferize));
  if (options.lxPlanning) {
    SpyreLXPlanningOptions lx;
    lx.solver = options.lxSolver;
    lx.mode = options.mode;
    lx.superdscCompatible = options.superdscCompatible;
    manager.addNestedPass<func::FuncOp>(createSpyreLXPlanning(lx));
  }
  manager.addNestedPass<func::FuncOp>(createSpyreMemoryPlanning());
  takeDecisions(manager, options, "plan");
  SpyreVerifyPlanOptions verify;
  verify.cores = options.cores;
  manager.addNestedPass<func::FuncOp>(createSpyreVerifyPlan(verify));
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
