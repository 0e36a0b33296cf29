// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/HostTransfer.h"
#include "Spyre/Device/DL16.h"
#include "Spyre/Device/Error.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace spyre;

//===----------------------------------------------------------------------===//
// Element conversions
//===----------------------------------------------------------------------===//

/// Selects only: loops over it vectorise.
static float halfToFloat(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t magnitude = static_cast<uint32_t>(half & 0x7FFFu) << 13;
  // 2^112 moves the exponent bias from 15 to 127; subnormals come out normal.
  float scaled = detail::floatOf(magnitude) * 0x1p112f;
  uint32_t bits = detail::bitsOf(scaled);
  bits = (half & 0x7C00u) == 0x7C00u ? (magnitude | 0x7F800000u) : bits;
  return detail::floatOf(bits | sign);
}

/// Nearest even; 65536 gives 65504, what is larger infinity.
static uint16_t floatToHalf(float value) {
  uint32_t bits = detail::bitsOf(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t normal =
      ((magnitude + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13) - (112u << 10);
  // Below 2^-14 adding 0.5 puts the last fraction bit of a half where the
  // addition rounds.
  uint32_t subnormal =
      detail::bitsOf(detail::floatOf(magnitude) + 0.5f) - 0x3F000000u;
  uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x477FF000u ? 0x7C00u : half;
  half = magnitude == 0x47800000u ? 0x7BFFu : half;
  half = magnitude > 0x7F800000u ? 0x7E00u : half;
  return static_cast<uint16_t>(half | sign);
}

static float bfloatToFloat(uint16_t value) {
  return detail::floatOf(static_cast<uint32_t>(value) << 16);
}

static uint16_t floatToBfloat(float value) {
  uint32_t bits = detail::bitsOf(value);
  uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  rounded = (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC0u : rounded;
  return static_cast<uint16_t>(rounded);
}

namespace {

/// One conversion pair: Host and Device are the stored types.
struct HalfConversion {
  using Host = uint16_t;
  using Device = uint16_t;
  static Device toDevice(Host v) { return encodeDL16(halfToFloat(v)); }
  static Host toHost(Device v) { return floatToHalf(decodeDL16(v)); }
};
struct BfloatConversion {
  using Host = uint16_t;
  using Device = uint16_t;
  static Device toDevice(Host v) { return encodeDL16(bfloatToFloat(v)); }
  static Host toHost(Device v) { return floatToBfloat(decodeDL16(v)); }
};
struct BoolConversion {
  using Host = uint8_t;
  using Device = uint16_t;
  static Device toDevice(Host v) { return v ? 0x3E00 : 0; }
  static Host toHost(Device v) { return (v & 0x7FFF) != 0; }
};
template <typename H, typename D>
struct PlainConversion {
  using Host = H;
  using Device = D;
  static Device toDevice(Host v) { return static_cast<Device>(v); }
  static Host toHost(Device v) { return static_cast<Host>(v); }
};

/// Device offsets (elements) of each index of each host dimension, and the
/// order in which to walk the host dimensions.
struct Walk {
  std::vector<std::vector<int64_t>> offsets;
  std::vector<int64_t> sizes, hostStrides;
  /// Position of each walked dimension in the home.
  std::vector<size_t> homeDims;
  bool isEmpty = false;
};

Walk makeWalk(const TensorLayout &layout, const std::vector<int64_t> &homeSizes,
              const std::vector<int64_t> &homeStrides) {
  Walk walk;
  walk.isEmpty =
      std::find(homeSizes.begin(), homeSizes.end(), 0) != homeSizes.end();
  if (walk.isEmpty)
    return walk;
  std::vector<DeviceDim> dims =
      resolveDeviceDims(layout, homeSizes, homeStrides);
  std::vector<int64_t> deviceStrides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    deviceStrides[i - 1] = deviceStrides[i] * dims[i].extent;
  // The dimension with host stride 1 (else the smallest) goes innermost.
  for (size_t h = 0; h < homeSizes.size(); ++h)
    if (homeSizes[h] > 1)
      walk.homeDims.push_back(h);
  std::sort(
      walk.homeDims.begin(), walk.homeDims.end(),
      [&](size_t a, size_t b) { return homeStrides[a] > homeStrides[b]; });
  for (size_t h : walk.homeDims) {
    std::vector<int64_t> table(homeSizes[h], 0);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].hostDim != static_cast<int>(h))
        continue;
      int64_t next = 0;
      for (const DeviceDim &other : dims)
        if (other.hostDim == dims[d].hostDim && other.step > dims[d].step &&
            (next == 0 || other.step < next))
          next = other.step;
      for (int64_t i = 0; i < homeSizes[h]; ++i)
        table[i] += (next ? i % next : i) / dims[d].step * deviceStrides[d];
    }
    walk.offsets.push_back(std::move(table));
    walk.sizes.push_back(homeSizes[h]);
    walk.hostStrides.push_back(homeStrides[h]);
  }
  return walk;
}

/// Calls body(hostOffset, deviceOffset, count, hostStride) for runs whose
/// device offsets are consecutive.
template <typename Body>
void forEachRun(const Walk &walk, Body body) {
  if (walk.isEmpty)
    return;
  size_t rank = walk.sizes.size();
  if (rank == 0) {
    body(0, 0, 1, 1);
    return;
  }
  // Runs of the innermost dimension.
  const std::vector<int64_t> &inner = walk.offsets.back();
  int64_t innerStride = walk.hostStrides.back();
  std::vector<std::pair<int64_t, int64_t>> runs;
  for (int64_t i = 0, n = walk.sizes.back(); i < n;) {
    int64_t end = i + 1;
    while (end < n && inner[end] == inner[end - 1] + 1)
      ++end;
    runs.emplace_back(i, end - i);
    i = end;
  }
  std::vector<int64_t> index(rank, 0);
  while (true) {
    int64_t host = 0, device = 0;
    for (size_t d = 0; d + 1 < rank; ++d) {
      host += index[d] * walk.hostStrides[d];
      device += walk.offsets[d][index[d]];
    }
    for (auto [start, count] : runs)
      body(host + start * innerStride, device + inner[start], count,
           innerStride);
    size_t d = rank - 1;
    while (d > 0 && ++index[d - 1] == walk.sizes[d - 1])
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

template <typename Conversion>
void copyToDevice(const void *hostImage, const Walk &walk, uint8_t *device) {
  auto *host = static_cast<const typename Conversion::Host *>(hostImage);
  auto *out = reinterpret_cast<typename Conversion::Device *>(device);
  forEachRun(walk,
             [&](int64_t from, int64_t to, int64_t count, int64_t stride) {
               const auto *source = host + from;
               auto *target = out + to;
               if (stride == 1)
                 for (int64_t i = 0; i < count; ++i)
                   target[i] = Conversion::toDevice(source[i]);
               else
                 for (int64_t i = 0; i < count; ++i)
                   target[i] = Conversion::toDevice(source[i * stride]);
             });
}

template <typename Conversion>
void copyToHost(const uint8_t *device, const Walk &walk, void *hostImage) {
  auto *host = static_cast<typename Conversion::Host *>(hostImage);
  auto *in = reinterpret_cast<const typename Conversion::Device *>(device);
  forEachRun(walk,
             [&](int64_t to, int64_t from, int64_t count, int64_t stride) {
               const auto *source = in + from;
               auto *target = host + to;
               if (stride == 1)
                 for (int64_t i = 0; i < count; ++i)
                   target[i] = Conversion::toHost(source[i]);
               else
                 for (int64_t i = 0; i < count; ++i)
                   target[i * stride] = Conversion::toHost(source[i]);
             });
}

template <typename Visitor>
void dispatch(HostDtype dtype, Visitor visit) {
  switch (dtype) {
  case HostDtype::Float16:
    return visit(HalfConversion());
  case HostDtype::BFloat16:
    return visit(BfloatConversion());
  case HostDtype::Float32:
    return visit(PlainConversion<uint32_t, uint32_t>());
  case HostDtype::Bool:
    return visit(BoolConversion());
  case HostDtype::UInt8:
    return visit(PlainConversion<uint8_t, uint32_t>());
  case HostDtype::Int8:
    return visit(PlainConversion<int8_t, int8_t>());
  case HostDtype::Int16:
    return visit(PlainConversion<int16_t, int16_t>());
  case HostDtype::Int32:
    return visit(PlainConversion<int32_t, int32_t>());
  case HostDtype::Int64:
    return visit(PlainConversion<int64_t, int32_t>());
  }
}

void checkFormat(HostDtype dtype, const TensorLayout &layout) {
  if (layout.format != deviceFormat(dtype))
    throw Error(std::string("a tensor of ") + toString(dtype) +
                " is stored as " + toString(deviceFormat(dtype)) +
                ", but the layout has " + toString(layout.format));
  if (layout.arrangement != ElementArrangement::STANDARD)
    throw Error("only the STANDARD element arrangement can be transferred");
}

/// Raises for the first value, in row-major order of the home, beyond 32 bits.
void checkInt64(const int64_t *image, const std::vector<int64_t> &sizes,
                const std::vector<int64_t> &strides) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  // The home is dense: its image is `count` consecutive elements.
  bool fits = true;
  for (int64_t i = 0; i < count; ++i)
    fits &= image[i] == static_cast<int32_t>(image[i]);
  if (fits)
    return;
  std::vector<int64_t> index(sizes.size(), 0);
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, offset = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      index[d] = rest % sizes[d];
      rest /= sizes[d];
      offset += index[d] * strides[d];
    }
    if (image[offset] == static_cast<int32_t>(image[offset]))
      continue;
    std::string text;
    for (size_t d = 0; d < index.size(); ++d)
      text += (d ? ", " : "") + std::to_string(index[d]);
    throw Error("int64 value " + std::to_string(image[offset]) + " at index [" +
                text +
                "] does not fit the 32 bits in which the device stores int64");
  }
}

} // namespace

void spyre::hostToDevice(const void *hostImage, HostDtype dtype,
                         const std::vector<int64_t> &homeSizes,
                         const std::vector<int64_t> &homeStrides,
                         const TensorLayout &layout, uint8_t *device,
                         TransferStats *stats) {
  checkFormat(dtype, layout);
  Walk walk = makeWalk(layout, homeSizes, homeStrides);
  int64_t count = 1;
  for (int64_t size : homeSizes)
    count *= size;
  if (dtype == HostDtype::Int64 && count > 0)
    checkInt64(static_cast<const int64_t *>(hostImage), homeSizes, homeStrides);
  if (dtype == HostDtype::BFloat16 && stats) {
    auto *values = static_cast<const uint16_t *>(hostImage);
    for (int64_t i = 0; i < count; ++i) {
      float value = bfloatToFloat(values[i]);
      uint16_t code = encodeDL16(value) & 0x7FFFu;
      stats->bf16OutOfRange += std::isfinite(value) && value != 0.0f &&
                               (code == 0 || code == 0x7FFFu);
    }
  }
  int64_t bytes = layout.sizeInBytes();
  if (bytes != count * storageBytes(layout.format))
    std::memset(device, 0, static_cast<size_t>(bytes));
  dispatch(dtype, [&](auto conversion) {
    copyToDevice<decltype(conversion)>(hostImage, walk, device);
  });
}

void spyre::deviceToHost(const uint8_t *device, const TensorLayout &layout,
                         const std::vector<int64_t> &homeSizes,
                         const std::vector<int64_t> &homeStrides,
                         HostDtype dtype, void *hostImage) {
  checkFormat(dtype, layout);
  Walk walk = makeWalk(layout, homeSizes, homeStrides);
  dispatch(dtype, [&](auto conversion) {
    copyToHost<decltype(conversion)>(device, walk, hostImage);
  });
}
