// SPDX-License-Identifier: Apache-2.0
//===- ParserGuards.cpp - Text that upstream's parser fails on ------------===//

#include "Spyre/Dialect/KTIR/IR/ParserGuards.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdlib>

using namespace mlir;
using llvm::StringRef;

namespace {
/// Cuts MLIR text into words (with their prefix and dots), strings, and single
/// characters; drops blanks and comments.
class Tokens {
public:
  explicit Tokens(StringRef text) : rest(text) {}

  /// The next token, "" at the end.
  StringRef next() {
    skip();
    if (rest.empty())
      return rest;
    auto isWordCharacter = [](char c) {
      return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.';
    };
    size_t size = 1;
    if (rest.front() == '"') {
      while (size < rest.size() && rest[size] != '"' && rest[size] != '\n')
        size += rest[size] == '\\' ? 2 : 1;
      ++size;
    } else if (isWordCharacter(rest.front())) {
      size = rest.take_while(isWordCharacter).size();
    }
    StringRef token = rest.take_front(size);
    rest = rest.drop_front(token.size());
    return token;
  }

private:
  void skip() {
    while (true) {
      rest = rest.ltrim(" \t\n\r\v\f");
      if (!rest.starts_with("//"))
        return;
      rest = rest.drop_until([](char c) { return c == '\n'; });
    }
  }

  StringRef rest;
};
} // namespace

/// Whether the tokens to come are `[1, -2, ...]`; otherwise `found` is the
/// token that is wrong.
static bool skipIntegers(Tokens &tokens, StringRef &found) {
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

/// The change of nesting depth by a token. Arrows and comparisons are not
/// brackets.
static int getNesting(StringRef text, StringRef token) {
  if (token.size() != 1)
    return 0;
  size_t at = token.data() - text.data();
  auto isAt = [&](size_t position, char c) {
    return position < text.size() && text[position] == c;
  };
  switch (token.front()) {
  case '(':
  case '[':
  case '{':
    return 1;
  case ')':
  case ']':
  case '}':
    return -1;
  case '<':
    return isAt(at + 1, '=') ? 0 : 1;
  case '>':
    return isAt(at + 1, '=') || (at > 0 && isAt(at - 1, '-')) ? 0 : -1;
  default:
    return 0;
  }
}

void ktdp::exitOnFatalErrors() {
  auto exit = [](void *, const char *reason, bool) {
    llvm::errs() << "error: " << reason << "\n";
    llvm::errs().flush();
    std::_Exit(1);
  };
  llvm::install_fatal_error_handler(exit);
  llvm::install_bad_alloc_error_handler(exit);
}

/// Emits `complaint` at the first attribute of the dialect `foreign`, if it is
/// given.
static LogicalResult check(llvm::MemoryBufferRef source, MLIRContext *context,
                           StringRef foreign = "", StringRef complaint = "") {
  if (isBytecode(source))
    return success();
  StringRef text = source.getBuffer();
  auto errorAt = [&](StringRef token) {
    StringRef before = text.take_front(token.data() - text.data());
    unsigned line = 1 + static_cast<unsigned>(before.count('\n'));
    unsigned column =
        1 + static_cast<unsigned>(before.size() - (before.rfind('\n') + 1));
    return emitError(FileLineColLoc::get(context, source.getBufferIdentifier(),
                                         line, column));
  };
  constexpr int kMaxDepth = 1000;
  // The parser simplifies a sum of terms in time that grows with its square.
  constexpr int kMaxOperators = 8192;
  int depth = 0, numSigns = 0, numOperators = 0;
  Tokens tokens(text);
  StringRef expected, previous;
  for (StringRef token = tokens.next(); !token.empty();
       previous = token, token = tokens.next()) {
    if (!foreign.empty() && previous == "#" &&
        token.split('.').first == foreign)
      return errorAt(token) << complaint;
    depth = std::max(0, depth + getNesting(text, token));
    numSigns = token == "-" ? numSigns + 1 : 0;
    if (depth > kMaxDepth || numSigns > kMaxDepth)
      return errorAt(token) << "more than " << kMaxDepth
                            << " brackets or signs nested in each other";
    if (token == "," || token == "{" || token == "}")
      numOperators = 0;
    else if (token == "+" || token == "-" || token == "*" || token == "mod" ||
             token == "floordiv" || token == "ceildiv")
      ++numOperators;
    if (numOperators > kMaxOperators)
      return errorAt(token)
             << "more than " << kMaxOperators << " operators in one expression";
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
