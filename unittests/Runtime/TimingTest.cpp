// SPDX-License-Identifier: Apache-2.0
#include "ReplaceAll.h"
#include "Spyre/Runtime/Loader/LoaderFile.h"

#include "gtest/gtest.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

using namespace spyre;
using namespace spyre::runtime;

namespace {
/// Numbers that are easy to reckon with.
DeviceSpec simpleSpec() {
  DeviceSpec spec;
  spec.launchSeconds = 0;
  spec.transferSetupSeconds = 0;
  spec.effectiveMemoryBytesPerSecond = 128e9; // a stick per ns
  spec.coreMemoryBytesPerSecond = 128e9;
  spec.memoryTurnaroundSecondsPerByte = 0;
  spec.memoryRunOverheadBytes = 0;
  spec.overlappedRunBytes = 1e12;
  spec.numBroadcastCores = 8;
  spec.kernelRepeatSeconds = 0;
  spec.sfuAccumulationWeight = 1;
  spec.clockHertz = 1e9;
  spec.numSFULanes = 64; // 128 elements per ns and core
  spec.numCoreletsPerCore = 2;
  spec.sfuTranscendentalWeight = 4;
  spec.lxBytesPerSecondPerCore = 1e15;
  spec.ringBytesPerCycle = 128;
  spec.ringHopCycles = 1;
  return spec;
}

std::string replaced(std::string text,
                     const std::map<std::string, std::string> &values) {
  for (const auto &[key, value] : values)
    replaceAll(text, key, value);
  return text;
}

/// `cores` cores take `tiles` tiles of 8,192 f16 (128 sticks) each, apply `op`
/// and store. Core c starts at tile c x `stride` of x.
std::string streaming(int cores, int tiles, int stride, const std::string &op) {
  return replaced(R"(
#all = affine_set<(i) : (i >= 0, -i + 4194303 >= 0)>
#part = affine_set<(i) : (i >= 0, -i + 8191 >= 0)>
#order = affine_map<(i) -> (i)>
func.func @stream(%x: index, %y: index) attributes {grid = [CORES]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tiles = arith.constant TILES : index
  %stride = arith.constant STRIDE : index
  %size = arith.constant 8192 : index
  %core = ktdp.get_compute_tile_id : index
  %first = arith.muli %core, %stride : index
  %mine = arith.muli %core, %tiles : index
  %xv = ktdp.construct_memory_view %x, sizes: [4194304], strides: [1] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<4194304xf16>
  %yv = ktdp.construct_memory_view %y, sizes: [4194304], strides: [1] {coordinate_set = #all, memory_space = #ktdp.memory_space<global>} : memref<4194304xf16>
  scf.for %i = %c0 to %tiles step %c1 {
    %a = arith.addi %first, %i : index
    %from = arith.muli %a, %size : index
    %b = arith.addi %mine, %i : index
    %to = arith.muli %b, %size : index
    %xt = ktdp.construct_access_tile %xv[%from] {access_tile_set = #part, access_tile_order = #order} : memref<4194304xf16> -> !ktdp.access_tile<8192xindex>
    %yt = ktdp.construct_access_tile %yv[%to] {access_tile_set = #part, access_tile_order = #order} : memref<4194304xf16> -> !ktdp.access_tile<8192xindex>
    %d = ktdp.load %xt : !ktdp.access_tile<8192xindex> -> tensor<8192xf16>
    %r = OP : tensor<8192xf16>
    ktdp.store %r, %yt : tensor<8192xf16>, !ktdp.access_tile<8192xindex>
  }
  return
}
)",
                  {{"CORES", std::to_string(cores)},
                   {"TILES", std::to_string(tiles)},
                   {"STRIDE", std::to_string(stride)},
                   {"OP", op}});
}

class Timing : public testing::Test {
protected:
  TimingReport simulate(const std::string &text, bool overlap = true,
                        DeviceSpec spec = simpleSpec()) {
    auto program = loadProgramBytes(text, {}, "timed.mlir");
    std::vector<int64_t> values;
    for (const ArgumentInfo &info : program->arguments())
      values.push_back(int64_t(memory.allocate(8 << 20)) /
                       std::max<int64_t>(info.elementSizeInBytes, 1));
    TimingOptions options;
    options.spec = spec;
    options.overlap = overlap;
    options.events = true;
    return program->simulate(memory, values, {}, options);
  }
  DeviceMemory memory;
};
} // namespace

constexpr double ns = 1e-9;
const char kExp[] = "math.exp %d";       // 4 x 8192 / 128 = 256 ns
const char kAdd[] = "arith.addf %d, %d"; // 64 ns
// A tile of 128 sticks takes 128 ns alone.

TEST_F(Timing, OverlapsWhatDependencesAllow) {
  // Computing decides: the first load, eight tiles, the last store.
  TimingReport report = simulate(streaming(1, 8, 0, kExp));
  EXPECT_NEAR(report.predictedSeconds, (128 + 8 * 256 + 128) * ns, 1e-12);
  EXPECT_EQ(report.bottleneck, "sfu");
  EXPECT_NEAR(report.utilisation[int(TimedUnit::SFU)], 8. * 256 / 2304, 1e-9);
  // Without overlap everything adds up.
  report = simulate(streaming(1, 8, 0, kExp), false);
  EXPECT_NEAR(report.predictedSeconds, 8 * (128 + 256 + 128) * ns, 1e-12);
  // Memory decides: all bytes, never idle.
  report = simulate(streaming(1, 8, 0, kAdd));
  EXPECT_NEAR(report.predictedSeconds, 16 * 128 * ns, 1e-12);
  EXPECT_EQ(report.bottleneck, "device memory");
  EXPECT_TRUE(report.kernels[0].isMemoryBound);
}

TEST_F(Timing, LongRunsWaitForPasses) {
  // Eight tiles of 16 KiB are one run. If none of it is loaded early, a load
  // begins when the pass before ends, together with the store of its result.
  DeviceSpec spec = simpleSpec();
  auto secondsOf = [&](double overlappedRunBytes, bool overlap = true) {
    spec.overlappedRunBytes = overlappedRunBytes;
    return simulate(streaming(1, 8, 0, kExp), overlap, spec).predictedSeconds;
  };
  double exposed = (128 + 256 + 7 * (256 + 256) + 128) * ns;
  EXPECT_NEAR(secondsOf(1), exposed, ns);
  double overlapped = (128 + 8 * 256 + 128) * ns;
  EXPECT_NEAR(secondsOf(8 * 16384), overlapped, 1e-12);
  // Of half of the run, and of half of a tile.
  EXPECT_GT(secondsOf(4 * 16384), overlapped + 2 * 128 * ns);
  EXPECT_LT(secondsOf(4 * 16384), exposed - 2 * 128 * ns);
  EXPECT_LT(secondsOf(8192), exposed - 100 * ns);
  EXPECT_GT(secondsOf(8192), secondsOf(16384));
  // The wait is the vector unit's, whose share of the time it does not change.
  spec.overlappedRunBytes = 1;
  spec.effectiveMemoryBytesPerSecond = spec.coreMemoryBytesPerSecond = 256e9;
  TimingReport report = simulate(streaming(1, 8, 0, kExp), true, spec);
  EXPECT_EQ(report.bottleneck, "sfu");
  EXPECT_NEAR(report.utilisation[int(TimedUnit::SFU)],
              8 * 256 * ns / report.predictedSeconds, 1e-9);
  spec = simpleSpec();
  spec.overlappedRunBytes = 1;
  report = simulate(streaming(1, 8, 0, kExp), true, spec);
  EXPECT_NEAR(report.kernels[0].costModelSeconds, (8 * 256 + 16 * 128) * ns,
              ns);
  // One step after another waits anyway.
  EXPECT_NEAR(secondsOf(1, false), 8 * (128 + 256 + 128) * ns, 1e-12);
  // Tiles of different cores are different runs.
  spec.overlappedRunBytes = 2 * 16384;
  EXPECT_NEAR(simulate(streaming(4, 2, 2, kExp), true, spec).predictedSeconds,
              simulate(streaming(4, 2, 2, kExp)).predictedSeconds, 1e-12);
}

TEST_F(Timing, BuffersAreTwo) {
  // The third load waits until the first tile has been used: of eight loads of
  // 128 ns, with 256 ns of work each, the last ends 128 ns + 6 x 256 ns after
  // the start and its own transfer.
  TimingReport report = simulate(streaming(1, 8, 0, kExp));
  double lastLoad = 0;
  for (const TraceEvent &event : report.events)
    if (event.kind == TraceEvent::Slice && event.process == 3 &&
        event.lane == 2)
      lastLoad = std::max(lastLoad, event.start + event.seconds);
  // Stores take a share of the bandwidth while they are in flight.
  EXPECT_GE(lastLoad, (128 + 6 * 256 + 128) * ns - 1e-12);
  EXPECT_LE(lastLoad, (128 + 7 * 256) * ns + 1e-12);
}

TEST_F(Timing, CoresShareDeviceMemory) {
  // Four cores, different tiles: bytes of all.
  TimingReport report = simulate(streaming(4, 8, 8, kAdd));
  EXPECT_NEAR(report.predictedSeconds, (4 * 16 * 128 + 64) * ns, 200 * ns);
  EXPECT_EQ(report.deviceBytesRead, 4u * 8 * 16384);
  EXPECT_EQ(report.deviceBytesDemanded, report.deviceBytesRead);
  EXPECT_EQ(report.tensors.size(), 2u);
  EXPECT_EQ(report.tensors[0].bytesRead, report.deviceBytesRead);
  EXPECT_EQ(report.tensors[1].bytesWritten, report.deviceBytesWritten);
}

TEST_F(Timing, DeviceMemoryTurnsAround) {
  // A stick more per stick of the direction that moves less, but for the first
  // loads and the last stores, which are alone.
  DeviceSpec spec = simpleSpec();
  spec.memoryTurnaroundSecondsPerByte = 1 / 128e9;
  TimingReport report = simulate(streaming(4, 8, 8, kAdd), true, spec);
  EXPECT_LE(report.predictedSeconds, (4 * 24 * 128 + 64) * ns);
  EXPECT_GE(report.predictedSeconds, (4 * 22 * 128) * ns);
}

TEST_F(Timing, ACoreMovesSoMuchAtMost) {
  // It loads and stores side by side.
  DeviceSpec spec = simpleSpec();
  spec.coreMemoryBytesPerSecond = 64e9;
  TimingReport report = simulate(streaming(1, 8, 0, kAdd), true, spec);
  EXPECT_NEAR(report.predictedSeconds, (8 * 256 + 64 + 256) * ns, 1e-12);
}

TEST_F(Timing, RunsThatGoOnCostNothing) {
  // Each of eight tiles is one run, and goes on where the last one ended.
  DeviceSpec spec = simpleSpec();
  spec.memoryRunOverheadBytes = 12800; // 100 ns
  TimingReport report = simulate(streaming(1, 8, 0, kAdd), true, spec);
  EXPECT_NEAR(report.predictedSeconds, (16 * 128 + 200) * ns, 1e-12);
}

TEST_F(Timing, KernelsThatRepeatStartAnew) {
  DeviceSpec spec = simpleSpec();
  spec.kernelRepeatSeconds = 1000 * ns;
  std::string twice = streaming(1, 8, 0, kAdd) + R"(
func.func @main(%x: index, %y: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %c2 step %c1 {
    func.call @stream(%x, %y) : (index, index) -> ()
  }
  return
}
)";
  TimingReport once = simulate(streaming(1, 8, 0, kAdd));
  TimingReport report = simulate(twice, true, spec);
  ASSERT_EQ(report.kernels.size(), 2u);
  EXPECT_NEAR(report.predictedSeconds, 2 * once.predictedSeconds + 1000 * ns,
              1e-12);
  EXPECT_NEAR(report.kernels[1].predictedSeconds,
              once.predictedSeconds + 1000 * ns, 1e-12);
  EXPECT_NEAR(report.kernels[1].startSeconds, once.predictedSeconds, 1e-12);
}

TEST_F(Timing, BroadcastServesEightCores) {
  for (auto [cores, reads] : {std::pair{1, 1}, {8, 1}, {16, 2}, {24, 3}}) {
    TimingReport report = simulate(streaming(cores, 1, 0, kAdd));
    EXPECT_EQ(report.deviceBytesRead, uint64_t(reads) * 16384) << cores;
    EXPECT_EQ(report.deviceBytesDemanded, uint64_t(cores) * 16384);
    EXPECT_EQ(report.deviceBytesWritten, uint64_t(cores) * 16384);
    EXPECT_NEAR(report.predictedSeconds, (reads * 128 + 64 + cores * 128) * ns,
                1e-12);
  }
}

TEST_F(Timing, SetupIsPaidOncePerOperand) {
  DeviceSpec spec = simpleSpec();
  spec.transferSetupSeconds = 1000 * ns;
  spec.launchSeconds = 5000 * ns;
  TimingReport report = simulate(streaming(1, 8, 0, kAdd), true, spec);
  TimingReport plain = simulate(streaming(1, 8, 0, kAdd));
  // The store's is hidden as far as loads go on.
  EXPECT_GE(report.predictedSeconds, plain.predictedSeconds + 6000 * ns);
  EXPECT_LE(report.predictedSeconds, plain.predictedSeconds + 7000 * ns);
  EXPECT_EQ(report.bottleneck, "launch");
}

TEST_F(Timing, GathersMoveWholeSticks) {
  TimingReport report = simulate(R"(
#table = affine_set<(r, c) : (r >= 0, -r + 4095 >= 0, c >= 0, -c + 127 >= 0)>
#index = affine_set<(i) : (i >= 0, -i + 63 >= 0)>
#block = affine_set<(i, c) : (i >= 0, -i + 63 >= 0, c >= 0, -c + 7 >= 0)>
#order = affine_map<(i, c) -> (i, c)>
func.func @gather(%x: index, %idx: index, %y: index) {
  %zero = arith.constant 0 : index
  %xv = ktdp.construct_memory_view %x, sizes: [4096, 128], strides: [128, 1] {coordinate_set = #table, memory_space = #ktdp.memory_space<global>} : memref<4096x128xf16>
  %iv = ktdp.construct_memory_view %idx, sizes: [64], strides: [1] {coordinate_set = #index, memory_space = #ktdp.memory_space<global>} : memref<64xi32>
  %yv = ktdp.construct_memory_view %y, sizes: [64, 8], strides: [8, 1] {coordinate_set = #block, memory_space = #ktdp.memory_space<global>} : memref<64x8xf16>
  %xt = ktdp.construct_indirect_access_tile intermediate_variables(%i, %c) %xv[ind(%iv[%i]), (%c)] {variables_space_set = #block, variables_space_order = #order} : memref<4096x128xf16>, memref<64xi32> -> !ktdp.access_tile<64x8xindex>
  %yt = ktdp.construct_access_tile %yv[%zero, %zero] {access_tile_set = #block, access_tile_order = #order} : memref<64x8xf16> -> !ktdp.access_tile<64x8xindex>
  %a = ktdp.load %xt : !ktdp.access_tile<64x8xindex> -> tensor<64x8xf16>
  ktdp.store %a, %yt : tensor<64x8xf16>, !ktdp.access_tile<64x8xindex>
  return
}
)");
  // 64 rows of 16 bytes: a stick each, and two sticks of indices; the result
  // is dense: 8 sticks.
  EXPECT_EQ(report.deviceBytesRead, (64u + 2) * 128);
  EXPECT_EQ(report.deviceBytesWritten, 8u * 128);
}

/// Every core of each pair {c, c + distance} adds up both tiles of 128 sticks.
static std::string pairs(int distance) {
  return replaced(R"(
#row = affine_set<(i) : (i >= 0, -i + 8191 >= 0)>
#order = affine_map<(i) -> (i)>
#pair = affine_set<(i)[g] : (i - g >= 0, -i + g + DISTANCE >= 0, (i - g) mod DISTANCE == 0)>
func.func @pairs(%x: index) attributes {grid = [32]} {
  %zero = arith.constant 0 : index
  %xv = ktdp.construct_memory_view %zero, sizes: [8192], strides: [1] {coordinate_set = #row, memory_space = #ktdp.memory_space<ct_local>} : memref<8192xf16>
  %xt = ktdp.construct_access_tile %xv[%zero] {access_tile_set = #row, access_tile_order = #order} : memref<8192xf16> -> !ktdp.access_tile<8192xindex>
  %mine = ktdp.load %xt : !ktdp.access_tile<8192xindex> -> tensor<8192xf16>
  %future = ktdp.inter_tile_produce producer_tiles_per_group = #pair
      : tensor<8192xf16> -> !ktdp.tile_future<tensor<8192xf16>, groups = affine_set<(g) : (g >= 0, -g >= 0)>> {
    ^bb0(%group: index):
      ktdp.yield_partial %mine : tensor<8192xf16>
  }
  %c0f = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<8192xf16>
  %identity = linalg.fill ins(%c0f : f16) outs(%empty : tensor<8192xf16>) -> tensor<8192xf16>
  %sum = ktdp.inter_tile_reduce(%future) consumer_tiles_per_group = #pair, identity(%identity : tensor<8192xf16>)
      : !ktdp.tile_future<tensor<8192xf16>, groups = affine_set<(g) : (g >= 0, -g >= 0)>> -> tensor<8192xf16> {
    ^bb0(%lhs: tensor<8192xf16>, %rhs: tensor<8192xf16>):
      %added = arith.addf %lhs, %rhs : tensor<8192xf16>
      ktdp.yield_reduced %added : tensor<8192xf16>
  }
  ktdp.store %sum, %xt : tensor<8192xf16>, !ktdp.access_tile<8192xindex>
  return
}
)",
                  {{"DISTANCE", std::to_string(distance)}});
}

TEST_F(Timing, TilesGoAroundTheRing) {
  // 128 cycles over a link of 128 bytes per cycle, one per hop, and two
  // additions of 64 ns, of which the own tile's need not wait.
  for (int distance : {1, 4, 16, 31}) {
    TimingReport report = simulate(pairs(distance));
    int hops = std::min(distance, 32 - distance);
    EXPECT_NEAR(report.predictedSeconds, (hops + 128 + 64 + 64) * ns, 65 * ns)
        << distance;
    EXPECT_EQ(report.ringBytes, 2u * 16384);
    EXPECT_EQ(report.deviceBytesRead, 0u);
    uint64_t links = 0;
    for (const TraceEvent &event : report.events)
      links += event.kind == TraceEvent::Slice && event.process == 2;
    EXPECT_EQ(links, uint64_t(2 * hops)) << distance;
  }
}

TEST_F(Timing, ReadsLXOfOtherCores) {
  // All of eight cores read 128 sticks of core 5's LX: seven times over the
  // ring, 1 to 5 hops the shorter way of 32.
  TimingReport report = simulate(R"(
#row = affine_set<(i) : (i >= 0, -i + 8191 >= 0)>
#order = affine_map<(i) -> (i)>
func.func @read(%x: index) attributes {grid = [8]} {
  %zero = arith.constant 0 : index
  %there = arith.constant 16384 : index
  %v = ktdp.construct_memory_view %zero, sizes: [8192], strides: [1] {coordinate_set = #row, memory_space = #ktdp.memory_space<ct_local, ct_id = 5>} : memref<8192xf16>
  %w = ktdp.construct_memory_view %there, sizes: [8192], strides: [1] {coordinate_set = #row, memory_space = #ktdp.memory_space<ct_local>} : memref<8192xf16>
  %t = ktdp.construct_access_tile %v[%zero] {access_tile_set = #row, access_tile_order = #order} : memref<8192xf16> -> !ktdp.access_tile<8192xindex>
  %u = ktdp.construct_access_tile %w[%zero] {access_tile_set = #row, access_tile_order = #order} : memref<8192xf16> -> !ktdp.access_tile<8192xindex>
  %d = ktdp.load %t : !ktdp.access_tile<8192xindex> -> tensor<8192xf16>
  %r = arith.addf %d, %d : tensor<8192xf16>
  ktdp.store %r, %u : tensor<8192xf16>, !ktdp.access_tile<8192xindex>
  return
}
)");
  EXPECT_EQ(report.ringBytes, 7u * 16384);
  EXPECT_EQ(report.deviceBytesRead, 0u);
  EXPECT_EQ(report.bottleneck, "ring");
  uint64_t links = 0;
  for (const TraceEvent &event : report.events)
    links += event.kind == TraceEvent::Slice && event.process == 2;
  EXPECT_EQ(links, 5u + 4 + 3 + 2 + 1 + 1 + 2);
  // Downwards five reads queue for the link below core 5; each takes 128 ns.
  EXPECT_GE(report.predictedSeconds, (5 * 128 + 64) * ns);
  EXPECT_LE(report.predictedSeconds, (5 * 128 + 64 + 10) * ns);
}

/// Each of 32 cores has a row of 32 x 4,096 f16 in its LX and loads a column
/// of all rows: 31 parts of 64 sticks from others.
static std::string exchange() {
  std::string views, names, types;
  for (int core = 0; core < 32; ++core) {
    std::string number = std::to_string(core);
    views += replaced(
        R"(
  %vN = ktdp.construct_memory_view %zero, sizes: [1, 131072], strides: [131072, 1] {coordinate_set = affine_set<(i, j) : (i - N >= 0, -i + N >= 0, j >= 0, -j + 131071 >= 0)>, memory_space = #ktdp.memory_space<ct_local, ct_id = N>} : memref<1x131072xf16>)",
        {{"N", number}});
    names += (core ? ", %v" : "%v") + number;
    types += core ? ", memref<1x131072xf16>" : "memref<1x131072xf16>";
  }
  return replaced(R"(
#column = affine_set<(i, j) : (i >= 0, -i + 31 >= 0, j >= 0, -j + 4095 >= 0)>
#order = affine_map<(i, j) -> (i, j)>
func.func @exchange(%x: index) attributes {grid = [32]} {
  %zero = arith.constant 0 : index
  %there = arith.constant 524288 : index
  %size = arith.constant 4096 : index
  %core = ktdp.get_compute_tile_id : index
  %first = arith.muli %core, %size : indexVIEWS
  %all = ktdp.construct_distributed_memory_view (NAMES : TYPES) : memref<32x131072xf16>
  %w = ktdp.construct_memory_view %there, sizes: [32, 4096], strides: [4096, 1] {coordinate_set = #column, memory_space = #ktdp.memory_space<ct_local>} : memref<32x4096xf16>
  %t = ktdp.construct_access_tile %all[%zero, %first] {access_tile_set = #column, access_tile_order = #order} : memref<32x131072xf16> -> !ktdp.access_tile<32x4096xindex>
  %u = ktdp.construct_access_tile %w[%zero, %zero] {access_tile_set = #column, access_tile_order = #order} : memref<32x4096xf16> -> !ktdp.access_tile<32x4096xindex>
  %d = ktdp.load %t : !ktdp.access_tile<32x4096xindex> -> tensor<32x4096xf16>
  ktdp.store %d, %u : tensor<32x4096xf16>, !ktdp.access_tile<32x4096xindex>
  return
}
)",
                  {{"VIEWS", views}, {"NAMES", names}, {"TYPES", types}});
}

TEST_F(Timing, CoresTakePartsInTurn) {
  // A part takes a link for 64 ns. Over each link upwards go 1 + 2 + ... + 16
  // of them, downwards 1 + ... + 15. If all cores began with the same core, or
  // if a part held links while it waited for others, most links would be idle.
  TimingReport report = simulate(exchange());
  EXPECT_EQ(report.ringBytes, 32u * 31 * 8192);
  EXPECT_EQ(report.bottleneck, "ring");
  EXPECT_GE(report.predictedSeconds, 136 * 64 * ns);
  EXPECT_LE(report.predictedSeconds, 1.1 * 136 * 64 * ns);
  double model = report.kernels.front().costModelSeconds;
  EXPECT_NEAR(model, report.predictedSeconds, 0.1 * model);
}

TEST_F(Timing, LanesNeverOverlap) {
  for (const std::string &text :
       {streaming(1, 8, 0, kExp), streaming(12, 3, 1, kAdd), pairs(4),
        exchange()}) {
    TimingReport report = simulate(text);
    std::map<std::pair<int, int>, double> ends;
    std::vector<TraceEvent> slices;
    for (const TraceEvent &event : report.events)
      if (event.kind == TraceEvent::Slice)
        slices.push_back(event);
    std::sort(slices.begin(), slices.end(),
              [](const TraceEvent &a, const TraceEvent &b) {
                return a.start < b.start;
              });
    EXPECT_GT(slices.size(), 5u);
    for (const TraceEvent &slice : slices) {
      double &end = ends[{slice.process, slice.lane}];
      EXPECT_GE(slice.start, end - 1e-15);
      EXPECT_GT(slice.seconds, 0);
      EXPECT_TRUE(report.lanes.count({slice.process, slice.lane}));
      EXPECT_EQ(report.names[slice.location].find("timed.mlir:"), 0u);
      end = slice.start + slice.seconds;
      EXPECT_LE(end, report.predictedSeconds + 1e-15);
    }
    // The LX is empty in the end.
    std::map<int, uint64_t> counters;
    for (const TraceEvent &event : report.events)
      if (event.kind == TraceEvent::Counter)
        counters[event.process] = event.bytes;
    for (auto [process, bytes] : counters)
      EXPECT_EQ(bytes, 0u) << process;
    // What Perfetto reads is JSON.
    nlohmann::json trace = nlohmann::json::parse(report.toChromeTrace());
    std::map<int, int> processes;
    for (const auto &[lane, name] : report.lanes)
      ++processes[lane.first];
    EXPECT_EQ(trace["traceEvents"].size(), report.events.size() +
                                               2 * processes.size() +
                                               report.lanes.size());
  }
}

TEST_F(Timing, SaysWhatDependsOnData) {
  TimingReport report = simulate(R"(
#one = affine_set<(i) : (i >= 0, -i + 63 >= 0)>
#order = affine_map<(i) -> (i)>
func.func @f(%x: index) {
  %c0 = arith.constant 0 : index
  %xv = ktdp.construct_memory_view %x, sizes: [64], strides: [1] {coordinate_set = #one, memory_space = #ktdp.memory_space<global>} : memref<64xf32>
  %xt = ktdp.construct_access_tile %xv[%c0] {access_tile_set = #one, access_tile_order = #order} : memref<64xf32> -> !ktdp.access_tile<64xindex>
  %d = ktdp.load %xt : !ktdp.access_tile<64xindex> -> tensor<64xf32>
  %s = tensor.extract %d[%c0] : tensor<64xf32>
  %f = tensor.splat %s : tensor<64xf32>
  %r = arith.addf %d, %f : tensor<64xf32>
  ktdp.store %r, %xt : tensor<64xf32>, !ktdp.access_tile<64xindex>
  return
}
)");
  ASSERT_EQ(report.dataDependent.size(), 1u);
  EXPECT_EQ(report.dataDependent[0], "timed.mlir:9:8");
  EXPECT_NE(report.toText().find("timed.mlir:9:8: note: depends on data"),
            std::string::npos);
}

TEST_F(Timing, IsTheSameEachTime) {
  std::string first = simulate(streaming(12, 3, 1, kAdd)).toChromeTrace();
  EXPECT_EQ(simulate(streaming(12, 3, 1, kAdd)).toChromeTrace(), first);
}

TEST_F(Timing, IntervalsAreThoseOfTheKind) {
  DeviceSpec spec;
  spec.launchSeconds = 1e-3;
  spec.pointwiseTimeLow = 0.5;
  spec.pointwiseTimeHigh = 3;
  spec.movementTimeLow = spec.movementTimeHigh = 1;
  TimingReport report = simulate(streaming(2, 3, 1, kAdd), true, spec);
  const KernelReport &kernel = report.kernels.front();
  EXPECT_DOUBLE_EQ(kernel.lowSeconds, 0.5 * kernel.predictedSeconds);
  EXPECT_DOUBLE_EQ(kernel.highSeconds, 3 * kernel.predictedSeconds);
  // The launch is no kernel.
  EXPECT_DOUBLE_EQ(report.lowSeconds, 1e-3 + kernel.lowSeconds);
  EXPECT_DOUBLE_EQ(report.highSeconds, 1e-3 + kernel.highSeconds);
  double sum = report.lowSeconds;
  EXPECT_DOUBLE_EQ(joinReports({report, report}).lowSeconds, 2 * sum);
}

TEST_F(Timing, ReportsAreOfTheDeviceOfThePlan) {
  std::string text = streaming(1, 2, 0, kExp);
  size_t body = text.find("func.func");
  auto program = loadProgramBytes(
      text.substr(0, body) +
          "module attributes {spyre_graph.device = {clockHertz = 1.0e8}} {\n" +
          text.substr(body) + "}\n",
      {}, "planned.mlir");
  ASSERT_TRUE(program->plannedDevice());
  EXPECT_EQ(program->plannedDevice()->spec.clockHertz, 1e8);
  EXPECT_EQ(program->plannedDevice()->location.substr(0, 13), "planned.mlir:");
  std::vector<int64_t> values;
  for (int i = 0; i < 2; ++i)
    values.push_back(int64_t(memory.allocate(8 << 20)) / 2);
  RunOptions options;
  options.report = true;
  double own = program->run(memory, values, options).predictedSeconds;
  DeviceSpec slow;
  slow.clockHertz = 1e8;
  options.device = std::make_shared<DeviceSpec>(slow);
  EXPECT_EQ(program->run(memory, values, options).predictedSeconds, own);
  options.device = std::make_shared<DeviceSpec>();
  EXPECT_LT(program->run(memory, values, options).predictedSeconds, own);
  EXPECT_FALSE(loadProgramBytes(text, {}, "timed.mlir")->plannedDevice());
}

TEST_F(Timing, SharesOfGuesses) {
  DeviceSpec spec;
  spec.launchSeconds = spec.transferSetupSeconds = 0;
  // Memory bandwidth is fitted, the vector unit's width guessed.
  TimingReport memory = simulate(streaming(32, 2, 2, kAdd), true, spec);
  spec.numSFULanes = 1;
  TimingReport vector = simulate(streaming(1, 8, 0, kExp), true, spec);
  EXPECT_LT(memory.guessedShare, 0.2);
  EXPECT_GT(vector.guessedShare, memory.guessedShare);
  EXPECT_LE(vector.guessedShare, 1);
}
