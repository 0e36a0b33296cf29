// SPDX-License-Identifier: Apache-2.0
//===- Plan.h - Decoded programs --------------------------------*- C++ -*-===//
//
// A loaded program: functions decoded into blocks of instructions whose
// operands are slots of the executing core. No MLIR types.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_PROGRAM_PLAN_H
#define SPYRE_LIB_RUNTIME_PROGRAM_PLAN_H

#include "Elements.h"
#include "Spyre/Runtime/Program/Program.h"

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace spyre::runtime {

class Core;

/// One decoded operation.
class Instr {
public:
  virtual ~Instr() = default;
  virtual void run(Core &core) const = 0;
  /// Runs several cores of one kernel, none of which waits for
  /// another. Instructions that can share work among them override this.
  virtual void runGang(Core *const *cores, int numCores) const;
  /// Adds steps for the timing engine, without data. The default fails.
  virtual void walk(Core &core) const;
  int location = 0;          ///< into Plan::locations
  std::vector<int> releases; ///< tensor slots whose last use this is
  /// Of those (and of loops fused into this one), the slots whose buffers are
  /// given back afterwards. fuseLoops() sets it.
  std::vector<int> frees;
  /// Tensor slots whose values it makes: data tiles that take room in LX.
  std::vector<std::pair<int, Elem>> defines;
  /// Released slots whose room in LX its results can take over.
  std::vector<int> replaces;
};

struct Block {
  std::vector<std::unique_ptr<Instr>> instrs;
  void run(Core &core) const;
  /// Instruction by instruction, each for all cores.
  void runGang(Core *const *cores, int numCores) const;
};

/// A tensor operand: its slot, and whether this is the value's last use, so
/// that its buffer may be overwritten.
struct TensorUse {
  int slot = -1;
  bool dies = false;
};

/// A constant tile; one buffer per numerics.
struct ConstantTensor {
  int slot;
  Elem elem;
  std::vector<int64_t> shape;
  std::vector<float> floats;  ///< float types, before rounding
  std::vector<int32_t> ints;  ///< up to 32 bits
  std::vector<int64_t> longs; ///< i64, index
  bool isSplat = false;       ///< one value in the vector
};

struct ConstantScalar {
  int slot;
  Elem elem;
  Scalar value; ///< floats before rounding
};

struct Function {
  std::string name;
  int location = 0;
  int64_t grid[3] = {1, 1, 1};
  bool hasGrid = false;
  int64_t numCores() const { return grid[0] * grid[1] * grid[2]; }
  int index = 0;
  int numScalars = 0, numTensors = 0, numViews = 0, numTiles = 0;
  int numKeptTiles = 0;      ///< loads whose host tiles are kept
  std::vector<int> argSlots; ///< scalar slots of the arguments
  std::vector<ConstantScalar> scalars;
  std::vector<ConstantTensor> tensors;
  /// Whether the tensor in a slot is one of them.
  bool isConstant(int slot) const {
    return std::any_of(
        tensors.begin(), tensors.end(),
        [&](const ConstantTensor &constant) { return constant.slot == slot; });
  }
  Block body;
  int64_t numOperations = 0; ///< those in bodies included
  bool hasCalls = false;
  bool accessesMemory = false;
  /// Holds a matrix product.
  bool hasContraction = false;
  /// How many neighbouring cores run side by side on one thread, as a gang,
  /// because they read the same tiles: factors of a matrix product, or what a
  /// distributed view holds. Of a tile that several read, one makes the host
  /// tile for all.
  int64_t gangSize = 1;
  /// Tiles that are expensive to make for the host: as many cores as share one
  /// broadcast (DeviceSpec::numBroadcastCores). The tiles of more would not fit
  /// in the second-level cache.
  static constexpr int64_t kLargeGang = 8;
  /// Others: many gangs let all threads end at about the same time.
  static constexpr int64_t kSmallGang = 2;
  /// Lets neighbouring cores share tiles of one more load or product.
  void shareTiles(bool areSmall) {
    gangSize = std::max(gangSize, areSmall ? kSmallGang : kLargeGang);
  }
  /// Inter-tile produce ops; with any, the cores are resumable tasks.
  int numProduceOps = 0;
  /// Whether cores add up what each has of a sum.
  bool addsPartialResults = false;
};

struct Plan {
  std::string name; ///< entry
  std::vector<std::string> locations;
  std::vector<std::string> operationNames; ///< ScalarOp::name
  /// For --check=full: where the operands of a float operation are computed,
  /// by its location.
  std::unordered_map<int, std::vector<int>> producers;
  std::vector<int> argumentLocations;
  std::vector<std::unique_ptr<Function>> functions;
  Function *entry = nullptr;
  std::vector<ArgumentInfo> arguments;
  std::optional<PlannedDevice> device;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_PROGRAM_PLAN_H
