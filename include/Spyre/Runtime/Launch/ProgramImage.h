// SPDX-License-Identifier: Apache-2.0
//===- ProgramImage.h - Programs as bytes in device memory ------*- C++ -*-===//
//
// The contents of a file that stands for a binary of the device. The loader
// reads and writes its bytes (ImageFile.h).
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_RUNTIME_LAUNCH_PROGRAMIMAGE_H
#define SPYRE_RUNTIME_LAUNCH_PROGRAMIMAGE_H

#include "Spyre/Runtime/Program/Program.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace spyre::runtime {

/// For each argument and dimension the number of its tile group, or -1. The
/// dimensions of one group run together: a program that is launched on each
/// tile of them in turn does what it says on all of it.
using TileGroups = std::vector<std::vector<int32_t>>;

/// Bytes of one row of a correction tensor; a row holds one 64-bit integer,
/// then zeros.
inline constexpr uint64_t kCorrectionRowBytes = 128;

/// A decoded image. Offsets and sizes are in bytes, offsets from its start.
struct ProgramImage {
  std::shared_ptr<const Program> program;
  TileGroups tileGroups;
  uint64_t sizeInBytes = 0;
  /// Byte offset of the correction tensor: a tag, then one row per argument
  /// with its value. Without rows, the runtime binds arguments at each launch.
  uint64_t correctionOffset = 0;
  uint32_t numCorrectionRows = 0;
  /// First row of the correction tensors of this image.
  int64_t correctionTag = 0;
  /// The program's pool; 0 bytes if it has none.
  uint64_t poolOffset = 0, poolBytes = 0;

  uint64_t correctionBytes() const {
    return numCorrectionRows * kCorrectionRowBytes;
  }
};

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_LAUNCH_PROGRAMIMAGE_H
