// SPDX-License-Identifier: Apache-2.0
//===- Stacks.h - Iterations of small kernels that run as one ---*- C++ -*-===//
//
// A core of a small elementwise kernel costs the host more to set up than to
// compute, and so does an iteration of its loop over tiles. But all of them do
// the same: they load tiles, compute point by point, and store. If tiles of
// consecutive iterations, of one core or of several, have one shape and lie one
// distance apart, the iterations run as one. Their tiles then lie one behind
// another in host memory, as a stack: one load, one loop and one store for all.
//
// The second run of a kernel on the same kinds of arguments finds the stacks.
// Later ones only move them to the addresses of their arguments. A run that
// fails is one that has no stacks: errors name a core.
//
// A loop that makes a number of 16 bits of another one and nothing else is a
// function of 65,536 codes. If it is a costly one and has run on many points,
// it runs once more on all codes, and the results are looked up from then on.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_STACKS_H
#define SPYRE_LIB_RUNTIME_ENGINE_STACKS_H

#include "CodeTable.h"
#include "Shortcut.h"
#include "TileBlock.h"

#include <vector>

namespace spyre::runtime {

/// The stacks of a kernel for arguments that differ in addresses only.
class KernelStacks : public Shortcut {
public:
  explicit KernelStacks(const TileBlock &tiles)
      : Shortcut(tiles.isAddress), tiles(tiles) {}

  int64_t size() const override { return static_cast<int64_t>(stacks.size()); }
  void run(Core &core, int64_t number) const override;

private:
  /// The tiles that a step accesses in the iterations of a stack.
  struct Access {
    TileVal tile;
    int64_t distance; ///< elements from one to the next
  };
  struct Stack {
    int64_t count = 0; ///< iterations
    /// Whether TileBlock::loop runs on it straight from memory to memory: all
    /// tiles are dense and so is the stack.
    bool isDense = false;
    std::vector<Access> accesses; ///< per step that accesses memory
    std::vector<Scalar> scalars;  ///< per entry of TileBlock::scalars
  };
  /// What a step that accesses memory reads or writes in all iterations.
  struct Extent {
    bool isStore = false;
    int argument = -1; ///< TileBlock::Step::argument
    /// Whether it has to stay in the allocation that the view starts in.
    bool isChecked = false;
    int64_t size = 0; ///< bytes of an element in memory
    /// Host addresses: where the argument points (null without one), of the
    /// view's first element, of the first byte and behind the last. Those in a
    /// core's LX are given as if it were that of the first core.
    uint8_t *anchor = nullptr, *origin = nullptr;
    uint8_t *first = nullptr, *end = nullptr;
  };
  class Finder;

  bool find(Core &probe, const Scalar *args) override;
  /// False if the stacks leave an allocation there, or iterations may depend on
  /// each other.
  bool place(Core &probe, const Scalar *args) override;
  bool moveTo(const DeviceMemory &memory, const Scalar *args);
  bool isOrdered() const;
  void runDense(Core &core, const Stack &stack) const;
  /// Points of TileBlock::loop in a dense stack.
  int64_t pointsOf(const Stack &stack) const;
  /// Runs TileBlock::loop on `count` dense elements, from memory to memory.
  void runBlocks(Core &core, uint8_t *const *places, int64_t count) const;
  /// Sets `results`.
  void findResults(Core &core);
  bool canRunOnCodes(const Core &core) const;
  void runOnCodes(Core &core, uint8_t *const *places, int64_t count) const;

  const TileBlock &tiles;
  std::vector<Stack> stacks;
  CodeTable table; ///< of TileBlock::loop, in runs of many dense points
  const uint16_t *results = nullptr; ///< what this run looks up there, or null
  std::vector<Extent> extents;       ///< per step that accesses memory
  /// Per pair of these, a store first: whether both access the same places in
  /// each iteration, if they have the same anchor.
  std::vector<bool> isAlike;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_STACKS_H
