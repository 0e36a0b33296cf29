// SPDX-License-Identifier: Apache-2.0
//===- Arrays.h - Arrays of a run, on host and device -----------*- C++ -*-===//

#ifndef SPYRE_TOOLS_SPYRE_RUN_ARRAYS_H
#define SPYRE_TOOLS_SPYRE_RUN_ARRAYS_H

#include "Npy.h"

#include "Spyre/Runtime/Program/Program.h"

#include <cstring>
#include <optional>

namespace spyre {

/// One array argument of the run.
struct Array {
  size_t argument;
  NpyArray host;
  /// If not empty: what is stored at first, in place of `host`.
  std::vector<uint8_t> deviceImage;
  uint64_t address = 0;
  uint64_t sizeInBytes = 0;

  void keepImage(runtime::DeviceMemory &memory) {
    const uint8_t *device = memory.at(address);
    deviceImage.assign(device, device + sizeInBytes);
  }
  /// Before each run but the first, unless no run reads the array. All of them
  /// begin with the same bytes, so they change the same arrays: the others are
  /// left alone, and the caches keep what runs read.
  void restore(runtime::DeviceMemory &memory) {
    uint8_t *device = memory.at(address);
    if (!isChanged)
      isChanged = std::memcmp(device, deviceImage.data(), sizeInBytes) != 0;
    if (*isChanged)
      std::memcpy(device, deviceImage.data(), sizeInBytes);
  }

private:
  std::optional<bool> isChanged; ///< by the first run
};

/// The layout of a plain array: dense row-major, as elements of the type that
/// its views have. Nothing if the bytes move as they are.
std::optional<TensorLayout> plainLayout(const runtime::ArgumentInfo &info,
                                        const NpyArray &array,
                                        runtime::Numerics numerics);

/// Throws Error unless the array is one that the argument takes; `text` is what
/// the array came from, `sizes` what a run's sizes are, if the argument's shape
/// is of them.
void checkArray(const runtime::ArgumentInfo &info, const NpyArray &host,
                const std::string &text, runtime::Numerics numerics,
                const std::string &sizes = "");

/// Throws Error if the host's copy of an argument with a layout, in row-major
/// order or with its strides, has more than `most` bytes, or a negative size.
void checkHostSize(const runtime::ArgumentInfo &info, uint64_t most);

int64_t elementSize(const runtime::ArgumentInfo &info, const NpyArray &array);

uint64_t deviceBytes(const runtime::ArgumentInfo &info, const NpyArray &array);

/// A host array of zeros for an argument whose layout says the shape. A
/// prediction takes no data: tensors may be larger than the host's memory.
NpyArray zerosOf(const runtime::ArgumentInfo &info, bool hasData = true);

/// Whether an array holds the stored bytes of an argument, which say more than
/// its host type can: DL16 has smaller subnormals and larger values than f16.
bool isDeviceImage(const runtime::ArgumentInfo &info, const NpyArray &array);

void upload(const runtime::ArgumentInfo &info, Array &array,
            runtime::Numerics numerics, runtime::DeviceMemory &memory);

NpyArray download(const runtime::ArgumentInfo &info, const Array &array,
                  runtime::Numerics numerics, runtime::DeviceMemory &memory);

} // namespace spyre

#endif // SPYRE_TOOLS_SPYRE_RUN_ARRAYS_H
