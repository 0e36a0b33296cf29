// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/TensorLayout.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Support/Shape.h"

#include <algorithm>
#include <functional>
#include <iterator>

using namespace spyre;

static constexpr const char *kArrangements[] = {"STANDARD", "DL16_TO_FP32",
                                                "QFP8CH", "EXX2"};

const char *spyre::toString(ElementArrangement arrangement) {
  auto number = static_cast<size_t>(arrangement);
  if (number >= std::size(kArrangements))
    throw Error("unknown element arrangement " + std::to_string(number));
  return kArrangements[number];
}

std::optional<ElementArrangement>
spyre::parseElementArrangement(const std::string &name) {
  for (size_t number = 0; number < std::size(kArrangements); ++number)
    if (name == kArrangements[number])
      return static_cast<ElementArrangement>(number);
  return std::nullopt;
}

static std::vector<int64_t> identityOrder(size_t rank) {
  std::vector<int64_t> order(rank);
  for (size_t i = 0; i < rank; ++i)
    order[i] = static_cast<int64_t>(i);
  return order;
}

TensorLayout::TensorLayout(const std::vector<int64_t> &hostSize,
                           HostDtype dtype)
    : TensorLayout(hostSize, rowMajorStrides(hostSize), dtype,
                   identityOrder(hostSize.size())) {}

TensorLayout::TensorLayout(const std::vector<int64_t> &hostSize,
                           const std::vector<int64_t> &hostStrides,
                           HostDtype dtype,
                           const std::vector<int64_t> &dimOrder,
                           ElementArrangement arrangement)
    : format(deviceFormat(dtype)), arrangement(arrangement) {
  size_t rank = hostSize.size();
  if (hostStrides.size() != rank)
    throw Error("host size " + formatSizes(hostSize) + " and host strides " +
                formatSizes(hostStrides) + " differ in length");
  for (size_t i = 0; i < rank; ++i)
    if (hostSize[i] < 0 || hostStrides[i] < 0)
      throw Error("host size " + formatSizes(hostSize) + " or host strides " +
                  formatSizes(hostStrides) + " have a negative entry");
  bool sparse = dimOrder.size() == rank + 1 && dimOrder.back() == -1;
  std::vector<bool> seen(rank);
  bool isPermutation = sparse || dimOrder.size() == rank;
  for (size_t i = 0; isPermutation && i < rank; ++i) {
    isPermutation = dimOrder[i] >= 0 &&
                    dimOrder[i] < static_cast<int64_t>(rank) &&
                    !seen[dimOrder[i]];
    if (isPermutation)
      seen[dimOrder[i]] = true;
  }
  if (!isPermutation)
    throw Error("dimension order " + formatSizes(dimOrder) +
                " is not a permutation of " + std::to_string(rank) +
                " dimensions, with -1 appended for a sparse layout");
  if (dimOrder.size() > 6)
    throw Error("a layout has at most 6 dimensions, but the order is " +
                formatSizes(dimOrder));

  int64_t stick = elemsPerStick(format);
  auto numSticks = [&](int64_t size) {
    return size / stick + (size % stick != 0);
  };
  // spec/layouts.md, "Generic-stick constructor".
  if (dimOrder.empty()) {
    deviceSize = {1, stick};
    strideMap = {-1, -1};
    return;
  }
  std::vector<int64_t> deviceToHost(dimOrder.begin() + 1, dimOrder.end());
  deviceToHost.push_back(dimOrder.front());
  if (dimOrder.size() > 1)
    deviceToHost.push_back(dimOrder.back());
  else
    deviceToHost = {dimOrder.front(), dimOrder.front()};

  size_t deviceRank = deviceToHost.size();
  deviceSize.resize(deviceRank);
  strideMap.resize(deviceRank);
  for (size_t i = 0; i + 1 < deviceRank; ++i) {
    int64_t hostDim = deviceToHost[i];
    if (hostDim != dimOrder.back())
      deviceSize[i] = hostSize[hostDim];
    else
      deviceSize[i] = hostDim < 0 ? 1 : numSticks(hostSize[hostDim]);
  }
  deviceSize.back() = stick;
  std::vector<int64_t> visited(rank, -1);
  for (size_t i = deviceRank; i-- > 0;) {
    int64_t hostDim = deviceToHost[i];
    if (hostDim < 0 || hostSize[hostDim] == 1) {
      strideMap[i] = -1;
      continue;
    }
    int64_t previous = visited[hostDim];
    if (previous < 0)
      strideMap[i] = hostStrides[hostDim];
    else if (__builtin_mul_overflow(strideMap[previous], deviceSize[previous],
                                    &strideMap[i]))
      throw Error("layout of " + formatSizes(hostSize) + " overflows 64 bits");
    visited[hostDim] = static_cast<int64_t>(i);
  }
  (void)sizeInBytes();
}

TensorLayout::TensorLayout(std::vector<int64_t> deviceSize,
                           std::vector<int64_t> strideMap, DataFormat format,
                           ElementArrangement arrangement)
    : deviceSize(std::move(deviceSize)), strideMap(std::move(strideMap)),
      format(format), arrangement(arrangement) {
  if (this->deviceSize.empty() ||
      this->deviceSize.size() != this->strideMap.size())
    throw Error("device size " + formatSizes(this->deviceSize) +
                " and stride map " + formatSizes(this->strideMap) +
                " must have the same, non-zero length");
  if (this->deviceSize.back() != elemsPerStick(format))
    throw Error("the last device size must be a stick of " +
                std::to_string(elemsPerStick(format)) + " elements of " +
                toString(format) + ", but is " +
                std::to_string(this->deviceSize.back()));
  for (size_t i = 0; i < this->deviceSize.size(); ++i)
    if (this->deviceSize[i] < 0 || this->strideMap[i] < -1)
      throw Error("device size " + formatSizes(this->deviceSize) +
                  " or stride map " + formatSizes(this->strideMap) +
                  " has a negative entry");
  (void)sizeInBytes();
}

void TensorLayout::checkHolds(HostDtype dtype) const {
  if (format != deviceFormat(dtype))
    throw Error("layout " + str() + " cannot hold elements of torch." +
                toString(dtype) + ", which the device stores as " +
                toString(deviceFormat(dtype)));
  if (!keepsElementOrder(arrangement))
    throw Error("layout " + str() +
                " has results inside a program; the elements of a tensor are "
                "stored in arrangement STANDARD (or QFP8CH, quantized ones)");
  if (arrangement == ElementArrangement::QFP8CH &&
      format != DataFormat::SEN143_FP8)
    throw Error("layout " + str() +
                " has arrangement QFP8CH, which is that of float8_e4m3fn "
                "elements");
}

int64_t TensorLayout::sizeInBytes() const {
  int64_t bytes = kStickBytes;
  for (size_t i = 0; i + 1 < deviceSize.size(); ++i)
    if (__builtin_mul_overflow(bytes, deviceSize[i], &bytes))
      throw Error("device size " + formatSizes(deviceSize) +
                  " overflows 64 bits");
  return bytes;
}

size_t TensorLayout::hash() const {
  size_t seed = deviceSize.size();
  auto combine = [&](int64_t value) {
    seed ^= std::hash<int64_t>()(value) + 0x9E3779B97F4A7C15ull + (seed << 6) +
            (seed >> 2);
  };
  for (int64_t size : deviceSize)
    combine(size);
  for (int64_t stride : strideMap)
    combine(stride);
  combine(static_cast<int64_t>(format));
  combine(static_cast<int64_t>(arrangement));
  return seed;
}

std::string TensorLayout::str() const {
  std::string text =
      "SpyreTensorLayout(device_size=" + formatSizes(deviceSize) +
      ", stride_map=" + formatSizes(strideMap) +
      ", device_dtype=" + toString(format);
  if (arrangement != ElementArrangement::STANDARD)
    text += std::string(", element_arrangement=") + toString(arrangement);
  return text + ")";
}

HomeShape spyre::mergeUncountedDims(const TensorLayout &layout,
                                    const std::vector<int64_t> &homeSizes,
                                    const std::vector<int64_t> &homeStrides) {
  HomeShape merged{homeSizes, homeStrides};
  if (homeSizes.size() != homeStrides.size())
    return merged;
  std::vector<size_t> dims; // with more than one element, the innermost first
  for (size_t h = 0; h < homeSizes.size(); ++h) {
    if (homeSizes[h] <= 0 || homeStrides[h] < 0)
      return merged;
    if (homeSizes[h] != 1 && homeStrides[h] != 0)
      dims.push_back(h);
  }
  std::sort(dims.begin(), dims.end(), [&](size_t a, size_t b) {
    return homeStrides[a] < homeStrides[b];
  });
  auto isCounted = [&](int64_t hostStride) {
    for (size_t d = 0; d < layout.strideMap.size(); ++d)
      if (layout.strideMap[d] == hostStride && layout.deviceSize[d] != 1)
        return true;
    return false;
  };
  std::vector<size_t> gone;
  for (size_t i = 1, inner = 0; i < dims.size(); ++i) {
    int64_t &size = merged.sizes[dims[inner]];
    int64_t span, joined;
    bool continues =
        !__builtin_mul_overflow(merged.strides[dims[inner]], size, &span) &&
        span == homeStrides[dims[i]];
    if (!continues || isCounted(span) ||
        __builtin_mul_overflow(size, homeSizes[dims[i]], &joined)) {
      inner = i;
      continue;
    }
    size = joined;
    gone.push_back(dims[i]);
  }
  std::sort(gone.rbegin(), gone.rend());
  for (size_t h : gone) {
    merged.sizes.erase(merged.sizes.begin() + static_cast<ptrdiff_t>(h));
    merged.strides.erase(merged.strides.begin() + static_cast<ptrdiff_t>(h));
  }
  return merged;
}

std::optional<TensorLayout>
spyre::changeStick(const TensorLayout &layout,
                   const std::vector<int64_t> &homeSizes,
                   const std::vector<int64_t> &homeStrides, DataFormat format) {
  int64_t before = elemsPerStick(layout.format), now = elemsPerStick(format);
  TensorLayout result = layout;
  result.format = format;
  result.deviceSize.back() = now;
  std::vector<DeviceDim> dims =
      resolveDeviceDims(layout, homeSizes, homeStrides);
  int stickDim = dims.back().hostDim;
  // One element in each stick, or one stick at most in both formats.
  if (before == now || stickDim < 0)
    return result;
  int64_t laneStride = layout.strideMap.back();
  // The next larger step along the sticks, or the end.
  int64_t next = homeSizes[stickDim];
  bool isNested = false;
  std::optional<size_t> sticks;
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    // A single stick is counted, too, although it resolves to nothing.
    if (layout.strideMap[d] == laneStride * before && !sticks &&
        (dims[d].hostDim == stickDim || dims[d].extent == 1)) {
      sticks = d;
    } else if (dims[d].hostDim == stickDim) {
      if (dims[d].step < before)
        return std::nullopt;
      next = std::min(next, dims[d].step);
      isNested = true;
    }
  }
  if (!sticks || (isNested && next % now != 0)) {
    if (!sticks && !isNested && homeSizes[stickDim] <= std::min(before, now))
      return result;
    return std::nullopt;
  }
  result.deviceSize[*sticks] = next / now + (next % now != 0);
  result.strideMap[*sticks] = laneStride * now;
  return result;
}

std::vector<DeviceDim>
spyre::resolveDeviceDims(const TensorLayout &layout,
                         const std::vector<int64_t> &homeSizes,
                         const std::vector<int64_t> &homeStrides) {
  auto fail = [&](const std::string &why) -> Error {
    return Error("layout with device size " + formatSizes(layout.deviceSize) +
                 " and stride map " + formatSizes(layout.strideMap) +
                 " cannot hold a tensor of size " + formatSizes(homeSizes) +
                 " and strides " + formatSizes(homeStrides) + ": " + why);
  };
  if (layout.deviceSize.empty() ||
      layout.deviceSize.size() != layout.strideMap.size())
    throw fail("device size and stride map must have the same, non-zero "
               "length");
  if (homeSizes.size() != homeStrides.size())
    throw fail("sizes and strides differ in length");
  bool isEmpty = false;
  for (size_t h = 0; h < homeSizes.size(); ++h) {
    if (homeSizes[h] < 0 || homeStrides[h] < 0)
      throw fail("sizes and strides must not be negative");
    isEmpty |= homeSizes[h] == 0;
  }
  std::vector<DeviceDim> dims;
  for (size_t i = 0; i < layout.deviceSize.size(); ++i) {
    int64_t extent = layout.deviceSize[i], stride = layout.strideMap[i];
    DeviceDim dim{-1, 1, extent};
    // A dimension of one position says nothing: its stride may belong to any.
    if (stride > 0 && extent != 1) {
      for (size_t h = 0; h < homeSizes.size(); ++h)
        if (homeSizes[h] != 1 && homeStrides[h] > 0 &&
            homeStrides[h] <= stride &&
            (dim.hostDim < 0 || homeStrides[h] > homeStrides[dim.hostDim]))
          dim.hostDim = static_cast<int>(h);
      if (dim.hostDim >= 0) {
        if (stride % homeStrides[dim.hostDim] == 0)
          dim.step = stride / homeStrides[dim.hostDim];
        else if (isEmpty)
          dim.hostDim = -1;
        else
          throw fail("stride " + std::to_string(stride) +
                     " is not a multiple of host stride " +
                     std::to_string(homeStrides[dim.hostDim]));
      }
    }
    dims.push_back(dim);
  }
  // No element of an empty tensor asks for a place.
  if (isEmpty)
    return dims;
  for (const DeviceDim &dim : dims)
    if (dim.extent == 0)
      throw fail("a device dimension has no positions");
  for (size_t h = 0; h < homeSizes.size(); ++h) {
    // All indices of a dimension with stride 0 are the same element.
    if (homeSizes[h] == 1 || homeStrides[h] == 0)
      continue;
    std::vector<const DeviceDim *> own;
    for (const DeviceDim &dim : dims)
      if (dim.hostDim == static_cast<int>(h))
        own.push_back(&dim);
    std::sort(own.begin(), own.end(),
              [](auto *a, auto *b) { return a->step < b->step; });
    if (own.empty() || own.front()->step != 1)
      throw fail("no device dimension counts single steps of dimension " +
                 std::to_string(h));
    for (size_t i = 0; i < own.size(); ++i) {
      // This dimension counts up to the next step, or to the end.
      int64_t step = own[i]->step;
      int64_t limit = i + 1 < own.size() ? own[i + 1]->step : homeSizes[h];
      if (i + 1 < own.size() && (limit == step || limit % step != 0))
        throw fail("steps " + std::to_string(step) + " and " +
                   std::to_string(limit) + " of dimension " +
                   std::to_string(h) + " do not nest");
      limit = std::min(limit, homeSizes[h]);
      int64_t needed = limit / step + (limit % step != 0);
      if (own[i]->extent < needed)
        throw fail("a device dimension of " + std::to_string(own[i]->extent) +
                   " positions is too small for dimension " +
                   std::to_string(h) + ", which needs " +
                   std::to_string(needed));
    }
  }
  return dims;
}
