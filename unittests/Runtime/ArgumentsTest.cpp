// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Runtime/Program/Program.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace spyre;
using namespace spyre::runtime;

namespace {

/// The strides of a dense array whose dimensions lie in this order, the
/// innermost last.
std::vector<int64_t> denseStrides(const std::vector<int64_t> &sizes,
                                  const std::vector<int64_t> &order) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= sizes[order[i]];
  }
  return strides;
}

/// An array of many sizes is stored as one that is made with the run's.
TEST(ArgumentsTest, StorageOfSmallerSizes) {
  std::mt19937 random(7);
  const int64_t constants[] = {1, 2, 30, 64, 65, 130}, largest = 512;
  for (int sample = 0; sample < 2000; ++sample) {
    size_t rank = 1 + random() % 4, varying = random() % rank;
    ArgumentInfo info;
    for (size_t dim = 0; dim < rank; ++dim)
      info.shape.push_back(constants[random() % std::size(constants)]);
    info.shape[varying] = largest;
    std::vector<int64_t> nesting(rank), order;
    std::iota(nesting.begin(), nesting.end(), 0);
    std::shuffle(nesting.begin(), nesting.end(), random);
    order = nesting;
    std::shuffle(order.begin(), order.end(), random);
    info.strides = denseStrides(info.shape, nesting);
    info.layout =
        TensorLayout(info.shape, info.strides, HostDtype::Float16, order);
    info.deviceDims = resolveDeviceDims(*info.layout, info.shape, info.strides);
    std::vector<int64_t> sizes = info.shape;
    sizes[varying] = 1 + random() % largest;
    std::vector<int64_t> strides = denseStrides(sizes, nesting);
    ArrayStorage found = info.storageOf(sizes);
    SCOPED_TRACE("layout " + info.layout->str() + " at size " +
                 std::to_string(sizes[varying]) + " of dimension " +
                 std::to_string(varying));
    for (size_t dim = 0; dim < rank; ++dim)
      if (sizes[dim] != 1)
        EXPECT_EQ(found.strides[dim], strides[dim]);
    TensorLayout expected(sizes, strides, HostDtype::Float16, order);
    EXPECT_EQ(found.layout.str(), expected.str());
  }
}

} // namespace
