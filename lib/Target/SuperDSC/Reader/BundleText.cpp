// SPDX-License-Identifier: Apache-2.0
//===- BundleText.cpp - bundle.mlir before MLIR sees it ---------*- C++ -*-===//

#include "BundleText.h"
#include "Spyre/Support/MLIRText.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

#include <array>

using namespace llvm;
using namespace spyre;
using namespace spyre::superdsc;

static size_t offsetOf(StringRef token, StringRef text) {
  return token.data() - text.data();
}

/// MLIR's parser recurses, and prints types that it complains about, so text
/// from outside is held to what a bundle needs.
bool spyre::superdsc::checkText(StringRef text, const std::string &file,
                                Report &report) {
  constexpr size_t kMaxBytes = size_t(64) << 20;
  auto violate = [&](size_t offset, std::string message) {
    StringRef before = text.take_front(offset);
    // SDSC-BUNDLE-C1
    report.add(file, "", "SDSC-BUNDLE-C1", std::move(message),
               1 + before.count('\n'), offset - (before.rfind('\n') + 1) + 1);
    return false;
  };
  if (text.size() > kMaxBytes)
    return violate(0, "the file has " + std::to_string(text.size()) +
                          " bytes, at most " + std::to_string(kMaxBytes) +
                          " are read");
  if (size_t at = text.find('\0'); at != StringRef::npos)
    return violate(at, "a null character");
  MLIRTokens tokens(text);
  MLIRTextGuard guard(text, {/*depth=*/64, /*operators=*/512});
  // The two tokens before an alias's equals sign are its prefix and its name.
  std::array<StringRef, 3> last;
  for (StringRef token = tokens.next(); !token.empty(); token = tokens.next()) {
    if (std::string fault = guard.follow(token); !fault.empty())
      return violate(offsetOf(token, text), std::move(fault));
    bool isTypeAlias = last[1] == "!" && token == "=";
    bool isAttributeAlias =
        last[0] == "#" && last[2] == "=" && token != "affine_map";
    if (isTypeAlias || isAttributeAlias)
      return violate(offsetOf(last[isTypeAlias ? 1 : 0], text),
                     "aliases other than those of affine maps are not part of "
                     "a bundle");
    last = {last[1], last[2], token};
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
