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

TEST(CostModel, EachResource) {
  DeviceSpec spec;
  OpWork pt;
  pt.macsPerCore = 1.536e6;
  EXPECT_DOUBLE_EQ(estimateOp(pt).seconds, 1e-6);
  EXPECT_EQ(estimateOp(pt).bottleneck, Bottleneck::PT);
  EXPECT_EQ(estimateOp(pt).guessedShare, 0);
  // 16 rows are 2 of the 8 passes that fill the pipeline.
  pt.ptRowsPerCore = 16;
  EXPECT_DOUBLE_EQ(estimateOp(pt).seconds, 2e-6);

  OpWork sfu;
  sfu.sfuElementsPerCore = 192000;
  EXPECT_DOUBLE_EQ(estimateOp(sfu).seconds, 1e-6);
  EXPECT_EQ(estimateOp(sfu).bottleneck, Bottleneck::SFU);
  EXPECT_EQ(estimateOp(sfu).guessedShare, 1);

  OpWork memory;
  memory.deviceAccesses = {{380e3, 1, false}, {380e3, 1, true}};
  EXPECT_DOUBLE_EQ(estimateOp(memory).seconds, 2e-6);
  EXPECT_EQ(estimateOp(memory).bottleneck, Bottleneck::DeviceMemory);

  OpWork lx;
  lx.lxBytesPerCore = 384e3;
  EXPECT_DOUBLE_EQ(estimateOp(lx).seconds, 1e-6);
  EXPECT_EQ(estimateOp(lx).bottleneck, Bottleneck::LX);

  // 192 bytes per ns and link; 8 links in a ring of 4.
  OpWork ring;
  ring.numCores = 4;
  ring.ringByteHops = 8 * 192e3;
  EXPECT_DOUBLE_EQ(estimateOp(ring).seconds, 1e-6);
  ring.ringBytesBusiestLink = 2 * 192e3;
  EXPECT_DOUBLE_EQ(estimateOp(ring).seconds, 2e-6);
  EXPECT_EQ(estimateOp(ring).bottleneck, Bottleneck::Ring);

  OpWork partial;
  partial.partialSumElementHops = 1000;
  EXPECT_DOUBLE_EQ(estimateOp(partial).seconds, 1.4e-7);
  EXPECT_EQ(estimateOp(partial).bottleneck, Bottleneck::PartialSums);

  OpWork dependent;
  dependent.numExposedTransfers = 2;
  EXPECT_DOUBLE_EQ(estimateOp(dependent).seconds,
                   2 * spec.transferSetupSeconds);
  EXPECT_EQ(estimateOp(dependent).bottleneck, Bottleneck::Latency);
}

TEST(CostModel, BroadcastIsFreeUpToEightCores) {
  OpWork work;
  work.numCores = 32;
  work.deviceAccesses = {{1e6, 8, false}};
  double shared = estimateOp(work).seconds;
  work.deviceAccesses[0].numSharingCores = 1;
  EXPECT_DOUBLE_EQ(estimateOp(work).seconds, shared);
  work.deviceAccesses[0].numSharingCores = 32;
  EXPECT_DOUBLE_EQ(estimateOp(work).seconds, 4 * shared);
  // Writes are not broadcast.
  work.deviceAccesses[0].isWrite = true;
  EXPECT_DOUBLE_EQ(estimateOp(work).seconds, shared);
}

TEST(CostModel, ResourcesOverlapAndSumsDoNot) {
  OpWork work;
  work.macsPerCore = 1.536e6;             // 1 us
  work.sfuElementsPerCore = 3 * 192000.0; // 3 us
  work.lxBytesPerCore = 2 * 384e3;        // 2 us
  work.partialSumElementHops = 1e6 / 140; // 1 us
  OpCost cost = estimateOp(work);
  EXPECT_NEAR(cost.seconds, 4e-6, 1e-15);
  EXPECT_EQ(cost.bottleneck, Bottleneck::SFU);
  EXPECT_NEAR(cost.guessedShare, 0.75, 1e-9);
  EXPECT_STREQ(toString(cost.bottleneck), "sfu");
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
