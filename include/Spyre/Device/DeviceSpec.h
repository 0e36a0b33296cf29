// SPDX-License-Identifier: Apache-2.0
//===- DeviceSpec.h - Every number of the device ----------------*- C++ -*-===//
//
// spec/hardware.md and the constants of spec/passes.md. No pass and no runtime
// file has a device number of its own. parameters() says for each where it is
// from; the defaults are what the public record gives.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DEVICE_DEVICESPEC_H
#define SPYRE_DEVICE_DEVICESPEC_H

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace spyre {

/// The origin of a number.
enum class Basis {
  Published, ///< the public record states it
  Fitted,    ///< fitted to published measurements
  Residual,  ///< what the fit leaves between prediction and measurement
  Guessed    ///< none of these; `source` says why this value
};

const char *toString(Basis basis);

/// How 0x7FFF and 0xFFFF of SEN169_FP16 read (spec/numerics.md, "The
/// non-number"): decodeDL16() and decodeDL16Strictly() of DL16.h.
enum class NonNumber : int64_t {
  Inf, ///< plus and minus infinity
  NaN  ///< the strict zDNN reading
};

/// The cost of a scalar operation on the vector unit.
enum class CostClass {
  Free,
  Simple,
  Transcendental,
  Accumulation ///< adds to, or compares with, what came before
};

/// What a kernel does, for how far its measured time may lie from the
/// predicted one. A kernel may be of several kinds.
enum class KernelKind {
  Movement,      ///< nothing but loads, stores and addresses
  Pointwise,     ///< arithmetic per element
  Reduction,     ///< sums, maxima, searches, scans
  Product,       ///< one matrix product
  BatchedProduct ///< products of which both operands have a batch
};
inline constexpr int kNumKernelKinds = 5;

/// A set of kernel kinds: a bit for each.
using KernelKinds = unsigned;
inline constexpr KernelKinds toKinds(KernelKind kind) {
  return 1u << static_cast<int>(kind);
}

/// Measured time over predicted time, between which 8 of 10 kernels lie: the
/// 10th and the 90th percentile.
struct TimeFactors {
  double low = 1, high = 1;
};

/// What the matrix unit multiplies: both factors have this format, or else
/// count as fp16.
enum class MacFormat { FP16, FP8, Int8, Int4 };

struct ParameterInfo;

struct DeviceSpec {
  /// The most cores that a card can have.
  static constexpr int64_t kMaxCores = 32;

  // The card.
  int64_t numCores = kMaxCores;
  int64_t numCoreletsPerCore = 2;
  int64_t numPTRows = 8;    ///< of the systolic array of one corelet
  int64_t numPTColumns = 8; ///< likewise
  int64_t numSFULanes = 64; ///< elements per cycle and corelet, any format
  double sfuTranscendentalWeight =
      12.6; ///< cycles of exp, log, sin, ... per lane
  double sfuAccumulationWeight = 12.6; ///< likewise, of a reduction
  double clockHertz = 1.1e9;
  double ptMacsPerSecondPerCore = 1.1264e12; ///< fp16
  double ptFP8Rate = 2;                      ///< times the rate of fp16
  double ptInt8Rate = 2;                     ///< likewise
  double ptInt4Rate = 4;                     ///< likewise
  /// Rate of the matrix unit while cores share a sum over K, as a fraction.
  double partialProductEfficiency = 0.5;
  int64_t accumulatorBytesPerCore = 128 << 10; ///< of the matrix unit
  /// LX that a batched product takes per row (and per column) of its
  /// accumulators: fewer rows fit less LX.
  int64_t batchedLXBytesPerRow = 12800;
  double cardOpsPerSecond = 300e12; ///< low precision, a lower bound
  double cardWatts = 75;
  int64_t pcieGeneration = 5;
  int64_t pcieLanes = 16;
  int64_t numCardsPerSystem = 8;
  int64_t numCardsPerZ17 = 48;
  int64_t systemMemoryBytes = int64_t{1} << 40;

  // LX scratchpad.
  int64_t lxBytesPerCore = 2 << 20;
  double lxReservedFraction = 0.2;          ///< kept for the back end
  double lxBytesPerSecondPerCore = 281.6e9; ///< each of reading and writing

  // Device memory.
  int64_t stickBytes = 128;
  int64_t deviceMemoryBytes = int64_t{128} << 30;
  double deviceMemoryBytesPerSecond = 204.8e9;  ///< the reference's constant
  double effectiveMemoryBytesPerSecond = 151e9; ///< what the timing uses
  /// Lost per byte of the direction that moves less, while both move.
  double memoryTurnaroundSecondsPerByte = 7.1e-12;
  double coreMemoryBytesPerSecond = 50e9; ///< what one core can read
  /// Lost per run of contiguous sticks, as if it were longer.
  double memoryRunOverheadBytes = 100;
  /// Of a run, what a core loads while its vector unit works on what it has.
  double overlappedRunBytes = 8192;
  int64_t maxSpanBytes = 256 << 20; ///< per core and tensor
  int64_t numBroadcastCores = 8;    ///< served by one read without loss
  int64_t numSegments = 8;
  int64_t segmentBytes = int64_t{16} << 30;
  int64_t programSegment = 7;

  // Ring.
  int64_t ringBytesPerCycle = 128; ///< per direction and link
  double ringHopCycles = 1;        ///< until a tile reaches the next core

  // Between cards.
  double cardLinkBytesPerSecond = 33e9; ///< of a card, in each direction
  double cardLinkSeconds = 5e-6; ///< of a message between cards, before bytes
  double machineLinkBytesPerSecond =
      12.5e9;                        ///< of a machine, in each direction
  double machineLinkSeconds = 10e-6; ///< likewise, between machines

  // Fixed costs.
  double launchSeconds = 4.2e-6; ///< of a program
  double transferSetupSeconds =
      0.42e-6; ///< per operand in device memory and op, before bytes flow
  double kernelRepeatSeconds = 0.2e-6; ///< of a call in a loop, but the first

  // Measured over predicted time of kernels whose shapes the fit did not see,
  // 10th and 90th percentile per KernelKind.
  double movementTimeLow = 0.88, movementTimeHigh = 1.20;
  double pointwiseTimeLow = 0.88, pointwiseTimeHigh = 1.21;
  double reductionTimeLow = 0.82, reductionTimeHigh = 1.13;
  double productTimeLow = 0.78, productTimeHigh = 1.18;
  double batchedProductTimeLow = 0.59, batchedProductTimeHigh = 1.46;

  // The reference's matmul model (spec/passes.md, "Pass 2"), which ranks
  // splits.
  double referenceMacsPerSecondPerCore = 1.536e12; ///< fp16
  double partialSumSecondsPerElementHop = 1.4e-10;
  double ptFillSeconds = 50e-6; ///< per halving of the passes below full rate
  int64_t numRowsPerPass = 8;
  int64_t numPassesForFullRate = 8;
  double batchSplitExponent = 1.4;

  NonNumber nonNumber = NonNumber::Inf;

  /// LX bytes per core that plans may use: int(2 MiB x 0.8) = 1,677,721.
  int64_t usableLXBytes() const;
  /// LX bytes per core that the lowering may use for live tiles.
  int64_t reservedLXBytes() const { return lxBytesPerCore - usableLXBytes(); }
  /// SFU elements of weight 1 per second and core.
  double sfuElementsPerSecondPerCore() const {
    return static_cast<double>(numSFULanes * numCoreletsPerCore) * clockHertz;
  }
  /// Cycles per element and lane.
  double getWeight(CostClass cost) const {
    return cost == CostClass::Free           ? 0
           : cost == CostClass::Simple       ? 1
           : cost == CostClass::Accumulation ? sfuAccumulationWeight
                                             : sfuTranscendentalWeight;
  }
  /// How many multiply-accumulates of a format take the time of one of fp16.
  double getMacRate(MacFormat format) const {
    return format == MacFormat::FP8    ? ptFP8Rate
           : format == MacFormat::Int8 ? ptInt8Rate
           : format == MacFormat::Int4 ? ptInt4Rate
                                       : 1;
  }
  /// Of a kernel of all these kinds: the lowest and the highest of them. One of
  /// no kind moves data.
  TimeFactors getTimeFactors(KernelKinds kinds) const;
  /// Bytes per second of one link of the ring in one direction.
  double ringBytesPerSecond() const {
    return static_cast<double>(ringBytesPerCycle) * clockHertz;
  }
  double ringHopSeconds() const { return ringHopCycles / clockHertz; }
  /// Bytes per second between host and card in one direction: lanes times the
  /// PCIe generation's rate (2.5, 5, 8, 16, 32, ... GT/s), less its line code.
  double hostLinkBytesPerSecond() const;

  /// All numbers above, in their order.
  static const std::vector<ParameterInfo> &parameters();

  /// Throws Error naming the first number that makes no sense.
  void verify() const;

  /// Every parameter with value, unit, basis, source and meaning; one whose
  /// value is not the default's has basis "given" and its default.
  std::string toJson() const;
  /// Reads an object that maps parameter names to values, or to objects with a
  /// "value" (so it reads toJson()); what is absent keeps its default. `name`
  /// names the text in errors. Throws Error for text that is no JSON, unknown
  /// names, wrong types, and what verify() rejects.
  static DeviceSpec fromJson(const std::string &text,
                             const std::string &name = "device spec");
  /// Throws Error if the file cannot be read, and as fromJson() does.
  static DeviceSpec fromJsonFile(const std::string &path);

  bool operator==(const DeviceSpec &other) const;
  bool operator!=(const DeviceSpec &other) const { return !(*this == other); }
};

/// Name, unit and origin of one number of DeviceSpec.
struct ParameterInfo {
  const char *name;
  std::variant<int64_t DeviceSpec::*, double DeviceSpec::*,
               NonNumber DeviceSpec::*>
      member;
  const char *unit;
  Basis basis;
  const char *source;
};

/// Returns an error message if work cannot be divided over so many cores, and
/// an empty string otherwise.
std::string checkNumCores(int64_t cores);

/// Never null for a name of DeviceSpec::parameters().
const ParameterInfo *findParameter(const std::string &name);

} // namespace spyre

#endif // SPYRE_DEVICE_DEVICESPEC_H
