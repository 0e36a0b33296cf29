//===- LayoutGraph.h - Layouts of a whole function --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// The choices that every operation of a function has, what they cost together,
// and the cheapest of them (Spyre/Planning/LayoutAssignment.h).
//
// Prices are bytes: read by each operation, written by it, and moved by copies;
// those of tensors inside the function count less than those of its arguments
// and results. Times that are not transfers (the setup of a copy, the matrix
// unit) count as the bytes that device memory moves meanwhile.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_LAYOUTGRAPH_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_LAYOUTGRAPH_H

#include "LayoutChoices.h"
#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Planning/LayoutAssignment.h"
#include "Spyre/Target/Interface/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <map>

namespace mlir::spyre_graph {

/// One way to compute an operation.
struct LayoutChoice {
  /// The loop dimension along the sticks; of a contraction that of the result.
  StickChoice stick;
  /// Of the result.
  LayoutAttrInterface layout;
  /// A contraction whose factors are exchanged.
  bool isExchanged = false;
  /// Copies, and operations that move within sticks, read anything.
  bool bindsInputs = true;
  /// The choice of the operation that made the tensor which this one updates.
  int initChoice = -1;
};

class LayoutGraph {
public:
  LayoutGraph(func::FuncOp func, const Target &target)
      : func(func), target(target) {}

  /// Chooses for all operations with a result. An error, at the operation,
  /// where a hint asks for a layout that it cannot have.
  LogicalResult solve();

  const LayoutChoice &getChoice(SpyreOpInterface op) const;

  /// The stick that an operand must have, or nothing if it may have any.
  static std::optional<StickChoice>
  getRequired(const OpInfo &info, const LayoutChoice &choice, unsigned operand);

  /// The price of all choices together, and whether none is cheaper.
  int64_t getPrice() const { return assignment.price; }
  bool isProven() const { return assignment.isProven; }

private:
  using Problem = ::spyre::planning::LayoutProblem;

  /// A value of the function as the problem has it.
  struct Node {
    SmallVector<LayoutChoice, 4> choices;
    /// Copies that its users need: made from choice `choice`.
    struct Copy {
      Block *block;
      CopyPlan plan;
      unsigned choice;
    };
    SmallVector<Copy, 2> copies;
    /// Neither an argument nor in place of one.
    bool isInside = false;
  };

  unsigned getNode(Value value);
  LogicalResult addOp(SpyreOpInterface op);
  /// Restricts the choices to those with the layout that a hint asks for.
  LogicalResult obeyHint(const OpInfo &info, bool updates,
                         SmallVectorImpl<LayoutChoice> &choices);
  /// Choices of an op that makes a new tensor, also along sticks that neither
  /// its inputs nor its result suggest if `ofAnySticks`; and of one that
  /// updates a tensor in `layout`.
  SmallVector<LayoutChoice, 4> getChoices(const OpInfo &info, bool ofAnySticks);
  void addChoicesOfUpdate(const OpInfo &info, LayoutAttrInterface layout,
                          int initChoice,
                          SmallVectorImpl<LayoutChoice> &choices);
  SmallVector<LayoutAttrInterface, 4> getLayouts(Value value);
  bool canExchange(const OpInfo &info) const;
  int64_t getOwnPrice(const OpInfo &info, const LayoutChoice &choice) const;
  void addUse(const OpInfo &info, unsigned operand, unsigned user);
  Problem::Way getWay(const OpInfo &info, unsigned operand, unsigned used,
                      unsigned usedChoice, const LayoutChoice &choice);
  int64_t getBytes(double seconds) const;

  func::FuncOp func;
  const Target &target;
  ::spyre::DeviceSpec spec;
  std::vector<Node> nodes;
  DenseMap<Value, unsigned> nodeOf;
  Problem problem;
  ::spyre::planning::LayoutAssignment assignment;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_LAYOUTGRAPH_H
