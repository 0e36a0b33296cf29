// SPDX-License-Identifier: Apache-2.0
//===- Arguments.cpp - Arrays of several sizes ----------------------------===//

#include "Spyre/Runtime/Program/Program.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Support/Shape.h"

#include <algorithm>
#include <numeric>

using namespace spyre;
using namespace spyre::runtime;

int64_t ArgumentInfo::Size::at(const std::vector<int64_t> &values) const {
  int64_t size = constant;
  for (auto [argument, factor] : terms) {
    int64_t term;
    if (__builtin_mul_overflow(factor, values[argument], &term) ||
        __builtin_add_overflow(size, term, &size))
      throw Error("a size overflows 64 bits");
  }
  return size / divisor;
}

bool ArgumentInfo::takesSize(int64_t value) const {
  return !lowerBound || (value >= *lowerBound && value % granularity == 0 &&
                         (upperBound < 0 || value <= upperBound));
}

std::string ArgumentInfo::describeRange() const {
  std::string text = granularity > 1
                         ? "multiples of " + std::to_string(granularity)
                         : std::string("sizes");
  text += " from " + std::to_string(lowerBound.value_or(0));
  if (upperBound >= 0)
    text += " to " + std::to_string(upperBound);
  return text;
}

/// "dimension 0 of 'x'", the first that is as large as a run-time argument
/// says, alone or with others. Empty if it is the size of no array.
static std::string findSized(const std::vector<ArgumentInfo> &arguments,
                             size_t number) {
  int position = 0;
  for (size_t i = 0; i < number; ++i)
    position += arguments[i].isRuntimeArgument;
  for (const ArgumentInfo &argument : arguments)
    for (size_t dim = 0; dim < argument.sizes.size(); ++dim)
      for (auto [own, factor] : argument.sizes[dim].terms)
        if (own == position)
          return "dimension " + std::to_string(dim) + " of '" + argument.name +
                 "'";
  return "";
}

std::string
spyre::runtime::checkSize(const std::vector<ArgumentInfo> &arguments,
                          size_t number, int64_t value) {
  const ArgumentInfo &size = arguments[number];
  if (size.takesSize(value))
    return "";
  std::string text = "size '" + size.name + "' is " + std::to_string(value) +
                     ", but the program is for " + size.describeRange();
  std::string sized = findSized(arguments, number);
  return sized.empty() ? text : text + "; it is the size of " + sized;
}

std::string
spyre::runtime::listSizes(const std::vector<ArgumentInfo> &arguments,
                          const std::vector<int64_t> &values) {
  std::string text;
  size_t next = 0;
  for (const ArgumentInfo &argument : arguments)
    if (argument.isRuntimeArgument)
      text +=
          (text.empty() ? "'" : " and '") + argument.name + "' is " +
          std::to_string(values[next++]) +
          (argument.lowerBound ? " (" + argument.describeRange() + ")" : "");
  return text;
}

std::string
spyre::runtime::listArguments(const std::vector<ArgumentInfo> &arguments) {
  std::string text;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentInfo &argument = arguments[i];
    if (argument.kind == ArgumentInfo::Pool)
      continue;
    text += (text.empty() ? "" : ", ") + argument.name;
    if (!argument.lowerBound)
      continue;
    std::string sized = findSized(arguments, i);
    text += " (" + argument.describeRange() +
            (sized.empty() ? ")" : ", of " + sized + ")");
  }
  return text;
}

ArrayStorage ArgumentInfo::storageAt(const std::vector<int64_t> &values) const {
  if (sizes.empty())
    return {shape, strides, *layout};
  std::vector<int64_t> found;
  try {
    for (const Size &size : sizes)
      found.push_back(size.at(values));
    return storageOf(std::move(found));
  } catch (const Error &error) {
    throw Error("argument '" + name + "': " + error.what());
  }
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
    if (__builtin_mul_overflow(stride, std::max<int64_t>(storage.shape[dim], 1),
                               &stride))
      throw Error("size " + formatSizes(storage.shape) + " overflows 64 bits");
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
