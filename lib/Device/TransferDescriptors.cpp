// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/TransferDescriptors.h"
#include "Spyre/Support/Error.h"

#include <algorithm>

using namespace spyre;

static std::string format(const std::vector<int64_t> &values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

int64_t spyre::countHomeElements(const std::vector<int64_t> &homeSizes,
                                 const std::vector<int64_t> &homeStrides) {
  auto home = [&] {
    return "a home of size " + format(homeSizes) + " and strides " +
           format(homeStrides);
  };
  if (homeSizes.size() != homeStrides.size())
    throw Error(home() + " has lists of different lengths");
  int64_t count = 1, offset = 0;
  bool isEmpty = false, overflows = false;
  for (size_t h = 0; h < homeSizes.size(); ++h) {
    if (homeSizes[h] < 0 || homeStrides[h] < 0)
      throw Error(home() + " has a negative entry");
    if (homeSizes[h] == 0) {
      isEmpty = true;
      continue;
    }
    if (homeStrides[h] == 0)
      continue;
    int64_t extent;
    overflows |= __builtin_mul_overflow(count, homeSizes[h], &count);
    overflows |=
        __builtin_mul_overflow(homeSizes[h] - 1, homeStrides[h], &extent);
    overflows |= __builtin_add_overflow(offset, extent, &offset);
  }
  if (isEmpty)
    return 0;
  // Both sides have at most 8 bytes per element.
  if (overflows || count > INT64_MAX / 8 || offset > INT64_MAX / 8)
    throw Error(home() + " overflows 64 bits");
  return count;
}

namespace {
/// Part of a host dimension: sizes for the device dimensions that count it.
struct Part {
  std::vector<int64_t> sizes;
  int64_t hostOffset, deviceOffset;
};
} // namespace

/// Splits a host dimension of `size` indices, which device dimensions `digits`
/// count by ascending step, into its full blocks of the largest step, then of
/// the next, and so on. At most one part per digit.
static std::vector<Part>
splitDimension(int64_t size, int64_t hostStride,
               const std::vector<size_t> &digits,
               const std::vector<DeviceDim> &dims,
               const std::vector<int64_t> &deviceStrides) {
  std::vector<Part> parts;
  int64_t hostOffset = 0, deviceOffset = 0;
  for (size_t i = digits.size(); i-- > 0;) {
    int64_t step = dims[digits[i]].step, count = size / step;
    if (count == 0)
      continue;
    Part part{std::vector<int64_t>(digits.size(), 1), hostOffset, deviceOffset};
    for (size_t j = 0; j < i; ++j)
      part.sizes[j] = dims[digits[j + 1]].step / dims[digits[j]].step;
    part.sizes[i] = count;
    parts.push_back(std::move(part));
    hostOffset += count * step * hostStride;
    deviceOffset += count * deviceStrides[digits[i]];
    size %= step;
  }
  return parts;
}

std::vector<TransferDescriptor> spyre::makeTransferDescriptors(
    const TensorLayout &layout, const std::vector<int64_t> &hostSizes,
    const std::vector<int64_t> &hostStrides, TransferDirection direction) {
  auto [homeSizes, homeStrides] =
      mergeUncountedDims(layout, hostSizes, hostStrides);
  std::vector<DeviceDim> dims =
      resolveDeviceDims(layout, homeSizes, homeStrides);
  (void)layout.sizeInBytes(); // throws where the strides below would overflow
  if (countHomeElements(homeSizes, homeStrides) == 0)
    return {};

  std::vector<TransferDescriptor> nests(1);
  TransferDescriptor &first = nests.front();
  first.sizes.assign(dims.size(), 1);
  first.hostStrides.assign(dims.size(), 0);
  first.deviceStrides.assign(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;)
    first.deviceStrides[d - 1] = first.deviceStrides[d] * dims[d].extent;
  for (size_t d = 0; d < dims.size(); ++d) {
    first.hostStrides[d] = std::max<int64_t>(layout.strideMap[d], 0);
    if (layout.strideMap[d] == 0 &&
        direction == TransferDirection::HostToDevice)
      first.sizes[d] = dims[d].extent;
  }

  for (size_t h = homeSizes.size(); h-- > 0;) {
    // All indices of a dimension with stride 0 are the same element.
    if (homeSizes[h] == 1 || homeStrides[h] == 0)
      continue;
    std::vector<size_t> digits;
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d].hostDim == static_cast<int>(h))
        digits.push_back(d);
    std::sort(digits.begin(), digits.end(),
              [&](size_t a, size_t b) { return dims[a].step < dims[b].step; });
    std::vector<TransferDescriptor> combined;
    for (const Part &part : splitDimension(homeSizes[h], homeStrides[h], digits,
                                           dims, nests.front().deviceStrides))
      for (TransferDescriptor nest : nests) {
        for (size_t i = 0; i < digits.size(); ++i)
          nest.sizes[digits[i]] = part.sizes[i];
        nest.hostOffset += part.hostOffset;
        nest.deviceOffset += part.deviceOffset;
        combined.push_back(std::move(nest));
      }
    nests = std::move(combined);
  }
  return nests;
}
