// SPDX-License-Identifier: Apache-2.0
//===- Npy.h - Reading and writing .npy files -------------------*- C++ -*-===//
//
// Versions 1 to 3 of the format, little-endian, of the types float16,
// float32, bool, uint8, int8, int16, int32, int64, and bfloat16. numpy has no
// bfloat16: such files carry the descriptor '<V2' (what ml_dtypes arrays are
// saved with), '|V2' or '<u2', each element being the 16 bits.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_TOOLS_SPYRERUN_NPY_H
#define SPYRE_TOOLS_SPYRERUN_NPY_H

#include "Spyre/Device/DataFormat.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spyre {

struct NpyArray {
  HostDtype dtype = HostDtype::Float32;
  /// The file's name of the type, which it keeps when written again; "" for
  /// numpy's own.
  std::string descriptor;
  std::vector<int64_t> shape;
  /// Row-major, whatever order the file had.
  std::vector<uint8_t> data;

  int64_t numElements() const;
};

/// Throws Error "<path>: error: ..." for anything but a complete file of a
/// supported type.
NpyArray readNpy(const std::string &path);

/// Writes version 1.0, C order; bfloat16 as '<V2' unless it came as another.
/// Throws Error.
void writeNpy(const std::string &path, const NpyArray &array);

} // namespace spyre

#endif // SPYRE_TOOLS_SPYRERUN_NPY_H
