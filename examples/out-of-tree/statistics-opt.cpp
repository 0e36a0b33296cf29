// SPDX-License-Identifier: Apache-2.0
//
// A target outside of the project's libraries: it prints what a plan consists
// of. It allows some of what SuperDSC does not and forbids some of what KTIR
// allows, which no pass has to know.

#include "Spyre/Compiler/Pipeline.h"
#include "Spyre/Conversion/Passes.h"
#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/BufferizableOpInterfaceImpl.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "Spyre/Target/Interface/Target.h"
#include "Spyre/Target/KTIR/KTIRTarget.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"

#include <map>

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// Counts what a plan consists of.
class PrintPlanStatistics
    : public PassWrapper<PrintPlanStatistics, OperationPass<func::FuncOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintPlanStatistics)

  StringRef getArgument() const override { return "print-plan-statistics"; }
  StringRef getDescription() const override {
    return "print what a plan consists of";
  }

  void runOnOperation() override {
    std::map<std::string, int64_t> counts;
    int64_t numCores = 0;
    getOperation().walk([&](SpyreOpInterface op) {
      ++counts[op->getName().stripDialect().str()];
      if (WorkDivisionAttr division = op.getWorkDivision()) {
        numCores = std::max(numCores, division.getNumCores());
        ArrayRef<int64_t> splits = division.getSplits(),
                          chunks = division.getChunks();
        SmallVector<int64_t> extents = op.getLoopExtents();
        for (auto [split, chunk, extent] :
             llvm::zip_equal(splits, chunks, extents))
          counts["unequal divisions"] += split * chunk != extent;
      }
    });
    getOperation().walk([&](scf::ForOp) { ++counts["loops"]; });
    llvm::outs() << "statistics of @" << getOperation().getName() << ": "
                 << numCores << " cores";
    for (const auto &[name, count] : counts)
      llvm::outs() << ", " << count << " " << name;
    llvm::outs() << "\n";
  }
};

class StatisticsTarget final : public Target {
public:
  StatisticsTarget() : Target("statistics", "Statistics") {}

  bool allowsExchangedFactors() const override { return false; }
  bool allowsUnequalSlices() const override { return false; }
  bool allowsReshard() const override { return false; }
  bool allowsResultsInLX() const override { return false; }
  // Forbidden by SuperDSC, allowed here: mixed element types, split reductions,
  // values carried by loops, and the rest.

  void addLegalizationPasses(OpPassManager &functions) const override {
    functions.addPass(std::make_unique<PrintPlanStatistics>());
  }
};

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM initialize(argc, argv);
  DialectRegistry registry;
  spyre::registerCompilerDialects(registry);
  registerKTIRTarget(registry);
  registry.addExtension(+[](MLIRContext *, SpyreGraphDialect *dialect) {
    addTarget(*dialect, std::make_unique<StatisticsTarget>());
  });
  registerSpyreGraphPasses();
  registerSpyreConversionPasses();
  PassRegistration<PrintPlanStatistics>();
  spyre::registerSpyrePipelines();
  return asMainReturnCode(
      MlirOptMain(argc, argv, "plan statistics, as a target\n", registry));
}
