// SPDX-License-Identifier: Apache-2.0
//===- BundleText.cpp - bundle.mlir before MLIR sees it ---------*- C++ -*-===//

#include "BundleText.h"
#include "Spyre/Support/MLIRText.h"

#include "mlir/IR/Location.h"
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

SmallVector<StringRef> spyre::superdsc::getArgumentNames(mlir::Block &block,
                                                         StringRef text) {
  SmallVector<size_t> lineStarts = {0};
  for (size_t at = text.find('\n'); at != StringRef::npos;
       at = text.find('\n', at + 1))
    lineStarts.push_back(at + 1);
  SmallVector<StringRef> names;
  size_t previous = 0;
  for (mlir::BlockArgument argument : block.getArguments()) {
    StringRef name;
    auto loc = dyn_cast<mlir::FileLineColLoc>(argument.getLoc());
    if (loc && loc.getLine() >= 1 && loc.getLine() <= lineStarts.size() &&
        loc.getColumn() >= 1) {
      // A location that the text gives an argument could be another's.
      size_t at = lineStarts[loc.getLine() - 1] + loc.getColumn() - 1;
      MLIRTokens tokens(text.substr(at));
      if (at > previous && tokens.next() == "%")
        name = tokens.next();
      previous = at;
    }
    names.push_back(name);
  }
  return names;
}

namespace {
/// A parameter: where the comma before it, or it, begins and where it ends.
struct Parameter {
  size_t begin, end;
  std::string tokens;
};
} // namespace

/// The parameters of the first function, and where their list ends.
static SmallVector<Parameter> findParameters(StringRef text, size_t &end) {
  MLIRTokens tokens(text);
  StringRef token = tokens.next();
  while (!token.empty() && token != "func.func")
    token = tokens.next();
  while (!token.empty() && token != "(")
    token = tokens.next();
  SmallVector<Parameter> parameters;
  if (token.empty())
    return parameters;
  end = offsetOf(token, text) + 1;
  parameters.push_back({end, end, ""});
  int depth = 1;
  for (token = tokens.next(); !token.empty(); token = tokens.next()) {
    if (token == "(" || token == "<" || token == "[" || token == "{")
      ++depth;
    else if (token == ")" || token == ">" || token == "]" || token == "}")
      --depth;
    if (depth == 0)
      return parameters;
    end = offsetOf(token, text) + token.size();
    if (depth == 1 && token == ",") {
      parameters.push_back({end - 1, end, ""});
      continue;
    }
    parameters.back().end = end;
    parameters.back().tokens += (token + " ").str();
  }
  return parameters;
}

/// Overwrites a part of the text with blanks; lines stay.
static void blank(std::string &text, size_t begin, size_t end) {
  for (size_t at = begin; at < end; ++at)
    if (text[at] != '\n')
      text[at] = ' ';
}

std::string spyre::superdsc::dropRepeatedParameters(const std::string &text) {
  std::string result = text;
  size_t begin = text.size();
  llvm::StringSet<> seen;
  for (const Parameter &parameter : findParameters(text, begin))
    if (!seen.insert(parameter.tokens).second)
      blank(result, parameter.begin, parameter.end);
  llvm::StringSet<> extractions;
  while (begin < text.size()) {
    size_t end = std::min(text.find('\n', begin), text.size());
    StringRef line = StringRef(text).slice(begin, end);
    if (line.contains("sdscbundle.input_arg_extract") &&
        !extractions.insert(line.trim()).second)
      blank(result, begin, end);
    begin = end + 1;
  }
  return result;
}
