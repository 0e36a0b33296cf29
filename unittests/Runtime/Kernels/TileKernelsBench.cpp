// SPDX-License-Identifier: Apache-2.0
// Prints the speed of the kernels, best of several repetitions.
#include "Spyre/Runtime/Kernels/TileKernels.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

using namespace spyre::runtime;

namespace {

/// CPU time, so that a busy host disturbs little.
double cpuSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

template <class F>
double bestSeconds(F f) {
  double best = 1e9;
  for (int repeat = 0; repeat < 15; ++repeat) {
    size_t calls = 0;
    double begin = cpuSeconds(), elapsed;
    do {
      for (int i = 0; i < 16; ++i)
        f();
      calls += 16;
      elapsed = cpuSeconds() - begin;
    } while (elapsed < 0.004);
    best = std::min(best, elapsed / double(calls));
  }
  return best;
}

void benchGemm(const KernelTable &k, size_t m, size_t n, size_t depth,
               bool transposeA, bool transposeB) {
  std::vector<float> a(m * depth, 1.0f), b(depth * n, 1.0f), c(m * n, 0.0f);
  HalfFactor factorA, factorB;
  factorA.values = a.data();
  factorA.rowStride = transposeA ? 1 : ptrdiff_t(depth);
  factorA.columnStride = transposeA ? ptrdiff_t(m) : 1;
  factorB.values = b.data();
  factorB.rowStride = transposeB ? 1 : ptrdiff_t(n);
  factorB.columnStride = transposeB ? ptrdiff_t(depth) : 1;
  const HalfProduct product = {factorA, m, c.data(), ptrdiff_t(n)};
  double seconds = bestSeconds([&] {
    if (k.gemmOfHalves && m >= kMinRowsOfHalves)
      k.gemmOfHalves(&product, 1, n, depth, factorB);
    else
      k.gemm(m, n, depth, a.data(), factorA.rowStride, factorA.columnStride,
             b.data(), factorB.rowStride, factorB.columnStride, c.data(),
             ptrdiff_t(n));
  });
  std::printf("  gemm %4zux%4zux%4zu %s%s %8.1f GFLOP/s\n", m, n, depth,
              transposeA ? "T" : "N", transposeB ? "T" : "N",
              2e-9 * double(m * n * depth) / seconds);
}

/// Columns of one stick, as in device memory.
void benchGemmOfCodes(const KernelTable &k, size_t m, size_t depth) {
  constexpr size_t n = 64;
  std::vector<uint16_t> b(depth * n, 0x3e00);
  std::vector<float> a(m * depth, 1.0f), c(m * n, 0.0f);
  HalfFactor factorA, factorB;
  factorA.values = a.data();
  factorA.rowStride = ptrdiff_t(depth);
  factorA.columnStride = 1;
  factorB.values = b.data();
  factorB.areCodes = true;
  factorB.rowStride = ptrdiff_t(n);
  const HalfProduct product = {factorA, m, c.data(), ptrdiff_t(n)};
  double seconds = bestSeconds([&] {
    if (k.gemmOfHalves && m >= kMinRowsOfHalves)
      k.gemmOfHalves(&product, 1, n, depth, factorB);
    else
      k.gemmOfCodes(m, n, depth, a.data(), ptrdiff_t(depth), 1, b.data(),
                    ptrdiff_t(n), c.data(), ptrdiff_t(n));
  });
  std::printf("  gemm of codes %zux%zux%zu %8.1f GB/s of codes\n", m, n, depth,
              2e-9 * double(n * depth) / seconds);
}

} // namespace

int main() {
  for (const KernelTable *table : kernelVariants()) {
    const KernelTable &k = *table;
    std::printf("%s\n", k.name);
    const size_t sizes[][3] = {{16, 64, 512},   {64, 64, 64},    {64, 64, 512},
                               {128, 128, 512}, {64, 256, 2048}, {16, 256, 64},
                               {8, 64, 512},    {4, 64, 512},    {1, 64, 512},
                               {1, 256, 512}};
    for (auto [m, n, depth] : sizes)
      for (bool transposeB : {false, true})
        benchGemm(k, m, n, depth, false, transposeB);
    benchGemm(k, 64, 64, 512, true, false);
    benchGemm(k, 256, 1, 512, false, false);
    for (size_t m : {1, 2, 4, 8})
      for (size_t depth : {512, 65536})
        benchGemmOfCodes(k, m, depth);

    const size_t n = 4096;
    std::vector<float> x(n), y(n), z(n);
    for (size_t i = 0; i < n; ++i)
      x[i] = 0.001f * float(i) + 0.1f;
    struct {
      const char *name;
      UnaryOp op;
    } unaries[] = {{"copy", UnaryOp::Copy},   {"exp", UnaryOp::Exp},
                   {"log", UnaryOp::Log},     {"sqrt", UnaryOp::Sqrt},
                   {"rsqrt", UnaryOp::Rsqrt}, {"sin", UnaryOp::Sin},
                   {"tanh", UnaryOp::Tanh},   {"erf", UnaryOp::Erf},
                   {"floor", UnaryOp::Floor}};
    auto report = [&](const char *name, double seconds) {
      std::printf("  %-22s %7.3f ns per element\n", name,
                  1e9 * seconds / double(n));
    };
    for (auto &u : unaries)
      report(u.name, bestSeconds([&] {
               k.unary(u.op, x.data(), y.data(), n, Rounding::DL16);
             }));
    struct {
      const char *name;
      BinaryOp op;
    } binaries[] = {{"add", BinaryOp::Add},         {"div", BinaryOp::Div},
                    {"maximum", BinaryOp::Maximum}, {"pow", BinaryOp::Pow},
                    {"atan2", BinaryOp::Atan2},     {"rem", BinaryOp::Rem}};
    for (auto &b : binaries)
      report(b.name, bestSeconds([&] {
               k.binary(b.op, x.data(), 1, x.data(), 1, y.data(), n,
                        Rounding::DL16);
             }));
    std::vector<int32_t> i32(n, 3), r32(n);
    report("addi i32", bestSeconds([&] {
             k.binaryInt32(IntBinaryOp::Add, i32.data(), 1, i32.data(), 1,
                           r32.data(), n, 32);
           }));
    report("muli i32", bestSeconds([&] {
             k.binaryInt32(IntBinaryOp::Mul, i32.data(), 1, i32.data(), 1,
                           r32.data(), n, 32);
           }));
    float acc = 0;
    report("row sum", bestSeconds([&] {
             k.reduceRows(ReduceOp::Sum, x.data(), 1, n, 0, &acc);
           }));
    report("row max", bestSeconds([&] {
             k.reduceRows(ReduceOp::Max, x.data(), 1, n, 0, &acc);
           }));
    report("column sum 64x64", bestSeconds([&] {
             k.accumulateRows(ReduceOp::Sum, x.data(), 64, 64, 64, y.data());
           }));
    std::vector<uint16_t> codes(n);
    const size_t shape[] = {64, 64};
    const ptrdiff_t dense[] = {64, 1}, transposed[] = {1, 64};
    report("store DL16", bestSeconds([&] {
             k.storeFloat(ElementFormat::DL16, codes.data(), dense, x.data(),
                          dense, shape, 2);
           }));
    report("load DL16", bestSeconds([&] {
             k.loadFloat(ElementFormat::DL16, y.data(), dense, codes.data(),
                         dense, shape, 2);
           }));
    report("load DL16 transposed", bestSeconds([&] {
             k.loadFloat(ElementFormat::DL16, y.data(), dense, codes.data(),
                         transposed, shape, 2);
           }));
    report("copy transposed", bestSeconds([&] {
             k.copyFloat(y.data(), dense, x.data(), transposed, shape, 2);
           }));
  }
  return 0;
}
