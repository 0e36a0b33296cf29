// SPDX-License-Identifier: Apache-2.0
//===- WriteModule.cpp - Planned modules to SpyreCode ---------------------===//

#include "Spyre/Target/SpyreCode/Translate.h"

#include "Spyre/Conversion/Passes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace spyre::spyrecode;

/// The planned function, if the module is planned spyre_graph.
static func::FuncOp findPlanned(ModuleOp module) {
  func::FuncOp planned;
  module.walk([&](spyre_graph::SpyreOpInterface op) {
    planned = op->getParentOfType<func::FuncOp>();
    return WalkResult::interrupt();
  });
  return planned;
}

FailureOr<std::vector<std::pair<std::string, std::string>>>
spyre::spyrecode::writeModule(ModuleOp module, const WriteOptions &options) {
  runtime::TileGroups groups;
  func::FuncOp planned = findPlanned(module);
  if (planned) {
    for (Type type : planned.getArgumentTypes())
      if (!isa<MemRefType>(type))
        return planned.emitError("the graph is not planned: expected buffers "
                                 "as arguments, found ")
               << type;
    groups = findTileGroups(planned);
    PassManager manager(module.getContext());
    manager.addPass(createConvertSpyreGraphToKTIR());
    if (failed(manager.run(module)))
      return failure();
  }
  std::string bytecode;
  llvm::raw_string_ostream os(bytecode);
  if (failed(writeBytecodeToFile(module, os)))
    return failure();
  try {
    std::vector<runtime::ArgumentInfo> arguments =
        runtime::loadProgramBytes(bytecode)->arguments();
    // The lowering appends the pool; a KTIR module says nothing about tiles.
    for (size_t i = groups.size(); i < arguments.size(); ++i)
      groups.emplace_back(arguments[i].shape.size(), -1);
    return writeSpyreCode(bytecode, groups, options);
  } catch (const Error &error) {
    return module.emitError() << error.what();
  }
}
