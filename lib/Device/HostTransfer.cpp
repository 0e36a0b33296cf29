// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/HostTransfer.h"
#include "HostConversions.h"
#include "Spyre/Device/TransferDescriptors.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Support/Shape.h"
#include "Spyre/Support/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

using namespace spyre;

//===----------------------------------------------------------------------===//
// Decomposition into boxes
//===----------------------------------------------------------------------===//

namespace {
/// A loop over `extent` elements of both sides.
struct Loop {
  int64_t hostStride, deviceStride, extent;
};

/// A dense loop nest.
struct Box {
  int64_t hostOffset = 0, deviceOffset = 0;
  std::vector<Loop> loops;
};

} // namespace

/// Loops by descending host stride, without those of one step, and neighbours
/// that are one loop on both sides joined.
static void simplify(Box &box) {
  std::vector<Loop> &loops = box.loops;
  loops.erase(std::remove_if(loops.begin(), loops.end(),
                             [](const Loop &l) { return l.extent == 1; }),
              loops.end());
  std::sort(loops.begin(), loops.end(), [](const Loop &a, const Loop &b) {
    return a.hostStride != b.hostStride ? a.hostStride > b.hostStride
                                        : a.deviceStride > b.deviceStride;
  });
  for (size_t i = loops.size(); i-- > 1;) {
    Loop &outer = loops[i - 1];
    const Loop &inner = loops[i];
    if (outer.hostStride != inner.hostStride * inner.extent ||
        outer.deviceStride != inner.deviceStride * inner.extent)
      continue;
    outer = {inner.hostStride, inner.deviceStride, outer.extent * inner.extent};
    loops.erase(loops.begin() + static_cast<ptrdiff_t>(i));
  }
}

/// Rows of sticks that are copied together. Strides between the sticks of a row
/// are often large powers of two: reading in the order of the host meets one
/// cache set, and one page after another. (Writing that way is no slower: a
/// stick is two whole cache lines.)
constexpr int64_t kRowsPerBlock = 32;

/// Adds `box` to `boxes`, with the loop that is most local on the device
/// divided into blocks of rows, the loop in a block innermost but for the run.
static void addBlocked(Box box, std::vector<Box> &boxes) {
  std::vector<Loop> &loops = box.loops;
  bool hasRun = !loops.empty() && loops.back().hostStride == 1 &&
                loops.back().deviceStride == 1;
  if (!hasRun || loops.size() < 3) {
    boxes.push_back(std::move(box));
    return;
  }
  Loop run = loops.back();
  loops.pop_back();
  auto rows = std::min_element(loops.begin(), loops.end(),
                               [](const Loop &a, const Loop &b) {
                                 return a.deviceStride < b.deviceStride;
                               });
  Loop row = *rows;
  if (row.extent <= kRowsPerBlock) {
    loops.erase(rows);
    loops.push_back(row);
    loops.push_back(run);
    boxes.push_back(std::move(box));
    return;
  }
  int64_t numBlocks = row.extent / kRowsPerBlock;
  int64_t numRest = row.extent % kRowsPerBlock;
  if (numRest != 0) {
    Box rest = box;
    rest.hostOffset += numBlocks * kRowsPerBlock * row.hostStride;
    rest.deviceOffset += numBlocks * kRowsPerBlock * row.deviceStride;
    rest.loops.erase(rest.loops.begin() + (rows - loops.begin()));
    rest.loops.push_back({row.hostStride, row.deviceStride, numRest});
    rest.loops.push_back(run);
    boxes.push_back(std::move(rest));
  }
  *rows = {row.hostStride * kRowsPerBlock, row.deviceStride * kRowsPerBlock,
           numBlocks};
  loops.push_back({row.hostStride, row.deviceStride, kRowsPerBlock});
  loops.push_back(run);
  boxes.push_back(std::move(box));
}

/// Boxes that cover every element of the home once; to the device, also the
/// copies that expanded device dimensions (stride 0) hold.
static std::vector<Box> makeBoxes(const TensorLayout &layout,
                                  const std::vector<int64_t> &homeSizes,
                                  const std::vector<int64_t> &homeStrides,
                                  TransferDirection direction) {
  std::vector<Box> blocked;
  for (const TransferDescriptor &nest :
       makeTransferDescriptors(layout, homeSizes, homeStrides, direction)) {
    Box box{nest.hostOffset, nest.deviceOffset, {}};
    for (size_t d = 0; d < nest.sizes.size(); ++d)
      box.loops.push_back(
          {nest.hostStrides[d], nest.deviceStrides[d], nest.sizes[d]});
    simplify(box);
    if (direction == TransferDirection::DeviceToHost)
      addBlocked(std::move(box), blocked);
    else
      blocked.push_back(std::move(box));
  }
  return blocked;
}

/// Calls body(hostOffset, deviceOffset) for each point of the loops, the last
/// loop fastest.
template <typename Body>
static void forEachPoint(const std::vector<Loop> &loops, int64_t host,
                         int64_t device, Body body) {
  std::vector<int64_t> index(loops.size(), 0);
  while (true) {
    body(host, device);
    size_t d = loops.size();
    for (; d > 0; --d) {
      const Loop &loop = loops[d - 1];
      host += loop.hostStride;
      device += loop.deviceStride;
      if (++index[d - 1] < loop.extent)
        break;
      index[d - 1] = 0;
      host -= loop.hostStride * loop.extent;
      device -= loop.deviceStride * loop.extent;
    }
    if (d == 0)
      return;
  }
}

//===----------------------------------------------------------------------===//
// Division among threads
//===----------------------------------------------------------------------===//

/// Elements that a thread converts before it takes the next part: few enough
/// that all threads are busy to the end, and so many that taking a part costs
/// nothing beside them.
constexpr int64_t kPartElements = int64_t(1) << 17;

static int64_t countElements(const Box &box) {
  int64_t count = 1;
  for (const Loop &loop : box.loops)
    count *= loop.extent;
  return count;
}

/// Parts of a loop of neighbours have a multiple of so many elements: no cache
/// line is written by two threads.
static int64_t leastLength(const Loop &loop) {
  return loop.hostStride == 1 || loop.deviceStride == 1 ? 64 : 1;
}

/// Adds boxes that together are `box` to `parts`, divided along its first
/// loops.
static void addParts(Box box, std::vector<Box> &parts) {
  int64_t numWanted = (countElements(box) + kPartElements - 1) / kPartElements;
  auto loop =
      std::find_if(box.loops.begin(), box.loops.end(), [](const Loop &loop) {
        return loop.extent > leastLength(loop);
      });
  if (numWanted <= 1 || loop == box.loops.end()) {
    parts.push_back(std::move(box));
    return;
  }
  const Box whole = box;
  const int64_t extent = loop->extent, least = leastLength(*loop);
  const int64_t length =
      (std::max<int64_t>(extent / numWanted, 1) + least - 1) / least * least;
  for (int64_t first = 0; first < extent; first += length) {
    box.hostOffset = whole.hostOffset + first * loop->hostStride;
    box.deviceOffset = whole.deviceOffset + first * loop->deviceStride;
    loop->extent = std::min(length, extent - first);
    addParts(box, parts);
  }
}

/// Calls body(part) for parts of the boxes that together are the boxes, on the
/// host threads of the device model. No part has a point of another.
template <typename Body>
static void forEachPart(const std::vector<Box> &boxes, Body body) {
  std::vector<Box> parts;
  for (const Box &box : boxes)
    addParts(box, parts);
  ThreadPool::instance().forEach(
      static_cast<int64_t>(parts.size()), ThreadPool::defaultThreads(),
      [&](int64_t part, int) { body(parts[static_cast<size_t>(part)]); });
}

//===----------------------------------------------------------------------===//
// Copies of boxes
//===----------------------------------------------------------------------===//

/// Bytes from which a tensor on the device is written past the caches, which
/// would not keep it.
constexpr int64_t kPastCaches = int64_t(4) << 20;

namespace {
/// The innermost loops of a box.
struct InnerLoops {
  std::vector<Loop> outer;
  Loop row = {1, 1, 1};
  /// Set for a transposition: `row` is consecutive on the host, this one on
  /// the device.
  std::optional<Loop> column;
};

} // namespace

static InnerLoops chooseInnerLoops(const Box &box) {
  InnerLoops result;
  result.outer = box.loops;
  auto take = [&](auto isWanted) -> std::optional<Loop> {
    auto it = std::find_if(result.outer.begin(), result.outer.end(), isWanted);
    if (it == result.outer.end())
      return std::nullopt;
    Loop loop = *it;
    result.outer.erase(it);
    return loop;
  };
  auto onDevice = [](const Loop &loop) { return loop.deviceStride == 1; };
  auto onHost = [](const Loop &loop) { return loop.hostStride == 1; };
  std::optional<Loop> row = take(onHost);
  if (row && row->deviceStride != 1)
    result.column = take(onDevice);
  if (!row)
    row = take(onDevice);
  if (!row && !result.outer.empty()) {
    row = result.outer.back();
    result.outer.pop_back();
  }
  if (row)
    result.row = *row;
  return result;
}

static Transposition transposition(const InnerLoops &inner) {
  return {inner.column->hostStride, inner.row.deviceStride, inner.row.extent,
          inner.column->extent};
}

template <typename C>
static void copyToDevice(const void *hostImage, const std::vector<Box> &boxes,
                         uint8_t *deviceBytes, bool pastCaches) {
  auto *image = static_cast<const typename C::Host *>(hostImage);
  auto *storage = reinterpret_cast<typename C::Device *>(deviceBytes);
  forEachPart(boxes, [&](const Box &box) {
    InnerLoops inner = chooseInnerLoops(box);
    const Loop row = inner.row;
    auto copy = [&](int64_t from, int64_t to) {
      const typename C::Host *source = image + from;
      typename C::Device *target = storage + to;
      if (inner.column)
        transposeToDevice(C(), source, target, transposition(inner),
                          pastCaches);
      else if (row.hostStride == 1 && row.deviceStride == 1)
        convertToDevice(C(), source, target, row.extent, pastCaches);
      else
        for (int64_t i = 0; i < row.extent; ++i)
          target[i * row.deviceStride] =
              C::toDevice(source[i * row.hostStride]);
    };
    forEachPoint(inner.outer, box.hostOffset, box.deviceOffset, copy);
    if (pastCaches)
      finishStores();
  });
}

template <typename C>
static void copyToHost(const uint8_t *deviceBytes,
                       const std::vector<Box> &boxes, void *hostImage) {
  auto *image = static_cast<typename C::Host *>(hostImage);
  auto *storage = reinterpret_cast<const typename C::Device *>(deviceBytes);
  forEachPart(boxes, [&](const Box &box) {
    InnerLoops inner = chooseInnerLoops(box);
    const Loop row = inner.row;
    auto copy = [&](int64_t to, int64_t from) {
      const typename C::Device *source = storage + from;
      typename C::Host *target = image + to;
      if (inner.column)
        transposeToHost(C(), source, target, transposition(inner));
      else if (row.hostStride == 1 && row.deviceStride == 1)
        convertToHost(C(), source, target, row.extent);
      else
        for (int64_t i = 0; i < row.extent; ++i)
          target[i * row.hostStride] = C::toHost(source[i * row.deviceStride]);
    };
    forEachPoint(inner.outer, box.hostOffset, box.deviceOffset, copy);
  });
}

template <typename Visitor>
static void dispatch(HostDtype dtype, Visitor visit) {
  switch (dtype) {
  case HostDtype::Float16:
    return visit(HalfConversion());
  case HostDtype::BFloat16:
    return visit(BFloat16Conversion());
  case HostDtype::Float32:
    return visit(PlainConversion<uint32_t, uint32_t>());
  case HostDtype::Bool:
    return visit(BoolConversion());
  case HostDtype::UInt8:
    return visit(PlainConversion<uint8_t, uint32_t>());
  case HostDtype::Float8E4M3FN:
  case HostDtype::Float8E5M2FNUZ:
    return visit(PlainConversion<uint8_t, uint8_t>());
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

//===----------------------------------------------------------------------===//
// Checks of values
//===----------------------------------------------------------------------===//

/// The sum of body(pointer, count, stride) for runs of host elements that
/// together are the home.
template <typename T, typename Body>
static int64_t sumOfHostRuns(const void *hostImage,
                             const std::vector<int64_t> &sizes,
                             const std::vector<int64_t> &strides, Body body) {
  Box box;
  for (size_t h = 0; h < sizes.size(); ++h)
    if (strides[h] != 0)
      box.loops.push_back({strides[h], strides[h], sizes[h]});
  simplify(box);
  std::atomic<int64_t> total{0};
  forEachPart({box}, [&](const Box &part) {
    InnerLoops inner = chooseInnerLoops(part);
    int64_t sum = 0;
    forEachPoint(inner.outer, part.hostOffset, 0, [&](int64_t offset, int64_t) {
      sum += body(static_cast<const T *>(hostImage) + offset, inner.row.extent,
                  inner.row.hostStride);
    });
    total += sum;
  });
  return total;
}

static bool fitsInt32(int64_t value) {
  return value == static_cast<int32_t>(value);
}

/// Whether all values fit in 32 bits. If not: throws for the first in row-major
/// order of the home or, with `stats`, notes it.
static bool checkInt64(const void *hostImage, const std::vector<int64_t> &sizes,
                       const std::vector<int64_t> &strides,
                       TransferStats *stats) {
  // The loops have a form that vectorises.
  int64_t numRunsOutside = sumOfHostRuns<int64_t>(
      hostImage, sizes, strides,
      [](const int64_t *values, int64_t count, int64_t stride) -> int64_t {
        uint64_t any = 0;
        if (stride == 1)
          for (int64_t i = 0; i < count; ++i)
            any |= (static_cast<uint64_t>(values[i]) + 0x80000000u) >> 32;
        else
          for (int64_t i = 0; i < count; ++i)
            any |=
                (static_cast<uint64_t>(values[i * stride]) + 0x80000000u) >> 32;
        return any != 0;
      });
  if (numRunsOutside == 0)
    return true;
  std::vector<Loop> loops;
  for (size_t h = 0; h < sizes.size(); ++h)
    loops.push_back({strides[h], 0, sizes[h]});
  auto *image = static_cast<const int64_t *>(hostImage);
  int64_t position = 0, total = 0;
  std::string first;
  forEachPoint(loops, 0, 0, [&](int64_t offset, int64_t) {
    if (!fitsInt32(image[offset]) && total++ == 0) {
      std::vector<int64_t> index(sizes.size(), 0);
      int64_t rest = position;
      for (size_t h = sizes.size(); h-- > 0; rest /= sizes[h])
        index[h] = rest % sizes[h];
      first = "int64 value " + std::to_string(image[offset]) + " at index " +
              formatSizes(index);
      if (!stats)
        throw Error(first + " does not fit the 32 bits in which the device "
                            "stores int64");
    }
    ++position;
  });
  if (stats->int64OutOfRange == 0)
    stats->firstInt64OutOfRange = first;
  stats->int64OutOfRange += total;
  return false;
}

static int64_t countOutOfRange(const void *hostImage,
                               const std::vector<int64_t> &sizes,
                               const std::vector<int64_t> &strides) {
  return sumOfHostRuns<uint16_t>(
      hostImage, sizes, strides,
      [](const uint16_t *values, int64_t count, int64_t stride) {
        if (stride == 1)
          return countBFloat16OutsideDL16(values, static_cast<size_t>(count));
        int64_t total = 0;
        for (int64_t i = 0; i < count; ++i)
          total += isBFloat16OutsideDL16(values[i * stride]);
        return total;
      });
}

void spyre::hostToDevice(const void *hostImage, HostDtype dtype,
                         const std::vector<int64_t> &homeSizes,
                         const std::vector<int64_t> &homeStrides,
                         const TensorLayout &layout, uint8_t *device,
                         TransferStats *stats) {
  layout.checkHolds(dtype);
  std::vector<Box> boxes = makeBoxes(layout, homeSizes, homeStrides,
                                     TransferDirection::HostToDevice);
  int64_t count = countHomeElements(homeSizes, homeStrides);
  int64_t sizeInBytes = layout.sizeInBytes();
  if (count == 0) {
    // There may be padding, and no pointer if there is not.
    if (sizeInBytes != 0)
      std::memset(device, 0, static_cast<size_t>(sizeInBytes));
    return;
  }
  bool saturates = dtype == HostDtype::Int64 &&
                   !checkInt64(hostImage, homeSizes, homeStrides, stats);
  if (dtype == HostDtype::BFloat16 && stats)
    stats->bf16OutOfRange += countOutOfRange(hostImage, homeSizes, homeStrides);
  if (sizeInBytes != count * storageBytes(layout.format))
    std::memset(device, 0, static_cast<size_t>(sizeInBytes));
  bool pastCaches = sizeInBytes >= kPastCaches;
  if (saturates)
    return copyToDevice<SaturatingConversion>(hostImage, boxes, device,
                                              pastCaches);
  dispatch(dtype, [&](auto conversion) {
    copyToDevice<decltype(conversion)>(hostImage, boxes, device, pastCaches);
  });
}

void spyre::checkInt64Image(const void *hostImage,
                            const std::vector<int64_t> &homeSizes,
                            const std::vector<int64_t> &homeStrides,
                            TransferStats &stats) {
  if (countHomeElements(homeSizes, homeStrides) != 0)
    checkInt64(hostImage, homeSizes, homeStrides, &stats);
}

void spyre::deviceToHost(const uint8_t *device, const TensorLayout &layout,
                         const std::vector<int64_t> &homeSizes,
                         const std::vector<int64_t> &homeStrides,
                         HostDtype dtype, void *hostImage) {
  layout.checkHolds(dtype);
  std::vector<Box> boxes = makeBoxes(layout, homeSizes, homeStrides,
                                     TransferDirection::DeviceToHost);
  if (countHomeElements(homeSizes, homeStrides) == 0)
    return;
  dispatch(dtype, [&](auto conversion) {
    copyToHost<decltype(conversion)>(device, boxes, hostImage);
  });
}
