// SPDX-License-Identifier: Apache-2.0
//===- LoaderFile.cpp - Loading KTIR programs without MLIR types ----------===//

#include "Spyre/Runtime/Loader/LoaderFile.h"
#include "LoaderImpl.h"
#include "Spyre/Dialect/KTIR/IR/ParserGuards.h"
#include "Spyre/Runtime/Loader/Loader.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace spyre;
using namespace spyre::runtime;

/// The identifier after '%' at a line and column of `text`; "" if there is
/// none, or only a number.
static std::string nameAt(llvm::StringRef text, unsigned line,
                          unsigned column) {
  for (unsigned l = 1; l < line; ++l)
    text = text.split('\n').second;
  if (column == 0 || column > text.size())
    return "";
  text = text.drop_front(column - 1);
  if (!text.consume_front("%"))
    return "";
  text = text.take_while([](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-';
  });
  return llvm::all_of(text, llvm::isDigit) ? "" : text.str();
}

static std::shared_ptr<Program>
loadBuffer(std::unique_ptr<llvm::MemoryBuffer> buffer,
           const LoadOptions &options) {
  mlir::DialectRegistry registry;
  registerProgramDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());

  std::string text;
  llvm::raw_string_ostream os(text);
  std::shared_ptr<Program> program;
  {
    mlir::SourceMgrDiagnosticHandler handler(sources, &context, os);
    const llvm::MemoryBuffer *source =
        sources.getMemoryBuffer(sources.getMainFileID());
    mlir::OwningOpRef<mlir::ModuleOp> module;
    if (succeeded(
            mlir::ktdp::checkKTIRSource(source->getMemBufferRef(), &context)))
      module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
    auto nameOf = [&](mlir::Location location) -> std::string {
      auto position = location->findInstanceOf<mlir::FileLineColLoc>();
      // Locations of bytecode and of debug info speak of other files.
      if (!position || mlir::isBytecode(source->getMemBufferRef()) ||
          position.getFilename() != source->getBufferIdentifier())
        return "";
      return nameAt(source->getBuffer(), position.getLine(),
                    position.getColumn());
    };
    if (module)
      program = loadProgramWithNames(*module, options, nameOf);
  }
  if (!program) {
    while (!text.empty() && text.back() == '\n')
      text.pop_back();
    throw Error(text.empty() ? "cannot load program" : text);
  }
  return program;
}

std::shared_ptr<Program>
spyre::runtime::loadProgramFile(const std::string &path,
                                const LoadOptions &options) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    throw Error(path + ": error: " + buffer.getError().message());
  return loadBuffer(std::move(*buffer), options);
}

std::shared_ptr<Program>
spyre::runtime::loadProgramBytes(const std::string &bytes,
                                 const LoadOptions &options,
                                 const std::string &name) {
  return loadBuffer(llvm::MemoryBuffer::getMemBufferCopy(bytes, name), options);
}
