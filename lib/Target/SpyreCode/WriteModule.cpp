// SPDX-License-Identifier: Apache-2.0
//===- WriteModule.cpp - Planned modules to SpyreCode ---------------------===//

#include "Spyre/Target/SpyreCode/Translate.h"

#include "Spyre/Conversion/Passes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Runtime/Loader/Loader.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace spyre::spyrecode;

/// Whether a function is spyre_graph and not KTIR. One that computes nothing
/// shows it by its arguments alone.
static bool isGraph(func::FuncOp function) {
  return llvm::any_of(function.getArgumentTypes(),
                      [](Type type) { return spyre_graph::getLayout(type); }) ||
         function
             .walk([](spyre_graph::SpyreOpInterface) {
               return WalkResult::interrupt();
             })
             .wasInterrupted();
}

/// The planned function, if the module is planned spyre_graph.
static func::FuncOp findPlanned(ModuleOp module) {
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (isGraph(function))
      return function;
  return {};
}

FailureOr<std::vector<std::pair<std::string, std::string>>>
spyre::spyrecode::writeModule(ModuleOp module, const WriteOptions &options) {
  runtime::TileGroups groups;
  func::FuncOp planned = findPlanned(module);
  if (planned) {
    for (Type type : planned.getArgumentTypes())
      if (!isa<MemRefType>(type))
        return planned.emitError("is not planned: expected buffers as "
                                 "arguments, found ")
               << type << "; run --spyre-pipeline first";
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
  std::shared_ptr<runtime::Program> program = runtime::loadProgram(module);
  if (!program)
    return failure();
  try {
    std::vector<runtime::ArgumentInfo> arguments = program->arguments();
    // The lowering appends the pool; a KTIR module says nothing about tiles.
    for (size_t i = groups.size(); i < arguments.size(); ++i)
      groups.emplace_back(arguments[i].shape.size(), -1);
    return writeSpyreCode(bytecode, groups, options);
  } catch (const Error &error) {
    return module.emitError() << error.what();
  }
}
