// SPDX-License-Identifier: Apache-2.0
//===- Program.h - A loaded KTIR program ------------------------*- C++ -*-===//
//
// A program that a loader has made from a KTIR module. Uses no types of MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_RUNTIME_PROGRAM_PROGRAM_H
#define SPYRE_RUNTIME_PROGRAM_PROGRAM_H

#include "Spyre/Device/DataFormat.h"
#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Device/TensorLayout.h"
#include "Spyre/Runtime/Memory/DeviceMemory.h"
#include "Spyre/Runtime/Report/TimingReport.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spyre::runtime {

/// How an array is stored.
struct ArrayStorage {
  std::vector<int64_t> shape, strides; ///< of the host, in elements
  TensorLayout layout;
};

/// One argument of the entry function.
struct ArgumentInfo {
  enum Kind {
    Array,  ///< a tensor's storage; the SSA value is its ELEMENT index
    Scalar, ///< passed as it is (float scalars as the bits of a float)
    Pool    ///< scratch device memory; the SSA value is its BYTE address
  };
  std::string name; ///< ktdp.name, else the SSA name without '%', else arg<i>
  Kind kind = Scalar;
  /// Array: host type, host sizes and strides in elements. Without a layout
  /// (plain arrays) shape is empty and dtype is decided by the caller.
  HostDtype dtype = HostDtype::Float16;
  std::vector<int64_t> shape, strides;
  std::optional<TensorLayout> layout;
  /// Array with a layout: the program accesses coordinates below these only.
  std::vector<int64_t> reach;
  /// Pool: bytes the program needs.
  uint64_t poolBytes = 0;
  /// Array: bytes of one device element, the unit of the SSA value (0: the
  /// program never says, the caller's dtype decides).
  int64_t elementSizeInBytes = 0;
  /// Plain array: KTIR element type of the views on it ("f16"), if known.
  std::string elementType;
  /// Scalar of a float type.
  bool isFloat = false;
  /// Scalar: one of type ktdp.runtime_arg, and what that promises of its value;
  /// -1: no upper bound.
  bool isRuntimeArgument = false;
  int64_t granularity = 1, upperBound = -1;
  /// Scalar: the least value, where the program says one; then the value is a
  /// size, and Program::run() checks it.
  std::optional<int64_t> lowerBound;
  /// Such a size: whether it may have a value.
  bool takesSize(int64_t value) const;
  /// Such a size: "multiples of 32 from 32 to 96", or "sizes from 1 to 512".
  std::string describeRange() const;
  /// A size: constant + sum of factor x (value of the run-time argument of that
  /// number, counted from 0), divided by a number that divides it in each run.
  struct Size {
    int64_t constant = 0, divisor = 1;
    std::vector<std::pair<int, int64_t>> terms;
    int64_t at(const std::vector<int64_t> &values) const;
  };
  /// Array with a layout that is larger or smaller from run to run: its sizes.
  /// `shape`, `strides` and `layout` describe the largest. Empty for others.
  std::vector<Size> sizes;
  /// Array with sizes: the program takes the largest in every run, and these
  /// are the sizes of what it uses of it.
  bool hasRoom = false;
  /// What its device dimensions are, in the largest.
  std::vector<DeviceDim> deviceDims;
  /// How an array of the sizes is stored where the run-time arguments have
  /// these values: the dimensions stay in the same order.
  ArrayStorage storageAt(const std::vector<int64_t> &values) const;
  /// The same for an array of this shape.
  ArrayStorage storageOf(std::vector<int64_t> found) const;
  /// Array: whether any kernel stores to it / loads from it, as far as the
  /// loader can tell (true when it cannot).
  bool mayBeWritten = true, mayBeRead = true;
};

/// What is wrong with a value for an argument that is a size, or nothing. The
/// message names the size, its range and an array that is so large.
std::string checkSize(const std::vector<ArgumentInfo> &arguments, size_t number,
                      int64_t value);
/// For messages, what the run-time arguments are: "'s' is 64 (sizes from 1 to
/// 512) and 'n' is 3 (sizes from 1 to 4)". `values` are theirs, in order.
std::string listSizes(const std::vector<ArgumentInfo> &arguments,
                      const std::vector<int64_t> &values);
/// For messages, the arguments of a call: "x, out, s (sizes from 1 to 512, of
/// dimension 0 of 'x')". Pools are left out.
std::string listArguments(const std::vector<ArgumentInfo> &arguments);

enum class Numerics {
  DL16, ///< f16 in memory and as rounding target is SEN169_FP16
  IEEE  ///< f16 is IEEE half
};

enum class OutOfBounds {
  Error, ///< any access outside its view is an error
  Zero   ///< reads past an allocation give zeros, writes are dropped
};

enum class CheckLevel {
  None,   ///< trusts the program: a wrong address is undefined behaviour
  Bounds, ///< accesses, LX capacity, alignment and spans
  Full    ///< also reads of undefined memory, overlaps in LX, races, NaN
};

struct RunOptions {
  /// Host threads that run cores, including the caller; 0: one per host
  /// processor (or SPYRE_NUM_THREADS). Results do not depend on it.
  int threads = 0;
  Numerics numerics = Numerics::DL16;
  OutOfBounds oob = OutOfBounds::Error;
  /// Full runs on one thread.
  CheckLevel check = CheckLevel::Bounds;
  /// Fill the report of the timing engine (simulated the first time only).
  bool report = false;
  /// Numbers of the device for the report; null: those of the device that the
  /// program is planned for.
  std::shared_ptr<const DeviceSpec> device;
};

/// The device that a program's plan is for, where its module says so.
struct PlannedDevice {
  DeviceSpec spec;
  std::string location; ///< of the module: "file:line:column"
};

/// What a run took on the host, and how often it did less than run core by core
/// and tile by tile.
struct HostWork {
  double wallSeconds = 0;
  /// Stacks of iterations, and parts of moves between scratchpads, that kernels
  /// ran in place of their cores.
  int64_t shortcutTasks = 0;
  /// Loops of which the results for all codes were computed, to be looked up.
  int64_t tables = 0;
  /// Loads that took a tile which the loop around them kept.
  int64_t keptTiles = 0;
  /// Iterations of loops that only moved on from tile to tile.
  int64_t repeatedIterations = 0;
};

struct RunReport : TimingReport {
  HostWork host;
};

/// A program, ready to run. Immutable; run() may be called from several
/// threads with different memories.
class Program {
public:
  struct Impl;
  explicit Program(std::unique_ptr<Impl> impl);
  ~Program();

  /// Name of the entry function.
  const std::string &name() const;
  const std::vector<ArgumentInfo> &arguments() const;
  /// Nothing if the module does not say.
  const std::optional<PlannedDevice> &plannedDevice() const;

  /// Runs the program. One value per argument: Array: element index (device
  /// byte address / bytes of a device element), Pool: byte address, Scalar:
  /// the value. Throws Error with the op's location, the core and the
  /// offending coordinate if an access leaves its view, the LX or device
  /// memory, or if a gather index is out of range; what kernels stored
  /// before stays stored.
  RunReport run(DeviceMemory &memory, const std::vector<int64_t> &argValues,
                const RunOptions &options = {}) const;

  /// Predicted device time of one run in seconds, as RunReport says. 0 until
  /// a run with RunOptions::report has been made.
  double predictedSeconds() const;

  /// When everything would happen on the device: the same plan walked without
  /// data. Indices of gathers are taken as distinct, other values read from
  /// memory as zero (TimingReport::dataDependent). Throws Error as run() does.
  TimingReport simulate(DeviceMemory &memory,
                        const std::vector<int64_t> &argValues,
                        const RunOptions &options,
                        const TimingOptions &timing) const;

  /// Throws Error, which names the argument and its range, if one that is a
  /// size has another value than the program is for. run() does this, too.
  void checkSizes(const std::vector<int64_t> &argValues) const;

private:
  void checkArgumentCount(const std::vector<int64_t> &argValues) const;
  TimingReport timingOf(DeviceMemory &memory,
                        const std::vector<int64_t> &argValues,
                        const RunOptions &options) const;
  std::unique_ptr<Impl> impl;
};

} // namespace spyre::runtime

#endif // SPYRE_RUNTIME_PROGRAM_PROGRAM_H
