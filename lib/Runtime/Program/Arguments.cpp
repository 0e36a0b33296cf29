// SPDX-License-Identifier: Apache-2.0
//===- Arguments.cpp - Arrays of several sizes ----------------------------===//

#include "Spyre/Runtime/Program/Program.h"

#include <algorithm>
#include <numeric>

using namespace spyre;
using namespace spyre::runtime;

int64_t ArgumentInfo::Size::at(const std::vector<int64_t> &values) const {
  int64_t size = constant;
  for (auto [argument, factor] : terms)
    size += factor * values[argument];
  return size / divisor;
}

std::string ArgumentInfo::checkSize(int64_t value) const {
  if (!lowerBound || (value >= *lowerBound && value % granularity == 0 &&
                      (upperBound < 0 || value <= upperBound)))
    return "";
  std::string text = "size '" + name + "' is " + std::to_string(value) +
                     ", but the program is for ";
  text += granularity > 1 ? "multiples of " + std::to_string(granularity)
                          : std::string("sizes");
  text += " from " + std::to_string(*lowerBound);
  if (upperBound >= 0)
    text += " to " + std::to_string(upperBound);
  return text;
}

ArrayStorage ArgumentInfo::storageAt(const std::vector<int64_t> &values) const {
  if (sizes.empty())
    return {shape, strides, *layout};
  std::vector<int64_t> found;
  for (const Size &size : sizes)
    found.push_back(size.at(values));
  return storageOf(std::move(found));
}

ArrayStorage ArgumentInfo::storageOf(std::vector<int64_t> found) const {
  ArrayStorage storage{std::move(found), strides, *layout};
  // Dense in the order of the largest one's dimensions.
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_pair(strides[a], b) < std::make_pair(strides[b], a);
  });
  int64_t stride = 1, largest = 1;
  for (size_t dim : order) {
    // A dimension of one element may have any stride.
    if (shape[dim] != 1 || strides[dim] == largest)
      storage.strides[dim] = stride;
    stride *= std::max<int64_t>(storage.shape[dim], 1);
    largest *= std::max<int64_t>(shape[dim], 1);
  }
  auto strideOf = [&](const DeviceDim &dim, int64_t step) {
    return storage.shape[dim.hostDim] == 1
               ? -1
               : storage.strides[dim.hostDim] * step;
  };
  for (size_t number = 0; number < deviceDims.size(); ++number) {
    const DeviceDim &dim = deviceDims[number], &lanes = deviceDims.back();
    if (dim.hostDim < 0) {
      // A single stick is counted, too, although it resolves to nothing.
      int64_t stick = elemsPerStick(layout->format);
      if (lanes.hostDim >= 0 && lanes.step == 1 &&
          layout->strideMap[number] == strides[lanes.hostDim] * stick)
        storage.layout.strideMap[number] = strideOf(lanes, stick);
      continue;
    }
    // Of the device dimensions of one host dimension, that with the largest
    // steps grows, but sticks stay.
    bool grows = number + 1 < deviceDims.size() &&
                 std::none_of(deviceDims.begin(), deviceDims.end(),
                              [&](const DeviceDim &other) {
                                return other.hostDim == dim.hostDim &&
                                       other.step > dim.step;
                              });
    if (grows)
      storage.layout.deviceSize[number] =
          (storage.shape[dim.hostDim] + dim.step - 1) / dim.step;
    storage.layout.strideMap[number] = strideOf(dim, dim.step);
  }
  return storage;
}
