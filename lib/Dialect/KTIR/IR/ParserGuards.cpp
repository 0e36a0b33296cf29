// SPDX-License-Identifier: Apache-2.0
//===- ParserGuards.cpp - What upstream's parsers fail on ----------------===//

#include "Spyre/Dialect/KTIR/IR/ParserGuards.h"
#include "Spyre/Support/MLIRText.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using llvm::StringRef;
using spyre::MLIRTokens;

/// Whether the tokens to come are `[1, -2, ...]`; otherwise `found` is the
/// token that is wrong.
static bool skipIntegers(MLIRTokens &tokens, StringRef &found) {
  if ((found = tokens.next()) != "[")
    return false;
  found = tokens.next();
  if (found == "]")
    return true;
  while (true) {
    bool isNegative = found == "-";
    if (isNegative)
      found = tokens.next();
    int64_t value;
    bool isHex = found.starts_with("0x");
    if ((isHex ? found.drop_front(2) : found)
            .getAsInteger(isHex ? 16 : 10, value) &&
        (isNegative || (found != "true" && found != "false")))
      return false;
    found = tokens.next();
    if (found == "]")
      return true;
    if (found != ",")
      return false;
    found = tokens.next();
  }
}

/// Whether this process is a tool, which may start others and has no threads
/// that these would lack.
static bool isTool = false;

void ktdp::exitOnFatalErrors() {
  isTool = true;
  auto exit = [](void *, const char *reason, bool) {
    llvm::errs() << "error: " << reason << "\n";
    llvm::errs().flush();
    std::_Exit(1);
  };
  llvm::install_fatal_error_handler(exit);
  llvm::install_bad_alloc_error_handler(exit);
}

/// Processor time to read bytecode in.
static constexpr rlim_t kMostReadingSeconds = 10;

/// Reads bytecode in a process of its own, which may crash: upstream's reader
/// takes numbers of a corrupt file for what they are not. What else is wrong
/// with the file, those who read it next say.
static LogicalResult checkBytecode(llvm::MemoryBufferRef source,
                                   MLIRContext *context) {
  llvm::outs().flush();
  llvm::errs().flush();
  pid_t child = fork();
  if (child == 0) {
    for (int signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV})
      std::signal(signal, SIG_DFL);
    // It may also never end.
    rlimit seconds = {kMostReadingSeconds, kMostReadingSeconds + 1}, none = {};
    setrlimit(RLIMIT_CPU, &seconds);
    setrlimit(RLIMIT_CORE, &none);
    // The C library says what is wrong with its heap.
    if (int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0)
      dup2(nowhere, STDERR_FILENO);
    MLIRContext own(context->getDialectRegistry(),
                    MLIRContext::Threading::DISABLED);
    own.allowUnregisteredDialects(context->allowsUnregisteredDialects());
    ScopedDiagnosticHandler silent(&own, [](Diagnostic &) {});
    ParserConfig config(&own, /*verifyAfterParse=*/false);
    Block block;
    (void)readBytecodeFile(source, &block, config);
    std::_Exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
    return success();
  InFlightDiagnostic error = emitError(
      FileLineColLoc::get(context, source.getBufferIdentifier(), 0, 0));
  error << "expected bytecode of MLIR, found a corrupt file: reading it ";
  if (WTERMSIG(status) == SIGXCPU)
    error << "takes more than " << kMostReadingSeconds << " seconds";
  else
    error << "ends with signal " << WTERMSIG(status);
  return error;
}

/// Emits `complaint` at the first attribute of the dialect `foreign`, if it is
/// given.
static LogicalResult check(llvm::MemoryBufferRef source, MLIRContext *context,
                           StringRef foreign = "", StringRef complaint = "") {
  if (isBytecode(source))
    return isTool ? checkBytecode(source, context) : success();
  StringRef text = source.getBuffer();
  auto errorAt = [&](StringRef token) {
    StringRef before = text.take_front(token.data() - text.data());
    unsigned line = 1 + static_cast<unsigned>(before.count('\n'));
    unsigned column =
        1 + static_cast<unsigned>(before.size() - (before.rfind('\n') + 1));
    return emitError(FileLineColLoc::get(context, source.getBufferIdentifier(),
                                         line, column));
  };
  spyre::MLIRTextGuard guard(text);
  MLIRTokens tokens(text);
  StringRef expected, previous;
  for (StringRef token = tokens.next(); !token.empty();
       previous = token, token = tokens.next()) {
    if (!foreign.empty() && previous == "#" &&
        token.split('.').first == foreign)
      return errorAt(token) << complaint;
    if (std::string fault = guard.follow(token); !fault.empty())
      return errorAt(token) << fault;
    if (token == "linalg.reduce" || token == "linalg.broadcast") {
      expected = "dimensions";
      continue;
    }
    if (token == "linalg.transpose") {
      expected = "permutation";
      continue;
    }
    // An entry of an attribute dictionary is parsed as any other.
    if (expected.empty() || token != expected || previous == "{" ||
        previous == ",")
      continue;
    expected = "";
    StringRef found = tokens.next();
    if (found != "=" || skipIntegers(tokens, found))
      continue;
    return errorAt(found) << "expected " << token
                          << " = [integers of 64 bits], found '" << found
                          << "'";
  }
  return success();
}

LogicalResult ktdp::checkSource(llvm::MemoryBufferRef source,
                                MLIRContext *context) {
  return check(source, context);
}

LogicalResult ktdp::checkKTIRSource(llvm::MemoryBufferRef source,
                                    MLIRContext *context) {
  return check(source, context, "spyre_graph",
               "expected KTIR, found spyre_graph; lower it with spyre-opt "
               "--spyre-pipeline first");
}

LogicalResult ktdp::checkGraphSource(llvm::MemoryBufferRef source,
                                     MLIRContext *context) {
  return check(source, context, "ktdp",
               "expected planned spyre_graph, found KTIR; plan the graph with "
               "spyre-opt --spyre-pipeline=to-ktir=false");
}
