// SPDX-License-Identifier: Apache-2.0
//===- LaunchGrid.h - What a program is launched on -------------*- C++ -*-===//
//
// A program is for tensors of certain shapes. On larger ones it runs tile by
// tile (spec/runtime.md, "ProgramExecution"), where the program says that this
// is the same and where a tile of each tensor lies in device memory as a tensor
// of the tile's shape would.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_RUNTIME_LAUNCH_LAUNCHGRID_H
#define SPYRE_RUNTIME_LAUNCH_LAUNCHGRID_H

#include "Spyre/Runtime/Launch/ProgramImage.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace spyre::runtime {

/// How a tensor is stored. Sizes and strides of the host, in elements.
struct StoredTensor {
  HostDtype dtype = HostDtype::Float16;
  std::vector<int64_t> sizes, strides;
  TensorLayout layout;
  /// Device byte address of the first byte.
  uint64_t address = 0;
};

/// Whether a tensor is stored as a program expects its argument to be. What a
/// dimension of extent 1 is multiplied by does not matter.
bool isStoredAs(const ArrayStorage &expected, const std::vector<int64_t> &sizes,
                const std::vector<int64_t> &strides,
                const TensorLayout &layout);
bool isStoredAs(const ArgumentInfo &argument, HostDtype dtype,
                const std::vector<int64_t> &sizes,
                const std::vector<int64_t> &strides,
                const TensorLayout &layout);

/// A tensor, or the value of a scalar.
struct LaunchArgument {
  std::optional<StoredTensor> tensor;
  int64_t value = 0;
};

struct LaunchGrid {
  /// A tile group along which tensors are larger.
  struct Axis {
    int64_t numTiles = 1;
    /// Per argument the bytes from one tile to the next; 0 where all tiles use
    /// the same.
    std::vector<uint64_t> tileBytes;
  };
  /// Outermost first; none if all tensors have the program's sizes.
  std::vector<Axis> axes;

  int64_t numTiles() const;
  /// Bytes from the start of an argument to the part that a tile uses; the
  /// last axis runs fastest.
  uint64_t offsetOf(int64_t tile, size_t argument) const;
};

/// Throws BrokenRule (SPYRECODE-LAUNCH-C1) unless there is a value for each
/// argument that is no pool.
void checkArgumentCount(const std::vector<ArgumentInfo> &arguments,
                        size_t found);

/// Checks the arguments of a launch, one per argument of the program but for
/// the pool, and says how it runs. Throws BrokenRule (SPYRECODE-LAUNCH-*).
LaunchGrid planLaunch(const ProgramImage &image,
                      const std::vector<LaunchArgument> &given,
                      bool allowTiledLaunch);

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_LAUNCH_LAUNCHGRID_H
