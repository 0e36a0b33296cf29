// SPDX-License-Identifier: Apache-2.0
//===- Pipeline.h - The passes of the compiler, in order --------*- C++ -*-===//

#ifndef SPYRE_COMPILER_PIPELINE_H
#define SPYRE_COMPILER_PIPELINE_H

#include "Spyre/Dialect/SpyreGraph/IR/Device.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace spyre {

/// Options of --spyre-pipeline.
struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<int64_t> cores{*this, "cores",
                        llvm::cl::desc("Cores to divide work over; -1: all of "
                                       "the device"),
                        llvm::cl::init(mlir::spyre_graph::kOfDevice)};
  Option<bool> lxPlanning{
      *this, "lx-planning",
      llvm::cl::desc("Keep intermediate buffers in LX where they fit"),
      llvm::cl::init(true)};
  Option<std::string> lxSolver{
      *this, "lx-solver",
      llvm::cl::desc("Placement in LX: greedy, firstfit, bestfit or optimal"),
      llvm::cl::init("optimal")};
  Option<bool> lxCloneInputs{
      *this, "lx-clone-inputs",
      llvm::cl::desc("Copy arguments that are read repeatedly into LX"),
      llvm::cl::init(true)};
  Option<std::string> mode{
      *this, "mode",
      llvm::cl::desc("Rules of work division and LX planning: default or "
                     "reference"),
      llvm::cl::init("default")};
  Option<std::string> decisionsIn{
      *this, "decisions-in",
      llvm::cl::desc("JSON file whose decisions replace the planned ones")};
  Option<std::string> decisionsOut{
      *this, "decisions-out",
      llvm::cl::desc("JSON file to write the plan's decisions to")};
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc("Plan only what this registered target can express, such "
                     "as ktir; by default what the module says")};
  Option<std::string> device{
      *this, "device",
      llvm::cl::desc("JSON file of the device's numbers that differ from the "
                     "defaults; by default what the module says")};
  Option<bool> forSuperDSC{*this, "superdsc-compatible",
                           llvm::cl::desc("The same as target=superdsc"),
                           llvm::cl::init(false)};
  Option<bool> sizeLoops{
      *this, "size-loops",
      llvm::cl::desc(
          "Run what varies with a size in loops up to it, over tiles "
          "of one step between sizes"),
      llvm::cl::init(false)};
  Option<int64_t> maxSpan{
      *this, "max-span",
      llvm::cl::desc("Bytes of a tensor in device memory that a core can "
                     "address; -1: what the device's can"),
      llvm::cl::init(mlir::spyre_graph::kOfDevice)};
  Option<bool> verifyEach{
      *this, "verify-each",
      llvm::cl::desc("Run --spyre-verify-plan after every pass"),
      llvm::cl::init(false)};
  Option<bool> toKTIR{*this, "to-ktir",
                      llvm::cl::desc("Lower the plan to KTIR"),
                      llvm::cl::init(true)};
};

/// The dialects and interface models that imported graphs and the pipeline
/// need.
void registerCompilerDialects(mlir::DialectRegistry &registry);

/// From imported spyre_graph to KTIR.
void buildSpyrePipeline(mlir::OpPassManager &manager,
                        const PipelineOptions &options);

/// Registers --spyre-pipeline.
void registerSpyrePipelines();

} // namespace spyre

#endif // SPYRE_COMPILER_PIPELINE_H
