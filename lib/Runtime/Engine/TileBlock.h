// SPDX-License-Identifier: Apache-2.0
//===- TileBlock.h - Kernels that are one block of tiles --------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_TILEBLOCK_H
#define SPYRE_LIB_RUNTIME_ENGINE_TILEBLOCK_H

#include "Instrs.h"
#include "StructuredLoop.h"

#include <memory>
#include <vector>

namespace spyre::runtime {

/// The part of a kernel that is the same in all runs: where its tiles are
/// loaded, computed and stored.
class TileBlock {
public:
  /// Null if the kernel does anything but run one block of tiles, once or in
  /// loops, whose elements are computed one by one and cannot fail.
  static std::unique_ptr<TileBlock> find(const Function &function);

  /// An instruction on tiles.
  struct Step {
    const Instr *instr;
    const LoadInstr *load = nullptr; ///< one of these, if it accesses memory
    const StoreInstr *store = nullptr;
    /// Then: the argument that the view starts at; -1 if its start is computed
    /// or in an LX.
    int argument = -1;
    int tileSlot() const { return load ? load->tile : store->tile; }
    bool accessesMemory() const { return load || store; }
  };
  bool isStep(const Instr &instr) const;

  const Function *function = nullptr;
  const Block *block = nullptr;
  std::vector<Step> steps;
  std::vector<int> scalars;    ///< slots that steps read
  std::vector<bool> isAddress; ///< per argument: it only says where views start

  /// If all that the block does is this loop, which goes over its operands in
  /// one order: which access (step that accesses memory, counted from 0) each
  /// operand is, inputs first. Otherwise null.
  const StructuredLoop *loop = nullptr;
  std::vector<size_t> operands;
  /// Per operand: whether its tile has one element, for all points.
  std::vector<bool> isOne;
  /// Whether its body is one chain of fp16 (KernelTable::chain), from operands
  /// to the only result.
  bool isChain = false;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_TILEBLOCK_H
