// SPDX-License-Identifier: Apache-2.0
//===- HostTransferBench.cpp - Speed of transfers -------------------------===//
//
// Not a test: prints host bytes per second of CPU time of transfers in both
// directions.
//
//===----------------------------------------------------------------------===//
#include "Spyre/Device/HostTransfer.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

using namespace spyre;

namespace {

template <typename Body>
double bestSeconds(Body body) {
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    std::clock_t start = std::clock();
    body();
    best = std::min(best,
                    static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

void measure(const char *what, HostDtype dtype, std::vector<int64_t> sizes,
             std::vector<int64_t> order) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * sizes[i];
  TensorLayout layout(sizes, strides, dtype, order);
  size_t bytes = static_cast<size_t>(strides[0] * sizes[0] * hostBytes(dtype));
  std::vector<uint8_t> image(bytes);
  // Halves, bfloat16 and floats of size about 1; small integers.
  bool isFloat = dtype == HostDtype::Float16 || dtype == HostDtype::BFloat16 ||
                 dtype == HostDtype::Float32;
  size_t step = static_cast<size_t>(hostBytes(dtype));
  for (size_t i = 0; i < bytes; i += step) {
    image[i] = static_cast<uint8_t>(i * 37 & 0x7f);
    if (isFloat)
      image[i + step - 1] = 0x3c;
  }
  // As on the device, it begins a stick.
  constexpr size_t kStick = 128;
  std::vector<uint8_t> space(static_cast<size_t>(layout.sizeInBytes()) +
                             kStick);
  auto start = reinterpret_cast<uintptr_t>(space.data());
  uint8_t *device = space.data() + (kStick - start % kStick) % kStick;
  TransferStats stats;
  double in = bestSeconds([&] {
    hostToDevice(image.data(), dtype, sizes, strides, layout, device, &stats);
  });
  double out = bestSeconds([&] {
    deviceToHost(device, layout, sizes, strides, dtype, image.data());
  });
  double gigabytes = static_cast<double>(bytes) / 1e9;
  std::printf("%-34s to device %6.2f GB/s, to host %6.2f GB/s\n", what,
              gigabytes / in, gigabytes / out);
}

} // namespace

int main() {
  measure("float16 4096x4096", HostDtype::Float16, {4096, 4096}, {0, 1});
  measure("float16 512x512", HostDtype::Float16, {512, 512}, {0, 1});
  measure("float16 4096x4000", HostDtype::Float16, {4096, 4000}, {0, 1});
  measure("float16 100000x70", HostDtype::Float16, {100000, 70}, {0, 1});
  measure("float16 1000000x5", HostDtype::Float16, {1000000, 5}, {0, 1});
  measure("float16 4096x4096 order [1, 0]", HostDtype::Float16, {4096, 4096},
          {1, 0});
  measure("float16 5632x2048 order [1, 0]", HostDtype::Float16, {5632, 2048},
          {1, 0});
  measure("float16 4096x512 sparse", HostDtype::Float16, {4096, 512},
          {0, 1, -1});
  measure("float16 8x128x32x64 order [2,0,1,3]", HostDtype::Float16,
          {8, 128, 32, 64}, {2, 0, 1, 3});
  measure("bfloat16 4096x4096", HostDtype::BFloat16, {4096, 4096}, {0, 1});
  measure("bool 4096x4096", HostDtype::Bool, {4096, 4096}, {0, 1});
  measure("float32 4096x4096", HostDtype::Float32, {4096, 4096}, {0, 1});
  measure("int64 4096x2048", HostDtype::Int64, {4096, 2048}, {0, 1});
  return 0;
}
