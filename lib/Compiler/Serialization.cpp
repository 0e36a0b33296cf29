// SPDX-License-Identifier: Apache-2.0
//===- Serialization.cpp - Compiled graphs as bytes -------------*- C++ -*-===//
//
// Format: a magic line; 32 bytes of SHA-256 over all that follows; 8 bytes
// little-endian length of a JSON object; the object; KTIR bytecode.
//
//===----------------------------------------------------------------------===//

#include "CompilerImpl.h"

#include "Spyre/Compiler/Pipeline.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <link.h>
#include <nlohmann/json.hpp>

using spyre::CompiledGraph;
using spyre::Error;
/// Keys are sorted.
using Json = nlohmann::json;

static constexpr llvm::StringLiteral magic = "spyre compiled graph 1\n";
static constexpr size_t digestBytes = 32, lengthBytes = 8;

//===----------------------------------------------------------------------===//
// Identity of the compiler
//===----------------------------------------------------------------------===//

/// Appends the build id of the object that holds this function.
static int findBuildId(dl_phdr_info *info, size_t, void *data) {
  auto self = reinterpret_cast<uintptr_t>(&findBuildId);
  llvm::ArrayRef<ElfW(Phdr)> headers(info->dlpi_phdr, info->dlpi_phnum);
  bool isHere = llvm::any_of(headers, [&](const ElfW(Phdr) & header) {
    uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    return header.p_type == PT_LOAD && self >= begin &&
           self < begin + header.p_memsz;
  });
  if (!isHere)
    return 0;
  auto align = [](size_t size) { return (size + 3) & ~size_t(3); };
  for (const ElfW(Phdr) &header : headers) {
    if (header.p_type != PT_NOTE)
      continue;
    const char *note =
        reinterpret_cast<const char *>(info->dlpi_addr + header.p_vaddr);
    const char *end = note + header.p_memsz;
    while (note + sizeof(ElfW(Nhdr)) <= end) {
      const auto *entry = reinterpret_cast<const ElfW(Nhdr) *>(note);
      const char *name = note + sizeof(*entry);
      const char *description = name + align(entry->n_namesz);
      if (description + entry->n_descsz > end)
        break;
      if (entry->n_type == NT_GNU_BUILD_ID &&
          llvm::StringRef(name, entry->n_namesz).starts_with("GNU"))
        static_cast<std::string *>(data)->assign(description, entry->n_descsz);
      note = description + align(entry->n_descsz);
    }
  }
  return 1;
}

std::string spyre::getCompilerIdentity() {
  static const std::string identity = [] {
    std::string buildId;
    dl_iterate_phdr(findBuildId, &buildId);
    return "spyre compiler 1 " + llvm::toHex(buildId) + "\n";
  }();
  return identity;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

static std::string digest(llvm::StringRef bytes) {
  llvm::SHA256 hash;
  hash.update(bytes);
  auto result = hash.result();
  return std::string(result.begin(), result.end());
}

std::string CompiledGraph::serialize() const {
  Json metadata{{"compiler", llvm::toHex(getCompilerIdentity())},
                {"key", cacheKey},
                {"inputs", argumentNames.size()},
                {"warnings", warnings}};
  if (sizesApart)
    metadata["sizes_apart"] = *sizesApart;
  std::string text = metadata.dump();
  char length[lengthBytes];
  llvm::support::endian::write64le(length, text.size());
  std::string body(length, lengthBytes);
  body += text;
  body += ktirBytecode;
  return magic.str() + digest(body) + body;
}

CompiledGraph CompiledGraph::deserialize(const std::string &bytes) {
  llvm::StringRef rest(bytes);
  if (!rest.consume_front(magic))
    throw Error("not a compiled graph, or one of another version");
  if (rest.size() < digestBytes + lengthBytes)
    throw Error("the compiled graph is truncated");
  llvm::StringRef expected = rest.take_front(digestBytes);
  rest = rest.drop_front(digestBytes);
  if (digest(rest) != expected)
    throw Error("the compiled graph is damaged: its checksum does not match");
  uint64_t length = llvm::support::endian::read64le(rest.data());
  rest = rest.drop_front(lengthBytes);
  if (length > rest.size())
    throw Error("the compiled graph is truncated");
  std::string compiler;
  size_t inputs = 0;
  CompiledGraph graph;
  try {
    Json metadata =
        Json::parse(rest.begin(), rest.begin() + static_cast<size_t>(length));
    metadata.at("compiler").get_to(compiler);
    metadata.at("key").get_to(graph.cacheKey);
    metadata.at("inputs").get_to(inputs);
    metadata.at("warnings").get_to(graph.warnings);
    if (auto apart = metadata.find("sizes_apart"); apart != metadata.end())
      graph.sizesApart = apart->get<std::pair<int64_t, int64_t>>();
  } catch (const Json::exception &error) {
    throw Error(
        std::string("the metadata of the compiled graph is not valid: ") +
        error.what());
  }
  if (compiler != llvm::toHex(getCompilerIdentity()))
    throw Error("the compiled graph was made by another compiler");
  graph.ktirBytecode = rest.drop_front(length).str();
  runtime::LoadOptions options;
  options.entry = "main";
  graph.program =
      runtime::loadProgramBytes(graph.ktirBytecode, options, "compiled graph");
  describeArguments(graph, inputs);
  return graph;
}

std::string CompiledGraph::printKTIR() const {
  mlir::DialectRegistry registry;
  registerCompilerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::ParserConfig config(&context);
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(ktirBytecode, config, "ktir");
  if (!module)
    throw Error("the KTIR bytecode cannot be read");
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, mlir::OpPrintingFlags().enableDebugInfo());
  return text;
}
