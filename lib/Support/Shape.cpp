// SPDX-License-Identifier: Apache-2.0
//===- Shape.cpp - Sizes and strides of host tensors ----------------------===//

#include "Spyre/Support/Shape.h"
#include "Spyre/Support/Error.h"

#include <algorithm>

using namespace spyre;

std::string spyre::formatSizes(const std::vector<int64_t> &values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

std::vector<int64_t> spyre::rowMajorStrides(const std::vector<int64_t> &sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    if (__builtin_mul_overflow(strides[i], std::max<int64_t>(sizes[i], 1),
                               &strides[i - 1]))
      throw Error("size " + formatSizes(sizes) + " overflows 64 bits");
  return strides;
}
