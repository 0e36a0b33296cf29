// SPDX-License-Identifier: Apache-2.0
//===- TestSupport.h - What tests of layouts share --------------*- C++ -*-===//

#ifndef SPYRE_UNITTESTS_DEVICE_TESTSUPPORT_H
#define SPYRE_UNITTESTS_DEVICE_TESTSUPPORT_H

#include "Spyre/Support/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace spyre {

using Sizes = std::vector<int64_t>;

/// PyTorch's strides of a dense tensor: a dimension of size 0 counts as 1.
inline Sizes rowMajor(const Sizes &sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  return strides;
}

/// Expects an Error that says `part`.
inline void expectError(const std::function<void()> &body,
                        const std::string &part) {
  try {
    body();
    FAIL() << "no error; expected: " << part;
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << error.what();
  }
}

} // namespace spyre

#endif // SPYRE_UNITTESTS_DEVICE_TESTSUPPORT_H
