// SPDX-License-Identifier: Apache-2.0
//===- LoaderArgReduction.cpp - Recognising reductions to an index --------===//

#include "LoaderImpl.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace spyre::runtime;

namespace {
/// A case of comparing a candidate with the best so far.
struct ArgCase {
  /// -1, 0, 1: value below, equal to, above the best; 2: unordered.
  int values;
  bool valueIsNan, bestIsNan;
  int indices; ///< -1, 0, 1
};

/// Evaluates a condition over comparisons of (value, index) with the best.
struct ArgCondition {
  Value value, index, best, bestIndex;

  std::optional<bool> evaluate(Value v, const ArgCase &c) const {
    Attribute constant;
    if (v.getType().isInteger(1) && matchPattern(v, m_Constant(&constant)))
      if (auto integer = dyn_cast<IntegerAttr>(constant))
        return !integer.getValue().isZero();
    Operation *op = v.getDefiningOp();
    if (!op)
      return std::nullopt;
    if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op)) {
      std::optional<bool> a = evaluate(op->getOperand(0), c);
      std::optional<bool> b = evaluate(op->getOperand(1), c);
      if (!a || !b)
        return std::nullopt;
      if (isa<arith::AndIOp>(op))
        return *a && *b;
      return isa<arith::OrIOp>(op) ? *a || *b : *a != *b;
    }
    if (auto cmp = dyn_cast<arith::CmpFOp>(op)) {
      Value l = cmp.getLhs(), r = cmp.getRhs();
      int order; // -1, 0, 1, or 2
      if (l == r && (l == value || l == best))
        order = (l == value ? c.valueIsNan : c.bestIsNan) ? 2 : 0;
      else if (l == value && r == best)
        order = c.values;
      else if (l == best && r == value)
        order = c.values == 2 ? 2 : -c.values;
      else
        return std::nullopt;
      // Bits of a predicate: equal, greater, less, unordered.
      unsigned bits = static_cast<unsigned>(cmp.getPredicate());
      unsigned bit = order == 0 ? 1 : order == 1 ? 2 : order == -1 ? 4 : 8;
      return (bits & bit) != 0;
    }
    if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
      int order;
      if (cmp.getLhs() == index && cmp.getRhs() == bestIndex)
        order = c.indices;
      else if (cmp.getLhs() == bestIndex && cmp.getRhs() == index)
        order = -c.indices;
      else
        return std::nullopt;
      switch (cmp.getPredicate()) {
      case arith::CmpIPredicate::eq:
        return order == 0;
      case arith::CmpIPredicate::ne:
        return order != 0;
      case arith::CmpIPredicate::slt:
        return order < 0;
      case arith::CmpIPredicate::sle:
        return order <= 0;
      case arith::CmpIPredicate::sgt:
        return order > 0;
      case arith::CmpIPredicate::sge:
        return order >= 0;
      default:
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  /// Whether `take` is the order of isBetter() in LoopOrdered.cpp.
  bool isOrder(Value take, bool isMax) const {
    const ArgCase values[] = {{-1, false, false, 0}, {0, false, false, 0},
                              {1, false, false, 0},  {2, true, false, 0},
                              {2, false, true, 0},   {2, true, true, 0}};
    for (ArgCase c : values)
      for (c.indices = -1; c.indices <= 1; ++c.indices) {
        bool isTie = c.values == 0 || (c.valueIsNan && c.bestIsNan);
        bool wins = c.valueIsNan != c.bestIsNan ? c.valueIsNan
                                                : c.values == (isMax ? 1 : -1);
        bool expected = isTie ? c.indices < 0 : wins;
        if (evaluate(take, c) != expected)
          return false;
      }
    return true;
  }
};
} // namespace

bool spyre::runtime::isArgReduction(mlir::Block &block, unsigned numOutputs,
                                    bool &isMax) {
  Operation *yield = block.getTerminator();
  if (numOutputs != 2)
    return false;
  auto first = yield->getOperand(0).getDefiningOp<arith::SelectOp>();
  auto second = yield->getOperand(1).getDefiningOp<arith::SelectOp>();
  unsigned numArguments = block.getNumArguments();
  BlockArgument best = block.getArgument(numArguments - 2);
  BlockArgument bestIndex = block.getArgument(numArguments - 1);
  if (!first || !second || first.getCondition() != second.getCondition() ||
      first.getFalseValue() != best || second.getFalseValue() != bestIndex ||
      !best.getType().isF32() || !bestIndex.getType().isSignlessInteger() ||
      bestIndex.getType().getIntOrFloatBitWidth() < 32)
    return false;
  ArgCondition condition{first.getTrueValue(), second.getTrueValue(), best,
                         bestIndex};
  // The candidate itself must not depend on the best.
  SmallVector<Value> work{condition.value, condition.index};
  while (!work.empty()) {
    Value v = work.pop_back_val();
    if (v == best || v == bestIndex)
      return false;
    if (Operation *op = v.getDefiningOp(); op && op->getBlock() == &block)
      work.append(op->operand_begin(), op->operand_end());
  }
  for (bool max : {true, false})
    if (condition.isOrder(first.getCondition(), max)) {
      isMax = max;
      return true;
    }
  return false;
}
