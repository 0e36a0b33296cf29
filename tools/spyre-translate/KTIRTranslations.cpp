// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Dialect/KTIR/IR/ParserGuards.h"
#include "Spyre/Runtime/Loader/Loader.h"
#include "Translations.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

/// Reads KTIR as text or bytecode; reading verifies.
static OwningOpRef<ModuleOp> read(llvm::SourceMgr &sources,
                                  MLIRContext *context) {
  DialectRegistry registry;
  spyre::runtime::registerProgramDialects(registry);
  context->appendDialectRegistry(registry);
  const llvm::MemoryBuffer *source =
      sources.getMemoryBuffer(sources.getMainFileID());
  if (failed(ktdp::checkKTIRSource(source->getMemBufferRef(), context)))
    return {};
  return parseSourceFile<ModuleOp>(sources, context);
}

void spyre::registerKTIRTranslations() {
  TranslateRegistration toBytecode(
      "ktir-to-bytecode", "write a KTIR module (text or bytecode) as bytecode",
      [](const std::shared_ptr<llvm::SourceMgr> &sources,
         llvm::raw_ostream &output, MLIRContext *context) -> LogicalResult {
        OwningOpRef<ModuleOp> module = read(*sources, context);
        if (!module)
          return failure();
        return writeBytecodeToFile(*module, output);
      });
  TranslateRegistration toText(
      "ktir-to-text", "print a KTIR module (text or bytecode) as text",
      [](const std::shared_ptr<llvm::SourceMgr> &sources,
         llvm::raw_ostream &output, MLIRContext *context) -> LogicalResult {
        OwningOpRef<ModuleOp> module = read(*sources, context);
        if (!module)
          return failure();
        module->print(output);
        output << '\n';
        return success();
      });
}
