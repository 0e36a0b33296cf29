// SPDX-License-Identifier: Apache-2.0

#include "SubscriptParser.h"

using namespace mlir;
using namespace mlir::ktdp;

namespace {
/// sum     ::= product ((`+` | `-`) product)*
/// product ::= factor ((`*` | `floordiv` | `ceildiv` | `mod`) factor)*
/// factor  ::= `-` factor | `(` sum `)` | integer | ssa-name
///           | `symbol` `(` ssa-name `)`
class SubscriptParser {
public:
  SubscriptParser(OpAsmParser &parser, SubscriptOperandFn getDim,
                  SubscriptOperandFn getSymbol)
      : parser(parser), getDim(getDim), getSymbol(getSymbol) {}

  ParseResult parseSum(AffineExpr &result) {
    if (parseProduct(result))
      return failure();
    while (true) {
      AffineExpr rhs;
      if (succeeded(parser.parseOptionalPlus())) {
        if (parseProduct(rhs))
          return failure();
        result = result + rhs;
      } else if (succeeded(parser.parseOptionalMinus())) {
        if (parseProduct(rhs))
          return failure();
        result = result - rhs;
      } else {
        return success();
      }
    }
  }

private:
  // Larger input is not a program but an attack on the stack: affine
  // expressions are walked recursively.
  static constexpr unsigned kMaxDepth = 256;
  static constexpr unsigned kMaxFactors = 4096;

  ParseResult parseProduct(AffineExpr &result) {
    if (parseFactor(result))
      return failure();
    while (true) {
      llvm::SMLoc loc = parser.getCurrentLocation();
      AffineExpr rhs;
      if (succeeded(parser.parseOptionalStar())) {
        if (parseFactor(rhs))
          return failure();
        if (!result.isSymbolicOrConstant() && !rhs.isSymbolicOrConstant())
          return parser.emitError(loc, "non-affine expression: one operand of "
                                       "'*' must be a constant");
        result = result * rhs;
        continue;
      }
      AffineExprKind kind;
      if (succeeded(parser.parseOptionalKeyword("floordiv")))
        kind = AffineExprKind::FloorDiv;
      else if (succeeded(parser.parseOptionalKeyword("ceildiv")))
        kind = AffineExprKind::CeilDiv;
      else if (succeeded(parser.parseOptionalKeyword("mod")))
        kind = AffineExprKind::Mod;
      else
        return success();
      if (parseFactor(rhs))
        return failure();
      if (!rhs.isSymbolicOrConstant())
        return parser.emitError(
            loc, "non-affine expression: the divisor must be a constant");
      auto constant = dyn_cast<AffineConstantExpr>(rhs);
      if (constant && constant.getValue() < 1)
        return parser.emitError(loc, "the divisor must be positive, but got ")
               << constant.getValue();
      result = getAffineBinaryOpExpr(kind, result, rhs);
    }
  }

  ParseResult parseFactor(AffineExpr &result) {
    if (++depth > kMaxDepth)
      return parser.emitError(parser.getCurrentLocation(),
                              "subscript is nested more than ")
             << kMaxDepth << " levels deep";
    if (++numFactors > kMaxFactors)
      return parser.emitError(parser.getCurrentLocation(),
                              "subscript has more than ")
             << kMaxFactors << " terms";
    ParseResult parsed = parseFactorImpl(result);
    --depth;
    return parsed;
  }

  ParseResult parseFactorImpl(AffineExpr &result) {
    if (succeeded(parser.parseOptionalMinus())) {
      // The most negative integer has no positive counterpart to negate.
      if (parseFactor(result))
        return failure();
      result = -result;
      return success();
    }
    if (succeeded(parser.parseOptionalLParen()))
      return failure(parseSum(result) || parser.parseRParen());
    if (succeeded(parser.parseOptionalKeyword("symbol"))) {
      llvm::SMLoc loc = parser.getCurrentLocation();
      OpAsmParser::UnresolvedOperand operand;
      if (parser.parseLParen() || parser.parseOperand(operand) ||
          parser.parseRParen())
        return failure();
      if (!getSymbol)
        return parser.emitError(loc,
                                "symbols are not allowed in this subscript");
      result = getSymbol(operand);
      return success();
    }
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult parsed = parser.parseOptionalOperand(operand);
    if (parsed.has_value()) {
      if (failed(*parsed))
        return failure();
      result = getDim(operand);
      return success();
    }
    int64_t value;
    parsed = parser.parseOptionalInteger(value);
    if (!parsed.has_value())
      return parser.emitError(parser.getCurrentLocation(),
                              "expected an SSA value, an integer or '(' in an "
                              "affine subscript");
    if (failed(*parsed))
      return failure();
    result = getAffineConstantExpr(value, parser.getContext());
    return success();
  }

  OpAsmParser &parser;
  SubscriptOperandFn getDim;
  SubscriptOperandFn getSymbol;
  unsigned depth = 0;
  unsigned numFactors = 0;
};
} // namespace

ParseResult mlir::ktdp::parseSubscript(OpAsmParser &parser,
                                       SubscriptOperandFn getDim,
                                       SubscriptOperandFn getSymbol,
                                       AffineExpr &result) {
  return SubscriptParser(parser, getDim, getSymbol).parseSum(result);
}
