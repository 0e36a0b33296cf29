// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/CostModel.h"
#include "Spyre/Support/Error.h"

#include <algorithm>
#include <cmath>

using namespace spyre;

const char *spyre::toString(Bottleneck bottleneck) {
  switch (bottleneck) {
  case Bottleneck::PT:
    return "pt";
  case Bottleneck::SFU:
    return "sfu";
  case Bottleneck::DeviceMemory:
    return "device memory";
  case Bottleneck::LX:
    return "lx";
  case Bottleneck::Ring:
    return "ring";
  case Bottleneck::Latency:
    return "latency";
  }
  throw Error("unknown bottleneck " +
              std::to_string(static_cast<int>(bottleneck)));
}

CostClass spyre::getCostClass(std::string_view operation) {
  static constexpr std::string_view kFree[] = {
      "arith.bitcast", "arith.constant",     "arith.extf",
      "arith.extsi",   "arith.extui",        "arith.index_cast",
      "arith.truncf",  "arith.index_castui", "arith.trunci",
      "linalg.index",  "tensor.extract"};
  // Operations of the math dialect that need no series.
  static constexpr std::string_view kSimple[] = {
      "math.absf",  "math.absi",     "math.ceil",     "math.clampf",
      "math.ctlz",  "math.copysign", "math.ctpop",    "math.cttz",
      "math.floor", "math.fma",      "math.ipowi",    "math.isfinite",
      "math.isinf", "math.isnan",    "math.isnormal", "math.round",
      "math.rsqrt", "math.sqrt",     "math.trunc",    "math.roundeven"};
  auto contains = [&](auto &names) {
    return std::find(std::begin(names), std::end(names), operation) !=
           std::end(names);
  };
  if (contains(kFree))
    return CostClass::Free;
  bool isMath = operation.substr(0, 5) == "math.";
  return isMath && !contains(kSimple) ? CostClass::Transcendental
                                      : CostClass::Simple;
}

static double numPasses(double rows, const DeviceSpec &spec) {
  return std::max(1.0, rows / static_cast<double>(spec.numRowsPerPass));
}

double spyre::ptEfficiency(double rows, const DeviceSpec &spec) {
  return std::min(1.0,
                  std::sqrt(numPasses(rows, spec) /
                            static_cast<double>(spec.numPassesForFullRate)));
}

double spyre::numSharedReads(double numCores, const DeviceSpec &spec) {
  // Quotients of byte counts are not exact.
  constexpr double kRounding = 1e-9;
  double reads = numCores / static_cast<double>(spec.numBroadcastCores);
  return std::max(1.0, std::ceil(reads - kRounding));
}

double spyre::ptSeconds(double macs, double rows, const DeviceSpec &spec,
                        MacFormat format) {
  return macs / (spec.ptMacsPerSecondPerCore * spec.getMacRate(format) *
                 (rows > 0 ? ptEfficiency(rows, spec) : 1.0));
}

AccumulatorTile spyre::getAccumulatorTile(int64_t rows, int64_t columns,
                                          bool isBatched,
                                          const DeviceSpec &spec) {
  constexpr int64_t kBytesPerSum = 4;
  int64_t numSums = spec.accumulatorBytesPerCore / kBytesPerSum;
  auto powerOfTwoUpTo = [](int64_t limit) {
    int64_t power = 1;
    while (2 * power <= limit)
      power *= 2;
    return power;
  };
  int64_t side =
      powerOfTwoUpTo(static_cast<int64_t>(std::sqrt(double(numSums / 2))));
  if (isBatched) {
    int64_t fitting = spec.reservedLXBytes() / spec.batchedLXBytesPerRow;
    side = std::min(side, powerOfTwoUpTo(fitting));
    return {side, side};
  }
  return {columns <= side ? 2 * side : side,
          columns > side && rows <= side ? 2 * side : side};
}

int64_t spyre::takeTileExtent(int64_t extent, int64_t granularity,
                              int64_t &room) {
  int64_t largest = std::max(room / granularity * granularity, granularity);
  int64_t taken = std::min(extent, largest);
  room = std::max<int64_t>(room / std::max<int64_t>(taken, 1), 1);
  return taken;
}

double spyre::deviceMemorySeconds(double readBytes, double writtenBytes,
                                  const DeviceSpec &spec,
                                  double transfersPerRead) {
  return (readBytes + writtenBytes) / spec.effectiveMemoryBytesPerSecond +
         std::min(readBytes, writtenBytes * transfersPerRead) *
             spec.memoryTurnaroundSecondsPerByte;
}

double spyre::getExposedShare(double runBytes, const DeviceSpec &spec) {
  return runBytes > spec.overlappedRunBytes
             ? 1 - spec.overlappedRunBytes / runBytes
             : 0;
}

double spyre::sfuSeconds(double elements, const DeviceSpec &spec) {
  return elements / spec.sfuElementsPerSecondPerCore();
}

double spyre::lxSeconds(double bytes, const DeviceSpec &spec) {
  return bytes / spec.lxBytesPerSecondPerCore;
}

double spyre::overlapSeconds(double computeSeconds, double memorySeconds,
                             double setupSeconds, double maxPieces) {
  double longer = std::max(computeSeconds, memorySeconds);
  double shorter = std::min(computeSeconds, memorySeconds);
  // A part too short to be worth a cut is not hidden.
  double uncut = kLeastSavingOfPieces * (longer + setupSeconds);
  return longer + std::max(shorter / maxPieces, std::min(shorter, uncut));
}

OpCost spyre::estimateOp(const OpWork &work, const DeviceSpec &spec) {
  OpCost cost;
  auto numCores = static_cast<double>(std::max<int64_t>(work.numCores, 1));
  cost.ptSeconds =
      ptSeconds(work.macsPerCore, work.ptRowsPerCore, spec) /
      (work.addsPartialProducts ? spec.partialProductEfficiency : 1);
  cost.sfuSeconds = sfuSeconds(work.sfuElementsPerCore, spec);
  double read = 0, written = 0, readPerCore = 0, writtenPerCore = 0;
  for (const DeviceAccess &access : work.deviceAccesses) {
    if (access.isWrite) {
      written += access.bytes;
      writtenPerCore += access.bytes / numCores;
      continue;
    }
    read += access.bytes * numSharedReads(access.numSharingCores, spec);
    readPerCore += access.bytes * access.numSharingCores / numCores;
  }
  double transfersPerRead =
      readPerCore > 0 ? std::min(read / (readPerCore * numCores), 1.0) : 1;
  // Cores load and store side by side.
  cost.deviceMemorySeconds = std::max(
      deviceMemorySeconds(read, written, spec, transfersPerRead),
      std::max(readPerCore, writtenPerCore) / spec.coreMemoryBytesPerSecond);
  if (work.macsPerCore > 0)
    cost.drainSeconds = std::min(
        cost.deviceMemorySeconds,
        std::max(deviceMemorySeconds(read, written, spec, transfersPerRead) -
                     deviceMemorySeconds(read, 0, spec),
                 writtenPerCore / spec.coreMemoryBytesPerSecond));
  cost.lxSeconds = lxSeconds(work.lxBytesPerCore, spec);
  // A ring of n cores has n links in each of two directions.
  double numLinks = 2 * numCores;
  cost.ringSeconds =
      std::max(work.ringByteHops / numLinks, work.ringBytesBusiestLink) /
          spec.ringBytesPerSecond() +
      work.ringHopsPerCore * spec.ringHopSeconds();
  cost.latencySeconds =
      static_cast<double>(work.numExposedTransfers) * spec.transferSetupSeconds;

  struct Part {
    double seconds;
    Bottleneck bottleneck;
    /// The parameter on which it rests.
    const char *parameter;
  };
  const Part overlapped[] = {
      {cost.deviceMemorySeconds - cost.drainSeconds, Bottleneck::DeviceMemory,
       "effectiveMemoryBytesPerSecond"},
      {cost.ptSeconds, Bottleneck::PT, "ptMacsPerSecondPerCore"},
      {cost.sfuSeconds - work.exposedSfuSeconds, Bottleneck::SFU,
       "numSFULanes"},
      {cost.lxSeconds, Bottleneck::LX, "lxBytesPerSecondPerCore"},
      {cost.ringSeconds, Bottleneck::Ring, "clockHertz"},
  };
  const Part added[] = {
      {work.exposedSfuSeconds, Bottleneck::SFU, "numSFULanes"},
      {cost.drainSeconds, Bottleneck::DeviceMemory,
       "effectiveMemoryBytesPerSecond"},
      {cost.latencySeconds, Bottleneck::Latency, "transferSetupSeconds"},
  };
  Part longest = overlapped[0];
  for (const Part &part : overlapped)
    if (part.seconds > longest.seconds)
      longest = part;
  double guessedSeconds = 0;
  auto add = [&](const Part &part) {
    cost.seconds += part.seconds;
    // Planners ask for many costs, and a look-up by name takes longer than
    // them.
    if (part.seconds > 0 &&
        findParameter(part.parameter)->basis == Basis::Guessed)
      guessedSeconds += part.seconds;
  };
  add(longest);
  for (const Part &part : added) {
    add(part);
    if (part.seconds > longest.seconds)
      longest = part;
  }
  cost.bottleneck = longest.bottleneck;
  cost.guessedShare = cost.seconds > 0 ? guessedSeconds / cost.seconds : 0;
  return cost;
}

double spyre::ringShuffleSeconds(double bytes, int64_t numCores,
                                 const DeviceSpec &spec) {
  if (numCores <= 1)
    return 0;
  auto cores = static_cast<double>(numCores);
  OpWork work;
  work.numCores = numCores;
  // A quarter of the way round on average; all of it ends in two links a core.
  work.ringByteHops = bytes * std::max(1.0, cores / 4);
  work.ringBytesBusiestLink = bytes / cores;
  // A core takes in one part after the other.
  work.ringHopsPerCore = cores * std::max(1.0, cores / 4);
  return estimateOp(work, spec).seconds;
}

//===----------------------------------------------------------------------===//
// The reference's matmul model
//===----------------------------------------------------------------------===//

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t product(const std::vector<int64_t> &values) {
  int64_t result = 1;
  for (int64_t value : values)
    result *= value;
  return result;
}

static void verifyShape(const MatmulShape &shape, int64_t maxCores) {
  bool isPositive = shape.m > 0 && shape.n > 0 && shape.k > 0 &&
                    shape.elemsPerStick > 0 && maxCores > 0;
  for (int64_t size : shape.batch)
    isPositive &= size > 0;
  if (!isPositive)
    throw Error("the sizes of a matmul and the number of cores must be "
                "positive to divide it");
}

/// Divisors of `size` up to `limit`, ascending.
static std::vector<int64_t> divisors(int64_t size, int64_t limit) {
  std::vector<int64_t> result;
  for (int64_t d = 1; d <= std::min(size, limit); ++d)
    if (size % d == 0)
      result.push_back(d);
  return result;
}

int64_t MatmulSplit::numCores() const { return product(batch) * m * n * k; }

MatmulCost spyre::referenceMatmulCost(const MatmulShape &shape,
                                      const MatmulSplit &split,
                                      const DeviceSpec &spec) {
  auto asDouble = [](int64_t value) { return static_cast<double>(value); };
  auto padded = [&](int64_t size) {
    return asDouble(ceilDiv(size, shape.elemsPerStick) * shape.elemsPerStick);
  };
  double b = 1;
  for (int64_t size : shape.batch)
    b *= asDouble(size);
  double m = asDouble(shape.m), n = padded(shape.n), k = padded(shape.k);
  double batchSplit = asDouble(product(split.batch));
  // "M div m" is exact: splits are divisors.
  double rows = asDouble(shape.m / split.m);

  MatmulCost cost;
  cost.computeSeconds =
      b * m * n * k / asDouble(split.numCores()) /
      (spec.referenceMacsPerSecondPerCore * ptEfficiency(rows, spec));
  constexpr double kBytesPerElement = 2;
  cost.deviceMemorySeconds =
      kBytesPerElement * b * (m * k + k * n + m * n) /
      spec.deviceMemoryBytesPerSecond *
      std::max(1.0, asDouble(std::max(split.m, split.n)) /
                        asDouble(spec.numBroadcastCores));
  cost.partialSumSeconds =
      asDouble(split.k - 1) * b * m * n * spec.partialSumSecondsPerElementHop;
  double passes = numPasses(rows, spec);
  double passesForFullRate = asDouble(spec.numPassesForFullRate);
  if (passes < passesForFullRate)
    cost.fillSeconds =
        spec.ptFillSeconds * std::log2(passesForFullRate / passes);
  cost.cost = (cost.computeSeconds + cost.deviceMemorySeconds +
               cost.partialSumSeconds + cost.fillSeconds) *
              std::pow(batchSplit, spec.batchSplitExponent);
  return cost;
}

MatmulSplit spyre::cheapestReferenceMatmulSplit(const MatmulShape &shape,
                                                int64_t maxCores,
                                                const DeviceSpec &spec) {
  verifyShape(shape, maxCores);
  int64_t numNSticks = ceilDiv(shape.n, shape.elemsPerStick);
  int64_t numKSticks = ceilDiv(shape.k, shape.elemsPerStick);
  MatmulSplit split, best;
  split.batch.assign(shape.batch.size(), 1);
  double bestCost = 0;
  bool isFirst = true;
  auto enumerateRest = [&](int64_t coresLeft) {
    for (int64_t m : divisors(shape.m, coresLeft))
      for (int64_t n : divisors(numNSticks, coresLeft / m))
        for (int64_t k : divisors(numKSticks, coresLeft / m / n)) {
          split.m = m;
          split.n = n;
          split.k = k;
          double cost = referenceMatmulCost(shape, split, spec).cost;
          if (isFirst || cost < bestCost) {
            best = split;
            bestCost = cost;
            isFirst = false;
          }
        }
  };
  auto enumerateBatch = [&](auto &self, size_t dim, int64_t coresLeft) -> void {
    if (dim == shape.batch.size())
      return enumerateRest(coresLeft);
    for (int64_t b : divisors(shape.batch[dim], coresLeft)) {
      split.batch[dim] = b;
      self(self, dim + 1, coresLeft / b);
    }
  };
  enumerateBatch(enumerateBatch, 0, maxCores);
  return best;
}

MatmulSplit spyre::defaultReferenceMatmulSplit(const MatmulShape &shape,
                                               int64_t maxCores) {
  verifyShape(shape, maxCores);
  MatmulSplit split;
  split.batch.assign(shape.batch.size(), 1);
  int64_t numNSticks = ceilDiv(shape.n, shape.elemsPerStick);
  struct Dim {
    int64_t size;
    int64_t *split;
    size_t position;
  };
  std::vector<Dim> outputs;
  for (size_t i = 0; i < shape.batch.size(); ++i)
    outputs.push_back({shape.batch[i], &split.batch[i], i});
  outputs.push_back({shape.m, &split.m, outputs.size()});
  if (numNSticks > 1)
    outputs.push_back({numNSticks, &split.n, outputs.size()});
  std::sort(outputs.begin(), outputs.end(), [](const Dim &a, const Dim &b) {
    return a.size != b.size ? a.size > b.size : a.position < b.position;
  });
  int64_t coresLeft = maxCores;
  for (const Dim &dim : outputs) {
    *dim.split = divisors(dim.size, coresLeft).back();
    coresLeft /= *dim.split;
  }
  if (numNSticks > 1)
    split.k = divisors(ceilDiv(shape.k, shape.elemsPerStick), coresLeft).back();
  return split;
}

std::optional<MatmulSplit>
spyre::decideReferenceMatmulSplit(const MatmulShape &shape, int64_t maxCores,
                                  const DeviceSpec &spec) {
  verifyShape(shape, maxCores);
  if (shape.m == 1 || shape.k == 1 || shape.n <= shape.elemsPerStick)
    return std::nullopt;
  MatmulSplit cheapest = cheapestReferenceMatmulSplit(shape, maxCores, spec);
  MatmulSplit standard = defaultReferenceMatmulSplit(shape, maxCores);
  if (cheapest.numCores() < standard.numCores() || cheapest == standard)
    return std::nullopt;
  return cheapest;
}
