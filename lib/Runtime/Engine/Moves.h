// SPDX-License-Identifier: Apache-2.0
//===- Moves.h - Kernels that move tiles between scratchpads ----*- C++ -*-===//
//
// A kernel that brings what several cores hold to each core's LX loads a tile
// piece by piece, converts it for the host and back, and does so on every core.
// What it does to memory is a list of copies, the same in every run on the same
// addresses. Where each of several cores gets the same, it is put together once
// and copied as a whole.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_MOVES_H
#define SPYRE_LIB_RUNTIME_ENGINE_MOVES_H

#include "Instrs.h"
#include "Shortcut.h"

#include <memory>
#include <optional>
#include <vector>

namespace spyre::runtime {

class KernelMoves : public Shortcut {
public:
  /// Null if the kernel does anything but load tiles from LX, and store them to
  /// the LX of the core that loads.
  static std::unique_ptr<KernelMoves> find(const Function &function);

  int64_t size() const override { return static_cast<int64_t>(tasks.size()); }
  void run(Core &core, int64_t number) const override;

private:
  /// Bytes that are copied. Targets are in the LX of the first core of a task.
  struct Copy {
    const uint8_t *source;
    uint8_t *target;
    int64_t size;
  };
  /// Some cores, one after another, whose LX gets the same.
  struct Task {
    int64_t numCores = 1;
    std::vector<Copy> copies;
    /// From the first core to each of the others: the targets, joined.
    std::vector<Copy> results;
  };
  class Finder;

  explicit KernelMoves(size_t numArgs)
      : Shortcut(std::vector<bool>(numArgs, false)) {}
  bool find(Core &probe, const Scalar *args) override;
  bool place(Core &, const Scalar *) override { return true; }

  std::vector<Task> tasks;
  ptrdiff_t pitch = 0; ///< from the LX of a core to that of the next
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_MOVES_H
