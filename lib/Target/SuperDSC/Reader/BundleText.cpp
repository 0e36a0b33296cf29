// SPDX-License-Identifier: Apache-2.0
//===- BundleText.cpp - bundle.mlir before MLIR sees it ---------*- C++ -*-===//

#include "BundleText.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace spyre::superdsc;

/// MLIR's parser recurses, and prints types that it complains about, so text
/// from outside is held to what a bundle needs.
bool spyre::superdsc::checkText(StringRef text, const std::string &file,
                                Report &report) {
  constexpr size_t kMaxBytes = size_t(64) << 20, kMaxDepth = 64,
                   kMaxExpression = 4096;
  auto violate = [&](size_t line, std::string message) {
    // SDSC-BUNDLE-C1
    report.add(file, "", "SDSC-BUNDLE-C1", std::move(message), line, 1);
    return false;
  };
  if (text.size() > kMaxBytes)
    return violate(1, "the file has " + std::to_string(text.size()) +
                          " bytes, at most " + std::to_string(kMaxBytes) +
                          " are read");
  size_t depth = 0, line = 0;
  for (StringRef rest = text; !rest.empty();) {
    ++line;
    auto [own, next] = rest.split('\n');
    rest = next;
    StringRef trimmed = own.trim();
    if (trimmed.starts_with("!") ||
        (trimmed.starts_with("#") && !trimmed.contains("affine_map<")))
      return violate(line, "aliases other than those of affine maps are not "
                           "part of a bundle");
    if (trimmed.contains("affine_map") && trimmed.size() > kMaxExpression)
      return violate(line, "an affine map of " +
                               std::to_string(trimmed.size()) + " characters");
    bool isString = false;
    for (size_t i = 0; i < own.size(); ++i) {
      char c = own[i];
      if (isString) {
        if (c == '\\')
          ++i;
        isString = c != '"';
        continue;
      }
      if (c == '/' && own.substr(i).starts_with("//"))
        break;
      if (c == '\0')
        return violate(line, "a null character");
      isString = c == '"';
      if (c == '(' || c == '[' || c == '{' || c == '<')
        ++depth;
      else if ((c == ')' || c == ']' || c == '}' ||
                (c == '>' && (i == 0 || own[i - 1] != '-'))) &&
               depth > 0)
        --depth;
      if (depth > kMaxDepth)
        return violate(line, "nested deeper than " + std::to_string(kMaxDepth) +
                                 " levels");
    }
  }
  return true;
}

/// The parameter list of the function: the text between its parentheses.
StringRef spyre::superdsc::getParameters(StringRef text) {
  size_t start = text.find("func.func");
  if (start == StringRef::npos)
    return {};
  size_t open = text.find('(', start);
  size_t close = text.find(')', open);
  if (open == StringRef::npos || close == StringRef::npos)
    return {};
  return text.slice(open + 1, close);
}

/// Drops parameters, and the extractions of their values, that occur a second
/// time.
std::string spyre::superdsc::dropRepeatedParameters(const std::string &text) {
  StringRef parameters = getParameters(text);
  if (parameters.empty())
    return text;
  llvm::StringSet<> seen;
  std::string kept;
  SmallVector<StringRef> parts;
  parameters.split(parts, ',');
  for (StringRef part : parts)
    if (seen.insert(part.trim()).second)
      kept += (kept.empty() ? "" : ", ") + part.trim().str();
  size_t offset = parameters.data() - text.data();
  std::string result = text.substr(0, offset) + kept;
  llvm::StringSet<> extractions;
  StringRef rest = StringRef(text).drop_front(offset + parameters.size());
  while (!rest.empty()) {
    auto [line, next] = rest.split('\n');
    bool hadNewline = line.size() < rest.size();
    rest = next;
    if (line.contains("sdscbundle.input_arg_extract") &&
        !extractions.insert(line.trim()).second)
      continue;
    result += line.str() + (hadNewline ? "\n" : "");
  }
  return result;
}
