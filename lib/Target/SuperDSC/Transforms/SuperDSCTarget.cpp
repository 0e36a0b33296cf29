//===- SuperDSCTarget.cpp - Planning for SuperDSC ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Target/Interface/Target.h"
#include "Spyre/Target/SuperDSC/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

/// What SuperDSC can express (spec/superdsc.md).
class SuperDSCTarget final : public Target {
public:
  SuperDSCTarget() : Target("superdsc", "SuperDSC") {}

  // An operation has one type; conversions are operations of their own.
  bool allowsMixedElementTypes() const override { return false; }
  // The sticks of a contraction's factors and result lie along k, n and n.
  bool allowsExchangedFactors() const override { return false; }
  // A gather copies sticks as they are.
  bool allowsGatherAcrossSticks() const override { return false; }
  // The table's copy is a change of stick, which takes whole tensors.
  bool allowsCopyOfPart() const override { return false; }
  // Sticks have one length.
  bool allowsVaryingSticks() const override { return false; }
  // The loops of bundle.mlir compute addresses and carry nothing.
  bool allowsCarriedValues() const override { return false; }
  // Addresses are sums of multiples of the loops' indices.
  bool allowsOverlappingTiles() const override { return false; }
  // A change of stick has no gaps in device memory.
  bool allowsRestickifyOfParts() const override { return false; }
  // One size says how large every core's slice is.
  bool allowsUnequalSlices() const override { return false; }
  // The writer has no form for partial sums yet.
  bool allowsSplitReductions() const override { return false; }
  bool allowsDividedPadding() const override { return false; }
  // There is no operation that moves data between cores.
  bool allowsReshard() const override { return false; }
  bool allowsIndicesInLX() const override { return false; }
  bool allowsPartsInLX() const override { return false; }
  // The addresses of loops follow tiles of device memory.
  bool allowsLXAcrossLoops() const override { return false; }
  bool allowsReplicatedCopies() const override { return false; }
  bool allowsResultsInLX() const override { return false; }

  void addLegalizationPasses(OpPassManager &functions) const override {
    functions.addPass(::spyre::superdsc::createSpyreLegalizeSuperDSC());
  }
};

} // namespace

void ::spyre::superdsc::registerSuperDSCTarget(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, SpyreGraphDialect *dialect) {
    addTarget(*dialect, std::make_unique<SuperDSCTarget>());
  });
}
