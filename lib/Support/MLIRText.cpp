// SPDX-License-Identifier: Apache-2.0
//===- MLIRText.cpp - Text that is for MLIR's parser ----------------------===//

#include "Spyre/Support/MLIRText.h"

#include <algorithm>

using namespace spyre;

/// MLIR's lexer takes null characters as blanks.
static constexpr std::string_view kBlanks{" \t\n\r\v\f\0", 7},
    kPrefixes = "#!%^@", kOpening = "([{<";

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

static bool isWordCharacter(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_' || c == '$' || c == '.';
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

void MLIRTokens::skip() {
  while (true) {
    at = std::min(text.find_first_not_of(kBlanks, at), text.size());
    if (text.substr(at, 2) != "//")
      return;
    at = std::min(text.find_first_of("\n\r", at), text.size());
  }
}

std::string_view MLIRTokens::next() {
  size_t before = at;
  skip();
  bool isName = isAfterPrefix && at == before;
  isAfterPrefix = false;
  if (at == text.size())
    return {};
  size_t end = at + 1;
  char first = text[at];
  if (first == '"') {
    while (end < text.size() && text[end] != '"' && text[end] != '\n')
      end += text[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, text.size());
  } else if (isName && isDigit(first)) {
    while (end < text.size() && isDigit(text[end]))
      ++end;
  } else if (isWordCharacter(first) ||
             (isName && first == '-' && text.substr(at, 2) != "-}")) {
    // Names after a prefix hold signs.
    while (end < text.size() &&
           (isWordCharacter(text[end]) || (isName && text[end] == '-')))
      ++end;
  } else {
    isAfterPrefix = kPrefixes.find(first) != std::string_view::npos;
  }
  std::string_view token = text.substr(at, end - at);
  at = end;
  return token;
}

//===----------------------------------------------------------------------===//
// What the parser fails on
//===----------------------------------------------------------------------===//

static std::string describeDepth(const MLIRTextLimits &limits) {
  return "more than " + std::to_string(limits.depth) +
         " brackets or signs nested in each other";
}

static std::string describeOperators(const MLIRTextLimits &limits) {
  return "more than " + std::to_string(limits.operators) +
         " operators in one expression";
}

/// What is wrong with a token after `array <`; empty if nothing is.
static std::string checkElementType(std::string_view token) {
  // An alias may stand for any type.
  if (token != "index" && token != "!")
    return "";
  return std::string("expected an integer or float type of whole bytes as the "
                     "type of an array's elements, such as i64, found ") +
         (token == "!" ? "an alias" : "'index'");
}

/// The change of nesting depth by a token. Arrows and comparisons are not
/// brackets.
int MLIRTextGuard::getNesting(std::string_view token) const {
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

std::string MLIRTextGuard::follow(std::string_view token) {
  int nesting = getNesting(token);
  if (nesting > 0)
    ++depth;
  else if (nesting < 0 && depth > 0)
    --depth;
  numSigns = token == "-" ? numSigns + 1 : 0;
  if (depth > limits.depth || numSigns > limits.depth)
    return describeDepth(limits);
  if (token == "," || token == "{" || token == "}")
    numOperators = 0;
  else if (token == "+" || token == "-" || token == "*" || token == "mod" ||
           token == "floordiv" || token == "ceildiv")
    ++numOperators;
  if (numOperators > limits.operators)
    return describeOperators(limits);
  std::string fault = arrayTokens == 2 ? checkElementType(token) : "";
  if (token == "array")
    arrayTokens = 1;
  else
    arrayTokens = arrayTokens == 1 && token == "<" ? 2 : 0;
  return fault;
}

/// Checks what lies between two null characters, which end text in bytecode.
static std::string checkRun(std::string_view run,
                            const MLIRTextLimits &limits) {
  size_t numNested = 0, numOperators = 0;
  for (size_t i = 0; i < run.size(); ++i) {
    bool isSign = run[i] == '-' && run.substr(i, 2) != "->";
    numNested += isSign || kOpening.find(run[i]) != std::string_view::npos;
    std::string_view rest = run.substr(i, 3);
    numOperators += isSign || run[i] == '+' || run[i] == '*' || rest == "mod" ||
                    rest == "div";
  }
  if (numNested > limits.depth)
    return describeDepth(limits);
  if (numOperators > limits.operators)
    return describeOperators(limits);
  for (size_t i = run.find("array"); i != std::string_view::npos;
       i = run.find("array", i + 1)) {
    MLIRTokens tokens(run.substr(i + 5));
    if (tokens.next() != "<")
      continue;
    if (std::string fault = checkElementType(tokens.next()); !fault.empty())
      return fault;
  }
  return "";
}

std::string spyre::findFaultInBinary(std::string_view bytes,
                                     MLIRTextLimits limits) {
  while (!bytes.empty()) {
    std::string_view run = bytes.substr(0, bytes.find('\0'));
    if (std::string fault = checkRun(run, limits); !fault.empty())
      return fault;
    bytes.remove_prefix(std::min(run.size() + 1, bytes.size()));
  }
  return "";
}
