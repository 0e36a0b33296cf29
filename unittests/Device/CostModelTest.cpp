// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/CostModel.h"
#include "Spyre/Support/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace spyre;

namespace {

//===----------------------------------------------------------------------===//
// One device op
//===----------------------------------------------------------------------===//

TEST(CostModel, ScalarOperationsHaveClasses) {
  // What the device has a unit for, or what a step of Newton gives.
  for (const char *name :
       {"arith.addf", "arith.divf", "arith.cmpf", "arith.select",
        "arith.sitofp", "math.rsqrt", "math.sqrt", "math.floor", "math.ipowi"})
    EXPECT_EQ(getCostClass(name), CostClass::Simple) << name;
  for (const char *name : {"math.exp", "math.log1p", "math.tanh", "math.erfc",
                           "math.powf", "math.atan2", "math.cbrt"})
    EXPECT_EQ(getCostClass(name), CostClass::Transcendental) << name;
  for (const char *name : {"arith.constant", "arith.truncf", "arith.extsi",
                           "linalg.index", "tensor.extract"})
    EXPECT_EQ(getCostClass(name), CostClass::Free) << name;
  DeviceSpec spec;
  spec.sfuTranscendentalWeight = 3;
  EXPECT_EQ(spec.getWeight(CostClass::Free), 0);
  EXPECT_EQ(spec.getWeight(CostClass::Simple), 1);
  EXPECT_EQ(spec.getWeight(CostClass::Transcendental), 3);
}

TEST(CostModel, Nothing) {
  OpCost cost = estimateOp({});
  EXPECT_EQ(cost.seconds, 0);
  EXPECT_EQ(cost.guessedShare, 0);
}

TEST(CostModel, Overlap) {
  // One piece: nothing overlaps.
  EXPECT_DOUBLE_EQ(overlapSeconds(3, 5, 0, 1), 8);
  // In four the last quarter of the shorter shows.
  EXPECT_DOUBLE_EQ(overlapSeconds(3, 5, 0, 4), 5.75);
  EXPECT_DOUBLE_EQ(overlapSeconds(5, 3, 0, 4), 5.75);
  EXPECT_DOUBLE_EQ(overlapSeconds(3, 0, 0, 4), 3);
  // Not cut for less than 1 %: of 8 with the setup, 3 even of 395.
  EXPECT_DOUBLE_EQ(overlapSeconds(0.06, 5, 3, 4), 5.06);
  EXPECT_DOUBLE_EQ(overlapSeconds(3, 5, 390, 4), 8);
}

/// Round numbers, whatever the fit to measurements gives.
DeviceSpec roundSpec() {
  DeviceSpec spec;
  spec.clockHertz = 1e9;
  spec.numSFULanes = 4;
  spec.ptMacsPerSecondPerCore = 1e12;
  spec.partialProductEfficiency = 0.5;
  spec.lxBytesPerSecondPerCore = 256e9;
  spec.effectiveMemoryBytesPerSecond = 100e9;
  spec.memoryTurnaroundSecondsPerByte = 5e-12;
  spec.coreMemoryBytesPerSecond = 50e9;
  spec.numBroadcastCores = 8;
  spec.transferSetupSeconds = 1e-6;
  return spec;
}

TEST(CostModel, EachResource) {
  DeviceSpec spec = roundSpec();
  OpWork pt;
  pt.macsPerCore = 1e6;
  EXPECT_DOUBLE_EQ(estimateOp(pt, spec).seconds, 1e-6);
  EXPECT_EQ(estimateOp(pt, spec).bottleneck, Bottleneck::PT);
  EXPECT_EQ(estimateOp(pt, spec).guessedShare, 0);
  // 16 rows are 2 of the 8 passes that fill the pipeline.
  pt.ptRowsPerCore = 16;
  EXPECT_DOUBLE_EQ(estimateOp(pt, spec).seconds, 2e-6);
  pt.addsPartialProducts = true;
  EXPECT_DOUBLE_EQ(estimateOp(pt, spec).seconds, 4e-6);

  // Eight elements per ns and core.
  OpWork sfu;
  sfu.sfuElementsPerCore = 8000;
  EXPECT_DOUBLE_EQ(estimateOp(sfu, spec).seconds, 1e-6);
  EXPECT_EQ(estimateOp(sfu, spec).bottleneck, Bottleneck::SFU);

  OpWork lx;
  lx.lxBytesPerCore = 256e3;
  EXPECT_DOUBLE_EQ(estimateOp(lx, spec).seconds, 1e-6);
  EXPECT_EQ(estimateOp(lx, spec).bottleneck, Bottleneck::LX);
  EXPECT_EQ(estimateOp(lx, spec).guessedShare, 1);

  // 128 bytes per ns and link; 8 links in a ring of 4.
  OpWork ring;
  ring.numCores = 4;
  ring.ringByteHops = 8 * 128e3;
  EXPECT_DOUBLE_EQ(estimateOp(ring, spec).seconds, 1e-6);
  ring.ringBytesBusiestLink = 2 * 128e3;
  EXPECT_DOUBLE_EQ(estimateOp(ring, spec).seconds, 2e-6);
  EXPECT_EQ(estimateOp(ring, spec).bottleneck, Bottleneck::Ring);
  // A hop takes a cycle.
  ring.ringHopsPerCore = 1000;
  EXPECT_DOUBLE_EQ(estimateOp(ring, spec).seconds,
                   2e-6 + 1000 * spec.ringHopSeconds());

  OpWork dependent;
  dependent.numExposedTransfers = 2;
  EXPECT_DOUBLE_EQ(estimateOp(dependent, spec).seconds, 2e-6);
  EXPECT_EQ(estimateOp(dependent, spec).bottleneck, Bottleneck::Latency);
}

TEST(CostModel, NarrowFactorsAreFaster) {
  DeviceSpec spec = roundSpec();
  double wide = ptSeconds(1e6, 0, spec);
  EXPECT_DOUBLE_EQ(ptSeconds(1e6, 0, spec, MacFormat::FP16), wide);
  EXPECT_DOUBLE_EQ(ptSeconds(1e6, 0, spec, MacFormat::FP8), wide / 2);
  EXPECT_DOUBLE_EQ(ptSeconds(1e6, 0, spec, MacFormat::Int8), wide / 2);
  EXPECT_DOUBLE_EQ(ptSeconds(1e6, 0, spec, MacFormat::Int4), wide / 4);
  spec.ptFP8Rate = 3;
  EXPECT_DOUBLE_EQ(ptSeconds(1e6, 0, spec, MacFormat::FP8), wide / 3);
  // Few rows fill the pipeline as little.
  EXPECT_DOUBLE_EQ(ptSeconds(1e6, 1, spec, MacFormat::FP8),
                   ptSeconds(1e6, 1, spec) / 3);
}

TEST(CostModel, DeviceMemoryTurnsAround) {
  DeviceSpec spec = roundSpec();
  EXPECT_DOUBLE_EQ(deviceMemorySeconds(2e6, 0, spec), 20e-6);
  EXPECT_DOUBLE_EQ(deviceMemorySeconds(0, 2e6, spec), 20e-6);
  EXPECT_DOUBLE_EQ(deviceMemorySeconds(1e6, 1e6, spec), 25e-6);
  EXPECT_DOUBLE_EQ(deviceMemorySeconds(1.5e6, 0.5e6, spec), 22.5e-6);
  // While 1e6 bytes are written, a quarter as many flow that cores share.
  EXPECT_DOUBLE_EQ(deviceMemorySeconds(1e6, 1e6, spec, 0.25), 21.25e-6);
  EXPECT_DOUBLE_EQ(deviceMemorySeconds(0.1e6, 1e6, spec, 0.25), 11.5e-6);
  OpWork memory;
  memory.numCores = 32;
  memory.deviceAccesses = {{1e6, 1, false}, {1e6, 1, true}};
  EXPECT_DOUBLE_EQ(estimateOp(memory, spec).seconds, 25e-6);
  EXPECT_EQ(estimateOp(memory, spec).bottleneck, Bottleneck::DeviceMemory);
  memory.deviceAccesses[0].numSharingCores =
      static_cast<double>(spec.numBroadcastCores);
  EXPECT_DOUBLE_EQ(estimateOp(memory, spec).seconds,
                   deviceMemorySeconds(1e6, 1e6, spec,
                                       1.0 / double(spec.numBroadcastCores)));
  // One core loads and stores at its own pace, side by side.
  memory.numCores = 1;
  memory.deviceAccesses = {{2e6, 1, false}, {1e6, 1, true}};
  EXPECT_DOUBLE_EQ(estimateOp(memory, spec).seconds, 40e-6);
}

TEST(CostModel, TheMatrixUnitWaitsForStores) {
  DeviceSpec spec = roundSpec();
  OpWork work;
  work.numCores = 32;
  work.macsPerCore = 50e6; // 50 us
  // 30 us of loads, 10 us of stores and 5 us of turning around.
  work.deviceAccesses = {{3e6, 1, false}, {1e6, 1, true}};
  EXPECT_DOUBLE_EQ(estimateOp(work, spec).seconds, 65e-6);
  EXPECT_EQ(estimateOp(work, spec).bottleneck, Bottleneck::PT);
  work.macsPerCore = 1;
  EXPECT_DOUBLE_EQ(estimateOp(work, spec).seconds, 45e-6);
  EXPECT_EQ(estimateOp(work, spec).bottleneck, Bottleneck::DeviceMemory);
}

TEST(CostModel, BroadcastIsFreeForSomeCores) {
  DeviceSpec spec = roundSpec();
  OpWork work;
  work.numCores = 32;
  work.deviceAccesses = {{1e6, 8, false}};
  double shared = estimateOp(work, spec).seconds;
  work.deviceAccesses[0].numSharingCores = 1;
  EXPECT_DOUBLE_EQ(estimateOp(work, spec).seconds, shared);
  work.deviceAccesses[0].numSharingCores = 32;
  EXPECT_DOUBLE_EQ(estimateOp(work, spec).seconds, 4 * shared);
  // Cores that are left over need a read of their own.
  work.deviceAccesses[0].numSharingCores = 12;
  EXPECT_DOUBLE_EQ(estimateOp(work, spec).seconds, 2 * shared);
  work.deviceAccesses[0].numSharingCores = 16;
  EXPECT_DOUBLE_EQ(estimateOp(work, spec).seconds, 2 * shared);
  // Writes are not broadcast.
  work.deviceAccesses[0].isWrite = true;
  EXPECT_DOUBLE_EQ(estimateOp(work, spec).seconds, shared);
}

TEST(CostModel, AccumulatorsLimitTiles) {
  DeviceSpec spec;
  spec.accumulatorBytesPerCore = 128 << 10;
  spec.lxReservedFraction = 0.2;
  spec.batchedLXBytesPerRow = 12800;
  auto tile = [&](int64_t rows, int64_t columns, bool isBatched = false) {
    AccumulatorTile t = getAccumulatorTile(rows, columns, isBatched, spec);
    return std::make_pair(t.rows, t.columns);
  };
  // Two sets of 128 x 128, or one with a longer side.
  EXPECT_EQ(tile(129, 129), std::make_pair(int64_t(128), int64_t(128)));
  EXPECT_EQ(tile(4096, 128), std::make_pair(int64_t(256), int64_t(128)));
  EXPECT_EQ(tile(1, 4096), std::make_pair(int64_t(128), int64_t(256)));
  EXPECT_EQ(tile(0, 0), std::make_pair(int64_t(256), int64_t(128)));
  // 419,430 bytes of LX have room for 32 rows and columns.
  EXPECT_EQ(tile(512, 512, true), std::make_pair(int64_t(32), int64_t(32)));
  spec.lxReservedFraction = 0.8;
  EXPECT_EQ(tile(512, 512, true), std::make_pair(int64_t(128), int64_t(128)));
  spec.lxReservedFraction = 0;
  EXPECT_EQ(tile(512, 512, true), std::make_pair(int64_t(1), int64_t(1)));
}

TEST(CostModel, ResourcesOverlapAndSumsDoNot) {
  OpWork work;
  work.macsPerCore = 1e6;            // 1 us
  work.sfuElementsPerCore = 3 * 8e3; // 3 us
  work.lxBytesPerCore = 2 * 256e3;   // 2 us
  work.numExposedTransfers = 1;      // 1 us
  OpCost cost = estimateOp(work, roundSpec());
  EXPECT_NEAR(cost.seconds, 4e-6, 1e-15);
  EXPECT_EQ(cost.bottleneck, Bottleneck::SFU);
  // The width of the vector unit is a guess, and so is the setup.
  EXPECT_EQ(cost.guessedShare, 1);
  EXPECT_STREQ(toString(cost.bottleneck), "sfu");
}

TEST(CostModel, LongRunsExposeTheVectorUnit) {
  DeviceSpec spec = roundSpec();
  spec.overlappedRunBytes = 8192;
  EXPECT_EQ(getExposedShare(0, spec), 0);
  EXPECT_EQ(getExposedShare(8192, spec), 0);
  EXPECT_DOUBLE_EQ(getExposedShare(4 * 8192, spec), 0.75);
  // 10 us of reading; 4 us of the vector unit, of which one cannot overlap.
  OpWork work;
  work.numCores = 4;
  work.deviceAccesses.push_back({1e6});
  work.sfuElementsPerCore = 4 * 8e3;
  EXPECT_NEAR(estimateOp(work, spec).seconds, 10e-6, 1e-15);
  work.exposedSfuSeconds = 1e-6;
  EXPECT_NEAR(estimateOp(work, spec).seconds, 11e-6, 1e-15);
  // 16 us of the vector unit: what it does beside the loads decides.
  work.sfuElementsPerCore = 16 * 8e3;
  EXPECT_NEAR(estimateOp(work, spec).seconds, 16e-6, 1e-15);
  work.exposedSfuSeconds = 16e-6;
  EXPECT_NEAR(estimateOp(work, spec).seconds, 26e-6, 1e-15);
}

TEST(CostModel, UsesTheSpecGiven) {
  DeviceSpec slow;
  slow.ptMacsPerSecondPerCore /= 2;
  OpWork work;
  work.macsPerCore = 1e6;
  EXPECT_DOUBLE_EQ(estimateOp(work, slow).seconds,
                   2 * estimateOp(work).seconds);
}

//===----------------------------------------------------------------------===//
// The reference's matmul model
//===----------------------------------------------------------------------===//

MatmulShape matmul(int64_t m, int64_t n, int64_t k,
                   std::vector<int64_t> batch = {1}) {
  MatmulShape shape;
  shape.batch = std::move(batch);
  shape.m = m;
  shape.n = n;
  shape.k = k;
  return shape;
}

MatmulSplit split(int64_t b, int64_t m, int64_t n, int64_t k) {
  return {{b}, m, n, k};
}

TEST(ReferenceMatmul, PartsOfTheCost) {
  // M8 N1024 K1024 on (1,4,8,1), by hand:
  // compute 8*1024*1024/32 / (1536000 * sqrt(1/8)) = 0.4827 us;
  // memory 2*(8192 + 1048576 + 8192)/204800 * 1 = 10.4 us;
  // partial sums 0; fill 50*log2(8) = 150 us.
  MatmulCost cost =
      referenceMatmulCost(matmul(8, 1024, 1024), split(1, 4, 8, 1));
  EXPECT_NEAR(cost.computeSeconds * 1e6, 0.4827, 1e-4);
  EXPECT_NEAR(cost.deviceMemorySeconds * 1e6, 10.4, 1e-9);
  EXPECT_EQ(cost.partialSumSeconds, 0);
  EXPECT_NEAR(cost.fillSeconds * 1e6, 150, 1e-9);
  EXPECT_NEAR(cost.cost * 1e6, 160.9, 0.05);
  // K split: (2-1)*8*1024*1.4e-4 = 1.147 us. m = 16: half the bandwidth.
  cost = referenceMatmulCost(matmul(16, 1024, 1024), split(1, 16, 1, 2));
  EXPECT_NEAR(cost.partialSumSeconds * 1e6, 2.29376, 1e-9);
  EXPECT_NEAR(cost.deviceMemorySeconds * 1e6,
              2 * 2 * (2 * 16384 + 1048576) / 204800.0, 1e-9);
  // A batch split is punished by b^1.4: 4*64^3/2/1536000 = 0.3413 us compute,
  // 2*4*3*64^2/204800 = 0.48 us memory.
  double halves =
      referenceMatmulCost(matmul(64, 64, 64, {4}), split(2, 1, 1, 1)).cost;
  EXPECT_NEAR(halves * 1e6, (0.34133 + 0.48) * std::pow(2.0, 1.4), 1e-4);
  // N and K count padded.
  EXPECT_EQ(referenceMatmulCost(matmul(8, 65, 1), split(1, 1, 1, 1)).cost,
            referenceMatmulCost(matmul(8, 128, 64), split(1, 1, 1, 1)).cost);
}

struct WorkedExample {
  int64_t m, n, k;
  MatmulSplit cheapest;
  double microseconds; // 0: not given
};

TEST(ReferenceMatmul, WorkedExamples) {
  // spec/passes.md, "Pass 2", [probe, 32 cores].
  const WorkedExample examples[] = {
      {8, 1024, 1024, split(1, 4, 8, 1), 160.9},
      {1, 4096, 4096, split(1, 1, 8, 2), 0},
      {128, 4096, 4096, split(1, 2, 8, 1), 0},
      {512, 4096, 4096, split(1, 4, 8, 1), 379.6},
      {2048, 4096, 4096, split(1, 4, 8, 1), 1026.7},
      {64, 12800, 4096, split(1, 4, 8, 1), 0},
  };
  for (const WorkedExample &e : examples) {
    MatmulShape shape = matmul(e.m, e.n, e.k);
    MatmulSplit found = cheapestReferenceMatmulSplit(shape, 32);
    EXPECT_EQ(found, e.cheapest)
        << "M" << e.m << " N" << e.n << " K" << e.k << ": " << found.m << ","
        << found.n << "," << found.k;
    if (e.microseconds != 0)
      EXPECT_NEAR(referenceMatmulCost(shape, found).cost * 1e6, e.microseconds,
                  0.05);
  }
}

TEST(ReferenceMatmul, Decisions) {
  EXPECT_EQ(decideReferenceMatmulSplit(matmul(8, 1024, 1024), 32),
            split(1, 4, 8, 1));
  // No row variable.
  EXPECT_EQ(decideReferenceMatmulSplit(matmul(1, 4096, 4096), 32),
            std::nullopt);
  EXPECT_EQ(defaultReferenceMatmulSplit(matmul(1, 4096, 4096), 32),
            split(1, 1, 32, 1));
  // 16 cores, but the default takes 32.
  EXPECT_EQ(decideReferenceMatmulSplit(matmul(128, 4096, 4096), 32),
            std::nullopt);
  EXPECT_EQ(defaultReferenceMatmulSplit(matmul(128, 4096, 4096), 32),
            split(1, 32, 1, 1));
  EXPECT_EQ(decideReferenceMatmulSplit(matmul(512, 4096, 4096), 32),
            split(1, 4, 8, 1));
  EXPECT_EQ(decideReferenceMatmulSplit(matmul(64, 12800, 4096), 32),
            split(1, 4, 8, 1));
  // One stick of N.
  EXPECT_EQ(decideReferenceMatmulSplit(matmul(512, 64, 4096), 32),
            std::nullopt);
  // Equal to the default.
  EXPECT_EQ(decideReferenceMatmulSplit(matmul(512, 4096, 4096), 1),
            std::nullopt);
}

TEST(ReferenceMatmul, DefaultGivesCoresLeftToK) {
  // 7 rows and 5 sticks of N are odd; K has 16 sticks.
  EXPECT_EQ(defaultReferenceMatmulSplit(matmul(7, 5 * 64, 1024), 8),
            split(1, 7, 1, 1));
  EXPECT_EQ(defaultReferenceMatmulSplit(matmul(2, 2 * 64, 1024), 32),
            split(1, 2, 2, 8));
  // Batch dimensions are output dimensions, larger ones first.
  EXPECT_EQ(defaultReferenceMatmulSplit(matmul(4, 128, 64, {8, 2}), 32),
            (MatmulSplit{{8, 1}, 4, 1, 1}));
}

TEST(ReferenceMatmul, SplitsDivideAndFit) {
  for (int64_t cores : {1, 3, 7, 32})
    for (int64_t m : {1, 6, 100})
      for (int64_t n : {64, 192, 1000}) {
        MatmulShape shape = matmul(m, n, 640, {2, 3});
        for (const MatmulSplit &s :
             {cheapestReferenceMatmulSplit(shape, cores),
              defaultReferenceMatmulSplit(shape, cores)}) {
          EXPECT_LE(s.numCores(), cores);
          EXPECT_EQ(2 % s.batch[0] + 3 % s.batch[1] + m % s.m +
                        ((n + 63) / 64) % s.n + 10 % s.k,
                    0);
        }
      }
}

TEST(ReferenceMatmul, RejectsBadShapes) {
  EXPECT_THROW(cheapestReferenceMatmulSplit(matmul(0, 64, 64), 32), Error);
  EXPECT_THROW(cheapestReferenceMatmulSplit(matmul(8, 64, 64, {0}), 32), Error);
  EXPECT_THROW(defaultReferenceMatmulSplit(matmul(8, 64, 64), 0), Error);
}

} // namespace
