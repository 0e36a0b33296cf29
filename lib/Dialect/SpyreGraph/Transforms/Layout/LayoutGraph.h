//===- LayoutGraph.h - Layouts of a whole function --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// States the layout problem of a function, that is the choices of each
// operation and their prices, and solves it
// (Spyre/Planning/LayoutAssignment.h).
//
// Prices are bytes of device memory: those that each operation reads and
// writes, and those that copies move. Everything else (LX, the ring, the setup
// of a copy, the matrix unit) counts as the bytes that device memory could move
// in the same time. A tensor inside the function is in LX if what the
// operations that touch it work on fits there; and an argument that several
// operations read whole is read from device memory once, if it fits.
//
// If sizes vary, everything is priced at a few of them, which count alike. What
// is in LX, and what is copied, is as at the largest sizes.
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
  /// The loop dimension along the sticks; for a contraction, along those of the
  /// result.
  StickChoice stick;
  /// The layout of the result.
  LayoutAttrInterface layout;
  /// Whether this is a contraction whose factors are exchanged.
  bool isExchanged = false;
  /// Whether inputs must have this stick. Copies, and operations that move
  /// elements within sticks, can read any.
  bool bindsInputs = true;
  /// If the op updates what another op made: the layout of that.
  LayoutAttrInterface updated = nullptr;
};

class LayoutGraph {
public:
  LayoutGraph(func::FuncOp func, const Target &target,
              const ::spyre::DeviceSpec &spec);

  /// Makes the choice for all operations with a result. Fails with an error at
  /// the operation if a hint asks for a layout that it cannot have.
  LogicalResult solve();

  const LayoutChoice &getChoice(SpyreOpInterface op) const;

  /// The stick that an operand must have, or nothing if it may have any.
  static std::optional<StickChoice>
  getRequired(const OpInfo &info, const LayoutChoice &choice, unsigned operand);

  /// The price of all choices together at the largest sizes, in bytes, and
  /// whether it is proven that no choice is cheaper, at all sizes alike.
  int64_t getPrice() const;
  bool isProven() const { return assignment.isProven; }

private:
  using Problem = ::spyre::planning::LayoutProblem;

  /// A value of the function, as a node of the problem.
  struct Node {
    SmallVector<LayoutChoice, 4> choices;
    /// A copy that users need if the value has choice `choice`. Without a plan:
    /// as it is, in LX.
    struct Copy {
      Block *block;
      std::optional<CopyPlan> plan;
      unsigned choice;
    };
    SmallVector<Copy, 2> copies;
    /// Whether the value is neither an argument nor computed in place of one.
    bool isInside = false;
    /// Whether LX has room for the value wherever it is used.
    bool fitsLX = false;
    /// Whether several operations read it, and none writes it.
    bool isShared = false;
    /// What computing costs at each size, per choice.
    SmallVector<SmallVector<int64_t, 4>, 4> computed;
  };

  /// How an operation gets at an operand, at all sizes.
  enum class Access {
    Impossible,
    /// It writes to it, in the layout that it has.
    Updated,
    /// Where indices say.
    Selected,
    InLX,
    InDeviceMemory,
    /// In a copy as it is, in LX.
    Shared,
    /// In a copy with other sticks.
    Copied
  };
  /// What that costs at one size.
  struct Cost {
    int64_t price = 0;
    /// Of the copy, once for all operations that need the same.
    int64_t copyPrice = 0;
  };

  unsigned getNode(Value value);
  LogicalResult addOp(SpyreOpInterface op);
  /// Restricts the choices to those with the layout that a hint asks for.
  LogicalResult obeyHint(const OpInfo &info,
                         SmallVectorImpl<LayoutChoice> &choices);
  /// The choices of an op that creates a new tensor: all sticks that it can
  /// have, those of its inputs first. addChoicesOfUpdate() adds those of an op
  /// that updates a tensor in `layout`.
  SmallVector<LayoutChoice, 4> getChoices(const OpInfo &info);
  void addChoicesOfUpdate(const OpInfo &info, LayoutAttrInterface layout,
                          SmallVectorImpl<LayoutChoice> &choices);
  SmallVector<LayoutAttrInterface, 4> getLayouts(Value value);
  bool canExchange(const OpInfo &info) const;
  int64_t getStoredPrice(const OpInfo &info, const LayoutChoice &choice,
                         bool fits) const;
  int64_t getNumTouches(const OpInfo &info, const LayoutChoice &choice) const;
  int64_t getComputed(const OpInfo &info, const LayoutChoice &choice) const;
  double getHiddenShare(const OpInfo &info, unsigned operand) const;
  void addUse(ArrayRef<OpInfo> infos, unsigned operand, unsigned user);
  Access getAccess(const OpInfo &info, unsigned operand,
                   LayoutAttrInterface layout,
                   const LayoutChoice &choice) const;
  Cost getCost(Access access, const OpInfo &info, unsigned operand,
               LayoutAttrInterface layout, const LayoutChoice &choice,
               const CopyPlan *plan, int64_t hidden);
  int64_t getSelectedPrice(const OpInfo &info, unsigned operand,
                           LayoutAttrInterface layout,
                           const LayoutChoice &choice) const;
  std::pair<int, bool> addCopy(unsigned used, Node::Copy copy);
  bool isInLX(unsigned node, LayoutAttrInterface layout, Value value) const;
  int64_t getCopyPrice(bool isInLX, int64_t read, int64_t written,
                       bool fits) const;
  int64_t getWorkingSet(Operation *op);
  bool fitsLX(Value value);
  int64_t getBytes(double seconds) const;
  int64_t getPriceOfBytes(int64_t bytes, bool isInLX) const;
  int64_t getPriceOfMove(int64_t bytes) const;
  /// Bytes of LX that plans may use, of all cores.
  int64_t getCapacity() const { return spec.numCores * spec.usableLXBytes(); }

  func::FuncOp func;
  const Target &target;
  const ::spyre::DeviceSpec &spec;
  std::vector<Node> nodes;
  DenseMap<Value, unsigned> nodeOf;
  /// What getWorkingSet() has found.
  DenseMap<Operation *, int64_t> workingSets;
  /// What the symbols are besides the largest sizes.
  SmallVector<SmallVector<int64_t>> smallerSizes;
  /// At the largest sizes, and at each of the smaller ones.
  std::vector<Problem> problems;
  ::spyre::planning::LayoutAssignment assignment;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_LAYOUT_LAYOUTGRAPH_H
