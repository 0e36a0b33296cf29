//===- TargetPasses.cpp - What a module is planned for ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "Spyre/Target/Interface/Target.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYRELEGALIZEFORTARGET
#define GEN_PASS_DEF_SPYRESETDEVICE
#define GEN_PASS_DEF_SPYRESETTARGET
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;

namespace {

class SetTargetPass
    : public spyre_graph::impl::SpyreSetTargetBase<SetTargetPass> {
public:
  using SpyreSetTargetBase::SpyreSetTargetBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    StringRef name = SpyreGraphDialect::getTargetAttrName();
    auto wanted = TargetAttr::get(&getContext(), target);
    auto given = module->getAttrOfType<TargetAttr>(name);
    // SG-TARGET-C3
    if (given && given != wanted) {
      module.emitError() << "is planned for target '" << given.getName()
                         << "' already, and cannot be for '"
                         << target.getValue() << "' too";
      return signalPassFailure();
    }
    module->setAttr(name, wanted);
    if (!getTarget(module))
      return signalPassFailure();
  }
};

class SetDevicePass
    : public spyre_graph::impl::SpyreSetDeviceBase<SetDevicePass> {
public:
  using SpyreSetDeviceBase::SpyreSetDeviceBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (file.empty()) {
      module.emitError("has no device to be planned for; give "
                       "--spyre-set-device=file=FILE");
      return signalPassFailure();
    }
    FailureOr<DictionaryAttr> read = readDeviceFile(module, file);
    if (failed(read))
      return signalPassFailure();
    DictionaryAttr wanted = *read;
    Attribute given = module->getAttr(kDeviceAttrName);
    // SG-DEVICE-C3
    if (given && given != wanted) {
      module.emitError() << "is planned for the device " << given
                         << " already, and cannot be for " << wanted << " too";
      return signalPassFailure();
    }
    module->setAttr(kDeviceAttrName, wanted);
  }
};

class LegalizeForTargetPass
    : public spyre_graph::impl::SpyreLegalizeForTargetBase<
          LegalizeForTargetPass> {
public:
  using SpyreLegalizeForTargetBase::SpyreLegalizeForTargetBase;

  void runOnOperation() override {
    const Target *target = getTarget(getOperation());
    if (!target)
      return signalPassFailure();
    OpPassManager passes(func::FuncOp::getOperationName());
    target->addLegalizationPasses(passes);
    if (passes.empty())
      return;
    if (failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }
};

} // namespace
