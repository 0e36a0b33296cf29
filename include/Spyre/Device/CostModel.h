// SPDX-License-Identifier: Apache-2.0
//===- CostModel.h - Closed-form costs --------------------------*- C++ -*-===//
//
// One model for the planners and for the costs of the timing engine's tiles
// (DESIGN, "Cost"). Times are seconds, sizes bytes.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DEVICE_COSTMODEL_H
#define SPYRE_DEVICE_COSTMODEL_H

#include "Spyre/Device/DeviceSpec.h"

#include <optional>
#include <string_view>
#include <vector>

namespace spyre {

//===----------------------------------------------------------------------===//
// One device op
//===----------------------------------------------------------------------===//

/// An operand's traffic with device memory.
struct DeviceAccess {
  /// Distinct bytes, over all cores.
  double bytes = 0;
  /// Cores that read the same bytes; see numSharedReads().
  double numSharingCores = 1;
  bool isWrite = false;
};

/// The work of one device op. "PerCore" is the work of the core with the most.
struct OpWork {
  int64_t numCores = 1;
  double macsPerCore = 0; ///< of fp16, or as many as take the same time
  /// Rows of M that stream through the matrix unit of a core; few do not fill
  /// its pipeline. 0: enough.
  double ptRowsPerCore = 0;
  /// Element operations of the vector unit, times DeviceSpec::getWeight().
  double sfuElementsPerCore = 0;
  /// Part of their time in which nothing is loaded; see getExposedShare().
  double exposedSfuSeconds = 0;
  std::vector<DeviceAccess> deviceAccesses;
  /// Bytes of passes over tiles in LX, in the busier direction.
  double lxBytesPerCore = 0;
  /// Sum over the transfers on the data ring of bytes x hops.
  double ringByteHops = 0;
  /// Bytes over the busiest link and direction, or into or out of the core that
  /// moves most, one tile after another; 0: evenly spread.
  double ringBytesBusiestLink = 0;
  /// Hops of the tiles that a core waits for, one after another.
  double ringHopsPerCore = 0;
  /// Whether the cores add up parts of sums: the matrix unit is slower then.
  bool addsPartialProducts = false;
  /// Operands in device memory whose transfers' setup nothing hides.
  int64_t numExposedTransfers = 0;
};

enum class Bottleneck { PT, SFU, DeviceMemory, LX, Ring, Latency };

/// "pt", "sfu", "device memory", "lx", "ring", "latency".
const char *toString(Bottleneck bottleneck);

/// Parts of a cost; those of the first group overlap, the others add up.
struct OpCost {
  double ptSeconds = 0, sfuSeconds = 0, deviceMemorySeconds = 0, lxSeconds = 0,
         ringSeconds = 0;
  /// Part of deviceMemorySeconds in which the matrix unit waits, because its
  /// accumulators are stored.
  double drainSeconds = 0;
  double latencySeconds = 0;

  /// Largest of the first group plus the others.
  double seconds = 0;
  Bottleneck bottleneck = Bottleneck::DeviceMemory;
  /// Share of `seconds` that rests on guessed parameters.
  double guessedShare = 0;
};

/// Excludes DeviceSpec::launchSeconds, which a program pays once.
OpCost estimateOp(const OpWork &work, const DeviceSpec &spec = {});

/// How often device memory delivers what `numCores` cores read together: once
/// for every DeviceSpec::numBroadcastCores of them, and once for those left.
double numSharedReads(double numCores, const DeviceSpec &spec = {});

/// To move parts between the LX of `numCores` cores over the ring, spread
/// evenly: `bytes` arrive in all, counted once per core that gets them.
double ringShuffleSeconds(double bytes, int64_t numCores,
                          const DeviceSpec &spec = {});

//===----------------------------------------------------------------------===//
// One pass over tiles of a core
//===----------------------------------------------------------------------===//

/// The class of a scalar operation of MLIR's arith, math, linalg or tensor, by
/// name. Casts, which loading and storing do, constants and indices are free.
CostClass getCostClass(std::string_view operation);

/// Time of the matrix unit for `rows` rows of M (0: enough).
double ptSeconds(double macs, double rows, const DeviceSpec &spec,
                 MacFormat format = MacFormat::FP16);

/// The rows and columns of a product that the matrix unit of a core sums at
/// once. A core with more loads its operands again for each such tile.
struct AccumulatorTile {
  int64_t rows, columns;
};

/// For a core with `rows` rows and `columns` columns of the result.
/// Accumulators have four bytes, and one set of them fills while another is
/// stored; if rows or columns fit one side of a set, the other side is twice as
/// long. A batched product has as many rows and columns as the kernels' share
/// of LX lets it.
AccumulatorTile getAccumulatorTile(int64_t rows, int64_t columns,
                                   bool isBatched, const DeviceSpec &spec);

/// How far a tile reaches along one of the dimensions that make up its rows (or
/// columns): as far as there is room for, in whole multiples of `granularity`,
/// and one at least. `room` becomes what is left for the next dimension.
int64_t takeTileExtent(int64_t extent, int64_t granularity, int64_t &room);

/// Time of device memory for what all cores read and write at once, bytes. It
/// turns around between the directions. All transfers go on at the same rate,
/// so that reads of which one transfer serves several cores
/// (`transfersPerRead` below 1) leave more of it to writes, and fewer of their
/// bytes flow while something is written.
double deviceMemorySeconds(double readBytes, double writtenBytes,
                           const DeviceSpec &spec, double transfersPerRead = 1);

/// The share of a vector pass during which the core cannot load what is next.
/// It reads its operand in runs of `runBytes` contiguous bytes and loads the
/// first DeviceSpec::overlappedRunBytes of each while it works.
double getExposedShare(double runBytes, const DeviceSpec &spec);

/// Time of the vector unit for weighted elements.
double sfuSeconds(double elements, const DeviceSpec &spec);
/// Time of LX for bytes in one direction.
double lxSeconds(double bytes, const DeviceSpec &spec);

/// In how many pieces a kernel works on slices that fit LX, at most, and the
/// share of its time that another cut must save.
constexpr double kMaxPieces = 16, kLeastSavingOfPieces = 0.01;

/// Pieces that are in LX while none can be stored: every tile has two buffers,
/// two are loaded and two computed.
constexpr double kPiecesInFlight = 4;

/// Time of a core that works on its slice in up to `maxPieces` equal pieces,
/// and loads the next and stores the last while it computes one: the longer of
/// the two times, and one piece of the shorter. A cut must save a share of the
/// time with `setupSeconds`, which the result does not contain.
double overlapSeconds(double computeSeconds, double memorySeconds,
                      double setupSeconds, double maxPieces);

/// Fraction of the matrix unit's rate that `rows` rows reach:
/// min(1, sqrt(passes / 8)), passes = max(1, rows / 8).
double ptEfficiency(double rows, const DeviceSpec &spec = {});

//===----------------------------------------------------------------------===//
// The reference's matmul model, spec/passes.md "Pass 2"
//===----------------------------------------------------------------------===//

/// C[batch..., M, N] += A[batch..., M, K] x B[batch..., K, N] in elements,
/// unpadded.
struct MatmulShape {
  std::vector<int64_t> batch;
  int64_t m = 1, n = 1, k = 1;
  int64_t elemsPerStick = 64;
};

/// Slices per dimension; their product is the number of cores.
struct MatmulSplit {
  std::vector<int64_t> batch;
  int64_t m = 1, n = 1, k = 1;

  int64_t numCores() const;
  bool operator==(const MatmulSplit &other) const {
    return batch == other.batch && m == other.m && n == other.n && k == other.k;
  }
};

struct MatmulCost {
  double computeSeconds = 0, deviceMemorySeconds = 0, partialSumSeconds = 0,
         fillSeconds = 0;
  /// Their sum times (batch split)^1.4: a rank, not a time, if the batch is
  /// split.
  double cost = 0;
};

/// The price of a split. N and K count padded to sticks.
MatmulCost referenceMatmulCost(const MatmulShape &shape,
                               const MatmulSplit &split,
                               const DeviceSpec &spec = {});

/// The cheapest split into divisors of each batch dimension, M, the sticks of N
/// and the sticks of K, on at most `maxCores` cores. Enumerated in that order,
/// each ascending; of equal prices the first. Throws Error unless all sizes
/// and maxCores are positive.
MatmulSplit cheapestReferenceMatmulSplit(const MatmulShape &shape,
                                         int64_t maxCores,
                                         const DeviceSpec &spec = {});

/// "Pass 3", the default of the reference: output dimensions by decreasing size
/// (N in sticks; of equal sizes in loop order) each take their largest divisor
/// that the cores allow, then K in sticks. N of one stick counts as a reduction
/// dimension, which leaves K and N unsplit: which of two would be "the single
/// reduction dim" is not defined.
MatmulSplit defaultReferenceMatmulSplit(const MatmulShape &shape,
                                        int64_t maxCores);

/// The decision of Pass 2; none if it declines, as far as shapes say: M of one
/// row, N of one stick or K of one element (no row, stick or reduction
/// dimension then), fewer cores than the default split, or the default itself.
std::optional<MatmulSplit>
decideReferenceMatmulSplit(const MatmulShape &shape, int64_t maxCores,
                           const DeviceSpec &spec = {});

} // namespace spyre

#endif // SPYRE_DEVICE_COSTMODEL_H
