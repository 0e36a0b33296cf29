// SPDX-License-Identifier: Apache-2.0
#include "Sticks.h"

#include <c10/util/Exception.h>

#include <cstring>
#include <vector>

namespace spyre::pytorch {

c10::DataPtr copySticks(const TensorLayout &tight, const TensorLayout &from,
                        const uint8_t *source, const TensorLayout &to,
                        c10::DeviceIndex index, uint64_t sizeInBytes) {
  const std::vector<int64_t> &sizes = tight.deviceSize;
  // The dimension that has room in either, or the outermost one.
  size_t dim = 0, numRoomy = 0;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (from.deviceSize[d] != sizes[d] || to.deviceSize[d] != sizes[d]) {
      dim = d;
      ++numRoomy;
    }
  TORCH_CHECK(numRoomy <= 1 && from.deviceSize.size() == sizes.size() &&
                  to.deviceSize.size() == sizes.size(),
              "layouts ", from.str(), " and ", to.str(),
              " differ in more than one dimension from ", tight.str());
  size_t inner = storageBytes(tight.format);
  for (size_t d = dim + 1; d < sizes.size(); ++d)
    inner *= sizes[d];
  int64_t outer = 1;
  for (size_t d = 0; d < dim; ++d)
    outer *= sizes[d];
  c10::DataPtr block = allocate(index, sizeInBytes);
  const Allocation *allocation = allocationOf(block);
  uint8_t *destination = allocation->card->memory.at(allocation->address);
  for (int64_t i = 0; i < outer; ++i)
    std::memcpy(destination + i * to.deviceSize[dim] * inner,
                source + i * from.deviceSize[dim] * inner, sizes[dim] * inner);
  return block;
}

} // namespace spyre::pytorch
