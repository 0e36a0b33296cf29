// SPDX-License-Identifier: Apache-2.0
//===- MLIRText.h - Text that is for MLIR's parser --------------*- C++ -*-===//

#ifndef SPYRE_SUPPORT_MLIRTEXT_H
#define SPYRE_SUPPORT_MLIRTEXT_H

#include <cstddef>
#include <string>
#include <string_view>

namespace spyre {

/// Cuts MLIR text into words (with dots, without the prefixes # ! % ^ @, which
/// are tokens of their own), strings, and single characters. Drops blanks and
/// comments as MLIR's lexer does.
class MLIRTokens {
public:
  explicit MLIRTokens(std::string_view text) : text(text) {}

  /// The next token, which is a part of the text; empty at its end.
  std::string_view next();

private:
  void skip();

  std::string_view text;
  size_t at = 0;
  bool isAfterPrefix = false;
};

/// How much of what makes MLIR's parser recurse, or slow, a text may have.
struct MLIRTextLimits {
  /// Brackets, or signs, in each other.
  size_t depth = 1000;
  /// Operators in one expression, which the parser simplifies in time that
  /// grows with the square of their number.
  size_t operators = 8192;
};

/// Follows the tokens of a text that MLIR is to parse. MLIR 22's parser
/// recurses over brackets, signs and operators without a limit but the stack,
/// and crashes on arrays of type index.
class MLIRTextGuard {
public:
  explicit MLIRTextGuard(std::string_view text, MLIRTextLimits limits = {})
      : text(text), limits(limits) {}

  /// What is wrong at the next token of the text; empty if nothing is.
  std::string follow(std::string_view token);

private:
  int getNesting(std::string_view token) const;

  std::string_view text;
  MLIRTextLimits limits;
  size_t depth = 0, numSigns = 0, numOperators = 0;
  /// How much of `array <` the last tokens are, in tokens.
  int arrayTokens = 0;
};

/// What MLIR's parser would fail on in text that lies somewhere in binary data,
/// such as affine maps in bytecode; empty if there is nothing. Where comments
/// and strings begin is not known, so brackets and signs count wherever they
/// are, and a bracket that closes takes nothing back.
std::string findFaultInBinary(std::string_view bytes,
                              MLIRTextLimits limits = {});

} // namespace spyre

#endif // SPYRE_SUPPORT_MLIRTEXT_H
