//===- Target.cpp - What a planned program may be ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Target/Interface/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectInterface.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;
using namespace mlir::spyre_graph;

Target::~Target() = default;

namespace {

/// The targets that a context knows, kept by the dialect. Filled while the
/// dialect is loaded, and only read after that.
class TargetTable : public DialectInterface::Base<TargetTable> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TargetTable)

  explicit TargetTable(Dialect *dialect) : Base(dialect) {}

  std::map<StringRef, std::unique_ptr<Target>> targets;
};

} // namespace

void spyre_graph::addTarget(SpyreGraphDialect &dialect,
                            std::unique_ptr<Target> target) {
  auto *table = dialect.getRegisteredInterface<TargetTable>();
  if (!table) {
    dialect.addInterfaces<TargetTable>();
    table = dialect.getRegisteredInterface<TargetTable>();
  }
  StringRef name = target->getName(); // Belongs to the target.
  auto [known, isNew] = table->targets.try_emplace(name, std::move(target));
  if (!isNew)
    llvm::report_fatal_error("several targets are named '" + known->first +
                             "'");
}

static const TargetTable *getTable(MLIRContext *context) {
  auto *dialect = context->getLoadedDialect<SpyreGraphDialect>();
  return dialect ? dialect->getRegisteredInterface<TargetTable>() : nullptr;
}

/// The registered target of this name, or null.
static const Target *findTarget(MLIRContext *context, StringRef name) {
  const TargetTable *table = getTable(context);
  if (!table)
    return nullptr;
  auto known = table->targets.find(name);
  return known == table->targets.end() ? nullptr : known->second.get();
}

/// The names of the registered targets in alphabetical order, for messages.
static std::string listTargets(MLIRContext *context) {
  const TargetTable *table = getTable(context);
  if (!table || table->targets.empty())
    return "none";
  return llvm::join(llvm::make_first_range(table->targets), ", ");
}

const Target *spyre_graph::getTarget(Operation *op) {
  static const Target everything("any", "every target");
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto attribute = module ? module->getAttrOfType<TargetAttr>(
                                SpyreGraphDialect::getTargetAttrName())
                          : TargetAttr();
  if (!attribute)
    return &everything;
  const Target *target = findTarget(op->getContext(), attribute.getName());
  // SG-TARGET-C2
  if (!target)
    module.emitError() << "unknown target '" << attribute.getName()
                       << "'; registered are: "
                       << listTargets(op->getContext());
  return target;
}
